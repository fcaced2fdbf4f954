"""The figures of a bench as a table for a terminal and as a Markdown document."""

import os
import platform
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path

from agrotools.build.accuracy.studies import Planned, Row
from agrotools.build.accuracy.study import LEAST_CLUSTERS

TILES = 20
"""A sheet shows at most this many overlays, evenly spread over those there are."""
_COLUMNS = 5
_TILE_PX = 480
_MARGIN_PX = 8


def keep_overlays(folder: Path, study: Planned, overlays: Sequence[Path], *, numbered: bool = False) -> Path:
    """Copy ``overlays`` to ``folder/TOOL/FOLDER/NNN_NAME`` and draw ``folder/TOOL_FOLDER.png``; returns the latter.

    ``numbered``: the study's number follows its folder, for a tool that has several studies on it.
    """
    # A folder of studies may have a readable name ("plants drawn here"); on disk it is one word.
    word = "_".join(study.folder.replace("/", " ").split())
    if numbered:
        word = f"{word}_{study.number}"
    copies = folder / study.tool / word
    copies.mkdir(parents=True, exist_ok=True)
    for number, overlay in enumerate(overlays):
        shutil.copyfile(overlay, copies / f"{number:03}_{overlay.name}")
    step = max(1, -(-len(overlays) // TILES))
    path = folder / f"{study.tool}_{word}.png"
    contact_sheet(overlays[::step], path)
    return path


def contact_sheet(pictures: Sequence[Path], path: Path) -> None:
    """One PNG with the pictures side by side, each shrunk to fit its tile."""
    from PIL import Image

    tiles: list[Image.Image] = []
    for picture in pictures:
        with Image.open(picture) as opened:
            tile = opened.convert("RGB")
        tile.thumbnail((_TILE_PX, _TILE_PX))
        tiles.append(tile)
    columns = min(_COLUMNS, max(1, len(tiles)))
    rows = [tiles[start : start + columns] for start in range(0, len(tiles), columns)]
    heights = [max(tile.height for tile in row) + _MARGIN_PX for row in rows]
    width = columns * (_TILE_PX + _MARGIN_PX) + _MARGIN_PX
    sheet = Image.new("RGB", (width, sum(heights) + _MARGIN_PX), (255, 255, 255))
    y = _MARGIN_PX
    for row, height in zip(rows, heights, strict=True):
        for column, tile in enumerate(row):
            sheet.paste(tile, (_MARGIN_PX + column * (_TILE_PX + _MARGIN_PX), y))
        y += height
    sheet.save(path)


COLUMNS = ("tool", "folder", "metric", "value", "95 % interval", "n", "independent", "ms", "ms/MP", "peak MB", "goal")
_LIBRARIES = ("numpy", "scipy", "scikit-image", "opencv-python-headless", "rasterio", "pillow")
_NO_CLAIM = f"under {LEAST_CLUSTERS} independent images a value is shown without an interval, and claims nothing"


def cells(row: Row) -> tuple[str, ...]:
    """A row as text, in the order of :data:`COLUMNS`."""
    if row.error is not None:
        return (row.tool, row.folder, f"not measured: {row.error}", *["-"] * 8)
    few = row.independent < LEAST_CLUSTERS
    return (
        row.tool,
        row.folder,
        row.metric or "",
        number(row.value),
        "-" if few else f"{number(row.low)} to {number(row.high)}",
        str(row.n),
        str(row.independent),
        _whole(row.ms_median),
        _whole(row.ms_per_megapixel),
        _whole(row.peak_mb),
        _goal(row, few),
    )


def number(value: float | None) -> str:
    """Three digits, never an exponent for what a person can read without; ``-`` for no number."""
    if value is None:
        return "-"
    size = abs(value) if abs(value) > 1e-9 else 0.0  # what rounding of sums leaves is nothing
    if size and not 1e-3 <= size < 1e6:
        return f"{value:.2g}"
    return f"{value:.{0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3}f}"


def printed(rows: Sequence[Row]) -> list[str]:
    """Aligned lines for a terminal; a column that repeats the row above is left blank."""
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


def markdown(rows: Sequence[Row], command: str, absent: Sequence[str] = (), today: str | None = None) -> str:
    """The document: how it was made, then per tool what its authors say of it, its figures and their notes.

    The prose on a tool lies in ``agrotools/build/accuracy/prose/TOOL.md``, and survives when figures are renewed.

    Args:
        command: what a reader types to get the same, without paths of this machine.
        absent: folders that were not there.
        today: date, ISO 8601; the day of the call where left out.
    """
    lines = ["# How accurate the tools are", "", *_provenance(command, absent, today), ""]
    lines += _prose("introduction")
    for tool in dict.fromkeys(row.tool for row in rows):
        mine = [row for row in rows if row.tool == tool]
        lines += [f"## {tool}", "", *_prose(tool), *_markdown_table(mine), ""]
        notes = _notes(mine)
        if notes:
            lines += [*(f"* {note}" for note in notes), ""]
    return "\n".join(lines).rstrip() + "\n"


def _provenance(command: str, absent: Sequence[str], today: str | None) -> list[str]:
    day = today or datetime.now(UTC).date().isoformat()
    libraries = [f"{name} {release}" for name in _LIBRARIES if (release := _version(name))]
    lines = [
        f"Generated by `{command}` on {day}: change the tools or `agrotools/build/accuracy/prose`, not this page.",
        "",
        f"agrotools {_version('agrotools') or '?'}, Python {platform.python_version()}, {', '.join(libraries)}; "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, of which a tool uses one.",
        "",
        f"Intervals are 95 %, over images (scenes where several images show one); {_NO_CLAIM}. Milliseconds are "
        "medians of whole calls: reading, measuring and drawing the overlay; MP are the megapixels of the files read. "
        "Peak memory is that of the study's process, libraries and truth included.",
    ]
    if absent:
        lines += ["", f"Not measured, since their folders were not there: {', '.join(absent)}."]
    return lines


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _prose(name: str) -> list[str]:
    text = files("agrotools.build.accuracy").joinpath("prose", f"{name}.md")
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
    """A line per folder and note, with the metrics that it is about where it is not about all of the folder."""
    about: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        if row.note:
            about.setdefault((row.tool, row.folder, row.note), []).append(row.metric or "")
    lines = []
    for (tool, folder, note), metrics in about.items():
        every = sum((row.tool, row.folder) == (tool, folder) for row in rows)
        which = "" if len(metrics) == every else f", {'; '.join(metrics)}"
        lines.append(f"{folder}{which}: {note}")
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
