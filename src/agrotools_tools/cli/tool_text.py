"""Descriptions and results of tools as text for the terminal, and parsing of their command-line arguments."""

import inspect
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast

from pydantic import JsonValue

from agrotools.calling.arguments import describe_schema, plain_schema
from agrotools.calling.contract import Tool
from agrotools.calling.result import certificate
from agrotools.core import Artifact, ToolSpec, UsageError
from agrotools.report.layout import DASH, Part, ReportTable, TableColumn, new_table, paragraph

_UNITS = {unit: unit for unit in ("px", "mm", "cm", "m", "km", "ha", "s", "g", "kg")}
_UNITS |= {"pct": "%", "px2": "px²", "mm2": "mm²", "cm2": "cm²", "m2": "m²", "deg": "°"}
_MOST_ROWS = 5
_DIGITS = 4


def summary(tool: Tool[..., Any]) -> str:
    """Return the first sentence of a tool's description."""
    return re.split(r"(?<=\.)\s", tool.spec.description, maxsplit=1)[0]


def _words_table(title: str, rows: Iterable[Sequence[str]]) -> ReportTable:
    """Return a table of names with words in one or more columns, without headings."""
    listed = [*rows]
    table = new_table(
        title, [TableColumn(kind="words")] * (len(listed[0]) - 1 if listed else 1), first=24
    )
    for row in listed:
        table.add_row(*row)
    return table


def description(tool: Tool[..., Any]) -> list[Part]:
    """Return the description of a tool for users: purpose, arguments, results and further documentation."""
    spec = tool.spec
    required: Any = spec.parameters.get("required", [])
    properties: dict[str, Any] = spec.parameters["properties"]  # pyright: ignore[reportAssignmentType]
    arguments: list[tuple[str, str]] = []
    settings: list[tuple[str, str]] = []
    for name, schema in properties.items():
        is_file = spec.agreement[name] == "file" and schema.get("type") == "string"
        default = spec.defaults.get(name)
        leavable = (
            " [optional]" if default in (None, "", [], {}) else f" [default {_inline(default)}]"
        )
        text = f"{schema['description']}: " if "description" in schema else ""
        kind = (
            f"{'a file' if is_file else describe_schema(schema)}{leavable * (name not in required)}"
        )
        rows = settings if name in spec.expert else arguments
        rows.append((f"--{name.replace('_', '-')}", f"{text}{kind}"))
    schema, results = result_schema(tool)["properties"], dict[str, str]()
    for name, field in tool.result_type.model_fields.items():
        kind, text = describe_schema(schema[name]), field.description or ""
        kind = "a file" if _is_artifact(field.annotation) else kind
        results[name] = f"{text}: {kind}" if text and kind != "any value" else text or kind
    basis = {
        "notes": "basis of the values: method, scale, back-end",
        "flags": "where they may be wrong",
    }
    results = {name: text for name, text in results.items() if name not in basis} | basis
    certified = f"Accuracy: {certificate(tool.name, tool.version)['text']}"
    title = f"{tool.name} ({tool.category}, version {tool.version})"
    tables = [_words_table("Arguments", arguments)]
    if settings:
        tables.append(_words_table("Settings for experts (no model is shown them)", settings))
    tables.append(_words_table("Results", results.items()))
    # What the tool does comes first, how far to trust it last.
    beyond = [f"\n{text}" for text in (_sections(tool), certified) if text]
    return [*paragraph([title, "", spec.description]), *tables, *paragraph(beyond)]


def result_schema(tool: Tool[..., Any]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's result, with artifacts as file names."""
    schema = plain_schema(tool.result_type.model_json_schema(mode="serialization"))
    for name, field in tool.result_type.model_fields.items():
        if _is_artifact(field.annotation):
            text = {"description": field.description} if field.description else {}
            schema["properties"][name] = {"type": "string", **text}
    return schema


def tool_tables(rows: Sequence[Mapping[str, Any]]) -> list[ReportTable]:
    """Return the list of tools in sections: AgroTools benchmark, general, published names, plug-ins."""
    from agrotools.core.installed import plugins
    from agrotools_tools import AGROTOOLS, GENERAL_TOOLS

    toolsets = {plugin.name: plugin.tools for plugin in plugins()}
    published = {name for names in toolsets.values() for name in names}
    known = {*AGROTOOLS, *GENERAL_TOOLS, *published}
    sections: tuple[tuple[str, list[Mapping[str, Any]]], ...] = (
        (
            "The toolset of the AgroTools benchmark",
            [row for row in rows if row["name"] in AGROTOOLS],
        ),
        ("General tools", [row for row in rows if row["name"] in GENERAL_TOOLS]),
        (
            "Under the names of published benchmarks",
            [row for row in rows if row["name"] in published],
        ),
        ("Tools of installed plug-ins", [row for row in rows if row["name"] not in known]),
    )
    return [
        _words_table(title, (_tool_row(row, toolsets) for row in members))
        for title, members in sections
        if members
    ]


def _tool_row(
    row: Mapping[str, Any], toolsets: Mapping[str, Collection[str]]
) -> tuple[str, str, str]:
    benchmarks = ", ".join(label for label, names in toolsets.items() if row["name"] in names)
    purpose = row["summary"] or f"cannot be loaded: {row['error']}"
    return str(row["name"]), benchmarks or str(row["category"] or DASH), str(purpose)


def _is_artifact(annotation: Any) -> bool:
    return annotation is Artifact or Artifact in getattr(annotation, "__args__", ())


def _sections(tool: Tool[..., Any]) -> str:
    """Return the sections of the docstring (Raises, Source...) that models do not see."""
    heading = re.search(r"^[A-Z][A-Za-z ]*:\s*$", tool.doc, re.MULTILINE)
    if heading is None:
        return ""
    text = inspect.cleandoc(tool.doc[heading.start() :])
    return re.sub(r":[a-z]+:`~?([^`]*)`", r"\1", text).replace("``", "")


def result_table(result: JsonValue, paths: Sequence[str], *, exact: bool = False) -> ReportTable:
    """Return values with units, with notes and flags below; short numbers unless ``exact``, and no ``paths``."""
    result = result if exact else _short_numbers(result)
    assert isinstance(result, dict)
    values = {
        name: value
        for name, value in result.items()
        if name not in ("notes", "flags") and value not in paths
    }
    if not exact and isinstance(
        ends := values.get("count_interval"), list
    ):  # the whole numbers within it
        values["count_interval"] = [
            math.ceil(cast(float, ends[0])),
            math.floor(cast(float, ends[1])),
        ]
    table = _words_table("", (row for row in _rows(values) if row[1]))
    for word in ("note", "flag"):
        texts = result.get(f"{word}s")
        table.notes += [f"{word}: {text}" for text in texts] if isinstance(texts, list) else []
    return table


def _short_numbers(value: JsonValue) -> JsonValue:
    """Return a value with four significant digits in each of its floats, and all digits before the point."""
    if isinstance(value, dict):
        return {name: _short_numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_short_numbers(item) for item in value]
    if isinstance(value, float) and value:
        return round(value, max(0, _DIGITS - 1 - math.floor(math.log10(abs(value)))))
    return value


def _rows(
    values: Mapping[str, JsonValue], prefix: str = "", unit: str = ""
) -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        label = prefix + name
        stem, _, last = name.rpartition("_")
        own_unit = (
            f"{'per ' * stem.endswith('_per')}{_UNITS[last]}" if stem and last in _UNITS else ""
        )
        if isinstance(value, dict):
            yield from _rows(value, f"{label}.", own_unit or unit)
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            for index, item in enumerate(value[:_MOST_ROWS]):
                rows: Mapping[str, JsonValue] = item if isinstance(item, dict) else {"": item}
                yield (
                    f"{label}[{index}]",
                    ", ".join(f"{key} {text}" for key, text in _rows(rows, unit=own_unit)),
                )
            if len(value) > _MOST_ROWS:
                yield "", f"... and {len(value) - _MOST_ROWS} more; --json prints all"
        else:
            value_text = _inline(value)
            yield (
                label,
                f"{value_text} {own_unit or unit}".rstrip()
                if isinstance(value, (int, float))
                else value_text,
            )


def _inline(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list):
        items = ", ".join(_inline(item) for item in value[:20])
        return f"[{items}{', ...' if len(value) > 20 else ''}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_inline(item)}" for key, item in value.items()) + "}"
    return str(value)


_EXAMPLE = "write e.g. '{\"region\": [0, 0, 100, 100]}'"
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def named_values(texts: Sequence[str]) -> dict[str, str]:
    """Return the values of texts ``NAME=VALUE`` by name."""
    if unnamed := [text for text in texts if "=" not in text]:
        raise UsageError(f"{unnamed[0]!r} is not NAME=VALUE", hint="--argument crop=bean")
    return {name: value for name, _, value in (text.partition("=") for text in texts)}


def parse_arguments(spec: ToolSpec, as_json: str, words: Sequence[str]) -> dict[str, Any]:
    """Return arguments from a JSON object and from options such as ``--gsd-m 0.02`` or ``--gsd_m=0.02``.

    Options take precedence. A value that cannot be converted to its type is passed on as text, so that the tool reports
    the error.
    """
    try:
        arguments = json.loads(as_json)
    except ValueError as error:
        raise UsageError(f"--arguments is not JSON: {error}", hint=_EXAMPLE) from None
    if not isinstance(arguments, dict):
        raise UsageError("--arguments must be a JSON object", hint=_EXAMPLE)
    properties: dict[str, Any] = spec.parameters["properties"]  # pyright: ignore[reportAssignmentType]
    seen: set[str] = set()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or word == "--":
            options = ", ".join(f"--{name.replace('_', '-')}" for name in properties)
            raise UsageError(f"{word!r} is not an option", hint=f"{spec.name} takes {options}")
        key, has_value, value = word[2:].partition("=")
        name = key.replace("-", "_")
        schema = properties.get(name)
        if (
            schema is None
            and name.startswith("no_")
            and properties.get(name[3:], {}).get("type") == "boolean"
        ):
            name, has_value, value = name[3:], "=", "false"
            schema = properties[name]
        if name in seen:
            raise UsageError(f"--{key} is given twice", hint="write lists as JSON")
        seen.add(name)
        if not has_value:
            value = _next_value(rest, key, is_flag=(schema or {}).get("type") == "boolean")
        arguments[name] = value if schema is None else _read(value, schema)
    return arguments


def _next_value(rest: list[str], key: str, *, is_flag: bool) -> str:
    if is_flag and (not rest or rest[0].lower() not in _TRUTH):
        return "true"
    if not rest or rest[0].startswith("--"):
        raise UsageError(f"--{key} has no value", hint=f"write --{key} VALUE")
    return rest.pop(0)


def _read(text: str, schema: dict[str, Any]) -> Any:
    match schema.get("type"):
        case "string":
            return text
        case "boolean":
            return _TRUTH.get(text.lower(), text)
        case "array" if not text.lstrip().startswith("["):
            items = [_json_or_text(part.strip()) for part in text.split(",")]
            return (
                items
                if len(items) > 1 or schema.get("items", {}).get("type") == "string"
                else _json_or_text(text)
            )
        case _:
            return _json_or_text(text)


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
