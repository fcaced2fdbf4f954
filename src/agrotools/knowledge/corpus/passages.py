"""From a document to passages of about 300 units, cut at ends of sentences; the document may be of any length."""

import re
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from agrotools.knowledge.corpus.tokens import UNSPACED, WORD, code_points, kinds

UNITS = 300
"""Units of a passage at most. A unit is a word, or a character in scripts that put no spaces between words."""
_LONGEST = 10
"""Characters of a passage at most, for each unit that it may have: words may be long, and rows of dots too."""
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What could drive a terminal; each becomes a space."""
_BLOCK = 1 << 16
_AHEAD = 2
"""Characters after a place that decide whether a sentence ends there."""

_FINAL = np.zeros(0x10000, bool)
_FINAL[[ord(char) for char in "。！？!?；;…\n"]] = True
_CLOSING = np.zeros(0x10000, bool)
_CLOSING[[ord(char) for char in "”’」』）》】\"')]"]] = True
_PAUSE = np.zeros(0x10000, bool)
_PAUSE[[ord(char) for char in "，、：,: \t\u3000"]] = True


def split(pieces: Iterable[str], units: int = UNITS) -> Iterator[tuple[int, str]]:
    """The passages of a document that comes in pieces, as ``(position, text)``; where it is pieced does not matter.

    A passage ends at the last end of a sentence among its ``units``, or where that would leave it half empty at the
    last comma or space, or else after ``units``. Together the passages hold everything but the space between them and
    stretches without any letter or digit.

    Args:
        pieces: consecutive parts of the text.
        units: the most that a passage may have.

    Yields:
        The place of the passage's first character in the document, and its text without space around it.
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
    """Where passages end in ``text``, which begins with one. If it goes on, only what the rest cannot change."""
    if ended and len(text) <= units:
        return [len(text)] if text else []
    points = code_points(text)
    kind = kinds(points)
    counted = kind == UNSPACED
    counted |= kind == WORD
    counted[1:] &= (kind[1:] == UNSPACED) | (kind[:-1] != WORD)
    # so_far[i]: units that begin before character i
    so_far = np.concatenate((np.zeros(1, np.int64), np.cumsum(counted)))
    whole, parts = _sentence_ends(points), np.flatnonzero(_looked_up(_PAUSE, points)) + 1
    known = len(text) if ended else len(text) - _AHEAD
    longest = _LONGEST * units
    cuts: list[int] = []
    start = 0
    while start < len(text):
        # A word that was cut counts again in the passage that it goes on in.
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
    """Places after the last character of a sentence, closing quotes and brackets included."""
    final, closing = _looked_up(_FINAL, points), _looked_up(_CLOSING, points)
    # A full stop ends a sentence where space or a closing mark follows: not in 3.5 or in example.org.
    follows = closing | final | _looked_up(_PAUSE, points)
    final[:-1] |= (points[:-1] == ord(".")) & follows[1:]
    ends = final.copy()
    ends[1:] |= closing[1:] & final[:-1]
    ends[:-1] &= ~(final[1:] | closing[1:])
    return np.flatnonzero(ends) + 1


def _looked_up(table: NDArray[np.bool_], points: NDArray[np.uint32]) -> NDArray[np.bool_]:
    return table[np.minimum(points, 0xFFFF)]


def _last(places: NDArray[np.intp], least: int, most: int) -> int:
    """The last of the places that is over ``least`` and not over ``most``; 0 where there is none."""
    found = int(np.searchsorted(places, most, "right"))
    return int(places[found - 1]) if found and places[found - 1] > least else 0
