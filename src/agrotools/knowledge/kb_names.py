"""Mapping of labels of recognisers to entries of the knowledge base."""

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from agrotools.knowledge.entries import Kind, KnowledgeEntry, kb_files, load, shipped_files
from agrotools.knowledge.foreign import english_crop, english_names, foreign_words
from agrotools.knowledge.words import folded

SHIPPED_LABELS = "pool"
"""Key under which entries list the labels of the shipped networks."""


class KbNames:
    """Entries by all their names. Names are compared folded (ignoring case, accents, ``_`` and ``-``)."""

    def __init__(self, entries: Iterable[KnowledgeEntry]) -> None:
        self.entries = tuple(entries)
        self._by_name: dict[str, list[KnowledgeEntry]] = {}
        self._by_label: dict[str, KnowledgeEntry] = {}
        self._by_id: dict[str, list[KnowledgeEntry]] = {}
        self._without_crop: dict[str, dict[str, KnowledgeEntry]] = {}
        self._forms: dict[str, set[str]] = {}
        self._crops: dict[str, int] = {}
        """Place in ``entries`` of the first crop that has a name."""
        for place, entry in enumerate(self.entries):
            self._by_id.setdefault(entry.id, []).append(entry)
            for name in dict.fromkeys(map(folded, (*entry.names.all(), entry.slug))):
                self._by_name.setdefault(name, []).append(entry)
                self._add_without_crop(name, entry)
                if entry.kind == "crop":
                    self._crops.setdefault(name, place)
            for label in entry.names.datasets.get(SHIPPED_LABELS, ()):
                self._by_label.setdefault(label, entry)
        self._add_listed_species()

    def _add_without_crop(self, name: str, entry: KnowledgeEntry) -> None:
        """Add a name without a crop of its entry: "leaf spot" of "bean leaf spot" or "leaf spot of bean"."""
        for crop in map(folded, entry.crops):
            short = name.removeprefix(f"{crop} ").removesuffix(f" of {crop}")
            if short != name:
                self._without_crop.setdefault(short, {})[entry.id] = entry

    def _add_listed_species(self) -> None:
        """Add each species of a list as a name of its entry, unless an entry has this name by itself."""
        listed: dict[str, list[KnowledgeEntry]] = {}
        for entry in self.entries:
            for name in map(folded, species_in(entry.names.sci)):
                listed.setdefault(name, []).append(entry)
        for name, entries in listed.items():
            self._by_name.setdefault(name, entries)

    def of_shipped(self, label: str) -> KnowledgeEntry | None:
        """Return the entry of a label of the shipped networks, or None."""
        return self._by_label.get(label)

    def all_of_name(self, name: str) -> Sequence[KnowledgeEntry]:
        """Return all entries that have this name, or else those of the English names that it stands for."""
        if known := self._by_name.get(folded(name)):
            return known
        named = (
            entry
            for english in english_names(name)
            for entry in self._by_name.get(folded(english), ())
        )
        return [*{entry.id: entry for entry in named}.values()]

    def of_name(
        self, name: str, kinds: Collection[Kind], crop: str | None = None
    ) -> KnowledgeEntry | None:
        """Return the single entry of these kinds that has this name, or None if there is none or more than one.

        With ``crop``, only entries on that crop are meant, and "leaf spot" may also mean "bean leaf spot".
        """
        matches = [entry for entry in self.all_of_name(name) if entry.kind in kinds]
        if crop is not None:
            on_crop = [entry for entry in matches if self.is_on(entry, crop)]
            matches = on_crop or [
                entry
                for entry in self.meant_by(name)
                if entry.kind in kinds and self.is_on(entry, crop)
            ]
        return matches[0] if len(matches) == 1 else None

    def meant_by(self, name: str) -> list[KnowledgeEntry]:
        """Return the entries that a name may mean on one crop or another: "leaf spot" also "leaf spot of bean"."""
        named = {entry.id: entry for entry in self.all_of_name(name)}
        # "roya" is a name of coffee rust, and of the rusts of other crops.
        for form in (name, *english_names(name)):
            named |= {entry.id: entry for entry in self._by_name.get(folded(form), ())}
            named |= self._without_crop.get(folded(form), {})
        return [*named.values()]

    def is_short_for(self, name: str, entry: KnowledgeEntry) -> bool:
        """Return True if a name is one of an entry without its crop: "cercospora" of "coffee cercospora"."""
        return entry.id in self._without_crop.get(folded(name), {})

    def of_kinds(self, kinds: Collection[Kind], crop: str | None = None) -> list[KnowledgeEntry]:
        """Return the entries of these kinds, only those on ``crop`` if it is given."""
        return [
            entry
            for entry in self.entries
            if entry.kind in kinds and (crop is None or self.is_on(entry, crop))
        ]

    def is_on(self, entry: KnowledgeEntry, crop: str) -> bool:
        """True if an entry concerns a crop, under any of its names."""
        if crop not in self._forms:
            self._forms[crop] = crop_forms(self.entries, crop)
        return not self._forms[crop].isdisjoint(map(_remove_spaces, entry.crops))

    def key_of_crop(self, crop: str) -> str:
        """Return a key that is equal for all names of a crop: the id of its entry, or else its singular."""
        places = [self._crops[form] for form in _singulars(crop) if form in self._crops]
        return self.entries[min(places)].id if places else folded(crop).removesuffix("s")

    def mean_same(self, first: str, second: str, crop: str | None = None) -> bool:
        """True if two labels or ids of diseases, pests, weeds, crops or healthy leaves mean the same thing.

        A name without its crop means the thing on ``crop``, or else on a crop of the other: "angular leaf spot" is
        "disease.bean_angular_leaf_spot".
        """
        if folded(first) == folded(second):
            return True
        healthy_first, healthy_second = healthy_crop(first), healthy_crop(second)
        if healthy_first is not None and healthy_second is not None:
            crops = {healthy_first or crop, healthy_second or crop}
            return len({self.key_of_crop(each) for each in crops if each}) < 2
        if healthy_first is not None or healthy_second is not None:
            return False
        if crop is not None:
            on = [crop] if crop else []
            return not self._ids(first, on).isdisjoint(self._ids(second, on))
        ids_of_first = self._ids(first, [])
        ids_of_second = self._ids(second, [])
        on_crops_of_second = self._ids(first, self._crops_of(ids_of_second))
        on_crops_of_first = self._ids(second, self._crops_of(ids_of_first))
        return not (ids_of_first | on_crops_of_second).isdisjoint(ids_of_second | on_crops_of_first)

    def knows(self, name: str) -> bool:
        """True if a name or id means a healthy plant or an entry, on one crop or another."""
        return healthy_crop(name) is not None or bool(self.meant_by(name) or self._ids(name, []))

    def _crops_of(self, ids: Iterable[str]) -> set[str]:
        return {crop for each in ids for entry in self._by_id[each] for crop in entry.crops}

    def _ids(self, name: str, crops: Iterable[str]) -> set[str]:
        """Return the ids of the diseases, pests, weeds and crops with a name, also after one of ``crops``."""
        # "Rost" on coffee is "coffee rust": the crop stands in English before the English name.
        forms = (name, *english_names(name))
        named = [
            *self.all_of_name(name),
            *(
                entry
                for on in crops
                for form in forms
                for entry in self.all_of_name(f"{on} {form}")
            ),
        ]
        if shipped := self.of_shipped(name):
            named.append(shipped)
        ids = {entry.id for entry in named if entry.kind != "method"}
        return ids or {name} & self._by_id.keys()

    def key_of_name(self, name: str, kinds: Collection[Kind]) -> str:
        """Return a key that is equal for all names of a thing: the id of its entry, or else the folded name."""
        plain = folded(name)
        entry = self.of_name(name, kinds) or next(
            (each for each in self.entries if folded(each.id) == plain), None
        )
        return entry.id if entry else plain


_SPECIES = re.compile(r"([A-Z][a-z]+|[A-Z]\.) [a-z-]+(?: (?:pv|f\. sp|subsp|var)\. [a-z-]+)?")
"""A species: its genus, perhaps as an initial, its epithet, and perhaps the form below the species."""


def species_in(scientific: str | None) -> list[str]:
    """Return each species of a scientific name of several: "Alternaria solani and A. linariae" has two.

    A name that is not a list of species gives none.
    """
    parts = re.split(r", | and ", scientific or "")
    matches = [_SPECIES.fullmatch(part) for part in parts]
    if len(parts) < 2 or not all(matches):
        return []
    genus = ""
    species = list[str]()
    for match in filter(None, matches):
        # An initial stands for the genus before it.
        genus = genus if match[1].endswith(".") else match[1]
        species.append(f"{genus} {match[0].partition(' ')[2]}")
    return species


_HEALTHY = ("no disease", "sound", "none", "健康", "无病", "正常")
_LEAF = re.compile(r"\b(?:an?|the|leaf|leaves|plants?)\b")


def healthy_crop(name: str) -> str | None:
    """Return the crop of a name that means a healthy plant, "" if it names no crop; None if it means another thing."""
    plain = folded(name)
    if plain in _HEALTHY:
        return ""
    words = _LEAF.sub(" ", plain).split()
    if "healthy" in (words[:1] + words[-1:]):
        return " ".join(word for word in words if word != "healthy")
    words = [word for word in words if word not in foreign_words("leaf") | foreign_words("joining")]
    healthy = foreign_words("healthy")
    if healthy.isdisjoint(words[:1] + words[-1:]):
        return None
    crop = " ".join(word for word in words if word not in healthy)
    # Other words than a crop are another thing: "planta sana con roya".
    return english_crop(crop) if crop else ""


def healthy_label(name: str, crop: str | None = None) -> str | None:
    """Return the label of a name that means a healthy plant ("bean_healthy", "healthy"), or None."""
    named = healthy_crop(name)
    if named is None:
        return None
    of = named or crop
    return f"{folded(of).replace(' ', '_')}_healthy" if of else "healthy"


def kb_names() -> KbNames:
    """Load the names of all entries on this machine."""
    return _names_of_files(kb_files())


def shipped_names() -> KbNames:
    """Load the names of the entries shipped with agrotools, which are the same on every machine."""
    return _names_of_files(shipped_files())


@lru_cache(maxsize=2)
def _names_of_files(paths: tuple[Path, ...]) -> KbNames:
    return KbNames(load(paths).entries)


def crop_forms(entries: Iterable[KnowledgeEntry], crop: str) -> set[str]:
    """Return the names of a crop without spaces: the given one, its singular, and all names of its entry."""
    forms = _singulars(crop)
    for entry in entries:
        if entry.kind == "crop":
            crop_names = {*map(folded, (*entry.names.all(), entry.slug))}
            forms |= crop_names if crop_names & forms else set()
    return {_remove_spaces(form) for form in forms if form}


def concerns(entry: KnowledgeEntry, forms: Collection[str]) -> bool:
    """True if an entry is that of a crop, or concerns it; ``forms``: see :func:`crop_forms`."""
    names = entry.names.all() if entry.kind == "crop" else entry.crops
    return any(_remove_spaces(name) in forms for name in names)


def _singulars(crop: str) -> set[str]:
    """Return the folded English name of a crop and what may be its singular."""
    plain = folded(english_crop(crop) or crop)
    berry = f"{plain.removesuffix('ies')}y" if plain.endswith("ies") else plain
    return {plain, plain.removesuffix("s"), plain.removesuffix("es"), berry}


def _remove_spaces(name: str) -> str:
    return folded(name).replace(" ", "")
