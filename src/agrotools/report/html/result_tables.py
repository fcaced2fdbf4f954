"""Result tables and error classes as HTML: the terminal's cells, with drawn intervals and linked samples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from agrotools.report.comparison import (
    ErrorColumn,
    across_runs_tables,
    classes_looked_for,
    error_columns,
    error_label,
    error_parts,
    notes_of,
    paper_names,
)
from agrotools.report.layout import DASH, Notes, harmless, percent
from agrotools.report.parts import correlation_lines, counts_table, judge_notes, part_tables, seconds_tables
from agrotools.report.settings import plugin_notes
from agrotools.report.tables import general_notes, main_tables
from agrotools.scoring import Summary
from agrotools.scoring.error_classes import CLASSES

_SIDE_BY_SIDE = 8
_CLASSES = {"bold": "strong", "dim": "dim", "green": "good", "red": "bad", "yellow": "odd", "italic": "said"}

Line = list[tuple[str, str]]
"""Pieces of a line: text and its CSS classes."""
Cell = list[Line]


class Row(NamedTuple):
    """Table row: heading and cells. ``inner``: it belongs to the group above; ``is_group``: no cell has a text."""

    heading: Cell
    cells: list[Cell]
    inner: bool
    is_group: bool


@dataclass(frozen=True)
class HtmlTable:
    """Table with the lines below it."""

    title: str
    headings: list[Cell]
    rows: list[Row]
    below: list[Line]


class Results(NamedTuple):
    """Main tables, tables of parts and counts, and notes."""

    main: list[HtmlTable]
    parts: list[HtmlTable]
    notes: list[str]


def result_tables(summaries: Sequence[Summary]) -> Results:
    """Return the tables of :func:`agrotools.report.tables.tables` for a page."""
    notes = Notes()
    main = html_tables(main_tables(summaries, notes))
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


def html_tables(parts: Sequence[RenderableType]) -> list[HtmlTable]:
    """Convert terminal tables to HTML tables, each with the text that follows it.

    Columns without any entry and rows of counts that are all zero are left out."""
    tables: list[HtmlTable] = []
    for part in parts:
        if isinstance(part, Table):
            tables.append(_table(part))
        elif isinstance(part, Text) and tables:
            tables[-1].below.extend(_lines(part))
    return tables


def _table(table: Table) -> HtmlTable:
    columns = [(_text(column.header), list(map(_text, column.cells))) for column in table.columns]
    columns = [columns[0], *(column for column in columns[1:] if any(map(_says, column[1])))]
    rows = [
        Row(
            heading=_lines(heading),
            cells=[_lines(cells[at]) for _, cells in columns[1:]],
            inner=heading.plain.startswith(" "),
            is_group=not any(cells[at].plain.strip() for _, cells in columns[1:]),
        )
        for at, heading in enumerate(columns[0][1])
        if not all(cells[at].plain.strip() == "0" for _, cells in columns[1:]) or not columns[1:]
    ]
    # Terminal columns are narrow, so their headings are hyphenated.
    headings = [_lines(Text(text.plain.replace("-\n", "")) if "-\n" in text.plain else text) for text, _ in columns]
    return HtmlTable(str(table.title or "").strip(), headings, rows, [])


def _says(cell: Text) -> bool:
    """Return True unless a cell is empty or a dash with its note."""
    return bool(cell.plain.strip()) and not cell.plain.startswith(DASH)


def _text(cell: object) -> Text:
    return cell if isinstance(cell, Text) else Text(str(cell))


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
                if any(column.errors[error].count for column in part if error in column.errors)
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
    link = f"#samples?id={quote(run, safe='')}/{quote(column.mode, safe='')}"
    examples = [{"sample": sample, "link": f"{link}/{quote(sample, safe='')}/0"} for sample in row.examples]
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
