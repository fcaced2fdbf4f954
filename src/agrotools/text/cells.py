"""Values of cells: numbers with units, yes or no, names.

The text of a cell of somebody's table comes in; its value goes out. A date, a range or a bound raises CellFault,
which says what to write instead; it is never taken for a value.
"""

import re
from collections.abc import Collection
from typing import NamedTuple

from agrotools.text import yes_no
from agrotools.text.decimal_marks import GROUPED, Decimal, NumberText
from agrotools.text.tables import STRUCK, CellFault
from agrotools.text.units import canonical_unit

Value = float | bool | str
"""Value of a cell."""

_FAULT = re.compile(r"#[¡¿]?[^\W\d_a-zà-ÿ]+(?:/[A-Z0-9])?[!?]?|Err:\d{3}")
"""Value of a formula that has none, as spreadsheets show it: ``#N/A``, ``#¡DIV/0!``, ``#WERT!``."""
EMPTY = {"", *"- -- – / ? na n/a n.a. nan none null nil missing 无数据 缺失 未测".split()}
YES = (*yes_no.YES, "1", "x", "有", "√", "✓")
NO = (*yes_no.NO, "0", "没有", "无", "不", "×")
NUMBER = re.compile(
    r"(?P<number>[-+]?(?:\d[\d.,' \u00a0]*\d|\d)(?:[eE][-+]?\d+)?)\s*(?P<unit>\D.*)?"
)
"""A number and what stands behind it."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?")
_RANGE = re.compile(r"\d\s*(?:-|–|~|to|bis|至|到)\s*\d")
_COUNTED = re.compile(r"[^\W\d_][^\W\d]*")
_FORBIDDEN = re.compile(r'[<>\\@{}"\[\]|\x00-\x1f\x7f]')
_LONGEST_NAME = 80
_LARGEST = 1e12


class CellQuantity(NamedTuple):
    """A number with its unit (None: the cell has none), and a noun after the number."""

    value: float
    unit: str | None
    counted: str | None = None


def is_empty(text: str) -> bool:
    """Return True if a cell is empty or contains a placeholder."""
    return text.strip().casefold() in EMPTY or is_fault(text)


def is_fault(text: str) -> bool:
    """Return True if a cell shows that its formula has no value."""
    return _FAULT.fullmatch(text.strip()) is not None


def quantity(text: str, decimal: Decimal = ".") -> CellQuantity:
    """Return the number in a cell: ``12``, ``1,234.5``, ``3,5 cm`` (``decimal`` ","), ``35%``, ``12 apples``, ``12个``.

    The mark ``decimal`` is of use where a cell may be two numbers: ``1,234``. Else the cell tells its own.

    CellFault for no number, a date, a range, a bound, over 1e12, or text that is neither unit nor noun.
    """
    _refuse_date_and_struck(text)
    if text[:1] in "<>≤≥~≈":
        raise CellFault("is a bound or an estimate, not a value", "write one number")
    if _RANGE.search(text):
        raise CellFault("is a range", "write one number, e.g. the middle")
    match = NUMBER.fullmatch(GROUPED.sub("", text.strip()))
    if match is None:
        raise CellFault("is not a number", "write one number, optionally with a unit")
    digits = match["number"]
    other: Decimal = "," if decimal == "." else "."
    marks: list[Decimal] = ["."] if isinstance(text, NumberText) else [decimal, other]
    readings = [value for mark in marks if (value := _with_mark(digits, mark)) is not None]
    if not readings:
        raise CellFault("is not a number", "write one number, as 1234.5 or 1234,5")
    value = readings[0]
    if abs(value) > _LARGEST:
        raise CellFault("is too large", f"write a number up to {_LARGEST:g}, or use a larger unit")
    written_unit = (match["unit"] or "").strip()
    if not written_unit:
        return CellQuantity(value, None)
    if unit := canonical_unit(written_unit):
        return CellQuantity(value, unit)
    if _COUNTED.fullmatch(written_unit):
        return CellQuantity(value, None, written_unit)
    raise CellFault(
        f"has {written_unit!r} after the number, which is not a known unit",
        "write mm, cm, m, %, ha...",
    )


def _with_mark(digits: str, decimal: Decimal) -> float | None:
    """Return the number that digits with marks are if ``decimal`` is the decimal mark, None if they are none."""
    thousands = "," if decimal == "." else "."
    whole = rf"[-+]?(?:\d+|\d{{1,3}}(?:\{thousands}\d{{3}})+)"
    if not re.fullmatch(rf"{whole}(?:\{decimal}\d+)?(?:[eE][-+]?\d+)?", digits):
        return None
    return float(digits.replace(thousands, "").replace(decimal, "."))


def _refuse_date_and_struck(text: str) -> None:
    """Raise CellFault for a date, and for text that is struck through in a workbook."""
    if _DATE.fullmatch(text.strip()):
        hint = "spreadsheets turn 3-5 into 5 March: write what was meant, in a cell of text"
        raise CellFault("is a date", hint)
    if text.startswith(STRUCK) and text.endswith(STRUCK) and text != STRUCK:
        raise CellFault("is struck through", "clear the cell, or take the line away")


def yes_or_no(text: str, yes: Collection[str] = YES, no: Collection[str] = NO) -> bool:
    """Return True for yes and False for no; CellFault for anything else."""
    plain = text.strip().casefold()
    if plain in {word.casefold() for word in yes}:
        return True
    if plain in {word.casefold() for word in no}:
        return False
    raise CellFault(
        "is neither yes nor no",
        "write yes or no, or name the words for it: --set 'COLUMN.yes=...' --set 'COLUMN.no=...'",
    )


def name(text: str) -> str:
    """Return the cell as a name for questions; CellFault for a date, markup, over 80 characters, or no letter."""
    _refuse_date_and_struck(text)
    plain = text.strip().replace("'", "’").replace("`", "’")
    if re.search(r"<[a-zA-Z/!]", plain):
        raise CellFault("contains HTML", "write plain text")
    if match := _FORBIDDEN.search(plain):
        raise CellFault(f"contains {match[0]!r}", "write plain text")
    if len(plain) > _LONGEST_NAME:
        raise CellFault(f"is longer than {_LONGEST_NAME} characters", "write a name only")
    if not re.search(r"[^\W\d_]", plain):
        raise CellFault("contains no letters", "write a name")
    return plain
