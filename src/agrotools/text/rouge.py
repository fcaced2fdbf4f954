"""ROUGE-L of two texts, based on their longest common subsequence of characters or words.

With L the length of the longest common subsequence, precision is L / len(answer), recall L / len(reference), and the
score their harmonic mean, 2 L / (len(answer) + len(reference)). This is the form of the AgriEval paper at alpha = 1, in
which answer and reference are interchangeable.

The length is computed bit-parallel (Crochemore, Iliopoulos, Pinzon and Reid 2001, "A fast and practical bit-vector
algorithm for the longest common subsequence problem"; in the form of Hyyrö 2004, "Bit-parallel LCS-length computation
revisited"): one integer holds a row of the usual table, one bit per element.
"""

import string
from collections import deque
from collections.abc import Hashable, Iterator, Sequence

from agrotools.text.normalise import CJK, WORD, late_pattern, normalise

LONGEST = 20_000
"""Maximum number of characters of each text that are compared, from its beginning.

The score still uses the full length of a longer text, so that truncation can only lower it.
"""

_TOKEN = late_pattern(rf"\d+(?:[.,]\d+)*|{WORD}+|[{CJK}]")
_PUNCTUATION_RANGES = (
    # Fullwidth forms: ！ to －, ／, ： to ＠, ［ to ｀, ｛ to ､
    (0xFF01, 0xFF0D),
    (0xFF0F, 0xFF0F),
    (0xFF1A, 0xFF20),
    (0xFF3B, 0xFF40),
    (0xFF5B, 0xFF64),
    # Chinese and Japanese marks: 、 to 〃, 》 to 】, 〔 to 〟, 〰, 〾 and 〿
    (0x3001, 0x3003),
    (0x300B, 0x3011),
    (0x3014, 0x301F),
    (0x3030, 0x3030),
    (0x303E, 0x303F),
    # Dashes, quotation marks, ellipsis and hyphenation point, wavy low line
    (0x2013, 0x2014),
    (0x2018, 0x2019),
    (0x201B, 0x201F),
    (0x2026, 0x2027),
    (0xFE4F, 0xFE4F),
)
"""First and last code points of marks outside ASCII."""
_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation)) | {
    code: None for first, last in _PUNCTUATION_RANGES for code in range(first, last + 1)
}


def without_punctuation(text: str) -> str:
    """Return ``text`` in lower case, without ASCII and Chinese punctuation and without any spaces.

    Exactly the marks removed by LexEval (github.com/CSHaitao/LexEval, code/evaluation) are removed, so that scores are
    comparable with its own: 》 is among them, 《 〈 〉 and ． are not.
    """
    return "".join(text.lower().translate(_PUNCTUATION).split())


def rouge_l(answer: str, reference: str) -> float:
    """Return the ROUGE-L of the unchanged characters; 0 if either text is empty."""
    if not answer or not reference:
        return 0.0
    common = common_length(answer[:LONGEST], reference[:LONGEST])
    return 2 * common / (len(answer) + len(reference))


def rouge_l_normalised(answer: str, reference: str) -> float:
    """Return the ROUGE-L of the characters, ignoring case, punctuation and spaces."""
    return rouge_l(without_punctuation(answer), without_punctuation(reference))


def rouge_l_words(answer: str, reference: str) -> float:
    """Return the ROUGE-L of the words of the normalised texts; a Chinese character is a word."""
    first, second = (
        _TOKEN.findall(normalise(text)) for text in (answer[:LONGEST], reference[:LONGEST])
    )
    if not first or not second:
        return 0.0
    return 2 * common_length(first, second) / (len(first) + len(second))


def common_length(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Return the length of the longest common subsequence of two sequences."""
    (last,) = deque(common_rows(first, second), maxlen=1)
    return len(second) - last.bit_count()


def common_rows(first: Sequence[Hashable], second: Sequence[Hashable]) -> Iterator[int]:
    """Yield the table of the longest common subsequence, one integer of bits per row.

    Row i (of ``len(first) + 1``) belongs to the first i elements of ``first``. Its bit j is 0 if the subsequence with
    ``second[: j + 1]`` is one longer than with ``second[:j]``.
    """
    elements, marks = set(first), dict[Hashable, bytearray]()
    for place, element in enumerate(second):
        if element in elements:  # bits are set in bytes: setting one in an integer would copy it
            marks.setdefault(element, bytearray(len(second) // 8 + 1))[place >> 3] |= 1 << (
                place & 7
            )
    places = {element: int.from_bytes(mark, "little") for element, mark in marks.items()}
    everything = row = (1 << len(second)) - 1
    yield row
    for element in first:
        if (here := places.get(element)) is not None:
            matching = row & here
            row = (row + matching | row - matching) & everything
        yield row


def common_places(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    first_at_ties: bool,
    most_steps: int | None = None,
) -> list[int] | None:
    """Return the places in ``first`` of a longest common subsequence, the last one first.

    The search goes back from the ends of both sequences. If the elements there differ, it drops the one without which
    the common length is greater; ``first_at_ties`` says which at equal lengths, in which packages differ. The result
    is None if the search takes more than ``most_steps``.
    """
    rows = [*common_rows(first, second)]

    def length(i: int, j: int) -> int:
        """Return the common length of the first i and j elements."""
        return j - (rows[i] & ((1 << j) - 1)).bit_count()

    places: list[int] = []
    i = len(first)
    j = len(second)
    steps = 1
    while i and j:
        if first[i - 1] == second[j - 1]:
            i, j = i - 1, j - 1
            places.append(i)
        else:
            gain = length(i - 1, j) - length(i, j - 1)
            i, j = (i - 1, j) if gain > 0 or (first_at_ties and not gain) else (i, j - 1)
        steps += 1
        if most_steps is not None and steps > most_steps:
            return None
    return places
