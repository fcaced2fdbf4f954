"""Servers that stall, reset, lie and never end, each on this machine: what is retried, a result, or told at once."""

import asyncio
import json
import logging
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from agrotools.core import InfrastructureError, UsageError
from agrotools.models import Completion, ImagePart, Message, ModelSettings, TextPart, WireSettings
from agrotools.models.openai_compatible import OpenAICompatibleModel

pytestmark = pytest.mark.process

KEY = "sk-test-1234567890-abcdefghij"
HELLO = [Message.of("user", "Hello")]
QUICK = WireSettings(
    attempts=3, retry_wall_s=5, first_wait_s=0.01, longest_wait_s=0.02, timeout_s=1.0, stall_s=0.4
)
GOOD = json.dumps({"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}).encode()

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Awaitable[None]]
"""Answers the n-th request (from 1); the connection stays open unless it closes it."""


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


class Server:
    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.posts = 0
        self.open = 0


def reply(body: bytes = GOOD, status: int = 200, **headers: str) -> bytes:
    fields = {"Content-Type": "application/json", "Content-Length": str(len(body))} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = [
        f"HTTP/1.1 {status} -",
        *(f"{name}: {value}" for name, value in fields.items()),
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + body


@asynccontextmanager
async def raw_server(answer: Answer, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """``answer`` meets every POST."""
    server = Server("")
    tasks: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        writers.append(writer)
        server.open += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lengths = [
                    line
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length:")
                ]
                await reader.readexactly(int(lengths[0].split(b":")[1]))
                server.posts += 1
                await answer(reader, writer, server.posts)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            server.open -= 1
            tasks.discard(task)
            writer.close()

    listener = await asyncio.start_server(
        connected, "127.0.0.1", 0, limit=2**24, backlog=512, ssl=tls
    )
    scheme = "https" if tls else "http"
    server.base_url = f"{scheme}://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            # What nobody reads any more is not flushed.
            writer.transport.abort()
        await asyncio.sleep(0)


async def ask(
    server: Server, messages: list[Message] = HELLO, wire: WireSettings = QUICK
) -> Completion:
    model = OpenAICompatibleModel("m", base_url=server.base_url, wire=wire)
    try:
        return await model.generate(messages, (), ModelSettings())
    finally:
        await model.close()
        assert (
            model.stats.in_flight
            == model.stats.waiting
            == model.stats.rate_limit_waits
            == model.limit.in_use
            == 0
        )


async def until(true: Callable[[], bool]) -> None:
    for _ in range(1000):
        if true():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come to pass")


def says(*replies: bytes) -> Answer:
    """Each reply in turn, the last again and again."""

    async def answer(
        _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        writer.write(replies[min(number, len(replies)) - 1])

    return answer


# --- silence ---------------------------------------------------------------------------------------------------------


async def test_a_request_that_a_server_lets_time_out_beside_others_is_asked_again() -> None:
    async def first_is_stuck(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        if number == 1:
            await reader.read()
        writer.write(reply(b"busy", 500) if number == 3 else reply())

    async with raw_server(first_is_stuck) as server:
        # A time-out takes longer than all attempts may, and does not count with them.
        wire = QUICK.model_copy(update={"retry_wall_s": 0.9})
        model = OpenAICompatibleModel("m", base_url=server.base_url, wire=wire)
        stuck = asyncio.create_task(model.generate(HELLO, (), ModelSettings()))
        await asyncio.sleep(0.1)
        assert (await model.generate(HELLO, (), ModelSettings())).text == "ok"
        asked_again = await stuck
        assert (asked_again.text, asked_again.attempts) == ("ok", 3)
        await model.close()
    assert server.posts == 4


@pytest.mark.parametrize("stall_s", [0.1, 60.0])
async def test_a_body_that_stalls_is_a_fault_even_where_the_whole_time_ends_first(
    stall_s: float,
) -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        if number == 1:
            writer.write(reply()[:-10])
            await reader.read()
        writer.write(reply())

    async with raw_server(half) as server:
        completion = await ask(server, wire=QUICK.model_copy(update={"stall_s": stall_s}))
        assert (completion.text, completion.attempts) == ("ok", 2)
    async with raw_server(lambda r, w, _n: half(r, w, 1)) as server:
        with pytest.raises(InfrastructureError, match="began and then stalled"):
            await ask(server, wire=QUICK.model_copy(update={"stall_s": stall_s}))


# --- what a server says ----------------------------------------------------------------------------------------------


async def test_what_a_server_says_is_shown_without_control_characters_and_without_the_key() -> None:
    said = f"\x1b[31mkey {KEY}\x00\u202e\nnext\r\nline \ud83d".encode("utf-8", "surrogatepass")
    async with raw_server(says(reply(said, 500))) as server:
        with pytest.raises(InfrastructureError) as caught:
            await ask(server)
    assert r"\x1b[31mkey ***\x00\u202e next line" in caught.value.message
    assert caught.value.message.isprintable()


async def test_a_reply_that_holds_the_key_is_kept_without_it() -> None:
    body = json.dumps({"choices": [{"message": {"content": f"you sent {KEY}"}}]}).encode()
    async with raw_server(says(reply(body))) as server:
        assert (await ask(server)).text == "you sent ***"


async def test_a_redirect_is_not_followed() -> None:
    async with (
        raw_server(says(reply())) as other,
        raw_server(says(reply(b"", 307, Location=f"{other.base_url}/chat/completions"))) as server,
    ):
        with pytest.raises(UsageError, match="it redirects to"):
            await ask(server)
    assert other.posts == 0


# --- what the user must change, at first and later -------------------------------------------------------------------


async def test_a_key_that_is_revoked_ends_the_run() -> None:
    async with raw_server(
        says(reply(), reply(b'{"error": {"message": "key disabled"}}', 401))
    ) as server:
        model = OpenAICompatibleModel("m", base_url=server.base_url, wire=QUICK)
        await model.generate(HELLO, (), ModelSettings())
        with pytest.raises(UsageError, match="refuses the key: key disabled"):
            await model.generate(HELLO, (), ModelSettings())
        await model.close()
    assert server.posts == 2


async def test_what_is_refused_first_is_no_mistake_in_the_set_up_where_the_run_has_worked_before() -> (
    None
):
    refusals = reply(b"no such route", 404), reply(b'{"error": {"message": "odd picture"}}', 400)
    async with raw_server(says(refusals[0], reply(), refusals[1])) as server:
        model = OpenAICompatibleModel("m", base_url=server.base_url, wire=QUICK)
        model.stats.worked_before = True
        assert (await model.generate(HELLO, (), ModelSettings())).attempts == 2
        with pytest.raises(InfrastructureError, match="odd picture"):
            await model.generate(HELLO, (), ModelSettings())
        await model.close()


async def test_413_before_the_request_was_read_is_a_limit_of_a_proxy() -> None:
    large = Message(
        role="user",
        content=(TextPart(text="See"), ImagePart(url="data:image/png;base64," + "A" * 2**23)),
    )

    read_to_the_end = asyncio.Event()

    async def too_large(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply(b"<h1>Request Entity Too Large</h1>", 413, Connection="close"))
        await writer.drain()
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.read(2**16):
                pass
        writer.close()
        read_to_the_end.set()

    listener = await asyncio.start_server(too_large, "127.0.0.1", 0)
    async with listener:
        server = Server(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1")
        with pytest.raises(InfrastructureError, match="Request Entity Too Large") as caught:
            await ask(server, [large], QUICK.model_copy(update={"timeout_s": 10.0}))
        await asyncio.wait_for(read_to_the_end.wait(), 10)
    assert caught.value.problem == "request"


# --- budgets ---------------------------------------------------------------------------------------------------------


async def test_a_wait_longer_than_the_budget_ends_at_once_and_holds_nobody_else_back() -> None:
    async with raw_server(
        says(reply(b"quota used up", 429, Retry_After="86400"), reply())
    ) as server:
        model = OpenAICompatibleModel("m", base_url=server.base_url, wire=QUICK)
        started = time.monotonic()
        with pytest.raises(
            InfrastructureError, match=r"after 1 attempts.*the server asks to wait 86400 s"
        ):
            await model.generate(HELLO, (), ModelSettings())
        assert (await model.generate(HELLO, (), ModelSettings())).text == "ok"
        assert time.monotonic() - started < 60
        await model.close()


async def test_a_wait_the_server_asks_for_holds_new_requests_back_too() -> None:
    asked: list[float] = []

    async def busy_once(
        _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        asked.append(time.monotonic())
        writer.write(reply(b"slow down", 429, Retry_After="0.5") if number == 1 else reply())

    async with raw_server(busy_once) as server:
        model = OpenAICompatibleModel("m", base_url=server.base_url, wire=QUICK)
        first = asyncio.create_task(model.generate(HELLO, (), ModelSettings()))
        await until(lambda: model.stats.rate_limited > 0)
        others = [asyncio.create_task(model.generate(HELLO, (), ModelSettings())) for _ in range(5)]
        await asyncio.sleep(0.1)
        assert (model.stats.rate_limit_waits, model.stats.waiting, model.stats.in_flight) == (
            5,
            6,
            0,
        )
        replies = await asyncio.gather(first, *others)
        assert {completion.text for completion in replies} == {"ok"}
        await model.close()
    assert min(asked[1:]) - asked[0] >= 0.49
    assert max(asked[1:]) - asked[0] < 60


async def test_tokens_a_minute_are_reserved_and_settled() -> None:
    usage = {"prompt_tokens": 90, "completion_tokens": 10}
    body = json.dumps({"choices": [{"message": {"content": "ok"}}], "usage": usage})
    async with raw_server(says(reply(body.encode()))) as server:
        wire = QUICK.model_copy(update={"tpm": 60_000})
        model = OpenAICompatibleModel("m", base_url=server.base_url, wire=wire)
        started = time.monotonic()
        settings = ModelSettings(max_output_tokens=900)
        await asyncio.gather(*(model.generate(HELLO, (), settings) for _ in range(25)))
        # 100 tokens each against 1,000 a second: the allowance of their replies was given back.
        assert time.monotonic() - started > 1.0
        assert (model.stats.input_tokens, model.stats.output_tokens) == (25 * 90, 25 * 10)
        await model.close()


# --- concurrency and cancellation ------------------------------------------------------------------------------------


async def test_requests_in_flight_stay_within_the_limit_and_the_limit_rises() -> None:
    most = now = 0

    async def counting(
        _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _number: int
    ) -> None:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.05)
        now -= 1
        writer.write(reply())

    async with raw_server(counting) as server:
        for concurrency, bound in ((3, 3), (None, 128)):
            most = 0
            wire = QUICK.model_copy(update={"concurrency": concurrency, "timeout_s": 20.0})
            model = OpenAICompatibleModel("m", base_url=server.base_url, wire=wire)
            assert model.stats.limit == (concurrency or 8)
            await asyncio.gather(
                *(
                    model.generate(HELLO, (), ModelSettings())
                    for _ in range((concurrency or 100) * 4)
                )
            )
            assert most <= bound
            assert model.stats.limit == model.limit.current
            assert model.stats.limit == 3 if concurrency else model.stats.limit >= 16
            await model.close()


async def test_overload_lowers_the_limit() -> None:
    async with raw_server(says(*[reply(b"busy", 503)] * 40, reply())) as server:
        wire = QUICK.model_copy(update={"concurrency": 32, "attempts": 10, "timeout_s": 10.0})
        model = OpenAICompatibleModel("m", base_url=server.base_url, wire=wire)
        await asyncio.gather(*(model.generate(HELLO, (), ModelSettings()) for _ in range(32)))
        assert model.stats.limit <= 16
        assert model.stats.replies == 32
        await model.close()


async def test_cancelling_leaves_no_request_no_connection_no_permit_and_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    image = ImagePart(url="data:image/png;base64," + "A" * 2**21)

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        if number % 3 == 0:
            writer.write(reply()[:-10])
        if number % 3 == 1:
            writer.write(reply(b"slow down", 429, Retry_After="4"))
            return
        await reader.read()

    async with raw_server(slow) as server:
        wire = QUICK.model_copy(
            update={"concurrency": 40, "timeout_s": 30.0, "stall_s": 30.0, "rpm": 100_000}
        )
        model = OpenAICompatibleModel("m", base_url=server.base_url, wire=wire)
        before = asyncio.all_tasks()
        for cancel_after in (0.0, 0.002, 0.02, 0.1, 0.4):
            tasks = [
                asyncio.create_task(
                    model.generate(
                        [
                            Message(
                                role="user",
                                content=(TextPart(text="See"), *([image] * (number % 5 == 0))),
                            )
                        ],
                        (),
                        ModelSettings(),
                    )
                )
                for number in range(100)
            ]
            await asyncio.sleep(cancel_after)
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
            stats = model.stats
            assert (stats.in_flight, stats.waiting, stats.rate_limit_waits, model.limit.in_use) == (
                0,
                0,
                0,
                0,
            )
        await model.close()
        await until(lambda: server.open == 0 and asyncio.all_tasks() <= before)
    assert caplog.text == ""
