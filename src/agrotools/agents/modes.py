"""Policies, and the loops of the modes: end-to-end, step-by-step with forced history, no-tool.

A policy and the view of a sample come in; a trajectory goes out, in step-by-step the predicted actions. The view holds
no gold. An error of a tool is an observation that the policy sees, and malformed output is a step of the trajectory.
What is no fault of the policy (:class:`agrotools.core.InfrastructureError`) leaves a loop as an exception: the sample
is invalid then, not wrong.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeGuard, runtime_checkable

from pydantic import JsonValue

from agrotools.agents.long_replies import (
    kept_action,
    kept_call,
    kept_text,
    not_an_action,
    storable_call,
)
from agrotools.core import (
    Action,
    Answer,
    BenchmarkError,
    CallTools,
    ErrorInfo,
    Halt,
    Mode,
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    SampleView,
    Step,
    Termination,
    ToolCall,
    ToolOutcome,
    ToolSpec,
    Trajectory,
    Unparseable,
    UsageError,
)
from agrotools.core.record import (
    REF_PATTERN,
    UnresolvedRef,
    iter_refs,
    literal_value,
    resolve_ref,
    update_literals,
)
from agrotools.core.texts import count_text
from agrotools.models import Message, Model, ModelSettings
from agrotools.text.answer_reader import form_gaps, lacks_form

if TYPE_CHECKING:
    from agrotools.agents.usage import SampleUsage

UNPARSEABLE_LIMIT = 3
"""Consecutive unparseable outputs that end a sample."""
SINGLE_SHOT_ATTEMPTS = 2
"""Maximum requests of a single-shot sample: the request is repeated if the first reply cannot be parsed."""


@runtime_checkable
class Policy(Protocol):
    """Chooses the next action on a sample.

    ``history`` contains all steps so far; a policy keeps no state between calls, so that one object can serve many
    samples concurrently.

    Examples:
        >>> class AlwaysSeven:
        ...     async def act(self, view, history):
        ...         return at.Answer(text="value of the plot: 7")
        >>> run = at.evaluate("my-farm", model=AlwaysSeven(), mode="no-tool")
    """

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        """Return the next action.

        Raises:
            InfrastructureError: no decision was possible for reasons independent of the sample.
        """
        ...


class ExternalPolicy(Policy, Protocol):
    """A policy for one sample whose agent runs a loop of its own; it is told when the sample has ended."""

    usage: "SampleUsage"
    """Requests of the agent to models that are known so far."""
    artifacts: Path | None
    """Folder of the files that its calls write; None if no tool is executed."""

    @property
    def printed(self) -> str:
        """What the agent printed on the sample, once it has ended."""
        ...

    async def end_sample(self) -> None: ...


class LimitPolicy(Policy, Protocol):
    """A policy that is asked for its answer when no turn is left."""

    async def answer_at_limit(self, view: SampleView, history: Sequence[Step]) -> Action:
        """Return the action, which counts only if it is an answer."""
        ...


@runtime_checkable
class ModelAgent(Policy, Protocol):
    """A policy that prompts a model."""

    model: Model
    mode: Mode
    settings: ModelSettings

    async def request_for(
        self, view: SampleView, history: Sequence[Step]
    ) -> tuple[Sequence[Message], Sequence[ToolSpec]]:
        """Return the request that :meth:`act` sends: messages, and tools that are offered as native functions."""
        ...


# isinstance with a Protocol takes a tenth of a run without latency on Python 3.11.
def is_external(policy: Policy) -> TypeGuard[ExternalPolicy]:
    """Return True if a policy is one of an external agent."""
    return hasattr(policy, "end_sample")


def answers_at_limit(policy: Policy) -> TypeGuard[LimitPolicy]:
    """Return True if a policy is asked for its answer when no turn is left."""
    return hasattr(policy, "answer_at_limit")


def check_object(model: object) -> None:
    """Check, before anything runs, that an object is a model, a policy or a function.

    Raises:
        UsageError: a class, an object without ``generate`` or ``act``, or one whose method is not async.
    """
    if inspect.isroutine(model):
        return
    kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
    method = "generate" if isinstance(model, Model) else "act"
    function = getattr(model, method, None)
    if isinstance(model, type) or not callable(function):
        raise UsageError(
            f"model must be a name, a function, a Model or a Policy, not {kind}",
            hint=f"give an object: {model.__name__}()"
            if isinstance(model, type)
            else 'e.g. model="openai:gpt-4o", or an object with `async def act(self, view, history)`',
        )
    plain = inspect.isroutine(function) and not hasattr(function, "__wrapped__")
    if plain and not inspect.iscoroutinefunction(function):
        raise UsageError(
            f"{kind}.{method} must be async", hint=f"define it as `async def {method}`"
        )


def object_name(model: object) -> str:
    """Return the name of a model, a policy or a function in reports."""
    name = getattr(model, "name", None) or getattr(model, "__name__", None)
    return name if isinstance(name, str) and name else type(model).__name__


CallTool = Callable[[ToolCall], Awaitable[ToolOutcome]]


async def run_end_to_end(
    policy: Policy,
    view: SampleView,
    call_tool: CallTool,
    max_steps: int = 20,
    unparseable_limit: int | None = UNPARSEABLE_LIMIT,
) -> Trajectory:
    """Run ``policy`` for at most ``max_steps`` turns; several calls of one turn run in order.

    ``unparseable_limit``: consecutive unparseable outputs that end the sample early; None for no limit.

    Raises:
        InfrastructureError: from the policy or from ``call_tool``.
    """
    steps: list[Step] = []
    unparseable_in_a_row = 0
    for turn in range(max_steps):
        action = await policy.act(view, tuple(steps))
        match action:
            case Answer():
                return _answered(steps, turn, action, view, "answered")
            case Halt():
                return Trajectory(
                    steps=tuple(steps),
                    termination=action.termination,
                    reason=action.reason,
                    halted_by=action.reply,
                )
            case Unparseable():
                reason = f"{action.reason} {action.hint}".strip()
                steps.append(
                    Step(
                        turn=turn,
                        kind="unparseable",
                        text=action.text,
                        reason=reason,
                        reply=action.reply,
                    )
                )
                unparseable_in_a_row += 1
                if unparseable_in_a_row == unparseable_limit:
                    reason = f"{unparseable_limit} unparseable outputs in a row; the last: {action.reason}"
                    return Trajectory(steps=tuple(steps), termination="unparseable", reason=reason)
            case CallTools():
                steps.extend(await _call_steps(turn, action, call_tool))
                unparseable_in_a_row = 0
            case _:
                raise TypeError(not_an_action(action))
    reason = f"no answer after {max_steps} turns"
    last = await policy.answer_at_limit(view, tuple(steps)) if answers_at_limit(policy) else None
    if isinstance(last, Answer):
        return _answered(steps, max_steps, last, view, "max_steps", reason)
    return Trajectory(
        steps=tuple(steps),
        termination="max_steps",
        reason=reason,
        halted_by=last.reply if last else None,
    )


def _answered(
    steps: Sequence[Step],
    turn: int,
    answer: Answer,
    view: SampleView,
    termination: Termination,
    reason: str = "",
) -> Trajectory:
    """Return the trajectory of an answer; its termination is ``no_form`` if the form was asked for and is not given.

    ``reason``: why the answer is the last one, if the model did not choose so; it stays, before the gaps of the form.
    """
    step = Step(
        turn=turn,
        kind="answer",
        text=kept_text(answer.text),
        thought=kept_text(answer.thought),
        reply=answer.reply,
        form_replies=answer.form_replies,
        formless=answer.formless,
    )
    if lacks_form(step, view.form):
        termination = "no_form"
        reason = "; ".join(filter(None, (reason, _why_no_form(step, view))))
    return Trajectory(steps=(*steps, step), termination=termination, reason=reason)


def _why_no_form(answer: Step, view: SampleView) -> str:
    """Return which values of the form an answer lacks. The last reply to the closing messages counts."""
    n_replies = len(answer.form_replies)
    gaps = form_gaps(answer.text, view.form)
    faults = "; ".join(f"{name} {fault}" for name, fault in gaps.items())
    # An agent that returns values, such as a dict, has no words before them and is not asked for the form.
    is_given_at_once = n_replies == 1 and answer.form_replies[0].text == answer.text
    where = count_text(n_replies, "reply", "replies")
    if is_given_at_once:
        where = "the values that the agent returned, and it was not asked again"
    asked = f"no complete form in {where}"
    last = "them" if is_given_at_once else "it" if n_replies == 1 else "the last one"
    return f"{asked}; in {last}, {faults}" if faults else asked


async def _call_steps(turn: int, action: CallTools, call_tool: CallTool) -> list[Step]:
    """Return a step for each call of a message; the first has the message's thought and reply."""
    steps: list[Step] = []
    for index, requested in enumerate(action.calls):
        call, fault = storable_call(requested)
        error = action.refused or fault
        outcome = await call_tool(call) if error is None else ToolOutcome(Observation(error=error))
        is_first = index == 0
        steps.append(
            Step(
                turn=turn,
                kind="call",
                call=kept_call(call),
                observation=outcome.observation,
                thought=kept_text(action.thought) if is_first else "",
                reply=action.reply if is_first else None,
                seconds=outcome.seconds,
                cached=outcome.source == "cache",
                recorded=outcome.source == "recording",
                refused=action.refused is not None,
            )
        )
    return steps


async def run_step_by_step(
    policy: Policy, view: SampleView, reference: ReferenceTrajectory
) -> tuple[Action, ...]:
    """Return the predicted actions: one for each reference step, and a last one for the answer.

    At step k the policy sees the calls 1 to k-1 with their recorded observations and nothing after them.

    Raises:
        BenchmarkError: a reference step has no recorded observation.
        InfrastructureError: from the policy.
    """
    history = reference_history(reference)
    called = [
        kept_action(await policy.act(view, history[:n_shown])) for n_shown in range(len(history))
    ]
    return (
        *called,
        kept_action(await policy.act(view.model_copy(update={"closing": True}), history)),
    )


def reference_history(reference: ReferenceTrajectory) -> tuple[Step, ...]:
    """Return the reference as executed steps, one per turn; BenchmarkError if one has no recorded observation."""
    steps: list[Step] = []
    for index, step in enumerate(reference.steps):
        if step.observation is None:
            raise BenchmarkError(
                f"reference step {index} ({step.tool}) has no recorded observation",
                hint="step-by-step needs one for every step; run the mode end-to-end, or record them when building",
            )
        arguments = {name: literal_value(value) for name, value in step.arguments.items()}
        call = ToolCall(tool=step.tool, arguments=arguments)
        steps.append(
            Step(
                turn=index,
                kind="call",
                call=call,
                observation=step.observation,
                thought=step.thought,
            )
        )
    return tuple(steps)


def with_shown_observations(sample: Sample) -> Sample:
    """Return ``sample`` with the observations that step-by-step shows.

    These are the recorded ones. If a real tool failed, or did not yield a value that a later step or the answer needs,
    the history could not continue; then the truth is shown instead, also in every step that depends on it, so that no
    result contradicts the arguments before it.
    """
    if sample.reference is None:
        return sample
    needed = _needed_refs(sample)
    replaced: set[int] = set()
    observations: list[Observation | None] = []
    for index, step in enumerate(sample.reference.steps):
        refs = [ref for _, ref, _ in iter_refs(dict(step.arguments))]
        used = {int(match["step"]) for ref in refs for match in REF_PATTERN.finditer(ref)}
        if _serves(step, index, needed) and not replaced & used:
            observations.append(step.observation)
        else:
            observations.append(_truth_of(step))
            replaced.add(index)
    return _with_observations(sample, observations)


def with_truth_observations(sample: Sample) -> Sample:
    """Return ``sample`` as if every reference call had returned the truth (for steps whose truth is known)."""
    if sample.reference is None:
        return sample
    return _with_observations(sample, [_truth_of(step) for step in sample.reference.steps])


def _truth_of(step: ReferenceStep) -> Observation | None:
    return step.observation if step.truth is None else Observation(result=step.truth)


def _needed_refs(sample: Sample) -> list[tuple[int, str]]:
    texts = [slot.from_ for slot in sample.answer if slot.from_]
    if sample.reference:
        texts += [
            ref for step in sample.reference.steps for _, ref, _ in iter_refs(dict(step.arguments))
        ]
    return [
        (int(match["step"]), match[0]) for text in texts for match in REF_PATTERN.finditer(text)
    ]


def _serves(step: ReferenceStep, index: int, needed: Sequence[tuple[int, str]]) -> bool:
    if step.observation is None or step.observation.result is None:
        return False
    results: list[dict[str, JsonValue] | None] = [None] * index + [step.observation.result]
    try:
        return all(resolve_ref(ref, results) is not None for at, ref in needed if at == index)
    except UnresolvedRef:
        return False


def _with_observations(sample: Sample, observations: Sequence[Observation | None]) -> Sample:
    assert sample.reference is not None
    results = [observation.result if observation else None for observation in observations]
    steps: list[ReferenceStep] = []
    for step, observation in zip(sample.reference.steps, observations, strict=True):
        arguments = {
            name: update_literals(value, results) for name, value in step.arguments.items()
        }
        steps.append(step.model_copy(update={"observation": observation, "arguments": arguments}))
    return sample.model_copy(update={"reference": ReferenceTrajectory(steps=tuple(steps))})


async def run_no_tool(policy: Policy, view: SampleView) -> Trajectory:
    """Ask ``policy`` for the answer; after a reply without one (empty, or a call) it gets an error and another turn."""
    if view.toolset:
        view = view.model_copy(update={"toolset": ()})
    refuse = _refusal("there is no tool {tool!r}: this mode has none", "answer directly")
    return await run_end_to_end(policy, view, refuse, max_steps=UNPARSEABLE_LIMIT)


async def run_single_shot(policy: Policy, view: SampleView) -> Trajectory:
    """Ask ``policy`` for the whole solution, up to :data:`SINGLE_SHOT_ATTEMPTS` times. ``view`` keeps its toolset."""
    refuse = _refusal("no tool runs in this protocol")
    return await run_end_to_end(policy, view, refuse, SINGLE_SHOT_ATTEMPTS, SINGLE_SHOT_ATTEMPTS)


def _refusal(message: str, hint: str | None = None) -> CallTool:
    """Return a function that answers every call with an error; ``{tool}`` in ``message`` is the name of the tool."""

    async def refuse(call: ToolCall) -> ToolOutcome:
        error = ErrorInfo(kind="unknown_tool", message=message.format(tool=call.tool), hint=hint)
        return ToolOutcome(Observation(error=error))

    return refuse
