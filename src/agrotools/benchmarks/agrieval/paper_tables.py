"""The paper's tables as data: the runs laid out in their columns, the published lines beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import NamedTuple

from agrotools.benchmarks.agrieval.paper_layout import (
    FORMAT_SETTINGS,
    OVERALL,
    OWN_TABLES,
    PAPER_TABLES,
    By,
    Column,
    PaperTable,
    SettingResult,
    Units,
    setting_of,
    units_of,
)
from agrotools.benchmarks.agrieval.taxonomy import TYPE_AGREEMENT
from agrotools.core import UsageError
from agrotools.report.published import IN_TEXT, PublishedRow, rows_of_table
from agrotools.scoring.statistics import Estimate, adjusted, estimate_difference, estimate_mean

BASE = "zero-shot"
"""The setting that all others are compared with."""


class Cell(NamedTuple):
    """A value of a run, and its change against the same model's zero-shot on the items of both."""

    estimate: Estimate
    change: Estimate | None = None


@dataclass(frozen=True)
class RunLine:
    """A row: a model in a setting, a cell for each column (None where it has no such items)."""

    model: str
    setting: str
    cells: tuple[Cell | None, ...]
    n_epochs: int
    apart: str = ""
    """Difference from other rows of the same model and setting."""


@dataclass(frozen=True)
class PublishedLine:
    """A row of the paper, in the columns that the runs have."""

    model: str
    setting: str
    cells: tuple[PublishedRow | None, ...]


@dataclass(frozen=True)
class LaidOutTable:
    """A table: ``rows`` and ``published`` have a cell for each of ``columns``."""

    layout: PaperTable
    columns: tuple[Column, ...]
    rows: tuple[RunLine, ...]
    published: tuple[PublishedLine, ...]
    in_text: tuple[PublishedRow, ...]
    """Figures of the paper's running text that belong here."""
    left_out: tuple[Column, ...]
    """Columns of the paper for which no run has items."""
    notes: tuple[str, ...]
    """Notes on the runs: parts that were left out, and why."""


class EpochSpread(NamedTuple):
    """Means of the epochs of a result over the items that every epoch has; ``deviation`` is that of a sample."""

    model: str
    setting: str
    open_questions: bool
    n_items: int
    epochs: tuple[float, ...]
    apart: str = ""

    @property
    def mean(self) -> float:
        return sum(self.epochs) / len(self.epochs)

    @property
    def deviation(self) -> float | None:
        """None of one epoch."""
        if len(self.epochs) < 2:
            return None
        return (sum((one - self.mean) ** 2 for one in self.epochs) / (len(self.epochs) - 1)) ** 0.5


class Results:
    """Results with the estimates made from them, each once: several tables share them."""

    def __init__(self, results: Sequence[SettingResult]) -> None:
        self.all = list(results)
        self.settings = [setting_of(result.setting) for result in self.all]
        self._units: dict[tuple[int, bool], Units | None] = {}
        self._cells: dict[tuple[int, bool, By, str], Cell | None] = {}

    def units(self, at: int, open_questions: bool) -> Units | None:
        """The choice or open questions of the result at that place."""
        if (at, open_questions) not in self._units:
            self._units[at, open_questions] = units_of(self.all[at], open_questions=open_questions)
        return self._units[at, open_questions]

    def base(self, at: int, open_questions: bool) -> Units | None:
        """The same model's zero-shot on such questions; None if this is it, or there is none."""
        if self.settings[at] == BASE:
            return None
        model = self.all[at].model
        bases = (
            self.units(other, open_questions)
            for other, result in enumerate(self.all)
            if result.model == model and self.settings[other] == BASE
        )
        return next((units for units in bases if units is not None), None)

    def cell(self, at: int, open_questions: bool, by: By, part: str) -> Cell | None:
        """The value of a part of a result's items and its change; None where there are no such items."""
        by = "kind" if part == OVERALL else by
        key = (at, open_questions, by, part)
        if key not in self._cells:
            self._cells[key] = self._cell(*key)
        return self._cells[key]

    def _cell(self, at: int, open_questions: bool, by: By, part: str) -> Cell | None:
        units = self.units(at, open_questions)
        if units is None or not len(places := units.places(by, part)):
            return None
        estimate = estimate_mean(units.scores[places], units.clusters[places])
        base = self.base(at, open_questions)
        return Cell(estimate, _change(units, base, {int(place) for place in places}) if base is not None else None)


def _change(units: Units, base: Units, places: set[int]) -> Estimate | None:
    """Mean difference on the items of both; None if there are none."""
    pairs = [(at, base.keys[key]) for key, at in units.keys.items() if at in places and key in base.keys]
    if not pairs:
        return None
    mine, theirs = [place for place, _ in pairs], [place for _, place in pairs]
    return estimate_difference(units.scores[mine], base.scores[theirs], units.clusters[mine])


def agrieval_tables(
    results: Sequence[SettingResult] | Results, published: bool = True, *, numbers: Sequence[str] | None = None
) -> list[LaidOutTable]:
    """The paper's tables, and ours of further settings, by level and by field, where ``results`` have rows for them.

    Args:
        results: one for each model and setting.
        published: put the figures of the paper beside them.
        numbers: only these tables (``2`` to ``14``, ``settings``, ``levels``, ``fields``), in this order; all of them
            by default.

    Raises:
        UsageError: no such table.
    """
    of = results if isinstance(results, Results) else Results(results)
    known = {table.number: table for table in (*PAPER_TABLES, *OWN_TABLES)}
    if unknown := [number for number in numbers or () if number not in known]:
        raise UsageError(f"AgriEval has no result table {unknown[0]!r}", hint=f"tables: {', '.join(known)}")
    tables = [_lay_out(known[number], of, published) for number in (known if numbers is None else numbers)]
    return [table for table in tables if table is not None]


def epoch_spreads(results: Sequence[SettingResult]) -> list[EpochSpread]:
    """The spread over epochs of each result, choice and open questions apart; results of one epoch have one mean."""
    return [
        spread
        for result in results
        for open_questions in (False, True)
        if (spread := _spread(result, open_questions)) is not None
    ]


def _spread(result: SettingResult, open_questions: bool) -> EpochSpread | None:
    items = result.items
    scores: dict[int, dict[str, float]] = {}
    for item, kind, epoch, score in zip(items.item, items.kind, items.epoch, items.score, strict=True):
        if (kind == "short_answer") == open_questions:
            scores.setdefault(epoch, {})[item] = score
    shared = set[str].intersection(*map(set, scores.values())) if scores else set[str]()
    if not shared:
        return None
    means = tuple(fsum(scores[epoch][item] for item in shared) / len(shared) for epoch in sorted(scores))
    return EpochSpread(result.model, setting_of(result.setting), open_questions, len(shared), means, result.apart)


def _lay_out(table: PaperTable, of: Results, published: bool) -> LaidOutTable | None:
    at_rows = _rows_of(table, of)
    lines = [(at, [of.cell(at, table.open, table.by, column.part) for column in table.columns]) for at in at_rows]
    columns_with_cells = [place for place in range(len(table.columns)) if any(cells[place] for _, cells in lines)]
    named_columns = [place for place in columns_with_cells if table.columns[place].part != OVERALL]
    if not named_columns and (not columns_with_cells or not table.is_of_paper):
        return None
    columns = tuple(table.columns[place] for place in columns_with_cells)
    rows = tuple(
        RunLine(
            of.all[at].model,
            of.settings[at],
            tuple(cells[place] for place in columns_with_cells),
            _epochs(of.units(at, table.open)),
            of.all[at].apart,
        )
        for at, cells in lines
    )
    rows = _with_changes_adjusted(table, columns, rows)
    left_out = tuple(column for place, column in enumerate(table.columns) if place not in columns_with_cells)
    beside = _published_lines(table, columns) if published and table.is_of_paper else ()
    in_text = _in_text(table, rows) if published else ()
    return LaidOutTable(table, columns, rows, beside, in_text, left_out, _notes(table, of, at_rows, left_out))


def shows_change(table: PaperTable, column: Column) -> bool:
    """True if cells of the column show the change against zero-shot."""
    return table.changes == "all" or (table.changes == "overall" and column.part == OVERALL)


def _with_changes_adjusted(
    table: PaperTable, columns: Sequence[Column], rows: Sequence[RunLine]
) -> tuple[RunLine, ...]:
    """The rows with the changes that the table shows adjusted together."""
    with_change = [shows_change(table, column) for column in columns]
    changes = [
        cell.change
        for row in rows
        for cell, has_change in zip(row.cells, with_change, strict=True)
        if has_change and cell and cell.change
    ]
    adjusted_changes = iter(adjusted(changes))

    def cell_of(cell: Cell | None, has_change: bool) -> Cell | None:
        return cell._replace(change=next(adjusted_changes)) if has_change and cell and cell.change else cell

    return tuple(replace(row, cells=tuple(map(cell_of, row.cells, with_change))) for row in rows)


def _epochs(units: Units | None) -> int:
    return units.n_epochs if units is not None else 0


def _rows_of(table: PaperTable, of: Results) -> list[int]:
    """Places of the results that are rows: models in the order of their first result, settings as in the table."""
    models = list(dict.fromkeys(result.model for result in of.all))
    settings = table.settings or [setting for setting in dict.fromkeys(of.settings) if setting not in FORMAT_SETTINGS]
    rows: list[int] = []
    for model in models:
        model_rows = [
            at
            for setting in settings
            for at, result in enumerate(of.all)
            if result.model == model and of.settings[at] == setting and of.units(at, table.open) is not None
        ]
        if len({of.settings[at] for at in model_rows}) > 1 or not table.needs_two_settings:
            rows += model_rows
    return rows


def _published_lines(table: PaperTable, columns: Sequence[Column]) -> tuple[PublishedLine, ...]:
    lines: dict[tuple[str, str], dict[str, PublishedRow]] = {}
    for row in rows_of_table("agrieval", table.number):
        lines.setdefault((row.model, row.setting), {})[row.group_checked] = row
    return tuple(
        PublishedLine(model, setting, tuple(cells.get(column.group) for column in columns))
        for (model, setting), cells in lines.items()
    )


def _in_text(table: PaperTable, rows: Sequence[RunLine]) -> tuple[PublishedRow, ...]:
    """The experts beside zero-shot by task, mean effects beside the settings that have no table."""
    settings = {row.setting for row in rows} if not table.settings else set[str]()
    return tuple(
        row
        for row in rows_of_table("agrieval", IN_TEXT)
        if (table.number == "7" and row.access == "people") or row.setting in settings
    )


_WORDS: Mapping[By, str] = {
    "task": "task",
    "level": "cognitive level",
    "domain": "domain",
    "field": "field",
    "kind": "format",
}


def _notes(table: PaperTable, of: Results, rows: Sequence[int], left_out: Sequence[Column]) -> tuple[str, ...]:
    notes: list[str] = []
    word = _WORDS[table.by]
    unnamed, n = max((units.unnamed(table.by), len(units.keys)) for at in rows if (units := of.units(at, table.open)))
    if len(left_out) == len(table.columns) - 1 and table.columns[-1].part == OVERALL:
        notes.append(f"The files do not say the {word} of any item: all columns but Overall are left out.")
    elif left_out:
        codes = ", ".join(column.code for column in left_out)
        notes.append(f"Left out, as no item of the files is told to be of them: {codes}.")
    if 0 < unnamed < n:
        where = "they count in Overall alone" if table.columns[-1].part == OVERALL else "they are not here"
        notes.append(f"The files do not say the {word} of {unnamed} of {n} items: {where}.")
    if table.by == "domain" and any(of.all[at].domains_are_types for at in rows):
        agree, both = TYPE_AGREEMENT
        notes.append(
            "The domain is the older label type of the files, which the authors call deprecated; of the open questions "
            f"that have both it is the domain of {100 * agree / both:.1f} %."
        )
    return tuple(notes)
