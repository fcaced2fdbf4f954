"""Classes of errors and seconds in the summary of a run: one record at a time, by mode and protocol."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.agents.modes import run_end_to_end, run_step_by_step
from agrotools.agents.parsing import parse_output
from agrotools.core import (
    Mode,
    Observation,
    OpenTextSlot,
    Protocol,
    Record,
    ReferenceStep,
    ReferenceTextsSlot,
    ReferenceTrajectory,
    Sample,
    SampleFile,
    SampleView,
    Step,
    ToolCall,
    ToolOutcome,
    Trajectory,
    Unparseable,
)
from agrotools.core.slot import Fact
from agrotools.models import Completion
from agrotools.models.endpoint import ScriptedModel
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.error_classes import KEYWORD_CLASSES
from agrotools.scoring.summary import ErrorCount, Summary
from agrotools_benchmarks._dialogs.lagent import LagentAgent
from agrotools_benchmarks._dialogs.lagent_format import declared_by
from agrotools_benchmarks._dialogs.record_dialogues import dialogue_of, errors_of_dialogues
from support.plain_sample import plain_sample

FILE = SampleFile(name="a.jpg", path="image/a.jpg", kind="image")
SEEN = Observation(result={"text": "seven"})
REPLIES = {
    "right": 'Thought: look\nAction: OCR\nAction Input: {"image": "image/a.jpg"}',
    "another": 'Thought: look\nAction: CountGivenObject\nAction Input: {"text": "x", "image": "image/a.jpg"}',
    "no json": "Thought: look\nAction: OCR\nAction Input: image/a.jpg",
    "unknown argument": 'Thought: look\nAction: OCR\nAction Input: {"picture": "image/a.jpg"}',
    "no argument": "Thought: look\nAction: OCR\nAction Input: {}",
    "no such file": 'Thought: look\nAction: OCR\nAction Input: {"image": "image/b.jpg"}',
    "no such tool": 'Thought: look\nAction: Magic\nAction Input: {"image": "image/a.jpg"}',
    "no action": "I wonder.",
    "answer": "Thought: done\nFinal Answer: the seven ships",
}


def saying(replies: Sequence[str | Completion]) -> ScriptedModel:
    """A model that says one reply after the other, and the last for ever."""
    remaining = list(replies)
    return ScriptedModel(
        lambda messages, tools, settings: remaining.pop(0) if len(remaining) > 1 else remaining[0]
    )


def sample(name: str = "s1", calls: int = 2, **changes: Any) -> Sample:
    step = ReferenceStep(
        tool="OCR", arguments={"image": "a.jpg"}, observation=SEEN, thought="read the ships"
    )
    fields: dict[str, Any] = {
        "files": (FILE,),
        "toolset": ("OCR", "CountGivenObject"),
        "reference": ReferenceTrajectory(steps=(step,) * calls),
        "answer": (ReferenceTextsSlot(name="answer", label="answer", values=("seven ships",)),),
        "metadata": {"published_paths": {"a.jpg": "image/a.jpg"}, "final_text": "seven ships"},
    }
    return plain_sample(name, **{**fields, **changes})


def view(of: Sample) -> SampleView:
    return SampleView(
        id=of.id,
        query=of.query,
        files=of.files,
        toolset=of.toolset,
        answer_form="",
        paths=of.published_paths,
    )


async def tool(call: ToolCall) -> ToolOutcome:
    return ToolOutcome(SEEN)


async def lagent_record(mode: Mode, replies: Sequence[str], name: str = "s1") -> Record:
    of = sample(name)
    policy = LagentAgent(
        saying([REPLIES[each] for each in replies]), mode, declared=declared_by("gta")
    )
    if mode == "step-by-step":
        assert of.reference is not None
        return Record(
            sample=of, mode=mode, actions=await run_step_by_step(policy, view(of), of.reference)
        )
    trajectory = await run_end_to_end(policy, view(of), tool, max_steps=6, unparseable_limit=None)
    return Record(sample=of, mode=mode, trajectory=trajectory)


def summary(records: Sequence[Record], protocol: Protocol = "react") -> Summary:
    tally = RunAggregator(protocol=protocol)
    for record in records:
        tally.add(record, [])
    return tally.summary()


def rows(records: Sequence[Record], protocol: Protocol = "react") -> dict[str, ErrorCount]:
    (part,) = summary(records, protocol).modes.values()
    return {row.error: row for row in part.errors}


def counted(found: dict[str, ErrorCount]) -> dict[str, int]:
    return {error: row.count for error, row in found.items() if row.count}


@given(
    st.sampled_from(("step-by-step", "end-to-end")),
    st.lists(
        st.lists(st.sampled_from(sorted(REPLIES)), min_size=1, max_size=6), min_size=1, max_size=4
    ),
)
async def test_any_lagent_run_agrees_with_its_prediction_file(mode: Mode, scripts: list[list[str]]):
    records = [await lagent_record(mode, script, f"s{at}") for at, script in enumerate(scripts)]
    counts = rows(records, "lagent")
    theirs = errors_of_dialogues([dialogue_of(record, "lagent") for record in records])
    for error, row in counts.items():
        # Prediction files hold no thoughts and no right texts that keywords could be taken of; records do.
        if error not in KEYWORD_CLASSES and not row.not_looked_for:
            assert (row.count, row.samples) == (
                theirs.counts[error],
                len(theirs.samples.get(error, [])),
            ), error
    if mode == "end-to-end":
        assert [
            error
            for error, row in counts.items()
            if row.not_looked_for and error not in KEYWORD_CLASSES
        ] == [error for error in theirs.not_looked_for if error not in KEYWORD_CLASSES]


@pytest.mark.parametrize(
    "text",
    [
        "Action: OCR\nAction Input: a.jpg", 'Action: OCR\nAction Input: {"image": ', "<tool_call>1</tool_call>",
        'Action: OCR\nAction Input: {"image" "a.jpg" : : }', '{"name": "OCR", "arguments": [1]}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("protocol", ["react", "tool-calling"])
def test_calls_that_are_no_json_are_told_from_other_unreadable_replies(
    text: str, protocol: Protocol
):
    action = parse_output(text, protocol=protocol)
    assert isinstance(action, Unparseable), action
    step = Step(
        turn=0, kind="unparseable", text=action.text, reason=f"{action.reason} {action.hint}"
    )
    stopped = Record(
        sample=sample(),
        mode="end-to-end",
        trajectory=Trajectory(steps=(step,), termination="unparseable"),
    )
    assert counted(rows([stopped])) == {"invalid_json": 1, "only_thought": 1}
    by_step = Record(sample=sample(), mode="step-by-step", actions=(action,))
    assert counted(rows([by_step])) == {"invalid_json": 1}


def answered(text: str, name: str = "s1", mode: Mode = "end-to-end", **changes: Any) -> Record:
    calls = ToolCall(tool="OCR", arguments={"image": "a.jpg"})
    steps = (
        *(
            [Step(turn=0, kind="call", call=calls, observation=SEEN, thought="hm")]
            if mode != "no-tool"
            else []
        ),
        Step(turn=1, kind="answer", text=text),
    )
    fields = {
        "sample": sample(name),
        "mode": mode,
        "trajectory": Trajectory(steps=steps, termination="answered"),
    }
    return Record.model_validate({**fields, **changes})


def test_keywords_are_looked_for_where_there_is_english_text_alone():
    chinese = sample("s2", answer=(ReferenceTextsSlot(name="a", label="a", values=("七艘船",)),))
    number = sample("s3", answer=plain_sample().answer, reference=ReferenceTrajectory(steps=()))
    fact = OpenTextSlot(name="advice", label="advice", facts=(Fact(phrases=("spray oil",)),))
    advice = sample("s4", answer=(fact,))
    records = [
        answered("two trains"),
        answered("two trains", sample=chinese),
        answered("two trains", sample=number),
        answered("spray it", sample=advice),
    ]
    counts = rows(records)
    assert (counts["no_answer_keyword"].count, counts["no_answer_keyword"].of) == (1, 2)
    assert counts["no_answer_keyword"].examples == ("s1",)
    assert (counts["no_step_keyword"].count, counts["no_step_keyword"].of) == (0, 3), (
        "the name of the tool is one"
    )
    alone = rows([answered("two trains", sample=number)])
    assert "keywords" in alone["no_answer_keyword"].not_looked_for
    assert alone["no_answer_keyword"].count is None


def test_invalid_records_count_for_nothing_and_epochs_for_one_sample():
    invalid = Record(sample=sample("s9"), mode="end-to-end", invalid="refused")
    stopped = invalid.model_copy(
        update={"invalid": None, "trajectory": Trajectory(termination="infrastructure")}
    )
    twice = [answered("trains", "s1", epoch=epoch) for epoch in range(2)]
    counts = rows([invalid, stopped, *twice, answered("trains", "s2")])
    assert (counts["no_answer_keyword"].count, counts["no_answer_keyword"].samples) == (3, 2)
    assert (counts["no_answer_keyword"].examples, counts["no_response"].of) == (("s1", "s2"), 3)
    assert counted(rows([invalid])) == {}


def test_seconds_per_query_are_means_of_the_valid_records_of_each_part():
    hard, easy = {"difficulty": "hard"}, {"difficulty": "easy"}
    records = [
        answered("x", seconds=1.0, sample=sample("s1", groups=easy)),
        answered("x", seconds=3.0, sample=sample("s1", groups=easy), epoch=1),
        answered("x", seconds=8.0, sample=sample("s2", groups=hard, calls=3)),
        Record(sample=sample("s3", groups=hard), mode="end-to-end", invalid="refused", seconds=99),
    ]
    seconds = summary(records).modes["end-to-end"].seconds
    assert (seconds.overall.mean, seconds.overall.n) == (4.0, 3)
    assert {value: each.mean for value, each in seconds.by_group["difficulty"].items()} == {
        "easy": 2.0,
        "hard": 8.0,
    }
    assert {
        value: each.mean for value, each in seconds.by_group["calls of the reference"].items()
    } == {"2": 2, "3": 8}
    assert {
        value: each.n for value, each in seconds.by_group["tools of the reference"].items()
    } == {"1": 3}
    assert seconds.by_task_type["weed_crop_area"] == seconds.overall
    assert summary(records[3:]).modes["end-to-end"].seconds is None
