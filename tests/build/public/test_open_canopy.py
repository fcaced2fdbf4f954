"""The Open-Canopy adapter on a small data set in its authors' layout."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import rasterio
from data_sets import CANOPY_ROW, LEFT_M, PIXEL_M, TILE_PX, TOP_M, FakeTile, draw_tile, write_open_canopy

from agrotools.build.sources.part import listing_of
from agrotools.build.sources.public import adapter_of

open_canopy = adapter_of("open_canopy")
LAYOUT = listing_of("open_canopy").layout
MEASURED_CLASSES, WINDOW_PX = LAYOUT["measured_classes"], LAYOUT["window_px"]

FOREST = {2022: (FakeTile(), FakeTile("buffer"))}


def facts(part):
    return part.metadata["open-canopy"]


def test_windows_hold_the_metres_of_measured_ground_and_plants(folder: Path, tmp_path: Path, scratch: Path) -> None:
    part = open_canopy(folder, scratch, 20)
    assert facts(part)["test_tiles"] == 6
    assert len(part.files) == facts(part)["windows"] >= 16
    test_columns = [column for column, tile in enumerate(CANOPY_ROW) if tile.split == "test"]
    for path in part.files.values():
        with rasterio.open(path) as source:
            found, where, crs = source.read(1, masked=True), source.transform, source.crs
            assert (source.units, source.descriptions, source.dtypes) == (("m",), ("height",), ("float32",))
        assert crs.to_epsg() == 2154
        assert (where.a, where.e) == (PIXEL_M, -PIXEL_M)
        row, down = divmod(TOP_M - where.f, 3000)
        column, across = divmod(where.c - LEFT_M, 1000)
        assert int(column) in test_columns
        # A tile that begins within a pixel is moved to the nearest one, so its window may be a pixel off.
        x, y = round(across / PIXEL_M), round(down / PIXEL_M)
        heights, classes = draw_tile((2021, 2023)[int(row)], int(column), CANOPY_ROW[int(column)].looks)
        shifts = [
            (np.isin(classes, MEASURED_CLASSES)[part], heights[part] / 10)
            for dy in (-1, 0, 1)
            for dx in (-1, 0, 1)
            if min(y + dy, x + dx) >= 0
            and max(y + dy, x + dx) + WINDOW_PX <= TILE_PX
            and (part := np.s_[y + dy : y + dy + WINDOW_PX, x + dx : x + dx + WINDOW_PX])
        ]
        assert any(
            np.array_equal(~np.ma.getmaskarray(found), measured)
            and np.allclose(found.compressed(), metres[measured], atol=1e-5)
            for measured, metres in shifts
        )


def test_truth_is_what_the_window_holds_and_boxes_differ(tmp_path: Path, scratch: Path) -> None:
    part = open_canopy(write_open_canopy(tmp_path / "set", FOREST), scratch, 2)
    for subject in part.subjects:
        for index in range(subject.things):
            thing = subject.shown(index, 1)
            called = "heights_1.tif" if subject.of == "tract" else "canopy_heights.tif"
            assert (thing.files[0].name, thing.files[0].gsd_m) == (called, 1.5)
            with rasterio.open(part.files[thing.files[0].path]) as source:
                heights = source.read(1).astype(np.float64)
            x0, y0, x1, y1 = thing.arguments.get("region", (0, 0, WINDOW_PX, WINDOW_PX))
            values = heights[y0:y1, x0:x1]
            values = values[values > -1]
            canopy = np.sum(values > 1.99)
            assert thing.truth["measured_px"] == values.size
            assert thing.truth["mean_m"] == pytest.approx(values.mean(), rel=1e-4)
            assert thing.truth["max_m"] == pytest.approx(values.max(), rel=1e-4)
            assert thing.truth["p95_m"] == pytest.approx(np.quantile(values, 0.95), rel=1e-4)
            assert thing.truth["cover_pct"] == pytest.approx(100 * canopy / values.size, rel=1e-4)
            assert thing.truth["canopy_area_m2"] == pytest.approx(2.25 * canopy, rel=1e-4)
            bins = [np.mean((values > low - 0.01) & (values < high - 0.01)) for low, high in pairwise((-1, 2, 5, 10))]
            assert [one["pct"] for one in thing.truth["bins"][:3]] == pytest.approx([100 * b for b in bins], rel=1e-3)
    boxes = [
        tuple(subject.shown(index, 1).arguments["region"])
        for subject in part.subjects
        if subject.of == "canopy_box"
        for index in range(3)
    ]
    assert len(set(boxes)) == len(boxes) == 12


def test_what_cannot_be_used_is_dropped_and_counted(tmp_path: Path, scratch: Path) -> None:
    kinds = ("forest", "hole", "zeros", "meadow", "lake", "tower")
    row = [FakeTile(looks=looks) for looks in kinds]
    set_ = write_open_canopy(tmp_path / "set", {2021: row, 2022: [FakeTile()]})
    for path in (set_ / "canopy_height" / "2022").glob("*.vrt"):
        path.unlink()
    part = open_canopy(set_, scratch, 30)
    assert facts(part)["windows"] == 4
    assert part.dropped == {
        "unreadable, not fetched or all zero": 10,  # half of the lake is 0 throughout
        "with too little data": 2,
        "without canopy": 4,
        "taller than any tree": 4,
        "of a year that is not there": 4,
    }


@pytest.mark.parametrize("crs", ["degrees", "unnamed degrees", "unnamed metres"])
def test_the_grid_may_be_in_degrees_or_say_nothing(tmp_path: Path, scratch: Path, crs: str) -> None:
    set_ = write_open_canopy(tmp_path / "set", FOREST, crs=None)
    expected = open_canopy(set_, scratch, 2).files
    path = set_ / "canopy_height" / "geometries.geojson"
    if "degrees" in crs:
        grid = json.loads(path.read_text())
        for feature in grid["features"]:
            feature["geometry"] = rasterio.warp.transform_geom("EPSG:2154", "EPSG:4326", feature["geometry"])
        if crs == "degrees":
            grid["crs"] = {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}
        path.write_text(json.dumps(grid))
    assert open_canopy(set_, scratch, 2).files == expected
