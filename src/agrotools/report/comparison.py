"""Comparisons of runs: two side by side, all pairs, and correlations of step metrics with outcomes over runs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING

from agrotools.report.layout import (
    DASH,
    adjusted_line,
    console_for,
    difference_cell,
    harmless,
    line,
    new_table,
    percent,
    run_names,
    size,
    stacked,
)
from agrotools.scoring import METRICS, Comparison, Estimate, Metric, Summary
from agrotools.scoring.correlations import MIN_RUNS
from agrotools.scoring.statistics import MIN_CLUSTERS
from agrotools.scoring.summary import AcrossRuns, RunCorrelation, compared_differences, compared_task_types

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

MOST_PAIRS = 28
"""More pairs of runs than these (eight runs) are details."""


def print_comparison(comparison: Comparison, file: IO[str] | None = None) -> None:
    """Print :func:`comparison_tables`: in colour on a terminal, as plain text anywhere else."""
    console = console_for(file)
    for part in comparison_tables(comparison):
        console.print(part)


def comparison_tables(comparison: Comparison) -> Iterator["RenderableType"]:
    """A table per mode: each metric's difference with its interval, its p-value and the smallest one that could be
    shown."""
    first, second = (
        harmless(name) or word for name, word in ((comparison.first, "first"), (comparison.second, "second"))
    )
    synthetic = "  *synthetic*: generated images: scores say nothing about real fields" if comparison.synthetic else ""
    yield line(f"{first} minus {second}, percentage points{synthetic}", "bold")
    if not comparison.modes:
        yield line("The two runs have no mode in common.")
        return
    for mode, metrics in comparison.modes.items():
        yield _table(mode, metrics)
        if comparison.unpaired.get(mode):
            yield line(
                f"{comparison.unpaired[mode]} samples are excluded: only one of the runs has a valid record.", "dim"
            )
    yield line(
        "\nBelow each difference its 95 % interval (cluster bootstrap, paired on samples). "
        "detectable: the minimum difference that this many samples would show with 80 % power.",
        "dim",
    )
    if remark := adjusted_line(compared_differences(comparison), where="these tables"):
        yield line(remark, "dim")


def between_runs_table(summaries: Sequence[Summary], *, most: int | None = None) -> list["RenderableType"]:
    """A row for each pair of runs and a column for the headline of each mode: first minus second, paired on samples.

    Nothing where no two runs can be compared; a line instead of the table where there are more than ``most`` pairs.
    """
    pairwise = summaries[0].between_runs
    pairs = list(dict.fromkeys((each.first, each.second) for each in pairwise))
    if not pairs:
        return []
    if most is not None and len(pairs) > most:
        return [line(f"\nDifferences between runs, {len(pairs)} pairs: --details shows them.")]
    table = new_table("Differences between runs: first minus second, paired by sample, points")
    columns = list(dict.fromkeys((each.mode, each.metric) for each in pairwise))
    table.add_column("", overflow="fold", min_width=14)
    for mode, metric in columns:
        table.add_column(stacked([METRICS[metric].label, mode]), justify="right")
    names = [name.rpartition("/")[2] for name in run_names(summaries)]
    for first, second in pairs:
        by_column = {
            (each.mode, each.metric): each for each in pairwise if (each.first, each.second) == (first, second)
        }
        cells = (difference_cell(by_column[key].difference) if key in by_column else stacked([DASH]) for key in columns)
        table.add_row(stacked([names[first], f"minus {names[second]}"], value_style=""), *cells)
    remark = adjusted_line(each.difference for each in pairwise)
    return [table, line(remark, "dim")] if remark else [table]


def _table(title: str, metrics: Mapping[str, Metric]) -> "Table":
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
            cell = difference_cell(estimate, lower_is_better=info.lower_is_better)
            table.add_row(label, cell, size(estimate), stacked([_least(estimate)], value_style="dim"))
    return table


def _least(estimate: Estimate) -> str:
    return percent(estimate.detectable) if estimate.detectable is not None else DASH


_VARIANTS = ("_strict", "_truth")
"""Metrics that stand beside another; they are in the data and not in the tables."""


def across_runs_tables(summaries: Sequence[Summary]) -> Iterator["RenderableType"]:
    """Tables of :func:`agrotools.scoring.correlations.with_correlations`; none with too few runs."""
    from rich.text import Text

    seen: list[AcrossRuns] = []
    for summary in summaries:
        across_runs = summary.across_runs
        if across_runs is None or across_runs in seen:
            continue
        seen.append(across_runs)
        plotted = [
            each for each in across_runs.correlations if not each.step.endswith(_VARIANTS) and each.pearson is not None
        ]
        for whose in dict.fromkeys(_whose(each) for each in plotted):
            yield _correlation_table(across_runs, whose, [each for each in plotted if _whose(each) == whose])
        yield Text("\n".join(_lines(across_runs, any(plotted))), style="dim")


def _whose(correlation: RunCorrelation) -> str:
    family = correlation.step.partition(".")[0]
    if family == "agrotools":
        return "our metrics"
    return f"{family}'s metrics, {'corrected' if correlation.step.endswith('_corrected') else 'as published'}"


def _correlation_table(summary: AcrossRuns, whose: str, correlations: Sequence[RunCorrelation]) -> "Table":
    table = new_table(f"Steps with outcomes, {len(summary.runs)} runs on {harmless(summary.benchmark)},\n{whose}")
    table.add_column("", overflow="fold", min_width=14)
    outcomes = list(dict.fromkeys(each.outcome for each in correlations))
    for outcome in outcomes:
        table.add_column(_label(outcome), justify="right")
    for step in dict.fromkeys(each.step for each in correlations):
        by_outcome = {each.outcome: each for each in correlations if each.step == step}
        table.add_row(
            stacked([_label(step)], value_style=""), *(_cell(by_outcome.get(outcome), summary) for outcome in outcomes)
        )
    return table


def _label(metric: str) -> str:
    if metric in METRICS:
        return METRICS[metric].label
    special = {"ans_i": "Ans_I", "ans_acc_imggen": "AnsAcc w/ ImgGen"}
    words = {
        "inst": "Inst",
        "tool": "Tool",
        "arg": "Arg",
        "summ": "Summ",
        "ans": "Ans",
        "acc": "Acc",
        "objective": " objective",
    }
    name = metric.partition(".")[2].removesuffix("_corrected")
    return special.get(name, "".join(words.get(part, part) for part in name.split("_")))


def _cell(correlation: RunCorrelation | None, summary: AcrossRuns) -> "Text":
    if correlation is None or correlation.pearson is None:
        return stacked([DASH], value_style="dim")
    lines = [f"r {correlation.pearson:+.2f}"]
    if correlation.interval is not None:
        lines.append(f"{correlation.interval.lower:+.2f} to {correlation.interval.upper:+.2f}")
    if correlation.spearman is not None:
        lines.append(f"rho {correlation.spearman:+.2f}")
    if correlation.n != len(summary.runs):
        lines.append(f"{correlation.n} runs")
    return stacked(lines)


def _lines(summary: AcrossRuns, any_shown: bool) -> Iterator[str]:
    n_runs = len(summary.runs)
    if any_shown:
        yield (
            f"r: Pearson's, rho: Spearman's, over runs, not samples. With {n_runs} runs in which the two have "
            f"nothing to do with each other, r lies beyond ±{summary.least_r:.3f} once in twenty times."
        )
    else:
        yield f"Over the {n_runs} runs on {harmless(summary.benchmark)} no step metric and outcome both vary."
    if any_shown and n_runs < MIN_CLUSTERS:
        yield f"No interval is given with fewer than {MIN_CLUSTERS} runs ({MIN_RUNS} are the least to be shown at all)."
    for reason, models in summary.left_out.items():
        yield f"Left out ({reason}): {', '.join(map(harmless, models))}."
