"""Report of runs on Agent-X: tables of its criteria, the rows of its paper, and the counts of its notebooks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agrotools.benchmarks._dialogs.plugin_parts import TableLayout
from agrotools.benchmarks._dialogs.report import figures_shown, figures_table
from agrotools.core import Mode
from agrotools.plugin import Reporting
from agrotools.report.layout import DASH, Notes, name_cell, new_table, stacked
from agrotools.report.published import PublishedRow, published_rows, same_model
from agrotools.report.settings import Setting
from agrotools.scoring import Metric, PublishedFigures, Summary

STEPS = tuple(f"agent_x.{name}" for name in ("ground_s", "tool_p", "tool_acc", "step_s", "clarity", "reward"))
OUTCOME = tuple(
    f"agent_x.{name}" for name in ("faith_acc", "context_s", "fact_p", "sem_acc", "goal_acc", "toolset_acc")
)
if TYPE_CHECKING:
    from rich.console import RenderableType

FAMILY = "agent_x"
"""Prefix of its metrics."""
MODES: Mapping[Mode, str] = {"no-tool": "no tools", "end-to-end": "end to end"}
PARTS: Mapping[str, Mapping[str, str]] = {
    "steps and reasoning": {
        "ground_s": "Ground_s",
        "tool_p": "Tool_p",
        "tool_acc": "Tool_acc",
        "faith_acc": "Faith",
        "context_s": "Context_s",
        "fact_p": "Fact_p",
        "sem_acc": "Sem_acc",
    },
    "outcome": {
        "goal_acc": "Goal",
        "goal_acc_imggen": "Goal*",
        "toolset_acc": "Tool_acc_s",
        "toolset_f1": "Tool sets, F1",
        "step_s": "Step_s",
        "clarity": "Clarity",
        "reward": "Reward",
    },
}
"""The columns of two tables: the end of each metric's id, and its heading."""
_TABLE, _TABLE_OF_QWEN = "4", "8"
"""The same models, judged by GPT-4o and by Qwen-14B."""
_BEST = ("agent_x.sem_acc", "agent_x.goal_acc")
"""Metrics whose best two printed rows are shown."""
_NAMES = {
    "agentx.grounding_score": "agent_x.ground_s",
    "agentx.tool_precision": "agent_x.tool_p",
    "agentx.tool_acc": "agent_x.tool_acc",
    "agentx.faithfulness": "agent_x.faith_acc",
    "agentx.context_score": "agent_x.context_s",
    "agentx.factual_precision": "agent_x.fact_p",
    "agentx.semantic_acc": "agent_x.sem_acc",
    "agentx.goal_acc": "agent_x.goal_acc",
    "agentx.goal_acc_imggen": "agent_x.goal_acc_imggen",
    "agentx.toolset_acc": "agent_x.toolset_acc",
}
_COUNTS = {
    "steps": "steps",
    "successful_calls": "steps with a tool and an output",
    "failed_calls": "steps without one of them",
    "invalid_calls": "steps with an unknown tool",
    "samples_without_steps": "samples without steps",
    "no_response": "neither steps nor an answer",
    "only_answer": "an answer without steps",
    "invalid_format": "wrong form",
    "answer_in_invalid_format": "wrong form, with an answer",
    "conflicting_tools": "a step that names two tools",
    "repeated_tool": "the same tool twice in a row",
}
"""Counts of the notebooks: steps by their content, then samples by their errors (these overlap)."""


def _judged_metrics(mode: Mode) -> Callable[[Summary], Mapping[str, Metric] | None]:
    """Those of a run where a judge was asked and they do not stand beside the printed rows."""

    def metrics(summary: Summary) -> Mapping[str, Metric] | None:
        part = summary.modes.get(mode)
        if part is None or (part.published is not None and part.published.reference):
            return None
        return part.metrics if any(metric in part.metrics for metric in (*STEPS, *OUTCOME)) else None

    return metrics


def printed_rows(columns: Mapping[str, str], summaries: Sequence[Summary]) -> list[PublishedRow]:
    """The printed rows of the models that were run, and of the best two others by one of ``columns``.

    They are of the table whose judge is that of the runs, where they have one of the paper's two; else of the first.
    """
    judges = [judge.judge.casefold() for summary in summaries if summary.judging for judge in summary.judging.judges]
    by_qwen = bool(judges) and all("qwen" in name and "14b" in name for name in judges)
    table = _TABLE_OF_QWEN if by_qwen else _TABLE
    rows = [
        replace(row, metric=_NAMES[row.metric])
        for row in published_rows("agentx")
        if row.table == table and row.metric in _NAMES
    ]
    printed_models = {row.model for row in rows for summary in summaries if same_model(row.model, summary.model)}
    ranked = [row for row in rows if row.metric in _BEST and row.metric.removeprefix("agent_x.") in columns]
    best = sorted(ranked, key=lambda row: row.number, reverse=True)[:2]
    chosen = printed_models | {row.model for row in best}
    return [row for row in rows if row.model in chosen]


def counts_table(mode: Mode, runs: Sequence[tuple[str, Summary, PublishedFigures]]) -> "RenderableType":
    """A line for each count, a column for each run."""
    table = new_table(f"Agent-X, {MODES[mode]}: steps and errors, as its notebooks count them")
    table.add_column("", overflow="fold", min_width=14)
    for name, summary, _ in runs:
        table.add_column(name_cell(name, summary), justify="right", overflow="fold")
    for key, words in _COUNTS.items():
        cells = (f"{figures.counts[key]:,}" if key in figures.counts else DASH for _, _, figures in runs)
        table.add_row(stacked([words], value_style=""), *(stacked([cell]) for cell in cells))
    return table


def published_tables(summaries: Sequence[Summary], notes: Notes) -> list["RenderableType"]:
    """Runs in the metrics of the paper, above its printed rows, and what its notebooks count."""
    tables: list[RenderableType] = []
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
