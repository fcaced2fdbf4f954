"""The best constant reply to open-text questions: what may be earned without looking at the question.

Greedy search, by topic and language, over the phrasings of all key facts on a topic: the phrasing that raises the mean
score over all entries the most is added until none does.

    python performance/open_text_constant.py [--headline]
"""

import argparse
import re
from typing import NamedTuple

from agrotools.build.templates.key_facts import open_gold, topics_with_facts
from agrotools.core import OpenTextSlot
from agrotools.scoring.open_text import facts_score, foreign_facts, read_facts, score_facts
from agrotools.text.claims import claim_of, lexicon_words, reply_of

_HAN = re.compile("[一-鿿]")

BEAM = 4
"""Replies that are extended at each step."""


class Effect(NamedTuple):
    """What one sentence does to one slot: the facts it states, those it contradicts, the foreign ones it claims."""

    stated: frozenset[int]
    contradicted: frozenset[int]
    foreign: frozenset[str]


class Constant(NamedTuple):
    """A reply, its mean score over the slots of a topic, and how many slots there are."""

    reply: str
    mean: float
    slots: int


def slots_on(topic: str, headline: bool) -> list[OpenTextSlot]:
    """One open-text slot for each entry with key facts on ``topic``; ``headline``: those alone that count there."""
    golds = [open_gold(entry, of) for entry, of in topics_with_facts() if of == topic]
    return [
        OpenTextSlot.model_validate({"name": "advice", "label": "advice", **gold._asdict()})
        for gold in golds
        if gold is not None and (gold.headline or not headline)
    ]


def best_constant(topic: str, language: str = "en", headline: bool = False, most: int = 12) -> Constant:
    """The best reply that a search of at most ``most`` sentences finds, scored as any reply is."""
    slots = slots_on(topic, headline)
    if not slots:
        return Constant("", 0.0, 0)
    phrases = dict.fromkeys(phrase for slot in slots for fact in slot.facts for phrase in fact.phrases)
    pool = list(phrases) if language == "en" else list(dict.fromkeys(filter(None, map(_in_chinese, phrases))))
    stop = "." if language == "en" else "。"
    effects = {sentence: [_effect(slot, sentence + stop) for slot in slots] for sentence in pool}
    beam: list[tuple[float, tuple[str, ...]]] = [(0.0, ())]
    best = beam[0]
    for _ in range(most):
        longer: dict[frozenset[str], tuple[float, tuple[str, ...]]] = {}
        for _, held in beam:
            for sentence in pool:
                reply = (*held, sentence)
                if sentence in held or frozenset(reply) in longer:
                    continue
                longer[frozenset(reply)] = (_mean(slots, [effects[one] for one in reply]), reply)
        beam = sorted(longer.values(), reverse=True)[:BEAM]
        if not beam or beam[0][0] <= best[0] - 0.005:
            break
        best = max(best, beam[0])
    reply = " ".join(one + stop for one in best[1])
    return Constant(reply, sum(score_facts(slot, reply)[0] for slot in slots) / len(slots), len(slots))


def _effect(slot: OpenTextSlot, sentence: str) -> Effect:
    reply = reply_of(sentence)
    read = read_facts(slot.facts, reply)
    return Effect(
        frozenset(number for number, one in enumerate(read) if one.stated),
        frozenset(number for number, one in enumerate(read) if one.contradicted),
        frozenset(name for name, _ in foreign_facts(slot, reply, read)),
    )


def _mean(slots: list[OpenTextSlot], rows: list[list[Effect]]) -> float:
    total = 0.0
    for number, slot in enumerate(slots):
        own = [row[number] for row in rows]
        stated = frozenset[int]().union(*(one.stated for one in own))
        against = frozenset[int]().union(*(one.contradicted for one in own))
        foreign = frozenset[str]().union(*(one.foreign for one in own))
        total += facts_score(slot, stated, against, len(foreign))[0]
    return total / len(slots)


def _in_chinese(phrase: str) -> str:
    """A phrasing in Chinese: the first Chinese word of each of its ideas; nothing where one has none."""
    words = [
        next((word for name in sorted(names) for word in lexicon_words(name) if _HAN.search(word)), "")
        for names in claim_of(phrase).ideas
    ]
    return "" if "" in words else "".join(words)


def report(language: str, headline: bool) -> float:
    """Print the best constant reply on each topic in a language; returns the mean over all slots."""
    found = {topic: best_constant(topic, language, headline) for topic in sorted({of for _, of in topics_with_facts()})}
    for topic, constant in found.items():
        print(f"{language} {topic}: {100 * constant.mean:.1f} % over {constant.slots} slots: {constant.reply}")
    count = sum(constant.slots for constant in found.values())
    mean = sum(constant.mean * constant.slots for constant in found.values()) / count
    print(f"{language} all: {100 * mean:.1f} % over {count} slots")
    return mean


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--headline", action="store_true", help="only slots that count in headline figures")
    chosen = parser.parse_args()
    for spoken in ("en", "zh"):
        report(spoken, chosen.headline)
