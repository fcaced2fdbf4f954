"""Commas in columns of predictions, which are decimal marks or marks between thousands."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from agrotools.core.readings import Choice, ReadingQuestion
from agrotools.foreign.prediction_columns import (
    NUMBER_CELL,
    Choosing,
    PredictionCell,
    ReadColumn,
    with_cell,
)
from agrotools.foreign.prediction_forms import Row
from agrotools.text.decimal_marks import Decimal, detect_decimal

_MARKS: dict[str, Decimal] = {"point": ".", "comma": ","}
"""Decimal marks by the names under which they are chosen."""
_NAMES = {mark: name for name, mark in _MARKS.items()}
_IN_TEXT = re.compile(r"(?<![\d.,])[1-9]\d{0,2},\d{3}(?![\d.,])")
"""A number within a text whose comma may be either mark."""


class _Numbers(NamedTuple):
    """Cells of a column that hold one number, and the decimal mark: None if the cells do not tell it.

    ``example``: the first number whose comma may be either, as ``3,750``; empty without one.
    """

    column: ReadColumn
    cells: list[tuple[PredictionCell, re.Match[str]]]
    example: str
    decimal: Decimal | None


def with_decimal_points(
    rows: Sequence[Row], columns: Sequence[ReadColumn], file: str, choosing: Choosing
) -> list[Row]:
    """Return the rows with a point as the decimal mark of the numbers in ``columns``.

    It asks for the decimal mark of the columns whose commas may be decimal marks or marks between thousands.
    """
    found = [_numbers(column) for column in columns]
    unsettled = [each for each in found if each.decimal is None]
    chosen = _ask_for_mark(unsettled, file, choosing) if unsettled else "."
    changed: list[Row] = [*rows]
    for each in found:
        mark = each.decimal or chosen
        # Where a point was chosen, 3,750 becomes 3750, because readers of answers decide anew.
        if mark == "," or each.decimal is None:
            _write_plainly(each, mark, changed)
    _say_what_texts_mean(found, choosing)
    return changed


def _say_what_texts_mean(found: Sequence[_Numbers], choosing: Choosing) -> None:
    """Say how a comma is read within a longer text, such as ``height: 26,411``, which no decimal mark changes."""
    for each in found:
        plain = {cell.row for cell, _ in each.cells}
        texts = (cell.text for cell in each.column.cells if cell.row not in plain)
        number = next((match[0] for text in texts if (match := _IN_TEXT.search(text))), "")
        if number:
            choosing.readings.take(
                f"commas within the longer texts of column {each.column.title} as marks between thousands, as in a "
                f"model's answer ({number} is {number.replace(',', '')}; --decimal is for cells that hold one number)"
            )


def _numbers(column: ReadColumn) -> _Numbers:
    cells = [
        (cell, number) for cell in column.cells if (number := NUMBER_CELL.fullmatch(cell.text))
    ]
    numbers = [number["number"] for _, number in cells]
    mark, is_sure, _ = detect_decimal(numbers)
    example = next(filter(_is_ambiguous, numbers), "")
    is_mixed = mark == "." and any(map(_is_decimal_comma, numbers))
    is_told = not example or (is_sure and not is_mixed)
    return _Numbers(column, cells, example, mark if is_told else None)


def _ask_for_mark(unsettled: Sequence[_Numbers], file: str, choosing: Choosing) -> Decimal:
    titles = [each.column.title for each in unsettled]
    example = unsettled[0].example
    choices = tuple(
        Choice(name, f"{example} is {_value(example, mark):.12g}") for name, mark in _MARKS.items()
    )
    words = f"column{'s' if len(titles) > 1 else ''} {', '.join(titles)}"
    question = ReadingQuestion(
        f"What is the decimal mark in {words} of {file}?", "--decimal", choices
    )
    given = choosing.chosen.decimal
    chosen = choosing.choose(question, _NAMES.get(given, given))
    choosing.readings.take(f"the decimal mark in {words} as a {chosen}")
    return _MARKS[chosen]


def _write_plainly(numbers: _Numbers, mark: Decimal, rows: list[Row]) -> None:
    """Write the numbers of a column with a decimal point, and without marks between thousands, into the rows."""
    for cell, number in numbers.cells:
        written = number["number"]
        if mark == ",":
            written = written.replace(".", "").replace(",", ".")
        elif _is_ambiguous(written):
            written = written.replace(",", "")
        text = written + cell.text[number.end("number") :]
        rows[cell.row] = with_cell(rows[cell.row], numbers.column, text)


def _is_ambiguous(number: str) -> bool:
    """Return True for ``3,750``: it is one thousand times larger if its comma is a mark between thousands."""
    return re.fullmatch(r"[-+]?[1-9]\d{0,2},\d{3}", number) is not None


def _is_decimal_comma(number: str) -> bool:
    """Return True for ``3,7``: a number whose comma cannot be a mark between thousands."""
    return "." not in number and number.count(",") == 1 and not re.search(r",\d{3}$", number)


def _value(number: str, decimal: Decimal) -> float:
    thousands = "," if decimal == "." else "."
    return float(number.replace(thousands, "").replace(decimal, "."))
