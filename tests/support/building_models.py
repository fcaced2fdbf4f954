"""Models that help to build a benchmark, for tests: on an endpoint of this process, in a thread beside it."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Queue
from typing import Any

from aiohttp import web

from support.openai_server import Body, Endpoint, Responder, completion, serve


@contextmanager
def serving(responder: Responder, *, latency_s: float = 0.0) -> Iterator[Endpoint]:
    """``responder`` as an endpoint in a thread of its own, for tests of what runs an event loop itself."""
    ready: Queue[Endpoint] = Queue()
    end: list[Callable[[], object]] = []

    async def main() -> None:
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        end.append(lambda: loop.call_soon_threadsafe(done.set))
        async with serve(responder, latency_s=latency_s) as endpoint:
            ready.put(endpoint)
            await done.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    thread.start()
    try:
        yield ready.get(timeout=30)
    finally:
        end[0]()
        thread.join(timeout=30)


def text_of(message: Body) -> str:
    """All text of a message."""
    content: Any = message["content"]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def question_of(body: Body) -> str:
    """The question that wordings are asked for."""
    return json.loads(text_of(body["messages"][1]))["question"]


def rewording(body: Body) -> web.Response:
    """One wording that changes a number or drops the sense, then one that is right."""
    question = question_of(body)
    right = f"For my records, {question[0].lower()}{question[1:]}"
    wrong = [question.replace("the", "the 17", 1), "How are things?"]
    return completion(f"Here you are:\n```json\n{json.dumps({'variants': [*wrong, right]})}\n```")
