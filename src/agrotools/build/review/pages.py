"""Templates of the page. Everything that is put into them is escaped."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agrotools.report.layout import harmless

if TYPE_CHECKING:
    from jinja2 import Environment


def render(name: str, **values: Any) -> str:
    """The template ``name`` with these values, escaped and without control characters."""
    return _templates().get_template(name).render(**values)


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        finalize=lambda value: harmless(value) if type(value) is str else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
