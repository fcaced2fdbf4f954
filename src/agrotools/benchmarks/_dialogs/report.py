"""Tables of runs in the metrics of their benchmark's paper: published and corrected values, and printed rows."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from rich.console import RenderableType
from rich.text import Text

from agrotools.benchmarks._dialogs.plugin_parts import TableLayout
from agrotools.core import Mode
from agrotools.report.layout import DASH, Notes, harmless, name_cell, new_table, percent, run_names, stacked, value_cell
from agrotools.report.paper import add_printed, rows_beside
from agrotools.report.published import PublishedRow, paper, published_rows
from agrotools.scoring import Summary
from agrotools.scoring.embedders import WITH_COSINES
from agrotools.scoring.summary import PublishedFigures


def published_tables(
    family: str,
    layouts: Mapping[Mode, TableLayout],
    summaries: Sequence[Summary],
    notes: Notes,
    split_tables: Mapping[str, str] = MappingProxyType({}),
) -> list[RenderableType]:
    """Return a table for each mode in which runs have metrics of the paper, with the printed rows below.

    ``split_tables``: table number for a value of the option ``split``, replacing that of the layout.
    """
    blocks: list[RenderableType] = []
    for mode, layout in layouts.items():
        if figures := figures_shown(family, mode, summaries):
            runs = [summary for _, summary, _ in figures]
            split = next((split for run in runs if (split := run.benchmark_options.get("split")) in split_tables), "")
            rows = _printed(family, mode, split_tables.get(str(split), layout.table), runs)
            if split and not rows:
                notes.mark(f"{layout.title}: the paper prints no rows of split {harmless(str(split))}.")
            blocks.append(figures_table(family, layout, figures, rows, notes))
            blocks += _counts(figures)
    return blocks


Shown = tuple[str, Summary, PublishedFigures]
"""Name of a run, its summary, and its published figures of one mode."""


def figures_shown(family: str, mode: Mode, summaries: Sequence[Summary]) -> list[Shown]:
    """Return the runs that have published figures of the family in the mode."""
    return [
        (name, summary, figures)
        for name, summary in zip(run_names(summaries), summaries, strict=True)
        if mode in summary.modes and (figures := summary.modes[mode].published) and figures.family == family
    ]


def figures_table(
    family: str,
    layout: TableLayout,
    runs: Sequence[Shown],
    rows: Sequence[PublishedRow],
    notes: Notes,
    benchmark: str = "",
) -> RenderableType:
    """Return a table of runs, published and corrected, above the printed ``rows``.

    ``family``: prefix of metric ids. ``benchmark``: id of the benchmark of the printed rows, if it differs.
    """
    table = new_table(f"{layout.title}: as its scorer has it, and corrected")
    table.add_column("", overflow="fold", min_width=14)
    for column, heading in layout.columns.items():
        table.add_column(heading + _embedder_mark(column, [figures for _, _, figures in runs], notes), justify="right")
    for name, summary, figures in runs:
        note = f"Not comparable with the printed rows: {harmless('; '.join(figures.differs))}."
        mark = notes.mark(note) if figures.differs else ""
        table.add_row(name_cell(f"{name}{mark}", summary), *(stacked([""]) for _ in layout.columns))
        for words, cell in (("as published", _reference_cell), ("corrected", _corrected_cell)):
            cells = (cell(figures, f"{family}.{column}", notes) for column in layout.columns)
            table.add_row(stacked([f"  {words}"], value_style=""), *cells)
    lines: dict[tuple[str, ...], dict[str, PublishedRow]] = {}
    for row in rows:
        lines.setdefault((row.model,), {})[row.metric] = row
    if rows:
        about = paper(benchmark or family)
        note = f"{about.title} (arXiv {about.arxiv}), Table {rows[0].table}, as printed. {about.protocol}"
        add_printed(table, [f"{family}.{column}" for column in layout.columns], lines, notes, note)
    return table


def _counts(runs: Sequence[Shown]) -> Iterator[RenderableType]:
    """Yield a line with the counts of the published scorer if there is a single run."""
    counts = runs[0][2].counts
    text = ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in counts.items())
    if len(runs) == 1 and text:
        yield Text(f"counted by the published scorer: {text}", style="dim")


def _embedder_mark(column: str, run_figures: Sequence[PublishedFigures], notes: Notes) -> str:
    """Return a footnote mark on the heading of a metric that uses cosines; the note names the embedding models."""
    used = ", ".join(dict.fromkeys(harmless(figures.embedder) for figures in run_figures if figures.embedder))
    if not used or column not in WITH_COSINES:
        return ""
    return notes.mark(f"By cosines of {used} where answers are subjective or images.")


def _reference_cell(figures: PublishedFigures, metric: str, notes: Notes) -> Text:
    if figures.stops:
        return notes.dash(f"The published scorer ends with an exception here: {figures.stops}")
    if metric in figures.left_out:
        return notes.dash(_reason(figures.left_out[metric]))
    value = figures.reference.get(metric)
    return stacked([DASH if value is None else percent(value)])


def _corrected_cell(figures: PublishedFigures, metric: str, notes: Notes) -> Text:
    estimate = figures.corrected.get(f"{metric}_corrected")
    if estimate is None:
        return notes.dash(_reason(figures.left_out.get(f"{metric}_corrected", "nothing here is counted by it")))
    return value_cell(estimate, below=[f"n {estimate.n}"])


def _reason(left_out: str) -> str:
    return f"{left_out} (--with similarity, or --embedder)" if "embedder" in left_out else left_out


def _printed(family: str, mode: Mode, table: str, summaries: Sequence[Summary]) -> list[PublishedRow]:
    """Return the printed rows of the evaluated models, of the best open and of the best API model (by answer accuracy
    or SummAcc)."""
    rows = [row for row in published_rows(family) if row.table == table and row.setting == mode]
    metric = f"{family}.{'ans_acc' if mode == 'end-to-end' else 'summ_acc'}"
    return rows_beside(rows, [each.model for each in summaries], [row for row in rows if row.metric == metric])
