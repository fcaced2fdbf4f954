"""Weights of samples: they count in every mean of a run, and in every comparison of runs."""

import numpy as np
import pytest

from agrotools.core import Record, Score, Trajectory
from agrotools.loading.describing import ClusterWeights
from agrotools.report.tables import scoring_lines
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.comparisons import (
    common_samples,
    comparisons,
    headline_pair,
    mean_on,
    values_on,
)
from agrotools.scoring.gate import drop_bound
from agrotools.scoring.lost_points import LostPoints
from agrotools.scoring.missing import missing_between
from agrotools.scoring.sequential import sequential_look
from agrotools.scoring.statistics import estimate_mean
from support.plain_sample import plain_sample

MODE = "end-to-end"
N_COMMON, N_RARE = 90, 10
RARE_WEIGHT = N_COMMON / N_RARE


def samples(rare_weight: float = RARE_WEIGHT):
    """Many samples of one task type and a few of another, each in a cluster of its own."""
    common = [plain_sample(f"c{n}", task_type="tree_counting") for n in range(N_COMMON)]
    rare = [
        plain_sample(f"r{n}", task_type="band_selection", weight=rare_weight) for n in range(N_RARE)
    ]
    return [*common, *rare]


def run_of(values, asked=None, lost=None):
    tally = RunAggregator(lost=lost)
    for sample, value in zip(asked or samples(), values, strict=True):
        trajectory = Trajectory(termination="answered")
        record = Record(sample=sample, mode=MODE, trajectory=trajectory)
        rows = [Score(metric="fas", version="1", sample_id=sample.id, value=float(value))]
        tally.add(record, rows)
    return tally


def scores(common: float, rare: float, seed: int = 0):
    random = np.random.default_rng(seed).random(N_COMMON + N_RARE)
    right = np.where(np.arange(N_COMMON + N_RARE) < N_COMMON, common, rare)
    return (random < right).astype(float)


def mean_over_types(values):
    return (np.mean(values[:N_COMMON]) + np.mean(values[N_COMMON:])) / 2


def test_a_mean_counts_each_task_type_the_same():
    values = scores(0.8, 0.2)
    summary = run_of(values).summary()
    metric = summary.modes[MODE].metrics["fas"]
    assert metric.overall.value == pytest.approx(mean_over_types(values))
    assert metric.by_task_type["band_selection"].value == pytest.approx(np.mean(values[N_COMMON:]))
    assert metric.overall.n == N_COMMON + N_RARE
    plain = estimate_mean(values, np.arange(len(values)))
    width = metric.overall.interval.upper - metric.overall.interval.lower
    assert width > 1.5 * (plain.interval.upper - plain.interval.lower)  # ten samples carry half


def test_the_report_says_what_counts_the_same():
    plain, by_type, by_sample = (
        run_of(scores(0.8, 0.2), samples(weight)).summary() for weight in (1.0, RARE_WEIGHT, 2.0)
    )
    assert scoring_lines([plain]) == []
    assert "each task type counts the same" in scoring_lines([by_type])[0]
    assert "weight" in scoring_lines([by_sample])[0]


def test_differences_of_runs_have_the_same_weights():
    first, second = scores(0.8, 0.2), scores(0.7, 0.6, seed=1)
    tallies = [run_of(first), run_of(second)]
    expected = mean_over_types(second) - mean_over_types(first)
    (found,) = comparisons(tallies, ("a", "b"))
    assert found.modes[MODE]["fas"].overall.value == pytest.approx(expected)
    assert found.means[MODE] == pytest.approx((mean_over_types(first), mean_over_types(second)))
    pair = headline_pair(*tallies, MODE)
    bound = drop_bound(pair.second, pair.first, pair.clusters, pair.weights)
    assert bound.drop == pytest.approx(-expected)
    shared = common_samples(tallies, MODE, "fas")
    assert mean_on(shared, tallies[1], MODE, "fas").value == pytest.approx(mean_over_types(second))
    column = values_on(shared, tallies[1], MODE, "fas")
    assert np.average(column.values, weights=column.weights) == pytest.approx(
        mean_over_types(second)
    )


def test_missing_scores_open_a_range_by_their_weights():
    asked = samples()
    complete = run_of(np.ones(len(asked)), asked)
    without_rare_one = run_of(np.ones(len(asked) - 1), asked[:-1])
    without_rare_one.planned = frozenset(sample.id for sample in asked)
    found = missing_between(complete, without_rare_one, MODE, "fas")
    assert found.lowest.value == pytest.approx(-0.5 / N_RARE)
    assert found.highest.value == pytest.approx(0.0)


def test_lost_points_sum_to_the_gap_of_the_weighted_mean():
    values = scores(0.8, 0.2)
    lost = LostPoints()
    summary = run_of(values, lost=lost).summary()
    split = summary.modes[MODE].lost.run
    assert split.gap == pytest.approx(100 - 100 * mean_over_types(values), abs=1e-4)
    assert sum(split.parts.values()) == split.gap


def test_looks_at_unfinished_runs_use_the_weights():
    difference = scores(0.9, 0.5) - scores(0.1, 0.5, seed=2)
    n = len(difference)
    weights = np.array([sample.weight for sample in samples()])
    look = sequential_look(difference, np.arange(n), np.zeros(n, int), weights, largest=RARE_WEIGHT)
    assert look.difference.value == pytest.approx(mean_over_types(difference))
    assert look.difference.n == n
    interval = look.difference.interval
    assert interval.lower < look.difference.value < interval.upper


def test_a_plan_with_weights_finds_only_larger_differences():
    plans = []
    for weight in (1.0, RARE_WEIGHT):
        sums = ClusterWeights()
        for each in samples(weight):
            sums.add(each.model_copy(update={"cluster": each.id}))
        plans.append(sums.detectable()["independent"])
    plain, weighted = plans
    assert weighted > 1.5 * plain
