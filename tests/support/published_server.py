"""A mock endpoint in a thread of its own, for commands that are run in this process."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

from aiohttp import web

from support.eval_process import wait_for
from support.openai_server import Body, serve


@contextmanager
def served(responder: Callable[[Body], web.Response], latency_s: float = 0.0, *, greets: bool = True) -> Iterator[str]:
    """The address of a server that answers with ``responder``, in a thread of its own."""
    address: list[str] = []
    end: list[Callable[[], object]] = []

    async def main() -> None:
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        end.append(lambda: loop.call_soon_threadsafe(done.set))
        async with serve(responder, latency_s=latency_s, greets=greets) as server:
            address.append(server.base_url)
            await done.wait()

    thread = Thread(target=asyncio.run, args=(main(),))
    thread.start()
    try:
        wait_for(lambda: address)
        yield address[0]
    finally:
        end[0]()
        thread.join()


def text_of(message: Body) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
