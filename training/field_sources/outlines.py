"""Windows inside the outlines that people drew on a raster."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_WINDOW = 3
"""Side of a window inside an outline, cells."""


def windows_in(
    outlines: Sequence[Sequence[float]],
    classes: Sequence[str],
    edges: tuple[float, float, float, float],
    size: tuple[int, int],
) -> list[dict[str, Any]]:
    """Return a window (left, top, right, bottom) in the middle of each outline that has room for one, with its class.

    ``outlines``: all abscissas, then all ordinates of the corners; ``edges``: of the raster, as are those of windows.
    """
    left, top, right, bottom = edges
    columns, rows = size
    found: list[dict[str, Any]] = []
    for outline, name in zip(outlines, classes, strict=True):
        xs, ys = np.array(outline).reshape(2, -1)
        corners = np.column_stack(
            [(xs - left) / (right - left) * columns, (top - ys) / (top - bottom) * rows]
        )
        middle = (corners.min(axis=0) + corners.max(axis=0)) / 2
        x0, y0 = (round(float(each) - _WINDOW / 2) for each in middle)
        window = (x0, y0, x0 + _WINDOW, y0 + _WINDOW)
        cells = [
            (x, y) for x in (x0 + 0.5, x0 + _WINDOW - 0.5) for y in (y0 + 0.5, y0 + _WINDOW - 0.5)
        ]
        is_shown = x0 >= 0 and y0 >= 0 and x0 + _WINDOW <= columns and y0 + _WINDOW <= rows
        if is_shown and all(_is_inside(cell, corners) for cell in cells):
            found.append({"window": list(window), "label": name})
    return found


def _is_inside(point: tuple[float, float], corners: NDArray[np.float64]) -> bool:
    """Return True if a point is inside a polygon: a line from it to the right crosses an odd number of sides."""
    x, y = point
    crossed = 0
    for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        if (y0 > y) != (y1 > y) and x < x0 + (y - y0) / (y1 - y0) * (x1 - x0):
            crossed += 1
    return crossed % 2 == 1
