"""Means of units and differences of paired units, overall and by part.

Units of a :class:`agrotools.scoring.score_table.ScoreTable` come in; a :class:`agrotools.scoring.summary.Metric` with
an interval for each part goes out. Paired units have the numbers of one table, so that equal numbers are one sample.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from agrotools.core.lazy import BoolArray, FloatArray, IntArray, np
from agrotools.scoring.sample_traits import WHOLE, broken_down
from agrotools.scoring.score_table import ScoreTable, ScoreUnits
from agrotools.scoring.statistics import (
    Estimate,
    Interval,
    estimate_difference,
    estimate_mean,
    weigh_the_same,
)
from agrotools.scoring.summary import Metric


class PairedUnits(NamedTuple):
    """Units with a value in two runs or modes, at least one, as columns of equal length."""

    samples: IntArray
    """Numbers of the samples in the table of the first run."""
    clusters: IntArray
    first: FloatArray
    second: FloatArray
    weights: FloatArray

    @property
    def means(self) -> tuple[float, float]:
        """Means of both."""
        return shown_mean(self.first, self.weights), shown_mean(self.second, self.weights)

    @property
    def difference(self) -> Estimate:
        """Mean of the second minus the first."""
        return estimate_difference(self.second, self.first, self.clusters, self.weights)

    def by_sample(self) -> "PairedUnits":
        """Return the means over the steps of each sample, in the same order."""
        samples, at_first, at, counts = np.unique(
            self.samples, return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(at_first)
        first = np.bincount(at, weights=self.first) / counts
        second = np.bincount(at, weights=self.second) / counts
        at_first = at_first[order]
        return PairedUnits(
            samples=samples[order],
            clusters=self.clusters[at_first],
            first=first[order],
            second=second[order],
            weights=self.weights[at_first],
        )


def shown_mean(values: FloatArray, weights: FloatArray | None = None) -> float:
    """Return the mean, not below 0; differences are those of means before that."""
    if weights is None or weigh_the_same(weights):
        return max(0.0, float(values.mean()))
    return max(0.0, float(np.sum(weights * values) / np.sum(weights)))


def paired_units(first: ScoreUnits, second: ScoreUnits) -> PairedUnits | None:
    """Return the units that have a value in both, in the order of the first; None if there are none.

    Both have the numbers of one table (:meth:`ScoreTable.renumbered`).
    """
    first, second = first.where(first.valued), second.where(second.valued)
    width = int(max(first.steps.max(initial=0), second.steps.max(initial=0))) + 2
    keys = [units.samples * width + (units.steps - WHOLE) for units in (first, second)]
    _, at_first, at_second = np.intersect1d(*keys, assume_unique=True, return_indices=True)
    if not len(at_first):
        return None
    order = np.argsort(at_first)
    first, second = first.where(at_first[order]), second.where(at_second[order])
    return PairedUnits(
        samples=first.samples,
        clusters=first.clusters,
        first=first.values,
        second=second.values,
        weights=first.weights,
    )


def metric_of(units: ScoreUnits, table: ScoreTable) -> Metric | None:
    """Return the metric over ``units``; None if no unit has a value."""
    known = units.where(units.valued)
    if not len(known.values):
        return None

    def mean(part: BoolArray | slice) -> Estimate:
        return estimate_mean(known.values[part], known.clusters[part], known.weights[part])

    metric = _metric_by_part(known.samples, table, mean)
    if bool(np.all(units.low == units.high)):
        return metric
    bounds = Interval(
        lower=shown_mean(units.low, units.weights), upper=shown_mean(units.high, units.weights)
    )
    return metric.model_copy(update={"bounds": bounds})


def difference_of(pair: PairedUnits, table: ScoreTable) -> Metric:
    """Return the first minus the second of paired units."""

    def difference(part: BoolArray | slice) -> Estimate:
        return estimate_difference(
            pair.first[part], pair.second[part], pair.clusters[part], pair.weights[part]
        )

    return _metric_by_part(pair.samples, table, difference)


def _metric_by_part(
    samples: IntArray, table: ScoreTable, estimate: Callable[[BoolArray | slice], Estimate]
) -> Metric:
    """Return ``estimate`` of all units and of those of each part; ``samples``: the sample of each unit."""
    traits = table.traits_numbers(samples)
    present: list[int] = np.unique(traits).tolist()
    known: dict[frozenset[int], Estimate] = {}

    def estimate_with(numbers: Sequence[int]) -> Estimate:
        # A family with one task type has the same units as that task type, so one bootstrap serves both.
        key = frozenset(numbers)
        if key not in known:
            is_all = len(key) == len(present)
            known[key] = estimate(slice(None) if is_all else np.isin(traits, list(key)))
        return known[key]

    parts = broken_down(present, table.traits, estimate_with)
    return Metric(
        overall=parts.overall,
        by_family=parts.by_family,
        by_task_type=parts.by_task_type,
        by_answer_type=parts.by_answer_type,
        by_group=parts.by_group,
    )
