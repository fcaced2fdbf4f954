"""The Responses API: requests in its form, replies, and the same scores as over chat completions."""

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import agrotools as at
from agrotools.models import (
    Endpoint,
    ImagePart,
    Message,
    ModelSettings,
    RequestedCall,
    TextPart,
    make_model,
)
from agrotools.models.chat_format import input_items
from support.benchmark_folders import write_folder
from support.openai_server import PICTURE, SPEC, ReferenceFollower, completion, serve, serving

IMAGE = PICTURE
pytestmark = pytest.mark.process


def reply_to(
    *messages: Message, responder: Any = lambda _body: completion("fine"), **settings: Any
) -> Any:
    async def ask() -> Any:
        async with serve(responder) as endpoint:
            model = make_model(Endpoint("m", f"{endpoint.base_url}/responses"))
            try:
                return await model.generate(messages, [SPEC], ModelSettings(**settings)), endpoint
            finally:
                await model.close()

    return asyncio.run(ask())


def test_calls_results_and_images_are_items_of_their_own():
    call = RequestedCall(name="calculate", arguments='{"expression": "1 + 1"}', id="call00000")
    messages = (
        Message.of("system", "Be brief."),
        Message(role="user", content=(TextPart("What is this?"), ImagePart(IMAGE))),
        Message(role="assistant", content=(TextPart("I count."),), tool_calls=(call,)),
        Message(role="tool", content=(TextPart("2"), ImagePart(IMAGE)), tool_call_id="call00000"),
    )
    image = {"type": "input_image", "image_url": IMAGE, "detail": "auto"}
    assert [item for message in messages for item in input_items(message)] == [
        {"role": "system", "content": [{"type": "input_text", "text": "Be brief."}]},
        {"role": "user", "content": [{"type": "input_text", "text": "What is this?"}, image]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "I count."}]},
        {
            "type": "function_call",
            "call_id": "call00000",
            "name": "calculate",
            "arguments": call.arguments,
        },
        {
            "type": "function_call_output",
            "call_id": "call00000",
            "output": [{"type": "input_text", "text": "2"}, image],
        },
    ]
    _, endpoint = reply_to(*messages, top_logprobs=2)
    assert json.loads(endpoint.bodies[0])["top_logprobs"] == 2
    completed, endpoint = reply_to(*messages, seed=3, max_output_tokens=50)
    sent = json.loads(endpoint.bodies[0])
    assert "top_logprobs" not in sent
    assert completed.text == "fine"
    assert (completed.usage.input_tokens, completed.usage.output_tokens) == (100, 10)
    assert (sent["store"], sent["max_output_tokens"], "seed" in sent) == (False, 50, False)
    assert (sent["tools"][0]["type"], sent["tools"][0]["name"]) == ("function", "calculate")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (completion("half", finish_reason="length"), "length"),
        (completion("no", finish_reason="content_filter"), "filtered"),
        (completion(None, [("calculate", "{}")]), "tool_calls"),
        (completion("whole"), "stop"),
    ],
)
def test_the_end_of_a_reply_is_read(reply: web.Response, reason: str):
    completed, _ = reply_to(Message.of("user", "x"), responder=lambda _body: reply)
    assert completed.finish_reason == reason


def test_a_run_over_responses_has_the_scores_of_chat_completions(tmp_path: Path):
    folder = write_folder(tmp_path / "bench")
    values: list[Any] = []
    for suffix in ("", "/responses"):
        with serving(ReferenceFollower.of_folder(folder)) as endpoint:
            options = {
                "mode": "end-to-end",
                "protocol": "tool-calling",
                "base_url": endpoint.base_url + suffix,
            }
            run = at.evaluate(
                folder, "m", out=tmp_path / f"run{len(values)}", progress=io.StringIO(), **options
            )
        values.append({name: score.value for name, score in run.scores.items()})
        assert run.valid
    assert values[0] == values[1]
