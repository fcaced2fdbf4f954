"""Process of a Python agent: it reads tasks from standard input, one JSON line each, and writes calls and the answer.

Started as ``python -m agrotools.agents.agent_process MODULE FUNCTION [FOLDER...]``; the folders are searched for the
module. Lines in: ``{"number": M, "task": ...}``, then ``{"id": N, "observation": ...}`` for each call. Lines out: once
``{"number": 0, "ready": true}``; for each task, with its number, ``{"id": N, "tool": ..., "arguments": ...}`` and
``{"usage": ...}``, and finally ``{"answer": ..., "takes_form": ...}`` or ``{"error": ...}``. What the agent prints goes
to standard error.
"""

import asyncio
import importlib
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO


def main() -> None:
    module, function, *folders = sys.argv[1:]
    reading, writing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.path[:0] = folders
    from agrotools.agents.external import described, run_with, takes_form

    try:
        target: Any = importlib.import_module(module)
        for name in function.split("."):
            target = getattr(target, name)
        if not callable(target):
            raise TypeError(f"{function} is not a function")
    except BaseException as error:
        _send(writing, 0, {"error": described(error)})
        raise SystemExit(1) from error
    _send(writing, 0, {"ready": True})
    asyncio.run(_serve(run_with(target), takes_form(target), reading, writing))


async def _serve(run: Any, has_form: bool, reading: BinaryIO, writing: BinaryIO) -> None:
    """Work on one task after another, until standard input ends and with it the process."""
    from agrotools.core.errors import words_of

    calls = _Calls(writing)
    tasks: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def receive(line: bytes) -> None:
        message = json.loads(line)
        if "task" in message:
            tasks.put_nowait(message)
        else:
            calls.settle(message["id"], message["observation"])

    _read_lines(reading, receive)
    while True:
        message = await tasks.get()
        number = message["number"]
        try:
            given = await run(
                message["task"], partial(calls.make, number), partial(_report, writing, number)
            )
            answer = {"answer": given, "takes_form": has_form}
        except BaseException as error:
            traceback.print_exc()
            answer = {"error": words_of(error) or type(error).__name__}
        calls.forget()
        _send(writing, number, answer)


class _Calls:
    """Calls of tools that wait for their observations."""

    def __init__(self, writing: BinaryIO) -> None:
        self._writing = writing
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._n_made = 0

    async def make(self, number: int, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the observation of a call for the task of that number."""
        self._n_made += 1
        future = self._waiting[self._n_made] = self._loop.create_future()
        _send(self._writing, number, {"id": self._n_made, "tool": tool, "arguments": arguments})
        return await future

    def settle(self, call_id: int, observation: dict[str, Any]) -> None:
        if future := self._waiting.pop(call_id, None):
            future.set_result(observation)

    def forget(self) -> None:
        """Drop calls of a task that has ended."""
        self._waiting.clear()


def _read_lines(reading: BinaryIO, receive: Callable[[bytes], None]) -> None:
    """Call ``receive`` in the running loop for each line; a thread reads them, and ends the process with the last."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        for line in reading:
            loop.call_soon_threadsafe(receive, line)
        os._exit(0)  # the run has ended

    threading.Thread(target=read, daemon=True).start()


def _report(writing: BinaryIO, number: int, usage: dict[str, Any]) -> None:
    _send(writing, number, {"usage": usage})


def _send(writing: BinaryIO, number: int, message: dict[str, Any]) -> None:
    writing.write(json.dumps({"number": number, **message}, default=str).encode() + b"\n")
    writing.flush()


if __name__ == "__main__":
    main()
