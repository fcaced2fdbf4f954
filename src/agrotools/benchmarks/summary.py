"""What a benchmark holds, counted."""

from collections import Counter
from collections.abc import Iterable

from agrotools.benchmarks.benchmark import Benchmark


def counts_of(benchmark: Benchmark) -> dict[str, dict[str, int]]:
    """Samples by task type, answer type, number of reference calls and files; slots by type; clusters."""
    samples = benchmark.samples
    steps = [len(sample.reference.steps) if sample.reference else 0 for sample in samples]
    return {
        "task types": _counted(sample.task_type for sample in samples),
        "answer types": _counted(sample.answer_type for sample in samples),
        "slots": _counted(slot.type for sample in samples for slot in sample.answer),
        "reference calls": _counted(f"{count} in a sample:" for count in steps),
        "without tools": _counted("yes" if sample.no_tool_eligible else "no" for sample in samples),
        "clusters": {"in all": len({sample.cluster for sample in samples})},
    }


def _counted(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))
