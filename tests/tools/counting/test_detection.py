"""Boxes, heat maps and tiles of detection, without any trained net."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agrotools.tools.counting.methods import detect_in_tiles
from agrotools.tools.counting.result import CountedObjects, objects_in_boxes


def bright_squares(tile: np.ndarray) -> CountedObjects:
    """A detector that is always right: one box around each white square it sees, cut ones too."""
    import cv2

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
