"""IP102 (Wu et al. 2019): insect pests of eight crops, one class per picture; the test split of the classification.

A class may hold eggs, larvae, pupae and adults. Questions beyond the name (order, family, damage, management) are
answered from the knowledge base, as by the tools. Kinds of subjects: in ``pest_photo`` a pest is named on a known crop;
in ``pest_group`` it is named and its order and family are looked up; in ``pest_damage`` it is named and its damage is
looked up; in ``pest_advice`` it is named and the answer is scored by key facts. The pictures of a subject are of one
crop and of pests that cannot be confused with each other, and each picture is in one subject only.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agrotools.build.references import PlannedCall, ref
from agrotools.build.sources.layout import read_rows, with_files
from agrotools.build.sources.part import DataSet, Part, photo_subject, photo_thing
from agrotools.build.sources.photos import diagnosis_of
from agrotools.build.sources.public.ip102_pests import (
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
from agrotools.build.sources.reading import find_root, png_of, spread
from agrotools.build.templates import Thing
from agrotools.build.templates.template import exact_result
from agrotools.build.templates.thing import Subject
from agrotools.core import Arguments, SampleFile
from agrotools.knowledge.kb_names import kb_names

LOOK_UP = "lookup_agronomy"

_SEED = 12
_TURNS = (
    "pest_group", "pest_photo", "pest_advice", "pest_group", "pest_photo", "pest_damage", "pest_group", "pest_photo",
    "pest_advice", "pest_group",
)  # fmt: skip
"""Order in which kinds of subjects are made; their frequencies follow the number of templates for each."""
_PICTURES = MappingProxyType({"pest_photo": 2, "pest_group": 3, "pest_advice": 1, "pest_damage": 2})
_JPEG = b"\xff\xd8"


def ip102(data: DataSet) -> Part:
    """Pests to be named and looked up."""
    of, dropped = data.layout, data.dropped
    root = find_root(data.folder, of["root"])
    rows = read_rows(root / "test.txt", of["rows"])
    known = [row for row in rows if int(row["label"]) in pests()]
    dropped["of a class that cannot be told"] += len(rows) - len(known)
    fresh = [row for row in known if row["name"] not in of["repeated"]]
    dropped["also in the train split"] += len(known) - len(fresh)
    items = with_files(data, root, fresh, "test.txt")
    photos: dict[str, PestPhoto] = {}
    for item in spread(items, lambda one: one.told["label"], len(items), _SEED):
        if len(photos) >= data.wanted:
            break
        if (file := _photo_file(item.files["picture"], data)) is not None:
            dropped["repeated"] += str(file.sha256) in photos
            photos.setdefault(str(file.sha256), (file, pests()[int(item.told["label"])]))
    subjects = photo_subjects([*photos.values()], data.samples)
    return data.part(subjects, of["templates"], {"ip102": {"test_pictures": len(rows)}})


PestPhoto = tuple[SampleFile, Pest]


def _photo_file(path: Path, data: DataSet) -> SampleFile | None:
    """Return the picture's file, or None (counted as dropped) if it cannot be used."""
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
