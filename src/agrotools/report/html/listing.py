"""Choice of the records that a page lists: all of them, or in very long runs those of the samples that lost points.

A browser takes about 50,000 rows with ease, and nobody reads more. All records are read one by one; only one byte
of each is kept.
"""

from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import groupby, islice, takewhile
from typing import Any, Protocol

from agrotools.core import Record, Score
from agrotools.core.base import Progress
from agrotools.report.html.runs import Run, value_of
from agrotools.runner.records import Key
from agrotools.runner.rescore import stored_rows
from agrotools.scoring import scores_sample

MOST_LISTED = 50_000
"""Most records that a page lists."""


class NamesPart(Protocol):
    """Function that returns the part that lost most points of a record of run number ``at``."""

    def __call__(self, at: int, record: Record, scores: Sequence[Score]) -> str: ...


@dataclass(frozen=True)
class Choice:
    """The listed records of a page whose runs have more than :data:`MOST_LISTED`."""

    places: list[Sequence[int]]
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


def _sums() -> defaultdict[str, float]:
    return defaultdict(float)


@dataclass
class _Losses:
    """Losses of the records of a run: 1 for each record that lost points or is invalid, and sums over them."""

    flags: bytearray = field(default_factory=bytearray)
    n_records: Counter[str] = field(default_factory=Counter[str])
    n_samples: Counter[str] = field(default_factory=Counter[str])
    """Numbers of records and samples with a score, by mode."""
    points: defaultdict[str, defaultdict[str, float]] = field(default_factory=lambda: defaultdict(_sums))
    """Points that these records lost, by mode and part."""


def choose_records(runs: Sequence[Run], part: NamesPart, progress: Progress, *, scored: bool, most: int) -> Choice:
    """Read all records of the runs, and choose those to list: at most ``most`` of whole samples.

    ``scored``: read score rows in ``scores.json`` instead of scoring the records.
    """
    total = sum(len(run.records) for run in runs)
    run_losses: list[_Losses] = []
    for at, run in enumerate(runs):
        losses = _Losses()
        values = _stored_values(run) if scored and not run.judges.metrics else _new_values(run)
        last = ""
        for (mode, name, _), value, record, scores in values:
            losses.flags.append(value != 1)
            if value is not None:
                losses.n_records[mode] += 1
                losses.n_samples[mode] += last != name + mode
                last = name + mode
            if value not in (None, 1) and record is not None:
                lost = "" if record.actions is not None else part(at, record, scores)
                if lost:
                    losses.points[mode][lost] += 100 * (1 - value)
            progress("report", sum(len(each.flags) for each in run_losses) + len(losses.flags), total)
        run_losses.append(losses)
    width = len({(at, mode, epoch) for at, run in enumerate(runs) for mode, _, epoch in run.records.each_key()})
    room = max(1, most // width)
    losing = {*islice(_samples(runs, run_losses, losing=True), room)}
    n_losing = sum(1 for _ in _samples(runs, run_losses, losing=True))
    others = (name for name in _samples(runs, run_losses, losing=False) if name not in losing)
    others_shown = {*islice(others, room - len(losing))}
    places = [
        [place for some in (losing, others_shown) for place, key in enumerate(run.records.each_key()) if key[1] in some]
        for run in runs
    ]
    lost = [
        {
            mode: {"n": losses.n_samples[mode], "parts": {part: lost / n for part, lost in losses.points[mode].items()}}
            for mode, n in losses.n_records.items()
        }
        for losses in run_losses
    ]
    return Choice([array("I", each) for each in places], lost, total, n_losing, len(losing))


def _samples(runs: Sequence[Run], run_losses: Sequence[_Losses], *, losing: bool) -> Iterator[str]:
    """Yield the ids of the samples with a record that lost points, or with one that did not, in order, each once."""

    def of_mode(run: Run, losses: _Losses, mode: str) -> Iterator[str]:
        keys = zip(run.records.each_key(), losses.flags, strict=True)
        return (name for (of, name, _), flag in keys if of == mode and flag == losing)

    pairs = [*zip(runs, run_losses, strict=True)]
    modes = [[mode for mode, _ in groupby(key[0] for key in run.records.each_key())] for run in runs]
    parts = [of_mode(*pair, mode) for pair, some in zip(pairs, modes, strict=True) for mode in some]
    return (name for name, _ in groupby(merge(*parts)))


RecordValue = tuple[Key, float | None, Record | None, Sequence[Score]]
"""Key, value, record and score rows of a record; of one that lost nothing, record and rows may be missing."""


def _new_values(run: Run) -> Iterator[RecordValue]:
    for record in run.records:
        scores = run.scores_of(record)
        yield record.key, value_of(record, scores), record, scores


def _stored_values(run: Run) -> Iterator[RecordValue]:
    """Yield the records with their stored scores; only those that may have lost points are parsed."""
    unsure: deque[tuple[int, list[dict[str, Any]]]] = deque()
    """Places and rows of records that are being read."""

    def unsure_places() -> Iterator[int]:
        stored = stored_rows(run.folder)
        of_rows, rows = next(stored, (None, []))
        for place, key in enumerate(run.records.each_key()):
            key_rows: list[dict[str, Any]] = []
            if key == of_rows:
                key_rows = rows
                of_rows, rows = next(stored, (None, []))
            value = next((row["value"] for row in key_rows if scores_sample(row["metric"])), None)
            if value != 1 or key[0] == "step-by-step":
                unsure.append((place, key_rows))
                yield place

    keys = enumerate(run.records.each_key())
    for record in run.records.at(unsure_places()):
        place, rows = unsure.popleft()
        yield from ((key, 1.0, None, ()) for _, key in takewhile(lambda each, until=place: each[0] < until, keys))
        scores = [*map(Score.model_validate, rows)]
        yield record.key, value_of(record, scores), record, scores
    yield from ((key, 1.0, None, ()) for _, key in keys)
