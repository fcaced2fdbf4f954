"""Two runs side by side: first minus second, paired on what both answered."""

from collections.abc import Iterator, Mapping
from typing import IO, TYPE_CHECKING

from agrotools.report.cells import difference_cell, new_table, percent, size, stacked
from agrotools.report.layout import console_for, line
from agrotools.report.schematic import NO_HEADLINE, SAYS_NOTHING, kept_out_line
from agrotools.report.values import harmless
from agrotools.scoring import METRICS, Comparison, Estimate, Metric

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

PARTS_OF = ("agrotools.fas", "agrotools.arg_acc")
"""Metrics whose differences are also shown by task type."""


def print_comparison(comparison: Comparison, *, file: IO[str] | None = None) -> None:
    """Print :func:`comparison_tables`: in colour on a terminal, as plain text anywhere else."""
    console = console_for(file)
    for part in comparison_tables(comparison):
        console.print(part)


def comparison_tables(comparison: Comparison) -> Iterator["RenderableType"]:
    """A table per mode: each metric's difference with its interval and the smallest one that could be shown."""
    first, second = (
        harmless(name) or word for name, word in ((comparison.first, "first"), (comparison.second, "second"))
    )
    synthetic = "  *synthetic*: drawn by code, says nothing about real fields" if comparison.synthetic else ""
    yield line(f"{first} minus {second}, percentage points{synthetic}", "bold")
    if not comparison.modes:
        yield line("The two runs have no mode in common.")
        return
    for mode, metrics in comparison.modes.items():
        yield from _headline(mode, metrics, comparison.n_schematic.get(mode, 0))
        if comparison.unpaired.get(mode):
            yield line(f"{comparison.unpaired[mode]} samples are left out: only one run has a valid record.", "dim")
    for mode, metrics in comparison.schematic.items():
        yield _table(f"{mode}, schematic drawings, n {comparison.n_schematic[mode]}, in no headline", metrics)
    if comparison.schematic:
        yield line(SAYS_NOTHING, "yellow")
    yield line(
        "\nBeneath each difference its 95 % interval (cluster bootstrap, paired on samples). "
        "detectable: the smallest difference that this many samples would show with 80 % power.",
        "dim",
    )


def _headline(mode: str, metrics: Mapping[str, Metric], n_schematic: int) -> Iterator["RenderableType"]:
    if n_schematic and not metrics:
        yield line(f"\n{mode}: {NO_HEADLINE}")
        return
    yield _table(mode, metrics)
    if n_schematic:
        yield line(kept_out_line([n_schematic]), "dim")


def _table(title: str, metrics: Mapping[str, Metric]) -> "Table":
    table = new_table(title)
    table.add_column("", min_width=24)
    for heading in ("difference", "n (clusters)", "detectable"):
        table.add_column(heading, justify="right")
    for name, metric in metrics.items():
        info = METRICS[name]
        arrow = " ↓" if info.lower_is_better else ""
        _add_row(table, f"{info.label}{arrow}", metric.overall, flipped=info.lower_is_better)
        if name in PARTS_OF and len(metric.by_task_type) > 1:
            for task_type, part in metric.by_task_type.items():
                _add_row(table, f"  {task_type.replace('_', ' ')}", part, flipped=info.lower_is_better)
    return table


def _add_row(table: "Table", label: str, estimate: Estimate, *, flipped: bool) -> None:
    least = percent(estimate.detectable) if estimate.detectable is not None else "—"
    table.add_row(
        label, difference_cell(estimate, lower_is_better=flipped), size(estimate), stacked([least], value_style="dim")
    )
