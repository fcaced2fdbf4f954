"""Texts of replies in the objects that programs store in place of a text.

Known are replies of OpenAI (chat, completions, responses), Anthropic, Gemini and Bedrock, the lines of their batch
files, outputs of Inspect, vLLM and Transformers, and conversations, whose last message of the assistant is the reply.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import orjson

from agrotools.models.refusals import error_message
from agrotools.text.json_kinds import is_list, is_object, is_text
from agrotools.text.loose_json import parsed


class NoReply(NamedTuple):
    """A request that failed: the beginning of the error that a program wrote."""

    error: str


Reply = str | NoReply
_Fields = Mapping[str, Any]

_DEEPEST = 20
"""Levels of objects in objects that are searched; the deepest known form has eight."""
_LONGEST_ERROR = 200
"""Characters of an error that are kept."""
_HOLDERS = (
    *("choices", "candidates", "outputs", "output", "completion", "output_text", "message"),
    *("content", "parts", "generated_text", "generation", "text", "outputText", "results"),
    *("modelOutput", "turns", "body", "result", "response", "reply", "prediction", "answer"),
)
"""Keys that hold the reply or lead to it, the surest first."""
_LEADING = frozenset(("choices", "candidates", "output", "completion", "content", "message"))
"""Keys beside which an ``error`` is a remark; without them it is what came instead of a reply."""
_SPOKEN_BLOCKS = ("text", "output_text", "refusal", "message")
"""Types of the blocks of a message that are said to the user."""
_SILENT_BLOCKS = (
    *("thinking", "redacted_thinking", "reasoning", "tool_use", "server_tool_use", "function_call"),
    *("tool_call", "image", "image_url"),
)
"""Types of the blocks of a message that are no part of its text."""
_ENDED = ("canceled", "cancelled", "expired")
"""Types of results in batch files of Anthropic for requests that were never answered."""
_SPEAKERS = ("assistant", "model", "ai", "gpt")
"""Roles of a model in a conversation."""


def fields_of(value: Any) -> Mapping[str, Any]:
    """Return an object; an empty one for any other value."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def replies_in(value: Any, depth: int = 0) -> tuple[Reply, ...] | None:
    """Return the replies in ``value``, several if the model was asked for several; None if it has no known form."""
    if is_text(value):
        return (value,)
    if depth > _DEEPEST:
        return None
    if is_list(value):
        return _in_list(value, depth)
    return _in_object(value, depth) if is_object(value) else None


def stored_replies(text: str) -> tuple[Reply, ...] | None:
    """Return the replies in a text that is the JSON of a program's object; None for any other text.

    A model may answer with JSON, too, so only objects count that no model writes as an answer.
    """
    value = parsed(text)
    is_blocks = is_list(value) and bool(value) and all(map(_is_block, value))
    return replies_in(value) if is_blocks or _is_stored(fields_of(value)) else None


def is_reply_object(value: Any) -> bool:
    """Return True for an object, or a list of objects, that is surely a program's record of a reply."""
    if is_object(value):
        return _is_stored(value)
    return (
        is_list(value)
        and bool(value)
        and all(is_object(each) and _is_stored(each) for each in value)
    )


def _is_stored(fields: _Fields) -> bool:
    has_list = any(
        is_list(fields.get(key)) and all(map(is_object, fields[key])) and fields[key]
        for key in ("choices", "candidates")
    )
    is_message = fields.get("role") in _SPEAKERS and "content" in fields
    is_choice = is_object(fields.get("message")) and "content" in fields["message"]
    is_line = "body" in fields and "status_code" in fields
    is_result = fields.get("type") in ("succeeded", "errored", *_ENDED)
    is_response = fields.get("object") == "response" and is_list(fields.get("output"))
    is_turns = is_list(fields.get("turns"))
    return is_turns or has_list or is_message or is_choice or is_line or is_result or is_response


def _is_block(value: Any) -> bool:
    return is_object(value) and value.get("type") in (*_SPOKEN_BLOCKS, *_SILENT_BLOCKS)


def _in_list(values: Sequence[Any], depth: int) -> tuple[Reply, ...] | None:
    if not values:
        return ()
    if any(map(_is_block, values)):
        return _in_blocks(values, depth)
    if all(is_object(each) and "role" in each for each in values):
        spoken = [each for each in values if each["role"] in _SPEAKERS]
        return replies_in(spoken[-1], depth + 1) if spoken else None
    found: list[Reply] = []
    for each in values:
        replies = replies_in(each, depth + 1)
        if replies is None:
            return None
        found += replies
    return tuple(found)


def _in_blocks(blocks: Sequence[Any], depth: int) -> tuple[Reply, ...] | None:
    """Return the text of the blocks of one message, or of the items of a response of OpenAI."""
    said: list[str] = []
    for block in blocks:
        if not is_object(block) or block.get("type") not in _SPOKEN_BLOCKS:
            continue
        key = {"message": "content", "refusal": "refusal"}.get(block["type"], "text")
        replies = replies_in(block.get(key), depth + 1) or ()
        said += [each for each in replies if isinstance(each, str)]
    return ("".join(said),)


def _in_object(fields: _Fields, depth: int) -> tuple[Reply, ...] | None:
    if error := _error(fields):
        return (NoReply(error),)
    for key in _HOLDERS:
        if fields.get(key) is None:
            continue
        if key == "parts" and is_list(fields[key]):
            return _of_gemini(fields[key])
        held = fields[key]
        if key == "turns" and is_list(held):  # of FastChat
            held = held[-1:]
        replies = replies_in(held, depth + 1)
        if replies is not None:
            return replies
    if fields.get("role") in _SPEAKERS:  # it called a tool, or refused
        refusal = fields.get("refusal")
        return (refusal if isinstance(refusal, str) else "",)
    return None


def _of_gemini(parts: Sequence[Any]) -> tuple[Reply, ...]:
    texts = [
        each["text"]
        for each in parts
        if is_object(each) and is_text(each.get("text")) and not each.get("thought")
    ]
    return ("".join(texts),)


def _error(fields: _Fields) -> str:
    """Return the error that stands in place of a reply; empty if there is none."""
    error = fields.get("error")
    if error and not any(fields.get(key) for key in _LEADING):
        return error_text(error)
    status = fields.get("status_code")
    if isinstance(status, int) and status >= 400:
        return f"HTTP status {status}: {error_text(fields.get('body'))}"[:_LONGEST_ERROR]
    if fields.get("type") in _ENDED and not any(fields.get(key) for key in _LEADING):
        return str(fields["type"])
    return ""


def error_text(error: Any) -> str:
    """Return the words of an error, which may be an object, at most 200 characters."""
    text = error if isinstance(error, str) else orjson.dumps(error, default=str).decode()
    words = " ".join(error_message(text).split())
    return words[:_LONGEST_ERROR] or "error"
