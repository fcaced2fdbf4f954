"""Tolerances of answers. Set from what the task needs, before any tool was run, and the same for all of them.

A cover of the ground is right within 2 points. A cover that is asked for outright is therefore at least
:data:`LEAST_COVER`, so that "none" is never right.

A value derived from covers is right within what its parents' tolerances combine to, as independent errors, and 5 % of
its own value beyond that. In a derived value a parent's tolerance is 2 points or 10 % of the parent, whichever is less:
2 points of a crop that covers 1 % of the ground would allow any ratio at all.
"""

import math
from dataclasses import dataclass

COVER_POINTS = 2.0
LEAST_COVER = 2 * COVER_POINTS
PARENT_SHARE = 0.10
BEYOND = 0.05


@dataclass(frozen=True)
class Tolerance:
    """``abs_tol`` and ``rel_tol`` of a slot."""

    abs_tol: float = 0.0
    rel_tol: float = 0.0


def of_cover() -> Tolerance:
    """Share of the ground, in percent; also a mean of such shares."""
    return Tolerance(abs_tol=COVER_POINTS)


def of_quotient(first: float, second: float) -> Tolerance:
    """``first / second`` of two covers, or any constant times it."""
    return Tolerance(rel_tol=_round(math.hypot(_relative(first), _relative(second)) + BEYOND))


def of_product(cover: float) -> Tolerance:
    """A constant times a cover, such as an area in a field."""
    return Tolerance(rel_tol=_round(_relative(cover) + BEYOND))


def of_difference(first: float, second: float) -> Tolerance:
    """``first - second`` of two covers, in points."""
    combined = math.hypot(_relative(first) * first, _relative(second) * second)
    return Tolerance(abs_tol=_round(combined + BEYOND * abs(first - second)))


def of_sum(*parts: float) -> Tolerance:
    """Sum of terms that are each a constant times a cover; ``parts`` are the terms, with parents' share of 10 %."""
    combined = math.hypot(*(PARENT_SHARE * part for part in parts))
    return Tolerance(abs_tol=_round(combined + BEYOND * sum(parts)))


def of_share(first: float, second: float) -> Tolerance:
    """``100 * first / (first + second)`` of two covers, in percent."""
    share = first / (first + second)
    combined = share * (1.0 - share) * math.hypot(_relative(first), _relative(second))
    return Tolerance(abs_tol=_round(100.0 * (combined + BEYOND * share)))


def _relative(cover: float) -> float:
    return min(COVER_POINTS / cover, PARENT_SHARE) if cover > 0 else PARENT_SHARE


def _round(value: float) -> float:
    """To three significant digits, so that tolerances read well in files."""
    return float(f"{value:.3g}")
