"""Pond events between two pictures: constructed, demolished, dried, wetted, or none.

Water is searched for on both dates (:mod:`agrotools.tools.change.water`). If a place is water on one date only, the
other date is tested for a basin: an outline parallel to that of the water, with a bank or floor unlike the field, the
same on all sides. If there is a basin, the pond dried or was wetted; if not, it was demolished or constructed.
"""

from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.tools.change.result import PondEvent
from agrotools.tools.change.water import (
    BASIN_TEST,
    Channels,
    Mask,
    Plane,
    Region,
    Water,
    channels_of,
    crop_around,
    enlarge_mask,
    find_water,
    sector_differences,
    signed_distance,
    water_probability,
    working_shrink,
)

Infrared = tuple[NDArray[np.floating] | None, NDArray[np.floating] | None]

UNCLEAR = (0.4, 0.6)
"""Range of the probability of a basin in which no event is reported."""
STILL_WATER = 0.15
"""Least probability of water, at a place that is water on the other date, to count as water on both dates."""
MAYBE_WATER = 0.2
"""Least probability of a region found on one date only that rules out the event ``none``."""
_LEAST_OVERLAP = 0.25


@dataclass(frozen=True, eq=False)
class PondChange:
    """Change of the ponds between two pictures.

    ``event``: event of the largest pond that changed; None if it is unclear, or unclear whether there is any water.
    ``water_before``, ``water_after``: bool (rows, columns). ``basin_probability``: probability of a basin on the dry
    date, None if no pond changed.
    """

    event: PondEvent | None
    water_before: Mask
    water_after: Mask
    basin_probability: float | None = None
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def pond_change(
    before_rgb: NDArray[np.uint8],
    after_rgb: NDArray[np.uint8],
    valid: Mask,
    *,
    infrared: Infrared = (None, None),
    gsd_m: float | None = None,
    min_area_px: int | None = None,
) -> PondChange:
    """Find the water of both dates and the event of the largest pond that changed.

    Pictures: uint8 (rows, columns, 3), natural colours, registered to within two pixels; ``valid``: pixels with data in
    both; ``infrared``: of both, on the scale of the colours. ``gsd_m`` sets the smallest area of a pond to 60 m^2
    unless ``min_area_px`` is given.
    """
    shape = valid.shape
    shrink = working_shrink(shape, gsd_m)
    if shrink == 1.0:
        return _compare((before_rgb, after_rgb), infrared, valid, gsd_m, min_area_px)
    small = _compare(
        (_shrink(before_rgb, shrink), _shrink(after_rgb, shrink)),
        (_shrink(infrared[0], shrink), _shrink(infrared[1], shrink)),
        _shrink(valid.astype(np.float32), shrink) > 0.99,
        None if gsd_m is None else gsd_m * shrink,
        None if min_area_px is None else max(1, round(min_area_px / shrink**2)),
    )
    back = (shape[1], shape[0])
    return replace(
        small,
        water_before=enlarge_mask(small.water_before, back) & valid,
        water_after=enlarge_mask(small.water_after, back) & valid,
        notes=(*small.notes, f"ponds were looked for at 1/{shrink:.2g} of the resolution"),
    )


def _shrink(plane: Any, shrink: float) -> Any:
    if plane is None:
        return None
    size = (max(1, round(plane.shape[1] / shrink)), max(1, round(plane.shape[0] / shrink)))
    return cv2.resize(np.ascontiguousarray(plane), size, interpolation=cv2.INTER_AREA)


def _compare(
    pictures: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    infrared: Infrared,
    valid: Mask,
    gsd_m: float | None,
    min_area_px: int | None,
) -> PondChange:
    """Apply :func:`pond_change` at the resolution of the pictures."""
    waters = [
        find_water(rgb, valid, nir=nir, gsd_m=gsd_m, min_area_px=min_area_px)
        for rgb, nir in zip(pictures, infrared, strict=True)
    ]
    channels = [channels_of(rgb, valid) for rgb in pictures]
    masks = [water.mask.copy() for water in waters]
    lost = _regions_without_match(waters[0], waters[1], channels[1], infrared[1], masks[1])
    gained = _regions_without_match(waters[1], waters[0], channels[0], infrared[0], masks[0])
    masks = [mask & valid for mask in masks]
    notes = [waters[0].note, waters[1].note]
    flags = [*waters[0].flags, *waters[1].flags]
    event, probability = _event(lost, gained, channels)
    if event == "none" and (_maybe_water(waters[0], masks[1]) or _maybe_water(waters[1], masks[0])):
        event = None
    if event is None:
        flags.append("pond_event_unclear")
    elif probability is not None:
        notes.append(f"on the dry date a basin is there with probability {probability:.2f}: {event}")
    if len(lost) + len(gained) > 1:
        flags.append("several_ponds_changed")
    return PondChange(
        event=event,
        water_before=masks[0],
        water_after=masks[1],
        basin_probability=probability,
        notes=tuple(dict.fromkeys(notes)),
        flags=tuple(dict.fromkeys(flags)),
    )


def basin_probability(channels: Channels, water: Mask) -> float:
    """Return the probability that the picture shows a basin where the other date has ``water``, 0 to 1."""
    features = basin_features(channels, water)
    return 0.5 if features is None else BASIN_TEST.probability(features)


def basin_features(channels: Channels, water: Mask) -> NDArray[np.float64] | None:
    """Return the features of a basin in a picture without water, or None if the place is too small or at the border.

    Of the strongest closed outline within 12 pixels of that of the water: size of the step, share of the step that is
    the same on all sides, and their product. Share of gradients that cross the outline. Contrast of floor and field,
    of bank and field, of floor and bank; brightness of the bank against field and floor; greenness of the floor against
    the field; roughness of floor and bank against the field. Gradients at the outline against the whole picture, and
    against the field around.
    """
    crop = crop_around(water, 40)
    if crop is None:
        return None
    depth = signed_distance(np.ascontiguousarray(water[crop]))
    valid, colours = channels.valid[crop], channels.colours[crop]
    deepest = float(depth.max())
    core = (depth >= 0.35 * deepest) & valid
    rim = (depth >= -7.0) & (depth < 0.0) & valid
    field = (depth <= -14.0) & (depth >= -30.0) & valid
    if core.sum() < 12 or rim.sum() < 12 or field.sum() < 12:
        return None
    closed = [
        _closedness(sector_differences(colours, depth, valid, (at, at + 3.0), (at - 3.0, at)))
        for at in (4.0, 2.0, 0.0, -2.0, -4.0, -6.0, -8.0, -10.0, -12.0)
        if at + 3.0 <= deepest + 1.5
    ]
    size, consistent = (max(values) for values in zip(*closed, strict=True)) if closed else (0.0, 0.0)
    steady = max((value * share for value, share in closed), default=0.0)
    along = _alignment(channels.light[crop], depth, valid)
    usual = channels.usual
    middles = [np.median(colours[part], axis=0) for part in (core, rim, field)]
    spread = colours[field].std(axis=0) + 0.02
    rough = [float(np.median(channels.rough[crop][part])) for part in (core, rim, field)]
    slope = channels.slope[crop]
    near = float(slope[(depth > -12) & (depth < min(5.0, deepest)) & valid].mean())
    return np.array(
        [
            size,
            consistent,
            steady,
            along,
            float(np.linalg.norm((middles[0] - middles[2]) / spread)),
            float(np.linalg.norm((middles[1] - middles[2]) / spread)),
            float(np.linalg.norm((middles[0] - middles[1]) / spread)),
            middles[1][0] - middles[2][0],
            middles[1][0] - middles[0][0],
            middles[0][2] - middles[2][2],
            rough[0] - rough[2],
            rough[1] - rough[2],
            np.log(near / (float(usual[3]) + 1e-3) + 0.05),
            np.log(near / (float(slope[field].mean()) + 1e-3) + 0.05),
        ],
        np.float64,
    )


def _closedness(apart: NDArray[np.float64]) -> tuple[float, float]:
    """Return the size of the mean difference over the sectors, and its ratio to the mean size: 1 if all sides agree."""
    if len(apart) < 6:
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
    return float(across[near].sum() / max(size[near].sum(), 1e-6) - across[far].sum() / max(size[far].sum(), 1e-6))


def _regions_without_match(
    water: Water, other_water: Water, channels: Channels, nir: NDArray[np.floating] | None, other_mask: Mask
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
        if nir is None and water_probability(channels, region.mask) >= STILL_WATER:
            other_mask |= region.mask
        else:
            only.append(region)
    return only


def _maybe_water(water: Water, other_mask: Mask) -> bool:
    """Return True if a doubtful region may be water and is not water on the other date."""
    return any(
        region.probability >= MAYBE_WATER and not (region.mask & (other_mask | water.mask)).any()
        for region in water.doubtful
    )


def _event(lost: list[Region], gained: list[Region], channels: list[Channels]) -> tuple[PondEvent | None, float | None]:
    """Return the event of the side (lost or gained) with more water, and the probability of a basin."""

    def weight(region: Region) -> float:
        return float(region.mask.sum()) * region.probability

    if not lost and not gained:
        return "none", None
    gone = sum(map(weight, lost)) >= sum(map(weight, gained))
    regions, dry = (lost, channels[1]) if gone else (gained, channels[0])
    probability = basin_probability(dry, max(regions, key=weight).mask)
    if UNCLEAR[0] < probability < UNCLEAR[1]:
        return None, probability
    without, with_basin = ("demolished", "dried") if gone else ("constructed", "wetted")
    return (with_basin if probability >= UNCLEAR[1] else without), probability
