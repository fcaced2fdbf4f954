"""What a benchmark holds, counted."""

from collections import Counter, defaultdict

from agrotools.formats.benchmark import Benchmark


def counts_of(benchmark: Benchmark) -> dict[str, dict[str, int]]:
    """Samples by task type, answer type, number of reference calls and files; slots by type; clusters."""
    counts = defaultdict[str, Counter[str]](Counter)
    clusters: set[str | None] = set()
    for sample in benchmark.samples:
        calls = len(sample.reference.steps) if sample.reference else 0
        counts["task types"][sample.task_type] += 1
        counts["answer types"][sample.answer_type] += 1
        counts["slots"].update(slot.type for slot in sample.answer)
        counts["reference calls"][f"{calls} in a sample:"] += 1
        counts["without tools"]["yes" if sample.no_tool_eligible else "no"] += 1
        clusters.add(sample.cluster)
    return {kind: dict(sorted(own.items())) for kind, own in counts.items()} | {"clusters": {"in all": len(clusters)}}
