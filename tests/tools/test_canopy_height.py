"""Heights against numpy on rasters made in code, on grids that differ, on every kind of absent data, on bad input."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from hypothesis import given, settings
from hypothesis import strategies as st
from rasterio.transform import Affine, from_origin
from rasterio.warp import transform

from agrotools.calling import get_tool
from agrotools.calling.pictures import choose_scale
from agrotools.calling.workspace import CallContext, call_context
from agrotools.core import SampleFile
from agrotools_tools.canopy_height import CanopyHeight
from support.picture_files import field, write_raster
from support.tool_errors import tool_error

UTM = {"crs": "EPSG:32633", "transform": from_origin(500_000, 5_000_000, 0.5, 0.5)}
HEIGHTS = np.random.default_rng(5).gamma(1.5, 4, (60, 80)).astype(np.float32)
HEIGHTS[10:30, 10:50] = 0


def raster(path: Path, values: np.ndarray, **profile: Any) -> Path:
    return write_raster(path, values[None], **profile)


def measured(chm: Any = None, **arguments: Any) -> CanopyHeight:
    """Measure heights in a file or an array."""
    return get_tool("estimate_canopy_height")(chm=chm, **arguments)


fault = partial(tool_error, measured)


def test_statistics_are_those_of_numpy(tmp_path: Path) -> None:
    result = measured(raster(tmp_path / "chm.tif", HEIGHTS, **UTM))
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
    assert [part.pct for part in result.bins] == pytest.approx(
        100 * np.histogram(exact, edges)[0] / exact.size
    )
    assert result.bins[-1].hi_m is None
    assert (result.measured_px, result.nodata_pct, result.source) == (4800, 0, "chm")
    assert result.flags == ()
    assert result.picture.width >= 640


def test_heights_at_a_limit_belong_above_it() -> None:
    chm = np.array([[1.9, 2.0, 2.1], [0.0, 5.0, 2.3]], np.float32)
    result = measured(chm, veg_min_height_m=2.3, height_bins_m=[2, 2.3, 5])
    assert (result.cover_pct, result.max_m) == (pytest.approx(100 * 2 / 6), 5)
    assert [round(part.pct * 6 / 100) for part in result.bins] == [2, 2, 1, 1]


def test_other_units_of_height(tmp_path: Path) -> None:
    decimetres = np.round(HEIGHTS * 10).astype(np.uint16)
    given = measured(decimetres, height_scale=0.1)
    assert given.mean_m == pytest.approx(decimetres.mean() / 10, rel=1e-6)
    said = raster(tmp_path / "b.tif", decimetres, **UTM)
    with rasterio.open(said, "r+") as file:
        file.units = ("dm",)
    assert measured(said).bins == given.bins
    assert measured(said).max_m == given.max_m
    assert measured(said, height_scale=1.0).mean_m == pytest.approx(decimetres.mean(), rel=1e-6)
    with rasterio.open(said, "r+") as file:
        file.units = ("cubits",)
    assert "height_unit_unknown" in measured(said).flags


def test_ground_sampling_in_feet_and_degrees(tmp_path: Path) -> None:
    feet = raster(
        tmp_path / "ft.tif", HEIGHTS, crs="EPSG:2227", transform=from_origin(6e6, 2e6, 3.0, 3.0)
    )
    result = measured(feet)
    assert result.gsd_m == pytest.approx(3 * 1200 / 3937)
    assert "height_unit_assumed_metres" in result.flags
    degrees = raster(
        tmp_path / "deg.tif", HEIGHTS, crs="EPSG:4326", transform=from_origin(15, 60, 1e-5, 1e-5)
    )
    result = measured(degrees)
    assert "gsd_from_degrees" in result.flags
    assert result.area_m2 == pytest.approx(
        4800 * (1e-5 * 111_412 * 0.5) * (1e-5 * 111_412), rel=0.01
    )
    given = measured(degrees, gsd_m=2.0)
    assert given.area_m2 == 4800 * 4
    assert "gsd_differs_from_file" in given.flags
    assert "gsd_from_degrees" not in given.flags


def test_scales_and_regions(tmp_path: Path) -> None:
    result = measured(HEIGHTS)
    assert (result.canopy_area_m2, result.flags) == (None, ("no_scale",))
    chm = raster(tmp_path / "a.tif", HEIGHTS)
    info = SampleFile(name="a.tif", path="a.tif", kind="raster", gsd_m=3.0)
    with call_context(
        CallContext(keep=lambda artifact, content: artifact, infos={chm.resolve(): info})
    ):
        assert measured(chm).area_m2 == 4800 * 9
    assert fault(HEIGHTS, region=(200, 0, 300, 20)).kind == "region_empty"
    clipped = measured(HEIGHTS, region=(70, 50, 300, 200))
    assert (clipped.measured_px, "region_clipped" in clipped.flags) == (100, True)


DRAW = np.random.default_rng(0)
ROWS, COLUMNS = np.mgrid[:200, :200].astype(np.float32)
HILLS = (
    20
    + COLUMNS * 0.1
    + 8 * np.sin(ROWS / 30) * np.cos(COLUMNS / 40)
    + DRAW.normal(0, 0.05, (200, 200))
)
BELOW, SPIKY = HEIGHTS.copy(), HEIGHTS.copy()
BELOW[:6], SPIKY[3, 3] = -3, 500


@pytest.mark.parametrize(
    ("values", "gsd_m", "flag"),
    [
        (BELOW, None, "negative_heights"), (HEIGHTS + 900, None, "implausible_heights"),
        (SPIKY, None, "spikes_possible"), (HILLS, 1.0, "implausible_heights"), (HILLS, 0.1, "implausible_heights"),
        (np.full((200, 200), 0.3) + DRAW.normal(0, 0.01, (200, 200)), 1.0, None),  # a meadow
        (DRAW.integers(1, 9, (64, 64)), None, "implausible_heights"),  # classes
        (DRAW.integers(1, 9, (64, 64)).astype(np.uint8), None, "implausible_heights"),
        (DRAW.uniform(-0.2, 0.8, (64, 64)), None, "implausible_heights"),  # NDVI
        (DRAW.uniform(0, 0.8, (64, 64)), None, None),  # grass
        (DRAW.uniform(0.2, 0.84, (64, 64)), 10.0, "implausible_heights"),  # NDVI without negative values
        (DRAW.uniform(0.2, 0.84, (64, 64)), 0.5, None), (DRAW.uniform(0, 0.84, (64, 64)), 10.0, None),
        (DRAW.uniform(0.2, 1.4, (64, 64)), 10.0, None),
    ],
)  # fmt: skip
def test_values_that_are_no_heights_of_plants_are_flagged(values, gsd_m, flag) -> None:
    values = values if values.dtype == np.uint8 else values.astype(np.float32)
    result = measured(values, gsd_m=gsd_m)
    doubts = {"negative_heights", "implausible_heights", "spikes_possible"} & {*result.flags}
    assert doubts == ({flag} if flag else set())
    assert result.mean_m == pytest.approx(np.maximum(values, 0).mean(dtype=np.float64), rel=1e-6)


def on_grid(shape: tuple[int, int], grid: Affine, crs: str = "EPSG:32633") -> np.ndarray:
    """A sloping terrain, as elevation at the centres of pixels."""
    rows, columns = np.mgrid[0 : shape[0], 0 : shape[1]]
    x, y = grid * (columns + 0.5, rows + 0.5)
    x, y = (np.reshape(part, shape) for part in transform(crs, "EPSG:32633", x.ravel(), y.ravel()))
    return (300 + 0.05 * (x - 500_000) - 0.03 * (y - 5_000_000)).astype(np.float32)


def surface(path: Path, **more: Any) -> Path:
    return raster(path, on_grid(HEIGHTS.shape, UTM["transform"]) + HEIGHTS, **UTM, **more)


def test_surface_less_terrain_on_one_grid(tmp_path: Path) -> None:
    dtm = raster(tmp_path / "dtm.tif", on_grid(HEIGHTS.shape, UTM["transform"]), **UTM)
    result = measured(dsm=surface(tmp_path / "dsm.tif"), dtm=dtm)
    chm = measured(raster(tmp_path / "chm.tif", HEIGHTS, **UTM))
    assert result.mean_m == pytest.approx(chm.mean_m, abs=1e-4)
    assert result.max_m == pytest.approx(chm.max_m, abs=1e-4)
    assert (result.cover_pct, result.source) == (pytest.approx(chm.cover_pct, abs=0.1), "dsm_dtm")
    assert "dsm_below_dtm" in measured(dsm=dtm, dtm=tmp_path / "dsm.tif").flags


@pytest.mark.parametrize("size_m", [0.2, 0.5, 2.0, None])
def test_a_terrain_model_on_another_grid_is_warped(tmp_path: Path, size_m: float | None) -> None:
    if size_m:
        crs, grid = "EPSG:32633", from_origin(500_000 - 20.3, 5_000_000 + 20.7, size_m, size_m)
        values = on_grid((round(90 / size_m), round(100 / size_m)), grid)
        values[0, :] = -9999
    else:  # in degrees
        (west,), (north,) = transform("EPSG:32633", "EPSG:4326", [499_990.0], [5_000_010.0])
        crs, grid = "EPSG:4326", from_origin(west, north, 1.2e-5, 0.9e-5)
        values = on_grid((60, 70), grid, crs)
    dtm = raster(tmp_path / "dtm.tif", values, crs=crs, transform=grid)
    result = measured(dsm=surface(tmp_path / "dsm.tif"), dtm=dtm)
    assert result.measured_px == HEIGHTS.size
    assert result.mean_m == pytest.approx(HEIGHTS.mean(), abs=0.02)
    assert result.max_m == pytest.approx(HEIGHTS.max(), abs=0.05 if size_m else 0.1)


@settings(max_examples=15)
@given(column=st.integers(1, 79), gsd_m=st.floats(0.1, 5))
def test_regions_add_up(column: int, gsd_m: float) -> None:
    whole = measured(HEIGHTS, gsd_m=gsd_m)
    parts = [
        measured(HEIGHTS, gsd_m=gsd_m, region=region)
        for region in ((0, 0, column, 60), (column, 0, 80, 60))
    ]
    assert sum(part.measured_px for part in parts) == whole.measured_px
    assert sum(part.canopy_area_m2 or 0 for part in parts) == pytest.approx(whole.canopy_area_m2)
    assert max(part.max_m or 0 for part in parts) == whole.max_m
    mean = sum((part.mean_m or 0) * part.measured_px for part in parts) / whole.measured_px
    assert mean == pytest.approx(whole.mean_m)


@pytest.mark.parametrize("value", [0.0, 7.5])
@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (257, 3)])
def test_constant_rasters_of_odd_sizes(value: float, shape: tuple[int, int]) -> None:
    result = measured(np.full(shape, value), gsd_m=1.0)
    assert result.mean_m == result.median_m == result.max_m == value
    assert (result.sd_m, result.cover_pct) == (0, 100 if value else 0)
    assert ("no_canopy" in result.flags) == (value == 0)


def test_rasters_without_any_data() -> None:
    assert fault(np.full((20, 20), np.nan)).kind == "nothing_found"
    half = HEIGHTS.copy()
    half[:, 40:] = np.nan
    found = fault(half, region=(50, 0, 60, 10))
    assert (found.kind, found.argument) == ("nothing_found", "region")
    assert "mostly_no_data" in measured(half, region=(30, 0, 80, 60)).flags


def test_rasters_that_cannot_be_laid_over_each_other(tmp_path: Path) -> None:
    dsm = surface(tmp_path / "dsm.tif")
    shifted = raster(tmp_path / "shifted.tif", HEIGHTS, transform=from_origin(9, 9, 1, 1))
    for one, other, kind, argument in (
        (dsm, HEIGHTS, "crs_mismatch", "dtm"), (HEIGHTS, dsm, "crs_mismatch", "dsm"),
        (HEIGHTS, HEIGHTS[:9], "shape_mismatch", "dtm"), (HEIGHTS, shifted, "crs_mismatch", "dtm"),
    ):  # fmt: skip
        found = fault(dsm=one, dtm=other)
        assert (found.kind, found.argument) == (kind, argument)
    assert measured(dsm=HEIGHTS, dtm=HEIGHTS).max_m == 0
    far = from_origin(700_000, 5_000_000, 0.5, 0.5)
    for crs, kinds in (
        ("EPSG:32633", {"nothing_found"}),
        ("EPSG:32719", {"nothing_found", "crs_mismatch"}),
    ):
        assert (
            fault(dsm=dsm, dtm=raster(tmp_path / "f.tif", HEIGHTS, crs=crs, transform=far)).kind
            in kinds
        )


@pytest.mark.parametrize(
    ("given", "kind", "argument"),
    [
        ({}, "missing_metadata", "chm"), ({"image": field(HEIGHTS > 2)}, "missing_metadata", "chm"),
        ({"dsm": HEIGHTS}, "missing_metadata", "dtm"), ({"dtm": HEIGHTS}, "missing_metadata", "dsm"),
        ({"chm": HEIGHTS, "dsm": HEIGHTS}, "invalid_argument", "chm"),
        ({"chm": np.zeros((8, 8, 3), np.uint8)}, "invalid_argument", "chm"),
    ],
)  # fmt: skip
def test_heights_must_be_given(given, kind: str, argument: str) -> None:
    found = fault(**given)
    assert (found.kind, found.argument) == (kind, argument)


@pytest.mark.parametrize(
    ("given_m", "known", "in_file", "chosen", "differs"),
    [
        (None, None, None, None, False), (None, None, 0.1, 0.1, False), (None, 0.2, 0.1, 0.2, False),
        (0.3, None, None, 0.3, False), (0.3, 0.2, 0.1, 0.3, True), (0.3, None, 0.2, 0.3, True),
        (0.2039, 0.2, None, 0.2039, False), (0.2041, 0.2, None, 0.2041, True),
    ],
)  # fmt: skip
def test_the_first_that_is_known_is_used_and_a_difference_flagged(
    given_m, known, in_file, chosen, differs
):
    scale = choose_scale(given_m, known, in_file)
    assert scale.gsd_m == chosen
    assert scale.flags == (("gsd_differs_from_file",) if differs else ())
    assert all(
        f"{value:g}" in scale.notes[0] for value in (given_m, known or in_file) if value and differs
    )
