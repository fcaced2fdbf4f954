"""Scores that one of two compared runs lacks, and what they leave open.

One rule holds wherever two runs or tables of scores are compared: if a score is missing, a verdict is given only if it
holds with all missing scores set against it, 0 for the better run and 1 for the other. Otherwise there is no verdict,
but what is missing and both bounds of the difference. Records that are invalid, samples that a run was to answer and
did not, and empty cells of a table are all missing. Values of an import that were not read
(:mod:`agrotools.scoring.unread`) are open in the same way, though they count 0 in the scores of the run.
"""

from collections.abc import Mapping
from typing import NamedTuple

from agrotools.core import Mode
from agrotools.core.lazy import FloatArray, IntArray, np
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.metrics import FAS
from agrotools.scoring.statistics import ROUNDING, Estimate, estimate_difference, estimate_unpaired
from agrotools.scoring.summary import Missing


class ScoredUnit(NamedTuple):
    """Sample, or step of a sample, that has a score."""

    sample: str
    step: int = -1


class ScoreLimits(NamedTuple):
    """Lowest and highest score of a unit in a run, equal unless something is open; its cluster and weight.

    ``open_by_unread``: the part of the range that values leave that were not read, ``n_unread`` of ``n_asked``.
    """

    low: float
    high: float
    cluster: str
    weight: float = 1.0
    open_by_unread: float = 0.0
    n_unread: int = 0
    n_asked: int = 0

    @property
    def is_missing(self) -> bool:
        """True if a score of the unit is missing."""
        return self.high - self.low - self.open_by_unread > ROUNDING


RunLimits = Mapping[ScoredUnit, ScoreLimits]


class LimitPairs(NamedTuple):
    """Limits of two runs on the same units, with the cluster of each unit, and the samples that each run lacks."""

    units: list[ScoredUnit]
    first: list[ScoreLimits]
    second: list[ScoreLimits]
    clusters: IntArray
    weights: FloatArray
    lacking: tuple[int, int]

    @property
    def is_open(self) -> bool:
        """True if a score of a run is missing, or a value of it was not read."""
        return any((*self.lacking, *self.unread))

    @property
    def scored(self) -> "LimitPairs":
        """The units of which neither run lacks a score."""
        kept = [
            at
            for at, pair in enumerate(zip(self.first, self.second, strict=True))
            if not any(each.is_missing for each in pair)
        ]
        return LimitPairs(
            [self.units[at] for at in kept],
            [self.first[at] for at in kept],
            [self.second[at] for at in kept],
            self.clusters[kept],
            self.weights[kept],
            (0, 0),
        )

    @property
    def unread(self) -> tuple[int, int]:
        """Numbers of values of both runs that were not read."""
        return sum(each.n_unread for each in self.first), sum(each.n_unread for each in self.second)

    @property
    def asked(self) -> tuple[int, int]:
        """Numbers of values of both runs that were asked for, in runs that are imports."""
        return sum(each.n_asked for each in self.first), sum(each.n_asked for each in self.second)

    def scores(self, *, for_second: bool) -> tuple[FloatArray, FloatArray]:
        """Return the scores of both runs with all missing ones set for the second run, or against it."""
        if for_second:
            first, second = [each.low for each in self.first], [each.high for each in self.second]
        else:
            first, second = [each.high for each in self.first], [each.low for each in self.second]
        return np.array(first), np.array(second)

    def difference(self, *, for_second: bool) -> Estimate:
        """Return the difference, second minus first, with all missing scores set for the second run, or against it."""
        first, second = self.scores(for_second=for_second)
        return estimate_difference(second, first, self.clusters, self.weights)


def run_limits(run: RunAggregator, mode: Mode, metric: str) -> dict[ScoredUnit, ScoreLimits]:
    """Return the limits of every unit of a metric that a run has a record of."""
    if metric not in run.metrics(mode):
        return {}
    units = run.table.units(mode, metric)
    # Planned records that are not there count like invalid ones: 0 in the lowest score and 1 in the highest.
    planned = np.maximum(units.epochs, run.planned_epochs)
    lowest = units.low * (units.epochs / planned)
    highest = (units.high * units.epochs + planned - units.epochs) / planned
    unread = run.modes[mode].unread
    numbers: list[int] = units.samples.tolist()
    limits: dict[ScoredUnit, ScoreLimits] = {}
    rows = zip(
        numbers,
        run.table.ids(units.samples),
        units.steps.tolist(),
        lowest.tolist(),
        highest.tolist(),
        planned.tolist(),
        run.table.ids(units.clusters),
        units.weights.tolist(),
        strict=True,
    )
    for number, sample, step, low, high, n_epochs, cluster, weight in rows:
        unit = ScoredUnit(sample, step)
        if metric != FAS or number not in unread.unread_of:
            limits[unit] = ScoreLimits(low, high, cluster, weight)
            continue
        above = unread.above[number] / n_epochs
        below = unread.below[number] / n_epochs
        limits[unit] = ScoreLimits(
            low - below,
            min(high + above, 1.0),
            cluster,
            weight,
            above + below,
            unread.unread_of[number],
            unread.asked_of[number],
        )
    return limits


def paired_limits(
    first: RunLimits,
    second: RunLimits,
    planned: tuple[frozenset[str], frozenset[str]] | None = None,
) -> LimitPairs:
    """Return the limits on all units that both runs have or were to have.

    ``planned``: samples that each run was to answer. A unit of another sample is missing in a run only if it is one of
    these; None: every unit of one run is missing in the other if that lacks it.
    """
    units: list[ScoredUnit] = []
    pairs: list[tuple[ScoreLimits, ScoreLimits]] = []
    lacking: tuple[set[str], set[str]] = (set(), set())
    for unit in sorted({*first, *second}):
        known = first.get(unit) or second[unit]
        unknown = ScoreLimits(0.0, 1.0, known.cluster, known.weight)
        both = (first.get(unit), second.get(unit))
        if planned and any(
            each is None and unit.sample not in ids for each, ids in zip(both, planned, strict=True)
        ):
            continue
        mine, other = (each or unknown for each in both)
        units.append(unit)
        pairs.append((mine, other))
        for each, samples in zip((mine, other), lacking, strict=True):
            if each.is_missing:
                samples.add(unit.sample)
    clusters = np.unique([mine.cluster for mine, _ in pairs], return_inverse=True)[1]
    return LimitPairs(
        units,
        [mine for mine, _ in pairs],
        [other for _, other in pairs],
        clusters,
        np.array([mine.weight for mine, _ in pairs]),
        (len(lacking[0]), len(lacking[1])),
    )


def missing_of(pairs: LimitPairs) -> Missing | None:
    """Return what two runs lack and the bounds of their difference; None if nothing is missing."""
    if not pairs.is_open:
        return None
    return Missing(
        samples=pairs.lacking,
        unread=pairs.unread,
        asked=pairs.asked,
        lowest=pairs.difference(for_second=False),
        highest=pairs.difference(for_second=True),
    )


def missing_between(
    first: RunAggregator, second: RunAggregator, mode: Mode, metric: str
) -> Missing | None:
    """Return what two runs lack in a metric of a mode, and the bounds of their difference; None if all is there."""
    return missing_of(limit_pairs(first, second, mode, metric))


def limit_pairs(first: RunAggregator, second: RunAggregator, mode: Mode, metric: str) -> LimitPairs:
    """Return the limits of two runs in a metric, without the open text that no judge graded in one of them."""
    limits = [run_limits(run, mode, metric) for run in (first, second)]
    ungraded = {name for run in (first, second) for name in run.ids_without_open_text(mode)}
    kept = [
        {unit: each for unit, each in of_run.items() if unit.sample not in ungraded}
        for of_run in limits
    ]
    planned = [run.planned | run.sample_ids(mode) for run in (first, second)]
    return paired_limits(kept[0], kept[1], (planned[0], planned[1]))


def missing_unpaired(
    first: RunAggregator, second: RunAggregator, mode: Mode, metric: str
) -> Missing | None:
    """Return what two runs on different samples lack, and the bounds of their difference; None if all is there."""
    sides = [[*run_limits(run, mode, metric).items()] for run in (first, second)]
    lacking = [{unit.sample for unit, each in side if each.is_missing} for side in sides]
    unread = [sum(each.n_unread for _, each in side) for side in sides]
    asked = [sum(each.n_asked for _, each in side) for side in sides]
    if not any(lacking) and not any(unread):
        return None
    low, high = ([np.array([each[at] for _, each in side]) for side in sides] for at in (0, 1))
    clusters = [[each.cluster for _, each in side] for side in sides]
    first_weights, second_weights = (np.array([each.weight for _, each in side]) for side in sides)
    return Missing(
        samples=(len(lacking[0]), len(lacking[1])),
        unread=(unread[0], unread[1]),
        asked=(asked[0], asked[1]),
        lowest=estimate_unpaired(
            low[1], high[0], clusters[1], clusters[0], second_weights, first_weights
        ),
        highest=estimate_unpaired(
            high[1], low[0], clusters[1], clusters[0], second_weights, first_weights
        ),
    )
