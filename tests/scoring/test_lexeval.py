"""LexEval's procedure: the readings and digits that its code gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.scoring.reference.lexeval import extract_options, rouge_l, rouge_l_of_words


@pytest.mark.parametrize(
    ("reply", "letters"),
    [
        ("B", "B"), ("答案：A、C", "AC"), ("正确答案是 B。", "B"), ("A B C", "ABC"), ("选AB和D", "ABD"), ("F", ""),
        ("A. 叶绿体", "A"), ("Answer: C", "AC"), ("AAB", ""), ("ACBA", ""), ("解析：选B", ""), ("B 解析：A不对", "B"),
        ("我认为A不对，应选B", "AB"), ("CA", "CA"), ("DNA的复制选C", "DAC"), ("b", ""),
    ],
)  # fmt: skip
def test_options_are_read_as_its_code_reads_them(reply: str, letters: str):
    assert extract_options(reply) == letters


@pytest.mark.parametrize(
    ("answer", "reference", "value"),
    [
        ("全池泼洒法对病原杀灭彻底", "全池泼洒法：对病原杀灭彻底。", 0.999999995),
        ("药物悬挂法操作简单", "药物悬挂法：操作简单、用药省", 0.8333333284722222),
        ("水稻", "小麦", 0.0),
        ("", "水稻", 0.0),
        ("405粒", "500 × (1-10%) × 90% = 405粒。405", 0.24999999625),
        ("种子种子发芽", "种子发芽发芽", 0.999999995),
    ],
)
def test_overlap_has_the_digits_of_its_code(answer: str, reference: str, value: float):
    pytest.importorskip("jieba", reason="needs the extra zh")
    assert rouge_l(answer, reference) == pytest.approx(value, abs=1e-12)


words = st.lists(st.sampled_from(["稻", "麦", "水", "肥"]), min_size=1, max_size=12)


@given(words, words)
def test_words_are_compared_as_the_package_compares_them(answer: list[str], reference: list[str]):
    package = pytest.importorskip("rouge", reason="compares with the package rouge")
    (score,) = package.Rouge(["rouge-l"]).get_scores(" ".join(answer), " ".join(reference))
    assert rouge_l_of_words(answer, reference) == pytest.approx(score["rouge-l"]["f"], abs=1e-12)


def test_an_endless_answer_does_not_hang_it():
    assert 0 < rouge_l_of_words(["稻", "麦"] * 500_000, ["稻", "麦", "水"] * 100) < 1


@given(st.text())
def test_any_reply_is_read(reply: str):
    assert set(extract_options(reply)) <= set("ABCDE")
