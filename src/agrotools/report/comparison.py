"""Tables of differences between runs, of correlations over runs, and of errors by class.

Benchmark plug-ins name the papers that define classes of errors.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from agrotools.core import MODES, Mode
from agrotools.core.base import count_text
from agrotools.plugin import ErrorSource
from agrotools.report.layout import (
    DASH,
    adjusted_line,
    detectable_points,
    difference_cell,
    harmless,
    line,
    new_table,
    percent,
    print_parts,
    run_names,
    size,
    stacked,
)
from agrotools.report.settings import used_plugins
from agrotools.scoring import METRICS, Comparison, Metric, Summary
from agrotools.scoring.correlations import MIN_RUNS
from agrotools.scoring.error_classes import CLASSES
from agrotools.scoring.statistics import MIN_CLUSTERS
from agrotools.scoring.summary import AcrossRuns, ErrorCount, RunCorrelation, compared_differences, compared_task_types

MOST_PAIRS = 28
"""Maximum number of pairs of runs (eight runs) that are shown without details."""


def print_comparison(comparison: Comparison, *, file: IO[str] | None = None) -> None:
    """Print :func:`comparison_tables`: in colour on a terminal, else as plain text."""
    print_parts(comparison_tables(comparison), file)


def comparison_tables(comparison: Comparison) -> Iterator[RenderableType]:
    """Yield a table for each mode with the difference, interval, p-value and detectable difference of each metric."""
    first, second = (
        harmless(name) or word for name, word in ((comparison.first, "first"), (comparison.second, "second"))
    )
    synthetic = "  synthetic: generated images, scores say nothing about real fields" if comparison.synthetic else ""
    yield line(f"{first} minus {second}, percentage points{synthetic}", "bold")
    if not comparison.modes:
        yield line("The two runs have no mode in common.")
        return
    for mode, metrics in comparison.modes.items():
        yield _table(mode, metrics)
        if comparison.unpaired.get(mode):
            n_unpaired = count_text(comparison.unpaired[mode], "sample")
            yield line(f"Only one of the runs has a valid record of {n_unpaired}, not compared here.", "dim")
    yield line(
        "\nBelow each difference its 95 % interval (cluster bootstrap, paired on samples). "
        "detectable: the minimum difference (points) that this pair of runs would show with 80 % power.",
        "dim",
    )
    if remark := adjusted_line(compared_differences(comparison), where="these tables"):
        yield line(remark, "dim")


def between_runs_table(summaries: Sequence[Summary], *, most: int | None = None) -> list[RenderableType]:
    """Return a table of the headline differences of each pair of runs, first minus second, paired on samples.

    The result is empty if no two runs can be compared, and a line of text if there are more than ``most`` pairs.
    """
    pairwise = summaries[0].between_runs
    pairs = list(dict.fromkeys((each.first, each.second) for each in pairwise))
    if not pairs:
        return []
    if most is not None and len(pairs) > most:
        return [line(f"\nDifferences between runs, {len(pairs)} pairs: --details shows them.")]
    columns = list(dict.fromkeys((each.mode, each.metric) for each in pairwise))
    headings = [stacked([METRICS[metric].label, mode]) for mode, metric in columns]
    table = new_table("Differences between runs: first minus second, paired by sample, points", headings)
    names = [name.rpartition("/")[2] for name in run_names(summaries)]
    for first, second in pairs:
        by_column = {
            (each.mode, each.metric): each for each in pairwise if (each.first, each.second) == (first, second)
        }
        cells = (difference_cell(by_column[key].difference) if key in by_column else stacked([DASH]) for key in columns)
        table.add_row(stacked([names[first], f"minus {names[second]}"], value_style=""), *cells)
    remark = adjusted_line(each.difference for each in pairwise)
    return [table, line(remark, "dim")] if remark else [table]


def _table(title: str, metrics: Mapping[str, Metric]) -> Table:
    table = new_table(title, ("difference", "n (clusters)", "detectable"), first=24)
    for name, metric in metrics.items():
        info = METRICS[name]
        arrow = " ↓" if info.lower_is_better else ""
        rows = [(f"{info.label}{arrow}", metric.overall)]
        rows += [(f"  {part.replace('_', ' ')}", each) for part, each in compared_task_types(name, metric).items()]
        for label, estimate in rows:
            cell = difference_cell(estimate, lower_is_better=info.lower_is_better)
            detectable = detectable_points([estimate]) or DASH
            table.add_row(label, cell, size(estimate), stacked([detectable], value_style="dim"))
    return table


_VARIANTS = ("_strict", "_truth")
"""Suffixes of metrics that are variants of others; they are in the data but not in the tables."""


def across_runs_tables(summaries: Sequence[Summary]) -> Iterator[RenderableType]:
    """Yield the tables of :func:`agrotools.scoring.correlations.with_correlations`; none if there are too few runs."""
    seen: list[AcrossRuns] = []
    for summary in summaries:
        across_runs = summary.across_runs
        if across_runs is None or across_runs in seen:
            continue
        seen.append(across_runs)
        plotted = [
            each for each in across_runs.correlations if not each.step.endswith(_VARIANTS) and each.pearson is not None
        ]
        for source in dict.fromkeys(_metric_source(each) for each in plotted):
            yield _correlation_table(across_runs, source, [each for each in plotted if _metric_source(each) == source])
        yield Text("\n".join(_lines(across_runs, any(plotted))), style="dim")


def _metric_source(correlation: RunCorrelation) -> str:
    family = correlation.step.partition(".")[0]
    if family == "agrotools":
        return "agrotools metrics"
    return f"{family}'s metrics, {'corrected' if correlation.step.endswith('_corrected') else 'as published'}"


def _correlation_table(summary: AcrossRuns, source: str, correlations: Sequence[RunCorrelation]) -> Table:
    title = f"Steps with outcomes, {len(summary.runs)} runs on {harmless(summary.benchmark)},\n{source}"
    outcomes = list(dict.fromkeys(each.outcome for each in correlations))
    table = new_table(title, [*map(_label, outcomes)])
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


def _cell(correlation: RunCorrelation | None, summary: AcrossRuns) -> Text:
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
            f"r: Pearson's, rho: Spearman's, over runs, not samples. With {n_runs} runs and unrelated "
            f"metrics, r lies beyond ±{summary.least_r:.3f} in 5 % of cases."
        )
    else:
        yield f"Over the {n_runs} runs on {harmless(summary.benchmark)} no step metric and outcome both vary."
    if any_shown and n_runs < MIN_CLUSTERS:
        yield f"No interval is given with fewer than {MIN_CLUSTERS} runs (correlations need at least {MIN_RUNS} runs)."
    for reason, models in summary.left_out.items():
        yield f"Left out ({reason}): {', '.join(map(harmless, models))}."


# --- errors by class -------------------------------------------------------------------------------------------------


class ErrorColumn(NamedTuple):
    """Mode of a run, with the index of the run and the errors by class."""

    run: int
    name: str
    mode: Mode
    errors: dict[str, ErrorCount]
    sources: tuple[ErrorSource, ...]
    """Papers of the benchmark that define error classes."""


def error_columns(summaries: Sequence[Summary]) -> list[ErrorColumn]:
    """Return the modes of the runs in which errors were counted."""
    return [
        ErrorColumn(at, name, mode, {row.error: row for row in part.errors}, sources)
        for at, (name, summary) in enumerate(zip(run_names(summaries), summaries, strict=True))
        for sources in [tuple(each for plugin in used_plugins([summary]) for each in plugin.error_sources)]
        for mode, part in summary.modes.items()
        if part.errors and part.invalid.n < part.n_records
    ]


def classes_looked_for(columns: Sequence[ErrorColumn]) -> list[str]:
    """Return the classes that could be determined in any of the columns, in the order of the taxonomy."""
    return [
        error
        for error in CLASSES
        if any(error in column.errors and column.errors[error].count is not None for column in columns)
    ]


def error_parts(columns: Sequence[ErrorColumn], *, side_by_side: int) -> list[tuple[Mode | None, list[ErrorColumn]]]:
    """Return the columns of each table.

    These are the modes of a single run (with mode None), or for each mode up to ``side_by_side`` runs."""
    if len({column.run for column in columns}) < 2:
        return [(None, [*columns])] if columns else []
    parts: list[tuple[Mode | None, list[ErrorColumn]]] = []
    for mode in MODES:
        mode_columns = [column for column in columns if column.mode == mode]
        for start in range(0, len(mode_columns), side_by_side):
            parts.append((mode, mode_columns[start : start + side_by_side]))
    return parts


def error_tables(summaries: Sequence[Summary], *, side_by_side: int) -> list[RenderableType]:
    """Return tables of at most ``side_by_side`` runs, and a legend; empty if no record is valid."""
    columns = error_columns(summaries)
    if not columns:
        return []
    tables: list[RenderableType] = []
    for mode, part_columns in error_parts(columns, side_by_side=side_by_side):
        headings = [column.name.rpartition("/")[2] if mode else column.mode for column in part_columns]
        title = f"Errors by class{f', {mode}' if mode else ''}"
        table = new_table(title, headings, first=22, overflow="fold")
        for error in classes_looked_for(part_columns):
            heading = stacked([error_label(error, part_columns)], value_style="")
            table.add_row(heading, *(_error_cell(column.errors.get(error)) for column in part_columns))
        tables.append(table)
    return [*tables, Text("\n".join(error_legend(columns)), style="dim")]


def error_label(error: str, columns: Sequence[ErrorColumn]) -> str:
    """Return the heading of a class with the units that are counted in the columns."""
    rows = [column.errors[error] for column in columns if error in column.errors]
    units = dict.fromkeys(f"{row.unit}s" for row in rows if row.count is not None)
    return f"{error.replace('_', ' ')} ({', '.join(units)})"


def _error_cell(row: ErrorCount | None) -> Text:
    if row is None or row.count is None:
        return stacked([DASH], value_style="dim")
    return stacked([str(row.count), percent(row.share or 0)], value_style="bold" if row.count else "dim")


def error_legend(columns: Sequence[ErrorColumn]) -> list[str]:
    """Return the meanings of the classes with their names in the papers, then :func:`notes_of`."""
    classes = classes_looked_for(columns)
    lines = [
        f"{error.replace('_', ' ')}: {CLASSES[error].meaning}. {paper_names(error, columns)}".strip()
        for error in classes
    ]
    return [*lines, *notes_of(columns)]


def notes_of(columns: Sequence[ErrorColumn]) -> list[str]:
    """Return notes to the table: its units, the places of the classes in papers, and the runs in the papers' terms."""
    classes = classes_looked_for(columns)
    lines = ["Number of errors, and below it their % of the steps or samples that were checked for the class."]
    paper_places = dict.fromkeys(
        source[:3] for error in classes for source in _sources(columns) if error in source.words
    )
    places: dict[str, list[str]] = {}
    for name, arxiv, place in paper_places:
        places.setdefault(f"{name} (arXiv {arxiv})", []).append(place)
    if places:
        lines.append("; ".join(f"{paper}: {', '.join(paper_classes)}" for paper, paper_classes in places.items()) + ".")
    skipped = sorted({row.not_looked_for for column in columns for row in column.errors.values() if row.not_looked_for})
    if skipped:
        lines.append(f"{DASH}: the class cannot be determined there: {'; '.join(skipped)}.")
    return [*lines, *paper_lines(columns)]


def _sources(columns: Sequence[ErrorColumn]) -> list[ErrorSource]:
    sources: list[ErrorSource] = []
    for column in columns:
        sources += [source for source in column.sources if source not in sources]
    return sources


def paper_names(error: str, columns: Sequence[ErrorColumn]) -> str:
    """Return the name of the class in each paper, ``PAPER: words; PAPER: words``; empty without papers."""
    sources = _sources(columns)
    names = "; ".join(f"{each.name}: {each.words[error]}" for each in sources if error in each.words)
    return names or ("agrotools only" if sources else "")


def paper_lines(columns: Sequence[ErrorColumn]) -> Iterator[str]:
    """Yield the errors of each column as shares of all errors, in the terms of papers whose classes are all known."""
    several = len({column.run for column in columns}) > 1
    for table in _sources(columns):
        for column in (each for each in columns if table in each.sources):
            counts = _paper_counts(table, column)
            total = sum(counts.values())
            if total:
                of_run = f"{column.name}, {column.mode}" if several else column.mode
                shares = "; ".join(f"{words} {percent(count / total)} %" for words, count in counts.items())
                yield f"As in {table.name}'s {table.place}, of {total} errors ({of_run}): {shares}."


def _paper_counts(table: ErrorSource, column: ErrorColumn) -> dict[str, int]:
    """Return the number of errors by the paper's terms; empty if one of its classes could not be determined."""
    counts: dict[str, int] = {}
    for words, classes in table.shares.items():
        class_counts = [column.errors[error].count if error in column.errors else None for error in classes]
        known = [count for count in class_counts if count is not None]
        if len(known) < len(class_counts):
            return {}
        counts[words] = sum(known)
    return counts
