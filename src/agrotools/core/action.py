"""What a policy decides (an action) and what it sees back (an observation)."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from agrotools.core.errors import ErrorInfo
from agrotools.core.noun import Noun
from agrotools.core.taxonomy import Termination

Arguments = dict[str, JsonValue]


class Usage(Noun):
    """Tokens as the endpoint counted them; zero where it does not say."""

    input_tokens: int = 0
    output_tokens: int = 0


class Reply(Noun):
    """The model's raw reply behind an action: kept so that a run can be read again with another parser."""

    text: str = ""
    finish_reason: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0
    first_token: dict[str, float] = {}
    """Probability of each token that the reply might have begun with, where the endpoint told the likeliest."""


class ToolCall(Noun):
    """A tool's name and its arguments, exactly as the policy gave them."""

    tool: str
    arguments: Arguments = {}
    id: str | None = None


class CallTools(Noun):
    """Call one or more tools; several calls of one message run in order."""

    kind: Literal["call"] = "call"
    calls: Annotated[tuple[ToolCall, ...], Field(min_length=1)]
    thought: str = ""
    reply: Reply | None = None
    refused: ErrorInfo | None = None
    """Why the protocol does not let these calls reach their tools; it is what they return."""


class Answer(Noun):
    """The final answer, as text."""

    kind: Literal["answer"] = "answer"
    text: str
    thought: str = ""
    reply: Reply | None = None
    form_reply: Reply | None = None
    """The reply to the request for the answer form, where the answer lacked it: ``text`` ends with it."""


class Unparseable(Noun):
    """Output that is neither a call nor an answer. ``reason`` says why, ``hint`` how to repair it."""

    kind: Literal["unparseable"] = "unparseable"
    text: str
    reason: str
    hint: str = ""
    reply: Reply | None = None


class Halt(Noun):
    """The model stopped for a reason that is a result in itself: length, context, filtered, timeout."""

    kind: Literal["halt"] = "halt"
    termination: Termination
    reason: str = ""
    reply: Reply | None = None


Action = Annotated[CallTools | Answer | Unparseable | Halt, Field(discriminator="kind")]


class Artifact(Noun):
    """A file that a tool made. ``name`` is unique within the sample; the bytes are stored by ``sha256``."""

    name: str
    kind: Literal["overlay", "mask", "plot", "image", "table"]
    media_type: str
    sha256: str | None = None


class Observation(Noun):
    """What a policy sees back from a call: a result or an error, and the artifacts the call made."""

    result: dict[str, JsonValue] | None = None
    error: ErrorInfo | None = None
    artifacts: tuple[Artifact, ...] = ()

    @property
    def ok(self) -> bool:
        return self.error is None

    @property
    def empty(self) -> bool:
        """Whether nothing came back: no result, no error, no artifact."""
        return not self.result and self.error is None and not self.artifacts
