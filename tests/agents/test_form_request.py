"""After an answer the model is asked once to copy its values into the form, and both are read."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from agrotools.agents import LLMAgent, run_end_to_end, run_no_tool, run_step_by_step
from agrotools.agents.baselines.simple import ReplayPolicy
from agrotools.core import Answer, Mode, Protocol, Record, SampleView, Step, Usage
from agrotools.models import Completion, Message, ModelSettings, RequestedCall
from agrotools.models.endpoint import ScriptedModel
from agrotools.scoring.event_counts import EventCounts
from agrotools.scoring.slots import score_slot
from agrotools.text.answer_form import lacks_form
from support.small_sample import run_tool, small_sample, view_of

CALL = RequestedCall(name="calculate", arguments='{"expression": "3+4"}')
FREE = "I count 7 rows on the picture."


def agent(replies: Sequence[Completion], mode: Mode, protocol: Protocol = "react") -> tuple[LLMAgent, list[list[str]]]:
    """An agent whose model gives ``replies`` in turn, and the texts of the requests that it gets."""
    requests: list[list[str]] = []

    def reply(messages: Sequence[Message], _tools: object, _settings: ModelSettings) -> Completion:
        requests.append([message.text for message in messages])
        return replies[len(requests) - 1]

    return LLMAgent(ScriptedModel(reply), mode, protocol), requests


def said(text: str) -> Completion:
    return Completion(text=text, usage=Usage(input_tokens=10, output_tokens=5))


def answer_of(view: SampleView, *replies: Completion, protocol: Protocol = "react") -> tuple[Step, int]:
    policy, requests = agent(replies, "no-tool", protocol)
    return asyncio.run(run_no_tool(policy, view)).steps[-1], len(requests)


@pytest.mark.parametrize("protocol", ["react", "tool-calling"])
def test_a_call_of_an_offered_tool_in_unknown_markup_is_asked_for_again(protocol: Protocol, view: SampleView) -> None:
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
    assert trajectory.answer == f"{FREE}\n\nFinal Answer:\nrows: 7"
    record = Record(sample=sample, mode=mode, trajectory=trajectory)
    assert [reply.text for reply in record.replies] == [f"Final Answer: {FREE}", "rows: 7"]
    tally = EventCounts()
    tally.add(record, [])
    assert tally.counts().asked_for_form == 1
    assert tally.counts().spent["output_tokens"].total == 10
    assert asyncio.run(run_end_to_end(ReplayPolicy(record), view, run_tool)) == trajectory


def test_step_by_step_asks_at_the_last_step_alone(tmp_path):
    sample = small_sample(tmp_path)
    assert sample.reference
    steps = len(sample.reference.steps)
    policy, requests = agent([said(f"Final Answer: {FREE}")] * (steps + 1) + [said("rows: 7")], "step-by-step")
    actions = asyncio.run(run_step_by_step(policy, view_of(sample, tmp_path), sample.reference))
    assert len(requests) == steps + 2
    assert [action.form_reply is not None for action in actions if isinstance(action, Answer)] == [False] * steps + [
        True
    ]
    record = Record(sample=sample, mode="step-by-step", actions=actions)
    assert (record.form_reply, len(record.replies)) == (actions[-1].form_reply, steps + 2)


@pytest.mark.parametrize(
    ("second", "read"),
    [
        (said("rows: 8"), 0.0),  # what it says last counts
        (said("rows: unknown"), 0.0),
        (said("As I said above."), 1.0),
        (said("rows: <number>"), 1.0),
        (said('Action: calculate\nAction Input: {"expression": "1+1"}'), 1.0),
        (Completion(text="", tool_calls=(CALL,)), 1.0),
        (Completion(text="rows: 70", finish_reason="length"), 1.0),
        (Completion(text="", finish_reason="context"), 1.0),
    ],
)
@pytest.mark.parametrize("protocol", ["react", "tool-calling"])
def test_what_is_no_answer_in_the_form_leaves_the_first_one_standing(second, read, protocol, tmp_path):
    sample = small_sample(tmp_path)
    step, requests = answer_of(view_of(sample, tmp_path), said(f"Final Answer: {FREE}"), second, protocol=protocol)
    assert requests == 2
    assert step.form_reply is not None
    assert score_slot(sample.answer[0], sample.answer, step.text).value == read


def test_without_a_form_nothing_is_asked(view):
    for other in (view.model_copy(update={"form_lines": ()}), view.model_copy(update={"bare": True})):
        assert answer_of(other, said(FREE))[1] == 1


def test_a_reply_in_the_form_has_a_line_for_each_item():
    lines = ("more: <yes or no>", "trees: <number>")
    assert lacks_form("trees: 14", lines)
    assert lacks_form("more: <yes or no>\ntrees: 14", lines)
    assert not lacks_form("trees: 14\nMore: yes", lines)
    assert lacks_form("There are more trees: 14", lines)


@pytest.mark.parametrize(
    ("thought", "read"), [("I add. Final Answer:\nrows: 7", "rows: 7"), ("First I add and then", None)]
)
def test_an_answer_that_a_server_takes_for_reasoning_is_read_where_it_is_called_final(thought, read, view):
    policy, _ = agent([*[Completion(text="", thought=thought)] * 3, said("")], "no-tool")
    assert asyncio.run(run_no_tool(policy, view.model_copy(update={"form_lines": ()}))).answer == read
