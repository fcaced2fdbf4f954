"""Endpoints that refuse the reply's length, images or tools: what is asked again, and what is whose fault."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from aiohttp import web

from agrotools.core import EndpointRefusal, InfrastructureError, ToolSpec
from agrotools.models import Completion, ImagePart, Message, ModelSettings, TextPart, WireSettings
from agrotools.models.metered import CachedModel, ResponseCache
from agrotools.models.openai_compatible import OpenAICompatibleModel
from support.openai_server import PICTURE, SPEC, Body, completion, error, serve

pytestmark = pytest.mark.process

QUICK = WireSettings(attempts=3, retry_wall_s=5.0, first_wait_s=0.01, longest_wait_s=0.02)
HELLO = [Message.of("user", "Hello")]
PICTURE = [Message(role="user", content=(TextPart(text="See"), ImagePart(url=PICTURE)))]
Respond = Callable[[Body], web.Response]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-1234567890-abcdefghij")


async def asked(
    respond: Respond,
    *requests: Sequence[Message],
    settings: ModelSettings | None = None,
    tools: Sequence[ToolSpec] = (),
) -> tuple[list[Completion | Exception], list[Body]]:
    """What comes of each request, one after the other to one model, and the bodies that the server saw."""
    came: list[Completion | Exception] = []
    async with serve(respond) as endpoint:
        model = OpenAICompatibleModel("m", base_url=endpoint.base_url, wire=QUICK)
        for messages in requests or (HELLO,):
            try:
                came.append(await model.generate(messages, tools, settings or ModelSettings()))
            except (EndpointRefusal, InfrastructureError) as told:
                came.append(told)
        await model.close()
        assert model.stats.in_flight == model.stats.waiting == model.limit.in_use == 0
    return came, endpoint.requests


def vllm(context: int, prompt: int) -> Respond:
    """A server that counts ``prompt`` tokens in every prompt, and says what fits as vLLM does."""

    def respond(body: Body) -> web.Response:
        output = body["max_tokens"]
        if prompt + output > context:
            return error(
                400,
                f"This model's maximum context length is {context} tokens. However, you requested {prompt + output} "
                f"tokens ({prompt} in the messages, {output} in the completion). Please reduce the length of the "
                "messages or completion.",
            )
        return completion(f"within {output}")

    return respond


def silent_on_numbers(context: int, prompt: int) -> Respond:
    """The same, in words alone."""
    told = vllm(context, prompt)

    def respond(body: Body) -> web.Response:
        return (
            told(body)
            if prompt + body["max_tokens"] <= context
            else error(400, "x", "context_length_exceeded")
        )

    return respond


def limits(bodies: list[Body]) -> list[int]:
    return [body["max_tokens"] for body in bodies]


async def test_a_limit_of_ours_that_does_not_fit_the_context_is_made_to_fit() -> None:
    came, bodies = await asked(vllm(4096, 100), HELLO, HELLO)
    assert [reply.text for reply in came if isinstance(reply, Completion)] == ["within 3996"] * 2
    assert limits(bodies) == [4096, 3996] * 2


async def test_a_prompt_that_is_itself_too_long_is_a_result_at_once() -> None:
    came, bodies = await asked(vllm(4096, 5000))
    assert isinstance(came[0], Completion)
    assert came[0].finish_reason == "context"
    assert limits(bodies) == [4096]


async def test_without_numbers_a_reply_of_one_token_shows_whose_fault_it_is() -> None:
    came, bodies = await asked(silent_on_numbers(4096, 5000))
    assert isinstance(came[0], Completion)
    assert came[0].finish_reason == "context"
    assert limits(bodies) == [4096, 1]
    came, bodies = await asked(silent_on_numbers(4096, 100))
    assert isinstance(came[0], InfrastructureError)
    assert came[0].problem == "token_limit"
    assert "--max-output-tokens" in (came[0].hint or "")
    assert limits(bodies) == [4096, 1]


async def test_numbers_that_prove_wrong_are_believed_twice() -> None:
    said = iter((1000, 500, 250, 125))

    def respond(_body: Body) -> web.Response:
        return error(400, f"Current length is 9000 while limit is {9000 - 4096 + next(said)}")

    came, bodies = await asked(respond)
    assert isinstance(came[0], Completion)
    assert came[0].finish_reason == "context"
    assert limits(bodies)[0] == 4096
    assert limits(bodies)[-1] == 1
    assert len(bodies) <= 4


async def test_a_reply_that_the_context_cut_short_says_so_and_is_not_kept(tmp_path: Any) -> None:
    full = vllm(4096, 3396)

    def respond(body: Body) -> web.Response:
        return (
            completion("Final", finish_reason="length") if body["max_tokens"] <= 700 else full(body)
        )

    async with serve(respond) as endpoint:
        cache = ResponseCache(tmp_path / "replies.sqlite")
        model = CachedModel(
            OpenAICompatibleModel("m", base_url=endpoint.base_url, wire=QUICK), cache
        )
        replies = [await model.generate(HELLO, (), ModelSettings()) for _ in range(2)]
        await model.close()
    assert [(reply.finish_reason, reply.cached) for reply in replies] == [("length", False)] * 2
    assert "token limit, 700: the endpoint allows no more" in replies[0].detail


@pytest.mark.parametrize(
    ("written", "invalid"), [(0, False), (16, True), (511, True), (512, False), (4000, False)]
)
async def test_a_reply_that_the_endpoint_cuts_off_by_a_limit_of_its_own_is_invalid(
    written: int, invalid: bool
) -> None:
    choice = {"message": {"role": "assistant", "content": "I see"}, "finish_reason": "length"}
    reply = {"choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": written}}
    settings = ModelSettings(max_output_tokens=4096)
    (came,), _ = await asked(lambda _body: web.json_response(reply), settings=settings)
    assert isinstance(came, InfrastructureError) is invalid
    if isinstance(came, InfrastructureError):
        assert f"stopped the reply at {written} tokens of 4096" in str(came)
    else:
        assert isinstance(came, Completion)
        assert came.finish_reason == "length"


async def test_one_machine_of_several_with_a_smaller_context_makes_no_result() -> None:
    long, short = [Message.of("user", "word " * 400)], [Message.of("user", "word " * 200)]

    def small(_body: Body) -> web.Response:
        return error(400, "prompt is too long: 900 tokens > 800 maximum", "context_length_exceeded")

    def every_other(body: Body) -> web.Response:
        turns.append(1)
        return small(body) if len(turns) % 2 == 0 else completion("ok")

    def only_first(body: Body) -> web.Response:
        turns.append(1)
        return small(body) if len(turns) > 1 else completion("ok")

    turns: list[int] = []
    came, _ = await asked(every_other, long, short)
    assert [reply.text for reply in came if isinstance(reply, Completion)] == ["ok", "ok"]
    turns.clear()
    came, _ = await asked(only_first, long, short, long)
    assert isinstance(came[1], InfrastructureError)
    assert "a longer prompt was answered before" in str(came[1])
    assert isinstance(came[2], Completion)
    assert came[2].finish_reason == "context"


async def test_a_prompt_with_fewer_characters_and_more_tokens_is_too_long() -> None:
    english, chinese = [Message.of("user", "word " * 400)], [Message.of("user", "苹果" * 450)]

    def narrow(body: Body) -> web.Response:
        if "word" in str(body["messages"]):
            return completion("ok")
        return error(
            400,
            "maximum context length is 800 tokens. However, your messages resulted in 900 tokens.",
        )

    came, _ = await asked(narrow, english, chinese)
    assert isinstance(came[1], Completion)
    assert came[1].finish_reason == "context"


async def test_the_most_that_an_endpoint_allows_any_reply_is_learned() -> None:
    def respond(body: Body) -> web.Response:
        if body["max_tokens"] > 2048:
            return error(
                400, "Invalid max_tokens value, the valid range of max_tokens is [1, 2048]"
            )
        return completion("ok")

    came, bodies = await asked(respond, HELLO, HELLO)
    assert [reply.text for reply in came if isinstance(reply, Completion)] == ["ok", "ok"]
    assert limits(bodies) == [4096, 2048, 2048]


async def test_a_token_limit_without_a_number_is_a_mistake_to_mend() -> None:
    came, bodies = await asked(
        lambda _body: error(416, "max_completion_tokens is limited for this model")
    )
    assert isinstance(came[0], EndpointRefusal)
    assert came[0].problem == "token_limit"
    assert len(bodies) == 1


NO_IMAGES = (
    "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"
)
NO_TOOLS = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'


@pytest.mark.parametrize(
    ("status", "said", "problem", "hint"),
    [
        (500, NO_IMAGES, "images", "--no-images"),
        (400, NO_TOOLS, "tools", "--protocol react"),
        (404, "No endpoints found that support tool use.", "tools", "--protocol react"),
        (404, "The model `m` does not exist", "unknown_model", "model name"),
        (401, "Incorrect API key provided", "key", "--api-key-env"),
        (400, "API key not valid. Please pass a valid API key.", "key", "--api-key-env"),
        (400, "Access denied, please make sure your account is in good standing.", "credit", ""),
        (403, "<html>blocked by our content policy</html>", "unreachable", "proxy"),
    ],
)
async def test_what_an_endpoint_refuses_has_a_kind_and_a_hint(
    status: int, said: str, problem: str, hint: str
) -> None:
    def respond(_body: Body) -> web.Response:
        return (
            web.Response(status=status, text=said) if said.startswith("<") else error(status, said)
        )

    came, bodies = await asked(respond, PICTURE, tools=[SPEC])
    assert isinstance(came[0], EndpointRefusal)
    assert came[0].problem == problem
    assert hint in (came[0].hint or "") or problem == "key"
    assert len(bodies) == 1


async def test_images_that_were_taken_before_are_refused_to_one_sample_alone() -> None:
    replies = iter([completion("ok"), completion("ok"), error(500, NO_IMAGES)])
    came, _ = await asked(lambda _body: next(replies), HELLO, PICTURE, PICTURE)
    assert isinstance(came[2], InfrastructureError)
    assert came[2].problem == "images"
    replies = iter([completion("ok"), error(500, NO_IMAGES)])
    came, _ = await asked(lambda _body: next(replies), HELLO, PICTURE)
    assert isinstance(came[1], EndpointRefusal)


@pytest.mark.process
async def test_a_run_that_is_to_stop_makes_no_further_attempt() -> None:
    model = OpenAICompatibleModel("m", base_url="http://127.0.0.1:9/v1")
    asking = asyncio.create_task(model.generate([Message.of("user", "Hello")], (), ModelSettings()))
    await asyncio.sleep(0.1)
    model.stats.stopping = True
    with pytest.raises(
        InfrastructureError, match=r"after [12] attempts.*run the same command again to resume"
    ):
        await asyncio.wait_for(asking, 5)
    await model.close()
