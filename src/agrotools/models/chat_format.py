"""Replies and errors in the format of OpenAI's chat completions, and requests and replies in that of its Responses API.

Also checks of what replies say about themselves: which model wrote them, and how much of the prompt it has read. Pure
functions, no I/O. Unlike chat completions, the Responses API has images in the results of tools. Conversations are sent
whole and are not stored by the endpoint (``store`` is false), so that a run does not depend on its state.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import exp, isfinite
from typing import Any, NamedTuple

import orjson

from agrotools.core import InfrastructureError, ToolSpec, Usage
from agrotools.core.frozen_model import from_valid
from agrotools.core.texts import without_surrogates
from agrotools.models.base import (
    Completion,
    FinishReason,
    ImagePart,
    Message,
    ModelSettings,
    RequestedCall,
    RequestEncoder,
    WireStats,
    json_bytes,
    prompt_length,
)
from agrotools.models.refusals import NO_REQUEST, Rejection, RequestParts, one_line, read_error

_UNREAD_CALLS = ("malformed_function_call", "unexpected_tool_call", "function_call_filter")
"""Finish reasons of replies with a call that the server could not read: an error of the model."""
_FINISH_REASONS: dict[str, FinishReason] = {
    **dict.fromkeys(
        ("stop", "stop_sequence", "end_turn", "eos", "eos_token", "complete", "completed"), "stop"
    ),
    **dict.fromkeys(_UNREAD_CALLS, "stop"),
    **dict.fromkeys(("tool_calls", "tool_call", "function_call", "tool_use"), "tool_calls"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "length"),
    "model_context_window_exceeded": "length",
    **dict.fromkeys(
        ("content_filter", "safety", "image_safety", "sensitive", "prohibited_content"), "filtered"
    ),
    **dict.fromkeys(("blocklist", "recitation", "spii", "refusal", "error_toxic"), "filtered"),
}
MOST_TOKENS = 10**12
"""Counts of tokens above this are errors of the server, and are read as none."""
_BROKEN_OFF = frozenset(
    "insufficient_system_resource network_error error internal_error upstream_error error_limit abort aborted cancel "
    "cancelled canceled timeout overloaded unavailable load unload".split()
)
"""Finish reasons of replies that the server interrupted; their content is incomplete."""


class MalformedReply(ValueError):
    """A response with a success status but no complete chat completion. ``passing``: a retry may succeed."""

    def __init__(self, message: str, *, passing: bool = True) -> None:
        super().__init__(message)
        self.passing = passing


def read_reply(
    body: bytes, *, seconds: float = 0.0, attempts: int = 1, request: RequestParts = NO_REQUEST
) -> Completion | Rejection:
    """Parse the body of a successful response, which on some gateways may be an error.

    ``seconds`` and ``attempts`` are copied to the completion.

    Raises:
        MalformedReply: the body is not JSON, not a chat completion, or was interrupted by the server.
    """
    data = _json(body)
    if not isinstance(data, dict):
        raise MalformedReply("the reply is not a JSON object")
    if _says_something(data.get("error")):
        return read_error(_status_of(data["error"]), body, request)
    usage = read_usage(data.get("usage"), data.get("timings"))
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        if _blocked(data):
            return Completion(
                finish_reason="filtered",
                detail="the prompt was blocked",
                usage=usage,
                seconds=seconds,
                attempts=attempts,
            )
        if any(data.get(key) for key in ("base_resp", "error_msg", "message", "msg", "detail")):
            return read_error(200, body, request)
        raise MalformedReply("the reply has no choices")
    choice = choices[0]
    error = choice.get("error")
    if _says_something(error):
        return read_error(_status_of(error), orjson.dumps({"error": error}), request)
    reason, server_reason = _finish_reason(choice)
    message = _message_of(choice, reason)
    calls = _requested_calls(message)
    fields = {
        "text": content_text(message.get("content")) or _text(message.get("refusal")),
        "tool_calls": calls,
        "usage": usage,
        "finish_reason": reason or ("tool_calls" if calls else "stop"),
        "thought": _text(message.get("reasoning_content")) or _text(message.get("reasoning")),
        "first_token": _first_token(choice.get("logprobs")),
        "detail": _unread_call_text(server_reason),
        "seconds": seconds,
        "attempts": attempts,
        "cached": False,
        "received": _received(message),
        "served": _served(data),
    }
    completion = from_valid(Completion, fields)
    _check_something_came(completion, server_reason, counted=isinstance(data.get("usage"), dict))
    return completion


def _message_of(choice: Mapping[str, Any], reason: str | None) -> dict[str, Any]:
    """Return the message of a choice; empty if the choice ended before there was any.

    Raises:
        MalformedReply: there is no message, or it is one of those that were sent.
    """
    message = choice.get("message")
    if message is None and reason in ("length", "filtered"):
        return {}
    if not isinstance(message, dict):
        is_without_chat = isinstance(choice.get("text"), str)
        text = ", but a text as of a completion without chat" if is_without_chat else ""
        raise MalformedReply(f"the first choice has no message{text}")
    if message.get("role") in ("user", "system"):
        raise MalformedReply("the message is one of those that were sent, not a reply")
    return message


def _received(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a message that hold something, as they came, and its content in any case."""
    received: dict[str, Any] = {"content": None}
    for key, value in message.items():
        if key != "role" and value not in (None, []):
            received[key] = value
    return received


_MOST_OF_SERVED = 200
"""Most characters that are kept of what a server says of itself."""


def _served(data: Mapping[str, Any]) -> dict[str, str]:
    """Return what a server says of the model that answered."""
    names = ("model", "provider", "system_fingerprint")
    return {name: str(data[name])[:_MOST_OF_SERVED] for name in names if data.get(name)}


def _says_something(error: Any) -> bool:
    return any(error.values()) if isinstance(error, dict) else bool(error)


def _status_of(error: Any) -> int:
    """Return the HTTP status of an error in the body of a success; 200 if it has none."""
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and code.isdecimal():
        code = int(code)
    return code if isinstance(code, int) and 400 <= code < 600 else 200


def _finish_reason(choice: dict[str, Any]) -> tuple[FinishReason | None, str]:
    """Return the finish reason (None if there is none) and the server's word for it."""
    server_reason = choice.get("finish_reason")
    if isinstance(server_reason, dict):
        server_reason = server_reason.get("type")
    fields = choice.get("provider_specific_fields")
    behind = choice.get("native_finish_reason") or (
        fields.get("native_finish_reason") if isinstance(fields, dict) else ""
    )
    for word in (server_reason, behind):
        # Some gateways report a stop although their upstream interrupted the reply.
        if str(word or "").strip().lower() in _BROKEN_OFF:
            raise MalformedReply(f"the endpoint broke the reply off: finish reason {word!r}")
    if server_reason is None or server_reason == "":
        return None, ""
    reason = _FINISH_REASONS.get(_reason_word(server_reason))
    if reason is None:
        raise MalformedReply(
            f"the reply ends for a reason that is not known: {server_reason!r}", passing=False
        )
    return reason, str(server_reason)


def _reason_word(server_reason: object) -> str:
    return str(server_reason).strip().lower().partition(":")[0]


def _unread_call_text(server_reason: str) -> str:
    """Return that the server could not read a call, with its finish reason; empty if it does not say so."""
    if _reason_word(server_reason) not in _UNREAD_CALLS:
        return ""
    return f"the endpoint could not read a call, finish reason {server_reason}"


def _check_something_came(completion: Completion, server_reason: str, *, counted: bool) -> None:
    """Reject an empty reply (MalformedReply), unless the server indicates that the model ended this way."""
    if (
        completion.text
        or completion.tool_calls
        or completion.finish_reason in ("length", "filtered")
    ):
        return
    if completion.finish_reason == "tool_calls":
        raise MalformedReply(f"the reply ends with {server_reason!r} and has no call")
    if not server_reason and not completion.thought:
        raise MalformedReply("the reply has neither text nor call nor a finish reason")
    if counted and completion.usage == Usage() and not completion.thought:
        raise MalformedReply("the reply is empty, and no token of it or of the prompt is counted")


def _first_token(logprobs: Any) -> dict[str, float]:
    """Return the probabilities of the alternatives for the first token; empty if not in the documented form."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    first = content[0] if isinstance(content, list) and content else None
    alternatives = first.get("top_logprobs") if isinstance(first, dict) else None
    probabilities: dict[str, float] = {}
    for entry in alternatives if isinstance(alternatives, list) else []:
        token, logprob = (
            (entry.get("token"), entry.get("logprob")) if isinstance(entry, dict) else (None, None)
        )
        if (
            isinstance(token, str)
            and isinstance(logprob, int | float)
            and isfinite(logprob)
            and logprob <= 0.0
        ):
            probabilities[token] = probabilities.get(token, 0.0) + exp(logprob)
    return probabilities


def _json(body: bytes) -> Any:
    with suppress(orjson.JSONDecodeError):
        return orjson.loads(body)
    try:
        # orjson refuses lone surrogates and NaN, which Python servers do send.
        return without_surrogates(json.loads(body))
    except (ValueError, RecursionError) as error:
        raise MalformedReply(
            f"the reply is not JSON: {body[:2000].decode(errors='replace')}"
        ) from error


def content_text(content: Any) -> str:
    """Return the content of a message as text; MalformedReply if it is neither a string nor a list of parts."""
    parts = content if isinstance(content, list) else [content]
    if content is None or (
        all(isinstance(part, str | dict) for part in parts) and not isinstance(content, dict)
    ):
        return _text(content)
    raise MalformedReply(f"the content of the message is no text: {type(content).__name__}")


def _text(content: Any) -> str:
    """Return a string, or a list of parts (sent by some servers), as text; empty for any other value."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in content]
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _requested_calls(message: dict[str, Any]) -> tuple[RequestedCall, ...]:
    listed = message.get("tool_calls") or []
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise MalformedReply("the calls of the message are not a list of calls")
    legacy = message.get("function_call")
    if not listed and isinstance(legacy, dict):
        listed = [{"function": legacy}]
    calls: list[RequestedCall] = []
    for entry in listed:
        function = entry.get("function")
        if not isinstance(function, dict):
            function = entry
        name = function.get("name")
        if not isinstance(name, str):
            # The model may have written an empty name; a missing name is a server error.
            raise MalformedReply("a call of the message has no name")
        arguments = function.get("arguments")
        calls.append(
            RequestedCall(
                name=name,
                # Some servers send an object instead of a JSON string.
                arguments=arguments
                if isinstance(arguments, str)
                else json.dumps(arguments, ensure_ascii=False),
                id=str(entry.get("id") or ""),
            )
        )
    return tuple(calls)


def read_usage(usage: Any, timings: Any = None) -> Usage:
    """Return the counts of tokens that a server states; zero where it states none."""
    if not isinstance(usage, dict):
        return Usage()
    sent = _count(usage.get("prompt_tokens"))
    received = _count(usage.get("completion_tokens"))
    # Gemini and xAI bill reasoning as output but include it only in the total.
    thought = _count(usage.get("total_tokens")) - sent if sent else 0
    cached = _cached(usage, timings) if sent else None
    counts = {"input_tokens": sent, "output_tokens": max(received, thought)}
    fields = {
        **counts,
        "cached_input_tokens": None if cached is None else min(cached, sent),
        "cost_usd": None,
    }
    return from_valid(Usage, fields)


def _cached(usage: dict[str, Any], timings: Any) -> int | None:
    """Return the prompt tokens from a cache, by the first name that the server uses; None if it uses none."""
    for fields, name in (
        (
            usage.get("prompt_tokens_details"),
            "cached_tokens",
        ),  # OpenAI, vLLM, SGLang, OpenRouter, Gemini
        (usage, "prompt_cache_hit_tokens"),  # DeepSeek
        (usage, "cached_tokens"),  # Moonshot
        (usage, "cache_read_input_tokens"),  # Anthropic behind gateways
        (timings, "cache_n"),  # llama.cpp
    ):
        if isinstance(fields, dict) and isinstance(fields.get(name), int | float):
            return _count(fields[name])
    return None


def _count(count: Any) -> int:
    is_number = type(count) is int or (isinstance(count, float) and isfinite(count))
    return int(count) if is_number and 0 < count <= MOST_TOKENS else 0


def _blocked(data: dict[str, Any]) -> bool:
    """True if a reply without choices indicates that the prompt was filtered (Azure, Gemini)."""
    feedback = data.get("promptFeedback") or data.get("prompt_feedback")
    return bool(data.get("prompt_filter_results")) or (
        isinstance(feedback, dict) and "blockReason" in feedback
    )


_QUANTISATION = (
    r"[-_.:@](?:i?q\d\w*|(?:b|f|fp|int|nf)\d{1,2}\w*|awq|gptq|gguf|mlx|latest|free)(?=$|[-_.:@])"
)
_VERSION = re.compile(r"[-_.:@](?:v?\d[\d.-]*|preview[\w.-]*|exp[\w.-]*)")
_MOST_NAMES = 20
_MOST_CHARACTERS_PER_TOKEN = 10
"""No tokenizer reads more of a prompt with one token, on average: English text has 4 to 5, JSON 2 to 3."""
_FEWEST_TOKENS = 256
"""Smaller counts are no context length: the server does not count."""
_LEAST_GROWTH, _LEAST_SHARE = 400, 0.25
"""Characters, and share of a prompt, by which a longer one must have more tokens, even with another tokenizer."""


def note_served(stats: WireStats, base_url: str, asked: str, completion: Completion) -> None:
    """Record what a reply says about its origin, and warn if another model than ``asked`` wrote it."""
    for kind, name in completion.served.items():
        other = kind == "model" and not is_same_model(asked, name)
        note(
            stats,
            kind,
            name,
            f"{base_url} was asked for {asked} and answers as {name}" if other else "",
        )


def note(stats: WireStats, kind: str, name: str, warning: str) -> None:
    """Record a name, with a warning if it is new."""
    names = stats.served.setdefault(kind, [])
    if name not in names and len(names) < _MOST_NAMES:
        names.append(name)
        stats.warnings += [f"warning: {one_line(warning)}"] if warning else []


def is_same_model(asked: str, served: str) -> bool:
    """True if both names may be of one model: dates, versions, folders, providers and quantisations may differ."""
    one, other = sorted((_plain(asked), _plain(served)), key=len)
    return one == other or (other.startswith(one) and bool(_VERSION.fullmatch(other, len(one))))


def _plain(name: str) -> str:
    name = re.split(r"[/\\]", name.strip().lower().removesuffix(".gguf"))[-1]
    return re.sub(_QUANTISATION, "", re.sub(_QUANTISATION, "", name))


class PromptCount(NamedTuple):
    """Length of a prompt in tokens, as the endpoint counts them (0: it does not), and in characters.

    ``thinking``: characters of earlier reasoning in it, which servers leave out of later prompts.
    """

    tokens: int
    characters: int
    images: int
    thinking: int


def count_prompt(messages: Sequence[Message], completion: Completion) -> PromptCount:
    """Return the length of the prompt that was answered with ``completion``; images have no characters."""
    received = [message.received for message in messages if message.received]
    beside = [
        each[name] for each in received for name in each if name not in ("content", "tool_calls")
    ]
    inline = sum(len(message.text) for message in messages if "</think" in message.text)
    return PromptCount(
        completion.usage.input_tokens, *prompt_length(messages), len(json_bytes(beside)) + inline
    )


def check_prompt(counts: Sequence[PromptCount]) -> None:
    """Raise an InfrastructureError if the counts of a conversation show that its last prompt was cut."""
    tokens, characters, _, thinking = counts[-1]
    cut = ""
    if characters - thinking > _MOST_CHARACTERS_PER_TOKEN * tokens:
        cut = f"{characters:,} characters are counted as {tokens:,} tokens"
    for before in counts[:-1]:
        least = max(_LEAST_GROWTH, _LEAST_SHARE * before.characters) + 4 * thinking
        if tokens <= before.tokens and characters - before.characters > least:
            cut = f"it grew from {before.characters:,} to {characters:,} characters, and stays at {tokens:,} tokens"
    if cut and tokens >= _FEWEST_TOKENS:
        raise InfrastructureError(
            f"the endpoint cut the prompt: {cut}",
            hint="serve the model with a longer context; Ollama cuts at OLLAMA_CONTEXT_LENGTH, e.g. 32768",
            problem="request",
        )


SUFFIX = "/responses"
"""End of the addresses of this API."""
_FINISHED = {"max_output_tokens": "length", "content_filter": "content_filter"}


class ResponsesEncoder(RequestEncoder):
    """Encoder of the requests of one model in the Responses format, which has no seed."""

    def encode(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> bytes:
        """Return the JSON body of a request."""
        messages = self.adapt(messages) if self.adapt else messages
        body: dict[str, Any] = {
            "model": self._model,
            "input": [item for message in messages for item in input_items(message)],
            "store": False,
        }
        if tools:
            body["tools"] = [
                {"type": "function", **spec.offered(), "strict": False} for spec in tools
            ]
        for name in ("temperature", "max_output_tokens"):
            if (value := getattr(settings, name)) is not None and self.spelled(name) is not None:
                body[name] = value
        if settings.top_logprobs is not None:
            body |= {
                "top_logprobs": settings.top_logprobs,
                "include": ["message.output_text.logprobs"],
            }
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
        parts = [_part(part, "input_text") for part in message.content]
        output = parts if message.has_images else message.text
        return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": output}]
    kind = "output_text" if message.role == "assistant" else "input_text"
    content = [_part(part, kind) for part in message.content]
    items: list[dict[str, Any]] = [{"role": message.role, "content": content}] if content else []
    return items + [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
        }
        for call in message.tool_calls
    ]


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
    parts: list[dict[str, Any]] = []
    thoughts: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for item in _dicts(output):
        kind = item.get("type")
        if kind == "message":
            parts += _dicts(item.get("content"))
        elif kind == "reasoning":
            thoughts += _dicts(item.get("summary"))
        elif kind == "function_call":
            called = {"name": item.get("name"), "arguments": item.get("arguments")}
            calls.append({"id": item.get("call_id"), "function": called})
    logprobs = [part["logprobs"] for part in parts if isinstance(part.get("logprobs"), list)]
    first_logprobs = logprobs[0] if logprobs else None
    message = {
        "role": "assistant",
        "content": "".join(str(part.get("text") or "") for part in parts) or None,
        "refusal": "".join(str(part.get("refusal") or "") for part in parts),
        "tool_calls": calls,
        "reasoning": "\n".join(str(part.get("text") or "") for part in thoughts),
    }
    choice = {
        "message": message,
        "finish_reason": _reason_in_responses(data, bool(calls)),
        "logprobs": {"content": first_logprobs} if first_logprobs else None,
    }
    return orjson.dumps(
        {
            "error": data.get("error"),
            "choices": [choice],
            "usage": _usage_as_of_chat(data.get("usage")),
            "model": data.get("model"),
        }
    )


def _usage_as_of_chat(usage: Any) -> Any:
    """Return the counts of a response by their names in a chat completion."""
    if not isinstance(usage, dict):
        return None
    if not usage:
        return usage
    return {
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "total_tokens": usage.get("total_tokens"),
        "prompt_tokens_details": usage.get("input_tokens_details"),
    }


def _reason_in_responses(data: Mapping[str, Any], has_calls: bool) -> str:
    if data.get("status") == "incomplete":
        details = data.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        return _FINISHED.get(str(reason), str(reason))
    if data.get("status") in ("failed", "cancelled"):
        return "error"
    return "tool_calls" if has_calls else "stop"


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
