"""Segmentation of fruits: touching fruits are split, or one fruit is found in each given box.

Touching fruits are split at the necks between them (watershed of the distance to the edge, Beucher and Lantuéjoul
1979) and at jumps of depth. In a given box the fruit is the area of its colour. If the colour does not distinguish it
from leaves, graph cuts separate it from the surroundings of the box (GrabCut, Rother et al. 2004) with depth as a hint.

Fruits are searched with the net of :mod:`agrotools_tools.counting.measure`, where it knows the kind, else by colour.

Colour: a channel of Lab in which the fruit differs from the foliage (redder or more orange), thresholds relative to
the foliage of the same picture, and hysteresis. Pale and green fruit does not differ, which ``contrast`` shows. CIE
Lab: CIE 15:2004. Hysteresis thresholding: Canny 1986. Threshold: Otsu 1979.
"""

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_propagation, find_objects
from skimage.morphology import reconstruction
from skimage.segmentation import watershed

from agrotools.vision import Box
from agrotools_tools.counting.measure import DEFAULT_SCORE, fruit_by_net
from agrotools_tools.counting.tool import colour_direction, fruits_of_net
from agrotools_tools.fruit.measure import (
    Cone,
    Depth,
    FruitMeasurement,
    Mask,
    Segment,
    View,
    angle_from,
    measure,
    surface_depth,
)
from agrotools_tools.fruit.result import Fruit

_LEAST, _MOST = 12.0, 32.0
"""Range of the threshold above the foliage, Lab units."""
_LOW_SHARE = 0.6
_AROUND_PX = 4
_SQUARE = np.ones((3, 3), np.uint8)
_NO_CONTRAST = 13.0
"""Contrast below which twigs and soil are as likely as fruit; such pictures are not searched by colour."""
_CLEAR = 50.0
"""Contrast, Lab units, from which the colour search finds little else than fruit; most drawn tomatoes have more."""
_JUMP_MM = 30.0
_NECK = 0.75
"""Width of a neck, as a share of the width of the fruits, below which it separates them."""
_COLOUR_SHARE = 0.25
_OFF_MIDDLE = 0.35
_RADIUS_OF_BOX = (0.36, 0.8)
_LEAST_SCORE = 0.12
_LEAST_DEPTH = 0.4
"""Least share of a fruit's pixels with a depth; with less, the depth may belong to a leaf before a distant fruit."""
_SAME = 0.9
"""Distance of two centres, as a share of the larger radius, below which two outlines are the same fruit."""
_LARGEST_CUT, _SMALLEST_CUT = 160, 8
"""Longest side of the picture that is cut, pixels, and shortest side of a shrunk one."""
_LEAST_MARGIN_PX = 4
"""Least width of the surroundings of a box that are cut with it, pixels; a quarter of its longer side if that is
more."""
_PROBABLE_FRUIT, _SURE_FRUIT, _SURFACE = 0.85, 0.3, 0.5
"""Axes of ellipses in a box, as shares of its sides: what is probably fruit, what surely is, and the pixels whose
median depth is that of the fruit's surface."""
_LEAST_DEPTH_PIXELS = 5
"""Least number of pixels with a depth for that median."""
_AWAY = 0.6
"""Difference of depth to the surface, in diameters of the largest fruit, above which a pixel is background."""
_CUT_ROUNDS = 4
"""Iterations of GrabCut."""
_FRUIT_STATES = (cv2.GC_FGD, cv2.GC_PR_FGD)
_LEAST_PIXELS = 12
_PAD = 3


class FruitMask(NamedTuple):
    """Pixels of fruit found by colour.

    ``mask``: bool (rows, columns). ``channel``: float32, smoothed colour channel that distinguishes the fruit.
    ``contrast``: median of the channel over fruit minus the median over the rest, Lab units; 0 without fruit.
    """

    mask: NDArray[np.bool_]
    channel: NDArray[np.float32]
    contrast: float


def find_fruit_pixels(
    pixels: NDArray[np.uint8], valid: NDArray[np.bool_] | None = None, fruit: Fruit = "apple"
) -> FruitMask:
    """Separate fruit from everything else by colour; ``valid``: pixels with data, None for all."""
    lab = cv2.cvtColor(pixels, cv2.COLOR_RGB2LAB)
    towards_a, towards_b = colour_direction(fruit)
    raw = np.float32(towards_a) * lab[..., 1] + np.float32(towards_b) * lab[..., 2]
    channel = np.asarray(cv2.GaussianBlur(raw.astype(np.float32), (0, 0), 0.8), np.float32)
    seen = channel[valid] if valid is not None else channel.ravel()
    lowest, highest = (float(seen.min()), float(seen.max())) if seen.size else (0.0, 0.0)
    if highest - lowest < _LEAST:
        return FruitMask(np.zeros(channel.shape, np.bool_), channel, 0.0)
    foliage = float(np.median(seen))
    scaled = np.clip((seen - lowest) * (255 / (highest - lowest)), 0, 255).astype(np.uint8)
    level, _ = cv2.threshold(scaled.reshape(-1, 1), 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    otsu = lowest + level * (highest - lowest) / 255
    high = float(np.clip(otsu, foliage + _LEAST, foliage + _MOST))
    low = foliage + _LOW_SHARE * (high - foliage)
    weak = channel > low if valid is None else valid & (channel > low)
    mask = np.asarray(binary_propagation(weak & (channel > high), mask=weak), np.bool_)
    rest = ~mask if valid is None else valid & ~mask
    contrast = (
        float(np.median(channel[mask]) - np.median(channel[rest]))
        if mask.any() and rest.any()
        else 0.0
    )
    return FruitMask(mask, channel, contrast)


def _half_level(channel: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Move the edge of a mask to where the colour is halfway between the fruit and its surroundings.

    A blurred edge crosses the halfway level at the position of the sharp edge; a lower threshold would make all fruit
    larger.
    """
    core = cv2.erode(mask.astype(np.uint8), _SQUARE).astype(np.bool_)
    grown = cv2.dilate(mask.astype(np.uint8), _SQUARE, iterations=2).astype(np.bool_)
    ring = (
        cv2.dilate(mask.astype(np.uint8), _SQUARE, iterations=2 + _AROUND_PX).astype(np.bool_)
        & ~grown
    )
    if not core.any() or not ring.any():
        return mask
    inside, outside = float(np.median(channel[core])), float(np.median(channel[ring]))
    if inside - outside < _LEAST / 2:
        return mask
    return grown & (channel > (inside + outside) / 2)


class FoundFruits(NamedTuple):
    """Fruits of a region. ``with_net``: whether the net found them. ``by_colour``: share that colour alone outlines."""

    fruits: list[FruitMeasurement]
    with_net: bool
    by_colour: float
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def search_fruits(
    view: View, colour: FruitMask, pixels: NDArray[np.uint8], fruit: Fruit, region: Box
) -> FoundFruits:
    """Find the fruits of a region with the net if it knows the kind, else by colour, which also serves for fruit
    that stands out by far if it finds more than twice as many: the net misses most tomatoes of drawn scenes."""
    kinds = fruits_of_net(fruit)
    if not kinds:
        return FoundFruits(
            find_fruits(view, colour, region) if colour.contrast >= _NO_CONTRAST else [], False, 1.0
        )
    objects = fruit_by_net(pixels, kinds, None)
    objects = objects.chosen(objects.scores >= DEFAULT_SCORE).centred_in(region)
    height, width = view.fruit.shape
    corners = (
        np.clip(np.rint(objects.boxes), 0, [width, height, width, height]).astype(int).tolist()
    )
    tried = [
        fruit_in_box(view, colour, pixels, (x0, y0, x1, y1))
        for x0, y0, x1, y1 in corners
        if x0 < x1 and y0 < y1
    ]
    measured = _drop_duplicates(
        [part for part, _ in tried if part is not None and part.depth_share >= _LEAST_DEPTH]
    )
    if colour.contrast >= _CLEAR and len(in_colour := find_fruits(view, colour, region)) > 2 * len(
        measured
    ):
        return FoundFruits(in_colour, False, 1.0)
    share = sum(by_colour for _, by_colour in tried) / max(1, len(tried))
    return FoundFruits(measured, True, share, objects.notes[:1], objects.flags)


def find_fruits(view: View, colour: FruitMask, region: Box) -> list[FruitMeasurement]:
    """Find by colour all fruits of a region with a known distance, sorted by score times size, largest first."""
    segments = _segments(view, colour, region)
    fruits = [fruit for segment in segments if (fruit := measure(view, segment)) is not None]
    fruits = [
        fruit
        for fruit in fruits
        if fruit.fit.score >= _LEAST_SCORE and fruit.depth_share >= _LEAST_DEPTH
    ]
    # A well visible large outline explains more of the picture than a well visible fragment of it.
    return _drop_duplicates(
        sorted(fruits, key=lambda fruit: -fruit.fit.score * fruit.cone.half_angle)
    )


def fruit_in_box(
    view: View, colour: FruitMask, pixels: NDArray[np.uint8], box: Box
) -> tuple[FruitMeasurement | None, bool]:
    """Measure the fruit in a box; also return True if its colour alone distinguished it from its surroundings."""
    height, width = view.fruit.shape
    x0, y0, x1, y1 = box
    grow = max(2, round(0.05 * max(x1 - x0, y1 - y0)))
    x0, y0, x1, y1 = (
        max(0, x0 - grow),
        max(0, y0 - grow),
        min(width, x1 + grow),
        min(height, y1 + grow),
    )
    by_colour = colour.mask[y0:y1, x0:x1]
    ellipse = _ellipse_in(by_colour.shape, (0, 0, x1 - x0, y1 - y0), 0.6)
    enough = bool(by_colour[ellipse].mean() >= _COLOUR_SHARE) if ellipse.any() else False
    if enough:
        part = _central_fruit(view, colour, (x0, y0, x1, y1), ellipse)
    else:
        part = _main_piece(_graph_cut(pixels, view, (x0, y0, x1, y1)), ellipse)
    if part is None:
        return None, enough
    longest = max(box[2] - box[0], box[3] - box[1])
    limits = _RADIUS_OF_BOX[0] * longest, _RADIUS_OF_BOX[1] * longest
    middle = view.camera.rays(np.array((box[0] + box[2]) / 2), np.array((box[1] + box[3]) / 2))
    near = Cone(middle, float(np.arctan(_OFF_MIDDLE * longest / view.camera.focal_px)))
    return measure(view, Segment(part, (x0, y0), box), near=near, radius_limits_px=limits), enough


def _central_fruit(view: View, colour: FruitMask, box: Box, ellipse: Mask) -> Mask | None:
    """Return the pixels of the central fruit of a box: its main piece and the pieces that a leaf separates from it."""
    x0, y0, x1, y1 = box
    labels = _split_fruits(view, colour.mask[y0:y1, x0:x1], box)
    count = int(labels.max()) + 1
    central = np.bincount(labels[ellipse], minlength=count)
    central[0] = 0
    main = int(np.argmax(central))
    if not central[main]:
        return None
    fruit_mask = labels == main
    surface = surface_depth(view, Segment(fruit_mask, (x0, y0)))
    within = np.bincount(
        labels[_ellipse_in(labels.shape, (0, 0, x1 - x0, y1 - y0), 0.9)], minlength=count
    )
    for number in range(1, count):
        piece = labels == number
        if number == main or within[number] < 0.7 * np.count_nonzero(piece):
            continue
        depth = surface_depth(view, Segment(piece, (x0, y0)))
        if surface is None or depth is None or abs(depth - surface) < _JUMP_MM:
            fruit_mask |= piece
    moved = _half_level(colour.channel[y0:y1, x0:x1], fruit_mask)
    return moved & (fruit_mask | (labels == 0))


def _split_fruits(view: View, fruit: Mask, box: Box) -> NDArray[np.int32]:
    """Number touching fruits separately, int32 (rows, columns), 0 outside fruits."""
    x0, y0, x1, y1 = box
    mask = fruit.copy()
    if view.smooth is not None:
        mask &= ~_depth_jumps(view.smooth[y0:y1, x0:x1])
    mask = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, np.ones((2, 2), np.uint8))
    labels = np.zeros(mask.shape, np.int32)
    pieces, piece_of, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=4)
    last = 0
    for number in range(1, pieces):
        left, top, width, height, area = (int(value) for value in stats[number])
        if area < _LEAST_PIXELS:
            continue
        where = slice(top, top + height), slice(left, left + width)
        piece = piece_of[where] == number
        part_labels = _split_at_necks(piece)
        labels[where][piece] = part_labels[piece] + last
        last += int(part_labels.max())
    return labels


def _split_at_necks(piece: Mask) -> NDArray[np.int32]:
    """Split a connected piece at its necks; labels start at 1."""
    rim = 1 if min(piece.shape) > 1 else 2
    padded = cv2.copyMakeBorder(
        piece.astype(np.uint8), rim, rim, rim, rim, cv2.BORDER_CONSTANT, value=0
    )
    inner = np.asarray(
        cv2.GaussianBlur(cv2.distanceTransform(padded, cv2.DIST_L2, 5), (0, 0), 1.0), np.float32
    )
    highest = (inner == cv2.dilate(inner, _SQUARE)) & (inner > 0)
    if (
        cv2.connectedComponents(highest.astype(np.uint8), connectivity=8)[0] == 2
    ):  # a single top, so no neck
        return piece.astype(np.int32)
    # The difference to the reconstruction marks the top of each hill; hills that share a high saddle count as one.
    filled = reconstruction(_NECK * inner, inner, method="dilation")
    tops = (inner - filled > 1e-3) & (padded > 0)
    _, seeds = cv2.connectedComponents(tops.astype(np.uint8), connectivity=8)
    part_labels = seeds if seeds.max() < 2 else watershed(-inner, seeds, mask=padded > 0)
    part_labels = part_labels[rim:-rim, rim:-rim].astype(np.int32)
    return np.where(
        piece, np.maximum(part_labels, 1) if seeds.max() < 2 else part_labels, 0
    ).astype(np.int32)


def _segments(view: View, colour: FruitMask, region: Box) -> list[Segment]:
    x0, y0, x1, y1 = region
    labels = _split_fruits(view, colour.mask[y0:y1, x0:x1], region)
    channel = colour.channel[y0:y1, x0:x1]
    segments: list[Segment] = []
    for number, where in enumerate(find_objects(labels), start=1):
        if where is None:
            continue
        rows, columns = (slice(max(0, part.start - _PAD), part.stop + _PAD) for part in where)
        cut = labels[rows, columns]
        segment_mask = _half_level(channel[rows, columns], cut == number) & (
            (cut == number) | (cut == 0)
        )
        segment = Segment(segment_mask, (x0 + columns.start, y0 + rows.start))
        if segment_mask.any() and _large_enough(view, segment):
            segments.append(segment)
    return segments


def _large_enough(view: View, segment: Segment) -> bool:
    """Return True if at least 35 % of the area of the smallest fruit at that distance is visible."""
    surface = surface_depth(view, segment)
    if surface is None:
        return False
    radius = view.diameters_mm[0] / 2 * view.camera.focal_px / surface
    return segment.area_px >= max(_LEAST_PIXELS, 0.35 * np.pi * radius**2)


def _depth_jumps(depth: Depth) -> Mask:
    """Find pixels where depth changes within three pixels by more than the roundness of a fruit explains."""
    known = np.isfinite(depth)
    low, high = (np.where(known, depth, np.float32(far)) for far in (1e9, -1e9))
    span = cv2.dilate(high, _SQUARE) - cv2.erode(low, _SQUARE)
    return known & (span > _JUMP_MM) & (span < 1e8)


def _drop_duplicates(fruits: list[FruitMeasurement]) -> list[FruitMeasurement]:
    """Remove outlines whose centre is inside a better outline at the same distance: the same fruit found twice."""
    distinct: list[FruitMeasurement] = []
    for fruit in fruits:
        if all(
            angle_from(fruit.cone.axis, other.cone.axis)
            > _SAME * max(fruit.cone.half_angle, other.cone.half_angle)
            or abs(fruit.distance_mm - other.distance_mm)
            > max(fruit.diameter_mm, other.diameter_mm)
            for other in distinct
        ):
            distinct.append(fruit)
    return distinct


def _main_piece(part: Mask, ellipse: Mask) -> Mask | None:
    """Return the connected piece with most pixels near the middle, and other pieces larger than a tenth of it."""
    opened = cv2.morphologyEx(part.astype(np.uint8), cv2.MORPH_OPEN, np.ones((2, 2), np.uint8))
    count, labels, stats, _ = cv2.connectedComponentsWithStats(opened, connectivity=4)
    if count < 2:
        return None
    central = np.bincount(labels[ellipse], minlength=count)
    central[0] = -1
    main = int(np.argmax(central))
    if central[main] <= 0:
        return None
    areas = np.asarray(stats)[:, cv2.CC_STAT_AREA]
    is_main = areas > 0.1 * areas[main]
    is_main[0] = False
    return is_main[labels]


def _graph_cut(pixels: NDArray[np.uint8], view: View, box: Box) -> Mask:
    """Segment the fruit in a box by graph cuts, with the surroundings as background and the middle as fruit."""
    x0, y0, x1, y1 = box
    height, width = view.fruit.shape
    margin = max(_LEAST_MARGIN_PX, (x1 - x0) // 4, (y1 - y0) // 4)
    left, top = max(0, x0 - margin), max(0, y0 - margin)
    right, bottom = min(width, x1 + margin), min(height, y1 + margin)
    around = np.s_[top:bottom, left:right]
    box_around = (x0 - left, y0 - top, x1 - left, y1 - top)
    inside = np.s_[y0 - top : y1 - top, x0 - left : x1 - left]
    full_size = right - left, bottom - top

    # Large pictures are shrunk for the cut.
    shrink = min(1.0, _LARGEST_CUT / max(full_size))
    size = (
        max(_SMALLEST_CUT, round(full_size[0] * shrink)),
        max(_SMALLEST_CUT, round(full_size[1] * shrink)),
    )
    part = np.ascontiguousarray(pixels[around])
    picture = np.asarray(cv2.resize(part, size, interpolation=cv2.INTER_AREA), np.uint8)
    depth = None if view.smooth is None else view.smooth[around]
    seeds = _seeds_of_cut((bottom - top, right - left), box_around, depth, view.diameters_mm[1])
    state = np.asarray(cv2.resize(seeds, size, interpolation=cv2.INTER_NEAREST), np.uint8)
    if not _cut(picture, state):
        return np.zeros((y1 - y0, x1 - x0), np.bool_)
    fruit = np.isin(state, _FRUIT_STATES).astype(np.uint8)
    how = cv2.INTER_LINEAR if shrink == 1 else cv2.INTER_NEAREST
    full = cv2.resize(fruit, full_size, interpolation=how)
    return full[inside].astype(np.bool_)


def _seeds_of_cut(
    shape: tuple[int, int], box: Box, depth: Depth | None, largest_mm: float
) -> NDArray[np.uint8]:
    """Return what each pixel is before the cut, as the constants of GrabCut.

    Outside the box is background, an ellipse in the box is probably fruit, and a small one in the middle surely, except
    where depth differs too much from that of the middle for the largest fruit, of the diameter ``largest_mm``.
    """
    x0, y0, x1, y1 = box
    seeds = np.full(shape, cv2.GC_BGD, np.uint8)
    seeds[y0:y1, x0:x1] = cv2.GC_PR_BGD
    seeds[_ellipse_in(shape, box, _PROBABLE_FRUIT)] = cv2.GC_PR_FGD
    is_fruit = _ellipse_in(shape, box, _SURE_FRUIT)
    if depth is not None:
        middle = depth[_ellipse_in(shape, box, _SURFACE) & np.isfinite(depth)]
        if len(middle) >= _LEAST_DEPTH_PIXELS:
            surface = float(np.median(middle))
            with np.errstate(invalid="ignore"):  # NaN without depth, which is not away
                is_away = np.abs(depth - surface) > largest_mm * _AWAY
            seeds[is_away] = cv2.GC_BGD
            is_fruit &= ~is_away
    seeds[is_fruit] = cv2.GC_FGD
    return seeds


def _cut(picture: NDArray[np.uint8], state: NDArray[np.uint8]) -> bool:
    """Update the state of each pixel by GrabCut; False if there is no fruit or no background to start from."""
    has_background = (state == cv2.GC_BGD).any()
    has_fruit = np.isin(state, _FRUIT_STATES).any()
    if not has_background or not has_fruit:
        return False
    cv2.setRNGSeed(1)  # the same cut each time
    no_box, models = (0, 0, 1, 1), (np.zeros((1, 65)), np.zeros((1, 65)))
    try:
        cv2.grabCut(picture, state, no_box, *models, _CUT_ROUNDS, cv2.GC_INIT_WITH_MASK)
    except cv2.error:  # colour mixtures cannot be fitted to a picture of a single colour
        return False
    return True


def _ellipse_in(shape: tuple[int, ...], box: Box, share: float) -> Mask:
    """Return the mask of an ellipse in the middle of a box, whose axes are a share of the box's sides."""
    x0, y0, x1, y1 = box
    y, x = np.mgrid[: shape[0], : shape[1]]
    right = (x + 0.5 - (x0 + x1) / 2) / (x1 - x0) * 2
    down = (y + 0.5 - (y0 + y1) / 2) / (y1 - y0) * 2
    return right**2 + down**2 <= share**2
