"""ROUGE-L by characters: published figures, a plain table beside it, and bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.text.rouge import (
    LONGEST,
    common_length,
    common_rows,
    rouge_l,
    rouge_l_normalised,
    without_punctuation,
)

GOLDEN = [
    ("全池泼洒法对病原杀灭彻底", "全池泼洒法：对病原杀灭彻底。", 0.923077, 1.0),
    ("药物悬挂法操作简单", "药物悬挂法：操作简单、用药省", 0.782609, 0.857143),
    ("水稻", "小麦", 0.0, 0.0),
    ("", "水稻", 0.0, 0.0),
    ("405粒", "500 × (1-10%) × 90% = 405粒。405", 0.235294, 0.380952),
    ("种子种子发芽", "种子发芽发芽", 0.666667, 0.666667),
]
TEXTS = st.text(alphabet="水稻小麦ab。 ", max_size=30)


def plain_table(first: str, second: str) -> list[list[int]]:
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, one in enumerate(first, 1):
        for j, two in enumerate(second, 1):
            table[i][j] = (
                table[i - 1][j - 1] + 1 if one == two else max(table[i - 1][j], table[i][j - 1])
            )
    return table


@pytest.mark.parametrize(("answer", "reference", "raw", "normalised"), GOLDEN)
def test_it_gives_the_figures_of_the_published_procedure(
    answer: str, reference: str, raw: float, normalised: float
):
    assert rouge_l(answer, reference) == pytest.approx(raw, abs=5e-7)
    assert rouge_l_normalised(answer, reference) == pytest.approx(normalised, abs=5e-7)


@given(TEXTS, TEXTS)
def test_every_row_of_bits_says_what_the_plain_table_says(first: str, second: str):
    rows = common_rows(first, second)
    for row, values in zip(rows, plain_table(first, second), strict=True):
        steps = [values[j + 1] - values[j] for j in range(len(second))]
        assert [1 - (row >> j & 1) for j in range(len(second))] == steps
    assert common_length(first, second) == plain_table(first, second)[-1][-1]


def test_marks_are_taken_off_and_a_long_reply_gains_nothing():
    assert without_punctuation(" N、P：K（1 kg）。\n「ＮＰＫ」…") == "npk1kgｎｐｋ"
    assert without_punctuation("《农》") == "《农"  # as LexEval: only the closing mark
    reference = "合理轮作可以减少土传病害" * 10
    long = reference + "无" * 1_000_000
    score = rouge_l_normalised(long, reference)
    other = rouge_l("水稻" * 500_000, "稻水" * 500_000)
    assert score == pytest.approx(2 * len(reference) / (len(long) + len(reference)))
    assert other <= LONGEST / 1_000_000
    assert rouge_l("无" * LONGEST + reference, reference) == 0
