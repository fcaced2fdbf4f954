"""Borders of parcels: what they enclose can be told from the picture, and does not follow from how they are chosen."""

from collections import Counter

import numpy as np
import pytest
from field_parts.parcels import (
    found_first,
    inside_of,
    is_outlined,
    note_of,
    only_inside,
    parcel_of,
    plot_of,
    points_inside,
)

from agrotools.core import SampleFile

_SIDE = 400
_FEWEST = 4


def _scattered(seed, number=30):
    rng = np.random.default_rng(seed)
    return [(float(x), float(y)) for x, y in rng.uniform(0, _SIDE, (number, 2))]


@pytest.mark.parametrize("seed", range(20))
def test_a_border_lies_in_the_picture_and_no_point_lies_near_it(seed):
    points = _scattered(seed)
    parcel = parcel_of(f"picture {seed}", _SIDE, _SIDE, points, _FEWEST)
    if parcel is None:
        return
    x0, y0, x1, y1 = parcel[1]
    assert 0 < x0 < x1 < _SIDE
    assert 0 < y0 < y1 < _SIDE
    inside = points_inside(points, parcel[1])
    wider = points_inside(points, (x0 - 2, y0 - 2, x1 + 2, y1 + 2))
    narrower = points_inside(points, (x0 + 2, y0 + 2, x1 - 2, y1 - 2))
    assert len(inside) >= _FEWEST
    assert inside == wider == narrower


def test_the_number_inside_a_border_varies():
    numbers: Counter[int] = Counter()
    for seed in range(60):
        points = _scattered(seed)
        parcel = parcel_of(f"picture {seed}", _SIDE, _SIDE, points, _FEWEST)
        if parcel is not None:
            numbers[len(points_inside(points, parcel[1]))] += 1
    assert len(numbers) >= 6
    assert max(numbers.values()) <= sum(numbers.values()) / 3


def test_without_enough_points_there_is_no_border():
    assert parcel_of("picture", _SIDE, _SIDE, [(200.0, 200.0)], _FEWEST) is None


def test_about_half_of_the_pictures_have_a_border():
    outlined = sum(is_outlined(f"picture {number}") for number in range(200))
    assert 70 <= outlined <= 130


def test_a_border_is_found_first_and_limits_the_measurement():
    file = SampleFile(name="image_1.jpg", path="1.jpg", kind="image")
    parcel = plot_of("picture", _SIDE, _SIDE, ("blue",))
    (call,) = found_first(file, parcel)
    assert call.tool == "extract_marked_region"
    assert call.arguments == {"image": "image_1.jpg", "mark_color": "blue"}
    assert call.truth is not None
    assert call.truth["crop_box"] == list(inside_of(parcel[1]))
    assert "region" in only_inside(parcel)
    assert "blue" in note_of(parcel, "the plot")


def test_without_a_border_the_whole_picture_counts():
    file = SampleFile(name="image_1.jpg", path="1.jpg", kind="image")
    assert found_first(file, None) == ()
    assert only_inside(None) == {}
    assert note_of(None, "the plot") != note_of(("red", (1, 1, 2, 2)), "the plot")
