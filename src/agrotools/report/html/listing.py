"""Choice of the records that a page lists: all of them, or in very long runs those of the samples that lost points.

A browser takes about 50,000 rows with ease, and nobody reads more. All records are read one by one.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agrotools.core import Record, Score
from agrotools.core.base import Progress
from agrotools.report.html.runs import Run, value_of

MOST_LISTED = 50_000
"""Most records that a page lists."""
NamesPart = Callable[[int, Record, Sequence[Score]], str]
"""Function of the number of a run, a record and its scores that returns the part that lost most of its points."""


@dataclass(frozen=True)
class Choice:
    """The listed records of a page whose runs have more than :data:`MOST_LISTED`."""

    places: Sequence[Sequence[int]]
    """Places of the listed records of each run in its index; those of samples that lost points first."""
    lost: list[dict[str, dict[str, Any]]]
    """Of each run and mode: ``n`` samples with a score, and the points of 100 that they lost by ``parts``."""
    n_records: int
    n_losing: int
    """Number of samples that lost points or are invalid in a run."""
    n_shown: int
    """Number of these samples that are listed."""

    @property
    def n_listed(self) -> int:
        return sum(map(len, self.places))

    @property
    def note(self) -> str:
        """Sentence that says which records are listed."""
        listed = f"{self.n_listed:,} of {self.n_records:,} records are listed"
        if self.n_shown < self.n_losing:
            which = f"those of the first {self.n_shown:,} of {self.n_losing:,} samples that lost points or are invalid"
        else:
            which = f"those of every sample that lost points or is invalid ({self.n_losing:,}), and the first others"
        return f"{listed}: {which}. Scores and tables are of all records. Any other: agrotools explain RUN SAMPLE"


def choose_records(runs: Sequence[Run], part: NamesPart, progress: Progress, *, most: int) -> Choice:
    """Read all records of the runs, and choose those to list: at most ``most`` of whole samples."""
    total, n_read = sum(len(run.records) for run in runs), 0
    has_lost: dict[str, bool] = {}
    """By sample: True if it lost points, or is invalid, in a record."""
    kinds = set[tuple[int, str, int]]()
    lost: list[dict[str, dict[str, Any]]] = []
    for at, run in enumerate(runs):
        scored_samples, points = defaultdict[str, set[str]](set), defaultdict[str, dict[str, float]](dict)
        n_scored = Counter[str]()
        for number, record in enumerate(run.records, 1):
            (mode, name, epoch), scores = record.key, run.scores_of(record)
            value = value_of(record, scores)
            has_lost[name] = has_lost.get(name, False) or value != 1
            kinds.add((at, mode, epoch))
            if value is not None:
                n_scored[mode] += 1
                scored_samples[mode].add(name)
                if value < 1 and record.actions is None and (cause := part(at, record, scores)):
                    points[mode][cause] = points[mode].get(cause, 0.0) + 100 * (1 - value)
            progress("report", n_read + number, total)
        n_read += len(run.records)
        lost.append(
            {
                mode: {"n": len(names), "parts": {cause: sum_ / n_scored[mode] for cause, sum_ in points[mode].items()}}
                for mode, names in scored_samples.items()
            }
        )
    room = max(1, most // len(kinds))
    losing = sorted(name for name, has in has_lost.items() if has)
    others = sorted(name for name, has in has_lost.items() if not has)
    shown = {*losing[:room]}
    groups = (shown, {*others[: room - len(shown)]})
    places = [
        array("I", [place for group in groups for place, key in enumerate(run.records.each_key()) if key[1] in group])
        for run in runs
    ]
    return Choice(places, lost, total, len(losing), len(shown))
