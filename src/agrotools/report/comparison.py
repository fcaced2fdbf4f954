"""Two runs side by side: first minus second, paired on what both answered."""

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING

from agrotools.report.cells import DASH, adjusted_line, difference_cell, new_table, percent, run_names, size, stacked
from agrotools.report.layout import console_for, line
from agrotools.report.settings import kept_out_line
from agrotools.report.values import harmless
from agrotools.scoring import METRICS, Comparison, Estimate, Metric, Summary
from agrotools.scoring.differences import compared_differences, compared_task_types

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

MOST_PAIRS = 28
"""More pairs of runs than these (eight runs) are details."""


def print_comparison(comparison: Comparison, *, unadjusted: bool = False, file: IO[str] | None = None) -> None:
    """Print :func:`comparison_tables`: in colour on a terminal, as plain text anywhere else."""
    console = console_for(file)
    for part in comparison_tables(comparison, unadjusted=unadjusted):
        console.print(part)


def comparison_tables(comparison: Comparison, *, unadjusted: bool = False) -> Iterator["RenderableType"]:
    """A table per mode: each metric's difference with its interval, its p-value and the smallest one that could be
    shown. ``unadjusted``: mark differences by the p-value of each alone."""
    first, second = (
        harmless(name) or word for name, word in ((comparison.first, "first"), (comparison.second, "second"))
    )
    synthetic = "  *synthetic*: drawn by code, says nothing about real fields" if comparison.synthetic else ""
    yield line(f"{first} minus {second}, percentage points{synthetic}", "bold")
    if not comparison.modes:
        yield line("The two runs have no mode in common.")
        return
    for mode, metrics in comparison.modes.items():
        yield _table(mode, metrics, unadjusted)
        if told := kept_out_line([comparison.n_schematic.get(mode, 0)]):
            yield line(told, "dim")
        if comparison.unpaired.get(mode):
            yield line(f"{comparison.unpaired[mode]} samples are left out: only one run has a valid record.", "dim")
    yield line(
        "\nBeneath each difference its 95 % interval (cluster bootstrap, paired on samples). "
        "detectable: the smallest difference that this many samples would show with 80 % power.",
        "dim",
    )
    if told := adjusted_line(compared_differences(comparison), unadjusted=unadjusted, where="these tables"):
        yield line(told, "dim")


def between_runs_table(
    summaries: Sequence[Summary], *, most: int | None = None, unadjusted: bool = False
) -> list["RenderableType"]:
    """A row for each pair of runs and a column for the headline of each mode: first minus second, paired on samples.

    Nothing where no two runs can be compared; a line instead of the table where there are more than ``most`` pairs.
    """
    found = summaries[0].between_runs
    pairs = list(dict.fromkeys((each.first, each.second) for each in found))
    if not pairs:
        return []
    if most is not None and len(pairs) > most:
        return [line(f"\nDifferences between runs, {len(pairs)} pairs: --details shows them.")]
    table = new_table("Differences between runs: first minus second, paired on the samples of both, points")
    columns = list(dict.fromkeys((each.mode, each.metric) for each in found))
    table.add_column("", overflow="fold", min_width=14)
    for mode, metric in columns:
        table.add_column(stacked([METRICS[metric].label, mode]), justify="right")
    names = [name.rpartition("/")[2] for name in run_names(summaries)]
    for first, second in pairs:
        own = {(each.mode, each.metric): each for each in found if (each.first, each.second) == (first, second)}
        cells = (
            difference_cell(own[key].difference, unadjusted=unadjusted) if key in own else stacked([DASH])
            for key in columns
        )
        table.add_row(stacked([names[first], f"minus {names[second]}"], value_style=""), *cells)
    told = adjusted_line((each.difference for each in found), unadjusted=unadjusted)
    return [table, line(told, "dim")] if told else [table]


def _table(title: str, metrics: Mapping[str, Metric], unadjusted: bool) -> "Table":
    table = new_table(title)
    table.add_column("", min_width=24)
    for heading in ("difference", "n (clusters)", "detectable"):
        table.add_column(heading, justify="right")
    for name, metric in metrics.items():
        info = METRICS[name]
        arrow = " ↓" if info.lower_is_better else ""
        rows = [(f"{info.label}{arrow}", metric.overall)]
        rows += [(f"  {part.replace('_', ' ')}", each) for part, each in compared_task_types(name, metric).items()]
        for label, estimate in rows:
            cell = difference_cell(estimate, lower_is_better=info.lower_is_better, unadjusted=unadjusted)
            table.add_row(label, cell, size(estimate), stacked([_least(estimate)], value_style="dim"))
    return table


def _least(estimate: Estimate) -> str:
    return percent(estimate.detectable) if estimate.detectable is not None else DASH
