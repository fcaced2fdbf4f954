"""What is printed, as plain text, and what tables hold, as data."""

from collections.abc import Iterable, Sequence
from io import StringIO

from rich.console import Console, RenderableType

from agrotools.core import Record, Score
from agrotools.report.explain import explain
from agrotools.report.layout import Part, ReportTable, TableCell
from agrotools.report.tables import tables
from agrotools.report.terminal import PLAIN_WIDTH, print_part
from agrotools.scoring.summary import Summary


def rendered(parts: Iterable[Part | RenderableType], width: int = PLAIN_WIDTH) -> str:
    """Return ``parts`` as plain text of at most ``width`` columns."""
    written = StringIO()
    console = Console(
        file=written, width=width, highlight=False, force_terminal=False, force_jupyter=False
    )
    for part in parts:
        print_part(console, part)
    return "\n".join(row.rstrip() for row in written.getvalue().splitlines()) + "\n"


def tables_text(
    summaries: Sequence[Summary], *, details: bool = True, width: int = PLAIN_WIDTH
) -> str:
    """Return the tables of runs."""
    return rendered(tables(summaries, details=details), width)


def table_of(parts: Iterable[Part | RenderableType], title: str) -> ReportTable:
    """Return the table whose title is ``title``."""
    return next(part for part in parts if isinstance(part, ReportTable) and part.title == title)


def cells_of(table: ReportTable) -> dict[str, dict[str, TableCell]]:
    """Return the cells of a table by the name of their row and the heading (and the group) of their column."""
    headings = [
        ": ".join(filter(None, (column.group, column.heading[0]))) for column in table.columns[1:]
    ]
    return {
        row.cells[0].lines[0].strip(): dict(zip(headings, row.cells[1:], strict=True))
        for row in table.rows
    }


def explanation_text(record: Record, scores: Sequence[Score], *, width: int = PLAIN_WIDTH) -> str:
    """Return the explanation of a sample."""
    return rendered(explain(record, scores), width)
