"""How LexEval scores answers (github.com/CSHaitao/LexEval, code/evaluation), which the AgriEval paper refers to.

Options are letters A to E in the order in which they are written, whatever they stand in; texts are compared by ROUGE-L
over words of jieba, with the arithmetic of the package ``rouge`` 1.0.1: lengths count distinct words.
"""

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from agrotools.core import UsageError
from agrotools.text.rouge import bare

_LEFT_OUT = str.maketrans("", "", "、.,;，和")
_MOST_CELLS = 4_000_000
"""Of the table of subsequences: the end of an answer that would need more is left out."""
_RUN = re.compile(r"[ABCDE]{1,5}")


def extract_options(reply: str) -> str:
    """The letters that LexEval reads in ``reply``, in the order of writing; to be compared with the gold as strings.

    What follows the first 解析, then the first 分析, is cut off; runs of letters in which one comes twice are dropped.
    """
    text = reply.split("解析", 1)[0].split("分析", 1)[0].translate(_LEFT_OUT)
    runs = (run for run in _RUN.findall(text) if len(set(run)) == len(run))
    return "".join(dict.fromkeys("".join(runs)))


def rouge_l(answer: str, reference: str) -> float:
    """ROUGE-L as LexEval's code has it, in [0, 1]; 0 where one of the texts has no words.

    Raises:
        UsageError: jieba is not installed.
    """
    return rouge_l_of_words(_words(answer), _words(reference))


def rouge_l_of_words(answer: Sequence[str], reference: Sequence[str]) -> float:
    """F1 from the distinct words of one longest common subsequence, over the distinct words of each text."""
    if not answer or not reference:
        return 0.0
    answer = answer[: max(1, _MOST_CELLS // len(reference))]
    common = len(set(_common(reference, answer)))
    precision, recall = common / len(set(answer)), common / len(set(reference))
    return 2.0 * ((precision * recall) / (precision + recall + 1e-8))


def _words(text: str) -> list[str]:
    try:
        jieba: Any = import_module("jieba")
    except ImportError as error:
        raise UsageError(
            "ROUGE-L as LexEval has it needs jieba to part Chinese words", hint="pip install 'agrotools[zh]'"
        ) from error
    jieba.setLogLevel(60)
    return jieba.lcut(bare(text))


def _common(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """One longest common subsequence: the one that ``rouge`` finds, which turns back in ``second`` where both ways are
    as long."""
    lengths = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, one in enumerate(first, 1):
        row, above = lengths[i], lengths[i - 1]
        for j, other in enumerate(second, 1):
            row[j] = above[j - 1] + 1 if one == other else max(above[j], row[j - 1])
    found: list[str] = []
    i, j = len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            found.append(first[i - 1])
            i, j = i - 1, j - 1
        elif lengths[i - 1][j] > lengths[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return found[::-1]
