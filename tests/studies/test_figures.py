"""Figures: values by hand, and intervals that hold the truth as often as they say."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from accuracy.study import LEAST_CLUSTERS, Columns, estimate, mean_of
from agrotools.scoring.statistics import exact_share_interval


def columns_of(**values: Sequence[float]) -> Columns:
    columns = Columns()
    for row in zip(*values.values(), strict=True):
        columns.add(**dict(zip(values, row, strict=True)))
    return columns


def test_values_by_hand():
    columns = columns_of(a=[1, 2, 6], b=[4, 2, 3], c=[3, 3, 4])
    assert estimate(columns.mean("m", "a")).value == estimate(mean_of("m", [1, 2, 6])).value == 3
    assert estimate(columns.median("m", "a")).value == 2
    assert estimate(columns.ratio("m", "a", "b")).value == 1
    assert estimate(columns.f1("m", "a", "b", "c")).value == pytest.approx(18 / 19)
    measured, true = [1.0, 2.0, 4.0], [1.0, 3.0, 5.0]
    cov = np.cov(measured, true, bias=True)
    by_hand = 2 * cov[0, 1] / (cov[0, 0] + cov[1, 1] + (7 / 3 - 3) ** 2)
    figure = columns_of(measured=measured, true=true).concordance("m", "measured", "true")
    assert estimate(figure).value == pytest.approx(by_hand)
    columns = columns_of(a=[*range(12)], double=[2 * number for number in range(12)])
    assert estimate(columns.concordance("m", "a", "a")).value == pytest.approx(1)
    assert estimate(columns.concordance("m", "double", "a")).value < 0.9


def test_few_images_have_no_interval_and_no_figure_is_infinite():
    assert estimate(mean_of("m", list(range(LEAST_CLUSTERS - 1)))).low is None
    assert estimate(mean_of("m", list(range(LEAST_CLUSTERS)))).low is not None
    clustered = estimate(
        mean_of("m", list(range(40)), clusters=tuple(str(n // 8) for n in range(40)))
    )
    assert (clustered.n, clustered.independent, clustered.low) == (40, 5, None)
    assert math.isnan(estimate(columns_of(a=[0.0]).ratio("m", "a", "a")).value)
    with pytest.raises(ValueError, match="no image"):
        estimate(mean_of("m", []))
    with pytest.raises(ValueError, match="cluster names"):
        estimate(mean_of("m", [1, 2], clusters=("a",)))
    found = estimate(
        columns_of(hits=[5, 1] + [0] * 10, there=[6, 4] + [0] * 10).f1(
            "m", "hits", "there", "there"
        )
    )
    assert found.value == pytest.approx(12 / 20)
    assert found.low is not None
    assert math.isfinite(found.low)


def test_intervals_calibration_and_risk_are_those_by_hand():
    """Clopper and Pearson: 24 of 24 right, the exact lower bound is 0.025 ** (1 / 24)."""
    for all_right in (
        mean_of("named", [True] * 24),
        columns_of(a=[1] * 24).mean("right, share", "a"),
    ):
        found = estimate(all_right)
        assert (found.value, found.high) == (1, 1)
        assert found.low == pytest.approx(0.025 ** (1 / 24))
    percent = estimate(mean_of("right, %", [100.0] * 23 + [0.0]))
    assert 70 < percent.low < percent.value < percent.high < 100
    half = estimate(
        mean_of("named", [True, False] * 20, clusters=tuple(str(n // 2) for n in range(40)))
    )
    assert half.low == pytest.approx(1 - (half.high or 0))  # 20 scenes, each half right
    # A scene of 30 images, all right, and ten of one image, half of them right: 40 ** 2 / (30 ** 2 + 10) scenes.
    uneven = estimate(
        mean_of(
            "named", [True] * 30 + [True, False] * 5, clusters=("a",) * 30 + tuple("bcdefghijk")
        )
    )
    low, high = exact_share_interval(0.875 * 1600 / 910, 1600 / 910)
    assert (uneven.value, uneven.low, uneven.high) == (
        0.875,
        pytest.approx(low),
        pytest.approx(high),
    )
    constant_error = estimate(mean_of("error, points", [1.0] * 12))
    assert (constant_error.low, constant_error.high) == (None, None)
    # Ten with probability 0.9 of which 7 are right, ten with 0.4 of which 4: gaps 0.2 and 0, so 0.1.
    right = [True] * 7 + [False] * 3 + [True] * 4 + [False] * 6
    columns = columns_of(probability=[0.9] * 10 + [0.4] * 10, right=right)
    gap = columns.calibration("gap", "probability", "right")
    assert estimate(gap).value == pytest.approx(0.1)
    assert not gap.higher_is_better
    assert "perfect probabilities would have 0." in gap.note
    risks = [
        estimate(columns.risk("wrong", "probability", "right", part)).value
        for part in (0.5, 0.75, 1.0)
    ]
    assert risks == pytest.approx([0.3, 4 / 15, 9 / 20])
