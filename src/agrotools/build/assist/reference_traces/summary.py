"""What traces come to, per task type."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agrotools.build.assist.reference_traces.records import TraceRecord
from agrotools.core import Sample


@dataclass
class TraceSummary:
    """Counts over the chains of one task type, or of all (``task_type`` is then empty).

    ``steps`` are those of the templates' chains: a step that a chain did not reach does not agree.
    """

    task_type: str = ""
    chains: int = 0
    complete: int = 0
    confirmed: int = 0
    """Complete, all arguments agree, and the answer too as far as that can be told."""
    left_open: int = 0
    """Chains in which the real tools did not return what a later step takes from them."""
    steps: int = 0
    steps_agreed: int = 0
    answers: int = 0
    """Chains whose answer can be compared."""
    answers_agreed: int = 0

    def add(self, sample: Sample, record: TraceRecord) -> None:
        """Count one chain."""
        self.chains += 1
        self.complete += record.complete
        self.confirmed += record.confirms
        self.left_open += bool(record.left_open)
        self.steps += len(sample.reference.steps) if sample.reference else 0
        self.steps_agreed += sum(step.agreed for step in record.steps)
        self.answers += record.answer_agrees is not None
        self.answers_agreed += record.answer_agrees is True


def summary_of(traced: Iterable[tuple[Sample, TraceRecord]]) -> Sequence[TraceSummary]:
    """One summary for each task type, by name, and that of all at the end."""
    by_type: defaultdict[str, TraceSummary] = defaultdict(TraceSummary)
    whole = TraceSummary()
    for sample, record in traced:
        of_type = by_type[sample.task_type]
        of_type.task_type = sample.task_type
        of_type.add(sample, record)
        whole.add(sample, record)
    return [*(by_type[name] for name in sorted(by_type)), whole]
