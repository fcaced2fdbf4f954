"""IP102 (Wu et al. 2019): insect pests of eight crops, one class per picture, and boxes on some; both test splits.

A class may hold eggs, larvae, pupae and adults. Questions beyond the name (order, family, damage, management) are
answered from the knowledge base, as by the tools. Kinds of subjects: in ``pest_photo`` a pest is named on a known crop;
in ``pest_group`` it is named and its order and family are looked up; in ``pest_damage`` it is named and its damage is
looked up; in ``pest_advice`` it is named and the answer is scored by key facts. The pictures of a subject are of one
crop and of pests that cannot be confused with each other, and each picture is in one subject only.
"""

import io
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any
from xml.etree import ElementTree

import numpy as np
from PIL import Image
from pydantic import JsonValue

from agrotools.build.references import PlannedCall, ref
from agrotools.build.sources.field.photos import diagnosis_of
from agrotools.build.sources.part import DataSet, Part, adapter, photo_subject, photo_thing
from agrotools.build.sources.public.ip102_pests import (
    CLASSES,
    DIAGNOSE,
    NOTE,
    Pest,
    advice_topics,
    pair_words,
    pests,
    readable,
    rng_of,
    trait_of,
    words_of,
)
from agrotools.build.sources.reading import SUFFIXES, by_stem, existing_files, find_root, png_of, read_lines, spread
from agrotools.build.templates import Thing
from agrotools.build.templates.template import exact_result
from agrotools.build.templates.thing import Subject
from agrotools.core import Arguments, BenchmarkError, SampleFile
from agrotools.knowledge.kb_names import kb_names
from agrotools.vision.reading import RgbImage

LOOK_UP = "lookup_agronomy"

Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels, half-open."""
_LARGEST_XML = 500_000
TEMPLATES = ("pest", "pest_group", "pest_advice", "pest_marked", "pest_count")
REPEATED = ("40410.jpg", "40432.jpg", "65553.jpg", "66152.jpg")
"""Pictures that are in both the train and the test split."""
_SEED = 12
_TURNS = (
    "pest_group", "pest_photo", "pest_advice", "pest_group", "pest_photo", "pest_damage", "pest_group", "pest_photo",
    "pest_advice", "pest_group",
)  # fmt: skip
"""Order in which kinds of subjects are made; their frequencies follow the number of templates for each."""
_PICTURES = MappingProxyType({"pest_photo": 2, "pest_group": 3, "pest_advice": 1, "pest_damage": 2})
_JPEG = b"\xff\xd8"


@adapter("ip102")
def ip102(data: DataSet) -> Part:
    """Pests to be named, looked up, found inside an outline, and counted."""
    dropped = data.dropped
    root = find_root(data.folder, ("images", "test.txt"))
    listed = _listed(root / "test.txt", dropped)
    known = [(name, label) for name, label in listed if label in pests()]
    dropped["of a class that cannot be told"] += len(listed) - len(known)
    fresh = [(name, label) for name, label in known if name not in REPEATED]
    dropped["also in the train split"] += len(known) - len(fresh)
    there = existing_files(data, root / "images", (name for name, _ in fresh))
    fresh = [one for one in fresh if one[0] in there]
    photos: dict[str, PestPhoto] = {}
    for name, label in spread(fresh, lambda one: one[1], len(fresh), _SEED):
        if len(photos) >= data.wanted:
            break
        if (file := _photo_file(root / "images" / name, data)) is not None:
            dropped["repeated"] += str(file.sha256) in photos
            photos.setdefault(str(file.sha256), (file, pests()[label]))
    if not photos:
        raise BenchmarkError(f"no test picture of {root} can be used")
    boxed = read_boxed(data)
    most_boxed = max(24, math.ceil(1.5 * data.samples))
    some = spread(boxed, lambda one: (len(one.boxes) > 1, one.pest.label), most_boxed, _SEED)
    subjects = [*photo_subjects([*photos.values()], data.samples), *boxed_subjects(some, data)]
    counts: dict[str, JsonValue] = {"test_pictures": len(listed), "boxed_test_pictures": len(boxed)}
    return data.part(subjects, TEMPLATES, {"ip102": counts})


def _listed(path: Path, dropped: Counter[str]) -> list[tuple[str, int]]:
    """Return names and labels of a split."""
    labels: dict[str, int] = {}
    for number, line in read_lines(path):
        parts = line.rsplit(maxsplit=1)
        if len(parts) != 2 or not parts[1].isdecimal() or int(parts[1]) >= len(CLASSES):
            what = f"not a picture with a label from 0 to {len(CLASSES) - 1}"
            raise BenchmarkError(f"{path}, line {number} is {what}: {line[:60]}")
        name, label = PurePath(parts[0].replace("\\", "/")).name, int(parts[1])
        if labels.setdefault(name, label) != label:
            dropped["of two classes"] += 1
    return list(labels.items())


PestPhoto = tuple[SampleFile, Pest]


def _photo_file(path: Path, data: DataSet) -> SampleFile | None:
    """Return the picture's file, or None (counted as dropped) if it cannot be used.

    A file named .jpg that is not a JPEG is stored again as a PNG.
    """
    picture = readable(path, data)
    if picture is None:
        return None
    if path.read_bytes()[:2] == _JPEG:
        return data.originals.file(path, note=NOTE)
    return data.originals.add_content(png_of(picture.pixels), ".png", note=NOTE)


def photo_subjects(photos: Sequence[PestPhoto], most: int) -> list[Subject]:
    """Return at most ``most`` subjects; kinds and crops take turns, so that even a few pictures cover all of them."""
    waiting: dict[str, list[PestPhoto]] = {}
    for photo in photos:
        waiting.setdefault(photo[1].crop, []).append(photo)
    crops = list(waiting)
    subjects: list[Subject] = []
    failed = 0
    for kind in cycle(_TURNS):
        group = next((pictures for crop in crops if (pictures := _take_group(waiting[crop], kind))), [])
        failed = 0 if group else failed + 1
        if failed == len(_TURNS) or len(subjects) >= most:
            return subjects
        if group:
            crops.append(crops.pop(crops.index(group[0][1].crop)))
            subjects.append(_subject(len(subjects), kind, group))
    return subjects


def _take_group(waiting: list[PestPhoto], kind: str) -> list[PestPhoto]:
    """Remove and return the next pictures of a crop for a subject of this kind; empty if there are too few."""
    group: list[PestPhoto] = []
    for photo in waiting:
        pests_taken = [pest for _, pest in group]
        if len(group) < _PICTURES[kind] and _suits(photo[1], kind):
            if kind == "pest_damage" and not _damage_tells(photo[1], pests_taken):
                continue
            if not any(photo[1].like(pest) for pest in pests_taken):
                group.append(photo)
    if kind == "pest_damage" and len(group) < _PICTURES[kind]:
        return []
    for photo in group:
        waiting.remove(photo)
    return group


def _suits(pest: Pest, kind: str) -> bool:
    match kind:
        case "pest_advice":
            return bool(advice_topics(pest)) and kb_names().is_on(pest.entry, pest.crop)
        case "pest_photo":
            return kb_names().is_on(pest.entry, pest.crop)
        case _:
            return pest.entry.taxonomy.order is not None


def _damage_tells(pest: Pest, group: Sequence[Pest]) -> bool:
    """Return True for a first pest whose damage is known, and for a second one that certainly does not cause it."""
    if not group:
        return trait_of(pest) is not None
    return bool(pair_words([group[0], pest], rng_of("trait"))["trait_word"])


def _subject(number: int, kind: str, group: Sequence[PestPhoto]) -> Subject:
    rng = rng_of(kind, *(str(file.sha256) for file, _ in group))
    together = pair_words([pest for _, pest in group], rng)
    photos = [(file, (pest, together | words_of(pest, rng))) for file, pest in group]
    thing = _named_thing if kind in ("pest_photo", "pest_advice") else partial(_looked_up_thing, kind)
    return photo_subject(f"ip102-{number}", photos, thing, {"crop": group[0][1].crop}, kind)


_Known = tuple[Pest, Mapping[str, str]]


def _named_thing(file: SampleFile, known: _Known, _: int) -> Thing:
    """Return a pest to be named on its known crop."""
    pest, words = known
    thought = f"I need to know which pest of {pest.crop} {file.name} shows."
    return photo_thing(
        file, DIAGNOSE, diagnosis_of(pest.label, pest.entry), thought, words, kind="pest", crop=pest.crop
    )


def _looked_up_thing(kind: str, file: SampleFile, known: _Known, _: int) -> Thing:
    """Return a pest to be named and then looked up."""
    pest, words = known
    topic, query = {
        "pest_group": ("identification", "order and family"),
        "pest_damage": ("symptoms", "damage on the plant"),
    }[kind]
    thought = f"I need to know which pest {file.name} shows."
    truth = diagnosis_of(pest.label, pest.entry)
    diagnosis = PlannedCall(DIAGNOSE, {"image": file.name, "kind": "pest"}, truth, thought=thought)
    search: dict[str, Any] = {"query": query, "topic": topic}
    arguments: Arguments = {**search, "kb_id": ref(0, "best")}
    truth = exact_result(LOOK_UP, {**search, "kb_id": pest.entry.id})
    thought = f"I need what is known of the {query} of the pest in {file.name}."
    return Thing((file,), LOOK_UP, arguments, truth, file.name, thought, words, before=(diagnosis,))


_MARKERS = ("Annotations", "JPEGImages", "ImageSets/Main/test.txt")
_PREFIX = re.compile(r"IP(\d{3})\d{6}")


@dataclass(frozen=True)
class Boxed:
    """A picture with boxes around insects of a single class, in pixels of a picture of ``size`` (width, height)."""

    path: Path
    pest: Pest
    boxes: tuple[Box, ...]
    size: tuple[int, int]


def read_boxed(data: DataSet) -> list[Boxed]:
    """Return the test pictures with boxes; empty if the detection part is missing.

    The class of a picture is taken from its file name, because the numbering in the annotations is not documented.

    Raises:
        BenchmarkError: most of the detection part cannot be used.
    """
    root = None
    with suppress(BenchmarkError):
        root = find_root(data.folder, _MARKERS)
    if root is None:
        return []
    stems = list(dict.fromkeys(PurePath(line.split()[0]).name for _, line in read_lines(root / _MARKERS[2])))
    # The archive of annotations contains a folder of the same name.
    pictures = by_stem(root / "JPEGImages", SUFFIXES, deep=True)
    annotations = by_stem(root / "Annotations", (".xml",), deep=True)
    boxed = [_boxed(pictures.get(stem), annotations.get(stem)) for stem in stems]
    reasons = Counter(one for one in boxed if isinstance(one, str))
    data.dropped.update(reasons)
    unusable = reasons[_NO_FILES] + reasons[_UNREADABLE] + reasons[_NO_BOXES]
    if 2 * unusable > len(stems) and not data.allow_missing:
        usable = len(stems) - unusable
        raise BenchmarkError(f"of {len(stems)} test pictures of {root} only {usable} have a picture and an annotation")
    return [one for one in boxed if isinstance(one, Boxed)]


_NO_FILES = "boxed, without a picture or an annotation"
_UNREADABLE = "boxed, with an annotation that cannot be read"
_NO_BOXES = "boxed, without boxes or with some outside the picture"


def _boxed(picture: Path | None, xml: Path | None) -> Boxed | str:
    """Return a picture with boxes, or the reason why it cannot be used."""
    if picture is None or xml is None:
        return _NO_FILES
    try:
        size, objects = read_voc(xml)
    except ValueError:
        return _UNREADABLE
    boxes = dict.fromkeys(box for _, box in objects)
    if not boxes or not all(_fits(box, size) for box in boxes):
        return _NO_BOXES
    if len({name for name, _ in objects}) > 1:
        return "boxed, with insects of several classes"
    pest = pests().get(_label_of_name(picture.stem))
    return "of a class that cannot be told" if pest is None else Boxed(picture, pest, tuple(boxes), size)


def read_voc(path: Path) -> tuple[tuple[int, int], list[tuple[str, Box]]]:
    """Read a VOC annotation: width and height of the picture, and name and box of each object.

    Raises:
        ValueError: the file cannot be read, or is too large for the annotation of a picture.
    """
    try:
        if path.stat().st_size > _LARGEST_XML:
            raise ValueError("too large for the annotation of a picture")
        text = path.read_text("utf-8")
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            raise ValueError("an annotation declares no entities")
        tree = ElementTree.fromstring(text)
    except (OSError, ElementTree.ParseError) as error:
        raise ValueError(str(error)) from error
    size = int(tree.findtext("size/width", "")), int(tree.findtext("size/height", ""))
    return size, [(one.findtext("name", ""), _voc_box(one)) for one in tree.iter("object")]


def _voc_box(one: ElementTree.Element) -> Box:
    x0, y0, x1, y1 = (round(float(one.findtext(f"bndbox/{edge}", ""))) for edge in ("xmin", "ymin", "xmax", "ymax"))
    return x0, y0, x1, y1


def _fits(box: Box, size: tuple[int, int]) -> bool:
    """Return True if a box is within a picture; VOC counts pixels from 1, so the last column equals the width."""
    x0, y0, x1, y1 = box
    return 0 <= x0 < x1 <= size[0] and 0 <= y0 < y1 <= size[1]


def _label_of_name(stem: str) -> int:
    """Return the label of a file's prefix, or -1: 000 to 030 count from zero, 032 to 102 from one."""
    match = _PREFIX.fullmatch(stem)
    number = int(match[1]) if match else 31
    return -1 if number == 31 else number - (number > 31)


EXTRACT = "extract_marked_region"
COUNT = "count_objects"
_LEAST_SHARE, _MOST_SHARE = 0.004, 0.5
"""Smallest and largest share of the picture that a box may cover for an outline around it to be meaningful."""
_STROKE = 0.006
"""Width of the outline, as a share of the longer side."""
_RED = (255, 0, 0)
_LEAST_GAP_PX = 2
_PICTURES_COUNTED = 3


def boxed_subjects(boxed: Sequence[Boxed], data: DataSet) -> list[Subject]:
    """Return at most as many subjects as samples, with outlines and counts in turn; each picture is used once."""
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
        elif (outline := _outline(one, picture)) is not None:
            marked.append(_marked_subject(len(marked), one.pest, picture, *outline, data))
        else:
            data.dropped["boxed, with no box that an outline fits around"] += 1
    groups = [counted[at : at + _PICTURES_COUNTED] for at in range(0, len(counted), _PICTURES_COUNTED)]
    counts = [
        photo_subject(f"ip102-count-{number}", group, _count_thing, {"pictures": len(group)}, "pest_count")
        for number, group in enumerate(groups)
    ]
    return [*marked, *counts]


def _outline(one: Boxed, picture: RgbImage) -> tuple[Box, Box] | None:
    """Return the bounds of a stroke (outer, inner) around the first box that has room for it, or None if none has."""
    stroke = max(3, round(_STROKE * max(picture.width, picture.height)))
    for box in one.boxes:
        x0, y0, x1, y1 = box
        share = (x1 - x0) * (y1 - y0) / (picture.width * picture.height)
        gap = max(_LEAST_GAP_PX, stroke)
        inner = (x0 - gap, y0 - gap, x1 + gap, y1 + gap)
        outer = (inner[0] - stroke, inner[1] - stroke, inner[2] + stroke, inner[3] + stroke)
        fits = min(outer[:2]) >= 1 and outer[2] < picture.width and outer[3] < picture.height
        if fits and _LEAST_SHARE <= share <= _MOST_SHARE:
            return outer, inner
    return None


def _outlined_jpeg(picture: RgbImage, outer: Box, inner: Box) -> bytes:
    pixels = picture.pixels.copy()
    inside = pixels[inner[1] : inner[3], inner[0] : inner[2]].copy()
    pixels[outer[1] : outer[3], outer[0] : outer[2]] = _RED
    pixels[inner[1] : inner[3], inner[0] : inner[2]] = inside
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "JPEG", quality=95, subsampling=0)
    return buffer.getvalue()


def _marked_subject(number: int, pest: Pest, picture: RgbImage, outer: Box, inner: Box, data: DataSet) -> Subject:
    jpeg, note = _outlined_jpeg(picture, outer, inner), f"{NOTE} An outline was drawn on it."
    photo = data.originals.add_content(jpeg, ".jpg", note=note)
    rng = rng_of("pest_marked", str(photo.sha256))
    words = pair_words([pest], rng) | words_of(pest, rng)
    region: dict[str, JsonValue] = {
        "index": 1, "box": [*outer], "inner_box": [*inner], "color": "red", "shape": "box",
    }  # fmt: skip
    truth: dict[str, JsonValue] = {"regions": [region], "selected": 1, "crop_box": [*inner]}

    def thing(file: SampleFile, pest: Pest, _: int) -> Thing:
        thought = f"I need to know where in {file.name} the red outline is."
        marked = PlannedCall(EXTRACT, {"image": file.name, "mark_color": "red"}, truth, thought=thought)
        diagnosis, inside = diagnosis_of(pest.label, pest.entry), ref(0, "regions[0].inner_box")
        thought = "I need to know which pest is inside the outline."
        return photo_thing(file, DIAGNOSE, diagnosis, thought, words, (marked,), kind="pest", region=inside)

    return photo_subject(f"ip102-marked-{number}", [(photo, pest)], thing, {"crop": pest.crop}, "pest_marked")


def _count_thing(file: SampleFile, one: Boxed, place: int) -> Thing:
    kind = "mite" if one.pest.entry.taxonomy.order == "Trombidiformes" else "insect"
    thought = f"I need to know how many pests there are in {file.name}."
    words = {"bar": f"photo {place}", "bar_zh": f"照片{place}"}
    return photo_thing(file, COUNT, {"count": len(one.boxes)}, thought, words, target=kind)
