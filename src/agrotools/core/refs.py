"""References to values of earlier steps: ``steps[0].observation.crop_pct`` and ``{"$ref": ..., "value": ...}``."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from pydantic import JsonValue

Results = Sequence[dict[str, JsonValue] | None]
"""Result of each step so far; None where the step failed or has not run."""

REF_PATTERN = re.compile(r"steps\[(?P<step>\d+)\]\.observation(?P<path>(?:\.[A-Za-z_]\w*|\[\d+\])*)")
_PATH_PART = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]")


class UnresolvedRef(ValueError):
    """A reference that leads to no value."""


def resolve_ref(ref: str, results: Results) -> JsonValue:
    """The value that ``ref`` points to.

    Raises:
        UnresolvedRef: not a reference, no such step, or no such field in its result.
    """
    match = REF_PATTERN.fullmatch(ref.strip())
    if match is None:
        raise UnresolvedRef(f"{ref!r} is not of the form steps[N].observation.field")
    index = int(match["step"])
    if index >= len(results):
        raise UnresolvedRef(f"{ref}: there is no step {index}")
    value: JsonValue = results[index]
    if value is None:
        raise UnresolvedRef(f"{ref}: step {index} has no result")
    for part in _PATH_PART.finditer(match["path"]):
        value = _field(value, part[1], ref) if part[1] else _element(value, int(part[2]), ref)
    return value


def _field(value: JsonValue, name: str, ref: str) -> JsonValue:
    if not isinstance(value, dict) or name not in value:
        raise UnresolvedRef(f"{ref}: no field {name!r}")
    return value[name]


def _element(value: JsonValue, position: int, ref: str) -> JsonValue:
    if not isinstance(value, list) or position >= len(value):
        raise UnresolvedRef(f"{ref}: no element [{position}]")
    return value[position]


def is_ref(value: JsonValue) -> bool:
    """Whether ``value`` is a reference object, ``{"$ref": ..., "value": ...}``."""
    return isinstance(value, dict) and "$ref" in value


def iter_refs(value: JsonValue, at: str = "") -> Iterator[tuple[str, str, JsonValue]]:
    """All reference objects in ``value`` as (where, ref, literal beside it)."""
    if isinstance(value, dict):
        if "$ref" in value:
            yield at, str(value["$ref"]), value.get("value")
            return
        for key, item in value.items():
            yield from iter_refs(item, f"{at}.{key}" if at else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from iter_refs(item, f"{at}[{index}]")


def literal_value(value: JsonValue) -> JsonValue:
    """``value`` with each reference object replaced by the literal beside it."""
    if isinstance(value, dict):
        if "$ref" in value:
            return value.get("value")
        return {key: literal_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [literal_value(item) for item in value]
    return value


def resolved_value(value: JsonValue, results: Results) -> JsonValue:
    """``value`` with each reference object replaced by what it points to in ``results``.

    Raises:
        UnresolvedRef: where a reference leads to no value.
    """
    if isinstance(value, dict):
        if "$ref" in value:
            return resolve_ref(cast(str, value["$ref"]), results)
        return {key: resolved_value(item, results) for key, item in value.items()}
    if isinstance(value, list):
        return [resolved_value(item, results) for item in value]
    return value


def renamed(value: dict[str, JsonValue], names: Mapping[str, str]) -> dict[str, JsonValue]:
    """``value`` with every text in it that is a key of ``names``, as a whole, exchanged for what stands there."""
    return {key: _renamed(item, names) for key, item in value.items()} if names else value


def _renamed(value: JsonValue, names: Mapping[str, str]) -> JsonValue:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    if isinstance(value, dict):
        return {key: _renamed(item, names) for key, item in value.items()}
    return value
