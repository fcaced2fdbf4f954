"""AgriEval's own scorer: readings of its code, ROUGE of its two packages, inputs that end its script."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.scoring.predictions import PublishedScorerStops
from agrotools_benchmarks.agrieval.plugin import OptionKind
from agrotools_benchmarks.agrieval.published_scorer import (
    MOST_STEPS,
    _patterns,
    _search,
    as_compared,
    credit,
    extract,
    rouges,
    score_choices,
    score_open,
    stop_at,
)

SEVEN = {letter: letter.lower() for letter in "ABCDEFG"}


@pytest.mark.parametrize(
    ("reply", "kind", "letters", "read"),
    [
        ("B", "single", 1, "B"),
        (
            "答案是DNA复制中的C",
            "single",
            1,
            "D",
        ),  # the pattern takes the first letter behind 答案是
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
def test_answers_are_read_as_the_code_reads_them(
    reply: str, kind: OptionKind, letters: int, read: str
):
    assert extract(reply, 7, kind, letters) == read


def test_entries_of_a_result_file_are_read_as_far_as_the_code_looks():
    def accuracy(**entry: object) -> float | None:
        return (
            score_choices([{"answer": "B", "options": SEVEN, **entry}])
            .metrics["agrieval.accuracy_published"]
            .value
        )

    assert accuracy(generated_answer="B") == 100  # the kind is not looked at
    assert accuracy(generated_answer="B", options={}) == 100
    assert accuracy(generated_answer="b", question_type="简答") == 0
    assert accuracy(generated_answer="", question_type=None) == 0
    assert accuracy(generated_answer="\n", question_type="判断") == 50
    for stops in (
        {"generated_answer": "b"},
        {"generated_answer": 1},
        {"generated_answer": "x", "answer": 3},
    ):
        with pytest.raises(PublishedScorerStops):
            accuracy(**stops)


def test_where_nothing_is_read_the_mean_of_its_lots_is_the_credit():
    assert credit("不知道", SEVEN, "single", "B") == pytest.approx(1 / 7)
    assert credit("不知道", SEVEN, "multiple", "AB") == 0.2
    assert credit("不知道", {"A": "对", "B": "错"}, "true_false", "A") == 0.5
    assert credit("", SEVEN, "single", "B") == 0
    assert credit("B", SEVEN, "single", "B") == 1
    assert credit("BA", SEVEN, "multiple", "AB") == 1


WORDS = [
    "答案",
    "选项",
    "是",
    "为",
    "正确",
    "错误",
    "综上所述",
    "A",
    "C",
    "F",
    "X",
    "，",
    " ",
    "故选",
    "中",
]
pieces = st.lists(st.sampled_from(WORDS), max_size=12).map("".join)


@given(pieces, st.sampled_from(["single", "true_false", "multiple"]), st.integers(2, 7))
def test_a_quick_search_finds_what_a_plain_one_finds(text: str, kind: OptionKind, options: int):
    last = "ABCDEFG"[options - 1]
    for pattern, group in _patterns(kind, last):
        plain = re.search(pattern, text)
        assert _search(pattern, text, last, group) == (plain[group] if plain else None), (
            pattern.pattern
        )


_LINES = (
    Path(__file__).with_name("rouge_of_packages.jsonl").read_text(encoding="utf-8").splitlines()
)
ROWS = [*map(json.loads, _LINES)]
"""Texts drawn at random, and what rouge 1.0.1 (or the exception it ends with) and rouge-score 0.1.2 give for them."""


@pytest.mark.parametrize("row", ROWS)
def test_rouge_is_that_of_the_packages_to_the_digit(row: dict[str, Any]):
    pair = as_compared(row["answer"], row["reference"])
    made = list(rouges(pair).values())
    assert made[3:] == row["rouge_score"]
    if isinstance(row["rouge"], str):
        assert stop_at(pair) == row["rouge"]
    else:
        assert (made[:3], stop_at(pair)) == (row["rouge"], None)


def test_chinese_texts_are_one_word_and_blank_ones_have_something_in_their_place():
    whole = rouges(as_compared("全池泼洒法对病原杀灭彻底", "全池泼洒法：对病原杀灭彻底。"))
    assert set(whole.values()) == {0.0}
    same = rouges(as_compared("全池泼洒法", "全池泼洒法"))
    assert {name for name, value in same.items() if value} == {"rouge_1", "rouge_l"}
    assert same["rouge_l"] == pytest.approx(1)
    assert as_compared(None, " \n") == (" ", "抱歉，无法回答")
    assert as_compared("", "水稻") == (" ", "水稻")


@pytest.mark.parametrize(
    ("words", "stop"), [(MOST_STEPS - 1, None), (MOST_STEPS, "RecursionError")]
)
def test_long_texts_of_words_end_the_script(words: int, stop: str | None):
    text = " ".join(f"w{place}" for place in range(words))
    assert stop_at(as_compared(text, text)) == stop
    assert rouges(as_compared(text, text))["rouge_l"] == pytest.approx(1)


def entries(*pairs: tuple[Any, Any]) -> list[dict[str, Any]]:
    return [{"generated_answer": reply, "answer": answer} for reply, answer in pairs]


def test_figures_are_rounded_means_over_the_entries_with_a_reply():
    made = score_open([*entries(("a b", "a b c"), ("x", "y")), {"answer": "z"}])
    assert made.metrics["agrieval.rouge_1_published"] == (40.0, 2)
    assert made.metrics["agrieval.hf_rougel_published"] == (40.0, 2)
    assert "bertscore" in made.left_out["agrieval.bert_score_f1_published"]
    assert not score_open([{"answer": "z"}]).metrics


@pytest.mark.parametrize("reply", [3, ["a"], "...", {"a": 1}])
def test_what_ends_the_script_has_no_figures(reply: Any):
    with pytest.raises(PublishedScorerStops, match="entry 1"):
        score_open(entries(("a", "a"), (reply, "b")))


def test_bleu_is_that_of_its_packages_where_they_are_installed():
    pytest.importorskip("sacrebleu")
    pytest.importorskip("nltk")
    made = score_open(entries(("the soil is dry", "the soil is dry"), ("a b c d", "a b c e")))
    for name in ("hf_sacrebleu", "sacrebleu_corpus", "google_bleu"):
        assert 50 < (made.metrics[f"agrieval.{name}_published"].value or 0) < 100
