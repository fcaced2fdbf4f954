"""Plan of a field trial: a table with a row for each plot, joined to the zones.

In: a CSV or xlsx file, and the zones with their fields. Out: the columns of the table, with a value for each zone. The
columns that name a plot are found: their values tell all rows apart, and stand in fields of the zones. Where several
columns would give a zone another row, it is asked which ones are meant.
"""

import math
import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from agrotools.core import ToolError
from agrotools.core.readings import Choice, ReadingQuestion, Readings
from agrotools.core.texts import count_text, first_names
from agrotools.text.cells import CellQuantity, is_empty, is_fault, quantity
from agrotools.text.decimal_marks import Decimal, NumberText, detect_decimal
from agrotools.text.tables import CellFault, open_table, sheets_of
from agrotools_tools.zones.levels import without_spaces
from agrotools_tools.zones.names import texts_of
from agrotools_tools.zones.shapes import Zones

ZONE = "zone"
"""Stands for the names of the zones beside their fields."""
SETTINGS = ("sheet", "plot", "decimal", "treatment", "block", "control")
"""Names of ``--set``."""
_MOST_TOGETHER = 3
"""Columns that name a plot together: site, block and plot."""
_MOST_WITH_OTHER_NAMES = 2
"""Columns that name a plot together where the fields have other names: row and column."""
_LEAST_COMMON = 0.5
"""Share of the shorter list of values that both must have: a plan may be for a part of the plots."""
_LEAST_NUMBERS = 0.5
"""Share of the filled cells above which a column is one of numbers, and its other cells are exceptions."""
_LISTED = 3
"""Plots that a line names."""
_MOST_LONE = 10
"""Rows, and zones, that the line on those which did not join names: their owner has to look at each."""

Pair = tuple[str, str]
"""A column of the table, and the field of the zones with the same values."""
Settings = Mapping[str, str]


class Plan(NamedTuple):
    """Zones with the columns of the table behind their own fields.

    ``columns``: names of the joined columns that do not name the plot. ``file``: name of the table. ``rows``: number of
    the row of each zone in it, None where it has none.
    """

    zones: Zones
    columns: tuple[str, ...]
    file: str
    rows: tuple[int | None, ...]
    notes: tuple[str, ...]


class _Rows(NamedTuple):
    """Rows of a table with text: cells by column, and the number of each row in the file."""

    numbers: list[int]
    cells: dict[str, list[str]]


class _Join(NamedTuple):
    """Columns that name a plot with their fields, and the row of each zone; None where it has none.

    ``is_loose``: by names without spaces and leading zeros.
    """

    pairs: tuple[Pair, ...]
    places: tuple[int | None, ...]
    is_loose: bool = False

    @property
    def n_zones(self) -> int:
        return sum(place is not None for place in self.places)

    @property
    def answer(self) -> str:
        """The pairs as ``--set plot`` has them."""
        return ",".join(
            column if column == field else f"{column}={field}" for column, field in self.pairs
        )


def join_plan(path: Path, zones: Zones, settings: Settings, readings: Readings) -> Plan:
    """Return zones with the columns of a table.

    Args:
        settings: answers by name: ``sheet``, ``plot`` (``Reihe,Spalte`` or ``Nr=plot_id``) and ``decimal``.

    Raises:
        BenchmarkError: the table cannot be read.
        ToolError: ``invalid_argument``: no columns name the plots, or those of ``plot`` do not.
        UsageError: a setting is none of the choices.
    """
    fields = {name: _keys(values) for name, values in zones.fields.items()}
    fields.setdefault(ZONE, _keys(zones.names))
    sheet, rows, join = _chosen_sheet(path, fields, settings, readings)
    where = f"sheet {sheet!r} of {path.name}" if sheet else path.name
    by = " and ".join(column for column, _ in join.pairs)
    fitting = " and ".join(field for column, field in join.pairs if field != column)
    to = f" ({fitting} of the zones)" if fitting else ""
    readings.take(f"{where}: {join.n_zones} of {len(rows.numbers)} rows joined by {by}{to}")
    if join.is_loose:
        readings.take(_loose_line(rows, join, zones))
    notes = _notes_on_the_rest(path.name, rows, join, zones.names)
    of_keys = {column for column, _ in join.pairs}
    known_marks = _known_marks(rows, of_keys)
    joined: dict[str, list[Any]] = {}
    taken = {name.casefold() for name in zones.fields}
    for column, cells in rows.cells.items():
        # The columns that name the plot have the values of fields that the zones have already.
        if column in of_keys or not any(cells):
            continue
        values, unit = _values_of(column, cells, known_marks, settings, readings)
        name = column if unit is None or _has_word(column, unit) else f"{column} ({unit})"
        if name.casefold() in taken:
            name = f"table_{name}"
        joined[name] = [None if place is None else values[place] for place in join.places]
    of_zones = tuple(None if place is None else rows.numbers[place] for place in join.places)
    whole = replace(zones, fields={**zones.fields, **joined})
    return Plan(whole, tuple(joined), path.name, of_zones, tuple(notes))


def _has_word(text: str, word: str) -> bool:
    """Return True if a text holds a word, or a sign such as ``%``, by itself."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _chosen_sheet(
    path: Path, fields: Mapping[str, Sequence[str | None]], settings: Settings, readings: Readings
) -> tuple[str | None, _Rows, _Join]:
    """Return the sheet that is read, its rows, and how they are joined."""
    sheets = [sheet.name for sheet in sheets_of(path) if not sheet.is_hidden]
    given = settings.get("sheet")
    if given is None and len(sheets) > 1:
        able = [name for name in sheets if _joins(_rows_of(path, name), fields)]
        choices = [Choice(name) for name in able or sheets]
        given = readings.choose(
            ReadingQuestion(f"Which sheet of {path.name}?", "--set=sheet", tuple(choices))
        )
    for name in sheets:
        if given is not None and name != given:
            readings.leave(f'sheet "{name}" of {path.name}')
    rows = _rows_of(path, given)
    if "plot" in settings:
        return given, rows, _given_join(rows, fields, settings["plot"])
    joins = _joins(rows, fields)
    if not joins:
        columns, known = ", ".join(rows.cells), ", ".join(fields)
        equals = _equals_of_nearest(rows, fields)
        because = f": {equals}" if equals else ""
        why = f"no columns of {path.name} name the plots{because}"
        hint = f"--set plot=COLUMN=FIELD; columns: {columns}; fields of the zones: {known}"
        raise ToolError("invalid_argument", why, argument="table", hint=hint)
    by_answer = {join.answer: join for join in joins}
    choices = [Choice(answer, f"{join.n_zones} zones") for answer, join in by_answer.items()]
    question = ReadingQuestion(
        f"Which columns of {path.name} name the plots?", "--set=plot", tuple(choices)
    )
    return given, rows, by_answer[readings.choose(question)]


def _rows_of(path: Path, sheet: str | None) -> _Rows:
    table = open_table(path, sheet=sheet, fill_merged=True)
    numbers: list[int] = []
    cells: dict[str, list[str]] = {column: [] for column in table.columns}
    for number, row in table.named_rows():
        numbers.append(number)
        for column, of_column in cells.items():
            # A number of a workbook keeps its type, which says that its decimal mark is a point.
            of_column.append(row.get(column, ""))
    return _Rows(numbers, cells)


def _keys(values: Sequence[Any]) -> list[str | None]:
    """Return values as they are compared: 07, 7 and 7.0 are one, and so are A and a."""
    keys: list[str | None] = []
    for value in texts_of(values):
        text = None if value is None or is_empty(value) else value
        whole = re.fullmatch(r"0*(\d+)(?:\.0+)?", text) if text else None
        keys.append(whole[1] if whole else text.casefold() if text else None)
    return keys


def _loose_keys(of: Mapping[str, Sequence[str | None]]) -> dict[str, list[str | None]]:
    """Return the keys of columns without spaces and leading zeros: ``plot 02`` and ``Plot2`` are one.

    A column whose names this would not keep apart is left out.
    """
    loose: dict[str, list[str | None]] = {}
    for name, keys in of.items():
        changed = [None if key is None else _loose_key(key) for key in keys]
        if len(set(changed)) == len(set(keys)):
            loose[name] = changed
    return loose


def _loose_key(key: str) -> str:
    # The zero of "1.05" tells numbers apart.
    return re.sub(r"(?<!\d)(?<!\d[.,])0+(?=\d)", "", without_spaces(key))


def _loose_line(rows: _Rows, join: _Join, zones: Zones) -> str:
    """Return the line on names that join without spaces and leading zeros, with the first one that needs it."""
    for column, field in join.pairs:
        named = texts_of(zones.fields.get(field, zones.names))
        for place, name in zip(join.places, named, strict=True):
            cell = "" if place is None else rows.cells[column][place]
            if cell and _keys([cell]) != _keys([name]):
                return f"names of plots without spaces and leading zeros ({cell} as {name})"
    return "names of plots without spaces and leading zeros"


def _joins(rows: _Rows, fields: Mapping[str, Sequence[str | None]]) -> list[_Join]:
    """Return the ways to join the rows: by the names as they are, or without spaces and zeros if this joins more."""
    columns = {column: _keys(cells) for column, cells in rows.cells.items()}
    exact = _joins_of(columns, fields)
    loose = _joins_of(_loose_keys(columns), _loose_keys(fields))
    if loose and (not exact or loose[0].n_zones > exact[0].n_zones):
        return [join._replace(is_loose=True) for join in loose]
    return exact


def _joins_of(
    columns: Mapping[str, Sequence[str | None]], fields: Mapping[str, Sequence[str | None]]
) -> list[_Join]:
    """Return the ways to join the rows that give some zone another row, the best ones first.

    Columns that are called as a field of the zones are likelier than those that only have the same values.
    """
    of_one_name, others = _pairs_of(columns, fields)
    joins = _joins_by(of_one_name, columns, fields, _MOST_TOGETHER)
    return joins or _joins_by([*of_one_name, *others], columns, fields, _MOST_WITH_OTHER_NAMES)


def _pairs_of(
    columns: Mapping[str, Sequence[str | None]], fields: Mapping[str, Sequence[str | None]]
) -> tuple[list[Pair], list[Pair]]:
    """Return the pairs of a column and a field with common values: those of one name, and the others."""
    of_one_name: list[Pair] = []
    others: list[Pair] = []
    for column, cells in columns.items():
        for field, values in fields.items():
            of_table, of_zones = set(cells) - {None}, set(values) - {None}
            shorter = min(len(of_table), len(of_zones))
            if shorter and len(of_table & of_zones) >= _LEAST_COMMON * shorter:
                is_same = column.strip().casefold() == field.casefold()
                (of_one_name if is_same else others).append((column, field))
    return of_one_name, others


def _joins_by(
    pairs: Sequence[Pair],
    columns: Mapping[str, Sequence[str | None]],
    fields: Mapping[str, Sequence[str | None]],
    most: int,
) -> list[_Join]:
    """Return the joins by up to ``most`` of the pairs that join the most zones, one for each different result."""
    found: list[_Join] = []
    n_rows = max(map(len, columns.values()), default=0)
    different_cells = {column: len(set(cells) - {None}) for column, cells in columns.items()}
    for number in range(1, most + 1):
        for together in combinations(pairs, number):
            names, of_zones = zip(*together, strict=True)
            is_more = any(set(join.pairs) <= set(together) for join in found)
            if is_more or len(set(names)) < number or len(set(of_zones)) < number:
                continue
            # Most columns have too few values to tell rows apart, of which some may be without a name.
            if math.prod(different_cells[name] for name in names) < n_rows * _LEAST_COMMON:
                continue
            join = _join_by(together, columns, fields)
            if join is not None and join.n_zones:
                found.append(join)
    most_zones = max((join.n_zones for join in found), default=0)
    different: dict[tuple[int | None, ...], _Join] = {}
    for join in found:
        if join.n_zones == most_zones:
            different.setdefault(join.places, join)
    return [*different.values()]


def _join_by(
    pairs: tuple[Pair, ...],
    columns: Mapping[str, Sequence[str | None]],
    fields: Mapping[str, Sequence[str | None]],
) -> _Join | None:
    """Return the join by pairs; None if they do not tell all rows, or all zones, apart."""
    rows = [*zip(*(columns[column] for column, _ in pairs), strict=True)]
    zones = [*zip(*(fields[field] for _, field in pairs), strict=True)]
    named_rows = {key: place for place, key in enumerate(rows) if None not in key}
    named_zones = [key for key in zones if None not in key]
    n_rows = sum(None not in key for key in rows)
    if len(named_rows) < n_rows or len(set(named_zones)) < len(named_zones):
        return None
    return _Join(pairs, tuple(named_rows.get(key) for key in zones))


def _given_join(rows: _Rows, fields: Mapping[str, Sequence[str | None]], text: str) -> _Join:
    """Return the join that ``--set plot`` names: ``Reihe,Spalte`` or ``Reihe=row,Spalte=column``."""
    columns = {column: _keys(cells) for column, cells in rows.cells.items()}
    parts = [part.partition("=") for part in text.split(",")]
    named = [(column.strip(), field.strip()) for column, _, field in parts]
    # A column that is called as no field may hold the names of the zones.
    is_alone = len(named) == 1 and named[0][0] not in fields
    pairs = tuple((column, field or (ZONE if is_alone else column)) for column, field in named)
    unknown = [column for column, _ in pairs if column not in columns]
    unknown += [field for _, field in pairs if field not in fields]
    hint = f"columns: {', '.join(columns)}; fields of the zones: {', '.join(fields)}"
    if unknown:
        why = f"--set plot={text}: there is no {unknown[0]}"
        raise ToolError("invalid_argument", why, argument="table", hint=hint)
    join = _join_by(pairs, columns, fields)
    loose_columns, loose_fields = _loose_keys(columns), _loose_keys(fields)
    if all(column in loose_columns and field in loose_fields for column, field in pairs):
        loose = _join_by(pairs, loose_columns, loose_fields)
        if loose is not None and (join is None or loose.n_zones > join.n_zones):
            join = loose._replace(is_loose=True)
    if join is None or not join.n_zones:
        what = _equals(pairs, rows, fields) if join is None else "it names no zone"
        why = f"--set plot={text}: {what}"
        raise ToolError("invalid_argument", why, argument="table", hint=hint)
    return join


def _equals(pairs: Sequence[Pair], rows: _Rows, fields: Mapping[str, Sequence[str | None]]) -> str:
    """Return which value of columns that name a plot stands in several rows or zones; empty if none does."""
    of_rows = [*zip(*(_keys(rows.cells[column]) for column, _ in pairs), strict=True)]
    if (twice := _repeated(of_rows)) is not None:
        numbers = [str(rows.numbers[place]) for place, key in enumerate(of_rows) if key == twice]
        place = of_rows.index(twice)
        written = ", ".join(f"{column} {rows.cells[column][place]}" for column, _ in pairs)
        return f"{written} stands in rows {first_names(numbers, _LISTED)}"
    of_zones = [*zip(*(fields[field] for _, field in pairs), strict=True)]
    if (twice := _repeated(of_zones)) is not None:
        named = zip((field for _, field in pairs), twice, strict=True)
        written = ", ".join(f"{field} {value}" for field, value in named)
        return f"{written} stands in {of_zones.count(twice)} zones"
    return ""


def _repeated(keys: Sequence[tuple[str | None, ...]]) -> tuple[str | None, ...] | None:
    """Return the first complete key that stands several times; None if there is none."""
    counts = Counter(key for key in keys if None not in key)
    return next((key for key, times in counts.items() if times > 1), None)


def _equals_of_nearest(rows: _Rows, fields: Mapping[str, Sequence[str | None]]) -> str:
    """Return which values stand in several rows or zones, of the columns that come nearest to naming the plots."""
    columns = {column: _keys(cells) for column, cells in rows.cells.items()}
    of_one_name, others = _pairs_of(columns, fields)
    nearest: tuple[Pair, ...] = ()
    most = _LEAST_COMMON * len(rows.numbers)
    for number in range(1, _MOST_TOGETHER + 1):
        for together in combinations(of_one_name or others, number):
            of_rows = set(zip(*(columns[column] for column, _ in together), strict=True))
            of_zones = set(zip(*(fields[field] for _, field in together), strict=True))
            if len(of_rows & of_zones) > most:
                nearest, most = together, len(of_rows & of_zones)
    return _equals(nearest, rows, fields) if nearest else ""


def _notes_on_the_rest(file: str, rows: _Rows, join: _Join, names: Sequence[str]) -> list[str]:
    """Return a line on the rows and the zones that did not join."""
    used = set(join.places)
    lone_rows = [
        f"row {number}: {_first_filled(rows, place)}"
        for place, number in enumerate(rows.numbers)
        if place not in used
    ]
    lone_zones = [name for name, place in zip(names, join.places, strict=True) if place is None]
    parts: list[str] = []
    if lone_rows:
        parts.append(
            f"{count_text(len(lone_rows), 'row')} without a zone ({first_names(lone_rows, _MOST_LONE)})"
        )
    if lone_zones:
        parts.append(
            f"{count_text(len(lone_zones), 'zone')} without a row ({first_names(lone_zones, _MOST_LONE)})"
        )
    return [f"{file}: not joined: {' and '.join(parts)}"] if parts else []


def _first_filled(rows: _Rows, place: int) -> str:
    """Return the first cell of a row that is not empty."""
    return next((cells[place] for cells in rows.cells.values() if cells[place].strip()), "empty")


def _values_of(
    column: str,
    cells: Sequence[str],
    known_marks: Mapping[Decimal, str],
    settings: Settings,
    readings: Readings,
) -> tuple[Sequence[str | float | None], str | None]:
    """Return the cells of a column and their unit. More than half must be numbers of one unit; other cells stay text,
    as all cells of other columns do, and those of a treatment such as ``60 kg, control``.

    ``known_marks``: decimal marks of other cells of the file.
    """
    # A treatment may be called "none": placeholders are empty cells among numbers only.
    texts = [None if is_fault(cell) else cell.strip() or None for cell in cells]
    filled = [cell for cell in cells if not is_empty(cell)]
    # Whether a cell is a number does not depend on the decimal mark.
    numbers = {cell: found for cell in filled if (found := _quantity_of(cell, ".")) is not None}
    units = Counter(numbers[cell].unit for cell in filled if cell in numbers)
    unit, count = units.most_common(1)[0] if units else (None, 0)
    if count <= _LEAST_NUMBERS * len(filled):
        return texts, None
    if unit is not None and _are_amounts_and_names(filled, numbers):
        return texts, None
    decimal, is_sure, example = detect_decimal(cell for cell in filled if cell in numbers)
    if example:
        decimal = _mark_in_doubt(
            column, example, decimal if is_sure else None, known_marks, settings, readings
        )
    values: list[str | float | None] = []
    for cell, text in zip(cells, texts, strict=True):
        if is_empty(cell):
            values.append(None)
            continue
        found = _quantity_of(cell, decimal)
        # The unit of a plain number may stand in the header: 5030 and 5030 kg/ha of "Yield (kg/ha)" are one.
        is_of_header = found is not None and bool(found.unit) and _has_word(column, found.unit)
        is_of_column = found is not None and (found.unit == unit or (unit is None and is_of_header))
        values.append(found.value if found is not None and is_of_column else text)
    return values, unit


def _are_amounts_and_names(filled: Sequence[str], numbers: Mapping[str, CellQuantity]) -> bool:
    """Return True for amounts each of which several plots have, and names: no measured value repeats in all plots."""
    has_name = any(cell not in numbers for cell in filled)
    plots = Counter(cell for cell in filled if cell in numbers)
    return has_name and min(plots.values()) > 1


def _quantity_of(cell: str, decimal: Decimal) -> CellQuantity | None:
    """Return the number in a cell; None for text, and for a number of things."""
    try:
        found = quantity(cell, decimal)
    except CellFault:
        return None
    return None if found.counted else found


def _known_marks(rows: _Rows, of_keys: Container[str]) -> dict[Decimal, str]:
    """Return the decimal marks that cells of a table can only have, each with a cell: ``13,5``."""
    known: dict[Decimal, str] = {}
    for column, cells in rows.cells.items():
        if column in of_keys:
            continue  # "1.2" may name a plot.
        for cell in cells:
            has_mark = "." in cell or "," in cell
            # A number of a workbook says nothing of how texts are written.
            if not has_mark or isinstance(cell, NumberText) or _quantity_of(cell, ".") is None:
                continue
            mark, _, in_doubt = detect_decimal([cell])
            if not in_doubt:
                known.setdefault(mark, f"{cell} of {column}")
    return known


def _mark_in_doubt(
    column: str,
    example: str,
    likely: Decimal | None,
    known_marks: Mapping[Decimal, str],
    settings: Settings,
    readings: Readings,
) -> Decimal:
    """Return the decimal mark of a column with cells that may be two numbers, and say which one is taken.

    It is the given one, that of the other cells of the file, the ``likely`` one, or an answer of the user.
    """
    marks: tuple[Decimal, ...] = (".", ",")
    numbers = {mark: f"{quantity(example, mark).value:.12g}" for mark in marks}
    given = settings.get("decimal")
    why = ""
    if given is None and len(known_marks) == 1:
        ((decimal, cell),) = known_marks.items()
        why = f" as in {cell}"
    elif given is None and likely is not None:
        decimal = likely
    else:
        choices = tuple(Choice(mark, f"{example} is {number}") for mark, number in numbers.items())
        question = ReadingQuestion(f"Decimal mark of {column}?", "--set=decimal", choices)
        decimal = "," if readings.choose(question, given) == "," else "."
    other: Decimal = "." if decimal == "," else ","
    readings.take(
        f'{example} of {column} as {numbers[decimal]} (decimal mark "{decimal}"{why}; '
        f"--set decimal={other} reads {numbers[other]})"
    )
    return decimal
