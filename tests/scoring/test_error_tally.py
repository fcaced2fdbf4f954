"""Classes of errors and seconds in the summary of a run: one record at a time, by mode."""

from collections.abc import Sequence
from typing import Any

import pytest

from agrotools.agents.parsing import parse_output
from agrotools.core import (
    Answer,
    CallTools,
    ErrorInfo,
    Halt,
    Observation,
    Protocol,
    Record,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    Step,
    ToolCall,
    Trajectory,
    Unparseable,
)
from agrotools.scoring import RunAggregator, Summary
from agrotools.scoring.summary import ErrorCount
from support.plain_sample import plain_sample


def sample(name: str = "s1", tool: str = "count_objects", calls: int = 1, **changes: Any) -> Sample:
    arguments = {"expression": "1+1"} if tool == "calculate" else {}
    reference = ReferenceTrajectory(steps=(ReferenceStep(tool=tool, arguments=arguments),) * calls)
    return plain_sample(name, reference=reference, toolset=("count_objects", "calculate"), **changes)


def summary(records: Sequence[Record]) -> Summary:
    tally = RunAggregator()
    for record in records:
        tally.add(record, [])
    return tally.summary()


def rows(*records: Record) -> dict[str, ErrorCount]:
    (part,) = summary(records).modes.values()
    return {row.error: row for row in part.errors}


def counted(*records: Record) -> dict[str, int]:
    return {error: row.count for error, row in rows(*records).items() if row.count}


def made(tool: str, turn: int = 0, error: Any = None, **arguments: Any) -> Step:
    observation = Observation(error=ErrorInfo(kind=error, message="x")) if error else Observation(result={})
    return Step(turn=turn, kind="call", call=ToolCall(tool=tool, arguments=arguments), observation=observation)


def end_to_end(*steps: Step, of: Sample | None = None, **changes: Any) -> Record:
    ending = "answered" if steps and steps[-1].kind == "answer" else "unparseable"
    trajectory = Trajectory(steps=steps, termination=ending)
    return Record(sample=of or sample(), mode="end-to-end", trajectory=trajectory, **changes)


def step_by_step(*actions: Any, calls: int = 3) -> Record:
    return Record(sample=sample(tool="calculate", calls=calls), mode="step-by-step", actions=actions)


ANSWER = Step(turn=5, kind="answer", text="yes")


def test_errors_of_trajectories():
    steps = (
        made("count_objects", image="a"),
        made("count_objects", image="a"),
        made("nope", turn=1, error="unknown_tool"),
        made("calculate", turn=2, error="invalid_argument"),
        made("calculate", turn=3, error="timeout"),
        Step(turn=4, kind="unparseable", text="?", reason="no call"),
        ANSWER,
    )
    assert counted(end_to_end(*steps)) == {
        "repeated_tool": 1, "redundant_call": 1, "several_calls": 1, "wrong_tool_name": 1, "invalid_arguments": 1,
        "tool_error": 1, "format_error": 1,
    }  # fmt: skip
    assert counted(end_to_end(ANSWER)) == {"single_step_answer": 1}
    assert counted(end_to_end()) == {"no_response": 1}
    twice = end_to_end(made("count_objects", image="a"), made("count_objects", 1, image="b"), ANSWER)
    assert counted(twice) == {"repeated_tool": 1}
    assert counted(twice.model_copy(update={"sample": sample(calls=2)})) == {}, "the reference repeats it, too"


def test_errors_of_step_by_step_records():
    given = step_by_step(
        CallTools(calls=(ToolCall(tool="calculate", arguments={"expression": "1+1"}), ToolCall(tool="nope"))),
        Answer(text="yes"),
        CallTools(calls=(ToolCall(tool="calculate", arguments={"x": 1}),)),
        Unparseable(text="?", reason="x"),
    )
    assert counted(given) == {
        "several_calls": 1, "wrong_tool_name": 1, "single_step_answer": 1, "invalid_arguments": 1, "format_error": 1,
    }  # fmt: skip
    assert counted(given.model_copy(update={"actions": (Halt(termination="length"),)})) == {"format_error": 1}
    assert rows(given)["tool_error"].not_looked_for
    assert rows(given)["tool_error"].count is None


@pytest.mark.parametrize(
    "text",
    [
        "Action: OCR\nAction Input: a.jpg", 'Action: OCR\nAction Input: {"image": ', "<tool_call>1</tool_call>",
        'Action: OCR\nAction Input: {"image" "a.jpg" : : }', '{"name": "OCR", "arguments": [1]}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("protocol", ["react", "tool-calling"])
def test_calls_that_are_no_json_are_told_from_other_unreadable_replies(text: str, protocol: Protocol):
    action = parse_output(text, protocol=protocol)
    assert isinstance(action, Unparseable), action
    step = Step(turn=0, kind="unparseable", text=action.text, reason=f"{action.reason} {action.hint}")
    assert counted(end_to_end(step)) == {"invalid_json": 1, "only_thought": 1}
    assert counted(step_by_step(action)) == {"invalid_json": 1}


def test_invalid_records_count_for_nothing_and_epochs_for_one_sample():
    invalid = Record(sample=sample("s9"), mode="end-to-end", invalid="refused")
    stopped = invalid.model_copy(update={"invalid": None, "trajectory": Trajectory(termination="infrastructure")})
    twice = [end_to_end(ANSWER, epoch=epoch) for epoch in range(2)]
    counts = rows(invalid, stopped, *twice, end_to_end(ANSWER, of=sample("s2")))["single_step_answer"]
    assert (counts.count, counts.samples, counts.examples, counts.of) == (3, 2, ("s1", "s2"), 3)
    assert counted(invalid) == {}


def test_seconds_per_query_are_means_of_the_valid_records_of_each_part():
    hard, easy = {"difficulty": "hard"}, {"difficulty": "easy"}
    records = [
        end_to_end(ANSWER, seconds=1.0, of=sample("s1", calls=2, groups=easy)),
        end_to_end(ANSWER, seconds=3.0, of=sample("s1", calls=2, groups=easy), epoch=1),
        end_to_end(ANSWER, seconds=8.0, of=sample("s2", groups=hard, calls=3)),
        Record(sample=sample("s3", groups=hard), mode="end-to-end", invalid="refused", seconds=99),
    ]
    seconds = summary(records).modes["end-to-end"].seconds
    assert seconds is not None
    assert (seconds.overall.mean, seconds.overall.n) == (4.0, 3)
    assert {value: each.mean for value, each in seconds.by_group["difficulty"].items()} == {"easy": 2.0, "hard": 8.0}
    assert {value: each.mean for value, each in seconds.by_group["calls of the reference"].items()} == {"2": 2, "3": 8}
    assert {value: each.n for value, each in seconds.by_group["tools of the reference"].items()} == {"1": 3}
    assert seconds.by_task_type["weed_crop_area"] == seconds.overall
    assert summary(records[3:]).modes["end-to-end"].seconds is None
