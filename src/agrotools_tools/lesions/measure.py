"""Segmentation of a leaf and of the lesions on it.

On a plain background a leaf is found by its distance from the background's colour. Shadows are darker than the board
but hardly coloured, whereas leaves are coloured. So differences of hue count in full, and darkness only beyond that of
shadows. In the field the leaf is the largest green or yellow area near the middle, by colour alone. Other plants behind
it are separated only by another colour or a narrow neck.

Lesions are found by the shipped model (a small neural network as plain arrays) or a colour rule.
``data/lesion_model.json`` describes the model, its training data and its accuracy; ``data/lesion_model.npz`` holds the
weights; ``training/train_lesion_model.py`` writes both. ``data/lesion_model.md`` documents the training and the
limitations.

Features of a pixel are relative to the leaf itself (its median colour, its local mean), at a size set by the leaf's
area, so that exposure and resolution have little influence. The rules need no training and apply to any leaf: a lesion
is no longer the leaf's own healthy green, but yellow, brown, grey or black. As they use only colour, they cannot
distinguish a lesion from dirt or a dry vein.

Files that are missing or inconsistent raise a ``ToolError`` of the kind ``backend_unavailable``.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat

from agrotools.calling.workspace import backend_in_use
from agrotools.core import FrozenModel, ToolError
from agrotools.vision import Box
from agrotools.vision.reading import bounds
from agrotools_tools.lesions.result import IN_FIELD, MODEL_FILES, RULES, TOO_HIGH, TOO_LOW, Lab
from agrotools_tools.shipped import shipped_file
from agrotools_tools.vision.colours import lab_of
from agrotools_tools.vision.nets import checked_arrays, read_description, unusable_weights
from agrotools_tools.vision.vegetation import disc, hull_px

_SMALL_PX = 640
"""Longest side, pixels, at which a leaf is searched for; its outline is computed at full size afterwards."""
_SHADOW_DEPTH = 25.0
"""Largest difference of lightness between the board and a cast shadow on it."""
_GLARE_HEIGHT = 10.0
"""Largest difference of lightness between the board and lighter parts of it."""
_LEAF_DISTANCE = 22.0
"""Largest threshold of the distance from the board (Lab units), used if the leaf has a clear contrast.

This and :data:`_SHADOW_DEPTH` gave the best mean IoU on 172 of the 343 coffee leaves with masks of esgario/lara2018.
"""
_LEAST_DISTANCE = 10.0
"""Smallest threshold of the distance from the board, Lab units; farther pixels of the colour of plants give the usual
distance of the leaf."""
_SHADOW_COLOUR = 7.0
"""Largest difference of a*, b* between the board and a cast shadow on it; blotches of a leaf are browner."""
_SHADOW_SHARE = 0.08
"""Share of the found leaf that has the colour of a shadow, from which a shadow is likely a part of it.

Of 171 coffee leaves on a board the largest share is 0.016, of 144 others of coffee 0.065; deep shadows that were drawn
beside a leaf and were taken for a part of it have 0.17 and 0.21.
"""
_PLAIN_SHARE = 0.6
"""Least share of the border in the board's colour for a background to be plain."""
_SEVERAL = 0.2
"""Area relative to the largest one from which a second area counts as another leaf."""
_BORDER_SHARE = 0.04
"""Width of the border that shows the background, as a share of the picture's shorter side."""
_DARK_BOARD_L = 30.0
"""Lightness L* below which a board is so dark that dark spots of a leaf look like it."""
_DARK_HOLE_SHARE = 0.02
"""Largest hole, as a share of the leaf, that is filled on a dark board."""
_MIN_AREA_SHARE = 0.003
"""Smallest share of the picture that a leaf on a board covers."""
_FIELD_SIZE_PX = 480
"""Longest side, pixels, at which a leaf is searched for in the field."""
_LEAST_HUE_DEG, _MOST_HUE_DEG = 84.0, 168.0
"""Range of hue angles of plants in a*, b*: yellow is 90, leaf green 110 to 140; soil and skin < 75, sky > 200."""
_LEAST_CHROMA = 9.0
"""Chroma in a*, b* that the colour of a plant exceeds; greyer pixels have no certain hue."""
_NECK_SHARE = 0.018
"""Radius of the disc that parts leaves which touch at a narrow place, as a share of the longer side of the picture."""
_NOTCH_SHARE = 0.03
"""Radius of the disc that closes notches in the outline of a leaf, as a share of the square root of its area."""
_SURROUNDINGS_SHARE = 0.05
"""Width of a leaf's surroundings, as a share of the square root of its area."""
_MOST_LIKE_LEAF = 0.2
"""Share of a leaf's surroundings in the colours of leaves above which its outline is uncertain.

Coffee leaves were cut out and laid on photographs of other ground, 22 on each. On dry soil, wood, skin, litter and
gravel the share is at most 0.17, and the leaf takes in 0.02 of its area beside it; on yellowish clods of soil it is at
least 0.23 (0.11), on grass 0.33 (1.9).
"""
_GREEN_HUE_DEG = 105.0
"""Hue angle above which surroundings are green plants; below it they are yellowish ground.

Yellowish ground in the outline counts as lesion. Green plants have no such direction: with grass in the outline, 24 of
27 errors above a point were too low; with other leaves, all 18 were too high.
"""
_INSET_SHARE, _MARGIN_OVER_INSET = 0.03, 3
"""Widths of the margin inside and outside the outline of a leaf in which the outline is refined: inside, as a share of
the square root of the leaf's area; outside, over the width inside."""
_REFINEMENTS = 3
"""Rounds of learning colours and moving the outline."""
_LARGEST_HOLE_SHARE = 0.06
"""Largest hole, as a share of the leaf, that is filled in the field."""
_MIN_PLANT_SHARE = 0.01
"""Smallest share of a picture in the field that has the colour of plants."""
_MOSTLY_BROWN = 0.5
"""Share of a leaf's surroundings in the colours of lesions above which lesions at its margin may be cut off."""
_LEAF_LIKE = 0.9
"""Least share of its convex hull that a leaf fills if nothing is cut off.

Three quarters of 44 coffee leaves fill more on a board. Cut out and laid on wood and skin, leaves filled less in 48
pictures; in 32 of these the severity erred by more than a point, in 30 of the 32 because it was too low.
"""
_LEAST_SPREAD = 1.0
"""Standard deviation, Lab units, that one of the channels of a picture must reach; else it shows one colour only."""
_CUT_SHARE = 0.03
"""Share of the outline of a leaf on the border of the picture from which the leaf counts as cut off."""
_LEAST_PLANT_SHARE = 0.1
"""Least share of a marked leaf in green, yellow or brown; the rest may be mildew or glare."""
SIDE_PX = 280
"""Square root of the leaf area, pixels, to which leaves are resized."""
FEATURES_VERSION = 1
"""Version of :func:`pixel_features`; models with features of another version are refused."""
_FINE_PX = 0.8
"""Standard deviation, pixels, of the Gaussian mean that stands for the colour of a pixel itself."""
_SCALES_PX = (2.0, 5.0)
"""Standard deviations, pixels, of the means that are compared with the median colour of the leaf."""
_LOCAL_PX = (12.0, 35.0)
"""Standard deviations, pixels, of the means of the surroundings that the colour of a pixel is compared with."""
_MARGIN_PX = 4
"""Margin around a leaf that is cut out, in pixels of the resized leaf."""
CLIP = 8.0
"""Bound of the absolute value of standardised features."""
_BLOCK_ROWS = 65_536
"""Number of pixels whose probabilities are computed at once; it bounds the memory."""
_HINT = "install agrotools again, or choose the back-end rules"
_WHAT = "the lesion model"
_DOUBTFUL = (0.15, 0.7)
"""Bounds of the probability of pixels that count as doubtful."""
_SMOOTHING_PX = 1.2
"""Standard deviation, pixels, of the Gaussian mean from which the loss of green is measured."""
_LEAST_SHIFT = 12.0
"""Loss of green, in units of a*, from which tissue is diseased, for leaves with uniform healthy tissue.

This and :data:`_SPREADS` minimise the error in severity on the 343 coffee leaves with masks of esgario/lara2018.
"""
_SPREADS = 4.0
"""Threshold of the loss of green in standard deviations of the healthy tissue, between the smallest and largest one."""
MOST_SHIFT = 18.0
"""Largest threshold of the loss of green, for leaves whose healthy tissue varies a lot (light, blur)."""
MOST_SHIFT_IN_FIELD = 25.0
"""Largest threshold in the field, where other plants may be included in the leaf."""
_RIM_PX = 5
"""Width of the rim of a leaf, pixels."""
_MOSTLY_RIM_SHARE = 0.5
"""Share of a patch within the rim above which the patch counts as background."""
_NO_GREEN = -4.0
"""a* of the greenest tissue above which a leaf has no healthy tissue."""
_GENERIC_GREEN: Lab = (45.0, -16.0, 26.0)
"""Assumed healthy colour of leaves without healthy tissue: the green of a typical broad leaf in daylight."""


@dataclass(frozen=True, eq=False)
class Leaf:
    """Segmented leaf.

    ``mask``: bool (rows, columns), not empty. ``background``: Lab of the board, None if the background is busy.
    """

    mask: NDArray[np.bool_]
    background: Lab | None
    notes: tuple[str, ...]
    flags: tuple[str, ...] = ()

    @cached_property
    def box(self) -> Box:
        return bounds(self.mask)

    @cached_property
    def area_px(self) -> int:
        return int(np.count_nonzero(self.mask))


def shrink_image(pixels: NDArray[np.uint8], longest: int = _SMALL_PX) -> NDArray[np.uint8]:
    """Shrink a picture so that its longest side has at most ``longest`` pixels."""
    height, width = pixels.shape[:2]
    factor = longest / max(height, width)
    if factor >= 1:
        return pixels
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)


def _is_plant_coloured(lab: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return True for green, yellow or brown pixels (not grey, blue or red); bool, of the leading shape of ``lab``."""
    lightness, a, b = lab[..., 0], lab[..., 1], lab[..., 2]
    green = (a < -5) & (b > -6) & (b > 0.5 * a)
    yellow_or_brown = (b > 8) & (a < 1.2 * b)
    return np.asarray((green | yellow_or_brown) & (lightness > 8) & (np.hypot(a, b) > 6))


def _estimate_board(lab: NDArray[np.float32]) -> tuple[NDArray[np.float32], float]:
    """Estimate the background's colour at every pixel, and the share of the border that has this colour: a
    second-order surface per channel, fitted to the border, then refitted to all pixels close to it."""
    height, width = lab.shape[:2]
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    x, y = x / max(1, width) - np.float32(0.5), y / max(1, height) - np.float32(0.5)
    terms = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=-1).reshape(-1, 6)
    wide = max(1, round(_BORDER_SHARE * min(height, width)))
    border = np.ones((height, width), np.bool_)
    border[wide:-wide, wide:-wide] = False
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
    """Find the largest leaf on a plain background, in sRGB pixels, uint8 (rows, columns, 3); None if the background
    is busy, or has itself the colours of leaves or lesions (green, yellow or brown). ToolError ``nothing_found`` if
    nothing on the plain background resembles a leaf."""
    small = shrink_image(pixels)
    lab = lab_of(small)
    board, plain_share = _estimate_board(lab)
    middle = np.median(board.reshape(-1, 3), axis=0)
    if plain_share < _PLAIN_SHARE or _is_plant_coloured(middle):
        return None
    difference = lab - board
    colour = np.hypot(difference[..., 1], difference[..., 2])
    lightness = difference[..., 0]
    depth = np.where(
        lightness < 0, -lightness - np.float32(_SHADOW_DEPTH), lightness - np.float32(_GLARE_HEIGHT)
    )
    distance = colour + np.maximum(0, depth)
    distance = np.asarray(cv2.GaussianBlur(distance, (0, 0), 0.7), np.float32)
    leaf_distances = distance[(distance > _LEAST_DISTANCE) & _is_plant_coloured(lab)]
    if leaf_distances.size < _MIN_AREA_SHARE * distance.size:
        raise _no_leaf("nothing stands out from the background in the colour of a leaf")
    typical = float(np.median(leaf_distances))
    threshold = float(np.clip(typical / 2, _LEAST_DISTANCE, _LEAF_DISTANCE))
    mask, rest = _largest_area(distance > threshold)
    if middle[0] < _DARK_BOARD_L:
        mask = _fill_holes(
            mask, _DARK_HOLE_SHARE
        )  # dark spots of the leaf look the same as a black board
    if (
        mask.sum() < max(9.0, _MIN_AREA_SHARE * mask.size)
        or _is_plant_coloured(lab[mask]).mean() < 0.5
    ):
        raise _no_leaf("what stands out from the background has not the colours of a leaf")
    flags = ["several_leaves"] if rest > _SEVERAL else []
    if typical < 2 * _LEAST_DISTANCE:
        flags.append("low_contrast")
    around = (
        np.asarray(
            cv2.dilate(mask.astype(np.uint8), np.ones((3, 3), np.uint8), iterations=12), np.bool_
        )
        & ~mask
    )
    shadow = around & (difference[..., 0] < -12) & (distance <= threshold)
    if shadow.sum() > 0.04 * mask.sum():
        flags.append("shadow")
    deep = mask & (lightness < -_SHADOW_DEPTH) & (colour < _SHADOW_COLOUR)
    if deep.sum() > _SHADOW_SHARE * mask.sum():
        flags.append("shadow_in_leaf")
    full = _threshold_enlarged(
        np.clip(distance * np.float32(128 / threshold), 0, 255), mask, pixels.shape[:2]
    )
    notes = [f"leaf: farther than {threshold:.3g} (Lab) from the background's own colour"]
    if "shadow_in_leaf" in flags:
        notes.append("a deep shadow may be counted as leaf, and as lesion: give leaf_mask")
    return Leaf(full, _as_lab(middle), tuple(notes), tuple(flags))


def _largest_area(mask: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], float]:
    """Return the largest connected part, and the area of the next one relative to it (0 if there is no other)."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats(
        mask.astype(np.uint8), connectivity=4
    )
    if count < 2:
        return np.zeros_like(mask), 0.0
    areas = np.asarray(stats)[1:, cv2.CC_STAT_AREA]
    order = np.argsort(areas)[::-1]
    rest = float(areas[order[1]] / areas[order[0]]) if len(areas) > 1 else 0.0
    return np.asarray(labels == 1 + order[0]), rest


def _fill_holes(mask: NDArray[np.bool_], largest_share: float = 1.0) -> NDArray[np.bool_]:
    """Fill the holes of a mask, except holes larger than ``largest_share`` of its area."""
    padded = np.pad(~mask, 1, constant_values=True).astype(np.uint8)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(padded, connectivity=4)
    small = np.asarray(stats)[:, cv2.CC_STAT_AREA] <= largest_share * mask.sum()
    small[labels[0, 0]] = False
    small[0] = False
    return np.asarray(mask | small[labels][1:-1, 1:-1])


def _threshold_enlarged(
    level: NDArray[np.float32], mask: NDArray[np.bool_], shape: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Enlarge a mask to full size, using the levels (0 to 255, inside from 128) that it was thresholded from."""
    near = np.asarray(cv2.dilate(mask.astype(np.uint8), np.ones((3, 3), np.uint8)), np.bool_)
    near_levels = np.where(near, level, 0)
    near_levels = np.where(mask & (near_levels < 128), 160, near_levels)
    near_levels = np.where(~mask & (near_levels >= 128), 127, near_levels).astype(np.uint8)
    if near_levels.shape == shape:
        return mask
    larger = np.asarray(
        cv2.resize(near_levels, (shape[1], shape[0]), interpolation=cv2.INTER_LINEAR)
    )
    return larger >= 128


def _no_leaf(why: str) -> ToolError:
    hint = (
        "give a picture that shows a leaf, cut to it with region, or say where it is with leaf_mask"
    )
    return ToolError("nothing_found", f"no leaf found: {why}", argument="image", hint=hint)


def leaf_in_field(pixels: NDArray[np.uint8]) -> Leaf:
    """Find the main leaf of a photograph in the field, sRGB pixels, uint8 (rows, columns, 3). ToolError
    ``nothing_found`` if hardly any pixel has the colour of a plant."""
    small = shrink_image(pixels, _FIELD_SIZE_PX)
    lab = np.asarray(cv2.GaussianBlur(lab_of(small), (0, 0), 1.0), np.float32)
    hue = np.degrees(np.arctan2(lab[..., 2], lab[..., 1]))
    chroma = np.hypot(lab[..., 1], lab[..., 2])
    plants = (
        (hue > _LEAST_HUE_DEG)
        & (hue < _MOST_HUE_DEG)
        & (chroma > _LEAST_CHROMA)
        & (lab[..., 0] > 10)
    )
    if plants.mean() < _MIN_PLANT_SHARE:
        raise _no_leaf("next to nothing has the colour of leaves")
    reach = max(1, round(_NECK_SHARE * max(plants.shape)))
    core = np.asarray(
        cv2.morphologyEx(plants.astype(np.uint8), cv2.MORPH_OPEN, disc(reach)), np.bool_
    )
    if not core.any():
        core = plants
    leaf, rest = _middle_area(core)
    leaf = plants & np.asarray(cv2.dilate(leaf.astype(np.uint8), disc(reach)), np.bool_)
    wide = max(1, round(_NOTCH_SHARE * math.sqrt(float(leaf.sum()))))
    padded = np.pad(leaf.astype(np.uint8), 2 * wide)
    closed = np.asarray(cv2.morphologyEx(padded, cv2.MORPH_CLOSE, disc(wide)), np.bool_)
    leaf = _fill_holes(closed[2 * wide : -2 * wide, 2 * wide : -2 * wide], _LARGEST_HOLE_SHARE)
    leaf = _refine_outline(small, leaf)
    inner = np.asarray(cv2.erode(np.pad(leaf, 1, mode="edge").astype(np.uint8), disc(1)), np.bool_)[
        1:-1, 1:-1
    ]
    leaf = (
        inner if inner.any() else leaf
    )  # the outermost pixels are a mixture of leaf and background
    level = np.asarray(
        cv2.GaussianBlur(np.where(leaf, np.float32(255), np.float32(0)), (0, 0), 1.0), np.float32
    )
    full = _threshold_enlarged(level, leaf, pixels.shape[:2])
    flags = [IN_FIELD]
    if rest > _SEVERAL:
        flags.append("several_leaves")
    if plants.mean() > 0.9:
        flags.append("no_background_visible")
    note = "busy background: the leaf is the largest green or yellow area near the middle; leaves that overlap are one"
    brown = (hue > 0) & (hue <= _LEAST_HUE_DEG) & (chroma > _LEAST_CHROMA)
    doubt = _doubt_of_outline(leaf, plants, brown, hue)
    if doubt is not None:
        flags.append("leaf_outline_uncertain")
        note = f"{note}; {doubt.note}"
        if doubt.direction is not None:
            flags.append(doubt.direction)
    return Leaf(full, None, (note,), tuple(flags))


class _OutlineDoubt(NamedTuple):
    """Doubt of a leaf's outline: the flag of the way in which the severity errs, None if it may err either way; a
    note."""

    direction: str | None
    note: str


def _doubt_of_outline(
    leaf: NDArray[np.bool_],
    plants: NDArray[np.bool_],
    brown: NDArray[np.bool_],
    hue: NDArray[np.floating],
) -> _OutlineDoubt | None:
    """Return the doubt of the outline of a leaf in the field, or None.

    ``plants``: what has the colours of a leaf; ``brown``: what has those of lesions; ``hue``: degrees.
    """
    if _is_cut(leaf):
        return _OutlineDoubt(None, "it reaches the border, so that ground may count as leaf")
    width = max(2, round(_SURROUNDINGS_SHARE * math.sqrt(float(leaf.sum()))))
    wider, near = (
        np.asarray(cv2.dilate(leaf.astype(np.uint8), disc(radius)), np.bool_)
        for radius in (width, 1)
    )
    around = wider & ~near
    like_leaf = around & plants
    if like_leaf.sum() > _MOST_LIKE_LEAF * around.sum():
        if float(np.median(hue[like_leaf])) < _GREEN_HUE_DEG:
            return _OutlineDoubt(TOO_HIGH, "yellowish ground around it may count as lesion")
        return _OutlineDoubt(None, "other plants around it may count as leaf")
    if leaf.sum() / hull_px(leaf) >= _LEAF_LIKE:
        return None
    if (around & brown).sum() > _MOSTLY_BROWN * around.sum():
        return _OutlineDoubt(TOO_LOW, "lesions at its margin may be cut off as brown ground")
    return _OutlineDoubt(None, "parts of it may be cut off, or ground may count as leaf")


def _refine_outline(pixels: NDArray[np.uint8], leaf: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Move the outline of a leaf to where its colours, lesions included, end and those around it begin.

    Lesions at the margin are not green, so a search by green cuts them off. The colours of the leaf's inner part and of
    the picture beyond its surroundings are learnt, and the pixels between them are divided so that the outline is short
    and follows edges (Rother, Kolmogorov and Blake 2004, GrabCut).
    """
    inset = max(1, round(_INSET_SHARE * math.sqrt(float(leaf.sum()))))
    core = np.asarray(cv2.erode(np.pad(leaf, 1).astype(np.uint8), disc(inset)), np.bool_)[
        1:-1, 1:-1
    ]
    near = np.asarray(cv2.dilate(leaf.astype(np.uint8), disc(_MARGIN_OVER_INSET * inset)), np.bool_)
    if not core.any() or near.all():
        return leaf
    labels = np.full(leaf.shape, cv2.GC_BGD, np.uint8)
    labels[near] = cv2.GC_PR_BGD
    labels[leaf] = cv2.GC_PR_FGD
    labels[core] = cv2.GC_FGD
    cv2.setRNGSeed(0)  # the colours are grouped from random starts
    background, foreground = np.zeros((1, 65)), np.zeros((1, 65))
    no_frame = (0, 0, 0, 0)  # the labels say where the leaf may be
    cv2.grabCut(
        *(pixels, labels, no_frame, background, foreground),
        _REFINEMENTS,
        cv2.GC_INIT_WITH_MASK,
    )
    refined, _ = _largest_area((labels == cv2.GC_FGD) | (labels == cv2.GC_PR_FGD))
    return _fill_holes(refined, _LARGEST_HOLE_SHARE)


def _middle_area(mask: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], float]:
    """Return the connected part that is large and near the middle, and the relative area of the largest other one."""
    _, labels, stats, centres = cv2.connectedComponentsWithStats(
        mask.astype(np.uint8), connectivity=4
    )
    areas = np.asarray(stats)[1:, cv2.CC_STAT_AREA].astype(np.float64)
    height, width = mask.shape
    off = (np.asarray(centres)[1:] - (width / 2, height / 2)) / (width / 2, height / 2)
    chosen = int(np.argmax(areas * np.exp(-(off**2).sum(axis=1))))
    others = np.delete(areas, chosen)
    return np.asarray(labels == 1 + chosen), float(
        others.max() / areas[chosen]
    ) if others.size else 0.0


def leaf_of(
    pixels: NDArray[np.uint8],
    valid: NDArray[np.bool_] | None,
    marked: NDArray[np.bool_] | None,
    mode: Literal["leaf", "field"],
    mask_name: str,
) -> Leaf:
    """Find the leaf in pixels, uint8 (rows, columns, 3), that have data where ``valid``: that which ``marked`` says,
    else one on a plain background or in the field. ToolError ``nothing_found``."""
    if marked is not None:
        if not marked.any():
            why = f"{mask_name} marks no leaf there: all its values are 0"
            hint = "pixels of the leaf have values other than 0"
            raise ToolError("nothing_found", why, argument="leaf_mask", hint=hint)
        board, plain_share = _estimate_board(lab_of(shrink_image(pixels)))
        middle = np.median(board.reshape(-1, 3), axis=0)
        background = _as_lab(middle) if plain_share >= _PLAIN_SHARE else None
        leaf = Leaf(marked, background, ("leaf: as the mask says",))
    elif float(lab_of(shrink_image(pixels, 128)).std(axis=(0, 1)).max()) < _LEAST_SPREAD:
        raise _no_leaf("the picture shows one colour only")
    else:
        leaf = (leaf_on_board(pixels) if mode == "leaf" else None) or leaf_in_field(pixels)
    mask = leaf.mask if valid is None else leaf.mask & valid
    if not mask.any():
        raise _no_leaf("what may be a leaf lies where the picture has no data")
    flags = (*leaf.flags, "leaf_cut") if _is_cut(mask) else leaf.flags
    return replace(leaf, mask=mask, flags=flags)


def _is_cut(leaf: NDArray[np.bool_]) -> bool:
    """Return True if much of the outline of a leaf is the border of the picture."""
    inner = cv2.erode(
        leaf.astype(np.uint8),
        np.ones((3, 3), np.uint8),
        borderType=cv2.BORDER_CONSTANT,
        borderValue=0,
    )
    outline = int(np.count_nonzero(leaf != np.asarray(inner, np.bool_)))
    sides = (leaf[0], leaf[-1], leaf[:, 0], leaf[:, -1])
    on_border = sum(int(np.count_nonzero(side)) for side in sides)
    return on_border > _CUT_SHARE * outline


def refuse_other_things(marked: NDArray[np.uint8], mask_name: str) -> None:
    """Refuse a mask if hardly any of the pixels that it marks, uint8 (n, 3), has the colours of a leaf."""
    if _is_plant_coloured(lab_of(marked[None])).mean() < _LEAST_PLANT_SHARE:
        why = f"hardly anything that {mask_name} marks has the colours of a leaf"
        raise ToolError(
            "nothing_found", why, argument="leaf_mask", hint="mark the leaf; other pixels are 0"
        )


def _as_lab(colour: NDArray[np.floating]) -> Lab:
    lightness, a, b = (float(value) for value in colour)
    return lightness, a, b


class LeafView(NamedTuple):
    """Leaf cut out of the picture and resized.

    ``lab``: float32 (rows, columns, 3). ``mask``: bool (rows, columns). ``box``: the part of the picture.
    """

    lab: NDArray[np.float32]
    mask: NDArray[np.bool_]
    box: Box

    @property
    def median(self) -> NDArray[np.float32]:
        return np.median(self.lab[self.mask], axis=0).astype(np.float32)


def leaf_view(
    pixels: NDArray[np.uint8], mask: NDArray[np.bool_], box: Box, side: int = SIDE_PX
) -> LeafView:
    """Cut a leaf out of ``pixels``, uint8 (rows, columns, 3), sRGB, and resize it. ``mask``: the leaf, bool (rows,
    columns), not empty; ``box``: its bounds."""
    factor = side / float(np.sqrt(np.count_nonzero(mask)))
    margin = int(np.ceil(_MARGIN_PX / factor))
    x0, y0 = max(0, box[0] - margin), max(0, box[1] - margin)
    x1, y1 = min(mask.shape[1], box[2] + margin), min(mask.shape[0], box[3] + margin)
    size = (max(1, round((x1 - x0) * factor)), max(1, round((y1 - y0) * factor)))
    how = cv2.INTER_AREA if factor < 1 else cv2.INTER_LINEAR
    cut = np.asarray(
        cv2.resize(np.ascontiguousarray(pixels[y0:y1, x0:x1]), size, interpolation=how), np.uint8
    )
    share = cv2.resize(mask[y0:y1, x0:x1].astype(np.uint8) * np.uint8(255), size, interpolation=how)
    inside = np.asarray(share) >= min(128, int(np.asarray(share).max()))
    return LeafView(lab_of(cut), inside, (x0, y0, x1, y1))


def _local_mean(
    values: NDArray[np.float32], mask: NDArray[np.bool_], sigma: float
) -> NDArray[np.float32]:
    """Return the Gaussian mean over the pixels of the mask; pixels outside get the mean of mask pixels nearby. Wide
    means are computed at a smaller size."""
    weight = mask.astype(np.float32)
    height, width = mask.shape
    step = max(1, int(sigma // 4))
    masked = values * (weight[..., None] if values.ndim == 3 else weight)
    if step > 1:
        size = (max(1, width // step), max(1, height // step))
        masked = cv2.resize(masked, size, interpolation=cv2.INTER_AREA)
        weight = cv2.resize(weight, size, interpolation=cv2.INTER_AREA)
    sums = np.asarray(cv2.GaussianBlur(masked, (0, 0), sigma / step), np.float32)
    weights = np.maximum(
        np.asarray(cv2.GaussianBlur(weight, (0, 0), sigma / step), np.float32), np.float32(1e-4)
    )
    mean = sums / (weights[..., None] if values.ndim == 3 else weights)
    if step > 1:
        mean = cv2.resize(mean, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(mean, np.float32)


def pixel_features(view: LeafView) -> NDArray[np.float32]:
    """Compute features of the leaf's pixels, float32 (pixels of the mask, features), in the order of ``lab[mask]``."""
    lab, mask, median = view.lab, view.mask, view.median
    fine = _local_mean(lab, mask, _FINE_PX)[mask]
    means = [_local_mean(lab, mask, sigma) for sigma in _SCALES_PX]
    local = [_local_mean(lab, mask, sigma)[mask] for sigma in _LOCAL_PX]
    rough = np.sqrt(np.maximum(0, _local_mean((lab - means[0]) ** 2, mask, 3.0)))[mask]
    spread = np.median(np.abs(lab[mask] - median), axis=0).astype(np.float32)
    inset = np.asarray(cv2.distanceTransform(np.pad(mask, 1).astype(np.uint8), cv2.DIST_L2, 3))[
        1:-1, 1:-1
    ][mask]
    chroma = np.hypot(fine[:, 1], fine[:, 2])
    columns = [
        fine - median,
        *(mean[mask] - median for mean in means),
        *(fine - mean for mean in local),
        means[1][mask] - local[1],
        rough,
        (chroma - float(np.median(chroma)))[:, None],
        np.degrees(np.arctan2(fine[:, 1], np.maximum(fine[:, 2], 1)))[:, None],
        np.minimum(inset, 30)[:, None],
        np.broadcast_to(median, fine.shape),
        np.broadcast_to(spread, fine.shape),
    ]
    return np.concatenate(columns, axis=1).astype(np.float32)


class Domain(FrozenModel):
    """Range of the training leaves. The model is not used on leaves outside it, and on other backgrounds it gives no
    interval.

    ``centre``, ``precision``: mean and inverse covariance of :func:`leaf_traits`. ``limit``: squared Mahalanobis
    distance within which 98 % of the training leaves are that the range was not fitted to. ``board_lightness`` (least,
    most), ``board_chroma`` (most): limits of the background.
    """

    centre: tuple[FiniteFloat, ...]
    precision: tuple[tuple[FiniteFloat, ...], ...]
    limit: FiniteFloat
    board_lightness: tuple[FiniteFloat, FiniteFloat]
    board_chroma: FiniteFloat


def doubtful_pct(probability: NDArray[np.float32]) -> float:
    """Return the share of a leaf's pixels that are doubtful, percent."""
    return 100 * float(((probability > _DOUBTFUL[0]) & (probability <= _DOUBTFUL[1])).mean())


class SeverityInterval(FrozenModel):
    """Conformal interval of a severity: wider on leaves with more doubtful pixels (Lei et al. 2018, locally weighted).

    ``error``: quantile of the absolute errors of leaves that the model had not seen, in units of the doubtful share of
    the leaf plus ``floor``, percent. ``level``: share of such leaves that intervals cover, of each kind of damage.
    ``leaves``: their number.
    """

    level: FiniteFloat
    floor: Annotated[FiniteFloat, Field(gt=0)]
    error: Annotated[FiniteFloat, Field(gt=0)]
    leaves: int

    def half_width(self, doubtful_pct: float) -> float:
        """Return half the width of the interval, points."""
        return self.error * (doubtful_pct + self.floor)


class ModelInfo(FrozenModel):
    """Description of the lesion model."""

    name: str
    features_version: int
    trained_on: str
    licence: str
    threshold: FiniteFloat
    """Probability above which a pixel is lesion, chosen out of fold for the error and the bias of the severity."""
    members: int
    domain: Domain
    metrics: dict[str, float]
    """Metrics on leaves that were not trained on (five-fold over leaves)."""
    interval: SeverityInterval
    weights_sha256: str


class LesionModel(NamedTuple):
    """Loaded lesion model, an ensemble of networks.

    ``mean``, ``scale``: (features,) float32. ``members``: layers of each network, (weights, bias) float32.
    """

    info: ModelInfo
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    members: tuple[tuple[tuple[NDArray[np.float32], NDArray[np.float32]], ...], ...]

    def probability(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the probability of lesion of each row, float32 (rows,), as the mean over the members."""
        probabilities = np.empty(len(features), np.float32)
        for start in range(0, len(features), _BLOCK_ROWS):
            block = np.clip(
                (features[start : start + _BLOCK_ROWS] - self.mean) / self.scale, -CLIP, CLIP
            )
            total = np.zeros(len(block), np.float32)
            for layers in self.members:
                values = block
                for number, (weights, bias) in enumerate(layers):
                    values = values @ weights + bias
                    if number < len(layers) - 1:
                        np.maximum(values, 0, out=values)
                total += 1 / (1 + np.exp(-np.clip(values[:, 0], -60, 60)))
            probabilities[start : start + _BLOCK_ROWS] = total / len(self.members)
        return probabilities


@lru_cache(maxsize=1)
def load_lesion_model() -> LesionModel:
    return read_lesion_model(*map(shipped_file, MODEL_FILES))


def read_lesion_model(description: Path, weights: Path) -> LesionModel:
    """Read a model from its two files."""
    info = read_description(description, ModelInfo, what=_WHAT, hint=_HINT)
    if info.features_version != FEATURES_VERSION:
        raise unusable_weights(_WHAT, "was trained for other features", _HINT)
    arrays = checked_arrays(
        weights, info.weights_sha256, what=f"the weights of {_WHAT}", hint=_HINT
    )
    try:
        values = {name: np.asarray(array, np.float32) for name, array in arrays.items()}
        depths = [
            sum(name.startswith(f"weights_{member}_") for name in values)
            for member in range(info.members)
        ]
        members = tuple(
            tuple(
                (values[f"weights_{member}_{layer}"], values[f"bias_{member}_{layer}"])
                for layer in range(depth)
            )
            for member, depth in enumerate(depths)
        )
        return LesionModel(info, values["mean"], values["scale"], members)
    except (ValueError, KeyError) as error:
        raise unusable_weights(_WHAT, "is damaged", _HINT) from error


def leaf_traits(view: LeafView) -> NDArray[np.float64]:
    """Return the traits of a leaf, float64 (5,): the median L, a, b, the logarithm of length over breadth (by second
    moments), and the share of its convex hull that the leaf fills."""
    rows, columns = np.nonzero(view.mask)
    spread = np.cov(np.stack([columns, rows]).astype(np.float64)) if len(rows) > 1 else np.eye(2)
    small, large = np.linalg.eigvalsh(spread + np.eye(2) / 12)
    solidity = len(rows) / hull_px(view.mask)
    return np.array([*view.median.astype(np.float64), 0.5 * math.log(large / small), solidity])


def _is_known_leaf(domain: Domain, view: LeafView) -> bool:
    """Return True if the colour and the shape of a leaf are like those of the training leaves."""
    return mahalanobis(domain, leaf_traits(view)) <= domain.limit


def _unknown_background(domain: Domain, background: Lab | None) -> str | None:
    """Return how a background differs from those of the training leaves, in words; None if it does not."""
    if background is None:
        return "a busy background"
    low, high = domain.board_lightness
    is_known = low <= background[0] <= high and math.hypot(*background[1:]) <= domain.board_chroma
    return None if is_known else "a background of another colour"


def mahalanobis(domain: Domain, traits: NDArray[np.float64]) -> float:
    """Return the squared Mahalanobis distance of a leaf's traits from the training leaves."""
    off = traits - np.array(domain.centre)
    return float(off @ np.array(domain.precision) @ off)


def healthy_colour(view: LeafView) -> Lab:
    """Return the median Lab of the greener half of the leaf (by hue angle, which is independent of shade)."""
    lab = view.lab[view.mask]
    hue = np.arctan2(lab[:, 1], np.maximum(lab[:, 2], 1))
    return _as_lab(np.median(lab[hue <= np.median(hue)], axis=0))


def lesion_level(
    view: LeafView, healthy: Lab, most_shift: float = MOST_SHIFT
) -> NDArray[np.float32]:
    """Return the lesion level, float32 (pixels of the mask,); 1 and more is diseased at the default sensitivity.

    It is the loss of green against the healthy colour, which is scaled with lightness, along a line through black, to
    account for light and shade, over a threshold that grows with the scatter of healthy tissue. Glare is bluish and
    light, and counts as healthy.
    """
    lab = _local_mean(view.lab, view.mask, _SMOOTHING_PX)[view.mask]
    shade = np.clip(lab[:, 0] / max(healthy[0], 5.0), 0.35, 1.15).astype(np.float32)
    shift = lab[:, 1] - np.float32(healthy[1]) * shade
    glare = (lab[:, 0] > healthy[0] + 8) & (lab[:, 2] < 0.75 * healthy[2]) & (lab[:, 1] < 0)
    shift = np.where(glare, np.float32(0), shift)
    even = shift[shift <= np.median(shift)]
    spread = 1.4826 * float(np.median(np.abs(even - np.median(shift)))) if even.size else 0.0
    return np.asarray(shift, np.float32) / np.float32(
        min(max(_LEAST_SHIFT, _SPREADS * spread), most_shift)
    )


def _remove_rim(view: LeafView, level: NDArray[np.float32]) -> NDArray[np.float32]:
    """Set the level to 0 in patches along the leaf's outline, which are background if the background is busy; a patch
    that extends further inwards is left unchanged."""
    lesion = np.zeros(view.mask.shape, np.uint8)
    lesion[view.mask] = level >= 1
    inset = np.asarray(
        cv2.distanceTransform(np.pad(view.mask, 1).astype(np.uint8), cv2.DIST_L2, 3)
    )[1:-1, 1:-1]
    count, labels = cv2.connectedComponents(lesion, connectivity=8)
    numbers = np.asarray(labels, np.intp)
    areas = np.maximum(np.bincount(numbers.ravel(), minlength=count), 1)
    share = np.bincount(numbers.ravel(), (inset <= _RIM_PX).ravel(), count) / areas
    at_rim: NDArray[np.bool_] = np.asarray(share > _MOSTLY_RIM_SHARE)
    at_rim[0] = False
    return np.where(at_rim[numbers][view.mask], np.float32(0), level)


class Lesions(NamedTuple):
    """Lesions of a leaf: ``mask``, bool (rows, columns) of the picture, healthy colour, and half the width of the
    interval of the severity, points, None if it is not known."""

    mask: NDArray[np.bool_]
    healthy: Lab
    method: Literal["model", "rules"]
    half_width: float | None
    notes: tuple[str, ...]
    flags: tuple[str, ...]


def find_lesions(
    view: LeafView, leaf: Leaf, healthy_reference: Lab | None, sensitivity: float
) -> Lesions:
    """Separate lesions from healthy tissue by the model, or by rules if it does not know such leaves.

    The model sees the leaf alone, so its background does not decide between the two. On a background that the training
    leaves did not have, the outline is less certain, and the severity has no interval.
    """
    healthy, flags, notes = healthy_reference or healthy_colour(view), [], []
    if healthy_reference is None and healthy[1] > _NO_GREEN:
        healthy = _GENERIC_GREEN
        flags.append("no_healthy_tissue")

    model = None if backend_in_use() == RULES else load_lesion_model()
    is_known_leaf = False
    unlike: list[str] = []
    if model is not None:
        background = _unknown_background(model.info.domain, leaf.background)
        if background is not None:
            unlike.append(background)
        is_known_leaf = _is_known_leaf(model.info.domain, view)
        if not is_known_leaf:
            unlike.append("a leaf of another colour or shape")
    if unlike:
        flags.append("out_of_distribution")
        notes.append(
            f"unlike the pictures that the lesion model was trained on: {', '.join(unlike)}"
        )

    half_width: float | None = None
    if model is not None and is_known_leaf and healthy_reference is None:
        method = "model"
        probability = model.probability(pixel_features(view))
        level = probability / np.float32(_threshold_at(model.info.threshold, sensitivity))
        if not unlike:
            half_width = model.info.interval.half_width(doubtful_pct(probability))
        notes.append(f"lesions: model {model.info.name}, trained on {model.info.trained_on}")
    else:
        method = "rules"
        most_shift = MOST_SHIFT_IN_FIELD if IN_FIELD in leaf.flags else MOST_SHIFT
        level = lesion_level(view, healthy, most_shift)
        level = level * np.float32(4 ** (sensitivity - 0.5))
        notes.append(
            "lesions: tissue that has lost the green of healthy tissue (rule on a* with shade taken out);"
            " on strongly diseased leaves the severity is too low"
        )
    if leaf.background is None:
        # An outline that is a little too wide shows the ground as lesions along the rim.
        level = _remove_rim(view, level)
    mask = _enlarged_lesions(view, level, leaf)
    return Lesions(mask, healthy, method, half_width, tuple(notes), tuple(flags))


def _threshold_at(threshold: float, sensitivity: float) -> float:
    """Return the probability above which a pixel is lesion; at sensitivity 0.5 the ``threshold`` itself."""
    log_odds = math.log(threshold / (1 - threshold))
    return 1 / (1 + math.exp(-(log_odds + 3 * (0.5 - sensitivity))))


def _enlarged_lesions(view: LeafView, level: NDArray[np.float32], leaf: Leaf) -> NDArray[np.bool_]:
    """Return the lesions, where the ``level`` of the view's pixels is 1 and more, at the size of the picture."""
    small = np.zeros(view.mask.shape, np.float32)
    small[view.mask] = np.clip(level * np.float32(100), 0, 255)
    # The level is extrapolated beyond the leaf's outline; otherwise lesions at the margin would lose their edge.
    spread = np.where(view.mask, small, _local_mean(small, view.mask, 1.5))
    x0, y0, x1, y1 = view.box
    larger = cv2.resize(
        np.rint(spread).astype(np.uint8), (x1 - x0, y1 - y0), interpolation=cv2.INTER_LINEAR
    )
    lesion = np.zeros(leaf.mask.shape, np.bool_)
    lesion[y0:y1, x0:x1] = np.asarray(larger) >= 100
    return lesion & leaf.mask
