"""Repeats (epochs) of a run: pass^k, pass@k, flips between epochs, and the noise of running the same samples again.

Re-run noise is the spread of the mean over all possible re-runs *of these samples*: the variance between the epochs of
each sample, independent between samples. Its interval is a t interval with Satterthwaite's degrees of freedom. One
further sample whose two epochs differ is added to the variance, as few samples without a flip are not without noise.
"""

from math import comb

from agrotools.core import FrozenModel
from agrotools.core.base import FloatArray, IntArray, np, special
from agrotools.scoring.statistics import Estimate, Interval, estimate_mean

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


def repeats_of(places: IntArray, values: FloatArray, clusters: IntArray) -> Repeats | None:
    """Return the agreement between epochs; None if no sample has two valid ones.

    Args:
        places: sample of each valid record, numbered from 0.
        values: score of each valid record, at most 1.
        clusters: cluster of each sample.
    """
    n = np.bincount(places, minlength=len(clusters))
    right = np.bincount(places, weights=values >= 1, minlength=len(clusters)).astype(int)
    epochs = int(n.max(initial=0))
    if epochs < 2:
        return None
    hat: dict[int, Estimate] = {}
    at: dict[int, Estimate] = {}
    for k in sorted({*(2**power for power in range(epochs.bit_length())), epochs}):
        enough = np.flatnonzero(n >= k).tolist()
        pairs = [(comb(int(right[i]), k), comb(int(n[i] - right[i]), k), comb(int(n[i]), k)) for i in enough]
        hat[k] = estimate_mean([some / every for some, _, every in pairs], clusters[enough])
        at[k] = estimate_mean([1 - none / every for _, none, every in pairs], clusters[enough])
    several = n >= 2
    flips = estimate_mean(((right > 0) & (right < n))[several].astype(float), clusters[several])
    return Repeats(epochs=epochs, pass_hat=hat, pass_at=at, flips=flips, rerun=rerun_interval(places, values))


def rerun_interval(places: IntArray, values: FloatArray) -> Interval:
    """Return the interval of the mean score of these samples over all possible re-runs.

    A sample with one record is given the mean variance of the others.
    """
    _, at, n = np.unique(places, return_inverse=True, return_counts=True)
    means = np.bincount(at, weights=values) / n
    squares = np.bincount(at, weights=(values - means[at]) ** 2)
    several = n > 1
    variances = np.divide(squares, n - 1, out=np.zeros_like(means), where=several)
    pooled = float(variances[several].mean()) if several.any() else 0.25
    parts = np.where(several, variances, pooled) / n
    extra = 0.5 / float(n.mean())
    total = float(parts.sum()) + extra
    degrees = total**2 / (float((parts[several] ** 2 / (n[several] - 1)).sum()) + extra**2 / _EXTRA_DEGREES)
    reach = float(special.stdtrit(degrees, 0.975)) * total**0.5 / len(n)
    mean = float(means.mean())
    return Interval(lower=max(0.0, mean - reach), upper=min(1.0, max(0.0, mean + reach)))
