"""Words of a label in a sentence, whatever their form: by stems, by families (deep, depth), and in Chinese."""

import re
from functools import cache, lru_cache

from agrotools.scoring.reading_translation import translated
from agrotools.text.normalise import WORD
from agrotools.text.statements import stemmer

_FAMILIES = """
deep depth; wide width broad breadth; long length; high height tall; thick thickness; heavy weigh weight mass
warm hot temperature degree; old age; fast speed; dense density; moist moisture humid humidity wet
slope gradient steep; dead die death mortal; infect disease diseased sick infest; miss gap absent; cost price
rain rainfall precipitation; emerge emergence; cow cattle; sow seed; harvest yield pick; grow growth
lose loss disappear vanish gone; big large size; sheep ewe; circumference girth
share percentage fraction percent proportion
"""
_LATIN = re.compile(rf"{WORD}{{3,}}|\bph\b")


@cache
def _family() -> dict[str, str]:
    lines = (line.split() for line in _FAMILIES.replace("\n", ";").split(";"))
    return {stemmer().stemWord(word): words[0] for words in lines for word in words}


@lru_cache(maxsize=4_000)
def _root(word: str) -> str:
    stemmed: str = stemmer().stemWord(word)
    return _family().get(stemmed, stemmed)


@lru_cache(maxsize=8_000)
def roots(text: str) -> frozenset[str]:
    """What the forms of the words of ``text``, and words of one family, have in common."""
    return frozenset(_root(word) for word in _LATIN.findall(text))


def says(word: str, said: frozenset[str], text: str) -> bool:
    """Whether ``text``, of which ``said`` are the :func:`roots`, has a form of ``word`` or a Chinese word for it."""
    if word > "\u2e80":
        return word in text
    if _root(word) in said:
        return True
    return not text.isascii() and any(chinese in text for chinese in translated(word))
