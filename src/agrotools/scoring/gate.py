"""One-sided test of whether a new run is worse than an old one by more than an allowed drop, paired by sample.

The bound is ``drop - t * error`` with the CR2 cluster-robust standard error of the paired differences and
Satterthwaite's degrees of freedom (:func:`agrotools.scoring.statistics.ratio_spread`). ``performance/gate_power.py``
simulates its false alarms and its power.
"""

from collections.abc import Hashable, Sequence, Set
from typing import Any

from agrotools.core import FrozenModel, Mode, UsageError
from agrotools.core.base import FloatArray, IntArray, np, special
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.comparisons import HeadlinePair, check_same_samples, headline_pair
from agrotools.scoring.statistics import LEVEL, MIN_CLUSTERS, cluster_sums, ratio_spread
from agrotools.scoring.summary import MAX_INVALID_SHARE
from agrotools.scoring.units import shown_mean

BEYOND = (0.05, 0.10)
"""Drops beyond the allowed one for which the power is given."""


class DropBound(FrozenModel):
    """Drop of a mean score with its one-sided 95 % lower bound, over ``n`` units in ``n_clusters`` clusters.

    ``error`` is the standard error, ``degrees`` its degrees of freedom; both are 0 if all units drop alike.
    """

    drop: float
    lower: float
    error: float
    degrees: float
    n: int
    n_clusters: int

    def power(self, beyond: float) -> float | None:
        """Return the probability that a true drop of ``beyond`` more than the allowed one is found; None if unknown."""
        if not self.error:
            return None
        return 1 - float(special.nctdtr(self.degrees, beyond / self.error, special.stdtrit(self.degrees, LEVEL)))


def drop_bound(
    new: Sequence[float] | FloatArray, old: Sequence[float] | FloatArray, clusters: Sequence[Hashable] | IntArray
) -> DropBound:
    """Return the mean of ``old - new``, paired unit by unit, with its lower bound.

    If all differences are equal, the bound is the lowest mean that k clusters cannot exclude: with 95 % confidence
    the share of clusters that would deviate is below ``1 - 0.05 ** (1/k)``, and none can deviate beyond -1, or -2 if
    there are scores below 0.

    Raises:
        UsageError: fewer than ten clusters.
    """
    sizes, sums, squares = cluster_sums(np.asarray(old, dtype=np.float64) - np.asarray(new, dtype=np.float64), clusters)
    k, n = len(sizes), int(sizes.sum())
    if k < MIN_CLUSTERS:
        raise UsageError(
            f"the runs have {n} samples in {k} clusters in common, too few for a test",
            hint=f"{MIN_CLUSTERS} clusters are needed",
        )
    spread = ratio_spread(sizes, sums, squares)
    drop, error, degrees = float(spread.mean), float(spread.error), float(spread.degrees)
    if error < 1e-9:
        most = 2.0 if min(np.min(new), np.min(old)) < 0 else 1.0
        lower = drop - (1 - (1 - LEVEL) ** (1 / k)) * (most + drop)
        return DropBound(drop=drop, lower=lower, error=0.0, degrees=0.0, n=n, n_clusters=k)
    lower = drop - float(special.stdtrit(degrees, LEVEL)) * error
    return DropBound(drop=drop, lower=lower, error=error, degrees=degrees, n=n, n_clusters=k)


class Gate(FrozenModel):
    """Result of comparing a new run with an old one in the headline metric of a mode; scores are in [0, 1].

    ``lost`` and ``added`` are the numbers of samples that only the old and only the new run has a valid record of; they
    are not in the means. ``power`` holds the probability of failing at a true drop of 5 and 10 points beyond the
    allowed one.
    """

    mode: str
    metric: str
    new: float
    old: float
    max_drop: float
    bound: DropBound
    lost: int
    added: int
    fault: str = ""
    """Reason for failing that is no drop: too many samples without a valid record."""
    power: tuple[float | None, ...] = ()

    @property
    def passed(self) -> bool:
        """True if a drop of more than ``max_drop`` is not shown and enough samples were compared."""
        return not self.fault and self.bound.lower <= self.max_drop


def gate(new: RunAggregator, old: RunAggregator, mode: Mode, max_drop: float, *, allow_invalid: bool = False) -> Gate:
    """Test whether the new run is worse than the old one by more than ``max_drop`` (a fraction).

    Raises:
        UsageError: the runs share no scored sample in ``mode``, or fewer than ten clusters.
    """
    check_same_samples(new, old)
    pair = headline_pair(new, old, mode)
    if pair is None:
        raise UsageError(f"the runs have no scored sample in common in mode {mode}", hint="see agrotools compare")
    valid = [{*run.table.ids(run.modes[mode].valid_samples())} for run in (new, old)]
    return gate_of(mode, pair, valid, max_drop, allow_invalid=allow_invalid)


def held_by(mode: str) -> str:
    """Return what a sample that is compared has, in words: a table has scores, a run has records."""
    return "score" if mode == "table" else "valid record"


def gate_of(mode: str, pair: HeadlinePair, valid: Sequence[Set[Any]], max_drop: float, *, allow_invalid: bool) -> Gate:
    """Test pairs of scores; ``valid``: the samples with a valid record of each run."""
    lost, added = len(valid[1] - valid[0]), len(valid[0] - valid[1])
    fails = lost > MAX_INVALID_SHARE * len(valid[1]) and not allow_invalid
    fault = f"{lost} of {len(valid[1])} samples have no {held_by(mode)} in the new version" if fails else ""
    bound = drop_bound(pair.first, pair.second, pair.clusters)
    return Gate(
        mode=mode,
        metric=pair.metric,
        new=shown_mean(pair.first),
        old=shown_mean(pair.second),
        max_drop=max_drop,
        bound=bound,
        lost=lost,
        added=added,
        fault=fault,
        power=tuple(bound.power(beyond) for beyond in BEYOND),
    )
