"""End-to-end: the policy plans, its calls really run, it reads what they return, and it answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from agrotools.agents.keeping import kept_call, kept_text
from agrotools.agents.policy import Policy
from agrotools.core import (
    Answer,
    CallTools,
    Halt,
    Observation,
    SampleView,
    Step,
    ToolCall,
    Trajectory,
    Unparseable,
)

UNPARSEABLE_LIMIT = 3
"""Unparseable outputs in a row that end a sample."""


class Outcome(Protocol):
    """What came of a call (``agrotools.tools.execution.ToolOutcome`` is one)."""

    @property
    def observation(self) -> Observation: ...
    @property
    def seconds(self) -> float: ...
    @property
    def cached(self) -> bool: ...
    @property
    def recorded(self) -> bool: ...


CallTool = Callable[[ToolCall], Awaitable[Outcome]]


@dataclass(frozen=True)
class Refusal:
    """The outcome of a call that reaches no tool."""

    observation: Observation
    seconds: float = 0.0
    cached: bool = False
    recorded: bool = False


async def run_end_to_end(
    policy: Policy,
    view: SampleView,
    call_tool: CallTool,
    max_steps: int = 20,
    unparseable_limit: int | None = UNPARSEABLE_LIMIT,
) -> Trajectory:
    """Let ``policy`` act for at most ``max_steps`` turns; several calls of one turn run in order.

    ``unparseable_limit`` outputs in a row that cannot be read end the sample before; None: none do.

    Raises:
        InfrastructureError: from the policy or from ``call_tool``.
    """
    steps: list[Step] = []
    unparseable_in_a_row = 0
    for turn in range(max_steps):
        action = await policy.act(view, tuple(steps))
        match action:
            case Answer():
                steps.append(
                    Step(
                        turn=turn,
                        kind="answer",
                        text=kept_text(action.text),
                        thought=kept_text(action.thought),
                        reply=action.reply,
                        form_reply=action.form_reply,
                    )
                )
                return Trajectory(steps=tuple(steps), termination="answered")
            case Halt():
                return Trajectory(
                    steps=tuple(steps), termination=action.termination, reason=action.reason, halted_by=action.reply
                )
            case Unparseable():
                steps.append(_unparseable_step(turn, action))
                unparseable_in_a_row += 1
                if unparseable_in_a_row == unparseable_limit:
                    reason = f"{unparseable_limit} unparseable outputs in a row; the last: {action.reason}"
                    return Trajectory(steps=tuple(steps), termination="unparseable", reason=reason)
            case CallTools():
                steps.extend(await _call_steps(turn, action, call_tool))
                unparseable_in_a_row = 0
    return Trajectory(steps=tuple(steps), termination="max_steps", reason=f"no answer after {max_steps} turns")


def _unparseable_step(turn: int, action: Unparseable) -> Step:
    reason = f"{action.reason} {action.hint}".strip()
    return Step(turn=turn, kind="unparseable", text=action.text, reason=reason, reply=action.reply)


async def _call_steps(turn: int, action: CallTools, call_tool: CallTool) -> list[Step]:
    steps: list[Step] = []
    for index, call in enumerate(action.calls):
        outcome = await call_tool(call) if action.refused is None else Refusal(Observation(error=action.refused))
        steps.append(
            Step(
                turn=turn,
                kind="call",
                call=kept_call(call),
                observation=outcome.observation,
                thought=kept_text(action.thought) if index == 0 else "",
                reply=action.reply if index == 0 else None,
                seconds=outcome.seconds,
                cached=outcome.cached,
                recorded=outcome.recorded,
                refused=action.refused is not None,
            )
        )
    return steps
