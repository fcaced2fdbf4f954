"""Retrieval from the knowledge base: entries and passages that answer a question, or none.

Three rankings of the entries (names by letters, names by character n-grams, passages by BM25) are fused by reciprocal
ranks (Cormack, Clarke and Buettcher 2009). Acceptance of the best entry is decided separately, by the share of the
question's words that it accounts for: there is always a nearest article, and a wrong article is worse than none. Pests,
diseases and weeds that are described but not named are found by their appearance
(:mod:`agrotools_tools.lookup.text_index`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agrotools.knowledge.entries import Kind, KnowledgeEntry, Loaded, Section, kb_files, load
from agrotools.knowledge.foreign import english_names
from agrotools.knowledge.kb_names import SHIPPED_LABELS, KbNames, concerns, crop_forms
from agrotools.knowledge.names import NameMatch, NamesIndex
from agrotools.knowledge.other_names import (
    foreign_words,
    is_group,
    own_words,
    words_before,
    words_behind,
)
from agrotools.knowledge.words import (
    ASKING,
    STOPWORDS,
    asking_terms,
    folded,
    section_asked,
    similarity,
    stem,
    terms,
    tokens,
)
from agrotools_tools.lookup.evidence import (
    ACCEPTED,
    LONGEST_NAME,
    MOST_OF_A_CROP,
    NAMED_ALIKE,
    NEAR,
    OF_GROUP,
    OTHER,
    RANK_WEIGHT,
    SLIP,
    accepts,
    by_looks,
    by_name,
    by_words,
)
from agrotools_tools.lookup.text_index import AppearanceIndex, Document, SectionsIndex

_RRF_K = 60
_CONSIDERED = 25
_NOT_LOOKS = frozenset({"management", "thresholds", "causes", "life_cycle"})
"""Sections that do not describe appearance."""
_LOOKS_RANK = 0.03
"""Rank score of an entry found by its appearance; fused ranks would undo the order by appearance."""


@dataclass(frozen=True)
class Hit:
    """Passage of an entry. ``score``: degree to which the question is accounted for, 0 to 1."""

    entry: KnowledgeEntry
    document: Document
    score: float


@dataclass(frozen=True)
class EntryEvidence:
    """Evidence that a question is about an entry.

    ``name``: similarity of its best name to words of the question; ``covered``: share of the question's informative
    words (by weight) that the entry accounts for; ``matched``: number of these words.
    """

    entry: int
    name: float
    covered: float
    matched: int
    rank_score: float
    score: float
    accepted: bool


@dataclass(frozen=True)
class _Word:
    """Word of a question: the terms that match it, the credit of a match, its weight, and True if it only asks."""

    terms: tuple[str, ...]
    credit: float
    weight: float
    asks: bool


def _english_names(entry: KnowledgeEntry) -> tuple[str, ...]:
    return entry.names.en, *entry.names.aliases


def _name_words(text: str) -> frozenset[str]:
    """Return the stems of the words of a name, or of those of a question that may be some; synonyms stay apart."""
    return frozenset(stem(word) for word in tokens(text) if word not in STOPWORDS | ASKING)


class KnowledgeIndex:
    """Index over entries. It is built once and immutable."""

    def __init__(self, entries: Sequence[KnowledgeEntry]) -> None:
        self.entries = tuple(entries)
        self.names = NamesIndex(self.entries)
        self.sections = SectionsIndex(self.entries)
        self.looks = AppearanceIndex(self.entries)
        self._of_entry: list[list[int]] = [[] for _ in self.entries]
        for at, item in enumerate(self.sections.documents):
            self._of_entry[item.entry].append(at)
        self._owners = np.array([item.entry for item in self.sections.documents], np.intp)
        self._starts = np.array([places[0] for places in self._of_entry], np.intp)
        self._passages_each = np.array([len(places) for places in self._of_entry], np.intp)
        self._own_words = [own_words(entry) for entry in self.entries]
        self._groups = [is_group(entry) for entry in self.entries]
        self._number = {entry.id: number for number, entry in enumerate(self.entries)}

    def get(self, kb_id: str) -> KnowledgeEntry | None:
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
    ) -> list[Hit]:
        """Return the passages that answer the question, best first; empty if the base does not have the answer.

        Args:
            topic: only passages of this section; an entry without it gives its names, and identification gives both.
            kind: only entries of this kind.
            crop: only entries on this crop (by any of its names).
            kb_id: only passages of this entry; then the result is never empty.
            top_k: maximum number of passages.
        """
        if kb_id is not None:
            return self._passages([self._number[kb_id]], [1.0], query, topic, top_k)
        allowed = self._allowed(kind, crop)
        # A name in another language is searched by the English names that it stands for.
        asked = (query,) if self.names.exact(query) else english_names(query) or (query,)
        found = [item for each in asked for item in self.evidence(each, allowed) if item.accepted]
        if not found:
            return self._of_foreign_name(query, allowed, topic, top_k)
        best_of = {item.entry: item for item in sorted(found, key=lambda item: item.score)}
        accepted = (
            found if len(asked) == 1 else sorted(best_of.values(), key=lambda item: -item.score)
        )
        best = accepted[0]
        near = (item for item in accepted if item.score >= best.score - NEAR)
        closest = [item for item in near if best.name < 1.0 or item.name >= 1.0][:top_k]
        return self._passages(
            [item.entry for item in closest], [item.score for item in closest], query, topic, top_k
        )

    def _of_foreign_name(
        self, query: str, allowed: NDArray[np.bool_], topic: Section | None, top_k: int
    ) -> list[Hit]:
        """Return passages on the things that a general name in another language may mean: "ferrugem" any rust.

        Those of which the shipped networks have pictures come first: they are the commonest.
        """
        meant = self._kb_names.meant_by(query) if english_names(query) else []
        numbers = [self._number[entry.id] for entry in meant if allowed[self._number[entry.id]]]
        numbers.sort(key=lambda number: SHIPPED_LABELS not in self.entries[number].names.datasets)
        chosen = numbers[:top_k]
        return self._passages(chosen, [ACCEPTED] * len(chosen), query, topic, top_k)

    @cached_property
    def _kb_names(self) -> KbNames:
        return KbNames(self.entries)

    def similarly_named(
        self, query: str, *, kind: Kind | None = None, crop: str | None = None
    ) -> list[KnowledgeEntry]:
        """Return up to three entries whose name is part of another's in the question (webworm in fall webworm)."""
        words, allowed = folded(query).split(), self._allowed(kind, crop)
        scores: dict[int, float] = {}
        for number, ways in self.names.matches(query).items():
            ways_by_name = [way for way in ways if self._as_named(way, number, words).other]
            if (
                ways_by_name
                and allowed[number]
                and self.entries[number].kind not in ("crop", "method")
            ):
                scores[number] = max(way.similarity * (way.end - way.start) for way in ways_by_name)
        return [
            self.entries[number]
            for number in sorted(scores, key=lambda number: (-scores[number], number))[:3]
        ]

    def with_words_in_name(
        self, query: str, *, kind: Kind | None = None, crop: str | None = None
    ) -> list[KnowledgeEntry]:
        """Return the entries with all words of the question in one English name ("rust": leaf rust of coffee)."""
        words, allowed = _name_words(query), self._allowed(kind, crop)
        if not words:
            return []
        return [
            entry
            for number, entry in enumerate(self.entries)
            if allowed[number] and any(words <= _name_words(name) for name in _english_names(entry))
        ]

    def evidence(self, query: str, allowed: NDArray[np.bool_] | None = None) -> list[EntryEvidence]:
        """Return the evidence for candidate entries, best first, accepted or not."""
        allowed = self._allowed(None, None) if allowed is None else allowed
        question = self._question(query)
        matches = {
            number: match for number, match in self.names.matches(query).items() if allowed[number]
        }
        whole = self.names.parts(query) | dict.fromkeys(self.names.exact(query), 1.0)
        words = folded(query).split()
        looks, chances = by_looks(
            self.looks.features([word.terms for word in question], query), allowed
        )
        credits, shares = self._credits(question)
        passages = self.sections.scores([term for word in question for term in word.terms])
        text_scores = np.maximum.reduceat(passages, self._starts) if len(self.entries) else passages
        name_scores = np.zeros(len(self.entries))
        for number, ways in matches.items():
            name_scores[number] = max(way.similarity * (way.end - way.start) for way in ways)
        rankings = (name_scores, self.names.gram_scores(query), text_scores)
        fused = np.sum(
            [_reciprocal_ranks(np.where(allowed, values, 0.0)) for values in rankings], axis=0
        )
        order = dict.fromkeys(number for number in sorted(whole) if allowed[number])
        for values in (np.where(allowed, shares, 0.0), fused, chances):
            best = np.argsort(-values, kind="stable")[:_CONSIDERED]
            order |= dict.fromkeys(int(at) for at in best if values[at] > 0)
        found = [
            self._best_evidence(
                query,
                question,
                number,
                credits[:, number],
                [self._as_named(way, number, words) for way in matches.get(number, [])],
                whole.get(number),
                float(fused[number]),
                float(chances[number]) if self.looks.described[number] else None,
            )
            for number in order
        ]

        def rank_of(item: EntryEvidence) -> float:
            return (
                _LOOKS_RANK
                if not item.name and self.looks.described[item.entry]
                else item.rank_score
            )

        return sorted(
            found,
            key=lambda item: (-(item.score + RANK_WEIGHT * rank_of(item)), -looks[item.entry]),
        )

    def _question(self, query: str) -> list[_Word]:
        """Return the words of a question with their matching terms and weights."""
        asking = asking_terms()
        question: list[_Word] = []
        for word in folded(query).split():
            meant, credit, weigh = terms(word), 1.0, sum
            if instead := tuple(
                term for other in self.names.lexicon.corrections(word) for term in terms(other)
            ):
                # A slip has the weight of the rarest word it may stand for; a match of a more common word counts less.
                meant, credit, weigh = instead, SLIP, max
            weight = weigh(map(self.sections.weight, meant))
            question.append(
                _Word(meant, credit, weight, asks=all(term in asking for term in meant))
            )
        return question

    def _best_evidence(
        self,
        query: str,
        question: Sequence[_Word],
        number: int,
        credits: NDArray[np.float64],
        ways: Sequence[NameMatch],
        whole: float | None,
        rank: float,
        chance: float | None,
    ) -> EntryEvidence:
        """Return the strongest evidence for an entry, from its names in the question or from words alone.

        Entries with a described appearance are scored by ``chance``, their probability by appearance; methods and crops
        by any of their words.
        """
        if whole is not None:
            return EntryEvidence(number, whole, 1.0, 1, rank, whole, True)
        best: EntryEvidence | None = None
        is_diagnostic = section_asked(query) in _NOT_LOOKS
        kind = self.entries[number].kind
        # A short question is a name; other mentions in the entry ("not to be mistaken for") do not answer it.
        relative = (
            any(way.other for way in ways)
            and sum(not word.asks for word in question) <= LONGEST_NAME
        )
        for way in (None, *ways):
            total = covered_weight = 0.0
            matched: set[tuple[str, ...]] = set()
            for at, (word, credit) in enumerate(zip(question, credits, strict=True)):
                if way is not None and way.start <= at < way.end:
                    weight, gained = max(word.weight, 1.0), way.similarity
                elif word.asks:
                    continue
                else:
                    weight, gained = word.weight, credit
                total += weight
                covered_weight += weight * gained
                if gained > 0:
                    matched.add(word.terms)
            covered = float(covered_weight / total) if total else 0.0
            if way is None:
                score = by_words(covered, len(matched))
                if kind == "crop":  # descriptions share words with many crops
                    score = min(score, MOST_OF_A_CROP, score if is_diagnostic else covered)
                if chance is not None and (not is_diagnostic or chance > score):
                    score = chance
                if relative:
                    score = min(score * OTHER, OTHER * ACCEPTED)
            else:
                score = by_name(way.similarity, covered, way.name.count(" ") + 1, kind)
            weighed = EntryEvidence(
                number,
                way.similarity if way else 0.0,
                covered,
                len(matched),
                rank,
                score,
                accepts(score, len(matched), sure=way is not None or score == chance or relative),
            )
            if best is None or (weighed.accepted, weighed.score) > (best.accepted, best.score):
                best = weighed
        assert best is not None
        return best

    def _as_named(self, way: NameMatch, number: int, words: Sequence[str]) -> NameMatch:
        """Return a found name with reduced similarity if adjacent words, by their letters, make another name of it."""
        entry_words, lexicon = self._own_words[number], self.names.lexicon
        if self._groups[number] and way.similarity > NAMED_ALIKE:
            before = words_before(words, way.start)
            return (
                replace(way, similarity=way.similarity * OF_GROUP, start=way.start - before)
                if before
                else way
            )
        any_host = way.similarity == 1.0 and way.name.count(" ") > 0
        foreign = foreign_words(words, way.start, way.end, entry_words, lexicon, any_host=any_host)
        if (
            not foreign
            and way.similarity < 1.0
            and way.end - way.start <= way.name.count(" ")
            and words[way.end :]
        ):
            foreign = words_behind(words[way.end], entry_words, lexicon)
        beside = [*words[: way.start], *words[way.end :]]
        if not foreign and (way.similarity == 1.0 or not self.names.on_other_hosts(number, beside)):
            return way
        letters = len("".join(words[way.start : way.end]))
        share = min(OTHER, letters / (letters + len("".join(foreign))))
        return replace(way, similarity=way.similarity * share, other=way.similarity >= NAMED_ALIKE)

    def _credits(
        self, question: Sequence[_Word]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the credit of each word of the question for each entry, (words, entries), and its total, (entries,).

        Credits are those of the single passage of an entry that accounts for most of the question; totals are weighted.
        """
        entries = len(self.entries)
        if not question or not entries:
            return np.zeros((len(question), entries)), np.zeros(entries)
        rows: list[NDArray[np.float64]] = []
        for word in question:
            if not word.terms:
                rows.append(np.zeros(len(self.sections.documents)))
                continue
            term_weights = np.array([self.sections.holding(term) for term in word.terms])
            if word.credit < 1:
                weights = (
                    np.array([self.sections.weight(term) for term in word.terms]) / word.weight
                )
                rows.append(word.credit * (term_weights * weights[:, None]).max(axis=0))
            else:
                rows.append(term_weights.mean(axis=0))
        credits = np.array(rows)
        weights = np.array([0.0 if word.asks else word.weight for word in question])
        shares = weights @ credits
        most = np.maximum.reduceat(shares, self._starts)
        at_best = np.flatnonzero(shares == np.repeat(most, self._passages_each))[::-1]
        best = np.zeros(entries, np.intp)
        best[self._owners[at_best]] = at_best  # reversed: the first of equally good passages wins
        return credits[:, best], most

    def _allowed(self, kind: Kind | None, crop: str | None) -> NDArray[np.bool_]:
        allowed = np.ones(len(self.entries), bool)
        if kind is not None:
            allowed &= np.array([entry.kind == kind for entry in self.entries], bool)
        if crop is not None:
            forms = crop_forms(self.entries, crop)
            allowed &= np.array([concerns(entry, forms) for entry in self.entries], bool)
        return allowed

    def _passages(
        self,
        numbers: Sequence[int],
        scores: Sequence[float],
        query: str,
        topic: Section | None,
        top_k: int,
    ) -> list[Hit]:
        """Return the best passage of each entry; a single entry is followed by its other passages."""
        section, documents = section_asked(query), self.sections.documents
        values = self.sections.scores(terms(query))
        values = values + (1.0 + values.max(initial=0.0)) * np.array(
            [item.section == section for item in documents]
        )
        most = None if len(numbers) == 1 else 1
        return [
            Hit(self.entries[number], documents[at], score)
            for number, score in zip(numbers, scores, strict=True)
            for at in self._ordered(number, values, topic)[:most]
        ][:top_k]

    def _ordered(
        self, number: int, values: NDArray[np.float64], topic: Section | None
    ) -> list[int]:
        places = self._of_entry[number]
        if topic is not None:
            of_topic = [at for at in places if self.sections.documents[at].section == topic]
            # Identification includes the names and the taxonomy.
            return [*of_topic, places[0]] if topic == "identification" else of_topic or places[:1]
        text_places = [at for at in places if self.sections.documents[at].section != "names"]
        return [*sorted(text_places, key=lambda at: -values[at]), places[0]]


def _reciprocal_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 / (60 + rank) for positive values and 0 for others, (n,); equal values share the better rank."""
    ordered = np.sort(values)[::-1]
    ranks = np.searchsorted(-ordered, -values, side="left") + 1
    return np.where(values > 0, 1.0 / (_RRF_K + ranks), 0.0)


def closest_ids(kb_id: str, ids: Iterable[str]) -> tuple[str, ...]:
    """Return the three ids most similar to ``kb_id``, by letters and by shared words."""
    plain_id = folded(kb_id[:120])
    words = set(plain_id.split())

    def likeness(known: str) -> float:
        form = folded(known)
        return similarity(plain_id, form) + 0.3 * len(words & set(form.split())) / max(
            1, len(words)
        )

    return tuple(sorted(ids, key=lambda known: (-likeness(known), known))[:3])


def knowledge_base() -> tuple[KnowledgeIndex, Loaded]:
    """Return the index over all entries on this machine, and the loaded files with their faults. Cached."""
    return _index_of(tuple(_stamp(path) for path in kb_files()))


@lru_cache(maxsize=1)
def _index_of(stamps: tuple[tuple[Path, int, int], ...]) -> tuple[KnowledgeIndex, Loaded]:
    loaded = load([path for path, _, _ in stamps])
    return KnowledgeIndex(loaded.entries), loaded


def _stamp(path: Path) -> tuple[Path, int, int]:
    try:
        status = path.stat()
    except OSError:
        return path, 0, 0
    return path, status.st_mtime_ns, status.st_size
