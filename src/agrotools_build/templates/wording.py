"""Wordings of a question: alternatives within a sentence, and words in another language.

``"[How many|What number of] trees [stand|are there] here?"`` is a wording with alternatives; every combination is one
way to ask. An alternative may be empty: ``"Count them[|, please]."``
"""

import math
import re
from collections.abc import Iterable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Literal

from agrotools.core.files import read_table

Language = Literal["en", "zh"]

MOST_OF_ONE = 96
"""Maximum number of combinations kept per wording, spread over all of them."""

_ALTERNATIVES = re.compile(r"\[([^\[\]]*\|[^\[\]]*)\]")


def expanded(wordings: Iterable[str]) -> tuple[str, ...]:
    """Return all ways to ask, each once; wordings alternate, and similar combinations of one wording are far apart."""
    ways = [_combinations(wording) for wording in wordings]
    longest = max((len(each) for each in ways), default=0)
    return tuple(dict.fromkeys(each[k] for k in range(longest) for each in ways if k < len(each)))


def _combinations(wording: str) -> list[str]:
    # Parts with odd indices are the contents of brackets.
    parts = _ALTERNATIVES.split(wording)
    choices = [part.split("|") if k % 2 else [part] for k, part in enumerate(parts)]
    every = ["".join(chosen) for chosen in product(*choices)]
    step = _coprime(round(len(every) * (math.sqrt(5) - 1) / 2), len(every))
    return [every[k * step % len(every)] for k in range(min(len(every), MOST_OF_ONE))]


def _coprime(near: int, count: int) -> int:
    """Return the first number >= ``near`` that is coprime to ``count``, so that its multiples reach every index."""
    step = max(near, 1)
    while math.gcd(step, count) > 1:
        step += 1
    return step


@cache
def _chinese() -> dict[str, str]:
    words: dict[str, str] = {}
    for file in sorted(Path(__file__).with_name("words").glob("*.toml")):
        for english, chinese in read_table(file).items():
            if words.setdefault(english, chinese) != chinese:
                raise ValueError(f"{file.name}: {english} is {words[english]} in another file")
    return words


def translated(language: Language, word: str) -> str:
    """Return ``word`` in that language if a translation is known; file names and numbers are returned unchanged."""
    return _chinese().get(word, word) if language == "zh" else word


def english_names(word: str) -> tuple[str, ...]:
    """Return the English words whose Chinese translation is ``word``."""
    return tuple(english for english, chinese in _chinese().items() if chinese == word)


_SENTENCE = re.compile(r"[^.!?。！？；;\n]+(?:\.(?=\w)[^.!?。！？；;\n]*)*")
# File names in Chinese text have no spaces around them.
_VARIABLE = re.compile(
    r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]+\.(?:jpe?g|png|tiff?|csv|npy|bmp)(?![A-Za-z0-9_])|\d+(?:[.,]\d+)*"
)


def sentences(query: str) -> tuple[str, ...]:
    """Return the sentences of a question without the parts that vary: names of files, numbers and capitals."""
    plain = _VARIABLE.sub("#", query)
    return tuple(
        text
        for each in _SENTENCE.findall(plain)
        if len(text := " ".join(each.casefold().split())) > 1
    )
