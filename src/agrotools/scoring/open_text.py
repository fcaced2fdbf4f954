"""Open text, scored by the key facts it states and contradicts, and by facts of other subjects that it claims as well."""

import re
from functools import lru_cache
from typing import NamedTuple

from pydantic import JsonValue

from agrotools.core import Fact, OpenTextSlot
from agrotools.text.claims import Finding, Reply, reply_of
from agrotools.text.normalise import CJK
from agrotools.text.statements import Span

VERSION = "2"

MOST_WORDS = 150
"""Longer answers lose in proportion: facts must be given, not buried."""

_CJK_CHARACTER = re.compile(f"[{CJK}]")
_RUN = re.compile(rf"[^\s{CJK}]+")


@lru_cache(maxsize=64)
def count_words(text: str) -> float:
    """Words of a text; a CJK character counts as half a word."""
    words = sum(any(letter.isalnum() for letter in run[0]) for run in _RUN.finditer(text))
    return words + 0.5 * len(_CJK_CHARACTER.findall(text))


class FactRead(NamedTuple):
    """What a text says of a fact: ``state``, the words that say so, and where they stand."""

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
    """The score in [0, 1], and what was found of each fact.

    It is the share of facts (by weight) that are stated, less those contradicted, above the slot's floor; times what
    is left for facts of other subjects (:func:`_precision`), times ``min(1, 150 / words)``.
    """
    reply = reply_of(text)
    read = [read_fact(fact, reply) for fact in slot.facts]
    found = zip(slot.facts, read, strict=True)
    share = sum(fact.weight * (one.stated - one.contradicted) for fact, one in found)
    share /= sum(fact.weight for fact in slot.facts)
    foreign = _foreign(slot, reply, read)
    precision = _precision(sum(one.stated for one in read), len(foreign))
    words = count_words(text)
    length_factor = min(1.0, MOST_WORDS / words) if words else 1.0
    value = max(0.0, (share - slot.floor) / (1 - slot.floor)) * precision * length_factor
    reading: dict[str, JsonValue] = {
        "facts": {
            fact.phrases[0]: f'{one.state}: "{one.words}"' if one.words else one.state
            for fact, one in zip(slot.facts, read, strict=True)
        },
        "foreign": {name: words for name, words in foreign[:20]},
        "share": round(share, 4),
        "floor": slot.floor,
        "precision": round(precision, 4),
        "words": words,
        "length_factor": round(length_factor, 4),
        "rule": "(share - floor) / (1 - floor) x precision x min(1, 150 / words)",
    }
    return value, reading


def states_fact(fact: Fact, text: str) -> bool:
    """Whether a text states a fact, and nothing against it."""
    return read_fact(fact, reply_of(text)).state == "stated"


def read_fact(fact: Fact, reply: Reply) -> FactRead:
    """What a reply says of a fact. Denied, or with the opposite of what it says in the same place, it is contradicted."""
    found = [finding for phrase in fact.phrases for finding in reply.find(phrase)]
    for_it = [finding for finding in found if finding.affirmed]
    against = [finding for finding in found if not finding.affirmed]
    against += [finding for phrase in fact.not_ for finding in reply.find(phrase) if finding.affirmed]
    # What stands in the same sentence as the fact itself sets it off ("tolerant, not susceptible ones"), where it is
    # the opposite of it; a denial of the fact counts wherever it stands.
    near = {reply.read.sentence_of(finding.spans[0].start) for finding in for_it}
    against = [
        finding
        for finding in against
        if not (finding.opposite and reply.read.sentence_of(finding.spans[0].start) in near)
        and not any(set(finding.spans) & set(each.spans) for each in for_it)
    ]
    if not for_it and not against:
        return FactRead("missing", "", ())
    state = "stated and contradicted" if for_it and against else "stated" if for_it else "contradicted"
    shown = (for_it or against)[0]
    spans = tuple(span for finding in for_it for span in finding.spans)
    return FactRead(state, _words_of(reply, shown), spans)


def _words_of(reply: Reply, finding: Finding) -> str:
    start, end = min(span.start for span in finding.spans), max(span.end for span in finding.spans)
    return reply.read.shown(start, end)[:80]


def _foreign(slot: OpenTextSlot, reply: Reply, read: list[FactRead]) -> list[tuple[str, str]]:
    """Facts of other subjects that the reply claims, each by words that claim nothing else."""
    taken = {at for one in read for span in one.spans for at in range(span.start, span.end)}
    claimed: list[tuple[str, str]] = []
    for phrases in slot.others:
        for finding in (finding for phrase in phrases for finding in reply.find(phrase)):
            here = {at for span in finding.spans for at in range(span.start, span.end)}
            if finding.affirmed and not here & taken:
                taken |= here
                claimed.append((phrases[0], _words_of(reply, finding)))
                break
    return claimed


def _precision(stated: int, foreign: int) -> float:
    """What is left of the score when ``foreign`` facts of other subjects stand beside those ``stated``.

    A sensible remark or two cost nothing; who claims as much again of what is not asked for gets nothing.
    """
    free = 1 + stated // 3
    return max(0.0, 1 - max(0, foreign - free) / (stated + 1))
