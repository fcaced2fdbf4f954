"""Score of a sample in two lines, as the log of Inspect holds it, and the first error as ``explain`` prints it."""

from fractions import Fraction

from agrotools.core import (
    Fact,
    Observation,
    OpenTextSlot,
    Record,
    ReferenceStep,
    ReferenceTrajectory,
    Step,
    ToleranceSlot,
    ToolCall,
    Trajectory,
)
from agrotools.report.explain import explain
from agrotools.report.html.data import listed_data
from agrotools.report.score_text import score_text
from agrotools.scoring.aggregate import score_record
from agrotools.scoring.lost_points import Shares, lost_shares
from support.plain_sample import plain_sample
from support.shown import rendered

SUM = ReferenceStep(
    tool="calculate",
    arguments={"expression": "2 + 2"},
    observation=Observation(result={"value": 4}),
)
SLOT = ToleranceSlot(name="value", label="value", value=4.0, abs_tol=0.5)


def _record(said: str, *calls: str) -> Record:
    """Return a record that makes calls and answers with ``said``."""
    sample = plain_sample(answer=(SLOT,), reference=ReferenceTrajectory(steps=(SUM,)))
    steps = [
        Step(
            turn=turn,
            kind="call",
            call=ToolCall(tool="calculate", arguments={"expression": call}),
            observation=Observation(result={"value": 4}),
        )
        for turn, call in enumerate(calls)
    ]
    answer = Step(turn=len(calls), kind="answer", text=f"value: {said}")
    trajectory = Trajectory(steps=(*steps, answer), termination="answered")
    return Record(sample=sample, mode="end-to-end", trajectory=trajectory)


def _text(record: Record, shares: Shares | None = None) -> str:
    scores = score_record(record)
    return score_text(record, scores, lost_shares(record, scores) if shares is None else shares)


def test_a_right_answer_lost_no_points():
    assert _text(_record("4", "2 + 2")) == "Expected: 4 ± 0.5. Answered: 4.\nNo points lost."


def test_a_missing_call_is_named_with_its_place_in_the_reference():
    text = _text(_record("9"))
    assert text.startswith("Expected: 4 ± 0.5. Answered: 9.\nPoints lost by wrong plan")
    assert text.endswith(" First error: reference step 1: no call of calculate.")


def test_a_misread_result_is_named_by_its_slot():
    text = _text(_record("9", "2 + 2"))
    assert "Points lost by misread results 100.0. First error: value: off by 5" in text


def test_an_error_of_a_tool_is_named_with_its_step():
    record = _record("9", "2 + 2")
    text = _text(record, {"tool:calculate": Fraction(1)})
    assert "lost by tool errors (calculate) 100.0. First error: step 1, calculate: value" in text


def test_an_invalid_record_says_why():
    sample = plain_sample(answer=(SLOT,))
    text = _text(Record(sample=sample, mode="end-to-end", invalid="the server is down"))
    assert text == "Expected: 4 ± 0.5. Answered: nothing.\nInvalid: the server is down."


def test_explain_prints_the_same_first_error():
    record = _record("9")
    scores = score_record(record)
    shown = rendered(explain(record, scores, shares=lost_shares(record, scores)), 100)
    assert "first error   reference step 1: no call of calculate" in shown


def test_the_list_the_sample_and_the_log_name_one_first_error():
    record = _record("many")
    trajectory = record.trajectory.model_copy(update={"termination": "no_form"})
    record = record.model_copy(update={"trajectory": trajectory})
    scores = score_record(record)
    shares = lost_shares(record, scores)
    wrong = listed_data(record, scores, shares)["error"]
    assert wrong == "no answer (no_form); reference step 1: no call of calculate"
    assert f"first error   {wrong}" in rendered(explain(record, scores, shares=shares))
    assert f"First error: {wrong}." in score_text(record, scores, shares)


def test_open_text_without_a_judge_is_named_as_left_out():
    record = _record("4", "2 + 2")
    advice = OpenTextSlot(name="advice", label="advice", facts=(Fact(phrases=("hoe",)),))
    sample = record.sample.model_copy(update={"answer": (SLOT, advice)})
    record = record.model_copy(update={"sample": sample})
    assert "advice: not in the score: no judge." in _text(record)
