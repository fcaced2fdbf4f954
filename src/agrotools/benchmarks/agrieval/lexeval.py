"""Scoring of LexEval: letters extracted from a reply and compared as a string, and ROUGE-L of jieba's words.

AgriEval says that it uses LexEval's procedure and publishes no scorer for it. Source: github.com/CSHaitao/LexEval,
code/evaluation (process.py, evaluate.py), with the packages jieba 0.42.1 and rouge 1.0.1. Reimplemented from its
behaviour; unexpected behaviour is kept:

* only A to E are letters, and any run of them is read, even in DNA and in "Answer": ``Answer: C`` gives ``AC``;
* order counts: ``CA`` is not ``AC``; a run with a repeated letter is dropped; lower case is not read;
* ROUGE-L counts each distinct word once, in both texts and in their common subsequence;
* if the backtracking needs more than 990 recursive calls (as for a long reply), Python stops it and the score is 0.
"""

import re
from collections.abc import Sequence

from agrotools.text.rouge import common_places, jieba_cutter, without_punctuation

_SEPARATORS = str.maketrans("", "", "、.,;，和")
_RUN = re.compile("[ABCDE]{1,5}")

MOST_STEPS = 990
"""Recursive calls of the original before Python's limit of 1,000 frames stops it (measured with Python 3.11)."""
LONGEST = 10_000
"""Maximum number of characters without punctuation for word segmentation, because jieba's time grows with the square.

A longer Chinese text has far more words than ``MOST_STEPS``, so that the original gives 0 as well.
"""


def extract(reply: str) -> str:
    """Return the letters that LexEval extracts from a reply, in their order as one string; empty if there are none."""
    text = reply.split("解析", 1)[0].split("分析", 1)[0].translate(_SEPARATORS)
    runs = (run for run in _RUN.findall(text) if len(set(run)) == len(run))
    return "".join(dict.fromkeys("".join(runs)))


def rouge_l(answer: str, reference: str) -> float:
    """Return ROUGE-L of words as the package ``rouge`` does (``"rouge-l"``, ``"f"``); UsageError without jieba."""
    cutter, _ = jieba_cutter()
    answer, reference = without_punctuation(answer), without_punctuation(reference)
    if not answer or not reference or max(len(answer), len(reference)) > LONGEST:
        return 0.0
    words, reference_words = ([str(word) for word in cutter.cut(text)] for text in (answer, reference))
    return rouge_l_of_words(words, reference_words)


def rouge_l_of_words(answer: Sequence[str], reference: Sequence[str]) -> float:
    """Return ROUGE-L of two lists of words; 0 if one is empty."""
    if not answer or not reference:
        return 0.0
    shared = shared_words(reference, answer, MOST_STEPS)
    if shared is None:
        return 0.0
    return f_of_rouge(len(shared), len(set(answer)), len(set(reference)))


def f_of_rouge(both: int, n_answer: int, n_reference: int) -> float:
    """Return the F1 of the package ``rouge``, from numbers of distinct words or pairs of words."""
    precision, recall = both / n_answer if n_answer else 0.0, both / n_reference if n_reference else 0.0
    return 2.0 * ((precision * recall) / (precision + recall + 1e-8))


def shared_words(reference: Sequence[str], answer: Sequence[str], most_steps: int | None = None) -> set[str] | None:
    """Return the distinct words of the longest common subsequence that the package ``rouge`` finds.

    None if its search takes more than ``most_steps`` calls.
    """
    places = common_places(reference, answer, first_at_ties=False, most_steps=most_steps)
    return None if places is None else {reference[place] for place in places}
