"""Attribution of a run: from its folder and the tools, without a model. See :mod:`agrotools.scoring.attribution`."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from agrotools.calling import get_tool, tool_specs, tool_versions
from agrotools.calling.cache import ResultCache
from agrotools.calling.contract import SERVED
from agrotools.calling.execution import ToolExecutor, needs_answers
from agrotools.calling.services import VLM
from agrotools.calling.workspace import Workspace
from agrotools.core import AgrotoolsError, Observation, Record, Score, ToolCall, UsageError
from agrotools.core.errors import RunStoreError
from agrotools.core.files import Journal, artifact_path, cache_dir
from agrotools.core.progress import Progress, no_progress
from agrotools.core.texts import count_text
from agrotools.loading import Benchmark, Loading
from agrotools.loading.benchmarks import load_as
from agrotools.runner.manifest import Manifest
from agrotools.runner.records import iter_records
from agrotools.runner.repeated_calls import (
    REPEATED_CALLS_FILE,
    RepeatedCall,
    RepeatedCalls,
    read_repeated_calls,
)
from agrotools.runner.rescore import rescore
from agrotools.runner.store import read_manifest
from agrotools.scoring.aggregate import score_record
from agrotools.scoring.attribution import Attribution
from agrotools.scoring.counterfactual import SampleGame
from agrotools.scoring.event_counts import missing_backend_text
from agrotools.scoring.lost_points import is_split

RunCall = Callable[[ToolCall], Awaitable[Observation | None]]
"""Makes a call in the workspace of a sample; None if only a service or a model of the run could give its result."""
_IN_WORK = 4
"""Samples attributed at a time; their tool calls share the worker processes."""


@dataclass(frozen=True)
class AttributedRun:
    """Folder, manifest and benchmark of a run, whose calls can be made again (None: the benchmark is not here)."""

    run: Path
    manifest: Manifest
    benchmark: Benchmark | None
    notes: tuple[str, ...] = ()


def open_run(
    run: Path, data_root: Path | None = None, progress: Progress = no_progress
) -> AttributedRun:
    """Return a run with its benchmark; its notes say what cannot be done.

    Raises:
        RunStoreError: not a run folder.
    """
    manifest = read_manifest(run)
    if manifest.degrade:
        note = f"no tool is run again: it would not see the degraded pictures of this run ({manifest.degrade})"
        return AttributedRun(run, manifest, None, (note,))
    root = data_root or (Path(manifest.data_root) if manifest.data_root else None)
    try:
        quick = manifest.quick
        loading = Loading(root, manifest.benchmark_options, progress, quick, files_later=True)
        benchmark = load_as(manifest.benchmark_path, loading)
    except AgrotoolsError as error:
        return AttributedRun(run, manifest, None, (f"no tool is run again: {error.message}",))
    if benchmark.content_hash != manifest.benchmark_hash:
        note = f"no tool is run again: {manifest.benchmark_path} is not the version of the benchmark that was run"
        return AttributedRun(run, manifest, None, (note,))
    known = [name for name in manifest.toolset if _is_repeatable(name, manifest.backends.get(name))]
    versions = tool_versions(tool_specs(known))
    changed = [name for name in known if versions[name] != manifest.toolset[name]]
    notes: list[str] = []
    if changed:
        notes.append(f"tools that changed since the run give other results: {', '.join(changed)}")
    if manifest.tool_servers:
        names = ", ".join(use.name for use in manifest.tool_servers)
        notes.append(f"no call of a tool server is made again: {names}")
    return AttributedRun(run, manifest, benchmark, tuple(notes))


class _NeedsResult(Exception):
    """A game needs the result of a call that nobody has made."""

    def __init__(self, call: ToolCall) -> None:
        super().__init__(call.tool)
        self.call = call


class AttributedLoss(NamedTuple):
    """Split of the points that a run lost, and notes on what could not be repeated."""

    attribution: Attribution
    notes: tuple[str, ...]


def attribute_run(
    run: Path, *, data_root: Path | None = None, workers: int = 2, progress: Progress = no_progress
) -> AttributedLoss:
    """Return the split of a run's lost points, after the calls that it needs are made and stored in the run's folder.

    Raises:
        RunStoreError: not a run folder, or one that cannot be written;
        UsageError: the run has no end-to-end score.
    """
    opened = open_run(run, data_root, progress)
    if not os.access(run, os.W_OK):
        raise RunStoreError(
            f"{run} cannot be written", hint="copy the run to a folder that you may write"
        )
    if opened.benchmark is not None:
        asyncio.run(_repeat_calls(opened, workers, progress))
    summary = rescore(run).summary
    mode = summary.modes.get("end-to-end")
    if mode is None or mode.lost is None:
        raise UsageError(
            f"{run} has no end-to-end score whose points could be split",
            hint="run a benchmark with tools in mode end-to-end",
        )
    missing = [
        missing_backend_text(each, count_text(each.samples, "sample"))
        for each in mode.counts.missing_backends
    ]
    return AttributedLoss(mode.lost, (*missing, *opened.notes))


async def _repeat_calls(opened: AttributedRun, workers: int, progress: Progress) -> None:
    """Make the calls that the split of the run's records needs, and append their results to the run's folder."""
    run, repeated = opened.run, read_repeated_calls(opened.run)
    scored = ((record, score_record(record)) for record in iter_records(run))
    lost = [(record, rows) for record, rows in scored if is_split(record, rows)]
    free = asyncio.Semaphore(_IN_WORK)
    done = 0
    progress("samples", 0, len(lost))
    journal = Journal(run / REPEATED_CALLS_FILE)

    async def repeat(record: Record, rows: Sequence[Score]) -> None:
        nonlocal done
        async with free:
            with TemporaryDirectory(prefix="agrotools-") as scratch:
                run_call = call_runner(record, opened, executor, Path(scratch))
                async for each in _repeated_calls(record, rows, repeated, run_call):
                    journal.append(each.model_dump_json().encode() + b"\n")
                    repeated.add(each)
        done += 1
        progress("samples", done, len(lost))

    cache = ResultCache(cache_dir("tool-results"))
    backends = {
        name: each for name, each in opened.manifest.backends.items() if _is_repeatable(name, each)
    }
    try:
        async with ToolExecutor(workers=workers, cache=cache, backends=backends) as executor:
            try:
                async with asyncio.TaskGroup() as group:
                    for record, rows in lost:
                        group.create_task(repeat(record, rows))
            except* AgrotoolsError as failed:
                raise failed.exceptions[0] from None
    finally:
        journal.close()


async def _repeated_calls(
    record: Record, rows: Sequence[Score], repeated: RepeatedCalls, run_call: RunCall
) -> AsyncIterator[RepeatedCall]:
    """Make the calls that the split of a record needs one by one, because what one returns decides the next."""
    known = repeated.of(record)

    def find_result(call: ToolCall) -> Observation | None:
        found = known(call)
        if found is None and not repeated.knows(record, call):
            raise _NeedsResult(call)
        return found

    game = SampleGame(record, rows, find_result)
    while True:
        try:
            game.shares()
            return
        except _NeedsResult as needed:
            call = needed.call
        yield RepeatedCall(
            sample=record.sample.id,
            epoch=record.epoch,
            tool=call.tool,
            arguments=call.arguments,
            observation=await run_call(call),
        )


def _is_repeatable(tool: str, backend: str | None) -> bool:
    """True if a tool is installed here with the back-end and gives the same result again: no model, service, server
    or record."""
    try:
        installed = get_tool(tool)
    except UsageError:
        return False
    backend = backend or installed.backends[0]
    is_ours = installed.has_backend(backend) and not backend.startswith((VLM, SERVED))
    return is_ours and not needs_answers(backend)


def call_runner(
    record: Record, opened: AttributedRun, executor: ToolExecutor, scratch: Path
) -> RunCall:
    """Return a function that runs calls of one sample in a workspace of its own."""
    benchmark, sample = opened.benchmark, record.sample

    async def no_call(_call: ToolCall) -> Observation | None:
        return None

    if benchmark is None:
        return no_call
    files = benchmark.view(benchmark.prepare(sample), "end-to-end").files
    workspace = Workspace(files, scratch)
    steps = record.trajectory.calls if record.trajectory else ()
    made = {
        each.name: each for step in steps if step.observation for each in step.observation.artifacts
    }
    tools = tuple({*sample.toolset, *(sample.reference.tools if sample.reference else ())})

    async def run_call(call: ToolCall) -> Observation | None:
        if not _is_repeatable(call.tool, opened.manifest.backends.get(call.tool)):
            return None
        for name, artifact in made.items():
            source = artifact_path(opened.run, artifact.sha256 or "", Path(name).suffix)
            if name in repr(call.arguments) and not (scratch / name).exists() and source.is_file():
                shutil.copyfile(source, scratch / name)
        return (await executor.run(call, workspace, tools)).observation

    return run_call
