"""Messages of prediction files as a corrected scorer reads them: whatever is malformed is neither call nor answer."""

import re
from typing import Any, Literal, NamedTuple

from agrotools.core import BenchmarkError
from agrotools.text.loose_json import is_list, is_object, is_text

_OF_AGENT = re.compile(r"\s*\[\w*(?:Error|Exception)\]")
"""How what the evaluation writes in the place of an answer begins where its agent stopped."""


class Message(NamedTuple):
    """``failed``: the file says that the call or the agent came to an error, under ``error`` or in the place of an
    answer. ``text``: of an answer."""

    kind: Literal["call", "answer", "other"]
    failed: bool = False
    name: str = ""
    arguments: Any = None
    text: str = ""


def read_message(message: Any) -> Message:
    """One message, of any form. A thought that an agent wrote down beside its calls is no answer. A call has a name and
    arguments: an object, or a text where they could not be read."""
    if not is_object(message):
        return Message("other")
    failed = message.get("error") is not None
    if "tool_calls" in message:
        return _call(message["tool_calls"], failed)
    if message.get("role") != "assistant" or not is_text(message.get("content")):
        return Message("other", failed)
    meta = message.get("meta")
    if is_object(meta) and meta.get("type") == "thought":
        return Message("other", failed)
    return Message("answer", failed or is_agent_error(message["content"]), text=message["content"])


def is_agent_error(text: str) -> bool:
    """Whether it is an error of the agent where an answer should stand, such as ``[AgentInferencerError] ...``."""
    return _OF_AGENT.match(text) is not None


def _call(calls: Any, failed: bool) -> Message:
    if not is_list(calls) or not calls or not is_object(calls[0]) or not is_object(calls[0].get("function")):
        return Message("other", failed)
    function = calls[0]["function"]
    name, arguments = function.get("name"), function.get("arguments")
    if not is_text(name) or not (is_object(arguments) or is_text(arguments)):
        return Message("other", failed)
    return Message("call", failed, name, arguments)


def read_messages(messages: Any) -> list[Message]:
    """All messages of a list; none of anything else."""
    return [read_message(message) for message in messages] if is_list(messages) else []


def gold_messages(messages: Any, where: str, *, returns: bool) -> list[Message]:
    """The gold, whose messages must be calls with arguments, or answers.

    ``returns``: what tools return stands among them (end-to-end), and is left out.

    Raises:
        BenchmarkError: something else stands there.
    """
    if not is_list(messages):
        raise BenchmarkError(
            f"{where}: the gold is no list of messages", hint="is this a prediction file of GTA's form?"
        )
    found: list[Message] = []
    for index, message in enumerate(messages):
        read = read_message(message)
        is_return = returns and is_object(message) and message.get("role") in ("tool", "user", "system")
        if is_return and read.kind == "other":
            continue
        if read.kind == "other" or (read.kind == "call" and not is_object(read.arguments)):
            raise BenchmarkError(
                f"{where}: gold message {index} is neither a call nor an answer",
                hint="a gold message is a call with an object of arguments, or an answer with a text",
            )
        found.append(read)
    return found
