"""Assistant messages of a conversation, with the fields that the endpoint sent.

Endpoints of models that think refuse a conversation in which their reasoning or their signatures are missing. A history
that was not received (step-by-step, scripts) has no such fields, and none are invented.
"""

import json
from collections.abc import Sequence
from typing import Any

from agrotools.core import Reply, Step
from agrotools.models import Message, RequestedCall, TextPart
from agrotools.text.loose_json import dumps


def spoken(
    text: str, reply: Reply | None, calls: Sequence[RequestedCall] = (), own: str | None = None
) -> Message:
    """Return the assistant message of a turn with ``text``, or with ``own``, the words of the reply, in its place.

    ``calls``: native calls of the turn, answered by the messages that follow.
    """
    message = Message("assistant", (TextPart(text),) if text else (), tuple(calls))
    if reply is None or not reply.received:
        return message
    fields = dict(reply.received)
    sent: Any = fields.pop("tool_calls", None)
    fields.pop("function_call", None)
    if not calls or not isinstance(sent, list) or len(sent) != len(calls):
        fields["content"] = text if own is None else own
        sent = [{}] * len(calls)
    if calls:
        fields["tool_calls"] = [
            _as_sent(call, each) for call, each in zip(calls, sent, strict=True)
        ]
    return Message("assistant", message.content, message.tool_calls, received=fields)


def _as_sent(call: RequestedCall, sent: dict[str, Any]) -> dict[str, Any]:
    """Return the call with the fields that came with it; arguments that are no JSON object are those that were read."""
    function = {"name": call.name, "arguments": call.arguments}
    try:
        is_object = isinstance(json.loads(sent["function"]["arguments"]), dict)
        function = (
            {**sent["function"], "name": call.name}
            if is_object
            else {**sent["function"], **function}
        )
    except (LookupError, TypeError, ValueError, RecursionError):
        pass
    return {"type": "function", **sent, "id": call.id, "function": function}


def native_calls(steps: Sequence[tuple[int, Step]]) -> list[RequestedCall]:
    """Return the calls of one turn, with ids of our own where the endpoint gave none, or one twice."""
    reply, made = steps[0][1].reply, [(number, step.call) for number, step in steps if step.call]
    given = [call.id if reply and reply.received else None for _, call in made]
    # Nine letters and digits, as some servers demand.
    ids = [
        each if each and given.count(each) == 1 else f"call{n:05d}"
        for (n, _), each in zip(made, given, strict=True)
    ]
    return [
        RequestedCall(name=call.tool, arguments=dumps(call.arguments), id=identifier)
        for (_, call), identifier in zip(made, ids, strict=True)
    ]


def own_words(reply: Reply | None, most: int) -> str | None:
    """Return the content of the reply, if it is text of at most ``most`` characters."""
    content = reply.received.get("content") if reply else None
    return (
        content if isinstance(content, str) and content.strip() and len(content) <= most else None
    )


def react_words(reply: Reply | None, most: int) -> str | None:
    """Return the content of a reply in the form of the protocol, without results or an answer that it invents."""
    words = own_words(reply, most)
    plain = words.lower() if words else ""
    invented = any(each in plain for each in ("observation", "final answer"))
    return words if "action input:" in plain and not invented else None
