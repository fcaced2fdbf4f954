"""Measurements per zone, against plain code on small rasters made here."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rasterio.transform import from_origin
from rasterio.warp import transform

import agrotools as at
from agrotools.tools.canopy_height import estimate_canopy_height
from agrotools.tools.crop_weed.tool import measure_crop_weed_area
from support.picture_files import write_raster
from support.tool_errors import tool_error

pytest.importorskip("exactextract", reason="needs the extra zones")
pyogrio = pytest.importorskip("pyogrio", reason="needs the extra zones")
shapely = pytest.importorskip("shapely", reason="needs the extra zones")

X, Y, GSD, SIDE = 500_000.0, 5_000_000.0, 0.1, 120
HEIGHTS = (np.random.default_rng(1).random((1, SIDE, SIDE)) * 8).astype(np.float32)


def raster(path: Path, values: np.ndarray, **profile: Any) -> Path:
    return write_raster(
        path, values, crs="EPSG:32633", transform=from_origin(X, Y, GSD, GSD), **profile
    )


def field(cover: float = 0.4) -> np.ndarray:
    draw = np.random.default_rng(0)
    plants = np.kron(draw.random((SIDE // 8, SIDE // 8)) < cover, np.ones((8, 8), bool))
    means = np.where(
        plants, np.array([60, 120, 40])[:, None, None], np.array([140, 110, 80])[:, None, None]
    )
    return np.clip(means + draw.normal(0, 4, means.shape), 1, 255).astype(np.uint8)


def zones(path: Path, *boxes: tuple[float, float, float, float], crs: str = "EPSG:32633") -> Path:
    """File of rectangles: left, top, width and height in pixels of the raster."""
    shapes = [
        shapely.box(X + GSD * x, Y - GSD * (y + h), X + GSD * (x + w), Y - GSD * y)
        for x, y, w, h in boxes
    ]
    placed = shapely.transform(
        shapes, lambda points: np.transpose(transform("EPSG:32633", crs, *points.T))
    )
    names = [np.array([f"P{number}" for number in range(len(boxes))], object)]
    pyogrio.raw.write(
        path, shapely.to_wkb(placed), names, ["plot"], crs=crs, geometry_type="Polygon"
    )
    return path


def test_turned_plots_of_a_grid_weigh_pixels_by_their_share(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    grid = f"x={X + 2},y={Y - 2},rows=1,columns=2,width=1.55,length=2.05,rotation=-20,gap=0.3"
    x, y = np.meshgrid(np.arange(SIDE), np.arange(SIDE))
    for row, left in zip(at.measure_zones(path, grid, values=["1"]).rows, (0, 1.85), strict=True):
        plain = shapely.affinity.rotate(shapely.box(left, 0, left + 1.55, 2.05), 20, origin=(0, 0))
        plot = shapely.transform(plain, lambda points: (points + 2) / GSD)
        weights = shapely.area(shapely.intersection(plot, shapely.box(x, y, x + 1, y + 1)))
        assert row["band_1_mean"] == pytest.approx(
            np.average(HEIGHTS[0], weights=weights), rel=1e-6
        )
        assert row["area_m2"] == pytest.approx(1.55 * 2.05)


def test_heights_of_whole_pixels_are_those_of_the_tool(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    (row,) = at.measure_zones(path, zones(tmp_path / "a.gpkg", (10, 20, 50, 30))).rows
    tool = estimate_canopy_height(chm=path, region=(10, 20, 60, 50))
    for name in ("mean_m", "median_m", "p95_m", "max_m", "sd_m", "cover_pct"):
        assert row[name] == pytest.approx(getattr(tool, name), rel=1e-5), name


@pytest.mark.parametrize(
    ("name", "crs"), [("a.geojson", "OGC:CRS84"), ("a.shp", "EPSG:25833"), ("a.gpkg", "EPSG:3857")]
)
def test_cover_is_that_of_the_tool_and_zones_may_have_another_system(
    tmp_path: Path, name: str, crs: str
) -> None:
    path = raster(tmp_path / "rgb.tif", field(), photometric="RGB")
    (row,) = at.measure_zones(path, zones(tmp_path / name, (0, 0, SIDE, SIDE), crs=crs)).rows
    assert row["zone"] == "P0"
    assert row["veg_pct"] == pytest.approx(measure_crop_weed_area(path).veg_pct, rel=1e-4)


def test_cover_that_the_tool_refuses_to_tell_is_left_out(tmp_path: Path) -> None:
    path = raster(tmp_path / "shade.tif", np.maximum(field(cover=0) // 6, 1), photometric="RGB")
    assert "deep shade" in tool_error(measure_crop_weed_area, path).message
    (row,) = at.measure_zones(path, zones(tmp_path / "a.gpkg", (0, 0, 50, 50))).rows
    assert row["veg_pct"] is None
    assert "low_confidence" in str(row["flags"])


def test_zones_at_the_edge_and_without_data_say_so(tmp_path: Path) -> None:
    values = np.where(np.arange(SIDE) < 60, HEIGHTS, np.float32(-9999))
    places = (-20, 10, 40, 20), (40, 10, 80, 20), (70, 10, 20, 20), (300, 0, 9, 9)
    path = raster(tmp_path / "chm.tif", values, nodata=-9999)
    rows = at.measure_zones(path, zones(tmp_path / "a.gpkg", *places)).rows
    assert [row["flags"] for row in rows] == [
        "partly_outside",
        "mostly_no_data",
        "no_data",
        "outside",
    ]
    assert [row["valid_pct"] for row in rows] == pytest.approx([50, 25, 0, 0])
    assert rows[0]["mean_m"] == pytest.approx(values[0, 10:30, :20].mean())
    assert rows[2]["mean_m"] is rows[3]["mean_m"] is None


def test_pixels_hidden_by_alpha_do_not_count(tmp_path: Path) -> None:
    alpha = np.where(np.arange(SIDE) < 30, np.uint8(255), np.uint8(0)) * np.ones(
        (1, SIDE, SIDE), np.uint8
    )
    path = raster(
        tmp_path / "rgba.tif", np.concatenate([field(), alpha]), photometric="RGB", alpha="YES"
    )
    (row,) = at.measure_zones(
        path, zones(tmp_path / "a.gpkg", (0, 0, 60, 60)), values=["cover", "1"]
    ).rows
    assert row["valid_pct"] == pytest.approx(50)
    assert row["band_1_mean"] == pytest.approx(field()[0, :60, :30].mean())


def test_two_dates_give_a_row_each_in_order_a_map_and_a_chart(tmp_path: Path) -> None:
    late = raster(tmp_path / "f_20260720.tif", field(cover=0.7), photometric="RGB")
    early = raster(tmp_path / "f_2026-06-01.tif", field(cover=0.2), photometric="RGB")
    table = at.measure_zones(
        [late, early], f"x={X},y={Y},rows=2,columns=2,width=5,length=5", out=tmp_path / "out"
    )
    assert [row["date"] for row in table.rows] == ["2026-06-01"] * 4 + ["2026-07-20"] * 4
    assert all(
        a["veg_pct"] < b["veg_pct"] for a, b in zip(table.rows[:4], table.rows[4:], strict=True)
    )
    assert {path.name for path in table.files} == {"zones.csv", "zones_map.png", "zones_chart.png"}


def test_grids_that_are_none_and_zones_elsewhere_are_refused(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    for grid in (
        "x=1,y=2",
        "x=1,y=2,rows=1.5,columns=1,width=1,length=1",
        f"x=1,y={math.nan},rows=1",
    ):
        assert tool_error(at.measure_zones, path, grid).kind == "invalid_argument"
    assert (
        tool_error(at.measure_zones, path, zones(tmp_path / "a.gpkg", (999, 0, 1, 1))).kind
        == "nothing_found"
    )
