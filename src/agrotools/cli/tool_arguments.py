"""Arguments of a tool from words on the command line."""

import json
from collections.abc import Sequence
from typing import Any

from agrotools.core import ToolSpec, UsageError

_EXAMPLE = "write e.g. '{\"region\": [0, 0, 100, 100]}'"
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def given_arguments(spec: ToolSpec, as_json: str, words: Sequence[str]) -> dict[str, Any]:
    """Arguments from a JSON object and, winning over it, options such as ``--gsd-m 0.02`` or ``--gsd_m=0.02``.

    What cannot be read as its type is passed on as text: the tool says what it wants instead.

    Raises:
        UsageError: no JSON object, a word that is no option, an option without its value or given twice.
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
            raise UsageError(f"{word!r} is not an option", hint=f"{spec.name} takes {_options(properties)}")
        key, has_value, value = word[2:].partition("=")
        name = key.replace("-", "_")
        schema = properties.get(name)
        if schema is None and name.startswith("no_") and properties.get(name[3:], {}).get("type") == "boolean":
            name, has_value, value = name[3:], "=", "false"
            schema = properties[name]
        if name in seen:
            raise UsageError(f"--{key} is given twice", hint="write lists as JSON")
        seen.add(name)
        if not has_value:
            value = _next_value(rest, key, is_flag=(schema or {}).get("type") == "boolean")
        arguments[name] = value if schema is None else _read(value, schema)
    return arguments


def _options(properties: dict[str, Any]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in properties)


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
            return items if len(items) > 1 or schema.get("items", {}).get("type") == "string" else _json_or_text(text)
        case _:
            return _json_or_text(text)


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
