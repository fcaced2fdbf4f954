"""LexEval's scorer: figures of the original procedure."""

import sys

import pytest

from agrotools.benchmarks.agrieval import lexeval
from agrotools.core import UsageError
from agrotools.text.rouge import jieba_cutter

EXTRACTED = {
    "B": "B", "答案：A、C": "AC", "正确答案是 B。": "B", "A B C": "ABC", "选AB和D": "ABD", "F": "", "A. 叶绿体": "A",
    "Answer: C": "AC", "AAB": "", "ACBA": "", "解析：选B": "", "B 解析：A不对": "B", "我认为A不对，应选B": "AB",
    "CA": "CA", "DNA的复制选C": "DAC", "b": "",
}  # fmt: skip
SCORES = [
    ("全池泼洒法对病原杀灭彻底", "全池泼洒法：对病原杀灭彻底。", 0.999999995),
    ("药物悬挂法操作简单", "药物悬挂法：操作简单、用药省", 0.8333333284722222),
    ("水稻", "小麦", 0.0),
    ("", "水稻", 0.0),
    ("405粒", "500 × (1-10%) × 90% = 405粒。405", 0.24999999625000005),
    ("种子种子发芽", "种子发芽发芽", 0.999999995),
]


@pytest.mark.parametrize(("reply", "letters"), EXTRACTED.items())
def test_letters_are_read_as_the_original_reads_them(reply: str, letters: str):
    assert lexeval.extract(reply) == letters


@pytest.mark.parametrize(("answer", "reference", "score"), SCORES)
def test_rouge_l_has_the_digits_of_the_original(answer: str, reference: str, score: float):
    pytest.importorskip("jieba")
    assert lexeval.rouge_l(answer, reference) == score


def test_rouge_l_without_jieba_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "jieba", None)
    jieba_cutter.cache_clear()
    try:
        with pytest.raises(UsageError, match=r"\[zh\]"):
            lexeval.rouge_l("水稻", "小麦")
    finally:
        jieba_cutter.cache_clear()


def test_a_text_too_long_for_the_original_scores_0():
    words = [str(number) for number in range(1200)]
    assert lexeval.rouge_l_of_words([*words[:980], "水"], ["水"]) > 0
    assert lexeval.rouge_l_of_words(["水", *words[:980]], ["水"]) > 0
    assert lexeval.rouge_l_of_words(["水", *words[:1000]], ["水"]) == 0
