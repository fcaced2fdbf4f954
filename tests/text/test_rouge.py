"""ROUGE-L over characters: worked examples, a plain table beside it, and long texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.text.rouge import common_subsequence, rouge_l, rouge_l_normalised


@pytest.mark.parametrize(
    ("answer", "reference", "raw", "normalised"),
    [
        ("全池泼洒法对病原杀灭彻底", "全池泼洒法：对病原杀灭彻底。", 0.923077, 1.0),
        ("药物悬挂法操作简单", "药物悬挂法：操作简单、用药省", 0.782609, 0.857143),
        ("水稻", "小麦", 0.0, 0.0),
        ("", "水稻", 0.0, 0.0),
        ("405粒", "500 × (1-10%) × 90% = 405粒。405", 0.235294, 0.380952),
        ("种子种子发芽", "种子发芽发芽", 0.666667, 0.666667),
    ],
)
def test_worked_examples(answer: str, reference: str, raw: float, normalised: float):
    assert rouge_l(answer, reference) == pytest.approx(raw, abs=1e-6)
    assert rouge_l_normalised(answer, reference) == pytest.approx(normalised, abs=1e-6)


def by_table(first: str, second: str) -> int:
    row = [0] * (len(second) + 1)
    for one in first:
        above = row
        row = [0]
        for at, other in enumerate(second):
            row.append(above[at] + 1 if one == other else max(above[at + 1], row[-1]))
    return row[-1]


few = st.text(alphabet="稻麦水。 a", max_size=30)


@given(few, few)
def test_the_subsequence_is_as_long_as_that_of_a_plain_table(first: str, second: str):
    assert common_subsequence(first, second) == by_table(first, second)


@given(st.text(), st.text())
def test_any_two_texts_overlap_by_a_share(first: str, second: str):
    for measure in (rouge_l, rouge_l_normalised):
        assert 0 <= measure(first, second) <= 1
        assert measure(first, second) == measure(second, first)


def test_a_text_overlaps_wholly_with_itself_and_long_ones_take_no_time():
    text = "水稻纹枯病多在高温高湿条件下发生。" * 60_000
    assert rouge_l(text, text[:500]) == pytest.approx(1000 / (len(text) + 500))
    assert rouge_l("稻", "稻") == 1
