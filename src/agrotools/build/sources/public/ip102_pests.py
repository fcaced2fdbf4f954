"""Classes of IP102: their published names, their crops, and their entries in the knowledge base.

Names keep the authors' spelling, by which entries are found; questions use the entry's common name. About one in five
names covers more than one species, such as "aphids": naming one of its members is right too, and the two are never
offered as alternatives.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from agrotools.build.sources.part import DataSet, listed
from agrotools.build.templates.key_facts import facts_about
from agrotools.build.templates.slot_draft import JOINED
from agrotools.core import ToolError
from agrotools.core.files import read_table
from agrotools.knowledge.entries import Entry
from agrotools.knowledge.kb_names import kb_names
from agrotools.vision.reading import RgbImage, read_image

_TABLES = read_table(Path(__file__).with_name("ip102.toml"))["layout"]
CLASSES: tuple[str, ...] = tuple(" ".join(name.split()) for name in _TABLES["classes"].split(";"))
"""Published names by label, 0 to 101."""
CROPS: tuple[str, ...] = tuple(crop for crop, count in _TABLES["crops"].items() for _ in range(count))
"""Crop of each label, as named in the knowledge base."""
ORDERS: Mapping[str, tuple[str, str]] = _TABLES["orders"]
"""Descriptions of insect orders, in English and Chinese."""
TRAITS: Mapping[str, Mapping[str, Any]] = _TABLES["traits"]
"""Kinds of damage, by the word that identifies them in an entry.

``en`` is a description; ``not`` lists orders that certainly do not cause it.
"""
UNKNOWN = ("pest.rice_shell_pest",)
"""Entries whose names do not identify an insect."""
_KEY = "ip102"
DIAGNOSE = "diagnose_pest_disease"
NOTE = "Photograph of a pest; egg, young and adult are called alike."
SMALLEST_PX = 64
"""Minimum length of the shorter side; some pictures are thumbnails of 52 px."""


@dataclass(frozen=True)
class Pest:
    """A class: ``label`` as published, the ``crop`` of its pictures, and its entry."""

    label: str
    crop: str
    entry: Entry

    @property
    def name(self) -> str:
        return self.entry.names.en

    @property
    def species(self) -> str | None:
        """Scientific name of a single species; None if the class is broader."""
        sci = self.entry.names.sci
        return None if sci is None or sci.endswith((" sp.", " spp.")) else sci

    def covers(self, other: "Pest") -> bool:
        """Return True if an answer that names ``other`` may be right for this class: the same, or one of this group."""
        if self.entry.id == other.entry.id:
            return True
        if self.species is not None:
            return False
        mine, theirs = self.entry.names.sci, other.entry.names.sci
        if mine is not None:
            return theirs is not None and theirs.split()[0] == mine.split()[0]
        family, order = self.entry.taxonomy.family, self.entry.taxonomy.order
        if family is not None:
            return other.entry.taxonomy.family == family
        return order is not None and other.entry.taxonomy.order == order

    def like(self, other: "Pest") -> bool:
        """Return True if one name might be right for both."""
        return self.covers(other) or other.covers(self)


@cache
def pests() -> dict[int, Pest]:
    """Return the classes by label, without those that have no entry or whose names do not identify an insect."""
    by_label = {label: entry for entry in kb_names().entries for label in entry.names.datasets.get(_KEY, ())}
    by_number = {number: by_label.get(name) for number, name in enumerate(CLASSES)}
    return {
        number: Pest(CLASSES[number], CROPS[number], entry)
        for number, entry in by_number.items()
        if entry is not None and entry.id not in UNKNOWN
    }


def known_as(pest: Pest) -> tuple[str, ...]:
    """Return every right name of a pest, its own first; for a group also the names of its members."""
    members = [one for one in pests().values() if one is not pest and pest.covers(one)]
    return tuple(dict.fromkeys(name for one in (pest, *members) for name in one.entry.names.all()))


def others_on(pest: Pest) -> Sequence[Pest]:
    """Return the other classes on its crop that cannot be confused with it, in the order of classes."""
    on_crop = [one for one in pests().values() if one.crop == pest.crop and not pest.like(one)]
    return list({one.entry.id: one for one in on_crop}.values())


_MOST_OTHERS = 9
_OFFERED = 4


def rng_of(*names: str) -> np.random.Generator:
    """Return a random generator that depends only on these names."""
    return np.random.default_rng([zlib.crc32(name.encode()) for name in names])


def readable(path: Path, data: DataSet) -> RgbImage | None:
    """Return a picture upright and in colour; None (counted as dropped) if it is unreadable or a thumbnail."""
    try:
        picture = read_image(path, shown_as=path.name)
    except ToolError:
        data.dropped["unreadable"] += 1
        return None
    if min(picture.width, picture.height) < SMALLEST_PX:
        data.dropped[f"under {SMALLEST_PX} px"] += 1
        return None
    return picture


def advice_topics(pest: Pest) -> tuple[str, ...]:
    """Return the topics on which a pest has key facts."""
    return tuple(topic for topic in ("symptoms", "management") if facts_about(pest.entry.id, topic))


def trait_of(pest: Pest) -> str | None:
    """Return a kind of damage that the pest's entry mentions, or None."""
    symptoms = " ".join(claim.text for claim in pest.entry.claims_of("symptoms"))
    return next((word for word in TRAITS if word in symptoms), None)


def words_of(pest: Pest, rng: np.random.Generator) -> dict[str, str]:
    """Return words about one pest: its names, alternatives to choose from, and its order and family among others.

    ``at`` is the index of its names in the results of a look-up on identification.
    """
    others = list(others_on(pest))
    shuffled = [others[int(place)] for place in rng.permutation(len(others))]
    offered = sorted([pest, *shuffled[: _OFFERED - 1]], key=lambda one: one.name)
    suspected = shuffled[0] if shuffled and rng.random() < 0.5 else pest
    taxonomy = pest.entry.taxonomy
    order, family = taxonomy.order or "", taxonomy.family or ""
    families = dict.fromkeys(one.entry.taxonomy.family for one in shuffled if one.entry.taxonomy.family)
    near = [one for one in families if one != family][: _OFFERED - 1]
    other_orders = [one for one in rng.permutation(sorted(ORDERS)).tolist() if one != order][: _OFFERED - 1]
    words = {
        "crop": pest.crop,
        "name": pest.name,
        "id": pest.entry.id,
        "names": JOINED.join(known_as(pest)),
        "others": JOINED.join(dict.fromkeys(one.name for one in shuffled[:_MOST_OTHERS])),
        "choices": JOINED.join(one.name for one in offered),
        "offered": listed([one.name for one in offered], "or"),
        "suspected": suspected.name,
        "suspected_id": suspected.entry.id,
        "order": order,
        "other_orders": JOINED.join(other_orders),
        "family": family,
        "families": str(len(near) + 1) if family else "0",
        "other_families": JOINED.join(near),
        "offered_families": listed(sorted([family, *near]), "or"),
        "at": "1" if pest.entry.claims_of("identification") else "0",
        "is_insect": str(order != "Trombidiformes"),
    }
    words |= {f"order_{place}": one for place, one in enumerate(sorted([order, *other_orders]), start=1)}
    near_families = sorted([family, *near])
    # If there are fewer than four, the last is repeated, which does not change the choice.
    padded = [*near_families, *[near_families[-1]] * _OFFERED][:_OFFERED]
    return words | {f"family_{place}": one for place, one in enumerate(padded, start=1)}


def pair_words(pests: Sequence[Pest], rng: np.random.Generator) -> dict[str, str]:
    """Return words about several pests: the pest, the order and the damage to look for."""
    sought = pests[int(rng.integers(len(pests)))]
    order = sought.entry.taxonomy.order or ""
    trait = next((word for one in pests if (word := trait_of(one)) and _alone(one, pests, word)), "")
    return {
        "sought": sought.name,
        "sought_id": sought.entry.id,
        "sought_order": order,
        "sought_order_means": ORDERS[order][0] if order else "",
        "trait_word": trait,
        "trait": TRAITS[trait]["en"] if trait else "",
    }


def _alone(pest: Pest, pests: Sequence[Pest], trait: str) -> bool:
    """Return True if the others belong to orders that certainly do not cause this damage."""
    return all(one is pest or one.entry.taxonomy.order in TRAITS[trait]["not"] for one in pests)
