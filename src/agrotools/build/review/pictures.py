"""Pictures for the page: images, rasters, depth maps and masks rendered as PNG or JPEG, with a cache.

Files are never sent as stored on disk: even photographs are decoded and encoded again.
"""

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue

from agrotools.agents.images import PREVIEWED_KINDS, Unreadable, make_picture
from agrotools.build.review.material import Material
from agrotools.core import Artifact, ReferenceStep, Sample, SampleFile
from agrotools.core.record import literal_value
from agrotools.report.html.pictures import Absent, Places
from agrotools.tools.cache import ResultCache

Origin = Literal["argument", "observation", "truth"]
_MOST = 400
"""Maximum number of shapes drawn per step and origin; more would hide the picture."""
_BOX_NAMES = ("box", "boxes", "bbox", "bboxes", "region", "regions")
_POINT_NAMES = ("centre", "centres", "center", "centers", "point", "points", "xy")


@dataclass(frozen=True)
class Shape:
    """Box ``x0, y0, x1, y1`` or point ``x, y`` of one step, in pixels of one file."""

    file: str
    step: int
    """step number, from 1"""
    origin: Origin
    numbers: tuple[float, ...]
    label: str
    thing: tuple[str | int, ...] | None = None
    """path of the located object, the same for its box and its centre; None for a frame such as ``leaf_box``"""


def shapes_of(sample: Sample) -> list[Shape]:
    """Return all boxes and points of the reference trajectory that can be drawn on a picture of the sample."""
    shapes: list[Shape] = []
    for number, step in enumerate(sample.reference.steps if sample.reference else (), start=1):
        files = files_of(step, sample)
        result = step.observation.result if step.observation else None
        parts: tuple[tuple[Origin, Mapping[str, JsonValue] | None], ...] = (
            ("argument", {name: literal_value(value) for name, value in step.arguments.items()}),
            ("observation", result),
            ("truth", step.truth),
        )
        for origin, values in parts:
            places = list(_places(values or {}))
            shapes += [
                Shape(file, number, origin, numbers, label, thing) for file in files for label, numbers, thing in places
            ]
    return shapes


def drawn_shapes(shapes: Sequence[Shape]) -> list[Shape]:
    """Return the shapes to draw: at most ``_MOST`` of each step and origin."""
    count: Counter[tuple[int, Origin]] = Counter()
    drawn: list[Shape] = []
    for shape in shapes:
        count[shape.step, shape.origin] += 1
        if count[shape.step, shape.origin] <= _MOST:
            drawn.append(shape)
    return drawn


def count_things(shapes: Sequence[Shape]) -> dict[Origin, str]:
    """Return the number of objects located on one file, by origin; ``2 + 7`` if two steps locate some.

    An object with a box and a centre counts once. Frames count only if a step locates nothing else.
    """
    things: dict[Origin, dict[int, set[object]]] = {}
    frames: dict[Origin, dict[int, set[object]]] = {}
    for shape in shapes:
        kind, key = (frames, shape.numbers) if shape.thing is None else (things, shape.thing)
        kind.setdefault(shape.origin, {}).setdefault(shape.step, set()).add(key)
    counts: dict[Origin, str] = {}
    origins: dict[Origin, None] = {shape.origin: None for shape in shapes}
    for origin in origins:
        by_step = {**frames.get(origin, {}), **things.get(origin, {})}
        counts[origin] = " + ".join(str(len(by_step[step])) for step in sorted(by_step))
    return counts


def files_of(step: ReferenceStep, sample: Sample) -> list[str]:
    """Return the names of a step's pictures: its first file, and others of the same size."""
    by_name = {file.name: file for file in sample.files}
    files = [
        by_name[value]
        for value in map(literal_value, step.arguments.values())
        if isinstance(value, str) and value in by_name
    ]
    if not files:
        return []
    size = (files[0].width_px, files[0].height_px)
    return [
        file.name
        for file in files
        if file is files[0] or (None not in size and (file.width_px, file.height_px) == size)
    ]


_Path = tuple[str | int, ...]


def _places(
    value: Any, name: str = "", label: str = "", path: _Path = ()
) -> Iterator[tuple[str, tuple[float, ...], _Path | None]]:
    """Yield boxes and points in ``value``, recognised by the names of their fields, with their labels and objects.

    ``path`` leads to the object. The names of box and point fields are left out of it, so that a box and a centre of
    one object, and equal places in the lists ``boxes`` and ``centres``, have the same path.
    """
    word = name.removesuffix("_px")
    is_frame = word.endswith("_box")
    is_box = is_frame or word in _BOX_NAMES
    if isinstance(value, Mapping):
        beside = _label_of(value) or label
        for key, item in value.items():
            plain = str(key).removesuffix("_px")
            is_place = plain in _BOX_NAMES or plain in _POINT_NAMES
            yield from _places(item, str(key), beside, path if is_place else (*path, str(key)))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        if is_box and _is_numbers(value, 4) and value[2] > value[0] and value[3] > value[1]:
            yield label or (name if is_frame else ""), tuple(map(float, value)), None if is_frame else path
        elif word in _POINT_NAMES and _is_numbers(value, 2):
            yield label, tuple(map(float, value)), path
        else:
            for number, item in enumerate(value):
                yield from _places(item, name, label, (*path, number))


def _is_numbers(value: Sequence[Any], count: int) -> bool:
    return len(value) == count and all(isinstance(each, int | float) and not isinstance(each, bool) for each in value)


def _label_of(fields: Mapping[str, Any]) -> str:
    """Return the short name of a located object: its number or its label."""
    for key in ("label", "name", "id", "number"):
        if isinstance(fields.get(key), str | int) and not isinstance(fields[key], bool):
            return str(fields[key])[:24]
    return ""


SIDES_PX = {"small": 900, "large": 4096}
"""Longest side of a picture on the page, and of a zoomed picture, pixels."""
_PICTURE_KINDS = frozenset({"overlay", "mask", "plot", "image"})


@dataclass(frozen=True)
class Rendered:
    """Rendered picture. ``width_px`` and ``height_px`` are those of the file, not of the picture."""

    content: bytes
    media_type: str
    width_px: int
    height_px: int
    how: str
    colours: dict[str, str]


class Pictures:
    """Renderer of sample files and artifacts of reference calls; safe to use from several threads."""

    def __init__(self, material: Material) -> None:
        self._places = Places(material.artifact_folders)
        self._roots = material.roots
        self._tool_results = ResultCache()

    def of_file(self, file: SampleFile, size: str) -> Rendered | Absent:
        """Return a file of a sample as a picture, or the reason why it cannot be shown."""
        if file.kind not in PREVIEWED_KINDS:
            return Absent(f"a {file.kind} is not shown as a picture")
        path = self.path_of_file(file)
        return path if isinstance(path, Absent) else _rendered(path, file.name, file.kind, file.bands, size)

    def of_artifact(self, artifact: Artifact, size: str) -> Rendered | Absent:
        """Return an artifact recorded with the reference calls as a picture, or the reason why it cannot be shown."""
        if artifact.kind not in _PICTURE_KINDS:
            return Absent(f"a {artifact.kind} is not shown as a picture")
        kind = "mask" if artifact.kind == "mask" else "image"
        path = self._places.of_artifact(artifact)
        if isinstance(path, Absent):
            path = self._tool_results.artifact(artifact)
        if path is None:
            return Absent("not kept when the benchmark was built")
        return _rendered(path, artifact.name, kind, None, size)

    def path_of_file(self, file: SampleFile) -> Path | Absent:
        """Return the path of a sample's file, if its content is unchanged."""
        return self._places.of_file(file, self._roots)


@lru_cache(100)
def _rendered(path: Path, name: str, kind: str, bands: tuple[str, ...] | None, size: str) -> Rendered | Absent:
    picture = make_picture(path, name, kind, bands, longest_px=SIDES_PX[size])
    if isinstance(picture, Unreadable):
        return Absent(picture.reason)
    buffer = io.BytesIO()
    if picture.exact:  # every pixel's colour has a meaning
        picture.image.save(buffer, "PNG", compress_level=4)
    else:
        picture.image.convert("RGB").save(buffer, "JPEG", quality=85)
    media_type = "image/png" if picture.exact else "image/jpeg"
    return Rendered(
        buffer.getvalue(), media_type, picture.width_px, picture.height_px, picture.changes, picture.colours
    )
