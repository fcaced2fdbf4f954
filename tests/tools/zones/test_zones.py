"""Measurements per zone, against plain code on small rasters made here."""

import csv
import json
import math
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import rasterio
from rasterio.transform import from_origin
from rasterio.warp import transform

from agrotools.core import ToolError, UndecidedError
from agrotools.core.readings import Readings
from agrotools.vision.rasters import RasterSource, open_raster
from agrotools_tools import measure_zones
from agrotools_tools.canopy_height import estimate_canopy_height
from agrotools_tools.change.tool import detect_change
from agrotools_tools.crop_weed.tool import measure_crop_weed_area
from agrotools_tools.zones import shapes as shapes_of_zones
from agrotools_tools.zones.units import heights_of
from agrotools_tools.zones.values import BlockCache, _WeightedOrder
from support.command import run_command
from support.picture_files import write_raster
from support.tool_errors import tool_error

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
    for row, left in zip(measure_zones(path, grid, values=["1"]).rows, (0, 1.85), strict=True):
        plain = shapely.affinity.rotate(shapely.box(left, 0, left + 1.55, 2.05), 20, origin=(0, 0))
        plot = shapely.transform(plain, lambda points: (points + 2) / GSD)
        weights = shapely.area(shapely.intersection(plot, shapely.box(x, y, x + 1, y + 1)))
        assert row["band_1_mean"] == pytest.approx(
            np.average(HEIGHTS[0], weights=weights), rel=1e-6
        )
        assert row["area_m2"] == pytest.approx(1.55 * 2.05)


def test_heights_of_whole_pixels_are_those_of_the_tool(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    (row,) = measure_zones(path, zones(tmp_path / "a.gpkg", (10, 20, 50, 30))).rows
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
    table = measure_zones(path, zones(tmp_path / name, (0, 0, SIDE, SIDE), crs=crs))
    (row,) = table.rows
    assert row["zone"] == "P0"
    assert row["veg_pct"] == pytest.approx(measure_crop_weed_area(path).veg_pct, rel=1e-4)
    # The threshold alone, which is printed, does not give this cover.
    assert any("smoothed before the threshold" in note for note in table.notes)


def test_cover_that_the_tool_refuses_to_tell_is_left_out(tmp_path: Path) -> None:
    path = raster(tmp_path / "shade.tif", np.maximum(field(cover=0) // 6, 1), photometric="RGB")
    assert "deep shade" in tool_error(measure_crop_weed_area, path).message
    (row,) = measure_zones(path, zones(tmp_path / "a.gpkg", (0, 0, 50, 50))).rows
    assert row["veg_pct"] is None
    assert "low_confidence" in str(row["flags"])


def test_zones_at_the_edge_and_without_data_say_so(tmp_path: Path) -> None:
    values = np.where(np.arange(SIDE) < 60, HEIGHTS, np.float32(-9999))
    places = (-20, 10, 40, 20), (40, 10, 80, 20), (70, 40, 20, 20), (300, 0, 9, 9)
    path = raster(tmp_path / "chm.tif", values, nodata=-9999)
    rows = measure_zones(path, zones(tmp_path / "a.gpkg", *places)).rows
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
    (row,) = measure_zones(
        path, zones(tmp_path / "a.gpkg", (0, 0, 60, 60)), values=["cover", "1"]
    ).rows
    assert row["valid_pct"] == pytest.approx(50)
    assert row["band_1_mean"] == pytest.approx(field()[0, :60, :30].mean())


def test_two_dates_give_a_row_each_in_order_a_map_and_a_chart(tmp_path: Path) -> None:
    late = raster(tmp_path / "f_20260720.tif", field(cover=0.7), photometric="RGB")
    early = raster(tmp_path / "f_2026-06-01.tif", field(cover=0.2), photometric="RGB")
    table = measure_zones(
        [late, early], f"x={X},y={Y},rows=2,columns=2,width=5,length=5", out=tmp_path / "out"
    )
    assert [row["date"] for row in table.rows] == ["2026-06-01"] * 4 + ["2026-07-20"] * 4
    assert all(
        a["veg_pct"] < b["veg_pct"] for a, b in zip(table.rows[:4], table.rows[4:], strict=True)
    )
    names = {"zones.csv", "zones.geojson", "zones_map.png", "zones_chart.png"}
    assert {path.name for path in table.files} == names


def test_grids_that_are_none_and_zones_elsewhere_are_refused(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    for grid in (
        "x=1,y=2",
        "x=1,y=2,rows=1.5,columns=1,width=1,length=1",
        f"x=1,y={math.nan},rows=1",
        f"x={X},y={Y},rows=1,columns=1,width=1,length=1,rotation=nan",
        f"x={X},y={Y},rows=1,columns=1,width=1,length=1,gap=inf",
    ):
        assert tool_error(measure_zones, path, grid).kind == "invalid_argument"
    assert (
        tool_error(measure_zones, path, zones(tmp_path / "a.gpkg", (999, 0, 1, 1))).kind
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
        assert tool_error(measure_zones, path, tmp_path / name).kind == "unreadable_file"
    named = geojson(tmp_path / "n.geojson", ("a", 0), crs=f"{address}/crs.wkt")
    assert tool_error(measure_zones, path, named).kind == "invalid_argument"
    assert paths == []


def test_geojson_in_metres_that_names_no_system_has_that_of_the_raster(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    (known,) = measure_zones(path, geojson(tmp_path / "a.geojson", ("a", 0), **IN_METRES)).rows
    (row,) = measure_zones(path, geojson(tmp_path / "b.geojson", ("a", 0))).rows
    assert row == {**known, "flags": "crs_assumed"}


def test_zones_of_an_unknown_system_are_refused(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::999999"}}
    error = tool_error(measure_zones, path, geojson(tmp_path / "a.geojson", ("a", 0), crs=crs))
    assert error.kind == "invalid_argument"


@pytest.mark.parametrize(
    "text", ["{", "{}", '{"type": "Topology"}', '{"type": "Polygon"}', "[" * 9]
)
def test_damaged_geojson_is_refused(tmp_path: Path, text: str) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    (tmp_path / "a.geojson").write_text(text, encoding="utf-8")
    error = tool_error(measure_zones, path, tmp_path / "a.geojson")
    assert error.kind in ("unreadable_file", "invalid_argument")


def test_equal_numbers_of_plots_that_nothing_tells_apart_are_refused(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    plots = geojson(tmp_path / "a.geojson", ("A", 0), ("A", 5), **IN_METRES)
    error = tool_error(measure_zones, path, plots)
    assert error.kind == "invalid_argument"
    assert "plot" in error.message
    rows = measure_zones(path, plots, id_field="row-number").rows
    assert [(row["zone"], row["flags"]) for row in rows] == [
        ("feature 1", "zones_numbered"),
        ("feature 2", "zones_numbered"),
    ]


def test_zones_on_top_of_each_other_are_flagged_and_neighbours_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    plots = geojson(tmp_path / "a.geojson", ("A", 0), ("B", 1), ("C", 4), ("D", 6.99), **IN_METRES)
    flags = [row["flags"] for row in measure_zones(path, plots).rows]
    assert flags == ["overlaps_zone", "overlaps_zone", "", ""]
    monkeypatch.setattr(shapes_of_zones, "_MOST_PAIRS", 1)
    assert measure_zones(path, plots).rows[2]["flags"] == "overlaps_not_checked"


def test_too_many_zones_are_refused_and_progress_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    plots = geojson(tmp_path / "a.geojson", ("A", 0), ("B", 3), ("C", 6), **IN_METRES)
    lines: list[str] = []
    monkeypatch.setattr("agrotools_tools.zones.measure._PROGRESS_ZONES", 2)
    measure_zones(path, plots, progress=lines.append)
    assert lines == ["chm.tif: 2 of 3 zones"]
    monkeypatch.setattr(shapes_of_zones, "MOST_ZONES", 2)
    for path_of_zones in (plots, zones(tmp_path / "a.gpkg", *[(0, 0, 9, 9)] * 3)):
        assert tool_error(measure_zones, path, path_of_zones).kind == "limit"


def test_names_that_a_spreadsheet_would_compute_are_text_in_the_csv(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    names = ['=HYPERLINK("http://x")', "@SUM(A1)", "+A1", "-2", "B"]
    plots = [(name, 2.4 * place) for place, name in enumerate(names)]
    table = measure_zones(
        path, geojson(tmp_path / "a.geojson", *plots, **IN_METRES), out=tmp_path / "out"
    )
    assert [row["zone"] for row in table.rows] == names
    with (tmp_path / "out" / "zones.csv").open(encoding="utf-8", newline="") as file:
        cells = [row["zone"] for row in csv.DictReader(file)]
    assert cells == [f"'{names[0]}", "'@SUM(A1)", "'+A1", "-2", "B"]


def test_doubt_of_the_tool_on_a_photograph_reaches_the_table(tmp_path: Path) -> None:
    grey = np.repeat(np.arange(SIDE, dtype=np.uint8)[None, None] * 2, SIDE, axis=1)
    path = raster(tmp_path / "odd.tif", np.repeat(grey, 3, axis=0) | 1, photometric="RGB")
    of_tool = {"vegetation_uncertain", "false_colour_suspected"} & {
        *measure_crop_weed_area(path).flags
    }
    (row,) = measure_zones(path, zones(tmp_path / "a.gpkg", (0, 0, 50, 50))).rows
    assert of_tool
    assert of_tool <= {*str(row["flags"]).split()}


def fields_of(path: Path, *records: dict[str, Any]) -> Path:
    """Write squares of 3 m beside each other with these fields, in the system of the raster."""
    plots = [(None, 3.5 * place) for place in range(len(records))]
    document = json.loads(geojson(path, *plots, **IN_METRES).read_text(encoding="utf-8"))
    for feature, record in zip(document["features"], records, strict=True):
        feature["properties"] = record
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_figures_are_those_of_exactextract(tmp_path: Path) -> None:
    extract = pytest.importorskip("exactextract", reason="the figures are compared with it")
    values = np.where(np.random.default_rng(2).random(HEIGHTS.shape) < 0.1, -9999, HEIGHTS)
    path = raster(tmp_path / "chm.tif", values.astype(np.float32), nodata=-9999)
    ring = shapely.Point(X + 4, Y - 4).buffer(3).difference(shapely.Point(X + 4, Y - 4).buffer(1.3))
    two = shapely.union(ring, shapely.box(X + 8.03, Y - 11.07, X + 11.02, Y - 8.01))
    star = shapely.Polygon([(X + 7, Y - 1), (X + 9.3, Y - 5), (X + 13, Y - 2), (X + 9, Y - 2.7)])
    shapes = [two, star]
    file = tmp_path / "a.gpkg"
    names = [np.array(["two", "star"], object)]
    geometry = shapely.to_wkb(np.array([shapely.MultiPolygon(two.geoms), star], object))
    pyogrio.raw.write(file, geometry, names, ["plot"], crs="EPSG:32633", geometry_type="Unknown")
    rows = measure_zones(path, file).rows
    features = [
        {"type": "Feature", "properties": {}, "geometry": shape.__geo_interface__}
        for shape in shapes
    ]
    what = ["count", "mean", "stdev", "min", "max"]
    for row, found in zip(rows, extract.exact_extract(str(path), features, what), strict=True):
        of_band = [row["pixels"], *(row[f"band_1_{name}"] for name in ("mean", "sd", "min", "max"))]
        assert of_band == pytest.approx([found["properties"][name] for name in what], rel=1e-6)


def test_a_zone_read_in_strips_and_blocks_gives_the_figures_of_one_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS, tiled=True, blockxsize=16, blockysize=16)
    grid = f"x={X + 2},y={Y - 1},rows=2,columns=2,width=4.05,length=4.55,rotation=-9,gap=0.1"
    whole = measure_zones(path, grid).rows
    monkeypatch.setattr("agrotools_tools.zones.measure._READ_PX", 300)
    monkeypatch.setattr("agrotools_tools.zones.values._SIDE_PX", 32)
    monkeypatch.setattr("agrotools_tools.zones.values._BREAK_EVEN", 0.0)
    monkeypatch.setattr("agrotools_tools.zones.values._KEPT_VALUES", 32 * 32 * 3)
    monkeypatch.setattr("agrotools_tools.zones.values._AT_ONCE", 50)
    for row, of_whole in zip(measure_zones(path, grid).rows, whole, strict=True):
        numbers = [column for column, value in of_whole.items() if isinstance(value, float)]
        assert len(numbers) >= 12
        for column in numbers:
            assert row[column] == pytest.approx(of_whole[column], rel=1e-9), column


def test_percentiles_of_heights_weigh_pixels_at_the_edge_by_their_share() -> None:
    draw = np.random.default_rng(3)
    heights = np.round(draw.random(500) * 5, 1).astype(np.float32)  # many are equal
    weights = np.where(draw.random(500) < 0.2, draw.random(500), 1.0)
    order = np.argsort(heights)
    before = np.cumsum(weights[order]) - weights[order]
    ranks = before * (order.size - 1) + weights[order] * np.arange(order.size)
    found = _WeightedOrder(heights, weights)
    for share in (0, 0.05, 0.5, 0.95, 1):
        plain = np.interp(share * ranks[-1], ranks, heights[order])
        assert found.quantile(share) == pytest.approx(plain, abs=1e-3)
    assert found.share_from(2) == pytest.approx(weights[heights >= 2].sum() / weights.sum())
    alone = _WeightedOrder(heights[:1], weights[:1])
    assert alone.quantile(0.95) == heights[0]


def test_neighbouring_zones_read_a_block_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS, tiled=True, blockxsize=16, blockysize=16)
    monkeypatch.setattr("agrotools_tools.zones.values._SIDE_PX", 16)
    read: list[Any] = []
    computed = BlockCache._computed
    monkeypatch.setattr(
        BlockCache,
        "_computed",
        lambda self, box: read.append(box) or computed(self, box),
    )
    grid = f"x={X + 1},y={Y - 4},rows=3,columns=30,width=0.3,length=3.2,rotation=30,gap=0.05"
    measure_zones(path, grid, values=["1"])
    assert len(read) == len(set(read))
    assert {(x % 16, y % 16) for x, y, *_ in read} == {(0, 0)}


def test_a_grid_is_named_by_its_row_and_column(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    places = [(7, 1), (7, 2), (8, 2)]
    plots = fields_of(
        tmp_path / "a.geojson",
        *({"Row": row, "Range": column, "height": row + 0.5} for row, column in places),
    )
    readings = Readings()
    rows = measure_zones(path, plots, readings=readings).rows
    assert [row["zone"] for row in rows] == ["7-1", "7-2", "8-2"]
    assert any("Row and Range" in line for line in readings.taken)


def test_several_pairs_of_numbers_that_may_name_a_grid_are_a_question(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    plots = fields_of(
        tmp_path / "a.geojson",
        {"Row": 7, "Range": 1, "Rate": 60},
        {"Row": 7, "Range": 2, "Rate": 90},
        {"Row": 8, "Range": 2, "Rate": 60},
    )
    with pytest.raises(UndecidedError) as caught:
        measure_zones(path, plots)
    assert caught.value.answers == ("--id=Row,Range",)


def test_repeated_plots_are_named_with_their_block_and_all_fields_are_in_the_table(
    tmp_path: Path,
) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    plots = fields_of(
        tmp_path / "a.geojson",
        {"Block": "A", "PlotNo": 1, "date": "sown", "tags": ["x"]},
        {"Block": "A", "PlotNo": 2, "date": None, "tags": []},
        {"Block": "B", "PlotNo": 1, "date": "sown", "tags": []},
    )
    readings = Readings()
    rows = measure_zones(path, plots, readings=readings).rows
    assert [row["zone"] for row in rows] == ["A-1", "A-2", "B-1"]
    assert [(row["Block"], row["PlotNo"], row["field_date"], row["tags"]) for row in rows] == [
        ("A", 1, "sown", '["x"]'),
        ("A", 2, None, "[]"),
        ("B", 1, "sown", "[]"),
    ]
    assert any("Block and PlotNo" in line for line in readings.taken)


def test_two_fields_with_other_names_are_a_question(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    plots = fields_of(tmp_path / "a.geojson", {"plot": 7, "id": 41}, {"plot": 8, "id": 40})
    with pytest.raises(UndecidedError) as raised:
        measure_zones(path, plots)
    assert raised.value.answers == ("--id=plot",)
    rows = measure_zones(path, plots, id_field="id").rows
    assert [row["zone"] for row in rows] == ["41", "40"]
    counted = fields_of(tmp_path / "c.geojson", {"id": 1, "plot": 7}, {"id": 2, "plot": 8})
    assert [row["zone"] for row in measure_zones(path, counted).rows] == ["7", "8"]
    same = fields_of(tmp_path / "b.geojson", {"plot": "01", "id": 1}, {"plot": "02", "id": 2})
    assert [row["zone"] for row in measure_zones(path, same).rows] == ["01", "02"]


def test_layers_of_polygons_are_a_question_and_the_others_are_named(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    file = tmp_path / "a.gpkg"
    layers = {"boundary": [(0, 0, 100, 60)], "plots": [(0, 0, 30, 30), (40, 0, 30, 30)]}
    for layer, boxes in layers.items():
        shapes = [shapely.box(X + x / 10, Y - 6, X + (x + w) / 10, Y) for x, _, w, _ in boxes]
        pyogrio.raw.write(
            file,
            shapely.to_wkb(shapes),
            [np.arange(len(shapes))],
            ["plot"],
            layer=layer,
            crs="EPSG:32633",
            geometry_type="Polygon",
            append=file.exists(),
        )
    with pytest.raises(UndecidedError) as raised:
        measure_zones(path, file)
    assert raised.value.answers == ("--layer=plots",)
    assert "boundary (1 polygon, 60 m²)" in raised.value.message
    readings = Readings()
    (row,) = measure_zones(path, file, layer="boundary", readings=readings).rows
    assert row["area_m2"] == pytest.approx(60)
    assert readings.left == ["layer plots of a.gpkg (2 polygons)"]
    assert tool_error(measure_zones, path, file, layer="trees").kind == "invalid_argument"


def layer_of(
    file: Path, layer: str, lefts: list[float], crs: str = "EPSG:32633", **fields: list[Any]
) -> Path:
    """Write squares of 2 m as a layer of a GeoPackage."""
    shapes = [shapely.box(X + left, Y - 2, X + left + 2, Y) for left in lefts]
    pyogrio.raw.write(
        file,
        shapely.to_wkb(shapes),
        [np.array(values) for values in fields.values()],
        [*fields],
        layer=layer,
        crs=crs,
        geometry_type="Polygon",
        append=file.exists(),
    )
    return file


@pytest.mark.parametrize("answer", ["all", ["Block B", "Block A"]])
def test_several_layers_are_measured_together_with_their_layer_in_a_column(
    tmp_path: Path, answer: Any
) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    file = layer_of(tmp_path / "a.gpkg", "Block A", [0, 3, 6], plot=[1, 2, 3])
    layer_of(file, "Block B", [9], plot=[1], sown=["May"])
    with pytest.raises(UndecidedError) as raised:
        measure_zones(path, file)
    assert "all (4 polygons" in raised.value.message
    readings = Readings()
    rows = measure_zones(path, file, layer=answer, readings=readings).rows
    found = {row["zone"]: (row["layer"], row["plot"], row["sown"]) for row in rows}
    assert found == {
        "Block A-1": ("Block A", 1, None),
        "Block A-2": ("Block A", 2, None),
        "Block A-3": ("Block A", 3, None),
        "Block B-1": ("Block B", 1, "May"),
    }
    assert not readings.left
    # Who takes one layer is told what is left, and how much.
    measure_zones(path, file, readings=(taken := Readings(accept=True)))
    assert taken.left == ["layer Block B of a.gpkg (1 polygon)"]


def test_files_of_an_earlier_run_are_kept_beside(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    file = layer_of(tmp_path / "a.gpkg", "plots", [0, 3], plot=[1, 2])
    out = tmp_path / "out"
    measure_zones(path, file, out=out)
    first = (out / "zones.csv").read_bytes()
    assert measure_zones(path, file, out=out).files  # the same again
    assert not [*out.glob("*_before_*")]
    done = measure_zones(path, file, values=["height"], out=out)
    assert (out / "zones.csv").read_bytes() != first
    assert (out / "zones_before_1.csv").read_bytes() == first
    assert any("zones_before_1.csv" in note for note in done.notes)
    measure_zones(path, file, out=out)
    assert (out / "zones.csv").read_bytes() == first
    assert (out / "zones_before_2.csv").exists()


def test_a_field_called_layer_stays_beside_that_of_the_layers(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    file = layer_of(tmp_path / "a.gpkg", "2025", [0, 6], plot=[1, 2], Layer=["x", "y"])
    layer_of(file, "2026", [3], plot=[1], Layer=["x"])
    rows = measure_zones(path, file, layer="all").rows
    assert [(row["zone"], row["Layer"], row["layer_of_file"]) for row in rows] == [
        ("2025-1", "x", "2025"),
        ("2025-2", "y", "2025"),
        ("2026-1", "x", "2026"),
    ]


def test_layers_of_different_systems_are_not_joined(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    file = layer_of(tmp_path / "a.gpkg", "a", [0], plot=[1])
    layer_of(file, "b", [3], "EPSG:32632", plot=[2])
    with pytest.raises(UndecidedError) as raised:
        measure_zones(path, file)
    assert "all (" not in raised.value.message
    assert tool_error(measure_zones, path, file, layer="all").kind == "invalid_argument"


KML = """<?xml version="1.0" encoding="UTF-8"?>
<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{}</Document></kml>"""
PLACEMARK = (
    "<Placemark><name>{}</name><ExtendedData><Data name='variety'><value>Ibis</value></Data></ExtendedData>"
    "<Polygon><outerBoundaryIs><LinearRing><coordinates>{}</coordinates></LinearRing></outerBoundaryIs></Polygon>"
    "</Placemark>"
)


def kml(path: Path, folders: dict[str, list[tuple[str, float]]]) -> Path:
    """Write folders of squares of 3 m by name and distance from the left edge of the raster."""
    text = ""
    for folder, plots in folders.items():
        text += f"<Folder><name>{folder}</name>"
        for name, x in plots:
            box = shapely.get_coordinates(shapely.box(X + x, Y - 3, X + x + 3, Y))
            degrees = np.transpose(transform("EPSG:32633", "OGC:CRS84", *box.T))
            corners = " ".join(f"{x:.9f},{y:.9f},0" for x, y in degrees)
            text += PLACEMARK.format(name, corners)
        point = "<Point><coordinates>9,45</coordinates></Point>"
        text += f"<Placemark><name>gate</name>{point}</Placemark></Folder>"
    path.write_text(KML.format(text), encoding="utf-8")
    return path


def test_kml_is_read_from_all_folders(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    readings = Readings()
    file = kml(tmp_path / "a.kml", {"block 1": [("A1", 0)], "block 2": [("A2", 5)]})
    rows = measure_zones(path, file, readings=readings).rows
    assert [(row["zone"], row["folder"], row["variety"]) for row in rows] == [
        ("A1", "block 1", "Ibis"),
        ("A2", "block 2", "Ibis"),
    ]
    assert rows[1]["area_m2"] == pytest.approx(9, rel=1e-3)
    assert readings.left == ["2 placemarks of a.kml without a polygon"]
    (row,) = measure_zones(path, file, layer="block 2").rows
    assert row["zone"] == "A2"
    for both in ("all", ["block 1", "block 2"]):
        assert len(measure_zones(path, file, layer=both).rows) == 2
    equal = kml(tmp_path / "b.kml", {"A": [("1", 0), ("2", 4)], "B": [("1", 8)]})
    assert [row["zone"] for row in measure_zones(path, equal).rows] == ["A-1", "A-2", "B-1"]


@pytest.mark.parametrize(
    "text", ["<kml>", "<!DOCTYPE kml [<!ENTITY a 'b'>]><kml></kml>", KML.format("")]
)
def test_damaged_kml_is_refused(tmp_path: Path, text: str) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    (tmp_path / "a.kml").write_text(text, encoding="utf-8")
    error = tool_error(measure_zones, path, tmp_path / "a.kml")
    assert error.kind in ("unreadable_file", "invalid_argument")


def test_rasters_of_one_name_are_told_apart_and_dated_by_their_folders(tmp_path: Path) -> None:
    paths = [tmp_path / year / "odm" / "ortho.tif" for year in ("2024", "2023")]
    for path in paths:
        path.parent.mkdir(parents=True)
        raster(path, HEIGHTS)
    grid = f"x={X},y={Y},rows=1,columns=1,width=3,length=3"
    readings = Readings()
    rows = measure_zones([*paths, paths[0]], grid, values=["1"], readings=readings).rows
    assert [(row["raster"], row["date"]) for row in rows] == [
        ("2023/odm/ortho.tif", "2023"),
        ("2024/odm/ortho.tif", "2024"),
    ]
    assert len(readings.left) == 1


def test_pixels_with_data_do_not_depend_on_the_order_of_values(tmp_path: Path) -> None:
    bands = np.repeat(HEIGHTS + 1, 2, axis=0)
    bands[1, :, 15:] = -9999
    path = raster(tmp_path / "n.tif", bands, nodata=-9999)
    plots = zones(tmp_path / "a.gpkg", (0, 0, 30, 30))
    for values in (["1", "2"], ["2", "1"]):
        (row,) = measure_zones(path, plots, values=values).rows
        assert row["valid_pct"] == row["band_2_valid_pct"] == pytest.approx(50)
        assert row["band_1_valid_pct"] == pytest.approx(100)
        assert row["band_1_mean"] == pytest.approx(bands[0, :30, :30].mean())


def test_an_index_beyond_its_limits_is_flagged_and_an_offset_can_be_stated(tmp_path: Path) -> None:
    numbers = np.full((2, SIDE, SIDE), 1000, np.int16)
    numbers[0] += 350
    numbers[1] += np.where(np.arange(SIDE) < 60, 3000, -300).astype(np.int16)
    path = raster(tmp_path / "n.tif", numbers, names=("red", "nir"))
    plots = zones(tmp_path / "a.gpkg", (0, 0, 30, 30), (70, 0, 30, 30))
    known, odd = measure_zones(path, plots, values=["ndvi"], offset=-1000).rows
    assert known["ndvi_mean"] == pytest.approx(2650 / 3350)
    # A quarter of the numbers lies below the offset.
    assert known["flags"] == "offset_doubtful"
    assert odd["flags"] == "out_of_range offset_doubtful"
    with rasterio.open(path, "r+") as file:
        file.scales, file.offsets = (1e-4, 1e-4), (-0.1, -0.1)
    readings = Readings()
    (row, _) = measure_zones(path, plots, values=["ndvi"], readings=readings).rows
    assert row["ndvi_mean"] == pytest.approx(2650 / 3350)
    assert any("-0.1" in line for line in readings.taken)
    error = tool_error(measure_zones, path, plots, values=["ndvi"], offset=-1000)
    assert error.argument == "scale"
    for wrong in ({"scale": 0.0}, {"offset": math.nan}):
        assert tool_error(measure_zones, path, plots, **wrong).kind == "invalid_argument"


def test_an_outline_that_crosses_itself_is_flagged_with_its_area(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    plots = geojson(tmp_path / "a.geojson", ("A", 0), ("B", 5), **IN_METRES)
    document = json.loads(plots.read_text(encoding="utf-8"))
    ring = document["features"][0]["geometry"]["coordinates"][0]
    ring[1], ring[2] = ring[2], ring[1]
    plots.write_text(json.dumps(document), encoding="utf-8")
    table = measure_zones(path, plots)
    assert [row["flags"] for row in table.rows] == ["outline_repaired", ""]
    assert table.rows[0]["area_m2"] == pytest.approx(4.5)
    assert any("zone A" in note and "4.5 m²" in note for note in table.notes)


@pytest.mark.parametrize("crs", ["EPSG:32633", "EPSG:4326", 'LOCAL_CS["site",UNIT["metre",1]]'])
@pytest.mark.parametrize("of_zones", ["EPSG::4326", "EPSG::3031", "OGC::CRS84", None])
@pytest.mark.parametrize("corner", [(1e20, 1e20), (-200.0, 95.0), (0.0, 0.0), (5e5, 5e6)])
def test_corners_that_do_not_fit_their_system_are_no_bug(
    tmp_path: Path, crs: str, of_zones: str | None, corner: tuple[float, float]
) -> None:
    path = write_raster(tmp_path / "a.tif", HEIGHTS, crs=crs, transform=from_origin(X, Y, GSD, GSD))
    more = {"crs": {"properties": {"name": f"urn:ogc:def:crs:{of_zones}"}}} if of_zones else {}
    plots = geojson(tmp_path / "a.geojson", ("A", 0), **more)
    document = json.loads(plots.read_text(encoding="utf-8"))
    document["features"][0]["geometry"] = json.loads(
        shapely.to_geojson(shapely.box(*corner, corner[0] + 3, corner[1] + 3))
    )
    plots.write_text(json.dumps(document), encoding="utf-8")
    with suppress(ToolError):
        measure_zones(path, plots, values=["1"])


def test_zones_are_written_back_with_their_values_in_degrees(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    plots = zones(tmp_path / "a.gpkg", (0, 0, 30, 30), (40, 0, 30, 30))
    measure_zones(path, plots, values=["1"], out=tmp_path / "out")
    written = tmp_path / "out" / "zones.geojson"
    features = json.loads(written.read_text(encoding="utf-8"))["features"]
    (rows, again) = (measure_zones(path, file, values=["1"]).rows for file in (plots, written))
    assert [feature["properties"] for feature in features] == rows
    for row, same in zip(rows, again, strict=True):
        assert same["zone"] == row["zone"]
        assert same["band_1_mean"] == pytest.approx(row["band_1_mean"], rel=1e-4)


def test_the_map_shows_the_picture_between_the_zones(tmp_path: Path) -> None:
    path = raster(tmp_path / "rgb.tif", field(), photometric="RGB")
    measure_zones(
        path, zones(tmp_path / "a.gpkg", (20, 20, 30, 30), (70, 70, 30, 30)), out=tmp_path
    )
    picture = cv2.imread(str(tmp_path / "zones_map.png"))
    assert picture is not None
    # Half of the way between both zones, where no outline and no name is drawn.
    middle = picture[700:760, 740:800].reshape(-1, 3)
    soil = (80, 110, 140)  # blue, green, red
    assert middle.mean(axis=0) == pytest.approx(soil, abs=8)


def test_the_command_asks_in_one_error_and_yes_takes_what_was_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    raster(Path("chm.tif"), HEIGHTS)
    fields_of(Path("a.geojson"), {"plot": 7, "id": 41}, {"plot": 8, "id": 40})
    command = ["tools", "zones", "chm.tif", "--zones", "a.geojson", "--out", "out"]
    asked = run_command(*command)
    assert asked.returncode == 4
    assert "--id=plot" in asked.stderr
    assert not Path("out").exists()
    taken = run_command(*command, "--yes", "--json")
    assert taken.returncode == 0
    document = json.loads(taken.stdout)
    assert [row["zone"] for row in document["rows"]] == ["7", "8"]
    assert any("plot" in line for line in document["read"])


def test_fields_of_the_user_keep_their_digits(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    given = {"plot": 7, "lat": 51.123456789, "yield_kg": 7345.125, "seeds": 1234567.5}
    plots = fields_of(tmp_path / "a.geojson", given, {**given, "plot": 8})
    measure_zones(path, plots, out=tmp_path / "out")
    with (tmp_path / "out" / "zones.csv").open() as file:
        row = next(csv.DictReader(file))
    assert {name: float(row[name]) for name in given} == given


def test_an_index_in_the_name_of_a_raster_is_no_height(tmp_path: Path) -> None:
    path = raster(tmp_path / "ndvi_2024-06-01.tif", HEIGHTS / 40)
    plots = fields_of(tmp_path / "a.geojson", {"plot": 7})
    table = measure_zones(path, plots)
    assert "mean_m" not in table.rows[0]
    assert "band_1_mean" in table.rows[0]
    assert any("NDVI" in note for note in table.notes)


def test_a_day_that_no_calendar_has_is_no_date(tmp_path: Path) -> None:
    plots = fields_of(tmp_path / "a.geojson", {"plot": 7})
    for name, date in (("f_20240230.tif", ""), ("f_20240229.tif", "2024-02-29")):
        (row,) = measure_zones(raster(tmp_path / name, HEIGHTS), plots).rows
        assert row["date"] == date


def reflectances(offset: int = 1000, dtype: str = "uint16") -> np.ndarray:
    """Red and infrared of plants and soil, times 10,000, plus an offset."""
    is_plant = np.arange(SIDE) % 2 == 0
    red, infrared = np.where(is_plant, 300, 1500), np.where(is_plant, 4500, 2500)
    bands = np.stack([np.broadcast_to(band, (SIDE, SIDE)) for band in (red, infrared)])
    return (bands + offset).astype(dtype)


WITH_OFFSET = "S2A_MSIL2A_20230611T101559_N0509_R065_T32UQD.tif"
OLD = "S2A_MSIL2A_20190611T101559_N0212_R065_T32UQD.tif"
RED_AND_INFRARED = {"R": 1, "NIR": 2}
TRUE_NDVI = ((4500 - 300) / 4800 + (2500 - 1500) / 4000) / 2


def test_the_offset_of_sentinel_2_is_a_question_on_the_rasters_that_may_have_it(
    tmp_path: Path,
) -> None:
    plots = zones(tmp_path / "a.gpkg", (0, 0, 30, 30))
    new = raster(tmp_path / WITH_OFFSET, reflectances())
    old = raster(tmp_path / OLD, reflectances(offset=0))
    asked = {"values": ["ndvi"], "bands": RED_AND_INFRARED}
    with pytest.raises(UndecidedError) as caught:
        measure_zones([new, old], plots, **asked)
    assert caught.value.answers == ("--offset=-1000",)
    rows = measure_zones([new, old], plots, **asked, readings=Readings(accept=True)).rows
    assert [row["ndvi_mean"] for row in rows] == pytest.approx([TRUE_NDVI, TRUE_NDVI])
    assert [row["flags"] for row in rows] == ["", ""]
    (row,) = measure_zones(new, plots, **asked, offset=0).rows
    assert row["ndvi_mean"] < TRUE_NDVI - 0.1
    (row, _) = measure_zones([new, old], plots, **asked, offset=-1000).rows
    assert "offset_doubtful" in str(row["flags"])


@pytest.mark.parametrize("evidence", ["tag", "bands", "folder", "reflectances"])
def test_sentinel_2_is_told_by_tags_names_of_bands_and_folders(
    tmp_path: Path, evidence: str
) -> None:
    folder = tmp_path / ("S2B_MSIL2A_20240601.SAFE" if evidence == "folder" else "x")
    folder.mkdir()
    numbers = reflectances()
    if evidence == "reflectances":
        numbers = numbers.astype(np.float32) / 10_000
    names = ("B04", "B08") if evidence in ("bands", "reflectances") else ()
    path = raster(folder / "a.tif", numbers, names=names)
    if evidence == "tag":
        with rasterio.open(path, "r+") as file:
            file.update_tags(BOA_ADD_OFFSET_VALUES="-1000")
    plots = zones(tmp_path / "a.gpkg", (0, 0, 30, 30))
    readings = Readings(accept=True)
    (row,) = measure_zones(
        path, plots, values=["ndvi"], bands=RED_AND_INFRARED, readings=readings
    ).rows
    assert row["ndvi_mean"] == pytest.approx(TRUE_NDVI, rel=1e-4)


@pytest.mark.parametrize(
    ("numbers", "flag"),
    [
        (reflectances(), "offset_unknown"),
        (reflectances(offset=0), ""),
        (reflectances(offset=0) * np.array([1e-4, 1])[:, None, None], "unequal_scales"),
        (reflectances(offset=0) // np.array([6, 1])[:, None, None], "unequal_scales"),
        (reflectances(offset=0) * 1e-4, ""),
    ],
)
def test_numbers_of_which_an_index_may_be_wrong_are_flagged(
    tmp_path: Path, numbers: np.ndarray, flag: str
) -> None:
    kept = numbers.astype(np.float32) if numbers.dtype.kind == "f" else numbers.astype(np.uint16)
    path = raster(tmp_path / "n.tif", kept, names=("red", "nir"))
    plots = zones(tmp_path / "a.gpkg", (0, 0, 30, 30))
    table = measure_zones(path, plots, values=["ndvi"])
    assert table.rows[0]["flags"] == flag
    assert (len(table.notes) > 1) == bool(flag)  # beside the note on the bands


@pytest.mark.parametrize(
    ("bands", "flag"),
    [
        ({"red": 3, "nir": 2}, "bands_contradict"),
        ({"red": 4, "nir": 2}, "bands_contradict"),
        ({"red": 1, "nir": 2}, ""),
        (None, ""),
    ],
)
def test_a_role_that_the_file_gives_to_another_band_is_said(
    tmp_path: Path, bands: dict[str, int] | None, flag: str
) -> None:
    numbers = np.concatenate([reflectances(offset=0)] * 2)
    path = raster(tmp_path / "n.tif", numbers, names=("red", "nir", "blue", ""))
    plots = zones(tmp_path / "a.gpkg", (0, 0, 30, 30))
    table = measure_zones(path, plots, values=["ndvi"], bands=bands)
    assert table.rows[0]["flags"] == flag
    assert (len(table.notes) > 1) == bool(flag)  # beside the note on the bands


DUAL = ("Blue-444", "Blue", "Green-531", "Green", "Red-650", "Red", "Red edge-705", "NIR")
"""Names of the bands of two cameras that are flown together."""


def ramp(bands: int) -> np.ndarray:
    """Return bands of which each has one value: 0.05, 0.1..."""
    return np.repeat(np.arange(1, bands + 1, dtype=np.float32) / 20, 40 * 40).reshape(-1, 40, 40)


@pytest.mark.parametrize(
    ("names", "bands", "used"),
    [
        (DUAL, None, (8, 6)),
        (("NIR2", "nir", "red", "green"), None, (2, 3)),
        (("B04 red", "B08 nir", "B11 swir"), None, (2, 1)),
        (("Red-650", "Red-668", "NIR", "Green"), {"R": "red-668"}, (3, 2)),
        (("Red-650", "Red-668", "NIR1", "NIR2"), {"R": 2, "NIR": 4}, (4, 2)),
        (("Red", "Shortwave infrared", "Thermal infrared", "NIR"), None, (4, 1)),
        (("SR_B4", "SR_B5", "Red", "NIR"), None, (4, 3)),
    ],
)
def test_the_band_named_exactly_is_used_and_the_bands_are_said(
    tmp_path: Path, names: tuple[str, ...], bands: Any, used: tuple[int, int]
) -> None:
    path = raster(tmp_path / "m.tif", ramp(len(names)), names=names)
    plots = zones(tmp_path / "a.gpkg", (0, 0, 30, 30))
    table = measure_zones(path, plots, values=["ndvi"], bands=bands)
    nir, red = used
    assert table.rows[0]["ndvi_mean"] == pytest.approx((nir - red) / (nir + red), abs=1e-6)
    said = f"NIR = {nir} {names[nir - 1]}, R = {red} {names[red - 1]}"
    assert any(said in note for note in table.notes)


def test_several_bands_of_a_colour_are_a_question_for_the_index_that_needs_it(
    tmp_path: Path,
) -> None:
    names = ("Green I", "Green II", "Red", "Red edge 1", "Red edge 2", "NIR")
    path = raster(tmp_path / "a.tif", ramp(6), names=names)
    moved = raster(tmp_path / "b.tif", ramp(6)[::-1], names=names[::-1])
    plots = zones(tmp_path / "a.gpkg", (0, 0, 30, 30))
    assert measure_zones(path, plots, values=["ndvi"]).rows
    with pytest.raises(UndecidedError, match="which of these bands is RE") as asked:
        measure_zones(path, plots, values=["ndvi", "ndre"])
    (answer,) = asked.value.answers
    assert answer == "--band=RE=Red edge 1"
    taken = Readings(accept=True)
    rows = measure_zones([path, moved], plots, values=["ndre"], readings=taken).rows
    assert taken.answers == [answer]  # one answer for all rasters, by the name
    assert [row["ndre_mean"] for row in rows] == pytest.approx([2 / 10, 2 / 10], abs=1e-6)
    same = raster(tmp_path / "c.tif", ramp(3), names=("Red", "red", "NIR"))
    with pytest.raises(UndecidedError) as asked:
        measure_zones(same, plots)
    assert asked.value.answers == ("--band=R=1",)


@pytest.mark.parametrize(
    ("side", "flag"), [(0.4, "few_pixels"), (1.9, "few_pixels"), (3.0, ""), (6.0, "")]
)
def test_a_zone_of_few_whole_pixels_says_so(tmp_path: Path, side: float, flag: str) -> None:
    path = raster(tmp_path / "m.tif", ramp(2), names=("red", "nir"))
    places = [(5.3 + 7 * number, 5.6, side, side) for number in range(2)]
    plots = zones(tmp_path / "a.gpkg", *places)
    rows = measure_zones(path, plots, values=["ndvi"]).rows
    assert [row["flags"] for row in rows] == [flag, flag]


def test_hints_of_the_command_say_its_options(tmp_path: Path) -> None:
    path = raster(tmp_path / "n.tif", reflectances())
    plots = zones(tmp_path / "a.gpkg", (0, 0, 30, 30))
    asked = run_command("tools", "zones", str(path), "--zones", str(plots), "--value", "ndvi")
    assert "--band R=3 --band NIR=4" in asked.stderr
    twice = run_command(
        *("tools", "zones", str(path), "--zones", str(plots)), *("--band", "R=1", "--band", "R=2")
    )
    assert twice.returncode == 2
    run = run_command("tools", "run", "measure_crop_weed_area", "--image", str(path))
    assert """--bands '{"R": 3, "NIR": 4}'""" in run.stderr


def test_rasters_without_a_date_in_their_names_are_dated_by_a_tag_and_it_is_said(
    tmp_path: Path,
) -> None:
    paths = [raster(tmp_path / name, HEIGHTS) for name in ("b.tif", "a.tif")]
    for path, day in zip(paths, (12, 11), strict=True):
        with rasterio.open(path, "r+") as file:
            file.update_tags(TIFFTAG_DATETIME=f"2024:06:{day} 10:00:00")
    plots = zones(tmp_path / "a.gpkg", (0, 0, 30, 30))
    table = measure_zones(paths, plots, values=["1"])
    assert [row["date"] for row in table.rows] == ["2024-06-11", "2024-06-12"]
    assert len(table.notes) == 2


def shapes(path: Path, *geometries: Any) -> Path:
    """Write shapes of shapely or of GeoJSON, called P0, P1 and so on, in the system of the raster."""
    features = [
        {
            "type": "Feature",
            "properties": {"plot": f"P{place}"},
            "geometry": one
            if one is None or isinstance(one, dict)
            else json.loads(shapely.to_geojson(one)),
        }
        for place, one in enumerate(geometries)
    ]
    document = {"type": "FeatureCollection", "features": features, **IN_METRES}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


SQUARE, BESIDE = shapely.box(X, Y - 3, X + 3, Y), shapely.box(X + 4, Y - 3, X + 7, Y)
POINT, LINE = shapely.Point(X, Y), shapely.LineString([(X, Y), (X + 1, Y)])


@pytest.mark.parametrize(
    ("geometries", "measured", "left"),
    [
        ((shapely.GeometryCollection([SQUARE, POINT]), BESIDE), {"P0": "", "P1": ""}, ["1 other"]),
        ((shapely.GeometryCollection([POINT, LINE]), BESIDE), {"P1": ""}, ["feature 1 (Geom"]),
        (
            (shapely.GeometryCollection([shapely.GeometryCollection([SQUARE])]), BESIDE),
            {"P0": "", "P1": ""},
            [],
        ),
        (
            (None, BESIDE, {"type": "Polygon", "coordinates": []}),
            {"P0": "no_outline", "P1": "", "P2": "no_outline"},
            ["feature 1 (Polygon); feature 3"],
        ),
        ((POINT, SQUARE, LINE), {"P1": ""}, ["feature 1 (Point); feature 3 (LineString)"]),
        ((shapely.force_3d(SQUARE, 7.0), BESIDE), {"P0": "", "P1": ""}, []),
        (
            (shapely.Polygon([(X, Y), (X + 1, Y), (X, Y), (X, Y)]), BESIDE),
            {"P0": "no_outline outline_repaired", "P1": ""},
            [],
        ),
    ],
)
def test_shapes_that_are_no_polygons_are_named(
    tmp_path: Path, geometries: tuple[Any, ...], measured: dict[str, str], left: list[str]
) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    readings = Readings()
    table = measure_zones(path, shapes(tmp_path / "a.geojson", *geometries), readings=readings)
    assert {row["zone"]: row["flags"] for row in table.rows} == measured
    assert len(readings.left) == len(left)
    assert all(part in line for part, line in zip(left, readings.left, strict=True))


def test_parts_of_a_zone_are_measured_together_and_it_is_said(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    readings = Readings()
    both = shapes(tmp_path / "a.geojson", shapely.MultiPolygon([SQUARE, BESIDE]))
    (row,) = measure_zones(path, both, readings=readings).rows
    assert row["area_m2"] == pytest.approx(18)
    assert any("1 of several parts" in line for line in readings.taken)


@pytest.mark.parametrize(
    ("metres", "flag"),
    [(0.009, ""), (0.02, "partly_outside"), (-0.02, ""), (1.0, "partly_outside")],
)
def test_an_outline_along_the_edge_may_be_rounded(tmp_path: Path, metres: float, flag: str) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    size = SIDE * GSD
    along = shapes(tmp_path / "a.geojson", shapely.box(X - metres, Y - size, X + size, Y))
    (row,) = measure_zones(path, along).rows
    assert row["flags"] == flag


def test_the_mark_of_pix4d_for_no_data_is_no_value(tmp_path: Path) -> None:
    numbers = (reflectances(offset=0) / 10_000).astype(np.float32)
    numbers[:, :15] = -10_000
    path = raster(tmp_path / "n.tif", numbers, names=("red", "nir"))
    plots = zones(tmp_path / "a.gpkg", (0, 0, 30, 30))
    (row,) = measure_zones(path, plots, values=["ndvi"]).rows
    assert row["ndvi_mean"] == pytest.approx(TRUE_NDVI, rel=1e-4)
    assert row["valid_pct"] == pytest.approx(50)


@pytest.mark.parametrize(
    ("name", "is_height"),
    [
        ("field_reflectance_red.tif", False),
        ("DJI_20240611103012_0001_MS_RE.TIF", False),
        ("red_barn_chm.tif", True),
        ("field_r.tif", True),
    ],
)
def test_a_band_of_light_is_not_measured_as_heights(
    tmp_path: Path, name: str, is_height: bool
) -> None:
    path = raster(tmp_path / name, HEIGHTS / 8)
    (row,) = measure_zones(path, zones(tmp_path / "a.gpkg", (0, 0, 30, 30))).rows
    assert ("mean_m" in row) == is_height


def test_whole_numbers_as_heights_have_no_known_unit(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", (HEIGHTS * 3).astype(np.uint16))
    plots = zones(tmp_path / "a.gpkg", (0, 0, 30, 30))
    (row,) = measure_zones(path, plots).rows
    assert "height_unit_assumed_metres" in str(row["flags"])
    (scaled,) = measure_zones(path, plots, scale=0.01).rows
    assert "height_unit_assumed_metres" not in str(scaled["flags"])
    assert scaled["mean_m"] == pytest.approx(row["mean_m"] / 100, rel=1e-4)


def test_text_of_another_encoding_than_the_file_says_is_refused_with_its_reason(
    tmp_path: Path,
) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    file = tmp_path / "a.shp"
    names = [np.array(["Süd"], object)]
    outlines = shapely.to_wkb(np.array([SQUARE]))
    pyogrio.raw.write(
        *(file, outlines, names, ["plot"]),
        crs="EPSG:32633",
        geometry_type="Polygon",
        encoding="ISO-8859-1",
    )
    (row,) = measure_zones(path, file).rows
    assert row["zone"] == "Süd"
    file.with_suffix(".cpg").write_text("UTF-8")
    error = tool_error(measure_zones, path, file)
    assert error.kind == "unreadable_file"
    assert ".cpg" in error.message


def test_a_change_of_numbers_that_may_have_an_offset_is_flagged(tmp_path: Path) -> None:
    old = raster(tmp_path / "a.tif", reflectances(offset=0), names=("red", "nir"))
    new = raster(tmp_path / "b.tif", reflectances(), names=("red", "nir"))
    result = detect_change(before=old, after=new, target="vegetation")
    assert "offset_unknown" in result.flags
    assert "offset_unknown" not in detect_change(before=old, after=old, target="vegetation").flags


def test_plant_cover_of_numbers_that_may_have_an_offset_is_flagged(tmp_path: Path) -> None:
    is_plant = np.kron(np.random.default_rng(0).random((15, 15)) < 0.4, np.ones((8, 8), bool))
    numbers = np.where(is_plant, *reflectances()[:, 0, :2, None, None].transpose(1, 0, 2, 3))
    path = raster(tmp_path / "b.tif", numbers.astype(np.uint16), names=("red", "nir"))
    assert "offset_unknown" in measure_crop_weed_area(path).flags


def centimetres(heights: np.ndarray) -> np.ndarray:
    return np.round(heights * 100).astype(np.uint16)


def test_heights_that_may_be_centimetres_are_a_question_on_their_raster(tmp_path: Path) -> None:
    plots = zones(tmp_path / "a.gpkg", (0, 0, 50, 50))
    low = raster(tmp_path / "h_2024-05-14.tif", centimetres(HEIGHTS / 10))
    metres = raster(tmp_path / "h_2024-06-20.tif", HEIGHTS / 5)
    with pytest.raises(UndecidedError) as caught:
        measure_zones(low, plots)
    assert caught.value.answers == ("--scale=0.01",)
    with pytest.raises(UndecidedError) as caught:
        measure_zones([low, metres], plots)
    assert caught.value.answers == ("--scale=h_2024-05-14.tif=0.01",)
    first, second = measure_zones([low, metres], plots, scale={low.name: 0.01}).rows
    assert first["mean_m"] == pytest.approx(0.4, abs=0.05)
    assert second["mean_m"] == pytest.approx(0.8, abs=0.1)
    assert "height_unit_assumed_metres" not in str(first["flags"])


def test_the_look_at_the_unit_of_heights_reads_a_limited_number_of_tiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = raster(
        *(tmp_path / "h.tif", centimetres(HEIGHTS / 10)), tiled=True, blockxsize=16, blockysize=16
    )
    monkeypatch.setattr("agrotools_tools.zones.units._TILES", 5)
    monkeypatch.setattr("agrotools_tools.zones.units._TILE_PX", 16 * 16)
    read: list[Any] = []
    read_box = RasterSource.read
    monkeypatch.setattr(
        *(RasterSource, "read"),
        lambda self, bands, box: read.append(box) or read_box(self, bands, box),
    )
    with open_raster(path) as source:
        found = heights_of(source)
    assert found is not None
    assert found.top == pytest.approx(np.percentile(HEIGHTS * 10, 98), rel=0.1)
    assert 1 < len(read) <= 5


def test_low_heights_are_centimetres_if_another_date_is_far_lower(tmp_path: Path) -> None:
    plots = zones(tmp_path / "a.gpkg", (0, 0, 50, 50))
    seedlings = raster(tmp_path / "h_2024-05-14.tif", centimetres(HEIGHTS / 40))
    measure_zones(seedlings, plots)  # up to 20: trees in metres
    lower = raster(tmp_path / "h_2024-05-01.tif", HEIGHTS / 80)
    with pytest.raises(UndecidedError):
        measure_zones([seedlings, lower], plots)


def test_heights_in_whole_metres_or_with_a_scale_are_no_question(tmp_path: Path) -> None:
    plots = zones(tmp_path / "a.gpkg", (0, 0, 50, 50))
    trees = raster(tmp_path / "trees.tif", np.round(HEIGHTS * 3).astype(np.uint8))
    measure_zones(trees, plots)
    crop = raster(tmp_path / "crop.tif", centimetres(HEIGHTS / 10))
    with rasterio.open(crop, "r+") as file:
        file.scales = (0.01,)
    (row,) = measure_zones(crop, plots).rows
    assert row["mean_m"] == pytest.approx(0.4, abs=0.05)


def test_a_scale_of_a_raster_that_is_not_given_is_refused(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", HEIGHTS)
    plots = zones(tmp_path / "a.gpkg", (0, 0, 50, 50))
    error = tool_error(measure_zones, path, plots, scale={"other.tif": 0.01})
    assert error.argument == "scale"
    assert "chm.tif" in (error.hint or "")


def test_the_map_shows_a_value_that_its_raster_has(tmp_path: Path) -> None:
    plots = zones(tmp_path / "a.gpkg", (0, 0, 50, 50), (60, 60, 50, 50))
    first = raster(tmp_path / "h_2024-05-14.tif", HEIGHTS)
    last = raster(tmp_path / "rgb_2024-06-20.tif", field(), photometric="RGB")
    measure_zones([first, last], plots, out=tmp_path / "both")
    measure_zones(last, plots, out=tmp_path / "alone")
    both, alone = (tmp_path / name / "zones_map.png" for name in ("both", "alone"))
    assert both.read_bytes() == alone.read_bytes()


def test_flags_of_all_zones_of_a_raster_are_said_once(tmp_path: Path) -> None:
    path = raster(tmp_path / "chm.tif", (HEIGHTS * 3).astype(np.uint16))
    plots = zones(tmp_path / "a.gpkg", (0, 0, 50, 50), (60, 60, 50, 50))
    notes = measure_zones(path, plots).notes
    said = [note for note in notes if "flags of all zones" in note]
    assert len(said) == 1
    assert "height_unit_assumed_metres" in said[0]


def trial_of_two_dates(folder: Path) -> tuple[list[Path], str, Path]:
    """Rasters of two dates, the second without data in one plot; a grid of 2 x 6 plots; the plan of its treatments."""
    first = raster(folder / "h_2026-06-01.tif", HEIGHTS)
    gap = HEIGHTS.copy()
    gap[:, :30, :12] = -9999
    second = raster(folder / "h_2026-07-01.tif", gap, nodata=-9999)
    plan = folder / "plan.csv"
    lines = [f"{r},{c},{'ABC'[c % 3]},{r}" for r in (1, 2) for c in range(1, 7)]
    plan.write_text("\n".join(["Row,Column,Treatment,Block", *lines, "9,9,A,1"]))
    grid = f"x={X},y={Y},rows=2,columns=6,width=1.5,length=4,gap=0.5"
    return [first, second], grid, plan


def test_a_trial_is_joined_to_its_plan_compared_and_drawn(tmp_path: Path) -> None:
    rasters, grid, plan = trial_of_two_dates(tmp_path)
    out = tmp_path / "out"
    found = measure_zones(rasters, grid, table=plan, values=["height"], out=out)
    assert [row["Treatment"] for row in found.rows[:3]] == ["B", "C", "A"]
    of_mean = [row for row in found.treatments if row["value"] == "mean_m"]
    assert [(row["treatment"], row["n"]) for row in of_mean] == [
        *(("A", 4), ("B", 4), ("C", 4)),
        *(("A", 4), ("B", 3), ("C", 4)),
    ]
    change = [row for row in found.treatments if row["value"] == "change of mean_m"]
    # The plot without data in July has no change; the others have the heights of June again.
    assert [(row["treatment"], row["n"], row["mean"]) for row in change] == [
        ("A", 4, 0),
        ("B", 3, 0),
        ("C", 4, 0),
    ]
    assert {row["date"] for row in change} == {"2026-06-01 to 2026-07-01"}
    plots = [row["mean_m"] for row in found.rows[:12] if row["Treatment"] == "A"]
    assert of_mean[0]["mean"] == pytest.approx(np.mean(plots))
    names = {path.name for path in found.files}
    assert names >= {"zones_chart.png", "treatments.csv", "treatments.png"}
    with (out / "treatments.csv").open(newline="") as file:
        main = [*csv.DictReader(file)]
    assert [row["treatment"] for row in main][:3] == ["A", "B", "C"]
    assert {row["value"] for row in main} == {"mean_m", "change of mean_m"}
    with (out / "treatments_all.csv").open(newline="") as file:
        values = {row["value"] for row in csv.DictReader(file)}
    assert values == {str(row["value"]) for row in found.treatments} > {"mean_m", "p95_m"}
    assert any("1 row without a zone" in note for note in found.notes)


def test_the_chart_of_dates_holds_the_zones_that_are_whole_on_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rasters, grid, _ = trial_of_two_dates(tmp_path)
    drawn: list[Any] = []
    monkeypatch.setattr("agrotools_tools.zones.files._figure", lambda *of: drawn.append(of) or b"")
    measure_zones(rasters, grid, values=["height"], out=tmp_path / "out")
    ((kind, series, title, _),) = drawn
    assert kind == "line"
    assert "1-1" not in {name for name, *_ in series}
    assert len(series) == 11
    assert "n = 11, whole on both dates" in title


def test_the_command_prints_the_treatments_and_answers_on_the_plan_need_one(
    tmp_path: Path,
) -> None:
    rasters, grid, plan = trial_of_two_dates(tmp_path)
    words = ["tools", "zones", *map(str, rasters), "--zones", grid, "--value", "height"]
    words += ["--out", str(tmp_path / "out")]
    shown = run_command(*words, "--table", str(plan)).stdout
    for title in (
        "mean height, m, 2026-06-01",
        "mean height, m, 2026-07-01",
        "change of mean height, m, 2026-06-01 to 2026-07-01",
    ):
        assert f"{title}\n" in shown
    words.append("--json")
    with_plan = run_command(*words, "--table", str(plan), "--set", "control=C")
    content = json.loads(with_plan.stdout)
    assert {row["control"] for row in content["treatments"]} == {None, "C"}
    without = run_command(*words, "--set", "control=C")
    assert without.returncode == 2
    assert "--table" in without.stderr
