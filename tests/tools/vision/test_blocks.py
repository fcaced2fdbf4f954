"""Blocks tile a raster whatever its layout, and what is read through them is what is read at once."""

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rasterio.errors import NotGeoreferencedWarning

from agrotools.vision.rasters import open_raster
from agrotools_tools.vision.blocks import (
    RasterThumbnail,
    RunningStatistics,
    block_boxes,
    raster_blocks,
)
from support.picture_files import write_raster

HEIGHTS = np.random.default_rng(3).uniform(0, 30, (2, 90, 131)).astype(np.float32)


@given(
    corner=st.tuples(st.integers(0, 300), st.integers(0, 300)),
    size=st.tuples(st.integers(1, 400), st.integers(1, 400)),
    tile=st.tuples(st.integers(1, 700), st.integers(1, 700)),
    block_px=st.integers(1, 50_000),
)
def test_boxes_tile_the_region(
    corner: tuple[int, int], size: tuple[int, int], tile: tuple[int, int], block_px: int
) -> None:
    region = (*corner, corner[0] + size[0], corner[1] + size[1])
    seen = np.zeros((region[3], region[2]), int)
    for x0, y0, x1, y1 in block_boxes(region, tile, block_px):
        assert x0 < x1
        assert y0 < y1
        assert (x1 - x0) * (y1 - y0) <= max(block_px, tile[0] * tile[1])
        assert x0 == region[0] or x0 % tile[1] == 0
        assert y0 == region[1] or y0 % tile[0] == 0
        seen[y0:y1, x0:x1] += 1
    expected = np.zeros_like(seen)
    expected[corner[1] :, corner[0] :] = 1
    assert np.array_equal(seen, expected)


@pytest.mark.parametrize(
    "layout", [{}, {"tiled": True, "blockxsize": 32, "blockysize": 16, "compress": "deflate"}]
)
@pytest.mark.parametrize("halo", [0, 5])
@pytest.mark.parametrize("region", [None, (7, 11, 100, 77)])
def test_blocks_hold_what_the_raster_holds(
    tmp_path: Path, layout: dict[str, object], halo: int, region: tuple[int, int, int, int] | None
) -> None:
    path = write_raster(tmp_path / "a.tif", HEIGHTS, **layout)
    with open_raster(path) as source:
        whole = np.full((2, 90, 131), -1.0, np.float32)
        blocks = list(raster_blocks(source, [2, 1], region, halo=halo, block_px=2000))
    for block in blocks:
        x0, y0, x1, y1 = block.box
        whole[:, y0:y1, x0:x1] = block.values[:, *block.inner]
        left, top, right, bottom = block.read_box
        assert np.array_equal(block.values, HEIGHTS[::-1, top:bottom, left:right])
        limits = region or (0, 0, 131, 90)
        assert (left, top) == (max(limits[0], x0 - halo), max(limits[1], y0 - halo))
        assert (right, bottom) == (min(limits[2], x1 + halo), min(limits[3], y1 + halo))
    x0, y0, x1, y1 = region or (0, 0, 131, 90)
    assert np.array_equal(whole[:, y0:y1, x0:x1], HEIGHTS[::-1, y0:y1, x0:x1])
    assert (whole == -1).sum() == 2 * (131 * 90 - (x1 - x0) * (y1 - y0))
    assert len(blocks) > 3


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_absent_data_is_what_gdal_takes_for_it(tmp_path: Path, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["uint8", "int16", "uint16", "int32", "float32", "float64"]))
    nodata = data.draw(
        st.sampled_from([0.0, 255.0, 7.0] if dtype == "uint8" else [0.0, 3.0, 255.0])
    )
    if dtype.startswith(("float", "int")):
        nodata = data.draw(st.sampled_from([nodata, -9999.0, -32768.0]))
    if dtype.startswith("float"):
        nodata = data.draw(st.sampled_from([nodata, float("nan"), 0.1, -9999.99, 1e20]))
    values = np.array([0, 1, 3, 7, 255, 250], dtype)
    drawn = np.random.default_rng(data.draw(st.integers(0, 99))).choice(values, (1, 20, 30))
    drawn[0, ::4, ::3] = np.array(nodata).astype(dtype)
    path = write_raster(tmp_path / "n.tif", drawn, nodata=nodata)
    with open_raster(path) as source, warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        expected = source.dataset.read(1, masked=True).astype(np.float32)
        assert np.array_equal(source.read([1])[0], expected.filled(np.nan), equal_nan=True)


heights = st.lists(st.floats(0, 60, width=32), min_size=1, max_size=300)


@pytest.fixture(params=[0, 4_000_000], ids=["from a histogram", "kept"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("agrotools_tools.vision.blocks._KEPT", request.param)
    return request.param


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=heights, cuts=st.lists(st.integers(0, 300), max_size=4), edge=st.floats(0, 40, width=32)
)
def test_parts_give_what_the_whole_gives(
    kept: int, values: list[float], cuts: list[int], edge: float
) -> None:
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
    assert statistics.mean_above == pytest.approx(
        above.mean() if above.size else math.nan, nan_ok=True
    )
    for percent in (0, 5, 50, 95, 99.5, 100):
        tolerance = statistics.resolution + 1e-5
        assert statistics.percentile(percent) == pytest.approx(
            np.percentile(exact, percent), abs=tolerance
        )
    assert statistics.resolution == (0 if kept else 1 / 1024)


@pytest.mark.parametrize("top", [0.0, 127.9, 128.0, 3000.0, 1e12, 9e29])
def test_percentiles_keep_their_relative_precision(
    top: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agrotools_tools.vision.blocks._KEPT", 0)
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
            assert means[i, j] == pytest.approx(
                there.mean() if there.size else np.nan, rel=1e-4, nan_ok=True
            )
