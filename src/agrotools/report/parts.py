"""Tables by family, task type and answer type (metrics, seconds), of event counts, and of lost points.

Summaries of runs come in; tables (:class:`~agrotools.report.layout.ReportTable`) go out. They compute no score.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from agrotools.core import ANSWER_TYPES, FAMILIES, FAMILY_OF_TASK_TYPE, MODES, Mode
from agrotools.core.texts import count_text, number_text, prompt_tokens_text
from agrotools.report.contracts import PartColumn, reporting_of
from agrotools.report.layout import (
    DASH,
    FEW,
    Part,
    ReportTable,
    TableCell,
    TableColumn,
    interval_text,
    new_table,
    of_runs,
    on_scale,
    paragraph,
    percent,
    short_names,
    size,
    value_cell,
)
from agrotools.report.settings import used_plugins
from agrotools.scoring.attribution import (
    CAUSES,
    Attribution,
    Split,
    cause_of,
    ordered_parts,
    part_label,
)
from agrotools.scoring.judging.questions import has_rubrics
from agrotools.scoring.metrics import FAS, FAS_FLOORS, METRICS
from agrotools.scoring.statistics import Estimate
from agrotools.scoring.summary import (
    Amount,
    Calibration,
    JudgeAgreement,
    JudgeSummary,
    Metric,
    ModeSummary,
    Panel,
    Seconds,
    SecondsByPart,
    Summary,
    tokens_of,
)


def _part_rows(figures: Sequence[Metric | SecondsByPart]) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield label and a figure of each column, for families with their task types, answer types, and groups.

    The figure is None for parts that a column does not have; the labels of groups have no figures.
    """

    def rows(
        parts: Sequence[Mapping[str, Any]], names: Iterable[str]
    ) -> Iterator[tuple[str, Sequence[Any]]]:
        for name in names:
            yield f"  {_words(name)}", [part.get(name) for part in parts]

    families = [figure.by_family for figure in figures]
    task_types = [figure.by_task_type for figure in figures]
    answer_types = [figure.by_answer_type for figure in figures]
    present = _ordered(FAMILY_OF_TASK_TYPE, task_types)
    for family in _ordered(FAMILIES, families):
        of_family = [
            task_type for task_type in present if FAMILY_OF_TASK_TYPE.get(task_type) == family
        ]
        # The figures of a family with one task type would repeat those of the task type.
        of_whole = [part.get(family) for part in families] if len(of_family) != 1 else []
        yield FAMILIES.get(family, family), of_whole
        yield from rows(task_types, of_family)
        present = [task_type for task_type in present if task_type not in of_family]
    for label, of_task in rows(task_types, present):
        yield label.strip(), of_task
    yield "By answer type", []
    yield from rows(answer_types, _ordered(ANSWER_TYPES, answer_types))
    for group in _ordered((), [figure.by_group for figure in figures]):
        yield f"By {'tools that are offered' if group == 'tools' else _words(group)}", []
        values = [figure.by_group.get(group, {}) for figure in figures]
        for value in _ordered((), values):
            yield f"  {value}", [part.get(value) for part in values]


def _ordered(known: Iterable[str], parts: Sequence[Iterable[str]]) -> list[str]:
    """Return the present names: known ones in their order, then numbers, then the others by name."""
    there = set[str]().union(*parts)
    others = sorted(there.difference(known))
    others.sort(key=lambda name: int(name) if name.isdecimal() else math.inf)
    return [*(name for name in known if name in there), *others]


def _words(identifier: str) -> str:
    return identifier.replace("_", " ")


class _Measure(NamedTuple):
    """Figure by part of a run: heading of its column, and title of its table of several runs, if it has one."""

    column: TableColumn
    title: str
    of: Callable[[Summary], Metric | SecondsByPart | None]
    beside: Sequence[tuple[TableColumn, Metric]] = ()
    """Columns behind those of the runs, which are the same for every run."""


def _part_tables(
    title: str,
    measures: Iterable[_Measure],
    summaries: Sequence[Summary],
    cell: Callable[[Any], TableCell],
) -> list[ReportTable]:
    """Return one table of all measures of one run, or a table of each measure with the runs as columns."""
    if len(summaries) == 1:
        columns: list[tuple[TableColumn, Metric | SecondsByPart | None]] = []
        for each in measures:
            columns += [(each.column, each.of(summaries[0])), *each.beside]
        tables = [part_table(title, columns, cell)]
    else:
        runs = [TableColumn((name,), "run") for name in short_names(summaries)]
        tables: list[ReportTable | None] = []
        for each in measures:
            if each.title:
                figures = [each.of(summary) for summary in summaries]
                columns = [*zip(runs, figures, strict=True), *each.beside]
                tables.append(part_table(each.title, columns, cell))
    return [table for table in tables if table is not None]


def part_table(
    title: str,
    columns: Sequence[tuple[TableColumn, Metric | SecondsByPart | None]],
    cell: Callable[[Any], TableCell],
) -> ReportTable | None:
    """Return a table of figures by part, without columns that have none; None if no column has any."""
    known = [(column, figure) for column, figure in columns if figure]
    if not known:
        return None
    figures = [figure for _, figure in known]
    table = new_table(title, [column for column, _ in known], first=18)
    if all(isinstance(figure, SecondsByPart) for figure in figures):
        table.add_row(TableCell(("All",), "bold"), *(cell(figure.overall) for figure in figures))
    for label, row in _part_rows(figures):
        style = "" if label.startswith(" ") else "bold"
        table.add_row(TableCell((label,), style), *map(cell, row))
    return table


_PARTS = (
    PartColumn("no-tool", "fas", "FAS", "No tools, FAS"),
    PartColumn("end-to-end", "fas", "FAS", "End to end, FAS"),
    PartColumn("step-by-step", "tool_acc", "ToolAcc"),
    PartColumn("step-by-step", "arg_acc", "ArgAcc", "Step by step, ArgAcc"),
    PartColumn("step-by-step", "summ_acc", "SummAcc"),
)
_BY_PART = "by task type and answer type"


def part_tables(summaries: Sequence[Summary]) -> list[ReportTable]:
    """Return tables of metrics by family, task type and answer type: of one run, or of each main metric of several."""
    of_plugins = [
        column for plugin in used_plugins(summaries) for column in reporting_of(plugin).parts
    ]
    measures: list[_Measure] = []
    for each in [*_PARTS, *of_plugins]:
        column = TableColumn((each.heading,), group=each.mode)
        title = each.title and f"{each.title}, {_BY_PART}"
        of = partial(_metric, mode=each.mode, metric=each.metric)
        floors = [*_floors(each.mode, summaries)] if each.metric == FAS else []
        measures.append(_Measure(column, title, of, floors))
    return _part_tables(f"B{_BY_PART[1:]}", measures, summaries, part_cell)


def _floors(mode: Mode, summaries: Sequence[Summary]) -> Iterator[tuple[TableColumn, Metric]]:
    """Yield the floor of the first run by part, and the other floor where it is higher."""
    parts = [summary.modes[mode] for summary in summaries if mode in summary.modes]
    part = next((part for part in parts if part.floor and part.headline), None)
    if part is None:
        return
    yield TableColumn((METRICS[part.floor].label, "floor"), group=mode), part.metrics[part.floor]
    for name in FAS_FLOORS:
        higher = higher_parts(part, name) if name != part.floor else None
        if higher is not None:
            yield TableColumn((METRICS[name].label, "if higher"), group=mode), higher


def higher_parts(part: ModeSummary, other: str) -> Metric | None:
    """Return another floor of a mode, only of the parts in which it is higher than the floor; None without any."""
    metric, floor = part.metrics.get(other), part.metrics[part.floor]
    if metric is None:
        return None

    def higher(
        of_other: Mapping[str, Estimate], of_floor: Mapping[str, Estimate]
    ) -> dict[str, Estimate]:
        return {
            name: estimate
            for name, estimate in of_other.items()
            if name in of_floor and estimate.value > of_floor[name].value
        }

    by_group = {
        group: higher(values, floor.by_group.get(group, {}))
        for group, values in metric.by_group.items()
    }
    parts = {
        "by_family": higher(metric.by_family, floor.by_family),
        "by_task_type": higher(metric.by_task_type, floor.by_task_type),
        "by_answer_type": higher(metric.by_answer_type, floor.by_answer_type),
        "by_group": {group: values for group, values in by_group.items() if values},
    }
    return metric.model_copy(update=parts) if any(parts.values()) else None


def _metric(summary: Summary, *, mode: Mode, metric: str) -> Metric | None:
    of_mode = summary.modes.get(mode)
    return of_mode.metrics.get(metric) if of_mode is not None and of_mode.headline else None


def part_cell(estimate: Estimate | None) -> TableCell:
    if estimate is None:
        return TableCell(("",))
    return value_cell(estimate, below=[size(estimate)], style="dim" if estimate.n < FEW else "")


def seconds_tables(summaries: Sequence[Summary]) -> list[ReportTable]:
    """Return tables of mean seconds per query: of the modes of one run, or of each mode of several."""

    def seconds(summary: Summary, *, mode: Mode) -> SecondsByPart | None:
        return summary.modes[mode].seconds if mode in summary.modes else None

    measures = [
        _Measure(TableColumn((m,)), f"Seconds per query, {m}, mean", partial(seconds, mode=m))
        for m in MODES
    ]
    return _part_tables("Seconds per query, mean", measures, summaries, _seconds_cell)


def _seconds_cell(seconds: Seconds | None) -> TableCell:
    if seconds is None:
        return TableCell(("",))
    digits = 2 if seconds.mean >= 0.1 else 4
    return TableCell((f"{seconds.mean:.{digits}f}", str(seconds.n)))


def counts_table(summaries: Sequence[Summary]) -> ReportTable:
    """Return run statistics by mode: records, share of ``no_form``, calls, errors, and the mean cost of a record."""
    title = "Run statistics (turns, tokens and seconds: mean of a record; of form: tokens of closing messages)"
    counts = ("records", "%\nno_form", "not\nparsed", "tool\ncalls", "failed\ncalls")
    table = new_table(
        title, [*counts, "turns", "tokens\nin", "tokens\nout", "of form", "s"], first=13
    )
    for name, (of_run, summary) in zip(short_names(summaries), of_runs(summaries), strict=True):
        if len(summaries) > 1:
            table.add_row(name)
        for mode, part in summary.modes.items():
            table.add_row(f" {mode}", *_counts_cells(part))
            table.notes += [f"{of_run}{mode}: {line}" for line in _count_lines(mode, part)]
    return table


def _counts_cells(part: ModeSummary) -> list[str]:
    counts, spent = part.counts, part.counts.spent
    return [
        str(part.n_records),
        DASH if part.no_form_share is None else percent(part.no_form_share),
        str(counts.unparseable),
        str(counts.tool_calls),
        str(sum(counts.failed_calls.values())),
        f"{spent['turns'].per_record:.1f}" if "turns" in spent else DASH,
        _short(spent.get("input_tokens")),
        _short(spent.get("output_tokens")),
        _short(spent.get("closing_tokens")),
        f"{spent['seconds'].per_record:.2f}" if "seconds" in spent else DASH,
    ]


def _count_lines(mode: Mode, part: ModeSummary) -> Iterator[str]:
    """Yield lines on how the records of a mode ended, on odd calls, on answers and on costs."""
    counts = part.counts
    if counts.terminations:
        word = "halted" if mode == "step-by-step" else "ended"
        yield f"{word}: {_listed(counts.terminations)}"
    if counts.failed_calls:
        yield f"failed calls: {_listed(counts.failed_calls)}"
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
    per_success = {name: each.per_success for name, each in counts.spent.items()}
    seconds = per_success.get("seconds")
    if counts.successes and seconds is not None:
        each = [
            per_success[name] for name in ("input_tokens", "output_tokens") if name in per_success
        ]
        tokens = "" if not each or None in each else f" and {sum(filter(None, each)):.0f} tokens"
        correct = f"{count_text(counts.successes, 'sample')} fully correct"
        yield f"{correct}; {seconds:.2f} s{tokens} per correct sample"
    if cost := counts.spent.get("cost_usd"):
        total, mean = number_text(cost.total, 4), number_text(cost.per_record, 4)
        yield f"cost of the agent, by its reports: {total} USD, {mean} USD per record"
    tokens_in, cached, _ = tokens_of([part])
    if tokens_in:
        yield prompt_tokens_text(tokens_in, cached)
    if counts.spent and "input_tokens" not in counts.spent:
        yield "the agent did not report its tokens"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in counts.items())


def _short(amount: Amount | None) -> str:
    """Return the mean of a record: ``870``, ``12.3k``; a dash if it is not known."""
    if amount is None:
        return DASH
    if amount.per_record >= 1000:
        return f"{amount.per_record / 1000:.1f}k"
    return f"{amount.per_record:.0f}"


def judge_notes(summaries: Sequence[Summary]) -> list[str]:
    """Return lines on the grades of each judge and their agreement, for each run whose answers were graded."""
    notes: list[str] = []
    for of_run, summary in of_runs(summaries):
        if summary.judging is not None:
            notes += [f"{of_run}{line}" for line in _panel_lines(summary.judging)]
    return notes


def _panel_lines(panel: Panel) -> Iterator[str]:
    """Yield a line for each judge, for the agreement between judges, and for each calibration."""
    for judge in panel.judges:
        yield _judge_line(judge, panel)
    for metric, agreement in panel.between_judges.items():
        yield f"{METRICS[metric].label}: the judges agree: {_agreement(agreement)}"
    for check in panel.calibrations:
        yield _calibration_line(check)


def _judge_line(judge: JudgeSummary, panel: Panel) -> str:
    """Return how many answers a judge graded, with the mean, unreadable replies, and the agreement of its votes."""
    metric = METRICS[judge.metric]
    rubrics = f", {panel.rubrics}" if panel.rubrics and has_rubrics(judge.metric) else ""
    text = f"{metric.label} by {judge.judge} (prompt {', '.join(judge.prompts)}{rubrics})"
    text += f": {judge.graded} of {judge.answers} answers graded"
    if judge.mean is not None:
        text += f", mean of single replies {on_scale(judge.mean, metric.out_of)}"
    if judge.unreadable:
        text += f", {judge.unreadable} of {judge.votes} replies without a grade"
    if judge.between_votes:
        text += f"; its votes agree: {_agreement(judge.between_votes)}"
    return text


def _calibration_line(check: Calibration) -> str:
    """Return how a judge graded answers whose grades are known."""
    text = f"{check.judge} on {count_text(check.n, 'answer')} with known grades: "
    text += "none graded" if check.exact is None else f"{percent(check.exact)} % graded exactly"
    if check.lenience is not None:
        text += f", {check.lenience:+.2f} grades on average"
    if check.unreadable:
        text += f", {count_text(check.unreadable, 'reply', 'replies')} without a grade"
    if check.with_labels:
        text += f"; with the known grades: {_agreement(check.with_labels)}"
    return text


def _agreement(agreement: JudgeAgreement) -> str:
    if agreement.alpha is None:
        return f"all grades are the same ({count_text(agreement.n_units, 'answer')})"
    inside = agreement.interval
    interval = f" ({inside.lower:.2f} to {inside.upper:.2f})" if inside else ""
    return f"alpha {agreement.alpha:.2f}{interval}, {count_text(agreement.n_units, 'answer')}"


# --- lost points ------------------------------------------------------------------------------------------------------

_BAR_CELLS = 30


def attribution_tables(attribution: Attribution, notes: Sequence[str] = ()) -> list[Part]:
    """Return the table of the points that a run lost by part, a table by task, and notes."""
    split = attribution.run
    title = f"{split.gap:.1f} of 100 points lost, {count_text(split.n, 'sample')} in end-to-end"
    parts = sorted(split.parts, key=lambda part: -split.parts[part])
    table = new_table(title, ["points", "95 % interval", TableColumn(kind="id")])
    rows = [
        ("score", split.score),
        *((part, split.parts[part]) for part in parts),
        ("gap", split.gap),
    ]
    for name, points in rows:
        interval = interval_text(split.intervals.get(name), _one_digit) or DASH
        style = "green" if name == "score" else "red"
        bar = TableCell(("█" * round(_BAR_CELLS * points / 100),), style)
        label = part_label(name) if name in split.parts else name
        table.add_row(label, _one_digit(points), interval, bar, ruled=name == "gap")
    causes = dict.fromkeys(cause_of(part) for part in ordered_parts(parts))
    table.notes += [f"{CAUSES[cause].label}: {CAUSES[cause].meaning}" for cause in causes]
    table.notes.append("gap: 100 minus score")
    tasks = [_task_table(attribution.tasks, parts)] if len(attribution.tasks) > 1 else []
    return [table, *tasks, *paragraph(notes, "dim")]


_one_digit = "{:.1f}".format


def _task_table(tasks: Mapping[str, Split], parts: list[str]) -> ReportTable:
    """Return a row for each task, by lost points, with the parts that lost most of them."""
    table = new_table(
        "by task", ["samples", "lost", "95 % interval", TableColumn(("most of it",), "words")]
    )
    for name, split in sorted(tasks.items(), key=lambda item: -item[1].gap):
        largest = sorted(parts, key=lambda part: -split.parts.get(part, 0.0))[:2]
        text = ", ".join(
            f"{part_label(part)} {split.parts[part]:.1f}"
            for part in largest
            if split.parts.get(part, 0.0) > 0
        )
        interval = interval_text(split.intervals.get("gap"), _one_digit) or DASH
        table.add_row(
            name, str(split.n), _one_digit(split.gap), interval, text, is_dim=split.n < FEW
        )
    return table
