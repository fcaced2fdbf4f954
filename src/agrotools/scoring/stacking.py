"""Whether a keyword stands in an answer, or in a heap of words and numbers that would hit any keyword."""

import re
from collections.abc import Collection
from functools import lru_cache

from agrotools.text.listing import Beside, beside, concluding_numbers, further_claims, numbers_beside
from agrotools.text.normalise import normalise

_MOST_BESIDE = 4
_MOST_CLAIMS = 3
"""Other names that may be listed with a keyword, and that sentences of the form "it is X" may name."""
_MOST_NUMBERS_BESIDE = 2
MOST_PLACES = 60
"""Places of one keyword that are looked at."""


class Stacks:
    """One normalised text and the keywords that are right in it (``wanted``), asked for any number of places."""

    def __init__(self, text: str, wanted: Collection[str]) -> None:
        self._text = text
        self._wanted = [word for each in wanted if (word := normalise(each).strip())]
        self._numbers = {_bare(word) for word in self._wanted}
        self._result = concluding_numbers(text)
        self._claims = len(further_claims(text, self._is_wanted)) > _MOST_CLAIMS

    def _is_wanted(self, item: str) -> bool:
        return any(word in item for word in self._wanted)

    def holds(self, start: int, end: int) -> bool:
        """Whether ``text[start:end]`` stands in a heap rather than in an answer."""
        text = self._text
        if any(letter.isdigit() for letter in text[start:end]):
            if self._result is not None and start < self._result[0]:
                return True
            numbers = numbers_beside(text, start, end)
            others = tuple(number for number in numbers.items if _bare(number) not in self._numbers)
            if _is_heap(Beside(others, numbers.alternatives), _MOST_NUMBERS_BESIDE):
                return True
        return self._claims or _is_heap(beside(text, start, end, self._is_wanted), _MOST_BESIDE)


def _is_heap(found: Beside, most: int) -> bool:
    return len(found.items) > most or (found.alternatives and bool(found.items))


@lru_cache(maxsize=20_000)
def _bare(number: str) -> str:
    return re.sub(r"[^\d.]", "", number).rstrip(".")


_YES_WORDS = frozenset("yes true 是 有 对 是的".split())
_NO_WORDS = frozenset("no false 否 没有 不是 不".split())


def asks_yes_or_no(aliases: Collection[str]) -> bool | None:
    """Whether a group of keywords is a yes (True) or a no (False); None where it is neither."""
    words = {normalise(alias).strip() for alias in aliases}
    yes, no = bool(words & _YES_WORDS), bool(words & _NO_WORDS)
    return None if yes == no else yes
