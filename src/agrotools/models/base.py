"""Messages to a model and its replies, and requests in the OpenAI chat-completions format.

Repeated parts of requests (messages, and the settings around them) are serialised once.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, Protocol, runtime_checkable

import orjson
from pydantic import Field, JsonValue, PositiveFloat, PositiveInt

from agrotools.core import FrozenModel, ToolSpec, Usage

Role = Literal["system", "user", "assistant", "tool"]

FinishReason = Literal["stop", "tool_calls", "length", "context", "filtered", "timeout"]
"""Why a model stopped. ``length``: its token limit; ``context``: the prompt does not fit; ``filtered``: a content
filter; ``timeout``: a reply that did not end in time, by no fault of the endpoint. The last four are results of the
model, not faults of ours."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """A piece of text in a message."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image in a message, as a ``data:`` URL."""

    url: str


ContentPart = TextPart | ImagePart


class RequestedCall(FrozenModel):
    """A native tool call as it crosses the wire: ``arguments`` is the model's own text, JSON or not."""

    name: str
    arguments: str = "{}"
    id: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation. ``tool_call_id`` says which call a ``tool`` message answers."""

    role: Role
    content: tuple[ContentPart, ...] = ()
    tool_calls: tuple[RequestedCall, ...] = ()
    tool_call_id: str | None = None
    written: bytes | None = field(default=None, init=False, repr=False, compare=False)
    """Its JSON, once it has been sent: agents send it again with every turn."""

    @classmethod
    def of(cls, role: Role, text: str) -> "Message":
        """A message that is text alone."""
        return cls(role=role, content=(TextPart(text=text),))

    @property
    def text(self) -> str:
        """All text parts, one after the other."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))


class ModelSettings(FrozenModel):
    """Sampling settings of a model. None leaves a setting to the endpoint (some refuse a temperature or a seed)."""

    temperature: Annotated[float | None, Field(ge=0)] = 0.0
    max_output_tokens: Annotated[int | None, Field(ge=1)] = 4096
    top_p: Annotated[float | None, Field(gt=0, le=1)] = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    top_logprobs: Annotated[int | None, Field(ge=1, le=20)] = None
    """Number of the likeliest tokens to return at every place; some endpoints tell none."""
    extra: dict[str, JsonValue] = {}
    """Fields of the request that only one server knows, e.g. ``{"reasoning_effort": "low"}``; sent as they are."""


class Completion(FrozenModel):
    """A model's reply: text, native calls, or both."""

    text: str = ""
    tool_calls: tuple[RequestedCall, ...] = ()
    usage: Usage = Usage()
    finish_reason: FinishReason = "stop"
    thought: str = ""
    """Reasoning that the endpoint returned apart from the text."""
    first_token: dict[str, float] = {}
    """Probability of each token that it might have begun with, where the endpoint told the likeliest."""
    detail: str = ""
    """Message of the endpoint where the finish reason is a refusal to answer (context, filtered, timeout)."""
    seconds: float = 0.0
    """Wall time from the first attempt to the reply, waits included."""
    attempts: int = 1
    cached: bool = False
    """From the response cache: ``usage`` is what it once took, and nothing was paid for it now."""


class WireSettings(FrozenModel):
    """Use of an endpoint: concurrency, time limits, retries."""

    concurrency: PositiveInt | None = None
    """Requests at once. None: found out, from 8 up to 128. N: starts at N, never more, less when overloaded."""
    rpm: PositiveInt | None = None
    """Requests a minute."""
    tpm: PositiveInt | None = None
    """Tokens a minute, prompts and replies together."""
    timeout_s: PositiveFloat = 600.0
    """A request that takes longer is given up and asked again; see :mod:`agrotools.models.timeouts`."""
    stall_s: PositiveFloat = 60.0
    """A reply that has begun and is silent for this long is a broken connection."""
    attempts: PositiveInt = 6
    """Tries for one reply, the first included, where the fault is not the model's."""
    retry_wall_s: PositiveFloat = 300.0
    """No new attempt begins this long after the first."""
    first_wait_s: PositiveFloat = 0.5
    """Waits between attempts double from here, with jitter, where the server does not say how long."""
    longest_wait_s: PositiveFloat = 30.0

    @property
    def impatient(self) -> "WireSettings":
        """Copy for tiny requests: few attempts (some seconds for a server that is starting) and short time limits."""
        return self.model_copy(
            update={
                "attempts": min(self.attempts, 3),
                "timeout_s": min(self.timeout_s, 60.0),
                "retry_wall_s": min(self.retry_wall_s, 10.0),
                "rpm": None,
                "tpm": None,
            }
        )


DEFAULT_WIRE = WireSettings()


@dataclass
class WireStats:
    """State and counts of the wire, for progress lines. Counts of tokens are the endpoint's own."""

    in_flight: int = 0
    waiting: int = 0
    """Requests that wait now: for a retry, for a rate limit, or for a concurrency slot."""
    rate_limit_waits: int = 0
    """Of those waiting, the ones that a 429 or a rate limit holds back."""
    retry_waits: int = 0
    """Of those waiting, the ones between two attempts, which hold no slot."""
    replies: int = 0
    worked_before: bool = False
    """True if an earlier call of the same run got replies: what is refused now is then no mistake in the set-up."""
    retries: int = 0
    rate_limited: int = 0
    """Responses with status 429."""
    input_tokens: int = 0
    output_tokens: int = 0
    limit: int = 0
    """Requests that may be in flight now; 0 where nothing limits them."""
    cached: int = 0
    """Replies that came from the response cache."""
    spent_usd: float | None = None
    """None where no price is known."""
    stopping: bool = False
    """True if the run is to end: faults are not retried any more."""

    @property
    def has_worked(self) -> bool:
        """True if the endpoint is known to answer as it is set up."""
        return self.worked_before or self.replies > 0


@runtime_checkable
class Model(Protocol):
    """Answers a prompt.

    An implementation that cannot reach its endpoint raises :class:`~agrotools.core.InfrastructureError`; one that is
    set up wrongly (key, name, address) raises :class:`~agrotools.core.UsageError`. All other endings are completions.
    """

    @property
    def name(self) -> str:
        """Name in reports."""
        ...

    @property
    def stats(self) -> WireStats:
        """State and counts, for progress lines and for the runner's pace."""
        ...

    async def generate(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> Completion:
        """Reply to ``messages``. ``tools`` are offered as native functions; empty for protocols written as text."""
        ...

    async def close(self) -> None:
        """Close connections. The model may be used again afterwards."""
        ...


class ModelAround:
    """Base of wrappers of a model: all but :meth:`Model.generate` is delegated to it."""

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


_KEPT_FRAMES = 64
_HERE = b"\0"
"""Stands for the messages while what surrounds them is written: in JSON it stands nowhere else."""


class _Frame(NamedTuple):
    """Bytes before and after the messages. Objects that they depend on are stored too, so that nothing else can take
    over its identity."""

    before: bytes
    behind: bytes
    tools: tuple[ToolSpec, ...]
    settings: ModelSettings


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


def without_surrogates(value: Any) -> Any:
    """JSON data with a replacement character for each lone surrogate."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    return value


class RequestEncoder:
    """Writes the requests of one model.

    Args:
        model: its name as the endpoint knows it.
        spelling: settings that the endpoint knows under another name, or (None) not at all.
    """

    def __init__(self, model: str, spelling: Mapping[str, str | None]) -> None:
        self._model = model
        self._spelling = dict(spelling)
        self._frames: OrderedDict[tuple[int, ...], _Frame] = OrderedDict()

    def spelled(self, setting: str) -> str | None:
        """Name of ``setting`` at the endpoint; None if it has no such setting."""
        return self._spelling.get(setting, setting)

    def respell(self, setting: str, name: str) -> None:
        """Set the endpoint's name of ``setting`` to ``name``."""
        self._spelling[setting] = name
        self._frames.clear()

    def encode(self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings) -> bytes:
        """The body of a request, as JSON."""
        frame = self._frame(tools, settings)
        if not frame.behind:
            return frame.before  # the messages, too, are among the settings' extra fields
        together = [frame.before]
        for message in messages:
            together += message_json(message), b","
        if messages:
            together.pop()
        together.append(frame.behind)
        return b"".join(together)

    def _frame(self, tools: Sequence[ToolSpec], settings: ModelSettings) -> _Frame:
        key = (id(settings), *map(id, tools))
        known = self._frames.get(key)
        if known is None:
            here = orjson.Fragment(_HERE)
            body = request_body(self._model, (), tools, settings, self._spelling, more_messages=[here])
            before, _, behind = json_bytes(body).partition(_HERE)
            known = self._frames[key] = _Frame(before, behind, tuple(tools), settings)
            if len(self._frames) > _KEPT_FRAMES:
                self._frames.popitem(last=False)
        return known


def message_json(message: Message) -> bytes:
    """JSON of ``message`` in a request, cached with the message."""
    if message.written is not None:
        return message.written
    text = json_bytes(message_on_wire(message))
    object.__setattr__(message, "written", text)
    return text


def json_bytes(value: Any) -> bytes:
    """``value`` as a request holds it."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        # Text that is no Unicode (half a surrogate pair, out of a file or a model) cannot be sent as it is.
        return orjson.dumps(without_surrogates(value))


def request_text(
    model: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    settings: ModelSettings,
    image: Callable[[str], str] = lambda _url: "",
) -> bytes:
    """The JSON body of a request, UTF-8, with ``image(url)`` in place of each picture."""
    return _encoder(model).encode([with_images(message, image) for message in messages], tools, settings)


@lru_cache(maxsize=8)
def _encoder(model: str) -> RequestEncoder:
    # Messages without pictures have the same JSON here as in what is sent, and keep it.
    return RequestEncoder(model, {})


def with_images(message: Message, image: Callable[[str], str]) -> Message:
    """``message`` with ``image(url)`` in place of each picture."""
    if not any(isinstance(part, ImagePart) for part in message.content):
        return message
    content = (ImagePart(url=image(part.url)) if isinstance(part, ImagePart) else part for part in message.content)
    return replace(message, content=tuple(content))


def image_urls(messages: Iterable[Message]) -> list[str]:
    """The ``data:`` URLs of all pictures, in order."""
    return [part.url for message in messages for part in message.content if isinstance(part, ImagePart)]


def prompt_length(messages: Sequence[Message]) -> tuple[int, int]:
    """Characters and images of a prompt."""
    parts = [part for message in messages for part in message.content]
    texts = [len(part.text) for part in parts if isinstance(part, TextPart)]
    return sum(texts), len(parts) - len(texts)
