"""Attribution of a run: from its folder and the tools, without a model. See :mod:`agrotools.scoring.attribution`."""

import asyncio
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from agrotools.analysis.counterfactual import RunCall, SampleGame
from agrotools.benchmarks import Benchmark, Loading
from agrotools.benchmarks.loading import load_as
from agrotools.core import AgrotoolsError, Observation, Record, Score, ToolCall, UsageError
from agrotools.core.base import Progress, RunStoreError, no_progress
from agrotools.core.files import artifact_path, cache_dir, write_whole
from agrotools.runner.manifest import Manifest
from agrotools.runner.plan import RECORDED
from agrotools.runner.records import iter_records
from agrotools.runner.rescore import SCORES_FILE, stored_split
from agrotools.runner.store import read_manifest
from agrotools.scoring import score_record
from agrotools.scoring.attribution import (
    ATTRIBUTION_FILE,
    Attribution,
    Shares,
    attribution_of,
    records_hash,
)
from agrotools.scoring.metrics import FAS, is_invalid
from agrotools.scoring.slots import NO_TWIN, Pair, pair_of, refusals
from agrotools.tools import get_tool, tool_specs, tool_versions
from agrotools.tools.cache import ResultCache
from agrotools.tools.execution import ToolExecutor, needs_answers
from agrotools.tools.services import VLM
from agrotools.tools.workspace import Workspace

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
    root = data_root or (Path(manifest.data_root) if manifest.data_root else None)
    try:
        quick = manifest.quick
        loading = Loading(
            root, manifest.benchmark_options, progress, quick, files_later=not manifest.degrade
        )
        benchmark = load_as(manifest.benchmark_path, loading)
        if manifest.degrade:
            from agrotools.runner.degradation import Degradation, degrade_benchmark

            degradation = Degradation.parse(manifest.degrade)
            benchmark = degrade_benchmark(benchmark, degradation, manifest.seed, quick=quick)
            benchmark.degrade_files([*manifest.sample_ids], progress)
    except AgrotoolsError as error:
        return AttributedRun(run, manifest, None, (f"no tool is run again: {error.message}",))
    if benchmark.content_hash != manifest.benchmark_hash:
        note = f"no tool is run again: {manifest.benchmark_path} is not the version of the benchmark that was run"
        return AttributedRun(run, manifest, None, (note,))
    known = [name for name in manifest.toolset if _is_repeatable(name, manifest.backends.get(name))]
    versions = tool_versions(tool_specs(known))
    changed = [name for name in known if versions[name] != manifest.toolset[name]]
    notes = (
        (f"tools that changed since the run give other results: {', '.join(changed)}",)
        if changed
        else ()
    )
    return AttributedRun(run, manifest, benchmark, notes)


def attribute_run(
    run: Path, *, data_root: Path | None = None, workers: int = 2, progress: Progress = no_progress
) -> Attribution:
    """Return the attribution of a run, and write it to ``attribution.json`` and ``scores.json``.

    Raises:
        RunStoreError: not a run folder, or one that cannot be written;
        UsageError: no record can be attributed.
    """
    opened, hashed = open_run(run, data_root, progress), records_hash(run)
    if not os.access(run, os.W_OK):
        raise RunStoreError(
            f"{run} cannot be written", hint="copy the run to a folder that you may write"
        )
    records, left_out = _records(run)
    if not records:
        reasons = (
            "; ".join(f"{count} {reason}" for reason, count in left_out.items())
            or "it has no records"
        )
        raise UsageError(
            f"nothing in {run} can be attributed: {reasons}",
            hint="run a benchmark with tools in mode end-to-end",
        )
    results = asyncio.run(_attribute(records, opened, workers, progress))
    attribution = attribution_of(results, records=hashed, left_out=left_out, notes=opened.notes)
    write_whole(
        run / ATTRIBUTION_FILE,
        orjson.dumps(attribution.model_dump(mode="json"), option=orjson.OPT_INDENT_2),
    )
    with suppress(
        FileNotFoundError, ValueError, TypeError
    ):  # a damaged file is written anew by `agrotools score`
        scores = orjson.loads((run / SCORES_FILE).read_bytes())
        scores["attribution"] = stored_split(run)  # the same without its samples
        write_whole(run / SCORES_FILE, orjson.dumps(scores, option=orjson.OPT_INDENT_2))
    return attribution


def _records(run: Path) -> tuple[list[tuple[Record, list[Score], bool]], dict[str, int]]:
    """Return the records that can be attributed, with their rows and whether the twin takes a point; and the others."""
    left_out: Counter[str] = Counter()
    chosen: list[tuple[Record, list[Score]]] = []
    twins: dict[Pair | None, bool] = {}
    """Whether the answerable sample of a pair was refused."""
    for record in iter_records(run):
        if record.mode != "end-to-end":
            left_out[f"in mode {record.mode}"] += 1
            continue
        scores = score_record(record)
        if is_invalid(record):
            left_out["invalid"] += 1
            continue
        if record.sample.answerable:
            twins[pair_of(record)] = refusals(record, scores)[FAS]
        if record.sample.reference is None or not record.sample.reference.steps:
            left_out["without reference calls"] += 1
        elif record.sample.answerable and all(row.metric != FAS for row in scores):
            left_out["without a Final Answer Score"] += 1
        else:
            chosen.append((record, scores))
    paired = [each for each in chosen if each[0].sample.answerable or pair_of(each[0]) in twins]
    left_out[f"unanswerable, {NO_TWIN}"] += len(chosen) - len(paired)
    return [
        (record, scores, not record.sample.answerable and twins[pair_of(record)])
        for record, scores in paired
    ], dict(+left_out)


async def _attribute(
    records: Sequence[tuple[Record, list[Score], bool]],
    opened: AttributedRun,
    workers: int,
    progress: Progress,
) -> list[Shares]:
    """Return the shares of each record, a few records at a time."""
    free, done = asyncio.Semaphore(_IN_WORK), 0
    progress("samples", 0, len(records))

    async def play(record: Record, scores: list[Score], twin_refused: bool) -> Shares:
        nonlocal done
        async with free:
            with TemporaryDirectory(prefix="agrotools-") as scratch:
                run_call = call_runner(record, opened, executor, Path(scratch))
                shares = await SampleGame(
                    record, scores, run_call, twin_refused=twin_refused
                ).shares()
        done += 1
        progress("samples", done, len(records))
        return shares

    manifest, cache = opened.manifest, ResultCache(cache_dir("tool-results"))
    backends = {
        name: each for name, each in manifest.backends.items() if _is_repeatable(name, each)
    }
    async with ToolExecutor(workers=workers, cache=cache, backends=backends) as executor:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(play(*each)) for each in records]
        except* AgrotoolsError as failed:
            raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


def _is_repeatable(tool: str, backend: str | None) -> bool:
    """True if a tool is installed here and gives the same result again: no model, no service, no recorded result."""
    try:
        backend = backend or get_tool(tool).backends[0]
    except UsageError:
        return False
    return not backend.startswith((RECORDED, VLM)) and not needs_answers(backend)


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
