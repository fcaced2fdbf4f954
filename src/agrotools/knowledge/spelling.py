"""Words of a question that no entry knows: which known words they may be slips for."""

from collections.abc import Iterable

import numpy as np

from agrotools.knowledge.edits import edit_distance

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MOST = 4


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
