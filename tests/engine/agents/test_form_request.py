"""After an answer the model is asked to copy its values into the form, which alone is scored."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from agrotools.agents.baselines.simple import ReplayPolicy
from agrotools.agents.llm import LLMAgent
from agrotools.agents.modes import run_end_to_end, run_no_tool, run_step_by_step
from agrotools.core import Answer, Mode, Protocol, Record, SampleView, Step, Usage
from agrotools.models import Completion, Message, ModelSettings, RequestedCall
from agrotools.models.endpoint import ScriptedModel
from agrotools.scoring.aggregate import score_record
from agrotools.scoring.event_counts import EventCounts, ending_of
from agrotools.scoring.slots import score_slot
from support.small_sample import run_tool, small_sample, view_of

CALL = RequestedCall(name="calculate", arguments='{"expression": "3+4"}')
FREE = "I count 7 rows on the picture."


def agent(
    replies: Sequence[Completion], mode: Mode, protocol: Protocol = "react"
) -> tuple[LLMAgent, list[list[str]]]:
    """An agent whose model gives ``replies`` in turn, and the texts of the requests that it gets."""
    requests: list[list[str]] = []

    def reply(messages: Sequence[Message], _tools: object, _settings: ModelSettings) -> Completion:
        requests.append([message.text for message in messages])
        return replies[len(requests) - 1]

    return LLMAgent(ScriptedModel(reply), mode, protocol), requests


def said(text: str) -> Completion:
    return Completion(text=text, usage=Usage(input_tokens=10, output_tokens=5))


def answer_of(
    view: SampleView, *replies: Completion, protocol: Protocol = "react"
) -> tuple[Step, int]:
    policy, requests = agent(replies, "no-tool", protocol)
    return asyncio.run(run_no_tool(policy, view)).steps[-1], len(requests)


@pytest.mark.parametrize("protocol", ["react", "tool-calling"])
def test_a_call_of_an_offered_tool_in_unknown_markup_is_asked_for_again(
    protocol: Protocol, view: SampleView
) -> None:
    replies = [said('calculate(expression="3+4")'), said("7 rows"), said("rows: 7")]
    policy, requests = agent(replies, "end-to-end", protocol)
    trajectory = asyncio.run(run_end_to_end(policy, view, run_tool))
    assert [step.kind for step in trajectory.steps] == ["unparseable", "answer"]
    assert "calculate(" in requests[1][-1]


@pytest.fixture
def view(tmp_path: Path) -> SampleView:
    return view_of(small_sample(tmp_path), tmp_path)


@pytest.mark.parametrize("protocol", ["react", "tool-calling"])
@pytest.mark.parametrize("mode", ["no-tool", "end-to-end"])
def test_an_answer_is_asked_once_for_the_form(mode, protocol, tmp_path):
    sample = small_sample(tmp_path)
    view = view_of(sample, tmp_path)
    policy, requests = agent([said(f"Final Answer: {FREE}"), said("rows: 7")], mode, protocol)
    run = run_no_tool(policy, view) if mode == "no-tool" else run_end_to_end(policy, view, run_tool)
    trajectory = asyncio.run(run)
    asked = requests[1]
    assert len(requests) == 2
    assert asked[-2] == FREE
    assert asked[-1].endswith("\nrows: <number>\nwhere\n- rows is number of rows")
    assert "rows:" not in "".join(requests[0])
    assert trajectory.answer == f"{FREE}\n\nrows: 7"
    record = Record(sample=sample, mode=mode, trajectory=trajectory)
    assert [reply.text for reply in record.replies] == [f"Final Answer: {FREE}", "rows: 7"]
    tally = EventCounts()
    tally.add(record, [])
    assert tally.counts().spent["closing_tokens"].total == 15
    assert tally.counts().spent["output_tokens"].total == 10
    assert asyncio.run(run_end_to_end(ReplayPolicy(record), view, run_tool)) == trajectory


def test_step_by_step_asks_at_the_last_step_alone(tmp_path):
    sample = small_sample(tmp_path)
    assert sample.reference
    steps = len(sample.reference.steps)
    policy, requests = agent(
        [said(f"Final Answer: {FREE}")] * (steps + 1) + [said("rows: 7")], "step-by-step"
    )
    actions = asyncio.run(run_step_by_step(policy, view_of(sample, tmp_path), sample.reference))
    assert len(requests) == steps + 2
    assert [len(action.form_replies) for action in actions if isinstance(action, Answer)] == [
        0
    ] * steps + [1]
    record = Record(sample=sample, mode="step-by-step", actions=actions)
    assert (record.form_replies, len(record.replies)) == (actions[-1].form_replies, steps + 2)


@pytest.mark.parametrize(
    ("replies", "asked", "score"),
    [
        (("rows: 7",), 1, 1.0), (("rows: 8",), 1, 0.0), (("rows: unknown",), 1, 0.0), (('{"rows": 7}',), 1, 1.0),
        (("As I said above.", "rows: 7"), 2, 1.0), (("rows: <number>", "rows: 7"), 2, 1.0),
        (("rows: many", "- **rows**: 7."), 2, 1.0), (("As I said above.", "7"), 2, 1.0), (("7",), 1, 1.0),
        (('Action: calculate\nAction Input: {"expression": "1+1"}', "rows: 7"), 2, 1.0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("protocol", ["react", "tool-calling"])
def test_the_form_is_asked_for_again_if_a_value_is_missing(
    replies, asked, score, protocol, tmp_path
):
    sample = small_sample(tmp_path)
    answers = [said(f"Final Answer: {FREE}"), *map(said, replies)]
    step, requests = answer_of(view_of(sample, tmp_path), *answers, protocol=protocol)
    assert (requests, len(step.form_replies)) == (1 + asked, asked)
    assert score_slot(sample.answer[0], sample.answer, step.text).value == score
    assert step.text.startswith(FREE)


def test_the_second_closing_message_names_the_lines_and_tells_nothing_of_the_value(
    tmp_path: Path,
) -> None:
    sample = small_sample(tmp_path)
    others = [slot.model_copy(update={"value": 8}) for slot in sample.answer]
    told: list[list[str]] = []
    for each in (sample, sample.model_copy(update={"answer": tuple(others)})):
        replies = [said(f"Final Answer: {FREE}"), said("rows: 7 dead rows"), said("rows: 7")]
        policy, requests = agent(replies, "no-tool")
        asyncio.run(run_no_tool(policy, view_of(each, tmp_path)))
        told.append(requests[-1])
    first, second = told[0][-3], told[0][-1]
    assert told[0] == told[1]
    assert (
        "- rows cannot be read (7 dead rows): write one number, and nothing else"
        in second.splitlines()
    )
    assert "cannot be read" not in first


@pytest.mark.parametrize(
    ("forms", "why"),
    [
        (("As I said above.", "As above."), "rows cannot be read (As above.)"),
        (("rows: many", "rows: several"), "rows cannot be read (several)"),
        (("rows: several", "Here is\nthe answer again."), "rows is missing"),
    ],
)
def test_a_sample_without_its_form_ends_as_no_form_and_scores_nothing(
    forms: tuple[str, str], why: str, tmp_path: Path
):
    sample = small_sample(tmp_path)
    view = view_of(sample, tmp_path)
    replies = [said(text) for text in (f"Final Answer: {FREE}", *forms)]
    trajectory = asyncio.run(run_end_to_end(agent(replies, "end-to-end")[0], view, run_tool))
    assert (trajectory.termination, trajectory.answer) == ("no_form", None)
    assert trajectory.reason == f"no complete form in 2 replies; in the last one, {why}"
    record = Record(sample=sample, mode="end-to-end", trajectory=trajectory)
    values = {row.metric: row.value for row in score_record(record)}
    assert (values["fas"], values["fas_text"]) == (0, 1)
    assert ending_of(record) == "no_form"
    assert asyncio.run(run_end_to_end(ReplayPolicy(record), view, run_tool)) == trajectory


def test_an_answer_step_without_its_form_is_still_an_answer(tmp_path: Path):
    sample = small_sample(tmp_path)
    assert sample.reference
    texts = [f"Final Answer: {FREE}"] * (len(sample.reference.steps) + 1) + ["As above."] * 2
    policy, _ = agent([*map(said, texts)], "step-by-step")
    actions = asyncio.run(run_step_by_step(policy, view_of(sample, tmp_path), sample.reference))
    record = Record(sample=sample, mode="step-by-step", actions=actions)
    rows = score_record(record)
    assert {row.metric: row.value for row in rows if row.step == 2} == {
        "st_acc": 1, "summ_acc": 0, "summ_acc_truth": 0,
    }  # fmt: skip
    tally = EventCounts()
    tally.add(record, rows)
    assert tally.counts().terminations == {"no_form": 1}


@pytest.mark.parametrize(
    "first",
    [
        Completion(text="", tool_calls=(CALL,)),
        Completion(text="rows: 70 rows of", finish_reason="length"),
        Completion(text="", finish_reason="context"),
    ],
)
def test_a_reply_without_a_form_is_followed_by_another_request(first, tmp_path):
    sample = small_sample(tmp_path)
    step, requests = answer_of(
        view_of(sample, tmp_path), said(f"Final Answer: {FREE}"), first, said("rows: 7")
    )
    assert requests == 3
    assert score_slot(sample.answer[0], sample.answer, step.text).value == 1


def test_without_a_form_nothing_is_asked(view):
    for other in (view.model_copy(update={"form": ()}), view.model_copy(update={"bare": True})):
        assert answer_of(other, said(FREE))[1] == 1


@pytest.mark.parametrize(
    ("thought", "read"),
    [("I add. Final Answer:\nrows: 7", "rows: 7"), ("First I add and then", None)],
)
def test_an_answer_that_a_server_takes_for_reasoning_is_read_where_it_is_called_final(
    thought, read, view
):
    policy, _ = agent([*[Completion(text="", thought=thought)] * 3, said("")], "no-tool")
    assert asyncio.run(run_no_tool(policy, view.model_copy(update={"form": ()}))).answer == read


def test_a_value_that_the_answer_gave_in_a_line_is_not_asked_for_again(tmp_path: Path) -> None:
    sample = small_sample(tmp_path)
    other = sample.answer[0].model_copy(update={"name": "trees", "value": 5})
    asked = sample.model_copy(update={"answer": (*sample.answer, other)})
    answers = [said("Final Answer: trees: 5"), said("rows: 7"), said("rows: 8")]
    step, requests = answer_of(view_of(asked, tmp_path), *answers)
    assert (requests, len(step.form_replies)) == (2, 1)
    assert [score_slot(slot, asked.answer, step.text).value for slot in asked.answer] == [1.0, 1.0]
