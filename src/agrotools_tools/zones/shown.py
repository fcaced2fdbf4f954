"""Measured values as a reader sees them: names in words, and as many decimals as their spread supports."""

import math
from collections.abc import Sequence
from statistics import median

from agrotools.core.texts import number_text
from agrotools_tools.zones.treatments import CHANGE

_WORDS = {"veg_pct": ("plant cover", "%"), "mean_m": ("mean height", "m")}
"""Name and unit of columns whose own name is an abbreviation; ``ndvi_mean`` and columns of a plan stay as they are."""
_MOST_DECIMALS = 6
"""Decimals of a table, at most: as many as ``number_text`` has digits."""


def name_of(column: str) -> str:
    """Return a value or its change in words, without its unit: ``plant cover``, ``change of plant cover``."""
    start, plain = _parts(column)
    return f"{start}{_WORDS.get(plain, (plain,))[0]}"


def unit_of(column: str) -> str:
    """Return the unit of a value or of its change; "" if it is not known. A change of percent is in points."""
    start, plain = _parts(column)
    _, unit = _WORDS.get(plain, (plain, ""))
    return "points" if start and unit == "%" else unit


def named_with_unit(column: str) -> str:
    """Return a value in words, with its unit: ``plant cover, %``."""
    return ", ".join(filter(None, (name_of(column), unit_of(column))))


def _parts(column: str) -> tuple[str, str]:
    plain = column.removeprefix(CHANGE)
    return column[: len(column) - len(plain)], plain


def decimals_of(spreads: Sequence[float]) -> int | None:
    """Return the decimals of means with these standard deviations; None if there is no spread.

    The last decimal is one place below the first digit of the median spread: 39.8 with a spread of 2.96.
    """
    known = [spread for spread in spreads if spread > 0]
    if not known:
        return None
    first_digit = math.floor(math.log10(median(known)))
    return min(max(0, 1 - first_digit), _MOST_DECIMALS)


def rounded_text(value: float, decimals: int | None) -> str:
    """Return a number with these decimals; with six significant digits if they are None."""
    if decimals is None:
        return number_text(value)
    return f"{round(value, decimals) + 0.0:.{decimals}f}"  # adding 0.0 turns -0.0 into 0.0
