"""Values of cells: a number with its unit, yes or no, a name. A cell that cannot be used says why and what to do."""

import re
from collections.abc import Collection, Iterable
from typing import Literal, NamedTuple

from agrotools.text.normalise import canonical_unit

Decimal = Literal[".", ","]
Value = float | bool | str
"""Answer of a cell."""

EMPTY = {"", *"- -- – / ? na n/a n.a. nan none null nil missing 无数据 缺失 未测".split()}
YES = ("yes", "y", "true", "1", "x", "ja", "oui", "si", "sí", "是", "有", "√", "✓")
NO = ("no", "n", "false", "0", "nein", "non", "否", "没有", "无", "不", "×")
_NUMBER = re.compile(r"(?P<number>[-+]?(?:\d[\d.,' \u00a0]*\d|\d)(?:[eE][-+]?\d+)?)\s*(?P<unit>\D.*)?")
_RANGE = re.compile(r"\d\s*(?:-|–|~|to|bis|至|到)\s*\d")
_COUNTED = re.compile(r"[^\W\d_][^\W\d]*")
_FORBIDDEN = re.compile(r'[<>\\@{}"\[\]|\x00-\x1f\x7f]')
_LONGEST_NAME = 80


class CellFault(Exception):
    """Reason that a cell cannot be used (``reason`` continues "the cell ..."), and a hint that says what to do."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(f"{reason} ({hint})")
        self.reason = reason
        self.hint = hint


class Quantity(NamedTuple):
    """A number; ``unit`` as in the table of units, None where none is written; ``counted``: another word behind it."""

    value: float
    unit: str | None
    counted: str | None = None


def is_empty(text: str) -> bool:
    """True if a cell is empty or holds a placeholder."""
    return text.strip().casefold() in EMPTY


def quantity(text: str, decimal: Decimal = ".") -> Quantity:
    """The number in a cell: ``12``, ``1,234.5``, ``3,5 cm`` (with ``decimal`` ","), ``35%``, ``12 apples``, ``12个``.

    Raises:
        CellFault: no number, a range, a bound, or something behind the number that is neither unit nor noun.
    """
    if text[:1] in "<>≤≥~≈":
        raise CellFault("holds a bound or an estimate instead of a value", "write one number")
    if _RANGE.search(text):
        raise CellFault("holds a range", "write one number, e.g. the middle")
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise CellFault("holds no number", "write one number, with a unit if you like")
    digits = re.sub(r"[' \u00a0]", "", match["number"])
    thousands = "," if decimal == "." else "."
    if not re.fullmatch(rf"[-+]?(?:\d+|\d{{1,3}}(?:\{thousands}\d{{3}})+)(?:\{decimal}\d+)?(?:[eE][-+]?\d+)?", digits):
        raise CellFault(f"holds a number that cannot be read with decimal {decimal!r}", "set decimal in the plan")
    value = float(digits.replace(thousands, "").replace(decimal, "."))
    behind = (match["unit"] or "").strip()
    if not behind:
        return Quantity(value, None)
    if unit := canonical_unit(behind):
        return Quantity(value, unit)
    if _COUNTED.fullmatch(behind):
        return Quantity(value, None, behind)
    raise CellFault(f"holds {behind!r} behind the number, which is no known unit", "write mm, cm, m, %, ha...")


def quantity_or_none(text: str, decimal: Decimal = ".") -> Quantity | None:
    """As :func:`quantity`; None if the cell holds no usable number."""
    try:
        return quantity(text, decimal)
    except CellFault:
        return None


def detect_decimal(texts: Iterable[str]) -> tuple[Decimal, bool]:
    """Decimal mark of a column, and whether it is certain: ``1,234`` on its own may be either."""
    comma = point = unsure = False
    for text in texts:
        number = re.match(r"[-+]?[\d.,]+", text.strip())
        if number is None or not re.search(r"[.,]", number[0]):
            continue
        written = number[0]
        if "," in written and "." in written:
            comma |= written.rfind(",") > written.rfind(".")
            point |= written.rfind(",") < written.rfind(".")
        elif "." in written:
            point = True
        elif re.fullmatch(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+", written):
            unsure = True
        else:
            comma = True
    return (",", not (unsure and not comma)) if comma and not point else (".", not (unsure and not point))


def yes_or_no(text: str, yes: Collection[str] = YES, no: Collection[str] = NO) -> bool:
    """Answer of a cell.

    Raises:
        CellFault: none of the words.
    """
    plain = text.strip().casefold()
    if plain in {word.casefold() for word in yes}:
        return True
    if plain in {word.casefold() for word in no}:
        return False
    raise CellFault("is neither yes nor no", "write yes or no, or add the word to yes or no in the plan")


def name(text: str) -> str:
    """A name that can be used in a question and an answer.

    Raises:
        CellFault: it holds markup or signs that have a meaning elsewhere, is too long, or has no letter.
    """
    plain = text.strip().replace("'", "’").replace("`", "’")
    if re.search(r"<[a-zA-Z/!]", plain):
        raise CellFault("holds HTML", "write plain text")
    if match := _FORBIDDEN.search(plain):
        raise CellFault(f"holds {match[0]!r}", "write plain text")
    if len(plain) > _LONGEST_NAME:
        raise CellFault(f"is longer than {_LONGEST_NAME} characters", "write a name only")
    if not re.search(r"[^\W\d_]", plain):
        raise CellFault("holds no name", "write a name")
    return plain
