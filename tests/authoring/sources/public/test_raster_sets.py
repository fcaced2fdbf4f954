"""Adapters of rasters: Open-Canopy, WeedMap, and the pictures with depth of PApple."""

import json
from collections import Counter
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import rasterio
from data_sets import (
    APPLES_HEIGHT,
    APPLES_WIDTH,
    CANOPY_ROW,
    CHANNELS,
    COLUMNS_PX,
    CROP_ALONE,
    EMPTY,
    FOCAL_PX,
    LEFT_M,
    OUTSIDE,
    PIXEL_M,
    ROWS_PX,
    TOP_M,
    draw_channels,
    draw_labels,
    draw_tile,
    open_canopy,
    things_of,
    weedmap,
    written,
)
from PIL import Image
from rasterio.errors import NotGeoreferencedWarning

from agrotools_build.sources.part import listing_of
from agrotools_build.sources.public import adapter_of

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{NotGeoreferencedWarning.__module__}.NotGeoreferencedWarning"
)
WINDOW_PX = listing_of("open_canopy").layout["window_px"]
FOREST = {2022: (("test", "forest"), ("buffer", "forest"))}


def test_windows_hold_the_metres_of_measured_ground_and_plants(data_set, scratch):
    part = adapter_of("open_canopy")(data_set("open_canopy"), scratch, 20)
    facts: Any = part.metadata["open-canopy"]
    assert facts["test_tiles"] == 6
    assert len(part.files) == facts["windows"] >= 16
    for path in part.files.values():
        with rasterio.open(path) as source:
            found, where, crs = source.read(1, masked=True), source.transform, source.crs
            assert (source.units, source.descriptions, source.dtypes) == (
                ("m",),
                ("height",),
                ("float32",),
            )
        assert (crs.to_epsg(), where.a, where.e) == (2154, PIXEL_M, -PIXEL_M)
        (row, down), (column, across) = (
            divmod(TOP_M - where.f, 3000),
            divmod(where.c - LEFT_M, 1000),
        )
        split, looks = CANOPY_ROW[int(column)]
        assert split == "test"
        heights, classes = draw_tile((2021, 2023)[int(row)], int(column), looks)
        # A tile that begins within a pixel is moved to the nearest one, so its window may be a pixel off.
        x, y = round(across / PIXEL_M), round(down / PIXEL_M)
        windows = [
            np.s_[max(0, y + dy) :, max(0, x + dx) :] for dy, dx in product((-1, 0, 1), repeat=2)
        ]
        matches = False
        for window in windows:
            kinds, metres = (
                plane[window][:WINDOW_PX, :WINDOW_PX] for plane in (classes, heights / 10)
            )
            measured = np.isin(kinds, (2, 3, 4, 5))
            matches |= np.array_equal(~np.ma.getmaskarray(found), measured) and np.allclose(
                found.compressed(), metres[measured], atol=1e-5
            )
        assert matches


def test_truth_is_what_the_window_holds_and_boxes_differ(tmp_path, scratch):
    part = adapter_of("open_canopy")(written(tmp_path / "set", open_canopy(FOREST)), scratch, 2)
    for thing in things_of(part):
        assert (
            thing.files[0].name in ("heights_1.tif", "canopy_heights.tif"),
            thing.files[0].gsd_m,
        ) == (True, 1.5)
        with rasterio.open(part.files[thing.files[0].path]) as source:
            heights = source.read(1).astype(np.float64)
        x0, y0, x1, y1 = thing.arguments.get("region", (0, 0, WINDOW_PX, WINDOW_PX))
        values = heights[y0:y1, x0:x1]
        values = values[values > -1]
        canopy = np.sum(values > 1.99)
        expected = {
            "measured_px": values.size, "mean_m": values.mean(), "max_m": values.max(),
            "p95_m": np.quantile(values, 0.95), "cover_pct": 100 * canopy / values.size,
            "canopy_area_m2": 2.25 * canopy,
        }  # fmt: skip
        assert {key: thing.truth[key] for key in expected} == pytest.approx(expected, rel=1e-4)
        bins = [
            np.mean((values > low - 0.01) & (values < high - 0.01))
            for low, high in pairwise((-1, 2, 5, 10))
        ]
        assert [one["pct"] for one in thing.truth["bins"][:3]] == pytest.approx(
            [100 * b for b in bins], rel=1e-3
        )
    boxes = {tuple(thing.arguments["region"]) for thing in things_of(part, "canopy_box")}
    assert len(boxes) == len(things_of(part, "canopy_box")) == 12


def test_what_cannot_be_used_is_dropped_and_counted(tmp_path, scratch):
    row = [("test", looks) for looks in ("forest", "hole", "zeros", "meadow", "lake", "tower")]
    folder = written(tmp_path / "set", open_canopy({2021: row, 2022: row[:1]}))
    for path in (folder / "canopy_height" / "2022").glob("*.vrt"):
        path.unlink()
    part = adapter_of("open_canopy")(folder, scratch, 30)
    assert part.metadata["open-canopy"] == {"test_tiles": 7, "windows": 4}
    assert part.dropped == {
        "unreadable, not fetched or all zero": 10,  # half of the lake is 0 throughout
        "with too little data": 2,
        "without canopy": 4,
        "taller than any tree": 4,
        "of a year that is not there": 4,
    }


@pytest.mark.parametrize("crs", ["degrees", "unnamed degrees", "unnamed metres"])
def test_the_grid_may_be_in_degrees_or_say_nothing(tmp_path, scratch, crs):
    folder = written(tmp_path / "set", open_canopy(FOREST, crs=None))
    expected = adapter_of("open_canopy")(folder, scratch, 2).files
    path = folder / "canopy_height" / "geometries.geojson"
    if "degrees" in crs:
        grid = json.loads(path.read_text())
        for feature in grid["features"]:
            feature["geometry"] = rasterio.warp.transform_geom(
                "EPSG:2154", "EPSG:4326", feature["geometry"]
            )
        if crs == "degrees":
            grid["crs"] = {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}
        path.write_text(json.dumps(grid))
    assert adapter_of("open_canopy")(folder, scratch, 2).files == expected


def _tiles(part):
    """Every picture of a field with the map and frame it was made from, found by its pixels."""
    drawn = {
        np.maximum(bands, 1)[:, valid].tobytes(): (name, frame)
        for name in CHANNELS
        for frame in range(8)
        for bands, (_, valid) in [(draw_channels(name, frame), draw_labels(name, frame))]
    }
    for picture in things_of(part, "field"):
        with rasterio.open(part.files[picture.files[0].path]) as source:
            yield picture, source, drawn[source.read()[:, source.dataset_mask() > 0].tobytes()]


def test_areas_are_what_the_labels_say_where_there_is_data_and_bands_are_named(data_set, scratch):
    part = adapter_of("weedmap")(data_set("weedmap"), scratch, 20)
    seen: list[tuple[str, int]] = []
    for picture, source, (name, frame) in _tiles(part):
        seen.append((name, frame))
        classes, valid = draw_labels(name, frame)
        for region in (None, (0, 0, 160, 120), (100, 40, 300, 200)):
            x0, y0, x1, y1 = region or (0, 0, COLUMNS_PX, ROWS_PX)
            inside = classes[y0:y1, x0:x1][valid[y0:y1, x0:x1]]
            area = picture.area(region)
            assert (area.total_px, area.crop_px, area.weed_px, area.unnamed_px) == (
                inside.size, np.sum(inside == 1), np.sum(inside == 2), 0,
            )  # fmt: skip
        (file,) = picture.files
        assert (file.kind, file.bands, file.gsd_m, file.name) == (
            "raster",
            CHANNELS[name],
            0.01,
            "bands_1.tif",
        )
        assert (
            (file.width_px, file.height_px)
            == (picture.width, picture.height)
            == (COLUMNS_PX, ROWS_PX)
        )
        assert (source.descriptions, source.nodata) == (CHANNELS[name], 0)
        assert np.array_equal(source.dataset_mask() > 0, valid)
        assert np.abs(source.read().astype(int) - draw_channels(name, frame)).max() <= 1
    whole = [
        (name, frame) for name in CHANNELS for frame in range(8) if frame not in (OUTSIDE, EMPTY)
    ]
    assert sorted(seen) == whole
    for subject in (one for one in part.subjects if one.of == "field"):
        assert len({subject.shown(index, 1).files[0].bands for index in range(subject.things)}) == 1


def test_tiles_with_crop_and_weeds_come_first_and_no_more_are_made_than_needed(data_set, scratch):
    part = adapter_of("weedmap")(data_set("weedmap"), scratch, 5)
    frames = [at for _, _, at in _tiles(part)]
    assert len(frames) == len(part.files) == len(list(scratch.iterdir())) == 10
    assert all(frame != CROP_ALONE for _, frame in frames)
    assert {name for name, _ in frames} == {"003", "005"}


def test_grey_may_be_stored_as_colours(tmp_path, scratch):
    folder = written(tmp_path / "set", weedmap(maps=("005",)))
    expected = adapter_of("weedmap")(folder, scratch, 20).files.keys()
    for path in folder.glob("Tiles/Sequoia/005/tile/G/*.png"):
        with Image.open(path) as picture:
            picture.convert("RGB").save(path)
    assert adapter_of("weedmap")(folder, scratch, 20).files.keys() == expected


def _apple_at(folder, picture: str, box: list[int]) -> str:
    """The number of the apple whose whole outline has that box."""
    entries = json.loads((folder / "gt_json/test/via_region_data_amodal.json").read_text()).values()
    numbers: set[str] = set()
    for region in next(entry for entry in entries if entry["filename"] == picture)[
        "regions"
    ].values():
        xs, ys = (region["shape_attributes"][f"all_points_{axis}"] for axis in "xy")
        if [min(xs), min(ys), max(xs) + 1, max(ys) + 1] == box:
            numbers.add(region["region_attributes"]["apple_ID"])
    (number,) = numbers
    return number


def test_sizes_depth_and_camera_go_with_every_picture_of_apples(data_set, scratch):
    folder = data_set("papple")
    part = adapter_of("papple")(folder, scratch, 30)
    sizes = dict(line.split(",") for line in (folder / "GT_diameter.txt").read_text().split())
    asked: Counter[str] = Counter()
    for thing in things_of(part, "apple"):
        picture = part.files[thing.files[0].path].name
        number = _apple_at(folder, picture, thing.arguments["boxes"][0])
        line = f"{2018 if picture[4] == '2' else 2020}_01_{number:0>3}.txt"
        asked[line] += 1
        assert thing.truth == {"fruits": [{"id": 1, "diameter_mm": float(sizes[line])}], "n": 1}
    assert max(asked.values()) == 1
    assert {line[:4] for line in asked} == {"2018", "2020"}
    # An apple in two pieces is one; its number ends in 5.
    assert any(line.endswith("5.txt") for line in asked)
    steps: set[int] = set()
    for thing in things_of(part):
        image, depth = thing.files
        assert (
            (image.width_px, image.height_px)
            == (depth.width_px, depth.height_px)
            == (APPLES_WIDTH, APPLES_HEIGHT)
        )
        assert image.intrinsics.fx_px == image.intrinsics.fy_px == FOCAL_PX
        assert depth.kind == "depth"
        stored = np.asarray(Image.open(part.files[depth.path])).astype(float)
        metres = np.load(folder / "depth_maps" / f"{part.files[image.path].stem}.npy")
        steps.add(step := APPLES_HEIGHT // metres.shape[0])
        assert np.abs(stored[::step, ::step] * depth.depth_unit_mm / 1000 - metres).max() < 0.6e-4
    assert steps == {1, 2}


def test_other_names_and_a_file_of_focal_lengths_are_read_and_an_apple_with_two_diameters_left_out(
    own_set, scratch
):
    own = own_set("papple")
    before = {
        thing.truth["fruits"][0]["diameter_mm"]
        for thing in things_of(adapter_of("papple")(own, scratch, 20))
    }
    (own / "depth_maps").rename(own / "depthCropNpy")
    (own / "focal_length.txt").write_text("_MG_2600_1.png,5000.5\n")
    lines = (own / "GT_diameter.txt").read_text().split()
    doubled = [
        line for number, line in enumerate(lines) for line in [line, f"{line}.5"][: 1 + number % 2]
    ]
    (own / "GT_diameters.txt").write_text("\n".join(doubled))
    (own / "GT_diameter.txt").unlink()
    (scratch / "PApple_v4").mkdir()
    own.rename(scratch / "PApple_v4" / "data")
    part = adapter_of("papple")(scratch, scratch, 20)
    focal = {
        part.files[thing.files[0].path].name: thing.files[0].intrinsics.fx_px
        for thing in things_of(part)
    }
    assert focal.pop("_MG_2600_1.png") == 5000.5
    assert set(focal.values()) == {FOCAL_PX}
    assert {thing.truth["fruits"][0]["diameter_mm"] for thing in things_of(part)} < before
