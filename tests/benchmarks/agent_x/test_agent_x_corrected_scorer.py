import pytest

from agrotools.core import BenchmarkError
from agrotools_benchmarks.agent_x.judge import JudgeTable
from agrotools_benchmarks.agent_x.score import generative_ids, score


def steps(*tools):
    return {"reasoning_steps": [{"tool_used": tool} for tool in tools]}


DATA = {
    "0": {"query_type": "objective", **steps("OCR", "Calculator")},
    "1": {"query_type": "subjective", "reasoning_steps": [[{"tool": "OCR"}]]},
    "2": {"query_type": "generative", **steps("ImageGenerator")},
    "3": {"query_type": "objective", **steps("OCR")},
}
PREDICTIONS = [
    {"0": steps("OCR", "WebSearch")},
    {"1": steps("OCR")},
    {"2": steps("ImageGenerator", "null")},
]


def replies(goal, tool=1):
    return {
        "goal_accuray": goal,
        "precision_score": tool,
        "tool_accuray": "{'Score': '0.5'}",
        "toolset_accuray": 1,
    }


TABLE = JudgeTable(
    (replies("{'Score': 1}"), replies("no idea"), replies(1, "0.5/1")), ("0", "1", "2"), raw=True
)


def test_everything_that_should_be_there_is_counted():
    scores = score(TABLE, PREDICTIONS, DATA)
    # Sample 1 cannot be read, sample 3 is missing, sample 2 is generative.
    assert scores.metrics["agent_x.goal_acc_corrected"] == pytest.approx((100 / 3, 3))
    assert scores.metrics["agent_x.tool_p_corrected"] == pytest.approx((62.5, 4))
    assert scores.metrics["agent_x.toolset_f1_corrected"] == pytest.approx(
        (100 * (0.5 + 1 + 1 + 0) / 4, 4)
    )
    starred = scores.metrics["agent_x.goal_acc_imggen_corrected"]
    assert starred == pytest.approx((100 * (0.5 + 0.5 + 1) / 3, 1))
    assert (scores.counts["unreadable_scores"], scores.counts["missing_scores"]) == (1, 3)
    assert scores.counts["without_prediction"] == scores.counts["without_judgement"] == 1
    assert "agent_x.ground_s_corrected" in scores.left_out


def test_what_is_generative_is_told_by_types_before_published_ids():
    table = JudgeTable((replies(1), replies(0)), ("1", "2"), raw=False)
    scores = score(table)
    assert (scores.metrics["agent_x.goal_acc_corrected"], scores.counts["generative"]) == (
        (0, 1),
        1,
    )
    assert (
        scores.left_out["agent_x.toolset_f1_corrected"]
        == "needs the predictions and the data set (--data)"
    )
    assert generative_ids(DATA) == {"2"}
    assert generative_ids({str(i): {"query_type": "objective"} for i in range(10)}) == {"1", "8"}


def test_rows_and_samples_must_belong_together():
    with pytest.raises(BenchmarkError, match="without ids"):
        score(JudgeTable(TABLE.rows, None, raw=False), PREDICTIONS[:2])
    with pytest.raises(BenchmarkError, match='"9"'):
        score(None, [{"9": {}}], DATA)
