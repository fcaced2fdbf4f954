"""Test of two runs after each block of clusters, which is valid however often one looks (``--until-decided``).

Clusters are run in a fixed random order. After each block, the statistic is the sum over all clusters so far of the
differences of their samples, so that a large cluster counts as much as in the mean over samples. Between equal runs
each cluster is as likely to favour one run as the other. The distribution of the statistic is therefore that of the
same sums with random signs of the clusters, given their absolute values: exact for clusters of unequal size and for
scores of 0, 1/2 and 1, where the t distribution is not (Mehta, Patel, Senchaudhuri and Tsiatis 1994, "Exact
permutational tests for group sequential clinical trials", Biometrics 50, 1042).

All looks share the error of 5 %: after a share s of the samples, at most a share 0.05 s of the random signs may have
crossed a boundary, counted by path, so that what correlated looks share is spent once (Lan and DeMets 1983,
doi:10.1093/biomet/70.3.659; spending in proportion to the samples resembles Pocock's boundaries). Sums of samples
already seen are kept, so that an interrupted pair of runs continues with the same looks.

The interval holds all differences d that the boundary does not exclude once d is subtracted from every sample
(repeated confidence intervals, Jennison and Turnbull 1989, Journal of the Royal Statistical Society B 51, 305). The
estimate of a pair that stopped early is too large on average, because large estimates stop.

``performance/until_decided.py`` simulates error and samples. An e-process, which allows endless further samples, needs
more of them: the number of samples of a benchmark is known, and this test uses it.
"""

from typing import NamedTuple

from agrotools.core.base import FloatArray, IntArray, np
from agrotools.scoring.statistics import LEVEL, MIN_CLUSTERS, Estimate, Interval, cluster_sums

LOOKS = 20
"""Blocks of clusters, of about equal numbers of samples, after each of which is a look."""
_PATHS = 10_000
"""Random signs of the clusters, of which one are those of the runs themselves."""
_ROUNDING = 1e-9


class Look(NamedTuple):
    """Difference of two runs after ``number`` blocks (from 1), with an interval that is valid at all looks together.

    ``difference.interval`` is None with fewer than ten clusters, or if no cluster differs.
    """

    number: int
    difference: Estimate

    @property
    def decided(self) -> bool:
        """True if the interval excludes 0."""
        interval = self.difference.interval
        return interval is not None and (interval.lower > 0 or interval.upper < 0)


def sequential_look(differences: FloatArray, clusters: IntArray, blocks: IntArray, shares: FloatArray) -> Look:
    """Return the first look that decides, or the last one if none does.

    Args:
        differences: differences of the scores of each sample (or step), first minus second, in [-2, 2]; at least one.
        clusters: the cluster of each sample.
        blocks: the block of the cluster of each sample, from 0; all blocks up to the last one in it were run.
        shares: share of the planned samples after each block; that of the last block is 1.
    """
    order = np.argsort(blocks, kind="stable")
    sizes, sums, _ = cluster_sums(differences[order], clusters[order])
    ends = [len(np.unique(clusters[blocks <= at])) for at in range(int(blocks.max()) + 1)]
    random = np.random.default_rng(0)
    paths, alive, begin = np.zeros(_PATHS), np.ones(_PATHS, dtype=np.bool_), 0
    look = Look(0, Estimate(value=0.0, n=0, n_clusters=0))
    for number, end in enumerate(ends):
        signs = 2.0 * random.integers(0, 2, size=(end - begin, _PATHS), dtype=np.int8) - 1
        signs[:, 0] = 1
        paths += sums[begin:end] @ signs
        begin = end
        if end < MIN_CLUSTERS:
            look = Look(number + 1, _estimate(sizes[:end], sums[:end], None, 0.0))
            continue
        reached = np.sort(np.abs(paths[alive]))
        error = (1 - LEVEL) * shares[number]
        may_cross = int(error * _PATHS) - int(_PATHS - len(reached))
        boundary = float(reached[-1 - may_cross]) + _ROUNDING
        look = Look(number + 1, _estimate(sizes[:end], sums[:end], boundary, error))
        if look.decided:
            break
        alive &= np.abs(paths) <= boundary
    return look


def _estimate(sizes: FloatArray, sums: FloatArray, boundary: float | None, error: float) -> Estimate:
    """Return the mean difference with its interval.

    It holds the differences d whose ``|sum(r)| <= c * sqrt(sum(r**2))``, where r are the clusters' ``sums - d * sizes``
    and c is ``boundary / sqrt(sum(sums**2))``: a quadratic inequality in d. If all samples differ alike, it holds the
    means that k clusters cannot exclude at the ``error`` spent so far (as in ``estimate_difference``).
    """
    n, total, square = float(sizes.sum()), float(sums.sum()), float(sums @ sums)
    found = Estimate(value=total / n if n else 0.0, n=int(n), n_clusters=len(sizes))
    if boundary is None or square < _ROUNDING:
        return found
    c2 = boundary**2 / square
    leading = n**2 - c2 * float(sizes @ sizes)
    if leading <= 0:  # nothing is excluded
        return found
    middle = total * n - c2 * float(sizes @ sums)
    reach = max(middle**2 - leading * (total**2 - c2 * square), 0.0) ** 0.5
    lower, upper = (middle - reach) / leading, (middle + reach) / leading
    if upper - lower < _ROUNDING:
        share, most = 1 - (error / 2) ** (1 / len(sizes)), max(1.0, abs(found.value))
        lower, upper = found.value - share * (most + found.value), found.value + share * (most - found.value)
    interval = Interval(lower=lower, upper=upper)
    return found.model_copy(update={"interval": interval})
