"""The phenotype tool on drawn plants of known size, on bad input, and on photographs where they are at hand."""

import math
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from agrotools.calling import get_tool
from agrotools.calling.workspace import artifacts_in
from agrotools_build.scenes.pot_plants import make_pot
from agrotools_tools.plants.measure import Plant, find_discs, find_plants
from agrotools_tools.plants.tool import WeedPhenotype, growth_stage
from support.tool_errors import tool_error

SOIL, GREEN = (120, 95, 75), (60, 150, 50)


def measured(image: Path, **arguments: Any) -> WeedPhenotype:
    with artifacts_in(image.parent / "made"):
        return get_tool("measure_weed_phenotype")(image, **arguments)


fault = partial(tool_error, measured)


def saved(folder: Path, pixels: np.ndarray, name: str = "weed.png", **more: Any) -> Path:
    Image.fromarray(pixels).save(folder / name, **more)
    return folder / name


def blocks(
    *boxes: tuple[int, int, int, int], size: tuple[int, int] = (200, 300), noise: int = 6
) -> np.ndarray:
    """Plants that are rectangles x0, y0, x1, y1 on soil."""
    pixels = np.full((*size, 3), SOIL, np.int16)
    for x0, y0, x1, y1 in boxes:
        pixels[y0:y1, x0:x1] = GREEN
    pixels += np.random.default_rng(0).integers(-noise, noise + 1, pixels.shape, dtype=np.int16)
    return np.clip(pixels, 0, 255).astype(np.uint8)


def test_a_block_of_known_size(tmp_path: Path):
    result = measured(
        saved(tmp_path, blocks((100, 60, 180, 160))), scale_cm_px=0.1, ground_y_px=170
    )
    (plant,) = result.plants
    assert (plant.area_cm2, plant.height_cm) == (
        pytest.approx(80.0, rel=0.03),
        pytest.approx(11.0, abs=0.15),
    )
    assert plant.width_cm == pytest.approx(8.0, abs=0.25)
    assert plant.solidity > 0.97
    assert plant.leaf_count_est is None, "a compact outline hides leaves"
    assert plant.mean_exg == pytest.approx((2 * 150 - 60 - 50) / 260, abs=0.05)
    assert result.scale_cm_px == 0.1
    assert "no_scale" not in result.flags
    assert (np.asarray(Image.open(tmp_path / "made" / result.mask.name)) > 0).sum() == plant.area_px


def test_overexposed_plants_are_flagged(tmp_path: Path):
    image = blocks((60, 40, 120, 160))
    assert "vegetation_uncertain" not in measured(saved(tmp_path, image)).flags
    image[:60] = (255, 235, 190)
    assert "vegetation_uncertain" in measured(saved(tmp_path, image)).flags


def test_views_scales_and_ground_lines(tmp_path: Path):
    result = measured(saved(tmp_path, blocks((100, 60, 180, 160))))
    (plant,) = result.plants
    assert "no_scale" in result.flags
    assert "ground_line_from_plant" in result.flags
    in_cm = (
        plant.area_cm2,
        plant.height_cm,
        plant.width_cm,
        plant.convex_hull_cm2,
        plant.skeleton_length_cm,
    )
    assert in_cm == (None,) * 5
    assert plant.height_px == pytest.approx(100, abs=3)
    (plant,) = measured(
        saved(tmp_path, blocks((100, 60, 180, 160))), view="top", scale_cm_px=0.1
    ).plants
    assert (plant.height_px, plant.height_cm) == (None, None)
    assert plant.width_cm == pytest.approx(8, abs=0.25)
    image = saved(tmp_path, blocks((100, 60, 180, 160)))
    assert measured(image, ground_y_px=110).plants[0].box[3] == 110


@pytest.mark.parametrize(
    ("seed", "species"), [(1, "velvetleaf"), (2, "barnyardgrass"), (3, "redroot pigweed")]
)
def test_drawn_plants(tmp_path: Path, seed: int, species: str):
    scene = make_pot(seed, 0, species, 24.0)
    truth: dict[str, Any] = scene.truth
    image = saved(tmp_path, scene.images["rgb"])
    result = measured(image, scale_marker={"type": "circle", "size_cm": truth["disc_cm"]})
    assert result.scale_cm_px == pytest.approx(truth["cm_px"], rel=0.03)
    largest = result.plants[0]
    assert largest.area_cm2 == pytest.approx(truth["area_cm2"], rel=0.07)
    assert largest.width_cm == pytest.approx(truth["width_cm"], rel=0.05)
    assert largest.height_cm == pytest.approx(truth["height_cm"], rel=0.03)


class TestScale:
    @pytest.mark.parametrize("kind", ["ruler", "color_card", "circle"])
    def test_a_marker_that_cannot_be_found_is_said(self, tmp_path: Path, kind: str):
        image = saved(tmp_path, blocks((100, 60, 180, 160)))
        error = fault(image, scale_marker={"type": kind, "size_cm": 5})
        assert (error.kind, error.argument) == ("missing_metadata", "scale_marker")

    def test_a_sidecar_says_it_and_a_caller_knows_better(self, tmp_path: Path):
        image = saved(tmp_path, blocks((100, 60, 180, 160)))
        (tmp_path / "weed.png.meta.json").write_text('{"gsd_m": 0.002}')
        assert measured(image).scale_cm_px == pytest.approx(0.2)
        result = measured(image, scale_cm_px=0.1)
        assert result.scale_cm_px == 0.1
        assert "gsd_differs_from_file" in result.flags


class TestBadPictures:
    def test_regions(self, tmp_path: Path):
        image = saved(tmp_path, blocks((20, 60, 80, 160), (180, 60, 260, 160)))
        assert measured(image).n_plants == 2
        inside = measured(image, region=[150, 0, 300, 200])
        assert (inside.n_plants, inside.plants[0].box[0]) == (1, pytest.approx(180, abs=3))
        assert "plant_cut_by_edge" in measured(image, region=[150, 0, 200, 200]).flags
        assert fault(image, region=[400, 0, 500, 100]).kind == "region_empty"
        assert fault(image, region=[100, 0, 150, 200]).kind == "nothing_found"


def test_many_plants_are_counted_and_the_largest_listed(tmp_path: Path):
    boxes = [
        (20 * x + 4, 20 * y + 4, 20 * x + 13, 20 * y + 13) for x in range(15) for y in range(15)
    ]
    result = measured(saved(tmp_path, blocks(*boxes, size=(300, 300))), view="top")
    assert (result.n_plants, len(result.plants)) == (225, 200)
    assert "not_all_plants_listed" in result.flags


@pytest.mark.parametrize(
    ("leaves", "bbch"), [(1, 10), (2, 10), (3, 11), (8, 16), (9, 17), (30, 19)]
)
def test_growth_stages(leaves: int, bbch: int):
    stage = growth_stage(leaves)
    assert (stage.bbch, stage.label == "seedling", stage.week_est) == (bbch, bbch == 10, None)


def rosette(
    leaves: int, *, size: int = 240, length: float = 90, width: float = 30, turn: float = 0.3
) -> np.ndarray:
    """A star of ellipses on stalks."""
    canvas = np.zeros((size, size), np.uint8)
    middle = size / 2
    for number in range(leaves):
        angle = turn + 2 * math.pi * number / leaves
        way = np.array([math.cos(angle), math.sin(angle)])
        centre = middle + 0.68 * length * way
        cv2.line(
            canvas,
            (round(middle), round(middle)),
            tuple(np.round(centre).astype(int).tolist()),
            1,
            5,
        )
        axes = (round(0.32 * length), round(width / 2))
        cv2.ellipse(
            canvas,
            tuple(np.round(centre).astype(int).tolist()),
            axes,
            math.degrees(angle),
            0,
            360,
            1,
            -1,
        )
    return canvas > 0


def only(mask: np.ndarray, *, side_view: bool = False) -> Plant:
    found = find_plants(mask, side_view=side_view)
    assert found.count == 1
    return found.plants[0]


def test_area_and_hull_of_known_forms():
    mask = np.zeros((60, 80), bool)
    mask[10:40, 20:60] = True
    plant = only(mask)
    assert (plant.box, plant.area_px, plant.hull_area_px, plant.solidity) == (
        (20, 10, 60, 40),
        1200,
        1200,
        1,
    )
    assert set(plant.hull) == {(20, 10), (60, 10), (60, 40), (20, 40)}
    mask = np.zeros((100, 100), bool)
    mask[40:60, 10:90] = mask[10:90, 40:60] = True
    plant = only(mask)
    assert (plant.hull_area_px, len(plant.tips)) == (80 * 80 - 4 * 30 * 30 / 2, 4)


@pytest.mark.parametrize("leaves", [3, 4, 5, 6, 7])
@pytest.mark.parametrize("size", [60, 120, 240, 1000])
def test_leaves_of_a_rosette_at_any_size(leaves: int, size: int):
    mask = rosette(leaves, size=size, length=0.4 * size, width=0.11 * size)
    assert len(only(mask).tips) == leaves


def test_bumps_and_stems_are_no_leaves():
    disc = np.zeros((200, 200), np.uint8)
    cv2.circle(disc, (100, 100), 60, 1, -1)
    cv2.circle(disc, (160, 100), 6, 1, -1)
    assert len(only(disc > 0).tips) <= 2
    mask = np.zeros((200, 100), bool)
    mask[20:180, 48:52] = True
    for y in (60, 110):
        mask[y : y + 4, 10:90] = True
    assert len(only(mask, side_view=True).tips) == 5
    assert len(only(mask).tips) == 6


def test_wide_gaps_divide_plants_and_the_largest_comes_first():
    mask = np.zeros((300, 300), bool)
    mask[100:150, 100:150] = mask[152:200, 100:150] = True
    assert find_plants(mask, side_view=False).count == 1
    mask[150:170] = False
    assert find_plants(mask, side_view=False).count == 2
    mask = np.zeros((200, 300), bool)
    mask[10:60, 10:60] = mask[100:180, 100:200] = True
    mask[10, 290] = True
    found = find_plants(mask, side_view=False)
    assert [plant.area_px for plant in found.plants] == [8000, 2500]
    assert (found.count, found.left_out_px) == (2, 1)


@given(turns=st.integers(0, 3), flip=st.booleans(), leaves=st.integers(3, 6), turn=st.floats(0, 6))
def test_turning_and_flipping_changes_nothing(turns: int, flip: bool, leaves: int, turn: float):
    mask = rosette(leaves, turn=turn)
    moved = np.rot90(mask[:, ::-1] if flip else mask, turns)
    first, second = only(mask), only(np.ascontiguousarray(moved))
    assert (second.area_px, second.hull_area_px) == (
        first.area_px,
        pytest.approx(first.hull_area_px, abs=0.01),
    )
    assert second.skeleton_length_px == pytest.approx(first.skeleton_length_px, rel=0.05)
    assert len(second.tips) == len(first.tips)


def discs_in(pixels: np.ndarray, plants: np.ndarray | None = None):
    return find_discs(pixels, np.zeros(pixels.shape[:2], np.bool_) if plants is None else plants)


def picture_of_discs(
    *discs: tuple[int, int, int], size: tuple[int, int] = (300, 400)
) -> np.ndarray:
    fine = np.zeros((size[0] * 4, size[1] * 4), np.uint8)
    for x, y, radius in discs:
        cv2.circle(fine, (4 * x, 4 * y), 4 * radius, 255, -1)
    share = cv2.resize(fine.astype(np.float32) / 255, size[::-1], interpolation=cv2.INTER_AREA)[
        ..., None
    ]
    noise = np.random.default_rng(0).normal(0, 4, (*size, 3))
    return np.clip(share * 220 + (1 - share) * 90 + noise, 0, 255).astype(np.uint8)


class TestRoundMarkers:
    def test_what_is_not_round_or_not_whole_or_a_leaf_is_no_marker(self):
        square = picture_of_discs()
        square[100:160, 100:160] = 230
        square[200:240, 50:130] = 230
        assert discs_in(square) == []
        hexagon = picture_of_discs()
        corners = [
            (200 + 50 * math.cos(k * math.pi / 3), 150 + 50 * math.sin(k * math.pi / 3))
            for k in range(6)
        ]
        cv2.fillPoly(hexagon, [np.round(corners).astype(np.int32)], (230, 230, 230))
        assert discs_in(hexagon) == []
        pixels = picture_of_discs((150, 120, 30))
        plants = np.zeros(pixels.shape[:2], bool)
        plants[80:160, 110:190] = True
        assert discs_in(pixels, plants) == []
        assert discs_in(picture_of_discs((5, 120, 30))) == []
