"""Heights against numpy on rasters made in code, on grids that differ, on every kind of absent data, on bad input."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from rasterio.transform import Affine, from_origin
from rasterio.warp import transform

from agrotools.core import SampleFile
from agrotools.tools import get_tool
from agrotools.tools.canopy_height import CanopyHeight
from agrotools.tools.workspace import CallContext, artifacts_in, call_context
from support.picture_files import field, write_raster
from support.tool_errors import tool_error

UTM = {"crs": "EPSG:32633", "transform": from_origin(500_000, 5_000_000, 0.5, 0.5)}
HEIGHTS = np.random.default_rng(5).gamma(1.5, 4, (60, 80)).astype(np.float32)
HEIGHTS[10:30, 10:50] = 0


def raster(path: Path, values: np.ndarray, **profile: Any) -> Path:
    return write_raster(path, values[None], **profile)


def measured(folder: Path, **arguments: Any) -> CanopyHeight:
    with artifacts_in(folder / "made"):
        return get_tool("estimate_canopy_height")(**arguments)


fault = partial(tool_error, measured)


def numbers(result: CanopyHeight) -> dict[str, Any]:
    return result.model_dump(exclude={"notes", "flags", "map", "source"})


def test_statistics_are_those_of_numpy(tmp_path: Path) -> None:
    result = measured(tmp_path, chm=raster(tmp_path / "chm.tif", HEIGHTS, **UTM))
    exact = HEIGHTS.astype(np.float64)
    canopy = exact >= 2
    assert result.mean_m == pytest.approx(exact.mean(), rel=1e-9)
    assert result.mean_canopy_m == pytest.approx(exact[canopy].mean(), rel=1e-9)
    assert result.sd_m == pytest.approx(exact.std(), rel=1e-6)
    assert result.max_m == exact.max()
    for value, percent in ((result.median_m, 50), (result.p95_m, 95), (result.p99_5_m, 99.5)):
        assert value == pytest.approx(np.percentile(exact, percent), rel=1e-6)
    assert result.cover_pct == pytest.approx(100 * canopy.mean())
    assert result.canopy_area_m2 == pytest.approx(canopy.sum() * 0.25)
    assert result.area_m2 == pytest.approx(HEIGHTS.size * 0.25)
    edges = [0, 2, 5, 10, 15, 20, np.inf]
    assert [part.pct for part in result.bins] == pytest.approx(100 * np.histogram(exact, edges)[0] / exact.size)
    assert result.bins[-1].hi_m is None
    assert (result.measured_px, result.nodata_pct, result.source) == (4800, 0, "chm")
    assert result.flags == ()
    with Image.open(tmp_path / "made" / result.map.name) as picture:
        assert picture.width >= 640


def test_heights_at_a_limit_belong_above_it(tmp_path: Path) -> None:
    values = np.array([[1.9, 2.0, 2.1], [0.0, 5.0, 2.3]], np.float32)
    result = measured(tmp_path, chm=raster(tmp_path / "a.tif", values), veg_min_height_m=2.3, height_bins_m=[2, 2.3, 5])
    assert result.cover_pct == pytest.approx(100 * 2 / 6)
    assert [round(part.pct * 6 / 100) for part in result.bins] == [2, 2, 1, 1]


def test_other_units_of_height(tmp_path: Path) -> None:
    decimetres = np.round(HEIGHTS * 10).astype(np.uint16)
    given = measured(tmp_path, chm=raster(tmp_path / "a.tif", decimetres), height_scale=0.1)
    assert given.mean_m == pytest.approx(decimetres.mean() / 10, rel=1e-6)
    said = raster(tmp_path / "b.tif", decimetres, **UTM)
    with rasterio.open(said, "r+") as file:
        file.units = ("dm",)
    assert measured(tmp_path, chm=said).bins == given.bins
    assert measured(tmp_path, chm=said).max_m == given.max_m
    assert measured(tmp_path, chm=said, height_scale=1.0).mean_m == pytest.approx(decimetres.mean(), rel=1e-6)
    with rasterio.open(said, "r+") as file:
        file.units = ("cubits",)
    assert "height_unit_unknown" in measured(tmp_path, chm=said).flags


def test_ground_sampling_in_feet_and_degrees(tmp_path: Path) -> None:
    feet = raster(tmp_path / "ft.tif", HEIGHTS, crs="EPSG:2227", transform=from_origin(6e6, 2e6, 3.0, 3.0))
    result = measured(tmp_path, chm=feet)
    assert result.gsd_m == pytest.approx(3 * 1200 / 3937)
    assert "height_unit_assumed_metres" in result.flags
    degrees = raster(tmp_path / "deg.tif", HEIGHTS, crs="EPSG:4326", transform=from_origin(15, 60, 1e-5, 1e-5))
    result = measured(tmp_path, chm=degrees)
    assert "gsd_from_degrees" in result.flags
    assert result.area_m2 == pytest.approx(4800 * (1e-5 * 111_412 * 0.5) * (1e-5 * 111_412), rel=0.01)
    given = measured(tmp_path, chm=degrees, gsd_m=2.0)
    assert given.area_m2 == 4800 * 4
    assert "gsd_differs_from_file" in given.flags
    assert "gsd_from_degrees" not in given.flags


def test_scales_and_regions(tmp_path: Path) -> None:
    chm = raster(tmp_path / "a.tif", HEIGHTS)
    assert measured(tmp_path, chm=chm).canopy_area_m2 is None
    assert "no_scale" in measured(tmp_path, chm=chm).flags
    info = SampleFile(name="a.tif", path="a.tif", kind="raster", gsd_m=3.0)
    with call_context(CallContext(keep=lambda artifact, content: artifact, infos={chm.resolve(): info})):
        assert get_tool("estimate_canopy_height")(chm=chm).area_m2 == 4800 * 9
    assert fault(tmp_path, chm=chm, region=(200, 0, 300, 20)).kind == "region_empty"
    clipped = measured(tmp_path, chm=chm, region=(70, 50, 300, 200))
    assert clipped.measured_px == 100
    assert "region_clipped" in clipped.flags


def test_statistics_not_asked_for_are_left_out(tmp_path: Path) -> None:
    chm = raster(tmp_path / "a.tif", HEIGHTS, **UTM)
    result = measured(tmp_path, chm=chm, stat=["max", "cover"])
    assert result.mean_m is result.median_m is result.p95_m is result.mean_canopy_m is None
    everything = measured(tmp_path, chm=chm)
    assert (result.max_m, result.p99_5_m, result.cover_pct) == (
        everything.max_m, everything.p99_5_m, everything.cover_pct,
    )  # fmt: skip


def test_values_below_zero_and_elevations_are_flagged(tmp_path: Path) -> None:
    values = HEIGHTS.copy()
    values[:6] = -3
    result = measured(tmp_path, chm=raster(tmp_path / "a.tif", values))
    assert result.mean_m == pytest.approx(np.maximum(values, 0).mean(), rel=1e-6)
    assert "negative_heights" in result.flags
    assert "implausible_heights" in measured(tmp_path, chm=raster(tmp_path / "a.tif", HEIGHTS + 900)).flags
    spiky = HEIGHTS.copy()
    spiky[3, 3] = 500
    assert "spikes_possible" in measured(tmp_path, chm=raster(tmp_path / "b.tif", spiky)).flags


def test_heights_as_smooth_as_bare_ground_are_no_heights_of_a_canopy(tmp_path: Path) -> None:
    rows, columns = np.mgrid[:200, :200].astype(np.float32)
    noise = np.random.default_rng(0).normal(0, 0.05, (200, 200))
    hills = 20 + columns * 0.1 + 8 * np.sin(rows / 30) * np.cos(columns / 40) + noise
    for name, gsd in (("metre.tif", 1.0), ("decimetre.tif", 0.1)):
        result = measured(tmp_path, chm=raster(tmp_path / name, hills.astype(np.float32)), gsd_m=gsd)
        assert "implausible_heights" in result.flags
    low = raster(tmp_path / "meadow.tif", np.full((200, 200), 0.3, np.float32) + noise.astype(np.float32) / 5)
    assert "implausible_heights" not in measured(tmp_path, chm=low).flags


def test_classes_and_indices_are_no_heights(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    classes = raster(tmp_path / "classes.tif", draw.integers(1, 9, (64, 64)).astype(np.uint8))
    written_as_floats = raster(tmp_path / "floats.tif", draw.integers(1, 9, (64, 64)).astype(np.float32))
    index = raster(tmp_path / "ndvi.tif", draw.uniform(-0.2, 0.8, (64, 64)).astype(np.float32))
    for path in (classes, written_as_floats, index):
        assert "implausible_heights" in measured(tmp_path, chm=path).flags
    grass = raster(tmp_path / "grass.tif", draw.uniform(0, 0.8, (64, 64)).astype(np.float32))
    assert "implausible_heights" not in measured(tmp_path, chm=grass).flags


@pytest.mark.parametrize(
    ("gsd_m", "low", "high", "flagged"),
    [(10.0, 0.2, 0.84, True), (0.5, 0.2, 0.84, False), (10.0, 0.0, 0.84, False), (10.0, 0.2, 1.4, False)],
)
def test_an_index_without_negative_values_shows_no_ground(tmp_path, gsd_m, low, high, flagged):
    values = np.random.default_rng(0).uniform(low, high, (64, 64)).astype(np.float32)
    result = measured(tmp_path, chm=raster(tmp_path / "index.tif", values), gsd_m=gsd_m)
    assert ("implausible_heights" in result.flags) is flagged


def plane(columns: np.ndarray, rows: np.ndarray, transform_: Affine) -> np.ndarray:
    """A sloping terrain, as elevation at the centres of pixels."""
    x, y = transform_ * (columns + 0.5, rows + 0.5)
    return 300 + 0.05 * (x - 500_000) - 0.03 * (y - 5_000_000)


def on_grid(shape: tuple[int, int], transform_: Affine) -> np.ndarray:
    rows, columns = np.mgrid[0 : shape[0], 0 : shape[1]]
    return plane(columns, rows, transform_)


def surface(path: Path, **more: Any) -> Path:
    return raster(path, (on_grid(HEIGHTS.shape, UTM["transform"]) + HEIGHTS).astype(np.float32), **UTM, **more)


def test_surface_less_terrain_on_one_grid(tmp_path: Path) -> None:
    dtm = raster(tmp_path / "dtm.tif", on_grid(HEIGHTS.shape, UTM["transform"]).astype(np.float32), **UTM)
    result = measured(tmp_path, dsm=surface(tmp_path / "dsm.tif"), dtm=dtm)
    chm = measured(tmp_path, chm=raster(tmp_path / "chm.tif", HEIGHTS, **UTM))
    assert result.mean_m == pytest.approx(chm.mean_m, abs=1e-4)
    assert result.max_m == pytest.approx(chm.max_m, abs=1e-4)
    assert (result.cover_pct, result.source) == (pytest.approx(chm.cover_pct, abs=0.1), "dsm_dtm")
    assert "dsm_below_dtm" in measured(tmp_path, dsm=dtm, dtm=tmp_path / "dsm.tif").flags


@pytest.mark.parametrize("size_m", [0.2, 0.5, 2.0])
def test_a_terrain_model_on_another_grid_is_warped(tmp_path: Path, size_m: float) -> None:
    grid = from_origin(500_000 - 20.3, 5_000_000 + 20.7, size_m, size_m)
    values = on_grid((round(90 / size_m), round(100 / size_m)), grid).astype(np.float32)
    values[0, :] = -9999
    dtm = raster(tmp_path / "dtm.tif", values, crs="EPSG:32633", transform=grid)
    result = measured(tmp_path, dsm=surface(tmp_path / "dsm.tif"), dtm=dtm)
    assert result.measured_px == HEIGHTS.size
    assert result.mean_m == pytest.approx(HEIGHTS.mean(), abs=0.02)
    assert result.max_m == pytest.approx(HEIGHTS.max(), abs=0.05)


def test_a_terrain_model_in_another_coordinate_system(tmp_path: Path) -> None:
    (west,), (north,) = transform("EPSG:32633", "EPSG:4326", [499_990.0], [5_000_010.0])
    grid = from_origin(west, north, 1.2e-5, 0.9e-5)
    rows, columns = np.mgrid[0:60, 0:70]
    lon, lat = grid * (columns + 0.5, rows + 0.5)
    x, y = (np.reshape(part, (60, 70)) for part in transform("EPSG:4326", "EPSG:32633", lon.ravel(), lat.ravel()))
    values = 300 + 0.05 * (x - 500_000) - 0.03 * (y - 5_000_000)
    dtm = raster(tmp_path / "dtm.tif", values.astype(np.float32), crs="EPSG:4326", transform=grid)
    result = measured(tmp_path, dsm=surface(tmp_path / "dsm.tif"), dtm=dtm)
    assert result.measured_px == HEIGHTS.size
    assert result.mean_m == pytest.approx(HEIGHTS.mean(), abs=0.02)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(column=st.integers(1, 79), gsd_m=st.floats(0.1, 5))
def test_regions_add_up(tmp_path: Path, column: int, gsd_m: float) -> None:
    chm = raster(tmp_path / "a.tif", HEIGHTS)
    whole = measured(tmp_path, chm=chm, gsd_m=gsd_m)
    parts = [
        measured(tmp_path, chm=chm, gsd_m=gsd_m, region=region) for region in ((0, 0, column, 60), (column, 0, 80, 60))
    ]
    assert sum(part.measured_px for part in parts) == whole.measured_px
    assert sum(part.canopy_area_m2 or 0 for part in parts) == pytest.approx(whole.canopy_area_m2)
    assert max(part.max_m or 0 for part in parts) == whole.max_m
    mean = sum((part.mean_m or 0) * part.measured_px for part in parts) / whole.measured_px
    assert mean == pytest.approx(whole.mean_m)


@pytest.mark.parametrize("value", [0.0, 7.5])
@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (257, 3)])
def test_constant_rasters_of_odd_sizes(tmp_path: Path, value: float, shape: tuple[int, int]) -> None:
    result = measured(tmp_path, chm=raster(tmp_path / "a.tif", np.full(shape, value, np.float32)), gsd_m=1.0)
    assert result.mean_m == result.median_m == result.max_m == value
    assert result.sd_m == 0
    assert result.cover_pct == (100 if value else 0)
    assert ("no_canopy" in result.flags) == (value == 0)


def test_rasters_without_any_data(tmp_path: Path) -> None:
    empty = raster(tmp_path / "a.tif", np.full((20, 20), np.nan, np.float32))
    assert fault(tmp_path, chm=empty).kind == "nothing_found"
    half = HEIGHTS.copy()
    half[:, 40:] = np.nan
    chm = raster(tmp_path / "b.tif", half)
    found = fault(tmp_path, chm=chm, region=(50, 0, 60, 10))
    assert (found.kind, found.argument) == ("nothing_found", "region")
    assert "mostly_no_data" in measured(tmp_path, chm=chm, region=(30, 0, 80, 60)).flags


def test_rasters_that_cannot_be_laid_over_each_other(tmp_path: Path) -> None:
    dsm = surface(tmp_path / "dsm.tif")
    bare = raster(tmp_path / "bare.tif", HEIGHTS)
    found = fault(tmp_path, dsm=dsm, dtm=bare)
    assert (found.kind, found.argument) == ("crs_mismatch", "dtm")
    assert fault(tmp_path, dsm=bare, dtm=dsm).argument == "dsm"
    assert fault(tmp_path, dsm=bare, dtm=raster(tmp_path / "small.tif", HEIGHTS[:9])).kind == "shape_mismatch"
    shifted = raster(tmp_path / "shifted.tif", HEIGHTS, transform=from_origin(9, 9, 1, 1))
    assert fault(tmp_path, dsm=bare, dtm=shifted).kind == "crs_mismatch"
    assert measured(tmp_path, dsm=bare, dtm=bare).max_m == 0
    far = raster(tmp_path / "far.tif", HEIGHTS, crs="EPSG:32633", transform=from_origin(700_000, 5_000_000, 0.5, 0.5))
    assert fault(tmp_path, dsm=dsm, dtm=far).kind == "nothing_found"
    other_zone = {"crs": "EPSG:32719", "transform": from_origin(500_000, 5_000_000, 0.5, 0.5)}
    away = raster(tmp_path / "away.tif", HEIGHTS, **other_zone)
    assert fault(tmp_path, dsm=dsm, dtm=away).kind in ("nothing_found", "crs_mismatch")


def test_heights_must_be_given(tmp_path: Path) -> None:
    photo = tmp_path / "photo.png"
    Image.fromarray(field(HEIGHTS > 2)).save(photo)
    found = fault(tmp_path, image=photo)
    assert (found.kind, found.argument) == ("missing_metadata", "chm")
    chm = raster(tmp_path / "chm.tif", HEIGHTS)
    assert fault(tmp_path).kind == "missing_metadata"
    assert fault(tmp_path, dsm=chm).argument == "dtm"
    assert fault(tmp_path, dtm=chm).argument == "dsm"
    assert fault(tmp_path, chm=chm, dsm=chm).kind == "invalid_argument"
    colours = write_raster(tmp_path / "rgb.tif", np.zeros((3, 8, 8), np.uint8))
    assert fault(tmp_path, chm=colours).kind == "invalid_argument"
