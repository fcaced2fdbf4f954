"""Tolerances of a new plan, which follow the spread of the values in the table."""

from collections.abc import Sequence

from agrotools.core.texts import within_text
from agrotools.loading.easy import telling_tolerance
from agrotools_build.own_photos.building import numbers_of
from agrotools_build.own_photos.plan import Column, Measure, Plan, measures
from agrotools_build.own_photos.questions import tolerance_text
from agrotools_build.own_photos.table import DetectedTable

FEWEST_VALUES = 8
"""Fewest values whose spread says something."""


def with_tolerances(plan: Plan, seen: DetectedTable) -> tuple[Plan, list[str]]:
    """Return a plan with tolerances that tell the values of its columns apart, and a line on each that was changed.

    Tolerances that the plan has stay.
    """
    columns: list[Column] = []
    lines: list[str] = []
    for column in plan.columns:
        changed = _with_tolerance(column, seen)
        columns.append(changed)
        if changed != column:
            measure = measures()[column.ask]
            usual = within_text(measure.abs_tol, measure.rel_tol, measure.unit, "the true value")
            lines.append(
                f"tolerance of {column.column}: {tolerance_text(changed, measure)}, by the range of its values "
                f"(usual: {usual})"
            )
    return plan.model_copy(update={"columns": tuple(columns)}), lines


def _with_tolerance(column: Column, seen: DetectedTable) -> Column:
    if not column.is_asked or column.abs_tol is not None or column.rel_tol is not None:
        return column
    measure = measures()[column.ask]
    values = numbers_of(seen, column)
    if measure.kind != "number" or len(values) < FEWEST_VALUES:
        return column
    absolute, relative = proposed_tolerance(measure, values)
    if (absolute, relative) == (measure.abs_tol, measure.rel_tol):
        return column
    return column.model_copy(update={"abs_tol": absolute, "rel_tol": relative})


def proposed_tolerance(measure: Measure, values: Sequence[float]) -> tuple[float, float]:
    """Return ``abs_tol`` and ``rel_tol``: those of the measure, or less if the values are close to each other.

    Neither allows a larger error than :func:`telling_tolerance` for the value in the middle, nor a smaller one than
    one unit of the last digit that the table has: nobody measured more finely.
    """
    largest = max(telling_tolerance(values), _last_digit(values))
    middle = sorted(map(abs, values))[len(values) // 2]
    absolute = min(measure.abs_tol, largest)
    if not middle or measure.rel_tol * middle <= largest:
        return absolute, measure.rel_tol
    return absolute, float(f"{largest / middle:.1g}")


def _last_digit(values: Sequence[float]) -> float:
    """Return one unit of the last digit of the values: 0.1 if one of them is 6.2, and 1 if all are whole."""
    decimals = [len(f"{value:.6g}".partition(".")[2]) for value in values]
    return 10.0 ** -max(decimals)
