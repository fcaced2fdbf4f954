"""What is printed, as plain text."""

from collections.abc import Iterable, Sequence
from io import StringIO

from rich.console import Console, RenderableType

from agrotools.core import Record, Score
from agrotools.report.explain import explain
from agrotools.report.tables import tables
from agrotools.report.terminal import PLAIN_WIDTH, print_part
from agrotools.scoring import Summary


def rendered(parts: Iterable[RenderableType], width: int = PLAIN_WIDTH) -> str:
    """Return ``parts`` as plain text of at most ``width`` columns, except for tables that cannot be that narrow."""
    written = StringIO()
    console = Console(file=written, width=width, highlight=False, force_terminal=False, force_jupyter=False)
    for part in parts:
        print_part(console, part)
    return "\n".join(row.rstrip() for row in written.getvalue().splitlines()) + "\n"


def tables_text(summaries: Sequence[Summary], *, details: bool = True, width: int = PLAIN_WIDTH) -> str:
    """Return the tables of runs."""
    return rendered(tables(summaries, details=details), width)


def explanation_text(record: Record, scores: Sequence[Score], *, width: int = PLAIN_WIDTH) -> str:
    """Return the explanation of a sample."""
    return rendered(explain(record, scores), width)
