"""Counting trees in a canopy height model of any size: tile by tile, each tree counted where its top is."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.tools.measurement.counting import Found
from agrotools.vision.block_statistics import SmallPicture
from agrotools.vision.blocks import block_boxes
from agrotools.vision.canopy import height_scale_of, in_metres, refuse_many_bands
from agrotools.vision.counting.crowns import COARSEST_M, FINEST_M, REACH_M, Crowns, find_crowns
from agrotools.vision.formats import Box
from agrotools.vision.heat_map import viridis
from agrotools.vision.overlay import LONGEST_SIDE
from agrotools.vision.rasters import RasterSource

_TILE_PX = 2_000_000


@dataclass(frozen=True, eq=False)
class CountedCrowns:
    """``shown``: the heights as colours, uint8 (rows, columns, 3), ``shown_per_px`` pixels per pixel of the model, with
    the region in it. ``measured_px``: pixels of the region that hold data."""

    found: Found
    shown: NDArray[np.uint8]
    shown_per_px: float
    measured_px: int
    notes: tuple[str, ...]
    flags: tuple[str, ...]


def crowns_of_raster(
    source: RasterSource,
    gsd_m: float,
    region: Box,
    *,
    min_height_m: float,
    window_m: tuple[float, float],
) -> CountedCrowns:
    """All trees whose tops lie in a region, in pixels of the model.

    Raises:
        ToolError: ``invalid_argument`` (several bands, pixels wider than crowns), ``nothing_found`` (no data), and as
            the readers.
    """
    refuse_many_bands(source)
    if gsd_m > 2 * COARSEST_M:
        raise ToolError(
            "invalid_argument",
            f"the pixels of {source.name} are {gsd_m:g} m wide: trees cannot be told apart in it",
            argument=source.argument,
            hint="use a canopy height model with pixels of 1 m or less",
        )
    unit = height_scale_of(source, None)
    factor = max(1, math.floor(FINEST_M / gsd_m + 0.2))
    reach = math.ceil(REACH_M / gsd_m)
    parts: list[Crowns] = []
    picture = SmallPicture((0, 0, source.width, source.height), LONGEST_SIDE)
    measured = 0
    for x0, y0, x1, y1 in block_boxes(region, _tile(source), _TILE_PX):
        # Where squares of pixels are merged, every tile must merge the same ones.
        left, top = (max(0, edge - reach) // factor * factor for edge in (x0, y0))
        right, bottom = min(source.width, x1 + reach), min(source.height, y1 + reach)
        heights = in_metres(source.read([1], (left, top, right, bottom))[0], unit.metres)
        inner = heights[y0 - top : y1 - top, x0 - left : x1 - left]
        measured += int(np.count_nonzero(np.isfinite(inner)))
        picture.add((x0, y0, x1, y1), inner)
        crowns = find_crowns(heights, gsd_m, min_height_m=min_height_m, window_m=window_m).moved(1, left, top)
        x, y = crowns.tops.T
        parts.append(crowns.chosen((x >= x0) & (x < x1) & (y >= y0) & (y < y1)))
    if not measured:
        raise ToolError(
            "nothing_found",
            f"{source.name} holds no data where trees were to be counted",
            argument=source.argument,
            hint="check the file's nodata value and the region",
        )
    shown = picture.means
    top_m = float(np.nanpercentile(shown, 99.5))
    found = _found(parts, source)
    notes = (
        *unit.notes,
        f"tops are the highest points within {window_m[0]:g} + {window_m[1]:g} x height metres, at least "
        f"{min_height_m:g} m tall",
    )
    return CountedCrowns(
        found=found,
        shown=viridis(shown, 0.0, max(top_m, min_height_m + 1)),
        shown_per_px=1 / picture.factor,
        measured_px=measured,
        notes=notes,
        flags=(*unit.flags, *(("coarse_chm",) if gsd_m > COARSEST_M else ())),
    )


def _found(parts: list[Crowns], source: RasterSource) -> Found:
    tops, boxes, areas, heights, scores = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("tops", "boxes", "areas", "heights_m", "scores")
    )
    boxes = np.minimum(boxes, [source.width, source.height] * 2)
    order = np.lexsort((tops[:, 0], tops[:, 1], -heights, -scores))
    diameters = 2 * np.sqrt(areas / math.pi)
    return Found(boxes[order], tops[order], diameters[order], scores[order], heights[order])


def _tile(source: RasterSource) -> tuple[int, int]:
    rows, columns = source.dataset.block_shapes[0]
    return min(rows, source.height), min(columns, source.width)
