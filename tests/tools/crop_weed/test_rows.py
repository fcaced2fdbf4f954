import cv2
import numpy as np
import pytest

from agrotools.tools.crop_weed.separation import find_rows
from support.picture_files import planted_rows


def turned(mask: np.ndarray, angle: float) -> np.ndarray:
    height, width = mask.shape
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), angle, 1.0)
    return cv2.warpAffine(mask.astype(np.uint8), matrix, (width, height), flags=cv2.INTER_NEAREST) > 0


@pytest.mark.parametrize("angle", [-61.3, 17.0])
def test_direction_is_counter_clockwise_from_the_x_axis(angle: float) -> None:
    crop, weeds = planted_rows(60, (560, 560))
    both = turned(crop | weeds, angle)[120:440, 120:440]
    rows = find_rows(both)
    expected = 90 + angle
    assert abs((rows.angle_deg - expected + 90) % 180 - 90) < 2
    assert rows.spacing_px == pytest.approx(60, rel=0.04)


@pytest.mark.parametrize("seed", range(6))
def test_plants_that_stand_anywhere_are_no_rows(seed: int) -> None:
    draw = np.random.default_rng(seed)
    mask = np.zeros((400, 500), np.bool_)
    y, x = np.mgrid[0:400, 0:500]
    for _ in range(int(draw.integers(5, 60))):
        mask |= np.hypot(x - draw.uniform(0, 500), y - draw.uniform(0, 400)) < draw.uniform(4, 20)
    assert find_rows(mask) is None
    assert find_rows(np.zeros((200, 200), np.bool_)) is find_rows(np.ones((3, 900), np.bool_)) is None
