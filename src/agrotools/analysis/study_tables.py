"""Tables of a study: the scores of its runs, with groups of models that cannot be separated, and the cost of tools."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agrotools.core import Mode
from agrotools.core.files import write_whole
from agrotools.core.texts import benchmark_title, count_text
from agrotools.report.comparison import differences_table
from agrotools.report.layout import (
    DASH,
    PRIVILEGED_NOTE,
    SYNTHETIC_NOTE,
    UNSEALED_NOTE,
    Notes,
    ReportTable,
    TableCell,
    TableColumn,
    difference_cell,
    new_table,
    value_cell,
)
from agrotools.report.settings import CALL_RATIO, HARMING, Setting, has_table, settings_for
from agrotools.report.tables import metric_cell, metric_column, shown_metrics
from agrotools.report.text_tables import in_markdown, latex, markdown, tables_page
from agrotools.scoring.metrics import METRICS
from agrotools.scoring.statistics import MIN_CLUSTERS
from agrotools.scoring.summary import RunDifference, Summary

if TYPE_CHECKING:
    from agrotools.analysis.study import HarnessEffects, RunState, StudyResult

_INTERVAL = "95 % intervals over clusters of samples in brackets; values in percent; n: samples or steps (clusters)."
_TOOLS_NEEDED = "Tools needed: those of the reference calls alone, which hints at the solution; +N: and N others."
_QUICK = "no differences are tested between runs of a quick part"
_Letters = Mapping[tuple[int, Mode, str], str]


def study_tables(result: "StudyResult") -> list[ReportTable]:
    """Return a table of scores for each benchmark, then those of harnesses and of lists of tools, if there are any."""
    names = dict.fromkeys(run.benchmark for run in result.study.runs)
    tables = [_score_table(name, result) for name in names]
    tables += map(_harness_table, result.effects)
    return [*tables, *(table for name in names if (table := _tools_table(name, result)).rows)]


def _score_table(benchmark: str, result: "StudyResult") -> ReportTable:
    # The modes of a row may be those of several runs.
    by_row: dict[tuple[str, str, str], list[RunState]] = {}
    for state in result.states:
        if state.run.benchmark == benchmark:
            by_row.setdefault(
                (state.run.label, state.run.harness, state.run.config.tools.offered), []
            ).append(state)
    summary_of = {run.folder: (at, summary) for at, (run, summary) in enumerate(result.scored)}
    of_benchmark = [
        each
        for (run, _), each in zip(result.scored, summary_of.values(), strict=True)
        if run.benchmark == benchmark
    ]
    summaries = [summary for _, summary in of_benchmark]
    settings = [
        each for each in settings_for(summaries) if each.whole_mode and has_table(each, summaries)
    ]
    columns = [
        (metric, metric_column(metric, setting, summaries, setting.title), setting)
        for setting in settings
        for metric in shown_metrics(setting, summaries)
        if metric not in (CALL_RATIO, *HARMING)
    ]
    shows_tools = {tools for _, _, tools in by_row} != {"all"}
    shows_harness = len({harness for _, harness, _ in by_row if harness != "none"}) > 1
    more = [
        TableColumn((name,), "words")
        for name, shown in (("harness", shows_harness), ("tools", shows_tools))
        if shown
    ]
    version = next((summary.benchmark_version for summary in summaries), "")
    table = new_table(
        benchmark_title(benchmark, version), [*more, *(column for _, column, _ in columns)]
    )
    letters, notes = _letters(result), Notes()
    for (label, harness, tools), states in by_row.items():
        found = [
            summary_of[state.run.folder][1] for state in states if state.run.folder in summary_of
        ]
        remarks = [f"stopped: {state.problem}" for state in states if state.problem]
        remarks += [PRIVILEGED_NOTE] * any(summary.privileged for summary in found)
        remarks += [UNSEALED_NOTE] * any(summary.unsealed for summary in found)
        name = f"{label}{''.join(map(notes.mark, dict.fromkeys(remarks)))}"
        cells = (_score_cell(*each, states, summary_of, letters, notes) for each in columns)
        harness = harness or next((summary.protocol for summary in found), DASH)
        table.add_row(name, *[harness] * shows_harness, *[tools] * shows_tools, *cells)
    table.notes += [
        _INTERVAL,
        *dict.fromkeys(SYNTHETIC_NOTE for summary in summaries if summary.synthetic),
    ]
    if any(letters.values()):
        table.notes.append(
            "Scores of one column that share a letter cannot be separated at the 5 % level (same tools; paired by "
            f"sample, clustered, Holm-adjusted over all {_n_compared(result)} differences of the study)."
        )
    elif len(summaries) > 1:
        quick = any(summary.quick for summary in summaries)
        why = _QUICK if quick else f"differences need {MIN_CLUSTERS} clusters and equal tools"
        table.notes.append(f"No letters, because {why}.")
    table.notes += [_TOOLS_NEEDED] * shows_tools + notes.numbered()
    return table


def _score_cell(
    metric: str,
    column: TableColumn,
    setting: Setting,
    states: "Sequence[RunState]",
    summary_of: Mapping[Path, tuple[int, Summary]],
    letters: _Letters,
    notes: Notes,
) -> TableCell:
    """Return the score of that run of a row which has the mode of a column, with its letters and notes."""
    mode = setting.mode
    state = next((each for each in states if mode in each.modes), states[0])
    if mode in state.lacking:
        return notes.dash(f"not run: this policy has no {mode} mode")
    at, summary = summary_of.get(state.run.folder, (-1, None))
    if summary is None or mode not in summary.modes:
        return TableCell((DASH,), "dim")
    marks: list[str] = []
    protocol = state.run.config.agent.protocol
    if protocol != states[0].run.config.agent.protocol:
        marks.append(f"protocol {protocol}")
    part = summary.modes[mode]
    if missing := summary.missing.get(mode):
        marks.append(
            f"incomplete: {missing} of {part.n_records + missing} records are missing; not compared"
        )
    if part.invalid.n:
        marks.append(f"{count_text(part.invalid.n, 'invalid record')} left out")
    group = letters.get((at, mode, metric), "")
    mark = f"{f' {group}' * bool(group)}{''.join(map(notes.mark, marks))}" if part.headline else ""
    return metric_cell(metric, column, setting, summary, notes, brief=True, mark=mark)


def _tools_table(benchmark: str, result: "StudyResult") -> ReportTable:
    """Return the differences of the same model with other tools, one row for each model and pair of selections."""
    runs = [run for run, _ in result.scored]
    differences = [
        each
        for each in result.differences
        if runs[each.first].benchmark == benchmark
        and runs[each.first].label == runs[each.second].label
        and runs[each.first].config.tools != runs[each.second].config.tools
    ]

    def name(first: int, second: int) -> tuple[str, ...]:
        return runs[
            first
        ].label, f"tools {runs[second].config.tools} minus {runs[first].config.tools}"

    table = differences_table(f"Cost of the list of tools: {benchmark}", differences, name)
    n = _n_compared(result)
    table.notes.append(
        f"Differences in points, paired by sample. *: below 5 %, Holm-adjusted over {n} differences."
    )
    return table


def _harness_table(effects: "HarnessEffects") -> ReportTable:
    """Return the scores of models (rows) in harnesses (columns), and the differences of harnesses."""
    tools = f", tools {effects.tools}" if effects.tools != "all" else ""
    title = f"Harness: {effects.benchmark}, {effects.mode}, {METRICS[effects.metric].label}{tools}"
    table = new_table(title, effects.harnesses)
    for model in effects.models:
        table.add_row(
            model, *(value_cell(effects.means[model, harness]) for harness in effects.harnesses)
        )
    table.add_row(
        f"minus {effects.harnesses[0]}", "", *map(difference_cell, effects.differences), ruled=True
    )
    some = next(iter(effects.means.values()))
    table.notes = [
        f"Means in percent on the {some.n} samples ({some.n_clusters} clusters) of all these runs; differences in "
        "points, over all models, with adjusted p."
    ]
    return table


# --- groups of models that cannot be separated -----------------------------------------------------------------------


def _letters(result: "StudyResult") -> dict[tuple[int, Mode, str], str]:
    """Return the letters of each run by mode and metric. Runs that share a letter cannot be separated."""
    runs = [run for run, _ in result.scored]
    tables: dict[tuple[str, str, bool, Mode, str], list[RunDifference]] = {}
    for each in result.differences:
        first, second = runs[each.first], runs[each.second]
        tools = first.config.tools.offered
        if tools == second.config.tools.offered and each.difference.p_adjusted is not None:
            privileged = result.scored[each.first][1].privileged
            key = (first.benchmark, tools, privileged, each.mode, each.metric)
            tables.setdefault(key, []).append(each)
    letters: dict[tuple[int, Mode, str], str] = {}
    for (_, _, _, mode, metric), differences in tables.items():
        nodes = {at for each in differences for at in (each.first, each.second)}
        separated = {frozenset((each.first, each.second)) for each in differences if each.differs()}
        values = {
            at: result.scored[at][1].modes[mode].metrics[metric].overall.value for at in nodes
        }
        groups = inseparable_groups(sorted(nodes, key=lambda at: -values[at]), separated)
        for number, group in enumerate(groups):
            letter = chr(ord("a") + number % 26) * (number // 26 + 1)
            for at in group:
                letters[at, mode, metric] = letters.get((at, mode, metric), "") + letter
    return letters


def inseparable_groups(nodes: Sequence[int], separated: set[frozenset[int]]) -> list[list[int]]:
    """Return the largest groups of ``nodes`` without a separated pair, in the order of their members.

    These are the maximal cliques of the graph of inseparable pairs (Bron and Kerbosch 1973, doi:10.1145/362342.362367).
    """
    neighbours = {
        one: {other for other in nodes if other != one and frozenset((one, other)) not in separated}
        for one in nodes
    }
    groups: list[list[int]] = []

    def extend(group: list[int], candidates: list[int], excluded: set[int]) -> None:
        if not candidates and not excluded:
            groups.append(group)
        while candidates:
            node, *candidates = candidates
            near = neighbours[node]
            extend([*group, node], [each for each in candidates if each in near], excluded & near)
            excluded = excluded | {node}

    extend([], list(nodes), set())
    return groups


def _n_compared(result: "StudyResult") -> int:
    return sum(each.difference.p_adjusted is not None for each in result.differences)


# --- files -----------------------------------------------------------------------------------------------------------


def write_tables(tables: Sequence[ReportTable], folder: Path, title: str) -> list[Path]:
    """Write the tables to ``study.md``, ``study.tex`` and ``study.html`` in ``folder``, and return the paths."""
    contents = {
        "study.md": f"# {in_markdown(title)}\n\n{markdown(tables)}",
        "study.tex": latex(tables, title),
        "study.html": tables_page(tables, title),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_whole(folder / name, content.encode())
    return [folder / name for name in contents]
