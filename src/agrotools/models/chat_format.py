"""The OpenAI chat-completions format as pure functions: requests out, replies and errors in. No I/O."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite
from types import MappingProxyType
from typing import Any, Literal

import orjson

from agrotools.core import ToolSpec, Usage
from agrotools.models.base import Completion, FinishReason, ImagePart, Message, ModelSettings, RequestedCall

_FINISH_REASONS: dict[str, FinishReason] = {
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "filtered",
    "safety": "filtered",
    "sensitive": "filtered",
    "prohibited_content": "filtered",
    "blocklist": "filtered",
    "recitation": "filtered",
}

# Servers word it differently: OpenAI and vLLM ("maximum context length"), SGLang ("longer than the model's context
# length"), llama.cpp ("exceeds the available context size", sent as 400 or 500), TGI ("must be <="), Anthropic
# ("prompt is too long"), Gemini ("input token count ... exceeds"), DashScope ("range of input length").
_CONTEXT = re.compile(
    r"context[ _-]?(?:length|window|size)|maximum model length|max[_ ]model[_ ]len|max[_ ]seq[_ ]?len"
    r"|prompt is too long|(?:input|prompt)[ _](?:token count|tokens?|length)[^.]{0,60}(?:exceed|too l|longer|should be)"
    r"|reduce the length|range of input length|too many (?:input |prompt )?tokens|tokens[^.]{0,60}must be <=",
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"content[_ ]?filter|content[_ ]policy|content management policy|responsible ?ai|data_?inspection|moderation"
    r"|inappropriate content|prohibited[_ ]content|flagged",
    re.IGNORECASE,
)

Verdict = Literal["context", "filtered", "retry", "credentials", "credit", "not_found", "rejected"]


@dataclass(frozen=True)
class Rejection:
    """An error reply: what it means for us and what the server said."""

    verdict: Verdict
    message: str
    status: int
    """As HTTP says it, or as a gateway says it in the body of a success."""


class MalformedReply(ValueError):
    """A successful status with a body that is no chat completion."""


def function_list(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Tools as the format's functions."""
    return [
        {
            "type": "function",
            "function": {"name": spec.name, "description": spec.description, "parameters": spec.parameters},
        }
        for spec in tools
    ]


def request_body(
    model: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    settings: ModelSettings,
    spelling: Mapping[str, str | None] = MappingProxyType({}),
    *,
    more_messages: Sequence[Any] = (),
) -> dict[str, Any]:
    """The JSON body of a request.

    Args:
        spelling: settings that the endpoint knows under another name than the format's, or (None) not at all.
        more_messages: in the format's form already.
    """
    body: dict[str, Any] = {"model": model, "messages": [*map(message_on_wire, messages), *more_messages]}
    if tools:
        body["tools"] = function_list(tools)
    for key, value in (
        ("temperature", settings.temperature),
        ("max_tokens", settings.max_output_tokens),
        ("top_p", settings.top_p),
        ("seed", settings.seed),
        ("stop", list(settings.stop) or None),
    ):
        if value is not None and (spelled := spelling.get(key, key)) is not None:
            body[spelled] = value
    if settings.top_logprobs is not None:
        body |= {"logprobs": True, "top_logprobs": settings.top_logprobs}
    return body | settings.extra if settings.extra else body


def message_on_wire(message: Message) -> dict[str, Any]:
    """A message in the format's form."""
    # Plain text as one string: several servers accept lists of parts only for vision models.
    content = _parts(message) if any(isinstance(part, ImagePart) for part in message.content) else message.text
    wire: dict[str, Any] = {"role": message.role, "content": content}
    if message.tool_calls:
        wire["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire


def _parts(message: Message) -> list[dict[str, Any]]:
    return [
        {"type": "image_url", "image_url": {"url": part.url}}
        if isinstance(part, ImagePart)
        else {"type": "text", "text": part.text}
        for part in message.content
    ]


def read_reply(body: bytes, *, seconds: float = 0.0, attempts: int = 1) -> Completion | Rejection:
    """Read the body of a successful response; some gateways put an error there.

    ``seconds`` and ``attempts`` are kept in the completion.

    Raises:
        MalformedReply: not JSON, or not a chat completion.
    """
    data = _json(body)
    if not isinstance(data, dict):
        raise MalformedReply("the reply is not a JSON object")
    if data.get("error"):
        error = data["error"]
        code = error.get("code") if isinstance(error, dict) else None
        return read_error(code if isinstance(code, int) and 400 <= code < 600 else 500, body)
    choices = data.get("choices")
    usage = _usage(data.get("usage"))
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        if _blocked(data):
            blocked = "the prompt was blocked"
            return Completion(finish_reason="filtered", detail=blocked, usage=usage, seconds=seconds, attempts=attempts)
        raise MalformedReply("the reply has no choices")
    message = choices[0].get("message")
    if message is None:
        message = {}
    if not isinstance(message, dict):
        raise MalformedReply("the first choice has no message")
    calls = _requested_calls(message)
    reason = str(choices[0].get("finish_reason") or "").lower()
    return Completion(
        text=_text(message.get("content")) or _text(message.get("refusal")),
        tool_calls=calls,
        usage=usage,
        finish_reason=_FINISH_REASONS.get(reason, "tool_calls" if calls else "stop"),
        thought=_text(message.get("reasoning_content")) or _text(message.get("reasoning")),
        first_token=_first_token(choices[0].get("logprobs")),
        seconds=seconds,
        attempts=attempts,
    )


def _first_token(logprobs: Any) -> dict[str, float]:
    """Probabilities of the tokens that may stand first; empty where they are not told in the format's form."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    first = content[0] if isinstance(content, list) and content else None
    told = first.get("top_logprobs") if isinstance(first, dict) else None
    probabilities: dict[str, float] = {}
    for entry in told if isinstance(told, list) else []:
        token, logprob = (entry.get("token"), entry.get("logprob")) if isinstance(entry, dict) else (None, None)
        if isinstance(token, str) and isinstance(logprob, int | float) and isfinite(logprob) and logprob <= 0.0:
            probabilities[token] = probabilities.get(token, 0.0) + exp(logprob)
    return probabilities


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    try:
        # orjson refuses lone surrogates and NaN, which Python servers do send.
        return without_surrogates(json.loads(body))
    except (ValueError, RecursionError) as error:
        raise MalformedReply(f"the reply is not JSON: {body[:2000].decode(errors='replace')}") from error


def without_surrogates(value: Any) -> Any:
    """JSON data in which every half of a surrogate pair that stands alone is a replacement character."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    return value


def _text(content: Any) -> str:
    """Message content as text: a string, or a list of parts (some servers answer with parts)."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in content]
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _requested_calls(message: dict[str, Any]) -> tuple[RequestedCall, ...]:
    entries = message.get("tool_calls")
    listed = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    legacy = message.get("function_call")
    if not listed and isinstance(legacy, dict):
        listed = [{"function": legacy}]
    calls: list[RequestedCall] = []
    for entry in listed:
        function = entry.get("function")
        if not isinstance(function, dict):
            function = entry
        arguments = function.get("arguments")
        calls.append(
            RequestedCall(
                name=str(function.get("name") or ""),
                # Some servers send an object where the format asks for its text.
                arguments=arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False),
                id=str(entry.get("id") or ""),
            )
        )
    return tuple(calls)


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    sent = _count(usage.get("prompt_tokens"))
    received = _count(usage.get("completion_tokens"))
    # Gemini and xAI bill what a model thinks as output, but count it in the total alone.
    thought = _count(usage.get("total_tokens")) - sent if sent else 0
    return Usage(input_tokens=sent, output_tokens=max(received, thought))


def _count(count: Any) -> int:
    if type(count) is int:
        return max(0, count)
    return max(0, int(count)) if isinstance(count, float) and isfinite(count) else 0


def _blocked(data: dict[str, Any]) -> bool:
    """Whether a reply without choices says that the prompt itself was filtered (Azure, Gemini)."""
    feedback = data.get("promptFeedback") or data.get("prompt_feedback")
    return bool(data.get("prompt_filter_results")) or (isinstance(feedback, dict) and "blockReason" in feedback)


def read_error(status: int, body: bytes) -> Rejection:
    """What an error response means: a result of the model, a fault to retry, or a mistake of the user."""
    raw = body[:20_000].decode(errors="replace")
    message = _error_message(raw).strip() or f"HTTP status {status}"
    if status == 413 or (status in (400, 422, 500) and _CONTEXT.search(raw)):
        return Rejection("context", message, status)
    if status == 451 or (status in (400, 403, 422) and _FILTERED.search(raw)):
        return Rejection("filtered", message, status)
    if status == 402 or "insufficient_quota" in raw:
        return Rejection("credit", message, status)
    if status in (408, 409, 425, 429) or status >= 500:
        return Rejection("retry", f"HTTP status {status}: {message}", status)
    if status in (401, 403):
        return Rejection("credentials", message, status)
    if status in (404, 405) or 300 <= status < 400:
        return Rejection("not_found", message, status)
    return Rejection("rejected", message, status)


def _error_message(raw: str) -> str:
    """The human part of an error body, in any of the shapes that servers use."""
    try:
        data = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return re.sub(r"<[^>]{0,500}>", " ", raw)
    if isinstance(data, list) and data:
        data = data[0]
    for key in ("error", "message", "detail"):
        if isinstance(data, dict) and data.get(key):
            data = data[key]
    return data if isinstance(data, str) else raw
