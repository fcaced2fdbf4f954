"""Report of runs on Agent-X: tables of its criteria, printed rows of its paper, and counts of its notebooks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from agrotools.core import Mode
from agrotools.report.contracts import Reporting
from agrotools.report.layout import (
    DASH,
    Notes,
    Part,
    ReportTable,
    TableColumn,
    name_cell,
    new_table,
)
from agrotools.report.paper import rows_beside
from agrotools.report.published import PublishedRow, published_rows
from agrotools.report.settings import Setting
from agrotools.scoring.summary import Metric, PublishedFigures, Summary
from agrotools_benchmarks._dialogs.plugin_parts import TableLayout
from agrotools_benchmarks._dialogs.report import figures_shown, figures_table
from agrotools_benchmarks.agent_x.plugin import CRITERIA, FACTS

_BY_STEP = ("ground_s", "tool_p", "tool_acc", "step_s", "clarity", "reward")
STEPS = tuple(f"agent_x.{name}" for name in _BY_STEP)
OUTCOME = tuple(f"agent_x.{name}" for name in CRITERIA if name not in _BY_STEP)
FAMILY = "agent_x"
"""Prefix of its metric ids."""
MODES: Mapping[Mode, str] = {"no-tool": "no tools", "end-to-end": "end to end"}
_HEADINGS = {name: criterion.label for name, criterion in CRITERIA.items()}
_OUTCOME = ("goal_acc", "toolset_acc", "step_s", "clarity", "reward")
PARTS: Mapping[str, Mapping[str, str]] = {
    "steps and reasoning": {
        name: label for name, label in _HEADINGS.items() if name not in _OUTCOME
    },
    "outcome": {
        "goal_acc": "Goal",
        "goal_acc_imggen": "Goal*",
        "toolset_acc": "Tool_acc_s",
        "toolset_f1": "Tool sets, F1",
        **{name: _HEADINGS[name] for name in _OUTCOME[2:]},
    },
}
"""Columns of the two tables: suffix of each metric's id, and its heading."""
_TABLE, _TABLE_OF_QWEN = "4", "8"
"""Tables of the same models, judged by GPT-4o and by Qwen-14B."""
_BEST = ("agent_x.sem_acc", "agent_x.goal_acc")
"""Metrics by which the best models are chosen."""
_PRINTED = {
    f"agentx.{each.printed}": f"agent_x.{name}" for name, each in CRITERIA.items() if each.printed
}
_NAMES = {**_PRINTED, "agentx.goal_acc_imggen": "agent_x.goal_acc_imggen"}
"""Metrics by their ids in the published rows."""


def _judged_metrics(mode: Mode) -> Callable[[Summary], Mapping[str, Metric] | None]:
    """Return a function for the metrics of a judged run, unless they are already shown with the printed rows."""

    def metrics(summary: Summary) -> Mapping[str, Metric] | None:
        part = summary.modes.get(mode)
        if part is None or (part.published is not None and part.published.reference):
            return None
        return (
            part.metrics if any(metric in part.metrics for metric in (*STEPS, *OUTCOME)) else None
        )

    return metrics


def printed_rows(columns: Mapping[str, str], summaries: Sequence[Summary]) -> list[PublishedRow]:
    """Return the printed rows of the evaluated models, of the best open and of the best API model in ``columns``.

    If the runs used one of the paper's two judges, the rows are from the table of that judge, otherwise from the first.
    """
    judges = [
        judge.judge.casefold()
        for summary in summaries
        if summary.judging
        for judge in summary.judging.judges
    ]
    by_qwen = bool(judges) and all("qwen" in name and "14b" in name for name in judges)
    table = _TABLE_OF_QWEN if by_qwen else _TABLE
    of_table = (
        row for row in published_rows("agentx") if row.table == table and row.metric in _NAMES
    )
    rows = [replace(row, metric=_NAMES[row.metric]) for row in of_table]
    best = next(metric for metric in _BEST if metric.removeprefix("agent_x.") in columns)
    return rows_beside(
        rows, [each.model for each in summaries], [row for row in rows if row.metric == best]
    )


def counts_table(mode: Mode, runs: Sequence[tuple[str, Summary, PublishedFigures]]) -> ReportTable:
    """Return a table with one row per count and one column per run."""
    headings = [TableColumn(name_cell(name, summary).lines, "run") for name, summary, _ in runs]
    table = new_table(
        f"Agent-X, {MODES[mode]}: steps and errors, as its notebooks count them", headings
    )
    for key, words in FACTS["counts"].items():
        cells = (
            f"{figures.counts[key]:,}" if key in figures.counts else DASH for _, _, figures in runs
        )
        table.add_row(words, *cells)
    return table


def published_tables(summaries: Sequence[Summary], notes: Notes) -> list[Part]:
    """Return tables of runs in the paper's metrics, with its printed rows, and tables of the notebooks' counts."""
    tables: list[Part] = []
    for mode, words in MODES.items():
        run_figures = figures_shown("agent-x", mode, summaries)
        if any(figures.reference or figures.stops for _, _, figures in run_figures):
            for part, columns in PARTS.items():
                layout = TableLayout(f"Agent-X, {words}, {part}", columns)
                rows = printed_rows(columns, [summary for _, summary, _ in run_figures])
                tables.append(figures_table(FAMILY, layout, run_figures, rows, notes, "agentx"))
        if any(figures.counts for _, _, figures in run_figures):
            tables.append(counts_table(mode, run_figures))
    return tables


REPORTING = Reporting(
    tables=published_tables,
    settings=tuple(
        Setting(
            f"Agent-X ({mode}), {what}, by a judge",
            mode,
            columns,
            _judged_metrics(mode),
            by_rubrics=True,
        )
        for mode in MODES
        for what, columns in (("steps", STEPS), ("reasoning and outcome", OUTCOME))
    ),
)
