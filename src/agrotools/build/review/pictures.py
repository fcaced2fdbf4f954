"""Pictures for the page: images, rasters, depth maps and masks rendered as PNG or JPEG, with a cache.

Files are never sent as stored on disk: even photographs are decoded and encoded again.
"""

import io
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
    """Box ``x0, y0, x1, y1`` or point ``x, y`` of one step (from 1), in pixels of one file."""

    file: str
    step: int
    origin: Origin
    numbers: tuple[float, ...]
    label: str


def shapes_of(sample: Sample) -> list[Shape]:
    """Return the boxes and points of the reference trajectory that are drawn on the pictures of the sample."""
    shapes: list[Shape] = []
    for number, step in enumerate(sample.reference.steps if sample.reference else (), start=1):
        parts: dict[Origin, Mapping[str, JsonValue] | None] = {
            "argument": {name: literal_value(value) for name, value in step.arguments.items()},
            "observation": step.observation.result if step.observation else None,
            "truth": step.truth,
        }
        for origin, values in parts.items():
            places = list(_places(values or {}))
            shapes += [
                Shape(file, number, origin, numbers, label)
                for file in files_of(step, sample)
                for label, numbers in places[:_MOST]
            ]
    return shapes


def files_of(step: ReferenceStep, sample: Sample) -> list[str]:
    """Return the names of a step's pictures: its first file, and others of the same size."""
    by_name = {file.name: file for file in sample.files}
    values = (literal_value(value) for value in step.arguments.values())
    files = [by_name[value] for value in values if isinstance(value, str) and value in by_name]
    sizes = [(file.width_px, file.height_px) for file in files]
    alike = zip(files, sizes, strict=True)
    return [file.name for file, size in alike if file is files[0] or (None not in size and size == sizes[0])]


def _places(value: Any, name: str = "", label: str = "") -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield boxes and points in ``value``, recognised by the names of their fields, with their labels."""
    word = name.removesuffix("_px")
    if isinstance(value, Mapping):
        beside = _label_of(value) or label
        for key, item in value.items():
            yield from _places(item, str(key), beside)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        is_frame = word.endswith("_box")
        is_box = (is_frame or word in _BOX_NAMES) and _is_numbers(value, 4)
        if is_box and value[2] > value[0] and value[3] > value[1]:
            yield label or (name if is_frame else ""), tuple(map(float, value))
        elif word in _POINT_NAMES and _is_numbers(value, 2):
            yield label, tuple(map(float, value))
        else:
            for item in value:
                yield from _places(item, name, label)


def _is_numbers(value: Sequence[Any], count: int) -> bool:
    return len(value) == count and all(isinstance(each, int | float) and not isinstance(each, bool) for each in value)


def _label_of(fields: Mapping[str, Any]) -> str:
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
        path = self._places.of_artifact(artifact)
        if isinstance(path, Absent):
            path = self._tool_results.artifact(artifact)
        if path is None:
            return Absent("not kept when the benchmark was built")
        return _rendered(path, artifact.name, "mask" if artifact.kind == "mask" else "image", None, size)

    def path_of_file(self, file: SampleFile) -> Path | Absent:
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
