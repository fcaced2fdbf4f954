"""ROUGE-L of two texts: how long a sequence of characters, or of words, they share in order.

With L the length of the longest common subsequence, precision is L / len(answer), recall L / len(reference), and the
score their harmonic mean, 2 L / (len(answer) + len(reference)): the form of the AgriEval paper at alpha = 1, where it
makes no difference which of the texts is the reference.

The subsequence is found by bits (Crochemore, Iliopoulos, Pinzon and Reid 2001, "A fast and practical bit-vector
algorithm for the longest common subsequence problem"; in the form of Hyyrö 2004, "Bit-parallel LCS-length computation
revisited"): one whole number holds a row of the usual table, a bit for each character.
"""

import re
import string
import warnings
from collections.abc import Hashable, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

from agrotools.core import UsageError
from agrotools.core.base import install_command
from agrotools.core.files import cache_dir
from agrotools.text.normalise import CJK, WORD, normalise

LONGEST = 20_000
"""Characters of either text that are compared, from its beginning. A longer text still counts with its whole length, so
that it cannot score more for being cut; what it can lose is the part of the reference found behind that place."""

_TOKEN = re.compile(rf"\d+(?:[.,]\d+)*|{WORD}+|[{CJK}]")
_RANGES = (
    *((0xFF01, 0xFF0D), (0xFF0F, 0xFF0F), (0xFF1A, 0xFF20), (0xFF3B, 0xFF40), (0xFF5B, 0xFF64)),
    *((0x3001, 0x3003), (0x300B, 0x3011), (0x3014, 0x301F), (0x3030, 0x3030), (0x303E, 0x303F)),
    *((0x2013, 0x2014), (0x2018, 0x2019), (0x201B, 0x201F), (0x2026, 0x2027), (0xFE4F, 0xFE4F)),
)
_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation)) | {
    code: None for first, last in _RANGES for code in range(first, last + 1)
}


def without_punctuation(text: str) -> str:
    """``text`` in lower case, without ASCII and Chinese punctuation and without any spaces.

    The marks are those that LexEval (github.com/CSHaitao/LexEval, code/evaluation) removes, so that figures can be set
    beside its own: 》 is among them, 《 〈 〉 and ． are not.
    """
    return "".join(text.lower().translate(_PUNCTUATION).split())


def rouge_l(answer: str, reference: str) -> float:
    """ROUGE-L of the unchanged characters; 0 if either text is empty."""
    if not answer or not reference:
        return 0.0
    common = common_length(answer[:LONGEST], reference[:LONGEST])
    return 2 * common / (len(answer) + len(reference))


def rouge_l_normalised(answer: str, reference: str) -> float:
    """ROUGE-L of the characters that are left without case, punctuation and spaces."""
    return rouge_l(without_punctuation(answer), without_punctuation(reference))


def rouge_l_words(answer: str, reference: str) -> float:
    """ROUGE-L of the words of normalised text; a Chinese character is a word."""
    first, second = (_TOKEN.findall(normalise(text)) for text in (answer[:LONGEST], reference[:LONGEST]))
    if not first or not second:
        return 0.0
    return 2 * common_length(first, second) / (len(first) + len(second))


def common_length(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """The length of the longest common subsequence of two sequences."""
    rows = common_rows(first, second, keep=False)
    return len(second) - rows[-1].bit_count()


def common_rows(first: Sequence[Hashable], second: Sequence[Hashable], *, keep: bool = True) -> list[int]:
    """The table of the longest common subsequence, by bits.

    Row i (of ``len(first) + 1``; without ``keep`` only the last one) belongs to the first i elements of ``first``. Its
    bit j is 0 where the subsequence with ``second[: j + 1]`` is one longer than with ``second[:j]``.
    """
    elements, marks = set(first), dict[Hashable, bytearray]()
    for place, element in enumerate(second):
        if element in elements:  # bits are set in bytes: in a whole number each would cost a copy of it
            marks.setdefault(element, bytearray(len(second) // 8 + 1))[place >> 3] |= 1 << (place & 7)
    places = {element: int.from_bytes(mark, "little") for element, mark in marks.items()}
    everything = row = (1 << len(second)) - 1
    rows = [row]
    for element in first:
        here = places.get(element)
        if here is not None:
            matching = row & here
            row = (row + matching | row - matching) & everything
        if keep:
            rows.append(row)
    return rows if keep else [row]


def length_in_row(row: int, count: int) -> int:
    """The length of the longest common subsequence with the first ``count`` elements of ``second``, by a row of
    :func:`common_rows`."""
    return count - (row & ((1 << count) - 1)).bit_count()


# --- words of a Chinese text -----------------------------------------------------------------------------------------


@cache
def jieba_cutter() -> tuple[Any, str]:
    """A tokenizer of jieba's with its dictionary, and jieba's version.

    Raises:
        UsageError: jieba is not installed.
    """
    with warnings.catch_warnings():
        # Its strings have escapes that newer Pythons warn of, and it imports pkg_resources where that is present.
        warnings.simplefilter("ignore")
        try:
            jieba: Any = import_module("jieba")
        except ImportError as error:
            raise UsageError("Chinese word segmentation needs jieba", hint=install_command("zh")) from error
        jieba.setLogLevel("CRITICAL")
        cutter = jieba.Tokenizer()
        # It keeps its dictionary compiled, by default where every user of the machine could put another in its place.
        folder = cache_dir("jieba")
        with suppress(OSError):  # without the folder it reads its list anew each time
            folder.mkdir(parents=True, exist_ok=True)
        cutter.tmp_dir = str(folder)
        cutter.initialize()
    return cutter, str(jieba.__version__)
