"""Tables by family, task type and answer type (metrics, seconds), and event counts of runs."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from agrotools.core import ANSWER_TYPES, FAMILIES, FAMILY_OF_TASK_TYPE, MODES, Mode
from agrotools.core.base import count_text, prompt_tokens_text
from agrotools.report.layout import DASH, harmless, new_table, of_runs, on_scale, percent, run_names, stacked
from agrotools.report.settings import used_plugins
from agrotools.scoring import METRICS, Estimate, Metric, ModeSummary, Summary
from agrotools.scoring.judging.questions import has_rubrics
from agrotools.scoring.summary import Agreement, Amount, Correlation, Panel, Seconds, SecondsByPart, tokens_of

_WORDS = {"tools": "tools that are offered"}
"""Headings of groups whose names are unclear."""


def part_rows(figures: Sequence[Metric | SecondsByPart]) -> Iterator[tuple[str, str, list[Any]]]:
    """Yield label, style and a figure of each column, for families with their task types, answer types, and groups.

    The figure is None for parts that a column does not have.
    """

    def row(parts: "Sequence[Mapping[str, Any]]", name: str, label: str = "", style: str = ""):
        return label or f"  {_words(name)}", style, [part.get(name) for part in parts]

    def heading(label: str):
        return label, "bold", [None for _ in figures]

    families, task_types, answer_types = (
        [getattr(figure, name) for figure in figures] for name in ("by_family", "by_task_type", "by_answer_type")
    )
    present = _ordered(FAMILY_OF_TASK_TYPE, task_types)
    for family in _ordered(FAMILIES, families):
        of_family = [task_type for task_type in present if FAMILY_OF_TASK_TYPE.get(task_type) == family]
        label = FAMILIES.get(family, family)
        # The figures of a family with one task type would repeat those of the task type.
        yield heading(label) if len(of_family) == 1 else row(families, family, label, "bold")
        yield from (row(task_types, task_type) for task_type in of_family)
        present = [task_type for task_type in present if task_type not in of_family]
    yield from (row(task_types, task_type, _words(task_type)) for task_type in present)
    yield heading("By answer type")
    yield from (row(answer_types, answer_type) for answer_type in _ordered(ANSWER_TYPES, answer_types))
    for group in _ordered((), [figure.by_group for figure in figures]):
        yield heading(f"By {_WORDS.get(group) or _words(group)}")
        values = [figure.by_group.get(group, {}) for figure in figures]
        yield from (row(values, value, f"  {value}") for value in _ordered((), values))


def _ordered(known: Iterable[str], parts: Sequence[Iterable[str]]) -> list[str]:
    """Return the present names: known ones in their order, then numbers, then the others by name."""
    there = set[str]().union(*parts)
    others = sorted(there.difference(known))
    others.sort(key=lambda name: int(name) if name.isdecimal() else math.inf)
    return [*(name for name in known if name in there), *others]


def _words(identifier: str) -> str:
    return identifier.replace("_", " ")


def seconds_tables(summaries: Sequence[Summary], *, side_by_side: int) -> list[Table]:
    """Return tables of mean seconds per query.

    One run has a table with a column for each mode. Several runs have tables for each mode with up to ``side_by_side``
    runs as columns."""
    if len(summaries) == 1:
        columns = [(mode, part.seconds) for mode, part in summaries[0].modes.items() if part.seconds is not None]
        return _part_tables("Seconds per query, mean", columns, _seconds_cell)
    tables: list[Table] = []
    for mode in MODES:
        parts = [summary.modes.get(mode) for summary in summaries]
        columns = [
            (name, part.seconds)
            for name, part in zip(_short_names(summaries), parts, strict=True)
            if part and part.seconds
        ]
        tables += _part_tables(f"Seconds per query, {mode}, mean", columns, _seconds_cell, side_by_side)
    return tables


def _short_names(summaries: Sequence[Summary]) -> list[str]:
    return [name.rpartition("/")[2] for name in run_names(summaries)]


def _part_tables(
    title: str,
    columns: Sequence[tuple[str, Metric | SecondsByPart]],
    cell: Callable[[Any], Text],
    side_by_side: int = 100,
) -> list[Table]:
    """Return tables with the rows of :func:`part_rows`; ``columns`` are headings and figures."""
    tables: list[Table] = []
    for start in range(0, len(columns), side_by_side):
        headings, figures = zip(*columns[start : start + side_by_side], strict=True)
        table = new_table(title, headings, first=18, overflow="fold")
        if cell is _seconds_cell:
            table.add_row(stacked(["All"]), *(cell(figure.overall) for figure in figures))
        for label, style, row in part_rows(figures):
            table.add_row(stacked([label], value_style=style), *map(cell, row))
        tables.append(table)
    return tables


def _seconds_cell(seconds: Seconds | None) -> Text:
    if seconds is None:
        return Text("")
    return stacked([f"{seconds.mean:.{2 if seconds.mean >= 0.1 else 4}f}", str(seconds.n)], value_style="")


RUNS_SIDE_BY_SIDE = 4
"""Maximum number of runs in a table, so that a row fits 80 columns."""

_OF_ONE_RUN: tuple[tuple[Mode, str, str], ...] = (
    ("no-tool", "fas", "no tools\nFAS"),
    ("end-to-end", "fas", "end to end\nFAS"),
    ("step-by-step", "tool_acc", "by step\nToolAcc"),
    ("step-by-step", "arg_acc", "by step\nArgAcc"),
    ("step-by-step", "summ_acc", "by step\nSummAcc"),
)
_OF_SEVERAL_RUNS: tuple[tuple[Mode, str, str], ...] = (
    ("no-tool", "fas", "No tools, FAS"),
    ("end-to-end", "fas", "End to end, FAS"),
    ("step-by-step", "arg_acc", "Step by step, ArgAcc"),
)


def part_tables(summaries: Sequence[Summary], *, side_by_side: int = RUNS_SIDE_BY_SIDE) -> list[Table]:
    """Return tables of metrics by family, task type and answer type.

    One run has a table of several metrics. Several runs have tables for each main metric with up to ``side_by_side``
    runs as columns."""
    of_plugins = [column for plugin in used_plugins(summaries) for column in plugin.reporting.parts]
    if len(summaries) == 1:
        requested = [*_OF_ONE_RUN, *((each.mode, each.metric, each.heading) for each in of_plugins)]
        columns = [(heading, _metric(summaries[0], mode, metric)) for mode, metric, heading in requested]
        present = [(heading, metric) for heading, metric in columns if metric]
        return _part_tables("By task type and answer type", present, _cell)
    tables: list[Table] = []
    several = [*_OF_SEVERAL_RUNS, *((each.mode, each.metric, each.title) for each in of_plugins if each.title)]
    for mode, metric, title in several:
        of_runs = [_metric(summary, mode, metric) for summary in summaries]
        columns = [(name, of_run) for name, of_run in zip(_short_names(summaries), of_runs, strict=True) if of_run]
        tables += _part_tables(f"{title}, by task type and answer type", columns, _cell, side_by_side)
    return tables


def _metric(summary: Summary, mode: Mode, metric: str) -> Metric | None:
    of_mode = summary.modes.get(mode)
    return of_mode.metrics.get(metric) if of_mode is not None and of_mode.headline else None


def _cell(estimate: Estimate | None) -> Text:
    if estimate is None:
        return Text("")
    cell = Text(percent(estimate.value), style="dim" if estimate.n < 5 else "")
    if estimate.interval is not None:
        cell.append(f"\n{percent(estimate.interval.lower)}–{percent(estimate.interval.upper)}", style="dim")
    cell.append(f"\n{estimate.n} ({estimate.n_clusters})", style="dim")
    return cell


def counts_table(summaries: Sequence[Summary]) -> list[RenderableType]:
    """Return run statistics by mode: records, share of ``no_form``, calls, errors, and the mean cost of a record."""
    title = "Run statistics (turns, tokens and seconds: mean of a record; of form: tokens of closing messages)"
    counts = ("records", "%\nno_form", "unpar-\nseable", "tool\ncalls", "tool\nerrors")
    table = new_table(title, [*counts, "turns", "tokens\nin", "tokens\nout", "of form", "s"], first=13)
    lines: list[str] = []
    for name, summary in zip(run_names(summaries), summaries, strict=True):
        if len(summaries) > 1:
            table.add_row(name.rpartition("/")[2])
        for mode, part in summary.modes.items():
            table.add_row(f" {mode}", *_counts_cells(part))
            of_run = f"{name}, " if len(summaries) > 1 else ""
            lines += [f"{of_run}{mode}: {line}" for line in _count_lines(mode, part)]
    return [table, Text("\n".join(lines), style="dim")]


def correlation_lines(summaries: Sequence[Summary]) -> list[RenderableType]:
    """Return lines on correlations of step metrics with end-to-end scores, for each run with both modes."""
    lines: list[str] = []
    for of_run, summary in of_runs(summaries):
        texts = [_correlation_text(each) for each in summary.correlations if each.r is not None]
        if texts:
            n = max(each.n for each in summary.correlations)
            lines.append(
                f"{of_run}Pearson's r with FAS end to end, over up to {count_text(n, 'sample')}: {', '.join(texts)}"
            )
    return [Text("\n".join(lines))] if lines else []


def _correlation_text(correlation: Correlation) -> str:
    inside = correlation.interval
    interval = f" ({inside.lower:+.2f} to {inside.upper:+.2f})" if inside else ""
    return f"{METRICS[correlation.step].label} {correlation.r:+.2f}{interval}"


def _counts_cells(part: ModeSummary) -> list[str]:
    counts, spent = part.counts, part.counts.spent
    return [
        str(part.n_records),
        DASH if part.no_form_share is None else percent(part.no_form_share),
        str(counts.unparseable),
        str(counts.tool_calls),
        str(sum(counts.tool_errors.values())),
        f"{spent['turns'].per_record:.1f}" if "turns" in spent else DASH,
        _short(spent.get("input_tokens")),
        _short(spent.get("output_tokens")),
        _short(spent.get("closing_tokens")),
        f"{spent['seconds'].per_record:.2f}" if "seconds" in spent else DASH,
    ]


def _count_lines(mode: Mode, part: ModeSummary) -> Iterator[str]:
    counts = part.counts
    if counts.terminations:
        word = "halted" if mode == "step-by-step" else "ended"
        yield f"{word}: {_listed(counts.terminations)}"
    if counts.tool_errors:
        yield f"tool errors: {_listed(counts.tool_errors)}"
    if counts.read_texts:
        yield f"{count_text(counts.read_texts, 'argument')} given as text and read as a number, list, object or null"
    if counts.unscored_calls:
        yield f"{count_text(counts.unscored_calls, 'call')} after the first of a message not scored"
    if counts.implied_differs:
        samples = count_text(counts.implied_differs, "sample")
        yield f"on {samples} the results shown imply an answer other than the ground truth"
    if counts.median_box_iou is not None:
        yield f"median IoU of boxes {counts.median_box_iou:.2f}"
    if counts.choice_set_jaccard is not None:
        yield f"mean Jaccard overlap of sets {percent(counts.choice_set_jaccard)}"
    dear = counts.spent.get("seconds")
    if counts.successes and dear is not None and dear.per_success is not None:
        each = [counts.spent[name].per_success for name in ("input_tokens", "output_tokens") if name in counts.spent]
        tokens = "" if not each or None in each else f" and {sum(filter(None, each)):.0f} tokens"
        samples = count_text(counts.successes, "sample")
        yield f"{samples} fully correct; {dear.per_success:.2f} s{tokens} per correct sample"
    if cost := counts.spent.get("cost_usd"):
        yield f"cost of the agent, by its reports: {cost.total:.4f} USD, {cost.per_record:.4f} USD per record"
    tokens_in, cached, _ = tokens_of([part])
    if tokens_in:
        yield prompt_tokens_text(tokens_in, cached)
    if counts.spent and "input_tokens" not in counts.spent:
        yield "the agent did not report its tokens"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in counts.items())


def _short(amount: Amount | None) -> str:
    if amount is None:
        return DASH
    return f"{amount.per_record / 1000:.1f}k" if amount.per_record >= 1000 else f"{amount.per_record:.0f}"


def judge_lines(summaries: Sequence[Summary]) -> list[RenderableType]:
    """Return :func:`judge_notes` for a terminal."""
    lines = judge_notes(summaries)
    return [Text("\n".join(lines))] if lines else []


def judge_notes(summaries: Sequence[Summary]) -> list[str]:
    """Return lines on the grades of each judge and their agreement, for each run whose answers were graded."""
    judged = ((of_run, summary.judging) for of_run, summary in of_runs(summaries) if summary.judging is not None)
    return [f"{of_run}{line}" for of_run, panel in judged for line in panel_lines(panel)]


def panel_lines(panel: Panel) -> Iterator[str]:
    """Yield a line for each judge, for the agreement between judges, and for each calibration."""
    for judge in panel.judges:
        mean = f", mean {on_scale(judge.mean, METRICS[judge.metric].out_of)}" if judge.mean is not None else ""
        unreadable = f", {judge.unreadable} of {judge.votes} replies without a grade" if judge.unreadable else ""
        votes = f"; its votes agree: {_agreement(judge.between_votes)}" if judge.between_votes else ""
        label = METRICS[judge.metric].label
        rubrics = f", {harmless(panel.rubrics)}" if panel.rubrics and has_rubrics(judge.metric) else ""
        who = f"{label} by {harmless(judge.judge)} (prompt {', '.join(judge.prompts)}{rubrics})"
        yield f"{who}: {judge.graded} of {judge.answers} answers graded{mean}{unreadable}{votes}"
    for metric, agreement in panel.between_judges.items():
        yield f"{METRICS[metric].label}: the judges agree: {_agreement(agreement)}"
    for check in panel.calibrations:
        exact = f"{percent(check.exact)} % graded exactly" if check.exact is not None else "none graded"
        lenience = f", {check.lenience:+.2f} grades on average" if check.lenience is not None else ""
        unread = f", {count_text(check.unreadable, 'reply', 'replies')} without a grade" if check.unreadable else ""
        against = f"; with the known grades: {_agreement(check.with_labels)}" if check.with_labels else ""
        answers = count_text(check.n, "answer")
        yield f"{harmless(check.judge)} on {answers} with known grades: {exact}{lenience}{unread}{against}"


def _agreement(agreement: Agreement) -> str:
    if agreement.alpha is None:
        return f"all grades are the same ({count_text(agreement.n_units, 'answer')})"
    inside = agreement.interval
    interval = f" ({inside.lower:.2f} to {inside.upper:.2f})" if inside else ""
    return f"alpha {agreement.alpha:.2f}{interval}, {count_text(agreement.n_units, 'answer')}"
