"""OpenAI-compatible endpoints on this machine that answer right and late: by a queue, by sharing time, or never.

Like most servers they go on with a request when its client has gone away.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from aiohttp import web

from support.fault_server import Body
from support.openai_server import completion, serving

Work = Callable[[Body], Awaitable[None]]
"""Returns when the reply to a request is ready."""


def text_of(body: Body) -> str:
    """All text of the user's messages."""
    contents = [message["content"] for message in body["messages"] if message["role"] == "user"]
    parts = [
        part
        for content in contents
        for part in ([{"text": content}] if isinstance(content, str) else content)
    ]
    return " ".join(part.get("text", "") for part in parts)


@dataclass
class Queue:
    """``workers`` requests at a time, ``service_s`` each, first come, first served."""

    service_s: float = 0.5
    workers: int = 1
    _free: asyncio.Semaphore | None = None

    async def __call__(self, body: Body) -> None:
        self._free = self._free or asyncio.Semaphore(self.workers)
        async with self._free:
            await asyncio.sleep(self.service_s)


@dataclass
class Hung:
    """Answers the first ``answered`` requests, and nobody any more after them."""

    answered: int = 0
    service_s: float = 0.05
    _seen: int = 0

    async def __call__(self, body: Body) -> None:
        self._seen += 1
        if self._seen > self.answered:
            await asyncio.Event().wait()
        await asyncio.sleep(self.service_s)


@dataclass
class HungFor:
    """Never ends for questions that contain one of ``words``; all others are answered at once."""

    words: tuple[str, ...] = ("[hang]",)
    service_s: float = 0.05

    async def __call__(self, body: Body) -> None:
        if any(word in text_of(body) for word in self.words):
            await asyncio.Event().wait()
        await asyncio.sleep(self.service_s)


@dataclass
class SlowServer:
    """A running server. ``requests`` are the texts that it was asked, in order."""

    base_url: str
    requests: list[str]

    def times(self, word: str) -> int:
        """How many requests held ``word``."""
        return sum(word in text for text in self.requests)


@contextmanager
def slow_server(work: Work, port: int = 0) -> Iterator[SlowServer]:
    """Serve in a thread of its own until the block ends."""
    requests: list[str] = []

    async def respond(body: Body) -> web.Response:
        requests.append(text_of(body))
        await work(body)
        return completion("Final Answer: weeds: yes")

    with serving(respond, port=port, greets=False) as endpoint:
        yield SlowServer(endpoint.base_url, requests)
