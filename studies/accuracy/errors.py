"""Errors of the tools on their own collection and elsewhere, as ``errors.toml`` names them."""

from pathlib import Path
from typing import NamedTuple

from accuracy.table import MEASURED, read_rows
from agrotools.core.files import read_table

_FILE = Path(__file__).with_name("errors.toml")
WHERE = ("elsewhere", "own")
"""Places of an error: elsewhere, which is what a user needs first, and the tool's own collection."""
VERDICTS = ("worse", "unknown", "similar")
"""What the figures say of a tool on other sources, in the order of the page."""


class Error(NamedTuple):
    """Error of a tool on some pictures. ``of``: what they are. ``text``: the figure, or why there is none.

    Goals are left out: they were set for one of the two places only.
    """

    of: str
    text: str


def errors_of(tool: str) -> dict[str, Error]:
    """Return the errors of a tool by place (:data:`WHERE`).

    Raises:
        SystemExit: a figure is named that was not measured.
    """
    places = read_table(_FILE)[tool]
    return {where: Error(places[where]["of"], _text(tool, places[where])) for where in WHERE}


def verdict_of(tool: str) -> str:
    """Return what the figures say of a tool on other sources, one of :data:`VERDICTS`."""
    return read_table(_FILE)[tool]["verdict"]


def _text(tool: str, given: dict[str, str]) -> str:
    if "figure" not in given:
        return given.get("said") or f"not measured: {given['none']}"
    folder, _, metric = given["figure"].partition(" | ")
    rows = read_rows(MEASURED)
    found = [
        row for row in rows if (row["tool"], row["folder"], row["metric"]) == (tool, folder, metric)
    ]
    if not found:
        raise SystemExit(f"{MEASURED} has no figure of {tool} for {given['figure']}")
    return f"{given['measure']}: {figure_text(found[0] | {'goal': ''}, given.get('unit', ''))}"


def figure_text(row: dict[str, str], unit: str = "") -> str:
    """Return a measured figure with its unit, interval and n."""
    n = row["n"]
    if row["n"] != row["independent"]:
        n = f"{n}, {row['independent']} of them independent"
    interval = f"95 % interval {row['low']} to {row['high']}; " if row["low"] else ""
    goal = f"; goal of {row['goal'].replace(':', '')}" if ":" in row["goal"] else ""
    value = row["value"]
    if "e-" in value:  # a reader who is no programmer does not know 4e-05
        value = f"{float(value):.9f}".rstrip("0")
    return f"{' '.join(filter(None, (value, unit)))} ({interval}n = {n}{goal})"
