import math

import pytest

from agrotools_benchmarks.agent_x import published_scorer
from agrotools_benchmarks.agent_x.published_scorer import error_analysis

GOAL = [1, 0, 0.5, "", 1]
TOOL_P = [1, 0, 1, "n/a", 0]
TOOL_ACC = [1, 1, 0.5, 0, 1]
TOOLSET = [0.67, 1, 0, 0.5, 1]


def table(tool_p=TOOL_P):
    columns = zip(GOAL, tool_p, TOOL_ACC, TOOLSET, strict=True)
    names = ("goal_accuray", "precision_score", "tool_accuray", "toolset_accuray")
    return [dict(zip(names, row, strict=True)) for row in columns]


def test_goal_and_goal_star_by_hand_and_as_published():
    scores = published_scorer.aggregate(table(), {2, 4, 9})
    assert scores.metrics["agent_x.goal_acc"] == pytest.approx((50.0, 2))
    assert scores.metrics["agent_x.goal_acc_imggen"].value == pytest.approx(58.3333333, abs=1e-6)
    starred = published_scorer.aggregate(table([1, 0, "n/a", "n/a", 0]), {2, 4, 9}).metrics[
        "agent_x.goal_acc_imggen"
    ]
    assert starred.value == pytest.approx(41.6666667, abs=1e-6)
    assert math.isnan(
        published_scorer.aggregate(table(), set()).metrics["agent_x.goal_acc_imggen"].value
    )
    # README of Agent-X: GPT-4o and Kimi-VL under the judge GPT-4o.
    assert pytest.approx(0.696, abs=5e-4) == (0.591 + 0.765 + 0.731) / 3
    row = {
        "goal_accuray": 0,
        "precision_score": 0.591,
        "tool_accuray": 0.765,
        "toolset_accuray": 0.731,
    }
    assert published_scorer.aggregate([row], {0}).metrics[
        "agent_x.goal_acc_imggen"
    ].value == pytest.approx(69.5666667)
    row |= {"precision_score": 0.273, "tool_accuray": 0.593, "toolset_accuray": 0.0}
    assert published_scorer.aggregate([row], {0}).metrics[
        "agent_x.goal_acc_imggen"
    ].value == pytest.approx(28.8666667)


def test_numbers_are_coerced_as_pandas_does():
    pandas = pytest.importorskip("pandas")
    cells = [
        "1",
        " 0.5 ",
        "1e-1",
        ".5",
        "5.",
        "",
        "n/a",
        "NaN",
        "inf",
        "-Infinity",
        "0.5/1",
        "1,0",
        "abc",
        True,
        False,
    ]
    cells += [None, 3, 2.5, "+1", "0x10", "1 2", "--1", "True", *NO_NUMBERS]
    for cell in cells:
        theirs = pandas.to_numeric(pandas.Series([cell, "x"], dtype=object), errors="coerce")[0]
        ours = published_scorer.numeric(cell)
        assert (math.nan if ours is None else ours) == pytest.approx(float(theirs), nan_ok=True), (
            cell
        )


NO_NUMBERS = ["٣", "１", "०.5", "²", "1e٣", "\u00a01", "\u30001", "1_0"]


@pytest.mark.parametrize("cell", [*NO_NUMBERS, "1e400"])
def test_digits_and_blanks_are_those_of_ascii(cell):
    assert published_scorer.numeric(cell) is None


def test_tool_calls_are_counted_as_published():
    steps = [
        {"tool": "OCR", "output": "x"},
        {"tool_used": "Foo", "tool_output": "y"},
        {"tool": "OCR", "output": 0},
        {"thought": ""},
    ]
    made = published_scorer.tool_call_statistics(
        [{"0": {"reasoning_steps": steps}}, {"1": {"reasoning_steps": ""}}]
    )
    assert made == {
        **{"samples": 2, "steps": 4, "empty_samples": 1, "successful": 2, "failed": 2},
        **{"no_output": 1, "no_tool": 0, "empty_steps": 1, "invalid": 1, "failures": 4},
    }


STEP = {
    "step": 1,
    "task": "t",
    "tool_used": "OCR",
    "tool_output": "cup",
    "thought": "look at the cup",
}
ANSWER = {"value": "3 cups", "justification": "counted"}
WHOLE = {"query": "q", "filename": "f", "reasoning_steps": [STEP], "final_answer": ANSWER}


def test_errors_are_counted_as_published():
    predictions = [
        {"0": WHOLE},
        {"1": {**WHOLE, "reasoning_steps": "", "final_answer": {"value": "", "justification": ""}}},
        {"2": {**WHOLE, "reasoning_steps": []}},
        {"3": {**WHOLE, "reasoning_steps": [STEP, {**STEP, "tool_used": "ocr "}]}},
        {"4": {**WHOLE, "reasoning_steps": [{**STEP, "tool": "Solver"}]}},
        {"5": {**WHOLE, "reasoning_steps": [{"tool": "OCR"}]}},
        {"6": {"query": "q", "final_answer": ANSWER}},
        {"7": {**WHOLE, "final_answer": "no object"}},
    ]
    made = error_analysis(predictions)
    assert made.samples == 8
    # The failed record has its steps as a text: that is no list, and a wrong format.
    assert made.counts == {
        "no_response": 1, "only_answer": 2, "invalid_format": 4, "conflicting_tools": 1, "repeated_tool": 1,
        "answer_in_invalid_format": 2,
    }  # fmt: skip
    assert not made.stops


def test_keywords_are_looked_for_as_parts_of_words():
    gold = {
        "0": [
            {
                "final_answer": {"value": "3", "justification": "cup"},
                "reasoning_steps": [[{"thought": "cup"}]],
            }
        ],
        "1": [
            {
                "final_answer": {"value": "5", "justification": "dog"},
                "reasoning_steps": [{"thought": "dog"}],
            }
        ],
    }
    predictions = [{"0": WHOLE}, {"1": WHOLE}, {"9": WHOLE}]
    made = error_analysis(predictions, gold, lambda text: text.split())
    # Sample 9 has no gold, and counts as missed.
    assert (made.counts["no_answer_keyword"], made.counts["no_step_keyword"]) == (2, 2)
