"""Measurements per zone, against plain code on small rasters made here."""

import csv
import json
import math
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rasterio.transform import from_origin
from rasterio.warp import transform

import agrotools as at
from agrotools.tools import zone_shapes
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
    places = (-20, 10, 40, 20), (40, 10, 80, 20), (70, 40, 20, 20), (300, 0, 9, 9)
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
        f"x={X},y={Y},rows=1,columns=1,width=1,length=1,rotation=nan",
        f"x={X},y={Y},rows=1,columns=1,width=1,length=1,gap=inf",
    ):
        assert tool_error(at.measure_zones, path, grid).kind == "invalid_argument"
    assert (
        tool_error(at.measure_zones, path, zones(tmp_path / "a.gpkg", (999, 0, 1, 1))).kind
        == "nothing_found"
    )


IN_METRES = {"crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32633"}}}


def geojson(path: Path, *plots: tuple[Any, float], **more: Any) -> Path:
    """Write squares of 3 m by name and distance from the left edge, in the system of the raster."""
    features = [
        {
            "type": "Feature",
            "properties": {"plot": name},
            "geometry": json.loads(shapely.to_geojson(shapely.box(X + x, Y - 3, X + x + 3, Y))),
        }
        for name, x in plots
    ]
    document = {"type": "FeatureCollection", "features": features, **more}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.fixture
def requested() -> Iterator[tuple[str, list[str]]]:
    """Address of a server, and the paths that were asked of it."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_error(404)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", paths
    server.shutdown()
    server.server_close()


@pytest.mark.process
@pytest.mark.parametrize("name", ["x.geojson", "x.gpkg", "x.shp"])
def test_a_file_of_zones_opens_no_other_file_and_no_address(
    tmp_path: Path, requested: tuple[str, list[str]], name: str
) -> None:
    address, paths = requested
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    other = geojson(tmp_path / "other.geojson", ("secret", 0), **IN_METRES)
    source = "<SrcDataSource>{}</SrcDataSource>"
    layer = f"<OGRVRTDataSource><OGRVRTLayer name='other'>{source}</OGRVRTLayer></OGRVRTDataSource>"
    for text in (
        layer.format(other),
        layer.format(f"/vsicurl/{address}/a.geojson"),
        f"<OGRWFSDataSource><URL>{address}/wfs?SERVICE=WFS</URL></OGRWFSDataSource>",
        json.dumps({"type": "gdal_streamed_alg", "command_line": f"gdal vector read {other}"}),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert tool_error(at.measure_zones, path, tmp_path / name).kind == "unreadable_file"
    named = geojson(tmp_path / "n.geojson", ("a", 0), crs=f"{address}/crs.wkt")
    assert tool_error(at.measure_zones, path, named).kind == "invalid_argument"
    assert paths == []


def test_geojson_in_metres_that_names_no_system_has_that_of_the_raster(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    (known,) = at.measure_zones(path, geojson(tmp_path / "a.geojson", ("a", 0), **IN_METRES)).rows
    (row,) = at.measure_zones(path, geojson(tmp_path / "b.geojson", ("a", 0))).rows
    assert row == {**known, "flags": "crs_assumed"}


def test_zones_of_an_unknown_system_are_refused(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::999999"}}
    error = tool_error(at.measure_zones, path, geojson(tmp_path / "a.geojson", ("a", 0), crs=crs))
    assert error.kind == "invalid_argument"


@pytest.mark.parametrize(
    "text", ["{", "{}", '{"type": "Topology"}', '{"type": "Polygon"}', "[" * 9]
)
def test_damaged_geojson_is_refused(tmp_path: Path, text: str) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    (tmp_path / "a.geojson").write_text(text, encoding="utf-8")
    error = tool_error(at.measure_zones, path, tmp_path / "a.geojson")
    assert error.kind in ("unreadable_file", "invalid_argument")


def test_equal_names_give_numbers_with_a_flag(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    plots = geojson(tmp_path / "a.geojson", ("A", 0), ("A", 5), **IN_METRES)
    rows = at.measure_zones(path, plots).rows
    assert [(row["zone"], row["flags"]) for row in rows] == [
        ("1", "zones_numbered"),
        ("2", "zones_numbered"),
    ]


def test_zones_on_top_of_each_other_are_flagged_and_neighbours_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    plots = geojson(tmp_path / "a.geojson", ("A", 0), ("B", 1), ("C", 4), ("D", 6.99), **IN_METRES)
    flags = [row["flags"] for row in at.measure_zones(path, plots).rows]
    assert flags == ["overlaps_zone", "overlaps_zone", "", ""]
    monkeypatch.setattr(zone_shapes, "_MOST_PAIRS", 1)
    assert at.measure_zones(path, plots).rows[2]["flags"] == "overlaps_not_checked"


def test_too_many_zones_are_refused_and_progress_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    plots = geojson(tmp_path / "a.geojson", ("A", 0), ("B", 3), ("C", 6), **IN_METRES)
    lines: list[str] = []
    monkeypatch.setattr("agrotools.tools.zones._PROGRESS_ZONES", 2)
    at.measure_zones(path, plots, progress=lines.append)
    assert lines == ["chm.tif: 2 of 3 zones"]
    monkeypatch.setattr(zone_shapes, "MOST_ZONES", 2)
    for path_of_zones in (plots, zones(tmp_path / "a.gpkg", *[(0, 0, 9, 9)] * 3)):
        assert tool_error(at.measure_zones, path, path_of_zones).kind == "limit"


def test_names_that_a_spreadsheet_would_compute_are_text_in_the_csv(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    names = ['=HYPERLINK("http://x")', "@SUM(A1)", "+A1", "-2", "B"]
    plots = [(name, 2.4 * place) for place, name in enumerate(names)]
    table = at.measure_zones(
        path, geojson(tmp_path / "a.geojson", *plots, **IN_METRES), out=tmp_path / "out"
    )
    assert [row["zone"] for row in table.rows] == names
    with (tmp_path / "out" / "zones.csv").open(encoding="utf-8", newline="") as file:
        cells = [row["zone"] for row in csv.DictReader(file)]
    assert cells == [f"'{names[0]}", "'@SUM(A1)", "'+A1", "-2", "B"]


def test_doubt_of_the_tool_on_a_photograph_reaches_the_table(tmp_path: Path) -> None:
    grey = np.repeat(np.arange(SIDE, dtype=np.uint8)[None, None] * 2, SIDE, axis=1)
    path = raster(tmp_path / "odd.tif", np.repeat(grey, 3, axis=0) | 1, photometric="RGB")
    of_tool = {"vegetation_uncertain", "out_of_distribution"} & {
        *measure_crop_weed_area(path).flags
    }
    (row,) = at.measure_zones(path, zones(tmp_path / "a.gpkg", (0, 0, 50, 50))).rows
    assert of_tool
    assert of_tool <= {*str(row["flags"]).split()}
