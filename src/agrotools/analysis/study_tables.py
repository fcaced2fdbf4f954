"""Tables of a study in Markdown, LaTeX and HTML: scores in the layout of the papers, with groups of equal models."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from agrotools.analysis.study import RunState, StudyResult
from agrotools.core import MODES, Mode
from agrotools.core.base import benchmark_title, count_text
from agrotools.core.files import write_whole
from agrotools.report.html.result_tables import templates
from agrotools.report.layout import DASH, PRIVILEGED_NOTE, UNSEALED_NOTE, harmless, on_scale, percent, points, size
from agrotools.report.settings import KNOWING, OUTCOME, PROCESS
from agrotools.scoring import METRICS, Estimate, Summary
from agrotools.scoring.statistics import MIN_CLUSTERS
from agrotools.scoring.summary import RunDifference

_INTERVAL = "95 % intervals over clusters of samples in brackets; values in percent; n: samples or steps (clusters)."


class Cell(NamedTuple):
    """Value of a table with its interval, and the letters of its groups or the marks of its notes."""

    value: str
    interval: str = ""
    marks: str = ""


@dataclass
class StudyTable:
    """A table with a header of two lines. ``groups``: names and numbers of columns of the upper line."""

    title: str
    groups: list[tuple[str, int]]
    header: list[str]
    rows: list[list[Cell]]
    notes: list[str] = field(default_factory=list[str])

    @property
    def spans(self) -> list[tuple[int, int]]:
        """First and last column of each named group, from 1."""
        ends = list(accumulate(width for _, width in self.groups))
        return [(end - width + 1, end) for end, (name, width) in zip(ends, self.groups, strict=True) if name]


def study_tables(result: StudyResult) -> list[StudyTable]:
    """Return a table of scores for each benchmark, then the differences between lists of tools, if there are any."""
    names = dict.fromkeys(run.benchmark for run in result.study.runs)
    tables = [_score_table(name, result) for name in names]
    return [*tables, *(table for name in names if (table := _tools_table(name, result)).rows)]


_NO_LETTERS = "No letters, because {}."
_QUICK = "no differences are tested between runs of a quick part"


def _score_table(benchmark: str, result: StudyResult) -> StudyTable:
    states = [state for state in result.states if state.run.benchmark == benchmark]
    summary_of = {run.folder: (at, summary) for at, (run, summary) in enumerate(result.scored)}
    summaries = [summary_of[state.run.folder][1] for state in states if state.run.folder in summary_of]
    columns = list(_columns(summaries))
    sizes = {(mode, metric): _shared_size(summaries, mode, metric) for mode, metric in columns}
    unequal = {first for first in dict(reversed(columns)).items() if not sizes[first]}
    shows_tools = {state.run.config.tools for state in states} != {"all"}
    letters = _letters(result)
    notes: list[str] = []
    rows: list[list[Cell]] = []
    # The modes of a row may be those of several runs.
    by_row: dict[tuple[str, str], list[RunState]] = {}
    for state in states:
        by_row.setdefault((state.run.label, state.run.config.tools), []).append(state)
    for (label, tools), parts in by_row.items():
        found = [each[1] for state in parts if (each := summary_of.get(state.run.folder))]
        remarks = [f"stopped: {state.problem}" for state in parts if state.problem]
        remarks += [PRIVILEGED_NOTE] * any(summary.privileged for summary in found)
        remarks += [UNSEALED_NOTE] * any(summary.unsealed for summary in found)
        marks = [_note(notes, remark) for remark in dict.fromkeys(remarks)]
        row = [Cell(label, marks="".join(marks)), *([Cell(tools)] if shows_tools else [])]
        for mode, metric in columns:
            state = next((each for each in parts if mode in each.modes), parts[0])
            at, summary = summary_of.get(state.run.folder, (-1, None))
            if mode in state.lacking:
                row.append(Cell(DASH, marks=_note(notes, f"not run: this policy has no {mode} mode")))
            else:
                group = letters.get((at, mode, metric), "")
                if state.run.config.protocol != parts[0].run.config.protocol:
                    group += _note(notes, f"protocol {state.run.config.protocol}")
                row.append(_score_cell(summary, mode, metric, group, notes, with_size=(mode, metric) in unequal))
        rows.append(row)
    leading = ["Model", *(["Tools"] if shows_tools else [])]
    modes = dict.fromkeys(mode for mode, _ in columns)
    groups = [("", len(leading)), *((mode, sum(mode == each for each, _ in columns)) for mode in modes)]
    labels = [METRICS[metric].label + " ↓" * METRICS[metric].lower_is_better for _, metric in columns]
    header = [*leading, *(label + of_column for label, of_column in zip(labels, sizes.values(), strict=True))]
    version = next((summary.benchmark_version for summary in summaries), "")
    is_synthetic = any(summary.synthetic for summary in summaries)
    synthetic = " Synthetic images: scores say nothing about real fields." if is_synthetic else ""
    if shows_tools:
        notes.append("Tools needed: those of the reference calls alone, which hints at the solution; +N: and N others.")
    legend = [f"{_INTERVAL}{synthetic}", *([_group_legend(result)] if any(letters.values()) else [])]
    if not any(letters.values()) and len(summaries) > 1:
        quick = any(summary.quick for summary in summaries)
        legend.append(
            _NO_LETTERS.format(_QUICK if quick else f"differences need {MIN_CLUSTERS} clusters and equal tools")
        )
    return StudyTable(benchmark_title(benchmark, version), groups, header, rows, [*legend, *notes])


def _columns(summaries: Sequence[Summary]) -> Iterator[tuple[Mode, str]]:
    """Yield the metrics of the main table: process metrics in step-by-step, outcomes in the other modes."""
    for mode in MODES:
        present = {metric for each in summaries if mode in each.modes for metric in each.modes[mode].metrics}
        ours = PROCESS if mode == "step-by-step" else (*OUTCOME, *KNOWING)
        theirs = [name for name in present if name not in ours and mode in METRICS[name].compared_in]
        for metric in (*ours, *sorted(theirs)):
            if metric in present:
                yield mode, metric


def _shared_size(summaries: Sequence[Summary], mode: Mode, metric: str) -> str:
    """Return the size of a column, ``, n 20 (14)``; empty if its runs differ: then the first metric has notes."""
    parts = [part for summary in summaries if (part := summary.modes.get(mode)) and part.headline]
    sizes = {size(part.metrics[metric].overall) for part in parts if metric in part.metrics}
    return f", n {sizes.pop()}" if len(sizes) == 1 else ""


def _score_cell(
    summary: Summary | None, mode: Mode, metric: str, letters: str, notes: list[str], *, with_size: bool
) -> Cell:
    part = summary.modes.get(mode) if summary else None
    if summary is None or part is None or metric not in part.metrics:
        return Cell(DASH)
    if not part.headline:
        share = percent(part.invalid.share)
        return Cell(DASH, marks=_note(notes, f"{share} % of the records are invalid: no score is shown"))
    if missing := summary.missing.get(mode):
        note = f"incomplete: {missing} of {part.n_records + missing} records are missing; not compared"
        letters += _note(notes, note)
    if part.invalid.n:
        letters += _note(notes, f"{count_text(part.invalid.n, 'invalid record')} left out")
    info, estimate = METRICS[metric], part.metrics[metric].overall
    letters += _note(notes, f"n {size(estimate)}") if with_size else ""
    ends = estimate.interval if mode in info.compared_in else None
    interval = f"[{on_scale(ends.lower, info.out_of)}, {on_scale(ends.upper, info.out_of)}]" if ends else ""
    return Cell(on_scale(estimate.value, info.out_of), interval, letters)


def _note(notes: list[str], text: str) -> str:
    """Return the mark of a note, ``(1)``; equal notes share a mark."""
    marked = [note for note in notes if note.startswith("(")]
    at = next((at for at, note in enumerate(marked) if note.partition(" ")[2] == text), len(marked))
    if at == len(marked):
        notes.append(f"({at + 1}) {text}")
    return f"({at + 1})"


def _tools_table(benchmark: str, result: StudyResult) -> StudyTable:
    """Return the differences of the same model with other tools, one row for each model and pair of selections."""
    runs = [run for run, _ in result.scored]
    differences = [
        each
        for each in result.differences
        if runs[each.first].benchmark == benchmark and runs[each.first].label == runs[each.second].label
    ]
    columns = list(dict.fromkeys((each.mode, each.metric) for each in differences))
    rows: list[list[Cell]] = []
    for first, second in dict.fromkeys((each.first, each.second) for each in differences):
        cells = {(each.mode, each.metric): each for each in differences if (each.first, each.second) == (first, second)}
        tools = f"{runs[first].config.tools} minus {runs[second].config.tools}"
        shown = (_difference_cell(cells[key].difference) if key in cells else Cell(DASH) for key in columns)
        rows.append([Cell(runs[first].label), Cell(tools), *shown])
    header = ["Model", "Tools", *(f"{METRICS[metric].label}, {mode}" for mode, metric in columns)]
    legend = (
        f"Differences in points, paired by sample. *: below 5 %, Holm-adjusted over {_n_compared(result)} differences."
    )
    return StudyTable(f"Cost of the list of tools: {benchmark}", [], header, rows, [legend])


def _difference_cell(difference: Estimate) -> Cell:
    ends = difference.interval
    interval = f"[{points(ends.lower)}, {points(ends.upper)}]" if ends else ""
    return Cell(points(difference.value), interval, "*" if difference.differs() else "")


# --- groups of models that cannot be separated -----------------------------------------------------------------------


def _letters(result: StudyResult) -> dict[tuple[int, Mode, str], str]:
    """Return the letters of each run by mode and metric. Runs that share a letter cannot be separated."""
    runs = [run for run, _ in result.scored]
    tables: dict[tuple[str, str, bool, Mode, str], list[RunDifference]] = {}
    for each in result.differences:
        first, second = runs[each.first], runs[each.second]
        if first.config.tools == second.config.tools and each.difference.p_adjusted is not None:
            privileged = result.scored[each.first][1].privileged
            key = (first.benchmark, first.config.tools, privileged, each.mode, each.metric)
            tables.setdefault(key, []).append(each)
    letters: dict[tuple[int, Mode, str], str] = {}
    for (_, _, _, mode, metric), differences in tables.items():
        nodes = {at for each in differences for at in (each.first, each.second)}
        separated = {frozenset((each.first, each.second)) for each in differences if each.difference.differs()}
        values = {at: result.scored[at][1].modes[mode].metrics[metric].overall.value for at in nodes}
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
        one: {other for other in nodes if other != one and frozenset((one, other)) not in separated} for one in nodes
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


def _n_compared(result: StudyResult) -> int:
    return sum(each.difference.p_adjusted is not None for each in result.differences)


def _group_legend(result: StudyResult) -> str:
    return (
        "Scores of one column that share a letter cannot be separated at the 5 % level (same tools; paired by sample, "
        f"clustered, Holm-adjusted over all {_n_compared(result)} differences of the study)."
    )


# --- formats ---------------------------------------------------------------------------------------------------------


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as CSV. A text that a spreadsheet would run as a formula begins with an apostrophe."""
    written = io.StringIO()
    guarded = ([f"'{cell}" if isinstance(cell, str) and cell[:1] in _FORMULA else cell for cell in row] for row in rows)
    csv.writer(written, lineterminator="\n").writerows(guarded)
    return written.getvalue()


_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def markdown(tables: Iterable[StudyTable]) -> str:
    """Return the tables in Markdown, with columns aligned."""
    return "\n".join(_markdown_table(table) for table in tables)


def _markdown_table(table: StudyTable) -> str:
    spans = [name for name, width in table.groups for _ in range(width)]
    names = (f"{name}: " if name else "" for name in spans or [""] * len(table.header))
    lines = [[in_markdown(name + heading) for name, heading in zip(names, table.header, strict=True)]]
    lines += [[_markdown_cell(cell) for cell in row] for row in table.rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(table.header))]
    padded = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    notes = "\n".join(f"- {in_markdown(note)}" for note in table.notes)
    return "\n".join([f"## {in_markdown(table.title)}", "", padded[0], rule, *padded[1:], "", notes, ""])


def _markdown_cell(cell: Cell) -> str:
    return " ".join(filter(None, (in_markdown(cell.value), cell.interval, in_markdown(cell.marks))))


def in_markdown(text: str) -> str:
    """Return a text on one line that Markdown shows as it is."""
    return re.sub(r"([\\`*_|<>\[\]#~])", r"\\\1", _one_line(text))


_LATEX = {
    **{each: f"\\{each}" for each in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "^": r"\textasciicircum{}",
    "↓": r"$\downarrow$",
    DASH: "--",
}


def _one_line(text: str) -> str:
    return " ".join(harmless(text).split())


def _in_latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in _one_line(text))


def latex(tables: Sequence[StudyTable], title: str) -> str:
    """Return the tables in LaTeX, for documents with the packages booktabs and graphicx."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
    )
    environment.filters["line"] = _in_latex
    return environment.get_template("study.tex.j2").render(tables=tables, title=title)


def write_tables(tables: Sequence[StudyTable], folder: Path, title: str) -> list[Path]:
    """Write the tables to ``study.md``, ``study.tex`` and ``study.html`` in ``folder``, and return the paths."""
    page = templates(Path(__file__).parent).get_template("study.html.j2")
    contents = {
        "study.md": f"# {in_markdown(title)}\n\n{markdown(tables)}",
        "study.tex": latex(tables, title),
        "study.html": page.render(tables=tables, title=title),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_whole(folder / name, content.encode())
    return [folder / name for name in contents]
