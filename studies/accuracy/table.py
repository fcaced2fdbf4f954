"""Results of studies as a table for the terminal and as a CSV file."""

import csv
from collections.abc import Sequence
from pathlib import Path

from accuracy import STUDIES
from accuracy.studies import Row
from accuracy.study import LEAST_CLUSTERS
from agrotools.calling import get_tool
from agrotools.core.texts import count_text
from agrotools_build.sources.part import first_few

RESULTS = Path(__file__).resolve().parents[1] / "results"
MEASURED = RESULTS / "measured.csv"
COLUMNS = (
    "tool",
    "folder",
    "metric",
    "value",
    "95 % interval",
    "n",
    "independent",
    "ms",
    "ms/MP",
    "peak MB",
    "goal",
)
CSV_COLUMNS = (
    *(
        "tool",
        "version",
        "measured",
        "folder",
        "metric",
        "value",
        "low",
        "high",
        "n",
        "independent",
    ),
    *("ms", "ms_per_megapixel", "peak_mb", "goal", "note", "sources"),
)
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
    failed = [
        f"{row.tool} on {row.folder}: not measured: {row.error}"
        for row in rows
        if row.error is not None
    ]
    return [*lines, "", *failed] if failed else lines


def write_csv(path: Path, rows: Sequence[Row], day: str) -> None:
    """Write measured rows to a CSV file, in place of its rows on the same folders of the same tools.

    Args:
        day: date of the measurement, ISO 8601.
    """
    fresh = [row for row in rows if row.error is None]
    measured = {(row.tool, row.folder) for row in fresh}
    kept = (
        [row for row in read_rows(path) if (row["tool"], row["folder"]) not in measured]
        if path.exists()
        else []
    )
    kept += [_csv_row(row, day) for row in fresh]
    order = list(STUDIES)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, CSV_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(kept, key=lambda row: order.index(row["tool"])))


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file, by column."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _csv_row(row: Row, day: str) -> dict[str, str]:
    few = row.independent < LEAST_CLUSTERS or row.low is None
    ends = ("", "") if few else (number(row.low), number(row.high))
    shown = [row.folder, row.metric or "", number(row.value), *ends, *cells(row)[5:]]
    texts = ["" if cell == "-" else cell for cell in shown]
    note = row.note
    if row.unreadable:
        note = "; ".join(
            filter(None, (note, f"{count_text(len(row.unreadable), 'picture')} left out"))
        )
    return dict(
        zip(
            CSV_COLUMNS,
            [row.tool, get_tool(row.tool).version, day, *texts, note, row.sources],
            strict=True,
        )
    )


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
    left_out = dict.fromkeys(
        (row.tool, row.folder, tuple(row.unreadable)) for row in rows if row.unreadable
    )
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
