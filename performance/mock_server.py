"""A chat-completions endpoint on this machine that costs next to nothing, so that its clients are what is measured.

Tool of developers: the server of ``throughput.py``.

    python performance/mock_server.py --replies answer --latency-ms 50

The first line it prints is ``{"port": N}``. ``answer`` replies to everything with one short text, ``option`` with an
option of an examination question. ``agent`` asks for a call of ``calculate`` (a new expression each time) until the
conversation holds five turns of the assistant, then replies with that text. ``GET /stats`` tells what it saw: counts,
the seconds between the first byte of the first request and the last byte of the last reply, and how often each
``[plot N]`` was asked about; a request about none, as a first tiny one is, gets its reply and is not counted. Bodies
are counted in, not parsed as JSON.
"""

import argparse
import asyncio
import json
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

ANSWER = "9 plants and 5 plants are 14 plants.\nanswer: 14"
OPTION = "答案：A"
TURNS = 5
"""Calls that ``agent`` asks for before it answers."""
_MARK = b"[plot "
_TAIL = 65536
"""Bytes at the end of a body that are looked at: what stands before them is an image."""
_LONGEST_HEAD = 65536


@dataclass
class Seen:
    """What the server saw. Times are of ``time.perf_counter``."""

    requests: int = 0
    replies: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    connections: int = 0
    most_in_flight: int = 0
    first: float = 0.0
    last: float = 0.0
    plots: Counter[bytes] = field(default_factory=Counter)

    def as_data(self) -> dict[str, Any]:
        asked = list(self.plots.values())
        return {
            "requests": self.requests,
            "replies": self.replies,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "connections": self.connections,
            "most_in_flight": self.most_in_flight,
            "seconds": self.last - self.first,
            "first": self.first,
            "last": self.last,
            "plots": len(asked),
            "fewest_per_plot": min(asked, default=0),
            "most_per_plot": max(asked, default=0),
            "cpu_s": time.process_time(),
        }


class Connection(asyncio.Protocol):
    """One kept-alive connection: requests in, replies out in the same order, also where requests are pipelined."""

    def __init__(self, seen: Seen, reply_to: Callable[[bytes], bytes], latency_s: float) -> None:
        self._seen = seen
        self._reply_to = reply_to
        self._latency_s = latency_s
        self._loop = asyncio.get_running_loop()
        self._chunks: list[bytes] = []
        self._held = 0
        self._needed = 0
        self._began = 0.0
        self._due: deque[bytes] = deque()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._seen.connections += 1

    def data_received(self, data: bytes) -> None:
        if not self._chunks:
            self._began = time.perf_counter()
        self._chunks.append(data)
        self._held += len(data)
        if self._held < self._needed:
            return
        buffer = data if len(self._chunks) == 1 else b"".join(self._chunks)
        at = 0
        while at < len(buffer):
            end = self._end_of_request(buffer, at)
            if end is None or end > len(buffer):
                self._needed = 0 if end is None else end - at
                break
            self._answer(buffer, at, end)
            at = end
            self._needed = 0
        left = buffer[at:] if at else buffer
        self._chunks, self._held = ([left], len(left)) if left else ([], 0)

    def _end_of_request(self, buffer: bytes, at: int) -> int | None:
        """Offset behind the request that starts ``at``; None where its head is not complete yet."""
        blank = buffer.find(b"\r\n\r\n", at, at + _LONGEST_HEAD)
        if blank < 0:
            if len(buffer) - at > _LONGEST_HEAD:
                self._transport.abort()
            return None
        head = buffer[at:blank].lower()
        length = head.find(b"\r\ncontent-length:")
        if length < 0:
            return blank + 4
        line = head.find(b"\r\n", length + 17)
        return blank + 4 + int(head[length + 17 : line if line > 0 else None])

    def _answer(self, buffer: bytes, at: int, end: int) -> None:
        seen = self._seen
        if not buffer.startswith(b"POST ", at):
            self._transport.write(http(json.dumps(seen.as_data()).encode()))
            return
        tail = buffer[max(at, end - _TAIL) : end]
        plot = tail.find(_MARK)
        if plot < 0:
            self._transport.write(self._reply_to(tail))
            return
        seen.first = seen.first or self._began
        seen.requests += 1
        seen.bytes_in += end - at
        seen.most_in_flight = max(seen.most_in_flight, seen.requests - seen.replies)
        seen.plots[tail[plot + len(_MARK) : tail.find(b"]", plot)]] += 1
        reply = self._reply_to(tail)
        if self._latency_s:
            # A queue and not the timers decides the order: timers that are due together may fire in any.
            self._due.append(reply)
            self._loop.call_later(self._latency_s, self._send_next)
        else:
            self._send(reply)

    def _send_next(self) -> None:
        self._send(self._due.popleft())

    def _send(self, reply: bytes) -> None:
        seen = self._seen
        seen.replies += 1
        seen.bytes_out += len(reply)
        self._transport.write(reply)
        seen.last = time.perf_counter()


def http(body: bytes) -> bytes:
    """A whole response."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )


def completion(message: dict[str, Any], reason: str) -> bytes:
    """A response with one choice."""
    content = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1735689600,
        "model": "mock",
        "choices": [
            {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }
    return http(json.dumps(content).encode())


def answers(text: str) -> Callable[[bytes], bytes]:
    """Always the same answer."""
    reply = completion({"content": text}, "stop")
    return lambda _tail: reply


def agent_turns() -> Callable[[bytes], bytes]:
    """Calls first, then the answer."""
    last = completion({"content": ANSWER}, "stop")
    numbers = iter(range(10**9))

    def reply(tail: bytes) -> bytes:
        if tail.count(b'"role":"assistant"') + tail.count(b'"role": "assistant"') >= TURNS:
            return last
        number = next(numbers)
        function = {
            "name": "calculate",
            "arguments": json.dumps({"expression": f"9 + 5 + {number} * 0"}),
        }
        calls = [{"id": f"call_{number}", "type": "function", "function": function}]
        return completion({"content": None, "tool_calls": calls}, "tool_calls")

    return reply


async def serve(port: int, latency_s: float, reply_to: Callable[[bytes], bytes]) -> None:
    """Serve until cancelled."""
    seen = Seen()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(seen, reply_to, latency_s),
        "127.0.0.1",
        port,
        backlog=1024,
        reuse_address=True,
    )
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="wait before each reply")
    parser.add_argument("--replies", choices=("answer", "option", "agent"), default="answer")
    options = parser.parse_args()
    texts = {"answer": ANSWER, "option": OPTION}
    reply_to = answers(texts[options.replies]) if options.replies in texts else agent_turns()
    try:
        asyncio.run(serve(options.port, options.latency_ms / 1000, reply_to))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
