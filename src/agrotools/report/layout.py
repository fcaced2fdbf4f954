"""Marks and building blocks of explanations."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from agrotools.report.values import harmless, shortened

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

RIGHT, NEARLY, WRONG = "✓", "≈", "✗"
MARK_STYLES = {RIGHT: "green", NEARLY: "green", WRONG: "bold red"}
_LONGEST_BLOCK = 1_000
_WIDEST = 1_000
PLAIN_WIDTH = 100
"""Columns of the plain text that a pipe or a file gets."""


def console_for(file: IO[str] | None) -> "Console":
    """A console on ``file`` (standard output if None): in colour on a terminal, plain and fixed in width elsewhere."""
    from rich.console import Console

    console = Console(file=file, highlight=False)
    return console if console.is_terminal else Console(file=file, highlight=False, width=PLAIN_WIDTH)


def put(console: "Console", part: "RenderableType") -> None:
    """Print ``part``; what is wider than the console in its narrowest form is printed whole, never with values cut."""
    from rich.table import Table

    width = console.width
    if isinstance(part, Table):
        console.width = max(width, _needed_width(console, part))
    console.print(part)
    console.width = width


def _needed_width(console: "Console", table: "Table") -> int:
    """The width at which no value is cut, where folding names and headings does not save enough; else 0."""
    roomy = console.options.update(max_width=_WIDEST)
    unfolded = console.measure(table, options=roomy).minimum
    saved = 0
    for column in table.columns:
        cells = [console.measure(cell, options=roomy).minimum for cell in column.cells]
        heading = console.measure(column.header, options=roomy).minimum
        folded = column.min_width or max(cells, default=0)
        saved += max(0, *cells, heading) - folded if column.overflow == "fold" else 0
    return unfolded if unfolded - saved > console.width else 0


def rendered(parts: Iterable["RenderableType"], width: int) -> str:
    """``parts`` as plain text of at most ``width`` columns, except for tables that cannot be that narrow."""
    from io import StringIO

    from rich.console import Console

    written = StringIO()
    console = Console(file=written, width=width, highlight=False, force_terminal=False)
    for part in parts:
        put(console, part)
    return "\n".join(row.rstrip() for row in written.getvalue().splitlines()) + "\n"


def line(text: str, style: str = "") -> "Text":
    """One line of harmless text."""
    from rich.text import Text

    return Text(harmless(text), style=style)


@dataclass(frozen=True)
class Told:
    """A word and the text that it introduces: one line of an explanation, on a terminal or on a page."""

    word: str
    text: str
    style: str = ""


def block(word: str, text: str, style: str = "") -> "RenderableType":
    """A word and the text that it introduces, in two columns; long text is cut."""
    from rich.table import Table
    from rich.text import Text

    table: Table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True, min_width=10)
    table.add_column()
    table.add_row(word, Text(shortened(harmless(text), _LONGEST_BLOCK), style=style))
    return indented(table, 4)


def section(title: str) -> "Text":
    """A heading with a blank line before it."""
    from rich.text import Text

    return Text(f"\n{title}", style="bold underline")


def indented(part: "RenderableType", columns: int = 2) -> "RenderableType":
    """``part``, moved to the right."""
    from rich.padding import Padding

    return Padding(part, (0, 0, 0, columns), expand=False)
