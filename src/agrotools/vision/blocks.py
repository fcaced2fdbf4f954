"""Rasters of any size, read block by block: what is measured of them needs the memory of one block.

    with open_raster(path) as source:
        for block in raster_blocks(source, [1]):
            statistics.add(block.inner[0])

Statistics that are the same whatever the blocks are: :mod:`agrotools.vision.block_statistics`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.formats import Box, refuse_outside
from agrotools.vision.rasters import RasterSource

BLOCK_PX = 2**19
"""Pixels of a block, about: 2 MB per float32 band. Of larger ones every array would leave the processor's cache."""


@dataclass(frozen=True, eq=False)
class Block:
    """A part of a raster.

    ``box``: which part of the raster this block answers for; blocks tile the region. ``read_box``: ``box`` with its
    halo, as far as the region goes. ``values``: float32 (bands, rows, columns) of ``read_box``, NaN where there is no
    data.
    """

    box: Box
    read_box: Box
    values: NDArray[np.float32]

    @property
    def inner(self) -> NDArray[np.float32]:
        """``values`` of ``box`` alone, without the halo: a view."""
        (x0, y0, x1, y1), (left, top, _, _) = self.box, self.read_box
        return self.values[:, y0 - top : y1 - top, x0 - left : x1 - left]


def raster_blocks(
    source: RasterSource,
    bands: Sequence[int],
    region: Box | None = None,
    *,
    halo: int = 0,
    block_px: int = BLOCK_PX,
) -> Iterator[Block]:
    """The region of a raster in blocks of whole tiles as they lie in the file, from top left to bottom right.

    Args:
        bands: 1-based numbers.
        region: (x0, y0, x1, y1) in pixels, half-open; None: all of it.
        halo: pixels to read beyond each block, for filters; no further than the region.
        block_px: how large a block gets, about; never less than a tile of the file.

    Raises:
        ToolError: ``region_empty``, and as :meth:`RasterSource.read`.
    """
    x0, y0, x1, y1 = region or (0, 0, source.width, source.height)
    refuse_outside((x0, y0, x1, y1), source.width, source.height, source.name)
    for box in block_boxes((x0, y0, x1, y1), _tile_shape(source, bands), block_px // max(1, len(bands))):
        left, top, right, bottom = box
        read_box = (max(x0, left - halo), max(y0, top - halo), min(x1, right + halo), min(y1, bottom + halo))
        yield Block(box, read_box, source.read(bands, read_box))


def block_boxes(region: Box, tile: tuple[int, int], block_px: int = BLOCK_PX) -> Iterator[Box]:
    """Boxes of about ``block_px`` pixels that tile the region and are cut where tiles (rows, columns) meet."""
    x0, y0, x1, y1 = region
    rows, columns = tile
    across = max(1, min(-(-(x1 - x0) // columns), block_px // (rows * columns)))
    wide = across * columns
    high = rows * max(1, block_px // (rows * min(wide, x1 - x0)))
    for top in range(y0 // high * high, y1, high):
        for left in range(x0 // wide * wide, x1, wide):
            yield max(x0, left), max(y0, top), min(x1, left + wide), min(y1, top + high)


def _tile_shape(source: RasterSource, bands: Sequence[int]) -> tuple[int, int]:
    rows, columns = source.dataset.block_shapes[bands[0] - 1]
    return min(rows, source.height), min(columns, source.width)
