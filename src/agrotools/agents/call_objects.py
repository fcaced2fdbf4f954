"""Tool calls as decoded JSON: an object with a name and arguments, under any of the keys that models use."""

import re
from typing import Any

from agrotools.core import Arguments, ToolCall
from agrotools.text.loose_json import NotJson, loads

_NAME_KEYS = ("tool", "tool_name", "name", "function", "function_name", "action")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "action_input", "tool_input", "kwargs")
_LIST_KEYS = ("tool_calls", "calls", "actions")
_WRAPPER_KEYS = ("tool_call", "function_call", "call", "action")
_LONGEST_NAME = 200
_NAME_KEY = re.compile(rf"[\"'“](?:{'|'.join(_NAME_KEYS + _LIST_KEYS)})[\"'”]\s*+:")
_ARGUMENT_KEY = re.compile(rf"[\"'“](?:{'|'.join(_ARGUMENT_KEYS)})[\"'”]\s*+:")


class CallError(ValueError):
    """Something that is meant as a tool call but cannot be read as one. The message says why."""


def holds_call_keys(text: str, start: int = 0, end: int | None = None) -> bool:
    """Whether ``text[start:end]`` has both a key for a name and one for arguments, in whatever order."""
    stop = len(text) if end is None else end
    return bool(_NAME_KEY.search(text, start, stop) and _ARGUMENT_KEY.search(text, start, stop))


def first_call_key(text: str) -> int | None:
    """Where the first key for a name stands that a key for arguments follows."""
    name = _NAME_KEY.search(text)
    return name.start() if name and _ARGUMENT_KEY.search(text, name.end()) else None


def loaded(text: str, what: str) -> Any:
    """Read JSON with repairs. Raises :class:`CallError`, which names ``what`` cannot be read."""
    try:
        return loads(text)
    except NotJson as error:
        raise CallError(f"{what} is not valid JSON: {error}") from error


def calls_of(value: Any) -> list[ToolCall]:
    """The calls that a decoded value holds; none where it is something else.

    Raises:
        CallError: it has the keys of a call but not their content.
    """
    if isinstance(value, list):
        return [call for item in value for call in calls_of(item)]
    if not isinstance(value, dict):
        return []
    for key in _LIST_KEYS:
        if isinstance(value.get(key), list):
            return calls_of(value[key])
    for key in _WRAPPER_KEYS:
        if isinstance(value.get(key), dict):
            return calls_of(value[key])
    if isinstance(value.get("function"), dict):
        value = {"id": value.get("id"), **value["function"]}
    name_key = next((key for key in _NAME_KEYS if key in value), None)
    arguments_key = next((key for key in _ARGUMENT_KEYS if key in value), None)
    if name_key is None or arguments_key is None:
        return []
    identifier = value.get("id")
    return [call_of(value[name_key], value[arguments_key], identifier if isinstance(identifier, str) else None)]


def call_of(name: object, arguments: object, identifier: str | None = None) -> ToolCall:
    """A call from its parts; ``arguments`` may be an object, its JSON text, or nothing.

    Raises:
        CallError: no usable name, or arguments that are no JSON object.
    """
    if not isinstance(name, str) or not name.strip():
        raise CallError("the call has no tool name")
    if len(name) > _LONGEST_NAME:
        raise CallError("the tool name is far too long")
    return ToolCall(tool=name.strip(), arguments=_arguments(arguments), id=identifier)


def _arguments(value: object) -> Arguments:
    # Arguments as a JSON string, and by some models as a JSON string of that.
    for _ in range(2):
        if isinstance(value, str):
            value = loaded(value, "the text of the arguments") if value.strip() else {}
    if value is None:
        return {}
    if not isinstance(value, dict):
        kinds = {list: "a list", str: "text", bool: "true or false"}
        raise CallError(f"the arguments must be a JSON object, not {kinds.get(type(value), 'a number')}")
    return value
