"""Published lines beside a run: which ones, their cells, and marks that lead to their doubts."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from agrotools.benchmarks.agrieval.paper_layout import OVERALL
from agrotools.benchmarks.agrieval.paper_tables import LaidOutTable, PublishedLine
from agrotools.report.cells import DASH, Notes, stacked
from agrotools.report.published import PublishedRow, rows_of_table, same_model

if TYPE_CHECKING:
    from rich.text import Text

Models = Sequence[str] | Literal["some", "all"]
"""Published models to show: by name, all, or some: those that were run, the best open one and the best behind an API,
and the five that the paper follows through the settings (Table 4)."""
MARK = "†"
_ARROWS = {"": "", "up": "↑", "down": "↓"}


def chosen_lines(table: LaidOutTable, models: Models) -> list[PublishedLine]:
    """The published lines of a table to show, in the paper's order."""
    if models == "all":
        return list(table.published)
    names = _some(table) if isinstance(models, str) else list(models)
    return [line for line in table.published if any(same_model(line.model, name) for name in names)]


def _some(table: LaidOutTable) -> list[str]:
    names = [row.model for row in table.rows] + [row.model for row in rows_of_table("agrieval", "4")]
    overall = [row for line in table.published for row in line.cells if row and row.group_checked == OVERALL]
    for access in ("open", "api"):
        of_kind = [row for row in overall if row.access == access]
        if of_kind:
            names.append(max(of_kind, key=lambda row: row.number).model)
    return names


def published_rows_of(
    lines: Sequence[PublishedLine], columns: Sequence[int], notes: Notes, *, with_setting: bool
) -> list[list["Text"]]:
    """Rows for a table: a heading, the numbers of items, and a row for each line; ``columns``: places of the cells.

    A doubt is marked once: at the heading if it is of all cells, else at its line, at its column, or in its cell.
    """
    cells = [[line.cells[at] for at in columns] for line in lines]
    if not any(cell for of_line in cells for cell in of_line):
        return []
    doubts = [[set(cell.doubts) if cell else None for cell in of_line] for of_line in cells]
    common = _shared(doubt for of_line in doubts for doubt in of_line)
    of_lines = [_shared(of_line) - common for of_line in doubts]
    of_columns = [_shared(of_line[at] for of_line in doubts) - common for at in range(len(columns))]

    def marks(of: set[str], order: Sequence[str]) -> str:
        return "".join(notes.mark(f"{MARK} {doubt}") for doubt in order if doubt in of)

    order = list(dict.fromkeys(doubt for of_line in cells for cell in of_line if cell for doubt in cell.doubts))
    rows = [[stacked([f"published {MARK}{marks(common, order)}"]), *(stacked([""]) for _ in columns)]]
    counts = [next((cell.n_implied for of_line in cells if (cell := of_line[at])), None) for at in range(len(columns))]
    rows.append(
        [
            stacked(["  items (implied)"], value_style="dim"),
            *(
                stacked([f"{n if n is not None else DASH}{marks(of_column, order)}"], value_style="dim")
                for n, of_column in zip(counts, of_columns, strict=True)
            ),
        ]
    )
    model = ""
    for line, of_line, its_doubts in zip(lines, cells, of_lines, strict=True):
        if with_setting and line.model != model:
            model = line.model
            rows.append([stacked([f"  {model}"], value_style="dim"), *(stacked([""]) for _ in columns)])
        name = f"    {line.setting}" if with_setting else f"  {line.model}"
        rows.append(
            [
                stacked([f"{name}{marks(its_doubts, order)}"], value_style="dim"),
                *(
                    _cell(
                        cell, "" if cell is None else marks(set(cell.doubts) - common - its_doubts - of_column, order)
                    )
                    for cell, of_column in zip(of_line, of_columns, strict=True)
                ),
            ]
        )
    return rows


def _cell(cell: PublishedRow | None, marks: str) -> "Text":
    shown = DASH if cell is None else f"{cell.percent}{_ARROWS[cell.arrow]}{marks}"
    return stacked([shown], value_style="dim")


def _shared(sets: Iterable[set[str] | None]) -> set[str]:
    """What all of the sets hold; None stands for no cell."""
    found = [one for one in sets if one is not None]
    return set[str].intersection(*found) if found else set()


def text_line(row: PublishedRow) -> str:
    """A figure of the running text as a line, with what it holds for."""
    what = ", ".join(part for part in (row.model, row.setting, row.variant) if part)
    unit = "points" if row.unit == "points" else "%"
    n = f" (n {row.n:,})" if row.n is not None else ""
    return " ".join([f"{MARK} {what}: {row.percent} {unit}{n}.", *row.notes, *row.doubts])
