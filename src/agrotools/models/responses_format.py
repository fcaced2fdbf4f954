"""Requests and replies in the format of OpenAI's Responses API. Pure functions, no I/O.

Unlike chat completions, it has images in the results of tools. Conversations are sent whole and are not stored by the
endpoint (``store`` is false), so that a run does not depend on its state.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from agrotools.core import ToolSpec
from agrotools.models.base import ImagePart, Message, ModelSettings, RequestEncoder, json_bytes

SUFFIX = "/responses"
"""End of the addresses of this API."""
_FINISHED = {"max_output_tokens": "length", "content_filter": "content_filter"}


class ResponsesEncoder(RequestEncoder):
    """Encoder of the requests of one model in the Responses format, which has no seed."""

    def encode(self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings) -> bytes:
        """Return the JSON body of a request."""
        messages = self.adapt(messages) if self.adapt else messages
        body: dict[str, Any] = {
            "model": self._model,
            "input": [item for message in messages for item in input_items(message)],
            "store": False,
        }
        if tools:
            body["tools"] = [{"type": "function", **spec.offered(), "strict": False} for spec in tools]
        for name in ("temperature", "max_output_tokens"):
            if (value := getattr(settings, name)) is not None and self.spelled(name) is not None:
                body[name] = value
        if settings.top_logprobs is not None:
            body |= {"top_logprobs": settings.top_logprobs, "include": ["message.output_text.logprobs"]}
        return json_bytes(body | settings.extra)


class Api(NamedTuple):
    """Encoder and address of requests, and function from the body of a reply to that of a chat completion."""

    encoder: Callable[[str, Mapping[str, str | None]], RequestEncoder]
    url: str
    as_chat: Callable[[bytes], bytes]


def api_at(base_url: str) -> Api:
    """Return the API at an address: Responses if it ends in ``/responses``, else chat completions."""
    if base_url.endswith(SUFFIX):
        return Api(ResponsesEncoder, base_url, as_chat)
    return Api(RequestEncoder, f"{base_url}/chat/completions", lambda body: body)


def input_items(message: Message) -> list[dict[str, Any]]:
    """Return the items of a message: its content, and one item for each call."""
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": _output(message)}]
    kind = "output_text" if message.role == "assistant" else "input_text"
    content = [_part(part, kind) for part in message.content]
    items: list[dict[str, Any]] = [{"role": message.role, "content": content}] if content else []
    return items + [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.tool_calls
    ]


def _output(message: Message) -> str | list[dict[str, Any]]:
    if message.has_images:
        return [_part(part, "input_text") for part in message.content]
    return message.text


def _part(part: Any, kind: str) -> dict[str, Any]:
    if isinstance(part, ImagePart):
        return {"type": "input_image", "image_url": part.url, "detail": "auto"}
    return {"type": kind, "text": part.text}


def as_chat(body: bytes) -> bytes:
    """Return the body of a response as that of a chat completion; a body of another form is returned as it is."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body
    output = data.get("output") if isinstance(data, dict) else None
    if not isinstance(output, list):
        return body
    items: list[dict[str, Any]] = [item for item in output if isinstance(item, dict)]
    parts = [part for item in items if item.get("type") == "message" for part in _dicts(item.get("content"))]
    calls = [
        {"id": item.get("call_id"), "function": {"name": item.get("name"), "arguments": item.get("arguments")}}
        for item in items
        if item.get("type") == "function_call"
    ]
    thoughts = [part for item in items if item.get("type") == "reasoning" for part in _dicts(item.get("summary"))]
    message = {
        "role": "assistant",
        "content": "".join(str(part.get("text") or "") for part in parts) or None,
        "refusal": "".join(str(part.get("refusal") or "") for part in parts),
        "tool_calls": calls,
        "reasoning": "\n".join(str(part.get("text") or "") for part in thoughts),
    }
    choice = {"message": message, "finish_reason": _finish_reason(data, bool(calls)), "logprobs": _logprobs(parts)}
    usage = data.get("usage") if isinstance(data.get("usage"), dict) else None
    counts = usage and {
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "total_tokens": usage.get("total_tokens"),
        "prompt_tokens_details": usage.get("input_tokens_details"),
    }
    served = {"model": data.get("model")}
    return orjson.dumps({"error": data.get("error"), "choices": [choice], "usage": counts, **served})


def _finish_reason(data: Mapping[str, Any], has_calls: bool) -> str:
    if data.get("status") == "incomplete":
        details = data.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        return _FINISHED.get(str(reason), str(reason))
    if data.get("status") in ("failed", "cancelled"):
        return "error"
    return "tool_calls" if has_calls else "stop"


def _logprobs(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    first = next((part["logprobs"] for part in parts if isinstance(part.get("logprobs"), list)), None)
    return {"content": first} if first else None


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
