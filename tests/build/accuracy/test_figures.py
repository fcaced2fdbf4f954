"""Figures: values by hand, and intervals that hold the truth as often as they say."""

import math

import numpy as np
import pytest

from agrotools.build.accuracy.study import (
    LEAST_CLUSTERS,
    concordance_of,
    estimate,
    f1_of,
    mean_of,
    median_of,
    ratio_of,
)


def test_values_by_hand():
    assert estimate(mean_of("m", [1, 2, 6])).value == 3
    assert estimate(median_of("m", [1, 2, 6])).value == 2
    assert estimate(ratio_of("m", [1, 2], [4, 2])).value == 0.5
    assert estimate(f1_of("m", [2, 1], [3, 2], [2, 3])).value == pytest.approx(6 / 10)
    measured, true = [1.0, 2.0, 4.0], [1.0, 3.0, 5.0]
    cov = np.cov(measured, true, bias=True)
    by_hand = 2 * cov[0, 1] / (cov[0, 0] + cov[1, 1] + (7 / 3 - 3) ** 2)
    assert estimate(concordance_of("m", measured, true)).value == pytest.approx(by_hand)


def test_concordance_is_one_only_on_the_line_of_equality():
    values = np.arange(12.0)
    assert estimate(concordance_of("m", values.tolist(), values.tolist())).value == pytest.approx(1)
    assert estimate(concordance_of("m", (2 * values).tolist(), values.tolist())).value < 0.9


def test_under_ten_independent_images_there_is_no_interval():
    assert estimate(mean_of("m", list(range(LEAST_CLUSTERS - 1)))).low is None
    assert estimate(mean_of("m", list(range(LEAST_CLUSTERS)))).low is not None
    clustered = estimate(mean_of("m", list(range(40)), clusters=tuple(str(n // 8) for n in range(40))))
    assert (clustered.n, clustered.independent, clustered.low) == (40, 5, None)


def test_what_cannot_be_measured_is_not_a_number():
    assert math.isnan(estimate(ratio_of("m", [0.0], [0.0])).value)
    with pytest.raises(ValueError, match="no image"):
        estimate(mean_of("m", []))
    with pytest.raises(ValueError, match="cluster names"):
        estimate(mean_of("m", [1, 2], clusters=("a",)))


def test_a_resample_without_objects_leaves_the_interval_finite():
    hits, there = [5] + [0] * 11, [6] + [0] * 11
    found = estimate(f1_of("m", hits, there, there))
    assert found.value == pytest.approx(10 / 12)
    assert found.low is not None
    assert math.isfinite(found.low)


def test_the_same_seed_gives_the_same_interval():
    values = np.random.default_rng(3).normal(size=20).tolist()
    assert estimate(mean_of("m", values)) == estimate(mean_of("m", values))


@pytest.mark.parametrize("clusters", [12, 30])
def test_intervals_of_a_mean_hold_the_truth_about_as_often_as_they_say(clusters: int, monkeypatch: pytest.MonkeyPatch):
    """95 % of 250 intervals; three standard errors of such a share are 4.1 points."""
    monkeypatch.setattr("agrotools.build.accuracy.study.DRAWS", 400)
    rng = np.random.default_rng(clusters)
    held = 0
    for seed in range(250):
        found = estimate(mean_of("m", rng.normal(5, 2, clusters).tolist()), seed)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 5 <= found.high
    assert 0.905 <= held / 250 <= 0.988


def test_images_of_one_scene_make_an_interval_wider_than_as_many_scenes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agrotools.build.accuracy.study.DRAWS", 1000)
    rng = np.random.default_rng(1)
    scenes = np.repeat(rng.normal(size=12), 6)
    values = (scenes + 0.1 * rng.normal(size=72)).tolist()
    alone = estimate(mean_of("m", values))
    together = estimate(mean_of("m", values, clusters=tuple(str(n // 6) for n in range(72))))
    assert alone.low is not None
    assert alone.high is not None
    assert together.low is not None
    assert together.high is not None
    assert together.high - together.low > 1.8 * (alone.high - alone.low)
