"""Words of a question that decide its meaning, by kind: ``meaning.toml`` lists them in English and Chinese."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from agrotools.text.normalise import WORD, normalise


class Meaning(NamedTuple):
    """``kinds``: those that a text has words of. ``order``: kinds whose order counts, as they follow each other."""

    kinds: frozenset[str]
    order: tuple[str, ...]


class _Scanner(NamedTuple):
    pattern: re.Pattern[str]
    kind_of: dict[str, tuple[str, bool]]
    """From a phrase to its kind and whether its order counts."""


_GOES_ON = r"(?=\s+(?:[\d{]|an?\b|the\b|half\b|that\b|this\b))"


@cache
def _scanner() -> _Scanner:
    table = tomllib.loads(files("agrotools.build.paraphrasing").joinpath("meaning.toml").read_text("utf-8"))
    entries = [("", False, table["ignored"])]
    entries += [(name, False, words) for name, words in table["set"].items()]
    entries += [(name, True, words) for name, words in table["order"].items()]
    kind_of: dict[str, tuple[str, bool]] = {}
    patterns: dict[str, str] = {}
    for name, ordered, words in entries:
        for phrase in words["en"]:
            plain = phrase.removeprefix("~")
            goes_on = _GOES_ON if phrase != plain else ""
            patterns[plain] = rf"(?<!{WORD}){re.escape(plain)}(?!{WORD}){goes_on}"
            kind_of[plain] = name, ordered
        for phrase in words["zh"]:
            patterns[phrase] = re.escape(phrase)
            kind_of[phrase] = name, ordered
    longest_first = sorted(patterns, key=len, reverse=True)
    return _Scanner(re.compile("|".join(patterns[phrase] for phrase in longest_first)), kind_of)


def meaning_of(text: str) -> Meaning:
    """The kinds of deciding words in ``text``."""
    scanner = _scanner()
    # "isn't" and "can't" hold a "not" that no word list would meet.
    plain = re.sub(r"n't\b", " not", normalise(text)).replace("\n", " ")
    plain = re.sub(r",? or not(?=\s*(?:[?.!;:]|$))", "", plain)
    kinds: set[str] = set()
    order: list[str] = []
    for match in scanner.pattern.finditer(plain):
        kind, ordered = scanner.kind_of[match[0]]
        if not kind:
            continue
        kinds.add(kind)
        if ordered and (not order or order[-1] != kind):
            order.append(kind)
    return Meaning(frozenset(kinds), tuple(order))


_NEGATING = ("un", "non", "in", "im", "dis", "ab", "ir")


def negated_word(variant: str, original: str) -> str | None:
    """A word of one text that is a word of the other with a negating syllable (``ripe``, ``unripe``), or None."""
    first, second = (
        set(re.findall(r"[a-z]{3,}", normalise(text).replace("non-", "non"))) for text in (variant, original)
    )
    for one, other in ((first, second), (second, first)):
        for word in sorted(one - other):
            stem = next((word.removeprefix(syllable) for syllable in _NEGATING if word.startswith(syllable)), "")
            if len(stem) > 3 and stem in other - one:
                return word
    return None
