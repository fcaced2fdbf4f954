"""Indexes of the texts of entries: passages by BM25, and sentences on appearance.

Passages are the sections of an entry. The index of appearance serves questions that describe something without naming
it. Its units are sentences: each claim on symptoms or identification, and each phrase of ``described_as``. A question
is compared with single units (a sentence describes one thing), with all units of an entry, and with the pairs of nearby
words in them: "white powder" is not "black powder on white ears".
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.knowledge.entries import Claim, KnowledgeEntry, Passage, Section
from agrotools.knowledge.words import (
    asking_terms,
    folded,
    hosts_named,
    hosts_of,
    stem,
    terms,
    word_list,
)


@dataclass(frozen=True)
class Document:
    """Passage of an entry: all its claims of one section, or none for ``names``."""

    entry: int
    section: Passage
    claims: tuple[Claim, ...]


class SectionsIndex:
    """BM25 (Robertson and Zaragoza 2009; Lucene's variant) over passages, by ``bm25s``."""

    def __init__(self, entries: Sequence[KnowledgeEntry]) -> None:
        from bm25s import BM25

        self.documents: list[Document] = []
        for number, entry in enumerate(entries):
            self.documents.append(Document(number, "names", ()))
            sections: dict[Section, None] = dict.fromkeys(claim.section for claim in entry.claims)
            self.documents += [
                Document(number, section, entry.claims_of(section)) for section in sections
            ]
        corpus = [list(_words_of(entries[item.entry], item)) for item in self.documents]
        self._vocabulary = {word for words in corpus for word in words}
        self._bm25: Any = BM25(k1=1.2, b=0.6) if self._vocabulary else None
        if self._bm25 is not None:
            self._bm25.index(corpus, show_progress=False)
        entry_name_words = [frozenset(_name_words(entry)) for entry in entries]
        holding: dict[str, set[int]] = {}
        for at, (item, words) in enumerate(zip(self.documents, corpus, strict=True)):
            for word in entry_name_words[item.entry].union(words):
                holding.setdefault(word, set()).add(at)
        self._holding = {
            word: np.array(sorted(places), np.intp) for word, places in holding.items()
        }
        owners = np.array([item.entry for item in self.documents], np.intp)
        spread = {word: len(np.unique(owners[places])) for word, places in self._holding.items()}
        count = len(entries)
        self._idf = {word: log(1 + (count - n + 0.5) / (n + 0.5)) for word, n in spread.items()}
        self._strange = log(1 + (count + 0.5) / 0.5) if count else 1.0

    def weight(self, word: str) -> float:
        """Return the inverse document frequency of a word over entries; highest for an unknown word."""
        return self._idf.get(word, self._strange)

    def holding(self, word: str) -> NDArray[np.float64]:
        """Return 1 for passages that contain the word (names and crops of the entry included), else 0; (documents,)."""
        values = np.zeros(len(self.documents))
        if (places := self._holding.get(word)) is not None:
            values[places] = 1.0
        return values

    def scores(self, words: Sequence[str]) -> NDArray[np.float64]:
        """Return the BM25 score of each passage, (documents,)."""
        known = [word for word in words if word in self._vocabulary]
        if self._bm25 is None or not known:
            return np.zeros(len(self.documents))
        return np.asarray(self._bm25.get_scores(known), np.float64)


def _name_words(entry: KnowledgeEntry) -> list[str]:
    return [word for name in (*entry.names.all(), *entry.crops) for word in terms(name)]


def _words_of(entry: KnowledgeEntry, item: Document) -> list[str]:
    """Return the words of a passage, with the entry's names and crops, so that "management of X" finds it."""
    name_terms = [
        word
        for name in (entry.names.en, entry.names.sci or "", *entry.crops[:8])
        for word in terms(name)
    ]
    if item.section == "names":
        place = (value for value in entry.taxonomy.model_dump().values() if value)
        return [*_name_words(entry), *(word for text in place for word in terms(text))]
    return [
        *name_terms,
        *(word for claim in item.claims for word in terms(f"{claim.text} {claim.condition or ''}")),
    ]


FEATURES = (
    "share", "amount", "words", "unit", "pairs", "host", "other_host", "creature", "weed", "strange", "other_creature",
)  # fmt: skip
"""Features of a question and an entry.

* ``share``: share of the question's weight that the entry's sentences contain; ``amount``: that weight; ``words``:
  number
  of shared words.
* ``unit``: cosine with the nearest sentence; ``pairs``: shared pairs of words.
* ``host``: a host in the question is one of the entry's; ``other_host``: the question names hosts, but none of them is.
* ``creature``, ``weed``: +1 if question and entry are both about one, -1 if only the question is.
* ``strange``: share of the question's weight that no entry knows.
* ``other_creature``: the question names a sort of animal (a beetle, a fly) that the entry's sentences never mention.
"""
_COLUMN = {name: column for column, name in enumerate(FEATURES)}
_AMOUNT_UNIT, _WORDS_UNIT, _PAIRS_UNIT = 10.0, 5.0, 4.0
"""Weight, number of words and number of pairs that make features of 1; ``pairs`` is not larger."""
_REACH = 3
"""Largest distance, words, of the two words of a pair."""
_SHORTEST_NAME = 7
"""Characters that a name must exceed for a sentence that holds it to be one on another thing."""
_SECTIONS = ("symptoms", "identification")
_CREATURE = frozenset(term for word in word_list("creature") for term in terms(word))
_SORTS = frozenset(term for word in word_list("animal_kinds") for term in terms(word))
_WEED = frozenset(term for word in word_list("weed") for term in terms(word))


class AppearanceIndex:
    """Sentences on appearance, compared with questions."""

    def __init__(self, entries: Sequence[KnowledgeEntry]) -> None:
        entry_of_name = _names(entries)
        sentences = [
            (at, terms(text))
            for at, entry in enumerate(entries)
            for text in _sentences(entry, entry_of_name)
        ]
        owners, units = [at for at, _ in sentences], [unit for _, unit in sentences]
        self._hosts = [
            frozenset(host for crop in entry.crops for host in hosts_of(crop)) for entry in entries
        ]
        self._kinds = [entry.kind for entry in entries]
        self._count = len(entries)
        self._owners = np.array(owners, np.intp)
        terms_of_entries = [set[str]() for _ in entries]
        pairs = [set[tuple[str, str]]() for _ in entries]
        for owner, unit in zip(owners, units, strict=True):
            terms_of_entries[owner].update(unit)
            pairs[owner].update(_pairs(unit))
        spread = Counter(word for words in terms_of_entries for word in words)
        described = max(1, len(set(owners)))
        self._idf = {word: log(1 + (described - n + 0.5) / (n + 0.5)) for word, n in spread.items()}
        self._strange = log(1 + (described + 0.5) / 0.5)
        # Sorted, so that no order of a set, which is another in each process, decides the order of sums.
        self._column = {word: at for at, word in enumerate(sorted(spread))}
        every_pair = set[tuple[str, str]]().union(*pairs)
        self._pair_column = {pair: at for at, pair in enumerate(sorted(every_pair))}
        self._of_units = _incidence([set(unit) for unit in units], self._column)
        self._of_entries = _incidence(terms_of_entries, self._column)
        self._of_pairs = _incidence(pairs, self._pair_column)
        squares = np.array([self._idf[word] ** 2 for word in self._column], np.float64)
        self._unit_norms = np.sqrt(np.asarray(self._of_units @ squares)) if units else np.zeros(0)
        self.described = np.array([bool(words) for words in terms_of_entries], bool)

    def features(self, words: Sequence[tuple[str, ...]], query: str) -> NDArray[np.float64]:
        """Return the features of the question and each entry, (entries, features); see :data:`FEATURES`.

        Args:
            words: possible terms of each word of the question, empty for uninformative words.
            query: question as written.
        """
        out = np.zeros((self._count, len(FEATURES)))
        question_hosts, naming = hosts_named(query)
        looks = _described_words(words, naming)
        if not looks or not self._column:
            return out

        # Of each word the term that tells entries apart best, and its weight.
        best = [max(one, key=lambda term: self._idf.get(term, 0.0)) for one in looks]
        weights = {term: self._idf.get(term, self._strange) for term in best}
        total = sum(weights.values())
        vector = np.zeros(len(self._column))
        for term, weight in weights.items():
            if term in self._column:
                vector[self._column[term]] = weight

        similarity = np.asarray(self._of_entries @ vector)
        out[:, _COLUMN["share"]] = similarity / total
        out[:, _COLUMN["amount"]] = similarity / _AMOUNT_UNIT
        shared = np.asarray(self._of_entries @ (vector > 0).astype(float))
        out[:, _COLUMN["words"]] = shared / _WORDS_UNIT
        out[:, _COLUMN["unit"]] = self._nearest_unit(vector, weights)
        out[:, _COLUMN["pairs"]] = self._paired(tuple(best))

        if question_hosts:
            has_host = [bool(question_hosts & hosts) for hosts in self._hosts]
            has_other = [bool(hosts) and not question_hosts & hosts for hosts in self._hosts]
            out[:, _COLUMN["host"]] = has_host
            out[:, _COLUMN["other_host"]] = has_other
        if _CREATURE & weights.keys():
            out[:, _COLUMN["creature"]] = self._signs_of_kind("pest")
        if _WEED & weights.keys():
            out[:, _COLUMN["weed"]] = self._signs_of_kind("weed")
        strange = sum(weight for term, weight in weights.items() if term not in self._idf)
        out[:, _COLUMN["strange"]] = strange / total
        if sorts := _SORTS & weights.keys():
            out[:, _COLUMN["other_creature"]] = ~self._mentions_any(sorts)
        out[~self.described] = 0.0
        return out

    def _nearest_unit(
        self, vector: NDArray[np.float64], weights: Mapping[str, float]
    ) -> NDArray[np.float64]:
        """Return the cosine of the question with the nearest sentence of each entry, (entries,)."""
        shared = np.asarray(self._of_units @ (vector * vector))
        norm = float(np.sqrt(sum(weight**2 for weight in weights.values())))
        cosines = shared / np.maximum(1e-9, self._unit_norms * norm)
        nearest = np.zeros(self._count)
        np.maximum.at(nearest, self._owners, cosines)
        return nearest

    def _signs_of_kind(self, kind: str) -> list[float]:
        """Return 1 for entries of a kind, -1 for others."""
        return [1.0 if each == kind else -1.0 for each in self._kinds]

    def _mentions_any(self, wanted: Set[str]) -> NDArray[np.bool_]:
        """Return True for entries whose sentences have one of the terms, (entries,)."""
        columns = [self._column[term] for term in wanted if term in self._column]
        if not columns:
            return np.zeros(self._count, bool)
        counts = np.asarray(self._of_entries[:, columns].sum(axis=1)).ravel()
        return counts != 0

    def _paired(self, best: tuple[str, ...]) -> NDArray[np.float64]:
        columns = {self._pair_column[pair] for pair in _pairs(best) if pair in self._pair_column}
        if not columns:
            return np.zeros(self._count)
        vector = np.zeros(len(self._pair_column))
        vector[list(columns)] = 1.0
        return np.minimum(1.0, np.asarray(self._of_pairs @ vector) / _PAIRS_UNIT)


def _described_words(
    words: Sequence[tuple[str, ...]], naming_hosts: Collection[int]
) -> list[tuple[str, ...]]:
    """Return the words of a question that describe something: informative ones that neither ask nor name a host.

    Hosts count by their own feature; otherwise a host in every sentence would outweigh the described appearance.
    """
    asking = asking_terms()
    described: list[tuple[str, ...]] = []
    for place, word_terms in enumerate(words):
        if not word_terms or place in naming_hosts:
            continue
        if not all(term in asking for term in word_terms):
            described.append(word_terms)
    return described


def _sentences(entry: KnowledgeEntry, entry_of_name: Mapping[str, str]) -> Iterator[str]:
    """Yield sentences on appearance, without those on other things that it may be mistaken for."""
    if entry.kind in ("crop", "method"):
        return
    for claim in entry.claims:
        if claim.section in _SECTIONS:
            parts = _PART.findall(claim.text)
            own_parts = [part for part in parts if not _is_of_another(part, entry, entry_of_name)]
            if own_parts:
                yield claim.text if len(own_parts) == len(parts) else "".join(own_parts)
    yield from entry.described_as


_PART = re.compile(r"[^;.]+[;.]?")


def _names(entries: Sequence[KnowledgeEntry]) -> dict[str, str]:
    """Map names of two words or more to entry ids; an empty id for names of several entries."""
    entry_of_name: dict[str, str] = {}
    for entry in entries:
        if entry.kind in ("pest", "disease", "weed"):
            for name in entry.names.all():
                form = " ".join(map(stem, folded(name).split()))
                if " " in form and len(form) > _SHORTEST_NAME:
                    entry_of_name[form] = (
                        entry.id if entry_of_name.get(form, entry.id) == entry.id else ""
                    )
    return entry_of_name


def _is_of_another(text: str, entry: KnowledgeEntry, entry_of_name: Mapping[str, str]) -> bool:
    words = [stem(word) for word in folded(text).split()]
    spans = ((at, at + size) for size in (2, 3, 4) for at in range(len(words) - size + 1))
    owners = [
        entry_of_name[form]
        for start, end in spans
        if (form := " ".join(words[start:end])) in entry_of_name
    ]
    return bool(owners) and all(other and other != entry.id for other in owners)


def _pairs(unit: Sequence[str]) -> Iterator[tuple[str, str]]:
    for at, one in enumerate(unit):
        for other in unit[at + 1 : at + 1 + _REACH]:
            if one != other:
                yield (one, other) if one < other else (other, one)


def _incidence(rows, columns):
    """Return a sparse matrix (rows, columns) with 1 for each column that a row contains."""
    from scipy.sparse import csr_matrix

    indices = [columns[item] for row in rows for item in sorted(row)]
    starts = np.cumsum([0, *(len(row) for row in rows)])
    shape = len(rows), max(1, len(columns))
    return csr_matrix((np.ones(len(indices)), np.array(indices, np.intp), starts), shape=shape)
