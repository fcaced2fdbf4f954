"""Columns of a file of predictions that must not be taken as they are: the reference, and ambiguous commas."""

import re
from collections.abc import Mapping, Sequence
from math import isclose
from typing import Any, NamedTuple, cast

from agrotools.agents.parsing import spoken_answer
from agrotools.core import (
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    Sample,
    Slot,
    ToleranceSlot,
    UndecidedError,
    UsageError,
)
from agrotools.core.slot import asked_slots
from agrotools.text.decimal_marks import Decimal, detect_decimal
from agrotools.text.submission import name_key
from agrotools.text.units import canonical_unit, compatible, convert

Row = Mapping[str, Any]
_FEW_ROWS = 5
"""Rows from which on a column that is right in all of them, to the last digit, is taken for the reference. Fewer right
answers are no sign, unless the file has another column of text."""
_NUMBER_CELL = re.compile(r"(?P<number>[-+]?\d[\d.,]*)(?P<rest>\s*[^\d.,\s]\D{0,20})?")
"""Cell that holds one number, and perhaps its unit."""
_LETTERS = re.compile(r"[^\W\d_]{2}")


class Cell(NamedTuple):
    """Text of a row in a column that is read as predictions."""

    row: int
    text: str
    slot: Slot | None
    """The slot that the text answers; None if that is not known."""


class ReadColumn(NamedTuple):
    """Column that is read as predictions, or a field of the objects in it (``item``), with the cells that hold text."""

    name: str
    item: str
    cells: list[Cell]

    @property
    def title(self) -> str:
        """Name of the column, and of the field: ``prediction.mean``."""
        return f"{self.name}.{self.item}" if self.item else self.name


def read_columns(
    rows: Sequence[Row], samples: Sequence[Sample | None], names: Sequence[str], whole: str
) -> list[ReadColumn]:
    """Return the columns ``names``. ``whole``: the column of whole predictions; the others are named by an item."""
    columns: dict[tuple[str, str], ReadColumn] = {}
    for name in names:
        for at, (row, sample) in enumerate(zip(rows, samples, strict=True)):
            if sample is None:
                continue
            value: Any = row.get(name)
            fields = cast("Row", value) if isinstance(value, Mapping) else {"": value}
            for item, each in fields.items():
                if isinstance(each, bool) or not isinstance(each, str | int | float):
                    continue
                text = spoken_answer(each) if isinstance(each, str) and each.strip() else str(each)
                column = columns.setdefault((name, item), ReadColumn(name, item, []))
                asked = item or (name if name != whole else "")
                if text.strip() and each == each:
                    column.cells.append(Cell(at, text.strip(), _slot_of(sample, asked)))
    return [*columns.values()]


def _slot_of(sample: Sample, item: str) -> Slot | None:
    """Return the slot that a cell answers: of the item, or the only one; None if that is not known."""
    slots = [slot for slot in asked_slots(sample.answer) if not slot.made_by_tools]
    if item:
        slots = [slot for slot in slots if name_key(item) in map(name_key, (slot.name, slot.label))]
    return slots[0] if len(slots) == 1 else None


# --- the reference in place of predictions ----------------------------------------------------------------------------


def check_no_reference(
    columns: Sequence[ReadColumn], rows: Sequence[Row], unread: Sequence[str], file: str
) -> None:
    """Raise an error if a column that is read may be the reference instead of predictions.

    ``columns``: those whose name does not say that they hold predictions. ``unread``: the other columns of the file.
    """
    texts = [name for name in unread if any(_is_text(row.get(name)) for row in rows)]
    hint = "name the column with the answers of your system prediction"
    for column in columns:
        if texts and column.name == "answer":
            raise UsageError(
                f"{file} has the columns answer and {', '.join(texts)}: answer may be the reference, and is not scored",
                hint=hint,
            )
        right = [cell.slot is not None and _is_gold(cell.slot, cell.text) for cell in column.cells]
        if right and all(right) and (texts or len(right) >= _FEW_ROWS):
            others = f" (not read: {', '.join(texts)})" if texts else ""
            raise UsageError(
                f"column {column.title} of {file} equals the right answer in all {len(right)} rows, so it is taken for "
                f"the reference, and is not scored{others}",
                hint=f"{hint}; if these are its answers, too",
            )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(_LETTERS.search(value))


def _is_gold(slot: Slot, text: str) -> bool:
    """Return True if a cell is the right answer itself, not only within its tolerance."""
    plain = text.strip().casefold()
    match slot:
        case BooleanSlot():
            return plain in (("yes", "true", "1") if slot.value else ("no", "false", "0"))
        case ChoiceSetSlot():
            given = {each.strip() for each in re.split(r"[,;|]", plain.strip("[]()"))}
            return {each.strip("'\"") for each in given} == {each.casefold() for each in slot.value}
        case ToleranceSlot() | ExactSlot() if not isinstance(slot.value, str):
            number = _NUMBER_CELL.fullmatch(plain)
            try:
                return number is not None and isclose(float(number["number"]), slot.value)
            except ValueError:
                return False
        case ExactSlot() | FileSlot():
            return plain == str(slot.value).casefold()
        case _:
            return False


# --- commas that are decimal marks or marks between thousands ---------------------------------------------------------


def with_decimal_points(
    rows: Sequence[Row], columns: Sequence[ReadColumn], file: str
) -> tuple[list[Row], list[str]]:
    """Return the rows with a point as the decimal mark of the numbers in ``columns``, and what was settled by the gold.

    Raises:
        UndecidedError: a comma of a column may be a decimal mark or a mark between thousands.
    """
    changed: list[Row] = [*rows]
    notes: list[str] = []
    for column in columns:
        cells = [
            (cell, number) for cell in column.cells if (number := _NUMBER_CELL.fullmatch(cell.text))
        ]
        decimal, is_sure, _ = detect_decimal(number["number"] for _, number in cells)
        alike = [(number, cell.slot) for cell, number in cells if _is_ambiguous(number["number"])]
        if alike:
            example = alike[0][0]["number"]
            mixed = decimal == "." and any(_is_decimal_comma(each["number"]) for _, each in cells)
            settled = decimal if is_sure else _settled_by_gold(alike)
            if settled is None or mixed:
                raise _undecided(column.title, example, file)
            if not is_sure:
                notes.append(f"{column.title}: {example} is {_value(example, settled):.12g}")
            decimal = settled
        for cell, number in cells if decimal == "," else ():
            written = number["number"].replace(".", "").replace(",", ".")
            text = written + cell.text[number.end("number") :]
            row = changed[cell.row]
            new = {**row[column.name], column.item: text} if column.item else text
            changed[cell.row] = {**row, column.name: new}
    return changed, notes


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


def _undecided(column: str, example: str, file: str) -> UndecidedError:
    small, large = (f"{_value(example, mark):.12g}" for mark in (",", "."))
    return UndecidedError(
        f"is {example} in column {column} of {file} {small} (decimal mark ',') or {large} (decimal mark '.')?",
        hint="write the numbers of the column with a decimal point and without marks between thousands: "
        f"{small} or {large}",
    )
