"""Results of studies as a table for the terminal and as a Markdown document."""

import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from accuracy.studies import Row
from accuracy.study import LEAST_CLUSTERS
from accuracy.uncertainty import section
from agrotools.build.sources.part import first_few
from agrotools.core.base import count_text
from agrotools.tools import get_tool

COLUMNS = ("tool", "folder", "metric", "value", "95 % interval", "n", "independent", "ms", "ms/MP", "peak MB", "goal")
_LIBRARIES = ("numpy", "scipy", "scikit-image", "opencv-python-headless", "rasterio", "pillow")
PROSE = Path(__file__).with_name("prose")
_FEWEST_DRAWN = 20
"""Answers without which no curve is drawn."""
_NO_CLAIM = f"under {LEAST_CLUSTERS} independent images a value is shown without an interval, and claims nothing"


def cells(row: Row) -> tuple[str, ...]:
    """Return a row as text, in the order of :data:`COLUMNS`."""
    if row.error is not None:
        return (row.tool, row.folder, f"not measured: {row.error}", *["-"] * 8)
    few = row.independent < LEAST_CLUSTERS
    return (
        row.tool,
        row.folder,
        row.metric or "",
        number(row.value),
        "-" if few or row.low is None else f"{number(row.low)} to {number(row.high)}",
        str(row.n),
        str(row.independent),
        _whole(row.ms_median),
        _whole(row.ms_per_megapixel),
        _whole(row.peak_mb),
        _goal(row, few),
    )


def number(value: float | None) -> str:
    """Format a number with three digits, without an exponent for ordinary sizes; None becomes ``-``."""
    if value is None:
        return "-"
    size = abs(value) if abs(value) > 1e-9 else 0.0  # rounding errors of sums
    if size and not 1e-3 <= size < 1e6:
        return f"{value:.2g}"
    return f"{value:.{0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3}f}"


def format_table(rows: Sequence[Row]) -> list[str]:
    """Return aligned lines for the terminal; tool and folder are left blank if they repeat the row above."""
    table = [COLUMNS, *(cells(row) for row in rows if row.error is None)]
    widths = [max(len(line[column]) for line in table) for column in range(len(COLUMNS))]
    lines: list[str] = []
    above: tuple[str, ...] = ()
    for line in table:
        texts = list(line)
        if above and texts[:2] == list(above[:2]):
            texts[0] = texts[1] = ""
        texts = [
            cell.ljust(width) if column < 3 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(texts, widths, strict=True))
        ]
        lines.append("  ".join(texts).rstrip())
        above = line
    if any(row.error is None and row.independent < LEAST_CLUSTERS for row in rows):
        lines += ["", f"-: {_NO_CLAIM}"]
    notes = _notes(rows)
    if notes:
        lines += ["", *notes]
    failed = [f"{row.tool} on {row.folder}: not measured: {row.error}" for row in rows if row.error is not None]
    return [*lines, "", *failed] if failed else lines


def markdown(
    rows: Sequence[Row],
    command: str,
    absent: Sequence[str] = (),
    today: str | None = None,
    strangers: str = "",
    pictures: str = "",
) -> str:
    """Return the document: how it was generated, then the prose, figures and notes of each tool.

    The prose on a tool is in ``studies/accuracy/prose/TOOL.md`` and is kept when figures are renewed.

    Args:
        command: command that reproduces the document, without local paths.
        absent: folders that were missing.
        today: date, ISO 8601; default: today.
        strangers: table of calls on pictures that a tool is not made for.
        pictures: folder of the files of :func:`curves`, as seen from the document; none are shown without it.
    """
    day = today or datetime.now(UTC).date().isoformat()
    lines = ["# How accurate the tools are", "", *_provenance(command, absent, day), ""]
    of_ours = bool(rows) and all(row.is_ours for row in rows)
    lines += _prose("introduction") if of_ours else []
    lines += section(list(dict.fromkeys(row.tool for row in rows))) if of_ours else []
    if strangers:
        lines += [
            "## Pictures that a tool is not made for",
            "",
            *(_prose("strangers") if of_ours else []),
            strangers,
            "",
        ]
    for tool in dict.fromkeys(row.tool for row in rows):
        mine = [row for row in rows if row.tool == tool]
        prose = _prose(tool) if of_ours else []
        shown = [
            f"![{row.metric}, {row.folder}]({pictures}/{_file_of(row)})" for row in mine if pictures and _is_drawn(row)
        ]
        lines += [
            f"## {tool}",
            "",
            *prose,
            f"Measured on {day} with version {get_tool(tool).version}.",
            "",
            *_markdown_table(mine),
            "",
            *(line for each in shown for line in (each, "")),
        ]
        sources = dict.fromkeys(f"{row.folder}, images: {row.sources}" for row in mine if row.sources)
        if notes := [*_notes(mine), *sources]:
            lines += [*(f"* {note}" for note in notes), ""]
    return "\n".join(lines).rstrip() + "\n"


def curves(rows: Sequence[Row]) -> dict[str, bytes]:
    """Return SVG files of calibration and errors by coverage, by name, of the rows that have points."""
    from accuracy.curves import draw_curves

    return {_file_of(row): draw_curves(row.points, f"{row.tool} on {row.folder}") for row in rows if _is_drawn(row)}


def _is_drawn(row: Row) -> bool:
    return len(row.points) >= _FEWEST_DRAWN


def _file_of(row: Row) -> str:
    suffix = row.metric.partition("probability")[2] if row.metric else ""
    return "-".join(re.findall(r"[a-z0-9]+", f"accuracy {row.tool} {row.folder}{suffix}".lower())) + ".svg"


def _provenance(command: str, absent: Sequence[str], day: str) -> list[str]:
    libraries = [f"{name} {release}" for name in _LIBRARIES if (release := _version(name))]
    lines = [
        f"<!-- Generated by `{command}` on {day}: change the tools or `studies/accuracy/prose`, not this page. -->",
        "",
        f"Measured on {day} with agrotools {_version('agrotools') or '?'}, Python {platform.python_version()}, "
        f"{', '.join(libraries)}; {platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        "of which a tool uses one.",
        "",
        "Intervals are 95 %, over images (scenes where several images show one), exact for shares (Clopper and Pearson "
        f"1934), else by a bootstrap; {_NO_CLAIM}. Milliseconds are "
        "medians of the processor time of whole calls: reading, measuring and drawing the overlay; MP are the "
        "megapixels of the files read. "
        "Peak memory is that of the study's process, libraries and truth included.",
    ]
    if (load := os.getloadavg()[2]) > 1.5:  # a study takes one core
        lines[-1] += f" Other programs ran beside the studies (load {load:.1f}), so times are too long."
    if absent:
        lines += ["", f"Not measured, since their folders were not there: {', '.join(absent)}."]
    return lines


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _prose(name: str) -> list[str]:
    text = PROSE / f"{name}.md"
    return [text.read_text(encoding="utf-8").strip(), ""] if text.is_file() else []


def _markdown_table(rows: Sequence[Row]) -> list[str]:
    lines = [
        "| " + " | ".join(COLUMNS[1:]) + " |",
        "|" + "|".join("---" if column < 2 else "---:" for column in range(len(COLUMNS) - 1)) + "|",
    ]
    return lines + ["| " + " | ".join(_escaped(cell) for cell in cells(row)[1:]) + " |" for row in rows]


def _escaped(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _notes(rows: Sequence[Row]) -> list[str]:
    """Return a line per folder and note, with the metrics concerned unless the note applies to all of the folder."""
    about: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        if row.note:
            about.setdefault((row.tool, row.folder, row.note), []).append(row.metric or "")
    lines = []
    for (tool, folder, note), metrics in about.items():
        every = sum((row.tool, row.folder) == (tool, folder) for row in rows)
        which = "" if len(metrics) == every else f", {'; '.join(metrics)}"
        lines.append(f"{folder}{which}: {note}")
    left_out = dict.fromkeys((row.tool, row.folder, tuple(row.unreadable)) for row in rows if row.unreadable)
    why = "without a label or not readable"
    lines += [f"{folder}: {tool} left out {count_text(len(names), 'picture')} {why}: {first_few(names)}"
              for tool, folder, names in left_out]  # fmt: skip
    return lines


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def _goal(row: Row, few: bool) -> str:
    if row.goal is None:
        return "-"
    goal = f"{'≥' if row.higher_is_better else '≤'} {row.goal:g}"
    if few or row.goal_reached is None:
        return goal
    return f"{goal}: {'reached' if row.goal_reached else 'missed'}"
