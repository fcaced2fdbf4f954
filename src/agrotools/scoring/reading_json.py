"""JSON in an answer: the objects found in it, and a value of one as text."""

import json
from typing import Any, cast

_LONGEST_REGION = 50_000
_MOST_STARTS = 40
_MOST_OBJECTS = 400
_NAME_FIELDS = ("name", "slot", "item", "key", "label")
_VALUE_FIELDS = ("value", "answer")


def json_objects(text: str) -> tuple[dict[str, Any], ...]:
    """All JSON objects in ``text``, those inside others too, the last one first.

    An entry ``{"name": "trees", "value": 14}`` also gives ``{"trees": entry}``.
    """
    region = text[-_LONGEST_REGION:]
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    at = region.find("{")
    tries = 0
    while at >= 0 and tries < _MOST_STARTS:
        tries += 1
        try:
            value, end = decoder.raw_decode(region, at)
        except (ValueError, RecursionError):
            at = region.find("{", at + 1)
            continue
        found += _unfolded(value)
        at = region.find("{", end)
    return tuple(reversed(found))


def _unfolded(value: Any) -> list[dict[str, Any]]:
    """An object and those in it: breadth first, so that an outer one comes before its parts."""
    found: list[dict[str, Any]] = []
    waiting = [value]
    for item in waiting:
        if len(found) >= _MOST_OBJECTS:
            break
        if isinstance(item, dict):
            fields = cast(dict[str, Any], item)
            found.append(fields)
            name = next((fields[field] for field in _NAME_FIELDS if isinstance(fields.get(field), str)), None)
            if name is not None and any(field in fields for field in _VALUE_FIELDS):
                found.append({name: fields})
            waiting += [inner for inner in fields.values() if isinstance(inner, dict | list)]
        elif isinstance(item, list):
            waiting += [inner for inner in cast(list[Any], item) if isinstance(inner, dict | list)]
    return found


def json_text(value: Any) -> str:
    """A JSON value as an answer would write it: ``{"unit": "m", "value": 3}`` is ``3 m``."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        stated = next((field for field in _VALUE_FIELDS if field in fields), None)
        parts = list(fields.values()) if stated is None else [fields[stated], fields.get("unit")]
        return " ".join(json_text(part) for part in parts)
    if isinstance(value, list):
        return ", ".join(json_text(item) for item in cast(list[Any], value))
    return "" if value is None else str(value)
