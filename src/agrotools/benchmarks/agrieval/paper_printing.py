"""The tables of the AgriEval paper on a terminal: runs with intervals and numbers of items, printed lines beneath.

Values are in percent. A published figure has the digits of the paper; ``†`` marks it as no run of ours.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from agrotools.benchmarks.agrieval.paper_layout import (
    COMPLETE,
    OVERALL,
    OWN_TABLES,
    PAPER_TABLES,
    Column,
    SettingResult,
)
from agrotools.benchmarks.agrieval.paper_tables import (
    BASE,
    Cell,
    EpochSpread,
    LaidOutTable,
    PublishedLine,
    Results,
    RunLine,
    agrieval_tables,
    epoch_spreads,
    shows_change,
)
from agrotools.report.layout import (
    DASH,
    Notes,
    harmless,
    new_table,
    percent,
    points,
    size,
    stacked,
    value_cell,
)
from agrotools.report.published import PublishedRow, paper, rows_of_table, same_model
from agrotools.scoring.statistics import MIN_CLUSTERS, Estimate

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

Models = Sequence[str] | Literal["some", "all"]
"""Published models to show: by name, all, or some: those that were run, the best open one and the best behind an API,
and the five that the paper follows through the settings (Table 4)."""
MARK = "†"
_ARROWS = {"": "", "up": "↑", "down": "↓"}


def chosen_lines(table: LaidOutTable, models: Models) -> list[PublishedLine]:
    """The published lines of a table to show, in the paper's order."""
    if models == "all":
        return list(table.published)
    names = _some(table) if isinstance(models, str) else list(models)
    return [line for line in table.published if any(same_model(line.model, name) for name in names)]


def _some(table: LaidOutTable) -> list[str]:
    names = [row.model for row in table.rows] + [row.model for row in rows_of_table("agrieval", "4")]
    overall = [row for line in table.published for row in line.cells if row and row.group_checked == OVERALL]
    for access in ("open", "api"):
        of_kind = [row for row in overall if row.access == access]
        if of_kind:
            names.append(max(of_kind, key=lambda row: row.number).model)
    return names


def published_rows_of(
    lines: Sequence[PublishedLine], columns: Sequence[int], notes: Notes, *, with_setting: bool
) -> list[list["Text"]]:
    """Rows for a table: a heading, the numbers of items, and a row for each line; ``columns``: places of the cells.

    A doubt is marked once: at the heading if it is of all cells, else at its line, at its column, or in its cell.
    """
    cells = [[line.cells[at] for at in columns] for line in lines]
    if not any(cell for of_line in cells for cell in of_line):
        return []
    doubts = [[set(cell.doubts) if cell else None for cell in of_line] for of_line in cells]
    common = _shared(doubt for of_line in doubts for doubt in of_line)
    of_lines = [_shared(of_line) - common for of_line in doubts]
    of_columns = [_shared(of_line[at] for of_line in doubts) - common for at in range(len(columns))]

    def marks(of: set[str], order: Sequence[str]) -> str:
        return "".join(notes.mark(f"{MARK} {doubt}") for doubt in order if doubt in of)

    order = list(dict.fromkeys(doubt for of_line in cells for cell in of_line if cell for doubt in cell.doubts))
    rows = [[stacked([f"published {MARK}{marks(common, order)}"]), *(stacked([""]) for _ in columns)]]
    counts = [next((cell.n_implied for of_line in cells if (cell := of_line[at])), None) for at in range(len(columns))]
    rows.append(
        [
            stacked(["  items (implied)"], value_style="dim"),
            *(
                stacked([f"{n if n is not None else DASH}{marks(of_column, order)}"], value_style="dim")
                for n, of_column in zip(counts, of_columns, strict=True)
            ),
        ]
    )
    model = ""
    for line, of_line, its_doubts in zip(lines, cells, of_lines, strict=True):
        if with_setting and line.model != model:
            model = line.model
            rows.append([stacked([f"  {model}"], value_style="dim"), *(stacked([""]) for _ in columns)])
        name = f"    {line.setting}" if with_setting else f"  {line.model}"
        rows.append(
            [
                stacked([f"{name}{marks(its_doubts, order)}"], value_style="dim"),
                *(
                    _cell(
                        cell, "" if cell is None else marks(set(cell.doubts) - common - its_doubts - of_column, order)
                    )
                    for cell, of_column in zip(of_line, of_columns, strict=True)
                ),
            ]
        )
    return rows


def _cell(cell: PublishedRow | None, marks: str) -> "Text":
    value = DASH if cell is None else f"{cell.percent}{_ARROWS[cell.arrow]}{marks}"
    return stacked([value], value_style="dim")


def _shared(sets: Iterable[set[str] | None]) -> set[str]:
    """Intersection of the sets; None stands for no cell."""
    present = [one for one in sets if one is not None]
    return set[str].intersection(*present) if present else set()


def text_line(row: PublishedRow) -> str:
    """A figure of the running text as a line, with what it holds for."""
    what = ", ".join(part for part in (row.model, row.setting, row.variant) if part)
    unit = "points" if row.unit == "points" else "%"
    n = f" (n {row.n:,})" if row.n is not None else ""
    return " ".join([f"{MARK} {what}: {row.percent} {unit}{n}.", *row.notes, *row.doubts])


SIDE_BY_SIDE = 7
"""More columns than these go into a further table, so that a row fits a terminal."""
_NAME_WIDTH = 22
_FLAT_CELL = 3
"""Width of a cell on one line, in columns of the other tables."""


def agrieval_parts(
    results: Sequence[SettingResult],
    *,
    published: bool = True,
    models: Models = "some",
    numbers: Sequence[str] | None = None,
    side_by_side: int = SIDE_BY_SIDE,
) -> list["RenderableType"]:
    """The tables for which ``results`` have rows, the spread over epochs, and notes.

    Args:
        results: one for each model and setting.
        published: put figures of the paper beneath the runs.
        models: published models to show, by name or as ``some`` or ``all``.
        numbers: only these tables; by default all but those that are a selection from another one.
        side_by_side: columns of a table; more go into a further one.

    Raises:
        UsageError: no such table.
    """
    from rich.text import Text

    table_blocks, lines = blocks(
        results, published=published, models=models, numbers=numbers, side_by_side=side_by_side
    )
    parts: list[RenderableType] = []
    for block in table_blocks:
        parts += block.tables
        if block.below:
            parts.append(Text("\n".join(block.below), style="dim"))
    return [*parts, Text("\n" + "\n".join(lines), style="dim")]


@dataclass(frozen=True)
class Block:
    """Printed parts of a table; a wide one is cut into several."""

    table: LaidOutTable | None
    """None: the spread over epochs."""
    tables: list["Table"]
    columns: list[list[int]]
    """For each of ``tables``, which columns of ``table`` its columns are; empty where they are something else."""
    below: list[str]


def blocks(
    results: Sequence[SettingResult],
    *,
    published: bool = True,
    models: Models = "some",
    numbers: Sequence[str] | None = None,
    side_by_side: int = SIDE_BY_SIDE,
) -> tuple[list[Block], list[str]]:
    """Content of :func:`agrieval_parts`, table by table, and the notes; arguments as there."""
    of = Results(results)
    notes = Notes()
    table_numbers = numbers if numbers is not None else (*COMPLETE, *(table.number for table in OWN_TABLES))
    tables = agrieval_tables(of, published, numbers=table_numbers)
    if not tables:
        return [], ["No scored items: nothing to lay out."]
    table_blocks = [_block(table, notes, models, side_by_side) for table in tables]
    table_blocks += _spread_blocks(epoch_spreads(results))
    return table_blocks, [
        *reading_lines(tables, published),
        *missing_lines(tables, of, table_numbers),
        *notes.numbered(),
    ]


def _block(table: LaidOutTable, notes: Notes, models: Models, side_by_side: int) -> Block:
    with_setting = len(table.layout.settings) != 1
    below = [*table.notes, *map(text_line, table.in_text)]
    if table.layout.by == "field":
        few = max(1, side_by_side // _FLAT_CELL)
        pieces = [
            _table_of_runs(table, table.rows[start : start + few], with_setting=with_setting)
            for start in range(0, len(table.rows), few)
        ]
        return Block(table, pieces, [[] for _ in pieces], below)
    wider = table.layout.changes == "all"  # a change takes more room than a value
    chunks = list(_chunks(table.columns, side_by_side - wider))
    pieces = [
        _table(table, chunk, notes, models, with_setting=with_setting, whole=len(chunks) == 1) for chunk in chunks
    ]
    return Block(table, pieces, chunks, below)


def _chunks(columns: Sequence[Column], most: int) -> Iterator[list[int]]:
    """Places of columns, at most ``most`` of them together; those under one heading stay together where they fit."""
    chunk: list[int] = []
    start = 0
    while start < len(columns):
        stop = start + 1
        while stop < len(columns) and columns[start].above and columns[stop].above == columns[start].above:
            stop += 1
        stop = min(stop, start + most)
        if chunk and len(chunk) + stop - start > most:
            yield chunk
            chunk = []
        chunk.extend(range(start, stop))
        start = stop
    if chunk:
        yield chunk


def _table(
    table: LaidOutTable, chunk: Sequence[int], notes: Notes, models: Models, *, with_setting: bool, whole: bool
) -> "Table":
    above = ", ".join(dict.fromkeys(table.columns[at].above for at in chunk if table.columns[at].above))
    shared = [_shared_size(table.rows, at) for at in chunk]
    headings = [
        stacked([table.columns[at].code, *([f"n {n}"] if n else [])]) for at, n in zip(chunk, shared, strict=True)
    ]
    rows = [
        [
            _name(row, with_setting),
            *(
                _run_cell(row.cells[at], with_change=shows_change(table.layout, table.columns[at]), with_size=not n)
                for at, n in zip(chunk, shared, strict=True)
            ),
        ]
        for row in table.rows
    ]
    rows += published_rows_of(chosen_lines(table, models), chunk, notes, with_setting=with_setting)
    return _new_table(f"{_title(table)}{'' if whole or not above else f': {above}'}", headings, rows)


def _new_table(title: str, headings: Sequence["Text"], rows: Sequence[Sequence["Text"]]) -> "Table":
    """A table whose first column folds, and whose others are never cut."""
    rendered_table = new_table(title)
    rendered_table.add_column("", overflow="fold", min_width=_NAME_WIDTH)
    for at, heading in enumerate(headings, 1):
        texts = [heading, *(row[at] for row in rows)]
        width = max(line.cell_len for text in texts for line in text.split("\n", allow_blank=True))
        rendered_table.add_column(heading, justify="right", min_width=width)
    for row in rows:
        rendered_table.add_row(*row)
    return rendered_table


def _title(table: LaidOutTable) -> str:
    if table.layout.is_of_paper:
        return f"AgriEval, Table {table.layout.number}. {table.layout.title}"
    return f"AgriEval. {table.layout.title}"


def _name(row: RunLine, with_setting: bool) -> "Text":
    return _stacked_name(row.model, row.setting if with_setting else "", row.apart)


def _stacked_name(model: str, *below: str) -> "Text":
    return stacked([_short(model), *(harmless(line) for line in below if line)], value_style="")


def _short(model: str) -> str:
    return harmless(model).rpartition("/")[2] or "run"


def _shared_size(rows: Sequence[RunLine], at: int) -> str:
    """The number of items of a column if all rows have the same, else nothing: then each cell says its own."""
    sizes = {_size(cell.estimate) for row in rows if (cell := row.cells[at]) is not None}
    return sizes.pop() if len(sizes) == 1 else ""


def _size(estimate: Estimate) -> str:
    """Items, and clusters where they are fewer."""
    return str(estimate.n) if estimate.n == estimate.n_clusters else size(estimate)


def _run_cell(cell: Cell | None, *, with_change: bool, with_size: bool) -> "Text":
    if cell is None:
        return stacked([DASH], value_style="dim")
    below = [f"n {_size(cell.estimate)}"] if with_size else []
    if with_change and cell.change is not None:
        below.append(f"Δ {points(cell.change.value)}{'*' if cell.change.differs() else ''}")
        if cell.change.interval is not None:
            below.append(f"{points(cell.change.interval.lower)}..{points(cell.change.interval.upper)}")
        if cell.change.n != cell.estimate.n:
            below.append(f"Δ n {_size(cell.change)}")
    return value_cell(cell.estimate, below=below)


def _table_of_runs(table: LaidOutTable, runs: Sequence[RunLine], *, with_setting: bool) -> "Table":
    """A table of many parts with a row for each, and a column for each run."""
    rows: list[list[Text]] = []
    above = ""
    for at, column in enumerate(table.columns):
        if column.above != above:
            above = column.above
            rows.append([stacked([above]), *(stacked([""]) for _ in runs)])
        cells = [_flat_cell(run.cells[at]) for run in runs]
        rows.append([stacked([f"  {column.name}"], value_style=""), *cells])
    return _new_table(_title(table), [_name(run, with_setting) for run in runs], rows)


def _flat_cell(cell: Cell | None) -> "Text":
    """A value, its interval and its number of items on one line."""
    if cell is None:
        return stacked([DASH], value_style="dim")
    text = stacked([percent(cell.estimate.value)])
    if (interval := cell.estimate.interval) is not None:
        text.append(f"  {percent(interval.lower)}–{percent(interval.upper)}", style="not bold dim")
    return text.append(f"  n {_size(cell.estimate)}", style="not bold dim")


def _spread_blocks(spreads: Sequence[EpochSpread]) -> list[Block]:
    several = [spread for spread in spreads if spread.deviation is not None]
    if not several:
        return []
    rows: list[list[Text]] = []
    for model, setting, apart in dict.fromkeys((spread.model, spread.setting, spread.apart) for spread in several):
        of_result = [one for one in several if (one.model, one.setting, one.apart) == (model, setting, apart)]
        cells = [next((one for one in of_result if one.open_questions == is_open), None) for is_open in (False, True)]
        name = _stacked_name(model, setting, apart)
        rows.append([name, stacked([str(max(len(one.epochs) for one in of_result))]), *map(_spread_cell, cells)])
    headings = [stacked([heading]) for heading in ("epochs", "choice questions", "open questions")]
    rendered_table = _new_table("AgriEval. Mean and standard deviation over epochs", headings, rows)
    return [Block(None, [rendered_table], [[]], ["Over the items that all epochs have."])]


def _spread_cell(spread: EpochSpread | None) -> "Text":
    if spread is None or spread.deviation is None:
        return stacked([DASH], value_style="dim")
    return stacked([f"{percent(spread.mean)} ± {100 * spread.deviation:.2f}", f"n {spread.n_items}"])


def reading_lines(tables: Sequence[LaidOutTable], published: bool) -> list[str]:
    """Explanation of the values."""
    lines = [
        "Values in percent (of open questions ROUGE-L), beneath them 95 % intervals over clusters of items "
        f"(none under {MIN_CLUSTERS} clusters); n: items (clusters, where fewer), epochs averaged. "
        f"Δ: points against the same model's {BASE}, paired on the items of both "
        "(*: p under 0.05, adjusted by Holm's method for all Δ of the table; the intervals are not adjusted)."
    ]
    names = {
        column.code: column.name
        for table in tables
        for column in table.columns
        if table.layout.by != "field" and column.part != OVERALL and column.code != column.name
    }
    if names:
        lines.append("; ".join(f"{code} {name}" for code, name in names.items()) + ".")
    if published and any(table.published for table in tables):
        source = paper("agrieval")
        lines.append(
            f"{MARK} as printed in {source.title} (arXiv {source.arxiv}): {source.protocol}. Its questions, prompts "
            "and reading of answers are not those of these runs: a difference need not be one of models."
        )
    return lines


def missing_lines(tables: Sequence[LaidOutTable], of: Results, table_numbers: Sequence[str]) -> list[str]:
    """Tables of the paper that have no rows, by what was not run."""
    there = {table.layout.number for table in tables}
    absent = [table for table in PAPER_TABLES if table.number in table_numbers and table.number not in there]
    if not absent:
        return []
    reasons: dict[str, list[str]] = {}
    for table in absent:
        not_run = [setting for setting in table.settings if setting not in of.settings]
        reason = "no open questions" if table.open else f"not run: {', '.join(not_run)}" if not_run else "no such items"
        reasons.setdefault(reason, []).append(table.number)
    listing = "; ".join(f"{', '.join(numbers)} ({reason})" for reason, numbers in reasons.items())
    return [f"Without rows: Table {listing}."]
