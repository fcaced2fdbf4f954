"""One sample in one mode, from its view to its record, and the back-end ``recorded`` of its tools."""

import itertools
import os
import shutil
import time
import traceback
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass

from agrotools.agents import UNPARSEABLE_LIMIT, run_end_to_end, run_no_tool, run_single_shot, run_step_by_step
from agrotools.benchmarks import Benchmark
from agrotools.core import (
    Action,
    AgrotoolsError,
    ErrorInfo,
    InfrastructureError,
    Observation,
    Record,
    Sample,
    SampleFile,
    ToolCall,
    Trajectory,
)
from agrotools.core.reference_observations import with_shown_observations, with_truth_observations
from agrotools.runner.pace import Pace
from agrotools.runner.plan import WorkItem
from agrotools.runner.policies import PolicySource
from agrotools.runner.store import RunStore
from agrotools.tools.execution import ToolExecutor, ToolOutcome
from agrotools.tools.workspace import Workspace

_NUMBERS = itertools.count()


@dataclass(frozen=True)
class RunContext:
    """Policy, tools, store and limits that the samples of a run share."""

    source: PolicySource
    benchmark: Benchmark
    store: RunStore
    executor: ToolExecutor
    pace: Pace
    max_steps: int
    recorded: frozenset[str] = frozenset()
    """Tools that are not run, see :class:`RecordedTools`."""
    unparseable_limit: int | None = UNPARSEABLE_LIMIT
    """Replies in a row that cannot be read and end a sample; None where the protocol goes on."""


async def run_item(item: WorkItem, context: RunContext) -> Record:
    """Run one sample. A fault on our side, or the endpoint's, makes the record invalid.

    Raises:
        AgrotoolsError: what concerns all samples: a refused key, a full disk, a spent budget.
    """
    started = time.monotonic()
    sample = _with_history(item, context.source)
    view = context.benchmark.view(sample, "end-to-end" if context.source.single_shot else item.mode)
    trajectory: Trajectory | None = None
    actions: tuple[Action, ...] | None = None
    invalid: str | None = None
    try:
        policy = context.source.make(sample, item.mode, item.epoch)
        if context.source.single_shot:
            trajectory = await run_single_shot(policy, view)
        elif item.mode == "no-tool":
            trajectory = await run_no_tool(policy, view)
        elif item.mode == "step-by-step":
            assert sample.reference is not None
            actions = await run_step_by_step(policy, view, sample.reference)
        else:
            with ExitStack() as stack:
                call_tool = _tool_caller(sample, view.files, context, stack)
                limits = context.max_steps, context.unparseable_limit
                trajectory = await run_end_to_end(policy, view, call_tool, *limits)
    except InfrastructureError as error:
        invalid = str(error)
    except AgrotoolsError:
        raise
    except Exception as error:
        # A fault of ours on one sample must not cost the others: it is counted as invalid and shown in the report.
        at = traceback.extract_tb(error.__traceback__)[-1]
        invalid = f"internal error, {type(error).__name__}: {error} ({at.name}, line {at.lineno})"
    # A drive that went away during the run is no mistake of the model.
    gone = [file.path for file in view.files if not os.access(file.path, os.R_OK)]
    if gone:
        trajectory, actions, invalid = None, None, f"the benchmark's file {gone[0]} can no longer be read"
    return Record(
        sample=sample,
        mode=item.mode,
        epoch=item.epoch,
        trajectory=trajectory,
        actions=actions,
        invalid=invalid,
        seconds=round(time.monotonic() - started, 3),
    )


def _with_history(item: WorkItem, source: PolicySource) -> Sample:
    """The sample with the observations that this run shows as history (they count in step-by-step alone)."""
    if item.mode != "step-by-step":
        return item.sample
    return with_truth_observations(item.sample) if source.truth_tools else with_shown_observations(item.sample)


def _tool_caller(
    sample: Sample, files: tuple[SampleFile, ...], context: RunContext, stack: ExitStack
) -> Callable[[ToolCall], Awaitable[ToolOutcome]]:
    if context.source.truth_tools:
        from agrotools.agents.baselines import TruthTools

        truth = TruthTools(sample)

        async def answer_with_truth(_call: ToolCall) -> ToolOutcome:
            return ToolOutcome(observation=truth.observe(), seconds=0.0, cached=False)

        return answer_with_truth

    replay = RecordedTools(sample) if context.recorded else None
    workspace = Workspace(files, context.store.scratch / f"{next(_NUMBERS)}")
    has_artifacts = False

    async def call_tool(call: ToolCall) -> ToolOutcome:
        nonlocal has_artifacts
        if replay is not None and call.tool in context.recorded and call.tool in sample.toolset:
            return replay.run(call)
        context.pace.tool_begins()
        try:
            outcome = await context.executor.run(call, workspace, sample.toolset)
        finally:
            context.pace.tool_ends()
        if outcome.observation.artifacts:
            if not has_artifacts:
                # What a call that is cancelled now may still write there goes with the scratch folder.
                stack.callback(shutil.rmtree, workspace.artifacts, ignore_errors=True)
                has_artifacts = True
            await context.store.keep_artifacts(outcome.observation, workspace.artifacts)
        return outcome

    return call_tool


class RecordedTools:
    """Calls of one sample answered with what was recorded of the reference calls that they agree with.

    So a benchmark runs end to end where its tools cannot: without weights, keys or a network. A call that agrees with
    none gets an error, and no tool is run. Where the reference makes a call several times, its observations come in
    turn.
    """

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._given: set[int] = set()

    def run(self, call: ToolCall) -> ToolOutcome:
        """The observation of the reference call that ``call`` agrees with; an error where it agrees with none."""
        from agrotools.scoring.steps import agrees

        steps = self._sample.reference.steps if self._sample.reference else ()
        found = [place for place, step in enumerate(steps) if agrees(self._sample, call, step)]
        if not found:
            return _failed(
                f"no call of the reference is {call.tool} with these arguments, and nothing else was recorded",
                f"the tool is not run here; for results of its own: --backend {call.tool}=offline",
            )
        place = next((place for place in found if place not in self._given), found[-1])
        self._given.add(place)
        observation = steps[place].observation
        if observation is None or observation.empty:
            return _failed("nothing was recorded of this call", "run the tool itself: choose another --backend")
        # Artifacts of a recorded observation lie in no workspace: a later call can name them, not open them.
        return ToolOutcome(observation.model_copy(update={"artifacts": ()}), 0.0, recorded=True)


def _failed(message: str, hint: str) -> ToolOutcome:
    return ToolOutcome(Observation(error=ErrorInfo(kind="backend_unavailable", message=message, hint=hint)), 0.0)
