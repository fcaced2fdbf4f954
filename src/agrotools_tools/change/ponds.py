"""Pond events between two pictures: constructed, demolished, dried, wetted, or none.

Water is searched for on both dates, by NDWI if there is a near infrared band, else by a ring test on colours. Without
infrared no threshold fits all water: water is clear, green or brown, and the white balance of cameras varies. A
comparison with the surroundings is more reliable: a pond is darker or bluer than its bank, flatter than the fields,
compact, and it differs from its bank in the same way on all sides. Candidates come from a component tree (the
components of several channels at many thresholds, as in Matas et al. 2004, BMVC); the ring test is applied to each.

If a place is water on one date only, the other date is tested for a basin: an outline parallel to that of the water,
with a bank or floor unlike the field, the same on all sides. If there is a basin, the pond dried or was wetted; if not,
it was demolished or constructed.

Both tests are logistic regressions. Their weights, ``data/pond_evidence.json``, are written by
``training/fit_pond_evidence.py`` from drawn pairs.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.vision import Box
from agrotools.vision.reading import bounds
from agrotools_tools.change.result import PondEvent
from agrotools_tools.shipped import shipped_file

Plane = NDArray[np.float32]
Mask = NDArray[np.bool_]
Infrared = tuple[NDArray[np.floating] | None, NDArray[np.floating] | None]

_UNCLEAR = (0.4, 0.6)
"""Range of the probability of a basin in which no event is reported."""
_STILL_WATER = 0.15
"""Least probability of water, at a place that is water on the other date, to count as water on both dates."""
_MAYBE_WATER = 0.2
"""Least probability of a region found on one date only that rules out the event ``none``."""
_LEAST_OVERLAP = 0.25
_SURE = 0.4
"""Least probability by the ring test for a region to count as water."""
_HOPELESS = 0.02
"""Probability up to which a region is ignored."""
_LEAST_AREA_M2 = 60.0
_LEAST_AREA_PX = 80
_LARGEST_SHARE = 0.25
"""Largest share of the picture that a pond covers; larger regions are lakes or fields."""
_LEVELS = 11
_CANDIDATES = 45
_CANDIDATES_PX = 200_000
_SECTORS = 16
_WORK_PX = 2048
_WORK_GSD_M = 0.45
_FINEST_GSD_M = 0.30
_SEARCH_PX = 384
_SQUARE = np.ones((3, 3), np.uint8)
_CLIP = 4.0
"""Bound of the absolute value of standardised features."""


class _Evidence(NamedTuple):
    """Logistic regression on standardised features, their squares and their products.

    Features are standardised by ``mean`` and ``scale`` and clipped to -4 to 4. ``products``: weights of the product of
    each feature with each later one, in order; empty if products are not used. ``low``, ``high``: widened range of
    each feature in the positive training examples; outside it the probability is 0 whatever the weights.
    """

    bias: float
    mean: Sequence[float]
    scale: Sequence[float]
    linear: Sequence[float]
    square: Sequence[float]
    products: Sequence[float] = ()
    low: Sequence[float] = ()
    high: Sequence[float] = ()

    def probability(self, features: NDArray[np.float64]) -> float:
        if self.low and (np.any(features < self.low) or np.any(features > self.high)):
            return 0.0
        standard = np.clip((features - self.mean) / self.scale, -_CLIP, _CLIP)
        value = self.bias + float(standard @ self.linear) + float(standard**2 @ self.square)
        if self.products:
            first, second = np.triu_indices(len(standard), 1)
            value += float((standard[first] * standard[second]) @ self.products)
        return float(1.0 / (1.0 + np.exp(-np.clip(value, -50, 50))))


_WEIGHTS: dict[str, Any] = json.loads(shipped_file("pond_evidence.json").read_bytes())
_RING_TEST, _BASIN_TEST = _Evidence(**_WEIGHTS["ring_test"]), _Evidence(**_WEIGHTS["basin_test"])


@dataclass(frozen=True, eq=False)
class Channels:
    """Inputs of the tests, float32 (rows, columns).

    ``light``: log brightness. ``blue``: log of blue over red. ``green``: excess green. ``rough``: log of the local
    texture. ``slope``: size of the colour gradient.
    """

    light: Plane
    blue: Plane
    green: Plane
    rough: Plane
    slope: Plane
    valid: Mask

    @cached_property
    def colours(self) -> NDArray[np.float32]:
        """``light``, ``blue`` and ``green`` as channels of one array, (rows, columns, 3)."""
        return np.dstack([self.light, self.blue, self.green])

    @cached_property
    def usual(self) -> NDArray[np.float64]:
        """Medians of ``light``, ``blue``, ``rough`` and ``slope`` over pixels with data."""
        step = max(1, int(self.valid.sum()) // 20_000)
        planes = (self.light, self.blue, self.rough, self.slope)
        return np.array([np.median(plane[self.valid][::step]) for plane in planes], np.float64)


class Region(NamedTuple):
    """Possible water: its mask, bool (rows, columns), and the probability that it is water, 0 to 1."""

    mask: Mask
    probability: float


class Water(NamedTuple):
    """Water in a picture.

    ``mask``: bool (rows, columns), union of ``regions``. ``regions``: ponds, most probable first. ``doubtful``: regions
    that failed the test. ``note``: how water was found.
    """

    mask: Mask
    regions: list[Region]
    doubtful: list[Region]
    note: str
    flags: tuple[str, ...] = ()


def find_water(
    rgb: NDArray[np.uint8],
    valid: Mask,
    *,
    nir: NDArray[np.floating] | None = None,
    gsd_m: float | None = None,
    min_area_px: int | None = None,
) -> Water:
    """Find ponds in a picture from above, uint8 (rows, columns, 3), at a third of a metre to a metre per pixel (see
    :func:`working_shrink`). ``nir``: near infrared on the scale of ``rgb``; smallest areas as of
    :func:`least_area_px`."""
    least = least_area_px(gsd_m, min_area_px)
    return (
        _by_ring_test(channels_of(rgb, valid), least)
        if nir is None
        else _by_ndwi(rgb, nir, valid, least)
    )


def working_shrink(shape: tuple[int, ...], gsd_m: float | None) -> float:
    """Return the factor, 1 or more, by which a picture is shrunk before the search.

    Pictures finer than 0.3 m are shrunk to 0.45 m per pixel, the sampling at which the tests know water and banks, and
    all pictures to a longest side of 2048 pixels.
    """
    return max(
        1.0, max(shape) / _WORK_PX, _WORK_GSD_M / gsd_m if gsd_m and gsd_m < _FINEST_GSD_M else 1.0
    )


def least_area_px(gsd_m: float | None, min_area_px: int | None) -> int:
    """Return the smallest area of a pond, pixels: ``min_area_px``, else 60 m^2 (40 pixels or more), else 80 pixels."""
    if min_area_px is not None:
        return max(1, min_area_px)
    return max(_LEAST_AREA_PX // 2, round(_LEAST_AREA_M2 / gsd_m**2)) if gsd_m else _LEAST_AREA_PX


def channels_of(rgb: NDArray[np.uint8], valid: Mask) -> Channels:
    """Compute the channels of a picture; pixels without data get the median of their channel."""
    smooth = (
        cv2.GaussianBlur(cv2.medianBlur(np.ascontiguousarray(rgb), 3), (0, 0), 0.9).astype(
            np.float32
        )
        + 6.0
    )
    red, green, blue = cv2.split(smooth)
    total = red + green + blue
    light, balance = np.log(total), np.log(blue / red)
    excess = (2 * green - red - blue) / total
    raw = np.log(rgb.astype(np.float32).sum(axis=2) + 18.0)
    fine = np.abs(raw - cv2.GaussianBlur(raw, (0, 0), 2.0))
    rough = np.log(cv2.GaussianBlur(fine, (0, 0), 2.0) + 0.004)
    planes = []
    for plane in (light, balance, excess, rough):
        middle = float(np.median(plane[valid])) if valid.any() else 0.0
        planes.append(np.where(valid, plane, np.float32(middle)).astype(np.float32))
    slope = np.zeros(valid.shape, np.float32)
    for plane, weight in zip(planes[:3], (1.0, 1.5, 1.5), strict=True):
        dx, dy = cv2.Sobel(plane, cv2.CV_32F, 1, 0), cv2.Sobel(plane, cv2.CV_32F, 0, 1)
        slope += np.float32(weight) * cv2.magnitude(dx, dy)
    return Channels(*planes, slope=slope, valid=valid)


def _water_probability(channels: Channels, mask: Mask) -> float:
    """Return the probability by the ring test that ``mask`` is a pond, 0 to 1; 0 if it is too small for the test."""
    features = ring_features(channels, mask)
    return 0.0 if features is None else _RING_TEST.probability(features)


def ring_features(channels: Channels, mask: Mask) -> NDArray[np.float64] | None:
    """Return the features of the ring test, or None if the region is too small.

    In order: contrast of the region with the ring around it (darker, bluer, less green, flatter); solidity and
    compactness; sharpness of the outline; share of the contrast that is the same on all sides, and the shares of the
    sides on which the region is darker and bluer; contrast with the whole picture (darker, bluer), greenness, and
    flatness against the picture; spread of brightness; area.
    """
    crop = _crop_around(mask, 14)
    if crop is None:
        return None
    inside = np.ascontiguousarray(mask[crop])
    area = int(inside.sum())
    depth = _signed_distance(inside)
    valid = channels.valid[crop]
    core = (depth >= min(2.0, 0.5 * float(depth.max()))) & valid
    reach = float(np.clip(0.25 * np.sqrt(area), 4.0, 12.0))
    ring = (depth <= -1.5) & (depth >= -1.5 - reach) & valid
    if core.sum() < 12 or ring.sum() < 12:
        return None
    colours = channels.colours[crop]
    inner, outer = np.median(colours[core], axis=0), np.median(colours[ring], axis=0)
    rough_in, rough_out = (float(np.median(channels.rough[crop][part])) for part in (core, ring))
    spread_in = float(channels.light[crop][core].std())
    contours = cv2.findContours(inside.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)[
        0
    ]
    outline = max(contours, key=len)
    hull = float(cv2.contourArea(cv2.convexHull(outline)))
    perimeter = float(cv2.arcLength(outline, True))
    edge = float(channels.slope[crop][np.abs(depth) <= 1.5].mean())
    usual_light, usual_blue, usual_rough, usual_slope = channels.usual
    apart = _sector_differences(colours, depth, valid, (1.0, 4.5), (-4.5, -1.0))
    darker, bluer = 0.0, 0.0
    if len(apart) >= 4:
        darker, bluer = float((apart[:, 0] < -0.03).mean()), float((apart[:, 1] > 0.02).mean())
    return np.array(
        [
            *((outer - inner) * (1, -1, 1)),
            rough_out - rough_in,
            min(area / max(hull, 1.0), 1.0),
            4 * np.pi * area / max(perimeter, 1.0) ** 2,
            np.log(edge / (usual_slope + 1e-3) + 0.05),
            _closedness(apart, 4)[1],
            darker,
            bluer,
            usual_light - inner[0],
            inner[1] - usual_blue,
            inner[2],
            usual_rough - rough_in,
            np.log(spread_in + 0.01),
            np.log(area),
        ],
        np.float64,
    )


def _sector_differences(
    colours: NDArray[np.float32],
    depth: Plane,
    valid: Mask,
    inner: tuple[float, float],
    outer: tuple[float, float],
) -> NDArray[np.float64]:
    """Return the colour of an inner band of a region minus that of an outer band, (sectors, channels), for each
    sector around its centre with 3 pixels in both. Bands are ranges of the signed distance to the outline (positive
    inside), pixels."""
    rows, columns = np.nonzero(depth > 0)
    y, x = np.mgrid[0 : depth.shape[0], 0 : depth.shape[1]]
    angle = np.arctan2(y - rows.mean(), x - columns.mean())
    sector = np.minimum(((angle + np.pi) * (_SECTORS / (2 * np.pi))).astype(np.int64), _SECTORS - 1)
    means = []
    for low, high in (inner, outer):
        part = (depth >= low) & (depth <= high) & valid
        count = np.bincount(sector[part], minlength=_SECTORS).astype(np.float64)
        sums = [
            np.bincount(sector[part], colours[..., k][part], _SECTORS)
            for k in range(colours.shape[2])
        ]
        means.append(
            np.where(count[:, None] >= 3, np.array(sums).T / np.maximum(count, 1)[:, None], np.nan)
        )
    apart = means[0] - means[1]
    return apart[np.isfinite(apart).all(axis=1)]


def _signed_distance(mask: Mask) -> Plane:
    """Return the distance to the outline of ``mask``, px, positive inside, float32; beyond the picture is outside."""
    padded = cv2.copyMakeBorder(mask.astype(np.uint8), 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=0)
    inside = cv2.distanceTransform(padded, cv2.DIST_L2, 3)[1:-1, 1:-1]
    outside = cv2.distanceTransform((~mask).astype(np.uint8), cv2.DIST_L2, 3)
    return np.asarray(np.where(mask, inside, -outside), np.float32)


def _crop_around(mask: Mask, margin: int) -> tuple[slice, slice] | None:
    """Return the slices of the picture around ``mask`` with a margin in pixels, or None if the mask is empty."""
    if not mask.any():
        return None
    x0, y0, x1, y1 = bounds(mask)
    return slice(max(0, y0 - margin), y1 + margin), slice(max(0, x0 - margin), x1 + margin)


def candidates(channels: Channels, least_px: int) -> list[Mask]:
    """Return compact regions of the component tree, best first: the ones with a sharp outline and a flat interior.

    Except in small pictures, the search runs at half resolution; the masks have the resolution of the picture.
    """
    rows, columns = channels.valid.shape
    shrink = float(np.clip(max(rows, columns) / _SEARCH_PX, 1.0, 2.0))
    number = int(_CANDIDATES * np.clip(rows * columns / _CANDIDATES_PX, 1.0, 8.0))
    size = (max(1, round(columns / shrink)), max(1, round(rows / shrink)))

    def small(plane: Plane) -> Plane:
        return np.asarray(cv2.resize(plane, size, interpolation=cv2.INTER_AREA), np.float32)

    light, blue, green, rough = (
        small(p) for p in (channels.light, channels.blue, channels.green, channels.rough)
    )
    slope, valid = small(channels.slope), small(channels.valid.astype(np.float32)) > 0.5
    least, most = max(8.0, 0.8 * least_px / shrink**2), _LARGEST_SHARE * valid.sum()
    regions: list[tuple[float, Box, Mask]] = []
    for plane in (-light, blue, -green, -rough, 1.5 * blue - light):
        sample = plane[valid][::3]
        if not sample.size or sample.min() == sample.max():
            continue
        for level in np.unique(np.quantile(sample, 1 - np.geomspace(0.005, 0.5, _LEVELS))):
            regions += _components((plane > level) & valid, slope, least, most)
    regions.sort(key=lambda item: -item[0])
    chosen: list[tuple[Box, Mask]] = []
    for _, box, mask in regions:
        if len(chosen) >= number:
            break
        if all(_overlap_of_masks(box, mask, *other) < 0.6 for other in chosen):
            chosen.append((box, mask))
    masks: list[Mask] = []
    for (x, y, wide, high), mask in chosen:
        whole = np.zeros(valid.shape, bool)
        whole[y : y + high, x : x + wide] = mask
        masks.append(_enlarge_mask(whole, (columns, rows)) & channels.valid)
    return masks


def _components(
    above: Mask, slope: Plane, least: float, most: float
) -> list[tuple[float, Box, Mask]]:
    """Find compact components: sharpness of the outline over the interior, box (x, y, width, height), mask in box."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats(
        above.astype(np.uint8), connectivity=4
    )
    area, wide, high = (
        stats[:, cv2.CC_STAT_AREA],
        stats[:, cv2.CC_STAT_WIDTH],
        stats[:, cv2.CC_STAT_HEIGHT],
    )
    fits = (area >= least) & (area <= most) & (area > 0.40 * wide * high)
    fits &= np.maximum(wide, high) < 5 * np.minimum(wide, high)
    fits[0] = False
    components: list[tuple[float, Box, Mask]] = []
    for label in np.flatnonzero(fits[:count]):
        x, y, w, h = (int(value) for value in stats[label, :4])
        mask = np.asarray(labels[y : y + h, x : x + w] == label)
        padded = cv2.copyMakeBorder(mask.view(np.uint8), 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=0)
        inner = cv2.erode(padded, _SQUARE)
        if cv2.countNonZero(cv2.dilate(inner, _SQUARE)) < 0.7 * area[label]:
            continue
        core = inner[1:-1, 1:-1] > 0
        steep = slope[y : y + h, x : x + w]
        # Trees have sharp outlines too, but are rough inside.
        components.append(
            (float(steep[mask & ~core].mean() / (steep[core].mean() + 0.02)), (x, y, w, h), mask)
        )
    return components


def _by_ring_test(channels: Channels, least_px: int) -> Water:
    tested = [
        Region(mask, _water_probability(channels, mask)) for mask in candidates(channels, least_px)
    ]
    regions: list[Region] = []
    occupied = np.zeros(channels.valid.shape, bool)
    for region in sorted(tested, key=lambda region: -region.probability):
        if (
            region.probability > _HOPELESS
            and (region.mask & occupied).sum() <= 0.2 * region.mask.sum()
        ):
            occupied |= region.mask
            regions.append(region)
    sure = [region for region in regions if region.probability >= _SURE]
    note = f"water: {len(sure)} region(s) that are compact, flat and unlike their surroundings on all sides"
    return Water(
        _union(sure, channels.valid.shape),
        sure,
        regions[len(sure) :],
        note,
        ("water_from_colour_only",),
    )


def _by_ndwi(
    rgb: NDArray[np.uint8], nir: NDArray[np.floating], valid: Mask, least_px: int
) -> Water:
    green = cv2.GaussianBlur(rgb[..., 1].astype(np.float32), (0, 0), 0.8)
    usable = valid & np.isfinite(nir)
    infrared = cv2.GaussianBlur(np.where(usable, nir, 0).astype(np.float32), (0, 0), 0.8)
    total = green + infrared
    ndwi = np.where(
        usable & (total > 0), (green - infrared) / np.where(total > 0, total, 1), np.float32(-1)
    )
    wet = cv2.morphologyEx((ndwi > 0).astype(np.uint8), cv2.MORPH_OPEN, _SQUARE)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(wet, connectivity=4)
    large = [label for label in range(1, count) if stats[label, cv2.CC_STAT_AREA] >= least_px]
    masks = [np.asarray(labels == label) for label in large]
    regions = [
        Region(mask, float(np.clip(0.5 + 2.0 * float(np.median(ndwi[mask])), 0.5, 1.0)))
        for mask in masks
    ]
    regions.sort(key=lambda region: (-region.probability, -int(region.mask.sum())))
    note = "water: where NDWI = (green - NIR) / (green + NIR) is above 0 (McFeeters 1996)"
    return Water(_union(regions, valid.shape), regions, [], note)


def _union(regions: Sequence[Region], shape: tuple[int, ...]) -> Mask:
    return np.logical_or.reduce([np.zeros(shape, bool), *(region.mask for region in regions)])


def _enlarge_mask(mask: Mask, size: tuple[int, int]) -> Mask:
    """Resize a mask to (columns, rows) with a smooth outline."""
    if size == mask.shape[::-1]:
        return mask
    return np.asarray(
        cv2.resize(mask.astype(np.float32), size, interpolation=cv2.INTER_LINEAR) >= 0.5
    )


def _overlap_of_masks(box: Box, mask: Mask, other_box: Box, other: Mask) -> float:
    """Return the intersection over union of two masks given in their boxes."""
    x0, y0 = max(box[0], other_box[0]), max(box[1], other_box[1])
    x1 = min(box[0] + box[2], other_box[0] + other_box[2])
    y1 = min(box[1] + box[3], other_box[1] + other_box[3])
    if x0 >= x1 or y0 >= y1:
        return 0.0
    first = mask[y0 - box[1] : y1 - box[1], x0 - box[0] : x1 - box[0]]
    second = other[y0 - other_box[1] : y1 - other_box[1], x0 - other_box[0] : x1 - other_box[0]]
    shared = int((first & second).sum())
    return shared / (int(mask.sum()) + int(other.sum()) - shared)


class ComparedPonds(NamedTuple):
    """Change of the ponds between two pictures.

    ``event``: event of the largest pond that changed; None if it is unclear, or unclear whether there is any water.
    ``water_before``, ``water_after``: bool (rows, columns). ``basin_probability``: probability of a basin on the dry
    date, None if no pond changed.
    """

    event: PondEvent | None
    water_before: Mask
    water_after: Mask
    basin_probability: float | None
    notes: tuple[str, ...]
    flags: tuple[str, ...]


def pond_change(
    before_rgb: NDArray[np.uint8],
    after_rgb: NDArray[np.uint8],
    valid: Mask,
    *,
    infrared: Infrared = (None, None),
    gsd_m: float | None = None,
    min_area_px: int | None = None,
    asked: Mask | None = None,
) -> ComparedPonds:
    """Find the water of both dates and the event of the largest pond that changed.

    Pictures: uint8 (rows, columns, 3), natural colours, registered to within two pixels; ``valid``: pixels with data in
    both; ``infrared``: of both, on the scale of the colours. ``gsd_m`` sets the smallest area of a pond to 60 m^2
    unless ``min_area_px`` is given. ``asked``: the event is that of ponds which lie mostly there; None: anywhere.
    """
    pictures, there, shrink = (before_rgb, after_rgb), valid, working_shrink(valid.shape, gsd_m)
    if shrink > 1.0:
        size = (max(1, round(valid.shape[1] / shrink)), max(1, round(valid.shape[0] / shrink)))

        def small(plane: Any) -> Any:
            return (
                None
                if plane is None
                else cv2.resize(np.ascontiguousarray(plane), size, interpolation=cv2.INTER_AREA)
            )

        pictures = small(before_rgb), small(after_rgb)
        infrared = small(infrared[0]), small(infrared[1])
        there = small(valid.astype(np.float32)) > 0.99
        if asked is not None:
            asked = small(asked.astype(np.float32)) > 0.5
        gsd_m = gsd_m and gsd_m * shrink
        min_area_px = min_area_px and max(1, round(min_area_px / shrink**2))
    waters = [
        find_water(rgb, there, nir=nir, gsd_m=gsd_m, min_area_px=min_area_px)
        for rgb, nir in zip(pictures, infrared, strict=True)
    ]
    channels = [channels_of(rgb, there) for rgb in pictures]
    masks = [water.mask.copy() for water in waters]
    lost = _regions_without_match(waters[0], waters[1], channels[1], infrared[1], masks[1])
    gained = _regions_without_match(waters[1], waters[0], channels[0], infrared[0], masks[0])
    masks = [mask & there for mask in masks]
    notes = [waters[0].note, waters[1].note]
    flags = [*waters[0].flags, *waters[1].flags]
    if asked is not None:
        lost, gained = ([one for one in side if _lies_in(asked, one)] for side in (lost, gained))
        doubtful = [[one for one in water.doubtful if _lies_in(asked, one)] for water in waters]
    else:
        doubtful = [water.doubtful for water in waters]
    event, probability = _event(lost, gained, channels)
    if event == "none" and any(
        _maybe_water(doubts, water.mask | other)
        for doubts, water, other in zip(doubtful, waters, masks[::-1], strict=True)
    ):
        event = None
    if event is None:
        flags.append("pond_event_unclear")
    elif probability is not None:
        notes.append(
            f"on the dry date a basin is there with probability {probability:.2f}: {event}"
        )
    if len(lost) + len(gained) > 1:
        flags.append("several_ponds_changed")
    if shrink > 1.0:
        masks = [_enlarge_mask(mask, valid.shape[::-1]) & valid for mask in masks]
        notes.append(f"ponds were looked for at 1/{shrink:.2g} of the resolution")
    return ComparedPonds(
        event,
        masks[0],
        masks[1],
        probability,
        tuple(dict.fromkeys(notes)),
        tuple(dict.fromkeys(flags)),
    )


def basin_probability(channels: Channels, water: Mask) -> float:
    """Return the probability that the picture shows a basin where the other date has ``water``, 0 to 1."""
    features = basin_features(channels, water)
    return 0.5 if features is None else _BASIN_TEST.probability(features)


def basin_features(channels: Channels, water: Mask) -> NDArray[np.float64] | None:
    """Return the features of a basin in a picture without water, or None if the place is too small or at the border.

    Of the strongest closed outline within 12 pixels of that of the water: size of the step, share of the step that is
    the same on all sides, and their product. Share of gradients that cross the outline. Contrast of floor and field,
    of bank and field, of floor and bank; brightness of the bank against field and floor; greenness of the floor against
    the field; roughness of floor and bank against the field. Gradients at the outline against the whole picture, and
    against the field around.
    """
    crop = _crop_around(water, 40)
    if crop is None:
        return None
    depth = _signed_distance(np.ascontiguousarray(water[crop]))
    valid, colours = channels.valid[crop], channels.colours[crop]
    deepest = float(depth.max())
    core = (depth >= 0.35 * deepest) & valid
    rim = (depth >= -7.0) & (depth < 0.0) & valid
    field = (depth <= -14.0) & (depth >= -30.0) & valid
    if core.sum() < 12 or rim.sum() < 12 or field.sum() < 12:
        return None
    closed = [
        _closedness(_sector_differences(colours, depth, valid, (at, at + 3.0), (at - 3.0, at)), 6)
        for at in (4.0, 2.0, 0.0, -2.0, -4.0, -6.0, -8.0, -10.0, -12.0)
        if at + 3.0 <= deepest + 1.5
    ]
    size, consistent = (
        (max(values) for values in zip(*closed, strict=True)) if closed else (0.0, 0.0)
    )
    steady = max((value * share for value, share in closed), default=0.0)
    along = _alignment(channels.light[crop], depth, valid)
    floor, bank, land = (np.median(colours[part], axis=0) for part in (core, rim, field))
    spread = colours[field].std(axis=0) + 0.02
    apart = ((floor - land) / spread, (bank - land) / spread, (floor - bank) / spread)
    rough = [float(np.median(channels.rough[crop][part])) for part in (core, rim, field)]
    slope = channels.slope[crop]
    near = float(slope[(depth > -12) & (depth < min(5.0, deepest)) & valid].mean())
    return np.array(
        [
            size,
            consistent,
            steady,
            along,
            *(float(np.linalg.norm(contrast)) for contrast in apart),
            bank[0] - land[0],
            bank[0] - floor[0],
            floor[2] - land[2],
            rough[0] - rough[2],
            rough[1] - rough[2],
            np.log(near / (float(channels.usual[3]) + 1e-3) + 0.05),
            np.log(near / (float(slope[field].mean()) + 1e-3) + 0.05),
        ],
        np.float64,
    )


def _closedness(apart: NDArray[np.float64], least: int) -> tuple[float, float]:
    """Return the size of the mean difference over the sectors, and its ratio to the mean size: 1 if all sides agree;
    0 of under ``least`` sectors."""
    if len(apart) < least:
        return 0.0, 0.0
    mean = float(np.linalg.norm(apart.mean(axis=0)))
    return mean, mean / max(float(np.linalg.norm(apart, axis=1).mean()), 1e-3)


def _alignment(light: Plane, depth: Plane, valid: Mask) -> float:
    """Return the excess of gradients across the outline over gradients further out."""
    smooth = cv2.GaussianBlur(light, (0, 0), 1.0)
    level = cv2.GaussianBlur(depth, (0, 0), 1.5)
    gx, gy = cv2.Sobel(smooth, cv2.CV_32F, 1, 0), cv2.Sobel(smooth, cv2.CV_32F, 0, 1)
    nx, ny = cv2.Sobel(level, cv2.CV_32F, 1, 0), cv2.Sobel(level, cv2.CV_32F, 0, 1)
    across = np.abs(gx * nx + gy * ny) / np.maximum(np.hypot(nx, ny), 1e-3)
    size = np.hypot(gx, gy)
    near, far = (depth > -10) & (depth < 5) & valid, (depth < -16) & valid
    if near.sum() < 12 or far.sum() < 12:
        return 0.0
    return float(
        across[near].sum() / max(size[near].sum(), 1e-6)
        - across[far].sum() / max(size[far].sum(), 1e-6)
    )


def _regions_without_match(
    water: Water,
    other_water: Water,
    channels: Channels,
    nir: NDArray[np.floating] | None,
    other_mask: Mask,
) -> list[Region]:
    """Return the regions of water in ``water`` that are not water on the other date. A region that the search there
    missed, but that the ring test accepts as water, is added to ``other_mask`` instead."""
    only: list[Region] = []
    for region in water.regions:
        area = int(region.mask.sum())
        shared = max((int((other.mask & region.mask).sum()) / min(area, max(1, int(other.mask.sum())))
                      for other in other_water.regions), default=0.0)  # fmt: skip
        if shared >= _LEAST_OVERLAP:
            continue
        if nir is None and _water_probability(channels, region.mask) >= _STILL_WATER:
            other_mask |= region.mask
        else:
            only.append(region)
    return only


def _maybe_water(doubtful: Sequence[Region], water_of_either: Mask) -> bool:
    """Return True if a doubtful region may be water and is not water on either date."""
    return any(
        region.probability >= _MAYBE_WATER and not (region.mask & water_of_either).any()
        for region in doubtful
    )


def _lies_in(part: Mask, region: Region) -> bool:
    """Return True if most of a region of water lies in this part of the picture."""
    return 2 * int((region.mask & part).sum()) > int(region.mask.sum())


def _event(
    lost: list[Region], gained: list[Region], channels: list[Channels]
) -> tuple[PondEvent | None, float | None]:
    """Return the event of the side (lost or gained) with more water, and the probability of a basin."""

    def weight(region: Region) -> float:
        return float(region.mask.sum()) * region.probability

    if not lost and not gained:
        return "none", None
    gone = sum(map(weight, lost)) >= sum(map(weight, gained))
    regions, dry = (lost, channels[1]) if gone else (gained, channels[0])
    probability = basin_probability(dry, max(regions, key=weight).mask)
    if _UNCLEAR[0] < probability < _UNCLEAR[1]:
        return None, probability
    without, with_basin = ("demolished", "dried") if gone else ("constructed", "wetted")
    return (with_basin if probability >= _UNCLEAR[1] else without), probability
