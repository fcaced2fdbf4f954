"""List of the runs in a folder: progress, headline score and cost of each, for the terminal and the local page.

A folder comes in; an entry for each run in it goes out (:class:`RunEntry`), and their table.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import orjson
from pydantic import ValidationError

from agrotools.core import AgrotoolsError
from agrotools.core.files import MANIFEST_COPY, MANIFEST_FILE
from agrotools.core.texts import benchmark_title, count_text
from agrotools.models.metered import read_spend
from agrotools.report.layout import ReportTable, TableColumn, new_table, percent
from agrotools.report.screen import headline
from agrotools.runner.records import RECORDS_FILE, record_index
from agrotools.runner.rescore import SCORES_FILE
from agrotools.runner.store import read_manifest
from agrotools.runner.yardsticks import YARDSTICKS_FOLDER
from agrotools.scoring.metrics import METRICS
from agrotools.scoring.summary import Summary

_DEPTHS = ("", "*/", "*/*/")
"""Folders that are searched for runs, from the given one."""


@dataclass(frozen=True)
class RunEntry:
    """A run: ``done`` of ``planned`` records are finished (planned 0: unknown). ``score`` is a fraction of the scale.

    ``changed`` is the time of the last record, in seconds since 1970. ``problem``: reason why the run cannot be read.
    """

    path: Path
    name: str
    model: str = ""
    benchmark: str = ""
    protocol: str = ""
    modes: tuple[str, ...] = ()
    quick: bool = False
    task_types: str = ""
    done: int = 0
    planned: int = 0
    score: float | None = None
    metric: str = ""
    usd: float | None = None
    changed: float = 0.0
    problem: str = ""


def list_runs(folder: Path) -> Iterator[RunEntry]:
    """Yield the runs in ``folder`` and up to two levels below it, the last changed first."""
    entries = (run_entry(path, folder) for path in run_folders(folder))
    yield from sorted(entries, key=lambda entry: (-entry.changed, entry.name))


def run_folders(folder: Path) -> list[Path]:
    """Return the runs in ``folder`` and up to two levels below it, by path, without those kept to compare with."""
    names = (MANIFEST_FILE, MANIFEST_COPY)  # a run is read from the copy if its manifest is gone
    found = set[Path]()
    for depth in _DEPTHS:
        for name in names:
            found.update(path.parent for path in folder.glob(f"{depth}{name}"))
    return sorted(path for path in found if YARDSTICKS_FOLDER not in path.relative_to(folder).parts)


def run_entry(run: Path, folder: Path) -> RunEntry:
    """Return the entry of one run, whose name is its path in ``folder``."""
    name = run.relative_to(folder).as_posix() if run != folder else run.resolve().name
    try:
        manifest = read_manifest(run)
        spend = read_spend(run / "spend.jsonl")
        n_finished = record_index(run).n_finished
        score, metric = _stored_score(run, n_finished)
        records = run / RECORDS_FILE
        return RunEntry(
            path=run,
            name=name,
            model=manifest.labelled_model,
            benchmark=benchmark_title(manifest.benchmark, manifest.benchmark_version),
            protocol=manifest.protocol,
            modes=manifest.modes,
            quick=manifest.quick,
            task_types=manifest.task_types.words if manifest.task_types else "",
            done=n_finished,
            planned=sum(manifest.planned.values()),
            score=score,
            metric=metric,
            usd=spend.usd if spend.replies else None,
            changed=records.stat().st_mtime if records.exists() else 0.0,
        )
    except (AgrotoolsError, OSError) as error:
        return RunEntry(run, name, problem=str(error).splitlines()[0])


def _stored_score(run: Path, n_finished: int) -> tuple[float | None, str]:
    """Return the headline score in ``scores.json`` and its metric's label, unless records were added after it.

    Times alone do not tell: a copy of a run has those of the copying."""
    try:
        summary = Summary.model_validate(orjson.loads((run / SCORES_FILE).read_bytes())["summary"])
        n_scored = sum(part.seconds.overall.n for part in summary.modes.values() if part.seconds)
        if (run / SCORES_FILE).stat().st_mtime < (
            run / RECORDS_FILE
        ).stat().st_mtime and n_scored != n_finished:
            return None, ""
    except (OSError, ValueError, LookupError, TypeError, ValidationError):
        return None, ""
    if (measure := headline([summary])) is None or not summary.modes[measure[0].mode].headline:
        return None, ""
    metric = (measure[0].of(summary) or {}).get(measure[1])
    return (metric.overall.value, METRICS[measure[1]].label) if metric else (None, "")


def runs_table(entries: Sequence[RunEntry], folder: Path) -> ReportTable:
    """Return a table of the runs in a folder, without columns that are empty; a benchmark of all is in the title."""
    benchmarks = {entry.benchmark for entry in entries if not entry.problem}
    of_all = f": {benchmarks.pop()}" if len(benchmarks) == 1 else ""
    rows = [_entry_texts(entry, with_benchmark=not of_all) for entry in entries]
    names = [name for name in rows[0] if any(row[name] for row in rows)] if rows else []
    columns = [
        TableColumn((name,), "figure" if name in ("records", "USD", "last record") else "words")
        for name in names
    ]
    table = new_table(f"{count_text(len(entries), 'run')} in {folder}{of_all}", columns)
    table.columns[0] = TableColumn(kind="id")  # the name of a run is copied into commands
    for entry, row in zip(entries, rows, strict=True):
        table.add_row(entry.name, *(row[name] for name in names))
    return table


def _entry_texts(entry: RunEntry, *, with_benchmark: bool) -> dict[str, str]:
    """Return the row of a run by the headings of columns; what is not known is empty."""
    records = str(entry.done or "")
    if entry.done < entry.planned:
        records = f"{entry.done} of {entry.planned}"
    last = ""
    if entry.changed:
        last = f"{datetime.fromtimestamp(entry.changed).astimezone():%m-%d %H:%M}"
    return {
        "model": entry.model or entry.problem,
        "benchmark": entry.benchmark if with_benchmark else "",
        "score": _score_text(entry),
        "records": records,
        "protocol": entry.protocol,
        "mode": ", ".join(entry.modes),
        "quick": "yes" if entry.quick else "",
        "task types": entry.task_types,
        "USD": f"{entry.usd:.2f}" if entry.usd is not None else "",
        "last record": last,
    }


def _score_text(entry: RunEntry) -> str:
    if entry.problem:
        return ""
    if entry.score is None:
        return "not scored"
    return f"{entry.metric} {percent(entry.score)}"
