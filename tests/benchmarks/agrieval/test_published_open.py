"""AgriEval's own figures of open questions: ROUGE as its two packages give it, and where its script ends."""

import json
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agrotools.benchmarks.agrieval.published_open import (
    MOST_STEPS,
    as_compared,
    rouges,
    score_open,
    stop_at,
)
from agrotools.scoring.predictions import PublishedScorerStops

ROWS = [
    json.loads(line)
    for line in Path(__file__).with_name("rouge_of_packages.jsonl").read_text(encoding="utf-8").splitlines()
]
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


def test_texts_are_compared_as_the_packages_do_where_they_are_installed():
    rouge: Any = pytest.importorskip("rouge")
    theirs: Any = pytest.importorskip("rouge_score.rouge_scorer")
    latin = theirs.RougeScorer(["rouge1", "rouge2", "rougeL", "rougeLsum"])
    rng = random.Random(8)
    for _ in range(500):
        first, second = ("".join(rng.choices("稻麦豆ab. \n3，。", k=rng.randint(0, 30))) for _ in range(2))
        pair = as_compared(first, second)
        expected = [score.fmeasure for score in latin.score(pair.reference, pair.answer).values()]
        assert list(rouges(pair).values())[3:] == expected
        if stop_at(pair) is None:
            (scores,) = rouge.Rouge().get_scores([pair.reference], [pair.answer])
            assert list(rouges(pair).values())[:3] == [scores[f"rouge-{name}"]["f"] for name in "12l"]


def test_a_chinese_text_is_one_word():
    whole = rouges(as_compared("全池泼洒法对病原杀灭彻底", "全池泼洒法：对病原杀灭彻底。"))
    assert set(whole.values()) == {0.0}
    same = rouges(as_compared("全池泼洒法", "全池泼洒法"))
    assert {name for name, value in same.items() if value} == {"rouge_1", "rouge_l"}
    assert same["rouge_l"] == pytest.approx(1)


def test_blank_texts_have_something_in_their_place():
    assert as_compared(None, " \n") == (" ", "抱歉，无法回答")
    assert as_compared("", "水稻") == (" ", "水稻")


@pytest.mark.parametrize(("words", "stop"), [(MOST_STEPS - 1, None), (MOST_STEPS, "RecursionError")])
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


def test_bert_score_is_asked_as_the_script_asks(monkeypatch: pytest.MonkeyPatch):
    asked: list[Any] = []

    class Mean:
        def mean(self) -> "Mean":
            return self

        def item(self) -> float:
            return 0.123456789

    def score(answers: list[str], references: list[str], **options: Any) -> tuple[Any, Any, Mean]:
        asked.append((answers, references, options))
        return None, None, Mean()

    module = ModuleType("bert_score")
    monkeypatch.setattr(module, "score", score, raising=False)
    monkeypatch.setitem(sys.modules, "bert_score", module)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    made = score_open(entries(("甲", "乙")))
    assert made.metrics["agrieval.bert_score_f1_published"] == (12.3457, 1)
    options = {"model_type": "bert-base-chinese", "lang": "zh", "rescale_with_baseline": True}
    assert asked == [(["甲"], ["乙"], options)]


def test_bleu_is_that_of_its_packages_where_they_are_installed():
    pytest.importorskip("sacrebleu")
    pytest.importorskip("nltk")
    made = score_open(entries(("the soil is dry", "the soil is dry"), ("a b c d", "a b c e")))
    for name in ("hf_sacrebleu", "sacrebleu_corpus", "google_bleu"):
        assert 50 < (made.metrics[f"agrieval.{name}_published"].value or 0) < 100
