"""The order in which lines are read, on pages laid out by hand."""

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from agrotools.tools.general.text import reading_order

edges = st.floats(0, 1000, allow_nan=False)


def _boxes(*rows: tuple[float, float, float, float]) -> NDArray[np.float64]:
    return np.array(rows, np.float64)


def _column(left: float, right: float, top: float, lines: int) -> list[tuple[float, float, float, float]]:
    return [(left, top + 30 * number, right, top + 30 * number + 24) for number in range(lines)]


def test_columns_receipts_and_quotations_are_read_in_their_order() -> None:
    heading, left, right = (100.0, 0.0, 900.0, 40.0), _column(0, 480, 60, 10), _column(520, 1000, 65, 10)
    shuffled = [*right[::-1], *left[::2], heading, *left[1::2]]
    order = reading_order(_boxes(*shuffled))
    assert [shuffled[index] for index in order] == [heading, *left, *right]
    goods = [(0.0, 30.0 * row, 120.0, 30.0 * row + 24) for row in range(6)]
    prices = [(300.0, 30.0 * row + 3, 350.0, 30.0 * row + 26) for row in range(6)]
    every = [*goods, *prices]
    pairs = [each for pair in zip(goods, prices, strict=True) for each in pair]
    assert [every[index] for index in reading_order(_boxes(*every))] == pairs
    left, right = _column(0, 480, 0, 12), _column(520, 1000, 0, 12)
    left[4:8] = [(x0, y0, 380, y1) for x0, y0, _, y1 in left[4:8]]
    right[4:8] = [(620, y0, x1, y1) for _, y0, x1, y1 in right[4:8]]
    inset = [(400.0, y0, 600.0, y1) for _, y0, _, y1 in left[5:7]]
    every = [*left, *inset, *right]
    assert [every[index] for index in reading_order(_boxes(*every))] == [*left, *right, *inset]
