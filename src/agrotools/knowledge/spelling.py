"""Spelling: the edit distance of two words, and known words that an unknown one may be a slip for."""

from collections.abc import Iterable

import numpy as np

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MOST = 4


def edit_distance(a: str, b: str) -> int:
    """Insertions, deletions, substitutions and swaps of neighbours between ``a`` and ``b`` (optimal string alignment).

    Source: bit-parallel, Hyyro 2003, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances";
    each character of ``b`` costs a few operations on integers of ``len(a)`` bits.
    """
    if a == b:
        return 0
    if not a or not b:
        return len(a) + len(b)
    where: dict[str, int] = {}
    for at, char in enumerate(a):
        where[char] = where.get(char, 0) | 1 << at
    every, last = (1 << len(a)) - 1, 1 << (len(a) - 1)
    positive, negative, diagonal, before = every, 0, 0, 0
    distance = len(a)
    for char in b:
        match = where.get(char, 0)
        swapped = ((~diagonal & match) << 1) & before
        diagonal = (((((match & positive) + positive) ^ positive) | match | negative) | swapped) & every
        up = (negative | ~(diagonal | positive)) & every
        down = positive & diagonal
        if up & last:
            distance += 1
        elif down & last:
            distance -= 1
        up = (up << 1 | 1) & every
        down = (down << 1) & every
        positive = (down | ~(diagonal | up)) & every
        negative = up & diagonal
        before = match
    return distance


def similarity(a: str, b: str) -> float:
    """1 for equal texts, 0 for texts of which nothing fits: 1 - distance / length of the longer."""
    longest = max(len(a), len(b))
    return 1.0 if not longest else 1.0 - edit_distance(a, b) / longest


class Lexicon:
    """Words that are rightly spelt. Finds those within one slip of a word (two where it has eight letters or more)."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(sorted(set(words)))
        self._known = frozenset(self.words)
        counts = [[word.count(letter) for letter in _LETTERS] for word in self.words]
        self._counts = np.array(counts or [[0] * len(_LETTERS)], np.int16)
        self._found: dict[str, tuple[str, ...]] = {}

    def __contains__(self, word: str) -> bool:
        return word in self._known

    def corrections(self, word: str) -> tuple[str, ...]:
        """The nearest known words, at most four; none for a known word, a short one, or one with digits."""
        if word in self._known or not 4 <= len(word) <= 40 or not (word.isascii() and word.isalpha()):
            return ()
        if word not in self._found:
            if len(self._found) > 10_000:
                self._found.clear()
            self._found[word] = self._nearest(word)
        return self._found[word]

    def _nearest(self, word: str) -> tuple[str, ...]:
        most = 1 if len(word) < 7 else 2
        # A slip changes at most two counts of letters, so few words remain to be compared letter by letter.
        own = np.array([word.count(letter) for letter in _LETTERS], np.int16)
        apart = np.abs(self._counts - own).sum(axis=1)
        near = [
            (edit_distance(self.words[at], word), self.words[at])
            for at in np.flatnonzero(apart <= 2 * most)
            if at < len(self.words) and len(self.words[at]) >= 4
        ]
        near = sorted(item for item in near if item[0] <= most)
        return tuple(known for distance, known in near if distance == near[0][0])[:_MOST]
