"""Ten ways to draw a pair of equal models that are hard on a sequential test of bounded differences.

Part of ``until_decided.py``; figure of docs/statistics.md, "Stopping when it is decided".

They were written by somebody who had not read the test; ``performance/until_decided.py`` runs them.

Each function takes the cluster number (0..k-1) of every sample, in run order, and returns the scores of the first and
of the second run. In all but ``cancelling_types`` clusters are drawn independently, and each sample's expected
difference is 0. In ``cancelling_types`` the expected differences of one draw add up to 0 over the layout, and who gains
is drawn anew in each call. No case has a random quantity shared by the whole pair that would make the two models
unequal within one draw.
"""

import numpy as np

Scores = tuple[np.ndarray, np.ndarray]


def _count(clusters: np.ndarray) -> int:
    return int(clusters.max()) + 1


def _place(clusters: np.ndarray) -> np.ndarray:
    """Where in the run (0 to below 1) each sample's cluster begins."""
    n = len(clusters)
    first = np.zeros(_count(clusters))
    first[clusters[::-1]] = np.arange(n)[::-1] / n  # the last one written is the first in the run
    return first[clusters]


def _rank(clusters: np.ndarray) -> np.ndarray:
    """The number of each sample within its cluster."""
    order = np.argsort(clusters, kind="stable")
    sizes = np.bincount(clusters)
    rank = np.empty(len(clusters), dtype=np.int64)
    rank[order] = np.arange(len(clusters)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rank


def _signs(random: np.random.Generator, k: int) -> np.ndarray:
    return random.integers(0, 2, k) * 2.0 - 1.0


def _scores(difference: np.ndarray) -> Scores:
    return np.maximum(-difference, 0.0), np.maximum(difference, 0.0)


def rare_collapse(clusters: np.ndarray, random: np.random.Generator) -> Scores:
    """Steady small gain (with a little noise), but one cluster in fifty collapses from about .96 to 0."""
    p, level = 0.02, 0.96
    fails = (random.random(_count(clusters)) < p)[clusters]
    first = level + random.uniform(-0.01, 0.01, len(clusters))
    return first, np.where(fails, 0.0, level / (1 - p))  # level / (1 - p) = .9796


def skew_by_size(clusters: np.ndarray, random: np.random.Generator) -> Scores:
    """Skew turns with cluster size: large ones mostly gain a little, rarely lose all; small ones the reverse."""
    sizes = np.bincount(clusters)
    present = sizes[sizes > 0]
    large = sizes > np.median(present)
    p = np.clip(0.3 / np.maximum(sizes, 1), 0.02, 0.15)  # the larger, the rarer
    jump = np.where(random.random(len(sizes)) < p, -1.0, p / (1 - p))
    return _scores(np.where(large, jump, -jump)[clusters])


def pareto(clusters: np.ndarray, random: np.random.Generator) -> Scores:
    """First run's score by cluster is Pareto (index 1.1) cut off at 1, second run's is its mean, with noise."""
    low, a = 0.01, 1.1
    x = np.minimum(low * (1 - random.random(_count(clusters))) ** (-1 / a), 1.0)
    mean = low + low**a * (low ** (1 - a) - 1) / (a - 1)  # integral of the tail from 0 to 1
    return x[clusters], mean * random.uniform(0.8, 1.2, len(clusters))


def growing_variance(clusters: np.ndarray, random: np.random.Generator) -> Scores:
    """Variance grows over the run: whole clusters swing by .01 at first, by nearly 1 at the end."""
    swing = 0.01 + 0.99 * _place(clusters) ** 4
    return _scores(swing * _signs(random, _count(clusters))[clusters])


def dying_variance(clusters: np.ndarray, random: np.random.Generator) -> Scores:
    """Variance dies out: whole clusters swing by 1 in the first eighth of the run, then hardly differ."""
    swing = np.where(_place(clusters) < 0.125, 1.0, 0.001)
    return _scores(swing * _signs(random, _count(clusters))[clusters])


def rare_turns(clusters: np.ndarray, random: np.random.Generator) -> Scores:
    """Same scores (all 0 or all 1 in a cluster), save that one cluster in 25 turns over whole, either way."""
    k = _count(clusters)
    base = random.integers(0, 2, k).astype(float)
    turned = random.random(k) < 0.04
    return base[clusters], np.where(turned, 1 - base, base)[clusters]


def cancelling_types(clusters: np.ndarray, random: np.random.Generator) -> Scores:
    """An eighth of the clusters at random strongly one way, the rest weakly the other, exactly cancelling."""
    sizes = np.bincount(clusters)
    present = np.flatnonzero(sizes)
    strong = np.zeros(len(sizes), dtype=bool)
    strong[random.permutation(present)[: max(1, len(present) // 8)]] = True
    heavy, light = sizes[strong].sum(), sizes[~strong].sum()
    effect = np.where(strong, light, -heavy) * (
        0.96 / max(heavy, light)
    )  # weighted by size it adds up to 0
    half = (effect * _signs(random, 1)[0] / 2)[clusters]  # which way: drawn anew; the sum stays 0
    draw = random.random((2, len(clusters)))
    return (draw[0] < 0.5 - half).astype(float), (draw[1] < 0.5 + half).astype(float)


def long_odds(clusters: np.ndarray, random: np.random.Generator) -> Scores:
    """Each cluster has its own odds, mostly very long ones: second run all or nothing, first run the odds."""
    odds = random.random(_count(clusters)) ** 12 * 0.6  # mean .046
    return odds[clusters], (random.random(len(odds)) < odds).astype(float)[clusters]


def rare_sample_lost(clusters: np.ndarray, random: np.random.Generator) -> Scores:
    """Exactly constant difference of 1/300, save one sample in 300 (whatever its cluster) lost whole."""
    p = 1 / 300
    return np.full(len(clusters), 1 - p), (random.random(len(clusters)) >= p).astype(float)


def alternating(clusters: np.ndarray, random: np.random.Generator) -> Scores:
    """Within a cluster gains and losses alternate and cancel to a small gain; 3 % of clusters lose all."""
    p = 0.03
    gain = p / (1 - p)
    k = _count(clusters)
    wave = _signs(random, k)[clusters] * (1 - 2.0 * (_rank(clusters) % 2))
    lost = (random.random(k) < p)[clusters]
    return _scores(np.where(lost, -1.0, (1 - gain) * wave + gain))


CASES = {
    "1 in 50 clusters collapses": rare_collapse,
    "skew turns with size": skew_by_size,
    "Pareto by cluster": pareto,
    "variance grows": growing_variance,
    "variance dies out": dying_variance,
    "few clusters turn over": rare_turns,
    "types cancel": cancelling_types,
    "long odds by cluster": long_odds,
    "constant, 1 in 300 lost": rare_sample_lost,
    "alternating, 3 % lost": alternating,
}
