"""Boxes, heat maps and tiles of detection, without any trained net."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.tools.counting.fruit_net import boxes_of_maps, detect_in_tiles, drop_duplicates, overlaps, tiles_of
from agrotools.tools.counting.result import CountedObjects, join_objects, objects_in_boxes


def of(*rows: tuple[float, float, float, float, float]) -> CountedObjects:
    table = np.array(rows, np.float64).reshape(-1, 5)
    return join_objects([objects_in_boxes(table[:, :4], table[:, 4], np.zeros(len(table), np.int64))])


@given(st.lists(st.tuples(*[st.integers(0, 60)] * 2, *[st.integers(1, 30)] * 2, st.integers(0, 100)), max_size=25))
def test_what_stays_does_not_overlap_and_explains_what_went(rows: list[tuple[int, int, int, int, int]]) -> None:
    every = of(*((x, y, x + w, y + h, s / 100) for x, y, w, h, s in rows))
    kept = drop_duplicates(every)
    table = overlaps(kept.boxes, kept.boxes) - np.eye(len(kept))
    assert (table <= 0.5 + 1e-9).all()
    for box, score in zip(every.boxes, every.scores, strict=True):
        explained = overlaps(box[None], kept.boxes)[0]
        assert ((explained > 0.5) & (kept.scores >= score)).any() or (explained >= 1 - 1e-9).any()


def test_a_peak_of_heat_becomes_a_box() -> None:
    heat, distances = np.zeros((2, 8, 8), np.float32), np.zeros((4, 8, 8), np.float32)
    heat[1, 3, 5], distances[:, 3, 5] = 0.8, (6, 4, 10, 8)
    heat[0, 6, 1] = 0.05
    found = boxes_of_maps(heat, distances, 0.1)
    assert found.boxes.tolist() == [[16.0, 10.0, 32.0, 22.0]]
    assert found.scores == pytest.approx([0.8])
    assert found.classes.tolist() == [1]
    assert len(boxes_of_maps(np.zeros((2, 8, 8), np.float32), distances, 0.1)) == 0


@given(st.integers(1, 900), st.integers(1, 900), st.integers(20, 300), st.floats(0, 0.9))
def test_cores_tile_the_picture(width: int, height: int, side: int, share: float) -> None:
    overlap = int(share * side)
    covered = np.zeros((height, width), np.int32)
    for (x0, y0, x1, y1), (a0, b0, a1, b1) in tiles_of(width, height, side, overlap):
        assert 0 <= x0 <= a0 <= a1 <= x1 <= width
        assert 0 <= y0 <= b0 <= b1 <= y1 <= height
        assert x1 - x0 <= side
        assert y1 - y0 <= side
        # Half the overlap lies between a core and each edge of its tile that is not the picture's.
        assert x0 == 0 or a0 - x0 >= overlap // 2
        assert x1 == width or x1 - a1 >= overlap // 2
        covered[b0:b1, a0:a1] += 1
    assert (covered == 1).all()


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
