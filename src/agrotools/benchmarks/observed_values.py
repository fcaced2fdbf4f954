"""Whether two observations of a call are the same, value by value."""

import math
import re
from collections.abc import Iterator

from pydantic import JsonValue

REL_TOL = 1e-4
ABS_TOL = 1e-6
"""So much may a number differ, of the larger one or in all: libraries add up in another order."""
_NUMBERED = re.compile(r"\[\d+\]")


def differing(before: JsonValue, now: JsonValue, where: str = "") -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """Each place at which two values differ, with both values; a missing one is None.

    Numbers are equal within :data:`REL_TOL` or :data:`ABS_TOL`; all else must be the same. Lists of other lengths
    differ as a whole.
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for key in (*before, *(key for key in now if key not in before)):
            yield from differing(before.get(key), now.get(key), f"{where}.{key}" if where else key)
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for index, (old, new) in enumerate(zip(before, now, strict=True)):
            yield from differing(old, new, f"{where}[{index}]")
    elif not _same(before, now):
        yield where, before, now


def kind_of_place(where: str) -> str:
    """A place without the numbers of list elements: ``result.regions[3].area_pct`` as ``result.regions[].area_pct``."""
    return _NUMBERED.sub("[]", where)


def _same(before: JsonValue, now: JsonValue) -> bool:
    if isinstance(before, bool) or isinstance(now, bool):
        return before is now
    if isinstance(before, int | float) and isinstance(now, int | float):
        return math.isclose(before, now, rel_tol=REL_TOL, abs_tol=ABS_TOL)
    return before == now
