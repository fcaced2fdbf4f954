"""Answering a question from the knowledge base: which entries, which passages, or honestly nothing.

Three rankings of the entries (names by letters, names by n-grams of characters, passages by BM25; with the back-end
``embed`` a fourth, by sentence embeddings) are fused by reciprocal ranks (Cormack, Clarke and Buettcher 2009). Whether
the best is what was asked for is decided apart, by how well the question's words are accounted for: a base always has
a nearest article, and the nearest wrong article is worse than none.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agrotools.knowledge.entry import Coverage, Entry, Kind, Section
from agrotools.knowledge.names_index import NameMatch, NamesIndex
from agrotools.knowledge.sections_index import Document, SectionsIndex
from agrotools.knowledge.words import asking_terms, folded, stem, terms

_RRF_K = 60
_CONSIDERED = 25


@dataclass(frozen=True)
class Hit:
    """A passage of an entry. ``score``: how well the question is accounted for, 0 to 1."""

    entry: Entry
    document: Document
    score: float


@dataclass(frozen=True)
class Evidence:
    """Why an entry may be what was asked for.

    ``name``: similarity of its best name to words of the question; ``covered``: share of the question's telling words
    (by weight) that the entry accounts for; ``mass``: their weight together.
    """

    entry: int
    name: float
    covered: float
    mass: float
    rank_score: float
    score: float
    accepted: bool


class KnowledgeIndex:
    """An index over entries. Built once, then asked often; nothing in it changes."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = tuple(entries)
        self.names = NamesIndex(self.entries)
        self.sections = SectionsIndex(self.entries)
        self._of_entry: list[list[int]] = [[] for _ in self.entries]
        for at, item in enumerate(self.sections.documents):
            self._of_entry[item.entry].append(at)
        self._number = {entry.id: number for number, entry in enumerate(self.entries)}

    def get(self, kb_id: str) -> Entry | None:
        number = self._number.get(kb_id)
        return None if number is None else self.entries[number]

    def search(
        self,
        query: str,
        *,
        topic: Section | None = None,
        kind: Kind | None = None,
        crop: str | None = None,
        kb_id: str | None = None,
        top_k: int = 3,
        meaning: NDArray[np.float64] | None = None,
    ) -> list[Hit]:
        """The passages that answer the question, best first; none where the base does not hold what is asked for.

        Args:
            topic: passages on this section only; an entry that has none gives its names.
            kind, crop: entries of that kind, or on that crop (by any of its names), only.
            kb_id: passages of this entry only; then nothing is ever "not found".
            top_k: passages at most.
            meaning: (entries,) similarity in meaning, of the back-end ``embed``.
        """
        if kb_id is not None:
            return self._passages([self._number[kb_id]], [1.0], query, topic, top_k)
        allowed = self._allowed(kind, crop)
        found = [item for item in self.evidence(query, allowed, meaning, crop) if item.accepted]
        if not found:
            return []
        best = found[0]
        kept = [item for item in found if item.score >= best.score - _NEAR and (best.name < 1.0 or item.name >= 1.0)]
        kept = kept[:top_k]
        return self._passages([item.entry for item in kept], [item.score for item in kept], query, topic, top_k)

    def evidence(
        self,
        query: str,
        allowed: NDArray[np.bool_] | None = None,
        meaning: NDArray[np.float64] | None = None,
        crop: str | None = None,
    ) -> list[Evidence]:
        """The entries that may be asked for, best first, accepted or not."""
        if allowed is None:
            allowed = np.ones(len(self.entries), bool)
        matches = {number: match for number, match in self.names.matches(query).items() if allowed[number]}
        whole = self.names.exact(query)
        words = terms(query)
        passages = self.sections.scores(words)
        by_text = np.array([max((passages[at] for at in own), default=0.0) for own in self._of_entry])
        by_grams = self.names.gram_scores(query)
        by_name = np.zeros(len(self.entries))
        for number, match in matches.items():
            by_name[number] = match.similarity * (match.end - match.start + 4) / (match.end - match.start + 5)
        rankings = [by_name, by_grams, by_text, *([] if meaning is None else [meaning])]
        fused = np.zeros(len(self.entries))
        for values in rankings:
            fused += _reciprocal_ranks(np.where(allowed, values, 0.0))
        order = [int(at) for at in np.argsort(-fused, kind="stable")[:_CONSIDERED] if fused[at] > 0]
        found = [
            self._weighed(query, number, matches.get(number), number in whole, float(fused[number]), crop)
            for number in order
        ]
        return sorted(found, key=lambda item: (-item.score, -item.rank_score))

    def _weighed(
        self, query: str, number: int, match: NameMatch | None, whole: bool, rank: float, crop: str | None
    ) -> Evidence:
        said = folded(query).split()
        own, asking = self.sections.words[number], asking_terms()
        inside = range(match.start, match.end) if match else range(0)
        total = held = 0.0
        for at, word in enumerate(said):
            for term in terms(word):
                if at in inside and match:
                    weight = self.sections.weight(term) if match.similarity == 1 else _typo_weight(self.sections, match)
                    credit = match.similarity
                elif term in asking:
                    continue
                else:
                    weight, credit = self.sections.weight(term), float(term in own)
                total += weight
                held += weight * credit
        name = 1.0 if whole else match.similarity if match else 0.0
        covered = 1.0 if whole else held / total if total else 0.0
        score = decide(name, covered, held)
        return Evidence(number, name, covered, held, rank, score, score >= ACCEPTED)

    def _allowed(self, kind: Kind | None, crop: str | None) -> NDArray[np.bool_]:
        allowed = np.ones(len(self.entries), bool)
        if kind is not None:
            allowed &= np.array([entry.kind == kind for entry in self.entries], bool)
        if crop is not None:
            forms = self.crop_forms(crop)
            allowed &= np.array([self._concerns(entry, forms) for entry in self.entries], bool)
        return allowed

    def crop_forms(self, crop: str) -> frozenset[str]:
        """The names, folded and stemmed, under which entries may know a crop: those of its own entry too."""
        form = _form(crop)
        forms = {form}
        for entry in self.entries:
            if entry.kind == "crop" and form in (names := {_form(name) for name in entry.names.all()}):
                forms |= names
        return frozenset(forms)

    def _concerns(self, entry: Entry, forms: frozenset[str]) -> bool:
        if entry.kind == "crop":
            return any(_form(name) in forms for name in entry.names.all())
        return any(_form(name) in forms for name in entry.crops)

    def _passages(
        self, numbers: Sequence[int], scores: Sequence[float], query: str, topic: Section | None, top_k: int
    ) -> list[Hit]:
        """The best passage of each entry; where that leaves room, the other passages of the first."""
        values = self.sections.scores(terms(query))
        hits: list[Hit] = []
        spare: list[Hit] = []
        for number, score in zip(numbers, scores, strict=True):
            ordered = self._ordered(number, values, topic)
            hits += [Hit(self.entries[number], self.sections.documents[at], score) for at in ordered[:1]]
            if not spare:
                spare = [Hit(self.entries[number], self.sections.documents[at], score) for at in ordered[1:]]
        return [*hits[:1], *spare, *hits[1:]][:top_k] if len(hits) == 1 else hits[:top_k]

    def _ordered(self, number: int, values: NDArray[np.float64], topic: Section | None) -> list[int]:
        own = self._of_entry[number]
        if topic is not None:
            of_topic = [at for at in own if self.sections.documents[at].section == topic]
            return of_topic or own[:1]
        told = [at for at in own if self.sections.documents[at].section != "names"]
        return [*sorted(told, key=lambda at: -values[at]), own[0]]


_NEAR = 0.12
"""Entries whose score lies further below the best are not shown."""
ACCEPTED = 0.5
"""A score from which on the entry is taken to be what was asked for."""


def decide(name: float, covered: float, mass: float) -> float:
    """The chance that an entry is what was asked for, from the evidence; chosen on development questions."""
    return name * covered


def _typo_weight(sections: SectionsIndex, match: NameMatch) -> float:
    """A misspelt word has no weight of its own: it takes the mean weight of the name's words."""
    found = [sections.weight(term) for term in terms(match.name)]
    return sum(found) / len(found) if found else 1.0


def _form(name: str) -> str:
    return " ".join(map(stem, folded(name).split()))


def _reciprocal_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) 1 / (60 + rank) for what has a positive value, 0 for the rest; equal values share the better rank."""
    ordered = np.sort(values)[::-1]
    ranks = np.searchsorted(-ordered, -values, side="left") + 1
    return np.where(values > 0, 1.0 / (_RRF_K + ranks), 0.0)


def closest_ids(kb_id: str, ids: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """The ids that look most like ``kb_id``."""
    from agrotools.knowledge.edits import similarity

    asked = folded(kb_id[:120])
    return tuple(sorted(ids, key=lambda known: (-_id_likeness(asked, folded(known), similarity), known))[:count])


def _id_likeness(asked: str, known: str, similarity) -> float:
    shared = len(set(asked.split()) & set(known.split())) / max(1, len(asked.split()))
    return similarity(asked, known) + 0.3 * shared


__all__ = ["ACCEPTED", "Coverage", "Evidence", "Hit", "KnowledgeIndex", "closest_ids", "decide"]
