"""JSON Schema of a tool's arguments for any OpenAI-style endpoint, in words, and in messages about faulty calls."""

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agrotools.core import ToolError

_DROPPED = frozenset({"title", "$defs", "format", "discriminator"})


def plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """``schema`` with definitions inlined and without titles, formats, null branches and null defaults.

    An argument that may be null is one that may be left out, so "or null" only costs tokens and trips endpoints.

    Raises:
        ValueError: the schema refers to itself, which cannot be inlined.
    """
    return _plain(schema, schema.get("$defs", {}), ())


def _plain(schema: dict[str, Any], definitions: dict[str, Any], open_refs: tuple[str, ...]) -> dict[str, Any]:
    schema = dict(schema)
    if ref := schema.pop("$ref", None):
        if ref in open_refs:
            raise ValueError(f"the type {ref.rsplit('/', 1)[-1]} refers to itself")
        target = definitions[ref.rsplit("/", 1)[-1]]
        return _plain({**target, **schema}, definitions, (*open_refs, ref))

    def inner(value: dict[str, Any]) -> dict[str, Any]:
        return _plain(value, definitions, open_refs)

    # "oneOf" is how tagged unions come; endpoints know "anyOf" alone, and the tag tells the branches apart anyway.
    unions = [*schema.pop("anyOf", []), *schema.pop("oneOf", [])]
    branches = [branch for branch in unions if branch.get("type") != "null"]
    if {"type": "number"} in branches:
        branches = [branch for branch in branches if branch != {"type": "integer"}]
    if len(branches) == 1:
        return inner({**branches[0], **schema})
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _DROPPED or (key == "default" and value is None):
            continue
        if key == "const":
            plain["enum"] = [value]
        elif key == "properties":
            plain[key] = {name: inner(item) for name, item in value.items()}
        elif key == "prefixItems":
            kinds = [inner(item) for item in value]
            plain["items"] = kinds[0] if all(kind == kinds[0] for kind in kinds) else {"anyOf": kinds}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            plain[key] = inner(value)
        else:
            plain[key] = value
    if branches:
        plain["anyOf"] = [inner(branch) for branch in branches]
    return plain


def describe_schema(schema: dict[str, Any]) -> str:
    """Allowed values in words: ``a number above 0``, ``one of auto, exg``."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(describe_schema(branch) for branch in schema["anyOf"]))
    if "enum" in schema:
        choices = [str(choice) for choice in schema["enum"]]
        return choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"
    match schema.get("type"):
        case "integer":
            return "a whole number" + _range(schema)
        case "number":
            return "a number" + _range(schema)
        case "boolean":
            return "true or false"
        case "string":
            return "text" + _count(schema, "minLength", "maxLength", "characters")
        case "array":
            items = schema.get("items", {})
            how_many = _count(schema, "minItems", "maxItems", "") or " of"
            return f"a list{how_many} {_plural(describe_schema(items))}"
        case "object":
            return _describe_object(schema)
        case _:
            return "any value"


def _describe_object(schema: dict[str, Any]) -> str:
    if properties := schema.get("properties"):
        required = set(schema.get("required", ()))
        keys = [name if name in required else f"{name} (optional)" for name in properties]
        return f"an object with {', '.join(keys)}"
    values = schema.get("additionalProperties")
    return f"an object from names to {_plural(describe_schema(values))}" if isinstance(values, dict) else "an object"


def _range(schema: dict[str, Any]) -> str:
    above, least = schema.get("exclusiveMinimum"), schema.get("minimum")
    below, most = schema.get("exclusiveMaximum"), schema.get("maximum")
    if least is not None and most is not None:
        return f" from {least:g} to {most:g}"
    low = f" above {above:g}" if above is not None else f" of at least {least:g}" if least is not None else ""
    high = f" below {below:g}" if below is not None else f" of at most {most:g}" if most is not None else ""
    return f"{low} and{high}" if low and high else low + high


def _count(schema: dict[str, Any], least_key: str, most_key: str, noun: str) -> str:
    least, most = schema.get(least_key), schema.get(most_key)
    noun = f" {noun}" if noun else ""
    if least is None and most is None:
        return ""
    if least == most:
        return f" of exactly {least}{noun}"
    if most is None:
        return f" of at least {least}{noun}"
    return f" of at most {most}{noun}" if least is None else f" of {least} to {most}{noun}"


_PLURALS = {
    "a number": "numbers",
    "a whole number": "whole numbers",
    "text": "texts",
    "a list": "lists",
    "an object": "objects",
    "any value": "values",
}


def _plural(words: str) -> str:
    if " or " in words:
        return f"values, each {words}"
    for singular, plural in _PLURALS.items():
        if words.startswith(singular):
            return plural + words.removeprefix(singular)
    return f"values, each {words}"


def schema_at(schema: dict[str, Any], path: Sequence[str | int]) -> dict[str, Any] | None:
    """The part of a plain ``schema`` that governs the value at ``path``, or None where the schema does not say."""
    for step in path:
        branches = schema.get("anyOf", [schema])
        inner = [found for branch in branches if (found := _child(branch, step)) is not None]
        if not inner:
            return None
        schema = inner[0]
    return schema


def _child(schema: dict[str, Any], step: str | int) -> dict[str, Any] | None:
    if isinstance(step, int):
        found = schema.get("items")
    else:
        found = schema.get("properties", {}).get(step, schema.get("additionalProperties"))
    return found if isinstance(found, dict) else None


MOST_FAULTS = 20
"""Faults of one call that are told."""
_LONGEST_NAME = 100
_OWN_WORDS = frozenset({"region", "file_name", "value_error", "fault"})
"""Errors raised by validators of ours, whose message is already written for the caller."""


def argument_error(
    tool: str, schema: dict[str, Any], arguments: Mapping[str, Any], words: Mapping[str, str], found: ValidationError
) -> ToolError:
    """One ``invalid_argument`` error for all faults of a call. ``words`` say what each argument may be."""
    errors = found.errors(include_url=False)
    faults: dict[tuple[str | int, ...], ErrorDetails] = {}
    for error in errors:
        faults.setdefault(_path_in(arguments, error), error)
    inside = {path[:depth] for path in faults for depth in range(len(path))}
    paths = [path for path in faults if path not in inside]
    told = [_fault(schema, words, path, faults[path]) for path in paths[:MOST_FAULTS]]
    if len(paths) > MOST_FAULTS:
        told.append(f"and {len(paths) - MOST_FAULTS:,} more faults")
    named = sorted({str(path[0]) for path in paths[:MOST_FAULTS] if path}, key=_order_of(arguments, schema))
    return ToolError(
        "invalid_argument",
        "; ".join(told),
        argument=named[0] if named else None,
        hint=_hint(tool, schema, {error["type"] for error in errors}),
    )


def _path_in(arguments: Mapping[str, Any], error: ErrorDetails) -> tuple[str | int, ...]:
    """Path of the fault in the arguments. Parts of the location that name a branch of a union are left out."""
    path: list[str | int] = []
    value: Any = arguments
    for part in error["loc"]:
        found = _entry(value, part)
        if found is not None:
            value = found[0]
            path.append(part)
    if error["type"] == "missing":
        path.append(error["loc"][-1])
    return tuple(path)


def _entry(value: Any, part: str | int) -> tuple[Any] | None:
    if isinstance(value, Mapping):
        return (value[part],) if part in value else None
    if isinstance(value, (list, tuple)) and isinstance(part, int):
        return (value[part],) if part < len(value) else None
    return None


def _fault(schema: dict[str, Any], words: Mapping[str, str], path: tuple[str | int, ...], error: ErrorDetails) -> str:
    name = _describe_value(path)
    allowed = _allowed(schema, words, path)
    if error["type"] == "missing":
        return f"{name} is missing" + (f": give {allowed}" if allowed else "")
    if error["type"] == "extra_forbidden":
        parent = schema_at(schema, path[:-1]) or schema
        known = list(parent.get("properties", {}))
        close = get_close_matches(str(path[-1])[:_LONGEST_NAME], known, n=3, cutoff=0.5)
        if close:
            return f"{name} is no argument; did you mean {' or '.join(close)}?"
        return f"{name} is no argument; there {'are' if len(known) > 1 else 'is'} {', '.join(known)}"
    if error["type"] == "finite_number":
        return f"{name} must be a finite number, is {error['input']}"
    if error["type"] in _OWN_WORDS:
        return f"{name} {error['msg'].removeprefix('Value error, ')}, is {_excerpt(error['input'])}"
    if allowed is None:
        return f"{name or 'the call'}: {error['msg']}"
    return f"{name} must be {allowed}, is {_excerpt(error['input'])}"


def _allowed(schema: dict[str, Any], words: Mapping[str, str], path: tuple[str | int, ...]) -> str | None:
    if len(path) == 1 and path[0] in words:
        return words[str(path[0])]
    found = schema_at(schema, path) if path else None
    return describe_schema(found) if found else None


def _hint(tool: str, schema: dict[str, Any], types: set[str]) -> str | None:
    if not types & {"missing", "extra_forbidden"}:
        return None
    required = schema.get("required", ())
    listed = ", ".join(name if name in required else f"{name} (optional)" for name in schema["properties"])
    return f"{tool} takes {listed}"


def _order_of(arguments: Mapping[str, Any], schema: dict[str, Any]) -> Any:
    order = [*arguments, *schema["properties"]]
    return lambda name: order.index(name) if name in order else len(order)


def _describe_value(path: Sequence[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}..."


def _excerpt(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
