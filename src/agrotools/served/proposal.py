"""Check of the schemas that a tool server lists, and the proposal of a binding from them, for a person to complete."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, cast

import orjson

from agrotools.core.texts import count_text
from agrotools.served.files import takes_bytes
from agrotools.served.session import Listing, ServedTool
from agrotools.served.tools import is_callable_name

_FILE_WORDS = frozenset(
    "image images picture photo path paths file files uri raster mask depth frame video input".split()
)
"""Words in names of arguments that take files, in the schemas of five published servers; for a proposal alone."""
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")


class SchemaCheck(NamedTuple):
    """What the listing says of one served tool, and what may keep a model from using it."""

    tool: str
    required: tuple[str, ...]
    optional: int
    files: str
    """How files go in: ``path``, ``bytes``, or nothing."""
    result: tuple[str, ...]
    """Fields of the structured result; none if the schema names none."""
    faults: tuple[str, ...]


def check_schemas(listing: Listing) -> list[SchemaCheck]:
    """Return a check of each tool of a listing."""
    names = [tool.name for tool in listing.tools]
    return [_schema_check(tool, names.count(tool.name)) for tool in listing.tools]


def _schema_check(tool: ServedTool, n_of_name: int) -> SchemaCheck:
    properties: dict[str, Any] = tool.arguments.get("properties", {})
    required: Sequence[str] = tool.arguments.get("required", ())
    faults: list[str] = []
    if not is_callable_name(tool.name):
        faults.append("models cannot call this name")
    if n_of_name > 1:
        faults.append("the name is listed more than once")
    if not tool.description.strip():
        faults.append("no description")
    faults += [
        f"{name} has no type" for name, schema in properties.items() if not _has_type(schema)
    ]
    return SchemaCheck(
        tool.name,
        tuple(required),
        len(properties) - len(required),
        _files_of(properties),
        _result_fields(tool),
        tuple(faults),
    )


def _has_type(schema: Mapping[str, Any]) -> bool:
    return bool({"type", "anyOf", "oneOf", "enum", "$ref"} & schema.keys())


def _files_of(properties: Mapping[str, Any]) -> str:
    if any(takes_bytes(schema) for schema in properties.values()):
        return "bytes"
    return "path" if any(map(_is_of_file, properties)) else ""


def _is_of_file(argument: str) -> bool:
    words = re.split(r"[_\W\d]+", argument.lower())
    return not _FILE_WORDS.isdisjoint(words) and "output" not in words


def _result_fields(tool: ServedTool) -> tuple[str, ...]:
    fields = (tool.result or {}).get("properties", {})
    return () if fields.keys() == {"result"} else tuple(fields)


def proposed_binding(
    listing: Listing,
    server: str,
    ours: Mapping[str, Mapping[str, Any]],
    fields: Mapping[str, Sequence[str]],
) -> str:
    """Return the text of a binding for a server: tools of our names are bound, the others stand in comments.

    Args:
        server: address of the server.
        ours: JSON Schemas of the arguments of our tools, by name.
        fields: fields of the results of the tools that are listed at the end, by name.
    """
    name = f"{listing.name} {listing.version}".strip()
    lines = [
        f"# {name}: {count_text(len(listing.tools), 'tool')}",
        f"server = {_text(server)}",
        "",
    ]
    for tool in listing.tools:
        lines += _of_our_name(tool, ours[tool.name]) if tool.name in ours else _in_comments(tool)
        lines.append("")
    lines.append("# Our tools: arguments, for placeholders and `when` -> fields of the result")
    for tool, names in fields.items():
        lines.append(f"# {tool}: {', '.join(_properties(ours[tool]))} -> {', '.join(names)}")
    return "\n".join([*lines, ""])


def _of_our_name(tool: ServedTool, ours: Mapping[str, Any]) -> list[str]:
    """Return a table without calls, with a remark on each argument that only one side has."""
    known, own = _properties(tool.arguments), _properties(ours)
    lines = [f"[{_key(tool.name)}]"]
    if lacking := [name for name in own if name not in known]:
        lines.append(
            f"# calls with these arguments are refused, which it lacks: {', '.join(lacking)}"
        )
    needed = [
        name
        for name in cast("Sequence[str]", tool.arguments.get("required", ()))
        if name not in own
    ]
    if needed:
        lines.append(f"# decide: it needs {', '.join(needed)}, which ours lacks; write its calls")
    return lines


def _in_comments(tool: ServedTool) -> list[str]:
    """Return a table in comments: which of our tools it stands for, a person must decide."""
    properties = _properties(tool.arguments)
    required: Collection[str] = tool.arguments.get("required", ())
    arguments = [f"{_key(name)} = {_proposed(name, properties.get(name, {}))}" for name in required]
    optional = [name for name in properties if name not in required]
    fields = _result_fields(tool)
    numbers = [name for name in fields if _is_number((tool.result or {})["properties"][name])]
    first = (tool.description.strip().split("\n") or [""])[0][:100]
    lines = [
        f"# {tool.name}: {first}",
        "# decide: the name of our tool in place of OURS (see the end of this file)",
        "# [OURS]",
        "# when = {}  # decide: the calls that it is made for, such as { region = false }",
        "# [[OURS.calls]]",
        f"# tool = {_text(tool.name)}",
        f"# arguments = {{ {', '.join(arguments)} }}",
    ]
    if optional:
        lines.append(f"# optional: {', '.join(optional)}")
    lines.append("# [OURS.result]")
    if numbers:
        lines += [f"# FIELD = {_text(name)}" for name in numbers]
    else:
        shown = f"; fields: {', '.join(fields)}" if fields else ""
        lines.append(f'# FIELD = "..."  # decide: where the value is in the result{shown}')
    return lines


def _proposed(name: str, schema: Mapping[str, Any]) -> str:
    """Return the value of a required argument: our picture for a file, else one that a person must replace."""
    if _is_of_file(name):
        return '["{image}"]' if schema.get("type") == "array" else '"{image}"'
    return _text(f"{{{name}}}")


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    return cast("dict[str, Any]", schema.get("properties", {}))


def _is_number(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") in ("integer", "number")


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    """Return a text as TOML writes it, in the same form as JSON."""
    return orjson.dumps(text).decode()
