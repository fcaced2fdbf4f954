"""Labels of recognisers and the matching entries of the knowledge base."""

from collections.abc import Collection, Iterable
from functools import lru_cache
from pathlib import Path

from agrotools.knowledge.entries import SHIPPED, Entry, Kind, kb_files, load, toml_files
from agrotools.knowledge.words import folded

SHIPPED_LABELS = "pool"
"""Key under which entries give the labels of the shipped nets."""


class KbNames:
    """Entries by every name they have. Names are compared folded (case, accents, ``_`` and ``-`` do not count)."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = tuple(entries)
        self._by_name: dict[str, list[Entry]] = {}
        self._by_label: dict[str, Entry] = {}
        for entry in self.entries:
            for name in dict.fromkeys(folded(name) for name in (*entry.names.all(), entry.slug)):
                self._by_name.setdefault(name, []).append(entry)
            for label in entry.names.datasets.get(SHIPPED_LABELS, ()):
                self._by_label.setdefault(label, entry)

    def of_shipped(self, label: str) -> Entry | None:
        """The entry of a label of the shipped nets."""
        return self._by_label.get(label)

    def of_name(self, name: str, kinds: Collection[Kind], crop: str | None = None) -> Entry | None:
        """The one entry of these kinds that has this name; None where there is none, or several.

        Where ``crop`` is known, "leaf spot" may also mean the entry called "bean leaf spot", and of several the one on
        that crop is meant.
        """
        matches = [entry for entry in self._by_name.get(folded(name), ()) if entry.kind in kinds]
        if crop is not None and len(matches) != 1:
            fuller = [entry for entry in self._by_name.get(folded(f"{crop} {name}"), ()) if entry.kind in kinds]
            matches = [entry for entry in matches if self.is_on(entry, crop)] or fuller
        return matches[0] if len(matches) == 1 else None

    def of_kinds(self, kinds: Collection[Kind], crop: str | None = None) -> list[Entry]:
        """The entries of these kinds, on ``crop`` where one is named."""
        return [entry for entry in self.entries if entry.kind in kinds and (crop is None or self.is_on(entry, crop))]

    def is_on(self, entry: Entry, crop: str) -> bool:
        """True if an entry concerns a crop, under any of its names."""
        return bool({_remove_spaces(name) for name in entry.crops} & self.crop_forms(crop))

    def key_of_crop(self, crop: str) -> str:
        """One name for a crop, whatever it is called: the id of its entry, else its singular."""
        plain = folded(crop)
        forms = {plain, plain.removesuffix("s"), plain.removesuffix("es")}
        for entry in self.entries:
            if entry.kind == "crop" and forms & {folded(name) for name in (*entry.names.all(), entry.slug)}:
                return entry.id
        return plain.removesuffix("s")

    def key_of_name(self, name: str, kinds: Collection[Kind]) -> str:
        """One name for a thing, by whatever name, or by the id, of its entry: that id, else the name folded."""
        plain = folded(name)
        entry = self.of_name(name, kinds) or next((each for each in self.entries if folded(each.id) == plain), None)
        return entry.id if entry else plain

    def crop_forms(self, crop: str) -> set[str]:
        """Names of a crop: the given one, its singular, and all names of its entry; without spaces."""
        plain = folded(crop)
        forms = {plain, plain.removesuffix("s"), plain.removesuffix("es")}
        for entry in self.entries:
            if entry.kind == "crop":
                crop_names = {folded(name) for name in (entry.names.en, *entry.names.all(), entry.slug)}
                if crop_names & forms:
                    forms |= crop_names
        return {_remove_spaces(form) for form in forms if form}


def kb_names() -> KbNames:
    """Names of the entries of this machine."""
    return _names_of_files(kb_files())


def shipped_names() -> KbNames:
    """Names of the entries that come with agrotools: the same on every machine."""
    return _names_of_files(tuple(toml_files(SHIPPED)))


@lru_cache(maxsize=2)
def _names_of_files(paths: tuple[Path, ...]) -> KbNames:
    return KbNames(load(paths).entries)


def _remove_spaces(name: str) -> str:
    return folded(name).replace(" ", "")
