"""Floor of the Open-Text Score: the key facts that a text states, read by a plain rule without a model.

A phrase is a group of terms. A sentence states it if it holds all terms near each other, in any order; it denies it if
a clause with one of the terms has a word of denial (:data:`_DENIAL`). A phrase that itself denies ("avoid overhead
irrigation") is stated by a denial. Terms are compared by word stems, in scripts without spaces by characters; questions
state nothing. ``docs/judges.md`` lists what the rule gets wrong. The Open-Text Score is a judge's
(:mod:`agrotools.scoring.judging.questions`), by the same formula (:func:`facts_score`).
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from pydantic import JsonValue

from agrotools.core import ExcludedBranch, Fact, OpenTextSlot
from agrotools.scoring.keywords import after_final_answer
from agrotools.text.normalise import CJK, late_pattern, normalise, stemmer

MOST_WORDS = 150
"""Number of words above which the score falls in proportion, so that facts are not hidden in a long text."""
_MOST_CHARACTERS = 65_536
_NEAR = 8
"""Largest distance in words between terms of a phrase, and one more for each term."""
_MOST_PLACES = 50
"""Number of places of a phrase in one sentence that are examined."""
_LONGEST_QUOTE = 80

_DENIAL = late_pattern(
    r"\b(?:no|not(?! only)|never|nor|neither|none|nothing|without|avoid\w*|useless|pointless|mistake|waste)\b"
    r"|[没勿莫别未]|不(?![仅但光])|避免|禁|无用|无效|浪费"
)
_SENTENCE_END = late_pattern(r"(?<=[!?;。！？；])|(?<=\.)\s|\n")
_CLAUSE_END = late_pattern(r"[,，、:：;()]|\bbut\b|但")
_NOT = late_pattern(r"n't\b|(?<=can)not\b")
_TERM = late_pattern(rf"[{CJK}]+|\d+(?:\.\d+)?|[^\W\d_{CJK}]+")
_TOKEN = late_pattern(rf"[{CJK}]|\d+(?:\.\d+)?|[^\W\d_{CJK}]+")
_CJK_CHARACTER = late_pattern(f"[{CJK}]")
_RUN = late_pattern(rf"[^\s{CJK}]+")
_EMPTY_WORDS = frozenset(
    "a an the of in to on at by for with and or is are be it its as from that this into".split()
)


@lru_cache(maxsize=64)
def count_words(text: str) -> float:
    """Return the number of words of a text; a CJK character counts as half a word."""
    words = sum(any(letter.isalnum() for letter in run[0]) for run in _RUN.finditer(text))
    return words + 0.5 * len(_CJK_CHARACTER.findall(text))


# --- reading ---------------------------------------------------------------------------------------------------------


class _Sentence(NamedTuple):
    """Sentence as stems, with the places of each, and the clause of each place: its words, and True if it denies."""

    stems: list[str]
    places: dict[str, list[int]]
    clauses: list[tuple[str, bool]]


class FactRead(NamedTuple):
    """Reading of a fact in a text: the words that state it and those that contradict it; empty if none do."""

    said: str = ""
    denied: str = ""

    @property
    def state(self) -> str:
        if self.said:
            return "stated and contradicted" if self.denied else "stated"
        return "contradicted" if self.denied else "missing"


_PLURALS = {"leaves": "leaf", "larvae": "larva", "halves": "half"}


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    return (
        stemmer().stemWord(_PLURALS.get(word, word))
        if word.isascii() and not word[0].isdigit()
        else word
    )


def _plain(text: str) -> str:
    return _NOT.sub(" not", normalise(text))


@lru_cache(maxsize=20_000)
def _phrase(phrase: str) -> tuple[Sequence[tuple[str, ...]], bool]:
    """Return the terms of a phrase, each as stems, and True if the phrase itself denies."""
    plain = _plain(phrase)
    words = [word for word in _TERM.findall(_DENIAL.sub(" ", plain)) if word not in _EMPTY_WORDS]
    terms = tuple(tuple(map(_stem, _TOKEN.findall(word))) for word in words)
    return terms, _DENIAL.search(plain) is not None


@lru_cache(maxsize=32)
def _sentences(text: str) -> list[_Sentence]:
    """Return the sentences of a text that state something."""
    sentences: list[_Sentence] = []
    for written in _SENTENCE_END.split(_plain(text[-_MOST_CHARACTERS:])):
        if written.rstrip().endswith(("?", "？")):
            continue
        sentence = _Sentence([], {}, [])
        for clause in _CLAUSE_END.split(written):
            denies = _DENIAL.search(clause) is not None
            for token in _TOKEN.findall(clause):
                sentence.places.setdefault(_stem(token), []).append(len(sentence.stems))
                sentence.stems.append(_stem(token))
                sentence.clauses.append((clause.strip(), denies))
        sentences.append(sentence)
    return sentences


def _find(phrase: str, text: str) -> Iterator[tuple[str, bool]]:
    """Yield the words of each place where a text has a phrase, and True if it denies the phrase there.

    A phrase of several sentences, as a whole answer is, is stated by a text that states each of them.
    """
    found = [[*_find_sentence(part, text)] for part in _sentences_of(phrase)]
    if len(found) == 1:
        yield from found[0]
        return
    stated = [next((words for words, denied in each if not denied), "") for each in found]
    if stated and all(stated):
        yield stated[0], False
    for each in found:
        yield from ((words, True) for words, denied in each if denied)


@lru_cache(maxsize=20_000)
def _sentences_of(phrase: str) -> Sequence[str]:
    """Return the sentences of a phrase that have terms."""
    return [part for part in _SENTENCE_END.split(_plain(phrase)) if _phrase(part)[0]]


def _find_sentence(phrase: str, text: str) -> Iterator[tuple[str, bool]]:
    """Yield the same for a phrase that is one sentence."""
    terms, phrase_denies = _phrase(phrase)
    for sentence in _sentences(text):
        places = [_places(term, sentence) for term in terms]
        for anchor in min(places, key=len)[:_MOST_PLACES]:
            near: list[int] = []
            for each in places:
                near += sorted(
                    (place for place in each if place not in near), key=lambda at: abs(at - anchor)
                )[:1]
            if len(near) == len(terms) and max(near) - min(near) <= _NEAR + len(near):
                denied = [sentence.clauses[place] for place in near if sentence.clauses[place][1]]
                words = (denied or [sentence.clauses[near[0]]])[0][0]
                yield words[:_LONGEST_QUOTE], bool(denied) != phrase_denies


def _places(term: tuple[str, ...], sentence: _Sentence) -> list[int]:
    """Return the places of a word, or of several characters one after another."""
    first = sentence.places.get(term[0], [])
    return [place for place in first if tuple(sentence.stems[place : place + len(term)]) == term]


def read_fact(fact: Fact, text: str) -> FactRead:
    """Return what a text says of a fact. A denied phrase, or a phrase of ``not`` that is stated, contradicts it."""
    found = [each for phrase in fact.phrases for each in _find(phrase, text)]
    against = [words for words, denied in found if denied]
    against += [
        words for phrase in fact.not_ for words, denied in _find(phrase, text) if not denied
    ]
    return FactRead(
        next((words for words, denied in found if not denied), ""), next(iter(against), "")
    )


def states_fact(fact: Fact, text: str) -> bool:
    """Return True if a text states a fact and does not contradict it."""
    return read_fact(fact, text).state == "stated"


# --- scores ----------------------------------------------------------------------------------------------------------


def score_facts(slot: OpenTextSlot, answer: str) -> tuple[float, dict[str, JsonValue]]:
    """Return the floor of the score of an answer, in [0, 1], and the reading of each fact."""
    text = after_final_answer(answer)
    foreign = {phrases[0]: words for phrases in slot.others if (words := _said(phrases, text))}
    read = [read_fact(fact, text) for fact in slot.facts]
    excluded = [[read_fact(fact, text) for fact in branch.facts] for branch in slot.excluded]
    return scored_facts(slot, read, excluded, text, foreign)


def scored_facts(
    slot: OpenTextSlot,
    read: Sequence[FactRead],
    excluded: Sequence[Sequence[FactRead]],
    text: str,
    foreign: dict[str, str] | None = None,
) -> tuple[float, dict[str, JsonValue]]:
    """Return the score in [0, 1] of a text by the readings of a slot's facts and of its excluded branches'.

    It is :func:`facts_score`, times ``min(1, 150 / words)``, times 1 less the score that the text would have on each
    branch that does not apply. Summed over all branches this is at most 1, so that a text that hedges gains no more on
    average than one that guesses a branch.

    Args:
        foreign: facts of other subjects that the text states, with the words.
    """
    foreign, branches = foreign or {}, [*zip(slot.excluded, excluded, strict=True)]
    factors = {
        "precision": max(
            0.0, 1 - max(0, len(foreign) - 1) / max(1, sum(bool(one.said) for one in read))
        ),
        "length_factor": min(1.0, _most_words(slot) / max(1.0, count_words(text))),
        "branch_factor": math.prod(1 - facts_score(*branch) for branch in branches),
    }
    value = facts_score(slot, read)
    not_asked = [pair for branch, each in branches for pair in zip(branch.facts, each, strict=True)]
    reading: dict[str, JsonValue] = {
        "facts": {fact.phrases[0]: one.state for fact, one in zip(slot.facts, read, strict=True)},
        "said": {
            fact.phrases[0]: words
            for fact, one in zip(slot.facts, read, strict=True)
            if (words := one.denied or one.said)
        },
        "foreign": dict([*foreign.items()][:20]),
        "excluded": {fact.phrases[0]: one.said for fact, one in not_asked if one.said},
        "rule": "facts stated - contradicted, by weight, above the floor, x precision x min(1, 150 / words) x branch",
        **{name: round(factor, 4) for name, factor in factors.items() if factor < 1},
    }
    return value * math.prod(factors.values()), reading


def _most_words(slot: OpenTextSlot) -> float:
    """Return the words that a text may have: the usual number, or those of a phrase that is a longer answer itself."""
    longest = max(count_words(phrase) for fact in slot.facts for phrase in fact.phrases)
    return max(MOST_WORDS, longest)


def facts_score(slot: OpenTextSlot | ExcludedBranch, read: Sequence[FactRead]) -> float:
    """Return the weight of the facts stated less that of those contradicted, as a share above the slot's floor."""
    pairs = [*zip(slot.facts, read, strict=True)]
    share = sum(fact.weight * (bool(one.said) - bool(one.denied)) for fact, one in pairs)
    share /= sum(fact.weight for fact in slot.facts)
    return max(0.0, (share - slot.floor) / (1 - slot.floor))


def _said(phrases: Sequence[str], text: str) -> str:
    """Return the words of a text that state one of several phrases; empty if it states none."""
    return next(
        (words for phrase in phrases for words, denied in _find(phrase, text) if not denied), ""
    )


# --- harmful claims --------------------------------------------------------------------------------------------------


def find_harmful(slot: OpenTextSlot, answer: str) -> list[dict[str, JsonValue]]:
    """Return the harmful claims of the slot that an answer makes: claim, kind, matched words, source, date, region.

    A product counts where it is named without denial, the contrary of a fact where the fact is only contradicted.
    """
    text = after_final_answer(answer)
    made: list[dict[str, JsonValue]] = []
    for harm in slot.harmful:
        fact = next(
            (fact for fact in slot.facts if fact.phrases == harm.phrases),
            Fact(phrases=harm.phrases),
        )
        read = read_fact(fact, text)
        if (
            words := _said(harm.phrases, text)
            if harm.match == "use"
            else read.denied * (not read.said)
        ):
            fields = harm.model_dump(
                mode="json", include={"claim", "kind", "source", "date", "region"}
            )
            made.append({**fields, "words": words})
    return made
