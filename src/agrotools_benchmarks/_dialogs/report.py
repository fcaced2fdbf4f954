"""Tables of runs in the metrics of their benchmark's paper: published and corrected values, and printed rows."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from agrotools.core import Mode
from agrotools.report.correlations import OVER_MODELS, correlation_cell, models_text
from agrotools.report.layout import (
    DASH,
    Notes,
    Part,
    ReportTable,
    TableCell,
    name_cell,
    new_table,
    percent,
    run_names,
    value_cell,
)
from agrotools.report.paper import add_printed, rows_beside
from agrotools.report.published import PublishedRow, paper, published_rows
from agrotools.scoring.correlations import MIN_MODELS, model_of_run, over_models
from agrotools.scoring.embedders import WITH_COSINES
from agrotools.scoring.summary import Correlation, PublishedFigures, Summary
from agrotools_benchmarks._dialogs.plugin_parts import TableLayout

ANSWER, ANSWER_LABEL = "ans_acc", "Ans"
"""Accuracy of answers: suffix of the id of its metric, and its heading in the tables of GTA and ThinkGeo."""


def published_tables(
    family: str,
    layouts: Mapping[Mode, TableLayout],
    summaries: Sequence[Summary],
    notes: Notes,
    split_tables: Mapping[str, str] = MappingProxyType({}),
) -> list[Part]:
    """Return a table for each mode in which runs have metrics of the paper, with the printed rows below.

    ``split_tables``: table number for a value of the option ``split``, replacing that of the layout.
    """
    blocks: list[Part] = []
    for mode, layout in layouts.items():
        if figures := figures_shown(family, mode, summaries):
            runs = [summary for _, summary, _ in figures]
            split = _split_of(runs, split_tables)
            rows = _printed(family, mode, split_tables.get(split, layout.table), runs)
            if split and not rows:
                notes.mark(f"{layout.title}: the paper prints no rows of split {split}.")
            table = figures_table(family, layout, figures, rows, notes)
            for board in layout.boards:
                later_rows = _printed(family, mode, board, runs)
                where = f"{paper(family).code}, {paper(family).tables[board]}, as printed there."
                _add_printed_rows(table, family, layout, later_rows, notes, where)
            counts = ", ".join(
                f"{name.replace('_', ' ')} {n}" for name, n in figures[0][2].counts.items()
            )
            table.notes += (
                [f"counted by the published scorer: {counts}"]
                if len(figures) == 1 and counts
                else []
            )
            blocks.append(table)
    layout = layouts["step-by-step"]
    table = split_tables.get(_split_of(summaries, split_tables), layout.table)
    return [*blocks, *_correlations(family, layout._replace(table=table), summaries)]


def _split_of(runs: Sequence[Summary], split_tables: Mapping[str, str]) -> str:
    """Return the split of the first run that has one with a table of its own; empty if none has."""
    splits = (str(run.benchmark_options.get("split", "")) for run in runs)
    return next((split for split in splits if split in split_tables), "")


def _correlations(
    family: str, layout: TableLayout, summaries: Sequence[Summary]
) -> list[ReportTable]:
    """Return a table of the paper's correlations over models: those of the runs, above those of its printed rows.

    They are of each metric of steps with the accuracy of answers, as published; none with fewer than three models.
    ``layout``: that of the mode step-by-step.
    """
    of_models = [each for each in summaries if model_of_run(each.model)]
    steps = figures_shown(family, "step-by-step", of_models)
    answers = figures_shown(family, "end-to-end", of_models)
    answers_of = {id(summary): figures.reference for _, summary, figures in answers}
    runs: list[tuple[str, Mapping[str, float | None]]] = []
    for _, summary, figures in steps:
        if id(summary) in answers_of:
            runs.append((summary.model, {**figures.reference, **answers_of[id(summary)]}))
    if len({model for model, _ in runs}) < MIN_MODELS:
        return []
    name = layout.title.partition(",")[0]
    title = f"{name}: correlation of steps with {ANSWER_LABEL} over models, as its scorer has both"
    table = new_table(title, layout.columns.values())
    about = paper(family)
    table.notes += ["Pearson's r with 95 % intervals. A correlation shows no cause.", OVER_MODELS]
    rows = {"": correlations_of(family, layout, runs)}
    if printed := printed_correlations(family, layout):
        rows["printed: "] = printed
        table.notes.append(
            f"printed: calculated from Table {layout.table} of {about.title} (arXiv {about.arxiv}), whose Figure 5 "
            "shows such correlations without numbers."
        )
    for label, row in rows.items():
        size = next((models_text(each) for each in row if each is not None), "")
        table.add_row(f"{label}{size}", *map(correlation_cell, row))
    return [table]


def printed_correlations(family: str, layout: TableLayout) -> list[Correlation | None]:
    """Return the correlation over the models of a printed table of each of its metrics of steps; empty without one."""
    values: dict[str, dict[str, float | None]] = {}
    for row in published_rows(family):
        if row.table == layout.table:
            values.setdefault(row.model, {})[row.metric] = float(row.number)
    return correlations_of(family, layout, [*values.items()]) if values else []


def correlations_of(
    family: str, layout: TableLayout, runs: Sequence[tuple[str, Mapping[str, float | None]]]
) -> list[Correlation | None]:
    """Return the correlation of each metric of steps with the accuracy of answers; None if a run lacks one of both.

    ``runs``: the model of each run, and its values by metric.
    """
    answer = f"{family}.{ANSWER}"
    answers = [values.get(answer) for _, values in runs]
    found: list[Correlation | None] = []
    for column in layout.columns:
        step = f"{family}.{column}"
        steps = [values.get(step) for _, values in runs]
        known = [
            (x, y) for x, y in zip(steps, answers, strict=True) if x is not None and y is not None
        ]
        if len(known) < len(runs):
            found.append(None)
            continue
        found.append(
            over_models(
                [model for model, _ in runs],
                [x for x, _ in known],
                [y for _, y in known],
                (step, answer),
            )
        )
    return found


Shown = tuple[str, Summary, PublishedFigures]
"""Name of a run, its summary, and its published figures of one mode."""


def figures_shown(family: str, mode: Mode, summaries: Sequence[Summary]) -> list[Shown]:
    """Return the runs that have published figures of the family in the mode."""
    return [
        (name, summary, figures)
        for name, summary in zip(run_names(summaries), summaries, strict=True)
        if mode in summary.modes
        and (figures := summary.modes[mode].published)
        and figures.family == family
    ]


def figures_table(
    family: str,
    layout: TableLayout,
    runs: Sequence[Shown],
    rows: Sequence[PublishedRow],
    notes: Notes,
    benchmark: str = "",
) -> ReportTable:
    """Return a table of runs, published and corrected, above the printed ``rows``.

    ``family``: prefix of metric ids. ``benchmark``: id of the benchmark of the printed rows, if it differs.
    """
    figures_of_runs = [figures for _, _, figures in runs]
    headings = (
        f"{heading}{_embedder_mark(name, figures_of_runs, notes)}"
        for name, heading in layout.columns.items()
    )
    table = new_table(f"{layout.title}: as its scorer has it, and corrected", headings)
    for name, summary, figures in runs:
        note = f"Not comparable with the printed rows: {'; '.join(figures.differs)}."
        mark = notes.mark(note) if figures.differs else ""
        table.add_row(name_cell(f"{name}{mark}", summary))
        for words, cell in (("as published", _reference_cell), ("corrected", _corrected_cell)):
            table.add_row(
                f"  {words}",
                *(cell(figures, f"{family}.{column}", notes) for column in layout.columns),
            )
    if rows:
        about = paper(benchmark or family)
        note = f"{about.title} (arXiv {about.arxiv}), Table {rows[0].table}, as printed. {about.protocol}"
        _add_printed_rows(table, family, layout, rows, notes, note)
    return table


def _add_printed_rows(
    table: ReportTable,
    family: str,
    layout: TableLayout,
    rows: Sequence[PublishedRow],
    notes: Notes,
    source: str,
) -> None:
    """Add printed rows below those of runs, a line for each model; ``source``: where they are printed."""
    lines: dict[tuple[str, ...], dict[str, PublishedRow]] = {}
    for row in rows:
        lines.setdefault((row.model,), {})[row.metric] = row
    columns = [f"{family}.{column}" for column in layout.columns]
    add_printed(table, columns, lines, notes, source)


def _embedder_mark(column: str, run_figures: Sequence[PublishedFigures], notes: Notes) -> str:
    """Return a footnote mark on the heading of a metric that uses cosines; the note names the embedding models."""
    used = ", ".join(dict.fromkeys(figures.embedder for figures in run_figures if figures.embedder))
    if not used or column not in WITH_COSINES:
        return ""
    return notes.mark(f"By cosines of {used} where answers are subjective or images.")


def _reference_cell(figures: PublishedFigures, metric: str, notes: Notes) -> TableCell:
    if figures.stops:
        return notes.dash(f"The published scorer ends with an exception here: {figures.stops}")
    if metric in figures.left_out:
        return notes.dash(_reason(figures.left_out[metric]))
    value = figures.reference.get(metric)
    return TableCell((DASH if value is None else percent(value),), "bold")


def _corrected_cell(figures: PublishedFigures, metric: str, notes: Notes) -> TableCell:
    estimate = figures.corrected.get(f"{metric}_corrected")
    if estimate is None:
        return notes.dash(
            _reason(figures.left_out.get(f"{metric}_corrected", "nothing here is counted by it"))
        )
    return value_cell(estimate, below=[f"n {estimate.n}"])


def _reason(left_out: str) -> str:
    return f"{left_out} (--embedder)" if "embedder" in left_out else left_out


def _printed(
    family: str, mode: Mode, table: str, summaries: Sequence[Summary]
) -> list[PublishedRow]:
    """Return the printed rows of the evaluated models, of the best open and of the best API model (by answer accuracy
    or SummAcc)."""
    rows = [row for row in published_rows(family) if row.table == table and row.setting == mode]
    metric = f"{family}.{ANSWER if mode == 'end-to-end' else 'summ_acc'}"
    return rows_beside(
        rows, [each.model for each in summaries], [row for row in rows if row.metric == metric]
    )
