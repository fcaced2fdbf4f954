"""Templates of the pages, which show tables of :mod:`agrotools.report.layout` with linked samples."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from agrotools.report.layout import Table, harmless

_CLASSES = {"bold": "strong", "dim": "dim", "green": "good", "red": "bad", "yellow": "odd", "italic": "said"}


def templates() -> Environment:
    """Return the environment of the ``.j2`` templates in this package."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        finalize=_printable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["classes"] = _classes
    return environment


def tables_page(tables: Iterable[Table], title: str) -> str:
    """Return a page of nothing but tables."""
    return templates().get_template("tables.html.j2").render(tables=tables, title=title)


def _classes(style: str) -> str:
    """Return the CSS classes of the style of a cell."""
    return " ".join(_CLASSES[word] for word in style.split())


def _printable(value: Any) -> Any:
    """Remove control characters from the value of a template expression, before it is escaped."""
    return harmless(value) if type(value) is str else value
