"""What a tool observed beside what is true, field by field."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from pydantic import JsonValue

from agrotools.report.layout import value_text

_SAME = 1e-4
"""Relative difference up to which an observed value is the true one: what tools round away."""
_NEAR = 0.05
"""Up to this one a difference is written, and not marked: tools are seldom exact, and that is no fault of a sample."""
_OBJECTS = 12
"""Lists of objects up to this length are compared field by field."""


@dataclass(frozen=True)
class Compared:
    """A field of an observation beside the truth, as text.

    ``state``: ``same``, ``near``, ``differs``, or ``missing``; ``by``: how far a number is off.
    """

    name: str
    observed: str
    truth: str
    state: str
    by: str = ""


def compared_fields(
    observed: Mapping[str, JsonValue], truth: Mapping[str, JsonValue], at: str = ""
) -> Iterator[Compared]:
    """One row for each field whose truth is known; fields of objects one by one, other lists as a whole."""
    for name, true in truth.items():
        value = observed.get(name)
        if true is None and value is None:
            continue
        if isinstance(true, dict) and isinstance(value, dict):
            yield from compared_fields(value, true, f"{at}{name}.")
            continue
        own, others = _objects(value), _objects(true)
        if own and len(own) == len(others):
            for index, (one, other) in enumerate(zip(own, others, strict=True)):
                yield from compared_fields(one, other, f"{at}{name}[{index}].")
            continue
        yield Compared(f"{at}{name}", value_text(value), value_text(true), _state(value, true), _by(value, true))


def _objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    """The objects of a short list that holds nothing else."""
    if not isinstance(value, list) or len(value) > _OBJECTS:
        return []
    objects = [item for item in value if isinstance(item, dict)]
    return objects if len(objects) == len(value) else []


def _state(value: JsonValue, true: JsonValue) -> str:
    if value is None:
        return "missing"
    return "same" if _agree(value, true, _SAME) else "near" if _agree(value, true, _NEAR) else "differs"


def _agree(first: JsonValue, second: JsonValue, share: float) -> bool:
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(_agree(a, b, share) for a, b in zip(first, second, strict=True))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_agree(first[name], second[name], share) for name in first)
    if _is_number(first) and _is_number(second):
        return abs(first - second) <= share * max(abs(first), abs(second))
    return first == second


def _is_number(value: JsonValue) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _by(value: JsonValue, true: JsonValue) -> str:
    """How far a number is off, in percent of the truth, or as it is where that is zero."""
    if not (_is_number(value) and _is_number(true)) or _agree(value, true, _SAME):
        return ""
    return f"{100 * (value - true) / abs(true):+.3g} %" if true else f"{value - true:+.3g}"
