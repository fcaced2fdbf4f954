"""Figures that GTA's published scorer gave, run with a stand-in for its embeddings."""

import pytest

from agrotools.scoring.predictions import PredictionScores, PublishedScorerStops
from agrotools_benchmarks._dialogs.published_scorer import is_correct, score_end, score_steps
from agrotools_benchmarks.gta.score import RULES as GTA
from support.gta_files import (
    ERROR,
    GOLD_ENDS,
    GOLD_STEPS,
    SIX,
    answer,
    call,
    end_file,
    end_sample,
    overlap,
    returned,
    step_file,
    step_sample,
)


def figures(scores: PredictionScores, *names: str) -> list[float | None]:
    return [scores.metrics[f"gta.{name}"].value for name in names]


@pytest.mark.parametrize(
    ("text", "whitelist", "blacklist", "right"),
    [
        ("The answer is 2.", [["2", "two"]], None, True), ("Two boxes", [["2", "two"]], None, True),
        ("12 boxes", [["2", "two"]], None, False), ("2.5 boxes", [["2", "two"]], None, True),
        ("2kg", [["2"]], None, False), ("It costs $5", [["$5"]], None, False), ("US$5 now", [["$5"]], None, True),
        ("about 50%", [["50%"]], None, False), ("about 50%", [["50"]], None, True),
        ("red and blue", [["red"], ["blue"]], None, True), ("red only", [["red"], ["blue"]], None, False),
        ("yes, but no", [["yes"]], [["no"]], False), ("yes, nothing", [["yes"]], [["no"]], True),
        ("yes", [["yes"]], [], True), ("yes", [["yes"]], [[]], False), ("anything", [], None, True),
        ("", [[]], None, False), ("a", [[]], None, True), ("-3", [["3"]], None, True),
        ("-3", [["-3"]], None, False), (" -3", [["-3"]], None, False), ("x = -3", [["-3"]], None, False),
        ("is -3", [["-3"]], None, False), ("x-3", [["-3"]], None, True), ("new_york", [["new"]], None, False),
        ("答案是5个", [["5"]], None, False), ("1,200", [["1200"]], None, False),
    ],
)  # fmt: skip
def test_an_answer_is_right_where_the_published_rule_finds_the_words(
    text, whitelist, blacklist, right
):
    reference = {"whitelist": whitelist, "blacklist": blacklist}
    assert is_correct(text, reference) is right
    assert is_correct(text, reference, lowers=True) is right


@pytest.mark.parametrize(
    ("predictions", "expected", "calls", "errors"),
    [
        (GOLD_STEPS, [116.6666667, 100, 100, 100], 4, 0),
        (
            [
                [
                    call("OCR", {"image": "/d/image/1.jpg"}),
                    call("Calculator", {"expression": "3*2"}),
                    answer(" 6"),
                ],
                [call("NoAction", {"text": ""}, ERROR), answer(" done")],
                [call("ImageDescription", '{"image": ', ERROR), answer("a cat")],
            ],
            [83.3333333, 75, 25, 75],
            4,
            2,
        ),
        (
            [
                [
                    call("OCR", {"image": "/d/image/1.jpg"}, ERROR),
                    answer("6"),
                    call("Calculator", {"expression": "1"}),
                ],
                [answer("done"), answer("x")],
                [call("ImageDescription", {"image": "/d/image/2.jpg"})],
            ],
            [33.3333333, 50, 50, 0],
            3,
            1,
        ),
    ],
)
def test_step_by_step(predictions, expected, calls, errors):
    scores = score_steps(step_file(*predictions), GTA, overlap)
    assert figures(scores, "inst_acc", "tool_acc", "arg_acc", "summ_acc") == pytest.approx(
        expected, abs=1e-6
    )
    assert (scores.counts["tool_call"], scores.counts["tool_call_error"]) == (calls, errors)
    assert (scores.metrics["gta.inst_acc"].n, scores.metrics["gta.tool_acc"].n) == (6, 4)
    assert scores.metrics["gta.summ_acc"].n == 2


END_ROWS = [
    (GOLD_ENDS, [100, 100, 99.999375, 0, 99.9990000, 99.9990000], 6, 0),
    (
        [
            [
                call("OCR", {"image": "a"}),
                call("Solver", {"command": "x"}, ERROR),
                answer("The result is 6"),
            ],
            [call("TextToImage", {"keywords": "dog, mat"})],
            [call("OCR", {"image": "a"}), answer("the cat")],
        ],
        [100, 83.3333333, 133.332667, 0, 0, 99.999],
        4,
        1,
    ),
    (
        [
            [call("OCR", {"image": "a"}), returned()],
            [call("TextToImage", {"keywords": "cat, mat"}, ERROR)],
            [answer("")],
        ],
        [0, 0, 39.9996, 0, 0, 99.999],
        2,
        1,
    ),
]


@pytest.mark.parametrize(("predictions", "expected", "calls", "errors"), END_ROWS)
def test_end_to_end(predictions, expected, calls, errors):
    scores = score_end(end_file(*predictions), GTA, overlap)
    names = ("ans_acc", "ans_acc_imggen", "p_f1", "o_f1", "l_f1", "c_f1")
    assert figures(scores, *names) == pytest.approx(expected, abs=1e-6)
    assert (scores.counts["tool_call"], scores.counts["tool_call_error"]) == (calls, errors)


def test_tasks_without_text_answers_or_tools_and_unknown_tools():
    scores = score_end(
        [end_sample("0", [call("OCR", {}), answer("x")], [answer("hi")], None)], GTA, overlap
    )
    assert figures(scores, "ans_acc", "ans_acc_imggen") == [0.0, 100.0]
    scores = score_end([end_sample("0", [answer("")], [answer("hi")], None)], GTA, overlap)
    assert figures(scores, "ans_acc", "p_f1") == [0.0, 0.0]
    with pytest.raises(PublishedScorerStops, match="sample 7") as stop:
        score_end(
            [end_sample("7", [call("Nope", {}), answer("x")], [answer("6")], SIX)], GTA, overlap
        )
    assert stop.value.exception == "KeyError"


@pytest.mark.parametrize(
    ("samples", "exception"),
    [
        ([step_sample("0", [answer("6")], [answer("6")], SIX)], "ZeroDivisionError"),
        ([step_sample("0", [call("OCR", {})], [call("OCR", {})], None)], "ZeroDivisionError"),
        ([step_sample("0", [answer("6")], [answer("6")], {"whitelist": [["6"]]})], "KeyError"),
        ([step_sample("0", [answer("6")], [answer(None)], SIX)], "TypeError"),
        ([step_sample("0", [answer("6")], [{"content": "6"}], SIX)], "KeyError"),
        ([step_sample("0", [answer("6")], [{"tool_calls": []}], SIX)], "IndexError"),
    ],
)
def test_where_the_step_scorer_stops(samples, exception):
    with pytest.raises(PublishedScorerStops) as stop:
        score_steps(samples, GTA, overlap)
    assert stop.value.exception == exception


def test_what_needs_an_embedder_is_left_out_and_named():
    steps = score_steps(step_file(*GOLD_STEPS), GTA)
    assert "gta.summ_acc" not in steps.metrics
    assert steps.left_out == {"gta.summ_acc": "1 subjective answers need an embedder"}
    assert steps.metrics["gta.arg_acc"].value == 100
    ends = score_end(end_file(*GOLD_ENDS), GTA)
    assert set(ends.left_out) == {"gta.ans_acc", "gta.ans_acc_imggen"}
    assert "1 calls that make images" in ends.left_out["gta.ans_acc_imggen"]
    objective = score_end([end_sample("0", GOLD_ENDS[0], GOLD_ENDS[0], SIX)], GTA)
    assert (objective.left_out, objective.metrics["gta.ans_acc"].value) == ({}, 100)
