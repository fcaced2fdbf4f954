"""Tables of the scores of runs: a table for each setting with a row for each run, then tables by task and answer type.

Values are in percent. The interval is below its value; exceptions are explained in notes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from agrotools.core import Mode
from agrotools.core.texts import benchmark_title, count_text
from agrotools.report.comparison import MOST_PAIRS, between_runs_table, error_tables
from agrotools.report.correlations import correlations_between_runs
from agrotools.report.layout import (
    DASH,
    DRAWN_NOTE,
    FEW,
    NO_CONSTANT,
    PRIVILEGED_NOTE,
    UNSEALED_NOTE,
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
    lacks_constant,
    name_cell,
    new_table,
    of_runs,
    on_scale,
    open_text_notes,
    paragraph,
    percent,
    run_names,
    shortened,
    size,
    value_cell,
    whole_points,
)
from agrotools.report.parts import counts_table, judge_notes, part_tables, seconds_tables
from agrotools.report.settings import (
    CALL_RATIO,
    OUTCOME,
    PROCESS,
    Setting,
    has_table,
    judge_alone_scores,
    plugin_notes,
    plugin_tables,
    settings_for,
    used_plugins,
    variants_of,
)
from agrotools.scoring.metrics import (
    FAS,
    FAS_FLOORS,
    FAS_TEXT,
    METRICS,
    OPEN_TEXT_FLOOR,
    PREDICTIONS,
)
from agrotools.scoring.statistics import MIN_CLUSTERS, Estimate
from agrotools.scoring.summary import Metric, ModeSummary, Summary, shown_gains


def tables(summaries: Sequence[Summary], *, details: bool = True) -> list[Part]:
    """Return title, a table of runs for each setting, and notes; with ``details`` also parts and counts."""
    notes = Notes()
    parts: list[Part] = [*_title(summaries)]
    if not any(summary.modes for summary in summaries):
        return [*parts, Paragraph("No records to score yet.", "")]
    parts += paragraph(warning_lines(summaries), "bold yellow")
    parts += paragraph(scoring_lines(summaries), "yellow")
    parts += main_tables(summaries, notes, most_pairs=None if details else MOST_PAIRS)
    parts += paragraph([*plugin_notes(summaries), *judge_notes(summaries)])
    parts += [*detail_tables(summaries), *error_tables(summaries)] if details else []
    return [*parts, *paragraph(["", *general_notes(summaries), *notes.numbered()], "dim")]


class PageTables(NamedTuple):
    """Tables for a page: main ones, those by parts, and notes on all of them. Errors are elsewhere on it."""

    main: list[Part]
    parts: list[Part]
    notes: list[str]


def page_tables(summaries: Sequence[Summary]) -> PageTables:
    """Return the tables for a page."""
    notes = Notes()
    main, parts = main_tables(summaries, notes), detail_tables(summaries)
    lines = [
        *judge_notes(summaries),
        *plugin_notes(summaries),
        *general_notes(summaries),
        *notes.numbered(),
    ]
    return PageTables(main, parts, lines)


def main_tables(
    summaries: Sequence[Summary], notes: Notes, *, most_pairs: int | None = None
) -> list[Part]:
    """Return the tables of metrics, of gains from tools, of repeats and of differences between the runs."""
    shown = [setting for setting in settings_for(summaries) if has_table(setting, summaries)]
    parts: list[Part] = [setting_table(setting, summaries, notes) for setting in shown]
    parts += plugin_tables(summaries, notes)
    if any(summary.no_tool_part and summary.no_tool_part.gain for summary in summaries):
        parts.append(gain_table(summaries, notes))
    parts += repeats_table(summaries, notes)
    parts += between_runs_table(summaries, most=most_pairs)
    return [*parts, *correlations_between_runs(summaries)]


def detail_tables(summaries: Sequence[Summary]) -> list[Part]:
    """Return tables by task and answer type, counts and seconds."""
    return [*part_tables(summaries), counts_table(summaries), *seconds_tables(summaries)]


def repeats_table(summaries: Sequence[Summary], notes: Notes) -> list[Part]:
    """Return a table of agreement between epochs; empty if no run has several.

    A run whose score is withheld has dashes, because these figures are of the same records.
    """
    headings = ("epochs", "pass^k", "pass@k", "flips", "re-run", "re-run and samples")
    table = new_table("Repeats, FAS", headings, first=24)
    for name, summary in zip(run_names(summaries), summaries, strict=True):
        for mode, part in summary.modes.items():
            repeats, metric = part.repeats, part.metrics.get(FAS)
            if repeats is not None and metric is not None:
                k = repeats.epochs
                if not part.headline:
                    dashes = [notes.dash(_no_headline(part))] * (len(headings) - 1)
                    table.add_row(TableCell((name, mode)), str(k), *dashes)
                    continue
                noise = (
                    interval_text(each) or DASH for each in (repeats.rerun, metric.overall.interval)
                )
                shares = (
                    percent(each.value)
                    for each in (repeats.pass_hat[k], repeats.pass_at[k], repeats.flips)
                )
                table.add_row(TableCell((name, mode)), str(k), *shares, *noise)
    table.notes.append(
        "pass^k, pass@k: all, any of k runs of a sample right, k the number of epochs (others: --json); flips: samples "
        "right in some epochs only; re-run: 95 % interval of the mean given these samples and one more that flips, "
        "beside that of the score."
    )
    return [table] if table.rows else []


def _title(summaries: Sequence[Summary]) -> Iterator[Paragraph]:
    benchmarks = dict.fromkeys(
        (s.benchmark or "benchmark", s.benchmark_version, s.synthetic) for s in summaries
    )
    for name, version, synthetic in benchmarks:
        yield Paragraph(f"{benchmark_title(name, version)}{f'  {DRAWN_NOTE}' * synthetic}", "bold")
    if len(benchmarks) > 1:
        yield Paragraph("These runs use different benchmarks and are not comparable.", "bold red")


def warning_lines(summaries: Sequence[Summary]) -> list[str]:
    """Return the warnings above the tables: missing records, and frequent terminations without an answer."""
    return [
        f"{of_run}{line}" for of_run, summary in of_runs(summaries) for line in summary.warnings
    ]


def scoring_lines(summaries: Sequence[Summary]) -> list[str]:
    """Return lines on parts of a benchmark and weights, and one for each score with an interval over sources."""
    lines = [_QUICK] if any(summary.quick for summary in summaries) else []
    types = dict.fromkeys(str(summary.task_types) for summary in summaries if summary.task_types)
    lines += [_TASK_TYPES.format(each) for each in types]
    parts = [part for summary in summaries for part in summary.modes.values()]
    lines += dict.fromkeys(_WEIGHTED[part.weighting] for part in parts if part.weighting)
    shards = dict.fromkeys(summary.shard for summary in summaries if summary.shard)
    lines += [SHARD.format(shard) for shard in shards]
    for of_run, summary in of_runs(summaries):
        for mode, part in summary.modes.items():
            estimate = part.metrics[FAS].overall if FAS in part.metrics else None
            if part.headline and estimate and part.by_source:
                lines.append(f"{of_run}{mode}: {source_sentence(estimate, part.by_source)}")
    return lines


def source_sentence(estimate: Estimate, by_source: Estimate) -> str:
    """Return the interval of a score on these places and on a new source, and which difference shows two models."""
    on_places = _reach_text(estimate, count_text(estimate.n_clusters, "cluster"))
    on_sources = _reach_text(by_source, count_text(by_source.n_clusters, "source"))
    return f"FAS {percent(estimate.value)}. On these places: {on_places}. On a new source: {on_sources}"


def _reach_text(estimate: Estimate, of_what: str) -> str:
    """Return interval, half width and detectable difference of a score over clusters or sources."""
    interval = estimate.interval
    if interval is None:
        return f"no interval ({of_what})"
    half_width = whole_points((interval.upper - interval.lower) / 2)
    text = f"{interval_text(interval)} (half width {half_width}, {of_what})"
    if estimate.detectable is None:
        return text
    least = whole_points(estimate.detectable)
    return f"{text}; unpaired, two models like this one are told apart from {least} points on (power 80 %)"


SHARD = (
    "shard {}: part of a run, whose scores are no result; agrotools merge joins it with the others"
)
_TASK_TYPES = "{}: a part of the benchmark (--task-type), whose scores are not those of the whole"
_WEIGHTED = {
    "task types": "scores are means over task types: each task type counts the same, however many questions it has",
    "samples": "scores are weighted means: the benchmark gives each of its questions a weight",
}
_QUICK = (
    "quick part: a small, fixed selection of the questions for a first look. It is too small to rank models: agrotools "
    "eval BENCHMARK, without --quick, runs all questions"
)


def setting_table(setting: Setting, summaries: Sequence[Summary], notes: Notes) -> ReportTable:
    """Return the table of a setting, with a row for each run and a column for each metric."""
    metrics = shown_metrics(setting, summaries)
    columns = {metric: metric_column(metric, setting, summaries) for metric in metrics}
    title = setting.title + _by_rubrics(summaries) * setting.by_rubrics + _synthetic(summaries)
    table = new_table(title, columns.values())
    for name, summary in zip(run_names(summaries), summaries, strict=True):
        cells = [metric_cell(*each, setting, summary, notes) for each in columns.items()]
        table.add_row(name_cell(name, summary), *cells)
    below = [
        notes.legend({metric: METRICS[metric].label for metric in metrics}),
        notes.legend(_variant_names(metrics, setting, summaries)),
        _net_note(metrics, setting, summaries),
        _words_note(metrics, setting, summaries),
        _detectable(setting, summaries),
    ]
    table.notes += filter(None, below)
    return table


def _words_note(metrics: Sequence[str], setting: Setting, summaries: Sequence[Summary]) -> str:
    """Return by which rules SummAcc scored text; empty if it counts none."""
    parts = [summary.modes.get(setting.mode) for summary in summaries]
    counts = [part.counts.words_in_answers for part in parts if part is not None]
    rules = dict.fromkeys(rule for each in counts for rule in each)
    if not rules or "summ_acc" not in metrics:
        return ""
    return f"SummAcc scores text by a plain rule, never by a judge: {', '.join(rules)}"


def _net_note(metrics: Sequence[str], setting: Setting, summaries: Sequence[Summary]) -> str:
    """Return what scores net of guess are; empty if the table has none."""
    nets = (_net_of_guess(metric, setting, each) for metric in metrics for each in summaries)
    if all(net is None for net in nets):
        return ""
    return "net of guess: (score - guess) / (100 - guess); below 0 it is worse than the usual plan"


def _net_of_guess(metric: str, setting: Setting, summary: Summary) -> float | None:
    """Return the part of what the usual plan leaves open that a score of steps reaches; None if it is not shown."""
    variants = dict(_shown_variants(metric, setting, summary))
    metrics = setting.of(summary) or {}
    if metric not in PROCESS or metric not in metrics or "guess" not in variants:
        return None
    guess = metrics[variants["guess"]].overall.value
    return (metrics[metric].overall.value - guess) / (1 - guess) if guess < 1 else None


def metric_column(
    metric: str, setting: Setting, summaries: Sequence[Summary], group: str = ""
) -> TableColumn:
    """Return the column of a metric, headed by its label and its size if that is the same in all runs."""
    sizes = {
        size(metrics[metric].overall)
        for summary in summaries
        if (metrics := setting.of(summary)) and metric in metrics
    }
    heading = f"{METRICS[metric].label}{' ↓' * METRICS[metric].lower_is_better}"
    return TableColumn((heading, f"n {sizes.pop()}" if len(sizes) == 1 else ""), group=group)


def shown_metrics(setting: Setting, summaries: Sequence[Summary]) -> list[str]:
    """Return the metrics of a setting that have a column in the table of these runs."""
    has = set[str]().union(*(setting.of(summary) or {} for summary in summaries))
    if any(
        setting.mode in summary.modes and summary.modes[setting.mode].call_ratio
        for summary in summaries
    ):
        has.add(CALL_RATIO)
    absent = _absent(summaries) | {CALL_RATIO}
    if setting.plots_left_out:  # plots need a tool, so their samples are excluded from no-tool
        has, absent = has - {"plot"}, absent | {"plot"}
    return [metric for metric in setting.metrics if metric in has or metric not in absent]


def _absent(summaries: Sequence[Summary]) -> frozenset[str]:
    """Return the metrics that have no column unless a run has them: metrics on request and of slots without samples."""
    parts = [part for summary in summaries for part in summary.modes.values()]
    scored = {metric for part in parts for metric in part.metrics}
    unscored = any(
        not part.metrics for part in parts
    )  # a mode without scores gives no information about the slots
    columns = {metric for setting in settings_for(summaries) for metric in setting.metrics}
    on_request = frozenset(metric for metric in columns if METRICS[metric].on_request)
    return (
        on_request
        if unscored
        else on_request | {name for name in (*OUTCOME[1:], PROCESS[-1]) if name not in scored}
    )


def _synthetic(summaries: Sequence[Summary]) -> str:
    return " (drawn pictures)" * all(summary.synthetic for summary in summaries)


def _by_rubrics(summaries: Sequence[Summary]) -> str:
    """Return the part of a title that names the rubrics of the judges."""
    used = {
        summary.judging.rubrics
        for summary in summaries
        if summary.judging and summary.judging.rubrics
    }
    return f", by {' and '.join(sorted(used))}"


def _variant_names(
    metrics: Sequence[str], setting: Setting, summaries: Sequence[Summary]
) -> dict[str, str]:
    """Return the names of the variants printed with metrics, by id: ``strict in column ToolAcc``."""
    return {
        variant: f"{word} in column {METRICS[metric].label}"
        for metric in metrics
        for summary in summaries
        for word, variant in _shown_variants(metric, setting, summary)
    }


def _shown_variants(metric: str, setting: Setting, summary: Summary) -> list[tuple[str, str]]:
    """Return label and id of the variants in a cell."""
    metrics, part = setting.of(summary), summary.modes.get(setting.mode)
    if not metrics or part is None or not part.headline:
        return []
    others = {*FAS_FLOORS} - {part.floor}  # of two floors, the higher one is the floor
    variants = [each for each in variants_of(metric) if each[1] not in others]
    return [(word, variant) for word, variant in variants if variant in metrics]


def metric_cell(
    metric: str,
    column: TableColumn,
    setting: Setting,
    summary: Summary,
    notes: Notes,
    *,
    brief: bool = False,
    mark: str = "",
) -> TableCell:
    """Return the score of a run in the column of a metric; a dash with its reason if there is none.

    ``brief`` leaves out variants of the metric; ``mark`` follows the value."""
    metrics = setting.of(summary)
    if metrics is None:
        return notes.dash(_without_setting(metric, setting, summary))
    score = metrics.get(metric)
    of_mode = summary.modes[setting.mode]
    if metric == CALL_RATIO:
        return _call_ratio_cell(of_mode, notes)
    if score is None:
        return notes.dash(_without_score(metric, metrics, setting, summary))
    out_of = METRICS[metric].out_of
    if not of_mode.headline:
        ends = score.bounds
        bounds = f"{on_scale(ends.lower, out_of)}..{on_scale(ends.upper, out_of)}" if ends else ""
        return TableCell((f"{DASH}{notes.mark(_no_headline(of_mode, bounds))}", bounds), "dim")
    shown = [] if brief else _shown_variants(metric, setting, summary)
    variants = [f"{word} {percent(metrics[variant].overall.value)}" for word, variant in shown]
    net = None if brief else _net_of_guess(metric, setting, summary)
    if net is not None:
        variants.append(f"net {percent(net)}")
    sizes = size(score.overall) if not column.heading[1] else ""
    cell = value_cell(score.overall, below=[sizes, *variants], out_of=out_of)
    return cell._replace(lines=(f"{cell.lines[0]}{mark}", *cell.lines[1:]))


def _without_setting(metric: str, setting: Setting, summary: Summary) -> str:
    """Return the reason why a run has no metric of a setting."""
    if setting.mode not in summary.modes:
        return "not run in this mode"
    return _without_answers(metric)


def _without_answers(metric: str) -> str:
    """Return the reason why a run with scores has none of a metric."""
    if METRICS[metric].by_judge:
        return f"no judge graded an answer of this run: {_ASK_JUDGE}"
    return _NO_SLOT.format(METRICS[metric].label)


_ASK_JUDGE = "agrotools score RUN --judge MODEL"


def _without_score(
    metric: str, metrics: Mapping[str, Metric], setting: Setting, summary: Summary
) -> str:
    """Return the reason why a run has no value of a metric."""
    if summary.modes[setting.mode].counts.formless:
        words = metrics.get(FAS_TEXT)
        of_words = f"; FAS text {percent(words.overall.value)}" if words else ""
        return f"the agent submits no form: its own words alone are scored{of_words}"
    if metric == FAS and OPEN_TEXT_FLOOR in metrics:
        return ONLY_OPEN_TEXT
    return _without_answers(metric) if metrics else _without_scores(setting, summary)


ONLY_OPEN_TEXT = f"the answers are open text, which a judge scores: {_ASK_JUDGE}"
_NO_SLOT = "no scored sample has an answer of the kind {} scores"


def _call_ratio_cell(of_mode: ModeSummary, notes: Notes) -> TableCell:
    """Return a cell with the ratio of calls made to calls needed, both totals and the number of answers."""
    ratio = of_mode.call_ratio
    if ratio is None:
        return notes.dash("no sample whose reference has calls was answered")
    if not of_mode.headline:
        return notes.dash(_no_headline(of_mode))
    return TableCell(
        (
            f"{ratio.mean:.2f}",
            f"{ratio.made} / {ratio.needed} calls",
            count_text(ratio.n, "sample"),
        ),
        "bold",
    )


def _without_scores(setting: Setting, summary: Summary) -> str:
    """Return the reason why a run has no score at all in a setting."""
    part = summary.modes[setting.mode]
    if part.invalid.n == part.n_records:
        return "no reply was received"
    if not setting.whole_mode:
        return "no sample of no-tool has a valid end-to-end record yet"
    judged = any(
        METRICS[metric].by_judge for plugin in used_plugins([summary]) for metric in plugin.metrics
    )
    if judged:
        return f"these answers are scored by a judge only: {_ASK_JUDGE}"
    missing = summary.missing.get(setting.mode, 0)
    if not missing:
        return "no record of this mode has a score"
    return (
        f"no record has a score; {missing} are missing: run the same agrotools eval command again"
    )


def _no_headline(part: ModeSummary, bounds: str = "") -> str:
    below = "; below, the bounds if all of them were wrong or all correct" if bounds else ""
    return f"no score: {part.withheld} (--allow-invalid shows it anyway){below}"


def _detectable(setting: Setting, summaries: Sequence[Summary]) -> str:
    """Return a line with the detectable difference of each metric, the largest over the runs."""
    parts: list[str] = []
    for metric in setting.metrics:
        estimates = [
            metrics[metric].overall
            for summary in summaries
            if (metrics := setting.of(summary))
            and metric in metrics
            and summary.modes[setting.mode].headline
        ]
        if least := detectable_points(estimates, METRICS[metric].out_of):
            parts.append(f"{METRICS[metric].label} {least}")
    return (
        f"Detectable difference between two runs like these, unpaired (points): {', '.join(parts)}"
        if parts
        else ""
    )


def gain_table(summaries: Sequence[Summary], notes: Notes) -> ReportTable:
    """Return the table of gains from tools, with a row for each run."""
    title = f"Gain from tools: end to end minus no tools, paired by sample, points{_synthetic(summaries)}"
    gained = {
        metric
        for summary in summaries
        if summary.no_tool_part
        for metric in summary.no_tool_part.gain
    }
    absent = _absent(summaries)
    metrics = [metric for metric in OUTCOME[:-1] if metric in gained or metric not in absent]
    headings = [*(METRICS[metric].label for metric in metrics), "detectable"]
    table = new_table(title, headings)
    for name, summary in zip(run_names(summaries), summaries, strict=True):
        table.add_row(name_cell(name, summary), *_gain_cells(summary, metrics, notes))
    gains = [metric.overall for summary in summaries for metric in shown_gains(summary).values()]
    table.notes += adjusted_lines(gains)
    return table


def _gain_cells(summary: Summary, metrics: Sequence[str], notes: Notes) -> Iterator[TableCell]:
    gain = summary.no_tool_part.gain if summary.no_tool_part else {}
    hidden = any(
        not summary.modes[mode].headline
        for mode in ("no-tool", "end-to-end")
        if mode in summary.modes
    )
    if hidden or not gain:
        note = "one of the modes has no score" if hidden else "needs both modes"
        yield from (notes.dash(note) for _ in (*metrics, "detectable"))
        return
    for metric in metrics:
        reason = _NO_SLOT.format(METRICS[metric].label)
        yield difference_cell(gain[metric].overall) if metric in gain else notes.dash(reason)
    # A few questions may all be without an answer, and such have no FAS.
    detectable = detectable_points([gain["fas"].overall]) if "fas" in gain else None
    yield TableCell((detectable or DASH,), "dim")


def general_notes(summaries: Sequence[Summary]) -> list[str]:
    """Return the notes to the tables: units, excluded samples and invalid records."""
    lines = [
        "Values in percent with their 95 % intervals over clusters of samples that share a file "
        f"(no interval under {MIN_CLUSTERS} clusters); n: samples or steps (clusters); parts under {FEW} are grey on a "
        "screen."
    ]
    lines += open_text_notes(summaries)
    if any(lacks_constant(part) for each in summaries for part in each.modes.values()):
        lines.append(NO_CONSTANT)
    without_tools = (s for s in summaries if "no-tool" in s.modes and not judge_alone_scores(s))
    excluded = (s.no_tool_part.n_excluded for s in without_tools if s.no_tool_part)
    left_out = max(excluded, default=0)
    if left_out:
        lines.append(
            f"No-tool excludes samples that need a raster processed or a plot drawn: {left_out}."
        )
    if any(summary.privileged for summary in summaries):
        lines.append(PRIVILEGED_NOTE)
    if any(summary.unsealed for summary in summaries):
        lines.append(UNSEALED_NOTE)
    if any(summary.tools != "all" for summary in summaries):
        lines.append(
            "tools needed: only the tools of the reference calls were offered, which hints at the solution; "
            "tools +N: these and N others."
        )
    return [*lines, *caveat_lines(summaries)]


def caveat_lines(summaries: Sequence[Summary]) -> list[str]:
    """Return a line for each mode with recorded observations, one for each with invalid records, and what to do."""
    lines: list[str] = []
    for name, summary in zip(run_names(summaries), summaries, strict=True):
        for mode, part in summary.modes.items():
            if n := part.counts.recorded:
                lines.append(
                    f"{name}, {mode}: {n} of {part.counts.tool_calls} observations are recorded ones: no tool was run "
                    "for them, and calls that are not in the reference got an error."
                )
        lines += [
            invalid_line(name, mode, part) for mode, part in summary.modes.items() if part.invalid.n
        ]
    own = [summary for summary in summaries if summary.protocol != PREDICTIONS]
    reasons = [
        reason
        for summary in own
        for part in summary.modes.values()
        for reason in part.invalid.reasons
    ]
    if reasons:
        # A reason with a hint of its own ends with it in brackets.
        has_hints = all(reason.endswith(")") for reason in reasons)
        how = "if necessary with a smaller --concurrency or a larger --timeout"
        if has_hints:
            how = "after the change that its reason names"
        lines.append(f"Run the same agrotools eval command again to retry invalid samples, {how}.")
    return lines


_LONGEST_REASON = 240
"""Characters of a reason that are shown: with its hint, which stands at its end."""


def invalid_line(name: str, mode: Mode, part: ModeSummary) -> str:
    """Return how many records of a mode are invalid, for which reasons, and between which bounds its scores lie."""
    bounds = [
        f"{METRICS[metric].label} {percent(metric_score.bounds.lower)}..{percent(metric_score.bounds.upper)}"
        for metric, metric_score in part.metrics.items()
        if metric_score.bounds is not None and metric in (*OUTCOME, *PROCESS)
    ]
    reasons = ", ".join(
        f"{shortened(reason, _LONGEST_REASON)} ({n})" for reason, n in part.invalid.reasons.items()
    )
    return (
        f"{name}, {mode}: {part.invalid.n} of {part.n_records} records invalid ({percent(part.invalid.share)} %): "
        f"{reasons}. They are excluded from the averages. "
        f"With all of them wrong or all of them right: {', '.join(bounds) or 'unknown'}."
    )
