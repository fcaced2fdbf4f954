"""IP102 (Wu et al. 2019): insect pests of eight crops, one class a picture, and boxes on some; the test splits of both.

A class may hold eggs, larvae, pupae and adults alike. What is asked beyond the name (order, family, damage, what to do)
is answered by the knowledge base, as the tools answer it. ``pest_photo`` is named on a known crop; ``pest_group`` is
named, then its place in the system is looked up; ``pest_damage`` is named, then its damage is looked up;
``pest_advice`` is named, and key facts on it are held. Pictures of a subject are of one crop, of pests that cannot be
taken for each other, and each is in one subject alone.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any

from agrotools.build.references import PlannedCall, ref
from agrotools.build.sources.field.photos import diagnosis_of
from agrotools.build.sources.part import DataSet, Part, adapter, photo_subject, photo_thing
from agrotools.build.sources.public.ip102_boxed import boxed_subjects, read_boxed
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
from agrotools.build.sources.reading import find_root, png_of, read_lines, refuse_missing, spread
from agrotools.build.templates import Thing
from agrotools.build.templates.template import exact_result
from agrotools.build.templates.thing import Subject
from agrotools.core import Arguments, BenchmarkError, SampleFile
from agrotools.knowledge.kb_names import kb_names

LOOK_UP = "lookup_agronomy"
TEMPLATES = ("pest", "pest_group", "pest_advice", "pest_marked", "pest_count")
REPEATED = ("40410.jpg", "40432.jpg", "65553.jpg", "66152.jpg")
"""Pictures that are in the train and the test split at once."""
_SEED = 12
_TURNS = (
    "pest_group", "pest_photo", "pest_advice", "pest_group", "pest_photo", "pest_damage", "pest_group", "pest_photo",
    "pest_advice", "pest_group",
)  # fmt: skip
"""Kinds of subjects, about as often as there are templates for them."""
_PICTURES = MappingProxyType({"pest_photo": 2, "pest_group": 3, "pest_advice": 1, "pest_damage": 2})
_JPEG = b"\xff\xd8"


@adapter("ip102")
def read(data: DataSet) -> Part:
    """Pests to be named, looked up, found inside an outline, and counted."""
    dropped = data.dropped
    root = find_root(data.folder, ("images", "test.txt"))
    listed = _listed(root, "test", dropped)
    known = [(name, label) for name, label in listed if label in pests()]
    dropped["of a class that cannot be told"] += len(listed) - len(known)
    fresh = [(name, label) for name, label in known if name not in REPEATED]
    dropped["also in the train split"] += len(known) - len(fresh)
    refuse_missing(root / "images", (name for name, _ in fresh))
    trained = _by_size(root)
    photos: list[Photo] = []
    seen: set[str] = set()
    for name, label in spread(fresh, lambda one: one[1], len(fresh), _SEED):
        if len(photos) >= data.wanted:
            break
        path = root / "images" / name
        digest = _digest(path)
        if digest in seen or any(_digest(other) == digest for other in trained.get(path.stat().st_size, ())):
            dropped["repeated"] += 1
        elif (photo := photo_of(path, pests()[label], data)) is not None:
            seen.add(digest)
            photos.append(photo)
    if not photos:
        raise BenchmarkError(f"no test picture of {root} can be used")
    boxed, reading = read_boxed(data.folder, dropped)
    most_boxed = max(24, math.ceil(1.5 * data.samples))
    some = spread(boxed, lambda one: (len(one.boxes) > 1, one.pest.label), most_boxed, _SEED)
    subjects = [*photo_subjects(photos, data.samples), *boxed_subjects(some, data)]
    counts = {"test_pictures": len(listed), "boxed_test_pictures": len(boxed), "class_numbers": reading}
    return data.part(subjects, TEMPLATES, {"ip102": counts})


def _listed(root: Path, split: str, dropped: Counter[str]) -> list[tuple[str, int]]:
    """Names and labels of a split.

    Raises:
        BenchmarkError: it cannot be read, or a line is no name with a label from 0 to 101.
    """
    path = root / f"{split}.txt"
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


def _by_size(root: Path) -> dict[int, list[Path]]:
    """Pictures of the other splits by size in bytes: only those of equal size can be the same file."""
    by_size: dict[int, list[Path]] = {}
    for split in ("train", "val"):
        if not (root / f"{split}.txt").is_file():
            continue
        for name, _ in _listed(root, split, Counter()):
            path = root / "images" / name
            if path.is_file():
                by_size.setdefault(path.stat().st_size, []).append(path)
    return by_size


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass(frozen=True)
class Photo:
    """A picture of one pest, as a file."""

    file: SampleFile
    pest: Pest


def photo_of(path: Path, pest: Pest, data: DataSet) -> Photo | None:
    """None where it cannot be used, which is counted. What calls itself .jpg and is none is written anew."""
    picture = readable(path, data)
    if picture is None:
        return None
    if path.read_bytes()[:2] == _JPEG:
        return Photo(data.originals.file(path, note=NOTE), pest)
    return Photo(data.originals.made(png_of(picture.pixels), ".png", note=NOTE), pest)


def photo_subjects(photos: Sequence[Photo], most: int) -> list[Subject]:
    """At most so many subjects; kinds and crops take turns, so that a few pictures give some of each."""
    waiting: dict[str, list[Photo]] = {}
    for photo in photos:
        waiting.setdefault(photo.pest.crop, []).append(photo)
    crops = list(waiting)
    subjects: list[Subject] = []
    failed = 0
    for kind in cycle(_TURNS):
        group = next((pictures for crop in crops if (pictures := _take_group(waiting[crop], kind))), [])
        failed = 0 if group else failed + 1
        if failed == len(_TURNS) or len(subjects) >= most:
            return subjects
        if group:
            crops.append(crops.pop(crops.index(group[0].pest.crop)))
            subjects.append(_subject(len(subjects), kind, group))
    return subjects


def _take_group(waiting: list[Photo], kind: str) -> list[Photo]:
    """The next pictures of a crop for such a subject, taken out; empty where there are too few."""
    group: list[Photo] = []
    for photo in waiting:
        if len(group) < _PICTURES[kind] and _suits(photo.pest, kind):
            if kind == "pest_damage" and not _damage_tells(photo, group):
                continue
            if not any(photo.pest.like(other.pest) for other in group):
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


def _damage_tells(photo: Photo, group: Sequence[Photo]) -> bool:
    """First one whose damage is told, then one that surely does no such damage."""
    if not group:
        return trait_of(photo.pest) is not None
    return bool(pair_words([group[0].pest, photo.pest], rng_of("trait"))["trait_word"])


def _subject(number: int, kind: str, group: Sequence[Photo]) -> Subject:
    rng = rng_of(kind, *(str(photo.file.sha256) for photo in group))
    together = pair_words([photo.pest for photo in group], rng)
    photos = [(photo.file, (photo.pest, together | words_of(photo.pest, rng))) for photo in group]
    thing = _named_thing if kind in ("pest_photo", "pest_advice") else partial(_looked_up_thing, kind)
    return photo_subject(f"ip102-{number}", photos, thing, {"crop": group[0].pest.crop}, kind)


_Known = tuple[Pest, Mapping[str, str]]


def _named_thing(file: SampleFile, known: _Known, _: int) -> Thing:
    """A pest to be named, its crop known."""
    pest, words = known
    thought = f"I need to know which pest of {pest.crop} {file.name} shows."
    return photo_thing(
        file, DIAGNOSE, diagnosis_of(pest.label, pest.entry), thought, words, kind="pest", crop=pest.crop
    )


def _looked_up_thing(kind: str, file: SampleFile, known: _Known, _: int) -> Thing:
    """A pest to be named and then looked up."""
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
