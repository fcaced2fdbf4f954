"""Statistics in parts against numpy on the whole."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agrotools.vision.blocks import RasterThumbnail, RunningStatistics

heights = st.lists(st.floats(0, 60, width=32), min_size=1, max_size=300)


@pytest.fixture(params=[0, 4_000_000], ids=["from a histogram", "kept"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("agrotools.vision.blocks._KEPT", request.param)
    return request.param


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=heights, cuts=st.lists(st.integers(0, 300), max_size=4), edge=st.floats(0, 40, width=32))
def test_parts_give_what_the_whole_gives(kept: int, values: list[float], cuts: list[int], edge: float) -> None:
    whole = np.array(values, np.float32)
    statistics = RunningStatistics([edge, 5.0], mean_from=edge)
    for part in np.split(whole, sorted(cuts)):
        statistics.add(part)
    exact = whole.astype(np.float64)
    assert statistics.count == whole.size
    assert (statistics.minimum, statistics.maximum) == (whole.min(), whole.max())
    assert statistics.mean == pytest.approx(exact.mean(), abs=1e-5)
    assert statistics.sd == pytest.approx(exact.std(), abs=1e-4)
    assert statistics.at_least(edge) == (whole >= np.float32(edge)).sum()
    assert statistics.at_least(5.0) == (whole >= 5).sum()
    above = exact[whole >= np.float32(edge)]
    assert statistics.mean_above == pytest.approx(above.mean() if above.size else math.nan, nan_ok=True)
    for percent in (0, 5, 50, 95, 99.5, 100):
        tolerance = statistics.resolution + 1e-5
        assert statistics.percentile(percent) == pytest.approx(np.percentile(exact, percent), abs=tolerance)
    assert statistics.resolution == (0 if kept else 1 / 1024)


@pytest.mark.parametrize("top", [0.0, 127.9, 128.0, 3000.0, 1e12, 9e29])
def test_percentiles_keep_their_relative_precision(top: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agrotools.vision.blocks._KEPT", 0)
    values = (np.linspace(0, 1, 5001) * top).astype(np.float32)
    statistics = RunningStatistics()
    statistics.add(values[:100])
    statistics.add(values[100:])
    assert statistics.resolution <= max(1 / 1024, top / 65536)
    for percent in (1, 50, 95, 99.5):
        assert statistics.percentile(percent) == pytest.approx(
            np.percentile(values, percent), abs=statistics.resolution
        )


@given(
    size=st.tuples(st.integers(1, 60), st.integers(1, 60)),
    corner=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    longest=st.integers(1, 70),
    cut=st.tuples(st.integers(0, 60), st.integers(0, 60)),
    seed=st.integers(0, 99),
)
def test_a_small_picture_holds_means_of_squares(
    size: tuple[int, int], corner: tuple[int, int], longest: int, cut: tuple[int, int], seed: int
) -> None:
    height, width = size
    draw = np.random.default_rng(seed)
    values = draw.uniform(0, 30, size).astype(np.float32)
    values[draw.random(size) < 0.2] = np.nan
    picture = RasterThumbnail((*corner, corner[0] + width, corner[1] + height), longest)
    row, column = min(cut[0], height), min(cut[1], width)
    for top, bottom in ((0, row), (row, height)):
        for left, right in ((0, column), (column, width)):
            if bottom > top and right > left:
                box = (left + corner[0], top + corner[1], right + corner[0], bottom + corner[1])
                picture.add(box, values[top:bottom, left:right])
    means = picture.means
    assert max(means.shape) <= longest
    k = picture.factor
    for i in range(means.shape[0]):
        for j in range(means.shape[1]):
            part = values[i * k : (i + 1) * k, j * k : (j + 1) * k]
            there = part[np.isfinite(part)]
            assert means[i, j] == pytest.approx(there.mean() if there.size else np.nan, rel=1e-4, nan_ok=True)
