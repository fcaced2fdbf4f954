"""How much of what a model wrote is kept, and where a long text is read.

A reply is read whole. Of one that is longer than :data:`MOST_KEPT` its beginning and its end are kept, with a line
between them that says how much is left out: a run whose model repeats itself must fill no disk.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from pydantic import JsonValue

from agrotools.core import Action, Answer, Arguments, CallTools, ToolCall, Unparseable
from agrotools.models import Completion
from agrotools.text.loose_json import dumps

T = TypeVar("T")

MOST_KEPT = 1_000_000
"""Bytes (UTF-8) of a reply, a thought, an answer or a call's arguments that a record keeps."""
LONG_TEXT = 100_000
"""Characters of a text that is read in a thread, so that other samples do not wait."""
_SHORTEST_CUT = 1_000


async def read_apart(read: Callable[[], T], length: int) -> T:
    """``read()``; in a thread where it is to read more than :data:`LONG_TEXT` characters.

    The thread ends with the process: who stops a run does not wait for it.
    """
    if length <= LONG_TEXT:
        return read()
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # pyright: ignore[reportArgumentType]

    def work() -> None:
        result, fault = None, None
        try:
            result = read()
        except BaseException as error:
            fault = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, fault)

    threading.Thread(target=work, name="reading a long reply", daemon=True).start()
    return await future


def written(completion: Completion) -> int:
    """Characters that the model wrote: text, thought and the arguments of calls."""
    return len(completion.text) + len(completion.thought) + sum(len(call.arguments) for call in completion.tool_calls)


def kept_text(text: str, most: int = MOST_KEPT) -> str:
    """``text``, or as much of its beginning and end as comes to ``most`` bytes, and a line that says so."""
    if 4 * len(text) <= most:
        return text
    data = text.encode("utf-8", "replace")
    if len(data) <= most:
        return text
    begin, end = (part.decode("utf-8", "ignore") for part in (data[: most // 2], data[-(most // 2) :]))
    return f"{begin}\n[... {len(text) - len(begin) - len(end)} characters left out of the record ...]\n{end}"


def kept_action(action: Action) -> Action:
    """``action`` as a record keeps it. Its reply is cut where it is made."""
    match action:
        case Answer():
            changed = {"text": kept_text(action.text), "thought": kept_text(action.thought)}
        case CallTools():
            changed = {"calls": tuple(map(kept_call, action.calls)), "thought": kept_text(action.thought)}
        case Unparseable():
            changed = {"text": kept_text(action.text)}
        case _:
            return action
    same = all(getattr(action, name) == value for name, value in changed.items())
    return action if same else action.model_copy(update=changed)


def kept_call(call: ToolCall) -> ToolCall:
    """``call`` as a record keeps it: arguments of more than :data:`MOST_KEPT` bytes have their long texts cut, or,
    where it is not texts that make them long, are kept as the text that they are in JSON."""
    if _size(call.arguments) <= MOST_KEPT:
        return call
    return call.model_copy(update={"arguments": _kept_arguments(call.arguments)})


def _kept_arguments(arguments: Arguments) -> Arguments:
    texts = [len(value) for value in arguments.values() if isinstance(value, str)]
    share = MOST_KEPT // (2 * max(1, len(texts)))
    if share >= _SHORTEST_CUT:
        cut: Arguments = {
            name: kept_text(value, share) if isinstance(value, str) else value for name, value in arguments.items()
        }
        if _size(cut) <= MOST_KEPT:
            return cut
    return {"cut": kept_text(dumps(arguments), MOST_KEPT // 2)}  # a text of JSON is longer again as JSON


def _size(value: JsonValue) -> int:
    """The bytes of a value in JSON."""
    return len(dumps(value).encode("utf-8", "replace"))
