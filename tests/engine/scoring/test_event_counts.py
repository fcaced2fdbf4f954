"""Counts beside the scores: endings of records, calls made and needed."""

import pytest

from agrotools.core import (
    Answer,
    ErrorInfo,
    Halt,
    Mode,
    Observation,
    Record,
    ReferenceStep,
    ReferenceTrajectory,
    Step,
    ToolCall,
    Trajectory,
    Unparseable,
)
from agrotools.core.record import UNREAD_CALL
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.event_counts import EventCounts, ending_of, missing_of, warnings_of
from agrotools.scoring.summary import CallRatio, ModeSummary, Summary
from support.plain_sample import plain_sample
from support.runs import summarise


def ended(number: int, termination: str | None) -> Record:
    """A record that ended so; None: an invalid one."""
    sample = plain_sample(f"s{number}")
    if termination is None:
        return Record(sample=sample, mode="no-tool", invalid="503 Bad gateway")
    return Record(
        sample=sample,
        mode="no-tool",
        trajectory=Trajectory.model_validate({"termination": termination}),
    )


def mode_of(*counts: tuple[str | None, int]) -> ModeSummary:
    endings = [termination for termination, n in counts for _ in range(n)]
    return summarise(
        [ended(number, termination) for number, termination in enumerate(endings)]
    ).modes["no-tool"]


def lines(*counts: tuple[str | None, int]) -> tuple[str, ...]:
    modes: dict[Mode, ModeSummary] = {"no-tool": mode_of(*counts)}
    return warnings_of(modes, {})


@pytest.mark.parametrize(
    ("cause", "option"),
    [
        ("timeout", "--timeout"),
        (None, "503 Bad gateway"),
    ],
)  # fmt: skip
def test_a_cause_that_ended_more_than_a_twentieth_is_named_with_its_number_and_what_to_try(
    cause, option
):
    assert lines(("answered", 95), (cause, 5)) == ()
    (line,) = lines(("answered", 94), (cause, 6))
    assert line.startswith("no-tool: 6 of 100 samples (6.0 %) ")
    assert option in line


def test_calls_that_no_parser_reads_are_reported() -> None:
    step = Step(
        turn=0, kind="unparseable", text="f(x=1)", reason=f"{UNREAD_CALL}: 'f('. Write a call as"
    )
    answer = Trajectory(steps=(step, Step(turn=1, kind="answer", text="3")), termination="answered")

    plain = Trajectory(termination="answered")

    def found(n: int) -> tuple[str, ...]:
        records = [
            Record(
                sample=plain_sample(f"s{k}"),
                mode="end-to-end",
                trajectory=answer if k < n else plain,
            )
            for k in range(100)
        ]
        return warnings_of(summarise(records).modes, {})

    assert found(5) == ()
    (line,) = found(6)
    assert line.startswith(
        "end-to-end: 6 of 100 samples (6.0 %) have a call in a form that is not read"
    )
    assert "; no call was read" in line
    assert "--tool-call-parser" in line
    assert "--protocol react" in line
    call = ToolCall(tool="calculate", arguments={"expression": "1 + 2"})
    called = Step(turn=0, kind="call", call=call, observation=SEEN)
    plain = Trajectory(steps=(called,), termination="answered")
    (line,) = found(6)
    assert line.startswith("end-to-end: 6 of 100 samples (6.0 %) have a call in a form that is not")
    assert "other calls were read" in line
    assert "agrotools explain" in line
    assert "no call was read" not in line
    unread = Unparseable(text="f(x=1)", reason=f"{UNREAD_CALL}: 'f('.")
    counts = EventCounts()
    counts.add(
        Record(
            sample=plain_sample(), mode="step-by-step", actions=(unread, unread, Answer(text="3"))
        ),
        (),
    )
    assert counts.counts().unread_calls == 1


def test_in_step_by_step_half_of_the_steps_must_have_ended_so() -> None:
    halt, answer = Halt(termination="context"), Answer(text="yes")
    record = Record(sample=plain_sample(), mode="step-by-step", actions=(answer, answer, halt))
    assert ending_of(record) is None
    assert ending_of(record.model_copy(update={"actions": (answer, halt)})) == "context"
    unread = Unparseable(text="?", reason="no call")
    assert (
        ending_of(record.model_copy(update={"actions": (unread, unread, answer)})) == "unparseable"
    )


def test_records_that_are_missing_are_counted_even_where_a_mode_has_none() -> None:
    modes: dict[Mode, ModeSummary] = {"no-tool": mode_of(("answered", 30))}
    missing = missing_of(modes, {"no-tool": 60, "end-to-end": 8, "step-by-step": 0})
    assert missing == {"no-tool": 30, "end-to-end": 8}
    short, gone = warnings_of(modes, missing)
    assert short.startswith(
        "no-tool: 30 of 60 planned records are missing; the scores cover the other 30."
    )
    assert gone.startswith("end-to-end: 8 of 8 planned records are missing")
    assert missing_of(modes, {"no-tool": 30}) == {}


SEEN = Observation(result={"value": 3})
FAILED = Observation(error=ErrorInfo(kind="invalid_argument", message="no"))


def record(
    name: str, made: int, needed: int = 2, *, failed: int = 0, answer: str | None = "3", **fields
) -> Record:
    call = ToolCall(tool="calculate", arguments={"expression": "1 + 2"})
    step = ReferenceStep(tool="calculate", arguments={"expression": "1 + 2"}, observation=SEEN)
    seen = [SEEN] * (made - failed) + [FAILED] * failed
    steps = [
        Step(turn=turn, kind="call", call=call, observation=each) for turn, each in enumerate(seen)
    ]
    if answer is not None:
        steps.append(Step(turn=made, kind="answer", text=answer))
    return Record(
        sample=plain_sample(
            name, reference=ReferenceTrajectory(steps=(step,) * needed), **fields.pop("of", {})
        ),
        mode=fields.pop("mode", "end-to-end"),
        trajectory=Trajectory(
            steps=tuple(steps), termination="answered" if answer else "max_steps"
        ),
        **fields,
    )


def summary(*records: Record) -> Summary:
    tally = RunAggregator()
    for each in records:
        tally.add(each, [])
    return tally.summary().model_copy(update={"model": "m1"})


def test_ratios_are_of_samples_with_answer_calls_and_reply():
    ratio = (
        summary(record("a", 2), record("b", 3, failed=1), record("c", 8, 4))
        .modes["end-to-end"]
        .call_ratio
    )
    assert ratio == CallRatio(mean=(1 + 1.5 + 2) / 3, n=3, made=13, needed=8)
    counted = record("a", 2)
    left_out = [record("b", 9, answer=None), record("c", 9, 0), record("d", 9, invalid="refused")]
    ratio = summary(counted, *left_out).modes["end-to-end"].call_ratio
    assert ratio == CallRatio(mean=1, n=1, made=2, needed=2)
    assert summary(*left_out).modes["end-to-end"].call_ratio is None
    assert summary(record("a", 0, mode="no-tool")).modes["no-tool"].call_ratio is None


def test_a_tool_without_a_back_end_for_what_is_asked_is_named_with_what_to_set_up() -> None:
    """A call with another argument than that of the reference is the model's fault, and does not count."""
    missing = Observation(
        error=ErrorInfo(
            kind="backend_unavailable",
            message="the net knows no leaves of mango",
            argument="crop",
            setup="train one: agrotools tools packs train",
        )
    )

    def record(number: int, crop: str) -> Record:
        sample = plain_sample(f"s{number}")
        wanted = ReferenceStep(
            tool="diagnose_pest_disease", arguments={"crop": "mango"}, observation=missing
        )
        sample = sample.model_copy(update={"reference": ReferenceTrajectory(steps=(wanted,))})
        made = ToolCall(tool="diagnose_pest_disease", arguments={"crop": crop})
        step = Step(turn=0, kind="call", call=made, observation=missing)
        return Record(
            sample=sample,
            mode="end-to-end",
            trajectory=Trajectory(steps=(step, step), termination="answered"),
        )

    records = [record(number, "mango" if number < 6 else "fig") for number in range(10)]
    modes = summarise(records).modes
    (found,) = modes["end-to-end"].counts.missing_backends
    assert (found.tool, found.samples) == ("diagnose_pest_disease", 6)
    (line,) = warnings_of(modes, {})
    assert line.startswith(
        "end-to-end: 6 of 10 samples (60.0 %) need a back-end of diagnose_pest_disease"
    )
    assert line.endswith("Train one: agrotools tools packs train.")
