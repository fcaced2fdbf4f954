"""What is said to a model and what comes back, independent of who serves it."""

from collections.abc import Sequence
from typing import Annotated, Literal, Protocol

from pydantic import Field, JsonValue

from agrotools.core import Noun, ToolSpec, Usage

Role = Literal["system", "user", "assistant", "tool"]

FinishReason = Literal["stop", "tool_calls", "length", "context", "filtered", "timeout"]
"""Why a model stopped. ``length``: its token limit; ``context``: the prompt does not fit; ``filtered``: a content
filter; ``timeout``: a reply that did not end in time. The last four are results of the model, not faults of ours."""


class TextPart(Noun):
    """A piece of text in a message."""

    type: Literal["text"] = "text"
    text: str


class ImagePart(Noun):
    """An image in a message, as a ``data:`` URL."""

    type: Literal["image"] = "image"
    url: str


ContentPart = Annotated[TextPart | ImagePart, Field(discriminator="type")]


class RequestedCall(Noun):
    """A native tool call as it crosses the wire: ``arguments`` is the model's own text, JSON or not."""

    name: str
    arguments: str = "{}"
    id: str = ""


class Message(Noun):
    """One message of a conversation. ``tool_call_id`` says which call a ``tool`` message answers."""

    role: Role
    content: tuple[ContentPart, ...] = ()
    tool_calls: tuple[RequestedCall, ...] = ()
    tool_call_id: str | None = None

    @classmethod
    def of(cls, role: Role, text: str) -> "Message":
        """A message that is text alone."""
        return cls(role=role, content=(TextPart(text=text),))

    @property
    def text(self) -> str:
        """All text parts, one after the other."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))


class ModelSettings(Noun):
    """How a model samples. None leaves a setting to the endpoint (some refuse a temperature or a seed)."""

    temperature: Annotated[float | None, Field(ge=0)] = 0.0
    max_output_tokens: Annotated[int | None, Field(ge=1)] = 4096
    top_p: Annotated[float | None, Field(gt=0, le=1)] = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    extra: dict[str, JsonValue] = {}
    """Fields of the request that only one server knows, e.g. ``{"reasoning_effort": "low"}``; sent as they are."""


class Completion(Noun):
    """A model's reply: text, native calls, or both."""

    text: str = ""
    tool_calls: tuple[RequestedCall, ...] = ()
    usage: Usage = Usage()
    finish_reason: FinishReason = "stop"
    thought: str = ""
    """Reasoning that the endpoint returned apart from the text."""
    detail: str = ""
    """What the endpoint said where the finish reason is a refusal to answer (context, filtered, timeout)."""
    seconds: float = 0.0
    """Wall time from the first attempt to the reply, waits included."""
    attempts: int = 1


class Model(Protocol):
    """Answers a prompt.

    An implementation that cannot reach its endpoint raises :class:`~agrotools.core.InfrastructureError`; one that is
    set up wrongly (key, name, address) raises :class:`~agrotools.core.UsageError`. All other endings are completions.
    """

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    async def generate(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> Completion:
        """Reply to ``messages``. ``tools`` are offered as native functions; empty for protocols written as text."""
        ...

    async def close(self) -> None:
        """Give back connections. The model may be used again afterwards."""
        ...
