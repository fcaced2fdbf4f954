"""Buildings in pictures from above: detection on each date, and their change between two dates.

If a house is some tens of pixels wide, its roof is a compact patch less yellow than soil and dry plants and less green
than living ones.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.vision.colours import lab_of

ROOFS_UP_TO_M = 1.0
"""Coarsest ground sampling distance, metres, for the detection of single roofs.

In coarser pictures a settlement is only a texture. No rule for it tried in ``studies/accuracy/detect_change.py`` is
better than marking everything as changed in each of four real scenes, so there is no map of buildings then.
"""
_WORKING_M = 0.5
"""Ground sampling distance, metres, to which finer pictures are shrunk."""


@dataclass(frozen=True)
class RoofRule:
    """Criteria for a roof, and for the same roof on both dates.

    ``blue``: least amount by which it is less yellow than the scene's median, units of b*. ``green``: largest amount by
    which it is greener than both grey and the scene's median, units of a*. ``sigma_m``: smoothing of colours, metres.
    ``half_width_m``: radius of the disc that must fit in the roof, metres (streets are narrower). ``lasting``: least
    correlation of lightness, in the patch and ``margin_m`` around it, for the same object on both dates. The defaults
    are those with the best worst scene in ``studies/accuracy/detect_change.py`` (a test repeats the choice).
    """

    blue: float = 1.0
    green: float = 1.0
    sigma_m: float = 2.0
    half_width_m: float = 3.5
    lasting: float = 0.3
    margin_m: float = 3.0


@dataclass(frozen=True, eq=False)
class BuiltChange:
    """Built-up areas on each date and their change, all bool (rows, columns).

    ``gained`` and ``lost`` are not simply the difference of ``before`` and ``after``: they also require a clear change
    of the evidence.
    """

    before: NDArray[np.bool_]
    after: NDArray[np.bool_]
    gained: NDArray[np.bool_]
    lost: NDArray[np.bool_]
    note: str


def built_change(
    before: NDArray[np.uint8],
    after: NDArray[np.uint8],
    valid: NDArray[np.bool_],
    gsd_m: float,
    rule: RoofRule | None = None,
) -> BuiltChange:
    """Find buildings gained and lost between two registered pictures.

    Swapping the two pictures swaps ``gained`` and ``lost``.

    Args:
        before, after: uint8 (rows, columns, 3).
        valid: bool (rows, columns), pixels with data in both.
        gsd_m: metres per pixel, up to :data:`ROOFS_UP_TO_M`.
    """
    height, width = valid.shape
    shrink = min(1.0, gsd_m / _WORKING_M)
    size = (max(1, round(width * shrink)), max(1, round(height * shrink)))
    if size != (width, height):
        first, second = (
            np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8) for picture in (before, after)
        )
        resized_valid = cv2.resize(valid.astype(np.float32), size, interpolation=cv2.INTER_AREA) > 0.5
    else:
        first, second, resized_valid = before, after, valid
    masks, note = _roof_change(first, second, resized_valid, gsd_m / shrink, rule or RoofRule())
    if size != (width, height):
        masks = tuple(
            cv2.resize(mask.astype(np.uint8), (width, height), interpolation=cv2.INTER_NEAREST) > 0 for mask in masks
        )
    built_before, built_after, gained, lost = (np.asarray(mask) & valid for mask in masks)
    return BuiltChange(built_before, built_after, gained, lost, note)


def _roof_change(
    before: NDArray[np.uint8], after: NDArray[np.uint8], valid: NDArray[np.bool_], gsd_m: float, rule: RoofRule
) -> tuple[tuple[NDArray[np.bool_], ...], str]:
    (first, built_before), (second, built_after) = (roofs(picture, valid, gsd_m, rule) for picture in (before, after))
    light = tuple(_smooth(lab_of(picture)[..., 0], valid, rule.sigma_m / gsd_m / 4) for picture in (before, after))
    # Persistence is judged on the untrimmed patches, because they include the surroundings.
    gained = built_after & _without_lasting(second, light, valid, gsd_m, rule)
    lost = built_before & _without_lasting(first, light, valid, gsd_m, rule)
    note = (
        f"roofs: patches less yellow than the scene, not green, in which a disc of {2 * rule.half_width_m:g} m fits; "
        f"gained or lost where the two dates correlate by less than {rule.lasting:g} around one"
    )
    return (built_before, built_after, gained, lost), note


def _without_lasting(
    mask: NDArray[np.bool_],
    light: tuple[NDArray[np.float32], ...],
    valid: NDArray[np.bool_],
    gsd_m: float,
    rule: RoofRule,
) -> NDArray[np.bool_]:
    """Keep the patches whose outline and surroundings are not the same on both dates."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    margin = max(2, round(rule.margin_m / gsd_m))
    brush = disc(margin)
    changed_patches = np.zeros(count, np.bool_)
    for number in range(1, count):
        x, y, width, height = (int(value) for value in stats[number, :4])
        rows, columns = slice(max(0, y - margin), y + height + margin), slice(max(0, x - margin), x + width + margin)
        around = cv2.dilate((labels[rows, columns] == number).astype(np.uint8), brush) > 0
        around &= valid[rows, columns]
        first, second = (picture[rows, columns][around].astype(np.float64) for picture in light)
        changed_patches[number] = _correlation(first, second) < rule.lasting
    return np.asarray(changed_patches[np.asarray(labels, np.int32)])


def _correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    first, second = first - first.mean(), second - second.mean()
    size = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / size if size > 0 else 0.0


def roofs(
    picture: NDArray[np.uint8], valid: NDArray[np.bool_], gsd_m: float, rule: RoofRule
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Find roofs in one picture; both masks are bool (rows, columns).

    The first mask is as wide as the smoothing makes the roofs, the second is trimmed to their outlines. Grey, blue and
    white roofs are found; brown and red ones are missed.
    """
    lab = lab_of(picture)
    greenness, yellowness = (_smooth(lab[..., channel], valid, rule.sigma_m / gsd_m) for channel in (1, 2))
    usual_green, usual_yellow = (
        float(np.median(values[valid])) if valid.any() else 0.0 for values in (greenness, yellowness)
    )
    grey = (yellowness < usual_yellow - rule.blue) & (greenness > min(0.0, usual_green) - rule.green) & valid
    patches = _open_mask(grey, rule.half_width_m / gsd_m)
    return patches, _to_half_height(patches, yellowness, usual_yellow)


def _to_half_height(patches: NDArray[np.bool_], values: NDArray[np.float32], usual: float) -> NDArray[np.bool_]:
    """Trim each patch at half of its own contrast, since smoothing spreads strong colours outwards."""
    count, components = cv2.connectedComponents(patches.astype(np.uint8), connectivity=8)
    labels = np.asarray(components, np.int32)
    sums = np.bincount(labels.ravel(), weights=values.ravel(), minlength=count)
    middle = sums / np.maximum(np.bincount(labels.ravel(), minlength=count), 1)
    return patches & (values < ((middle + usual) / 2).astype(np.float32)[labels])


def _smooth(values: NDArray[np.float32], valid: NDArray[np.bool_], sigma_px: float) -> NDArray[np.float32]:
    if sigma_px <= 0.3:
        return values
    sums, weights = (
        cv2.GaussianBlur(part, (0, 0), sigma_px, borderType=cv2.BORDER_REFLECT)
        for part in (np.where(valid, values, 0).astype(np.float32), valid.astype(np.float32))
    )
    return np.asarray(sums / np.maximum(weights, np.float32(1e-6)), np.float32)


def disc(radius_px: float) -> NDArray[np.uint8]:
    """Return a disc of ones, uint8 (2 r + 1, 2 r + 1)."""
    reach = round(radius_px)
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    return (x * x + y * y <= radius_px * radius_px + 0.5).astype(np.uint8)


def _open_mask(mask: NDArray[np.bool_], radius_px: float) -> NDArray[np.bool_]:
    if radius_px < 1:
        return mask
    # Roofs that the border of the picture cuts are continued beyond it.
    reach = round(radius_px) + 1
    padded = cv2.copyMakeBorder(mask.astype(np.uint8), reach, reach, reach, reach, cv2.BORDER_REPLICATE)
    opened = cv2.morphologyEx(padded, cv2.MORPH_OPEN, disc(radius_px))
    return np.asarray(opened[reach:-reach, reach:-reach] > 0)
