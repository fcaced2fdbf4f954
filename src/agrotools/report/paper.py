"""Runs beside the figures of their benchmark's paper (``agrotools score RUN --paper``).

Which printed figures correspond to which values of a run is data: ``[[comparisons]]`` in the paper's ``paper.toml``,
whose entries are explained there. Where table headers of a paper contradict its figures, a figure is shown in the
column that it belongs to, with a doubt in :mod:`agrotools.report.published`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from types import MappingProxyType
from typing import Any, NamedTuple

from agrotools.core import Mode, Record, Score
from agrotools.formats.manifest import Manifest
from agrotools.report.contracts import PaperLabels
from agrotools.report.layout import (
    DASH,
    Notes,
    Paragraph,
    Part,
    ReportTable,
    TableCell,
    new_table,
    value_cell,
)
from agrotools.report.published import (
    IN_TEXT,
    PublishedRow,
    denotes,
    paper,
    published_rows,
    same_model,
)
from agrotools.scoring.error_classes import Errors, add_record, not_looked_for
from agrotools.scoring.metrics import is_invalid
from agrotools.scoring.statistics import MIN_CLUSTERS, Estimate, estimate_difference, estimate_mean
from agrotools.scoring.summary import Summary

MARK = "†"
OVERALL = "overall"
_SECONDS = "seconds"
_ARROWS = {"": "", "up": "↑", "down": "↓"}
_NOTHING: Mapping[str, Sequence[str]] = MappingProxyType({})


class PaperComparison(NamedTuple):
    """Printed tables and the values of a run that stand above them, as ``paper.toml`` explains the fields."""

    title: str
    tables: Mapping[str, Sequence[str]]
    columns: Mapping[str, str]
    scores: str = ""
    metric: str = ""
    errors: Mapping[str, Sequence[str]] = _NOTHING
    best: Mapping[str, str] = MappingProxyType({})
    where: Mapping[str, Sequence[str]] = _NOTHING
    required_group: str = ""
    note: str = ""

    def key(self, row: PublishedRow) -> str:
        """Return the column that a printed figure belongs to."""
        return row.group_checked if self.metric else row.metric.partition(".")[2]


@dataclass
class _Part:
    """Records of a run in one setting."""

    manifest: Manifest
    setting: str
    mode: Mode
    """Mode of the first record."""
    differs: str = ""
    """Reasons why the part is not comparable with printed figures; empty if none is known."""
    items: dict[tuple[str, str], tuple[str, Collection[str], list[float]]] = field(
        default_factory=dict[Any, Any]
    )
    """Cluster, columns and values (of all epochs and rotations) of each question, by metric and name."""
    errors: list[tuple[str, str]] = field(default_factory=list[Any])
    """Class and cluster of each error."""
    unknown: Mapping[str, str] = field(default_factory=dict[str, str])
    """Reasons why classes of errors cannot be counted, by class."""
    counted: Errors = field(default_factory=Errors)

    def add_errors(self, record: Record, cluster: str) -> None:
        before = dict(self.counted.counts)
        add_record(record, self.counted, self.manifest.protocol)
        for error, n in self.counted.counts.items():
            self.errors += [(error, cluster)] * (n - before[error])
        self.unknown = not_looked_for(record.mode, self.manifest.protocol, self.counted)

    def estimate(self, comparison: PaperComparison, column: str) -> Estimate | None:
        """Return the value in a column; None if nothing counts in it."""
        if comparison.errors:
            rows = self._error_values(comparison.errors, column)
        else:
            rows = self._item_values(comparison, column)
        if not rows:
            return None
        means = [mean for mean, _ in rows]
        clusters = [cluster for _, cluster in rows]
        if comparison.scores or comparison.errors:
            return estimate_mean(means, clusters)
        # Seconds may be above 1, which a mean of scores does not take; a difference from 0 does.
        return estimate_difference(means, [0.0] * len(means), clusters)

    def _error_values(
        self, classes: Mapping[str, Sequence[str]], column: str
    ) -> list[tuple[float, str]]:
        """Return for each error of the printed classes whether it is of those in a column, and its cluster."""
        known = {error for of_column in classes.values() for error in of_column}
        hits = classes[column]
        return [(float(error in hits), cluster) for error, cluster in self.errors if error in known]

    def _item_values(self, comparison: PaperComparison, column: str) -> list[tuple[float, str]]:
        """Return the mean score (or the seconds) of each question that counts in a column, and its cluster."""
        metric, wanted = comparison.scores or _SECONDS, column.rstrip("?")
        rows: list[tuple[float, str]] = []
        for (name, _), (cluster, columns, values) in self.items.items():
            if name != metric:
                continue
            if not comparison.scores or wanted == OVERALL or wanted in columns:
                rows.append((fmean(values), cluster))
        return rows

    def mismatch(self, comparison: PaperComparison) -> str:
        """Return the setting of the part of which no figures are printed; empty if there are some."""
        for name, value in self.manifest.benchmark_options.items():
            if value not in comparison.where.get(name, [value]):
                return f"{name} {value}"
        return "" if self.setting in comparison.tables else self.setting


@dataclass
class RunParts:
    """Parts of one run by setting, to which its records are added one at a time."""

    manifest: Manifest
    parts: dict[str, _Part] = field(default_factory=dict[str, _Part])
    _setting: str | None = None

    def setting_by(self, labels: PaperLabels) -> str:
        """Return the setting of the run, which is the same for all its records."""
        if self._setting is None:
            self._setting = labels.setting_of(self.manifest)
        return self._setting


class RunsBesidePaper:
    """Tables of a benchmark's paper, filled with runs on it. One object collects all runs of a report."""

    def __init__(self, family: str, labels: PaperLabels | None = None) -> None:
        self.paper = paper(family)
        self.name = self.paper.title.partition(":")[0]
        self._labels = labels
        self._parts: list[_Part] = []
        self._comparisons = [
            PaperComparison(**each) for each in self.paper.about.get("comparisons", ())
        ]
        self._metrics = {each.scores for each in self._comparisons}

    def add_record(self, run: RunParts, record: Record, scores: Sequence[Score]) -> None:
        """Add a record to the parts of its run; ``scores``: its score rows."""
        if is_invalid(record):
            return
        setting, name, columns = record.mode, record.sample.id, ()
        if self._labels:
            setting = run.setting_by(self._labels)
            name, columns = self._labels.item_of(record.sample)
        if setting not in run.parts:
            run.parts[setting] = _Part(run.manifest, setting, record.mode)
        part, cluster = run.parts[setting], record.sample.cluster or record.sample.id
        values = {row.metric: row.value for row in scores if row.metric in self._metrics}
        for metric, value in {**values, _SECONDS: record.seconds}.items():
            part.items.setdefault((metric, name), (cluster, columns, []))[2].append(value)
        if any(each.errors for each in self._comparisons):
            part.add_errors(record, cluster)

    def finish_run(self, run: RunParts, summary: Summary | None = None) -> None:
        """Put a run whose records are all added into the tables, after those before it."""
        for part in run.parts.values():
            of_mode = summary.modes.get(part.mode) if summary else None
            if of_mode and of_mode.published:
                part.differs = "; ".join(of_mode.published.differs)
            self._parts.append(part)

    def tables(self) -> list[Part]:
        """Return a table for each comparison in which runs have values, and notes; empty without any."""
        if not self._parts or not self._comparisons:
            return []
        notes = Notes()
        tables = [table for each in self._comparisons for table in self._tables(each, notes)]
        return [*tables, Paragraph("\n".join([*self._explanations(), *notes.numbered()]))]

    def _tables(self, comparison: PaperComparison, notes: Notes) -> list[ReportTable]:
        rows = [*self._rows(comparison, notes)]
        columns = {
            heading: code
            for heading, code in comparison.columns.items()
            if any(code in cells for _, cells in rows)
        }
        if [*columns.values()] == [OVERALL] and comparison.required_group:
            notes.mark(
                f"The files do not tell the {comparison.required_group} of any question: no table by it."
            )
            return []
        table = new_table(f"{self.name}. {comparison.title}", columns, first=22)
        out_of = 100 if comparison.scores or comparison.errors else 1
        for part, cells in rows:
            figures: list[TableCell] = []
            for code in columns.values():
                estimate = cells.get(code)
                below = [f"n {estimate.n}"] if estimate else []
                figures.append(value_cell(estimate, below=below, out_of=out_of))
            table.add_row(TableCell(tuple(_part_name(part, comparison, notes))), *figures)
        printed = self._printed(comparison, [part for part, _ in rows])
        add_printed(table, [*columns.values()], printed, notes)
        return [table] if columns else []

    def _rows(
        self, comparison: PaperComparison, notes: Notes
    ) -> Iterator[tuple[_Part, Mapping[str, Estimate]]]:
        """Yield the parts of the runs that have values in a comparison, with these by column."""
        classes = [error for each in comparison.errors.values() for error in each]
        for part in self._parts:
            unknown = [part.unknown[error] for error in classes if error in part.unknown]
            if unknown and unknown[0]:
                model = part.manifest.shown_model
                notes.mark(f"{comparison.title}: not of {model}, {part.setting}: {unknown[0]}.")
                continue
            estimates = {
                code: part.estimate(comparison, code) for code in comparison.columns.values()
            }
            if cells := {code: each for code, each in estimates.items() if each is not None}:
                yield part, cells

    def _printed(
        self, comparison: PaperComparison, parts: Sequence[_Part]
    ) -> dict[tuple[str, ...], dict[str, PublishedRow]]:
        """Return the printed figures by model and setting, then by column."""
        lines: dict[tuple[str, ...], dict[str, PublishedRow]] = {}
        models = [part.manifest.model for part in parts]
        settings = dict.fromkeys(part.setting for part in parts if not part.mismatch(comparison))
        for setting in settings:
            rows = [
                row
                for row in published_rows(self.paper.benchmark)
                if row.table in comparison.tables[setting] and row.setting in (setting, "")
            ]
            for row in rows_beside(rows, models, self._ranking(comparison, rows)):
                name = (row.model, row.setting) if row.setting else (row.model,)
                lines.setdefault(name, {})[comparison.key(row)] = row
        return lines

    def _ranking(
        self, comparison: PaperComparison, rows: Sequence[PublishedRow]
    ) -> list[PublishedRow]:
        """Return the figures that say which printed models are best: overall ones of ``rows`` or of another table."""
        if comparison.best:
            table = comparison.best["table"]
            rows = [row for row in published_rows(self.paper.benchmark) if row.table == table]
        metric = f"{self.paper.benchmark}.{comparison.best.get('metric', comparison.metric)}"
        return [row for row in rows if row.metric == metric and row.group_checked in ("", OVERALL)]

    def _explanations(self) -> list[str]:
        settings = {part.setting for part in self._parts}
        metrics = tuple(
            f"{self.paper.benchmark}.{each.metric}" for each in self._comparisons if each.metric
        )
        in_text = [row for row in published_rows(self.paper.benchmark) if row.table == IN_TEXT]
        told = [row for row in in_text if row.metric.startswith(metrics)]
        return [
            "Values in percent where the heading names no unit, beneath them 95 % intervals over clusters of samples "
            f"(none under {MIN_CLUSTERS} clusters); n: questions, epochs averaged, or errors.",
            *filter(None, [self.paper.about.get("legend", "")]),
            f"{MARK} as printed in {self.paper.title} (arXiv {self.paper.arxiv}): {self.paper.protocol}. Its "
            "questions, prompts and reading of answers are not those of the runs: differences need not be of models.",
            *(each.note for each in self._comparisons if each.note),
            *(_sentence(row) for row in told if row.access == "people" or row.setting in settings),
        ]


def rows_beside(
    rows: Sequence[PublishedRow], models: Collection[str], ranked: Sequence[PublishedRow]
) -> list[PublishedRow]:
    """Return the rows of the evaluated ``models``, of the best open and of the best API model by ``ranked``, figures of
    the same or of another table, where names may be cut off."""
    printed = {row.model for row in rows}
    shown = {name for name in printed for model in models if same_model(name, model)}
    for access in ("open", "api"):
        best = sorted((row for row in ranked if row.access == access), key=lambda row: -row.number)
        shown |= next((names for row in best if (names := denotes(row.model, printed))), set())
    return [row for row in rows if row.model in shown]


def _part_name(part: _Part, comparison: PaperComparison, notes: Notes) -> Iterator[str]:
    """Yield model, setting and options of a part, the model with a mark if no printed figures are comparable."""
    mark = ""
    if mismatch := part.mismatch(comparison):
        mark = notes.mark(f"{comparison.title}: no figures are printed of {mismatch}.")
    elif part.differs:
        mark = notes.mark(f"Not comparable with the printed rows: {part.differs}.")
    yield f"{part.manifest.shown_model.rpartition('/')[2]}{mark}"
    yield part.setting
    yield from (f"{option}={value}" for option, value in part.manifest.benchmark_options.items())


def add_printed(
    table: ReportTable,
    columns: Sequence[str],
    lines: Mapping[tuple[str, ...], Mapping[str, PublishedRow]],
    notes: Notes,
    source: str = "",
) -> None:
    """Add printed figures to a table of runs: those in ``columns``, for each name (in lines); ``source``: a note."""
    shown = [row for line in lines.values() for code in columns if (row := line.get(code))]
    if not shown:
        return
    common = [doubt for doubt in shown[0].doubts if all(doubt in row.doubts for row in shown)]
    remarks = [f"{MARK} {doubt}" for doubt in common]
    if source:
        remarks.insert(0, source)
    marks = " ".join(notes.mark(remark) for remark in remarks)
    table.add_row(TableCell((f"printed {MARK}{marks}",), "bold"))
    implied = {code: row.n_implied for line in lines.values() for code, row in line.items()}
    sizes = [implied.get(code) for code in columns]
    if any(sizes):
        table.add_row("  n (implied)", *(str(n or DASH) for n in sizes), is_dim=True)
    for name, line in lines.items():
        cells = (_printed_text(line.get(code), common, notes) for code in columns)
        table.add_row(TableCell(tuple(f"  {each}" for each in name)), *cells, is_dim=True)


def _printed_text(row: PublishedRow | None, common: Sequence[str], notes: Notes) -> str:
    if row is None:
        return DASH
    marks = "".join(notes.mark(f"{MARK} {doubt}") for doubt in row.doubts if doubt not in common)
    return f"{row.percent or row.value}{_ARROWS[row.arrow]}{marks}"


def _sentence(row: PublishedRow) -> str:
    """Return a figure of the paper's running text as a sentence."""
    what = ", ".join(part for part in (row.model, row.setting, row.variant) if part)
    n = f" (n {row.n:,})" if row.n is not None else ""
    unit = "points" if row.unit == "points" else "%"
    return " ".join([f"{MARK} {what}: {row.percent} {unit}{n}.", *row.notes, *row.doubts])
