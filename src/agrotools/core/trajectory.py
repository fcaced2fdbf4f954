"""Actions of a policy, what it observes, and the trajectories of both: its own, and the reference."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from agrotools.core.errors import ErrorInfo
from agrotools.core.frozen_model import FrozenModel
from agrotools.core.taxonomy import Termination

Arguments = dict[str, JsonValue]


class Usage(FrozenModel):
    """Tokens as the endpoint counted them; zero where it does not say."""

    input_tokens: int = 0
    output_tokens: int = 0


class Reply(FrozenModel):
    """The model's raw reply behind an action: kept so that a run can be read again with another parser."""

    text: str = ""
    finish_reason: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0
    first_token: dict[str, float] = {}
    """Probability of each token that the reply might have begun with, where the endpoint told the likeliest."""


class ToolCall(FrozenModel):
    """A tool's name and its arguments, exactly as the policy gave them."""

    tool: str
    arguments: Arguments = {}
    id: str | None = None


class CallTools(FrozenModel):
    """Call one or more tools; several calls of one message run in order."""

    kind: Literal["call"] = "call"
    calls: Annotated[tuple[ToolCall, ...], Field(min_length=1)]
    thought: str = ""
    reply: Reply | None = None
    refused: ErrorInfo | None = None
    """Why the protocol does not let these calls reach their tools; it is what they return."""


class Answer(FrozenModel):
    """The final answer, as text."""

    kind: Literal["answer"] = "answer"
    text: str
    thought: str = ""
    reply: Reply | None = None
    form_reply: Reply | None = None
    """The reply to the request for the answer form, where the answer lacked it: ``text`` ends with it."""


class Unparseable(FrozenModel):
    """Output that is neither a call nor an answer. ``reason`` says why, ``hint`` how to repair it."""

    kind: Literal["unparseable"] = "unparseable"
    text: str
    reason: str
    hint: str = ""
    reply: Reply | None = None


class Halt(FrozenModel):
    """The model stopped for a reason that is a result in itself: length, context, filtered, timeout."""

    kind: Literal["halt"] = "halt"
    termination: Termination
    reason: str = ""
    reply: Reply | None = None


Action = Annotated[CallTools | Answer | Unparseable | Halt, Field(discriminator="kind")]


class Artifact(FrozenModel):
    """A file that a tool made. ``name`` is unique within the sample; the bytes are stored by ``sha256``."""

    name: str
    kind: Literal["overlay", "mask", "plot", "image", "table"]
    media_type: str
    sha256: str | None = None


class Observation(FrozenModel):
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


class Step(FrozenModel):
    """One thing a policy did: a call with its observation, an answer, or unparseable output with the repair hint.

    ``turn`` counts model messages from 0: calls of one message share it. ``reply`` stands on a turn's first step.
    """

    turn: int
    kind: Literal["call", "answer", "unparseable"]
    call: ToolCall | None = None
    observation: Observation | None = None
    text: str = ""
    """The answer, or the output that could not be parsed."""
    reason: str = ""
    """Why the output could not be parsed; what the policy is told to repair."""
    thought: str = ""
    reply: Reply | None = None
    form_reply: Reply | None = None
    """As in :class:`Answer`."""
    seconds: float = 0.0
    """Wall time of the tool call."""
    cached: bool = False
    recorded: bool = False
    """Whether no tool was run: the observation is the one that was recorded of the reference."""
    refused: bool = False
    """Whether no tool was run: the protocol did not let the call reach one, and the observation says why."""


class Trajectory(FrozenModel):
    """What a policy did on one sample, and how it ended."""

    steps: tuple[Step, ...] = ()
    termination: Termination
    reason: str = ""
    halted_by: Reply | None = None
    """The reply behind a halt (length, filtered...), which no step holds; its tokens count like any other's."""

    @property
    def answer(self) -> str | None:
        """The final answer, or None where none was given."""
        if self.termination == "answered" and self.steps and self.steps[-1].kind == "answer":
            return self.steps[-1].text
        return None

    @property
    def calls(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.kind == "call")


class ReferenceStep(FrozenModel):
    """A call of the reference trajectory.

    ``arguments`` may hold ``{"$ref": "steps[0].observation.weed_pct", "value": 8.9}`` where a value comes from an
    earlier step: the reference beside the literal. Steps with the same ``group`` are independent of each other and
    may come in any order. ``truth`` is the result that a perfect tool would have returned, where the source knows it.
    """

    tool: str
    arguments: Arguments
    observation: Observation | None = None
    group: int | None = None
    truth: dict[str, JsonValue] | None = None
    thought: str = ""


class ReferenceTrajectory(FrozenModel):
    """The gold calls in written order; the answer step that follows them is implied."""

    steps: tuple[ReferenceStep, ...]

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(step.tool for step in self.steps)
