"""Counting things made in code, each detector on its own ground, and all that may be wrong with a call."""

import csv
from functools import partial
from pathlib import Path
from typing import Any

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
from agrotools.tools.counting.methods import read_fruit_net
from agrotools.tools.counting.result import ObjectCount
from agrotools.tools.workspace import CallContext, artifacts_in, call_context
from agrotools.vision import strangeness, vegetation
from agrotools.vision.strangeness import FLAG, Strangeness
from support.picture_files import discs, field, noisy, write_raster
from support.tiny_detector import write_detector
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
    y, x = np.mgrid[:200, :300]
    places = [(60, 60, 0, 195), (150, 120, 0, 195), (240, 60, 0, 150), (100, 150, 1, 195)]
    pixels = np.zeros((200, 300, 3), np.float64)
    for cx, cy, channel, bright in places:
        pixels[..., channel] += bright * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / 72)
    image = photo(tmp_path / "f.png", pixels.astype(np.uint8))
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
    heights, number = trees()
    chm = chm_file(tmp_path / "chm.tif", heights)
    result = counted(tmp_path, image=chm, target="tree", return_boxes=False)
    assert result.boxes is result.centres is result.scores is None
    assert result.count == number
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


@pytest.mark.parametrize("target", ["wheat_head", "building", "pond", "cow", "???", "strange thing"])
def test_what_no_detector_finds_is_refused(tmp_path: Path, target: str) -> None:
    picture = photo(tmp_path / "a.png", field(discs((100, 100), [(50, 50)], 9)))
    found = fault(tmp_path, image=picture, target=target)
    assert (found.kind, found.argument) == ("backend_unavailable", "target")
    assert counted(tmp_path, image=picture, target=target, mode="blob").mode == "blob"


def test_elevations_and_classes_are_not_counted_as_trees(tmp_path: Path) -> None:
    heights, _ = trees()
    found = fault(tmp_path, image=chm_file(tmp_path / "dsm.tif", heights + 510), target="tree")
    assert (found.kind, found.argument) == ("invalid_argument", "image")
    slope = np.tile(np.linspace(0, 30, 80, dtype=np.float32), (80, 1))
    found = fault(tmp_path, image=chm_file(tmp_path / "slope.tif", slope), target="tree")
    assert found.kind == "invalid_argument"
    classes = np.random.default_rng(0).integers(0, 6, (1, 80, 80)).astype(np.int16)
    found = fault(tmp_path, image=write_raster(tmp_path / "classes.tif", classes, **UTM), target="tree")
    assert found.kind == "invalid_argument"
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
