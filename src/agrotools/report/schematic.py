"""Samples that ask to recognise schematic drawings: kept out of the headline, shown in a block of their own."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from agrotools.core import Mode
from agrotools.report.cells import Notes, name_cell, new_table, percent, run_names, size, stacked, value_cell
from agrotools.scoring import METRICS, Metric, SchematicPart, Summary

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

SAYS_NOTHING = "Names of drawings, not of animals or plants: says nothing about recognition."
NO_HEADLINE = "no headline: all samples are schematic drawings"


class Column(NamedTuple):
    """A column of the block: a metric of a mode, and the mode in words."""

    mode: Mode
    metric: str
    words: str


_COLUMNS = (
    Column("no-tool", "agrotools.fas", "no tools"),
    Column("end-to-end", "agrotools.fas", "end to end"),
    Column("step-by-step", "agrotools.tool_acc", "by step"),
    Column("step-by-step", "agrotools.arg_acc", "by step"),
    Column("step-by-step", "agrotools.summ_acc", "by step"),
)
_ONE_MODE = tuple(
    Column("end-to-end", metric, "end to end")
    for metric in ("agrotools.fas", "agrotools.css", "agrotools.ots", "agrotools.plot")
)
"""All outcome metrics, for runs that have no other mode: there they have room."""


def schematic_part(summary: Summary, mode: Mode) -> SchematicPart | None:
    """The schematic drawings of a run in one mode; None where it has none."""
    return summary.modes[mode].schematic if mode in summary.modes else None


def schematic_metric(summary: Summary, column: Column) -> Metric | None:
    """What the block prints for a run; None where it prints a dash."""
    part = schematic_part(summary, column.mode)
    return part.metrics.get(column.metric) if part is not None and part.headline else None


def only_schematic(summary: Summary, mode: Mode) -> bool:
    """Whether nothing is left for a headline of the mode."""
    part = schematic_part(summary, mode)
    return part is not None and part.n_samples == summary.modes[mode].n_samples


def kept_out_line(counts: Iterable[int]) -> str:
    """How many samples a table does not count, for each of its runs; nothing where it is none."""
    found = sorted(set(counts))
    if not any(found):
        return ""
    n = " to ".join(str(count) for count in dict.fromkeys((found[0], found[-1])))
    return f"Kept out: {n} sample{'s' * (n != '1')} of schematic drawings, which have a table of their own."


def schematic_columns(summaries: Sequence[Summary]) -> list[Column]:
    """The columns of the block: the main metrics of each mode in which a run has schematic drawings."""
    modes = {mode for summary in summaries for mode in summary.modes if schematic_part(summary, mode)}
    columns = _ONE_MODE if modes == {"end-to-end"} else _COLUMNS
    return [column for column in columns if column.mode in modes]


def schematic_block(summaries: Sequence[Summary], notes: Notes) -> list["RenderableType"]:
    """The table of schematic drawings, a row per run, and what it does not say; empty where no run has any."""
    from rich.text import Text

    columns = schematic_columns(summaries)
    if not columns:
        return []
    parts = [schematic_part(summary, column.mode) for summary in summaries for column in columns]
    largest = max((part.n_samples, part.n_clusters) for part in parts if part is not None)
    table = new_table(f"Schematic drawings, n {largest[0]} ({largest[1]}), in no headline")
    table.add_column("", overflow="fold", min_width=14)
    shared = [_shared_size(column, summaries) for column in columns]
    for column, its_size in zip(columns, shared, strict=True):
        table.add_column(stacked([column.words, METRICS[column.metric].label, its_size]), justify="right")
    for name, summary in zip(run_names(summaries), summaries, strict=True):
        cells = [_cell(summary, column, notes, not one) for column, one in zip(columns, shared, strict=True)]
        table.add_row(name_cell(name, summary), *cells)
    return [table, Text(SAYS_NOTHING, style="yellow")]


def _cell(summary: Summary, column: Column, notes: Notes, with_size: bool) -> "Text":
    metric = schematic_metric(summary, column)
    if metric is not None:
        part = schematic_part(summary, column.mode)
        chance = part.ots_chance if part is not None and column.metric == "agrotools.ots" else None
        below = [size(metric.overall)] if with_size else []
        return value_cell(metric.overall, below=[*below, f"chance {percent(chance.value)}"] if chance else below)
    if column.mode not in summary.modes:
        return notes.dash("not run in this mode")
    part = schematic_part(summary, column.mode)
    if part is None:
        return notes.dash("no schematic drawings in this run")
    if not part.headline:
        return notes.dash("more than 1 % of the records of schematic drawings are invalid (--allow-invalid shows them)")
    return notes.dash(f"no schematic drawing scored here has what {METRICS[column.metric].label} scores")


def _shared_size(column: Column, summaries: Sequence[Summary]) -> str:
    sizes = {size(metric.overall) for summary in summaries if (metric := schematic_metric(summary, column))}
    return f"n {sizes.pop()}" if len(sizes) == 1 else ""
