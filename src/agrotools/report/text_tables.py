"""Tables of reports as text: CSV, Markdown, LaTeX and HTML; templates of pages and of LaTeX."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agrotools.report.layout import DASH, Part, ReportTable, harmless

if TYPE_CHECKING:
    from jinja2 import Environment


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as CSV. A text that a spreadsheet would run as a formula begins with an apostrophe."""
    written = io.StringIO()
    guarded = (
        [f"'{cell}" if isinstance(cell, str) and cell[:1] in _FORMULA else cell for cell in row]
        for row in rows
    )
    csv.writer(written, lineterminator="\n").writerows(guarded)
    return written.getvalue()


_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def markdown(parts: Iterable[Part]) -> str:
    """Return tables in Markdown, with columns aligned, and the text between them."""
    return "\n".join(
        _markdown_table(each) if isinstance(each, ReportTable) else f"{_items(each.text)}\n"
        for each in parts
    )


def _markdown_table(table: ReportTable) -> str:
    headings = [" ".join(each.heading).strip() for each in table.columns]
    groups = [f"{each.group}: " if each.group else "" for each in table.columns]
    lines = [
        [in_markdown(group + heading) for group, heading in zip(groups, headings, strict=True)]
    ]
    lines += [[in_markdown(cell.text) for cell in row.cells] for row in table.rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(headings))]
    padded = [
        "| "
        + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join(
        [
            f"## {in_markdown(table.title)}",
            "",
            padded[0],
            rule,
            *padded[1:],
            "",
            _items("\n".join(table.notes)),
            "",
        ]
    )


def _items(text: str) -> str:
    return "\n".join(f"- {in_markdown(line)}" for line in text.splitlines() if line)


def in_markdown(text: str) -> str:
    """Return a text on one line that Markdown shows as it is."""
    return re.sub(r"([\\`*_|<>\[\]#~])", r"\\\1", _one_line(text))


_LATEX = {
    **{each: f"\\{each}" for each in "&%$#_{}"},
    **{mark: rf"\textsuperscript{{{digit}}}" for digit, mark in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "^": r"\textasciicircum{}",
    "↓": r"$\downarrow$",
    DASH: "--",
}


def _one_line(text: str) -> str:
    return " ".join(harmless(text).split())


def _in_latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in _one_line(text))


def _spans(table: ReportTable) -> list[tuple[str, int, int]]:
    """Return name, first and last column (from 1) of each run of columns of the same group."""
    numbered = [*enumerate((each.group for each in table.columns), 1)]
    found = [
        (name, [at for at, _ in each]) for name, each in groupby(numbered, lambda each: each[1])
    ]
    return [(name, places[0], places[-1]) for name, places in found]


def _templates(folder: str, **syntax: Any) -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(Path(__file__).parent / folder)
    return Environment(
        loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, **syntax
    )


def latex(parts: Sequence[Part], title: str) -> str:
    """Return tables in LaTeX, for documents with the packages booktabs and graphicx."""
    marks = {"block_start_string": "<%", "block_end_string": "%>"}
    environment = _templates("", **marks, variable_start_string="<<", variable_end_string=">>")
    environment.filters["line"] = _in_latex
    tables = [(each, _spans(each)) for each in parts if isinstance(each, ReportTable)]
    texts = [each.text for each in parts if not isinstance(each, ReportTable)]
    return environment.get_template("tables.tex.j2").render(tables=tables, title=title, texts=texts)


# --- pages ------------------------------------------------------------------------------------------------------------

_CLASSES = {
    "bold": "strong",
    "dim": "dim",
    "green": "good",
    "red": "bad",
    "yellow": "odd",
    "italic": "said",
}


def page_templates() -> "Environment":
    """Return the templates of pages, which show tables with linked samples; control characters are removed."""
    environment = _templates("html", autoescape=True, finalize=_printable)
    environment.filters["classes"] = lambda style: " ".join(
        _CLASSES[word] for word in style.split()
    )
    return environment


def tables_page(tables: Iterable[ReportTable], title: str) -> str:
    """Return a page of nothing but tables."""
    return page_templates().get_template("tables.html.j2").render(tables=tables, title=title)


def _printable(value: Any) -> Any:
    return harmless(value) if type(value) is str else value
