"""Result tables and error classes as HTML: the terminal's cells, with drawn intervals and linked samples."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from agrotools.report.comparison import (
    ErrorColumn,
    across_runs_tables,
    between_runs_table,
    classes_looked_for,
    error_columns,
    error_label,
    error_parts,
    notes_of,
    paper_names,
)
from agrotools.report.layout import DASH, Notes, harmless, percent, points
from agrotools.report.parts import correlation_lines, counts_table, judge_notes, part_tables, seconds_tables
from agrotools.report.settings import OUTCOME, Setting, has_table, plugin_notes, plugin_tables, settings_for
from agrotools.report.tables import gain_table, general_notes, setting_table, shown_metrics
from agrotools.scoring import Estimate, Metric, Summary
from agrotools.scoring.error_classes import CLASSES

_WIDTH, _HEIGHT, _MARGIN = 108, 14, 4


class Mark(NamedTuple):
    """Score of another run: a ``ceiling`` (it sees the reference) or a ``floor`` (a baseline that does not see it)."""

    value: float
    kind: Literal["ceiling", "floor"]


def mark_kinds(summaries: Sequence[Summary]) -> set[str]:
    """Return the kinds of marks in the tables of these runs."""
    baselines = [each for each in summaries if each.privileged or each.model.startswith("baseline:")]
    return {"ceiling" if each.privileged else "floor" for each in baselines} if len(summaries) > 1 else set()


def interval_drawing(estimate: Estimate, marks: Sequence[Mark] = (), *, privileged: bool = False) -> Markup:
    """Draw a mean in [0, 1] and its interval on a line from 0 to 100 %, with marks for ceilings and floors."""
    marks_drawn = [_line(mark.kind, _x(mark.value), 2, _x(mark.value), _HEIGHT - 2) for mark in marks]
    label = f"{percent(estimate.value)} %"
    if estimate.interval is not None:
        lower, upper = estimate.interval.lower, estimate.interval.upper
        marks_drawn.append(_line("interval", _x(lower), _HEIGHT / 2, _x(upper), _HEIGHT / 2))
        label += f", 95 % interval {percent(lower)} to {percent(upper)}"
    for kind in ("ceiling", "floor"):
        there = [percent(mark.value) for mark in marks if mark.kind == kind]
        label += f", {kind} {', '.join(there)}" if there else ""
    return _drawing(label, [*marks_drawn, _point(_x(estimate.value), privileged)])


def difference_drawing(estimate: Estimate) -> Markup:
    """Draw a difference in [-1, 1] and its interval on a line with zero in the middle."""
    marks_drawn = [_line("zero", _x(0.5), 1, _x(0.5), _HEIGHT - 1)]
    label = f"{points(estimate.value)} points"
    if estimate.interval is not None:
        lower, upper = estimate.interval.lower, estimate.interval.upper
        marks_drawn.append(_line("interval", _x((lower + 1) / 2), _HEIGHT / 2, _x((upper + 1) / 2), _HEIGHT / 2))
        label += f", 95 % interval {points(lower)} to {points(upper)}"
    return _drawing(label, [*marks_drawn, _point(_x((estimate.value + 1) / 2), False)])


def _drawing(label: str, parts: Sequence[str]) -> Markup:
    axis = _line("axis", _x(0), _HEIGHT / 2, _x(1), _HEIGHT / 2)
    box = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    return Markup(f'<svg class="interval" role="img" aria-label="{escape(label)}" {box}>{axis}{"".join(parts)}</svg>')


def _x(value: float) -> float:
    return _MARGIN + (_WIDTH - 2 * _MARGIN) * min(max(value, 0.0), 1.0)


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _point(x: float, privileged: bool) -> str:
    y = _HEIGHT / 2
    if privileged:
        return f'<path class="point open" d="M{x - 4:.1f} {y}L{x:.1f} {y - 4}L{x + 4:.1f} {y}L{x:.1f} {y + 4}Z"/>'
    return f'<circle class="point" cx="{x:.1f}" cy="{y}" r="3.2"/>'


_SIDE_BY_SIDE = 8
_CLASSES = {"bold": "strong", "dim": "dim", "green": "good", "red": "bad", "yellow": "odd", "italic": "said"}

Line = list[tuple[str, str]]
"""Pieces of a line: text and its CSS classes."""


@dataclass(frozen=True)
class Cell:
    """Table cell: its lines, and the drawing below the first line."""

    lines: list[Line]
    drawing: Markup | None = None

    @property
    def empty(self) -> bool:
        return not any(text.strip() for line in self.lines for text, _ in line)


@dataclass(frozen=True)
class Row:
    """Table row: heading and cells. ``inner`` is True if it belongs to the group above."""

    heading: Cell
    cells: list[Cell]
    inner: bool

    @property
    def is_group(self) -> bool:
        return all(cell.empty for cell in self.cells)


@dataclass(frozen=True)
class HtmlTable:
    """Table with the lines below it."""

    title: str
    headings: list[Cell]
    rows: list[Row]
    below: list[Line]


Drawing = Callable[[int, int], "Markup | None"]
"""Function that draws a cell, by row and column (row headings are not a column)."""


@dataclass(frozen=True)
class Results:
    """Main tables, tables of parts and counts, and notes."""

    main: list[HtmlTable]
    parts: list[HtmlTable]
    notes: list[str]


def result_tables(summaries: Sequence[Summary]) -> Results:
    """Return the tables of :func:`agrotools.report.tables.tables` for a page."""
    notes = Notes()
    main: list[HtmlTable] = []
    for setting in settings_for(summaries):
        if has_table(setting, summaries):
            main += html_tables(
                setting_table(setting, summaries, notes), _intervals(_of_setting(setting, summaries), summaries)
            )
    main += html_tables(plugin_tables(summaries, notes))
    if any(summary.no_tool_part and summary.no_tool_part.gain for summary in summaries):
        main += html_tables(gain_table(summaries, notes), _gains(summaries))
    if len(summaries) > 1:
        main += html_tables(between_runs_table(summaries))
    parts = html_tables(
        [
            *part_tables(summaries, side_by_side=_SIDE_BY_SIDE),
            *seconds_tables(summaries, side_by_side=_SIDE_BY_SIDE),
            *(across_runs_tables(summaries) if len(summaries) > 1 else ()),
            *counts_table(summaries),
            *correlation_lines(summaries),
        ]
    )
    return Results(
        main, parts, [*judge_notes(summaries), *plugin_notes(summaries), *general_notes(summaries), *notes.numbered()]
    )


MetricGetter = Callable[[Summary, int], Metric | None]
"""Function that returns the metric of a run in a column; None for a dash."""


def _intervals(metric_of: MetricGetter, summaries: Sequence[Summary]) -> Drawing:
    def draw(row: int, column: int) -> Markup | None:
        metric = metric_of(summaries[row], column)
        marks = [
            Mark(other.overall.value, "ceiling" if summary.privileged else "floor")
            for at, summary in enumerate(summaries)
            if at != row and (summary.privileged or summary.model.startswith("baseline:"))
            if (other := metric_of(summary, column)) is not None
        ]
        return interval_drawing(metric.overall, marks, privileged=summaries[row].privileged) if metric else None

    return draw


def _of_setting(setting: Setting, summaries: Sequence[Summary]) -> MetricGetter:
    columns = shown_metrics(setting, summaries)

    def shown(summary: Summary, column: int) -> Metric | None:
        metrics = setting.of(summary)
        return metrics.get(columns[column]) if metrics and summary.modes[setting.mode].headline else None

    return shown


def _gains(summaries: Sequence[Summary]) -> Drawing:
    def draw(row: int, column: int) -> Markup | None:
        summary = summaries[row]
        metrics = OUTCOME[:-1]
        hidden = any(not part.headline for mode, part in summary.modes.items() if mode != "step-by-step")
        if hidden or summary.no_tool_part is None or column >= len(metrics):
            return None
        gain = summary.no_tool_part.gain.get(metrics[column])
        return difference_drawing(gain.overall) if gain else None

    return draw


def html_tables(parts: Sequence[RenderableType], draw: Drawing = lambda _row, _column: None) -> list[HtmlTable]:
    """Convert terminal tables to HTML tables, each with the text that follows it."""
    tables: list[HtmlTable] = []
    for part in parts:
        if isinstance(part, Table):
            tables.append(_table(part, draw))
        elif isinstance(part, Text) and tables:
            tables[-1].below.extend(_lines(part))
    return tables


def _table(table: Table, draw: Drawing) -> HtmlTable:
    columns = [list(map(_text, column.cells)) for column in table.columns]
    rows = [
        Row(
            heading=Cell(_lines(heading)),
            cells=[Cell(_lines(cells[at]), draw(at, column)) for column, cells in enumerate(columns[1:])],
            inner=heading.plain.startswith(" "),
        )
        for at, heading in enumerate(columns[0])
    ]
    headings = [Cell(_lines(_unhyphenated(_text(column.header)))) for column in table.columns]
    return HtmlTable(str(table.title or "").strip(), headings, rows, [])


def _text(cell: object) -> Text:
    return cell if isinstance(cell, Text) else Text(str(cell))


def _unhyphenated(heading: Text) -> Text:
    """Return a heading without the hyphenation for narrow terminal columns."""
    return Text(heading.plain.replace("-\n", "")) if "-\n" in heading.plain else heading


def _lines(text: Text) -> list[Line]:
    lines: list[Line] = []
    for line in text.split("\n", allow_blank=True):
        edges = sorted({0, len(line), *(edge for span in line.spans for edge in (span.start, span.end))})
        pieces: Line = []
        for start, end in pairwise(edges):
            over = (str(span.style) for span in line.spans if span.start <= start and end <= span.end)
            pieces.append((line.plain[start:end], " ".join(_classes([str(line.style), *over]))))
        lines.append(pieces)
    while lines and not any(text.strip() for text, _ in lines[-1]):
        lines.pop()
    return lines


def _classes(styles: Sequence[str]) -> Iterator[str]:
    on: dict[str, bool] = {}
    for style in styles:
        words = iter(style.split())
        for word in words:
            negated = word == "not"
            on[next(words, "") if negated else word] = not negated
    return (_CLASSES[word] for word, there in on.items() if there and word in _CLASSES)


def errors_section(summaries: Sequence[Summary], names: Sequence[str]) -> Markup | str:
    """Return the ``<section>`` of errors; empty if no errors were counted. ``names`` are the runs' names in links."""
    columns = error_columns(summaries)
    if not columns:
        return ""
    tables = [
        {
            "title": f"Errors by class{f', {mode}' if mode else ''}",
            "headings": [column.name if mode else column.mode for column in part],
            "rows": [
                {
                    "label": error_label(error, part),
                    "meaning": CLASSES[error].meaning,
                    "paper_names": paper_names(error, part),
                    "cells": [_error_cell(error, column, names[column.run]) for column in part],
                }
                for error in classes_looked_for(part)
            ],
        }
        for mode, part in error_parts(columns, side_by_side=_SIDE_BY_SIDE)
    ]
    macros: Any = templates().get_template("page.html.j2").module
    return macros.error_section(tables=tables, notes=notes_of(columns))


def _error_cell(error: str, column: ErrorColumn, run: str) -> dict[str, Any]:
    """Return number, share and examples; an example has the link to its record, which may not be on the page."""
    row = column.errors.get(error)
    if row is None or row.count is None:
        return {"number": DASH, "share": "", "examples": []}
    link = "/".join(quote(part, safe="") for part in (run, column.mode))
    examples = [{"sample": sample, "link": f"#{link}/{quote(sample, safe='')}/0"} for sample in row.examples]
    return {"number": str(row.count), "share": percent(row.share or 0), "examples": examples}


def templates(*folders: Path) -> Environment:
    """Return the environment of the ``.j2`` templates in this package and in further ``folders``."""
    return Environment(
        loader=FileSystemLoader([Path(__file__).parent, *folders]),
        autoescape=True,
        finalize=_printable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _printable(value: Any) -> Any:
    """Remove control characters from the value of a template expression, before it is escaped."""
    return harmless(value) if type(value) is str else value
