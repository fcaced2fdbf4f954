"""An OpenAI-compatible endpoint that fails in every way a network can, below HTTP where it must.

Which fault a request meets follows from a marker in its question (:func:`marked`), so the right outcome of every sample
is known beforehand. Attempts are counted for each sample, conversation and turn, so a fault can pass when it is tried
again. Every other request gets the reply that ``responder`` makes.

    async with fault_server(respond) as server:
        await ask(server.base_url, marked("How many?", "reset_once", "s1"))
"""

import asyncio
import gzip
import hashlib
import json
import re
import socket
import ssl
import subprocess
import threading
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import cache
from itertools import repeat
from pathlib import Path
from queue import Queue
from typing import Any, Literal, NamedTuple, TypeVar

from agrotools.models.probe import QUESTIONS

T = TypeVar("T")
Body = dict[str, Any]
Expected = Literal["ok", "context", "filtered", "length", "invalid", "refused_by_user_error"]
"""``ok``: scored as if nothing had happened. ``context`` to ``length``: scored 0 with that termination. ``invalid``:
left out of the mean. ``refused_by_user_error``: ends the run at once with what the user has to change."""

_MARKER = re.compile(
    r"\[fault (?P<fault>[a-z0-9_]+) turn (?P<turn>\d+) sample (?P<sample>[A-Za-z0-9_.-]+)\]"
)
_DAY_S = 86_400


class Marker(NamedTuple):
    """What a question says of the fault it shall meet. ``turn`` is the number of assistant messages before it."""

    fault: str
    turn: int
    sample: str


def marked(query: str, fault: str, sample: str, turn: int = 0) -> str:
    """``query`` with the marker that makes the ``turn``-th request of its conversation meet ``fault``."""
    return f"{query} [fault {fault} turn {turn} sample {sample}]"


def marker_of(body: Body) -> Marker | None:
    """The marker in the first user message of a request."""
    question = next((message for message in body["messages"] if message["role"] == "user"), None)
    found = _MARKER.search(_text(question)) if question else None
    return Marker(found["fault"], int(found["turn"]), found["sample"]) if found else None


def turn_of(body: Body) -> int:
    """How often the model has spoken already in this conversation."""
    return sum(message["role"] == "assistant" for message in body["messages"])


def _text(message: Body) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return " ".join(part["text"] for part in content if part["type"] == "text")


def completion(
    text: str | None = None,
    calls: Sequence[tuple[str, str | Body]] = (),
    finish_reason: str | None = None,
) -> Body:
    """A chat completion with ``text`` and native ``calls`` (name, arguments), as JSON."""
    message: Body = {"role": "assistant", "content": text}
    for index, (name, given) in enumerate(calls):
        function = {
            "name": name,
            "arguments": given if isinstance(given, str) else json.dumps(given),
        }
        message.setdefault("tool_calls", []).append(
            {"id": f"c{index}", "type": "function", "function": function}
        )
    reason = finish_reason or ("tool_calls" if calls else "stop")
    written = 4096 if reason == "length" else 10
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": written,
            "total_tokens": 100 + written,
        },
    }


Responder = Callable[[Body], Body]
"""From a request to the completion it gets where no fault stands in the way."""


def plain_answer(_body: Body) -> Body:
    """The default responder."""
    return completion("Final Answer: weeds: yes")


@dataclass
class Exchange:
    """One request at the moment when its fault happens."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    server: "FaultServer"
    attempt: int
    """Counted from 1 for each sample, conversation and turn."""
    good: bytes
    """The body that a healthy server would send."""
    key: str
    """The key as the client sent it, which an unkind server repeats in its errors."""

    async def send(self, status: int, body: bytes, **headers: str) -> bool:
        """A complete response; whether the connection stays open."""
        self.writer.write(head(status, {"Content-Length": str(len(body)), **headers}) + body)
        await self.writer.drain()
        return True

    async def error(
        self, status: int, message: str, code: str | None = None, **headers: str
    ) -> bool:
        """An error in OpenAI's shape."""
        body = {"error": {"message": message, "type": "error", "code": code}}
        return await self.send(status, json.dumps(body).encode(), **headers)

    def reset(self) -> bool:
        """End the connection as a crashing machine does: with RST, not with FIN."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.writer.transport.abort()
        return False

    async def stall(self) -> bool:
        """Say nothing more until the client goes away."""
        await self.reader.read()
        return False


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """Status line and headers; names in ``headers`` may be written with underscores."""
    fields = {"Content-Type": "application/json"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = [f"HTTP/1.1 {status} -", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode()


Act = Callable[[Exchange], Awaitable[bool]]


@dataclass(frozen=True)
class Fault:
    """A way to fail, and what must become of a sample that meets it. ``says``: part of the reason that is recorded."""

    act: Act
    expected: Expected
    says: str = ""
    times: int | None = None
    """How many attempts meet it before a healthy reply; None: all."""

    @property
    def expected_after_contact(self) -> Expected:
        """The outcome where the first contact was answered: then neither the key nor the model's name is wrong."""
        if self.expected != "refused_by_user_error":
            return self.expected
        return "ok" if self.act is _no_model and self.times is not None else "invalid"


FAULTS: dict[str, Fault] = {}
_NO_REPLY, _TOO_LONG, _NO_WAIT = "no reply from", "longer than 16 MiB", "asks to wait"
_OFTEN: dict[str, int | None] = {"once": 1, "twice": 2, "thrice": 3, "always": None}


def _add(name: str, act: Act, expected: Expected, says: str = "", often: str = "") -> None:
    """Register ``act`` as a fault, or, with several words of :data:`_OFTEN`, as several of them."""
    for word in often.split() or ("",):
        times = _OFTEN[word] if word else None
        outcome = "ok" if times and expected == "invalid" else expected
        FAULTS[f"{name}_{word}" if word else name] = Fault(
            act, outcome, "" if times else says, times
        )


def _says(body: bytes | Callable[[Exchange], bytes], status: int = 200, **headers: str) -> Act:
    """Send a whole response."""
    return lambda exchange: exchange.send(
        status, body if isinstance(body, bytes) else body(exchange), **headers
    )


def _refuses(
    status: int, message: str, code: str | None = None, **headers: str | Callable[[], str]
) -> Act:
    """Send an error in OpenAI's shape; ``{key}`` in its message is the key of the request."""

    async def act(exchange: Exchange) -> bool:
        given = {name: each if isinstance(each, str) else each() for name, each in headers.items()}
        return await exchange.error(status, message.format(key=exchange.key), code, **given)

    return act


def _begins(length: str, text: bytes = b"", end: str = "close") -> Act:
    """Send headers and the beginning of a body, and then ``close``, ``reset`` or ``stall``."""
    headers = (
        {"Transfer-Encoding": "chunked"} if length == "chunked" else {"Content-Length": length}
    )

    async def act(exchange: Exchange) -> bool:
        exchange.writer.write(head(200, headers) + text + exchange.good[:20])
        if end == "stall":
            return await exchange.stall()
        await exchange.writer.drain()
        await asyncio.sleep(0.01 if end == "reset" else 0)
        return exchange.reset() if end == "reset" else False

    return act


def _flows(pieces: Callable[[bytes], Iterable[bytes]], pause_s: float) -> Act:
    """Send a chunked body in pieces, with a pause after each."""

    async def act(exchange: Exchange) -> bool:
        exchange.writer.write(head(200, {"Transfer-Encoding": "chunked"}))
        for piece in pieces(exchange.good):
            exchange.writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await exchange.writer.drain()
            await asyncio.sleep(pause_s)
        exchange.writer.write(b"0\r\n\r\n")
        return True

    return act


async def _closed(exchange: Exchange) -> bool:
    return False


async def _reset(exchange: Exchange) -> bool:
    return exchange.reset()


async def _said_twice(exchange: Exchange) -> bool:
    """A reply and, unasked, another: whoever uses the connection next must not take it for his own."""
    stray = json.dumps(completion("Final Answer: count: 999999")).encode()
    for body in (exchange.good, stray):
        exchange.writer.write(head(200, {"Content-Length": str(len(body))}) + body)
    return True


async def _no_http(exchange: Exchange) -> bool:
    exchange.writer.write(b"220 mail.example.org ESMTP ready\r\n")
    return False


async def _outage(exchange: Exchange) -> bool:
    """The whole server goes away for a moment: all its connections break, new ones are refused."""
    assert exchange.server.go_away
    await exchange.server.go_away(0.15)
    return False


_CONTEXT = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
_FILTERED = "The response was filtered by Azure's content management policy"
_none = _says(lambda exchange: exchange.good)
_add("none", _none, "ok")
_add("reset", _reset, "invalid", _NO_REPLY, "once always")
_add("hang_up", _closed, "invalid", _NO_REPLY, "once always")
_add("reset_mid_body", _begins("5000", end="reset"), "invalid", _NO_REPLY, "twice always")
_add("cut_body", _begins("5000"), "invalid", _NO_REPLY, "once always")
_add("cut_chunk", _begins("chunked", b"fff\r\n"), "invalid", _NO_REPLY, "once always")
_add("stalled_headers", Exchange.stall, "invalid", "no complete reply")
_add("stalled_body", _begins("5000", end="stall"), "invalid", _NO_REPLY, "once always")
_add("endless_body", _flows(lambda _: repeat(b" " * 0x10000), 0.001), "invalid", _TOO_LONG)
_add("dribble", _flows(lambda _: repeat(b" "), 0.05), "invalid", "had no end within")
_add(
    "slow_but_sure",
    _flows(lambda good: [good[at : at + 50] for at in range(0, len(good), 50)], 0.01),
    "ok",
)
_add("said_twice", _said_twice, "ok")
_add(
    "huge_headers",
    _says(lambda exchange: exchange.good, X_Padding="x" * 2**20),
    "invalid",
    _NO_REPLY,
)
_add("gzip_bomb", _says(lambda _: _bomb(), Content_Encoding="gzip"), "invalid", _TOO_LONG)
_add("gzip", _says(lambda exchange: gzip.compress(exchange.good), Content_Encoding="gzip"), "ok")
_add(
    "not_gzip",
    _says(lambda exchange: exchange.good, Content_Encoding="gzip"),
    "invalid",
    _NO_REPLY,
    "once always",
)
_add("no_http", _no_http, "invalid", _NO_REPLY, "once always")
_key = _refuses(401, "Incorrect API key provided: {key}.", "invalid_api_key")
_add("key_401", _key, "refused_by_user_error", "refuses the key", "once always")
_no_model = _refuses(404, "The model does not exist", "model_not_found")
_add("no_model_404", _no_model, "refused_by_user_error", "The model does not exist", "once always")
_page = b"<html><h1>Request Entity Too Large</h1></html>"
_add(
    "too_large_413",
    _says(_page, 413, Content_Type="text/html"),
    "invalid",
    "Request Entity Too Large",
)
_add(
    "wait_seconds_429",
    _refuses(429, "slow down", Retry_After="0.1"),
    "invalid",
    "slow down",
    "twice",
)
_add(
    "wait_ms_429", _refuses(429, "slow down", Retry_After_Ms="80"), "invalid", "slow down", "twice"
)
# A date has whole seconds: this one is at most one second away.
_add(
    "wait_date_429",
    _refuses(429, "slow down", Retry_After=lambda: _http_date(0)),
    "invalid",
    "slow down",
    "once",
)
_add(
    "wait_a_day_429",
    _refuses(429, "quota of today used up", Retry_After=str(_DAY_S)),
    "invalid",
    _NO_WAIT,
)
_add(
    "wait_for_tomorrow_429",
    _refuses(429, "come back", Retry_After=lambda: _http_date(1)),
    "invalid",
    _NO_WAIT,
)
_add("plain_429", _refuses(429, "slow down"), "invalid", "slow down", "twice always")
_add("error_500", _refuses(500, "database gone"), "invalid", "database gone", "thrice always")
_add(
    "context_openai",
    _refuses(400, _CONTEXT, "context_length_exceeded"),
    "context",
    "maximum context length",
)
_ending = _says(json.dumps(completion("Final An", finish_reason="unheard_of")).encode())
_add("unheard_of_ending", _ending, "invalid", "not known: 'unheard_of'")
_add(
    "filter_400",
    _refuses(400, _FILTERED, "content_filter"),
    "filtered",
    "content management policy",
)
_add(
    "length_stop",
    _says(json.dumps(completion("Thought: first I", finish_reason="length")).encode()),
    "length",
)
_add("no_json", _says(lambda exchange: exchange.good[:-10]), "invalid", "not JSON", "twice always")
_gone = _says(b'{"error": {"message": "upstream is gone", "code": 503}}')
_add("error_in_200", _gone, "invalid", "upstream is gone", "once always")
_add("empty_200", _says(b""), "invalid", _NO_REPLY, "once always")
_add("outage", _outage, "ok", often="once")


def _http_date(days: int) -> str:
    return format_datetime(
        (datetime.now(UTC) + timedelta(days=days)).replace(microsecond=0), usegmt=True
    )


@cache
def _bomb() -> bytes:
    """100 KB that unfold to 100 MB."""
    return gzip.compress(bytes(100 * 2**20), compresslevel=1)


@dataclass
class FaultServer:
    """A running server. ``attempts`` counts requests by sample, conversation and turn."""

    base_url: str
    attempts: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    contacts: int = 0
    """Tiny requests before a run, answered whatever else goes wrong; they are not among ``requests``."""
    requests: int = 0
    connections: int = 0
    open_connections: int = 0
    go_away: Callable[[float], Awaitable[None]] | None = None
    """Refuse and break all connections for so many seconds."""


@asynccontextmanager
async def fault_server(
    responder: Responder = plain_answer,
    *,
    fault: str | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[FaultServer]:
    """Serve at ``<base_url>/chat/completions`` until the block ends.

    Args:
        fault: the fault that every request without a marker meets, also those of a first contact.
        tls: speak TLS with this certificate.
    """
    state = FaultServer("")
    tasks: set[asyncio.Task[Any]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        state.connections += 1
        state.open_connections += 1
        try:
            while read := await _read_request(reader):
                if not await _answer(state, responder, fault, read, reader, writer):
                    break
        except (
            OSError,
            asyncio.IncompleteReadError,
            asyncio.CancelledError,
        ):  # some clients are gone before their fault
            pass
        finally:
            state.open_connections -= 1
            tasks.discard(task)
            with suppress(Exception):
                writer.close()

    async def listen(port: int) -> asyncio.Server:
        return await asyncio.start_server(
            connected, "127.0.0.1", port, limit=2**26, backlog=1024, ssl=tls
        )

    server = await listen(0)
    port = server.sockets[0].getsockname()[1]
    state.base_url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/v1"

    async def go_away(seconds: float) -> None:
        nonlocal server
        # First accept nothing more and let what is accepted begin: a connection that asyncio is about to hand to a
        # server which has closed meanwhile would stay open, and nobody would read from it (its exception is dropped).
        loop = asyncio.get_running_loop()
        for listening in server.sockets:
            loop.remove_reader(listening.fileno())
        await asyncio.sleep(0.01)
        server.close()
        for task in tasks - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(seconds)
        server = await listen(port)

    state.go_away = go_away
    try:
        yield state
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def beside(made: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """What an asynchronous server gives, served in a thread of its own: for tests of what runs an event loop itself."""
    ready: Queue[T] = Queue()
    end: list[Callable[[], object]] = []

    async def main() -> None:
        done, loop = asyncio.Event(), asyncio.get_running_loop()
        end.append(lambda: loop.call_soon_threadsafe(done.set))
        async with made as server:
            ready.put(server)
            await done.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),), name="server", daemon=True)
    thread.start()
    try:
        yield ready.get(timeout=30)
    finally:
        end[0]()
        thread.join(timeout=30)


def fault_server_beside(
    responder: Responder = plain_answer, **options: Any
) -> AbstractContextManager[FaultServer]:
    """:func:`fault_server` in a thread of its own."""
    return beside(fault_server(responder, **options))


async def _read_request(reader: asyncio.StreamReader) -> tuple[dict[str, str], Body] | None:
    """Headers and body of the next request, None at the end."""
    try:
        top = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    lines = top.decode("latin-1").split("\r\n")[1:]
    headers = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
        if name
    }
    return headers, json.loads(await reader.readexactly(int(headers["content-length"])))


async def _answer(
    state: FaultServer,
    responder: Responder,
    default: str | None,
    request: tuple[dict[str, str], Body],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> bool:
    headers, body = request
    if default is None and _text(body["messages"][-1]) in QUESTIONS:
        state.contacts += 1
        good = json.dumps(completion("yes")).encode()
        return await _none(Exchange(reader, writer, state, 1, good, ""))
    state.requests += 1
    marker = marker_of(body)
    turn = turn_of(body)
    system = next(
        (_text(message) for message in body["messages"] if message["role"] == "system"), ""
    )
    conversation = hashlib.sha256(system.encode()).hexdigest()[:8]
    key = (marker.sample if marker else "", conversation, turn)
    state.attempts[key] += 1
    name = (marker.fault if marker.turn == turn else None) if marker else default
    good = json.dumps(responder(body)).encode()
    token = headers.get("authorization", "").removeprefix("Bearer ")
    exchange = Exchange(reader, writer, state, state.attempts[key], good, token)
    fault = FAULTS[name or "none"]
    if fault.times is not None and exchange.attempt > fault.times:
        fault = FAULTS["none"]
    return await fault.act(exchange)


def self_signed(folder: Path) -> ssl.SSLContext:
    """A TLS server context with a certificate that nobody vouches for (made with the ``openssl`` command).

    Raises:
        FileNotFoundError: there is no such command here.
    """
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            *subject,
            *files,
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def closed_port() -> int:
    """A port of this machine where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
