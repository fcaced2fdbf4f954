"""Classes of errors in runs: a table of their frequencies, their meanings, and the papers that define them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from agrotools.core import MODES, Mode
from agrotools.plugin import ErrorSource
from agrotools.report.layout import DASH, new_table, percent, run_names, stacked
from agrotools.report.settings import used_plugins
from agrotools.scoring import Summary
from agrotools.scoring.error_classes import CLASSES
from agrotools.scoring.summary import ErrorCount

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text


class ErrorColumn(NamedTuple):
    """A mode of a run: its place among the runs, and its errors by class."""

    run: int
    name: str
    mode: Mode
    errors: dict[str, ErrorCount]
    sources: tuple[ErrorSource, ...]
    """Papers of the benchmark that tell classes apart."""


def error_columns(summaries: Sequence[Summary]) -> list[ErrorColumn]:
    """The modes of the runs in which errors were counted."""
    return [
        ErrorColumn(at, name, mode, {row.error: row for row in part.errors}, sources)
        for at, (name, summary) in enumerate(zip(run_names(summaries), summaries, strict=True))
        for sources in [tuple(each for plugin in used_plugins([summary]) for each in plugin.error_sources)]
        for mode, part in summary.modes.items()
        if part.errors and part.invalid.n < part.n_records
    ]


def classes_looked_for(columns: Sequence[ErrorColumn]) -> list[str]:
    """Classes that could be determined in any of the columns, in the order of the taxonomy."""
    return [
        error
        for error in CLASSES
        if any(error in column.errors and column.errors[error].count is not None for column in columns)
    ]


def error_parts(columns: Sequence[ErrorColumn], *, side_by_side: int) -> list[tuple[Mode | None, list[ErrorColumn]]]:
    """The columns of each table: the modes of one run (under None), or for each mode the runs, at most that many."""
    if len({column.run for column in columns}) < 2:
        return [(None, [*columns])] if columns else []
    parts: list[tuple[Mode | None, list[ErrorColumn]]] = []
    for mode in MODES:
        mode_columns = [column for column in columns if column.mode == mode]
        for start in range(0, len(mode_columns), side_by_side):
            parts.append((mode, mode_columns[start : start + side_by_side]))
    return parts


def error_tables(summaries: Sequence[Summary], *, side_by_side: int) -> list["RenderableType"]:
    """The table, in parts of at most that many columns, and a legend; nothing where no record is valid."""
    from rich.text import Text

    columns = error_columns(summaries)
    if not columns:
        return []
    tables: list[RenderableType] = []
    for mode, part_columns in error_parts(columns, side_by_side=side_by_side):
        table = new_table(f"Errors by class{f', {mode}' if mode else ''}")
        table.add_column("", overflow="fold", min_width=22)
        for column in part_columns:
            table.add_column(column.name.rpartition("/")[2] if mode else column.mode, justify="right", overflow="fold")
        for error in classes_looked_for(part_columns):
            heading = stacked([error_label(error, part_columns)], value_style="")
            table.add_row(heading, *(_cell(column.errors.get(error)) for column in part_columns))
        tables.append(table)
    return [*tables, Text("\n".join(error_legend(columns)), style="dim")]


def error_label(error: str, columns: Sequence[ErrorColumn]) -> str:
    """The class as a heading, with what is counted in the columns."""
    rows = [column.errors[error] for column in columns if error in column.errors]
    units = dict.fromkeys(f"{row.unit}s" for row in rows if row.count is not None)
    return f"{error.replace('_', ' ')} ({', '.join(units)})"


def _cell(row: ErrorCount | None) -> "Text":
    if row is None or row.count is None:
        return stacked([DASH], value_style="dim")
    return stacked([str(row.count), percent(row.share or 0)], value_style="bold" if row.count else "dim")


def error_legend(columns: Sequence[ErrorColumn]) -> list[str]:
    """Meanings of the classes and their names in the papers, then :func:`notes_of`."""
    classes = classes_looked_for(columns)
    lines = [
        f"{error.replace('_', ' ')}: {CLASSES[error].meaning}. {paper_names(error, columns)}".strip()
        for error in classes
    ]
    return [*lines, *notes_of(columns)]


def notes_of(columns: Sequence[ErrorColumn]) -> list[str]:
    """Notes to the table: its units, the papers' places of the classes, and the runs in the papers' own tables."""
    classes = classes_looked_for(columns)
    lines = ["Number of errors, and below it their % of the steps or samples that were checked for the class."]
    paper_places = dict.fromkeys(
        source[:3] for error in classes for source in _sources(columns) if error in source.words
    )
    places: dict[str, list[str]] = {}
    for name, arxiv, place in paper_places:
        places.setdefault(f"{name} (arXiv {arxiv})", []).append(place)
    if places:
        lines.append("; ".join(f"{paper}: {', '.join(paper_classes)}" for paper, paper_classes in places.items()) + ".")
    skipped = sorted({row.not_looked_for for column in columns for row in column.errors.values() if row.not_looked_for})
    if skipped:
        lines.append(f"{DASH}: the class cannot be determined there: {'; '.join(skipped)}.")
    return [*lines, *paper_lines(columns)]


def _sources(columns: Sequence[ErrorColumn]) -> list[ErrorSource]:
    sources: list[ErrorSource] = []
    for column in columns:
        sources += [source for source in column.sources if source not in sources]
    return sources


def paper_names(error: str, columns: Sequence[ErrorColumn]) -> str:
    """Name of the class in each paper of the benchmarks, ``PAPER: words; PAPER: words``; empty where there is none."""
    sources = _sources(columns)
    names = "; ".join(f"{each.name}: {each.words[error]}" for each in sources if error in each.words)
    return names or ("Ours" if sources else "")


def paper_lines(columns: Sequence[ErrorColumn]) -> Iterator[str]:
    """The errors of each column as shares of each other, in the words of each paper whose classes could all be
    determined.
    """
    several = len({column.run for column in columns}) > 1
    for table in _sources(columns):
        for column in (each for each in columns if table in each.sources):
            counts = _paper_counts(table, column)
            total = sum(counts.values())
            if total:
                of_run = f"{column.name}, {column.mode}" if several else column.mode
                shares = "; ".join(f"{words} {percent(count / total)} %" for words, count in counts.items())
                yield f"As in {table.name}'s {table.place}, of {total} errors ({of_run}): {shares}."


def _paper_counts(table: ErrorSource, column: ErrorColumn) -> dict[str, int]:
    """By the paper's word how many errors; empty where one of its classes could not be determined."""
    counts: dict[str, int] = {}
    for words, classes in table.shares.items():
        class_counts = [column.errors[error].count if error in column.errors else None for error in classes]
        known = [count for count in class_counts if count is not None]
        if len(known) < len(class_counts):
            return {}
        counts[words] = sum(known)
    return counts
