"""Scores of free text by key facts, by lists of keywords, or by overlap with several right texts.

Key facts that the text states count for it; contradicted facts and facts of other subjects count against it. The chance
level of this score is the score of the same answers against the facts of other samples. These facts are known only
after all records have been seen, so each answer is read a second time.
"""

import hashlib
import math
import re
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from pydantic import JsonValue

from agrotools.core import ExcludedBranch, Fact, KeywordsSlot, OpenTextSlot, Record, ReferenceTextsSlot, Sample
from agrotools.scoring.answer_text import AnswerText
from agrotools.scoring.slots import score_slot
from agrotools.scoring.statistics import Estimate, estimate_mean
from agrotools.scoring.units import SampleTable, clusters_of, summed
from agrotools.scoring.yes_no_reading import plain_answers
from agrotools.text.claims import Finding, Reply, Stance, reply_of, stance_of
from agrotools.text.clauses import ListNeighbours, concluding_numbers, further_claims, list_neighbours, listed_numbers
from agrotools.text.labels import find_labels
from agrotools.text.normalise import CJK, late_pattern, normalise
from agrotools.text.rouge import rouge_l_words
from agrotools.text.statement_words import Span

MOST_WORDS = 150
"""Number of words above which the score falls in proportion, so that facts are not hidden in a long text."""

_SHORT_ITEM = 3
"""Maximum number of words in an item of a keyword list; a CJK character counts as half a word."""

_FREE_ITEMS = 5
"""Number of short items without a fact that cost nothing, in addition to half the number of other clauses."""

_ITEMS_TO_NOTHING = 3
"""Number of further short items that reduce the score to 0."""

_CJK_CHARACTER = late_pattern(f"[{CJK}]")
_RUN = late_pattern(rf"[^\s{CJK}]+")


@lru_cache(maxsize=64)
def count_words(text: str) -> float:
    """Return the number of words of a text; a CJK character counts as half a word."""
    words = sum(any(letter.isalnum() for letter in run[0]) for run in _RUN.finditer(text))
    return words + 0.5 * len(_CJK_CHARACTER.findall(text))


class FactRead(NamedTuple):
    """Reading of a fact in a text: its state, the words that show it, and the spans that state it."""

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
    """Return the score in [0, 1] and the reading of each fact.

    The score is :func:`facts_score` times ``min(1, 150 / words)`` times :func:`statement_factor` times the share that
    :func:`excluded_scores` leave.
    """
    reply = reply_of(text)
    stance, read = _asserted_facts(slot.facts, reply, by_stance=bool(slot.others))
    foreign = foreign_facts(slot, reply, read)
    value, share, precision = facts_score(slot, *_counted(read), len(foreign))
    words = count_words(text)
    length_factor = min(1.0, MOST_WORDS / words) if words else 1.0
    statements = statement_factor(reply, read)
    excluded, claimed = excluded_scores(slot, reply)
    decided = math.prod(1 - score for score in excluded)
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
        **({"excluded": claimed, "branch_factor": round(decided, 4)} if claimed else {}),
        "rule": "(1 - ((1 - share of facts) / (1 - floor)) ^ (1 + floor)) x precision x min(1, 150 / words)"
        " x keyword_list_factor" + " x branch_factor" * bool(claimed),
    }
    return value * length_factor * statements * decided, reading


def _asserted_facts(facts: Sequence[Fact], reply: Reply, *, by_stance: bool) -> tuple[Stance, list[FactRead]]:
    """Return the stance of a reply on facts and the state of each; one that denies as a whole asserts none."""
    stance = stance_of(reply, [phrase for fact in facts for phrase in fact.phrases]) if by_stance else Stance(0.0)
    read = read_facts(facts, reply, plain=stance.plain)
    if stance.denies:
        read = [one._replace(state="named but not asserted") if one.stated else one for one in read]
    return stance, read


def _counted(read: Sequence[FactRead]) -> tuple[frozenset[int], frozenset[int]]:
    """Return the numbers of the facts that are stated, and of those that are contradicted."""
    stated = frozenset(number for number, one in enumerate(read) if one.stated)
    return stated, frozenset(number for number, one in enumerate(read) if one.contradicted)


def excluded_scores(slot: OpenTextSlot, reply: Reply) -> tuple[list[float], dict[str, JsonValue]]:
    """Return the score in [0, 1] of a reply on each branch that does not apply, and its stated facts with their words.

    Each is at least the score that the reply would get if that branch applied: only facts of the branch count. A reply
    scores its value on the branch that applies times (1 - score) of all others, the probability that of independent
    events with these probabilities only the first occurs. Summed over all branches this is at most 1, so a reply that
    hedges gains no more on average than one that guesses a branch.
    """
    scores: list[float] = []
    claimed: dict[str, JsonValue] = {}
    for branch in slot.excluded:
        _, read = _asserted_facts(branch.facts, reply, by_stance=bool(slot.others))
        score, _, _ = facts_score(branch, *_counted(read), 0)
        scores.append(max(0.0, score))
        if score > 0:
            stated = ((fact, one) for fact, one in zip(branch.facts, read, strict=True) if one.stated)
            claimed |= {fact.phrases[0]: one.words for fact, one in stated}
    return scores, claimed


def statement_factor(reply: Reply, read: Sequence[FactRead]) -> float:
    """Return the factor in [0, 1] that lowers the score of a reply that consists of keywords.

    List items with at most three words and without words of a stated fact cost nothing up to five plus half of the
    other clauses. Three more items make the factor 0; it is 1 for replies in sentences.
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


def facts_score(
    slot: OpenTextSlot | ExcludedBranch, stated: frozenset[int], against: frozenset[int], foreign: int
) -> tuple[float, float, float]:
    """Return the score of a short reply, and the share of facts and the precision that it is computed from.

    ``stated`` and ``against`` hold the indices of facts that the reply states and contradicts, ``foreign`` is the
    number of facts of other subjects that it claims. The share (by weight, stated minus contradicted) counts above the
    slot's floor. The higher the floor, the less the first missing fact costs compared with the last. One foreign fact,
    and one more for every three stated facts, costs nothing; as many foreign facts beyond these as stated facts make
    the score 0.
    """
    weights = [fact.weight for fact in slot.facts]
    share = (sum(weights[number] for number in stated) - sum(weights[number] for number in against)) / sum(weights)
    free = 1 + len(stated) // 3
    beyond = max(0, foreign - free) / max(1, len(stated))
    precision = max(0.0, 1 - beyond**1.5)
    missing = min(1.0, (1 - share) / (1 - slot.floor))
    return (1 - missing ** (1 + slot.floor)) * precision, share, precision


def states_fact(fact: Fact, text: str) -> bool:
    """Return True if a text states a fact and does not contradict it."""
    return read_fact(fact, reply_of(text)).state == "stated"


def read_fact(fact: Fact, reply: Reply, occupied: Sequence[Span] = (), *, plain: bool = False) -> FactRead:
    """Return the state of a fact in a reply. A denied fact, or one with an opposite of an idea, is contradicted.

    Words ``occupied`` by another fact of the slot do not contradict this one. ``plain``: the reply plainly asserts its
    content, so that a denying word near a fact ("do not wait: ...") is not read as a denial of the fact.
    """
    findings = [finding for phrase in fact.phrases for finding in reply.find(phrase)]
    if plain:
        findings = [each if each.opposite or each.claim.denied else each._replace(affirmed=True) for each in findings]
    for_it = [finding for finding in findings if finding.affirmed]
    against = [finding for finding in findings if not finding.affirmed]
    against += [finding for phrase in fact.not_ for finding in reply.find(phrase) if finding.affirmed]
    here = {at for span in occupied for at in range(span.start, span.end)}
    against = [each for each in against if here.isdisjoint(at for span in each.spans for at in range(*span))]
    # An opposite in the same sentence as the fact is a contrast ("tolerant, not susceptible ones") and does not count.
    # A denial counts in any sentence, unless that sentence states the fact by denying an opposite: the denial in
    # "do not kill a or b" affirms that they are to be protected.
    spared = {reply.read.sentence_of(finding.spans[0].start) for finding in for_it if finding.opposite}
    near = {reply.read.sentence_of(finding.spans[0].start) for finding in for_it}
    against = [
        finding
        for finding in against
        if reply.read.sentence_of(finding.spans[0].start) not in spared
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


def read_facts(facts: Sequence[Fact], reply: Reply, *, plain: bool = False) -> list[FactRead]:
    """Return the state of each fact of a slot in a reply."""
    first = read_fact(facts[0], reply, plain=plain)
    return [first, *(read_fact(fact, reply, first.spans, plain=plain) for fact in facts[1:])]


def foreign_facts(slot: OpenTextSlot, reply: Reply, read: Sequence[FactRead]) -> list[tuple[str, str]]:
    """Return the facts of other subjects that the reply claims, each with its words; no words count for two facts."""
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
"""Maximum number of other samples whose facts each answer is scored against."""


class _OtherSample(NamedTuple):
    """Sample whose facts the answers of other samples are scored against. ``hash`` is the hash of its id."""

    hash: str
    cluster: int
    slots: list[OpenTextSlot]


class OpenTextChance:
    """Mean open-text score of each record's answer against open-text slots of samples in other clusters.

    Add every valid record of one mode first; then, if :attr:`wants_answers`, add every record again as an answer.
    """

    def __init__(self, table: SampleTable) -> None:
        self._table = table
        self._seen = bytearray()  # by number of the sample
        self._clusters: set[int] = set()  # at most two are stored
        self._others: list[_OtherSample] = []
        self._samples = array("l")
        self._values = array("d")

    def add(self, record: Record) -> None:
        """Add a record with a trajectory as a sample whose facts other answers may be scored against."""
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
        self._others = _selected_samples([*self._others, _OtherSample(digest, cluster, slots)])

    @property
    def wants_answers(self) -> bool:
        """True if at least two clusters have open-text slots."""
        return len(self._clusters) > 1

    def add_answer(self, record: Record) -> None:
        """Add a record with a trajectory as an answer. A missing answer scores 0, as in the score itself."""
        if not _open_slots(record.sample):
            return
        number = self._table.number(record.sample)
        foreign = [other for other in self._others if other.cluster != self._table.clusters[number]]
        self._samples.append(number)
        self._values.append(_against(record, foreign))

    def estimate(self) -> Estimate | None:
        """Return the chance level; None if no answers were added."""
        import numpy as np

        if not self._samples:
            return None
        numbers, first, totals, counts = summed(np.asarray(self._samples, dtype=np.int64), np.asarray(self._values))
        in_order = np.argsort(first)
        clusters = clusters_of(numbers, self._table)
        return estimate_mean((totals / counts)[in_order], clusters[in_order])


def _against(record: Record, others: Sequence[_OtherSample]) -> float:
    answer = record.trajectory.answer if record.trajectory else None
    if answer is None:
        return 0.0
    values = [[score_slot(slot, (slot,), answer).value for slot in other.slots] for other in others]
    return sum(sum(scores) / len(scores) for scores in values) / len(values)


def _selected_samples(candidates: Sequence[_OtherSample]) -> list[_OtherSample]:
    """Select at most ``MAX_OTHERS`` samples in an order fixed by hash: one of each cluster, then a second of each, etc.

    A sample that was not selected once is never selected later, because further candidates can only lower its rank. It
    is therefore enough to select from the last selection and the new sample.
    """
    clusters: dict[int, int] = {}
    ranked: list[tuple[int, _OtherSample]] = []
    for other in sorted(candidates, key=lambda other: other.hash):
        rank = clusters.get(other.cluster, 0)
        ranked.append((rank, other))
        clusters[other.cluster] = rank + 1
    return [other for _, other in sorted(ranked, key=lambda pair: pair[0])[:MAX_OTHERS]]


def _open_slots(sample: Sample) -> list[OpenTextSlot]:
    return [slot for slot in sample.answer if isinstance(slot, OpenTextSlot) and slot.headline]


# --- lists of keywords and reference texts: scores of agrotools for GTA's gold forms ---------------------------------

_THOUSANDS = late_pattern(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")

_ZEROS = late_pattern(r"(?<=\d)\.0+(?![\d.])")
_MOST_NEIGHBOURS = 4
_MOST_CLAIMS = 3
"""Maximum number of other names in sentences of the form "it is X"."""
_MOST_LISTED_NUMBERS = 2
MOST_PLACES = 60
"""Maximum number of places of one keyword that are examined from either end."""


class KeywordLists:
    """Detector of keyword lists in one normalised text; ``keywords`` are the right ones."""

    def __init__(self, text: str, keywords: Collection[str]) -> None:
        self._text = text
        self._keywords = [word for each in keywords if (word := normalise(each).strip())]
        self._numbers = {_bare(word) for word in self._keywords}
        self._result = concluding_numbers(text)
        self._claims = len(further_claims(text, self._is_keyword)) > _MOST_CLAIMS

    def _is_keyword(self, item: str) -> bool:
        return any(word in item for word in self._keywords)

    def holds(self, start: int, end: int) -> bool:
        """Return True if ``text[start:end]`` is part of a list of keywords rather than of an answer."""
        text = self._text
        if any(letter.isdigit() for letter in text[start:end]):
            if self._result is not None and start < self._result[0]:
                return True
            numbers = listed_numbers(text, start, end)
            others = tuple(number for number in numbers.items if _bare(number) not in self._numbers)
            if _is_heap(ListNeighbours(others, numbers.alternatives), _MOST_LISTED_NUMBERS):
                return True
        return self._claims or _is_heap(list_neighbours(text, start, end, self._is_keyword), _MOST_NEIGHBOURS)


def _is_heap(neighbours: ListNeighbours, most: int) -> bool:
    return len(neighbours.items) > most or (neighbours.alternatives and bool(neighbours.items))


@lru_cache(maxsize=20_000)
def _bare(number: str) -> str:
    return re.sub(r"[^\d.]", "", number).rstrip(".")


_YES_WORDS = frozenset("yes true 是 有 对 是的".split())
_NO_WORDS = frozenset("no false 否 没有 不是 不".split())


def asks_yes_or_no(aliases: Collection[str]) -> bool | None:
    """Return True if a group of keywords is a yes, False if it is a no, and None if it is neither or both."""
    words = {normalise(alias).strip() for alias in aliases}
    yes, no = bool(words & _YES_WORDS), bool(words & _NO_WORDS)
    return None if yes == no else yes


def score_keywords(slot: KeywordsSlot, answer: AnswerText) -> tuple[float, dict[str, JsonValue]]:
    """Return 1 if the answer states an alias of every whitelist group and none of the blacklist, else 0.

    The whole text after the last ``Final Answer:`` counts. A blacklisted word inside a right one ("pork" in "pork
    chop") does not count as stated. Groups without an alias are ignored.
    """
    texts = list(dict.fromkeys(_joined(text) for text in (answer.text, answer.plain)))
    texts += [text for text in (answer.text, answer.plain) if text not in texts]
    groups = [group for group in slot.whitelist if any(alias.strip() for alias in group)]
    right = [alias for group in groups for alias in group]
    replies = {answered for answered, _ in plain_answers(answer.plain)}
    keyword_lists = {text: KeywordLists(text, right) for text in texts}
    stated = [
        None if _undecided(group, groups, replies) else _stated(texts, group, keyword_lists=keyword_lists)
        for group in groups
    ]
    wrong = _stated(texts, [alias for group in slot.blacklist for alias in group], beside=right)
    reading: dict[str, JsonValue] = {
        "value": [alias for alias in stated if alias],
        "missing": [group[0] for group, alias in zip(groups, stated, strict=True) if alias is None],
        "rule": "every group of the whitelist, nothing of the blacklist",
    }
    if wrong is not None:
        reading["wrong"] = wrong
    return float(None not in stated and wrong is None), reading


def _undecided(group: Iterable[str], groups: Iterable[Iterable[str]], answers: set[bool]) -> bool:
    """Return True if ``group`` asks for a yes or a no and the answer says both although not both are requested."""
    yes_no = asks_yes_or_no(tuple(group))
    return (
        yes_no is not None
        and len(answers) > 1
        and {asks_yes_or_no(tuple(each)) for each in groups} < {True, False, None}
    )


def _stated(
    texts: Iterable[str],
    aliases: Iterable[str],
    beside: Iterable[str] = (),
    keyword_lists: Mapping[str, KeywordLists] | None = None,
) -> str | None:
    """Return the first of ``aliases`` that one of ``texts`` asserts outside keyword lists and outside ``beside``."""
    names_by_alias = {alias: {alias, _joined(normalise(alias))} for alias in aliases if alias.strip()}
    others = {f"beside {alias}": {alias, _joined(normalise(alias))} for alias in beside if alias not in names_by_alias}
    for text in texts:
        for alias, names in names_by_alias.items():
            # One alias at a time: a group may hold "burger" and "beef burger", and either is sufficient.
            matches = [match for match in find_labels(text, {alias: names, **others}) if match.label == alias]
            asserted = [match for match in matches if match.asserted]
            places = asserted[:MOST_PLACES] + asserted[MOST_PLACES:][-MOST_PLACES:]
            if keyword_lists is None and asserted:
                return alias
            if keyword_lists is not None and any(
                not keyword_lists[text].holds(match.start, match.end) for match in places
            ):
                return alias
    return None


def _joined(text: str) -> str:
    """Remove thousands separators and zero decimals from the numbers in ``text``."""
    return _ZEROS.sub("", _THOUSANDS.sub(lambda number: number[0].replace(",", ""), text))


def score_texts(slot: ReferenceTextsSlot, text: str) -> tuple[float, dict[str, JsonValue]]:
    """Return the overlap with the nearest right text: ROUGE-L by words (Chinese: by characters).

    Words are compared, not meanings: a paraphrase scores low, and the opposite in the same words scores high.
    """
    overlaps = [rouge_l_words(text, value) for value in slot.values]
    best = max(range(len(overlaps)), key=lambda place: overlaps[place])
    return overlaps[best], {
        "nearest": best + 1,
        "overlaps": [round(each, 4) for each in overlaps],
        "rule": "overlap: longest common subsequence of words, with the nearest text",
    }
