"""Test of two runs after each block of clusters, which is valid however often one looks (``--until-decided``).

Clusters are run in a fixed random order. The null hypothesis is that the runs score equally on average. The test bets
on the difference of each cluster: a fraction of a capital of 1 is won in proportion to the sum of its differences. If
the runs are equal, no bet has a positive expectation, so that the capital exceeds ``1 / error`` at any time with a
probability of at most ``error`` (Ville's inequality). This needs bounds of the scores and nothing else: not symmetric
differences, not many samples (Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting",
Journal of the Royal Statistical Society B 86, 1; doi:10.1093/jrsssb/qkad009).

The capital is spread over ten fractions (a mixture), so that none has to be chosen for the unknown difference, and over
both signs. It depends on the clusters seen so far and not on the number of looks. The interval holds all differences
that the bets do not reject once they are subtracted from every sample (a confidence sequence). The estimate of a pair
that stopped early is too large on average, because large estimates stop.

A bet may lose at most the whole capital, whatever the largest cluster does. So the fraction for one sample is small
where one cluster holds many samples, and few pairs are decided.

``performance/until_decided.py`` simulates error and samples. The test before this one gave the clusters random signs,
which is exact for symmetric differences alone: with an answer that is right on 5 % of the samples against a constant
score of 0.05, it decided 21 % of equal pairs.
"""

from collections.abc import Callable
from typing import NamedTuple

from agrotools.core.lazy import FloatArray, IntArray, np
from agrotools.scoring.statistics import LEVEL, MIN_CLUSTERS, Estimate, Interval, cluster_sums

LOOKS = 20
"""Blocks of clusters, of about equal numbers of samples, after each of which is a look."""
_FRACTIONS = np.linspace(0.05, 0.95, 10)[:, None]
"""Fractions of the capital that are bet. Differences of 5 to 20 points are decided soonest with 0.1 to 0.6; ten equal
steps needed fewer samples in simulations than geometric steps."""
_MOST_LOG_CAPITAL = float(np.log(2 / (1 - LEVEL)))
"""Logarithm of the capital at which one sign of the difference is rejected: half of the error is for each sign."""
_HALVINGS = 40
"""Steps of the search for a bound of the interval: to within 4e-12."""


class InterimLook(NamedTuple):
    """Difference of two runs after ``number`` blocks (from 1), with an interval that is valid at all looks together.

    ``difference.interval`` is None with fewer than ten clusters.
    """

    number: int
    difference: Estimate

    @property
    def decided(self) -> bool:
        """True if the interval excludes 0."""
        interval = self.difference.interval
        return interval is not None and (interval.lower > 0 or interval.upper < 0)


def sequential_look(
    differences: FloatArray,
    clusters: IntArray,
    blocks: IntArray,
    weights: FloatArray | None = None,
    *,
    largest: float,
    reach: float = 1.0,
) -> InterimLook:
    """Return the first look that decides, or the last one if none does.

    Args:
        differences: differences of the scores of each sample (or step), second minus first; at least one.
        clusters: the cluster of each sample.
        blocks: the block of the cluster of each sample, from 0; all blocks up to the last one in it were run.
        weights: the weight of each sample (or step); None: all weigh 1.
        largest: sum of the weights of the cluster with the largest one, of those not run yet, too.
        reach: largest possible absolute value of the mean difference of a cluster.
    """
    order = np.argsort(blocks, kind="stable")
    if weights is None:
        weights = np.ones(len(differences))
    # Sums of weights, also where all of these weigh the same, since ``largest`` is one.
    sizes = cluster_sums(weights[order], clusters[order]).sums
    sums = cluster_sums((weights * differences)[order], clusters[order]).sums
    if (np.abs(sums) > reach * sizes + 1e-9).any() or sizes.max() > largest + 1e-9:
        raise ValueError("a cluster has a larger difference, or more samples, than was said")
    block = 0
    last = int(blocks.max())
    seen = len(np.unique(clusters[blocks == 0]))
    while block < last and not _decides(sizes[:seen], sums[:seen], largest, reach):
        block += 1
        seen = len(np.unique(clusters[blocks <= block]))
    n = int((blocks <= block).sum())
    return InterimLook(block + 1, _estimate(sizes[:seen], sums[:seen], n, largest, reach))


def _decides(sizes: FloatArray, sums: FloatArray, largest: float, reach: float) -> bool:
    """Return True if these clusters reject a mean difference of 0, in either direction."""
    if len(sizes) < MIN_CLUSTERS:
        return False
    for_second = _log_capital(sizes, sums, 0.0, largest, reach)
    for_first = _log_capital(sizes, -sums, 0.0, largest, reach)
    return max(for_first, for_second) >= _MOST_LOG_CAPITAL


def _estimate(
    sizes: FloatArray, sums: FloatArray, n: int, largest: float, reach: float
) -> Estimate:
    """Return the mean difference of ``n`` samples (or steps) with its interval."""
    total = float(sizes.sum())
    value = float(sums.sum()) / total if total else 0.0
    found = Estimate(value=value, n=n, n_clusters=len(sizes))
    if len(sizes) < MIN_CLUSTERS:
        return found

    def rejected_as_too_small(mean: float) -> bool:
        return _log_capital(sizes, sums, mean, largest, reach) >= _MOST_LOG_CAPITAL

    def rejected_as_too_large(mean: float) -> bool:
        return _log_capital(sizes, -sums, -mean, largest, reach) >= _MOST_LOG_CAPITAL

    lower = _bound(found.value, -reach, rejected_as_too_small)
    upper = _bound(found.value, reach, rejected_as_too_large)
    return found.model_copy(update={"interval": Interval(lower=lower, upper=upper)})


def _log_capital(
    sizes: FloatArray, sums: FloatArray, mean: float, largest: float, reach: float
) -> float:
    """Return the logarithm of the capital of bets that the mean difference of a sample is above ``mean``.

    The capital falls as ``mean`` grows: a bet is won in proportion to ``sums - mean * sizes``, and the most that it can
    lose, ``(reach + mean) * largest``, grows.
    """
    most_lost = (reach + mean) * largest
    if most_lost <= 0:  # no difference is smaller
        return np.inf if sums.sum() > mean * sizes.sum() else 0.0
    gains = (sums - mean * sizes) / most_lost
    of_fractions = np.log1p(_FRACTIONS * gains).sum(axis=1)
    most = of_fractions.max()
    return float(most + np.log(np.exp(of_fractions - most).mean()))


def _bound(inside: float, outside: float, is_rejected: Callable[[float], bool]) -> float:
    """Return the mean between ``inside``, which is not rejected, and ``outside`` from which on means are rejected."""
    if not is_rejected(outside):
        return outside
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if is_rejected(middle):
            outside = middle
        else:
            inside = middle
    return outside
