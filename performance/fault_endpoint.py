"""An endpoint on this machine that answers questions of sums rightly, and meets chosen requests with a fault instead.

Part of ``faults.py``.

The right replies are scripted, so whatever else a run makes of them is a fault of the endpoint or of our settings.
"""

import asyncio
import gzip
import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.fault_server import Body, Exchange, FaultServer, completion, head

_QUESTION = re.compile(r"Field (\d+) gave ([\d.]+) and ([\d.]+) t/ha")


@dataclass
class Endpoint(FaultServer):
    """A running endpoint and what it has seen."""

    in_flight: int = 0
    began: float = 0.0
    """When the first question came."""
    tries: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Requests by sample and turn."""
    slot: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the request that is served, where only one is at a time."""
    times: list[float] = field(default_factory=list)
    gone: bool = False
    sent: dict[int, list[Body]] = field(default_factory=dict[int, list[Body]])
    """Messages that :func:`replayed` has sent, by sample."""


@dataclass
class Request(Exchange):
    """One question at the moment when its fault happens."""

    server: Endpoint
    body: Body
    sample: int
    """Number of the field that is asked about."""
    turn: int
    """How many results of tools it holds."""
    arrived: int
    """Counted from 1 over all questions."""

    async def send_good(self) -> bool:
        """The right reply."""
        return await self.send(200, self.good)


Act = Callable[[Request], Awaitable[bool]]
"""Meets a request; whether its connection stays open."""
Meets = Callable[[Request], bool]


# --- which requests meet a fault -------------------------------------------------------------------------------------


def always(_request: Request) -> bool:
    """Every request."""
    return True


def asked_about(*samples: int) -> Meets:
    """The requests of these samples."""
    return lambda request: request.sample in samples


def arriving(first: int, last: int | None = None) -> Meets:
    """The requests that arrive as number ``first`` to ``last``."""
    return lambda request: first <= request.arrived <= (last or 10**9)


def tried(times: int) -> Meets:
    """The first ``times`` requests of each sample and turn."""
    return lambda request: request.attempt <= times


def asking_tokens(more_than: int) -> Meets:
    """Requests that ask for more than so many tokens of reply."""
    return lambda request: any(
        (request.body.get(key) or 0) > more_than for key in ("max_tokens", "max_completion_tokens")
    )


def holding(key: str) -> Meets:
    """Requests whose body has that key."""
    return lambda request: key in request.body


def holding_text(text: str) -> Meets:
    """Requests whose body has that text anywhere."""
    return lambda request: text in json.dumps(request.body)


def at_turn(turn: int) -> Meets:
    """Requests that hold so many results of tools."""
    return lambda request: request.turn >= turn


# --- what they meet --------------------------------------------------------------------------------------------------


def says(status: int, body: Any = b"", **headers: str) -> Act:
    """A complete response. Text that begins with ``<`` is HTML, other data JSON; ``{question}`` is what was asked."""

    async def act(request: Request) -> bool:
        fields = dict(headers)
        data = body
        if not isinstance(data, str | bytes):
            data = json.dumps(data, ensure_ascii=False)
        elif isinstance(data, str):
            fields.setdefault("Content_Type", "text/html" if data.startswith("<") else "text/plain")
        if isinstance(data, str):
            question = json.dumps(request.body["messages"][-1].get("content") or "")[1:-1]
            data = data.replace("{question}", question).encode("utf-8", "surrogatepass")
        return await request.send(status, data, **fields)

    return act


def changed(change: Callable[[Body], Any], **headers: str) -> Act:
    """The right reply, changed; ``change`` gets the completion and gives back it, other data, or bytes."""

    async def act(request: Request) -> bool:
        made = change(json.loads(request.good))
        return await request.send(
            200, made if isinstance(made, bytes) else json.dumps(made).encode(), **headers
        )

    return act


def message(**fields: Any) -> Act:
    """The right reply with other fields of its message; ``finish`` is its finish reason."""

    def change(data: Body) -> Body:
        choice = data["choices"][0]
        if "finish" in fields:
            choice["finish_reason"] = fields["finish"]
        choice["message"].update({key: value for key, value in fields.items() if key != "finish"})
        return data

    return changed(change)


def with_fields(data: Body, fields: Body, of_calls: Body) -> Body:
    """The reply with further fields in its message and in its calls, as endpoints of models that think send them."""
    told = data["choices"][0]["message"]
    told.update(fields)
    for call in told.get("tool_calls") or ():
        call.update(of_calls)
    return data


def replayed(fields: Body, of_calls: Body | None = None, *, names: bool = False) -> Act:
    """The right reply with such fields; a later request must hold every message as it was sent, field by field.

    ``names``: messages of tools must name their tool.
    """

    async def act(request: Request) -> bool:
        sent = request.server.sent.setdefault(request.sample, [])
        for number, told in enumerate(request.body["messages"]):
            plain = {key: value for key, value in told.items() if value is not None}
            if told["role"] == "tool" and names and not told.get("name"):
                return await request.error(
                    400, f"contents[{number}].function_response.name: Name cannot be empty."
                )
            if told["role"] == "assistant" and plain not in sent:
                best = sent[0] if sent else {}
                wrong = next(
                    (key for key in (*best, *plain) if best.get(key) != plain.get(key)), "?"
                )
                return await request.error(
                    400, f"The `{wrong}` of message {number} must be passed back to the API."
                )
        data = with_fields(json.loads(request.good), fields, of_calls or {})
        told = data["choices"][0]["message"]
        sent.append({key: value for key, value in told.items() if value is not None})
        return await request.send(200, json.dumps(data).encode())

    return act


_KNOWN = {"role", "content", "tool_calls", "tool_call_id", "id", "type", "function"}


def forbidding(
    fields: Body,
    wording: Callable[[int, str], Any],
    of_calls: Body | None = None,
    status: int = 400,
) -> Act:
    """The right reply with such fields; none of them may come back, nor any other that is not in the format.

    ``wording``: body of the refusal, from the number of the message and the name of the field.
    """

    async def act(request: Request) -> bool:
        for number, told in enumerate(request.body["messages"]):
            for part in (told, *(told.get("tool_calls") or ())):
                if odd := sorted(part.keys() - _KNOWN):
                    return await request.send(status, json.dumps(wording(number, odd[0])).encode())
        data = with_fields(json.loads(request.good), fields, of_calls or {})
        return await request.send(200, json.dumps(data).encode())

    return act


def counting(tokens: Callable[[int], int]) -> Act:
    """The right reply behind many words, with a count of the prompt's tokens that follows from its characters."""

    async def act(request: Request) -> bool:
        data = json.loads(request.good)
        characters = sum(len(_text(told)) for told in request.body["messages"])
        data["usage"]["prompt_tokens"] = tokens(characters)
        told = data["choices"][0]["message"]
        told["content"] = "It is sunny over the field. " * 80 + "\n" + (told["content"] or "")
        return await request.send(200, json.dumps(data).encode())

    return act


def text(edit: Callable[[str], str]) -> Act:
    """The right reply with its text edited."""

    def change(data: Body) -> Body:
        told = data["choices"][0]["message"]
        told["content"] = edit(told["content"] or "")
        return data

    return changed(change)


def calls(edit: Callable[[list[Body]], Any], **fields: Any) -> Act:
    """The right reply with its tool calls edited; replies without calls stay as they are."""

    def change(data: Body) -> Body:
        told = data["choices"][0]["message"]
        if told.get("tool_calls"):
            told["tool_calls"] = edit(told["tool_calls"])
            told.update({key: value for key, value in fields.items() if key != "finish"})
            data["choices"][0]["finish_reason"] = fields.get(
                "finish", data["choices"][0]["finish_reason"]
            )
        return data

    return changed(change)


def raw(make: Callable[[Request], bytes], *, close: bool = True) -> Act:
    """Bytes as they go over the connection, which then ends."""

    async def act(request: Request) -> bool:
        request.writer.write(make(request))
        with suppress(ConnectionError):
            await request.writer.drain()
        return not close

    return act


def late(seconds: float | Callable[[Request], float]) -> Act:
    """The right reply after a while."""

    async def act(request: Request) -> bool:
        await asyncio.sleep(seconds(request) if callable(seconds) else seconds)
        return await request.send_good()

    return act


def queued(seconds: float, *, drops_abandoned: bool) -> Act:
    """One reply at a time; whether requests whose client has gone are still served."""

    async def act(request: Request) -> bool:
        async with request.server.slot:
            if drops_abandoned and request.reader.at_eof():
                return False
            await asyncio.sleep(seconds)
        return await request.send_good()

    return act


def crowded(most: int, otherwise: Act) -> Act:
    """A tenth of a second for each reply; requests beyond ``most`` at once meet another fault."""

    async def act(request: Request) -> bool:
        if request.server.in_flight > most:
            return await otherwise(request)
        await asyncio.sleep(0.1)
        return await request.send_good()

    return act


def windowed(most: int, seconds: float, otherwise: Act) -> Act:
    """At most so many replies in so many seconds; the others meet a fault."""

    async def act(request: Request) -> bool:
        now, times = time.monotonic(), request.server.times
        times[:] = [then for then in times if now - then < seconds]
        if len(times) >= most:
            return await otherwise(request)
        times.append(now)
        return await request.send_good()

    return act


def until(seconds: float, otherwise: Act) -> Act:
    """A fault until so many seconds after the first question."""

    async def act(request: Request) -> bool:
        too_early = time.monotonic() - request.server.began < seconds
        return await (otherwise(request) if too_early else request.send_good())

    return act


async def asleep(request: Request) -> bool:
    """Everything waits until three seconds after the first question."""
    await asyncio.sleep(max(0.0, request.server.began + 3.0 - time.monotonic()))
    return await request.send_good()


async def hung(request: Request) -> bool:
    """No word, until the client goes away."""
    return await request.stall()


async def reset(request: Request) -> bool:
    """The end of a crashing machine."""
    return request.reset()


async def hang_up(_request: Request) -> bool:
    """The connection ends without a word."""
    return False


async def good(request: Request) -> bool:
    """The right reply."""
    return await request.send_good()


async def cut(request: Request) -> bool:
    """Half of the reply and then the end of the connection."""
    request.writer.write(head(200, {"Content-Length": str(len(request.good))}) + request.good[:40])
    await request.writer.drain()
    return False


async def stalled(request: Request) -> bool:
    """Half of the reply and then nothing."""
    request.writer.write(head(200, {"Content-Length": str(len(request.good))}) + request.good[:40])
    await request.writer.drain()
    return await request.stall()


def pieces(pause_s: float, *, end: bool) -> Act:
    """The reply bit by bit; without an end, blanks go on for ever."""

    async def act(request: Request) -> bool:
        request.writer.write(head(200, {"Transfer-Encoding": "chunked"}))
        rest = request.good if end else b" " * 10**6
        for at in range(0, len(rest), 20):
            piece = rest[at : at + 20]
            request.writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await request.writer.drain()
            await asyncio.sleep(pause_s)
        request.writer.write(b"0\r\n\r\n")
        await request.writer.drain()
        return True

    return act


async def go_away(request: Request) -> bool:
    """The server closes for good."""
    request.server.gone = True
    assert request.server.go_away
    await request.server.go_away(0.0)
    return False


async def go_away_shortly(request: Request) -> bool:
    """The server is away for a second."""
    assert request.server.go_away
    await request.server.go_away(1.0)
    return False


def bomb(size: int) -> bytes:
    """So many blanks, compressed."""
    return gzip.compress(b" " * size, compresslevel=9)


# --- the server ------------------------------------------------------------------------------------------------------


def right_reply(body: Body) -> Body:
    """What a model that can add and follow instructions would say."""
    asked = _QUESTION.search(_asked(body))
    assert asked, "not one of our questions"
    north, south = float(asked[2]), float(asked[3])
    total, turn = north + south, turn_of(body)
    given: list[Body] = [
        {"expression": "a + b", "variables": {"a": north, "b": south}},
        {"expression": "s / 2", "variables": {"s": total}},
    ]
    react = "Action Input:" in _text(body["messages"][0])
    if turn < 2 and body.get("tools"):
        return completion(None, (("calculate", given[turn]),))
    if turn < 2 and react:
        return completion(
            f"Thought: I add.\nAction: calculate\nAction Input: {json.dumps(given[turn])}"
        )
    return completion(f"{'Final Answer: ' if react else ''}mean: {total / 2} t/ha")


def turn_of(body: Body) -> int:
    """How many results of tools a conversation holds: who could not call the tool has to call it again."""
    return sum(
        "<observation>" in _text(told)
        for told in body["messages"]
        if told["role"] in ("user", "tool")
    )


def _text(told: Body) -> str:
    content = told.get("content") or ""
    return (
        content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)
    )


def _asked(body: Body) -> str:
    return next((found for each in body["messages"] if _QUESTION.search(found := _text(each))), "")


@contextmanager
def serving(act: Act, meets: Meets) -> Iterator[Endpoint]:
    """Serve in a thread of its own until the block ends."""
    ready: Queue[Endpoint] = Queue()
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()
    thread = threading.Thread(
        target=loop.run_until_complete, args=(_serve(act, meets, ready, ended),), daemon=True
    )
    thread.start()
    try:
        yield ready.get(timeout=30)
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(timeout=10)


async def _serve(act: Act, meets: Meets, ready: Queue[Endpoint], ended: asyncio.Event) -> None:
    endpoint = Endpoint("")
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        tasks.add(task)
        try:
            while await _answer(endpoint, act, meets, reader, writer):
                pass
        except (
            OSError,
            asyncio.IncompleteReadError,
            asyncio.CancelledError,
            asyncio.LimitOverrunError,
        ):
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=2**24, backlog=256)
    port = server.sockets[0].getsockname()[1]

    async def away(seconds: float) -> None:
        nonlocal server
        server.close()
        for task in tasks - {asyncio.current_task()}:
            task.cancel()
        if not endpoint.gone:
            await asyncio.sleep(seconds)
            server = await asyncio.start_server(
                connected, "127.0.0.1", port, limit=2**24, backlog=256
            )

    endpoint.go_away = away
    endpoint.base_url = f"http://127.0.0.1:{port}/v1"
    ready.put(endpoint)
    await ended.wait()
    server.close()
    for task in list(tasks):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _answer(
    endpoint: Endpoint,
    act: Act,
    meets: Meets,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> bool:
    first = await reader.readexactly(1)
    if first == b"\x16":  # a client that speaks TLS
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        return False
    top = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    length = re.search(r"content-length: *(\d+)", top, re.IGNORECASE)
    sent = await reader.readexactly(int(length[1])) if length else b""
    if not sent:
        writer.write(head(200, {"Content-Length": "12"}) + b'{"data": []}')
        await writer.drain()
        return True
    body = json.loads(sent)
    endpoint.requests += 1
    endpoint.began = endpoint.began or time.monotonic()
    asked = _QUESTION.search(_asked(body))
    # A client that tries the endpoint with a question of its own is told anything.
    sample = int(asked[1]) if asked else -1
    reply = right_reply(body) if asked else completion("ok")
    turn = turn_of(body)
    endpoint.tries[sample, turn] += 1
    request = Request(
        reader, writer, endpoint, endpoint.tries[sample, turn], json.dumps(reply).encode(), "",
        body=body, sample=sample, turn=turn, arrived=endpoint.requests,
    )  # fmt: skip
    endpoint.in_flight += 1
    try:
        return await (act(request) if meets(request) else request.send_good())
    finally:
        endpoint.in_flight -= 1
