"""Reading of rasters of any size block by block, with statistics that do not depend on the blocks.

with open_raster(path) as source:
    for block in raster_blocks(source, [1]):
        statistics.add(block.values[0])
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agrotools.vision import Box
from agrotools.vision.formats import refuse_outside
from agrotools.vision.rasters import RasterSource

BLOCK_PX = 2**19
"""Approximate number of pixels per block, 2 MB per float32 band; larger arrays exceed the processor's cache."""


@dataclass(frozen=True, eq=False)
class Block:
    """Part of a raster.

    ``box``: part of the raster that the block is responsible for; the boxes tile the region. ``read_box``: ``box`` with
    its halo, clipped to the region. ``values``: float32 (bands, rows, columns) of ``read_box``, NaN for missing data.
    """

    box: Box
    read_box: Box
    values: NDArray[np.float32]

    @property
    def inner(self) -> tuple[slice, slice]:
        """Rows and columns of ``box``, without the halo, in ``values``."""
        (x0, y0, x1, y1), (left, top, _, _) = self.box, self.read_box
        return slice(y0 - top, y1 - top), slice(x0 - left, x1 - left)


def raster_blocks(
    source: RasterSource,
    bands: Sequence[int],
    region: Box | None = None,
    *,
    halo: int = 0,
    block_px: int = BLOCK_PX,
) -> Iterator[Block]:
    """Yield the region of a raster in blocks of whole tiles of the file, from top left to bottom right. ``halo``:
    pixels read beyond each block, for filters; ``block_px``: approximate pixels of a block, all bands together."""
    x0, y0, x1, y1 = region or (0, 0, source.width, source.height)
    refuse_outside((x0, y0, x1, y1), source.width, source.height, source.name)
    for box in block_boxes(
        (x0, y0, x1, y1), tile_shape(source, bands[0]), block_px // max(1, len(bands))
    ):
        left, top, right, bottom = box
        read_box = (
            max(x0, left - halo),
            max(y0, top - halo),
            min(x1, right + halo),
            min(y1, bottom + halo),
        )
        yield Block(box, read_box, source.read(bands, read_box))


def block_boxes(region: Box, tile: tuple[int, int], block_px: int = BLOCK_PX) -> Iterator[Box]:
    """Yield boxes of about ``block_px`` pixels that tile the region, cut at boundaries of tiles (rows, columns)."""
    x0, y0, x1, y1 = region
    rows, columns = tile
    across = max(1, min(-(-(x1 - x0) // columns), block_px // (rows * columns)))
    wide = across * columns
    high = rows * max(1, block_px // (rows * min(wide, x1 - x0)))
    for top in range(y0 // high * high, y1, high):
        for left in range(x0 // wide * wide, x1, wide):
            yield max(x0, left), max(y0, top), min(x1, left + wide), min(y1, top + high)


def spread_boxes(boxes: Sequence[Box], number: int) -> list[Box]:
    """Return at most ``number`` of the boxes, spread evenly over them, in their order."""
    # Steps by the golden ratio spread any number of blocks evenly and avoid a single column of tiles.
    places = {int(len(boxes) * ((k * 0.6180339887498949) % 1.0)) for k in range(number)}
    return [boxes[place] for place in sorted(places)]


def tile_shape(source: RasterSource, band: int = 1) -> tuple[int, int]:
    """Return rows and columns of the storage blocks of a band (1-based), at most the size of the raster."""
    rows, columns = source.dataset.block_shapes[band - 1]
    return min(rows, source.height), min(columns, source.width)


_BINS = 2**17
_FINEST = 1 / 1024
"""Initial width of a bin: a power of two, so that dividing a float32 by it is exact."""
_AT_ONCE = 2**17
"""Number of values processed at once, which fit in the processor's cache."""
_KEPT = 4_000_000
"""Maximum number of values that are stored to compute exact percentiles."""


class RunningStatistics:
    """Count, mean, standard deviation, extremes, shares and percentiles of values that are added in parts.

    Values are finite and not negative. Count, extremes and shares are exact; mean and standard deviation are summed in
    float64. Percentiles of up to four million values are exact. For more values they come from a histogram with bins
    1/1024 of a unit wide while all values are below 128; the width is doubled whenever a value lies beyond (so it is
    1/65,536 of the largest value at worst). Their error is at most :attr:`resolution`, the width of a bin.

    Args:
        edges: thresholds for :meth:`at_least`.
        mean_from: threshold of the values that :attr:`mean_above` is the mean of.
    """

    def __init__(self, edges: Sequence[float] = (), mean_from: float | None = None) -> None:
        self.count = 0
        self.minimum = math.inf
        self.maximum = -math.inf
        self._width = _FINEST
        self._kept: list[NDArray[np.float32]] | None = []
        self._mean_from = mean_from
        self._centre = 0.0
        self._sum = 0.0
        self._squares = 0.0
        self._sum_above = 0.0
        self._histogram = np.zeros(_BINS, np.int64)
        self._at_least = {
            float(edge): 0 for edge in (*edges, *([] if mean_from is None else [mean_from]))
        }

    def add(self, values: NDArray[np.float32]) -> None:
        """Add values, of any shape."""
        flat = values.reshape(-1)
        if self._kept is not None:
            self._kept = [*self._kept, flat.copy()] if self.count + flat.size <= _KEPT else None
        for start in range(0, flat.size, _AT_ONCE):
            self._add(flat[start : start + _AT_ONCE])

    def _add(self, part: NDArray[np.float32]) -> None:
        if not self.count:
            self._centre = float(part.mean(dtype=np.float64))
        self.count += part.size
        self.minimum = min(self.minimum, float(part.min()))
        self.maximum = max(self.maximum, float(part.max()))
        # Differences to an approximate mean are summed, because sums of squared values would cancel.
        difference = part.astype(np.float64)
        difference -= self._centre
        self._sum += float(difference.sum())
        self._squares += float(np.square(difference, out=difference).sum())
        for edge in self._at_least:
            above = part >= np.float32(edge)
            self._at_least[edge] += int(np.count_nonzero(above))
            if edge == self._mean_from:
                self._sum_above += float(part[above].sum(dtype=np.float64))
        self._add_to_histogram(part)

    def _add_to_histogram(self, part: NDArray[np.float32]) -> None:
        while self.maximum >= self._width * _BINS:
            self._histogram[: _BINS // 2] = self._histogram.reshape(-1, 2).sum(axis=1)
            self._histogram[_BINS // 2 :] = 0
            self._width *= 2
        counts = np.bincount((part * np.float32(1 / self._width)).astype(np.intp))
        self._histogram[: counts.size] += counts

    @property
    def mean(self) -> float:
        """Mean; NaN without values, as for all other statistics."""
        return self._centre + self._sum / self.count if self.count else math.nan

    @property
    def sd(self) -> float:
        """Standard deviation of the population (divisor n, not n - 1)."""
        if not self.count:
            return math.nan
        return math.sqrt(max(0.0, self._squares / self.count - (self._sum / self.count) ** 2))

    @property
    def mean_above(self) -> float:
        """Mean of the values at or above ``mean_from``."""
        number = 0 if self._mean_from is None else self._at_least[self._mean_from]
        return self._sum_above / number if number else math.nan

    def at_least(self, edge: float) -> int:
        """Return the number of values at or above one of ``edges``."""
        return self._at_least[edge]

    @property
    def resolution(self) -> float:
        """Largest error of a percentile."""
        return self._width if self._kept is None else 0.0

    def percentile(self, percent: float) -> float:
        """Return the value below which this percentage of the values lies, interpolated between neighbours by rank."""
        if not self.count:
            return math.nan
        if self._kept is not None:
            self._kept = [np.concatenate(self._kept)]
            return float(np.percentile(self._kept[0], percent))
        rank = percent / 100 * (self.count - 1)
        lower, upper = self._ranked(math.floor(rank)), self._ranked(math.ceil(rank))
        return lower + (upper - lower) * (rank - math.floor(rank))

    def _ranked(self, rank: int) -> float:
        """Return the approximate value with ``rank`` values below it."""
        up_to = np.cumsum(self._histogram)
        place = int(np.searchsorted(up_to, rank, side="right"))
        before = int(up_to[place - 1]) if place else 0
        value = (place + (rank - before + 0.5) / int(self._histogram[place])) * self._width
        return min(max(value, self.minimum), self.maximum)


class RasterThumbnail:
    """Raster shrunk to at most ``longest_side`` pixels per side, by the means of squares of pixels.

    ``factor``: number of raster pixels per pixel of the picture and side, an integer.
    """

    def __init__(self, region: Box, longest_side: int) -> None:
        self._x0, self._y0, x1, y1 = region
        width, height = x1 - self._x0, y1 - self._y0
        self.factor = max(1, -(-max(width, height) // longest_side))
        shape = (-(-height // self.factor), -(-width // self.factor))
        self._sums = np.zeros(shape, np.float32)
        self._counts = np.zeros(shape, np.float32)

    def add(self, box: Box, values: NDArray[np.float32]) -> None:
        """Add the values (rows, columns) of a box; NaN for missing data."""
        factor = self.factor
        left, top = box[0] - self._x0, box[1] - self._y0
        rows, columns = (
            _starts(top, values.shape[0], factor),
            _starts(left, values.shape[1], factor),
        )
        place = np.s_[top // factor :, left // factor :]
        sums, counts = (
            part[place][: rows.size, : columns.size] for part in (self._sums, self._counts)
        )
        there = np.isfinite(values)
        if there.all():
            sums += _sum_blocks(values, rows, columns)
            counts += np.outer(
                np.diff([*rows, values.shape[0]]), np.diff([*columns, values.shape[1]])
            )
        else:
            sums += _sum_blocks(np.where(there, values, np.float32(0)), rows, columns)
            counts += _sum_blocks(there.astype(np.float32), rows, columns)

    @property
    def means(self) -> NDArray[np.float32]:
        """float32 (rows, columns); NaN for squares without data."""
        empty = self._counts == 0
        means = np.asarray(self._sums / np.where(empty, np.float32(1), self._counts), np.float32)
        means[empty] = np.nan
        return means


def _starts(offset: int, length: int, factor: int) -> NDArray[np.intp]:
    """Return the starts of the squares in a stretch that begins at ``offset``."""
    return np.unique(np.maximum(0, np.arange(offset // factor * factor - offset, length, factor)))


def _sum_blocks(
    values: NDArray[np.float32], rows: NDArray[np.intp], columns: NDArray[np.intp]
) -> NDArray[np.float32]:
    if rows.size == values.shape[0] and columns.size == values.shape[1]:
        return values
    # Summing rows one by one is much faster than reduceat along the first axis.
    sums = np.stack(
        [values[a:b].sum(axis=0) for a, b in zip(rows, [*rows[1:], values.shape[0]], strict=True)]
    )
    return np.asarray(np.add.reduceat(sums, columns, axis=1), np.float32)


def sample_into(
    picture: NDArray[np.float32], box: Box, values: NDArray[np.float32], region: Box, factor: int
) -> None:
    """Write every ``factor``-th value of a box (rows, columns) to its place in a small picture of the region."""
    left, top = box[0] - region[0], box[1] - region[1]
    row, column = -(-top // factor), -(-left // factor)
    part = values[row * factor - top :: factor, column * factor - left :: factor]
    picture[row : row + part.shape[0], column : column + part.shape[1]] = part
