"""Levels of a column: the different treatments, or blocks, that its cells name.

Spellings that differ in case and spaces alone are one level: ``Hafer``, ``HAFER``; ``N120``, ``N 120``. Those that
differ in a letter are two, and are near if one of them is rare.
"""

import re
from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from agrotools.knowledge.words import edit_distance

_LEAST_WORD = 5
"""Letters of a word from which another letter is likelier a slip than another name: ``Senf``, ``Sand``.

A table of trials has ``Ascherberg`` in four rows for ``Ascheberg``: github.com/PecanProject/bety/issues/254.
"""
_MOST_OF_SLIP = 0.5
"""Largest share that the plots of a slip have of the median of all levels: most treatments have as many plots."""


class Levels(NamedTuple):
    """Levels of a column. ``of_zones``: the level of each zone, None where it has none; ``in_order``: the different
    ones, numbers in their order, then names in that of their letters, with numbers in names as numbers (N60, N120);
    ``joined``: other spellings by level."""

    of_zones: list[str | None]
    in_order: list[str]
    joined: dict[str, list[str]]

    def named(self, text: str) -> str | None:
        """Return the level that a text names; None if none."""
        return next((level for level in self.in_order if _key(level) == _key(text)), None)


def levels_of(values: Sequence[Any]) -> Levels:
    """Return the levels of the values of zones. The commonest spelling of a level stands for all of them."""
    filled = [value for value in values if value is not None]
    by_key: dict[str, Counter[str]] = {}
    for value in filled:
        text = _text(value)
        by_key.setdefault(_key(text), Counter())[text] += 1
    names = {key: spellings.most_common(1)[0][0] for key, spellings in by_key.items()}
    of_zones = [None if value is None else names[_key(_text(value))] for value in values]
    in_order = dict.fromkeys(names[_key(_text(value))] for value in sorted(filled, key=_place))
    joined = {
        names[key]: sorted(spellings.keys() - {names[key]})
        for key, spellings in by_key.items()
        if len(spellings) > 1
    }
    return Levels(of_zones, [*in_order], joined)


def near_pairs(levels: Levels) -> list[tuple[str, str]]:
    """Return the pairs of a rare level and another one from which it differs by one letter of a word."""
    plots = Counter(level for level in levels.of_zones if level is not None)
    most = _MOST_OF_SLIP * median(plots.values()) if plots else 0
    rare = [level for level in levels.in_order if plots[level] <= most]
    pairs: list[tuple[str, str]] = []
    for level in rare:
        for other in levels.in_order:
            is_new = (other, level) not in pairs
            if is_new and _is_slip(level.casefold(), other.casefold()):
                pairs.append((level, other))
    return pairs


def _is_slip(one: str, other: str) -> bool:
    """Return True if two names differ by a letter of one word without digits."""
    ours, theirs = one.split(), other.split()
    if len(ours) != len(theirs):
        return False
    different = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
    if len(different) != 1:
        return False
    word, known = different[0]
    are_words = _is_word(word) and _is_word(known)
    return are_words and abs(len(word) - len(known)) <= 1 and edit_distance(word, known) == 1


def _is_word(text: str) -> bool:
    return text.isalpha() and len(text) >= _LEAST_WORD


def _place(value: Any) -> tuple[bool, float, list[str | int], str]:
    """Return the place of a value in order: numbers first, then names with their numbers compared as numbers."""
    is_number = isinstance(value, int | float)
    # The parts of a name alternate: text, number, text, ...
    parts = re.split(r"([0-9]+)", _key(_text(value)))
    in_order = [int(part) if place % 2 else part for place, part in enumerate(parts)]
    return not is_number, value if is_number else 0, in_order, str(value)


def _text(value: Any) -> str:
    """Return the name of a level; of numbers, as they are written: 60 and 62.5."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _key(text: str) -> str:
    """Return a name as it is compared with others."""
    return without_spaces(text).casefold()


def without_spaces(text: str) -> str:
    """Return a name without the spaces that tell no numbers apart: ``1 20`` and ``12 0`` stay two."""
    return re.sub(r"(?<!\d) | (?!\d)", "", " ".join(text.split()))
