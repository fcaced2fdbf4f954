"""Tables of seconds per query, by the parts that metrics are broken down by."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agrotools.core import MODES
from agrotools.report.cells import new_table, run_names, stacked
from agrotools.report.part_rows import part_rows
from agrotools.scoring import Summary
from agrotools.scoring.summary import Seconds, SecondsByPart

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


def seconds_tables(summaries: Sequence[Summary], *, side_by_side: int) -> list["Table"]:
    """Mean seconds per query: for one run a column for each mode; for several a table for each mode with a column for
    each run, at most that many."""
    if len(summaries) == 1:
        columns = [(mode, part.seconds) for mode, part in summaries[0].modes.items() if part.seconds is not None]
        return [_table("Seconds per query", columns)] if columns else []
    tables: list[Table] = []
    for mode in MODES:
        columns = [
            (name.rpartition("/")[2], seconds)
            for name, summary in zip(run_names(summaries), summaries, strict=True)
            if mode in summary.modes and (seconds := summary.modes[mode].seconds) is not None
        ]
        for start in range(0, len(columns), side_by_side):
            tables.append(_table(f"Seconds per query, {mode}", columns[start : start + side_by_side]))
    return tables


def _table(title: str, columns: Sequence[tuple[str, SecondsByPart]]) -> "Table":
    table = new_table(f"{title}, mean")
    table.add_column("", overflow="fold", min_width=18)
    for heading, _ in columns:
        table.add_column(heading, justify="right", overflow="fold")
    figures = [figure for _, figure in columns]
    table.add_row(stacked(["All"]), *(_cell(figure.overall) for figure in figures))
    for label, style, of in part_rows(figures):
        table.add_row(stacked([label], value_style=style), *(_cell(of(figure)) for figure in figures))
    return table


def _cell(seconds: Seconds | None) -> "Text":
    from rich.text import Text

    if seconds is None:
        return Text("")
    return stacked([f"{seconds.mean:.{2 if seconds.mean >= 0.1 else 4}f}", str(seconds.n)], value_style="")
