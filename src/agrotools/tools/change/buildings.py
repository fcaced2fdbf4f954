"""Buildings in pictures from above: on each date by itself, and their change between two dates.

Two kinds of evidence, by what the picture resolves. Where a house is a few pixels wide, a settlement is a texture:
strong contrast in all directions, which fields, whose rows and edges run one way, do not have. Where a house is some
tens of pixels wide, its roof is a compact patch less yellow than soil and dry plants and less green than living ones.
"""

from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.vision.colours import lab_of

Evidence = Literal["texture", "roofs"]

ROOFS_UP_TO_M = 1.0
"""Coarsest ground sampling distance, metres, at which single roofs are looked for."""
_WORKING_M = 0.5
"""Finer pictures are shrunk to this ground sampling distance."""


@dataclass(frozen=True)
class TextureRule:
    """``sigma_m``, ``sigma_px``: reach of the texture measure, metres, and pixels where the scale is unknown.

    ``rise``: how much the contrast (natural logarithm) must rise; ``contrast``: how much there must be afterwards, in
    units of L* (0..100). ``rise_both``: how much the contrasts of lightness and of yellow-blue together must rise where
    gain and loss are asked for alike: fields lose contrast from season to season, colour contrast less so.
    """

    sigma_m: float = 18.0
    sigma_px: float = 9.0
    rise: float = 0.10
    contrast: float = 4.0
    rise_both: float = 0.40


@dataclass(frozen=True)
class RoofRule:
    """Criteria for a roof and for the same roof on both dates.

    ``blue``: how much less yellow than the scene's median it is, units of b*. ``green``: how much greener than grey,
    and than the scene's median, it may be, units of a*. ``sigma_m``: smoothing of the colours. ``half_width_m``: radius
    of the disc that must fit in it (streets are narrower). ``lasting``: correlation of lightness, in the patch and
    ``margin_m`` around it, from which it is the same thing on both dates.
    """

    blue: float = 0.75
    green: float = 1.0
    sigma_m: float = 2.0
    half_width_m: float = 4.5
    lasting: float = 0.4
    margin_m: float = 3.0


@dataclass(frozen=True, eq=False)
class BuiltChange:
    """``before``, ``after``: what is built up on each date; ``gained``, ``lost``: the difference. bool (rows, columns).

    The difference is not simply ``after`` without ``before``: it asks for a clear change of the evidence.
    """

    before: NDArray[np.bool_]
    after: NDArray[np.bool_]
    gained: NDArray[np.bool_]
    lost: NDArray[np.bool_]
    evidence: Evidence
    note: str


def built_change(
    before: NDArray[np.uint8],
    after: NDArray[np.uint8],
    valid: NDArray[np.bool_],
    gsd_m: float | None,
    *,
    gains_only: bool = False,
    texture: TextureRule | None = None,
    roofs: RoofRule | None = None,
) -> BuiltChange:
    """Buildings gained and lost between two registered pictures.

    Swapping the two pictures swaps ``gained`` and ``lost``, unless ``gains_only`` leaves ``lost`` empty.

    Args:
        before, after: uint8 (rows, columns, 3).
        valid: bool (rows, columns), where both have data.
        gsd_m: metres per pixel; single roofs are looked for up to :data:`ROOFS_UP_TO_M`, else settlement texture.
    """
    fine = gsd_m is not None and gsd_m <= ROOFS_UP_TO_M
    height, width = valid.shape
    shrink = min(1.0, gsd_m / _WORKING_M) if fine and gsd_m is not None else 1.0
    size = (max(1, round(width * shrink)), max(1, round(height * shrink)))
    if size != (width, height):
        first, second = (
            np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8) for picture in (before, after)
        )
        there = cv2.resize(valid.astype(np.float32), size, interpolation=cv2.INTER_AREA) > 0.5
    else:
        first, second, there = before, after, valid
    if fine and gsd_m is not None:
        masks, note = _roof_change(first, second, there, gsd_m / shrink, roofs or RoofRule())
    else:
        masks, note = _texture_change(first, second, there, gsd_m, texture or TextureRule(), gains_only)
    if size != (width, height):
        masks = tuple(
            cv2.resize(mask.astype(np.uint8), (width, height), interpolation=cv2.INTER_NEAREST) > 0 for mask in masks
        )
    was, is_, gained, lost = (np.asarray(mask) & valid for mask in masks)
    if gains_only:
        lost = np.zeros_like(lost)
    return BuiltChange(was, is_, gained, lost, "roofs" if fine else "texture", note)


def settlement_texture(
    lightness: NDArray[np.float32], valid: NDArray[np.bool_], sigma_px: float
) -> NDArray[np.float32]:
    """Contrast that is there in every direction, float32 (rows, columns), units of ``lightness``.

    The least over ten displacements of the root mean square difference to the pixel displaced, in a Gaussian window:
    PanTex (Pesaresi, Gerhardinger and Kayitakire 2008, IEEE JSTARS 1) with squared differences, which are the contrast
    of the co-occurrence matrix without quantising it.
    """
    filled = np.where(valid, lightness, 0).astype(np.float32)
    there = valid.astype(np.float32)
    height, width = valid.shape
    reach = 2
    padded = cv2.copyMakeBorder(filled, reach, reach, reach, reach, cv2.BORDER_REFLECT)
    padded_valid = cv2.copyMakeBorder(there, reach, reach, reach, reach, cv2.BORDER_REFLECT)
    least: NDArray[np.float32] | None = None
    # The windows are wide, so they are laid over a picture of half the size.
    half = ((width + 1) // 2, (height + 1) // 2) if sigma_px >= 4 else (width, height)
    sigma = sigma_px * half[0] / width
    for dx, dy in ((1, 0), (0, 1), (1, 1), (1, -1), (2, 0), (0, 2), (2, 1), (1, 2), (2, -1), (1, -2)):
        rows, columns = slice(reach + dy, reach + dy + height), slice(reach + dx, reach + dx + width)
        both = there * padded_valid[rows, columns]
        squared = (filled - padded[rows, columns]) ** 2 * both
        small = (cv2.resize(part, half, interpolation=cv2.INTER_AREA) for part in (squared, both))
        sums, weights = (cv2.GaussianBlur(part, (0, 0), sigma, borderType=cv2.BORDER_REFLECT) for part in small)
        mean = np.asarray(sums / np.maximum(weights, np.float32(1e-6)), np.float32)
        least = mean if least is None else np.minimum(least, mean)
    contrast = np.sqrt(np.maximum(least if least is not None else filled, 0))
    return np.asarray(cv2.resize(contrast, (width, height), interpolation=cv2.INTER_LINEAR), np.float32)


def _texture_change(
    before: NDArray[np.uint8],
    after: NDArray[np.uint8],
    valid: NDArray[np.bool_],
    gsd_m: float | None,
    rule: TextureRule,
    gains_only: bool,
) -> tuple[tuple[NDArray[np.bool_], ...], str]:
    sigma = rule.sigma_px if gsd_m is None else float(np.clip(rule.sigma_m / gsd_m, 4.0, 24.0))
    labs = lab_of(before), lab_of(after)
    first, second = (settlement_texture(lab[..., 0], valid, sigma) for lab in labs)
    rise = np.log1p(second) - np.log1p(first)
    least, of_what = rule.rise, "contrast"
    if not gains_only:
        blue = tuple(settlement_texture(lab[..., 2], valid, sigma) for lab in labs)
        rise = rise + np.log1p(blue[1]) - np.log1p(blue[0])
        least, of_what = rule.rise_both, "contrast of lightness and of yellow-blue together"
    was, is_ = first > rule.contrast, second > rule.contrast
    note = (
        f"built-up: contrast in all directions over {rule.contrast:g} L* in a window of {sigma:.3g} px (PanTex); "
        f"change where {of_what} differs by over {100 * (np.exp(least) - 1):.0f} %"
    )
    return (was, is_, is_ & (rise > least), was & (rise < -least)), note


def _roof_change(
    before: NDArray[np.uint8], after: NDArray[np.uint8], valid: NDArray[np.bool_], gsd_m: float, rule: RoofRule
) -> tuple[tuple[NDArray[np.bool_], ...], str]:
    (first, was), (second, is_) = (roofs(picture, valid, gsd_m, rule) for picture in (before, after))
    light = tuple(_smooth(lab_of(picture)[..., 0], valid, rule.sigma_m / gsd_m / 4) for picture in (before, after))
    # What lasted is judged with the surroundings that the untrimmed patches hold.
    gained = is_ & _without_lasting(second, light, valid, gsd_m, rule)
    lost = was & _without_lasting(first, light, valid, gsd_m, rule)
    note = (
        f"roofs: patches less yellow than the scene, not green, in which a disc of {2 * rule.half_width_m:g} m fits; "
        f"gained or lost where the two dates correlate by less than {rule.lasting:g} around one"
    )
    return (was, is_, gained, lost), note


def _without_lasting(
    mask: NDArray[np.bool_],
    light: tuple[NDArray[np.float32], ...],
    valid: NDArray[np.bool_],
    gsd_m: float,
    rule: RoofRule,
) -> NDArray[np.bool_]:
    """The patches whose outline and surroundings are not seen on both dates."""
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
    """Roofs in one picture, bool (rows, columns): as wide as the smoothing makes them, and trimmed to their outline.

    Grey, blue and white roofs; brown and red ones are missed.
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
    """Each patch without its rim beyond half of its own contrast: smoothing carries strong colours outwards."""
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
    """A disc of ones, uint8 (2 r + 1, 2 r + 1)."""
    reach = round(radius_px)
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    return (x * x + y * y <= radius_px * radius_px + 0.5).astype(np.uint8)


def _open_mask(mask: NDArray[np.bool_], radius_px: float) -> NDArray[np.bool_]:
    if radius_px < 1:
        return mask
    # A roof cut by the border of the picture is continued beyond it.
    reach = round(radius_px) + 1
    padded = cv2.copyMakeBorder(mask.astype(np.uint8), reach, reach, reach, reach, cv2.BORDER_REPLICATE)
    opened = cv2.morphologyEx(padded, cv2.MORPH_OPEN, disc(radius_px))
    return np.asarray(opened[reach:-reach, reach:-reach] > 0)
