"""Attribution of a run: from its folder and the tools, without a model. See :mod:`agrotools.scoring.attribution`."""

import asyncio
import os
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import orjson

from agrotools.agents import ModelAgent
from agrotools.analysis.counterfactual import RunCall, SampleGame
from agrotools.analysis.tool_noise import tool_noise
from agrotools.benchmarks import Benchmark, Loading
from agrotools.benchmarks.loading import load_as
from agrotools.core import AgrotoolsError, Answer, CallTools, Observation, Record, Score, Step, ToolCall, UsageError
from agrotools.core.base import Progress, RunStoreError, no_progress
from agrotools.core.files import artifact_path, cache_dir, write_whole
from agrotools.models.metered import most_output_tokens
from agrotools.runner.build import prepare_run, stored_options
from agrotools.runner.config import EvalConfig
from agrotools.runner.estimate import RENDERED, TYPICAL_OUTPUT_TOKENS, Estimate, closing_request, request_tokens
from agrotools.runner.manifest import Manifest
from agrotools.runner.plan import RECORDED
from agrotools.runner.policies import PolicySource, accounted, is_agent, is_baseline, replayed_run
from agrotools.runner.records import iter_records
from agrotools.runner.rescore import SCORES_FILE, stored_split
from agrotools.runner.store import read_manifest
from agrotools.scoring import score_record
from agrotools.scoring.attribution import ATTRIBUTION_FILE, Attribution, Shares, attribution_of, records_hash
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


def open_run(run: Path, data_root: Path | None = None, progress: Progress = no_progress) -> AttributedRun:
    """Return a run with its benchmark; its notes say what cannot be done.

    Raises:
        RunStoreError: not a run folder.
    """
    manifest = read_manifest(run)
    root = data_root or (Path(manifest.data_root) if manifest.data_root else None)
    try:
        quick = manifest.quick
        loading = Loading(root, manifest.benchmark_options, progress, quick, files_later=not manifest.degrade)
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
    notes = (f"tools that changed since the run give other results: {', '.join(changed)}",) if changed else ()
    return AttributedRun(run, manifest, benchmark, notes)


def attribute_run(
    run: Path,
    *,
    data_root: Path | None = None,
    workers: int = 2,
    rerun: "Rerun | None" = None,
    noise: bool = False,
    progress: Progress = no_progress,
) -> Attribution:
    """Return the attribution of a run, and write it to ``attribution.json`` and ``scores.json``.

    Args:
        rerun: asks the model again where replaced parts change what it sees; None: it is not asked.
        noise: also predict the score by the error of each tool (:mod:`agrotools.analysis.tool_noise`).

    Raises:
        RunStoreError: not a run folder, or one that cannot be written;
        UsageError: no record can be attributed, or the model cannot be asked again.
    """
    opened, hashed = open_run(run, data_root, progress), records_hash(run)
    if not os.access(run, os.W_OK):
        raise RunStoreError(f"{run} cannot be written", hint="copy the run to a folder that you may write")
    records, left_out = _records(run)
    if not records:
        reasons = "; ".join(f"{count} {reason}" for reason, count in left_out.items()) or "it has no records"
        raise UsageError(
            f"nothing in {run} can be attributed: {reasons}", hint="run a benchmark with tools in mode end-to-end"
        )
    results = asyncio.run(_attribute(records, opened, workers, progress, rerun))
    attribution = attribution_of(
        results, records=hashed, rerun=rerun is not None, left_out=left_out, notes=opened.notes
    )
    if noise:
        samples = {record.sample.id: record.sample for record, _, _ in records}
        others = opened.benchmark.samples if opened.benchmark else None
        predicted = tool_noise([*samples.values()], others, progress=progress)
        attribution = attribution.model_copy(update={"tool_noise": predicted})
    write_whole(run / ATTRIBUTION_FILE, orjson.dumps(attribution.model_dump(mode="json"), option=orjson.OPT_INDENT_2))
    with suppress(FileNotFoundError, ValueError, TypeError):  # a damaged file is written anew by `agrotools score`
        scores = orjson.loads((run / SCORES_FILE).read_bytes())
        scores["attribution"] = stored_split(run)  # the same without its samples
        write_whole(run / SCORES_FILE, orjson.dumps(scores, option=orjson.OPT_INDENT_2))
    return attribution


@dataclass(frozen=True)
class Rerun:
    """Requests to the model of a run: options of its endpoint, and a callback that may refuse the estimated cost."""

    confirm: Callable[[Estimate], None]
    api_key_env: str | None = None
    price: str | None = None
    budget: float | None = None

    def source(self, opened: AttributedRun) -> PolicySource:
        """Return the policy of a run.

        Raises:
            UsageError: it cannot be asked again.
        """
        manifest, benchmark = opened.manifest, opened.benchmark
        if benchmark is None or is_agent(manifest.model) or replayed_run(manifest.model):
            reason = (
                opened.notes[0] if benchmark is None else f"{manifest.model} cannot be shown calls that it did not make"
            )
            raise UsageError(f"--rerun: {reason}", hint="omit --rerun: joint parts are then reported as such")
        baseline = {"seed": manifest.seed} if is_baseline(manifest.model) else {"protocol": manifest.protocol}
        asked = {"api_key_env": self.api_key_env, "price": self.price, "budget": self.budget}
        fields = {**baseline, **stored_options(manifest), "mode": "end-to-end", **asked}
        return prepare_run(EvalConfig.model_validate(fields), benchmark).source


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
        (record, scores, not record.sample.answerable and twins[pair_of(record)]) for record, scores in paired
    ], dict(+left_out)


async def _attribute(
    records: Sequence[tuple[Record, list[Score], bool]],
    opened: AttributedRun,
    workers: int,
    progress: Progress,
    rerun: Rerun | None,
) -> list[Shares]:
    source = rerun.source(opened) if rerun else None
    games: dict[int, SampleGame] = {}
    asked: list[tuple[int, tuple[Step, ...]]] = []

    async def note(at: int, history: tuple[Step, ...]) -> None:
        """Count a request instead of sending it."""
        asked.append((at, history))

    async def play(at: int) -> Shares:
        record, scores, twin_refused = records[at]
        with TemporaryDirectory(prefix="agrotools-") as scratch:
            game = games[at] = SampleGame(
                record, scores, call_runner(record, opened, executor, Path(scratch)), twin_refused=twin_refused
            )
            if rerun:
                game.ask = partial(note, at)
            return await game.shares()

    manifest, cache = opened.manifest, ResultCache(cache_dir("tool-results"))
    backends = {name: each for name, each in manifest.backends.items() if _is_repeatable(name, each)}
    async with ToolExecutor(workers=workers, cache=cache, backends=backends) as executor:
        results = await _each(play, range(len(records)), "samples", progress)
    if rerun is None or source is None or not asked:
        return results
    rerun.confirm(await _expected(source, asked, records, opened))
    with accounted(source, opened.run, cache=None) as accounts:
        try:
            return await _each(
                partial(_play_again, accounts.source, games, opened), range(len(records)), "samples, asking", progress
            )
        finally:
            if source.model is not None:
                await source.model.close()


async def _each(
    act: Callable[[int], Awaitable[Shares]], places: Sequence[int], what: str, progress: Progress
) -> list[Shares]:
    """Return the result of ``act`` for each place, a few at a time."""
    free, done = asyncio.Semaphore(_IN_WORK), 0
    progress(what, 0, len(places))

    async def one(at: int) -> Shares:
        nonlocal done
        async with free:
            shares = await act(at)
        progress(what, done := done + 1, len(places))
        return shares

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(at)) for at in places]
    except* AgrotoolsError as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


async def _play_again(source: PolicySource, games: Mapping[int, SampleGame], opened: AttributedRun, at: int) -> Shares:
    assert opened.benchmark is not None
    record = games[at].record
    view = opened.benchmark.view(opened.benchmark.prepare(record.sample), "end-to-end")

    async def ask(history: tuple[Step, ...]) -> str | None:
        action = await source.make(record.sample, "end-to-end", record.epoch).act(view, history)
        return action.text if isinstance(action, Answer) else None if isinstance(action, CallTools) else ""

    games[at].ask_again(ask)
    return await games[at].shares()


async def _expected(
    source: PolicySource,
    asked: Sequence[tuple[int, tuple[Step, ...]]],
    records: Sequence[tuple[Record, list[Score], bool]],
    opened: AttributedRun,
) -> Estimate:
    """Return the estimated tokens and cost of ``asked``, from some of them."""
    each, tokens, most = 0.0, 0.0, 0
    sampled = Random(0).sample(asked, min(len(asked), RENDERED))
    for at, history in sampled:
        sample = records[at][0].sample
        agent = source.make(sample, "end-to-end", 0)
        if isinstance(agent, ModelAgent) and source.base_url and opened.benchmark is not None:
            view = opened.benchmark.view(opened.benchmark.prepare(sample), "end-to-end")
            first = await request_tokens(view, history, agent, source.price)
            closing, further = closing_request(view, agent, first)
            tokens += (first + further) / len(sampled)
            each += (1 + closing) / len(sampled)
            most = most_output_tokens(agent.settings)
    n, price = round(len(asked) * (each or 1)), source.price
    a_request = round(tokens / (each or 1))
    low, high = (n * price.usd(a_request, out) if price else None for out in (TYPICAL_OUTPUT_TOKENS, most))
    return Estimate(source.name, n, n * a_request, (n * TYPICAL_OUTPUT_TOKENS, n * most), low, high, price)


def _is_repeatable(tool: str, backend: str | None) -> bool:
    """True if a tool is installed here and gives the same result again: no model, no service, no recorded result."""
    try:
        backend = backend or get_tool(tool).backends[0]
    except UsageError:
        return False
    return not backend.startswith((RECORDED, VLM)) and not needs_answers(backend)


def call_runner(record: Record, opened: AttributedRun, executor: ToolExecutor, scratch: Path) -> RunCall:
    """Return a function that runs calls of one sample in a workspace of its own."""
    benchmark, sample = opened.benchmark, record.sample

    async def no_call(_call: ToolCall) -> Observation | None:
        return None

    if benchmark is None:
        return no_call
    files = benchmark.view(benchmark.prepare(sample), "end-to-end").files
    workspace = Workspace(files, scratch)
    steps = record.trajectory.calls if record.trajectory else ()
    made = {each.name: each for step in steps if step.observation for each in step.observation.artifacts}
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
