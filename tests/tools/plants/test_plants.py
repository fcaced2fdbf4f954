"""Plants of known form: where one ends, how large it is, how many leaves it shows, whichever way it lies."""

import math

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.tools.plants.measuring import Plant, find_discs, find_plants


def rosette(leaves: int, *, size: int = 240, length: float = 90, width: float = 30, turn: float = 0.3) -> np.ndarray:
    """A star of ellipses on stalks."""
    canvas = np.zeros((size, size), np.uint8)
    middle = size / 2
    for number in range(leaves):
        angle = turn + 2 * math.pi * number / leaves
        way = np.array([math.cos(angle), math.sin(angle)])
        centre = middle + 0.68 * length * way
        cv2.line(canvas, (round(middle), round(middle)), tuple(np.round(centre).astype(int).tolist()), 1, 5)
        axes = (round(0.32 * length), round(width / 2))
        cv2.ellipse(canvas, tuple(np.round(centre).astype(int).tolist()), axes, math.degrees(angle), 0, 360, 1, -1)
    return canvas > 0


def only(mask: np.ndarray, *, side_view: bool = False) -> Plant:
    found = find_plants(mask, side_view=side_view)
    assert found.count == 1
    return found.plants[0]


def test_area_and_hull_of_known_forms():
    mask = np.zeros((60, 80), bool)
    mask[10:40, 20:60] = True
    plant = only(mask)
    assert (plant.box, plant.area_px, plant.hull_area_px, plant.solidity) == ((20, 10, 60, 40), 1200, 1200, 1)
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
    assert (second.area_px, second.hull_area_px) == (first.area_px, pytest.approx(first.hull_area_px, abs=0.01))
    assert second.skeleton_length_px == pytest.approx(first.skeleton_length_px, rel=0.05)
    assert len(second.tips) == len(first.tips)


def discs_in(pixels: np.ndarray, plants: np.ndarray | None = None):
    return find_discs(pixels, np.zeros(pixels.shape[:2], np.bool_) if plants is None else plants)


def picture_of_discs(*discs: tuple[int, int, int], size: tuple[int, int] = (300, 400)) -> np.ndarray:
    fine = np.zeros((size[0] * 4, size[1] * 4), np.uint8)
    for x, y, radius in discs:
        cv2.circle(fine, (4 * x, 4 * y), 4 * radius, 255, -1)
    share = cv2.resize(fine.astype(np.float32) / 255, size[::-1], interpolation=cv2.INTER_AREA)[..., None]
    noise = np.random.default_rng(0).normal(0, 4, (*size, 3))
    return np.clip(share * 220 + (1 - share) * 90 + noise, 0, 255).astype(np.uint8)


class TestRoundMarkers:
    @pytest.mark.parametrize("radius", [10, 20, 60])
    def test_a_disc_is_found_to_half_a_pixel(self, radius: int):
        (disc,) = discs_in(picture_of_discs((150, 120, radius)))
        assert (disc.x, disc.y) == pytest.approx((150, 120), abs=1)
        assert disc.radius == pytest.approx(radius, abs=0.6)

    def test_what_is_not_round_or_not_whole_or_a_leaf_is_no_marker(self):
        square = picture_of_discs()
        square[100:160, 100:160] = 230
        square[200:240, 50:130] = 230
        assert discs_in(square) == []
        hexagon = picture_of_discs()
        corners = [(200 + 50 * math.cos(k * math.pi / 3), 150 + 50 * math.sin(k * math.pi / 3)) for k in range(6)]
        cv2.fillPoly(hexagon, [np.round(corners).astype(np.int32)], (230, 230, 230))
        assert discs_in(hexagon) == []
        pixels = picture_of_discs((150, 120, 30))
        plants = np.zeros(pixels.shape[:2], bool)
        plants[80:160, 110:190] = True
        assert discs_in(pixels, plants) == []
        assert discs_in(picture_of_discs((5, 120, 30))) == []

    def test_two_discs_are_two(self):
        assert [round(disc.radius) for disc in discs_in(picture_of_discs((80, 80, 30), (300, 200, 15)))] == [30, 15]
