"""Open text, scored by the key facts it states and contradicts, and by facts of other subjects that it claims.

The chance level of that score is the same answers against the facts of other samples. Those are known only when all
records were seen, so each answer is read a second time.
"""

import hashlib
import re
from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from pydantic import JsonValue

from agrotools.core import Fact, OpenTextSlot, Record, Sample
from agrotools.scoring.sample_units import SampleTable, clusters_of, summed
from agrotools.scoring.slots import score_slot
from agrotools.scoring.statistics import Estimate, estimate_mean
from agrotools.text.claims import Finding, Reply, Stance, reply_of, stance_of
from agrotools.text.normalise import CJK
from agrotools.text.statement_words import Span

MOST_WORDS = 150
"""Longer answers lose in proportion: facts must be given, not buried."""

_SHORT_ITEM = 3
"""Words of the longest item of a list of keywords; a CJK character counts as half a word."""

_FREE_ITEMS = 5
"""Short items without a fact that cost nothing, beside half as many as there are other clauses."""

_ITEMS_TO_NOTHING = 3
"""So many more leave nothing of the score."""

_CJK_CHARACTER = re.compile(f"[{CJK}]")
_RUN = re.compile(rf"[^\s{CJK}]+")


@lru_cache(maxsize=64)
def count_words(text: str) -> float:
    """Words of a text; a CJK character counts as half a word."""
    words = sum(any(letter.isalnum() for letter in run[0]) for run in _RUN.finditer(text))
    return words + 0.5 * len(_CJK_CHARACTER.findall(text))


class FactRead(NamedTuple):
    """Reading of a fact in a text: ``state``, the words that show it, and their position."""

    state: str
    words: str
    spans: tuple[Span, ...]

    @property
    def stated(self) -> bool:
        return self.state.startswith("stated")

    @property
    def contradicted(self) -> bool:
        return self.state.endswith("contradicted")


def score_facts(slot: OpenTextSlot, text: str) -> tuple[float, dict[str, JsonValue]]:
    """The score in [0, 1] (:func:`facts_score` times ``min(1, 150 / words)`` times :func:`statement_factor`), and what
    was found of each fact."""
    reply = reply_of(text)
    stance = _stance(slot, reply)
    read = read_facts(slot, reply, plain=stance.plain)
    foreign = foreign_facts(slot, reply, read)
    if stance.denies:
        read = [one._replace(state="named, not claimed") if one.stated else one for one in read]
    stated = frozenset(number for number, one in enumerate(read) if one.stated)
    against = frozenset(number for number, one in enumerate(read) if one.contradicted)
    value, share, precision = facts_score(slot, stated, against, len(foreign))
    words = count_words(text)
    length_factor = min(1.0, MOST_WORDS / words) if words else 1.0
    statements = statement_factor(reply, read)
    reading: dict[str, JsonValue] = {
        "facts": {fact.phrases[0]: one.state for fact, one in zip(slot.facts, read, strict=True)},
        "said": {fact.phrases[0]: one.words for fact, one in zip(slot.facts, read, strict=True) if one.words},
        "foreign": dict(foreign[:20]),
        **({"stance": stance.value, "read_as_denial_by": list(stance.phrases)} if stance.denies else {}),
        "share": round(share, 4),
        "floor": slot.floor,
        "precision": round(precision, 4),
        "words": words,
        "length_factor": round(length_factor, 4),
        **({"keyword_list_factor": round(statements, 4)} if statements < 1 else {}),
        "rule": "(1 - ((1 - share of facts) / (1 - floor)) ^ (1 + floor)) x precision x min(1, 150 / words)"
        " x what a heap of keywords leaves",
    }
    return value * length_factor * statements, reading


def statement_factor(reply: Reply, read: Sequence[FactRead]) -> float:
    """Share of the score of a reply that is left, in [0, 1], by how much of it is a heap of keywords.

    Items of a list that have at most three words and nothing of a fact stated may be as many as five and half of
    the other clauses; 0 for a reply that has three more, 1 for every reply in sentences.
    """
    occupied = {at for one in read for span in one.spans for at in range(span.start, span.end)}
    clauses = reply.read.clauses()
    keywords = sum(
        occupied.isdisjoint(range(clause.start, clause.end))
        and sum(0.5 if _CJK_CHARACTER.match(stem) else 1 for stem in reply.read.stems[clause.start : clause.end])
        <= _SHORT_ITEM
        for clause in clauses
    )
    beyond = keywords - _FREE_ITEMS - (len(clauses) - keywords) / 2
    return min(1.0, max(0.0, 1 - beyond / _ITEMS_TO_NOTHING))


def _stance(slot: OpenTextSlot, reply: Reply) -> Stance:
    """True if a reply asserts or rejects what it says. The model knows replies on the subjects of the knowledge base
    alone: for other slots, which have no facts of ``others``, the words near a fact are all that counts."""
    return stance_of(reply, [phrase for fact in slot.facts for phrase in fact.phrases]) if slot.others else Stance(0.0)


def facts_score(
    slot: OpenTextSlot, stated: frozenset[int], against: frozenset[int], foreign: int
) -> tuple[float, float, float]:
    """The score of a short reply, the share of facts and the precision it comes of.

    ``stated`` and ``against``: numbers of the facts that it states and contradicts; ``foreign``: how many facts of
    other subjects it claims. The share (by weight; stated less contradicted) counts above the slot's floor; the higher
    that is, the less the first missing fact costs beside the last, as each would weigh much. A sensible
    remark or two cost nothing; who claims as much again of what is not asked for gets nothing.
    """
    weights = [fact.weight for fact in slot.facts]
    share = (sum(weights[number] for number in stated) - sum(weights[number] for number in against)) / sum(weights)
    free = 1 + len(stated) // 3
    beyond = max(0, foreign - free) / max(1, len(stated))
    precision = max(0.0, 1 - beyond**1.5)
    missing = min(1.0, (1 - share) / (1 - slot.floor))
    return (1 - missing ** (1 + slot.floor)) * precision, share, precision


def states_fact(fact: Fact, text: str) -> bool:
    """True if a text states a fact, and nothing against it."""
    return read_fact(fact, reply_of(text)).state == "stated"


def read_fact(fact: Fact, reply: Reply, occupied: Sequence[Span] = (), *, plain: bool = False) -> FactRead:
    """State of a fact in a reply: denied, or with an opposite in place of one of its ideas, it is contradicted.

    Words ``occupied`` by another fact of the slot are not read as what contradicts this one. ``plain``: the reply
    plainly asserts what it says, so that a denying word near a fact ("do not wait: ...") is read as none of the fact.
    """
    findings = [finding for phrase in fact.phrases for finding in reply.find(phrase)]
    if plain:
        findings = [each if each.opposite or each.claim.denied else each._replace(affirmed=True) for each in findings]
    for_it = [finding for finding in findings if finding.affirmed]
    against = [finding for finding in findings if not finding.affirmed]
    against += [finding for phrase in fact.not_ for finding in reply.find(phrase) if finding.affirmed]
    here = {at for span in occupied for at in range(span.start, span.end)}
    against = [each for each in against if here.isdisjoint(at for span in each.spans for at in range(*span))]
    # What stands in the same sentence as the fact itself sets it off ("tolerant, not susceptible ones"), where it is
    # the opposite of it; a denial of the fact counts wherever it stands.
    # "do not kill a or b" affirms their protection: that the denial reaches them is no denial of the fact. What is met
    # "where there is no x" does not speak against x, where the fact is stated.
    spared = {reply.read.sentence_of(finding.spans[0].start) for finding in for_it if finding.opposite}
    near = {reply.read.sentence_of(finding.spans[0].start) for finding in for_it}
    against = [
        finding
        for finding in against
        if not (for_it and not finding.opposite and reply.read.is_absent(finding.spans))
        and reply.read.sentence_of(finding.spans[0].start) not in spared
        and not (finding.opposite and reply.read.sentence_of(finding.spans[0].start) in near)
        and not any(set(finding.spans) & set(each.spans) for each in for_it)
    ]
    if not for_it and not against:
        return FactRead("missing", "", ())
    state = "stated and contradicted" if for_it and against else "stated" if for_it else "contradicted"
    evidence = (for_it or against)[0]
    spans = tuple(span for finding in for_it for span in finding.spans)
    return FactRead(state, _words_of(reply, evidence), spans)


def _words_of(reply: Reply, finding: Finding) -> str:
    start, end = min(span.start for span in finding.spans), max(span.end for span in finding.spans)
    return reply.read.excerpt(start, end)[:80]


def read_facts(slot: OpenTextSlot, reply: Reply, *, plain: bool = False) -> list[FactRead]:
    """State of each of the slot's facts in a reply."""
    first = read_fact(slot.facts[0], reply, plain=plain)
    return [first, *(read_fact(fact, reply, first.spans, plain=plain) for fact in slot.facts[1:])]


def foreign_facts(slot: OpenTextSlot, reply: Reply, read: Sequence[FactRead]) -> list[tuple[str, str]]:
    """Facts of other subjects that the reply claims, each by words that claim nothing else."""
    occupied = {at for one in read for span in one.spans for at in range(span.start, span.end)}
    claimed: list[tuple[str, str]] = []
    for phrases in slot.others:
        for finding in (finding for phrase in phrases for finding in reply.find(phrase)):
            here = {at for span in finding.spans for at in range(span.start, span.end)}
            claims = finding.affirmed and not finding.opposite and not here & occupied
            if claims and reply.is_plain(finding) and reply.is_whole(finding):
                occupied |= here
                claimed.append((phrases[0], _words_of(reply, finding)))
                break
    return claimed


# --- chance level ----------------------------------------------------------------------------------------------------

MAX_OTHERS = 20
"""Each answer is scored against the facts of at most this many other samples."""


class _Other(NamedTuple):
    """A sample whose facts others' answers are scored against. ``hash`` is that of its id."""

    hash: str
    cluster: int
    slots: list[OpenTextSlot]


class OpenTextChance:
    """Mean open-text score of each record's answer against open-text slots of samples of other clusters.

    First every valid record of one mode is added, then, if :attr:`wants_answers`, every one again as an answer.
    """

    def __init__(self, table: SampleTable) -> None:
        self._table = table
        self._seen = bytearray()  # by number of the sample
        self._clusters: set[int] = set()  # two are enough to know
        self._others: list[_Other] = []
        self._samples = array("l")
        self._values = array("d")

    def add(self, record: Record) -> None:
        """A record with a trajectory, as one whose facts others' answers may be scored against."""
        slots = _open_slots(record.sample)
        if not slots:
            return
        number = self._table.number(record.sample)
        self._seen.extend(bytes(max(0, number + 1 - len(self._seen))))
        if self._seen[number]:
            return
        self._seen[number] = True
        cluster = self._table.clusters[number]
        if len(self._clusters) < 2:
            self._clusters.add(cluster)
        digest = hashlib.sha256(record.sample.id.encode()).hexdigest()
        self._others = _selected_samples([*self._others, _Other(digest, cluster, slots)])

    @property
    def wants_answers(self) -> bool:
        """True if at least two clusters have open-text slots."""
        return len(self._clusters) > 1

    def add_answer(self, record: Record) -> None:
        """A record with a trajectory, as an answer. No answer scores 0, as in the score itself."""
        if not _open_slots(record.sample):
            return
        number = self._table.number(record.sample)
        foreign = [other for other in self._others if other.cluster != self._table.clusters[number]]
        self._samples.append(number)
        self._values.append(_against(record, foreign))

    def estimate(self) -> Estimate | None:
        """The chance level; None where fewer than two clusters have open-text slots."""
        import numpy as np

        if not self._samples:
            return None
        numbers, first, totals, counts = summed(np.asarray(self._samples, dtype=np.int64), np.asarray(self._values))
        in_order = np.argsort(first)
        clusters = clusters_of(numbers, self._table)
        return estimate_mean((totals / counts)[in_order], clusters[in_order])


def _against(record: Record, others: Sequence[_Other]) -> float:
    answer = record.trajectory.answer if record.trajectory else None
    if answer is None:
        return 0.0
    values = [[score_slot(slot, (slot,), answer).value for slot in other.slots] for other in others]
    return sum(sum(scores) / len(scores) for scores in values) / len(values)


def _selected_samples(candidates: Sequence[_Other]) -> list[_Other]:
    """At most ``MAX_OTHERS`` samples: one of each cluster, then a second one of each... in an order fixed by hash.

    A sample that is not among them once never will be when more come: whatever comes takes no place away from those
    before it. So it is enough to draw from the last draw and the new one.
    """
    clusters: dict[int, int] = {}
    ranked: list[tuple[int, _Other]] = []
    for other in sorted(candidates, key=lambda other: other.hash):
        rank = clusters.get(other.cluster, 0)
        ranked.append((rank, other))
        clusters[other.cluster] = rank + 1
    return [other for _, other in sorted(ranked, key=lambda pair: pair[0])[:MAX_OTHERS]]


def _open_slots(sample: Sample) -> list[OpenTextSlot]:
    return [slot for slot in sample.answer if isinstance(slot, OpenTextSlot) and slot.headline]
