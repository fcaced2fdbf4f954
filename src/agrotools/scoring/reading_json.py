"""JSON in an answer: the objects found in it, and a value of one as text."""

import json
from typing import Any, NamedTuple, cast

_MOST_STARTS = 40
_MOST_OBJECTS = 400
_NAME_FIELDS = ("name", "slot", "item", "key", "label")
_VALUE_FIELDS = ("value", "answer")


class JsonObject(NamedTuple):
    """An object found in a text: in which of its JSON documents, how deep in it."""

    document: int
    depth: int
    fields: dict[str, Any]


def _without_loss(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's fields; a key that stands several times has all its values."""
    fields: dict[str, Any] = {}
    several: dict[str, list[Any]] = {}
    for key, value in pairs:
        if key in fields:
            several.setdefault(key, [fields[key]]).append(value)
        else:
            fields[key] = value
    return {**fields, **several}


def json_objects(text: str) -> tuple[tuple[JsonObject, ...], list[tuple[int, int]]]:
    """All JSON objects in ``text``, those inside others too (breadth first), and the spans of the documents.

    An entry ``{"name": "trees", "value": 14}`` also gives ``{"trees": entry}``.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_without_loss)
    found: list[JsonObject] = []
    spans: list[tuple[int, int]] = []
    at = text.find("{")
    for _ in range(_MOST_STARTS):
        if at < 0:
            break
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        found += _unfolded(value, len(spans))
        spans.append((at, end))
        at = text.find("{", end)
    return tuple(found), spans


def _unfolded(value: Any, document: int) -> list[JsonObject]:
    """An object and those in it: breadth first, so that an outer one comes before its parts."""
    found: list[JsonObject] = []
    waiting: list[tuple[int, Any]] = [(0, value)]
    for depth, item in waiting:
        if len(found) >= _MOST_OBJECTS:
            break
        if isinstance(item, dict):
            fields = cast(dict[str, Any], item)
            found.append(JsonObject(document, depth, fields))
            name = next((fields[field] for field in _NAME_FIELDS if isinstance(fields.get(field), str)), None)
            if name is not None and any(field in fields for field in _VALUE_FIELDS):
                found.append(JsonObject(document, depth, {name: fields}))
            waiting += [(depth + 1, inner) for inner in fields.values() if isinstance(inner, dict | list)]
        elif isinstance(item, list):
            waiting += [(depth + 1, inner) for inner in cast(list[Any], item) if isinstance(inner, dict | list)]
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
