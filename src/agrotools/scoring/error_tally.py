"""Classes of errors over the records of one mode, one record at a time: numbers and a few ids are all that is kept."""

from collections import defaultdict
from collections.abc import Sequence

from agrotools.core import Mode, Protocol, Record, Score
from agrotools.scoring.error_classes import CLASSES, IN_HEAD, Errors
from agrotools.scoring.error_taxonomy_records import add_record, not_looked_for
from agrotools.scoring.summary import ErrorCount

EXAMPLES = 5
"""Ids of samples that are kept of each class."""


class ErrorTally:
    """Errors in the valid records of one mode of a run in the ``protocol``."""

    def __init__(self, mode: Mode, protocol: Protocol = "react") -> None:
        self._mode: Mode = mode
        self._protocol: Protocol = protocol
        self._errors = Errors()
        self._seen: dict[str, set[int]] = defaultdict(set)
        self._examples: dict[str, list[str]] = defaultdict(list)

    def add(self, record: Record, number: int, rows: Sequence[Score] = ()) -> None:
        """A valid record, the number of its sample, and its score rows."""
        add_record(record, self._errors, self._protocol)
        self._errors.add(IN_HEAD, record.sample.id, sum(row.reading.get(IN_HEAD) is True for row in rows))
        for error, (sample,) in self._errors.samples.items():
            self._seen[error].add(number)
            if len(examples := self._examples[error]) < EXAMPLES and sample not in examples:
                examples.append(sample)
        self._errors.samples.clear()

    def counts(self) -> tuple[ErrorCount, ...]:
        """A row for every class."""
        skipped = not_looked_for(self._mode, self._protocol, self._errors)
        return tuple(
            ErrorCount(error=each.id, unit=each.unit, not_looked_for=skipped[each.id])
            if each.id in skipped
            else self._count(each.id)
            for each in CLASSES.values()
        )

    def _count(self, error: str) -> ErrorCount:
        # Step by step there is one prediction for each step, and an error of each at most.
        unit = "step" if self._mode == "step-by-step" else CLASSES[error].unit
        count, of = self._errors.counts[error], self._errors.looked_at(error, unit)
        return ErrorCount(
            error=error,
            unit=unit,
            count=count,
            of=of,
            share=count / of if of else None,
            samples=len(self._seen[error]),
            examples=tuple(self._examples[error]),
        )
