"""Harness as a factor: how much of the differences between runs comes from the protocol or agent around a model.

Runs of the same models in the same harnesses form a table. The variance of its mean scores has three parts: models,
harnesses, and what they do together (a harness that helps some models alone). Each part is the sum of squares of a
balanced two-way analysis of variance, less what sampling noise adds to it by the cluster-robust covariance of the
means (as omega squared corrects eta squared: Hays 1963, "Statistics for Psychologists"), and at least 0. Intervals are
95 % percentiles over bootstrap draws of clusters, which carry that noise twice.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from agrotools.core import Mode
from agrotools.core.base import FloatArray, np
from agrotools.scoring import Summary
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.comparisons import common_samples, headline_metrics, values_on
from agrotools.scoring.statistics import (
    BOOTSTRAP_DRAWS,
    MIN_CLUSTERS,
    Estimate,
    Interval,
    adjusted,
    cluster_sums,
    estimate_difference,
    estimate_mean,
)

PARTS = ("models", "harnesses", "models x harnesses")


class HarnessEffects(NamedTuple):
    """Scores of models in harnesses, on the samples of a benchmark that all these runs have."""

    benchmark: str
    tools: str
    mode: Mode
    metric: str
    models: Sequence[str]
    harnesses: Sequence[str]
    means: dict[tuple[str, str], Estimate]
    """Mean score by model and harness."""
    differences: list[Estimate]
    """Each harness but the first, minus the first, over the mean scores of the models; adjusted together."""
    shares: dict[str, Estimate]
    """Share of the variance of the means by part, in [0, 1]; empty with one model, with fewer than ten clusters, and
    if the means differ no more than by sampling noise."""


def harness_effects(
    runs: Sequence[tuple[str, str, str, str]], summaries: Sequence[Summary], tallies: Sequence[RunAggregator]
) -> list[HarnessEffects]:
    """Return the effects for each benchmark, list of tools and mode but step-by-step.

    Models that lack one of the harnesses are left out, and before them the harnesses of a single model.

    Args:
        runs: benchmark, tools, model and harness of each run.
    """
    grids: dict[tuple[str, str, Mode, str], dict[tuple[str, str], RunAggregator]] = {}
    for (benchmark, tools, model, harness), summary, tally in zip(runs, summaries, tallies, strict=True):
        for mode, metric in headline_metrics(summary, tally) if harness != "none" else ():
            if mode != "step-by-step":
                grids.setdefault((benchmark, tools, mode, metric), {})[model, harness] = tally
    effects: list[HarnessEffects] = []
    for (benchmark, tools, mode, metric), grid in grids.items():
        models, harnesses = (dict.fromkeys(each[at] for each in grid) for at in (0, 1))
        common = [name for name in harnesses if sum((each, name) in grid for each in models) > 1] or [*harnesses]
        complete = [model for model in models if all((model, name) in grid for name in common)]
        names = [*product(complete, common)]
        samples = common_samples([grid[name] for name in names], mode, metric)
        if len(common) < 2 or not samples:
            continue
        columns = [values_on(samples, grid[name], mode, metric) for name in names]
        scores, clusters = np.array([values for values, _ in columns]), columns[0][1]
        first, *others = scores.reshape(len(complete), len(common), -1).mean(axis=0)
        means = {name: estimate_mean(values, clusters) for name, values in zip(names, scores, strict=True)}
        differences = adjusted([estimate_difference(values, first, clusters) for values in others])
        shares = variance_shares(scores, clusters, len(complete)) if len(complete) > 1 else {}
        effects.append(HarnessEffects(benchmark, tools, mode, metric, complete, common, means, differences, shares))
    return effects


def variance_shares(scores: FloatArray, clusters: Sequence[str], n_models: int) -> dict[str, Estimate]:
    """Return the share of each of :data:`PARTS` in the variance of mean scores; empty if it cannot be estimated.

    Args:
        scores: scores of the samples, of shape (models * harnesses, samples), model by model.
        clusters: the cluster of each sample.
    """
    n_runs, n = scores.shape
    sizes = cluster_sums(scores[0], clusters)[0]
    if (k := len(sizes)) < MIN_CLUSTERS:
        return {}
    sums = np.array([cluster_sums(values, clusters)[1] for values in scores])
    means = scores.mean(axis=1)
    residuals = sums - means[:, None] * sizes
    covariance = residuals @ residuals.T / n**2 * k / (k - 1)
    averaging = [np.full((size, size), 1 / size) for size in (n_models, n_runs // n_models)]
    centring = [np.eye(len(each)) - each for each in averaging]
    forms = [np.kron(centring[0], averaging[1]), np.kron(averaging[0], centring[1]), np.kron(*centring)]

    def shares(of: FloatArray, noises: int) -> FloatArray:
        parts = [np.einsum("...i,ij,...j", of, form, of) - noises * np.trace(form @ covariance) for form in forms]
        positive = np.maximum(parts, 0.0)
        return positive / np.maximum(positive.sum(axis=0), 1e-12)

    if not (estimated := shares(means, 1)).any():
        return {}
    weights = np.random.default_rng(0).multinomial(k, np.full(k, 1 / k), size=BOOTSTRAP_DRAWS)
    lower, upper = np.quantile(shares(weights @ sums.T / (weights @ sizes)[:, None], 2), [0.025, 0.975], axis=1)
    values = zip(PARTS, estimated.tolist(), lower.tolist(), upper.tolist(), strict=True)
    return {
        part: Estimate(value=value, interval=Interval(lower=low, upper=high), n=n, n_clusters=k)
        for part, value, low, high in values
    }
