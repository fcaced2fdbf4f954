"""Classes of errors as a section of the page: counts with links to samples in which each class occurs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from agrotools.report.cells import DASH, percent
from agrotools.report.errors import (
    ErrorColumn,
    classes_looked_for,
    error_columns,
    error_label,
    error_parts,
    notes_of,
    told_of,
)
from agrotools.report.html.templating import templates
from agrotools.scoring import Summary
from agrotools.scoring.error_classes import CLASSES

if TYPE_CHECKING:
    from markupsafe import Markup

_SIDE_BY_SIDE = 8


class _Example(NamedTuple):
    """A sample, and the address of its record in the page, which need not be shown there."""

    sample: str
    link: str


class _Cell(NamedTuple):
    number: str
    share: str
    examples: list[_Example]


class _Row(NamedTuple):
    label: str
    meaning: str
    told: str
    cells: list[_Cell]


class _Table(NamedTuple):
    title: str
    headings: list[str]
    rows: list[_Row]


def errors_section(summaries: Sequence[Summary], names: Sequence[str]) -> "Markup | str":
    """A ``<section>`` of the page; nothing where no errors were counted. ``names``: those that links give the runs."""
    from markupsafe import Markup

    columns = error_columns(summaries)
    if not columns:
        return ""
    tables = [
        _Table(
            f"Errors by class{f', {mode}' if mode else ''}",
            [column.name if mode else column.mode for column in shown],
            [_row(error, shown, names) for error in classes_looked_for(shown)],
        )
        for mode, shown in error_parts(columns, side_by_side=_SIDE_BY_SIDE)
    ]
    return Markup(templates().get_template("errors.html.j2").render(tables=tables, notes=notes_of(columns)))


def _row(error: str, columns: Sequence[ErrorColumn], names: Sequence[str]) -> _Row:
    cells = [_cell(error, column, names[column.run]) for column in columns]
    return _Row(error_label(error, columns), CLASSES[error].meaning, told_of(error), cells)


def _cell(error: str, column: ErrorColumn, run: str) -> _Cell:
    row = column.errors.get(error)
    if row is None or row.count is None:
        return _Cell(DASH, "", [])
    link = "/".join(quote(part, safe="") for part in (run, column.mode))
    examples = [_Example(sample, f"#{link}/{quote(sample, safe='')}/0") for sample in row.examples]
    return _Cell(str(row.count), percent(row.share or 0), examples)
