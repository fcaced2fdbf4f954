"""From what pydantic found wrong with a call to one message that says what to change."""

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agrotools.core import ToolError
from agrotools.tools.json_schema import in_words, schema_at

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
    """Where in the arguments the fault lies. Parts of the location that name a branch of a union are left out."""
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
    name = _spelled(path)
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
        return f"{name} {error['msg'].removeprefix('Value error, ')}, is {_shown(error['input'])}"
    if allowed is None:
        return f"{name or 'the call'}: {error['msg']}"
    return f"{name} must be {allowed}, is {_shown(error['input'])}"


def _allowed(schema: dict[str, Any], words: Mapping[str, str], path: tuple[str | int, ...]) -> str | None:
    if len(path) == 1 and path[0] in words:
        return words[str(path[0])]
    found = schema_at(schema, path) if path else None
    return in_words(found) if found else None


def _hint(tool: str, schema: dict[str, Any], types: set[str]) -> str | None:
    if not types & {"missing", "extra_forbidden"}:
        return None
    required = schema.get("required", ())
    listed = ", ".join(name if name in required else f"{name} (optional)" for name in schema["properties"])
    return f"{tool} takes {listed}"


def _order_of(arguments: Mapping[str, Any], schema: dict[str, Any]) -> Any:
    order = [*arguments, *schema["properties"]]
    return lambda name: order.index(name) if name in order else len(order)


def _spelled(path: Sequence[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}..."


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
