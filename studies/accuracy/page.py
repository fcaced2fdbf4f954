"""The accuracy page: prose of ``studies/accuracy/prose``, with figures of the CSV files of ``studies/results``."""

import re
from pathlib import Path

from accuracy import STUDIES
from accuracy.errors import VERDICTS, errors_of, figure_text, verdict_of
from accuracy.table import MEASURED, RESULTS, read_rows
from accuracy.uncertainty import sure_lines

STRANGERS, UNCERTAINTY = RESULTS / "strangers.csv", RESULTS / "uncertainty.csv"
_PROSE = Path(__file__).with_name("prose")
_FIGURE = re.compile(r"\{([^{}|]+) \| ([^{}]+)\}")
"""A figure in the prose of a tool: ``{folder | metric}``."""


def page() -> str:
    """Return the accuracy page as Markdown.

    Raises:
        SystemExit: the prose names a figure that was not measured.
    """
    rows = read_rows(MEASURED)
    lines = ["# How accurate the tools are", ""]
    lines += [
        "<!-- Written by `python studies/write_accuracy.py`: change the prose or the CSV files, not this page. -->"
    ]
    lines += [
        "",
        _prose("introduction"),
        "",
        "## Elsewhere, and on its own collection",
        "",
        _prose("elsewhere"),
        "",
        *_error_lines(),
        "",
        "## How sure the tools are",
        "",
        _prose("uncertainty"),
        "",
    ]
    lines += [
        *sure_lines(),
        "",
        "## Unsuitable pictures",
        "",
        _prose("strangers"),
        "",
    ]
    lines += [*_strangers_lines(read_rows(STRANGERS)), ""]
    for tool in STUDIES:
        of_tool = {(row["folder"], row["metric"]): row for row in rows if row["tool"] == tool}
        version, day = oldest(rows, tool)
        lines += [
            f"## {tool}",
            "",
            _with_figures(tool, of_tool),
            "",
            f"These figures were measured on {day} with version {version} of the tool.",
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def oldest(rows: list[dict[str, str]], tool: str) -> tuple[str, str]:
    """Return the version and the date of the oldest row of a tool."""
    first = min((row for row in rows if row["tool"] == tool), key=lambda row: row["measured"])
    return first["version"], first["measured"]


def _prose(name: str) -> str:
    return (_PROSE / f"{name}.md").read_text(encoding="utf-8").strip()


def _with_figures(tool: str, rows: dict[tuple[str, str], dict[str, str]]) -> str:
    def figure(found: re.Match[str]) -> str:
        row = rows.get((found[1], found[2]))
        if row is None:
            raise SystemExit(f"{MEASURED} has no figure of {tool} for {found[0]}")
        return figure_text(row)

    return _FIGURE.sub(figure, _prose(tool))


def _error_lines() -> list[str]:
    """Return a table of the error of each tool elsewhere and on its own collection, weak tools first."""
    lines = ["| tool | elsewhere | figure elsewhere | own collection |", "|---|---|---|---|"]
    for tool in sorted(STUDIES, key=lambda tool: VERDICTS.index(verdict_of(tool))):
        cells = [f"{one.of}; {one.text}" for one in errors_of(tool).values()]
        lines.append(f"| {tool} | {verdict_of(tool)} | {' | '.join(cells)} |")
    return lines


def _strangers_lines(rows: list[dict[str, str]]) -> list[str]:
    """Return the sum of all calls, and the calls with a wrong answer or with right pictures that are refused."""
    sums = {(row["call"], row["folder"]): row for row in rows}
    wrong = [f"{row['call'].replace('_', ' ')} {row['confident and wrong']} of {row['calls']}"
             for row in rows if row["confident and wrong"] not in ("", "0") and row["call"] != "all"]  # fmt: skip
    doubted = [f"{row['call'].replace('_', ' ')} {int(row['refused']) + int(row['flagged'])} of {row['calls']}"
               for row in rows if row["folder"] == "all made for"]  # fmt: skip
    every = sums["all", "all strangers"]
    return [
        f"* confident and wrong: {every['confident and wrong']} of {every['calls']} calls, {every['share, 95 %']}; "
        f"by kind of call: {', '.join(wrong)}",
        f"* refused or flagged although the picture suits the tool, by kind of call: {', '.join(doubted)}",
    ]
