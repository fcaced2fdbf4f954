"""ROUGE-L of two texts over their characters (Lin 2004), at alpha 1: the F1 of their longest common subsequence.

The length of the subsequence is counted in whole machine words, one character of the longer text at a time (Hyyrö 2004,
"Bit-parallel LCS-length computation revisited"): time grows with the product of the lengths over 64.
"""

import string
import unicodedata

_PUNCTUATION = frozenset(string.punctuation)


def rouge_l(answer: str, reference: str) -> float:
    """F1 in [0, 1] of the longest common subsequence over the characters as they are; 0 where one text is empty."""
    if not answer or not reference:
        return 0.0
    return 2 * common_subsequence(answer, reference) / (len(answer) + len(reference))


def rouge_l_normalised(answer: str, reference: str) -> float:
    """:func:`rouge_l` without case, punctuation and white space."""
    return rouge_l(bare(answer), bare(reference))


def bare(text: str) -> str:
    """``text`` in lower case without punctuation of any script, symbols of ASCII, and white space."""
    return "".join(
        letter
        for letter in text.lower()
        if letter not in _PUNCTUATION and not letter.isspace() and not unicodedata.category(letter).startswith("P")
    )


def common_subsequence(first: str, second: str) -> int:
    """Length of the longest common subsequence of the characters of two texts."""
    short, long = sorted((first, second), key=len)
    places: dict[str, int] = {}
    for at, letter in enumerate(short):
        places[letter] = places.get(letter, 0) | 1 << at
    everything = (1 << len(short)) - 1
    row = everything
    for letter in long:
        matched = row & places.get(letter, 0)
        row = (row + matched | row - matched) & everything
    return len(short) - row.bit_count()
