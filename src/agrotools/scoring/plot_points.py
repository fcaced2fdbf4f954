"""Matching the points of two figures one to one."""

# scipy ships no type stubs.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

from bisect import bisect_left
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple, cast

from pydantic import JsonValue

from agrotools.core import PlotSeries, PlotSpec
from agrotools.text.agreement_values import Number, categories_agree, category

if TYPE_CHECKING:
    from numpy.typing import NDArray

Y_TOLERANCE = 0.05
"""Relative tolerance of y."""
Y_TOLERANCE_AT_ZERO = 0.01
"""Tolerance of y where the reference is 0, relative to the range of the reference series."""
_SLACK = 1 + 1e-9


class Matching(NamedTuple):
    """How the points of a drawn figure match those of the reference."""

    matched: int
    drawn: int
    reference: int
    pairs: tuple[tuple[str, str, int], ...]
    """Names of the paired series (reference, drawn), and how many of their points match."""

    @property
    def f1(self) -> float:
        """Harmonic mean of the shares of drawn and of reference points that match, 0..1."""
        return 2 * self.matched / (self.drawn + self.reference) if self.matched else 0.0

    def reading(self) -> dict[str, JsonValue]:
        series: list[JsonValue] = [
            {"reference": reference, "drawn": drawn, "matched": count} for reference, drawn, count in self.pairs
        ]
        return {"matched": self.matched, "drawn": self.drawn, "reference": self.reference, "series": series}


def match_points(reference: PlotSpec, drawn: PlotSpec) -> Matching:
    """Match as many points as can be matched one to one, each series with one other: the pairing of highest F1.

    Points match where x is the same category (numbers: relative 1e-3, whole numbers exactly) and y within 5 %, or where
    the reference is 0 within 1 % of its series' range. Where several reference x are near enough, the nearest counts.
    """
    targets = [_Target(series) for series in reference.series]
    counts = [[target.matched_by(series) for series in drawn.series] for target in targets]
    pairs = [
        (reference.series[row].name, drawn.series[column].name, counts[row][column])
        for row, column in _best_pairing(counts)
    ]
    return Matching(
        matched=sum(count for _, _, count in pairs),
        drawn=sum(len(series.y) for series in drawn.series),
        reference=sum(len(series.y) for series in reference.series),
        pairs=tuple(pairs),
    )


class _Target:
    """The points of a reference series, ready to be matched against others: for each x, the intervals of y."""

    def __init__(self, series: PlotSeries) -> None:
        span = max(series.y, default=0.0) - min(series.y, default=0.0)
        self._intervals: dict[str | Number, list[tuple[float, float]]] = {}
        for x, y in zip(series.x, series.y, strict=False):
            reach = (Y_TOLERANCE * abs(y) if y else Y_TOLERANCE_AT_ZERO * span) * _SLACK
            self._intervals.setdefault(_key(x), []).append((y - reach, y + reach))
        self._numbers = sorted(x for x in self._intervals if not isinstance(x, str))

    def matched_by(self, series: PlotSeries) -> int:
        """How many points of ``series`` can be given a reference point of their own."""
        at: dict[str | Number, list[float]] = {}
        for x, y in zip(series.x, series.y, strict=False):
            own = self._nearest(_key(x))
            if own is not None:
                at.setdefault(own, []).append(y)
        return sum(_fitted(self._intervals[x], values) for x, values in at.items())

    def _nearest(self, x: str | Number) -> str | Number | None:
        if x in self._intervals:
            return x
        if isinstance(x, str):
            return None
        place = bisect_left(self._numbers, x)
        near = [own for own in self._numbers[max(0, place - 1) : place + 1] if categories_agree(x, own)]
        return min(near, key=lambda own: abs(own - x), default=None)


def _key(x: str | float) -> str | Number:
    key = category(x)
    return "" if key is None else key


def _fitted(intervals: Sequence[tuple[float, float]], values: Sequence[float]) -> int:
    """The largest number of values that can be placed in intervals, one in each: always the one that ends first."""
    waiting = sorted(intervals)
    started: list[float] = []
    fitted = next_to_start = 0
    for value in sorted(values):
        while next_to_start < len(waiting) and waiting[next_to_start][0] <= value:
            heappush(started, waiting[next_to_start][1])
            next_to_start += 1
        while started and started[0] < value:
            heappop(started)
        if started:
            heappop(started)
            fitted += 1
    return fitted


def _best_pairing(counts: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Row and column of each pair, so that the sum of counts is largest."""
    if not counts or not counts[0]:
        return []
    if len(counts) == 1:
        return [(0, max(range(len(counts[0])), key=lambda column: counts[0][column]))]
    if len(counts[0]) == 1:
        return [(max(range(len(counts)), key=lambda row: counts[row][0]), 0)]
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    assign = cast("Callable[..., tuple[NDArray[np.intp], NDArray[np.intp]]]", linear_sum_assignment)
    rows, columns = assign(np.array(counts), maximize=True)
    return [(int(row), int(column)) for row, column in zip(rows, columns, strict=True)]
