"""Page of a sample: plain text and numbers for the template, which escapes everything, and pictures with a cache.

Files are never sent as stored on disk: even photographs are decoded and encoded again.
"""

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import JsonValue
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from agrotools.agents.images import PREVIEWED_KINDS, Unreadable, make_picture
from agrotools.calling.cache import ResultCache
from agrotools.core import Artifact, OpenTextSlot, ReferenceStep, Sample, SampleFile, Slot
from agrotools.core.record import Results, iter_refs, literal_value, reference_words
from agrotools.knowledge.same_thing import same_value
from agrotools.report.html.pictures import Absent, Places
from agrotools.report.layout import expected_text, harmless, shortened, value_text
from agrotools.scoring.steps import implied_slot, shown_results
from agrotools.text.agreement_values import as_number
from agrotools_build.review.material import Material, reference_flags

T = TypeVar("T")
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
    return [
        file.name
        for file, size in alike
        if file is files[0] or (None not in size and size == sizes[0])
    ]


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
    return len(value) == count and all(as_number(each) is not None for each in value)


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


def there(found: T | Absent) -> T:
    """Return what was found; HTTPException 404 with the reason if it is absent."""
    if isinstance(found, Absent):
        raise HTTPException(404, found.reason)
    return found


class PictureRenderer:
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
        return (
            path
            if isinstance(path, Absent)
            else _rendered(path, file.name, file.kind, file.bands, size)
        )

    def of_artifact(self, artifact: Artifact, size: str) -> Rendered | Absent:
        """Return an artifact recorded with the reference calls as a picture, or the reason why it cannot be shown."""
        if artifact.kind not in _PICTURE_KINDS:
            return Absent(f"a {artifact.kind} is not shown as a picture")
        path = self._places.of_artifact(artifact)
        if isinstance(path, Absent):
            path = self._tool_results.artifact(artifact)
        if path is None:
            return Absent("not kept when the benchmark was built")
        return _rendered(
            path, artifact.name, "mask" if artifact.kind == "mask" else "image", None, size
        )

    def response(
        self, request: Request, rendered: Callable[[T, str], Rendered | Absent], what: T
    ) -> Response:
        """Return a file or an artifact as a picture of the size that a request names; HTTPException 404 if absent."""
        if (size := request.query_params.get("size", "small")) not in SIDES_PX:
            raise HTTPException(404, "there is no such size")
        picture = there(rendered(what, size))
        # A correction gives the same address another picture: a mask of the call that was run anew.
        headers = {"Cache-Control": "private, no-cache"}
        return Response(picture.content, media_type=picture.media_type, headers=headers)

    def path_of_file(self, file: SampleFile) -> Path | Absent:
        return self._places.of_file(file, self._roots)


@lru_cache(100)
def _rendered(
    path: Path, name: str, kind: str, bands: tuple[str, ...] | None, size: str
) -> Rendered | Absent:
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
        buffer.getvalue(),
        media_type,
        picture.width_px,
        picture.height_px,
        picture.changes,
        picture.colours,
    )


_SAME = 1e-4
"""Largest relative difference of equal values; tools round their results."""
_OBJECTS = 12
"""Maximum length of lists of objects that are compared field by field."""


@dataclass(frozen=True)
class Compared:
    """Field of an observation and its true value, as text.

    ``state``: ``same``, ``differs``, or ``missing``.
    """

    name: str
    observed: str
    truth: str
    state: str


def compared_fields(
    observed: Mapping[str, JsonValue], truth: Mapping[str, JsonValue], at: str = ""
) -> Iterator[Compared]:
    """Yield one row per field with a known true value; objects are compared by field, other lists as a whole."""
    for name, true in truth.items():
        value = observed.get(name)
        if true is None and value is None:
            continue
        if isinstance(true, dict) and isinstance(value, dict):
            yield from compared_fields(value, true, f"{at}{name}.")
            continue
        objects, others = _objects(value), _objects(true)
        if objects and len(objects) == len(others):
            for index, (one, other) in enumerate(zip(objects, others, strict=True)):
                yield from compared_fields(one, other, f"{at}{name}[{index}].")
            continue
        state = "missing" if value is None else "same" if _agree(value, true) else "differs"
        yield Compared(f"{at}{name}", value_text(value), value_text(true), state)


def _objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    """Return the objects of a short list of objects; empty for anything else."""
    if not isinstance(value, list) or len(value) > _OBJECTS:
        return []
    objects = [item for item in value if isinstance(item, dict)]
    return objects if len(objects) == len(value) else []


def _agree(first: JsonValue, second: JsonValue) -> bool:
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_agree, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            _agree(first[name], second[name]) for name in first
        )
    one, other = as_number(first), as_number(second)
    if one is not None and other is not None:
        return math.isclose(one, other, rel_tol=_SAME)
    return same_value(first, second)


_TABLE_ROWS, _TABLE_COLUMNS, _TABLE_BYTES = 40, 12, 200_000


def present(material: Material, pictures: PictureRenderer, sample: Sample) -> dict[str, Any]:
    """Return the values for ``sample.html.j2``."""
    results: Results = shown_results(sample.reference) if sample.reference else []
    shapes = shapes_of(sample)
    return {
        "sample": sample,
        "content": material.facts[sample.id].content,
        "files": [_file(file, sample, shapes, pictures) for file in sample.files],
        "steps": [
            _step(n, step)
            for n, step in enumerate(sample.reference.steps if sample.reference else (), 1)
        ],
        "slots": [_slot(slot, results) for slot in sample.answer],
        "flags": [*material.shown_flags(sample.id), *reference_flags(sample)],
    }


def _file(
    file: SampleFile, sample: Sample, shapes: Sequence[Shape], pictures: PictureRenderer
) -> dict[str, Any]:
    shapes = [shape for shape in shapes if shape.file == file.name]
    width, height = file.width_px, file.height_px
    if not (width and height) and isinstance(rendered := pictures.of_file(file, "small"), Rendered):
        width, height = rendered.width_px, rendered.height_px
    table = pictures.path_of_file(file) if file.kind == "table" else None
    return {
        "file": file,
        "facts": _facts_text(file),
        "picture": file.kind in PREVIEWED_KINDS,
        "width": width,
        "height": height,
        "shapes": shapes,
        "origins": dict.fromkeys(shape.origin for shape in shapes),
        "masks": list(_masks_of(file, sample)),
        "table": _first_rows(table) if isinstance(table, Path) else [],
    }


def _facts_text(file: SampleFile) -> str:
    facts = (
        file.kind,
        file.width_px and file.height_px and f"{file.width_px} × {file.height_px} px",
        file.gsd_m and f"{file.gsd_m:g} m/px",
        file.bands and f"bands {', '.join(file.bands)}",
        file.depth_unit_mm and f"depth in {file.depth_unit_mm:g} mm",
        file.intrinsics and f"focal length {file.intrinsics.fx_px:g} px",
        ", ".join(f"{number} = {meaning}" for number, meaning in (file.classes or {}).items()),
    )
    return " · ".join(str(fact) for fact in facts if fact)


def _masks_of(file: SampleFile, sample: Sample) -> Iterator[tuple[int, str]]:
    for number, step in enumerate(sample.reference.steps if sample.reference else (), 1):
        artifacts = step.observation.artifacts if step.observation else ()
        if file.name in files_of(step, sample):
            yield from (
                (number, artifact.name) for artifact in artifacts if artifact.kind == "mask"
            )


def _first_rows(path: Path) -> list[list[str]]:
    with path.open("rb") as file:
        text = file.read(_TABLE_BYTES).decode("utf-8-sig", errors="replace")
    with suppress(csv.Error):
        rows = csv.reader(text.splitlines()[: _TABLE_ROWS + 1])
        return [[shortened(harmless(cell), 60) for cell in row[:_TABLE_COLUMNS]] for row in rows]
    return []


def _step(number: int, step: ReferenceStep) -> dict[str, Any]:
    observation = step.observation
    result = dict(observation.result) if observation and observation.result else {}
    notes, flags = (
        value if isinstance(value := result.pop(name, []), list) else []
        for name in ("notes", "flags")
    )
    artifacts = list(observation.artifacts) if observation else []
    artifact_names = [artifact.name for artifact in artifacts]
    truth = {
        name: value for name, value in (step.truth or {}).items() if name not in ("notes", "flags")
    }
    rest = {
        name: value for name, value in result.items() if name not in truth and value is not None
    }
    return {
        "number": number,
        "step": step,
        "arguments": [(name, *_argument(value)) for name, value in step.arguments.items()],
        "compared": list(compared_fields(result, truth)),
        "other": [
            (name, value_text(value)) for name, value in rest.items() if value not in artifact_names
        ],
        "notes": notes,
        "flags": flags,
        "artifacts": artifacts,
        "error": observation.error if observation else None,
    }


def _argument(value: JsonValue) -> tuple[str, str]:
    return value_text(literal_value(value)), ", ".join(
        dict.fromkeys(reference_words(ref) for _, ref, _ in iter_refs(value))
    )


def _slot(slot: Slot, results: Results) -> dict[str, Any]:
    """Return a slot of the answer, and the implied value. ``state``: ``same``, ``differs``, ``missing`` or empty."""
    implied, state = "", ""
    unit = getattr(slot, "unit", None)
    if not slot.made_by_tools and slot.from_:
        implied_value = implied_slot(slot, results)
        if implied_value.slot is None:
            implied, state = implied_value.reason, "missing"
        else:
            number = as_number(implied_value.value)
            implied = value_text(implied_value.value) + (
                f" {unit}" if number is not None and unit else ""
            )
            state = "differs" if implied_value.differs else "same"
    return {
        "slot": slot,
        "unit": unit,
        "wanted": expected_text(slot),
        "origin": reference_words(slot.from_ or ""),
        "implied": implied,
        "state": state,
        "facts": [(fact.phrases, fact.not_) for fact in slot.facts]
        if isinstance(slot, OpenTextSlot)
        else [],
        "others": getattr(slot, "distractors", ()),
    }
