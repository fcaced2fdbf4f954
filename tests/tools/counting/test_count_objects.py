"""Counting things made in code, each detector on its own ground, and all that may be wrong with a call."""

import csv
import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rasterio.transform import from_origin

from agrotools.calling import get_tool
from agrotools.calling.workspace import CallContext, call_context
from agrotools.core import SampleFile, ToolError
from agrotools_build.scenes.stands import make_block
from agrotools_tools.counting import measure
from agrotools_tools.counting.measure import (
    ORCHARD_SCALE,
    TYPICAL_PX,
    detect_in_tiles,
    find_fruit,
    read_fruit_net,
)
from agrotools_tools.counting.result import CountedObjects, ObjectCount, objects_in_boxes
from agrotools_tools.counting.tool import mode_for
from agrotools_tools.vision import strangeness
from agrotools_tools.vision.strangeness import FLAG, Strangeness
from support.picture_files import discs, field, noisy, write_raster
from support.real_pictures import real_pictures
from support.tiny_detector import HALF_SIDE_PX, write_detector
from support.tool_errors import tool_error

UTM = {"crs": "EPSG:32633", "transform": from_origin(500_000, 5_000_000, 0.5, 0.5)}
GRID = [(x, y) for x in range(30, 400, 60) for y in range(30, 300, 60)]
SHAPE = (300, 400)


def counted(
    image: Any, target: str = "tree", backend: str | None = None, **arguments: Any
) -> ObjectCount:
    """Count in a picture or in heights with pixels of 0.5 m, both arrays, or in a file."""
    if isinstance(image, np.ndarray) and image.ndim == 2:
        image, arguments = image.astype(np.float32), {"gsd_m": 0.5, **arguments}
    with call_context(
        CallContext(keep=lambda artifact, _: artifact, backend=backend, reads_sidecars=True)
    ):
        return get_tool("count_objects")(image, target, **arguments)


fault = partial(tool_error, counted)


def trees(spacing: int = 16, shape: tuple[int, int] = (96, 160)) -> tuple[np.ndarray, int]:
    """Cones on a grid, 10 m tall, pixels of 0.5 m, and how many."""
    y, x = np.mgrid[0 : shape[0], 0 : shape[1]]
    places = [(a, b) for a in range(8, shape[1], spacing) for b in range(8, shape[0], spacing)]
    heights = np.zeros(shape, np.float32)
    for at_x, at_y in places:
        heights = np.maximum(heights, 10 - np.hypot(x - at_x, y - at_y) * 1.5)
    return np.maximum(heights, 0), len(places)


def on(
    ground: tuple[int, int, int], colour: tuple[int, int, int], radius: float = 10
) -> np.ndarray:
    """Discs of a colour on ground, with noise."""
    return np.where(
        discs(SHAPE, GRID, radius)[..., None], noisy(colour, SHAPE), noisy(ground, SHAPE)
    )


def test_trees_in_a_height_model_need_a_pixel_size(tmp_path: Path) -> None:
    heights, number = trees()
    result = counted(write_raster(tmp_path / "chm.tif", heights[None], **UTM), "trees")
    assert result.count == number == 60
    assert (result.mode, result.gsd_m, result.flags) == ("crown_chm", 0.5, ())
    assert result.density_per_ha == pytest.approx(number / (96 * 160 * 0.25 / 10_000))
    assert result.median_height_m == pytest.approx(10, abs=0.2)
    assert result.median_size_m == pytest.approx(2 * 8 / 1.5 * 0.5, rel=0.1)
    boxes, centres = np.array(result.boxes), np.array(result.centres)
    assert ((boxes[:, :2] < centres) & (centres < boxes[:, 2:])).all()
    rows = list(csv.DictReader(result.content(result.table).decode().splitlines()))
    assert len(rows) == number
    assert float(rows[0]["height_m"]) == pytest.approx(10, abs=0.2)
    bare = write_raster(tmp_path / "bare.tif", heights[None])
    found = fault(bare)
    assert (found.kind, found.argument) == ("missing_metadata", "gsd_m")
    info = SampleFile(name="bare.tif", path="bare.tif", kind="raster", gsd_m=0.5)
    with call_context(
        CallContext(keep=lambda artifact, content: artifact, infos={bare.resolve(): info})
    ):
        assert get_tool("count_objects")(image=bare, target="tree").count == number
    assert fault(bare, gsd_m=30.0).kind == "invalid_argument"


def test_boxes_are_in_pixels_of_the_image(tmp_path: Path) -> None:
    heights, number = trees()
    picture = noisy((60, 150, 50), (96 * 4, 160 * 4))
    chm = write_raster(tmp_path / "chm.tif", heights[None], **UTM)
    result, alone = counted(picture, chm=chm), counted(chm)
    assert (result.count, result.gsd_m) == (number, 0.125)
    assert np.array(result.centres) == pytest.approx(4 * np.array(alone.centres))
    assert result.density_per_ha == pytest.approx(alone.density_per_ha)
    assert result.median_size_m == pytest.approx(alone.median_size_m)
    assert counted(picture, chm=chm, region=(0, 0, 320, 384)).count == number / 2
    assert "coordinates_of_chm" in counted(noisy((60, 150, 50), (100, 400)), chm=chm).flags


@settings(max_examples=5)
@given(column=st.integers(10, 90))
def test_regions_add_up(column: int) -> None:
    chm = make_block(3, 1, "forest").images["chm"][:100, :100]
    regions = None, (0, 0, column, 100), (column, 0, 100, 100)
    whole, *parts = (counted(chm, score_min=0, region=region).count for region in regions)
    assert sum(parts) == whole


def test_tiles_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heights = make_block(5, 1, "forest").images["chm"]
    chm = write_raster(
        tmp_path / "chm.tif", heights[None], **UTM, tiled=True, blockxsize=64, blockysize=64
    )
    whole = counted(chm)
    monkeypatch.setattr("agrotools_tools.counting.crowns._TILE_PX", 5000)
    cut = counted(chm)
    assert (cut.count, cut.median_size_px) == (
        whole.count,
        pytest.approx(whole.median_size_px, rel=0.01),
    )
    assert cut.median_height_m == whole.median_height_m


def test_plants_are_counted_on_soil_and_none_on_bare_soil() -> None:
    picture = field(discs(SHAPE, GRID, 12))
    result = counted(picture, "plants", gsd_m=0.01)
    assert result.count == len(GRID)
    assert (result.mode, result.median_size_px) == ("plant", pytest.approx(24, rel=0.1))
    assert result.density_per_ha == pytest.approx(len(GRID) / (300 * 400 * 1e-4 / 1e4), rel=1e-6)
    assert counted(picture, "seedling", region=(0, 0, 180, 300)).count == 15
    result = counted(noisy((120, 95, 75), (100, 120)), "plant")
    assert (result.count, result.median_size_px) == (0, None)
    assert "no_vegetation" in result.flags
    centres = [*GRID, (110, 90), (230, 150)]
    touching = field(discs(SHAPE, centres, 12))
    unaware = counted(touching, "plant")
    assert unaware.count == len(GRID)
    assert "touching_plants_possible" in unaware.flags
    assert counted(touching, "plant", expected_size_px=24).count == len(centres)


@pytest.mark.parametrize("size", [None, 20])
@pytest.mark.parametrize("colour", [(230, 230, 235), (30, 40, 45)])
def test_spots_of_any_colour(size: float | None, colour: tuple[int, int, int]) -> None:
    result = counted(on((130, 125, 120), colour), "bales", expected_size_px=size, score_min=0.5)
    assert (result.mode, result.count) == ("blob", len(GRID))
    assert ("size_guessed" in result.flags) == (size is None)


def is_strange_by(patch: pytest.MonkeyPatch, **scores: float) -> None:
    """Set the strangeness of every picture to fields and leaves (thresholds: 1)."""
    for module in (strangeness, measure):
        patch.setattr(module, "strangeness", lambda _, domain: Strangeness(scores[domain], 1.0))


@pytest.mark.parametrize("strange", [0.0, 2.0])
@pytest.mark.parametrize("plants", [14, 0])
def test_counts_on_pictures_unlike_fields_are_flagged(
    strange: float, plants: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_strange_by(monkeypatch, field=strange, leaf=5.0)
    flags = counted(on((130, 100, 75), (60, 130, 40), plants), "plants").flags
    assert (FLAG in flags) == (strange > 1)


def test_counts_on_ground_of_several_colours_are_flagged(monkeypatch: pytest.MonkeyPatch) -> None:
    is_strange_by(monkeypatch, field=0.0, leaf=5.0)
    pixels = on((130, 100, 75), (60, 130, 40), 14)
    walls = np.where(np.arange(400)[None, :, None] < 200, (90, 90, 140), (150, 110, 80))
    street = np.where(discs(SHAPE, GRID, 14)[..., None], pixels, walls).astype(np.uint8)
    assert FLAG in counted(street, "plants").flags


@pytest.mark.parametrize(("radius", "is_doubted"), [(90, False), (130, True)])
def test_a_part_too_large_for_a_plant_on_soil_is_doubted(
    radius: int, is_doubted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_strange_by(monkeypatch, field=0.0, leaf=5.0)
    flags = counted(field(discs(SHAPE, [(200, 150)], radius)), "plants").flags
    assert (FLAG in flags) == is_doubted


@pytest.mark.parametrize(
    ("of_field", "of_leaf"), [(2.5, 5.0), (0.0, -3.0)], ids=["far from fields", "like a leaf"]
)
def test_plants_are_not_counted_where_no_field_is_seen(
    of_field: float, of_leaf: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_strange_by(monkeypatch, field=of_field, leaf=of_leaf)
    with pytest.raises(ToolError, match="does not look like a field from above") as caught:
        counted(field(discs(SHAPE, GRID, 12)), "plants")
    assert caught.value.kind == "low_confidence"


def test_plants_of_a_field_of_carrots_are_counted_and_those_of_a_leaf_are_not(
    field_data: Path,
) -> None:
    for image in real_pictures(field_data, "cwfid", 4):
        assert FLAG not in counted(image, "plants").flags
    for image in real_pictures(field_data, "coffee_lesions", 4):
        with pytest.raises(ToolError, match="does not look like a field"):
            counted(image, "plants")


def test_crowns_and_fruit_by_colour_are_flagged() -> None:
    result = counted(on((70, 110, 50), (190, 40, 45), 14), "apples", "rules")
    assert result.count == len(GRID)
    assert (result.mode, result.median_size_px) == ("fruit", pytest.approx(28, rel=0.15))
    assert "low_reliability_fruit_colour" in result.flags
    pale = np.where(discs(SHAPE, GRID, 14)[..., None], (150, 170, 90), (90, 130, 60)).astype(
        np.uint8
    )
    assert "pale_fruit_possible" in counted(pale, "apple", "rules").flags
    pixels = field(discs(SHAPE, GRID, 20))
    result = counted(pixels, gsd_m=0.125)
    assert result.count == len(GRID)
    assert "low_reliability_rgb_crowns" in result.flags
    assert {"size_guessed", "no_scale"} <= {*counted(pixels).flags}


def test_fruit_that_the_net_knows_is_found_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = read_fruit_net(write_detector(tmp_path / "nets"))
    monkeypatch.setattr(measure, "load_fruit_net", lambda: net)
    bright, dim = [(60, 60, 0), (150, 120, 0), (100, 150, 1)], [(240, 60, 0)]
    pixels = spots(300, 200, bright, level=195) + spots(300, 200, dim, level=150)
    count = partial(counted, pixels, expected_size_px=36)
    result = count("apples")
    assert result.count == 3
    assert result.scores == tuple(sorted(result.scores or (), reverse=True))
    # The dim one lies just above the threshold of counts (0.5), which is a score of 0.3.
    assert 0.3 < (result.scores or ())[-1] < 0.6
    # Bright dots on black are unlike orchards: a count without an interval.
    assert result.count_interval is None
    assert FLAG in result.flags
    monkeypatch.setattr(measure, "strangeness", lambda *_: Strangeness(0.0, 1.0))
    assert count("apples").count_interval == (3, 3), "0.3 x 2 to each side, and fruits are whole"
    assert "low_resolution" not in count("apples").flags
    shrunk = counted(pixels, "apples")
    assert shrunk.count_interval is None, "fruit of unknown size in a small picture may be missed"
    assert "low_resolution" in shrunk.flags
    stricter = count("apples", score_min=0.6)
    assert stricter.count_interval is None
    assert "count_not_calibrated" in stricter.flags
    cherries = counted(pixels, "cherries", expected_size_px=17)
    assert {"ranking_only", "weak_detector"} <= {*cherries.flags}
    # One pear among apples is doubtful; no cherry among them is not.
    pears = count("pears")
    assert (pears.count, pears.count_interval, FLAG in pears.flags) == (1, None, True)
    assert (cherries.count, FLAG in cherries.flags) == (0, False)
    assert (count("fruit").count, count("fruit").count_interval) == (4, None)
    assert count("peach").flags.count("low_reliability_fruit_colour") == 1


def test_long_lists_are_cut() -> None:
    heights, number = trees(8, (160, 160))
    result = counted(heights)
    assert result.count == number == 361
    assert len(result.boxes) == 300
    assert "boxes_truncated" in result.flags
    forest = make_block(1, 1, "forest").images["chm"]
    few, many = (counted(forest, score_min=score) for score in (0.9, 0.0))
    assert few.count < many.count
    assert list(many.scores) == sorted(many.scores, reverse=True)


@pytest.mark.parametrize(
    ("target", "has_chm", "mode"),
    [
        ("tree", True, "crown_chm"), ("Oil palms", False, "crown_rgb"), ("tree_crowns", True, "crown_chm"),
        ("cherries", False, "fruit"), ("red tomatoes", False, "fruit"), ("maize plants", False, "plant"),
        ("hay bales", False, "blob"), ("apple trees", False, "crown_rgb"), ("peaches", False, "fruit"),
    ],
)  # fmt: skip
def test_detectors_by_target(target: str, has_chm: bool, mode: str) -> None:
    assert mode_for(target, has_chm) == mode


def test_what_no_detector_finds_is_refused() -> None:
    picture = field(discs((100, 100), [(50, 50)], 9))
    for target in ("wheat_head", "pond", "???"):
        found = fault(picture, target)
        assert (found.kind, found.argument) == ("backend_unavailable", "target")
    assert counted(picture, "???", mode="blob").mode == "blob"


def test_heights_without_data_or_of_the_wrong_kind(tmp_path: Path) -> None:
    heights, number = trees()
    slope = np.tile(np.linspace(0, 30, 80), (80, 1))
    classes = np.random.default_rng(0).integers(0, 6, (80, 80))
    for values in (heights + 510, slope, classes):  # elevations, bare ground
        found = fault(values)
        assert (found.kind, found.argument) == ("invalid_argument", "image")
    classes = write_raster(tmp_path / "classes.tif", classes[None].astype(np.int16), **UTM)
    assert fault(classes).kind == "invalid_argument"
    assert (
        "implausible_heights"
        in counted(np.random.default_rng(0).uniform(-0.2, 0.8, (80, 80))).flags
    )
    assert fault(np.full((20, 20), np.nan)).kind == "nothing_found"
    assert counted(np.zeros((20, 20))).count == 0
    holes = heights.copy()
    holes[:, :32] = -9999
    assert counted(holes).count == number * 0.8
    picture = noisy((60, 150, 50), (30, 30))
    found = fault(picture, mode="crown_chm")
    assert (found.kind, found.argument) == ("missing_metadata", "chm")
    assert fault(picture, chm=np.zeros((8, 8, 3), np.uint8), gsd_m=1.0).kind == "invalid_argument"


def test_windows_give_a_range_and_doubtful_counts_are_flagged() -> None:
    noise = np.random.default_rng(0).uniform(2, 12, (80, 80))
    assert "implausible_density" in counted(noise, gsd_m=0.25, window_a_m=0.1, window_b=0.0).flags
    scene = make_block(1, 1, "forest")
    forest = counted(scene.images["chm"])
    assert "implausible_density" not in forest.flags
    low, high = forest.count_interval or (0, 0)
    assert low < len(scene.truth["trees"]) < high
    # A count that hangs on the crown width.
    x, y = np.meshgrid(*2 * [np.arange(96) * 0.5 % 16 - 8])
    for lobe, is_weak in ((0.0, False), (2.0, True)):
        off = (np.abs(x) - lobe / 2**0.5) ** 2 + (np.abs(y) - lobe / 2**0.5) ** 2
        assert ("wide_count_interval" in counted(np.maximum(0, 10 - off / 4)).flags) == is_weak


def bright_squares(tile: np.ndarray) -> CountedObjects:
    """A detector that is always right: one box around each white square it sees, cut ones too."""
    count, _, stats, _ = cv2.connectedComponentsWithStats((tile[..., 0] > 128).astype(np.uint8))
    boxes = np.array(
        [[x, y, x + w, y + h] for x, y, w, h, _ in stats[1:count]], np.float64
    ).reshape(-1, 4)
    return objects_in_boxes(boxes, np.full(len(boxes), 0.9), np.zeros(len(boxes), np.int64))


@given(st.integers(0, 2**32 - 1), st.integers(100, 700), st.integers(100, 700))
def test_each_object_is_found_once_wherever_tiles_meet(seed: int, width: int, height: int) -> None:
    draw = np.random.default_rng(seed)
    picture = np.zeros((height, width, 3), np.uint8)
    true: list[tuple[int, int]] = []
    for row in range(8, height - 30, 45):
        for column in range(8, width - 30, 45):
            x, y = column + int(draw.integers(0, 12)), row + int(draw.integers(0, 12))
            picture[y : y + 20, x : x + 20] = 255
            true.append((x, y))
    found = detect_in_tiles(picture, bright_squares, scale=1.0, side=128, overlap=48)
    assert sorted(map(tuple, found.boxes[:, :2].astype(int).tolist())) == sorted(true)


def spots(
    width: int,
    height: int,
    places: list[tuple[int, int, int]],
    radius: float = 6.0,
    level: float = 255,
) -> np.ndarray:
    """Soft spots on black: x, y and the channel (0 red, 1 green) of each."""
    y, x = np.mgrid[:height, :width]
    picture = np.zeros((height, width, 3), np.float64)
    for cx, cy, channel in places:
        picture[..., channel] += level * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * radius**2))
    return np.clip(picture, 0, 255).astype(np.uint8)


def test_kinds_and_scales(tmp_path: Path) -> None:
    net = read_fruit_net(write_detector(tmp_path))
    picture = spots(200, 160, [(40, 50, 0), (120, 90, 1)])
    apples, scales, others = find_fruit(net, picture, ("apple",), TYPICAL_PX["apple"])
    assert (scales, others) == ((1.0,), pytest.approx(0.5, abs=0.05))
    assert apples.centres == pytest.approx(np.array([[40, 50]]), abs=3)
    assert apples.boxes[0, 2] - apples.boxes[0, 0] == pytest.approx(2 * HALF_SIDE_PX, abs=0.5)
    both, _, others = find_fruit(net, picture, ("apple", "pear"), 32.0)
    assert (sorted(both.classes.tolist()), others) == ([0, 1], 0)
    _, scales, _ = find_fruit(
        net, spots(600, 400, [(300, 200, 0)], 18), ("apple",), 3 * TYPICAL_PX["apple"]
    )
    assert scales == (pytest.approx(1 / 3),)
    small, large = (300, 300, 0), (1500, 1000, 0)
    picture = np.maximum(spots(2400, 1600, [small], 8), spots(2400, 1600, [large], 40))
    found, scales, _ = find_fruit(net, picture, ("apple",), None)
    assert scales == (ORCHARD_SCALE, ORCHARD_SCALE / 2)
    for x, y, _ in (small, large):
        assert np.hypot(*(found.centres - (x, y)).T).min() < 20
    assert [net.count_interval("apple", count, unsure=8) for count in (98, 1)] == [
        (95, 101),
        (0, 4),
    ]


@pytest.mark.parametrize("how", ["missing", "tampered", "no graph", "no json", "other class"])
def test_damaged_files_of_the_net_are_refused(tmp_path: Path, how: str) -> None:
    description = write_detector(tmp_path)
    weights = tmp_path / "fruits.onnx"
    if how == "missing":
        weights.unlink()
    elif how == "tampered":
        weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    elif how == "no graph":
        weights.write_bytes(b"no graph")
        description = write_detector(
            tmp_path / "again", sha256=hashlib.sha256(b"no graph").hexdigest()
        )
        (tmp_path / "again/fruits.onnx").write_bytes(b"no graph")
    elif how == "no json":
        description.write_text("{")
    else:
        description = write_detector(tmp_path, classes=["apple", "grape"])
    assert tool_error(read_fruit_net, description).kind == "backend_unavailable"
