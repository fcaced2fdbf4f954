"""Replies in the output file of a batch, in the form that OpenAI documents: ``custom_id``, ``response`` and ``error``.

The body of a response is a chat completion, or a response of the Responses API. vLLM and Mistral write the same lines.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from agrotools.models.base import Completion
from agrotools.models.chat_format import MalformedReply, content_text, read_reply
from agrotools.models.refusals import error_message
from agrotools.text.json_kinds import fields_of, is_list

_FIRST_FAILURE = 400
"""Lowest HTTP status of a failed request."""
_LONGEST_ERROR = 200
"""Characters of an error that are kept."""


class NoReply(NamedTuple):
    """A request that failed: the beginning of the error that a program wrote."""

    error: str


def error_text(error: Any) -> str:
    """Return the words of an error, which may be an object, at most 200 characters."""
    text = error if isinstance(error, str) else orjson.dumps(error, default=str).decode()
    words = " ".join(error_message(text).split())
    return words[:_LONGEST_ERROR] or "error"


def is_batch_line(row: Mapping[str, Any]) -> bool:
    """Return True for a line of the output file of a batch."""
    return "custom_id" in row and "response" in row


def batch_replies(line: Mapping[str, Any]) -> list[str | NoReply]:
    """Return the replies in a line of a batch: one for each choice, or the error of the request."""
    response = fields_of(line["response"])
    status = response.get("status_code")
    body = fields_of(response.get("body"))
    if line.get("error"):
        return [NoReply(error_text(line["error"]))]
    if isinstance(status, int) and status >= _FIRST_FAILURE:
        return [NoReply(f"HTTP status {status}: {error_text(body)}"[:_LONGEST_ERROR])]
    choices: Any = body.get("choices")
    if not is_list(choices) or not choices:
        return [_reply(body)]
    return [_reply({**body, "choices": [each]}) for each in choices]


def _reply(body: Mapping[str, Any]) -> str | NoReply:
    """Return the text of a response of the Responses API (``output``), or of a chat completion with one choice."""
    try:
        if is_list(body.get("output")):
            said = [each for each in body["output"] if fields_of(each).get("type") == "message"]
            return "".join(content_text(each.get("content")) for each in said)
        completion = read_reply(orjson.dumps(body))
    except MalformedReply as fault:
        return NoReply(error_text(str(fault)))
    return completion.text if isinstance(completion, Completion) else NoReply(error_text(body))
