"""Trajectories: what was done (by a policy) and what should be done (the reference)."""

from typing import Literal

from pydantic import JsonValue

from agrotools.core.action import Arguments, Observation, Reply, ToolCall
from agrotools.core.noun import Noun
from agrotools.core.taxonomy import Termination


class Step(Noun):
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


class Trajectory(Noun):
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


class ReferenceStep(Noun):
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


class ReferenceTrajectory(Noun):
    """The gold calls in written order; the answer step that follows them is implied."""

    steps: tuple[ReferenceStep, ...]

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(step.tool for step in self.steps)
