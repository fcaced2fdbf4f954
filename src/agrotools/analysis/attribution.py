"""Attribution of a run: from its folder and the tools, without a model. See :mod:`agrotools.scoring.attribution`."""

import asyncio
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
from pydantic import JsonValue

from agrotools.analysis.counterfactual import RunCall, SampleGame
from agrotools.benchmarks import Benchmark, load_benchmark
from agrotools.core import AgrotoolsError, Observation, Record, RunStoreError, Score, ToolCall, UsageError
from agrotools.core.base import Progress, no_progress
from agrotools.core.files import artifact_path, cache_dir, write_whole
from agrotools.runner.manifest import Manifest
from agrotools.runner.records import iter_records
from agrotools.runner.rescore import SCORES_FILE, stored_version
from agrotools.runner.store import read_manifest
from agrotools.runner.toolsets import RECORDED
from agrotools.scoring import score_record
from agrotools.scoring.attribution import ATTRIBUTION_FILE, Attribution, Shares, attribution_of
from agrotools.scoring.metrics import FALSE_REFUSAL, FAS, SCORING_VERSION, is_invalid
from agrotools.tools import get_tool
from agrotools.tools.cache import ResultCache
from agrotools.tools.execution import ToolExecutor, needs_answers
from agrotools.tools.services import VLM
from agrotools.tools.workspace import Workspace

_IN_WORK = 4
"""Samples attributed at a time; their tool calls share the worker processes."""


@dataclass(frozen=True)
class Bench:
    """Where the calls of a run can be made again: its folder, manifest and benchmark (None: its files are not here)."""

    run: Path
    manifest: Manifest
    benchmark: Benchmark | None
    notes: tuple[str, ...] = ()


def open_bench(run: Path, data_root: Path | None = None, progress: Progress = no_progress) -> Bench:
    """Return the bench of a run; its notes say what limits it.

    Raises:
        RunStoreError: not a run folder.
    """
    manifest = read_manifest(run)
    root = data_root or (Path(manifest.data_root) if manifest.data_root else None)
    try:
        benchmark = load_benchmark(manifest.benchmark_path, root, progress, manifest.benchmark_options)
        if manifest.degrade:
            from agrotools.runner.degradation import Degradation, degrade_benchmark

            degradation = Degradation.parse(manifest.degrade)
            benchmark = degrade_benchmark(benchmark, degradation, manifest.seed, quick=manifest.quick)
            benchmark.prepare([*manifest.sample_ids], progress)
    except AgrotoolsError as error:
        return Bench(run, manifest, None, (f"no tool is run again: {error.message}",))
    if benchmark.content_hash != manifest.benchmark_hash:
        note = f"no tool is run again: {manifest.benchmark_path} is not the version of the benchmark that was run"
        return Bench(run, manifest, None, (note,))
    return Bench(run, manifest, benchmark)


def attribute_run(
    run: Path, *, data_root: Path | None = None, workers: int = 2, progress: Progress = no_progress
) -> Attribution:
    """Return the attribution of a run, and write it to ``attribution.json`` and ``scores.json``.

    Raises:
        RunStoreError: not a run folder, or one that cannot be written;
        UsageError: no record can be attributed.
    """
    bench = open_bench(run, data_root, progress)
    records, left_out = _records(run)
    if not records:
        reasons = "; ".join(f"{count} {reason}" for reason, count in left_out.items()) or "it has no records"
        raise UsageError(
            f"nothing in {run} can be attributed: {reasons}", hint="run a benchmark with tools in mode end-to-end"
        )
    results = asyncio.run(_attribute(records, bench, workers, progress))
    attribution = attribution_of(results, left_out=left_out, notes=bench.notes)
    write_attribution(run, attribution)
    return attribution


def read_attribution(run: Path) -> Attribution | None:
    """Return the stored attribution of a run; None if there is none of the current scoring version."""
    path = run / ATTRIBUTION_FILE
    if not path.is_file():
        return None
    try:
        attribution = Attribution.model_validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RunStoreError(f"{path} cannot be read: {error}", hint=f"run agrotools attribute {run} again") from error
    return attribution if attribution.scoring == SCORING_VERSION else None


def write_attribution(run: Path, attribution: Attribution) -> None:
    """Write ``attribution.json``, and the same without its samples under ``attribution`` in ``scores.json``."""
    write_whole(run / ATTRIBUTION_FILE, orjson.dumps(attribution.model_dump(mode="json"), option=orjson.OPT_INDENT_2))
    if stored_version(run) == SCORING_VERSION:
        scores = orjson.loads((run / SCORES_FILE).read_bytes())
        scores["attribution"] = attribution.model_dump(mode="json", exclude={"samples"})
        write_whole(run / SCORES_FILE, orjson.dumps(scores, option=orjson.OPT_INDENT_2))


def _records(run: Path) -> tuple[list[tuple[Record, list[Score], bool]], dict[str, int]]:
    """Return the records that can be attributed, with their rows and whether a refusal counts; and the others."""
    left_out: Counter[str] = Counter()
    chosen: list[tuple[Record, list[Score]]] = []
    refused: set[tuple[str, int]] = set()
    for record in iter_records(run):
        if record.mode != "end-to-end":
            left_out[f"in mode {record.mode}"] += 1
            continue
        scores = score_record(record)
        refused |= {(record.sample.id, record.epoch) for row in scores if row.metric == FALSE_REFUSAL and row.value}
        if is_invalid(record):
            left_out["invalid"] += 1
        elif record.sample.reference is None or not record.sample.reference.steps:
            left_out["without reference calls"] += 1
        elif all(row.metric != FAS for row in scores):
            left_out["without a Final Answer Score"] += 1
        else:
            chosen.append((record, scores))
    twins = [(str(record.sample.twin), record.epoch) for record, _ in chosen]
    return [
        (record, scores, record.sample.answerable or twin not in refused)
        for (record, scores), twin in zip(chosen, twins, strict=True)
    ], dict(left_out)


async def _attribute(
    records: Sequence[tuple[Record, list[Score], bool]], bench: Bench, workers: int, progress: Progress
) -> list[Shares]:
    results: list[Shares | None] = [None] * len(records)
    waiting = iter(enumerate(records))
    done = 0
    progress("samples", 0, len(records))
    async with executor_of(bench, workers) as executor:

        async def take() -> None:
            nonlocal done
            for at, (record, scores, credited) in waiting:
                with TemporaryDirectory(prefix="agrotools-") as scratch:
                    run_call = call_runner(record, bench, executor, Path(scratch))
                    results[at] = await SampleGame(record, scores, run_call, credited=credited).shares()
                done += 1
                progress("samples", done, len(records))

        async with asyncio.TaskGroup() as group:
            for _ in range(_IN_WORK):
                group.create_task(take())
    return [each for each in results if each is not None]


def executor_of(bench: Bench, workers: int) -> ToolExecutor:
    """Return an executor with those back-ends of the run that give the same result again."""
    backends = {name: each for name, each in bench.manifest.backends.items() if _is_repeatable(name, each)}
    return ToolExecutor(workers=workers, cache=ResultCache(cache_dir("tool-results")), backends=backends)


def _is_repeatable(tool: str, backend: str | None) -> bool:
    """True if a tool is installed here and gives the same result again: no model, no service, no recorded result."""
    try:
        backend = backend or get_tool(tool).backends[0]
    except UsageError:
        return False
    return not backend.startswith((RECORDED, VLM)) and not needs_answers(backend)


def call_runner(record: Record, bench: Bench, executor: ToolExecutor, scratch: Path) -> RunCall:
    """Return a function that runs calls of one sample in a workspace of its own."""
    benchmark, sample = bench.benchmark, record.sample

    async def no_call(_call: ToolCall) -> Observation | None:
        return None

    if benchmark is None:
        return no_call
    files = benchmark.view(sample, "end-to-end").files
    workspace = Workspace(files, scratch)
    steps = record.trajectory.calls if record.trajectory else ()
    made = {each.name: each for step in steps if step.observation for each in step.observation.artifacts}
    tools = tuple({*sample.toolset, *(sample.reference.tools if sample.reference else ())})

    async def run_call(call: ToolCall) -> Observation | None:
        if not _is_repeatable(call.tool, bench.manifest.backends.get(call.tool)):
            return None
        for name in made.keys() & set(_texts(call.arguments)):
            source = artifact_path(bench.run, made[name].sha256 or "", Path(name).suffix)
            if not (scratch / name).exists() and source.is_file():
                shutil.copyfile(source, scratch / name)
        return (await executor.run(call, workspace, tools)).observation

    return run_call


def _texts(value: JsonValue | Mapping[str, JsonValue]) -> Iterator[str]:
    """Yield all texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
