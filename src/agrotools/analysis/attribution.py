"""Attribution of a run: from its folder and the tools, without a model. See :mod:`agrotools.scoring.attribution`.

Calls of tools that ran on a server are made on it again, each sample with a session of its own, in which the sample's
calls are made first, in their order: a server remembers. Where it then says something else than in the run, its other
results would be no results of the run, and are not taken.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pydantic import JsonValue

from agrotools.calling import get_tool, tool_specs, tool_versions
from agrotools.calling.cache import ResultCache
from agrotools.calling.contract import SERVED
from agrotools.calling.execution import ToolExecutor, needs_answers
from agrotools.calling.services import VLM
from agrotools.calling.workspace import Workspace
from agrotools.core import (
    AgrotoolsError,
    Artifact,
    InfrastructureError,
    Observation,
    Record,
    Score,
    ToolCall,
    UsageError,
)
from agrotools.core.errors import RunStoreError
from agrotools.core.files import Journal, artifact_path, cache_dir
from agrotools.core.progress import Progress, no_progress
from agrotools.core.texts import count_text, first_names
from agrotools.formats.manifest import Manifest, ServerUse
from agrotools.loading import Benchmark, Loading
from agrotools.loading.benchmarks import load_as
from agrotools.runner.plan import tool_data
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
from agrotools.served.address import read_address
from agrotools.served.binding import read_binding
from agrotools.served.tools import NO_SERVERS, ServedCalls, ServedToolset, open_toolset
from agrotools.text.agreement_values import same_json

_IN_WORK = 4
"""Samples attributed at a time; their tool calls share the worker processes."""
_PROGRESS = "samples with lost points"
_MOST_NAMED = 3
"""Samples that a note names."""


@dataclass(frozen=True)
class AttributedRun:
    """Folder, manifest and benchmark of a run, whose calls can be made again (None: the benchmark is not here)."""

    run: Path
    manifest: Manifest
    benchmark: Benchmark | None
    notes: tuple[str, ...] = ()
    served: ServedToolset = NO_SERVERS
    """Tool servers that run tools of ours, as in the run."""

    def is_repeatable(self, tool: str) -> bool:
        """True if a call of a tool can be made again: here, or on its tool server."""
        return tool in self.served.bound or _is_repeatable(tool, self.manifest.backends.get(tool))


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
    try:
        served = _open_servers(manifest, benchmark)
    except AgrotoolsError as error:
        served = NO_SERVERS
        notes.append(f"no call of a tool server is made again: {error}")
    return AttributedRun(run, manifest, benchmark, tuple(notes), served)


def _bound_backends(manifest: Manifest) -> dict[str, str]:
    """Return the back-ends of the tools of ours that a binding ran on a server."""
    return {
        tool: backend for tool, backend in manifest.backends.items() if backend.startswith(SERVED)
    }


def _open_servers(manifest: Manifest, benchmark: Benchmark) -> ServedToolset:
    """Return the servers that ran tools of ours, with their bindings.

    Tools that servers offer beside ours are in no reference, so that no split needs a call of them.

    Raises:
        UsageError: a binding or a server is not the one of the run any more, or cannot be used.
        InfrastructureError: a server does not start.
    """
    backends = _bound_backends(manifest)
    if not backends:
        return NO_SERVERS
    for tool, digest in tool_data([*backends], backends).items():
        if digest != manifest.tool_data.get(tool, digest):
            file = backends[tool].removeprefix(SERVED)
            raise UsageError(f"the binding {file} changed since the run", hint="restore it")
    files = [*dict.fromkeys(backend.removeprefix(SERVED) for backend in backends.values())]
    bindings = [read_binding(Path(file), get_tool) for file in files]
    named = {read_address(each.server).text for each in bindings if each.server}
    others = [use for use in manifest.tool_servers if use.address not in named]
    needs_other = not all(each.server for each in bindings)
    served = open_toolset(
        [_full_address(use) for use in others] if needs_other else [],
        files,
        get_tool,
        taken=benchmark.toolset,
        answers=[benchmark.root, cache_dir()],
    )
    of_run = {use.name: (use.version, use.schemas) for use in manifest.tool_servers}
    for use in served.uses:
        if of_run.get(use.name) != (use.version, use.schemas):
            raise UsageError(f"the tool server {use.name} changed since the run")
    return served


def _full_address(use: ServerUse) -> str:
    """Return the address of a server with its name; without one that no user can have given: it gives that itself."""
    return f"{use.name}={use.address}" if use.name[0].isalpha() else use.address


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
    faults: list[str] = []
    if opened.benchmark is not None:
        faults = asyncio.run(_repeat_calls(opened, opened.benchmark, workers, progress))
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
    return AttributedLoss(mode.lost, (*missing, *opened.notes, *faults))


async def _repeat_calls(
    opened: AttributedRun, benchmark: Benchmark, workers: int, progress: Progress
) -> list[str]:
    """Make the calls that the split of the run's records needs, and append their results to the run's folder.

    Returns:
        Notes on samples whose tool server gave no results.
    """
    run = opened.run
    of_servers = _bound_backends(opened.manifest)
    repeated = read_repeated_calls(run, of_servers)
    scored = ((record, score_record(record)) for record in iter_records(run))
    lost = [(record, rows) for record, rows in scored if is_split(record, rows)]
    free = asyncio.Semaphore(_IN_WORK)
    faults: dict[str, list[str]] = {}
    done = 0
    progress(_PROGRESS, 0, len(lost))
    journal = Journal(run / REPEATED_CALLS_FILE)

    async def repeat(record: Record, rows: Sequence[Score]) -> None:
        nonlocal done
        async with free:
            with TemporaryDirectory(prefix="agrotools-") as scratch:
                caller = RepeatedCaller(record, opened, benchmark, executor, Path(scratch))
                async with aclosing(caller):
                    async for each in _repeated_calls(record, rows, repeated, caller):
                        # A server may give later what it does not give now.
                        if each.observation is not None or each.tool not in of_servers:
                            journal.append(each.model_dump_json().encode() + b"\n")
                        repeated.add(each)
        if caller.fault:
            faults.setdefault(caller.fault, []).append(record.sample.id)
        done += 1
        progress(_PROGRESS, done, len(lost))

    cache = ResultCache(cache_dir("tool-results"))
    backends = {
        name: each for name, each in opened.manifest.backends.items() if opened.is_repeatable(name)
    }
    served = ServedCalls(opened.served) if opened.served.servers else None
    try:
        async with ToolExecutor(
            workers=workers, cache=cache, backends=backends, served=served
        ) as executor:
            try:
                async with asyncio.TaskGroup() as group:
                    for record, rows in lost:
                        group.create_task(repeat(record, rows))
            except* AgrotoolsError as failed:
                raise failed.exceptions[0] from None
    finally:
        journal.close()
    notes: list[str] = []
    for fault, samples in faults.items():
        named = f"{count_text(len(samples), 'sample')} ({first_names(samples, _MOST_NAMED)})"
        notes.append(f"no call of a tool server is made again in {named}: {fault}")
    return notes


async def _repeated_calls(
    record: Record, rows: Sequence[Score], repeated: RepeatedCalls, caller: "RepeatedCaller"
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
            observation=await caller.run(call),
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


class RepeatedCaller:
    """Makes calls on the files of one sample, in a workspace and in sessions with tool servers of its own."""

    def __init__(
        self,
        record: Record,
        opened: AttributedRun,
        benchmark: Benchmark,
        executor: ToolExecutor,
        scratch: Path,
    ) -> None:
        sample = record.sample
        self.fault = ""
        """Why the tool server of the sample gives no results; empty if it does, or is not needed."""
        self._record, self._opened, self._executor = record, opened, executor
        files = benchmark.view(benchmark.prepare(sample), "end-to-end").files
        self._workspace, self._scratch = Workspace(files, scratch), scratch
        self._steps = record.trajectory.calls if record.trajectory else ()
        self._tools = (*{*sample.toolset, *(sample.reference.tools if sample.reference else ())},)
        self._has_made_own = False

    async def run(self, call: ToolCall) -> Observation | None:
        """Return the result of a call; None if only a service, a model or a server of the run could give it."""
        if not self._opened.is_repeatable(call.tool):
            return None
        if call.tool not in self._opened.served.bound:
            return await self._result(call)
        try:
            await self._make_own_calls()
            return None if self.fault else await self._result(call)
        except InfrastructureError as error:
            self.fault = str(error)
            return None

    async def aclose(self) -> None:
        """End the sessions with tool servers."""
        await self._executor.end_sample(self._workspace)

    async def _result(self, call: ToolCall) -> Observation:
        for step in self._steps:
            for made in step.observation.artifacts if step.observation else ():
                self._lay_out(made, call)
        return (await self._executor.run(call, self._workspace, self._tools)).observation

    def _lay_out(self, made: Artifact, call: ToolCall) -> None:
        """Copy a file that a call of the run made to the workspace, if a call names it."""
        source = artifact_path(self._opened.run, made.sha256 or "", Path(made.name).suffix)
        place = self._scratch / made.name
        if made.name in repr(call.arguments) and not place.exists() and source.is_file():
            shutil.copyfile(source, place)

    async def _make_own_calls(self) -> None:
        """Make the sample's own calls of tools on servers again, in their order, before the first other one."""
        if self._has_made_own:
            return
        self._has_made_own = True
        own_results = {fault.call: fault.original for fault in self._record.faults if fault.landed}
        for number, step in enumerate(self._steps):
            recorded = own_results.get(number, step.observation)
            if step.call is None or recorded is None:  # a fault was in the place of the call
                continue
            if step.call.tool not in self._opened.served.bound:
                continue
            if not _is_same(recorded, await self._result(step.call)):
                self.fault = f"{step.call.tool} gives another result than in the run"
                return


def _is_same(recorded: Observation, again: Observation) -> bool:
    """True if a call has the result that it had in the run, whatever its files are called."""
    return same_json(_values(recorded), _values(again), rounded=True)


def _values(observation: Observation) -> JsonValue:
    """Return the values of a result without names of files; None of a call that failed."""
    if observation.result is None:
        return None
    files = [made.name for made in observation.artifacts]
    return {name: value for name, value in observation.result.items() if value not in files}
