"""Detection of single trees in a canopy height model: tops in windows that grow with height, and crowns around them.

Tops are local maxima in a window whose radius is a linear function of height (Popescu and Wynne 2004, Photogrammetric
Engineering and Remote Sensing 70). Crowns are found by a watershed from the tops as markers (Meyer and Beucher 1990,
Journal of Visual Communication and Image Representation 1).
"""

import math
from dataclasses import replace

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import find_objects
from scipy.spatial import KDTree
from skimage.segmentation import watershed

from agrotools.core import ToolError
from agrotools.vision import Box
from agrotools.vision.overlay import LONGEST_SIDE, viridis
from agrotools.vision.rasters import RasterSource
from agrotools_tools.canopy_height import (
    INDEX_NOTE,
    TALLEST_M,
    HeightCheck,
    height_scale_of,
    in_metres,
    refuse_many_bands,
)
from agrotools_tools.counting.result import Counted, CountedObjects, join_objects
from agrotools_tools.vision.blocks import RasterThumbnail, block_boxes, tile_shape

_PIT_M = 1.0
"""Depth below the median of the neighbours, metres, from which a pixel is a pit of the laser data."""
_SMOOTHING_M = 0.3
"""Standard deviation of the Gaussian, metres; 0.5 m lost small trees in drawn orchards with 2.5 m between stems."""
_FINEST_M = 0.25
"""Approximate pixel size, metres, to which finer models are reduced first, because crowns are metres wide."""
_COARSEST_M = 2.0
"""Pixel size, metres, above which small crowns are missed."""
_REACH_M = 15.0
"""Margin around a top, metres, that is read so that its crown is the same as in the whole model."""
_WINDOW_RANGE = (3.0, 0.5)
"""Factors of the window that give the fewest and the most trees of the interval. They show how much a count depends on
the assumed crown width; how often the true count lies between is not known. Three windows are a crown radius of a third
of the height, as broad-leaved trees in the open have; half a window is that of slender conifers."""
_HIDDEN = 1.2
"""Most trees for each top: in drawn forests the narrowest window left out up to an eighth, which stand below others."""
_DENSEST_PER_HA = 3_000.0
"""Trees per hectare: plantations have up to 2,500 when planted, and tops of thickets are not apart in height models."""
_CLEAR_DROP = 0.15
"""Rise above the saddle to the neighbouring tree, as a share of the height, from which a top has the full score."""
_LEAST_RADIUS_PX = 1.5
"""Least radius of a window, pixels."""

Heights = NDArray[np.float32]


def find_crowns(
    heights: Heights, gsd_m: float, box: Box, *, min_height_m: float, window_m: tuple[float, float]
) -> tuple[CountedObjects, list[int]]:
    """Detect trees in a canopy height model, tallest first, in pixels of the model; diameters are those of the
    crowns. Also return the number of tops in ``box`` with each window of :data:`_WINDOW_RANGE`.

    ``heights``: metres, NaN without data; ``window_m``: a and b of the window's radius a + b * height, metres. The
    score is 1 for an isolated tree or one well above its neighbours, near 0.3 for one barely above them.
    """
    filled, smooth, factor = _prepare(heights, gsd_m)
    gsd_m = gsd_m * factor
    counts: list[int] = []
    for share in _WINDOW_RANGE:
        rows, columns = _tops(
            smooth, gsd_m, min_height_m, (window_m[0] * share, window_m[1] * share)
        )
        x, y = (columns + 0.5) * factor, (rows + 0.5) * factor
        counts.append(
            int(np.count_nonzero((x >= box[0]) & (x < box[2]) & (y >= box[1]) & (y < box[3])))
        )
    rows, columns = _tops(smooth, gsd_m, min_height_m, window_m)
    labels, count = np.zeros(smooth.shape, np.int32), rows.size
    labels[rows, columns] = np.arange(1, count + 1)
    if count:
        labels = np.asarray(
            watershed(-smooth, labels, mask=(smooth >= min_height_m) & (smooth > 0)), np.int32
        )
    has_crown = labels[rows, columns] > 0
    crowns = CountedObjects(
        boxes=_boxes(labels, count),
        centres=np.column_stack([columns, rows]).astype(np.float64) + 0.5,
        diameters=2 * np.sqrt(np.bincount(labels.ravel(), minlength=count + 1)[1:] / math.pi),
        scores=_scores(smooth, labels, smooth[rows, columns]),
        heights_m=filled[rows, columns].astype(np.float64),
    )
    return crowns.chosen(has_crown).scaled(factor), counts


def _prepare(heights: Heights, gsd_m: float) -> tuple[Heights, Heights, int]:
    """Return the model without pits, the same smoothed, and how many pixels of the model a side of theirs has."""
    factor = _reduction(gsd_m)
    known = _shrink_heights(heights, factor)
    clipped = np.where(np.isfinite(known), np.clip(known, 0, TALLEST_M), np.float32(0))
    around = cv2.medianBlur(np.ascontiguousarray(clipped), 3)
    filled = np.where(around - clipped > _PIT_M, around, clipped).astype(np.float32)
    sigma = _SMOOTHING_M / (gsd_m * factor)
    smooth = (
        filled
        if sigma < 0.3
        else cv2.GaussianBlur(filled, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
    )
    return filled, np.asarray(smooth, np.float32), factor


def _reduction(gsd_m: float) -> int:
    """Return the side, pixels, of the squares that are merged, so that pixels are about as large as
    :data:`_FINEST_M`."""
    return max(1, math.floor(_FINEST_M / gsd_m + 0.2))


def _shrink_heights(heights: Heights, factor: int) -> Heights:
    """Average squares of ``factor`` pixels over the pixels with data."""
    if factor == 1:
        return heights
    rows, columns = (-(-side // factor) * factor for side in heights.shape)
    padded = np.full((rows, columns), np.nan, np.float32)
    padded[: heights.shape[0], : heights.shape[1]] = heights
    squares = padded.reshape(rows // factor, factor, columns // factor, factor)
    there = np.isfinite(squares)
    counts = there.sum(axis=(1, 3))
    sums = np.where(there, squares, np.float32(0)).sum(axis=(1, 3))
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan).astype(np.float32)


def _tops(
    smooth: Heights, gsd_m: float, min_height_m: float, window_m: tuple[float, float]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    peaks = (
        (smooth >= cv2.dilate(smooth, np.ones((3, 3), np.uint8)))
        & (smooth >= min_height_m)
        & (smooth > 0)
    )
    rows, columns = np.nonzero(peaks)
    order = np.lexsort((columns, rows, -smooth[rows, columns]))
    rows, columns = rows[order], columns[order]
    radii = np.maximum(
        (window_m[0] + window_m[1] * smooth[rows, columns]) / gsd_m, _LEAST_RADIUS_PX
    )
    highest = _highest_within(smooth, rows, columns, radii)
    rows, columns, radii = rows[highest], columns[highest], radii[highest]
    one = _one_of_each_plateau(rows, columns, radii)
    return rows[one], columns[one]


def _highest_within(
    smooth: Heights, rows: NDArray[np.intp], columns: NDArray[np.intp], radii: NDArray[np.floating]
) -> NDArray[np.bool_]:
    """Return the mask of pixels with nothing higher within their radius; similar radii are processed together."""
    highest = np.ones(rows.size, np.bool_)
    steps = np.round(radii * 2).astype(np.intp)
    margin = int(steps.max(initial=2)) // 2 + 1
    padded = np.pad(smooth, margin)
    for step in np.unique(steps):
        radius = step / 2
        reach = math.ceil(radius)
        across, down = (part.ravel() for part in np.meshgrid(*2 * [np.arange(-reach, reach + 1)]))
        inside = (across**2 + down**2 <= radius**2) & ((across != 0) | (down != 0))
        members = np.flatnonzero(steps == step)
        y, x = rows[members] + margin, columns[members] + margin
        top, passed = padded[y, x], np.ones(members.size, np.bool_)
        for dx, dy in zip(across[inside], down[inside], strict=True):
            passed &= padded[y + dy, x + dx] <= top
        highest[members] = passed
    return highest


def _one_of_each_plateau(
    rows: NDArray[np.intp], columns: NDArray[np.intp], radii: NDArray[np.floating]
) -> NDArray[np.bool_]:
    """Return the mask of the first of equally high pixels within each other's window."""
    keep = np.ones(rows.size, np.bool_)
    if rows.size < 2:
        return keep
    places = np.column_stack([columns, rows]).astype(np.float64)
    pairs = KDTree(places).query_pairs(float(radii.max()), output_type="ndarray")
    first_ones, others = pairs.T
    distances = np.hypot(*(places[first_ones] - places[others]).T)
    near = distances <= np.minimum(radii[first_ones], radii[others])
    for first, second in sorted(map(tuple, np.sort(pairs[near], axis=1).tolist())):
        if keep[first]:
            keep[second] = False
    return keep


def _boxes(labels: NDArray[np.int32], count: int) -> NDArray[np.float64]:
    boxes = np.zeros((count, 4), np.float64)
    for number, slices in enumerate(find_objects(labels, max_label=count)):
        if slices is not None:
            down, across = slices
            boxes[number] = across.start, down.start, across.stop, down.stop
    return boxes


def _scores(
    smooth: Heights, labels: NDArray[np.int32], tops: NDArray[np.float32]
) -> NDArray[np.float64]:
    saddles = np.zeros(tops.size + 1, np.float32)
    for first, second in ((np.s_[:, :-1], np.s_[:, 1:]), (np.s_[:-1], np.s_[1:])):
        a, b = labels[first], labels[second]
        meet = (a != b) & (a > 0) & (b > 0)
        level = np.minimum(smooth[first][meet], smooth[second][meet])
        np.maximum.at(saddles, a[meet], level)
        np.maximum.at(saddles, b[meet], level)
    drop = (tops - saddles[1:]) / np.maximum(tops, np.float32(1e-6))
    return np.clip(0.3 + 0.7 * drop.astype(np.float64) / _CLEAR_DROP, 0.3, 1.0)


_TILE_PX = 2_000_000
"""Approximate size, pixels, of the parts of a raster that are searched one by one."""


def crowns_of_raster(
    source: RasterSource,
    gsd_m: float,
    region: Box,
    *,
    min_height_m: float,
    window_m: tuple[float, float],
) -> Counted:
    """Detect all trees with their top in a region, in pixels of the model, to be shown on the heights as colours. The
    interval are the counts with a window three times and half as wide, the latter times :data:`_HIDDEN`. ToolError
    ``invalid_argument`` (several bands, pixels larger than crowns, elevations or classes instead of heights),
    ``nothing_found`` (no data)."""
    refuse_many_bands(source)
    if gsd_m > 2 * _COARSEST_M:
        why = f"the pixels of {source.name} are {gsd_m:g} m wide: trees cannot be told apart in it"
        hint = "use a canopy height model with pixels of 1 m or less"
        raise ToolError("invalid_argument", why, argument=source.argument, hint=hint)
    unit = height_scale_of(source, None)
    # Values that are no heights are refused before the search.
    picture, top_m, measured_px = _measured_heights(source, region, unit.metres, gsd_m)
    objects, fewest, most = _crowns_by_tile(
        source, unit.metres, gsd_m, region, min_height_m=min_height_m, window_m=window_m
    )
    count = len(objects)
    interval = (float(min(fewest, count)), round(_HIDDEN * max(most, count), 1))

    means = picture.means
    is_index = float(np.nanmin(means)) < 0 and float(np.nanmax(means)) <= 1
    area_ha = measured_px * gsd_m**2 / 10_000
    flags = list(unit.flags)
    if gsd_m > _COARSEST_M:
        flags.append("coarse_chm")
    if count > 1 and count / area_ha > _DENSEST_PER_HA:
        flags.append("implausible_density")
    if 2 * interval[0] < count or interval[1] > 2 * count > 0:
        flags.append("wide_count_interval")
    if is_index:
        flags.append("implausible_heights")
    notes = [
        *unit.notes,
        f"tops are the highest points within {window_m[0]:g} + {window_m[1]:g} x height metres, at least "
        f"{min_height_m:g} m tall",
        f"count_interval: {fewest} trees by a window {_WINDOW_RANGE[0]:g} times as wide, {most} by one "
        f"{_WINDOW_RANGE[1]:g} times as wide, and {_HIDDEN:g} times as many for trees below others",
    ]
    if is_index:
        notes.append(INDEX_NOTE)
    return Counted(
        objects,
        interval,
        viridis(means, 0.0, max(top_m, min_height_m + 1)),
        1 / picture.factor,
        region,
        measured_px,
        gsd_m,
        tuple(notes),
        tuple(flags),
    )


def _crowns_by_tile(
    source: RasterSource,
    metres: float,
    gsd_m: float,
    region: Box,
    *,
    min_height_m: float,
    window_m: tuple[float, float],
) -> tuple[CountedObjects, int, int]:
    """Detect the trees of a region tile by tile; return them and the number of tops with the wide and narrow window.

    Each tile is read with a margin, so that the crowns at its edges are whole. ``metres``: per unit of the values.
    """
    factor = _reduction(gsd_m)
    margin = math.ceil(_REACH_M / gsd_m)
    parts: list[CountedObjects] = []
    fewest = most = 0
    for tile in block_boxes(region, tile_shape(source), _TILE_PX):
        x0, y0, x1, y1 = tile
        # Merged squares of pixels must be the same in every tile.
        left = max(0, x0 - margin) // factor * factor
        top = max(0, y0 - margin) // factor * factor
        right, bottom = min(source.width, x1 + margin), min(source.height, y1 + margin)
        heights = in_metres(source.read([1], (left, top, right, bottom))[0], metres)
        tile_in_part = (x0 - left, y0 - top, x1 - left, y1 - top)
        crowns, (low, high) = find_crowns(
            heights, gsd_m, tile_in_part, min_height_m=min_height_m, window_m=window_m
        )
        fewest += low
        most += high
        parts.append(crowns.scaled(1, left, top).centred_in(tile))
    objects = join_objects(parts)
    # Merged squares may extend beyond the last pixels of the raster.
    far_corner = [source.width, source.height] * 2
    return replace(objects, boxes=np.minimum(objects.boxes, far_corner)), fewest, most


def _measured_heights(
    source: RasterSource, region: Box, metres: float, gsd_m: float
) -> tuple[RasterThumbnail, float, int]:
    """Return a reduced picture of the heights, their 99.5 % quantile in metres, and the number of pixels with data.

    Values that are no heights are refused, before any search, which takes minutes on plateaus of classes.
    """
    picture = RasterThumbnail((0, 0, source.width, source.height), LONGEST_SIDE)
    check = HeightCheck(source, gsd_m)
    measured = 0
    for box in block_boxes(region, tile_shape(source), _TILE_PX):
        heights = in_metres(source.read([1], box)[0], metres)
        measured += int(np.count_nonzero(np.isfinite(heights)))
        picture.add(box, heights)
        check.add(heights)
    if not measured:
        why = f"{source.name} holds no data where trees were to be counted"
        hint = "check the file's nodata value and the region"
        raise ToolError("nothing_found", why, argument=source.argument, hint=hint)
    top_m = float(np.nanpercentile(picture.means, 99.5))
    why, hint = "", "subtract the terrain model from an elevation model first"
    if top_m > TALLEST_M:
        why = f"the values of {source.name} go up to {top_m:.0f} m, taller than any tree: no heights above ground"
        hint = f"{hint}; check the unit of the heights"
    elif check.are_classes(measured):
        why = f"{source.name} holds only {len(check.distinct)} different whole numbers: a map of classes, not heights"
        hint = "pass a canopy height model whose values are metres, with decimals"
    elif check.is_smooth:
        why = f"the values of {source.name} are as smooth as bare ground: no heights of trees"
    if why:
        raise ToolError("invalid_argument", why, argument=source.argument, hint=hint)
    return picture, top_m, measured
