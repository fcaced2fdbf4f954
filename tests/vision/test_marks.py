"""Marks drawn into pictures: where they belong, seen on any background, and never a crash for an odd one."""

import numpy as np

from agrotools.vision.overlay import LONGEST_SIDE, SKY_BLUE, VERMILLION, Colour, Mark, draw_marks


def plain(width: int, height: int, value: int = 128) -> np.ndarray:
    return np.full((height, width, 3), value, np.uint8)


def where(picture, colour: Colour, height: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of that colour in the picture above the legend."""
    return np.nonzero((np.asarray(picture)[:height] == colour).all(axis=2))


def extent(picture, colour: Colour, height: int) -> tuple[int, int, int, int]:
    rows, columns = where(picture, colour, height)
    return columns.min(), rows.min(), columns.max() + 1, rows.max() + 1


def test_a_box_lies_on_its_own_edges():
    drawn = draw_marks(plain(200, 100), [Mark(VERMILLION, box=(40, 20, 120, 70))])
    assert extent(drawn, VERMILLION, 100) == (40, 20, 120, 70)
    assert (drawn[45, 80] == 128).all(), "its inside is not touched"


def test_a_circle_lies_around_its_centre():
    drawn = draw_marks(plain(200, 100), [Mark(SKY_BLUE, circle=(80, 50, 30))])
    assert np.abs(np.subtract(extent(drawn, SKY_BLUE, 100), (50, 20, 110, 80))).max() <= 2


def test_a_large_picture_is_shrunk_and_its_marks_with_it():
    height = LONGEST_SIDE
    drawn = draw_marks(plain(4 * LONGEST_SIDE, 400), [Mark(VERMILLION, box=(800, 40, 1600, 200))], gsd_m=0.01)
    assert drawn.shape[1] == LONGEST_SIDE
    found = extent(drawn, VERMILLION, height // 10)
    assert np.abs(np.subtract(found, (200, 10, 400, 50))).max() <= 1


def test_what_lies_outside_the_region_is_dimmed_and_what_is_inside_is_not():
    drawn = draw_marks(plain(100, 80), [], region=(10, 20, 60, 70))
    assert (drawn[20:70, 10:60] == 128).all()
    outside = np.ones((80, 100), bool)
    outside[20:70, 10:60] = False
    assert (drawn[:80, :100][outside] < 80).all()


def test_labels_stay_inside_the_picture():
    box = (190.0, 0.0, 200.0, 10.0)
    without = draw_marks(plain(200, 100), [Mark(VERMILLION, box=box)]).astype(int)
    drawn = draw_marks(plain(200, 100), [Mark(VERMILLION, "a label", box=box)]).astype(int)
    rows, columns = np.nonzero((drawn != without).any(axis=2))
    assert len(rows)
    assert columns.max() >= 190
    assert columns.min() < 180, "it is pushed to the left, not cut"
    assert rows.max() < 30


def test_many_labels_would_hide_the_picture_and_are_left_out():
    few = [Mark(VERMILLION, "MM", circle=(50, 50, 2))] * 150
    many = [*few, few[0]]
    assert (draw_marks(plain(200, 100), few)[:100] > 200).all(axis=2).any()
    assert not (draw_marks(plain(200, 100), many)[:100] > 200).all(axis=2).any()


def test_legend_and_scale_bar_are_below_the_picture():
    bare = draw_marks(plain(300, 100), [])
    full = draw_marks(plain(300, 100), [], legend=[(VERMILLION, "apples")], gsd_m=0.01, title="3 apples")
    assert (full[:100] == 128).all()
    assert len(full) >= len(bare) + 3 * 12
    assert len(where(full, VERMILLION, len(full))[0]) > 50


def test_text_is_not_cut_below_a_narrow_picture():
    title, entry = "12 plants of 3.4 cm², 2 of them touch the edge", "a plant whose height is measured"
    narrow = np.asarray(draw_marks(plain(60, 40), [], legend=[(VERMILLION, entry)], title=title))
    wide = np.asarray(draw_marks(plain(500, 40), [], legend=[(VERMILLION, entry)], title=title))
    assert (narrow[40:] < 100).all(axis=2).sum() == (wide[40:] < 100).all(axis=2).sum()
    assert (narrow[:40, :60] == 128).all()
