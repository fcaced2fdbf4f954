"""One sample in one mode, from its view to its record."""

import itertools
import os
import shutil
import time
import traceback
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass

from agrotools.agents import UNPARSEABLE_LIMIT, run_end_to_end, run_no_tool, run_single_shot, run_step_by_step
from agrotools.agents.baselines import TruthTools
from agrotools.benchmarks import Benchmark
from agrotools.core import (
    Action,
    AgrotoolsError,
    InfrastructureError,
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
from agrotools.runner.recorded_tools import RecordedTools
from agrotools.runner.store import RunStore
from agrotools.tools.execution import ToolExecutor, ToolOutcome
from agrotools.tools.workspace import Workspace

_NUMBERS = itertools.count()


@dataclass(frozen=True)
class RunContext:
    """All that a sample needs while it runs."""

    source: PolicySource
    benchmark: Benchmark
    store: RunStore
    executor: ToolExecutor
    pace: Pace
    max_steps: int
    recorded: frozenset[str] = frozenset()
    """Tools that are not run: their calls get what was recorded of the reference."""
    unparseable_limit: int | None = UNPARSEABLE_LIMIT
    """Replies in a row that cannot be read and end a sample; None where the protocol goes on."""


async def run_item(item: WorkItem, context: RunContext) -> Record:
    """Run one sample. What went wrong on our side, or the endpoint's, makes the record invalid.

    Raises:
        AgrotoolsError: what concerns all samples: a refused key, a full disk, a spent budget.
    """
    started = time.monotonic()
    sample = _as_shown(item, context.source)
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
        # A fault of ours on one sample must not cost the others: it is counted as invalid and told in the report.
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


def _as_shown(item: WorkItem, source: PolicySource) -> Sample:
    """The sample with the observations that this run shows as history (they count in step-by-step alone)."""
    if item.mode != "step-by-step":
        return item.sample
    return with_truth_observations(item.sample) if source.truth_tools else with_shown_observations(item.sample)


def _tool_caller(
    sample: Sample, files: tuple[SampleFile, ...], context: RunContext, stack: ExitStack
) -> Callable[[ToolCall], Awaitable[ToolOutcome]]:
    if context.source.truth_tools:
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
