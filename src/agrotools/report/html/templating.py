"""The templates of the page, which escape all that they print."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agrotools.report.layout import harmless

if TYPE_CHECKING:
    from jinja2 import Environment


def templates(*folders: Path) -> "Environment":
    """The files beside this one that end in ``.j2``, and those of further ``folders``."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader([Path(__file__).parent, *folders]),
        autoescape=True,
        finalize=_printable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _printable(value: Any) -> Any:
    """The text of an expression of a template, before it is escaped."""
    return harmless(value) if type(value) is str else value
