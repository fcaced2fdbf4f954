"""Tables of differences between runs, and of errors by class.

Benchmark plug-ins name the papers that define classes of errors.
"""

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agrotools.core import MODES, Mode
from agrotools.core.texts import count_text
from agrotools.report.explain import lost_reason
from agrotools.report.layout import (
    DASH,
    FEW,
    PLAIN_WIDTH,
    SYNTHETIC_NOTE,
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
from agrotools.runner.records import RecordIndex, record_index
from agrotools.scoring.aggregate import score_record
from agrotools.scoring.attribution import part_meaning
from agrotools.scoring.contracts import ErrorSource
from agrotools.scoring.error_classes import CLASSES
from agrotools.scoring.metrics import FAS, METRICS, is_invalid
from agrotools.scoring.statistics import MIN_CLUSTERS, Estimate
from agrotools.scoring.summary import (
    ErrorCount,
    Flip,
    Flips,
    Missing,
    RunComparison,
    RunDifference,
    Summary,
    compared_task_types,
    other_differences,
)

MOST_PAIRS = 28
"""Maximum number of pairs of runs (eight runs) that are shown without details."""
SCREEN_LINES = 24
"""Most lines of the comparison of two runs without details."""
_MOST_CAUSES = 4


def comparison_tables(
    comparison: RunComparison, *, flips: int = 0, details: bool = False
) -> Iterator[Part]:
    """Yield the verdict of each mode, end-to-end first, and of that mode the largest differences by task and cause, and
    at most ``flips`` samples that the second run scores higher and lower: one screen for two runs.

    ``details``: yield every row with p-value and detectable difference, and the meaning of each word."""
    modes = sorted(comparison.modes, key=lambda mode: mode != "end-to-end")
    above = [
        part
        for mode in modes
        for part in _verdict_lines(comparison, mode, details or mode == modes[0])
    ]
    marks = [comparison.benchmark] * bool(comparison.benchmark) + ["quick part"] * comparison.quick
    marks += [SYNTHETIC_NOTE] * comparison.synthetic
    are = "is" if len(comparison.privileged) == 1 else "are"
    marks += [f"{' and '.join(comparison.privileged)} {are} privileged"] * bool(
        comparison.privileged
    )
    if modes:
        above.append(Paragraph(comparison.orientation, ""))
    above += [Paragraph(", ".join(marks))] * any(marks)
    yield from above if modes else [Paragraph("The two runs have no mode in common.", "")]
    n_lines = sum(-(-len(line) // PLAIN_WIDTH) for part in above for line in part.text.split("\n"))
    for mode in modes if details else modes[:1]:
        up, down = (
            (comparison.flips[mode].up, comparison.flips[mode].down)
            if mode in comparison.flips
            else ((), ())
        )
        listed = [*up[:flips], *down[:flips]]
        yield from _part_tables(
            comparison, mode, None if details else SCREEN_LINES - n_lines - len(listed) - 5
        )
        title = f"{mode}: {len(listed)} of {count_text(len(up) + len(down), 'sample')} with different scores"
        yield from [_flip_table(title * details, listed, details)] if listed else []
    if details:
        yield Paragraph("\n" + "\n".join(_legend(comparison)))
    elif modes:
        yield Paragraph("All rows and the words: --details. More samples: --flips N.")


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


def verdict_text(
    difference: Estimate,
    names: tuple[str, str],
    *,
    paired: bool = True,
    same: bool = False,
    missing: Missing | None = None,
) -> str:
    """Return what a headline difference shows, the better run first: ``A is better: 9.1 points (4.2 to 14.0)``.

    ``difference`` is the second run of ``names`` minus the first. The points of the better run have no sign, so that
    this line and the signs of differences cannot contradict each other. If scores are ``missing``, there is a verdict
    only if it holds with all of them set against it.
    """
    value, interval = difference.value, difference.interval
    if same:
        return "the same records: difference 0"
    if missing and not (difference.differs() and missing.allows(difference.value)):
        return f"no verdict, because {missing_text(missing, names)}"
    if difference.differs() and interval and paired:
        sign, better = (1, names[1]) if value > 0 else (-1, names[0])
        ends = sorted((sign * interval.lower, sign * interval.upper))
        return (
            f"{better} is better: {percent(abs(value))} points ({' to '.join(map(percent, ends))})"
        )
    verdict = "no difference shown"
    if difference.differs():
        verdict = f"{'higher' if value > 0 else 'lower'} on the samples of the second run"
    elif difference.p_adjusted is None:
        verdict = f"not tested, fewer than {MIN_CLUSTERS} clusters"
    shown = f" ({interval_text(interval, points)})" if interval else ""
    return f"{verdict}: {names[1]} minus {names[0]} = {points(value)} points{shown}"


def missing_text(missing: Missing, names: tuple[str, str]) -> str:
    """Return how many scores each run lacks and the bounds of the difference: second minus first."""
    lacking = [
        f"{count_text(n, 'score')} of {name}"
        for n, name in zip(missing.samples, names, strict=True)
        if n
    ]
    are = "is" if sum(missing.samples) == 1 else "are"
    bounds = f"{points(missing.lowest.value)} to {points(missing.highest.value)} points"
    return f"{' and '.join(lacking)} {are} missing: {names[1]} minus {names[0]} = {bounds}"


def more_samples(difference: Estimate) -> int | None:
    """Return about how many more samples would show a difference of this size (80 % power), to two digits.

    None if the difference is shown, or is too small for 100,000 samples."""
    if difference.detectable is None or difference.differs() or not difference.value:
        return None
    more = difference.n * ((difference.detectable / difference.value) ** 2 - 1)
    return int(float(f"{more:.1e}")) if 1 <= more < 100_000 else None


def _verdict_lines(comparison: RunComparison, mode: str, with_facts: bool) -> Iterator[Paragraph]:
    name = comparison.headline.get(mode)
    if name is None:
        yield Paragraph(f"{mode}: no headline metric in common", "bold")
        return
    estimate, means = comparison.modes[mode][name].overall, comparison.means[mode]
    names = (comparison.first, comparison.second)
    verdict = headline_verdict(comparison, mode)
    yield Paragraph(f"{verdict}, {mode}, {METRICS[name].label}", "bold")
    if not with_facts:
        return
    noun = "step" if mode == "step-by-step" else "sample"
    named = (f"{who} {percent(mean)}" for who, mean in zip(names, means, strict=True))
    facts = [
        ", ".join(named),
        f"{count_text(estimate.n, noun)} in {count_text(estimate.n_clusters, 'cluster')}",
    ]
    if flips := comparison.flips.get(mode):
        facts.append(
            f"{comparison.second} is higher in {len(flips.up)}, lower in {len(flips.down)}, equal in {flips.n_equal}"
        )
    is_tested = is_held(comparison, mode, estimate) and not comparison.same_records
    if estimate.p_adjusted is not None and is_tested:
        facts.append(f"adjusted p {p_text(estimate.p_adjusted)}")
    if detectable := detectable_points([estimate]):
        facts.append(f"detectable difference {detectable} points")
    if is_tested and (more := more_samples(estimate)):
        facts.append(f"about {more} more samples needed to show a difference of this size")
    yield Paragraph("; ".join(facts), "")
    yield from (Paragraph(text, "yellow") for text in _headline_warnings(comparison, mode, name))


def _headline_warnings(comparison: RunComparison, mode: str, metric: str) -> Iterator[str]:
    """Yield lines on what the headline difference does not hold."""
    if missing := comparison.missing.get(mode):
        names = (comparison.first, comparison.second)
        difference = comparison.modes[mode][metric].overall
        if difference.differs() and missing.allows(difference.value):
            yield f"the verdict holds for every value of missing scores: {missing_text(missing, names)}"
        else:
            yield (
                "a verdict is given only if it holds with all missing scores set against it: 0 for the better run, "
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
        runs = (
            f"{n} samples of the first, {other[0]} of the second run"
            if other
            else count_text(n, "sample")
        )
        yield f"without open text ({runs})"
    runs = "a valid record only in the first run", "a valid record only in the second run"
    models = (f"a score only of {name}" for name in (comparison.first, comparison.second))
    for n, only in zip(
        comparison.unpaired.get(mode, ()), models if mode == "table" else runs, strict=False
    ):
        if n:
            yield f"not compared: {count_text(n, 'sample')} with {only}"


def difference_rows(comparison: RunComparison, mode: str) -> Iterator[tuple[str, str, Estimate]]:
    """Yield kind (``metric``, ``task`` or ``cause``), name and difference of every row that a comparison shows."""
    metrics, headline = comparison.modes[mode], comparison.headline.get(mode, "")
    for name in sorted(metrics, key=lambda each: each != headline):
        arrow = " ↓" if METRICS[name].lower_is_better else ""
        yield "metric", f"{METRICS[name].label}{arrow}", metrics[name].overall
        for part, estimate in compared_task_types(name, metrics[name]).items():
            yield "task", part.replace("_", " "), estimate
        if name == headline:
            yield from (
                ("cause", cause, each) for cause, each in comparison.by_cause.get(mode, {}).items()
            )


def is_held(comparison: RunComparison, mode: str, difference: Estimate) -> bool:
    """Return False for a difference of a mode in which scores are missing, unless the headline holds without them."""
    missing = comparison.missing.get(mode)
    headline = comparison.modes[mode][comparison.headline[mode]].overall if missing else None
    return missing is None or (difference == headline and missing.allows(difference.value))


def _part_tables(comparison: RunComparison, mode: str, most: int | None) -> Iterator[ReportTable]:
    """Yield the rows of a mode with all figures; or of tasks and causes alone, at most ``most`` of them."""
    rows = [*difference_rows(comparison, mode)]
    if most is not None:
        ordered = sorted(rows, key=lambda row: (row[2].n < FEW, -abs(row[2].value)))
        causes, tasks = (
            [row for row in ordered if row[0] == kind and row[2].value]
            for kind in ("cause", "task")
        )
        rows = [
            *tasks[: max(most - len(causes[:_MOST_CAUSES]), _MOST_CAUSES)],
            *causes[:_MOST_CAUSES],
        ]
    whole = ("difference", "95 % interval", "p", "n (clusters)", "detectable")
    table = new_table(mode * (most is None), whole if most is None else (*whole[:2], "n"), first=24)
    for kind, name, each in rows:
        value = points(each.value)
        differs = each.differs() and is_held(comparison, mode, each)
        p = p_text(each.p_adjusted) if each.p_adjusted is not None else DASH
        label = (
            name if kind == "metric" else f"  {kind} {name}" if most is None else f"{kind} {name}"
        )
        figure = TableCell((f"{value}{'*' if differs else ' '}",), "bold" if differs else "", each)
        interval = interval_text(each.interval, points) or DASH
        last = (
            (p, size(each), detectable_points([each]) or DASH) if most is None else (str(each.n),)
        )
        table.add_row(label, figure, interval, *last, is_dim=each.n < FEW)
    yield from [table] if rows else []


def _flip_table(title: str, flips: Sequence[Flip], details: bool) -> ReportTable:
    table = new_table(
        title,
        ("first", "second", TableColumn(("lost by",), "id"), TableColumn(("why",), "words")),
        first=18,
    )
    for flip in flips:
        scores = (percent(flip.first), percent(flip.second))
        reason = (
            shortened(flip.reason, 110)
            if details
            else textwrap.shorten(flip.reason, 44, placeholder=" …")
        )
        table.add_row(flip.sample, *scores, flip.cause or DASH, reason)
    return table


def _legend(comparison: RunComparison) -> Iterator[str]:
    shown = {name: METRICS[name].label for each in comparison.modes.values() for name in each}
    yield Notes().legend(shown)
    paired = (
        "Paired by sample"
        if comparison.paired
        else "Different samples, not paired: published and new scenes"
    )
    yield f"{paired}; 95 % intervals by cluster. detectable: the smallest difference found with 80 % power."
    n_others = sum(each.p is not None for each in other_differences(comparison))
    yield (
        f"p: adjusted by Holm's method, headlines of all pairs together, and all other rows together ({n_others}). "
        "*: below 0.05. Intervals are not adjusted. Words: docs/glossary.md."
    )
    causes = dict.fromkeys(cause for each in comparison.by_cause.values() for cause in each)
    if causes:
        yield (
            f"cause: if positive, {comparison.second} loses fewer points to this cause. The causes add up to the "
            "difference."
        )
        yield "; ".join(f"{cause}: {part_meaning(cause)}" for cause in causes) + "."


def with_reasons(comparison: RunComparison, runs: tuple[Path, Path], most: int) -> RunComparison:
    """Return the comparison with a reason for the lower score of the first ``most`` samples that went up and down."""
    indices = [record_index(run) for run in runs]
    flips: dict[str, Flips] = {}
    for mode, each in comparison.flips.items():
        up, down = (
            tuple(
                flip.model_copy(update={"reason": _reason(index, mode, each.metric, flip)})
                if at < most
                else flip
                for at, flip in enumerate(listed)
            )
            for listed, index in ((each.up, indices[0]), (each.down, indices[1]))
        )
        flips[mode] = each.model_copy(update={"up": up, "down": down})
    return comparison.model_copy(update={"flips": flips})


def _reason(index: RecordIndex, mode: str, metric: str, flip: Flip) -> str:
    """Return the reason for the score of the epoch with the lowest one."""
    records = [
        each for each in index.of_sample(flip.sample) if each.mode == mode and not is_invalid(each)
    ]
    scored = [(record, score_record(record)) for record in records]
    worst = min(
        scored,
        key=lambda each: sum(row.value for row in each[1] if row.metric == metric),
        default=None,
    )
    return lost_reason(*worst, flip.cause) if worst else ""


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
    for pair in dict.fromkeys((each.first, each.second) for each in differences):
        of_pair = {
            (each.mode, each.metric): each
            for each in differences
            if (each.first, each.second) == pair
        }
        found = [of_pair.get(column) for column in columns]
        cells = [
            difference_cell(each.difference, is_held=each.differs())
            if each
            else difference_cell(None)
            for each in found
        ]
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
    counted = [
        _Errors(at, mode, {row.error: row for row in part.errors}, sources)
        for at, summary in enumerate(summaries)
        for sources in [
            [each for plugin in used_plugins([summary]) for each in plugin.paper.error_sources]
        ]
        for mode, part in summary.modes.items()
        if part.errors and part.invalid.n < part.n_records
    ]
    several, names = len({each.run for each in counted}) > 1, short_names(summaries)
    tables: list[ReportTable] = []
    for mode in MODES if several else ("",):
        columns = [each for each in counted if mode in ("", each.mode)]
        headings = [
            TableColumn((names[each.run],), "run") if several else TableColumn((each.mode,))
            for each in columns
        ]
        table = new_table(f"Errors by class{f', {mode}' * several}", headings, first=22)
        for error in _known_classes(columns):
            rows = [each.errors[error] for each in columns if error in each.errors]
            units = dict.fromkeys(f"{row.unit}s" for row in rows if row.count is not None)
            label = f"{error.replace('_', ' ')} ({', '.join(units)})"
            table.add_row(label, *(_error_cell(error, each, link) for each in columns))
        tables += [table] * bool(columns)
    for table in tables[-1:]:
        table.notes += _error_legend(counted, several=several)
    return [*tables]


def _known_classes(columns: Sequence[_Errors]) -> list[str]:
    """Return the classes that could be determined in any of the columns, in the order of the taxonomy."""
    known = {row.error for each in columns for row in each.errors.values() if row.count is not None}
    return [error for error in CLASSES if error in known]


def _error_cell(error: str, column: _Errors, link: Link | None) -> TableCell:
    row = column.errors.get(error)
    if row is None or row.count is None:
        return value_cell(None)
    examples = (
        tuple((each, link(column.run, column.mode, each)) for each in row.examples) if link else ()
    )
    return TableCell(
        (str(row.count), percent(row.share or 0)), "bold" if row.count else "dim", examples=examples
    )


def _error_legend(columns: Sequence[_Errors], *, several: bool) -> Iterator[str]:
    """Yield the meanings of the classes with their names in the papers, the unit, and the places in the papers."""
    sources = list({str(source): source for each in columns for source in each.sources}.values())
    classes = _known_classes(columns)
    for error in classes:
        names = "; ".join(
            f"{each.name}: {each.words[error]}" for each in sources if error in each.words
        )
        names = names or "agrotools only" * bool(sources)
        yield f"{error.replace('_', ' ')}: {CLASSES[error].meaning}. {names}".strip()
    yield "Number of errors, and below it their % of the steps or samples that were checked for the class."
    places: dict[str, list[str]] = {}
    for source in sources:
        if any(error in source.words for error in classes):
            places.setdefault(f"{source.name} (arXiv {source.arxiv})", []).append(source.place)
    if places:
        yield (
            "; ".join(f"{paper}: {', '.join(of_paper)}" for paper, of_paper in places.items()) + "."
        )
    groups = (
        [[each for each in columns if each.mode == mode] for mode in MODES]
        if several
        else [columns]
    )
    shown = [each.errors[error] for group in groups for error in _known_classes(group) for each in group
             if error in each.errors]  # fmt: skip
    if skipped := sorted({row.not_looked_for for row in shown if row.not_looked_for}):
        yield f"{DASH}: the class cannot be determined there: {'; '.join(skipped)}."
