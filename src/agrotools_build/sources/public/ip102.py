"""IP102 (Wu et al. 2019): insect pests of eight crops, one class per picture; the test split of the classification.

A class may hold eggs, larvae, pupae and adults. Class names keep the authors' spelling, by which entries of the
knowledge base are found; questions use the entry's common name. About one in five names covers more than one species,
such as "aphids": naming one of its members is right too, and the two are never offered as alternatives.

Kinds of subjects: in ``pest_photo`` a pest is named on a known crop; in ``pest_group`` it is named and its order and
family are looked up; in ``pest_damage`` its damage is; in ``pest_advice`` the answer is scored by key facts. The
pictures of a subject are of one crop and of pests that cannot be confused, and each picture is in one subject only.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from agrotools.core import Arguments, SampleFile, ToolError
from agrotools.knowledge.entries import KnowledgeEntry
from agrotools.knowledge.kb_names import kb_names
from agrotools.vision.reading import read_image
from agrotools_build.references import PlannedCall, ref
from agrotools_build.sources.land import diagnosis_of
from agrotools_build.sources.part import (
    DataSet,
    Part,
    listed,
    listing_of,
    photo_subject,
    photo_thing,
)
from agrotools_build.sources.reading import find_root, png_of, read_rows, spread, with_files
from agrotools_build.templates import Thing
from agrotools_build.templates.key_facts import facts_about
from agrotools_build.templates.slot_draft import JOINED
from agrotools_build.templates.template import exact_result
from agrotools_build.templates.thing import Subject

_TABLES = listing_of("ip102").layout
CLASSES = tuple(" ".join(name.split()) for name in _TABLES["classes"].split(";"))
"""Published names by label, 0 to 101."""
CROPS = tuple(crop for crop, count in _TABLES["crops"].items() for _ in range(count))
"""Crop of each label, as named in the knowledge base."""
ORDERS: Mapping[str, Sequence[str]] = _TABLES["orders"]
TRAITS: Mapping[str, Mapping[str, Any]] = _TABLES["traits"]
"""Kinds of damage (``en``), by the word that identifies them in an entry; orders in ``not`` never cause it."""
_UNKNOWN = ("pest.rice_shell_pest",)
"""Entries whose names do not identify an insect."""
_DIAGNOSE, _LOOK_UP = "diagnose_pest_disease", "lookup_agronomy"
_NOTE = "Photograph of a pest; egg, young and adult are called alike."
_SEED = 12
_TURNS = (
    "pest_group", "pest_photo", "pest_advice", "pest_group", "pest_photo", "pest_damage", "pest_group", "pest_photo",
    "pest_advice", "pest_group",
)  # fmt: skip
"""Order in which kinds of subjects are made; their frequencies follow the number of templates for each."""
_PICTURES = {"pest_photo": 2, "pest_group": 3, "pest_advice": 1, "pest_damage": 2}
_LOOKED_UP = {
    "pest_group": ("identification", "order and family"),
    "pest_damage": ("symptoms", "damage on the plant"),
}
"""Topic and query of the look-up, by kind of subject."""
_MOST_OTHERS, _OFFERED = 9, 4


@dataclass(frozen=True)
class Pest:
    """A class: ``label`` as published, the ``crop`` of its pictures, and its entry."""

    label: str
    crop: str
    entry: KnowledgeEntry

    @property
    def name(self) -> str:
        return self.entry.names.en

    def covers(self, other: "Pest") -> bool:
        """Return True if an answer that names ``other`` may be right for this class: the same, or one of this group."""
        if self.entry.id == other.entry.id:
            return True
        mine, theirs = self.entry.names.sci, other.entry.names.sci
        if mine is not None:
            is_group = mine.endswith((" sp.", " spp."))
            return is_group and theirs is not None and theirs.split()[0] == mine.split()[0]
        rank, group = self.entry.taxonomy, other.entry.taxonomy
        if rank.family is not None:
            return group.family == rank.family
        return rank.order is not None and group.order == rank.order

    def like(self, other: "Pest") -> bool:
        return self.covers(other) or other.covers(self)


PestPhoto = tuple[SampleFile, Pest]


@cache
def pests() -> dict[int, Pest]:
    """Return the classes by label, without those that have no entry or whose names do not identify an insect."""
    by_label = {
        label: entry
        for entry in kb_names().entries
        for label in entry.names.datasets.get("ip102", ())
    }
    entries = {number: by_label[name] for number, name in enumerate(CLASSES) if name in by_label}
    return {
        number: Pest(CLASSES[number], CROPS[number], entry)
        for number, entry in entries.items()
        if entry.id not in _UNKNOWN
    }


def known_as(pest: Pest) -> tuple[str, ...]:
    """Return every right name of a pest, its own first; for a group also the names of its members."""
    members = [one for one in pests().values() if one is not pest and pest.covers(one)]
    return tuple(dict.fromkeys(name for one in (pest, *members) for name in one.entry.names.all()))


def others_on(pest: Pest) -> Sequence[Pest]:
    """Return the other classes on its crop that cannot be confused with it, in the order of classes."""
    on_crop = [one for one in pests().values() if one.crop == pest.crop and not pest.like(one)]
    return list({one.entry.id: one for one in on_crop}.values())


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
    subjects = _photo_subjects([*photos.values()], data.samples)
    return data.part(subjects, of["templates"], {"ip102": {"test_pictures": len(rows)}})


def _photo_file(path: Path, data: DataSet) -> SampleFile | None:
    """Return the picture's file, upright and in colour; None (counted as dropped) if it cannot be used."""
    try:
        picture = read_image(path, shown_as=path.name)
    except ToolError:
        data.dropped["unreadable"] += 1
        return None
    if min(picture.width, picture.height) < (least := data.layout["smallest_px"]):
        data.dropped[f"under {least} px"] += 1
        return None
    if path.read_bytes()[:2] == b"\xff\xd8":  # some that are called .jpg are none
        return data.originals.file(path, note=_NOTE)
    return data.originals.add_content(png_of(picture.pixels), ".png", note=_NOTE)


def _photo_subjects(photos: Sequence[PestPhoto], most: int) -> list[Subject]:
    """Return at most ``most`` subjects; kinds and crops take turns, so that even a few pictures cover all of them."""
    waiting: dict[str, list[PestPhoto]] = {}
    for photo in photos:
        waiting.setdefault(photo[1].crop, []).append(photo)
    crops = list(waiting)
    subjects: list[Subject] = []
    failed = 0
    for kind in cycle(_TURNS):
        group = next(
            (pictures for crop in crops if (pictures := _take_group(waiting[crop], kind))), []
        )
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
        taken = [pest for _, pest in group]
        if (
            len(group) < _PICTURES[kind]
            and _suits(photo[1], kind, taken)
            and not any(map(photo[1].like, taken))
        ):
            group.append(photo)
    if kind == "pest_damage" and len(group) < _PICTURES[kind]:
        return []
    for photo in group:
        waiting.remove(photo)
    return group


def _suits(pest: Pest, kind: str, taken: Sequence[Pest]) -> bool:
    match kind:
        case "pest_photo":
            return kb_names().is_on(pest.entry, pest.crop)
        case "pest_advice":
            has_facts = any(
                facts_about(pest.entry.id, topic) for topic in ("symptoms", "management")
            )
            return has_facts and kb_names().is_on(pest.entry, pest.crop)
        case "pest_damage" if (
            taken
        ):  # one that certainly does not cause the damage of the first, or the reverse
            return pest.entry.taxonomy.order is not None and _told_trait([*taken, pest]) != ""
        case "pest_damage":
            return pest.entry.taxonomy.order is not None and trait_of(pest) is not None
        case _:
            return pest.entry.taxonomy.order is not None


def _subject(number: int, kind: str, group: Sequence[PestPhoto]) -> Subject:
    rng = _rng_of(kind, *(str(file.sha256) for file, _ in group))
    together = _pair_words([pest for _, pest in group], rng)
    photos = [(file, (pest, together | _words_of(pest, rng))) for file, pest in group]

    def thing(file: SampleFile, known: tuple[Pest, Mapping[str, str]], _: int) -> Thing:
        pest, words = known
        truth = diagnosis_of(pest.label, pest.entry)
        if kind not in _LOOKED_UP:
            thought = f"I need to know which pest of {pest.crop} {file.name} shows."
            return photo_thing(file, _DIAGNOSE, truth, thought, words, kind="pest", crop=pest.crop)
        topic, query = _LOOKED_UP[kind]
        thought = f"I need to know which pest {file.name} shows."
        diagnosis = PlannedCall(
            _DIAGNOSE, {"image": file.name, "kind": "pest"}, truth, thought=thought
        )
        search: dict[str, Any] = {"query": query, "topic": topic}
        arguments: Arguments = {**search, "kb_id": ref(0, "best")}
        truth = exact_result(_LOOK_UP, {**search, "kb_id": pest.entry.id})
        thought = f"I need what is known of the {query} of the pest in {file.name}."
        return Thing(
            (file,), _LOOK_UP, arguments, truth, file.name, thought, words, before=(diagnosis,)
        )

    return photo_subject(f"ip102-{number}", photos, thing, {"crop": group[0][1].crop}, kind)


def _rng_of(*names: str) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(name.encode()) for name in names])


def trait_of(pest: Pest) -> str | None:
    """Return a kind of damage that the pest's entry mentions, or None."""
    symptoms = " ".join(claim.text for claim in pest.entry.claims_of("symptoms"))
    return next((word for word in TRAITS if word in symptoms), None)


def _words_of(pest: Pest, rng: np.random.Generator) -> dict[str, str]:
    """Return words about one pest: its names, alternatives to choose from, and its order and family among others.

    ``at`` is the index of its names in the results of a look-up on identification.
    """
    others = list(others_on(pest))
    shuffled = [others[int(place)] for place in rng.permutation(len(others))]
    offered = sorted(one.name for one in (pest, *shuffled[: _OFFERED - 1]))
    suspected = shuffled[0] if shuffled and rng.random() < 0.5 else pest
    order, family = pest.entry.taxonomy.order or "", pest.entry.taxonomy.family or ""
    families = dict.fromkeys(
        one.entry.taxonomy.family for one in shuffled if one.entry.taxonomy.family
    )
    near = [one for one in families if one != family][: _OFFERED - 1]
    other_orders = [one for one in rng.permutation(sorted(ORDERS)).tolist() if one != order][
        : _OFFERED - 1
    ]
    near_families = sorted([family, *near])
    # If there are fewer than four, the last is repeated, which does not change the choice.
    padded = [*near_families, *[near_families[-1]] * _OFFERED][:_OFFERED]
    return {
        "crop": pest.crop,
        "name": pest.name,
        "id": pest.entry.id,
        "names": JOINED.join(known_as(pest)),
        "others": JOINED.join(dict.fromkeys(one.name for one in shuffled[:_MOST_OTHERS])),
        "choices": JOINED.join(offered),
        "offered": listed(offered, "or"),
        "suspected": suspected.name,
        "suspected_id": suspected.entry.id,
        "order": order,
        "other_orders": JOINED.join(other_orders),
        "family": family,
        "families": str(len(near) + 1) if family else "0",
        "other_families": JOINED.join(near),
        "offered_families": listed(near_families, "or"),
        "at": "1" if pest.entry.claims_of("identification") else "0",
        "is_insect": str(order != "Trombidiformes"),
        **{
            f"order_{place}": one
            for place, one in enumerate(sorted([order, *other_orders]), start=1)
        },
        **{f"family_{place}": one for place, one in enumerate(padded, start=1)},
    }


def _pair_words(pests: Sequence[Pest], rng: np.random.Generator) -> dict[str, str]:
    sought = pests[int(rng.integers(len(pests)))]
    order, trait = sought.entry.taxonomy.order or "", _told_trait(pests)
    return {
        "sought": sought.name,
        "sought_id": sought.entry.id,
        "sought_order": order,
        "sought_order_means": ORDERS[order][0] if order else "",
        "trait_word": trait,
        "trait": TRAITS[trait]["en"] if trait else "",
    }


def _told_trait(pests: Sequence[Pest]) -> str:
    """Return a kind of damage of one of the pests that all others, by their orders, do not cause; empty if none."""
    for pest in pests:
        others = [one.entry.taxonomy.order for one in pests if one is not pest]
        if (trait := trait_of(pest)) and all(order in TRAITS[trait]["not"] for order in others):
            return trait
    return ""
