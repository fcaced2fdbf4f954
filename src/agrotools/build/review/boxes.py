"""What can be drawn over the pictures: boxes and points of arguments, observations and truths, in original pixels."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import JsonValue

from agrotools.core import ReferenceStep, Sample
from agrotools.core.refs import literal_value

Origin = Literal["argument", "observation", "truth"]
_MOST = 400
"""Shapes of one step and origin that are drawn; more would hide the picture."""
_BOX_NAMES = ("box", "boxes", "bbox", "bboxes", "region", "regions")
_POINT_NAMES = ("centre", "centres", "center", "centers", "point", "points", "xy")


@dataclass(frozen=True)
class Shape:
    """A box ``x0, y0, x1, y1`` or a point ``x, y`` of one step, on one file."""

    file: str
    step: int
    """From 1."""
    origin: Origin
    numbers: tuple[float, ...]
    label: str


def shapes_of(sample: Sample) -> list[Shape]:
    """Everything of the reference trajectory that has a place on a picture of the sample."""
    found: list[Shape] = []
    for number, step in enumerate(sample.reference.steps if sample.reference else (), start=1):
        files = files_of(step, sample)
        result = step.observation.result if step.observation else None
        parts: tuple[tuple[Origin, Mapping[str, JsonValue] | None], ...] = (
            ("argument", {name: literal_value(value) for name, value in step.arguments.items()}),
            ("observation", result),
            ("truth", step.truth),
        )
        for origin, values in parts:
            places = list(_places(values or {}))[:_MOST]
            found += [Shape(file, number, origin, numbers, label) for file in files for label, numbers in places]
    return found


def files_of(step: ReferenceStep, sample: Sample) -> list[str]:
    """The pictures that a step looks at: its first file, and others of the same size."""
    by_name = {file.name: file for file in sample.files}
    named = [
        by_name[value]
        for value in map(literal_value, step.arguments.values())
        if isinstance(value, str) and value in by_name
    ]
    if not named:
        return []
    size = (named[0].width_px, named[0].height_px)
    return [
        file.name
        for file in named
        if file is named[0] or (None not in size and (file.width_px, file.height_px) == size)
    ]


def _places(value: Any, name: str = "", label: str = "") -> Iterator[tuple[str, tuple[float, ...]]]:
    """Boxes and points in ``value``, known by the names of their fields, with what to write beside them."""
    word = name.removesuffix("_px")
    if isinstance(value, Mapping):
        beside = _label_of(value) or label
        for key, item in value.items():
            yield from _places(item, str(key), beside)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        is_box = word in _BOX_NAMES or word.endswith("_box")
        if is_box and _is_numbers(value, 4) and value[2] > value[0] and value[3] > value[1]:
            yield label or (name if word.endswith("_box") else ""), tuple(map(float, value))
        elif word in _POINT_NAMES and _is_numbers(value, 2):
            yield label, tuple(map(float, value))
        else:
            for item in value:
                yield from _places(item, name, label)


def _is_numbers(value: Sequence[Any], count: int) -> bool:
    return len(value) == count and all(isinstance(each, int | float) and not isinstance(each, bool) for each in value)


def _label_of(fields: Mapping[str, Any]) -> str:
    """A short name of a thing that has a place: its number or its label."""
    for key in ("label", "name", "id", "number"):
        if isinstance(fields.get(key), str | int) and not isinstance(fields[key], bool):
            return str(fields[key])[:24]
    return ""
