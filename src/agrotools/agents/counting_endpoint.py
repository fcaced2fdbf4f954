"""Endpoint that counts an agent's requests to a model: an OpenAI-compatible server on 127.0.0.1.

The agent gets the address and, for each sample, a token; the key of the model stays here. A request is sent on if its
highest cost is within the budget of the run, and its reply is charged, recorded with the sample and passed back,
streamed if the agent asked for that. ``/chat/completions`` and ``/responses`` are served.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, cast

import aiohttp
import orjson

from agrotools.agents.llm import raw_reply
from agrotools.agents.task import ToolDescription, UsageReport
from agrotools.core import (
    AgrotoolsError,
    BudgetReached,
    EndpointRefusal,
    ToolSpec,
    Usage,
    UsageError,
)
from agrotools.models import Completion, Endpoint, ImagePart, Message, RequestedCall, TextPart
from agrotools.models.base import ContentPart, Role, image_urls, json_bytes
from agrotools.models.chat_format import MOST_TOKENS, SUFFIX, MalformedReply, as_chat, read_reply
from agrotools.models.endpoint import address_of, check_model_name, price_at, split_provider
from agrotools.models.metered import BUDGET_HINT, DEFAULT_OUTPUT_TOKENS, charged
from agrotools.models.transport import Transport

if TYPE_CHECKING:
    from aiohttp import web

    from agrotools.agents.usage import SampleUsage

_CHAT = "/chat/completions"
_LIMITS: Mapping[str, Sequence[str]] = {
    _CHAT: ("max_completion_tokens", "max_tokens"),
    SUFFIX: ("max_output_tokens",),
}
"""Keys that limit the length of a reply. Those of the other format have no effect, and are not sent."""
_NOT_SENT = frozenset((*_LIMITS[_CHAT], *_LIMITS[SUFFIX], "models", "service_tier"))
"""Keys that are not sent unless they limit the reply: other limits, and those that change model or price."""
_LARGEST_REQUEST = 64 * 2**20
_LAST_REPLIES_S = 10.0
"""Seconds that replies which are under way may take after the end of their sample."""
_TEMPLATE_TOKENS = 2048
"""Input tokens beyond the bytes of a request: templates of messages and tools."""
_EVENT_END = re.compile(rb"(?<=\n\n)|(?<=\r\n\r\n)")
_ROLES: Mapping[str, Role] = {
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
}


@dataclass
class _Request:
    """A request as it is sent on."""

    sample: "SampleUsage"
    path: str
    content: bytes
    streams: bool
    hides_usage: bool
    """True if the agent did not ask for the usage in the stream, which we did."""
    bound: Usage
    began: float
    is_charged: bool = False


class CountingEndpoint:
    """Server for the agents of a run, started with the first sample.

    Args:
        endpoint: model, address, key, price and budget.

    Raises:
        UsageError: the model has no address or key, or there is a budget and its price is unknown.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        check_model_name(endpoint.model)
        if not endpoint.model.strip() or endpoint.model.startswith(("scripted:", "baseline:")):
            raise UsageError(
                f"--agent-model {endpoint.model or '(empty)'} has no endpoint",
                hint="give PROVIDER:NAME, or a name at --agent-base-url",
            )
        provider, self.model = split_provider(endpoint.model, endpoint.base_url)
        self.name = endpoint.model
        self._address = address_of(self.model, provider, endpoint.base_url, endpoint.api_key_env)
        self.price = price_at(self._address.base_url, endpoint.model, endpoint)
        base = self._address.base_url.removesuffix(SUFFIX)
        self._upstream = {
            path: Transport(base + path, self._address.headers, endpoint.wire)
            for path in (_CHAT, SUFFIX)
        }
        self.samples: dict[str, SampleUsage] = {}
        """Running samples by token. A process that serves several samples one after another may add a token."""
        self._ended: set[str] = set()
        self._open: dict[asyncio.Task[Any], tuple[SampleUsage, bool]] = {}
        """Requests without a whole reply, with their samples, and True for those that were sent on."""
        self._runner: web.AppRunner | None = None
        self._starting = asyncio.Lock()
        self._hosts: list[str] = []

    async def begin(self, sample: "SampleUsage") -> dict[str, str]:
        """Return address, token (``key``) and model for a sample."""
        async with self._starting:
            if self._runner is None:
                await self._start()
        token = token_urlsafe(24)
        self.samples[token] = sample
        return {"url": f"http://{self._hosts[0]}/v1", "key": token, "model": self.model}

    def end(self, sample: "SampleUsage") -> None:
        """Refuse further requests for a sample."""
        for token in [token for token, each in self.samples.items() if each is sample]:
            del self.samples[token]
            self._ended.add(token)

    async def settle(self, sample: "SampleUsage") -> None:
        """Wait for the last replies to a sample that has ended; later ones are charged at the most that they can cost.

        An agent may answer, or be stopped, while its requests are processed and paid.
        """
        is_sent = {task: sent for task, (each, sent) in self._open.items() if each is sample}
        for task in [task for task, sent in is_sent.items() if not sent]:
            task.cancel()
        running = asyncio.current_task()
        is_stopped = running is not None and running.cancelling() > 0
        for patience_s in (0.0 if is_stopped else _LAST_REPLIES_S, 1.0):
            if is_sent:
                await asyncio.wait(is_sent, timeout=patience_s)
            for task in is_sent:
                task.cancel()

    async def close(self) -> None:
        """End the server and its connections."""
        runner = self._runner
        self._runner = None
        if runner is not None:
            await runner.cleanup()
        for transport in self._upstream.values():
            await transport.close()

    async def _start(self) -> None:
        from aiohttp import web

        app = web.Application(client_max_size=_LARGEST_REQUEST)
        for path in self._upstream:
            app.router.add_post(f"/v1{path}", self._answer)
        app.router.add_get("/v1/models", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        port = self._runner.addresses[0][1]
        self._hosts = [f"127.0.0.1:{port}", f"localhost:{port}"]

    async def _answer(self, request: "web.Request") -> "web.StreamResponse":
        """Answer a request of an agent: refuse it, or send it on if the budget holds its highest cost."""
        if request.host not in self._hosts:
            return _error(HTTPStatus.FORBIDDEN, "this host name is not served")
        token = request.headers.get("authorization", "").partition(" ")[2].strip()
        sample = self.samples.get(token)
        if sample is None:
            return self._no_sample(token)
        if request.method == "GET":
            return self._models()
        try:
            body = orjson.loads(await request.read())
            messages, tools = sample.messages_of(body)
            sent = self._request(sample, request.path.removeprefix("/v1"), body, messages)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            reason = _why_unreadable(error)
            return _error(HTTPStatus.BAD_REQUEST, f"the request cannot be read: {reason}")
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = (sample, False)
        try:
            reserved_usd = await self._reserve(sent)
            try:
                self._open[task] = (sample, True)
                sample.requests.append((messages, cast("Sequence[ToolSpec]", tools)))
                return await self._send_on(sent, request)
            finally:
                self._release(sample, reserved_usd)
        except AgrotoolsError as error:
            sample.fail(error)
            code = "budget_reached" if isinstance(error, BudgetReached) else "run_ended"
            return _error(HTTPStatus.TOO_MANY_REQUESTS, f"the run ends: {error}", code)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return _error(
                HTTPStatus.BAD_GATEWAY,
                f"the model's endpoint does not answer: {type(error).__name__}",
            )
        finally:
            del self._open[task]

    def _no_sample(self, token: str) -> "web.Response":
        if token in self._ended:
            return _error(
                HTTPStatus.TOO_MANY_REQUESTS, "the sample of this key has ended", "sample_ended"
            )
        return _error(
            HTTPStatus.UNAUTHORIZED, "the key is not that of a running sample", "invalid_api_key"
        )

    def _models(self) -> "web.Response":
        from aiohttp import web

        model = {"id": self.model, "object": "model"}
        return web.json_response({"object": "list", "data": [model]})

    async def _reserve(self, sent: _Request) -> float | None:
        """Reserve the highest cost of a request; None if there is no budget, or no price to compare with it."""
        meter, price = sent.sample.meter, self.price
        if meter.budget is None or price is None:
            return None
        bound = sent.bound
        return await meter.budget.reserve(
            lambda: price.usd(bound.input_tokens, bound.output_tokens), meter.stats
        )

    def _release(self, sample: "SampleUsage", reserved_usd: float | None) -> None:
        budget = sample.meter.budget
        if budget is not None and reserved_usd is not None:
            budget.release(reserved_usd)

    def _request(
        self, sample: "SampleUsage", path: str, body: dict[str, Any], messages: Sequence[Message]
    ) -> _Request:
        """Return the request to send on, with the most that it can use; ValueError if that is not known."""
        if body.get("background"):
            raise ValueError("background: the cost of such replies is not known when they begin")
        limits = [_whole(body, name) for name in _LIMITS[path]]
        n_replies = _whole(body, "n") or 1
        sent = {
            name: value
            for name, value in body.items()
            if name not in _NOT_SENT or name in _LIMITS[path]
        }
        sent["model"] = self.model
        streams = bool(body.get("stream"))
        hides_usage = False
        if streams and path == _CHAT:
            options = body.get("stream_options") or {}
            hides_usage = not options.get("include_usage")
            sent["stream_options"] = {**options, "include_usage": True}
        content = json_bytes(sent)
        longest_reply = max(filter(None, limits), default=DEFAULT_OUTPUT_TOKENS)
        bound = Usage(
            input_tokens=self._most_input_tokens(content, image_urls(messages)),
            output_tokens=min(longest_reply * n_replies, MOST_TOKENS),
        )
        return _Request(sample, path, content, streams, hides_usage, bound, time.monotonic())

    def _most_input_tokens(self, content: bytes, images: Sequence[str]) -> int:
        """Return the most tokens of a request: one for each byte of text, and the highest number for each image."""
        text_bytes = len(content) - sum(map(len, images))
        most_of_image = self.price.image_tokens[1] if self.price else 0
        return text_bytes + len(images) * most_of_image + _TEMPLATE_TOKENS

    async def _send_on(self, sent: _Request, request: "web.Request") -> "web.StreamResponse":
        """Send a request on and pass the reply back. A request that breaks off is charged: it may have been processed.

        Raises:
            EndpointRefusal: the endpoint refuses the key of the model.
        """
        try:
            async with self._upstream[sent.path].request(sent.content) as reply:
                is_error = reply.status >= HTTPStatus.BAD_REQUEST
                if sent.streams and not is_error:
                    return await self._pass_stream(sent, request, reply)
                return await self._pass_whole(sent, reply)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            raise  # nothing was sent
        except (asyncio.CancelledError, aiohttp.ClientError, OSError, TimeoutError):
            self._charge(sent, b"")
            raise

    async def _pass_whole(self, sent: _Request, reply: aiohttp.ClientResponse) -> "web.Response":
        """Return a reply that came in one piece; one without an error is charged."""
        from aiohttp import web

        body = self._without_key(await reply.read())
        if reply.status < HTTPStatus.BAD_REQUEST:
            self._charge(sent, body)
        elif reply.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise EndpointRefusal(
                f"{self._address.base_url} refuses the key of --agent-model",
                problem="key",
                hint=f"set {self._address.key_env}" if self._address.key_env else None,
            )
        headers: dict[str, str] = {}
        if "Retry-After" in reply.headers:
            headers["Retry-After"] = reply.headers["Retry-After"]
        return web.Response(
            status=reply.status, body=body, content_type="application/json", headers=headers
        )

    async def _pass_stream(
        self, sent: _Request, request: "web.Request", reply: aiohttp.ClientResponse
    ) -> "web.StreamResponse":
        """Pass a stream back, event by event. It is paid for and read to its end, also if the agent has gone."""
        from aiohttp import web

        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        )
        await response.prepare(request)
        stream = _Stream()
        try:
            async for received in _events(reply.content):
                event = self._without_key(received)
                is_shown = stream.add(event) or not sent.hides_usage
                if stream.has_ended:
                    # Before the agent sees the end, and answers.
                    self._charge(sent, stream.body())
                if is_shown:
                    with suppress(ConnectionError):
                        await response.write(event)
        finally:
            self._charge(sent, stream.body())
        with suppress(ConnectionError):
            await response.write_eof()
        return response

    def _without_key(self, body: bytes) -> bytes:
        """Return a reply without the key of the model, which some servers repeat."""
        secret = self._address.secret.encode()
        return body.replace(secret, b"[key]") if secret else body

    def _charge(self, sent: _Request, body: bytes) -> None:
        """Charge and record a reply, once; one without a count of its tokens at the most that it can have used."""
        if sent.is_charged:
            return
        sent.is_charged = True
        body = self._without_key(body)  # in a stream, the key may come in parts
        seconds = time.monotonic() - sent.began
        try:
            completion = read_reply(as_chat(body), seconds=seconds)
        except MalformedReply:
            completion = Completion(seconds=seconds)
        if not isinstance(completion, Completion):
            return  # an error with a status of success
        used = charged(completion, sent.bound)
        cost = self.price.usd(used.input_tokens, used.output_tokens) if self.price else None
        usage = used.model_copy(update={"cost_usd": cost})
        recorded = raw_reply(completion).model_copy(update={"usage": usage})
        sample = sent.sample
        sample.replies = (*sample.replies, recorded)
        # Not checked: the highest cost of an absurd limit is more than an agent may report.
        tokens = usage.model_dump(exclude={"cost_usd"})
        sample.meter.pay(UsageReport.model_construct(**tokens, cost_usd=cost))
        _end_if_overspent(sample)


def _end_if_overspent(sample: "SampleUsage") -> None:
    """End the run of a sample whose last reply cost more than its bound, so that the budget is exceeded."""
    budget = sample.meter.budget
    if budget is None or budget.usd is None or budget.ledger.total_usd <= budget.usd:
        return
    spent = f"{budget.ledger.total_usd:.4f} of {budget.usd:g} USD are spent"
    message = f"a reply cost more than could be known: {spent}"
    sample.fail(BudgetReached(message, hint=BUDGET_HINT))


def _why_unreadable(error: Exception) -> str:
    """Return what is wrong with a request, from the error that reading it raised."""
    if isinstance(error, KeyError):
        return f"{error} is missing"
    if isinstance(error, TypeError | AttributeError):
        return "a part of it is of another type than in OpenAI's API"
    return str(error)


def _whole(body: Mapping[str, Any], name: str) -> int | None:
    value = body.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise ValueError(f"{name} must be a whole number from 1, not {value!r:.40}")
    return value


def _error(status: HTTPStatus, message: str, code: str | None = None) -> "web.Response":
    from aiohttp import web

    # The header keeps OpenAI's clients from repeating the request.
    error = {"message": message, "type": "agrotools_error", "code": code}
    return web.json_response({"error": error}, status=status, headers={"x-should-retry": "false"})


async def _events(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in content.iter_any():
        *events, rest = _EVENT_END.split(rest + piece)
        for event in events:
            yield event
    if rest:
        yield rest


class _Stream:
    """Events of a streamed reply, put together to the body that the same reply has in one piece."""

    def __init__(self) -> None:
        self.has_ended = False
        self._whole: bytes | None = None
        self._message: dict[str, str] = {}
        self._calls: dict[int, dict[str, Any]] = {}
        self._reason: Any = None
        self._usage: Any = None

    def add(self, event: bytes) -> bool:
        """Read an event; return False if it has nothing but the usage of a chat completion."""
        data = b"".join(
            line[5:].strip() for line in event.splitlines() if line.startswith(b"data:")
        )
        try:
            chunk = orjson.loads(data)
        except orjson.JSONDecodeError:
            self.has_ended = self.has_ended or data == b"[DONE]"
            return True
        if not isinstance(chunk, dict):
            return True
        kind = chunk.get("type")
        if isinstance(chunk.get("response"), dict) and str(kind).startswith("response."):
            if kind in ("response.completed", "response.incomplete", "response.failed"):
                self._whole = orjson.dumps(chunk["response"])
                self.has_ended = True
            return True
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices") or []
        # An event that is not of this API is passed on as it is.
        with suppress(AttributeError, TypeError, KeyError):
            self._add_choices(choices)
        return bool(choices) or not chunk.get("usage")

    def _add_choices(self, choices: Any) -> None:
        for choice in choices[:1]:
            self._reason = choice.get("finish_reason") or self._reason
            delta = choice.get("delta") or {}
            for name in ("content", "reasoning_content", "reasoning", "refusal"):
                if isinstance(delta.get(name), str):
                    self._message[name] = self._message.get(name, "") + delta[name]
            for call in delta.get("tool_calls") or ():
                begun = {"id": "", "function": {"name": "", "arguments": ""}}
                whole = self._calls.setdefault(call.get("index") or 0, begun)
                whole["id"] = call.get("id") or whole["id"]
                for name, text in (call.get("function") or {}).items():
                    whole["function"][name] = whole["function"].get(name, "") + (text or "")

    def body(self) -> bytes:
        message = {
            "role": "assistant",
            "content": "",
            **self._message,
            "tool_calls": [*self._calls.values()],
        }
        choice = {"message": message, "finish_reason": self._reason}
        return self._whole or orjson.dumps({"choices": [choice], "usage": self._usage})


def read_messages(body: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """Return the messages and tools of a request in either format, as they were sent."""
    tools = list(body.get("tools") or ())
    if "messages" in body:
        return list(body["messages"]), tools
    given = body["input"]
    messages: list[Any] = []
    if body.get("instructions"):
        messages.append({"role": "system", "content": body["instructions"]})
    if isinstance(given, str):
        messages.append({"role": "user", "content": given})
    else:
        messages.extend(given)
    return messages, tools


def message_of(item: Mapping[str, Any]) -> Message:
    """Return a message of chat completions, or an item of the Responses API, as it is stored with the sample."""
    kind = item.get("type") or "message"
    if kind == "function_call":
        return Message("assistant", tool_calls=(_call(item, item["call_id"]),))
    if kind == "function_call_output":
        return Message("tool", _parts(item["output"]), tool_call_id=item["call_id"])
    if kind != "message" or "role" not in item:
        return Message.of("assistant", json_bytes(item).decode())
    calls = tuple(
        _call(call["function"], call["id"])
        for call in item.get("tool_calls") or ()
        if "function" in call
    )
    role = _ROLES.get(item["role"], "user")
    return Message(role, _parts(item.get("content")), calls, item.get("tool_call_id"))


def tool_of(tool: Mapping[str, Any]) -> ToolDescription:
    """Return a tool that a request offers in either format."""
    function = tool.get("function") if isinstance(tool.get("function"), dict) else tool
    assert function is not None
    name = str(function.get("name") or function.get("type"))
    return ToolDescription(
        name, str(function.get("description") or ""), function.get("parameters") or {}
    )


def _call(function: Mapping[str, Any], call_id: Any) -> RequestedCall:
    arguments = function["arguments"]
    text = arguments if isinstance(arguments, str) else json_bytes(arguments).decode()
    return RequestedCall(name=str(function["name"]), arguments=text, id=str(call_id))


def _parts(content: Any) -> tuple[ContentPart, ...]:
    if content is None or isinstance(content, str):
        return (TextPart(content),) if content else ()
    return tuple(map(_part, content))


def _part(part: Mapping[str, Any]) -> ContentPart:
    if part.get("type") in ("image_url", "input_image") and part.get("image_url"):
        place = part["image_url"]
        url = place["url"] if isinstance(place, dict) else place
        if not isinstance(url, str):
            raise ValueError(f"the address of an image must be a text, not {url!r:.40}")
        return ImagePart(url)
    text = part.get("text")
    return TextPart(text if isinstance(text, str) else json_bytes(part).decode())
