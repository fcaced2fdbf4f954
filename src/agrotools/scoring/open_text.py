"""Open text, scored by the key facts it states and contradicts."""

import re
from functools import lru_cache

from pydantic import JsonValue

from agrotools.core import Fact, OpenTextSlot
from agrotools.text.labels import find_labels
from agrotools.text.normalise import CJK

MOST_WORDS = 150
"""Longer answers lose in proportion: facts must be given, not buried."""

_CJK_CHARACTER = re.compile(f"[{CJK}]")
_RUN = re.compile(rf"[^\s{CJK}]+")


@lru_cache(maxsize=64)
def count_words(text: str) -> float:
    """Words of a text; a CJK character counts as half a word."""
    words = sum(any(letter.isalnum() for letter in run[0]) for run in _RUN.finditer(text))
    return words + 0.5 * len(_CJK_CHARACTER.findall(text))


def score_facts(slot: OpenTextSlot, text: str) -> tuple[float, dict[str, JsonValue]]:
    """(stated - contradicted) / facts, floor 0, times min(1, 150 / words); and what was found of each fact."""
    states = [_fact_state(fact, text) for fact in slot.facts]
    stated = sum(state in ("stated", "stated and contradicted") for state in states)
    contradicted = sum(state in ("contradicted", "stated and contradicted") for state in states)
    words = count_words(text)
    length_factor = min(1.0, MOST_WORDS / words) if words else 1.0
    value = max(0.0, (stated - contradicted) / len(slot.facts)) * length_factor
    reading: dict[str, JsonValue] = {
        "facts": {fact.phrases[0]: state for fact, state in zip(slot.facts, states, strict=True)},
        "words": words,
        "length_factor": round(length_factor, 4),
        "rule": "(stated - contradicted) / facts x min(1, 150 / words)",
    }
    return value, reading


def _fact_state(fact: Fact, text: str) -> str:
    """A fact is contradicted by a phrase of its ``not`` list, or by its own phrase under negation."""
    matches = find_labels(text, {"states": fact.phrases, "contradicts": fact.not_})
    stated = any(match.label == "states" and match.asserted for match in matches)
    contradicted = any((match.label == "contradicts") == match.asserted for match in matches)
    if stated and contradicted:
        return "stated and contradicted"
    return "stated" if stated else "contradicted" if contradicted else "missing"
