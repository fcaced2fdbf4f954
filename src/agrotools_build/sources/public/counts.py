"""Pictures with counted objects: the counting questions of AgroMind, and boxed fruit of deepNIR.

AgroMind (Li et al. 2025) asks questions on agricultural pictures from many sources and has no split. Its questions are
not reused, but an answer that is a count serves as truth for a counting tool: oil palms from above, fruit on trees,
maize tassels, young plants. All other items are left out and counted by reason, because no chain of tools gives their
answer or because their pictures belong to a data set with a separate adapter. deepNIR (Sa et al. 2022) has boxes around
each fruit in photographs of eleven crops; the test split of these boxes is used.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from agrotools.core import BenchmarkError, SampleFile
from agrotools_build.annotation_formats import yolo_marks
from agrotools_build.boxes import count_marks
from agrotools_build.sources.land import FRUIT_QUESTIONS, fruit_subjects
from agrotools_build.sources.part import DataSet, Part, photo_pairs, photo_thing
from agrotools_build.sources.reading import (
    SUFFIXES,
    Item,
    Row,
    by_stem,
    existing_items,
    find_root,
    first_of,
    folders_below,
    photo_file,
    read_json,
    spread,
    with_files,
)
from agrotools_build.templates import Thing
from agrotools_build.templates.thing import Subject

_PALM = "oil palm"
_LARGEST_JSON = 50_000_000
_MOST_COUNTED = 100_000
_PALMS_IN_SUBJECT = 3


class Counted(NamedTuple):
    """A picture with the number of objects of one kind in it."""

    noun: str
    path: Path
    number: int


def _subjects(
    data: DataSet, plurals: Mapping[str, str], counted: Iterable[Counted]
) -> list[Subject]:
    photos: dict[str, list[tuple[SampleFile, int]]] = {noun: [] for noun in plurals}
    for noun, path, count in counted:
        photos[noun].append((photo_file(path, data), count))
    part, words = data.listing.part, data.layout["tool_words"]
    return [
        subject
        for noun, some in photos.items()
        for subject in fruit_subjects(
            f"{part}-{noun.replace(' ', '-')}",
            words.get(noun, noun),
            plurals[noun],
            some,
            of="fruit_photo",
        )
    ]


def agromind(data: DataSet) -> Part:
    """Numbers of fruits and plants in pictures; oil palms also per hectare."""
    of = data.layout
    root = find_root(data.folder, of["root"])
    questions = first_of(root, of["lists"])
    items = with_files(data, root, _counting_questions(questions, data), str(questions))
    if not items:
        raise BenchmarkError(
            f"{questions} has no question that counts: {', '.join(of['questions'])}"
        )
    counted = [
        Counted(item.told["noun"], item.files["picture"], int(item.told["count"])) for item in items
    ]
    palms = [one for one in counted if one.noun == _PALM]
    others = [one for one in counted if one.noun != _PALM]
    some = spread(
        others, lambda one: one.noun, data.wanted - min(len(palms), data.wanted // 2), of["seed"]
    )
    palms = spread(palms, lambda one: one.number // 10, data.wanted - len(some), of["seed"])
    subjects = [*_palm_subjects(palms, data), *_subjects(data, of["plurals"], some)]
    counts = Counter(one.noun for one in counted)
    return data.part(
        subjects, ["palm", *FRUIT_QUESTIONS], {"agromind_counted_pictures": {**counts}}
    )


def _counting_questions(questions: Path, data: DataSet) -> Iterator[Row]:
    of = data.layout
    for path in sorted(questions.rglob("*.json")):
        if not re.fullmatch(r"[A-Z]{2,3}_\d_\d_\d", path.stem):
            continue
        entries = read_json(path, _LARGEST_JSON)
        if not isinstance(entries, list) or not all(
            isinstance(item, dict) for item in cast("list[Any]", entries)
        ):
            raise BenchmarkError(f"{path} is not a list of questions")
        for item in cast("list[dict[str, Any]]", entries):
            name = str(item.get("image_path", "")).removeprefix("./").replace("\\", "/")
            top = name.partition("/")[0]
            if path.stem not in of["questions"] or top in of["elsewhere"]:
                data.dropped[of["elsewhere"].get(top, "with an answer that no tool measures")] += 1
                continue
            match = re.search(of["questions"][path.stem], str(item.get("question", "")))
            noun = match[1] if match else ""
            yield {"name": name, "noun": of["tool_words"].get(noun, noun), "count": _count_in(item)}


def _count_in(item: Mapping[str, Any]) -> str:
    """Return the answer, or the option that it names, if it is a number; empty otherwise."""
    answer, options = item.get("answer"), item.get("options")
    if isinstance(options, dict):
        answer = cast("dict[str, Any]", options).get(str(answer))
    text = str(answer).strip()
    return text if text.isascii() and text.isdecimal() and int(text) <= _MOST_COUNTED else ""


def _palm_subjects(palms: Iterable[Counted], data: DataSet) -> list[Subject]:
    """Return subjects of three pictures each; the last may have fewer."""
    gsd_m: float = data.layout["gsd_m"]
    note = f"Oil palms seen straight from above, {gsd_m} m a pixel."
    photos = [(photo_file(one.path, data, gsd_m=gsd_m, note=note), one.number) for one in palms]

    def thing(file: SampleFile, count: int, _: int) -> Thing:
        area_ha = (file.width_px or 0) * (file.height_px or 0) * gsd_m**2 / 10_000
        truth = {"count": count, "density_per_ha": round(count / area_ha, 4), "gsd_m": gsd_m}
        thought = f"I need to know how many oil palms there are in {file.name}."
        return photo_thing(file, "count_objects", truth, thought, target=_PALM)

    return photo_pairs("agromind-palms", photos, thing, {}, "palm_photo", _PALMS_IN_SUBJECT)


def deepnir(data: DataSet) -> Part:
    """Numbers of fruits in pictures, evenly spread over the kinds of fruit."""
    plurals: Mapping[str, str] = data.layout["plurals"]
    places = {
        fruit: place / "test"
        for fruit, place in folders_below(data.folder, plurals, ["test/images"]).items()
    }
    if not places:
        raise BenchmarkError(f"{data.folder} has FRUIT/test/images of no fruit")
    if absent := len(plurals) - len(places):
        data.dropped["kinds of fruit whose folder is missing"] += absent
    pictures: list[Counted] = []
    for fruit, place in places.items():
        images, labels = (
            by_stem(place / "images", SUFFIXES),
            by_stem(first_of(place, ("labels",)), (".txt",)),
        )
        labelled = [
            Item(stem, {"picture": images.get(stem, place / f"images/{stem}.jpg")}, {})
            for stem in labels
        ]
        existing_items(data, place, labelled)
        for stem, path in images.items():  # one without a label file shows no fruit
            marks = yolo_marks(labels[stem], {0: fruit}) if stem in labels else ()
            count = count_marks(marks)[0].get(fruit, 0)
            if count is None:
                data.dropped["pictures whose boxes have no area"] += 1
            else:
                pictures.append(Counted(fruit, path, count))
    if not pictures:
        raise BenchmarkError(f"{data.folder} has no picture in its test part")
    subjects = _subjects(
        data, plurals, spread(pictures, lambda one: one.noun, data.wanted, data.layout["seed"])
    )
    counts = Counter(one.noun for one in pictures)
    return data.part(subjects, FRUIT_QUESTIONS, {"deepnir_test_pictures": {**counts}})
