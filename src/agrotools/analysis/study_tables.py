"""Tables of a study: the scores of its runs, with groups of models that cannot be separated, and the cost of tools."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agrotools.core import Mode, UsageError
from agrotools.core.files import write_whole
from agrotools.core.texts import benchmark_title, count_text, name_in_tables
from agrotools.report.comparison import differences_table
from agrotools.report.correlations import TITLE as CORRELATIONS
from agrotools.report.correlations import correlation_tables
from agrotools.report.layout import (
    DASH,
    DRAWN_NOTE,
    PRIVILEGED_NOTE,
    UNSEALED_NOTE,
    Notes,
    ReportTable,
    TableCell,
    TableColumn,
    difference_cell,
    new_table,
    value_cell,
)
from agrotools.report.results import read_result, results_tables, write_result
from agrotools.report.settings import CALL_RATIO, HARMING, Setting, has_table, settings_for
from agrotools.report.tables import metric_cell, metric_column, shown_metrics
from agrotools.report.text_tables import in_markdown, latex, markdown, tables_page
from agrotools.runner.policies import is_agent, is_baseline, names_endpoint
from agrotools.scoring.metrics import METRICS
from agrotools.scoring.statistics import MIN_CLUSTERS
from agrotools.scoring.summary import RunDifference, Summary

if TYPE_CHECKING:
    from agrotools.analysis.study import HarnessEffects, RunState, StudyCorrelations, StudyResult
    from agrotools.runner.config import EvalConfig

_INTERVAL = "95 % intervals over clusters of samples in brackets; values in percent; n: samples or steps (clusters)."
_TOOLS_NEEDED = "Tools needed: those of the reference calls alone, which hints at the solution; +N: and N others."
_NO_LETTERS = (
    f"No letters: differences are tested between complete runs with equal tools and {MIN_CLUSTERS} clusters or more, "
    "not between quick parts."
)
_Letters = Mapping[tuple[int, Mode, str], str]


def study_tables(result: "StudyResult") -> list[ReportTable]:
    """Return a table of scores for each benchmark, then those of harnesses, of lists of tools and of correlations of
    steps with answers, if there are any."""
    names = dict.fromkeys(run.benchmark for run in result.study.runs)
    of_scores = [_score_table(name, result) for name in names]
    of_harnesses = [_harness_table(effects) for effects in result.effects]
    of_tools = [_tools_table(name, result) for name in names]
    of_steps = [table for each in result.correlations for table in _correlation_tables(each)]
    return [*of_scores, *of_harnesses, *(table for table in of_tools if table.rows), *of_steps]


class _Row(NamedTuple):
    """What a row of a table of scores is about; ``harness``: empty for the protocol of the benchmark."""

    label: str
    harness: str
    tools: str


class _Column(NamedTuple):
    """Column of a table of scores: a metric of a mode."""

    metric: str
    header: TableColumn
    setting: Setting


def _score_table(benchmark: str, result: "StudyResult") -> ReportTable:
    """Return the scores on a benchmark: a row for each model, harness and list of tools."""
    summaries = [summary for run, summary in result.scored if run.benchmark == benchmark]
    rows = _rows(benchmark, result)
    columns = _columns(summaries)
    shows_tools = {row.tools for row in rows} != {"all"}
    shows_harness = len({row.harness for row in rows} - {"none"}) > 1
    headers: list[TableColumn] = []
    if shows_harness:
        headers.append(TableColumn(("harness",), "words"))
    if shows_tools:
        headers.append(TableColumn(("tools",), "words"))
    headers += [column.header for column in columns]
    version = next((summary.benchmark_version for summary in summaries), "")
    selections = dict.fromkeys(str(each.task_types) for each in summaries if each.task_types)
    title = ", ".join([benchmark_title(benchmark, version), *selections])
    table = new_table(title, headers)

    summary_of = {run.folder: (at, summary) for at, (run, summary) in enumerate(result.scored)}
    letters, notes = _letters(result), Notes()
    for row, states in rows.items():
        folders = [state.run.folder for state in states]
        of_row = [summary_of[folder][1] for folder in folders if folder in summary_of]
        cells: list[TableCell | str] = [_row_name(row, states, of_row, notes)]
        if shows_harness:
            protocol = next((summary.protocol for summary in of_row), DASH)
            cells.append(name_in_tables(row.harness) or protocol)
        if shows_tools:
            cells.append(row.tools)
        for column in columns:
            cells.append(_score_cell(column, states, summary_of, letters, notes))
        table.add_row(*cells)

    table.notes.append(_INTERVAL)
    if epochs := _epochs_line(summaries):
        table.notes.append(epochs)
        configs = [run.config for run, _ in result.scored if run.benchmark == benchmark]
        table.notes += seed_lines(configs)
    if any(summary.synthetic for summary in summaries):
        table.notes.append(DRAWN_NOTE)
    if any(letters.values()):
        table.notes.append(
            "Scores of one column that share a letter cannot be separated at the 5 % level (same tools; paired by "
            f"sample, clustered, Holm-adjusted over all {_n_compared(result)} differences of the study)."
        )
    elif len(summaries) > 1:
        table.notes.append(_NO_LETTERS)
    if shows_tools:
        table.notes.append(_TOOLS_NEEDED)
    table.notes += notes.numbered()
    return table


def _epochs_line(summaries: Sequence[Summary]) -> str:
    """Return how often each sample was run; empty if once in all runs."""
    epochs = {part.epochs for summary in summaries for part in summary.modes.values()}
    if epochs <= {1}:
        return ""
    times = " or ".join(map(str, sorted(epochs)))
    return f"Epochs: {times} runs of each sample, whose mean counts; n counts samples, not runs."


def seed_lines(configs: Sequence["EvalConfig"]) -> list[str]:
    """Return the seeds of the runs that have several epochs. A model is sent a seed for each epoch; an agent is given
    the seed of the run and the number of the epoch.
    """
    of_models: set[str] = set()
    of_agents: set[str] = set()
    for config in configs:
        seed, epochs = config.model.seed, config.run.epochs
        if epochs == 1:
            continue
        if is_agent(config.model.name):
            of_agents.add(f"{seed or 0} with epochs 0 to {epochs - 1}")
        elif names_endpoint(config.model.name) and seed is not None:
            of_models.add(", ".join(str(seed + epoch) for epoch in range(epochs)))
    shown = {"Seeds sent to models": of_models, "Seed given to agents": of_agents}
    return [f"{what}: {'; or '.join(sorted(seeds))}." for what, seeds in shown.items() if seeds]


def _rows(benchmark: str, result: "StudyResult") -> "dict[_Row, list[RunState]]":
    """Return the runs of each row. The modes of a row may be those of several runs."""
    rows: dict[_Row, list[RunState]] = {}
    for state in result.states:
        run = state.run
        if run.benchmark == benchmark:
            row = _Row(run.label, run.harness, run.config.tools.offered)
            rows.setdefault(row, []).append(state)
    return rows


def _columns(summaries: Sequence[Summary]) -> list[_Column]:
    """Return the metrics that a table of these runs shows, mode by mode."""
    columns: list[_Column] = []
    for setting in settings_for(summaries):
        if not setting.whole_mode or not has_table(setting, summaries):
            continue
        for metric in shown_metrics(setting, summaries):
            if metric not in (CALL_RATIO, *HARMING):
                header = metric_column(metric, setting, summaries, setting.title)
                columns.append(_Column(metric, header, setting))
    return columns


def _row_name(
    row: _Row, states: "Sequence[RunState]", summaries: Sequence[Summary], notes: Notes
) -> str:
    """Return the label of a row with marks for what holds for all its scores."""
    remarks = [f"stopped: {state.problem}" for state in states if state.problem]
    if any(summary.privileged for summary in summaries):
        remarks.append(PRIVILEGED_NOTE)
    if any(summary.unsealed for summary in summaries):
        remarks.append(UNSEALED_NOTE)
    marks = [notes.mark(remark) for remark in dict.fromkeys(remarks)]
    return f"{row.label}{''.join(marks)}"


def _score_cell(
    column: _Column,
    states: "Sequence[RunState]",
    summary_of: Mapping[Path, tuple[int, Summary]],
    letters: _Letters,
    notes: Notes,
) -> TableCell:
    """Return the score of that run of a row which has the mode of a column, with its letters and notes.

    ``summary_of``: number of a scored run and its summary, by folder.
    """
    mode = column.setting.mode
    state = next((each for each in states if mode in each.modes), states[0])
    if mode in state.lacking:
        return notes.dash(f"not run: this policy has no {mode} mode")
    at, summary = summary_of.get(state.run.folder, (-1, None))
    if summary is None or mode not in summary.modes:
        return TableCell((DASH,), "dim")
    part = summary.modes[mode]
    mark = ""
    if part.headline:
        letters_of_run = letters.get((at, mode, column.metric), "")
        if letters_of_run:
            mark = f" {letters_of_run}"
        mark += "".join(notes.mark(remark) for remark in _remarks(state, states[0], summary, mode))
    return metric_cell(
        column.metric, column.header, column.setting, summary, notes, brief=True, mark=mark
    )


def _remarks(state: "RunState", first: "RunState", summary: Summary, mode: Mode) -> list[str]:
    """Return what is to be known of the scores of a run in a mode; ``first``: the first run of its row."""
    remarks: list[str] = []
    protocol = state.run.config.agent.protocol
    if protocol != first.run.config.agent.protocol:
        remarks.append(f"protocol {protocol}")
    part = summary.modes[mode]
    missing = summary.missing.get(mode)
    if missing:
        remarks.append(
            f"incomplete: {missing} of {part.n_records + missing} records are missing; not compared"
        )
    if part.invalid.n:
        remarks.append(f"{count_text(part.invalid.n, 'invalid record')} left out")
    return remarks


def _tools_table(benchmark: str, result: "StudyResult") -> ReportTable:
    """Return the differences of the same model with other tools, one row for each model and pair of selections."""
    runs = [run for run, _ in result.scored]
    differences: list[RunDifference] = []
    for each in result.differences:
        first, second = runs[each.first], runs[each.second]
        same_model = first.benchmark == benchmark and first.label == second.label
        if same_model and first.config.tools != second.config.tools:
            differences.append(each)

    def name(first: int, second: int) -> tuple[str, ...]:
        tools = f"tools {runs[second].config.tools} minus {runs[first].config.tools}"
        return runs[first].label, tools

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
    names = [name_in_tables(harness) for harness in effects.harnesses]
    table = new_table(title, names)
    for model in effects.models:
        means = [effects.means[model, harness] for harness in effects.harnesses]
        table.add_row(model, *map(value_cell, means))
    table.add_row(f"minus {names[0]}", "", *map(difference_cell, effects.differences), ruled=True)
    some = next(iter(effects.means.values()))
    table.notes = [
        f"Means in percent on the {some.n} samples ({some.n_clusters} clusters) of all these runs; differences in "
        "points, over all models, with adjusted p."
    ]
    return table


def _correlation_tables(correlated: "StudyCorrelations") -> list[ReportTable]:
    """Return the table of the runs on a benchmark with one list of tools; empty with fewer than three models."""
    tools = f", tools {correlated.tools}" if correlated.tools != "all" else ""
    title = f"{CORRELATIONS}: {correlated.benchmark}{tools}"
    return correlation_tables(correlated.correlations, correlated.runs, title)


# --- groups of models that cannot be separated -----------------------------------------------------------------------


def _letters(result: "StudyResult") -> dict[tuple[int, Mode, str], str]:
    """Return the letters of each run by mode and metric. Runs that share a letter cannot be separated."""
    letters: dict[tuple[int, Mode, str], str] = {}
    # Runs that were not compared never share a letter: each group goes on where the one before it in the column ended.
    n_given = Counter[tuple[str, Mode, str]]()
    for (benchmark, _, _, mode, metric), differences in _compared_together(result).items():
        pairs = [(each.first, each.second) for each in differences]
        runs = {at for pair in pairs for at in pair}
        separated = {frozenset((each.first, each.second)) for each in differences if each.differs()}
        values: dict[int, float] = {}
        for at in runs:
            summary = result.scored[at][1]
            values[at] = summary.modes[mode].metrics[metric].overall.value
        best_first = sorted(runs, key=lambda at: -values[at])
        for group in inseparable_groups(best_first, separated):
            letter = _letter(n_given[benchmark, mode, metric])
            n_given[benchmark, mode, metric] += 1
            for at in group:
                letters[at, mode, metric] = letters.get((at, mode, metric), "") + letter
    return letters


def _compared_together(
    result: "StudyResult",
) -> dict[tuple[str, str, bool, Mode, str], list[RunDifference]]:
    """Return the tested differences of runs with equal tools, by benchmark, tools, privilege, mode and metric."""
    together: dict[tuple[str, str, bool, Mode, str], list[RunDifference]] = {}
    for each in result.differences:
        first, summary = result.scored[each.first]
        second, _ = result.scored[each.second]
        tools = first.config.tools.offered
        if tools == second.config.tools.offered and each.difference.p_adjusted is not None:
            key = (first.benchmark, tools, summary.privileged, each.mode, each.metric)
            together.setdefault(key, []).append(each)
    return together


def _letter(number: int) -> str:
    """Return the letter of a group: a to z, then aa, bb and so on."""
    return chr(ord("a") + number % 26) * (number // 26 + 1)


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


class WrittenResults(NamedTuple):
    """Files with the results of a study, and why runs have none."""

    results: Sequence[Path]
    table: Path
    text: str
    """The table, in Markdown."""
    problems: Sequence[str]


def write_results(result: "StudyResult", folder: Path, name: str) -> WrittenResults:
    """Write the result of each run of a model to ``folder``, and a table of them as ``NAME.md``.

    Baselines have no result of their own: they are the floor and the ceiling of the models.
    """
    written: list[Path] = []
    problems: list[str] = []
    for run, summary in result.scored:
        if not is_baseline(summary.model):
            try:
                written.append(write_result(run.folder, folder))
            except UsageError as error:
                problems.append(error.message)
    text = markdown(results_tables([read_result(path) for path in written]))
    table = folder / f"{name}.md"
    if written:
        write_whole(table, text.encode())
    return WrittenResults(written, table, text, problems)
