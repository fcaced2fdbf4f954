"""What an endpoint sent goes back to it, and what it refuses is left out or takes another form from then on."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from agrotools.agents.llm import LLMAgent
from agrotools.agents.modes import run_end_to_end
from agrotools.core import InfrastructureError, Mode, Protocol, SampleView, Trajectory
from agrotools.models import ModelSettings
from agrotools.models.openai_compatible import OpenAICompatibleModel
from support.openai_server import Body, Endpoint, serve
from support.small_sample import run_tool, small_sample, view_of

pytestmark = pytest.mark.process

ARGUMENTS = '{"expression": "2 * 3"}'
SIGNED = {"extra_content": {"google": {"thought_signature": "c2lnbmF0dXJl"}}}
REACT = f"Thought: first the rows.\nAction: calculate\nAction Input: {ARGUMENTS}"
Reply = Callable[[Body], Any]


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")


@pytest.fixture
def view(tmp_path) -> SampleView:
    return view_of(small_sample(tmp_path), tmp_path)


def said(message: Body, **fields: Any) -> web.Response:
    choice = {"message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return web.json_response({"choices": [choice], **fields})


def refused(message: str, status: int = 400) -> web.Response:
    return web.json_response(
        {"error": {"message": message, "type": "invalid_request_error"}}, status=status
    )


def calls(*ids: str, **fields: Any) -> list[Body]:
    function = {"name": "calculate", "arguments": ARGUMENTS}
    return [{"id": each, "type": "function", "function": function, **fields} for each in ids]


async def converse(
    view: SampleView, reply: Reply, protocol: Protocol = "tool-calling", mode: Mode = "end-to-end"
) -> tuple[Trajectory, list[Body], OpenAICompatibleModel]:
    """The trajectory on a sample at an endpoint that answers with ``reply``, the requests, and the model."""
    endpoint: Endpoint
    async with serve(reply) as endpoint:
        model = OpenAICompatibleModel("m", base_url=endpoint.base_url)
        try:
            trajectory = await run_end_to_end(LLMAgent(model, mode, protocol), view, run_tool)
        finally:
            await model.close()
    return trajectory, endpoint.requests, model


ANSWER = "rows: 7\n\nrows: 7"
"""The answer and its form."""


def turn(body: Body) -> int:
    return sum(message["role"] == "assistant" for message in body["messages"])


@pytest.mark.parametrize(
    "sent",
    [
        {"content": None, "reasoning_content": "2 * 3 is 6.", "tool_calls": calls("a")},
        {"content": "Let me see.", "tool_calls": calls("a", "b", index=0, **SIGNED), **SIGNED},
        {
            "content": [{"type": "text", "text": "Let me see."}],
            "unknown": {"deep": [1]},
            "tool_calls": calls("a"),
        },
    ],
)
async def test_a_native_message_goes_back_as_it_came(view: SampleView, sent: Body) -> None:
    def reply(body: Body) -> web.Response:
        return said({"content": "rows: 7", "reasoning_content": "7"} if turn(body) else sent)

    trajectory, requests, _ = await converse(view, reply)
    assert trajectory.answer == ANSWER
    _, _, back, *results = requests[1]["messages"]
    assert back == {"role": "assistant", **sent}
    assert [message["tool_call_id"] for message in results] == [
        call["id"] for call in sent["tool_calls"]
    ]
    assert {message["name"] for message in results} == {"calculate"}
    kept = trajectory.steps[0].model_dump(mode="json")["reply"]["received"]
    assert kept == {**sent, "content": sent["content"]}


async def test_missing_and_doubled_ids_are_ours_and_arguments_that_are_no_json_are_those_that_were_read(
    view,
) -> None:
    broken = calls("a", "a", "", **SIGNED)
    broken[0]["function"] = {"name": "calculate", "arguments": "{'expression': '2 * 3'}"}

    def reply(body: Body) -> web.Response:
        return said({"content": "rows: 7"} if turn(body) else {"content": "", "tool_calls": broken})

    _, requests, _ = await converse(view, reply)
    back, *results = requests[1]["messages"][2:]
    ids = [call["id"] for call in back["tool_calls"]]
    assert len(set(ids)) == 3
    assert ids == [message["tool_call_id"] for message in results]
    assert all(
        json.loads(call["function"]["arguments"]) == {"expression": "2 * 3"}
        for call in back["tool_calls"]
    )
    assert all(call["extra_content"] == SIGNED["extra_content"] for call in back["tool_calls"])


@pytest.mark.parametrize("invented", ["", "\nObservation: 42\nFinal Answer: rows: 42"])
async def test_a_react_message_goes_back_with_its_reasoning_and_without_invented_results(
    view, invented: str
) -> None:
    def reply(body: Body) -> web.Response:
        content = (
            "rows: 7"
            if turn(body) > 1
            else "Final Answer: seven"
            if turn(body)
            else REACT + invented
        )
        return said({"content": content, "reasoning_content": f"turn {turn(body)}"})

    _, requests, _ = await converse(view, reply, "react")
    first, _, answer, _ = requests[-1]["messages"][2:]
    assert first["reasoning_content"] == "turn 0"
    assert answer == {
        "role": "assistant",
        "content": "Final Answer: seven",
        "reasoning_content": "turn 1",
    }
    assert "42" not in json.dumps(requests[1])
    if not invented:
        assert first["content"] == REACT


@pytest.mark.parametrize(
    ("message", "status", "field", "note"),
    [
        ("property 'reasoning_content' is unsupported", 400, '"reasoning_content"', "reasoning_content is left out"),
        ('{"loc": ["body", "messages", 2, "extra_content"], "msg": "Extra inputs are not permitted"}', 422,
         '"extra_content"', "extra_content is left out"),
        ("unknown field `name`, expected one of `role`, `content`, `extra_content`", 400,
         '"name": "calculate", "content', "name is left out"),
        ("messages.2.content: Input should be a valid string, 'content' is null", 422, '"content": null', "content is"),
        ("Tool call id was a but must be a-z, A-Z, 0-9, with a length of 9.", 400, '"id": "a"', "other ids"),
        ("System role not supported", 400, '"system"', "first message of the user"),
        ("Unsupported value: 'temperature' does not support 0 with this model.", 400,
         '"temperature"', "no temperature"),
        ("'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", 400, '"max_tokens"',
         "max_completion_tokens"),
    ],
)  # fmt: skip
async def test_what_is_refused_by_name_is_left_out_from_then_on(
    view, message, status, field, note
) -> None:
    def ordered(body: Body) -> str:
        told = [{key: each[key] for key in sorted(each, reverse=True)} for each in body["messages"]]
        return json.dumps({**body, "messages": told, "tools": None})

    def reply(body: Body) -> web.Response:
        if field in ordered(body):
            return refused(message, status)
        sent = {
            "content": None,
            "reasoning_content": "6",
            "tool_calls": calls("a", **SIGNED),
            **SIGNED,
        }
        return said({"content": "rows: 7"} if turn(body) > 1 else sent)

    trajectory, requests, model = await converse(view, reply)
    assert trajectory.answer == ANSWER
    assert len(requests) == 5  # one of them was refused
    assert sum(note in each for each in model.stats.warnings) == 1
    assert len(model.stats.served["adapted"]) == 1


async def test_a_field_that_is_demanded_is_not_left_out(view: SampleView) -> None:
    def reply(body: Body) -> web.Response:
        if turn(body):
            return refused(
                "The `reasoning_content` in the thinking mode must be passed back: unsupported otherwise."
            )
        return said({"content": "", "reasoning_content": "6", "tool_calls": calls("a")})

    with pytest.raises(InfrastructureError, match="passed back"):
        await converse(view, reply)


async def test_a_forced_history_has_no_fields_that_nobody_sent(view: SampleView) -> None:
    def reply(body: Body) -> web.Response:
        return said(
            {"content": "rows: 7"} if turn(body) else {"content": "", "tool_calls": calls("a")}
        )

    trajectory, _, model = await converse(view, reply)
    steps = [step.model_copy(update={"reply": None}) for step in trajectory.calls]
    messages, _ = await LLMAgent(
        model, "step-by-step", "tool-calling", ModelSettings()
    ).request_for(view, steps)
    assert [message.received for message in messages] == [None] * 4
    assert messages[2].tool_calls[0].id == "call00000"
