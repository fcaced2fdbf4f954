"""Decimal marks of a column of numbers, where a comma may also be the mark between thousands."""

import re
from collections.abc import Iterable
from typing import Literal

Decimal = Literal[".", ","]
GROUPED = re.compile(r"(?<=\d)['’ \u00a0\u202f](?=\d{3}(?!\d))")
"""Mark between thousands that is no point and no comma."""


class NumberText(str):
    """Text of a cell that holds a number: its decimal mark is a point, whatever the marks of other cells are."""

    __slots__ = ()


def detect_decimal(texts: Iterable[str]) -> tuple[Decimal, bool, str]:
    """Return the decimal mark of a column, True if it is sure, and a cell as ``1,234`` if no other cell tells.

    Cells of a workbook that hold numbers tell nothing. With a point, such cells are decimals if all have three digits
    behind it and not all end in 0, as programs write numbers.
    """
    comma = point = is_whole = False
    alike: list[str] = []
    for text in texts:
        if isinstance(text, NumberText):
            continue
        number = re.match(r"[-+]?[\d.,]+", GROUPED.sub("", text.strip()))
        written = number[0] if number else ""
        if "," in written and "." in written:
            comma |= written.rfind(",") > written.rfind(".")
            point |= written.rfind(",") < written.rfind(".")
        elif re.fullmatch(r"[-+]?[1-9]\d{0,2}(?:[.,]\d{3})+", written):
            comma |= written.count(".") > 1  # several marks are those of thousands
            point |= written.count(",") > 1
            alike.append(written)
        else:
            comma, point, is_whole = (
                comma or "," in written,
                point or "." in written,
                is_whole or written.isdigit(),
            )
    unsure = (
        any("," in each for each in alike) or is_whole or all(each.endswith("0") for each in alike)
    )
    is_told = comma != point or not alike
    return "," if comma and not point else ".", is_told or not unsure, "" if is_told else alike[0]
