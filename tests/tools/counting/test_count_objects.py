"""Counting things made in code, each detector on its own ground, and all that may be wrong with a call."""

import csv
import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from rasterio.transform import from_origin

from agrotools.build.scenes.stands import make_block
from agrotools.core import SampleFile
from agrotools.tools import get_tool
from agrotools.tools.counting import methods
from agrotools.tools.counting.count_objects import mode_for
from agrotools.tools.counting.methods import ORCHARD_SCALE, TYPICAL_PX, detect_in_tiles, find_fruit, read_fruit_net
from agrotools.tools.counting.result import CountedObjects, ObjectCount, objects_in_boxes
from agrotools.tools.workspace import CallContext, artifacts_in, call_context
from agrotools.vision import strangeness, vegetation
from agrotools.vision.strangeness import FLAG, Strangeness
from support.picture_files import discs, field, noisy, write_raster
from support.tiny_detector import HALF_SIDE_PX, write_detector
from support.tool_errors import tool_error

UTM = {"crs": "EPSG:32633", "transform": from_origin(500_000, 5_000_000, 0.5, 0.5)}
GRID = [(x, y) for x in range(30, 400, 60) for y in range(30, 300, 60)]


def counted(folder: Path, *, backend: str | None = None, **arguments: Any) -> ObjectCount:
    with artifacts_in(folder / "made", backend=backend):
        return get_tool("count_objects")(**arguments)


fault = partial(tool_error, counted)


def photo(path: Path, pixels: np.ndarray) -> Path:
    Image.fromarray(pixels).save(path)
    return path


def chm_file(path: Path, heights: np.ndarray, **profile: Any) -> Path:
    return write_raster(path, heights[None].astype(np.float32), **(profile or UTM))


def trees(spacing: int = 16, shape: tuple[int, int] = (96, 160)) -> tuple[np.ndarray, int]:
    """Cones on a grid, 10 m tall, pixels of 0.5 m, and how many."""
    y, x = np.mgrid[0 : shape[0], 0 : shape[1]]
    places = [(a, b) for a in range(8, shape[1], spacing) for b in range(8, shape[0], spacing)]
    heights = np.zeros(shape, np.float32)
    for at_x, at_y in places:
        heights = np.maximum(heights, 10 - np.hypot(x - at_x, y - at_y) * 1.5)
    return np.maximum(heights, 0), len(places)


def test_trees_in_a_height_model_need_a_pixel_size(tmp_path: Path) -> None:
    heights, number = trees()
    result = counted(tmp_path, image=chm_file(tmp_path / "chm.tif", heights), target="trees")
    assert result.count == number == 60
    assert (result.mode, result.gsd_m) == ("crown_chm", 0.5)
    assert result.density_per_ha == pytest.approx(number / (96 * 160 * 0.25 / 10_000))
    assert result.median_height_m == pytest.approx(10, abs=0.2)
    assert result.median_size_m == pytest.approx(2 * 8 / 1.5 * 0.5, rel=0.1)
    assert result.boxes is not None
    assert result.centres is not None
    assert all(
        x0 < x < x1 and y0 < y < y1 for (x0, y0, x1, y1), (x, y) in zip(result.boxes, result.centres, strict=True)
    )
    assert result.flags == ()
    with (tmp_path / "made" / result.table.name).open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == number
    assert float(rows[0]["height_m"]) == pytest.approx(10, abs=0.2)
    bare = write_raster(tmp_path / "bare.tif", heights[None])
    found = fault(tmp_path, image=bare, target="tree")
    assert (found.kind, found.argument) == ("missing_metadata", "gsd_m")
    assert counted(tmp_path, image=bare, target="tree", gsd_m=0.5).count == number
    info = SampleFile(name="bare.tif", path="bare.tif", kind="raster", gsd_m=0.5)
    with call_context(CallContext(keep=lambda artifact, content: artifact, infos={bare.resolve(): info})):
        assert get_tool("count_objects")(image=bare, target="tree").count == number
    assert fault(tmp_path, image=bare, target="tree", gsd_m=30.0).kind == "invalid_argument"


def test_boxes_are_in_pixels_of_the_image(tmp_path: Path) -> None:
    heights, number = trees()
    picture = photo(tmp_path / "rgb.png", noisy((60, 150, 50), (96 * 4, 160 * 4)))
    chm = chm_file(tmp_path / "chm.tif", heights)
    result = counted(tmp_path, image=picture, target="tree", chm=chm)
    alone = counted(tmp_path, image=chm, target="tree")
    assert (result.count, result.gsd_m) == (number, 0.125)
    assert result.centres is not None
    assert alone.centres is not None
    assert np.array(result.centres) == pytest.approx(4 * np.array(alone.centres))
    assert result.density_per_ha == pytest.approx(alone.density_per_ha)
    assert result.median_size_m == pytest.approx(alone.median_size_m)
    part = counted(tmp_path, image=picture, target="tree", chm=chm, region=(0, 0, 320, 384))
    assert part.count == number / 2
    other = photo(tmp_path / "other.png", noisy((60, 150, 50), (100, 400)))
    assert "coordinates_of_chm" in counted(tmp_path, image=other, target="tree", chm=chm).flags


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(column=st.integers(10, 90))
def test_regions_add_up(tmp_path: Path, column: int) -> None:
    chm = chm_file(tmp_path / "chm.tif", make_block(3, 1, "forest").images["chm"][:100, :100])
    whole = counted(tmp_path, image=chm, target="tree", score_min=0)
    left = counted(tmp_path, image=chm, target="tree", score_min=0, region=(0, 0, column, 100))
    right = counted(tmp_path, image=chm, target="tree", score_min=0, region=(column, 0, 100, 100))
    assert left.count + right.count == whole.count


def test_tiles_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heights = make_block(5, 1, "forest").images["chm"]
    chm = chm_file(tmp_path / "chm.tif", heights, **UTM, tiled=True, blockxsize=64, blockysize=64)
    whole = counted(tmp_path, image=chm, target="tree")
    monkeypatch.setattr("agrotools.tools.counting.crowns._TILE_PX", 5000)
    cut = counted(tmp_path, image=chm, target="tree")
    assert (cut.count, cut.median_size_px) == (whole.count, pytest.approx(whole.median_size_px, rel=0.01))
    assert cut.median_height_m == whole.median_height_m


def test_plants_are_counted_on_soil_and_none_on_bare_soil(tmp_path: Path) -> None:
    picture = photo(tmp_path / "field.png", field(discs((300, 400), GRID, 12)))
    result = counted(tmp_path, image=picture, target="plants", gsd_m=0.01)
    assert result.count == len(GRID)
    assert (result.mode, result.median_size_px) == ("plant", pytest.approx(24, rel=0.1))
    assert result.density_per_ha == pytest.approx(len(GRID) / (300 * 400 * 1e-4 / 1e4), rel=1e-6)
    assert counted(tmp_path, image=picture, target="seedling", region=(0, 0, 180, 300), gsd_m=0.01).count == 15
    result = counted(tmp_path, image=photo(tmp_path / "soil.png", noisy((120, 95, 75), (100, 120))), target="plant")
    assert (result.count, result.median_size_px) == (0, None)
    assert "no_vegetation" in result.flags


def test_touching_plants_are_flagged_or_taken_apart(tmp_path: Path) -> None:
    centres = [*GRID, (110, 90), (230, 150)]
    picture = photo(tmp_path / "field.png", field(discs((300, 400), centres, 12)))
    unaware = counted(tmp_path, image=picture, target="plant")
    assert unaware.count == len(GRID)
    assert "touching_plants_possible" in unaware.flags
    told = counted(tmp_path, image=picture, target="plant", expected_size_px=24)
    assert told.count == len(centres)


@pytest.mark.parametrize("size", [None, 20])
def test_spots_of_any_colour(tmp_path: Path, size: float | None) -> None:
    mask = discs((300, 400), GRID, 10)
    for colour in ((230, 230, 235), (30, 40, 45)):
        pixels = np.where(mask[..., None], noisy(colour, (300, 400)), noisy((130, 125, 120), (300, 400)))
        result = counted(
            tmp_path, image=photo(tmp_path / "s.png", pixels), target="bales", expected_size_px=size, score_min=0.5
        )
        assert result.mode == "blob"
        assert result.count == len(GRID)
        assert ("size_guessed" in result.flags) == (size is None)


def test_doubtful_plants_and_red_fruit_are_flagged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mask = discs((300, 400), GRID, 14)
    pixels = np.where(mask[..., None], noisy((60, 130, 40), (300, 400)), noisy((130, 100, 75), (300, 400)))
    image = photo(tmp_path / "f.png", pixels)
    for strange, doubt in ((0.0, None), (2.0, None), (0.0, "shade")):
        monkeypatch.setattr(strangeness, "strangeness", lambda *_, strange=strange: Strangeness(strange, 1.0))
        monkeypatch.setattr(vegetation, "doubt_of_cover", lambda *_, doubt=doubt: doubt)
        flags = counted(tmp_path, image=image, target="plants").flags
        assert (FLAG in flags, "vegetation_uncertain" in flags) == (strange > 1, doubt is not None)
    walls = np.where(np.arange(400)[None, :, None] < 200, (90, 90, 140), (150, 110, 80))
    street = np.where(mask[..., None], pixels, walls).astype(np.uint8)
    assert FLAG in counted(tmp_path, image=photo(tmp_path / "street.png", street), target="plants").flags
    pixels = np.where(mask[..., None], noisy((190, 40, 45), (300, 400)), noisy((70, 110, 50), (300, 400)))
    result = counted(tmp_path, image=photo(tmp_path / "f.png", pixels), target="apples", backend="rules")
    assert result.count == len(GRID)
    assert (result.mode, result.median_size_px) == ("fruit", pytest.approx(28, rel=0.15))
    assert "low_reliability_fruit_colour" in result.flags
    pale = photo(tmp_path / "p.png", np.where(mask[..., None], (150, 170, 90), (90, 130, 60)).astype(np.uint8))
    assert "pale_fruit_possible" in counted(tmp_path, image=pale, target="apple", backend="rules").flags


def test_fruit_that_the_net_knows_is_found_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net = read_fruit_net(write_detector(tmp_path / "nets"))
    monkeypatch.setattr(methods, "load_fruit_net", lambda: net)
    bright, dim = [(60, 60, 0), (150, 120, 0), (100, 150, 1)], [(240, 60, 0)]
    pixels = spots(300, 200, bright, level=195) + spots(300, 200, dim, level=150)
    image = photo(tmp_path / "f.png", pixels)
    result = counted(tmp_path, image=image, target="apples", expected_size_px=36)
    assert result.count == 3
    assert result.scores == tuple(sorted(result.scores or (), reverse=True))
    # The dim one lies just above the threshold of counts (0.5), which is a score of 0.3.
    assert 0.3 < (result.scores or ())[-1] < 0.6
    # Bright dots on black are unlike orchards: a count without an interval.
    assert result.count_interval is None
    assert "out_of_distribution" in result.flags
    monkeypatch.setattr(methods, "strangeness", lambda *_: Strangeness(0.0, 1.0))
    low, high = counted(tmp_path, image=image, target="apples", expected_size_px=36).count_interval or (0, 0)
    assert (low, high) == (3, 3), "0.3 x 2 to each side, and fruits are whole"
    stricter = counted(tmp_path, image=image, target="apples", expected_size_px=36, score_min=0.6)
    assert stricter.count_interval is None
    assert "count_not_calibrated" in stricter.flags
    cherries = counted(tmp_path, image=image, target="cherries", expected_size_px=17)
    assert "ranking_only" in cherries.flags
    # One pear among apples is doubtful; no cherry among them is not.
    pears = counted(tmp_path, image=image, target="pears", expected_size_px=36)
    assert (pears.count, pears.count_interval) == (1, None)
    assert "out_of_distribution" in pears.flags
    assert (cherries.count, "out_of_distribution" in cherries.flags) == (0, False)
    assert counted(tmp_path, image=image, target="fruit", expected_size_px=36).count == 4
    assert counted(tmp_path, image=image, target="fruit", expected_size_px=36).count_interval is None
    assert "weak_detector" in cherries.flags
    assert counted(tmp_path, image=image, target="peach").flags.count("low_reliability_fruit_colour") == 1


def test_crowns_in_colours_are_flagged(tmp_path: Path) -> None:
    pixels = field(discs((300, 400), GRID, 20))
    result = counted(tmp_path, image=photo(tmp_path / "t.png", pixels), target="tree", gsd_m=0.125)
    assert result.count == len(GRID)
    assert "low_reliability_rgb_crowns" in result.flags
    guessed = counted(tmp_path, image=tmp_path / "t.png", target="tree")
    assert {"size_guessed", "no_scale"} <= set(guessed.flags)


def test_lists_are_left_out_or_cut(tmp_path: Path) -> None:
    chm = chm_file(tmp_path / "chm.tif", trees()[0])
    result = counted(tmp_path, image=chm, target="tree", return_boxes=False)
    assert result.boxes is result.centres is result.scores is None
    scene = chm_file(tmp_path / "forest.tif", make_block(1, 1, "forest").images["chm"])
    few, many = (counted(tmp_path, image=scene, target="tree", score_min=score) for score in (0.9, 0.0))
    assert few.count < many.count
    assert list(many.scores) == sorted(many.scores, reverse=True)
    heights, number = trees(8, (160, 160))
    result = counted(tmp_path, image=chm_file(tmp_path / "chm.tif", heights), target="tree")
    assert result.count == number == 361
    assert len(result.boxes) == 300
    assert "boxes_truncated" in result.flags


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


def test_what_no_detector_finds_is_refused(tmp_path: Path) -> None:
    picture = photo(tmp_path / "a.png", field(discs((100, 100), [(50, 50)], 9)))
    for target in ("wheat_head", "pond", "???"):
        found = fault(tmp_path, image=picture, target=target)
        assert (found.kind, found.argument) == ("backend_unavailable", "target")
    assert counted(tmp_path, image=picture, target="???", mode="blob").mode == "blob"


def test_elevations_and_classes_are_not_counted_as_trees(tmp_path: Path) -> None:
    slope = np.tile(np.linspace(0, 30, 80, dtype=np.float32), (80, 1))
    classes = np.random.default_rng(0).integers(0, 6, (80, 80)).astype(np.int16)
    for name, values in {"dsm": trees()[0] + 510, "slope": slope, "classes": classes}.items():
        found = fault(tmp_path, image=write_raster(tmp_path / f"{name}.tif", values[None], **UTM), target="tree")
        assert (found.kind, found.argument) == ("invalid_argument", "image")
    index = chm_file(tmp_path / "ndvi.tif", np.random.default_rng(0).uniform(-0.2, 0.8, (80, 80)))
    assert "implausible_heights" in counted(tmp_path, image=index, target="tree").flags


def test_impossible_densities_are_flagged_and_windows_give_a_range(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).uniform(2, 12, (80, 80))
    fine = {"crs": "EPSG:32633", "transform": from_origin(500_000, 5_000_000, 0.25, 0.25)}
    result = counted(tmp_path, image=chm_file(tmp_path / "noise.tif", noise, **fine), target="tree", window_a_m=0.1,
                     window_b=0.0)  # fmt: skip
    assert "implausible_density" in result.flags
    scene = make_block(1, 1, "forest")
    forest = counted(tmp_path, image=chm_file(tmp_path / "f.tif", scene.images["chm"]), target="tree")
    assert "implausible_density" not in forest.flags
    low, high = forest.count_interval or (0, 0)
    assert low < len(scene.truth["trees"]) < high


def test_a_count_that_hangs_on_the_crown_width_is_flagged(tmp_path: Path) -> None:
    x, y = np.meshgrid(*2 * [np.arange(96) * 0.5 % 16 - 8])
    for lobe, is_weak in ((0.0, False), (2.0, True)):
        off = (np.abs(x) - lobe / 2**0.5) ** 2 + (np.abs(y) - lobe / 2**0.5) ** 2
        chm = chm_file(tmp_path / f"{lobe}.tif", np.maximum(0, 10 - off / 4))
        assert ("wide_count_interval" in counted(tmp_path, image=chm, target="tree").flags) == is_weak


def test_heights_without_data_or_of_the_wrong_kind(tmp_path: Path) -> None:
    empty = chm_file(tmp_path / "empty.tif", np.full((20, 20), np.nan))
    assert fault(tmp_path, image=empty, target="tree").kind == "nothing_found"
    flat = chm_file(tmp_path / "flat.tif", np.zeros((20, 20)))
    assert counted(tmp_path, image=flat, target="tree").count == 0
    picture = photo(tmp_path / "a.png", noisy((60, 150, 50), (30, 30)))
    found = fault(tmp_path, image=picture, target="tree", mode="crown_chm")
    assert (found.kind, found.argument) == ("missing_metadata", "chm")
    colours = write_raster(tmp_path / "rgb.tif", np.zeros((3, 8, 8), np.uint8), **UTM)
    assert fault(tmp_path, image=picture, target="tree", chm=colours).kind == "invalid_argument"
    heights, number = trees()
    holes = heights.copy()
    holes[:, :32] = -9999
    assert counted(tmp_path, image=chm_file(tmp_path / "h.tif", holes), target="tree").count == number * 0.8


def bright_squares(tile: np.ndarray) -> CountedObjects:
    """A detector that is always right: one box around each white square it sees, cut ones too."""
    count, _, stats, _ = cv2.connectedComponentsWithStats((tile[..., 0] > 128).astype(np.uint8))
    boxes = np.array([[x, y, x + w, y + h] for x, y, w, h, _ in stats[1:count]], np.float64).reshape(-1, 4)
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
    width: int, height: int, places: list[tuple[int, int, int]], radius: float = 6.0, level: float = 255
) -> np.ndarray:
    """Soft spots on black: x, y and the channel (0 red, 1 green) of each."""
    y, x = np.mgrid[:height, :width]
    picture = np.zeros((height, width, 3), np.float64)
    for cx, cy, channel in places:
        picture[..., channel] += level * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * radius**2))
    return np.clip(picture, 0, 255).astype(np.uint8)


def test_kinds_scales_and_intervals(tmp_path: Path) -> None:
    net = read_fruit_net(write_detector(tmp_path))
    picture = spots(200, 160, [(40, 50, 0), (120, 90, 1)])
    apples, scales, others = find_fruit(net, picture, ("apple",), TYPICAL_PX["apple"])
    assert scales == (1.0,)
    assert others == pytest.approx(0.5, abs=0.05)
    assert apples.centres == pytest.approx(np.array([[40, 50]]), abs=3)
    assert apples.boxes[0, 2] - apples.boxes[0, 0] == pytest.approx(2 * HALF_SIDE_PX, abs=0.5)
    both, _, others = find_fruit(net, picture, ("apple", "pear"), 32.0)
    assert sorted(both.classes.tolist()) == [0, 1]
    assert others == 0
    picture = spots(600, 400, [(300, 200, 0)], radius=18)
    found, scales, _ = find_fruit(net, picture, ("apple",), 3 * TYPICAL_PX["apple"])
    assert scales == (pytest.approx(1 / 3),)
    assert found.centres == pytest.approx(np.array([[300, 200]]), abs=8)
    assert find_fruit(net, picture, ("apple",), None)[1] == (ORCHARD_SCALE,)
    small, large = (300, 300, 0), (1500, 1000, 0)
    picture = np.maximum(spots(2400, 1600, [small], 8), spots(2400, 1600, [large], 40))
    found, scales, _ = find_fruit(net, picture, ("apple",), None)
    assert scales == (ORCHARD_SCALE, ORCHARD_SCALE / 2)
    for x, y, _ in (small, large):
        assert np.hypot(*(found.centres - (x, y)).T).min() < 20
    assert net.count_interval("apple", 98, unsure=8) == (95, 101)
    assert net.count_interval("apple", 98, unsure=9) == (95, 101), "fruits are whole"
    assert net.count_interval("apple", 1, unsure=8) == (0, 4)
    assert net.count_interval("cherry", 98, unsure=8) is None


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
        description = write_detector(tmp_path / "again", sha256=hashlib.sha256(b"no graph").hexdigest())
        (tmp_path / "again/fruits.onnx").write_bytes(b"no graph")
    elif how == "no json":
        description.write_text("{")
    else:
        description = write_detector(tmp_path, classes=["apple", "grape"])
    assert tool_error(read_fruit_net, description).kind == "backend_unavailable"
