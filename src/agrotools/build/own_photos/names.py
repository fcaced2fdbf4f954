"""Names in a column of the table, and what the knowledge base and the tools call the same things."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from agrotools.build.own_photos.plan import Column
from agrotools.knowledge.entries import Entry, Kind
from agrotools.knowledge.kb_names import SHIPPED_LABELS, healthy_crop, healthy_label, kb_names
from agrotools.text.normalise import CJK
from agrotools.tools.recognition.candidates import is_negative
from agrotools.tools.recognition.diagnose_pest_disease import LabelEntries, entries_of_labels

_WEED_KINDS: tuple[Kind, ...] = ("weed", "crop")
_MOST_ALIASES = 6


@dataclass(frozen=True)
class ColumnNames:
    """The names in a column, resolved together: see :func:`entries_of_labels`."""

    column: Column
    labels: LabelEntries

    @classmethod
    def of(cls, column: Column, names: Iterable[str]) -> "ColumnNames":
        """Resolve all names in a column."""
        labels = sorted(set(names))
        if column.ask == "weed":
            entries = {name: kb_names().of_name(name, _WEED_KINDS) for name in labels}
            return cls(column, LabelEntries(entries))
        kind = column.ask if column.ask in ("disease", "pest") else "auto"
        return cls(column, entries_of_labels(labels, kind, column.crop, kb_names()))

    def entry_of(self, name: str) -> Entry | None:
        """Return the entry of a name, or None if there is none of that kind on the crop."""
        return None if self.is_healthy(name) else self.labels.entries[name]

    def is_healthy(self, name: str) -> bool:
        """Return True if a name among diseases, pests or classes means a healthy plant."""
        return healthy_crop(name) is not None and self.column.ask != "weed"

    def is_known(self, name: str) -> bool:
        """Return True if a name means a healthy plant or no weed, or the knowledge base has it (on any crop)."""
        is_meant = self.is_healthy(name) or self._is_no_weed(name) or name in self.labels.unclear
        return is_meant or self.entry_of(name) is not None

    def ids_of(self, name: str) -> tuple[str, ...]:
        """Return what the tool may call a thing: its entry, or its name in the table, the label of a pack."""
        if self.is_healthy(name):
            crop, key_of = healthy_crop(name) or self.labels.crop, kb_names().key_of_crop
            of_net = [on for on in _crops_of_the_net() if not crop or key_of(on) == key_of(crop)]
            plain = ["healthy"] if self.labels.crop or not crop else []
            return tuple(dict.fromkeys((str(healthy_label(name, crop)), *(f"{on}_healthy" for on in of_net), *plain)))
        entry = self.entry_of(name)
        best = entry.id if entry else "negative" if self._is_no_weed(name) else name
        return tuple(dict.fromkeys((best, name)))

    def _is_no_weed(self, name: str) -> bool:
        return self.column.ask == "weed" and is_negative(name)

    def test_of(self, names: Iterable[str]) -> str:
        """Return the rest of an expression that tests whether the tool's answer is one of ``names``."""
        ids = dict.fromkeys(known for name in names for known in self.ids_of(name))
        return f" in [{', '.join(map(repr, ids))}]"

    def english(self, name: str) -> str:
        """Return a name as used in questions: the table's own, or the English name of a Chinese one."""
        if self.is_healthy(name):
            return "a healthy leaf"
        entry = self.entry_of(name)
        return entry.names.en if entry and re.search(f"[{CJK}]", name) else _spaced(name)

    def chinese(self, name: str) -> str:
        """Return a name as used in Chinese questions."""
        if self.is_healthy(name):
            return "健康叶片"
        entry = self.entry_of(name)
        return entry.names.zh[0] if entry and entry.names.zh and not re.search(f"[{CJK}]", name) else _spaced(name)

    def aliases(self, own: str, others: Sequence[str]) -> list[str]:
        """Return aliases of a name that no other choice shares, padded with the name itself."""
        excluded = {other.casefold() for name in others for other in self._all_names(name)}
        aliases = dict.fromkeys((own, self.english(own), self.chinese(own), *self._all_names(own)))
        return [*(name for name in aliases if name.casefold() not in excluded), *[own] * _MOST_ALIASES][:_MOST_ALIASES]

    def _all_names(self, name: str) -> tuple[str, ...]:
        entry = self.entry_of(name)
        return (name, *(entry.names.all() if entry else ()))


@cache
def _crops_of_the_net() -> tuple[str, ...]:
    """Return the crops of which the shipped net knows healthy leaves."""
    labels = (label for entry in kb_names().entries for label in entry.names.datasets.get(SHIPPED_LABELS, ()))
    return tuple(sorted(filter(None, map(healthy_crop, labels))))


def kinds_of_name(name: str) -> set[Kind]:
    """Return the kinds of the entries that a name may stand for: "leaf spot" also for "leaf spot of bean"."""
    return {entry.kind for entry in kb_names().meant_by(name)}


def _spaced(name: str) -> str:
    return " ".join(name.replace("_", " ").split())
