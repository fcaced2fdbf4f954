"""The tables of :mod:`agrotools.report.agrieval` as a section of a page."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agrotools.report.agrieval.beside import Models
from agrotools.report.agrieval.printing import blocks
from agrotools.report.agrieval.results import SettingResult
from agrotools.report.agrieval.tables import LaidOutTable
from agrotools.report.html.result_tables import Drawing, HtmlTable, html_tables, interval_drawing
from agrotools.report.html.templating import templates

if TYPE_CHECKING:
    from markupsafe import Markup

_SIDE_BY_SIDE = 8


def agrieval_section(results: Sequence[SettingResult], *, published: bool = True, models: Models = "all") -> "Markup":
    """A ``<section>`` for the page of :func:`agrotools.report.html.build_report`, whose styles it uses.

    Args:
        results: one for each model and setting.
        published: put figures of the paper beneath the runs.
        models: published models to show, by name or as ``some`` or ``all``.
    """
    from markupsafe import Markup

    made, notes = blocks(results, published=published, models=models, side_by_side=_SIDE_BY_SIDE)
    tables: list[HtmlTable] = []
    for block in made:
        for shown, columns in zip(block.tables, block.columns, strict=True):
            tables += html_tables([shown], _intervals(block.table, columns))
        tables[-1].below.extend([(line, "")] for line in block.below)
    return Markup(templates().get_template("agrieval.html.j2").render(tables=tables, notes=notes))


def _intervals(table: LaidOutTable | None, columns: Sequence[int]) -> Drawing:
    """Draws the interval of each cell of a run; ``columns``: which columns of ``table`` are shown."""

    def draw(row: int, column: int) -> "Markup | None":
        if table is None or not columns or row >= len(table.rows):
            return None
        cell = table.rows[row].cells[columns[column]]
        return interval_drawing(cell.estimate) if cell is not None else None

    return draw
