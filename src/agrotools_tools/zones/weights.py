"""Share of each pixel's area that lies in a polygon, exact for every outline.

The outline is cut where it crosses the edges of pixels. Each piece then lies in one pixel. It covers part of that
pixel, and all pixels to its right. Pieces that run up and pieces that run down have opposite signs, so that the running
sum along a row of pixels is the share of each pixel (the method of font rasterisers).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agrotools.vision import Box
from agrotools_tools.zones import import_of_zones

LEAST_SHARE = 1e-9
"""Share of a pixel below which it does not lie in a polygon: sums of a row are exact to about 1e-12."""


class Pieces(NamedTuple):
    """Pieces of an outline, each in one pixel.

    ``rows``, ``columns``: pixel. ``heights``: height of the piece in the pixel, positive where the polygon lies to its
    right. ``middles``: x of its middle, pixels from the left edge of the pixel.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    heights: NDArray[np.float64]
    middles: NDArray[np.float64]


class PixelShares:
    """Shares of pixels in a polygon.

    Args:
        polygon: valid polygon or multipolygon of shapely, in pixels: x is the column, y is the row, downwards. Its
            corners are not negative.

    Attributes:
        box: smallest box of whole pixels (x0, y0, x1, y1) around the polygon.
    """

    def __init__(self, polygon: Any) -> None:
        left, top, right, bottom = polygon.bounds
        self.box: Box = (
            math.floor(left),
            math.floor(top),
            max(math.ceil(right), math.floor(left) + 1),
            max(math.ceil(bottom), math.floor(top) + 1),
        )
        self._pieces = _pieces_of(polygon)

    def of_rows(self, top: int, bottom: int) -> NDArray[np.float64]:
        """Return the shares of the rows from ``top`` to before ``bottom``, (rows, columns of the box), 0 to 1."""
        left, _, right, _ = self.box
        # The last piece of a row may lie on the right edge of the box, and covers one column more.
        width = right - left + 2
        pieces = self._pieces
        within = (pieces.rows >= top) & (pieces.rows < bottom)
        places = (pieces.rows[within] - top) * width + pieces.columns[within] - left
        heights = pieces.heights[within]
        beyond = heights * pieces.middles[within]
        size = (bottom - top) * width
        changes = np.bincount(places, heights - beyond, size + 1)
        changes += np.bincount(places + 1, beyond, size + 1)
        shares = changes[:size].reshape(-1, width).cumsum(axis=1)
        return shares[:, : right - left]


def _pieces_of(polygon: Any) -> Pieces:
    """Return the outline, cut at the edges of pixels."""
    starts, ends = _edges_of(polygon)
    points, edges = _cut(starts, ends)
    is_piece = edges[1:] == edges[:-1]
    first, second = points[:-1][is_piece], points[1:][is_piece]
    middles = (first + second) / 2
    columns, rows = np.floor(middles).astype(np.intp).T
    # Rings run so that the polygon is on their left, and y runs downwards here: a piece with the polygon to its right
    # has falling y.
    heights = first[:, 1] - second[:, 1]
    return Pieces(rows, columns, heights, middles[:, 0] - columns)


def _edges_of(polygon: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return start and end points, (n, 2), of all edges but the horizontal ones, which bound no area in a row."""
    shapely = import_of_zones("shapely")
    rings = shapely.get_rings(shapely.get_parts(shapely.orient_polygons(polygon)))
    points, ring = shapely.get_coordinates(rings, return_index=True)
    is_edge = (ring[1:] == ring[:-1]) & (points[1:, 1] != points[:-1, 1])
    return points[:-1][is_edge], points[1:][is_edge]


def _cut(
    starts: NDArray[np.float64], ends: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the points where edges start, cross edges of pixels and end, (n, 2), and the edge of each point."""
    count = len(starts)
    numbers = np.arange(count)
    points, edges = [starts, ends], [numbers, numbers]
    places = [np.zeros(count), np.ones(count)]  # share of the edge before the point
    lengths = ends - starts
    for axis in (0, 1):
        lowest = np.floor(np.minimum(starts[:, axis], ends[:, axis])) + 1
        highest = np.ceil(np.maximum(starts[:, axis], ends[:, axis])) - 1
        crossings = np.maximum(highest - lowest + 1, 0).astype(np.intp)
        edge = np.repeat(numbers, crossings)
        first = np.repeat(np.cumsum(crossings) - crossings, crossings)
        grid_line = lowest[edge] + np.arange(edge.size) - first
        place = (grid_line - starts[edge, axis]) / lengths[edge, axis]
        crossed = starts[edge] + place[:, None] * lengths[edge]
        crossed[:, axis] = grid_line  # exact, so that pieces of a row add up to whole pixels
        points.append(crossed)
        edges.append(edge)
        places.append(place)
    all_edges = np.concatenate(edges)
    order = np.lexsort((np.concatenate(places), all_edges))
    return np.concatenate(points)[order], all_edges[order]
