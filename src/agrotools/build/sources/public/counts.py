"""Pictures with counted objects: the counting questions of AgroMind, and the boxed fruit of deepNIR.

AgroMind (Li et al. 2025) asks questions on agricultural pictures from many sources and has no split. Its questions are
not reused, but an answer that is a count serves as truth for a counting tool: oil palms from above, fruit on trees,
maize tassels, young plants. All other items are left out and counted by reason, because no chain of tools gives their
answer or because their pictures belong to a data set with a separate adapter. deepNIR (Sa et al. 2022) has boxes around
each fruit in photographs of eleven crops; the test split of these boxes is used.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from agrotools.build.boxes import count_marks, yolo_marks
from agrotools.build.sources.part import TABLES, DataSet, Part, adapter, photo_pairs, photo_thing
from agrotools.build.sources.photos import FRUIT_QUESTIONS, fruit_subjects
from agrotools.build.sources.reading import (
    SUFFIXES,
    by_stem,
    existing_files,
    find_root,
    first_of,
    is_outside,
    photo_file,
    read_json,
    spread,
)
from agrotools.build.templates import Thing
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, SampleFile

_AGROMIND_PLURAL: Mapping[str, str] = TABLES["agromind"]
"""Plurals by target of the counting tool."""
PALM = "oil palm"
GSD_M = 0.08
"""Ground sampling distance of the pictures of oil palms, metres per pixel, as stated in questions about their crowns.
"""
_TARGETS: Mapping[str, str] = TABLES["agromind_questions"]
"""Patterns of counting questions by question file; the group is the counted object."""
_TOOL_WORDS = {"tassel": "maize tassel"}
_OWN_ADAPTER = {"Pest": "about pictures of IP102, which is a source of its own"}
_OTHER = "with an answer that no tool measures"
_NAME = re.compile(r"[A-Z]{2,3}_\d_\d_\d")
_LARGEST_JSON = 50_000_000
_MOST_COUNTED = 100_000
_PALMS_IN_SUBJECT = 3
_AGROMIND_SEED = 7


@dataclass(frozen=True)
class _Counted:
    """A picture with the number of objects of one kind in it."""

    path: Path
    target: str
    count: int


@adapter("agromind")
def agromind(data: DataSet) -> Part:
    """Numbers of fruits and plants in pictures; oil palms also per hectare."""
    root, questions = _root(data.folder)
    counted = _counted_answers(root, _items(questions), data)
    if not counted:
        raise BenchmarkError(f"{questions} has no question that counts: {', '.join(_TARGETS)}")
    there = existing_files(data, root, (str(one.path.relative_to(root)) for one in counted))
    counted = [one for one in counted if str(one.path.relative_to(root)) in there]
    palms = [one for one in counted if one.target == PALM]
    others = [one for one in counted if one.target != PALM]
    some = spread(others, lambda one: one.target, data.wanted - min(len(palms), data.wanted // 2), _AGROMIND_SEED)
    palms = spread(palms, lambda one: one.count // 10, data.wanted - len(some), _AGROMIND_SEED)
    subjects = _palm_subjects(palms, data)
    for target in _AGROMIND_PLURAL:
        photos = [(photo_file(one.path, data), one.count) for one in some if one.target == target]
        name = f"agromind-{target.replace(' ', '-')}"
        subjects += fruit_subjects(name, target, _AGROMIND_PLURAL[target], photos, of="fruit_photo")
    counts = Counter(one.target for one in counted)
    return data.part(subjects, ["palm", *FRUIT_QUESTIONS], {"agromind_counted_pictures": {**counts}})


def _root(folder: Path) -> tuple[Path, Path]:
    """Return the root folder and the folder of the questions."""
    for name in ("QA_Pairs", "json"):
        with suppress(BenchmarkError):
            root = find_root(folder, (name, "images"))
            return root, root / name
    raise BenchmarkError(f"{folder} has no QA_Pairs and images")


def _items(questions: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every question with the name of its file."""
    for path in sorted(questions.rglob("*.json")):
        if not _NAME.fullmatch(path.stem):
            continue
        entries = read_json(path, _LARGEST_JSON)
        if not isinstance(entries, list) or not all(isinstance(item, dict) for item in cast("list[Any]", entries)):
            raise BenchmarkError(f"{path} is not a list of questions")
        for item in cast("list[dict[str, Any]]", entries):
            yield path.stem, item


def _counted_answers(root: Path, items: Iterator[tuple[str, Mapping[str, Any]]], data: DataSet) -> list[_Counted]:
    """Return the pictures with a counted answer, each once; other questions are counted as dropped."""
    by_place: dict[str, _Counted | None] = {}
    for of, item in items:
        place = str(item.get("image_path", "")).removeprefix("./").replace("\\", "/")
        top = place.partition("/")[0]
        if of not in _TARGETS or top in _OWN_ADAPTER:
            data.dropped[_OWN_ADAPTER.get(top, _OTHER)] += 1
            continue
        target = re.search(_TARGETS[of], str(item.get("question", "")))
        count = _answer(item)
        if not place or is_outside(place) or target is None or count is None:
            data.dropped["incomplete"] += 1
            continue
        one = _Counted(root / "images" / place, _TOOL_WORDS.get(target[1], target[1]), count)
        if place not in by_place:
            by_place[place] = one
            continue
        data.dropped["repeated"] += 1
        if by_place[place] != one:
            by_place[place] = None
    data.dropped["with two answers for one picture"] += sum(one is None for one in by_place.values())
    return [one for one in by_place.values() if one is not None]


def _answer(item: Mapping[str, Any]) -> int | None:
    """Return the answer as a number, or the number in the option that it names; None if it is not a number."""
    answer, options = item.get("answer"), item.get("options")
    if isinstance(options, dict):
        answer = cast("dict[str, Any]", options).get(str(answer))
    text = str(answer).strip()
    return int(text) if text.isascii() and text.isdecimal() and int(text) <= _MOST_COUNTED else None


def _palm_subjects(palms: Sequence[_Counted], data: DataSet) -> list[Subject]:
    """Return subjects of three pictures each; the last may have fewer."""
    note = f"Oil palms seen straight from above, {GSD_M} m a pixel."
    photos = [(photo_file(one.path, data, gsd_m=GSD_M, note=note), one.count) for one in palms]

    def thing(file: SampleFile, count: int, _: int) -> Thing:
        area_ha = (file.width_px or 0) * (file.height_px or 0) * GSD_M**2 / 10_000
        truth = {"count": count, "density_per_ha": round(count / area_ha, 4), "gsd_m": GSD_M}
        thought = f"I need to know how many oil palms there are in {file.name}."
        return photo_thing(file, "count_objects", truth, thought, target=PALM)

    return photo_pairs("agromind-palms", photos, thing, {}, "palm_photo", _PALMS_IN_SUBJECT)


DEEPNIR_PLURAL: Mapping[str, str] = TABLES["deepnir"]
"""Plural of the counted object, by folder."""
_DEEPNIR_SEED = 11


@adapter("deepnir")
def deepnir(data: DataSet) -> Part:
    """Numbers of fruits in pictures, evenly spread over the kinds of fruit."""
    places: dict[str, Path] = {}
    for fruit in DEEPNIR_PLURAL:
        with suppress(BenchmarkError):
            places[fruit] = find_root(data.folder, (f"{fruit}/test/images",)) / fruit / "test"
    if not places:
        raise BenchmarkError(f"{data.folder} has FRUIT/test/images of no fruit")
    if absent := len(DEEPNIR_PLURAL) - len(places):
        data.dropped["kinds of fruit whose folder is missing"] += absent
    pictures = [(fruit, *picture) for fruit, place in places.items() for picture in _boxed_pictures(place, data)]
    if not pictures:
        raise BenchmarkError(f"{data.folder} has no picture in its test part")
    some = spread(pictures, lambda picture: picture[0], data.wanted, _DEEPNIR_SEED)
    subjects = [
        subject
        for fruit in DEEPNIR_PLURAL
        for subject in fruit_subjects(
            f"deepnir-{fruit}",
            "wheat head" if fruit == "wheat" else fruit,
            DEEPNIR_PLURAL[fruit],
            [(photo_file(path, data), count) for of, path, count in some if of == fruit],
            of="fruit_photo",
        )
    ]
    counts = Counter(fruit for fruit, _, _ in pictures)
    return data.part(subjects, FRUIT_QUESTIONS, {"deepnir_test_pictures": {**counts}})


def _boxed_pictures(place: Path, data: DataSet) -> list[tuple[Path, int]]:
    """Return every picture of one fruit's test part with its number of boxes, which is 0 without a label file."""
    images, labels = by_stem(place / "images", SUFFIXES), by_stem(first_of(place, ("labels",)), (".txt",))
    listed = (images[stem].name if stem in images else f"{stem}.jpg" for stem in labels)
    existing_files(data, place / "images", listed)
    marks = {stem: list(yolo_marks(labels[stem], {0: "fruit"})) for stem in images.keys() & labels}
    return [(path, count_marks(marks.get(stem, ()))[0].get("fruit") or 0) for stem, path in images.items()]
