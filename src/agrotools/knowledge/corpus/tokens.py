"""From text to terms: numbers of 48 bits that stand for pairs of characters or for words.

Text in scripts without spaces between words (Chinese, Japanese kana, Thai, Lao, Khmer, Burmese) is taken in
overlapping pairs of characters, a character that stands alone by itself; all else in words, folded to lower case,
numbers with their decimal point. Full-width letters and digits count as plain ones. With ``jieba`` Chinese is cut into
words first, as its ``cut_for_search`` does: long words and the shorter ones in them.

A pair of characters of the basic plane is its own number, below 2**32. A word is hashed to 47 bits under a set top
bit; two of ten million words share a number in about one corpus of three, and then count as one word.
"""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from agrotools.core import UsageError
from agrotools.text.jieba_words import jieba_cutter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TokensName = Literal["bigrams", "jieba"]
TERM_BITS = 48
WORD, UNSPACED = 1, 2
"""Kinds of characters; 0 parts words."""
Numbers = NDArray[np.uint64]

_UNSPACED_RANGES = (
    (0x0E01, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),
    (0x3021, 0x3029),
    (0x3041, 0x3096),  # kana
    (0x309D, 0x309F),
    (0x30A1, 0x30FA),
    (0x30FC, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
)
_BASIC = 0x10000
_FIRST_EMOJI, _FIRST_RARE_IDEOGRAPH = 0x1F000, 0x20000
_STEP = np.uint64(0x9E3779B97F4A7C15)


class Tokens:
    """One way of cutting text into terms.

    Raises:
        UsageError: it needs jieba and that is not installed.
    """

    def __init__(self, name: TokensName) -> None:
        self._cut: Callable[[str], Iterable[str]] | None = None
        self.version = "1"
        """Goes up when the same text gives other terms."""
        if name == "jieba":
            cutter, version = jieba_cutter()
            self._cut = cutter.cut_for_search
            self.version = f"1, jieba {version}"

    def terms(self, texts: Sequence[str]) -> tuple[Numbers, NDArray[np.int64]]:
        """The terms of some texts as ``(terms, owners)``: each occurrence, and the number of the text it stands in."""
        if self._cut is not None:
            texts = ["\n".join(self._cut(text)) for text in texts]
        lengths = np.fromiter((len(text) + 1 for text in texts), np.int64, len(texts))
        found, at = _terms(code_points("\n".join(texts)), pairs=self._cut is None)
        return found, np.repeat(np.arange(len(texts)), lengths)[at]


def known_tokens(name: str) -> TokensName:
    """``name`` if it is one of the ways.

    Raises:
        UsageError: it is none.
    """
    for known in get_args(TokensName):
        if name == known:
            return known
    raise UsageError(f"tokens is {name!r}", hint=f"choose {' or '.join(get_args(TokensName))}")


def code_points(text: str) -> NDArray[np.uint32]:
    """(characters,) code points, folded: lower case, plain letters and digits for full-width ones."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    folds, _ = _tables()
    if points.size and points.max() >= _BASIC:
        return np.where(points < _BASIC, folds[np.minimum(points, _BASIC - 1)], points)
    return folds[points]


def kinds(points: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """(characters,) what each folded code point is: 0, ``WORD`` or ``UNSPACED``."""
    _, table = _tables()
    if points.size and points.max() >= _BASIC:
        rare = np.where(points < _FIRST_EMOJI, WORD, np.where(points < _FIRST_RARE_IDEOGRAPH, 0, UNSPACED))
        kind = np.where(points < _BASIC, table[np.minimum(points, _BASIC - 1)], rare.astype(np.uint8))
    else:
        kind = table[points]
    if points.size > 2:
        digit = (points >= ord("0")) & (points <= ord("9"))
        kind[1:-1][(points[1:-1] == ord(".")) & digit[:-2] & digit[2:]] = WORD
    return kind


def _terms(points: NDArray[np.uint32], *, pairs: bool) -> tuple[Numbers, NDArray[np.int64]]:
    """Terms and where each begins. Without ``pairs``, characters of unspaced scripts form words like all others."""
    kind = kinds(points)
    unspaced = kind == UNSPACED
    if not pairs:
        return _words(points, kind > 0, np.zeros(len(points), bool))
    beside = np.zeros(len(points) + 1, bool)
    beside[1:-1] = unspaced[:-1] & unspaced[1:]
    alone = unspaced & ~beside[:-1] & ~beside[1:]
    first = np.flatnonzero(beside[1:])
    left, right = points[first].astype(np.uint64), points[first + 1].astype(np.uint64)
    found = left << np.uint64(16) | right
    wide = (left | right) >= _BASIC
    if wide.any():
        found[wide] = _closed(_mixed(left[wide] + _STEP) + _mixed(right[wide] + _STEP + _STEP))
    words, at = _words(points, (kind == WORD) | alone, alone)
    return np.concatenate((found, words)), np.concatenate((first, at))


def _words(
    points: NDArray[np.uint32], inside: NDArray[np.bool_], alone: NDArray[np.bool_]
) -> tuple[Numbers, NDArray[np.int64]]:
    """The hash and the beginning of each run of characters that are ``inside``; one that is ``alone`` is a run."""
    at = np.flatnonzero(inside)
    if not at.size:
        return np.zeros(0, np.uint64), at
    begins = np.ones(len(at), bool)
    begins[1:] = (at[1:] != at[:-1] + 1) | alone[at[1:]] | alone[at[:-1]]
    starts = np.flatnonzero(begins)
    lengths = np.diff(starts, append=len(at))
    place = (np.arange(1, len(at) + 1) - np.repeat(starts, lengths)).astype(np.uint64)
    return _closed(np.add.reduceat(_mixed(points[at] + place * _STEP), starts)), at[starts]


def _mixed(values: Numbers) -> Numbers:
    """The finalizer of splitmix64 (Steele, Lea and Flood 2014): every bit in hangs on every bit out."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _closed(sums: Numbers) -> Numbers:
    top = np.uint64(1 << (TERM_BITS - 1))
    return (_mixed(sums) & (top - np.uint64(1))) | top


@lru_cache(1)
def _tables() -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Of each code point of the basic plane what it folds to, and its kind."""
    folds = np.arange(_BASIC, dtype=np.uint32)
    folds[0xFF01:0xFF5F] -= 0xFEE0
    folds[0x3000] = ord(" ")
    for point in range(_BASIC):
        lower = chr(folds[point]).lower()
        if len(lower) == 1:
            folds[point] = ord(lower)
    table = np.array([unicodedata.category(chr(point))[0] in "LMN" for point in range(_BASIC)], np.uint8)
    for first, last in _UNSPACED_RANGES:
        table[first : last + 1] *= UNSPACED
    return folds, table
