"""Long replies: parsed in a thread of their own, and kept in part.

Whatever chose an action, texts and arguments are stored without what no record can hold: lone surrogates and integers
beyond 64 bits. A reply is parsed as a whole. Of a reply longer than :data:`MOST_KEPT`, beginning and end are stored,
with a line between them that gives the number of omitted characters, because a model that repeats itself must not fill
the disk.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

from agrotools.core import (
    Action,
    Answer,
    Arguments,
    CallTools,
    ErrorInfo,
    Halt,
    ToolCall,
    Unparseable,
)
from agrotools.core.texts import without_surrogates
from agrotools.models import Completion
from agrotools.models.base import json_bytes
from agrotools.text.loose_json import NotJson, dumps, storable

T = TypeVar("T")

MOST_KEPT = 1_000_000
"""Maximum bytes (UTF-8) of a reply, a thought, an answer or a call's arguments in a record."""
LONG_TEXT = 100_000
"""Length in characters above which a text is parsed in a thread, so that other samples do not wait."""
_SHORTEST_CUT = 1_000
"""Least bytes that a truncated text of a call keeps; if its share is smaller, all arguments become one JSON text."""
_LONGEST_NAME = 1_000
"""Maximum bytes of the name of a tool in a call."""


async def parse_in_thread(read: Callable[[], T], length: int) -> T:
    """Return ``read()``, executed in a thread if it parses more than :data:`LONG_TEXT` characters."""
    return read() if length <= LONG_TEXT else await in_daemon_thread(read, "reading a long reply")


async def in_daemon_thread(act: Callable[[], T], name: str) -> T:
    """Return ``act()``, called in a thread of that name, which the end of a run does not wait for."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(with_value: Callable[[Any], None], value: object) -> None:
        if not future.done():
            with_value(value)

    def work() -> None:
        try:
            outcome = future.set_result, act()
        except BaseException as error:
            outcome = future.set_exception, error
        with suppress(RuntimeError):  # the loop is closed, so nothing waits for the result
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=work, name=name, daemon=True).start()
    return await future


def output_length(completion: Completion) -> int:
    """Return the number of characters that the model wrote: text, thought and arguments of calls."""
    return (
        len(completion.text)
        + len(completion.thought)
        + sum(len(call.arguments) for call in completion.tool_calls)
    )


def kept_text(text: str, most: int = MOST_KEPT) -> str:
    """Return ``text``, or its beginning and end of ``most`` bytes together with a note on the omitted part.

    Lone surrogates become U+FFFD.
    """
    text = without_surrogates(text)
    if 4 * len(text) <= most:
        return text
    data = text.encode()
    if len(data) <= most:
        return text
    begin, end = (
        part.decode("utf-8", "ignore") for part in (data[: most // 2], data[-(most // 2) :])
    )
    return f"{begin}\n[... {len(text) - len(begin) - len(end)} characters left out of the record ...]\n{end}"


def kept_action(action: Action) -> Action:
    """Return ``action`` as a record stores it. Its reply is truncated where it is created."""
    match action:
        case CallTools():
            thought = kept_text(action.thought)
            calls = tuple(kept_call(storable_call(call)[0]) for call in action.calls)
            if thought == action.thought and calls == action.calls:
                return action
            return action.model_copy(update={"thought": thought, "calls": calls})
        case Answer():
            text = kept_text(action.text)
            thought = kept_text(action.thought)
            if text == action.text and thought == action.thought:
                return action
            return action.model_copy(update={"text": text, "thought": thought})
        case Unparseable():
            text = kept_text(action.text)
            return action if text == action.text else action.model_copy(update={"text": text})
        case Halt():
            return action
        case _:
            raise TypeError(not_an_action(action))


def not_an_action(value: object) -> str:
    """Return the message about what a policy returned that is no action."""
    return f"act returned {value!r:.100}, not an Answer or CallTools"


def storable_call(call: ToolCall) -> tuple[ToolCall, ErrorInfo | None]:
    """Return ``call`` with a name and arguments that a record can store, and the error if it has no such arguments."""
    tool = kept_text(call.tool, _LONGEST_NAME)
    error = None
    try:
        arguments = cast("Arguments", storable(call.arguments))
    except NotJson as fault:
        arguments = {}
        message = f"the arguments are no usable JSON: {fault}"
        error = ErrorInfo(kind="invalid_argument", message=message)
    # By their texts: 2**70 equals its float, but no record can store the integer.
    if error is None and tool == call.tool and repr(arguments) == repr(call.arguments):
        return call, None
    return call.model_copy(update={"tool": tool, "arguments": arguments}), error


def kept_call(call: ToolCall) -> ToolCall:
    """Return ``call`` as a record stores it.

    Arguments of more than :data:`MOST_KEPT` bytes have their long texts truncated or, if that is not enough, become
    truncated JSON text.
    """
    if len(json_bytes(call.arguments)) <= MOST_KEPT:
        return call
    return call.model_copy(update={"arguments": _kept_arguments(call.arguments)})


def _kept_arguments(arguments: Arguments) -> Arguments:
    texts = [len(value) for value in arguments.values() if isinstance(value, str)]
    share = MOST_KEPT // (2 * max(1, len(texts)))
    if share >= _SHORTEST_CUT:
        cut: Arguments = {
            name: kept_text(value, share) if isinstance(value, str) else value
            for name, value in arguments.items()
        }
        if len(json_bytes(cut)) <= MOST_KEPT:
            return cut
    return {
        "cut": kept_text(dumps(arguments), MOST_KEPT // 2)
    }  # JSON text grows when it is encoded as JSON again
