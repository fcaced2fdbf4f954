"""Endpoints of three vendors on this machine, which take and refuse requests as the vendors document it.

A vendor is an address (``.../openai/v1``). Each answers by the number of the plot that a question is about, after the
checks and the passing errors of its documentation or of replies that somebody posted. Sources:

* OpenAI: reasoning models refuse ``max_tokens`` (https://github.com/fish2018/YPrompt/issues/26) and a temperature
  (https://github.com/johny-b/llmcomp/issues/69); a refusal stands in ``refusal``; a reply whose reasoning takes all
  tokens is empty.
* Gemini, OpenAI compatibility: errors are a list with one object; calls carry a signature that must come back
  (https://github.com/0xsline/OpenChatCut/issues/6); ``seed`` is unknown; 503 if overloaded.
* Claude, OpenAI SDK compatibility (https://platform.claude.com/docs/en/api/openai-sdk): ``seed`` and
  ``response_format`` are ignored, newer models refuse a temperature; 529 if overloaded, 429 with ``retry-after``.
"""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any

from aiohttp import web

from support.fault_server import Body, beside
from support.openai_server import is_first_contact, text_of

KEYS = {
    "openai": "sk-of-openai-0123456789",
    "gemini": "key-of-gemini-0123456789",
    "anthropic": "sk-ant-0123456789abcdef",
}
REFUSED, FILTERED, EMPTY = 2, 3, 4
"""Numbers of the questions that are refused in words, filtered, and answered with nothing but reasoning."""
SIGNATURE = {"google": {"thought_signature": "c2lnbmF0dXJl"}}


class Vendors:
    """State of the three endpoints: what they were asked, and which errors they gave."""

    def __init__(self) -> None:
        self.base_url = ""
        self.asked = Counter[str]()
        self.errors = Counter[tuple[str, int]]()

    async def answer(self, request: web.Request) -> web.Response:
        vendor, body = request.match_info["vendor"], await request.json()
        if request.headers.get("Authorization") != f"Bearer {KEYS[vendor]}":
            return self._error(vendor, 401, "invalid API key")
        refusal = _REFUSALS[vendor](body)
        if refusal:
            return self._error(vendor, 400, refusal)
        if is_first_contact(body):
            return _reply({"content": "yes"}, "stop")
        self.asked[vendor] += 1
        passing = _PASSING[vendor].get(self.asked[vendor])
        if passing:
            status, message, headers = passing
            return self._error(vendor, status, message, headers)
        return _answer(vendor, body)

    def _error(
        self, vendor: str, status: int, message: str, headers: dict[str, str] | None = None
    ) -> web.Response:
        self.errors[vendor, status] += 1
        name = _NAMES[vendor].get(status, "invalid_request_error")
        bodies: dict[str, Any] = {
            "openai": {"error": {"message": message, "type": name, "param": None, "code": None}},
            "gemini": [{"error": {"code": status, "message": message, "status": name}}],
            "anthropic": {"type": "error", "error": {"type": name, "message": message}},
        }
        return web.json_response(bodies[vendor], status=status, headers=headers)


_NAMES = {
    "openai": {429: "tokens"},
    "gemini": {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"},
    "anthropic": {429: "rate_limit_error", 529: "overloaded_error"},
}
"""Names of errors by status, where they are not ``invalid_request_error``."""
_SOON = {"retry-after": "0"}
_OVER_LIMIT = "Rate limit reached for gpt on tokens per min (TPM). Please try again in 6ms."
_PASSING: dict[str, dict[int, tuple[int, str, dict[str, str]]]] = {
    "openai": {2: (429, _OVER_LIMIT, {"retry-after-ms": "6"})},
    "gemini": {
        2: (503, "The model is overloaded. Please try again later.", {}),
        4: (429, "Resource has been exhausted (e.g. check quota).", _SOON),
    },
    "anthropic": {
        2: (529, "Overloaded", {}),
        4: (429, "This request would exceed your organization's rate limit.", _SOON),
    },
}
"""Errors that pass, by the number of the request that meets them."""


def _openai(body: Body) -> str:
    if "max_tokens" in body:
        return (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead."
        )
    if body.get("temperature", 1) != 1:
        return (
            f"Unsupported value: 'temperature' does not support {body['temperature']} with this model. "
            "Only the default (1) value is supported."
        )
    asked, given = set[str](), set[str]()
    for message in body["messages"]:
        asked |= {call["id"] for call in message.get("tool_calls") or ()}
        given |= {message["tool_call_id"]} if message["role"] == "tool" else set()
    if asked != given:
        return (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to "
            "each 'tool_call_id'."
        )
    return ""


def _gemini(body: Body) -> str:
    for name in ("seed", "logprobs"):
        if name in body:
            return f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
    calls = [call for message in body["messages"] for call in message.get("tool_calls") or ()]
    if any(call.get("extra_content") != SIGNATURE for call in calls):
        return (
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
            "correctly, and missing thought_signature may lead to degraded model performance."
        )
    return ""


def _anthropic(body: Body) -> str:
    if "temperature" in body:
        return "`temperature` is deprecated for this model."
    return (
        ""
        if body.get("max_tokens") or body.get("max_completion_tokens")
        else "max_tokens: Field required"
    )


_REFUSALS: dict[str, Callable[[Body], str]] = {
    "openai": _openai,
    "gemini": _gemini,
    "anthropic": _anthropic,
}


def _answer(vendor: str, body: Body) -> web.Response:
    """The answer to "... plot N?": a call of the calculator first, if tools are offered, then the right value."""
    found = re.search(r"plot (\d+)\?", text_of(body["messages"][1]))
    assert found is not None
    number = int(found[1])
    if vendor == "openai" and number == REFUSED:
        return _reply(
            {"content": None, "refusal": "I'm sorry, but I can't help with that."}, "stop"
        )
    if vendor == "openai" and number == EMPTY:
        return _reply({"content": ""}, "length")
    if vendor != "openai" and number == FILTERED:
        return _reply({"content": None}, "content_filter")
    has_result = any(message["role"] == "tool" for message in body["messages"])
    if not body.get("tools") or has_result:
        return _reply({"content": f"value: {number} t/ha"}, "stop")
    arguments = json.dumps({"expression": "(a + b) / 2", "variables": {"a": number, "b": number}})
    call: Body = {
        "id": {"openai": "call_abc", "gemini": "function-call-1", "anthropic": "toolu_01A"}[vendor],
        "type": "function",
        "function": {"name": "calculate", "arguments": arguments},
    }
    if vendor == "gemini":
        call["extra_content"] = SIGNATURE
    content = "I calculate the mean." if vendor == "anthropic" else None
    return _reply({"content": content, "tool_calls": [call]}, "tool_calls")


def _reply(message: Body, finish_reason: str) -> web.Response:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}  # fmt: skip
    usage = {
        "prompt_tokens": 900,
        "completion_tokens": 4096 if finish_reason == "length" else 40,
        "prompt_tokens_details": {"cached_tokens": 512},
        "completion_tokens_details": {"reasoning_tokens": 20},
    }
    return web.json_response(
        {"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}
    )


@asynccontextmanager
async def serve_vendors() -> AsyncIterator[Vendors]:
    """Serve the three vendors at ``<base_url>/VENDOR/v1/chat/completions`` until the block ends."""
    vendors = Vendors()
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/{vendor}/v1/chat/completions", vendors.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        vendors.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield vendors
    finally:
        await runner.cleanup()


def serving_vendors() -> AbstractContextManager[Vendors]:
    """:func:`serve_vendors` in a thread of its own."""
    return beside(serve_vendors())
