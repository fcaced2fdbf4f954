"""Marks drawn into pictures: where they belong, seen on any background, and never a crash for an odd one."""

import numpy as np

from agrotools.vision.overlay import (
    LONGEST_SIDE,
    VERMILLION,
    Colour,
    Mark,
    box_points,
    circle_points,
    draw_marks,
)


def plain(width: int, height: int, value: int = 128) -> np.ndarray:
    return np.full((height, width, 3), value, np.uint8)


def where(picture, colour: Colour, height: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of that colour in the picture above the legend."""
    return np.nonzero((np.asarray(picture)[:height] == colour).all(axis=2))


def extent(picture, colour: Colour, height: int) -> tuple[int, int, int, int]:
    rows, columns = where(picture, colour, height)
    return columns.min(), rows.min(), columns.max() + 1, rows.max() + 1


def test_a_large_picture_is_shrunk_and_its_marks_with_it():
    height = LONGEST_SIDE
    drawn = draw_marks(
        plain(4 * LONGEST_SIDE, 400),
        [Mark(VERMILLION, box_points((800, 40, 1600, 200)))],
        gsd_m=0.01,
    )
    assert drawn.shape[1] == LONGEST_SIDE
    found = extent(drawn, VERMILLION, height // 10)
    assert np.abs(np.subtract(found, (200, 10, 400, 50))).max() <= 3


def test_what_lies_outside_the_region_is_dimmed_and_what_is_inside_is_not():
    drawn = draw_marks(plain(100, 80), [], region=(10, 20, 60, 70))
    assert (drawn[20:70, 10:60] == 128).all()
    outside = np.ones((80, 100), bool)
    outside[20:70, 10:60] = False
    assert (drawn[:80, :100][outside] < 80).all()


def test_labels_stay_inside_the_picture():
    box = (190.0, 0.0, 200.0, 10.0)
    without = draw_marks(plain(200, 100), [Mark(VERMILLION, box_points(box))]).astype(int)
    drawn = draw_marks(plain(200, 100), [Mark(VERMILLION, box_points(box), "a label")]).astype(int)
    rows, columns = np.nonzero((drawn != without).any(axis=2))
    assert len(rows)
    assert columns.max() >= 190
    assert columns.min() < 180, "it is pushed to the left, not cut"
    assert rows.max() < 30


def test_many_labels_would_hide_the_picture_and_are_left_out():
    few = [Mark(VERMILLION, circle_points(50, 50, 2), "MM")] * 150
    many = [*few, few[0]]
    assert (draw_marks(plain(200, 100), few)[:100] > 200).all(axis=2).any()
    assert not (draw_marks(plain(200, 100), many)[:100] > 200).all(axis=2).any()
