"""Passages of text and their terms: 48-bit numbers for pairs of characters or for words.

Text in scripts without spaces between words (Chinese, Japanese kana, Thai, Lao, Khmer, Burmese) is split into
overlapping pairs of characters; a character without neighbours is a term itself. All other text is split into words,
folded to lower case; numbers include their decimal point. Full-width letters and digits are treated as plain ones.

Pairs and words are hashed, so that terms are spread evenly over all numbers. With ten million terms, about one corpus
in six has a collision, and its two terms count as one.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

TERM_BITS = 48
TERMS_VERSION = "2"
"""Version of the terms; it increases when the same text gives other terms."""
WORD, UNSPACED = 1, 2
"""Kinds of characters; 0 separates words."""
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

UNITS = 300
"""Maximum number of units per passage. A unit is a word, or a character in scripts without spaces between words."""
_LONGEST = 10
"""Maximum number of characters per unit of a passage, because words, or rows of dots, may be long."""
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Characters that could control a terminal; each is replaced by a space."""
_BLOCK = 1 << 16
_AHEAD = 2
"""Number of characters after a position that decide if a sentence ends there."""

_FINAL = np.zeros(0x10000, bool)
_FINAL[[ord(char) for char in "。！？!?；;…\n"]] = True
_CLOSING = np.zeros(0x10000, bool)
_CLOSING[[ord(char) for char in "”’」』）》】\"')]"]] = True
_PAUSE = np.zeros(0x10000, bool)
_PAUSE[[ord(char) for char in "，、：,: \t\u3000"]] = True


def terms_of(texts: Sequence[str]) -> tuple[Numbers, NDArray[np.int64]]:
    """Return the terms of texts as ``(terms, owners)``: each occurrence, and the number of its text."""
    lengths = np.fromiter((len(text) + 1 for text in texts), np.int64, len(texts))
    points = code_points("\n".join(texts))
    kind = kinds(points)
    unspaced = kind == UNSPACED
    beside = np.zeros(len(points) + 1, bool)
    beside[1:-1] = unspaced[:-1] & unspaced[1:]
    alone = unspaced & ~beside[:-1] & ~beside[1:]
    first = np.flatnonzero(beside[1:])
    pairs = _hashed(points[first].astype(np.uint64) << np.uint64(32) | points[first + 1])
    words, at = _words(points, (kind == WORD) | alone, alone)
    return np.concatenate((pairs, words)), np.repeat(np.arange(len(texts)), lengths)[np.concatenate((first, at))]


def code_points(text: str) -> NDArray[np.uint32]:
    """Return code points (characters,), folded to lower case, and full-width letters and digits to plain ones."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    folds, _ = _tables()
    if points.size and points.max() >= _BASIC:
        return np.where(points < _BASIC, folds[np.minimum(points, _BASIC - 1)], points)
    return folds[points]


def kinds(points: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Return the kind of each folded code point (characters,): 0, ``WORD`` or ``UNSPACED``."""
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


def _words(
    points: NDArray[np.uint32], inside: NDArray[np.bool_], alone: NDArray[np.bool_]
) -> tuple[Numbers, NDArray[np.int64]]:
    """Return hash and start of each run of characters that are ``inside``; a character that is ``alone`` is a run."""
    at = np.flatnonzero(inside)
    if not at.size:
        return np.zeros(0, np.uint64), at
    begins = np.ones(len(at), bool)
    begins[1:] = (at[1:] != at[:-1] + 1) | alone[at[1:]] | alone[at[:-1]]
    starts = np.flatnonzero(begins)
    lengths = np.diff(starts, append=len(at))
    place = (np.arange(1, len(at) + 1) - np.repeat(starts, lengths)).astype(np.uint64)
    return _hashed(np.add.reduceat(_mixed(points[at] + place * _STEP), starts)), at[starts]


def _mixed(values: Numbers) -> Numbers:
    """Finalizer of splitmix64 (Steele, Lea and Flood 2014): every output bit depends on every input bit."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _hashed(values: Numbers) -> Numbers:
    return _mixed(values + _STEP) & np.uint64((1 << TERM_BITS) - 1)


@lru_cache(1)
def _tables() -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Return folded form and kind of each code point of the basic plane."""
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


def split(pieces: Iterable[str], units: int = UNITS) -> Iterator[tuple[int, str]]:
    """Yield the passages of a document as ``(position, text)``; the boundaries of the pieces do not matter.

    A passage ends at the last end of a sentence among its ``units``; if that would leave it less than half full, at the
    last comma or space; otherwise after ``units``. Together the passages contain everything except the space between
    them and stretches without any letter or digit.

    Args:
        pieces: consecutive parts of the text.
        units: maximum number of units per passage.

    Yields:
        The position of the passage's first character in the document, and its text without surrounding space.
    """
    rest, at = "", 0
    for piece in pieces:
        for start in range(0, len(piece), _BLOCK):
            rest += _CONTROLS.sub(" ", piece[start : start + _BLOCK])
            if len(rest) < _BLOCK:
                continue
            cuts = _cuts(rest, units, ended=False)
            yield from _passages(rest, at, cuts)
            if cuts:
                at += cuts[-1]
                rest = rest[cuts[-1] :]
    yield from _passages(rest, at, _cuts(rest, units, ended=True))


def _passages(text: str, at: int, cuts: list[int]) -> Iterator[tuple[int, str]]:
    start = 0
    for cut in cuts:
        part = text[start:cut]
        stripped = part.strip()
        if stripped and kinds(code_points(stripped)).any():
            yield at + start + len(part) - len(part.lstrip()), stripped
        start = cut


def _cuts(text: str, units: int, *, ended: bool) -> list[int]:
    """Return the ends of the passages in ``text``, which begins with one.

    Unless ``ended``, the result contains only ends that later text cannot change.
    """
    if ended and len(text) <= units:
        return [len(text)] if text else []
    points = code_points(text)
    kind = kinds(points)
    counted = kind == UNSPACED
    counted |= kind == WORD
    counted[1:] &= (kind[1:] == UNSPACED) | (kind[:-1] != WORD)
    # so_far[i]: number of units that begin before character i
    so_far = np.concatenate((np.zeros(1, np.int64), np.cumsum(counted)))
    whole, parts = _sentence_ends(points), np.flatnonzero(_looked_up(_PAUSE, points)) + 1
    known = len(text) if ended else len(text) - _AHEAD
    longest = _LONGEST * units
    cuts: list[int] = []
    start = 0
    while start < len(text):
        # A word that was cut counts again in the passage in which it continues.
        has = int(so_far[start]) - bool(kind[start] == WORD and not counted[start])
        limit = min(int(np.searchsorted(so_far, has + units, "right")) - 1, start + longest)
        if limit >= known:
            if ended:
                cuts.append(len(text))
            break
        least = min(int(np.searchsorted(so_far, has + units // 2, "right")), start + longest // 2)
        start = _last(whole, least, limit) or _last(parts, least, limit) or limit
        cuts.append(start)
    return cuts


def _sentence_ends(points: NDArray[np.uint32]) -> NDArray[np.intp]:
    """Return positions after the last character of a sentence, including closing quotes and brackets."""
    final, closing = _looked_up(_FINAL, points), _looked_up(_CLOSING, points)
    # A full stop ends a sentence only before space or a closing mark: not in 3.5 or in example.org.
    follows = closing | final | _looked_up(_PAUSE, points)
    final[:-1] |= (points[:-1] == ord(".")) & follows[1:]
    ends = final.copy()
    ends[1:] |= closing[1:] & final[:-1]
    ends[:-1] &= ~(final[1:] | closing[1:])
    return np.flatnonzero(ends) + 1


def _looked_up(table: NDArray[np.bool_], points: NDArray[np.uint32]) -> NDArray[np.bool_]:
    return table[np.minimum(points, 0xFFFF)]


def _last(places: NDArray[np.intp], least: int, most: int) -> int:
    """Return the last of the places that is above ``least`` and at most ``most``; 0 if there is none."""
    place = int(np.searchsorted(places, most, "right"))
    return int(places[place - 1]) if place and places[place - 1] > least else 0
