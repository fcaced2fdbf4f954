"""Measures of change on arrays of known content."""

import numpy as np
import pytest

from agrotools.tools.change.pairs import shift_back, shift_between
from agrotools.tools.change.result import CHANGED, GAINED, SAME, draw_change, without_specks
from agrotools.vision.overlay import Layer


@pytest.mark.parametrize(("dx", "dy"), [(0, 0), (3, 0), (-5, 7), (11, -2)])
def test_shifts_are_measured_and_undone(dx: int, dy: int) -> None:
    import cv2

    noise = np.random.default_rng(0).normal(0, 1, (256, 300)).astype(np.float32)
    large = cv2.GaussianBlur(noise, (0, 0), 3) * 400 + 128
    whole = np.repeat(np.clip(large, 0, 255).astype(np.uint8)[..., None], 3, axis=2)
    first = whole[20:220, 20:260]
    second = whole[20 - dy : 220 - dy, 20 - dx : 260 - dx]
    valid = np.ones(first.shape[:2], bool)
    shift = shift_between(first, second, valid)
    assert shift.is_clear
    assert (shift.dx, shift.dy) == pytest.approx((dx, dy), abs=0.15)
    back, there = shift_back(second, valid, shift)
    assert np.array_equal(back[there], first[there])
    assert there.sum() == (200 - abs(dy)) * (240 - abs(dx))


def test_pictures_of_other_places_have_no_shift() -> None:
    draw = np.random.default_rng(0)
    first, second = (draw.integers(0, 255, (128, 128, 3)).astype(np.uint8) for _ in range(2))
    shift = shift_between(first, second, np.ones((128, 128), bool))
    assert (shift.dx, shift.dy, shift.is_clear) == (0, 0, False)


def test_specks_are_taken_out_by_kind() -> None:
    changes = np.zeros((10, 10), np.uint8)
    changes[0, :3] = GAINED
    changes[1, :3] = CHANGED
    changes[5:8, 5:8] = GAINED
    cleaned = without_specks(changes, 4)
    assert (cleaned[:2] == SAME).all()
    assert np.count_nonzero(cleaned == GAINED) == 9
    assert without_specks(changes, 1) is changes


@pytest.mark.parametrize("shape", [(1, 1), (3, 400), (400, 3), (2000, 1500)])
def test_sheets_of_any_shape(shape: tuple[int, int]) -> None:
    grey = np.full((*shape, 3), 90, np.uint8)
    sheet = draw_change(grey, grey, np.full(shape, GAINED, np.uint8), [Layer(GAINED, (230, 159, 0), "gained")], gsd_m=1)
    assert 1 <= max(sheet.size) < 3000
