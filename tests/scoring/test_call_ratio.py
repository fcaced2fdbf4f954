"""Calls made over calls needed: of what records, failed calls among them, and where it is shown."""

from agrotools.core import (
    ErrorInfo,
    Observation,
    Record,
    ReferenceStep,
    ReferenceTrajectory,
    Step,
    ToolCall,
    Trajectory,
)
from agrotools.report.tables import tables_text
from agrotools.scoring import METRICS, CallRatio, Summary, Tally
from support.plain_sample import plain_sample

SEEN = Observation(result={"value": 3})
FAILED = Observation(error=ErrorInfo(kind="invalid_argument", message="no"))


def record(name: str, made: int, needed: int = 2, *, failed: int = 0, answer: str | None = "3", **fields) -> Record:
    call = ToolCall(tool="calculate", arguments={"expression": "1 + 2"})
    step = ReferenceStep(tool="calculate", arguments={"expression": "1 + 2"}, observation=SEEN)
    seen = [SEEN] * (made - failed) + [FAILED] * failed
    steps = [Step(turn=turn, kind="call", call=call, observation=each) for turn, each in enumerate(seen)]
    if answer is not None:
        steps.append(Step(turn=made, kind="answer", text=answer))
    return Record(
        sample=plain_sample(name, reference=ReferenceTrajectory(steps=(step,) * needed), **fields.pop("of", {})),
        mode=fields.pop("mode", "end-to-end"),
        trajectory=Trajectory(steps=tuple(steps), termination="answered" if answer else "max_steps"),
        **fields,
    )


def summary(*records: Record) -> Summary:
    tally = Tally()
    for each in records:
        tally.add(each, [])
    return tally.summary().model_copy(update={"model": "m1"})


def test_the_mean_of_the_ratios_stands_beside_all_calls():
    ratio = summary(record("a", 2), record("b", 3, failed=1), record("c", 8, 4)).modes["end-to-end"].call_ratio
    assert ratio == CallRatio(mean=(1 + 1.5 + 2) / 3, n=3, made=13, needed=8)


def test_what_has_no_answer_no_reference_calls_or_no_reply_is_left_out():
    counted = record("a", 2)
    left_out = [
        record("b", 9, answer=None),
        record("c", 9, 0),
        record("d", 9, invalid="refused"),
        record("e", 9, of={"metadata": {"schematic": True}}),
    ]
    ratio = summary(counted, *left_out).modes["end-to-end"].call_ratio
    assert ratio == CallRatio(mean=1, n=1, made=2, needed=2)
    assert summary(*left_out).modes["end-to-end"].call_ratio is None
    assert summary(record("a", 0, mode="no-tool")).modes["no-tool"].call_ratio is None


def test_an_answer_without_calls_made_none():
    assert summary(record("a", 0)).modes["end-to-end"].call_ratio == CallRatio(mean=0, n=1, made=0, needed=2)


def test_the_default_table_shows_it_as_it_is_and_not_in_percent():
    scored = summary(*(record(f"s{at}", 3 if at % 2 else 2) for at in range(4)))
    text = tables_text([scored], details=False)
    assert METRICS["agrotools.call_ratio"].label in text
    assert "1.25" in text
    assert "10 / 8" in text
    assert "125.0" not in text
    kept = Summary.model_validate_json(scored.model_dump_json()).modes["end-to-end"].call_ratio
    assert kept == scored.modes["end-to-end"].call_ratio
