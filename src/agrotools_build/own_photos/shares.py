"""Numbers that were written as shares of 1 among percentages: 0.0672 among 6.7 and 12.3."""

import re
from collections.abc import Sequence
from contextlib import suppress

from agrotools.text import cells
from agrotools.text.units import canonical_unit
from agrotools_build.own_photos.plan import Column, Measure

_MORE_DECIMALS = 2
"""Decimals that a percentage gains when it is divided by 100."""
_DECIMALS = re.compile(r"[.,](\d+)$")


def shares_among_percents(texts: Sequence[str], column: Column, measure: Measure) -> frozenset[str]:
    """Return the cells below 1 that have two decimals more than every percentage of 1 and above; often none.

    Only cells without a unit are meant: 0.07 % is a percentage, however small it is.
    """
    if measure.unit != "%" or canonical_unit(column.unit) != "%":
        return frozenset()
    below_one: list[str] = []
    most_decimals = -1  # none is 1 or above
    for text in texts:
        with suppress(cells.CellFault):
            number = cells.quantity(text, column.decimal or ".")
            if number.unit is not None:
                continue
            if number.value >= 1:
                most_decimals = max(most_decimals, _decimals(text))
            elif number.value > 0:
                below_one.append(text)
    if most_decimals < 0:
        return frozenset()
    return frozenset(
        text for text in below_one if _decimals(text) >= most_decimals + _MORE_DECIMALS
    )


def _decimals(text: str) -> int:
    found = _DECIMALS.search(text.strip())
    return len(found[1]) if found else 0
