"""Statistics of means: 95 % intervals over clusters, paired differences, detectable differences.

Samples that share a file are not independent, so all inference is over *clusters* of samples (spec of the benchmark,
"Intervals"). A mean is a ratio of sums over clusters, ``sum(scores) / count``; where a benchmark gives its samples
weights, ``sum(weights * scores) / sum(weights)``.

The interval of a mean uses the cluster-robust standard error of a ratio of sums and a t quantile on the logit scale.
The plain form (CR1, factor ``k/(k-1)``, ``t(k-1)``) is accurate only for clusters of equal size: for true means 0.3 to
0.8, intra-cluster correlation 0.05 to 0.6, binary and continuous scores, and clusters of geometric or long-tailed
sizes, its nominal 95 % intervals cover 0.898 to 0.951 (20 clusters), 0.912 to 0.953 (50), 0.929 to 0.955 (200) in
simulations. Therefore the correction is CR2, which covers 0.952 to 0.973, 0.942 to 0.969 and 0.945 to 0.965: it divides
each cluster's squared residual by one minus its share of the data, with Satterthwaite's degrees of freedom under a
working covariance of exchangeable errors whose correlation is estimated (Bell and McCaffrey 2002; Imbens and Kolesár
2016, doi:10.1162/REST_a_00552). For clusters of equal size it is identical to CR1 with ``t(k-1)``. Remaining
deviations: with 20 clusters of one binary score each, coverage is 0.95 to 0.99, because a binomial count is discrete;
at a true mean of 0.92 it is 0.91 to 0.995. With scores below 0 (unanswerable samples) the logit is that of the range
from -1 to 1: at true means of 0.03 to 0.9 the coverage is 0.94 to 0.97. With weights, sizes of clusters are sums of
weights, the working covariance is that of weighted errors, and numbers of clusters in exact limits are effective ones
(Kish 1965: the squared sum of the sizes, by the sum of their squares). In simulations where a tenth of the clusters has
weights of 4.5, the coverage is 0.98 to 0.99 (20 clusters), 0.96 to 0.985 (60) and 0.95 to 0.96 (200).

A standard error knows nothing of what no cluster shows. On a side where no cluster is far from the mean (beyond half
of the room there), the interval reaches at least to what k clusters cannot exclude of whole scores, as that of a
difference does. In simulations of 30 scores of 0.05 to 0.2, of which 0, 2 or 5 % are 1 instead, the t interval alone
covers 0.97, 0.76 and 0.78, and this one 0.98 to 1. Without it, a model on 30 open questions had an interval far above
that of the guess, and no difference from it.

Differences are paired on samples. Their interval is a percentile cluster bootstrap, with the percentiles widened to
match the t quantile (Hesterberg 2015, doi:10.1080/00031305.2015.1089789, "expanded percentile"). At 20 clusters of
uneven size the plain percentiles cover 0.89 to 0.95 and the widened ones 0.94 to 0.98; at 50 and 200 clusters the
coverage is 0.92 to 0.96 and 0.92 to 0.97.

The p-value of a difference is the level at which this interval begins to contain zero. The draws resolve it only down
to a few in 2,000, too few for many comparisons; below that it is the p-value of the cluster-robust t statistic. It is
never below ``2 ** (1 - m)``, where m is the number of clusters that differ at all: if the runs were equal, each of
these clusters would favour either run with equal probability.

The detectable difference is the smallest true difference whose reported interval excludes zero in 80 of 100 cases, see
:class:`LeastDifference`. In simulations with such a true difference (steady, mixed and rarely lost scores), the
interval excludes zero in 0.70 to 0.81 of the draws at 12 clusters, and in 0.77 to 0.93 at 30 and 150. Without what the
clusters cannot exclude, it does so in at most 0.02 of the draws where 10 to 50 clusters all differ alike.

Differences shown together are adjusted by Holm's method (1979, Scandinavian Journal of Statistics 6): among equal runs,
at most 5 % of the tables contain any adjusted p-value below 0.05, for any number and dependence of the differences.

Re-run noise is the spread of the mean over all possible re-runs *of these samples*: the variance between the epochs of
each sample, independent between samples. Its interval is a t interval with Satterthwaite's degrees of freedom. One
further sample whose two epochs differ is added to the variance, as few samples without a flip are not without noise.
"""

from collections.abc import Hashable, Sequence
from math import comb
from typing import Annotated, NamedTuple, cast

from pydantic import Field

from agrotools.core import FrozenModel
from agrotools.core.lazy import BoolArray, FloatArray, IntArray, np, special

MIN_CLUSTERS = 10
"""Minimum number of clusters for an interval."""
LEVEL = 0.95
_UPPER = 1 - (1 - LEVEL) / 2
"""Probability below the upper end of a two-sided interval."""
POWER = 0.80
WITHIN_CLUSTERS = 0.5
"""Correlation of the scores of two samples of a cluster that plans assume before a run is made."""
BOOTSTRAP_DRAWS = 2_000
ROUNDING = 1e-9
"""Differences of scores, and standard errors, up to this size are zero: they come from the rounding of sums."""
_FEWEST_DRAWS = 5
"""Minimum number of bootstrap draws beyond zero from which a p-value can be estimated."""


class Interval(FrozenModel):
    """Two-sided 95 % interval."""

    lower: float
    upper: float


class Estimate(FrozenModel):
    """Mean of scores, in [0, 1], or difference of two means.

    ``n`` is the number of averaged units (samples, steps) after epochs were averaged. ``interval`` is None with fewer
    than 10 clusters. ``detectable`` is the smallest difference whose reported interval would exclude zero with 80 %
    power: for a mean, to a second run with independent errors; for a difference, with its own pairing, in either
    direction.
    ``growth`` is the factor by which the number of clusters must grow until a difference of ``value`` is detectable; no
    file holds it.
    ``p`` is the probability of a difference at least as large between equal runs; None with fewer than 10 clusters.
    ``p_adjusted`` is adjusted by Holm's method for all differences in the same table; None if no table shows it.
    """

    value: float
    interval: Interval | None = None
    n: int
    n_clusters: int
    detectable: float | None = None
    growth: Annotated[float | None, Field(exclude=True)] = None
    p: float | None = None
    p_adjusted: float | None = None

    def differs(self) -> bool:
        """Return True if the difference is significant at the 5 % level, adjusted for all differences in its table."""
        return self.p_adjusted is not None and self.p_adjusted < 1 - LEVEL


class ClusterSums(NamedTuple):
    """Sums over the units of each cluster, from which means and their errors follow; all of shape ``(..., k)``.

    Leading axes are independent data sets.
    """

    sizes: FloatArray
    """Sums of the weights: numbers of units if each weighs 1."""
    sums: FloatArray
    """Sums of the weighted values."""
    squares: FloatArray
    """Sums of the squared weighted values."""
    squared_weights: FloatArray | None = None
    """Sums of the squared weights; None if each unit weighs 1."""
    products: FloatArray | None = None
    """Sums of the values times their squared weights; None if each unit weighs 1."""

    @property
    def n_effective(self) -> float:
        """Number of clusters; with weights, of clusters of equal size that would tell as much."""
        if self.squared_weights is None:
            return self.sizes.shape[-1]
        return effective_number(self.sizes.tolist())


def effective_number(sizes: Sequence[float]) -> float:
    """Return the number of clusters of equal size that would tell as much as clusters of these sizes (Kish 1965)."""
    return sum(sizes) ** 2 / sum(size**2 for size in sizes)


def weigh_the_same(weights: FloatArray | None) -> bool:
    """Return True if all units weigh the same, in which case they are as if they had no weights."""
    return weights is None or bool(np.all(weights == weights[0]))


class Spread(NamedTuple):
    """Ratio of sums, its CR2 standard error, and the degrees of freedom of that error; shapes ``(...)``."""

    mean: FloatArray
    error: FloatArray
    degrees: FloatArray


def estimate_mean(
    values: Sequence[float] | FloatArray,
    clusters: Sequence[Hashable] | IntArray,
    weights: FloatArray | None = None,
    *,
    paired: bool = True,
) -> Estimate:
    """Return the mean of ``values`` in [-1, 1] with its 95 % interval over ``clusters``, neither of them below 0.

    Args:
        values: one value per unit (sample or step), already averaged over epochs.
        clusters: the cluster of each unit; any hashable labels, or an array of integers.
        weights: the weight of each unit, above 0; None: all weigh the same.
        paired: a second run would be in the same clusters (:func:`estimate_difference`); False: in others
            (:func:`estimate_unpaired`).

    Raises:
        ValueError: no values, unequal lengths, or a value outside [-1, 1].
    """
    scores = np.asarray(values, dtype=np.float64)
    data = cluster_sums(scores, clusters, weights)
    if not np.all((scores >= -1) & (scores <= 1)):
        raise ValueError("scores lie in [-1, 1]")
    n, k = len(values), len(data.sizes)
    mean = min(max(float(np.sum(data.sums)) / float(np.sum(data.sizes)), 0.0), 1.0)
    if k < MIN_CLUSTERS:
        return Estimate(value=mean, n=n, n_clusters=k)
    has_lost_points = bool(np.any(scores < 0))
    lower, upper = mean_interval(data, floor=-1.0 if has_lost_points else 0.0)
    spread = ratio_spread(data)
    of_difference = spread._replace(error=2**0.5 * spread.error)
    most = 2.0 if has_lost_points else 1.0
    least = _least_difference(
        of_difference, _no_deviations(data.n_effective, most) if paired else None
    )
    return Estimate(
        value=mean,
        interval=Interval(lower=min(float(lower), mean), upper=max(float(upper), mean)),
        n=n,
        n_clusters=k,
        detectable=least.value if least else None,
    )


def estimate_difference(
    first: Sequence[float] | FloatArray,
    second: Sequence[float] | FloatArray,
    clusters: Sequence[Hashable] | IntArray,
    weights: FloatArray | None = None,
    *,
    draws: int = BOOTSTRAP_DRAWS,
    seed: int = 0,
) -> Estimate:
    """Return the mean of ``first - second``, paired unit by unit, with a 95 % cluster bootstrap interval.

    ``weights``: the weight of each unit, above 0; None: all weigh the same.

    Resampling repeats what was seen: all differences may be alike (two runs that agree nearly everywhere) though one
    sample in twenty is lost whole. The interval therefore reaches at least to what k clusters cannot exclude: the share
    of clusters that deviate by half of what is possible, or more, has a binomial limit, and none can deviate beyond
    [-1, 1], or [-2, 2] if there are scores below and above 0.

    Raises:
        ValueError: no values or unequal lengths.
    """
    deltas = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    data = cluster_sums(deltas, clusters, weights)
    sizes, sums = data.sizes, data.sums
    n, k = len(deltas), len(sizes)
    mean = float(np.sum(sums)) / float(np.sum(sizes))
    if k < MIN_CLUSTERS:
        return Estimate(value=mean, n=n, n_clusters=k)
    spread = ratio_spread(data)
    rare = rare_deviations(first, second, data, mean)
    within = Interval(lower=rare.lower(_UPPER), upper=rare.upper(_UPPER))
    if spread.error < ROUNDING:
        return Estimate(value=mean, interval=within, n=n, n_clusters=k, p=rare.p())
    resampled = bootstrap_ratios(sizes, sums, draws=draws, seed=seed)
    widening = _widening(sizes, sums, spread)
    tail = float(special.ndtr(-_t_quantile(_UPPER, spread.degrees) * widening))
    lower, upper = np.quantile(resampled, [tail, 1 - tail])
    least = _least_difference(spread, rare, reach=max(mean - float(lower), float(upper) - mean))
    return Estimate(
        value=mean,
        interval=Interval(
            lower=min(float(lower), within.lower),
            upper=max(float(upper), within.upper),
        ),
        n=n,
        n_clusters=k,
        detectable=least.value if least else None,
        growth=least.growth(mean) if least else None,
        p=max(_p_value(resampled, sums, spread, widening), rare.p()),
    )


def _widening(sizes: FloatArray, sums: FloatArray, spread: Spread) -> float:
    """Return the ratio of the standard error to that of the bootstrap draws, by which percentiles are widened."""
    residuals = sums - spread.mean * sizes
    error_of_draws = np.sqrt(np.sum(residuals**2)) / np.sum(sizes)
    return float(spread.error / error_of_draws)


_FAR = 0.5
"""Part of the largest possible deviation from which a cluster deviates far."""


class RareDeviations(NamedTuple):
    """Numbers of clusters that deviate far below and above the mean, and the room there is on each side.

    With weights, the numbers are effective ones.
    """

    n_clusters: float
    mean: float
    n_below: float
    n_above: float
    below: float
    above: float

    @property
    def most(self) -> float:
        """Largest possible difference, of either sign."""
        return self.below - self.mean

    def lower(self, level: float) -> float:
        """Return the lowest mean that the clusters cannot exclude at a level, if more deviate far than were seen."""
        return self.mean - self._reach(self.n_below, self.below, level)

    def upper(self, level: float) -> float:
        """Return the highest such mean."""
        return self.mean + self._reach(self.n_above, self.above, level)

    def p(self) -> float:
        """Return the level, both sides together, at which these limits begin to contain zero."""
        far, room = (self.n_below, self.below) if self.mean > 0 else (self.n_above, self.above)
        k = self.n_clusters
        share = min(1.0, far / k + abs(self.mean) / room)
        return 1.0 if far == k else min(1.0, 2 * float(special.betaincc(far + 1, k - far, share)))

    def shown_above(self, level: float, allowed: float) -> float:
        """Return the mean above which the limit of :meth:`lower` is beyond ``allowed``, if as many deviate far."""
        return _shown_beyond(self._unseen(self.n_below, level), self.most, allowed)

    def shown_beyond_zero(self, level: float, growth: float) -> float:
        """Return the mean, of either sign, beyond which both limits leave out zero, if as many deviate far.

        ``growth``: of this many times as many clusters, of which the same share deviates far.
        """
        most_unseen = max(
            self._unseen(self.n_below, level, growth),
            self._unseen(self.n_above, level, growth),
        )
        return _shown_beyond(most_unseen, self.most, 0.0)

    def _reach(self, far: float, room: float, level: float) -> float:
        return self._unseen(far, level) * room

    def _unseen(self, far: float, level: float, growth: float = 1.0) -> float:
        """Return the share of clusters that may deviate far beyond the share that was seen."""
        share = _highest_share(growth * far, growth * self.n_clusters, level)
        return share - far / self.n_clusters


def _shown_beyond(unseen: float, most: float, allowed: float) -> float:
    """Return the mean m whose limit is ``allowed``: ``m - unseen * (most + m) = allowed``."""
    return (allowed + unseen * most) / (1 - unseen)


def _no_deviations(n_clusters: float, most: float) -> RareDeviations:
    """Return what clusters cannot exclude, none of which deviates far from a mean of 0."""
    return RareDeviations(
        n_clusters=n_clusters, mean=0.0, n_below=0, n_above=0, below=most, above=most
    )


def rare_deviations(
    first: Sequence[float] | FloatArray,
    second: Sequence[float] | FloatArray,
    data: ClusterSums,
    mean: float,
) -> RareDeviations:
    """Return what is known of large deviations of ``first - second``.

    The number of clusters that deviate far to a side is binomial, so that its share has an exact limit (Clopper and
    Pearson 1934). No difference is beyond [-1, 1], or [-2, 2] if there are scores below and above 0.

    Args:
        first: scores of one run.
        second: scores of the other one.
        data: sums of the differences of each cluster.
        mean: mean of all differences.
    """
    values = np.concatenate([np.asarray(first), np.asarray(second)])
    most = 2.0 if np.min(values) < 0 < np.max(values) else 1.0  # lost points are all below 0
    below, above = most + mean, most - mean
    clusters = data.sums / data.sizes
    return RareDeviations(
        n_clusters=data.n_effective,
        mean=mean,
        n_below=_number_of(clusters < mean - _FAR * below, data),
        n_above=_number_of(clusters > mean + _FAR * above, data),
        below=below,
        above=above,
    )


def _number_of(which: BoolArray, data: ClusterSums) -> float:
    """Return how many clusters a mask selects; with weights, their share of the effective number."""
    if data.squared_weights is None:
        return int(np.sum(which))
    return data.n_effective * float(np.sum(data.sizes[which]) / np.sum(data.sizes))


def estimate_unpaired(
    first: Sequence[float] | FloatArray,
    second: Sequence[float] | FloatArray,
    first_clusters: Sequence[Hashable] | IntArray,
    second_clusters: Sequence[Hashable] | IntArray,
    first_weights: FloatArray | None = None,
    second_weights: FloatArray | None = None,
) -> Estimate:
    """Return ``mean(first) - mean(second)`` of values in different clusters, with Welch's 95 % t interval.

    ``n`` and ``n_clusters`` are those of both together.

    Raises:
        ValueError: no values, or unequal lengths.
    """
    parts = [
        cluster_sums(np.asarray(first, dtype=np.float64), first_clusters, first_weights),
        cluster_sums(np.asarray(second, dtype=np.float64), second_clusters, second_weights),
    ]
    numbers_of_clusters = [len(each.sizes) for each in parts]
    n, k = len(first) + len(second), sum(numbers_of_clusters)
    means = [float(np.sum(each.sums)) / float(np.sum(each.sizes)) for each in parts]
    value = means[0] - means[1]
    if min(numbers_of_clusters) < MIN_CLUSTERS:
        return Estimate(value=value, n=n, n_clusters=k)
    spreads = [ratio_spread(part) for part in parts]
    variances = [float(each.error) ** 2 for each in spreads]
    error = sum(variances) ** 0.5
    if error < ROUNDING:
        return Estimate(value=value, n=n, n_clusters=k)
    # Welch and Satterthwaite: each variance counts by its own degrees of freedom.
    terms = [
        variance**2 / float(each.degrees) for variance, each in zip(variances, spreads, strict=True)
    ]
    degrees = error**4 / sum(terms)
    reach = float(_t_quantile(_UPPER, degrees)) * error
    least = LeastDifference(by_error=reach, margin=_power_margin(error, degrees))
    return Estimate(
        value=value,
        interval=Interval(lower=value - reach, upper=value + reach),
        n=n,
        n_clusters=k,
        detectable=least.value,
        growth=least.growth(value),
        p=2 * float(special.stdtr(degrees, -abs(value) / error)),
    )


def planned_detectable(
    sizes: Sequence[float],
    squared_weights: Sequence[float] | None = None,
    *,
    correlation: float = 0.0,
) -> float | None:
    """Return the smallest difference of two runs found with 80 % power at the 5 % level, before either is made.

    Scores are taken to spread as much as they can around their mean of 0.5 (0 or 1); graded scores spread less. The
    difference is at least what the clusters cannot exclude though none was seen to deviate far.

    Args:
        sizes: number of samples of each cluster, or the sum of their weights.
        squared_weights: sum of the squared weights of the samples of each cluster; None: all weigh the same.
        correlation: correlation of the two runs' scores of a sample; 0 for runs on different samples.
    """
    if squared_weights is None:
        squared_weights = sizes
    variance_of_sum = _variance_of_sum(sizes, squared_weights, WITHIN_CLUSTERS)
    variance = 0.25 * variance_of_sum / sum(sizes) ** 2
    is_plain = [*squared_weights] == [*sizes]
    n_clusters = len(sizes) if is_plain else effective_number(sizes)
    error = (2 * (1 - correlation) * variance) ** 0.5
    spread = Spread(np.asarray(0.0), np.asarray(error), np.asarray(2.0 * (n_clusters - 1)))
    least = _least_difference(spread, _no_deviations(n_clusters, most=1.0))
    return least.value if least else None


def planned_half_width(sizes: Sequence[int], mean: float) -> tuple[float, float]:
    """Return half the width of the 95 % interval of a mean of scores of 0 and 1, and the design effect of clusters.

    That is the factor by which samples that correlate within clusters raise the variance of the mean.
    """
    effect = _variance_of_sum(sizes, sizes, WITHIN_CLUSTERS) / sum(sizes)
    t = float(_t_quantile(_UPPER, len(sizes) - 1))
    return t * (mean * (1 - mean) * effect / sum(sizes)) ** 0.5, effect


def _variance_of_sum(
    sizes: Sequence[float], squared_weights: Sequence[float], within: float
) -> float:
    """Return the variance of the sum of all scores, of variance 1, that correlate ``within`` clusters."""
    return sum(
        # That of the single scores of a cluster, and of their pairs.
        single + (size**2 - single) * within
        for size, single in zip(sizes, squared_weights, strict=True)
    )


def adjusted(differences: "Sequence[Estimate]") -> list[Estimate]:
    """Set ``p_adjusted`` of the differences of one table by Holm's method; differences without ``p`` are unchanged."""
    ascending = sorted((each.p, at) for at, each in enumerate(differences) if each.p is not None)
    results = list(differences)
    least = 0.0
    for rank, (p, at) in enumerate(ascending):
        least = max(least, min(1.0, (len(ascending) - rank) * p))
        results[at] = differences[at].model_copy(update={"p_adjusted": least})
    return results


def exact_share_interval(hits: float, n: float) -> tuple[float, float]:
    """Return the lower and upper end of the 95 % interval of ``hits / n``, by Clopper and Pearson (1934).

    Both may be fractions: effective numbers of subjects in clusters.

    Raises:
        ValueError: ``n`` is not positive, or ``hits`` is not in 0 to ``n``.
    """
    if not 0 <= hits <= n or n <= 0:
        raise ValueError(f"{hits} of {n} is no share")
    tail = (1 - LEVEL) / 2
    return lowest_share(hits, n, 1 - tail), _highest_share(hits, n, 1 - tail)


def lowest_share(hits: float, n: float, level: float) -> float:
    """Return the one-sided lower limit of ``hits / n`` at a level, by Clopper and Pearson (1934)."""
    return 0.0 if hits == 0 else float(special.betaincinv(hits, n - hits + 1, 1 - level))


def _highest_share(hits: float, n: float, level: float) -> float:
    """Return the one-sided upper limit of ``hits / n`` at a level, by Clopper and Pearson (1934)."""
    return 1.0 if hits == n else float(special.betaincinv(hits + 1, n - hits, level))


def mean_interval(data: ClusterSums, *, floor: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper ends, not below 0, of the 95 % interval of ``sum(sums) / sum(sizes)``.

    If all scores or all cluster means are equal, the interval is Clopper-Pearson with the clusters as trials and
    ``mean * k`` successes, which need not be a whole number. ``floor``: lowest possible score.
    """
    spread = ratio_spread(data)
    equal = spread.error < ROUNDING

    # Scores that differ: a t interval on the logit scale.
    width = 1 - floor
    mean = np.where(equal, 0.5, (spread.mean - floor) / width)
    quantile = _t_quantile(_UPPER, spread.degrees)
    reach = quantile * spread.error / width / (mean * (1 - mean))
    logit = special.logit(mean)
    lower_by_t = np.maximum(floor + width * special.expit(logit - reach), 0)
    upper_by_t = np.maximum(floor + width * special.expit(logit + reach), 0)

    # Equal scores or cluster means: Clopper-Pearson. The functions are not defined without hits or without misses.
    k = data.n_effective
    hits = np.clip(spread.mean, 0, 1) * k
    misses = k - hits
    tail = (1 - LEVEL) / 2
    none, all_ = hits <= 0, misses <= 0
    some_hits, some_misses = np.where(none, 1.0, hits), np.where(all_, 1.0, misses)
    least = np.where(none, 0.0, special.betaincinv(some_hits, misses + 1, tail))
    most = np.where(all_, 1.0, special.betaincinv(hits + 1, some_misses, 1 - tail))

    lower_unseen, upper_unseen = _limits_by_unseen_scores(data, spread.mean, floor)
    lower = np.where(equal, least, np.minimum(lower_by_t, lower_unseen))
    upper = np.where(equal, most, np.maximum(upper_by_t, upper_unseen))
    return cast("FloatArray", lower), cast("FloatArray", upper)


def _limits_by_unseen_scores(
    data: ClusterSums, mean: FloatArray, floor: float
) -> tuple[FloatArray, FloatArray]:
    """Return the means, not below 0, that the clusters cannot exclude if scores far from the mean were not seen.

    On a side where a cluster is far from the mean, the standard error knows of it, and the limit is the mean. Else no
    spread tells what a rare whole score would do: scores of 0.05 to 0.2 in 30 clusters leave a tenth of others open.
    """
    below, above = mean - floor, 1 - mean
    clusters = data.sums / data.sizes
    has_below = np.any(clusters < (mean - _FAR * below)[..., None], axis=-1)
    has_above = np.any(clusters > (mean + _FAR * above)[..., None], axis=-1)
    unseen = _highest_share(0, data.n_effective, _UPPER)
    lower = np.where(has_below, mean, mean - below * unseen)
    upper = np.where(has_above, mean, mean + above * unseen)
    return np.maximum(lower, 0), upper


def ratio_spread(data: ClusterSums) -> Spread:
    """Return mean, CR2 standard error and Satterthwaite degrees of freedom of ``sum(sums) / sum(sizes)``."""
    sizes, sums = data.sizes, data.sums
    shape = sizes.shape
    total = np.sum(sizes, axis=-1, keepdims=True)
    mean = np.sum(sums, axis=-1, keepdims=True) / total
    if data.squared_weights is None and bool(np.all(sizes == sizes[..., :1])):
        sizes = sizes[..., :1]  # what depends on sizes alone is then computed once for all clusters
    # Sums of squared weights q of the clusters; the weight of a single score is 1 unless weights are given.
    q = sizes if data.squared_weights is None else data.squared_weights
    products = sums if data.products is None else data.products
    total_q = _over_clusters(q, shape)[..., None]
    share = sizes / total
    factor = _cr2_factor(data, share, total_q)

    # Squared residuals of the sums of clusters. A large run has many clusters, so these arrays are changed in place.
    residuals = sums - mean * sizes
    np.square(residuals, out=residuals)
    of_clusters = _over_clusters(residuals, shape)[..., None]
    residuals *= factor
    error = np.sqrt(_over_clusters(residuals, shape)) / total[..., 0]

    # Squared residuals of the single scores.
    np.multiply(2 * mean, products, out=residuals)
    np.subtract(data.squares, residuals, out=residuals)
    residuals += mean**2 * q
    of_scores = _over_clusters(residuals, shape)[..., None]

    # The square of a cluster's residual is that of its single scores and the products of its pairs.
    pairs = sizes**2 - q
    n_pairs = _over_clusters(pairs, shape)[..., None]
    of_pairs = of_clusters - of_scores
    most = n_pairs * of_scores / total_q
    ratio = np.divide(of_pairs, most, out=np.zeros_like(of_pairs), where=most > 0)
    correlation = np.clip(ratio, 0, 1)

    # Variance of a cluster's sum of errors: of its single scores, and of its pairs.
    working = q + pairs * correlation
    degrees = _satterthwaite_degrees(working, share, factor, shape)
    return Spread(mean[..., 0], error, degrees)


def _cr2_factor(data: ClusterSums, share: FloatArray, total_q: FloatArray) -> FloatArray:
    """Return the squared CR2 factor of each cluster; ``total_q``: sum of the squared weights of all clusters."""
    if data.squared_weights is None:
        return 1 / (1 - share)
    # A cluster's sum of independent errors has the variance q; the mean, which holds a share of it, takes some away.
    q = data.squared_weights
    return q / (q - 2 * share * q + share**2 * total_q)


def _over_clusters(values: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Return the sums over the clusters of values that may be one for all clusters; ``shape``: of all clusters."""
    return np.sum(np.broadcast_to(values, shape), axis=-1)


def _satterthwaite_degrees(
    working: FloatArray,
    share: FloatArray,
    factor: FloatArray,
    shape: tuple[int, ...],
) -> FloatArray:
    """Return the degrees of freedom of the CR2 standard error, at least 1.

    With P the covariance of the clusters' residual sums under the working model (variance 1, correlation r within a
    cluster) and A the CR2 factors, the degrees of freedom are ``trace(APA)^2 / |APA|^2``, here in closed form.

    Args:
        working: variance w of the sum of errors of each cluster under the working model.
        share: share of each cluster in all scores, s.
        factor: squared CR2 factor of each cluster.
        shape: shape of the arrays over clusters; the others may hold one value for all clusters.
    """
    # W is the sum of w over the clusters.
    summed = _over_clusters(working, shape)[..., None]
    # P is w on the diagonal, plus W s_g s_h - s_g w_h - s_h w_g everywhere, because the mean is estimated, too.
    shift = summed * share**2 - 2 * share * working
    trace = _over_clusters(factor * (working + shift), shape)

    # The squares of the second part over all pairs of clusters, the diagonal included.
    total = summed[..., 0]
    share_squares = _over_clusters(factor * share**2, shape)
    working_squares = _over_clusters(factor * working**2, shape)
    cross = _over_clusters(factor * (share * working), shape)
    everywhere = (
        2 * share_squares * working_squares
        + total**2 * share_squares**2
        + 2 * cross**2
        - 4 * total * share_squares * cross
    )
    # What w adds to the squares on the diagonal.
    diagonal = _over_clusters(factor**2 * ((working + shift) ** 2 - shift**2), shape)
    return np.maximum(trace**2 / (everywhere + diagonal), 1.0)


def bootstrap_ratios(sizes: FloatArray, sums: FloatArray, *, draws: int, seed: int) -> FloatArray:
    """Return ``draws`` bootstrap ratios of sums over clusters; ``sizes`` and ``sums`` have shape ``(k,)``."""
    k = len(sizes)
    generator = np.random.default_rng(seed)
    # The draws do not depend on the chunk size, which is small enough for the processor's cache.
    chunk = max(1, 100_000 // k)
    even = bool(np.all(sizes == sizes[0]))
    parts: list[FloatArray] = []
    for start in range(0, draws, chunk):
        picked = generator.integers(0, k, size=(min(chunk, draws - start), k))
        parts.append(
            sums[picked].sum(axis=1) / (sizes[0] * k if even else sizes[picked].sum(axis=1))
        )
    return np.concatenate(parts)


def cluster_sums(
    values: FloatArray,
    clusters: Sequence[Hashable] | IntArray,
    weights: FloatArray | None = None,
) -> ClusterSums:
    """Return the sums of the values of each cluster, in the order of the clusters' first values.

    ``weights``: the weight of each value, above 0; values of equal weight are as if they had none.
    """
    if len(values) == 0:
        raise ValueError("no values")
    if len(values) != len(clusters):
        raise ValueError(f"{len(values)} values but {len(clusters)} cluster labels")
    is_plain = weigh_the_same(weights)
    single = isinstance(clusters, np.ndarray) and bool(np.all(clusters[1:] > clusters[:-1]))
    if single and is_plain:
        return ClusterSums(np.broadcast_to(np.ones(1), values.shape), values, np.square(values))
    index = _cluster_index(clusters)

    def summed(terms: FloatArray) -> FloatArray:
        return cast("FloatArray", np.bincount(index, weights=terms))

    if weights is None or is_plain:
        return ClusterSums(summed(np.ones_like(values)), summed(values), summed(values**2))
    return ClusterSums(
        sizes=summed(weights),
        sums=summed(weights * values),
        squares=summed((weights * values) ** 2),
        squared_weights=summed(weights**2),
        products=summed(weights**2 * values),
    )


def _cluster_index(clusters: Sequence[Hashable] | IntArray) -> IntArray:
    """Return the number of the cluster of each value, in the order of the clusters' first values."""
    if isinstance(clusters, np.ndarray):
        _, first, index = np.unique(clusters, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.intp)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[index]
    numbers: dict[Hashable, int] = {}
    return np.fromiter(
        (numbers.setdefault(label, len(numbers)) for label in clusters), dtype=np.intp
    )


def _p_value(resampled: FloatArray, sums: FloatArray, spread: Spread, widening: float) -> float:
    """Return the two-sided p-value of a mean difference.

    It is below 0.05 exactly if the interval excludes zero, provided that enough clusters differ."""
    mean = float(spread.mean)

    def of_share(share: float) -> float:
        """Return the p-value of the interval that has this share of the draws beyond each end."""
        return 2 * float(special.stdtr(spread.degrees, special.ndtri(share) / widening))

    beyond = _rank_of_zero(np.sort(resampled if mean > 0 else -resampled))
    if beyond >= _FEWEST_DRAWS:
        p = of_share(beyond / (len(resampled) - 1))
    else:
        by_t = 2 * float(special.stdtr(spread.degrees, -abs(mean) / spread.error))
        p = min(by_t, of_share(_FEWEST_DRAWS / (len(resampled) - 1)))
    return min(1.0, max(p, 2.0 ** (1 - int(np.count_nonzero(sums)))))


def _rank_of_zero(ascending: FloatArray) -> float:
    """Return the interpolated rank, from 0, at which quantiles of the draws become positive."""
    at = int(np.searchsorted(ascending, 0.0, side="right")) - 1
    if at < 0 or at + 1 == len(ascending):
        return float(max(at, 0))
    return at - float(ascending[at] / (ascending[at + 1] - ascending[at]))


def _t_quantile(probability: float, degrees: "FloatArray | float") -> FloatArray:
    return cast("FloatArray", special.stdtrit(degrees, probability))


_MOST_GROWTH = 1e6
"""Growth of the number of clusters beyond which no difference is worth the samples."""
_GROWTH_STEPS = 40
"""Bisections of a growth: they leave an error of a factor of 1 + 1e-11, as 2 ** 40 is about 1e12."""


class LeastDifference(NamedTuple):
    """Smallest true difference that is found with 80 % power at the 5 % level, in its parts.

    A difference is found if the reported interval excludes zero. This interval reaches to the farther of two limits, so
    the estimate has to be beyond both: ``by_error``, t standard errors (or more, if the bootstrap reaches farther), and
    what the clusters cannot exclude of ``rare`` large deviations. In 80 of 100 cases, the estimate is at least the true
    difference minus ``margin``, the 0.80 quantile of t in standard errors. For t standard errors alone, the sum is the
    minimum detectable effect of Bloom (1995, doi:10.1177/0193841X9501900504).

    The limit by rare deviations is farther than half the interval of equal runs: the larger the difference is, the more
    room there is for a deviation (:meth:`RareDeviations.lower`). For 12 clusters of which none deviates far, the
    interval reaches 26.5 points to each side of 0, but excludes 0 only from an estimate of 36.0 points on.
    """

    by_error: float
    margin: float
    rare: RareDeviations | None = None
    """Rare large deviations that the interval reckons with; None: it does not."""

    @property
    def value(self) -> float:
        """The smallest difference."""
        return self._at(1.0)

    def growth(self, difference: float) -> float | None:
        """Return the factor by which the clusters must grow in number until a true difference of this size is found.

        None if that is beyond a million, or if there is no difference.
        """
        size = abs(difference)
        if self._at(_MOST_GROWTH) > size:
            return None
        if self._at(1.0) <= size:
            return 1.0
        too_few, enough = 1.0, _MOST_GROWTH
        for _ in range(_GROWTH_STEPS):
            middle = (too_few * enough) ** 0.5
            if self._at(middle) > size:
                too_few = middle
            else:
                enough = middle
        return enough

    def _at(self, growth: float) -> float:
        """Return the smallest difference with this many times as many clusters, which spread and deviate alike."""
        shrunk = growth**-0.5
        needed = self.by_error * shrunk
        if self.rare is not None:
            needed = max(needed, self.rare.shown_beyond_zero(_UPPER, growth))
        return needed + self.margin * shrunk


def _least_difference(
    spread: Spread, rare: RareDeviations | None, *, reach: float = 0.0
) -> LeastDifference | None:
    """Return the smallest difference that is found; None if all clusters differ alike, so that no error is known.

    Args:
        spread: mean, standard error and degrees of freedom of differences.
        rare: what is known of rare large deviations; None if the interval does not reckon with them.
        reach: how far the bootstrap interval reaches to its longer side.
    """
    error, degrees = float(spread.error), float(spread.degrees)
    if error < ROUNDING:
        return None
    by_error = max(reach, float(_t_quantile(_UPPER, degrees)) * error)
    return LeastDifference(by_error, _power_margin(error, degrees), rare)


def _power_margin(error: float, degrees: float) -> float:
    """Return what an estimate falls below the true difference in at most 20 of 100 cases."""
    return float(_t_quantile(POWER, degrees)) * error


# --- repeats (epochs) of a run ----------------------------------------------------------------------------------------

_EXTRA_DEGREES = 4
"""Degrees of freedom of the added sample. If no sample flips, the interval then is about as wide as the exact one."""


class Repeats(FrozenModel):
    """Agreement between the epochs of a mode in FAS, over samples with at least two valid epochs.

    ``pass_hat[k]`` is pass^k, the probability that k runs of a sample are all right (a score of 1), and ``pass_at[k]``
    is pass@k, that at least one of them is; unbiased, over the samples with at least k valid epochs. ``flips`` is the
    share of samples that are right in some epochs and not in others. ``rerun`` is the 95 % interval of the mean given
    these samples; the interval of the metric itself also covers the choice of samples.
    """

    epochs: int
    pass_hat: dict[int, Estimate]
    pass_at: dict[int, Estimate]
    flips: Estimate
    rerun: Interval


def repeats_of(
    places: IntArray, values: FloatArray, clusters: IntArray, weights: FloatArray
) -> Repeats | None:
    """Return the agreement between epochs; None if no sample has two valid ones.

    Args:
        places: sample of each valid record, numbered from 0.
        values: score of each valid record, at most 1.
        clusters: cluster of each sample.
        weights: weight of each sample.
    """
    n = np.bincount(places, minlength=len(clusters))
    right = np.bincount(places, weights=values >= 1, minlength=len(clusters)).astype(int)
    epochs = int(n.max(initial=0))
    if epochs < 2:
        return None
    hat: dict[int, Estimate] = {}
    at: dict[int, Estimate] = {}
    powers_of_two = {2**power for power in range(epochs.bit_length())}
    for k in sorted({*powers_of_two, epochs}):
        enough = np.flatnonzero(n >= k)
        all_right: list[float] = []
        any_right: list[float] = []
        for n_epochs, n_right in zip(n[enough].tolist(), right[enough].tolist(), strict=True):
            # Over all ways to draw k of a sample's epochs: what is expected is the same for any number of epochs.
            draws = comb(n_epochs, k)
            all_right.append(comb(n_right, k) / draws)
            any_right.append(1 - comb(n_epochs - n_right, k) / draws)
        hat[k] = estimate_mean(all_right, clusters[enough], weights[enough])
        at[k] = estimate_mean(any_right, clusters[enough], weights[enough])
    several = n >= 2
    is_flip = ((right > 0) & (right < n)).astype(float)
    flips = estimate_mean(is_flip[several], clusters[several], weights[several])
    return Repeats(
        epochs=epochs,
        pass_hat=hat,
        pass_at=at,
        flips=flips,
        rerun=rerun_interval(places, values, weights),
    )


def rerun_interval(places: IntArray, values: FloatArray, weights: FloatArray) -> Interval:
    """Return the interval of the mean score of these samples over all possible re-runs.

    A sample with one record is given the mean variance of the others.

    Args:
        places: sample of each valid record, numbered from 0.
        values: score of each valid record.
        weights: weight of each sample.
    """
    samples, at, n = np.unique(places, return_inverse=True, return_counts=True)
    relative = weights[samples] / np.mean(weights[samples])
    means = np.bincount(at, weights=values) / n
    squares = np.bincount(at, weights=(values - means[at]) ** 2)
    several = n > 1
    variances = np.divide(squares, n - 1, out=np.zeros_like(means), where=several)
    pooled = float(variances[several].mean()) if several.any() else 0.25
    parts = relative**2 * np.where(several, variances, pooled) / n
    extra = 0.5 / float(n.mean())
    total = float(parts.sum()) + extra
    degrees = total**2 / (
        float((parts[several] ** 2 / (n[several] - 1)).sum()) + extra**2 / _EXTRA_DEGREES
    )
    reach = float(special.stdtrit(degrees, 0.975)) * total**0.5 / len(n)
    mean = float((relative * means).mean())
    return Interval(lower=max(0.0, mean - reach), upper=min(1.0, max(0.0, mean + reach)))
