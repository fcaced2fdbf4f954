"""AgriEval's own scorer: the readings that follow from its code, its lots as a mean, and no reply that hangs it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.benchmarks.agrieval.published_choices import _patterns, _search, credit, extract, score_choices
from agrotools.benchmarks.agrieval.slots import OptionKind
from agrotools.scoring.predictions import PublishedScorerStops

SEVEN = {letter: letter.lower() for letter in "ABCDEFG"}


@pytest.mark.parametrize(
    ("reply", "kind", "letters", "read"),
    [
        ("B", "single", 1, "B"),
        ("答案是DNA复制中的C", "single", 1, "D"),  # the pattern takes the first letter behind 答案是
        ("A和B都不对，答案为C", "single", 1, "A"),  # a letter that comes first is taken
        ("两项相比，A项不如B项，故选B", "single", 1, "B"),
        ("B 项正确，A 错误", "single", 1, "B"),
        ("因为A、B，综上所述，应为C而非D", "single", 1, "D"),  # the last letter
        ("不知道", "single", 1, ""),
        ("H", "single", 1, "H"),  # one capital, whichever
        ("这种说法正确", "true_false", 1, "A"),  # whatever the options say
        ("错误", "true_false", 1, "B"),
        ("CA", "multiple", 2, "AC"),
        ("答案：A、C。其中B不对，D也不对", "multiple", 2, "AC"),
        ("A B D", "multiple", 2, "ABD"),
        ("都不对", "multiple", 2, ""),
    ],
)
def test_answers_are_read_as_the_code_reads_them(reply: str, kind: OptionKind, letters: int, read: str):
    assert extract(reply, 7, kind, letters) == read


def test_entries_of_a_result_file_are_read_as_far_as_the_code_looks():
    def accuracy(**entry: object) -> float | None:
        return score_choices([{"answer": "B", "options": SEVEN, **entry}]).metrics["agrieval.accuracy_published"].value

    assert accuracy(generated_answer="B") == 100  # the kind is not looked at
    assert accuracy(generated_answer="B", options={}) == 100
    assert accuracy(generated_answer="b", question_type="简答") == 0
    assert accuracy(generated_answer="", question_type=None) == 0
    assert accuracy(generated_answer="\n", question_type="判断") == 50
    for stops in ({"generated_answer": "b"}, {"generated_answer": 1}, {"generated_answer": "x", "answer": 3}):
        with pytest.raises(PublishedScorerStops):
            accuracy(**stops)


def test_where_nothing_is_read_the_mean_of_its_lots_is_the_credit():
    assert credit("不知道", SEVEN, "single", "B") == pytest.approx(1 / 7)
    assert credit("不知道", SEVEN, "multiple", "AB") == 0.2
    assert credit("不知道", {"A": "对", "B": "错"}, "true_false", "A") == 0.5
    assert credit("", SEVEN, "single", "B") == 0
    assert credit("B", SEVEN, "single", "B") == 1
    assert credit("BA", SEVEN, "multiple", "AB") == 1


pieces = st.lists(
    st.sampled_from(
        ["答案", "选项", "是", "为", "正确", "错误", "综上所述", "A", "C", "F", "X", "，", " ", "故选", "中"]
    ),
    max_size=12,
).map("".join)


@given(pieces, st.sampled_from(["single", "true_false", "multiple"]), st.integers(2, 7))
def test_a_quick_search_finds_what_a_plain_one_finds(text: str, kind: OptionKind, options: int):
    last = "ABCDEFG"[options - 1]
    for pattern, group in _patterns(kind, last):
        plain = re.search(pattern, text)
        assert _search(pattern, text, last, group) == (plain[group] if plain else None), pattern.pattern


@given(st.text(), st.sampled_from(["single", "true_false", "multiple"]))
def test_any_reply_has_a_credit(reply: str, kind: OptionKind):
    assert 0 <= credit(reply, SEVEN, kind, "AB" if kind == "multiple" else "B") <= 1


@pytest.mark.parametrize("piece", ["答案", "选项A", "综上所述", "综上所述A，", "答案选项为", "正确", "B、", "A项"])
def test_no_reply_hangs_it(piece: str):
    credit(piece * 60_000, SEVEN, "single", "G")
    credit(piece * 60_000 + "Z", SEVEN, "multiple", "AG")
