"""Messages to a model, its replies, and requests in the OpenAI chat-completions format.

Messages, which many requests share, are serialised once.
"""

import asyncio
import operator
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

import orjson
from pybase64 import b64encode
from pydantic import Field, JsonValue, PositiveFloat, PositiveInt

from agrotools.core import FrozenModel, ToolSpec, Usage
from agrotools.core.texts import amount_text, prompt_tokens_text, without_surrogates

Role = Literal["system", "user", "assistant", "tool"]

FinishReason = Literal["stop", "tool_calls", "length", "context", "filtered"]
"""Reason why a model stopped. ``length``: the token limit was reached; ``context``: the prompt does not fit;
``filtered``: a content filter. The last three are results of the model, not infrastructure failures."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """A piece of text in a message."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image in a message, as a ``data:`` URL."""

    url: str
    content: bytes = field(default=b"", repr=False, compare=False)
    """The encoded file, if it is at hand, so that it need not be decoded from the URL."""

    @classmethod
    def of(cls, media_type: str, content: bytes) -> "ImagePart":
        """Return an image file as a part of a message."""
        return cls(f"data:{media_type};base64,{b64encode(content).decode('ascii')}", content)


ContentPart = TextPart | ImagePart


class RequestedCall(FrozenModel):
    """A native tool call as sent on the wire: ``arguments`` is the model's raw text, which may not be valid JSON."""

    name: str
    arguments: str = "{}"
    id: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation. ``tool_call_id``: the call that a ``tool`` message answers."""

    role: Role
    content: tuple[ContentPart, ...] = ()
    tool_calls: tuple[RequestedCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    """Tool whose result a ``tool`` message is; Gemini requires it."""
    received: Mapping[str, JsonValue] | None = None
    """Fields of an assistant message as the endpoint sent them, which are sent back in place of those above."""
    cached_json: bytes | None = field(default=None, init=False, repr=False, compare=False)
    """Cached JSON of the message, set on first use because agents resend each message with every turn."""

    @classmethod
    def of(cls, role: Role, text: str) -> "Message":
        """Return a message with a single text part."""
        return cls(role=role, content=(TextPart(text=text),))

    @property
    def has_images(self) -> bool:
        return any(isinstance(part, ImagePart) for part in self.content)

    @property
    def text(self) -> str:
        """All text parts, joined by newlines."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))


class ModelSettings(FrozenModel):
    """Sampling settings of a model. None omits a setting (some endpoints reject a temperature or a seed)."""

    temperature: Annotated[float | None, Field(ge=0)] = 0.0
    max_output_tokens: Annotated[int | None, Field(ge=1)] = 4096
    seed: int | None = None
    top_logprobs: Annotated[int | None, Field(ge=1, le=20)] = None
    """Number of the most likely tokens to return at each position; not supported by all endpoints."""
    extra: dict[str, JsonValue] = {}
    """Additional request fields, such as a schema of the reply; sent unchanged."""


class Completion(FrozenModel):
    """Reply of a model: text, native calls, or both."""

    text: str = ""
    tool_calls: tuple[RequestedCall, ...] = ()
    usage: Usage = Usage()
    finish_reason: FinishReason = "stop"
    thought: str = ""
    """Reasoning that the endpoint returned separately from the text."""
    first_token: dict[str, float] = {}
    """Probability of each candidate first token; empty if the endpoint does not return top log-probabilities."""
    detail: str = ""
    """Message of the endpoint if it did not answer (finish reason context or filtered)."""
    seconds: float = 0.0
    """Wall time from the first attempt to the reply, including waits."""
    attempts: int = 1
    cached: bool = False
    """True if the reply is from the response cache: ``usage`` is that of the original request and costs nothing now."""
    received: Annotated[dict[str, JsonValue], Field(exclude_if=operator.not_)] = {}
    """The message with all its fields, without those that have no value; empty for a script."""
    served: Annotated[dict[str, str], Field(exclude_if=operator.not_)] = {}
    """``model``, ``provider`` and ``system_fingerprint``, as far as the endpoint states them."""


class WireSettings(FrozenModel):
    """Use of an endpoint: concurrency, time limits, retries."""

    concurrency: PositiveInt | None = None
    """Maximum concurrent requests. None: adaptive, from 8 up to 128. N: starts at N, never more, fewer on overload."""
    rpm: PositiveInt | None = None
    """Requests per minute."""
    tpm: PositiveInt | None = None
    """Tokens per minute, prompts and replies together."""
    timeout_s: PositiveFloat = 600.0
    """Time after which a request is abandoned and sent again, at most three times."""
    stall_s: PositiveFloat = 60.0
    """Silence after which a reply that has begun counts as a broken connection."""
    attempts: PositiveInt = 6
    """Maximum attempts for one reply, including the first; faults of the model are not retried."""
    retry_wall_s: PositiveFloat = 300.0
    """Time after the first attempt beyond which no new attempt starts."""
    first_wait_s: PositiveFloat = 0.5
    """Initial wait between attempts; doubles with jitter unless the server specifies a wait."""
    longest_wait_s: PositiveFloat = 30.0

    @property
    def silence_s(self) -> float:
        """Seconds of silence that end a reply; if both limits would end a silent one, the silence is reported."""
        return min(self.stall_s, self.timeout_s / 2)

    @property
    def impatient(self) -> "WireSettings":
        """Copy for tiny requests: few attempts (some seconds for a server that is starting) and short time limits."""
        times = {
            "timeout_s": min(self.timeout_s, 60.0),
            "retry_wall_s": min(self.retry_wall_s, 10.0),
        }
        return self.model_copy(
            update={"attempts": min(self.attempts, 3), "rpm": None, "tpm": None, **times}
        )


DEFAULT_WIRE = WireSettings()


@dataclass
class WireStats:
    """State and counts of the wire, for progress lines. Token counts are those reported by the endpoint."""

    in_flight: int = 0
    waiting: int = 0
    """Requests that are waiting for a retry, a rate limit or a concurrency slot."""
    rate_limit_waits: int = 0
    """Number of waiting requests that are held back by a 429 response or a rate limit."""
    retry_waits: int = 0
    """Number of waiting requests that are between two attempts; they hold no slot."""
    replies: int = 0
    worked_before: bool = False
    """True if an earlier call of the same run got replies, so a refusal now is not a configuration error."""
    retries: int = 0
    rate_limited: int = 0
    """Responses with status 429."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int | None = None
    """Prompt tokens from the prompt cache of the server; None if it has not said."""
    limit: int = 0
    """Current limit on requests in flight; 0 if there is none."""
    cached: int = 0
    """Replies from the response cache."""
    spent_usd: float | None = None
    """US dollars spent; None if no price is known."""
    stopping: bool = False
    """True if the run is ending: faults are no longer retried."""
    served: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Names of the model, its provider and fingerprint in the replies, and what was ``adapted`` in the requests."""
    warnings: list[str] = field(default_factory=list[str])
    """Findings about the endpoint that the user has to know, each once."""

    def add_usage(self, usage: Usage) -> None:
        """Count the tokens of a reply."""
        self.replies += 1
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        if usage.cached_input_tokens is not None:
            self.cached_tokens = (self.cached_tokens or 0) + usage.cached_input_tokens

    @property
    def usage(self) -> dict[str, int]:
        """Tokens of all replies so far; empty without any."""
        usage = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}
        usage |= {} if self.cached_tokens is None else {"cached_tokens": self.cached_tokens}
        return usage if self.input_tokens or self.output_tokens else {}

    @property
    def tokens_text(self) -> str:
        """Tokens, and US dollars if they are known, in words."""
        spent = f", {self.spent_usd:.4f} USD in all" if self.spent_usd is not None else ""
        taken_in = prompt_tokens_text(self.input_tokens, self.cached_tokens)
        return f"{taken_in}, {amount_text(self.output_tokens)} out{spent}"

    @property
    def has_worked(self) -> bool:
        """True if the endpoint is known to answer with the present configuration."""
        return self.worked_before or self.replies > 0


class Slots:
    """Slots under a limit that may change at any time, ``allowed``: given first come, first served."""

    def __init__(self) -> None:
        self.in_use = 0
        self._queue: deque[asyncio.Future[None]] = deque()

    @property
    def allowed(self) -> int:
        """Number of slots that may currently be in use."""
        raise NotImplementedError

    def try_acquire(self) -> bool:
        """Take a slot if one is free now."""
        # Nobody waits while a slot is free, because a released slot is passed on.
        if self.in_use >= self.allowed:
            return False
        self._take()
        return True

    async def acquire(self) -> None:
        """Wait for a slot. A cancelled wait holds none."""
        if self.try_acquire():
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            # A waiter that was cancelled is skipped; one that was already admitted passes its slot on.
            if not turn.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Release a slot."""
        self.in_use -= 1
        self.admit()

    def admit(self) -> None:
        """Give free slots to those that wait."""
        while self._queue and self.in_use < self.allowed:
            turn = self._queue.popleft()
            if not turn.done():
                self._take()
                turn.set_result(None)

    def _take(self) -> None:
        self.in_use += 1


@runtime_checkable
class Model(Protocol):
    """Model that answers a prompt.

    An implementation raises :class:`~agrotools.core.InfrastructureError` if it cannot reach its endpoint and
    :class:`~agrotools.core.UsageError` if its configuration is wrong (key, name, address). All other outcomes are
    completions.

    Examples:
        >>> from agrotools.models import Completion, WireStats
        >>> class Seven:
        ...     name, stats = "seven", WireStats()
        ...     async def generate(self, messages, tools, settings):
        ...         return Completion(text="Final Answer: 7")
        ...     async def close(self): ...
        >>> run = at.evaluate("my-farm", model=Seven(), mode="no-tool")
    """

    @property
    def name(self) -> str:
        """Name in reports."""
        ...

    @property
    def stats(self) -> WireStats:
        """State and counts, for progress lines and the runner's pacing."""
        ...

    async def generate(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> Completion:
        """Return the reply to ``messages``. ``tools`` are offered as native functions; empty for text protocols."""
        ...

    async def close(self) -> None:
        """Close connections. The model may be used again afterwards."""
        ...


class ModelWrapper:
    """Base class of model wrappers; delegates everything except :meth:`Model.generate`."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def stats(self) -> WireStats:
        return self.model.stats

    @property
    def base_url(self) -> str:
        """Address of the model; empty if it has none."""
        return getattr(self.model, "base_url", "")

    async def close(self) -> None:
        """Close the wrapped model."""
        await self.model.close()


def function_list(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Return tools as functions in the chat-completions format."""
    return [{"type": "function", "function": spec.offered()} for spec in tools]


def request_body(
    model: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    settings: ModelSettings,
    spelling: Mapping[str, str | None] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the JSON body of a request.

    Args:
        spelling: the endpoint's names of settings that differ from the format's; None for unsupported settings.
    """
    body: dict[str, Any] = {"model": model, "messages": [*map(message_on_wire, messages)]}
    if tools:
        body["tools"] = function_list(tools)
    sampling = {
        "temperature": settings.temperature,
        "max_tokens": settings.max_output_tokens,
        "seed": settings.seed,
    }
    for key, value in sampling.items():
        if value is not None and (spelled := spelling.get(key, key)) is not None:
            body[spelled] = value
    if settings.top_logprobs is not None:
        body |= {"logprobs": True, "top_logprobs": settings.top_logprobs}
    return body | settings.extra


def message_on_wire(message: Message) -> dict[str, Any]:
    """Return a message in the chat-completions format."""
    wire: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.has_images:  # several servers accept lists of parts only for vision models
        wire["content"] = [
            {"type": "image_url", "image_url": {"url": part.url}}
            if isinstance(part, ImagePart)
            else {"type": "text", "text": part.text}
            for part in message.content
        ]
    if message.received is not None:
        return wire | dict(message.received)
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        wire["name"] = message.name
    return wire


class RequestEncoder:
    """Encoder of the requests of one model; ``spelling`` as in :func:`request_body`."""

    def __init__(self, model: str, spelling: Mapping[str, str | None]) -> None:
        self._model = model
        self._spelling = dict(spelling)
        self.adapt: Callable[[Sequence[Message]], Sequence[Message]] | None = None
        """Change of the messages for an endpoint that refuses a part of them: :mod:`agrotools.models.refusals`."""
        self._opening = b'{"model":%b,"messages":[' % json_bytes(model)
        self._written: tuple[Sequence[ToolSpec], ModelSettings, bytes] | None = None
        """Tools and settings of the last request, and its JSON behind the messages: most requests have the same."""

    def spelled(self, setting: str) -> str | None:
        """Return the endpoint's name of ``setting``, or None if the endpoint does not support it."""
        return self._spelling.get(setting, setting)

    def spell(self, setting: str, name: str | None) -> None:
        """Send ``setting`` under that name from now on, or no longer (None)."""
        self._spelling[setting] = name
        self._written = None

    def encode(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> bytes:
        """Return the JSON body of a request."""
        messages = self.adapt(messages) if self.adapt else messages
        if (
            self._written is None
            or self._written[0] is not tools
            or self._written[1] is not settings
        ):
            body = json_bytes(request_body(self._model, (), tools, settings, self._spelling))
            self._written = tools, settings, body.removeprefix(self._opening)
        return self._opening + b",".join(map(message_json, messages)) + self._written[2]


def message_json(message: Message) -> bytes:
    """Return the JSON of ``message`` in a request, cached on the message, which is sent again with every turn."""
    if message.cached_json is None:
        object.__setattr__(message, "cached_json", json_bytes(message_on_wire(message)))
    assert message.cached_json is not None
    return message.cached_json


def json_bytes(value: Any) -> bytes:
    """Return ``value`` as UTF-8 JSON, with lone surrogates replaced."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        # Invalid Unicode (half a surrogate pair, from a file or a model) cannot be encoded.
        return orjson.dumps(without_surrogates(value))


def request_text(
    model: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    settings: ModelSettings,
    image: Callable[[str], str] | None = None,
) -> bytes:
    """Return the JSON body of a request as UTF-8, with ``image(url)`` or nothing in place of each image."""
    # Messages without images have the same JSON here and on the wire, so they share their cached JSON.
    shown = [
        with_images(message, lambda part: image(part.url) if image else "") for message in messages
    ]
    return RequestEncoder(model, {}).encode(shown, tools, settings)


def with_images(message: Message, image: Callable[[ImagePart], str]) -> Message:
    """Return ``message`` with the URL ``image(part)`` in place of that of each image."""
    if not message.has_images:
        return message
    content = (
        ImagePart(url=image(part)) if isinstance(part, ImagePart) else part
        for part in message.content
    )
    return replace(message, content=tuple(content))


def image_urls(messages: Iterable[Message]) -> list[str]:
    """Return the ``data:`` URLs of all images, in order."""
    return [
        part.url for message in messages for part in message.content if isinstance(part, ImagePart)
    ]


def prompt_length(messages: Sequence[Message]) -> tuple[int, int]:
    """Return the number of characters and the number of images of a prompt."""
    parts = [part for message in messages for part in message.content]
    texts = [len(part.text) for part in parts if isinstance(part, TextPart)]
    return sum(texts), len(parts) - len(texts)
