"""Runs on GTA, ThinkGeo and Agent-X in the metrics of their papers: as published, corrected, beside printed rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from agrotools.core import Mode
from agrotools.report.cells import DASH, Notes, name_cell, new_table, percent, run_names, stacked, value_cell
from agrotools.report.published import PublishedRow, paper, published_rows, same_model
from agrotools.scoring import PublishedFigures, Summary

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

MARK = "†"


class Layout(NamedTuple):
    """A table as a paper lays it out: the columns (end of the metric's id to heading), and where the printed rows are.

    ``best``: the column whose best two printed rows are shown beside those of the models that were run.
    """

    family: str
    mode: Mode
    title: str
    columns: Mapping[str, str]
    table: str
    best: str

    def metric(self, column: str) -> str:
        """The id of the metric in a column."""
        return f"{self.family.replace('-', '_')}.{column}"


_STEPS = {"inst_acc": "Inst", "tool_acc": "Tool", "arg_acc": "Arg", "summ_acc": "Summ"}
_AGENT_X_REASONING = {
    "ground_s": "Ground_s",
    "tool_p": "Tool_p",
    "tool_acc": "Tool_acc",
    "faith_acc": "Faith",
    "context_s": "Context_s",
    "fact_p": "Fact_p",
    "sem_acc": "Sem_acc",
}
_AGENT_X_OUTCOME = {
    "goal_acc": "Goal",
    "goal_acc_imggen": "Goal*",
    "toolset_acc": "Tool_acc_s",
    "toolset_f1": "Tool sets, F1",
    "step_s": "Step_s",
    "clarity": "Clarity",
    "reward": "Reward",
}
LAYOUTS = (
    Layout("gta", "step-by-step", "GTA, step by step", _STEPS, "4", "summ_acc"),
    Layout(
        "gta",
        "end-to-end",
        "GTA, end to end",
        {"p_f1": "P", "o_f1": "O", "l_f1": "L", "c_f1": "C", "ans_acc": "Ans", "ans_acc_imggen": "Ans+I"},
        "4",
        "ans_acc",
    ),
    Layout("thinkgeo", "step-by-step", "ThinkGeo, step by step", _STEPS, "3", "summ_acc"),
    Layout(
        "thinkgeo",
        "end-to-end",
        "ThinkGeo, end to end",
        {"p_f1": "P", "o_f1": "O", "l_f1": "L", "ans_acc": "Ans", "ans_i": "Ans_I"},
        "3",
        "ans_acc",
    ),
    Layout("agent-x", "no-tool", "Agent-X, no tools, steps and reasoning", _AGENT_X_REASONING, "4", "sem_acc"),
    Layout("agent-x", "no-tool", "Agent-X, no tools, outcome", _AGENT_X_OUTCOME, "4", "goal_acc"),
    Layout("agent-x", "end-to-end", "Agent-X, end to end, steps and reasoning", _AGENT_X_REASONING, "4", "sem_acc"),
    Layout("agent-x", "end-to-end", "Agent-X, end to end, outcome", _AGENT_X_OUTCOME, "4", "goal_acc"),
)
SAR_TABLE = "A1"
"""ThinkGeo's table of radar images."""
QWEN_TABLE = "8"
"""Agent-X's table of the same models, judged by Qwen-14B."""
_AGENT_X_NAMES = {
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
"""Metrics of Agent-X's tables, and ours of the same criterion."""
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
"""What Agent-X's notebooks count: steps by what they hold, then samples by what is wrong with them (they overlap)."""


def published_blocks(summaries: Sequence[Summary], notes: Notes) -> list["RenderableType"]:
    """A table for each benchmark and mode that runs have published metrics of; nothing where none has."""
    blocks: list[RenderableType] = []
    for layout in LAYOUTS:
        shown = _of_layout(layout, summaries)
        if any(figures.reference or figures.stops for _, _, figures in shown):
            blocks += _block(layout, shown, notes)
    for mode in ("no-tool", "end-to-end"):
        if counted := [each for each in _shown("agent-x", mode, summaries) if each[2].counts]:
            blocks.append(_counts_table(mode, counted))
    return blocks


Shown = tuple[str, Summary, PublishedFigures]
"""The name of a run, what it came to, and its figures of a mode."""


def _of_layout(layout: Layout, summaries: Sequence[Summary]) -> list[Shown]:
    return _shown(layout.family, layout.mode, summaries)


def _shown(family: str, mode: Mode, summaries: Sequence[Summary]) -> list[Shown]:
    return [
        (name, summary, figures)
        for name, summary in zip(run_names(summaries), summaries, strict=True)
        if (figures := _figures(summary, mode)) is not None and figures.family == family
    ]


def _counts_table(mode: Mode, shown: Sequence[Shown]) -> "RenderableType":
    """A line for each count, a column for each run."""
    table = new_table(f"Agent-X ({mode}): steps and errors, as its notebooks count them")
    table.add_column("", overflow="fold", min_width=14)
    for name, summary, _ in shown:
        table.add_column(name_cell(name, summary), justify="right", overflow="fold")
    for key, words in _COUNTS.items():
        cells = (f"{figures.counts[key]:,}" if key in figures.counts else DASH for _, _, figures in shown)
        table.add_row(stacked([words], value_style=""), *(stacked([cell]) for cell in cells))
    return table


def _figures(summary: Summary, mode: Mode) -> PublishedFigures | None:
    return summary.modes[mode].published if mode in summary.modes else None


def _block(layout: Layout, shown: Sequence[Shown], notes: Notes) -> Iterator["RenderableType"]:
    from rich.text import Text

    table = new_table(f"{layout.title}: as its scorer has it, and corrected")
    table.add_column("", overflow="fold", min_width=14)
    for heading in layout.columns.values():
        table.add_column(heading, justify="right")
    for name, summary, figures in shown:
        marks = (
            notes.mark(f"Not comparable with the printed rows: {'; '.join(figures.differs)}.")
            if figures.differs
            else ""
        )
        table.add_row(name_cell(f"{name}{marks}", summary), *(stacked([""]) for _ in layout.columns))
        table.add_row(
            stacked(["  as published"], value_style=""),
            *(_reference_cell(figures, layout.metric(column), notes) for column in layout.columns),
        )
        table.add_row(
            stacked(["  corrected"], value_style=""),
            *(_corrected_cell(figures, layout.metric(column), notes) for column in layout.columns),
        )
    rows = _printed(layout, [summary for _, summary, _ in shown])
    if rows:
        about = paper(_source(layout.family))
        note = notes.mark(f"{about.title} (arXiv {about.arxiv}), Table {rows[0].table}, as printed. {about.protocol}")
        table.add_row(stacked([f"printed {MARK}{note}"]), *(stacked([""]) for _ in layout.columns))
        for model in dict.fromkeys(row.model for row in rows):
            table.add_row(
                stacked([f"  {model}"], value_style="dim"),
                *(_printed_cell(rows, model, layout.metric(column), notes) for column in layout.columns),
            )
    yield table
    counts = shown[0][2].counts
    told = ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in counts.items())
    if len(shown) == 1 and told and layout.family != "agent-x":
        yield Text(f"counted by the published scorer: {told}", style="dim")


def _reference_cell(figures: PublishedFigures, metric: str, notes: Notes) -> "Text":
    if figures.stops:
        return notes.dash(f"The published scorer ends with an exception here: {figures.stops}")
    if metric in figures.left_out:
        return notes.dash(figures.left_out[metric])
    value = figures.reference.get(metric)
    return stacked([DASH if value is None else percent(value)])


def _corrected_cell(figures: PublishedFigures, metric: str, notes: Notes) -> "Text":
    estimate = figures.corrected.get(f"{metric}_corrected")
    if estimate is None:
        return notes.dash(figures.left_out.get(f"{metric}_corrected", "nothing here is counted by it"))
    return value_cell(estimate)


def _printed(layout: Layout, summaries: Sequence[Summary]) -> list[PublishedRow]:
    """The printed rows of the models that were run, and of the best two others by a column of the table."""
    rows = _rows_of(layout, _table_of(layout, summaries))
    wanted = {row.model for row in rows for summary in summaries if same_model(row.model, summary.model)}
    last = [row for row in rows if row.metric == layout.metric(layout.best)]
    best = sorted(last, key=lambda row: row.number, reverse=True)[:2]
    chosen = wanted | {row.model for row in best}
    return [row for row in rows if row.model in chosen]


def _source(family: str) -> str:
    """What the printed figures of a benchmark are called."""
    return "agentx" if family == "agent-x" else family


def _table_of(layout: Layout, summaries: Sequence[Summary]) -> str:
    """The paper's table that comes closest to how the runs were made."""
    if any(summary.benchmark_options.get("split") == "sar" for summary in summaries):
        return SAR_TABLE
    judges = [judge.judge.casefold() for summary in summaries if summary.judging for judge in summary.judging.judges]
    by_qwen = layout.family == "agent-x" and judges and all("qwen" in name and "14b" in name for name in judges)
    return QWEN_TABLE if by_qwen else layout.table


def _rows_of(layout: Layout, table: str) -> list[PublishedRow]:
    rows = [row for row in published_rows(_source(layout.family)) if row.table == table]
    if layout.family == "agent-x":  # whose settings are kinds of metrics
        known = [row for row in rows if row.metric in _AGENT_X_NAMES]
        return [replace(row, metric=_AGENT_X_NAMES[row.metric]) for row in known]
    return [row for row in rows if row.setting == layout.mode]


def _printed_cell(rows: Sequence[PublishedRow], model: str, metric: str, notes: Notes) -> "Text":
    found = next((row for row in rows if row.model == model and row.metric == metric), None)
    if found is None:
        return stacked([DASH], value_style="dim")
    marks = "".join(notes.mark(f"{MARK} {doubt}") for doubt in found.doubts)
    return stacked([f"{found.percent}{marks}"], value_style="dim")
