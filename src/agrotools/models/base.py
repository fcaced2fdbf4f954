"""Messages to a model and its replies, independent of who serves it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol, runtime_checkable

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
