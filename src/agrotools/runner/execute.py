"""Runs work items: each sample in its mode, with its own workspace, one record when it ends."""

import asyncio
import os
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from agrotools.agents import run_end_to_end, run_no_tool, run_step_by_step
from agrotools.agents.baselines import TruthTools
from agrotools.benchmarks import Benchmark
from agrotools.core import AgrotoolsError, InfrastructureError, Record, Sample, ToolCall
from agrotools.core.shown import with_shown_observations, with_truth_observations
from agrotools.runner.plan import WorkItem
from agrotools.runner.policies import PolicySource
from agrotools.runner.store import RunStore
from agrotools.tools.execution import ToolExecutor, ToolOutcome
from agrotools.tools.workspace import Workspace

OnFinished = Callable[[Record], None]


async def execute(
    items: Sequence[WorkItem],
    source: PolicySource,
    benchmark: Benchmark,
    store: RunStore,
    executor: ToolExecutor,
    *,
    max_steps: int,
    concurrency: int,
    on_finished: OnFinished,
) -> None:
    """Run all items, at most ``concurrency`` at once; each is recorded as soon as it ends.

    A sample for which no reply can be had is recorded as invalid and does not stop the others. When this is
    cancelled, samples in flight are dropped and what has finished stays.
    """
    queue = iter(items)

    async def work() -> None:
        for item in queue:
            record = await run_item(item, source, benchmark, store, executor, max_steps=max_steps)
            store.append(record)
            on_finished(record)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(items))):
                group.create_task(work())
    except BaseExceptionGroup as failures:
        # What one sample shows to be wrong for all (a refused key, a full disk) ends the run, as itself.
        raise failures.exceptions[0] from None


async def run_item(
    item: WorkItem,
    source: PolicySource,
    benchmark: Benchmark,
    store: RunStore,
    executor: ToolExecutor,
    *,
    max_steps: int,
) -> Record:
    """One sample in one mode."""
    started = time.monotonic()
    sample = _as_shown(item, source)
    view = benchmark.view(sample, item.mode)
    policy = source.make(sample, item.mode, item.epoch)
    record = Record(sample=sample, mode=item.mode, epoch=item.epoch)
    outcome: dict[str, object]
    try:
        if item.mode == "no-tool":
            outcome = {"trajectory": await run_no_tool(policy, view)}
        elif item.mode == "step-by-step":
            assert sample.reference is not None
            outcome = {"actions": await run_step_by_step(policy, view, sample.reference)}
        else:
            # A call that was cancelled may still be writing there; what it leaves goes with the scratch folder.
            with tempfile.TemporaryDirectory(dir=store.scratch, ignore_cleanup_errors=True) as folder:
                call_tool = _tool_caller(sample, source, Workspace(view.files, Path(folder)), store, executor)
                outcome = {"trajectory": await run_end_to_end(policy, view, call_tool, max_steps=max_steps)}
    except InfrastructureError as error:
        outcome = {"invalid": str(error)}
    except AgrotoolsError:
        raise
    except Exception as error:
        # A fault of ours on one sample must not cost the others: it is counted as invalid and told in the report.
        at = traceback.extract_tb(error.__traceback__)[-1]
        outcome = {"invalid": f"internal error, {type(error).__name__}: {error} ({at.name}, line {at.lineno})"}
    # A drive that went away during the run is no mistake of the model.
    gone = [file.path for file in view.files if not os.access(file.path, os.R_OK)]
    if gone:
        outcome = {"invalid": f"the benchmark's file {gone[0]} can no longer be read"}
    return record.model_copy(update={**outcome, "seconds": round(time.monotonic() - started, 3)})


def _as_shown(item: WorkItem, source: PolicySource) -> Sample:
    """The sample with the observations that this run shows as history (they count in step-by-step alone)."""
    if item.mode != "step-by-step":
        return item.sample
    return with_truth_observations(item.sample) if source.truth_tools else with_shown_observations(item.sample)


def _tool_caller(sample: Sample, source: PolicySource, workspace: Workspace, store: RunStore, executor: ToolExecutor):
    if source.truth_tools:
        truth = TruthTools(sample)

        async def answer_with_truth(_call: ToolCall) -> ToolOutcome:
            return ToolOutcome(observation=truth.observe(), seconds=0.0, cached=False)

        return answer_with_truth

    async def call_tool(call: ToolCall) -> ToolOutcome:
        outcome = await executor.run(call, workspace, sample.toolset)
        store.keep_artifacts(outcome.observation, workspace.artifacts)
        return outcome

    return call_tool
