"""What the entries say, section by section, for BM25, and which words each entry knows at all."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from agrotools.knowledge.entry import Claim, Entry, Section
from agrotools.knowledge.words import terms

Passage = Literal[Section, "names"]
"""A section, or what every entry has: its names, crops and place in the system."""


@dataclass(frozen=True)
class Document:
    """One passage of one entry: all its claims on one section, or none for ``names``."""

    entry: int
    section: Passage
    claims: tuple[Claim, ...]


def documents(entries: Sequence[Entry]) -> list[Document]:
    """The passages of the entries, in their order, each entry's names first."""
    found: list[Document] = []
    for number, entry in enumerate(entries):
        found.append(Document(number, "names", ()))
        sections: dict[Section, None] = dict.fromkeys(claim.section for claim in entry.claims)
        found += [Document(number, section, entry.claims_of(section)) for section in sections]
    return found


class SectionsIndex:
    """BM25 (Robertson and Zaragoza 2009; Lucene's variant) over passages, by ``bm25s``."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        from bm25s import BM25

        self.documents = documents(entries)
        corpus = [list(_words_of(entries[item.entry], item)) for item in self.documents]
        self._vocabulary = {word for words in corpus for word in words}
        self._bm25: Any = BM25(k1=1.2, b=0.6) if self._vocabulary else None
        if self._bm25 is not None:
            self._bm25.index(corpus, show_progress=False)
        named = [frozenset(_name_words(entry)) for entry in entries]
        holding: dict[str, set[int]] = {}
        for at, (item, words) in enumerate(zip(self.documents, corpus, strict=True)):
            for word in named[item.entry].union(words):
                holding.setdefault(word, set()).add(at)
        self._holding = {word: np.array(sorted(found), np.intp) for word, found in holding.items()}
        owners = np.array([item.entry for item in self.documents], np.intp)
        spread = {word: len(np.unique(owners[found])) for word, found in self._holding.items()}
        count = len(entries)
        self._idf = {word: log(1 + (count - n + 0.5) / (n + 0.5)) for word, n in spread.items()}
        self._strange = log(1 + (count + 0.5) / 0.5) if count else 1.0

    def weight(self, word: str) -> float:
        """How much a word tells: its inverse document frequency over entries; the most for one that no entry has."""
        return self._idf.get(word, self._strange)

    def holding(self, word: str) -> NDArray[np.float64]:
        """(documents,) 1 where a passage, or a name or crop of its entry, has the word."""
        values = np.zeros(len(self.documents))
        if (found := self._holding.get(word)) is not None:
            values[found] = 1.0
        return values

    def scores(self, words: Sequence[str]) -> NDArray[np.float64]:
        """(documents,) BM25 of each passage."""
        known = [word for word in words if word in self._vocabulary]
        if self._bm25 is None or not known:
            return np.zeros(len(self.documents))
        return np.asarray(self._bm25.get_scores(known), np.float64)


def _name_words(entry: Entry) -> list[str]:
    return [word for name in (*entry.names.all(), *entry.crops) for word in terms(name)]


def _words_of(entry: Entry, item: Document) -> list[str]:
    """Every passage carries the entry's names and crops, so that "management of X" finds it among all on management."""
    named = [word for name in (entry.names.en, entry.names.sci or "", *entry.crops[:8]) for word in terms(name)]
    if item.section == "names":
        place = (value for value in entry.taxonomy.model_dump().values() if value)
        return [*_name_words(entry), *(word for text in place for word in terms(text))]
    return [*named, *(word for claim in item.claims for word in terms(f"{claim.text} {claim.condition or ''}"))]
