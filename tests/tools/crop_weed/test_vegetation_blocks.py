from pathlib import Path

import numpy as np
import pytest

from agrotools.core import ToolError
from agrotools.tools.crop_weed import large_rasters
from agrotools.tools.crop_weed.large_rasters import segment_raster
from agrotools.vision.rasters import open_raster
from agrotools.vision.vegetation import segment
from support.picture_files import discs, write_raster

SHAPE = (500, 700)
ROLES = {"R": 1, "NIR": 2}


def two_bands(folder: Path, mask: np.ndarray, **profile: object) -> Path:
    draw = np.random.default_rng(4)
    red = np.where(mask, 0.05, 0.15) + draw.normal(0, 0.01, mask.shape)
    infrared = np.where(mask, 0.45, 0.2) + draw.normal(0, 0.02, mask.shape)
    bands = np.stack([red, infrared]).astype(np.float32)
    bands[:, :40, :60] = np.nan
    return write_raster(folder / "large.tif", bands, ("red", "nir"), nodata=float("nan"), **profile)


def plants() -> np.ndarray:
    draw = np.random.default_rng(0)
    spots = [(draw.uniform(0, 700), draw.uniform(0, 500)) for _ in range(160)]
    return discs(SHAPE, spots, 7.0)


@pytest.mark.parametrize("profile", [{"tiled": True, "blockxsize": 64, "blockysize": 64}, {}])
def test_blocks_give_what_the_whole_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: dict) -> None:
    path = two_bands(tmp_path, plants(), **profile)
    small_pieces(monkeypatch)
    with open_raster(path) as source:
        found = segment_raster(source, ROLES, "ndvi", (0, 0, 700, 500), 100)
        red, infrared = source.read([1, 2])
    whole = segment("ndvi", {"R": red, "NIR": infrared}, None)
    assert found.cut.threshold == pytest.approx(whole.threshold, abs=0.02)
    there = np.isfinite(red)
    assert found.measured_px == there.sum()
    if found.cut.threshold == whole.threshold:
        assert found.plant_px == whole.mask.sum()
    assert found.plant_px == pytest.approx(int(whole.mask.sum()), rel=0.005)
    assert found.factor == 7
    assert found.cover.shape == (72, 100)
    assert np.nanmean(found.cover) == pytest.approx(whole.mask.sum() / there.sum(), rel=0.03)


def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_rasters, "BLOCK_PX", 30_000)


def test_where_the_same_cut_is_made_blocks_agree_to_the_pixel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = two_bands(tmp_path, plants(), tiled=True, blockxsize=64, blockysize=64)
    with open_raster(path) as source:
        one = segment_raster(source, ROLES, "ndvi", (0, 0, 700, 500), 100)
        small_pieces(monkeypatch)
        many = segment_raster(source, ROLES, "ndvi", (0, 0, 700, 500), 100)
    assert (one.plant_px, one.measured_px) == (many.plant_px, many.measured_px)
    np.testing.assert_allclose(one.cover, many.cover, atol=1e-6)


def test_rasters_of_one_class_and_without_data(tmp_path: Path) -> None:
    with open_raster(two_bands(tmp_path, np.zeros(SHAPE, bool))) as source:
        bare = segment_raster(source, ROLES, "ndvi", (0, 0, 700, 500), 100)
        assert (bare.plant_px, bare.cut.flags) == (0, ("no_vegetation",))
        with pytest.raises(ToolError) as caught:
            segment_raster(source, ROLES, "ndvi", (0, 0, 30, 20), 100)
    assert caught.value.kind == "nothing_found"
    (tmp_path / "b").mkdir()
    with open_raster(two_bands(tmp_path / "b", np.ones(SHAPE, bool))) as source:
        full = segment_raster(source, ROLES, "ndvi", (0, 0, 700, 500), 100)
    assert full.plant_px == full.measured_px == 500 * 700 - 40 * 60
    assert full.cut.flags == ("no_soil_visible",)
