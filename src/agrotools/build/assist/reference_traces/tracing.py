"""The traces of a whole benchmark folder: what is missing is asked for, what is there is kept."""

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from agrotools.benchmarks import Benchmark, load_folder
from agrotools.build.assist.reference_traces.chain import trace_chain
from agrotools.build.assist.reference_traces.records import TraceRecord, asked_hash, by_sample_and_model, trace_file
from agrotools.build.assist.reference_traces.summary import TraceSummary, summary_of
from agrotools.build.assist.reference_traces.thoughts import with_thoughts
from agrotools.build.export import rewrite_benchmark
from agrotools.core import AgrotoolsError, Sample, ToolCall
from agrotools.core.files import LineFile
from agrotools.core.progress import Progress, no_progress
from agrotools.models import Model
from agrotools.runner.auxiliary_model import Helper, ask_each, ready
from agrotools.runner.pace import interrupts
from agrotools.tools.cache import ResultCache
from agrotools.tools.execution import ToolExecutor, ToolOutcome
from agrotools.tools.workspace import Workspace


@dataclass
class Traced:
    """What came of it. ``differing``: samples whose chain the model does not confirm, for review.

    ``missing``: samples without a trace because no reply could be had. ``thoughts``: samples whose reference got
    thoughts. ``stopped``: why some are missing.
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
    folder: Path, helper: Helper, ledger: Path, progress: Progress = no_progress, *, workers: int = 2
) -> Traced:
    """Have the model of ``helper`` fill in the chains of the benchmark in ``folder`` that it has no trace of yet.

    Each trace is written as it ends. Thoughts of chains that it confirms fill those that the references lack; for
    that the folder is replaced, whole.

    Raises:
        BenchmarkError: no benchmark, or its folder cannot be written.
        RunStoreError: ``traces.jsonl`` cannot be read or written.
        InfrastructureError: no tool worker can be started.
        KeyboardInterrupt: somebody asked to stop; what has finished is kept.
    """
    benchmark = load_folder(folder)
    samples = [sample for sample in benchmark.samples if sample.reference and sample.reference.steps]
    with trace_file(folder) as file, ready(helper, ledger) as model:
        work = _Work(benchmark, helper.spec, model, file, progress)
        known = by_sample_and_model(file.held)
        for sample in samples:
            held = known.get((sample.id, helper.spec))
            if held is not None and held.asked == asked_hash(sample):
                work.records[sample.id] = held
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
    total, done, numbers = len(todo), 0, itertools.count()

    def interrupted() -> None:
        work.asked_to_stop = True

    with ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory(prefix="agrotools-")))
        stack.enter_context(interrupts(interrupted))
        try:
            async with ToolExecutor(workers=workers, timeout_s=300, cache=ResultCache()) as executor:

                async def one(sample: Sample) -> None:
                    nonlocal done
                    view = work.benchmark.view(sample, "end-to-end")
                    workspace = Workspace(view.files, scratch / str(next(numbers)), work.benchmark.root)

                    async def call_tool(call: ToolCall) -> ToolOutcome:
                        return await executor.run(call, workspace, sample.toolset)

                    record = await trace_chain(sample, view, work.name, work.model, call_tool)
                    work.file.add(record)
                    work.records[sample.id] = record
                    done += 1
                    work.progress("traces", done, total)

                return (await ask_each(todo, one, work.model, stopped=lambda: work.asked_to_stop)).error
        finally:
            await work.model.close()
