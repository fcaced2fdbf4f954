"""Tables and text of reports on a terminal, by rich: in colour, else as plain text of a fixed width."""

import math
import os
from collections.abc import Iterable, Iterator
from typing import IO

from rich import box
from rich import table as rich_table
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from agrotools.report.layout import PLAIN_WIDTH, Paragraph, Part, ReportTable, harmless, shortened

_LONGEST_BLOCK = 1_000
_WIDEST = 1_000
_LEAST_NAME = 10
"""Least width to which the name of a run is folded as a heading."""


def console_for(file: IO[str] | None) -> Console:
    """Return a console on ``file`` (standard output if None): in colour on a terminal, else plain text.

    Plain text has :data:`PLAIN_WIDTH` columns, or as many as the environment variable COLUMNS says.
    """
    # Kernels of notebooks set FORCE_COLOR, which is not meant for text that goes into a page.
    is_terminal = None if file is None else file.isatty()
    columns = os.environ.get("COLUMNS", "").lstrip("0")  # 0: the width is not known
    environ = {**os.environ, "COLUMNS": columns}
    console = Console(
        file=file,
        highlight=False,
        force_terminal=is_terminal,
        force_jupyter=False,
        _environ=environ,
    )
    if not console.is_terminal and not columns.isdigit():
        console.width = PLAIN_WIDTH
    return console


def print_parts(parts: Iterable[Part | RenderableType], file: IO[str] | None = None) -> None:
    """Print ``parts`` on ``file`` (standard output if None): in colour on a terminal, else as plain text."""
    console = console_for(file)
    for part in parts:
        print_part(console, part)


def print_part(console: Console, part: Part | RenderableType) -> None:
    """Print ``part``; a table that is too wide is printed as several, or as lines, so that no value is cut."""
    if isinstance(part, Paragraph):
        console.print(line(part.text, part.style))
    elif isinstance(part, ReportTable):
        if part.title:
            console.print(line(f"\n{part.title}", "bold"))
        for each in _fitting(console, part):
            console.print(each)
        if part.notes:
            console.print(line("\n".join(part.notes), "dim"))
    else:
        console.print(part)


def _fitting(console: Console, table: ReportTable) -> Iterable[RenderableType]:
    """Return a table as the fewest tables that fit the console, each with the names; else as lines."""
    columns = range(1, len(table.columns))
    if not columns:
        return [_rich_table(table, columns)]
    for n in range(1, len(columns) // 2 + 2):
        size = math.ceil(len(columns) / n)
        parts = [columns[start : start + size] for start in range(0, len(columns), size)]
        shown = [_rich_table(table, part) for part in parts]
        if all(_fits(console, each) for each in shown):
            first, *others = shown
            return [first, *(part for each in others for part in (Text(), each))]
    return _table_lines(table)


def _rich_table(table: ReportTable, columns: Iterable[int]) -> rich_table.Table:
    has_headings = any(any(each.heading) for each in table.columns)
    look = box.SIMPLE_HEAD if has_headings else None
    shown = rich_table.Table(
        box=look,
        show_header=has_headings,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1 if has_headings else 2, 0, 0),
    )
    at = (0, *columns)
    for number in at:
        column = table.columns[number]
        heading = _text(column.heading if not column.group else (column.group, *column.heading))
        overflow = "ellipsis" if column.kind == "figure" else "fold"
        if column.kind in ("words", "id"):
            least = table.first if number == 0 and column.kind == "words" else None
            shown.add_column(
                heading, overflow=overflow, min_width=least, no_wrap=column.kind == "id"
            )
        else:
            shown.add_column(heading, justify="right", overflow=overflow)
    for row in table.rows:
        if row.ruled:
            shown.add_section()
        cells = (_text(row.cells[number].lines, row.cells[number].style) for number in at)
        shown.add_row(*cells, style="dim" if row.is_dim else None)
    return shown


def _fits(console: Console, table: rich_table.Table) -> bool:
    """Set widths of columns at which no line of a cell is folded or cut but names; return false if there are none."""
    widths = [
        _column_widths(console, column, with_heading=table.show_header) for column in table.columns
    ]
    # A column's padding, and the rule's gap between two columns.
    room = console.width - 2 * len(widths) + 1
    spare = room - sum(least for least, _ in widths)
    if spare < 0:
        return False
    if sum(most for _, most in widths) > room:
        for column, (least, most) in zip(table.columns, widths, strict=True):
            column.width = least + min(spare, most - least)
            spare -= column.width - least
    return True


def _column_widths(
    console: Console, column: rich_table.Column, *, with_heading: bool
) -> tuple[int, int]:
    """Return the least and the greatest useful width of a column, and lower its own minimum to its widest cell."""
    roomy = console.options.update(max_width=_WIDEST)
    cells = [console.measure(cell, options=roomy) for cell in column.cells]
    heading = console.measure(column.header, options=roomy)
    widest = max((cell.maximum for cell in cells), default=0)
    if column.min_width:
        column.min_width = min(column.min_width, widest)  # else rich adds to the width

    is_text = column.justify == "left" and not column.no_wrap
    if column.min_width:
        narrow = column.min_width
    elif is_text:
        narrow = max((cell.minimum for cell in cells), default=0)
    else:
        narrow = widest
    least = min(widest, narrow)
    if with_heading:
        can_fold = column.overflow == "fold"
        least = max(least, min(heading.minimum, _LEAST_NAME) if can_fold else heading.minimum)
    return least, max(widest, heading.maximum)


def _table_lines(table: ReportTable) -> Iterator[RenderableType]:
    """Yield for each row its name, and one line for each further column."""
    for row in table.rows:
        name, *cells = (", ".join(filter(None, cell.lines)) for cell in row.cells)
        yield line(f"\n{name}")
        for column, cell in zip(table.columns[1:], cells, strict=True):
            if cell:
                heading = ", ".join(filter(None, (column.group, *column.heading)))
                yield line(f"  {heading}: {cell}")


def _text(lines: Iterable[str], style: str = "") -> Text:
    first, *below = [*lines] or [""]
    text = line(first, style)
    for each in below:
        text.append(f"\n{harmless(each)}", style="not bold dim")
    return text


def line(text: str, style: str = "") -> Text:
    """Return one line of text without control characters."""
    return Text(harmless(text), style=style)


def block(label: str, text: str, style: str = "") -> RenderableType:
    """Return a label and its text in two columns; long text is cut."""
    table = rich_table.Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True, min_width=12)
    table.add_column()
    table.add_row(label, Text(shortened(harmless(text), _LONGEST_BLOCK), style=style))
    return indented(table, 4)


def section(title: str) -> Text:
    """Return a heading with a blank line before it."""
    return Text(f"\n{title}", style="bold underline")


def indented(part: RenderableType, columns: int = 2) -> RenderableType:
    """Indent ``part`` by a number of columns."""
    return Padding(part, (0, 0, 0, columns), expand=False)
