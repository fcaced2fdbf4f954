"""IP102's detection part: test pictures with a box around every insect, to be counted or outlined.

Where the numbers of classes begin is not written down. They are inferred from the names of files, whose prefixes follow
a known pattern (000 to 030 count from zero, 032 to 102 from one): the reading of the numbers that agrees with it is
taken, and a picture whose number and name disagree is left out.
"""

import io
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

import numpy as np
from pydantic import JsonValue

from agrotools.build.references import PlannedCall, ref
from agrotools.build.sources.boxes import Box, read_voc
from agrotools.build.sources.field.photos import diagnosis_of
from agrotools.build.sources.part import DataSet, photo_subject, photo_thing
from agrotools.build.sources.public.ip102_pests import (
    DIAGNOSE,
    NOTE,
    Pest,
    pair_words,
    pests,
    readable,
    rng_of,
    words_of,
)
from agrotools.build.sources.reading import SUFFIXES, find_root, read_lines
from agrotools.build.templates import Thing
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, SampleFile
from agrotools.vision.reading import RgbImage

MARKERS = ("Annotations", "JPEGImages", "ImageSets/Main/test.txt")
_PREFIX = re.compile(r"IP(\d{3})\d{6}")
_AGREES = 0.9
"""Share of the pictures whose number and name must agree."""
_READINGS: Mapping[str, Callable[[int], int]] = {
    "from 1": lambda number: number - 1,
    "from 0": lambda number: number,
    "as in the names of files": lambda number: number if number <= 30 else number - 1,
}
"""From a class number to a label, 0 to 101."""


@dataclass(frozen=True)
class Boxed:
    """A picture whose insects are boxed: all of one class. Boxes in pixels of a picture of ``size`` (width, height)."""

    path: Path
    pest: Pest
    boxes: tuple[Box, ...]
    size: tuple[int, int]


@dataclass(frozen=True)
class _Annotated:
    stem: str
    path: Path
    numbers: tuple[int, ...]
    boxes: tuple[Box, ...]
    size: tuple[int, int]


def read_boxed(folder: Path, dropped: Counter[str]) -> tuple[list[Boxed], str | None]:
    """The boxed test pictures, and how class numbers were read; none where the detection part is not there.

    Raises:
        BenchmarkError: it is there but most of it cannot be used.
    """
    root = None
    with suppress(BenchmarkError):
        root = find_root(folder, MARKERS)
    if root is None:
        return [], None
    stems = list(dict.fromkeys(PurePath(line.split()[0]).name for _, line in read_lines(root / MARKERS[2])))
    annotated = [one for stem in stems if (one := _annotated(root, stem, dropped)) is not None]
    if 2 * len(annotated) < len(stems):
        raise BenchmarkError(
            f"of {len(stems)} test pictures of {root} only {len(annotated)} have a picture and an annotation"
        )
    reading = _reading(annotated)
    if reading is None:
        dropped["boxed, with class numbers that cannot be told"] += len(annotated)
        return [], None
    boxed: list[Boxed] = []
    for one in annotated:
        label = _READINGS[reading](one.numbers[0])
        pest = pests().get(label)
        if len(set(one.numbers)) > 1:
            dropped["boxed, with insects of several classes"] += 1
        elif label != _label_of_name(one.stem):
            dropped["boxed, with a class that its name contradicts"] += 1
        elif pest is None:
            dropped["of a class that cannot be told"] += 1
        else:
            boxed.append(Boxed(one.path, pest, one.boxes, one.size))
    return boxed, reading


def _annotated(root: Path, stem: str, dropped: Counter[str]) -> _Annotated | None:
    picture = next((path for suffix in SUFFIXES if (path := root / "JPEGImages" / f"{stem}{suffix}").is_file()), None)
    xml = root / "Annotations" / f"{stem}.xml"
    if picture is None or not xml.is_file():
        dropped["boxed, without a picture or an annotation"] += 1
        return None
    try:
        size, objects = read_voc(xml)
        numbers = tuple(int(name) for name, _ in objects)
    except ValueError:
        dropped["boxed, with an annotation that cannot be read"] += 1
        return None
    boxes = dict.fromkeys(box for _, box in objects)
    if not boxes or not all(_fits(box, size) for box in boxes):
        dropped["boxed, without boxes or with some outside the picture"] += 1
        return None
    return _Annotated(stem, picture, numbers, tuple(boxes), size)


def _fits(box: Box, size: tuple[int, int]) -> bool:
    """VOC counts pixels from 1, so the last column is the width."""
    x0, y0, x1, y1 = box
    return 0 <= x0 < x1 <= size[0] and 0 <= y0 < y1 <= size[1]


def _label_of_name(stem: str) -> int | None:
    """The label that a file's prefix stands for; 031 is none."""
    match = _PREFIX.fullmatch(stem)
    if match is None or int(match[1]) == 31:
        return None
    return int(match[1]) if int(match[1]) <= 30 else int(match[1]) - 1


def _reading(annotated: Sequence[_Annotated]) -> str | None:
    """Numbering of classes that agrees with their names; None where no way does, or where two that do would
    differ on some picture."""
    known = [
        (number, label)
        for one in annotated
        for number in one.numbers[:1]
        if (label := _label_of_name(one.stem)) is not None
    ]
    if not known:
        return None
    agrees = {name: sum(to_label(number) == label for number, label in known) for name, to_label in _READINGS.items()}
    best = max(agrees, key=lambda name: agrees[name])
    return best if agrees[best] >= _AGREES * len(known) else None


EXTRACT = "extract_marked_region"
COUNT = "count_objects"
_LEAST_SHARE, _MOST_SHARE = 0.004, 0.5
"""Of a picture, that a box must take for an outline around it to say something."""
_STROKE = 0.006
"""Width of the outline, of the longer side."""
_RED = (255, 0, 0)
_LEAST_GAP_PX = 2
_PICTURES_COUNTED = 3


@dataclass(frozen=True)
class _Outlined:
    file: SampleFile
    pest: Pest
    outer: Box
    inner: Box


def boxed_subjects(boxed: Sequence[Boxed], data: DataSet) -> list[Subject]:
    """At most as many subjects as samples, of outlines and of counts in turn; a picture is in one of them alone."""
    marked: list[Subject] = []
    counted: list[tuple[SampleFile, Boxed]] = []
    for one in boxed:
        if len(marked) + len(counted) // _PICTURES_COUNTED >= data.samples:
            break
        picture = readable(one.path, data)
        if picture is None:
            continue
        if (picture.width, picture.height) != one.size:
            data.dropped["boxed, of another size than its annotation says"] += 1
        elif len(counted) < _PICTURES_COUNTED * (len(marked) + 1) and (len(one.boxes) > 1 or len(counted) % 3 == 2):
            counted.append((data.originals.file(one.path, note=NOTE), one))
        elif (outlined := _outlined(one, picture, data)) is not None:
            marked.append(_marked_subject(len(marked), outlined))
        else:
            data.dropped["boxed, with no box that an outline fits around"] += 1
    groups = [counted[at : at + _PICTURES_COUNTED] for at in range(0, len(counted), _PICTURES_COUNTED)]
    counts = [
        photo_subject(f"ip102-count-{number}", group, _count_thing, {"pictures": len(group)}, "pest_count")
        for number, group in enumerate(groups)
    ]
    return [*marked, *counts]


def _outlined(one: Boxed, picture: RgbImage, data: DataSet) -> _Outlined | None:
    """The picture with a red outline around the first box that has room for it; None where none has."""
    stroke = max(3, round(_STROKE * max(picture.width, picture.height)))
    for box in one.boxes:
        x0, y0, x1, y1 = box
        share = (x1 - x0) * (y1 - y0) / (picture.width * picture.height)
        gap = max(_LEAST_GAP_PX, stroke)
        inner = (x0 - gap, y0 - gap, x1 + gap, y1 + gap)
        outer = (inner[0] - stroke, inner[1] - stroke, inner[2] + stroke, inner[3] + stroke)
        fits = min(outer[:2]) >= 1 and outer[2] < picture.width and outer[3] < picture.height
        if fits and _LEAST_SHARE <= share <= _MOST_SHARE:
            file = data.originals.made(
                _outlined_jpeg(picture, outer, inner), ".jpg", note=f"{NOTE} An outline was drawn on it."
            )
            return _Outlined(file, one.pest, outer, inner)
    return None


def _outlined_jpeg(picture: RgbImage, outer: Box, inner: Box) -> bytes:
    from PIL import Image

    pixels = picture.pixels.copy()
    inside = pixels[inner[1] : inner[3], inner[0] : inner[2]].copy()
    pixels[outer[1] : outer[3], outer[0] : outer[2]] = _RED
    pixels[inner[1] : inner[3], inner[0] : inner[2]] = inside
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "JPEG", quality=95, subsampling=0)
    return buffer.getvalue()


def _marked_subject(number: int, one: _Outlined) -> Subject:
    rng = rng_of("pest_marked", str(one.file.sha256))
    words = pair_words([one.pest], rng) | words_of(one.pest, rng)
    region: dict[str, JsonValue] = {
        "index": 1, "box": [*one.outer], "inner_box": [*one.inner], "color": "red", "shape": "box",
    }  # fmt: skip
    truth: dict[str, JsonValue] = {"regions": [region], "selected": 1, "crop_box": [*one.inner]}

    def thing(file: SampleFile, pest: Pest, _: int) -> Thing:
        thought = f"I need to know where in {file.name} the red outline is."
        marked = PlannedCall(EXTRACT, {"image": file.name, "mark_color": "red"}, truth, thought=thought)
        diagnosis, inside = diagnosis_of(pest.label, pest.entry), ref(0, "regions[0].inner_box")
        thought = "I need to know which pest is inside the outline."
        named_thing = photo_thing(file, DIAGNOSE, diagnosis, thought, words, kind="pest", region=inside)
        return replace(named_thing, before=(marked,))

    photos = [(one.file, one.pest)]
    return photo_subject(f"ip102-marked-{number}", photos, thing, {"crop": one.pest.crop}, "pest_marked")


def _count_thing(file: SampleFile, one: Boxed, place: int) -> Thing:
    kind = "mite" if one.pest.entry.taxonomy.order == "Trombidiformes" else "insect"
    thought = f"I need to know how many pests there are in {file.name}."
    words = {"bar": f"photo {place}", "bar_zh": f"照片{place}"}
    return photo_thing(file, COUNT, {"count": len(one.boxes)}, thought, words, target=kind)
