"""Errors that a person classed, in a table with a sample of a run and its class of error in each row.

A table and runs come in; the share of each class among the classed samples of a run goes out, with intervals over
clusters, in all and by part. The classes are the person's own words. Rows that do not count are told.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from agrotools.core import FrozenModel, UsageError
from agrotools.core.lazy import np
from agrotools.core.texts import first_names
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.sample_traits import WHOLE
from agrotools.scoring.score_table import ScoreUnits
from agrotools.scoring.summary import Metric
from agrotools.scoring.unit_estimates import metric_of
from agrotools.text.tables import SheetTable, open_table

ACCEPTED = (
    "one row for each sample with the columns sample (its id in the run) and error (its class, in your own words); for "
    "several runs also model, as in the tables of scores"
)
_NEEDED = ("sample", "error")
_MODEL = "model"
_LISTED = 3
"""Most samples or models that a note names."""


class ClassedRun(NamedTuple):
    """Run whose errors were classed: its name, all names that a row may give it, and its tally."""

    name: str
    names: frozenset[str]
    tally: RunAggregator


class ClassedErrors(FrozenModel):
    """Shares of the classes of error among the ``n`` classed samples of a run, the most frequent class first."""

    n: int
    shares: dict[str, Metric] = {}


class ReadErrors(NamedTuple):
    """Classed errors of each run, and notes on the rows that do not count or count otherwise than written."""

    of_runs: Sequence[ClassedErrors]
    notes: Sequence[str]


class _Row(NamedTuple):
    """Row of the table; ``model`` is empty if the table has no such column."""

    model: str
    sample: str
    error: str


def read_classed_errors(file: Path, runs: Sequence[ClassedRun]) -> ReadErrors:
    """Read the classes of error of the samples of runs.

    Raises:
        BenchmarkError: the table cannot be read.
        UsageError: it lacks a column, or no row is about a sample of the runs.
    """
    table = _open(file, several=len(runs) > 1)
    columns = {column.casefold(): column for column in table.columns}
    rows: list[_Row] = []
    for _, cells in table.named_rows():
        texts = [cells.get(columns.get(name, ""), "").strip() for name in (_MODEL, *_NEEDED)]
        rows.append(_Row(*texts))
    notes = [*_notes_on_models(rows, runs)] if _MODEL in columns else []
    spelling: dict[str, str] = {}
    of_runs: list[ClassedErrors] = []
    for run in runs:
        of_run = [row for row in rows if _MODEL not in columns or row.model in run.names]
        of_whom = f"{run.name}: " if len(runs) > 1 else ""
        classes, of_rows = _classes(of_run, run, spelling)
        notes += [f"{of_whom}{note}" for note in of_rows]
        of_runs.append(_shares(classes, run.tally))
    if not any(each.n for each in of_runs):
        known = first_names(sorted(_ids(runs[0])), _LISTED)
        given = first_names(sorted({row.sample for row in rows if row.sample}), _LISTED)
        raise UsageError(
            f"no row of {file.name} gives a class of error to a sample of {runs[0].name}; samples in the file: "
            f"{given or 'none'}",
            hint=f"samples of the run: {known}; {ACCEPTED}",
        )
    notes += _notes_on_spelling(rows, spelling)
    return ReadErrors(of_runs, notes)


def _open(file: Path, *, several: bool) -> SheetTable:
    table = open_table(file)
    columns = {column.casefold() for column in table.columns}
    needed = (*_NEEDED, _MODEL) if several else _NEEDED
    lacking = [name for name in needed if name not in columns]
    if lacking:
        raise UsageError(
            f"{file.name} has no column {', '.join(lacking)}; it has {', '.join(table.columns)}",
            hint=ACCEPTED,
        )
    table.check_names(*_NEEDED, _MODEL)
    return table


def _ids(run: ClassedRun) -> set[str]:
    return {*run.tally.table.ids(run.tally.table.all_samples())}


def _classes(
    rows: Sequence[_Row], run: ClassedRun, spelling: dict[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Return the class of each sample, and notes on the other rows; ``spelling``: the first one of each class."""
    known = _ids(run)
    classes: dict[str, str] = {}
    unknown, without, repeated = set[str](), set[str](), set[str]()
    other: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.sample not in known:
            unknown.add(row.sample or "(empty)")
        elif not row.error:
            without.add(row.sample)
        else:
            error = spelling.setdefault(_plain(row.error), row.error)
            if row.sample not in classes:
                classes[row.sample] = error
            elif classes[row.sample] == error:
                repeated.add(row.sample)
            else:
                other[row.sample].append(error)
    several = [f"{name} ({'; '.join([classes[name], *other[name]])})" for name in sorted(other)]
    kinds = (
        ("samples that are not in the run", sorted(unknown)),
        ("samples without a class of error", sorted(without - classes.keys())),
        ("samples in several rows of one class, counted once", sorted(repeated)),
        ("samples with several classes, of which the first counts", several),
    )
    notes = [_note(what, names) for what, names in kinds if names]
    return classes, notes


def _plain(error: str) -> str:
    """Return a class without case and double blanks: by this it is counted."""
    return " ".join(error.split()).casefold()


def _notes_on_models(rows: Sequence[_Row], runs: Sequence[ClassedRun]) -> list[str]:
    """Return a note on the models of rows that are none of the runs; none without such rows."""
    known = frozenset[str]().union(*(run.names for run in runs))
    others = sorted({row.model or "(empty)" for row in rows if row.model not in known})
    if not others:
        return []
    return [_note("models that are not among the runs", others)]


def _notes_on_spelling(rows: Sequence[_Row], spelling: Mapping[str, str]) -> list[str]:
    """Return a note for each class that is written in several ways."""
    written: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for row in rows:
        if _plain(row.error) in spelling:
            written[spelling[_plain(row.error)]][row.error] = None
    return [
        f"{', '.join(map(repr, texts))} are one class"
        for texts in written.values()
        if len(texts) > 1
    ]


def _note(what: str, names: Sequence[str]) -> str:
    """Return what rows do not count as written, with their number and the first of them."""
    return f"{what} ({len(names)}): {first_names(names, _LISTED)}"


def _shares(classes: Mapping[str, str], tally: RunAggregator) -> ClassedErrors:
    """Return the share of each class among the classed samples, each of which counts the same."""
    table = tally.table
    of_run = table.all_samples()
    samples = of_run[np.isin(table.ids(of_run), [*classes])]
    errors = [classes[name] for name in table.ids(samples)]
    shares: dict[str, Metric] = {}
    for error, _ in Counter(errors).most_common():
        values = np.array([each == error for each in errors], np.float64)
        units = ScoreUnits(
            samples=samples,
            clusters=table.clusters_of(samples),
            steps=np.full(len(samples), WHOLE),
            epochs=np.ones(len(samples), np.int64),
            values=values,
            low=values,
            high=values,
            weights=np.ones(len(samples)),
        )
        metric = metric_of(units, table)
        assert metric is not None  # there is a sample of the class
        shares[error] = metric
    return ClassedErrors(n=len(samples), shares=shares)
