"""The leaf in front of a busy background: the largest green or yellow area near the middle, by colour alone.

Green behind the leaf that is neither parted from it by another colour nor linked by a narrow neck only goes with it.
"""

import math

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.colour_space import lab_of
from agrotools.vision.lesions.leaf import SEVERAL, Leaf, bounds, drawn_larger, no_leaf, shrunk, without_holes

SMALL_PX = 480
LEAST_HUE_DEG, MOST_HUE_DEG = 84.0, 168.0
"""Hue angles of plants in a*, b*: yellow is 90, leaf green 110 to 140; soil and skin lie below 75, sky above 200."""
LEAST_CHROMA = 9.0
_NECK = 0.018
_CLOSED = 0.03
_LARGEST_HOLE = 0.06
_LEAST_SHARE = 0.01
_LEAF_LIKE = 0.86
"""Share of its convex hull that a single leaf fills; several that touch fill less."""


def leaf_in_field(pixels: NDArray[np.uint8]) -> Leaf:
    """The leaf that a photograph is of.

    Args:
        pixels: uint8 (rows, columns, 3), sRGB.

    Raises:
        ToolError: ``nothing_found`` where little is coloured like a plant.
    """
    import cv2

    small = shrunk(pixels, SMALL_PX)
    lab = np.asarray(cv2.GaussianBlur(lab_of(small), (0, 0), 1.0), np.float32)
    hue = np.degrees(np.arctan2(lab[..., 2], lab[..., 1]))
    chroma = np.hypot(lab[..., 1], lab[..., 2])
    plants = (hue > LEAST_HUE_DEG) & (hue < MOST_HUE_DEG) & (chroma > LEAST_CHROMA) & (lab[..., 0] > 10)
    if plants.mean() < _LEAST_SHARE:
        raise no_leaf("next to nothing has the colour of leaves")
    reach = max(1, round(_NECK * max(plants.shape)))
    core = _opened(plants, reach)
    if not core.any():
        core = plants
    leaf, rest = _middle_area(core)
    leaf = plants & np.asarray(cv2.dilate(leaf.astype(np.uint8), _disc(reach)), np.bool_)
    wide = max(1, round(_CLOSED * math.sqrt(float(leaf.sum()))))
    padded = np.pad(leaf.astype(np.uint8), 2 * wide)
    closed = np.asarray(cv2.morphologyEx(padded, cv2.MORPH_CLOSE, _disc(wide)), np.bool_)
    leaf = without_holes(closed[2 * wide : -2 * wide, 2 * wide : -2 * wide], _LARGEST_HOLE)
    inner = np.asarray(cv2.erode(np.pad(leaf, 1, mode="edge").astype(np.uint8), _disc(1)), np.bool_)[1:-1, 1:-1]
    leaf = inner if inner.any() else leaf  # the outermost pixels are a mixture of leaf and background
    level = np.asarray(cv2.GaussianBlur(np.where(leaf, np.float32(255), np.float32(0)), (0, 0), 1.0), np.float32)
    full = drawn_larger(level, leaf, pixels.shape[:2])
    flags = ["field_background"]
    if rest > SEVERAL:
        flags.append("several_leaves")
    if _solidity(leaf) < _LEAF_LIKE:
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
    """The connected part that is large and near the middle, and the size of the largest other one beside it."""
    import cv2

    _, labels, stats, centres = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=4)
    areas = np.asarray(stats)[1:, cv2.CC_STAT_AREA].astype(np.float64)
    height, width = mask.shape
    off = (np.asarray(centres)[1:] - (width / 2, height / 2)) / (width / 2, height / 2)
    chosen = int(np.argmax(areas * np.exp(-(off**2).sum(axis=1))))
    others = np.delete(areas, chosen)
    return np.asarray(labels == 1 + chosen), float(others.max() / areas[chosen]) if others.size else 0.0


def _solidity(mask: NDArray[np.bool_]) -> float:
    import cv2

    outlines, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    around = np.zeros(mask.shape, np.uint8)
    cv2.fillConvexPoly(around, cv2.convexHull(np.concatenate(list(outlines))), 1)
    return float(mask.sum() / max(1, int(around.sum())))


def _opened(mask: NDArray[np.bool_], reach: int) -> NDArray[np.bool_]:
    import cv2

    return np.asarray(cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, _disc(reach)), np.bool_)


def _disc(radius: int) -> NDArray[np.uint8]:
    import cv2

    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1)), np.uint8)
