"""Families of words that say one thing of a subject, with the words that say the opposite (English and Chinese)."""

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from agrotools.core import Slot
from agrotools.text.negation import Negations
from agrotools.text.normalise import CJK, normalise

_COMPARE = frozenset("多大高宽长重密快好深厚少小低矮窄短轻稀慢差浅薄")
_TABLE = Path(__file__).parents[1] / "data" / "opposites.txt"


class Family(NamedTuple):
    """Words of one meaning and of its opposite: the pattern that finds either, and the one of the opposites alone."""

    either: re.Pattern[str]
    opposite: re.Pattern[str]
    own: re.Pattern[str]

    def find(self, text: str, *, in_label: bool = False) -> list[tuple[int, int, bool]]:
        """Start, end and whether it asserts, of each word of the family in ``text``.

        ``in_label``: only words that make a label one of this family: "exceeds" denies "within", but asks for no range.
        """
        return [
            (found.start(), found.end(), self.opposite.fullmatch(found[0]) is None)
            for found in (self.own if in_label else self.either).finditer(text)
        ]


def _pattern(words: list[str]) -> re.Pattern[str]:
    latin = [word for word in words if word < "\u2e80"]
    chinese = [word for word in words if word > "\u2e80"]
    parts = "|".join(
        re.escape(word).replace(r"\*", "[a-z]*").replace("_", " ") for word in sorted(latin, key=len, reverse=True)
    )
    return re.compile(
        "|".join(
            [rf"(?<![a-z\d])(?<![a-z\d]-)(?:{parts})(?![a-z\d])", *map(_alone, sorted(chinese, key=len, reverse=True))]
        )
    )


def _alone(word: str) -> str:
    """A Chinese word; one of comparison of a single character is none inside another word, as in 大棚 and 长势."""
    return rf"(?:(?<=[更较最偏很]){word}|{word}(?![{CJK}])|{word}(?=[的于得出些]))" if word in _COMPARE else word


def _family(line: str) -> Family:
    yes, _, no = line.partition("/")
    # A stem with an ending would take "unchanged" for "chang*" only at a word's beginning: no overlap to be sorted out.
    own = [word for word in (yes + no).split() if word[0] != "~"]
    yes, no = yes.replace("~", ""), no.replace("~", "")
    return Family(_pattern(yes.split() + no.split()), _pattern(no.split()), _pattern(own))


@lru_cache(maxsize=1)
def _all_families() -> tuple[Family, ...]:
    lines = _TABLE.read_text("utf-8").splitlines()
    return tuple(_family(line) for line in lines if line and not line.startswith("#"))


@lru_cache(maxsize=1)
def families() -> tuple[Family, ...]:
    """All families but that of comparatives."""
    return _all_families()[1:]


@lru_cache(maxsize=1)
def presence() -> Family:
    """The family of "present" and "visible": what is there is also said by naming it."""
    return next(family for family in families() if family.either.fullmatch("present"))


def comparatives() -> Family:
    """More and less: which of two things has more of something."""
    return _all_families()[0]


def senses(slot: Slot) -> tuple[tuple[Family, bool], ...]:
    """The families of which a slot's label has a word, and whether it has it in the asserting sense."""
    return _senses(normalise(slot.label))


@lru_cache(maxsize=1_000)
def _senses(label: str) -> tuple[tuple[Family, bool], ...]:
    more = comparatives().find(label, in_label=True)[-1:]
    found = [
        (family, hits[-1])
        for family in families()
        if family is not presence() and (hits := family.find(label, in_label=True))
    ]
    # "fewer clouds" asks for the opposite of clouds; "wetter" is of both families.
    less = [hit for hit in more if not hit[2]]
    flipped = [(family, hit[2] != any(word[1] <= hit[0] for word in less)) for family, hit in found]
    return (*((comparatives(), hit[2]) for hit in more), *flipped)


def sense_of(text: str, asked: Sequence[tuple[Family, bool]]) -> int:
    """Whether ``text`` says what is asked (1), the opposite (-1), or neither of them, or both (0)."""
    if not asked or not text.strip():
        return 0
    negations = Negations(text)
    for family, own in asked:
        said = {
            (asserts == own) != ((negations.count_before(start) + text.startswith(" no ", end)) % 2 == 1)
            for start, end, asserts in family.find(text)
        }
        if len(said) == 1:
            return 1 if said.pop() else -1
    return 0
