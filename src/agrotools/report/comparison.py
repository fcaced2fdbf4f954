"""Tables of differences between runs, of correlations over runs, and of errors by class.

Benchmark plug-ins name the papers that define classes of errors.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from agrotools.core import MODES, Mode
from agrotools.core.base import count_text
from agrotools.plugin import ErrorSource
from agrotools.report.explain import lost_reason
from agrotools.report.layout import (
    DASH,
    SYNTHETIC_NOTE,
    Notes,
    adjusted_line,
    detectable_points,
    difference_cell,
    harmless,
    line,
    new_table,
    p_text,
    percent,
    points,
    run_names,
    shortened,
    size,
    stacked,
)
from agrotools.report.settings import used_plugins
from agrotools.runner.records import RecordIndex, record_index
from agrotools.scoring import METRICS, Comparison, Estimate, Summary, score_record
from agrotools.scoring.attribution import part_meaning
from agrotools.scoring.correlations import MIN_RUNS
from agrotools.scoring.error_classes import CLASSES
from agrotools.scoring.metrics import FAS, is_invalid
from agrotools.scoring.statistics import MIN_CLUSTERS
from agrotools.scoring.summary import (
    AcrossRuns,
    ErrorCount,
    Flip,
    Flips,
    RunCorrelation,
    compared_task_types,
    other_differences,
)

MOST_PAIRS = 28
"""Maximum number of pairs of runs (eight runs) that are shown without details."""


def comparison_tables(comparison: Comparison, *, flips: int = 0) -> Iterator[RenderableType]:
    """Yield for each mode the headline difference, a table of its parts, and tables of at most ``flips`` samples each
    that the first run scores higher and lower."""
    first, second = (harmless(name) or word for name, word in ((comparison.first, "A"), (comparison.second, "B")))
    yield line(f"{first} minus {second}, percentage points", "bold")
    marks = [comparison.benchmark, *(["quick part"] if comparison.quick else [])]
    marks += [SYNTHETIC_NOTE] if comparison.synthetic else []
    marks += [f"{harmless(name)} is privileged" for name in comparison.privileged]
    if any(marks):
        yield line(", ".join(filter(None, marks)), "dim")
    if not comparison.modes:
        yield line("The two runs have no mode in common.")
        return
    for mode, metrics in comparison.modes.items():
        yield from _headline_lines(comparison, mode)
        if metrics:
            yield _part_table(comparison, mode)
        changed = comparison.flips.get(mode, Flips(metric=""))
        for title, listed in (("Up", changed.up), ("Down", changed.down)):
            if listed and flips:
                more = "" if len(listed) <= flips else f"{flips} of {len(listed)} samples, --flips shows more"
                yield _flip_table(f"{title}, {mode}: {more or count_text(len(listed), 'sample')}", listed[:flips])
    yield Text("\n" + "\n".join(_legend(comparison)), style="dim")


def headline_text(difference: Estimate, *, lower_is_better: bool = False) -> str:
    """Return what a headline difference shows: ``better``, ``worse``, or ``no difference shown``."""
    if difference.p_adjusted is None:
        return f"fewer than {MIN_CLUSTERS} clusters, not tested"
    if not difference.differs():
        return "no difference shown"
    return "better" if (difference.value > 0) != lower_is_better else "worse"


def _headline_lines(comparison: Comparison, mode: str) -> Iterator[RenderableType]:
    name = comparison.headline.get(mode)
    if name is None:
        yield line(f"\n{mode}: no headline metric in common", "bold")
        return
    info, estimate, means = METRICS[name], comparison.modes[mode][name].overall, comparison.means[mode]
    verdict = headline_text(estimate, lower_is_better=info.lower_is_better)
    if not comparison.paired and estimate.differs():
        verdict = f"{'higher' if estimate.value > 0 else 'lower'} on the samples of the first run"
    interval = f" ({points(estimate.interval.lower)} to {points(estimate.interval.upper)})" if estimate.interval else ""
    p = f", adjusted p {p_text(estimate.p_adjusted)}" if estimate.p_adjusted is not None else ""
    difference = f"{percent(means[0])} minus {percent(means[1])} = {points(estimate.value)}{interval}{p}"
    yield line(f"\n{mode}, {info.label}: {difference}: {verdict}", "bold")
    flips = comparison.flips.get(mode)
    noun = "step" if mode == "step-by-step" else "sample"
    facts = [f"{count_text(estimate.n, noun)} in {count_text(estimate.n_clusters, 'cluster')}"]
    if detectable := detectable_points([estimate]):
        facts.append(f"detectable difference {detectable} points")
    if flips is not None:
        facts.append(f"{len(flips.up)} up, {len(flips.down)} down, {flips.n_equal} equal")
    yield line("; ".join(facts))
    for run in comparison.unread.get(mode, ()):
        text = f"most replies of {harmless(run)} could not be read: its score says nothing about answers, and false"
        yield line(f"{text} confidence and false refusal are not compared", "yellow")
    for run, reason in comparison.withheld.get(mode, {}).items():
        text = f"the score of {harmless(run)} is withheld, because {reason}:"
        yield line(f"{text} the difference is of the valid records, with or without a form", "yellow")
    if name == FAS and (left_out := comparison.no_open_text.get(mode)):
        n, *other = dict.fromkeys(left_out)
        runs = f"{n} samples of the first, {other[0]} of the second run" if other else count_text(n, "sample")
        yield line(f"without open text ({runs})", "yellow" if other else "")
    runs = "a valid record only in the first run", "a valid record only in the second run"
    models = (f"a score only of {harmless(name)}" for name in (comparison.first, comparison.second))
    for n, only in zip(comparison.unpaired.get(mode, ()), models if mode == "table" else runs, strict=False):
        if n:
            yield line(f"not compared: {count_text(n, 'sample')} with {only}", "yellow")


def difference_rows(comparison: Comparison, mode: str) -> Iterator[tuple[str, str, Estimate]]:
    """Yield kind (``metric``, ``task`` or ``cause``), name and difference of every row that a comparison shows."""
    metrics, headline = comparison.modes[mode], comparison.headline.get(mode, "")
    for name in sorted(metrics, key=lambda each: each != headline):
        arrow = " ↓" if METRICS[name].lower_is_better else ""
        yield "metric", f"{METRICS[name].label}{arrow}", metrics[name].overall
        for part, estimate in compared_task_types(name, metrics[name]).items():
            yield "task", part.replace("_", " "), estimate
        if name == headline:
            yield from (("cause", cause, each) for cause, each in comparison.by_cause.get(mode, {}).items())


def _part_table(comparison: Comparison, mode: str) -> Table:
    table = new_table(mode, ("difference", "95 % interval", "p", "n (clusters)", "detectable"), first=24)
    for kind, name, each in difference_rows(comparison, mode):
        interval = f"{points(each.interval.lower)} to {points(each.interval.upper)}" if each.interval else DASH
        value = Text(f"{points(each.value)}{'*' if each.differs() else ' '}", style="bold" if each.differs() else "")
        p = p_text(each.p_adjusted) if each.p_adjusted is not None else DASH
        label = name if kind == "metric" else f"  {kind} {name}"
        table.add_row(label, value, interval, p, size(each), detectable_points([each]) or DASH)
    return table


def _flip_table(title: str, flips: Sequence[Flip]) -> Table:
    table = new_table(title, ("first", "second"), first=18)
    table.add_column("lost by")
    table.add_column("why", overflow="fold")
    for flip in flips:
        scores = (percent(flip.first), percent(flip.second))
        table.add_row(harmless(flip.sample), *scores, flip.cause or DASH, line(shortened(flip.reason, 110)))
    return table


def _legend(comparison: Comparison) -> Iterator[str]:
    shown = {name: METRICS[name].label for each in comparison.modes.values() for name in each}
    yield Notes().legend(shown)
    paired = "Paired by sample" if comparison.paired else "Different samples, not paired: published and new scenes"
    yield f"{paired}; 95 % intervals by cluster. detectable: the smallest difference found with 80 % power."
    n_others = sum(each.p is not None for each in other_differences(comparison))
    yield (
        f"p: adjusted by Holm's method, headlines of all pairs together, and all other rows together ({n_others}). "
        "*: below 0.05. Intervals are not adjusted."
    )
    causes = dict.fromkeys(cause for each in comparison.by_cause.values() for cause in each)
    if causes:
        yield "cause: if positive, the first run loses fewer points to this cause. The causes add up to the difference."
        yield "Points of a sample go to the first part that went wrong, or are split if both runs are attributed."
        yield "; ".join(f"{cause}: {part_meaning(cause)}" for cause in causes) + "."


def with_reasons(comparison: Comparison, runs: tuple[Path, Path], most: int) -> Comparison:
    """Return the comparison with a reason for the lower score of the first ``most`` samples that went up and down.

    Raises:
        RunStoreError: the records of a run cannot be read.
    """
    indices = [record_index(run) for run in runs]
    flips: dict[str, Flips] = {}
    for mode, each in comparison.flips.items():
        up, down = (
            tuple(
                flip.model_copy(update={"reason": _reason(index, mode, each.metric, flip)}) if at < most else flip
                for at, flip in enumerate(listed)
            )
            for listed, index in ((each.up, indices[1]), (each.down, indices[0]))
        )
        flips[mode] = each.model_copy(update={"up": up, "down": down})
    return comparison.model_copy(update={"flips": flips})


def _reason(index: RecordIndex, mode: str, metric: str, flip: Flip) -> str:
    """Return the reason for the score of the epoch with the lowest one."""
    records = [each for each in index.of_sample(flip.sample) if each.mode == mode and not is_invalid(each)]
    scored = [(record, score_record(record)) for record in records]
    worst = min(scored, key=lambda each: sum(row.value for row in each[1] if row.metric == metric), default=None)
    return lost_reason(*worst, flip.cause) if worst else ""


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
    family = correlation.step.rpartition(".")[0]
    if not family:
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
        for sources in [tuple(each for plugin in used_plugins([summary]) for each in plugin.paper.error_sources)]
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
    """Return notes to the table: its units, and the places of the classes in papers."""
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
    tables = [part for _, part in error_parts(columns, side_by_side=len(columns))]
    shown = [(error, each) for part in tables for error in classes_looked_for(part) for each in part]
    rows = [each.errors[error] for error, each in shown if error in each.errors]
    if skipped := sorted({row.not_looked_for for row in rows if row.not_looked_for}):
        lines.append(f"{DASH}: the class cannot be determined there: {'; '.join(skipped)}.")
    return lines


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
