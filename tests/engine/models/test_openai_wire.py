"""The wire against a real server: faults that are retried, errors of the user, endings that are results."""

import asyncio
import json
import logging
import socket
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from aiohttp import web

from agrotools import models
from agrotools.core import InfrastructureError, ToolSpec, Usage, UsageError
from agrotools.models import (
    Completion,
    ImagePart,
    Message,
    ModelSettings,
    RequestedCall,
    TextPart,
    WireSettings,
    make_model,
)
from agrotools.models.openai_compatible import OpenAICompatibleModel
from support.openai_server import PICTURE, SPEC, Body, Endpoint, completion, error, serve

pytestmark = pytest.mark.process

KEY = "sk-test-1234567890-abcdefghij"
QUICK = WireSettings(attempts=4, retry_wall_s=5.0, first_wait_s=0.01, longest_wait_s=0.02)
HELLO = [Message.of("system", "Be brief."), Message.of("user", "Hello")]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def in_turn(*replies: web.Response | Callable[[], web.Response]) -> Callable[[Body], web.Response]:
    """Gives each reply once, in order; the last again and again. Callables make a fresh response each time."""
    made = iter(range(10**6))

    def respond(_body: Body) -> web.Response:
        reply = replies[min(next(made), len(replies) - 1)]
        return reply() if callable(reply) else reply

    return respond


async def ask(
    endpoint: Endpoint,
    messages: Sequence[Message] = HELLO,
    tools: Sequence[ToolSpec] = (),
    settings: ModelSettings | None = None,
    **options: object,
) -> Completion:
    model = OpenAICompatibleModel("m", base_url=endpoint.base_url, **{"wire": QUICK, **options})
    try:
        return await model.generate(messages, tools, settings or ModelSettings())
    finally:
        await model.close()


async def test_a_request_carries_messages_tools_settings_and_the_key() -> None:
    messages = [
        Message.of("system", "Be brief."),
        Message(role="user", content=(TextPart(text="See"), ImagePart(url=PICTURE))),
        Message(
            role="assistant",
            tool_calls=(RequestedCall(name="calculate", arguments='{"x": 1}', id="call00000"),),
        ),
        Message(role="tool", content=(TextPart(text="2"),), tool_call_id="call00000"),
    ]
    settings = ModelSettings(
        temperature=0.5, max_output_tokens=7, seed=3, top_logprobs=2, extra={"top_k": 5}
    )
    async with serve(in_turn(completion("hi"))) as endpoint:
        reply = await ask(endpoint, messages, [SPEC], settings)
    usage = reply.usage
    assert (reply.text, reply.finish_reason, usage.input_tokens, usage.output_tokens) == (
        "hi",
        "stop",
        100,
        10,
    )
    assert reply.attempts == 1
    assert reply.seconds > 0
    assert endpoint.headers[0]["Authorization"] == f"Bearer {KEY}"
    image = {"type": "image_url", "image_url": {"url": PICTURE}}
    function = {"name": "calculate", "arguments": '{"x": 1}'}
    call = {"id": "call00000", "type": "function", "function": function}
    told = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "See"}, image]},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "2", "tool_call_id": "call00000"},
    ]
    offered = {
        "name": "calculate",
        "description": "Evaluate an expression.",
        "parameters": SPEC.parameters,
    }
    sampling = {
        "temperature": 0.5,
        "max_tokens": 7,
        "seed": 3,
        "top_k": 5,
        "logprobs": True,
        "top_logprobs": 2,
    }
    tools = [{"type": "function", "function": offered}]
    assert endpoint.requests == [{"model": "m", "messages": told, "tools": tools, **sampling}]


async def test_native_calls_and_the_legacy_function_call_are_read_alike() -> None:
    message = {"content": None, "function_call": {"name": "calculate", "arguments": '{"a": 1}'}}
    legacy = web.json_response(
        {"choices": [{"message": message, "finish_reason": "function_call"}]}
    )
    async with serve(
        in_turn(completion(None, [("calculate", '{"a": 1}'), ("plot", "{}")]), legacy)
    ) as endpoint:
        new, old = await ask(endpoint), await ask(endpoint)
    assert [(call.name, call.arguments) for call in new.tool_calls] == [
        ("calculate", '{"a": 1}'),
        ("plot", "{}"),
    ]
    assert [(call.name, call.arguments) for call in old.tool_calls] == [("calculate", '{"a": 1}')]
    assert new.finish_reason == old.finish_reason == "tool_calls"


async def test_the_budget_of_attempts_ends_in_an_infrastructure_error() -> None:
    async with serve(in_turn(lambda: error(500, "database gone"))) as endpoint:
        with pytest.raises(InfrastructureError, match=r"after 4 attempts.*database gone") as first:
            await ask(endpoint)
        assert len(endpoint.requests) == 4
        with pytest.raises(InfrastructureError) as second:
            await ask(endpoint)
    # reports count equal reasons
    assert str(first.value) == str(second.value)


async def test_a_date_to_retry_after_that_lies_beyond_the_budget_is_not_waited_for() -> None:
    wait = {"Retry-After": format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)}
    async with serve(in_turn(lambda: error(429, "slow down", **wait))) as endpoint:
        started = time.monotonic()
        with pytest.raises(InfrastructureError, match=r"the server asks to wait 3[56]\d\d s"):
            await ask(endpoint)
        assert time.monotonic() - started < 60


@pytest.mark.process
async def test_a_refused_connection_is_an_infrastructure_error_with_the_address() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    with pytest.raises(InfrastructureError, match=address):
        await ask(Endpoint(address))


@pytest.mark.parametrize(
    "response",
    [
        completion("", finish_reason="content_filter"),
        error(
            400, "The response was filtered by Azure's content management policy", "content_filter"
        ),
        web.json_response({"promptFeedback": {"blockReason": "SAFETY"}}),
    ],
)
async def test_a_content_filter_is_a_result(response: web.Response) -> None:
    async with serve(in_turn(response)) as endpoint:
        reply = await ask(endpoint)
    assert reply.finish_reason == "filtered"
    assert len(endpoint.requests) == 1


async def test_the_newer_name_of_the_token_limit_is_learned_even_by_requests_in_flight() -> None:
    def respond(body: Body) -> web.Response:
        if "max_tokens" in body:
            return error(
                400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
            )
        return completion(str(body["max_completion_tokens"]))

    async with serve(respond, latency_s=0.05) as endpoint:
        model = OpenAICompatibleModel("m", base_url=endpoint.base_url, wire=QUICK)
        replies = await asyncio.gather(
            *[model.generate(HELLO, (), ModelSettings()) for _ in range(3)]
        )
        later = await model.generate(HELLO, (), ModelSettings())
        await model.close()
    assert [reply.text for reply in replies] == ["4096"] * 3
    assert (later.attempts, later.text) == (1, "4096")


async def test_text_that_strict_json_readers_refuse_is_read() -> None:
    raw = json.dumps(
        {"choices": [{"message": {"content": "half \ud83d emoji"}, "finish_reason": "stop"}]}
    )
    parts = {
        "choices": [
            {"message": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}}
        ]
    }
    thinking = {"choices": [{"message": {"content": "4", "reasoning_content": "2 + 2"}}]}
    refusal = {
        "choices": [
            {"message": {"content": None, "refusal": "I will not."}, "finish_reason": "stop"}
        ]
    }
    mute = {"choices": [{"message": {"role": "assistant"}, "finish_reason": "stop"}], "usage": None}
    uncounted = thinking | {
        "usage": {"prompt_tokens": float("nan"), "completion_tokens": float("inf")}
    }
    bodies = (parts, thinking, refusal, mute, uncounted)
    async with serve(
        in_turn(web.Response(text=raw), *[web.json_response(data) for data in bodies])
    ) as endpoint:
        replies = [await ask(endpoint) for _ in range(6)]
    assert [reply.text for reply in replies] == [
        "half \ufffd emoji",
        "ab",
        "4",
        "I will not.",
        "",
        "4",
    ]
    assert replies[5].usage == Usage()
    assert replies[2].thought == "2 + 2"


async def test_the_key_is_in_no_repr_log_error_or_completion(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serve(
        in_turn(lambda: error(500, f"bad header Authorization: Bearer {KEY}"))
    ) as endpoint:
        model = OpenAICompatibleModel("m", base_url=endpoint.base_url, wire=QUICK)
        with pytest.raises(InfrastructureError) as caught:
            await model.generate(HELLO, (), ModelSettings())
        await model.close()
    assert "Bearer ***" in str(caught.value)
    for text in (repr(model), str(model), str(caught.value), repr(caught.value), caplog.text):
        assert KEY not in text
    assert KEY not in json.dumps(endpoint.requests)


async def test_a_model_may_be_closed_and_used_again_and_in_another_loop() -> None:
    async with serve(in_turn(lambda: completion("ok"))) as endpoint:
        model = OpenAICompatibleModel(
            "m", base_url=endpoint.base_url, wire=WireSettings(rpm=600, concurrency=20)
        )

        async def asked() -> set[str]:
            try:  # more than the ten that may be sent at once, so that some wait
                replies = await asyncio.gather(
                    *(model.generate(HELLO, (), ModelSettings()) for _ in range(14))
                )
                return {reply.text for reply in replies}
            finally:
                await model.close()

        assert (
            await asked()
            == await asked()
            == await asyncio.to_thread(asyncio.run, asked())
            == {"ok"}
        )


def test_a_key_is_asked_for_where_one_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        make_model(models.Endpoint("gpt-x"))
    with pytest.raises(UsageError, match="MY_KEY is not set"):
        make_model(models.Endpoint("m", "http://localhost:1/v1", "MY_KEY"))
    assert make_model(models.Endpoint("m", "http://localhost:1/v1")).name == "m"
    monkeypatch.setenv("MY_KEY", "two\nlines")
    with pytest.raises(UsageError, match="does not hold an API key"):
        make_model(models.Endpoint("m", "http://localhost:1/v1", "MY_KEY"))


@pytest.mark.parametrize(
    "url",
    "localhost:8000 ftp://host/v1 http:// http://[::1 http://user:secret@host/v1 http://host/v1?key=secret".split(),
)
def test_addresses_that_are_none_or_hold_secrets_are_refused(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        OpenAICompatibleModel("m", base_url=url)
    assert "secret" not in str(caught.value)


def test_addresses_are_brought_to_one_form(monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("http://h:1/v1", "http://h:1/v1/", "http://h:1/v1/chat/completions"):
        assert OpenAICompatibleModel("m", base_url=url).base_url == "http://h:1/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://other:2/v1")
    assert OpenAICompatibleModel("m").base_url == "http://other:2/v1"
