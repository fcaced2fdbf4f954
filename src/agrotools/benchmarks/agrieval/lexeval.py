"""Scoring of LexEval: letters cut out of a reply and compared as a string; ROUGE-L of jieba's words.

AgriEval names LexEval's procedure as its own and publishes no scorer. Source: github.com/CSHaitao/LexEval,
code/evaluation (process.py, evaluate.py), with the packages jieba 0.42.1 and rouge 1.0.1. Written anew from its
behaviour; what it does that one would not expect is kept:

* only A to E are letters, and any run of them is read, in DNA and in "Answer" as well: ``Answer: C`` gives ``AC``;
* order counts: ``CA`` is not ``AC``; a run with a repeated letter is dropped; lower case is not read;
* ROUGE-L counts each different word once, in both texts and in what they share;
* where the two texts make its backtracking call itself more than 990 times (as a long reply does), Python stops it,
  and the score is 0.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache

from agrotools.text.rouge import common_rows, jieba_cutter, length_in_row, without_punctuation

_SEPARATORS = str.maketrans("", "", "、.,;，和")
_RUN = re.compile("[ABCDE]{1,5}")

MOST_STEPS = 990
"""Calls of the original's backtracking before Python's limit of 1,000 frames stops it (measured with Python 3.11)."""
LONGEST = 10_000
"""Characters without punctuation beyond which a text is not divided into words: jieba's time grows with their square.
A text of that many Chinese characters has far more words than ``MOST_STEPS``, so that the original gives 0 as well."""


def extract(reply: str) -> str:
    """The letters that LexEval reads out of a reply, in their order, as one string; empty where there are none."""
    text = reply.split("解析", 1)[0].split("分析", 1)[0].translate(_SEPARATORS)
    runs = (run for run in _RUN.findall(text) if len(set(run)) == len(run))
    return "".join(dict.fromkeys("".join(runs)))


def rouge_l(answer: str, reference: str) -> float:
    """ROUGE-L of the words of two texts, as the package ``rouge`` gives it (``"rouge-l"``, ``"f"``).

    Raises:
        UsageError: jieba is not installed.
    """
    divide = _words()
    answer, reference = without_punctuation(answer), without_punctuation(reference)
    if not answer or not reference or max(len(answer), len(reference)) > LONGEST:
        return 0.0
    return rouge_l_of_words(divide(answer), divide(reference))


def rouge_l_of_words(answer: Sequence[str], reference: Sequence[str]) -> float:
    """ROUGE-L of two texts that are lists of words; 0 where one has none."""
    if not answer or not reference:
        return 0.0
    shared = shared_words(reference, answer, MOST_STEPS)
    if shared is None:
        return 0.0
    recall, precision = len(shared) / len(set(reference)), len(shared) / len(set(answer))
    return 2.0 * ((precision * recall) / (precision + recall + 1e-8))


def shared_words(reference: Sequence[str], answer: Sequence[str], most_steps: int | None = None) -> set[str] | None:
    """The different words of the one longest common subsequence that the package ``rouge`` finds; None where that takes
    more than ``most_steps`` calls.

    It goes back from the ends of both texts; where the words differ it leaves out the last word of ``reference`` if
    that alone loses nothing, else the last word of ``answer``.
    """
    rows = common_rows(answer, reference)
    words: set[str] = set()
    i, j, steps = len(reference), len(answer), 1
    while i and j:
        if reference[i - 1] == answer[j - 1]:
            words.add(reference[i - 1])
            i, j = i - 1, j - 1
        elif length_in_row(rows[j], i - 1) > length_in_row(rows[j - 1], i):
            i -= 1
        else:
            j -= 1
        steps += 1
        if most_steps is not None and steps > most_steps:
            return None
    return words


@cache
def _words() -> Callable[[str], list[str]]:
    """jieba's exact mode."""
    cutter, _ = jieba_cutter()
    return lambda text: [str(word) for word in cutter.cut(text, cut_all=False)]
