"""Values of a tool result, each with the path that names it: ``severity_pct``, ``lesions[0].area_px``."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pydantic import JsonValue

from agrotools_build.references import ref

_UNITS = {
    "pct": "%",
    "mm": "mm",
    "cm": "cm",
    "m": "m",
    "ha": "ha",
    "mm2": "mm2",
    "cm2": "cm2",
    "m2": "m2",
    "px": "px",
}
"""Units by the last word of a field's name: names of result fields include the unit."""
_NO_ANSWERS = frozenset({"notes", "flags"})
"""Fields that explain a result, and hold no measured value."""


class ResultValue(NamedTuple):
    """A value in a result that an answer can name."""

    path: str
    value: JsonValue


def result_values(result: Mapping[str, JsonValue]) -> Iterator[ResultValue]:
    """Yield all numbers, texts, yes and no of a result in its order, each with its path."""
    for key, value in result.items():
        if key not in _NO_ANSWERS:
            yield from _values(value, key)


def _values(value: JsonValue, path: str) -> Iterator[ResultValue]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _values(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _values(item, f"{path}[{index}]")
    elif value is not None:
        yield ResultValue(path, value)


def reference_to(step: int, path: str) -> str:
    """Return the expression that names a value in the result of a step."""
    return str(ref(step, path)["$ref"])


def unit_of(path: str) -> str | None:
    """Return the unit that the name of a field states; None if it states none."""
    field = path.rpartition(".")[2].partition("[")[0]
    return _UNITS.get(field.rpartition("_")[2]) if "_" in field else None
