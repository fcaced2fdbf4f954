"""Tables of differences between runs, and of errors by class.

Benchmark plug-ins name the papers that define classes of errors.
"""

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from agrotools.core import MODES, Mode
from agrotools.core.texts import count_text
from agrotools.formats.manifest import task_types_text
from agrotools.report.explain import lost_reason
from agrotools.report.layout import (
    DASH,
    DRAWN_NOTE,
    FEW,
    PLAIN_WIDTH,
    Notes,
    Paragraph,
    Part,
    ReportTable,
    TableCell,
    TableColumn,
    adjusted_lines,
    detectable_points,
    difference_cell,
    interval_text,
    measure_text,
    new_table,
    p_text,
    percent,
    points,
    short_names,
    shortened,
    size,
    value_cell,
)
from agrotools.report.settings import used_plugins
from agrotools.report.verdicts import missing_text, shows_better, units_text, verdict_text
from agrotools.runner.records import RecordIndex, record_index
from agrotools.runner.rescore import Rescored
from agrotools.scoring.aggregate import RunAggregator, score_record
from agrotools.scoring.attribution import cause_of, part_label, part_meaning
from agrotools.scoring.comparisons import differences_between
from agrotools.scoring.contracts import ErrorSource
from agrotools.scoring.error_classes import CLASSES
from agrotools.scoring.metrics import FAS, METRICS, is_invalid
from agrotools.scoring.statistics import Estimate
from agrotools.scoring.summary import (
    MAX_UNREAD_SHARE,
    TABLE_MODE,
    ErrorCount,
    Flip,
    Flips,
    RunComparison,
    RunDifference,
    Summary,
    compared_task_types,
    orientation_text,
    other_differences,
)

MOST_PAIRS = 28
"""Maximum number of pairs of runs (eight runs) that are shown without details."""
SCREEN_LINES = 24
"""Most lines of the comparison of two runs without details."""
_MOST_CAUSES = 4
"""Most causes that are shown without details, and fewest tasks, however little room is left."""
_TABLE_LINES = 5
"""Lines of the screen that are kept for what is neither a verdict, nor a row, nor a sample."""


def comparison_tables(
    comparison: RunComparison, *, flips: int = 0, details: bool = False
) -> Iterator[Part]:
    """Yield the verdict of each mode, end-to-end first, and of that mode the largest differences by task and cause, and
    at most ``flips`` samples that the second run scores higher and lower: one screen for two runs.

    ``details``: yield every row with p-value and detectable difference, and the meaning of each word."""
    modes = sorted(comparison.modes, key=lambda mode: mode != "end-to-end")
    above = _verdicts(comparison, modes, details=details)
    yield from above
    n_lines = sum(_n_lines(part.text) for part in above)
    for mode in modes if details else modes[:1]:
        changed, listed = _changed_samples(comparison, mode, flips)
        most = None if details else SCREEN_LINES - n_lines - len(listed) - _TABLE_LINES
        if rows := _shown_rows(comparison, mode, most):
            yield _rows_table(comparison, mode, rows, details=details)
        if listed:
            title = ""
            if details:
                title = f"{mode}: {len(listed)} of {count_text(changed, 'sample')} with different scores"
            yield _flip_table(title, listed, details)
    if details:
        yield Paragraph("\n" + "\n".join(_legend(comparison)))
    elif modes:
        has_flips = any(comparison.flips.get(mode) for mode in modes)
        more = " More samples: --flips N." if has_flips else ""
        yield Paragraph(f"All rows and definitions: --details.{more}")


def _verdicts(comparison: RunComparison, modes: Sequence[str], *, details: bool) -> list[Paragraph]:
    """Return the verdict of each mode, with its facts for the first one, what the signs mean, and marks."""
    if not modes:
        return [Paragraph("The two runs have no mode in common.", "")]
    lines: list[Paragraph] = []
    for mode in modes:
        lines += _verdict_lines(comparison, mode, details or mode == modes[0])
    tested = [mode for mode in modes if mode in comparison.headline]
    # A verdict counts from the worse run to the better one, whichever is the second.
    names_better = any(_headline_shows_better(comparison, mode) for mode in tested)
    orientation = orientation_text(comparison.first, comparison.second, but_verdict=names_better)
    lines.append(Paragraph(orientation, ""))
    if marks := _marks(comparison):
        lines.append(Paragraph(", ".join(marks)))
    return lines


def _marks(comparison: RunComparison) -> list[str]:
    """Return the benchmark, and what both runs or one of them must not be mistaken for."""
    marks = [comparison.benchmark] if comparison.benchmark else []
    if comparison.quick:
        marks.append("quick part")
    if comparison.task_types:
        marks.append(f"only {task_types_text(comparison.task_types)}")
    if comparison.synthetic:
        marks.append(DRAWN_NOTE)
    if comparison.privileged:
        are = "is" if len(comparison.privileged) == 1 else "are"
        marks.append(f"{' and '.join(comparison.privileged)} {are} privileged")
    return marks


def _n_lines(text: str) -> int:
    """Return how many lines a text takes on plain paper, where long lines are wrapped."""
    return sum(math.ceil(len(line) / PLAIN_WIDTH) for line in text.split("\n"))


def _changed_samples(comparison: RunComparison, mode: str, most: int) -> tuple[int, list[Flip]]:
    """Return the number of samples with different scores, and at most ``most`` that went up and down each."""
    flips = comparison.flips.get(mode)
    if flips is None:
        return 0, []
    return len(flips.up) + len(flips.down), [*flips.up[:most], *flips.down[:most]]


def comparison_data(comparison: RunComparison) -> dict[str, Any]:
    """Return a comparison as JSON data, with what the signs mean and the verdict of each mode in words."""
    verdicts = {mode: headline_verdict(comparison, mode) for mode in comparison.headline}
    words = {"orientation": comparison.orientation, "verdicts": verdicts}
    return words | comparison.model_dump(mode="json")


def headline_verdict(comparison: RunComparison, mode: str) -> str:
    """Return what the headline difference of a mode shows."""
    return verdict_text(
        comparison.modes[mode][comparison.headline[mode]].overall,
        (comparison.first, comparison.second),
        paired=comparison.paired,
        same=comparison.same_records,
        missing=comparison.missing.get(mode),
    )


def _headline_shows_better(comparison: RunComparison, mode: str) -> bool:
    """Return True if the verdict of a mode names the better run."""
    return shows_better(
        comparison.modes[mode][comparison.headline[mode]].overall,
        paired=comparison.paired,
        same=comparison.same_records,
        missing=comparison.missing.get(mode),
    )


class ModelVerdict(NamedTuple):
    """What the difference of the two best models of an evaluation shows, as ``compare`` would say it.

    ``first``, ``second``: numbers of their runs; ``n_models``: number of models that were evaluated;
    ``is_shown``: True if one is better, and the text begins with its name.
    """

    first: int
    second: int
    n_models: int
    is_shown: bool
    text: str


def model_verdict(
    scored: Sequence[Rescored], names: Sequence[str], mode: Mode, metric: str
) -> ModelVerdict | None:
    """Return the verdict on the two models with the highest scores; None with fewer than two that can be compared.

    Baselines are yardsticks, so that they are never one of the two. All pairs of models are adjusted together, as if
    ``compare`` were given these runs.
    """
    scores: dict[int, float] = {}
    for at, each in enumerate(scored):
        part = each.summary.modes.get(mode)
        is_model = not each.summary.model.startswith("baseline:")
        if is_model and each.tally and part and part.headline and metric in part.metrics:
            scores[at] = part.metrics[metric].overall.value
    if len(scores) < 2:
        return None

    # Quick parts are compared, too: the interval says how little they show.
    summaries = [each.summary.model_copy(update={"quick": False}) for each in scored]
    tallies = [each.tally or RunAggregator() for each in scored]
    differences = differences_between(summaries, tallies, [*combinations(scores, 2)])
    best = sorted(sorted(scores, key=lambda at: -scores[at])[:2])
    for each in differences:
        if [each.first, each.second] == best and (each.mode, each.metric) == (mode, metric):
            first, second = best
            pair = (names[first], names[second])
            text = verdict_text(each.difference, pair, missing=each.missing)
            return ModelVerdict(first, second, len(scores), each.differs(), text)
    return None


def more_samples(difference: Estimate) -> int | None:
    """Return about how many more samples would show a difference of this size (80 % power), to two digits.

    In the mode step-by-step these are steps. None if the difference is shown, or is too small for 100,000 samples.
    """
    if difference.growth is None or difference.differs():
        return None
    more = difference.n * (difference.growth - 1)
    return int(float(f"{more:.1e}")) if 1 <= more < 100_000 else None


def _verdict_lines(comparison: RunComparison, mode: str, with_facts: bool) -> Iterator[Paragraph]:
    """Yield the verdict of a mode; ``with_facts``: also what it rests on, and what it does not hold for."""
    metric = comparison.headline.get(mode)
    if metric is None:
        yield Paragraph(f"{mode}: no headline metric in common", "bold")
        return
    verdict = headline_verdict(comparison, mode)
    yield Paragraph(f"{verdict}, {measure_text(mode, metric)}", "bold")
    if with_facts:
        yield Paragraph("; ".join(_headline_facts(comparison, mode, metric)), "")
        for warning in _headline_warnings(comparison, mode, metric):
            yield Paragraph(warning, "yellow")


def _headline_facts(comparison: RunComparison, mode: str, metric: str) -> Iterator[str]:
    """Yield means, sizes, p-value and detectable difference of a headline."""
    estimate = comparison.modes[mode][metric].overall
    first, second = comparison.means[mode]
    yield f"{comparison.first} {percent(first)}, {comparison.second} {percent(second)}"
    yield f"{units_text(estimate.n, mode)} in {count_text(estimate.n_clusters, 'cluster')}"
    if flips := comparison.flips.get(mode):
        yield (
            f"{comparison.second} is higher in {len(flips.up)}, lower in {len(flips.down)}, "
            f"equal in {flips.n_equal}"
        )
    is_tested = _is_tested(comparison, mode, estimate)
    if estimate.p_adjusted is not None and is_tested:
        yield f"adjusted p {p_text(estimate.p_adjusted)}"
    if detectable := detectable_points([estimate]):
        yield f"detectable difference {detectable} points"
    if is_tested and (more := more_samples(estimate)):
        observed = percent(abs(estimate.value))
        unit = "steps" if mode == "step-by-step" else "samples"
        yield f"about {more:,} more {unit} needed to show a difference of {observed} points"


def _is_tested(comparison: RunComparison, mode: str, estimate: Estimate) -> bool:
    """Return True for a difference with a verdict: nothing that is open may turn it, and the records differ."""
    return is_held(comparison, mode, estimate) and not comparison.same_records


def _headline_warnings(comparison: RunComparison, mode: str, metric: str) -> Iterator[str]:
    """Yield lines on what the headline difference does not hold."""
    estimate = comparison.modes[mode][metric].overall
    n_questions = comparison.n_questions
    # Steps cannot be counted against the questions of a benchmark.
    if n_questions and mode != "step-by-step" and _is_tested(comparison, mode, estimate):
        more = more_samples(estimate)
        if more and estimate.n + more > n_questions:
            yield (
                f"so many more samples do not exist: the benchmark has {count_text(n_questions, 'question')}. Repeats "
                "(--epochs) help only as far as answers vary from repeat to repeat; else use another benchmark"
            )
    if missing := comparison.missing.get(mode):
        names = (comparison.first, comparison.second)
        if estimate.differs() and missing.allows(estimate.value):
            yield f"the verdict holds for every value of what is open: {missing_text(missing, names)}"
        elif missing.too_unread:
            yield (
                f"there is no verdict if more than {100 * MAX_UNREAD_SHARE:g} % of the values of a run were not read: "
                "the difference may be one of how answers are written"
            )
        else:
            yield (
                "a verdict is given only if it holds with everything open set against it: 0 for the better run, "
                "1 for the other"
            )
    for run in comparison.unread.get(mode, ()):
        yield (
            f"most replies of {run} could not be read: its score says nothing about answers, and false confidence and "
            "false refusal are not compared"
        )
    for run, reason in comparison.withheld.get(mode, {}).items():
        text = f"the score of {run} is withheld, because {reason}:"
        yield f"{text} the difference is of the valid records, with or without a form"
    if metric == FAS and (left_out := comparison.no_open_text.get(mode)):
        n, *other = dict.fromkeys(left_out)
        runs = count_text(n, "sample")
        if other:
            runs = f"{n} samples of the first, {other[0]} of the second run"
        yield f"without open text ({runs})"
    if mode == TABLE_MODE:
        only = (f"a score only of {comparison.first}", f"a score only of {comparison.second}")
    else:
        only = ("a valid record only in the first run", "a valid record only in the second run")
    for n, where in zip(comparison.unpaired.get(mode, ()), only, strict=False):
        if n:
            yield f"not compared: {count_text(n, 'sample')} with {where}"


Row = tuple[str, str, Estimate]
"""Row of a comparison: kind (``metric``, ``task`` or ``cause``), name and difference."""


def _metric_label(metric: str) -> str:
    """Return the label of a metric, with an arrow if lower is better."""
    info = METRICS[metric]
    return f"{info.label} ↓" if info.lower_is_better else info.label


def difference_rows(comparison: RunComparison, mode: str) -> Iterator[Row]:
    """Yield every row that a comparison shows: each metric with its tasks, the headline first and with its causes."""
    metrics, headline = comparison.modes[mode], comparison.headline.get(mode, "")
    for name in sorted(metrics, key=lambda each: each != headline):
        yield "metric", _metric_label(name), metrics[name].overall
        for part, estimate in compared_task_types(name, metrics[name]).items():
            yield "task", part.replace("_", " "), estimate
        if name == headline:
            for cause, estimate in comparison.by_cause.get(mode, {}).items():
                yield "cause", cause, estimate


def _row_label(kind: str, name: str) -> str:
    """Return what a table calls a row: a metric and a cause by name alone."""
    if kind == "cause":
        return part_label(name)
    return f"task {name}" if kind == "task" else name


def is_held(comparison: RunComparison, mode: str, difference: Estimate) -> bool:
    """Return False for a difference of a mode in which scores are missing, unless the headline holds without them."""
    missing = comparison.missing.get(mode)
    if missing is None:
        return True
    headline = comparison.modes[mode][comparison.headline[mode]].overall
    return difference == headline and missing.allows(difference.value)


def _shown_rows(comparison: RunComparison, mode: str, most: int | None) -> list[Row]:
    """Return all rows of a mode; or at most ``most``: further metrics that the mode is compared by, then tasks and
    causes that differ, the largest differences first.

    Rows of few samples follow all others."""
    rows = [*difference_rows(comparison, mode)]
    if most is None:
        return rows
    rows.sort(key=lambda row: (row[2].n < FEW, -abs(row[2].value)))
    metrics = [*_further_metrics(comparison, mode)]
    tasks = [row for row in rows if row[0] == "task" and row[2].value]
    causes = [row for row in rows if row[0] == "cause" and row[2].value][:_MOST_CAUSES]
    most_tasks = max(most - len(metrics) - len(causes), _MOST_CAUSES)
    return [*metrics, *tasks[:most_tasks], *causes]


def _further_metrics(comparison: RunComparison, mode: str) -> Iterator[Row]:
    """Yield the rows of the metrics that a mode is compared by, but of its headline."""
    for name, metric in comparison.modes[mode].items():
        if name != comparison.headline.get(mode) and mode in METRICS[name].compared_in:
            yield "metric", _metric_label(name), metric.overall


def _rows_table(
    comparison: RunComparison, mode: str, rows: Sequence[Row], *, details: bool
) -> ReportTable:
    """Return a table of differences; ``details``: with all figures, below the name of the mode."""
    if details:
        headings = ("difference", "95 % interval", "p", "n (clusters)", "detectable")
        table = new_table(mode, headings, first=24)
    else:
        table = new_table("", ("difference", "95 % interval", "n"), first=24)
    for kind, name, estimate in rows:
        label = _row_label(kind, name)
        if details and kind != "metric":
            label = f"  {label}"
        if estimate.differs() and is_held(comparison, mode, estimate):
            figure = TableCell((f"{points(estimate.value)}*",), "bold", estimate)
        else:
            figure = TableCell((f"{points(estimate.value)} ",), "", estimate)
        cells = [figure, interval_text(estimate.interval, points) or DASH]
        if details:
            p = estimate.p_adjusted
            cells.append(p_text(p) if p is not None else DASH)
            cells.append(size(estimate))
            cells.append(detectable_points([estimate]) or DASH)
        else:
            cells.append(str(estimate.n))
        table.add_row(label, *cells, is_dim=estimate.n < FEW)
    return table


def _flip_table(title: str, flips: Sequence[Flip], details: bool) -> ReportTable:
    """Return a table of samples with both scores, and the reason for the lower one."""
    table = new_table(
        title,
        ("first", "second", TableColumn(("lost by",), "id"), TableColumn(("why",), "words")),
        first=18,
    )
    for flip in flips:
        table.add_row(
            flip.sample,
            percent(flip.first),
            percent(flip.second),
            part_label(flip.cause) if flip.cause else DASH,
            _short_reason(flip.reason, details),
        )
    return table


def _short_reason(reason: str, details: bool) -> str:
    """Return a reason cut to a line; without ``details``, to the width that the screen leaves it."""
    if details:
        return shortened(reason, 110)
    return textwrap.shorten(reason, 44, placeholder=" …")


def _legend(comparison: RunComparison) -> Iterator[str]:
    shown = {name: METRICS[name].label for each in comparison.modes.values() for name in each}
    yield Notes().legend(shown)
    paired = "Paired by sample"
    if not comparison.paired:
        paired = "Different samples, not paired: published and new scenes"
    yield f"{paired}; 95 % intervals by cluster. detectable: the smallest difference found with 80 % power."
    n_others = sum(each.p is not None for each in other_differences(comparison))
    yield (
        f"p: adjusted by Holm's method, headlines of all pairs together, and all other rows together ({n_others}). "
        "*: below 0.05. Intervals are not adjusted. Terms: agrotools docs glossary."
    )
    causes = dict.fromkeys(cause for each in comparison.by_cause.values() for cause in each)
    if causes:
        yield (
            f"Causes: if positive, {comparison.second} loses fewer points to this cause. The causes add up to the "
            "difference."
        )
        # The parts of all tools have one meaning, which stands once.
        kinds = dict.fromkeys(map(cause_of, causes))
        yield "; ".join(f"{part_label(kind)}: {part_meaning(kind)}" for kind in kinds) + "."


def with_reasons(comparison: RunComparison, runs: tuple[Path, Path], most: int) -> RunComparison:
    """Return the comparison with a reason for the lower score of the first ``most`` samples that went up and down."""
    first, second = (record_index(run) for run in runs)
    flips: dict[str, Flips] = {}
    for mode, each in comparison.flips.items():
        # A sample that went up was worse in the first run.
        up = _explained(each.up, first, mode, each.metric, most)
        down = _explained(each.down, second, mode, each.metric, most)
        flips[mode] = each.model_copy(update={"up": up, "down": down})
    return comparison.model_copy(update={"flips": flips})


def _explained(
    flips: Sequence[Flip], index: RecordIndex, mode: str, metric: str, most: int
) -> tuple[Flip, ...]:
    """Return samples, the first ``most`` with the reason for their scores in the run of ``index``."""
    first = [
        flip.model_copy(update={"reason": _reason(index, mode, metric, flip)})
        for flip in flips[:most]
    ]
    return (*first, *flips[most:])


def _reason(index: RecordIndex, mode: str, metric: str, flip: Flip) -> str:
    """Return the reason for the score of the epoch with the lowest one."""
    scored = [
        (record, score_record(record))
        for record in index.of_sample(flip.sample)
        if record.mode == mode and not is_invalid(record)
    ]
    if not scored:
        return ""
    record, rows = min(
        scored, key=lambda each: sum(row.value for row in each[1] if row.metric == metric)
    )
    return lost_reason(record, rows, flip.cause)


def between_runs_table(summaries: Sequence[Summary], *, most: int | None = None) -> list[Part]:
    """Return a table of the headline differences of each pair of runs, the later minus the earlier, paired on samples.

    The result is empty if no two runs can be compared, and a line of text if there are more than ``most`` pairs.
    """
    pairwise, names = summaries[0].between_runs, short_names(summaries)
    n = len({(each.first, each.second) for each in pairwise})
    if most is not None and n > most:
        return [Paragraph(f"\nDifferences between runs, {n} pairs: --details shows them.", "")]
    title = "Differences between runs: the later minus the earlier, paired by sample, points"
    table = differences_table(
        title, pairwise, lambda first, second: (names[second], f"minus {names[first]}")
    )
    table.notes += adjusted_lines(each.difference for each in pairwise)
    return [table] if n else []


def differences_table(
    title: str, differences: Sequence[RunDifference], name: Callable[[int, int], tuple[str, ...]]
) -> ReportTable:
    """Return a table with a row for each pair of runs and a column for each metric of a mode.

    ``name`` returns the name of a row from the numbers of its two runs."""
    columns = list(dict.fromkeys((each.mode, each.metric) for each in differences))
    table = new_table(
        title, [TableColumn((METRICS[metric].label,), group=mode) for mode, metric in columns]
    )
    by_pair: dict[tuple[int, int], dict[tuple[str, str], RunDifference]] = {}
    for each in differences:
        of_pair = by_pair.setdefault((each.first, each.second), {})
        of_pair[each.mode, each.metric] = each
    for pair, of_pair in by_pair.items():
        cells: list[TableCell] = []
        for column in columns:
            if each := of_pair.get(column):
                cells.append(difference_cell(each.difference, is_held=each.differs()))
            else:
                cells.append(difference_cell(None))
        table.add_row(TableCell(name(*pair)), *cells)
    if any(each.missing for each in differences):
        table.notes.append(
            "Scores are missing: a star says that the difference holds with all of them set against it."
        )
    return table


# --- errors by class -------------------------------------------------------------------------------------------------


class _Errors(NamedTuple):
    """Errors of one mode of a run, by class, and the papers of its benchmark that define classes."""

    run: int
    mode: Mode
    errors: Mapping[str, ErrorCount]
    sources: Sequence[ErrorSource]


Link = Callable[[int, Mode, str], str]
"""Function that returns the address of a sample on a page, from the number of its run, its mode and its id."""


def error_tables(summaries: Sequence[Summary], link: Link | None = None) -> list[Part]:
    """Return a table of errors by class, of one run or of each mode of several; empty if no record is valid."""
    counted = _counted_errors(summaries)
    if not counted:
        return []
    several = len({each.run for each in counted}) > 1
    names = short_names(summaries)
    tables: list[ReportTable] = []
    if several:
        for mode in MODES:
            if columns := [each for each in counted if each.mode == mode]:
                headings = [TableColumn((names[each.run],), "run") for each in columns]
                tables.append(_error_table(f"Errors by class, {mode}", headings, columns, link))
    else:
        headings = [TableColumn((each.mode,)) for each in counted]
        tables.append(_error_table("Errors by class", headings, counted, link))
    tables[-1].notes += _error_legend(counted, several=several)
    return [*tables]


def _counted_errors(summaries: Sequence[Summary]) -> list[_Errors]:
    """Return the errors of each mode of each run that has a valid record."""
    counted: list[_Errors] = []
    for at, summary in enumerate(summaries):
        sources = [
            source for plugin in used_plugins([summary]) for source in plugin.paper.error_sources
        ]
        for mode, part in summary.modes.items():
            if part.errors and part.invalid.n < part.n_records:
                errors = {row.error: row for row in part.errors}
                counted.append(_Errors(at, mode, errors, sources))
    return counted


def _error_table(
    title: str, headings: Sequence[TableColumn], columns: Sequence[_Errors], link: Link | None
) -> ReportTable:
    """Return a table with a row for each class of errors, which names what is counted."""
    table = new_table(title, headings, first=22)
    for error in _known_classes(columns):
        rows = [each.errors[error] for each in columns if error in each.errors]
        units = dict.fromkeys(f"{row.unit}s" for row in rows if row.count is not None)
        cells = [_error_cell(error, each, link) for each in columns]
        table.add_row(f"{error.replace('_', ' ')} ({', '.join(units)})", *cells)
    return table


def _known_classes(columns: Sequence[_Errors]) -> list[str]:
    """Return the classes that could be determined in any of the columns, in the order of the taxonomy."""
    known = {row.error for each in columns for row in each.errors.values() if row.count is not None}
    return [error for error in CLASSES if error in known]


def _error_cell(error: str, column: _Errors, link: Link | None) -> TableCell:
    """Return number and share of errors of a class, with examples on the page; a dash if it cannot be determined."""
    row = column.errors.get(error)
    if row is None or row.count is None:
        return value_cell(None)
    examples: list[tuple[str, str]] = []
    if link:
        examples = [(each, link(column.run, column.mode, each)) for each in row.examples]
    return TableCell(
        (str(row.count), percent(row.share or 0)),
        "bold" if row.count else "dim",
        examples=tuple(examples),
    )


def _error_legend(columns: Sequence[_Errors], *, several: bool) -> Iterator[str]:
    """Yield the meanings of the classes with their names in the papers, the unit, and the places in the papers."""
    sources = list({str(source): source for each in columns for source in each.sources}.values())
    classes = _known_classes(columns)
    for error in classes:
        names = [f"{each.name}: {each.words[error]}" for each in sources if error in each.words]
        if sources and not names:
            names = ["agrotools only"]
        text = f"{error.replace('_', ' ')}: {CLASSES[error].meaning}."
        yield f"{text} {'; '.join(names)}".strip()
    yield "Number of errors, and below it their % of the steps or samples that were checked for the class."
    if places := _places_in_papers(sources, classes):
        yield f"{'; '.join(places)}."
    # A table of several runs is of one mode, and shows the classes of that mode.
    groups = [columns]
    if several:
        groups = [[each for each in columns if each.mode == mode] for mode in MODES]
    skipped = {reason for group in groups for reason in _reasons_for_dashes(group)}
    if skipped:
        yield f"{DASH}: the class cannot be determined there: {'; '.join(sorted(skipped))}."


def _places_in_papers(sources: Sequence[ErrorSource], classes: Sequence[str]) -> list[str]:
    """Return for each paper that names one of the classes where it defines them."""
    places: dict[str, list[str]] = {}
    for source in sources:
        if any(error in source.words for error in classes):
            places.setdefault(f"{source.name} (arXiv {source.arxiv})", []).append(source.place)
    return [f"{paper}: {', '.join(of_paper)}" for paper, of_paper in places.items()]


def _reasons_for_dashes(columns: Sequence[_Errors]) -> Iterator[str]:
    """Yield why a column of a table has no number of a class that another one has."""
    for error in _known_classes(columns):
        for each in columns:
            row = each.errors.get(error)
            if row is not None and row.not_looked_for:
                yield row.not_looked_for
