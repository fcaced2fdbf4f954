"""Segmentation of one leaf: on a plain background by its distance from the background's colour, or in the field.

Shadows are darker than the board but hardly coloured, whereas leaves are coloured. So differences of hue count in full,
and darkness only beyond that of shadows.

In the field the leaf is the largest green or yellow area near the middle, by colour alone. Other plants behind it are
separated only by another colour or a narrow neck.
"""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.tools.lesions.result import Lab
from agrotools.vision import Box
from agrotools.vision.colours import lab_of
from agrotools.vision.reading import bounds
from agrotools.vision.vegetation import disc, hull_px

SMALL_PX = 640
"""Longest side, pixels, at which a leaf is searched for; its outline is computed at full size afterwards."""
SHADOW_DEPTH = 25.0
"""Largest difference of lightness between the board and a cast shadow on it."""
GLARE_HEIGHT = 10.0
"""Largest difference of lightness between the board and lighter parts of it."""
LEAF_DISTANCE = 22.0
"""Largest threshold of the distance from the board (Lab units), used if the leaf has a clear contrast.

This and :data:`SHADOW_DEPTH` gave the best mean IoU on 172 of the 343 coffee leaves with masks of esgario/lara2018.
"""
LEAST_DISTANCE = 10.0
PLAIN_SHARE = 0.6
"""Least share of the border in the board's colour for a background to be plain."""
SEVERAL = 0.2
"""Area relative to the largest one from which a second area counts as another leaf."""
_BORDER = 0.04
_DARK_BOARD = 30.0
_DARK_HOLE = 0.02
_MIN_AREA_SHARE = 0.003


@dataclass(frozen=True, eq=False)
class Leaf:
    """Segmented leaf.

    ``mask``: bool (rows, columns). ``box``: bounds of the mask. ``background``: Lab of the board, None if the
    background is busy.
    """

    mask: NDArray[np.bool_]
    box: Box
    background: Lab | None
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def area_px(self) -> int:
        return int(np.count_nonzero(self.mask))


def shrink_image(pixels: NDArray[np.uint8], longest: int = SMALL_PX) -> NDArray[np.uint8]:
    """Shrink a picture so that its longest side has at most ``longest`` pixels."""
    height, width = pixels.shape[:2]
    factor = longest / max(height, width)
    if factor >= 1:
        return pixels
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)


def border_of(shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return the outermost pixels of a picture, bool (rows, columns)."""
    wide = max(1, round(_BORDER * min(shape)))
    border = np.ones(shape, np.bool_)
    border[wide:-wide, wide:-wide] = False
    return border


def is_plant_coloured(lab: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return True for green, yellow or brown pixels (not grey, blue or red); bool, of the leading shape of ``lab``."""
    lightness, a, b = lab[..., 0], lab[..., 1], lab[..., 2]
    green = (a < -5) & (b > -6) & (b > 0.5 * a)
    yellow_or_brown = (b > 8) & (a < 1.2 * b)
    return np.asarray((green | yellow_or_brown) & (lightness > 8) & (np.hypot(a, b) > 6))


def estimate_board(lab: NDArray[np.float32]) -> tuple[NDArray[np.float32], float]:
    """Estimate the background's colour at every pixel, and the share of the border that has this colour.

    A second-order surface per channel is fitted to the border, then refitted to all pixels close to it.
    """
    height, width = lab.shape[:2]
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    x, y = x / max(1, width) - np.float32(0.5), y / max(1, height) - np.float32(0.5)
    terms = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=-1).reshape(-1, 6)
    border = border_of((height, width))
    flat = lab.reshape(-1, 3)
    middle = np.median(lab[border], axis=0)
    used = border & (np.linalg.norm(lab - middle, axis=-1) < 25)
    if np.count_nonzero(used) < 20:
        used = border
    board = np.empty_like(lab)
    for _ in range(3):
        places = np.flatnonzero(used)
        places = places[:: max(1, places.size // 4000)]
        factors = np.linalg.lstsq(terms[places], flat[places], rcond=None)[0].astype(np.float32)
        board = (terms @ factors).reshape(lab.shape)
        off = np.abs(lab - board)
        used = (off[..., 0] < 8) & (np.hypot(off[..., 1], off[..., 2]) < 5)
        if np.count_nonzero(used) < 0.02 * used.size:
            used = border
    off = np.abs(lab - board)
    plain = (off[..., 0] < 12) & (np.hypot(off[..., 1], off[..., 2]) < 8)
    return board, float(plain[border].mean())


def leaf_on_board(pixels: NDArray[np.uint8]) -> Leaf | None:
    """Find the largest leaf on a plain background; None if the background is busy or itself green.

    ``pixels``: uint8 (rows, columns, 3), sRGB.

    Raises:
        ToolError: ``nothing_found`` if nothing on the plain background resembles a leaf.
    """
    small = shrink_image(pixels)
    lab = lab_of(small)
    board, plain_share = estimate_board(lab)
    middle = np.median(board.reshape(-1, 3), axis=0)
    if plain_share < PLAIN_SHARE or (is_plant_coloured(middle) and middle[1] < 0):
        return None
    difference = lab - board
    colour = np.hypot(difference[..., 1], difference[..., 2])
    lightness = difference[..., 0]
    depth = np.where(lightness < 0, -lightness - np.float32(SHADOW_DEPTH), lightness - np.float32(GLARE_HEIGHT))
    distance = colour + np.maximum(0, depth)
    distance = np.asarray(cv2.GaussianBlur(distance, (0, 0), 0.7), np.float32)
    leaf_distances = distance[(distance > LEAST_DISTANCE) & is_plant_coloured(lab)]
    if leaf_distances.size < _MIN_AREA_SHARE * distance.size:
        raise no_leaf("nothing stands out from the background in the colour of a leaf")
    typical = float(np.median(leaf_distances))
    threshold = float(np.clip(typical / 2, LEAST_DISTANCE, LEAF_DISTANCE))
    mask, rest = largest_area(distance > threshold)
    if middle[0] < _DARK_BOARD:
        mask = fill_holes(mask, _DARK_HOLE)  # dark spots of the leaf look the same as a black board
    if mask.sum() < max(9.0, _MIN_AREA_SHARE * mask.size) or is_plant_coloured(lab[mask]).mean() < 0.5:
        raise no_leaf("what stands out from the background has not the colours of a leaf")
    flags = ["several_leaves"] if rest > SEVERAL else []
    if typical < 2 * LEAST_DISTANCE:
        flags.append("low_contrast")
    around = np.asarray(cv2.dilate(mask.astype(np.uint8), np.ones((3, 3), np.uint8), iterations=12), np.bool_) & ~mask
    shadow = around & (difference[..., 0] < -12) & (distance <= threshold)
    if shadow.sum() > 0.04 * mask.sum():
        flags.append("shadow")
    full = threshold_enlarged(np.clip(distance * np.float32(128 / threshold), 0, 255), mask, pixels.shape[:2])
    return Leaf(
        full,
        bounds(full),
        (float(middle[0]), float(middle[1]), float(middle[2])),
        (f"leaf: farther than {threshold:.3g} (Lab) from the background's own colour",),
        tuple(flags),
    )


def largest_area(mask: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], float]:
    """Return the largest connected part, and the area of the next one relative to it (0 if there is no other)."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=4)
    if count < 2:
        return np.zeros_like(mask), 0.0
    areas = np.asarray(stats)[1:, cv2.CC_STAT_AREA]
    order = np.argsort(areas)[::-1]
    rest = float(areas[order[1]] / areas[order[0]]) if len(areas) > 1 else 0.0
    return np.asarray(labels == 1 + order[0]), rest


def fill_holes(mask: NDArray[np.bool_], largest_share: float = 1.0) -> NDArray[np.bool_]:
    """Fill the holes of a mask, except holes larger than ``largest_share`` of its area."""
    padded = np.pad(~mask, 1, constant_values=True).astype(np.uint8)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(padded, connectivity=4)
    small = np.asarray(stats)[:, cv2.CC_STAT_AREA] <= largest_share * mask.sum()
    small[labels[0, 0]] = False
    small[0] = False
    return np.asarray(mask | small[labels][1:-1, 1:-1])


def threshold_enlarged(
    level: NDArray[np.float32], mask: NDArray[np.bool_], shape: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Enlarge a mask to full size, using the levels (0 to 255, inside from 128) that it was thresholded from."""
    near = np.asarray(cv2.dilate(mask.astype(np.uint8), np.ones((3, 3), np.uint8)), np.bool_)
    near_levels = np.where(near, level, 0)
    near_levels = np.where(mask & (near_levels < 128), 160, near_levels)
    near_levels = np.where(~mask & (near_levels >= 128), 127, near_levels).astype(np.uint8)
    if near_levels.shape == shape:
        return mask
    larger = np.asarray(cv2.resize(near_levels, (shape[1], shape[0]), interpolation=cv2.INTER_LINEAR))
    return larger >= 128


def no_leaf(why: str) -> ToolError:
    """Return the error for a picture without a leaf."""
    return ToolError(
        "nothing_found",
        f"no leaf found: {why}",
        argument="image",
        hint="give a picture that shows a leaf, cut to it with region, or say where it is with leaf_mask",
    )


FIELD_SIZE_PX = 480
LEAST_HUE_DEG, MOST_HUE_DEG = 84.0, 168.0
"""Range of hue angles of plants in a*, b*: yellow is 90, leaf green 110 to 140; soil and skin < 75, sky > 200."""
LEAST_CHROMA = 9.0
_NECK = 0.018
_CLOSED = 0.03
_LARGEST_HOLE = 0.06
_MIN_PLANT_SHARE = 0.01
_LEAF_LIKE = 0.86
"""Least share of its convex hull that a single leaf fills; several touching leaves fill less."""


def leaf_in_field(pixels: NDArray[np.uint8]) -> Leaf:
    """Find the main leaf of a photograph in the field.

    ``pixels``: uint8 (rows, columns, 3), sRGB.

    Raises:
        ToolError: ``nothing_found`` if hardly any pixel has the colour of a plant.
    """
    small = shrink_image(pixels, FIELD_SIZE_PX)
    lab = np.asarray(cv2.GaussianBlur(lab_of(small), (0, 0), 1.0), np.float32)
    hue = np.degrees(np.arctan2(lab[..., 2], lab[..., 1]))
    chroma = np.hypot(lab[..., 1], lab[..., 2])
    plants = (hue > LEAST_HUE_DEG) & (hue < MOST_HUE_DEG) & (chroma > LEAST_CHROMA) & (lab[..., 0] > 10)
    if plants.mean() < _MIN_PLANT_SHARE:
        raise no_leaf("next to nothing has the colour of leaves")
    reach = max(1, round(_NECK * max(plants.shape)))
    core = np.asarray(cv2.morphologyEx(plants.astype(np.uint8), cv2.MORPH_OPEN, disc(reach)), np.bool_)
    if not core.any():
        core = plants
    leaf, rest = _middle_area(core)
    leaf = plants & np.asarray(cv2.dilate(leaf.astype(np.uint8), disc(reach)), np.bool_)
    wide = max(1, round(_CLOSED * math.sqrt(float(leaf.sum()))))
    padded = np.pad(leaf.astype(np.uint8), 2 * wide)
    closed = np.asarray(cv2.morphologyEx(padded, cv2.MORPH_CLOSE, disc(wide)), np.bool_)
    leaf = fill_holes(closed[2 * wide : -2 * wide, 2 * wide : -2 * wide], _LARGEST_HOLE)
    inner = np.asarray(cv2.erode(np.pad(leaf, 1, mode="edge").astype(np.uint8), disc(1)), np.bool_)[1:-1, 1:-1]
    leaf = inner if inner.any() else leaf  # the outermost pixels are a mixture of leaf and background
    level = np.asarray(cv2.GaussianBlur(np.where(leaf, np.float32(255), np.float32(0)), (0, 0), 1.0), np.float32)
    full = threshold_enlarged(level, leaf, pixels.shape[:2])
    flags = ["field_background"]
    if rest > SEVERAL:
        flags.append("several_leaves")
    if leaf.sum() / hull_px(leaf) < _LEAF_LIKE:
        flags.append("leaf_outline_uncertain")
    if plants.mean() > 0.9:
        flags.append("no_background_visible")
    return Leaf(
        full,
        bounds(full),
        None,
        ("busy background: the leaf is the largest green or yellow area near the middle; leaves that overlap are one",),
        tuple(flags),
    )


def _middle_area(mask: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], float]:
    """Return the connected part that is large and near the middle, and the relative area of the largest other one."""
    _, labels, stats, centres = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=4)
    areas = np.asarray(stats)[1:, cv2.CC_STAT_AREA].astype(np.float64)
    height, width = mask.shape
    off = (np.asarray(centres)[1:] - (width / 2, height / 2)) / (width / 2, height / 2)
    chosen = int(np.argmax(areas * np.exp(-(off**2).sum(axis=1))))
    others = np.delete(areas, chosen)
    return np.asarray(labels == 1 + chosen), float(others.max() / areas[chosen]) if others.size else 0.0
