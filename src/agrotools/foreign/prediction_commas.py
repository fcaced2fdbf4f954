"""Commas in columns of predictions, which are decimal marks or marks between thousands."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from agrotools.core import ExactSlot, Slot, ToleranceSlot
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
from agrotools.text.units import canonical_unit, compatible, convert

_MARKS: dict[str, Decimal] = {"point": ".", "comma": ","}
"""Decimal marks by the names under which they are chosen."""
_NAMES = {mark: name for name, mark in _MARKS.items()}


class _Numbers(NamedTuple):
    """Cells of a column that hold one number, and the decimal mark: None if cells and right answers do not tell it.

    ``alike``: the numbers whose comma may be either, as ``3,750``, with the slot that each answers.
    """

    column: ReadColumn
    cells: list[tuple[PredictionCell, re.Match[str]]]
    alike: list[tuple[re.Match[str], Slot | None]]
    decimal: Decimal | None
    note: str

    @property
    def example(self) -> str:
        return self.alike[0][0]["number"]


def with_decimal_points(
    rows: Sequence[Row], columns: Sequence[ReadColumn], file: str, choosing: Choosing
) -> tuple[list[Row], list[str]]:
    """Return the rows with a point as the decimal mark of the numbers in ``columns``, and what was settled by the gold.

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
    return changed, [each.note for each in found if each.note]


def _numbers(column: ReadColumn) -> _Numbers:
    cells = [
        (cell, number) for cell in column.cells if (number := NUMBER_CELL.fullmatch(cell.text))
    ]
    mark, is_sure, _ = detect_decimal(number["number"] for _, number in cells)
    alike = [(number, cell.slot) for cell, number in cells if _is_ambiguous(number["number"])]
    if not alike:
        return _Numbers(column, cells, alike, mark, "")
    is_mixed = mark == "." and any(_is_decimal_comma(each["number"]) for _, each in cells)
    settled = mark if is_sure else _settled_by_gold(alike)
    if settled is None or is_mixed:
        return _Numbers(column, cells, alike, None, "")
    example = alike[0][0]["number"]
    note = "" if is_sure else f"{column.title}: {example} is {_value(example, settled):.12g}"
    return _Numbers(column, cells, alike, settled, note)


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


def _settled_by_gold(cells: Sequence[tuple[re.Match[str], Slot | None]]) -> Decimal | None:
    """Return the decimal mark with which every cell is nearer to the right answer, by ratio; None if none is."""
    nearer: set[Decimal] = set()
    for number, slot in cells:
        if not isinstance(slot, ToleranceSlot | ExactSlot) or isinstance(slot.value, str):
            return None
        gold = _gold_in(slot, (number["rest"] or "").strip())
        if not gold:
            return None
        small, large = (abs(_value(number["number"], mark) / gold) for mark in (",", "."))
        # A value that lies between both readings, at their geometric mean, is as near to one as to the other.
        nearer.add("," if small * large > 1 else ".")
    return nearer.pop() if len(nearer) == 1 else None


def _gold_in(slot: ToleranceSlot | ExactSlot, written: str) -> float | None:
    """Return the right number in the unit that a cell is written in; None if that unit is not known to fit."""
    gold, unit = float(slot.value), canonical_unit(written) if written else slot.unit
    if unit == slot.unit:
        return gold
    if unit is None or slot.unit is None or not compatible(slot.unit, unit):
        return None
    return convert(gold, slot.unit, unit)
