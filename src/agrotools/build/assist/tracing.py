"""Thoughts for reference chains, from traces that confirm them."""

import asyncio
import itertools
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from agrotools.benchmarks import Benchmark, load_folder
from agrotools.build.assist.trace_chain import trace_chain
from agrotools.build.assist.traces import (
    TraceRecord,
    TraceSummary,
    asked_hash,
    by_sample_and_model,
    summary_of,
    trace_file,
)
from agrotools.build.export import rewrite_benchmark
from agrotools.core import AgrotoolsError, ReferenceTrajectory, Sample, ToolCall
from agrotools.core.base import Progress, no_progress
from agrotools.core.files import LineFile
from agrotools.models import Model
from agrotools.models.endpoint import PricedModel
from agrotools.runner.auxiliary_model import ask_each, ready
from agrotools.runner.execute import interrupts
from agrotools.tools.cache import ResultCache
from agrotools.tools.execution import ToolExecutor, ToolOutcome
from agrotools.tools.workspace import Workspace

_LONGEST = 600
_TALK = re.compile(r"\b(?:action|action input|observation|final answer|thought)\s*:|<\/?\w+>|```", re.IGNORECASE)


def with_thoughts(sample: Sample, record: TraceRecord) -> Sample:
    """``sample`` with the model's thoughts in steps that have none, if the trace confirms the chain.

    Thoughts are shown as history in step-by-step. So one that is long, or holds what looks like a call, an observation
    or an answer, is left out.
    """
    if sample.reference is None or not record.confirms:
        return sample
    thoughts: Mapping[int, str] = {step.reference_step: _plain(step.thought) for step in record.steps}
    steps = tuple(
        step if step.thought or not thoughts.get(number) else step.model_copy(update={"thought": thoughts[number]})
        for number, step in enumerate(sample.reference.steps)
    )
    if steps == sample.reference.steps:
        return sample
    reference = ReferenceTrajectory(steps=steps)
    return sample.model_copy(
        update={"reference": reference, "metadata": {**sample.metadata, "thoughts_by": record.model}}
    )


def _plain(thought: str) -> str:
    text = " ".join(thought.split())
    return "" if len(text) > _LONGEST or _TALK.search(text) else text


@dataclass
class Traced:
    """Result of tracing a benchmark. ``differing``: samples whose chain the model does not confirm, for review.

    ``missing``: samples without a trace because there was no reply. ``thoughts``: samples whose reference got
    thoughts. ``stopped``: error that left some without a trace.
    """

    summary: Sequence[TraceSummary]
    differing: list[str]
    missing: int
    thoughts: int = 0
    stopped: AgrotoolsError | None = None


@dataclass
class _Work:
    """``records`` of this and earlier times by sample id."""

    benchmark: Benchmark
    name: str
    model: Model
    file: LineFile[TraceRecord]
    progress: Progress
    records: dict[str, TraceRecord] = field(default_factory=dict)
    asked_to_stop: bool = False


def trace_folder(
    folder: Path, helper: PricedModel, ledger: Path, progress: Progress = no_progress, *, workers: int = 2
) -> Traced:
    """Have the model of ``helper`` fill in the chains of the benchmark in ``folder`` that it has no trace of yet.

    Each trace is written when it ends. Thoughts of confirmed chains fill references without thoughts; for that the
    folder is replaced as a whole.

    Raises:
        BenchmarkError: not a benchmark, or its folder cannot be written.
        RunStoreError: ``traces.jsonl`` cannot be read or written.
        InfrastructureError: no tool worker can be started.
        KeyboardInterrupt: the user interrupted; finished traces are kept.
    """
    benchmark = load_folder(folder)
    samples = [sample for sample in benchmark.samples if sample.reference and sample.reference.steps]
    with trace_file(folder) as file, ready(helper, ledger) as model:
        work = _Work(benchmark, helper.name, model, file, progress)
        known = by_sample_and_model(file.records)
        for sample in samples:
            trace = known.get((sample.id, helper.name))
            if trace is not None and trace.asked == asked_hash(sample):
                work.records[sample.id] = trace
        todo = [sample for sample in samples if sample.id not in work.records]
        stopped = asyncio.run(_trace(todo, work, workers)) if todo else None
    if work.asked_to_stop:
        raise KeyboardInterrupt
    traced = [(sample, work.records[sample.id]) for sample in samples if sample.id in work.records]
    return Traced(
        summary=summary_of(traced),
        differing=[sample.id for sample, record in traced if not record.confirms],
        missing=len(samples) - len(traced),
        thoughts=_fill_thoughts(folder, benchmark, work.records),
        stopped=stopped,
    )


def _fill_thoughts(folder: Path, benchmark: Benchmark, records: dict[str, TraceRecord]) -> int:
    before = list(benchmark.samples)
    after = [with_thoughts(sample, records[sample.id]) if sample.id in records else sample for sample in before]
    filled = sum(new is not old for new, old in zip(after, before, strict=True))
    if filled:
        rewrite_benchmark(folder, benchmark.header, after)
    return filled


async def _trace(todo: Sequence[Sample], work: _Work, workers: int) -> AgrotoolsError | None:
    total, finished, numbers = len(todo), 0, itertools.count()

    def interrupted() -> None:
        work.asked_to_stop = True

    with ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory(prefix="agrotools-")))
        stack.enter_context(interrupts(interrupted))
        try:
            async with ToolExecutor(workers=workers, timeout_s=300, cache=ResultCache()) as executor:

                async def one(sample: Sample) -> None:
                    nonlocal finished
                    view = work.benchmark.view(sample, "end-to-end")
                    workspace = Workspace(view.files, scratch / str(next(numbers)), work.benchmark.root)

                    async def call_tool(call: ToolCall) -> ToolOutcome:
                        return await executor.run(call, workspace, sample.toolset)

                    record = await trace_chain(sample, view, work.name, work.model, call_tool)
                    work.file.add(record)
                    work.records[sample.id] = record
                    finished += 1
                    work.progress("traces", finished, total)

                return (await ask_each(todo, one, work.model, stopped=lambda: work.asked_to_stop)).error
        finally:
            await work.model.close()
