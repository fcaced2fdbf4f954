"""Single plants in a mask: their pixels, their form, and a picture of what was measured.

Forms are measured on the mask as it is; skeletons on a copy of at most :data:`SKELETON_PX` pixels a side, since a leaf
tip of a few pixels is noise. Tips: end points of the pruned skeleton, as in PlantCV's ``morphology`` (Gehan et al.
2017, PeerJ 5:e4088).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.tools.plants.scale import Disc
from agrotools.vision import Box
from agrotools.vision.marks import Mark, draw_marks
from agrotools.vision.overlay import BLUE, BLUISH_GREEN, ORANGE, REDDISH_PURPLE, SKY_BLUE, VERMILLION, YELLOW, Colour

if TYPE_CHECKING:
    from PIL.Image import Image


SMALLEST_PLANT_PX = 40
SMALLEST_SHARE = 0.02
"""Parts below this share of the largest plant's area are specks, not plants."""
MOST_PLANTS = 200
"""Number of plants, the largest ones, that are measured one by one."""
SKELETON_PX = 320
SMALL_PX = 160
"""Skeletons of plants smaller than this are taken of an enlarged mask: a stalk of one pixel has no sides."""
_STEM_BASE = 0.06
"""In a side view, ends of the skeleton in this lowest share of the height are the stem, not a leaf."""

Mask = NDArray[np.bool_]
Point = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Plant:
    """One plant, all in pixels of the picture.

    ``mask``: bool, of the size of ``box``; ``hull``: corners of the convex hull of its pixels; ``tips``: ends of
    leaves, where the skeleton ends.
    """

    box: Box
    mask: Mask
    area_px: int
    hull: tuple[Point, ...]
    hull_area_px: float
    skeleton_length_px: float
    tips: tuple[Point, ...]

    @property
    def solidity(self) -> float:
        return self.area_px / self.hull_area_px


@dataclass(frozen=True)
class Plants:
    """The plants of a picture, largest first. ``left_out_px``: pixels of specks; ``count``: all, listed or not."""

    plants: tuple[Plant, ...]
    count: int
    left_out_px: int


def find_plants(mask: Mask, *, side_view: bool) -> Plants:
    """The plants in a mask. Parts of a plant that a small gap divides (a petiole too thin to be seen) are one plant.

    Args:
        mask: bool (rows, columns).
        side_view: whether plants stand up in the picture, so that their lowest end is a stem.
    """
    gap = min(3, max(1, round(0.003 * max(mask.shape))))
    joined = cv2.dilate(mask.astype(np.uint8), cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * gap + 1, 2 * gap + 1)))
    count, found_labels, stats, _ = cv2.connectedComponentsWithStats(joined, connectivity=8)
    labels = np.asarray(found_labels, np.int32)
    areas = np.bincount(labels[mask], minlength=count)
    areas[0] = 0
    least = max(SMALLEST_PLANT_PX, SMALLEST_SHARE * int(areas.max(initial=0)))
    # Equal areas in the order of the labels, which is that of the rows: the same plants in the same order each time.
    kept = [int(label) for label in np.argsort(-areas, kind="stable") if areas[label] >= least]
    found: list[Plant] = []
    for label in kept[:MOST_PLANTS]:
        found.append(_plant(_box(np.asarray(stats[label], np.int32)), labels, label, mask, side_view))
    return Plants(tuple(found), len(kept), int(areas.sum() - areas[kept].sum()))


def _plant(around: Box, labels: NDArray[np.int32], label: int, mask: Mask, side_view: bool) -> Plant:
    left, top, right, bottom = around
    mine = (labels[top:bottom, left:right] == label) & mask[top:bottom, left:right]
    rows, columns = np.flatnonzero(mine.any(axis=1)), np.flatnonzero(mine.any(axis=0))
    part = np.ascontiguousarray(mine[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1])
    x0, y0 = left + int(columns[0]), top + int(rows[0])
    x1, y1 = x0 + part.shape[1], y0 + part.shape[0]
    hull = _hull(part)
    length, tips = skeleton_of(part, side_view=side_view)
    return Plant(
        box=(x0, y0, x1, y1),
        mask=part,
        area_px=int(part.sum()),
        hull=tuple((x + x0, y + y0) for x, y in hull),
        hull_area_px=_polygon_area(hull),
        skeleton_length_px=length,
        tips=tuple((x + x0, y + y0) for x, y in tips),
    )


def _box(stats: NDArray[np.int32]) -> Box:
    x, y, width, height = (int(value) for value in stats[:4])
    return x, y, x + width, y + height


def _hull(mask: Mask) -> list[Point]:
    """Convex hull of the pixels' corners, not of their centres: a single pixel has an area of one."""
    rows = np.flatnonzero(mask.any(axis=1))
    first, last = mask.argmax(axis=1), mask.shape[1] - mask[:, ::-1].argmax(axis=1)
    corners = [(x, y + step) for y in rows for x in (first[y], last[y]) for step in (0, 1)]
    hull = cv2.convexHull(np.array(corners, np.float32))
    return [(float(x), float(y)) for x, y in hull[:, 0]]


def _polygon_area(corners: list[Point]) -> float:
    x, y = np.array(corners).T
    return float(abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2)


def skeleton_of(mask: Mask, *, side_view: bool) -> tuple[float, tuple[Point, ...]]:
    """Length of the skeleton in pixels, and ends of leaves.

    A branch of the skeleton that does not leave the largest disc around its junction is a bump of the outline, no leaf.
    """
    from skimage.morphology import skeletonize

    scale = min(1.0, SKELETON_PX / max(mask.shape))
    if max(mask.shape) < SMALL_PX:
        scale = SMALL_PX / max(mask.shape)
    size = (max(1, round(mask.shape[1] * scale)), max(1, round(mask.shape[0] * scale)))
    share = cv2.resize(mask.astype(np.float32), size, interpolation=cv2.INTER_AREA if scale <= 1 else cv2.INTER_CUBIC)
    small = share >= 0.5 if (share >= 0.5).any() else share > 0
    # An outline that wavers by a pixel grows spurs; a median keeps leaves and takes the wavering.
    framed = np.pad(small, 2)
    smooth = cv2.medianBlur(framed.astype(np.uint8), 3) > 0
    smooth = smooth if smooth.sum() > 0.7 * framed.sum() else framed
    distance = np.asarray(cv2.distanceTransform(smooth.astype(np.uint8), cv2.DIST_L2, 5), np.float32)
    skeleton = prune(skeletonize(smooth), distance)
    ends = [(x, y) for y, x in zip(*np.nonzero(skeleton & (_neighbours(skeleton) <= 1)), strict=True)]
    if side_view:
        height = small.shape[0]
        ends = [(x, y) for x, y in ends if y - 2 < (1 - _STEM_BASE) * height]
    tips = tuple(((x - 1.5) / scale, (y - 1.5) / scale) for x, y in ends)
    return _length(skeleton) / scale, tips


def prune(skeleton: Mask, distance: NDArray[np.float32]) -> Mask:
    """The skeleton without branches that end inside the disc of radius ``distance`` around the pixel they start from.

    The shortest such branch goes first; where it went, the rest is thinned again, since two branches may be one now.
    """
    from skimage.morphology import skeletonize

    pruned = skeleton.copy()
    for _ in range(200):
        spurs = [
            branch for branch in _end_branches(pruned) if math.dist(branch[0], branch[-1]) <= distance[branch[-1]] + 1.5
        ]
        if not spurs:
            break
        shortest = min(spurs, key=lambda branch: (len(branch), branch[0]))
        for pixel in shortest[:-1]:
            pruned[pixel] = False
        pruned = skeletonize(pruned)
    return pruned


def _end_branches(skeleton: Mask) -> list[list[tuple[int, int]]]:
    """Paths from each end point to the junction it hangs on; a skeleton without a junction has none."""
    rows, columns = np.nonzero(skeleton)
    pixels = set(zip(rows.tolist(), columns.tolist(), strict=True))
    counts = _neighbours(skeleton)
    branches: list[list[tuple[int, int]]] = []
    for end in sorted(pixel for pixel in pixels if counts[pixel] == 1):
        path = [end]
        while True:
            y, x = path[-1]
            near = [
                (y + dy, x + dx)
                for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1))
                if (y + dy, x + dx) in pixels and (y + dy, x + dx) not in path[-3:]
            ]
            if not near:
                break
            path.append(near[0])
            if counts[near[0]] > 2:
                branches.append(path)
                break
    return branches


def _neighbours(skeleton: Mask) -> NDArray[np.uint8]:
    kernel = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]], np.uint8)
    return np.asarray(cv2.filter2D(skeleton.astype(np.uint8), -1, kernel, borderType=cv2.BORDER_CONSTANT), np.uint8)


def _length(skeleton: Mask) -> float:
    """Steps between neighbouring pixels: 1 straight, the root of 2 across where no two straight ones lead there too."""
    s = skeleton
    straight = int((s[:, 1:] & s[:, :-1]).sum() + (s[1:] & s[:-1]).sum())
    down = s[1:, 1:] & s[:-1, :-1] & ~s[1:, :-1] & ~s[:-1, 1:]
    up = s[1:, :-1] & s[:-1, 1:] & ~s[1:, 1:] & ~s[:-1, :-1]
    return straight + math.sqrt(2) * int(down.sum() + up.sum())


_LEAST_SIDE_PX = 480
"""Smaller pictures are enlarged by a whole factor, so that marks do not hide the plant."""


def plant_colours(count: int) -> dict[int, Colour]:
    """A colour per plant number, neighbours in the list with different ones; 0 is black."""
    palette = (SKY_BLUE, ORANGE, BLUISH_GREEN, YELLOW, BLUE, VERMILLION, REDDISH_PURPLE)
    return {0: (0, 0, 0)} | {number: palette[(number - 1) % len(palette)] for number in range(1, count + 1)}


def draw_plants(
    pixels: NDArray[np.uint8],
    plants: Sequence[Plant],
    *,
    ground_y_px: int | None,
    heights: bool,
    region: Box | None,
    scale_cm_px: float | None,
    disc: Disc | None,
    title: str,
) -> "Image":
    """Draw ``plants`` into the picture.

    Args:
        ground_y_px: row of a ground line for all; None: the foot of each plant.
        heights: whether heights were measured.
        disc: the scale marker that was used.
    """
    zoom = max(1, _LEAST_SIDE_PX // max(pixels.shape[:2]))
    marks: list[Mark] = []
    for number, plant in enumerate(plants, start=1):
        x0, y0, x1, y1 = plant.box
        marks.append(Mark(YELLOW, outline=_scale_points(plant.hull, zoom)))
        framed = np.pad(plant.mask.astype(np.uint8), 1)
        for contour in cv2.findContours(framed, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)[0]:
            outline = [(float(x + x0) - 0.5, float(y + y0) - 0.5) for x, y in contour[:, 0]]
            marks.append(Mark(SKY_BLUE, outline=_scale_points(outline, zoom)))
        if heights:
            foot = y1 if ground_y_px is None else ground_y_px
            apex = x0 + float(np.flatnonzero(plant.mask[0]).mean()) + 0.5
            marks.append(Mark(VERMILLION, outline=_scale_points([(apex, y0), (apex, foot)], zoom)))
            marks.append(Mark(VERMILLION, outline=_scale_points([(x0, foot), (x1, foot)], zoom)))
        radius = max(3.0, max(pixels.shape[:2]) * zoom / 200)
        marks += [Mark(REDDISH_PURPLE, circle=((x + 0.5) * zoom, (y + 0.5) * zoom, radius)) for x, y in plant.tips]
        marks.append(Mark(YELLOW, str(number) if len(plants) > 1 else "", outline=_scale_points([(x0, y0)], zoom)))
    legend: list[tuple[Colour, str]] = [(SKY_BLUE, "plant"), (YELLOW, "convex hull"), (REDDISH_PURPLE, "leaf tip")]
    if heights:
        legend.append((VERMILLION, "height and ground"))
    if disc is not None:
        marks.append(Mark(BLUE, "scale", circle=(disc.x * zoom, disc.y * zoom, disc.radius * zoom)))
        legend.append((BLUE, "scale marker"))
    shown = pixels if zoom == 1 else np.repeat(np.repeat(pixels, zoom, axis=0), zoom, axis=1)
    return draw_marks(
        shown,
        marks,
        legend=legend,
        region=None if region is None else (region[0] * zoom, region[1] * zoom, region[2] * zoom, region[3] * zoom),
        gsd_m=None if scale_cm_px is None else scale_cm_px / 100 / zoom,
        title=title,
    )


def _scale_points(points: Sequence[tuple[float, float]], zoom: int) -> tuple[tuple[float, float], ...]:
    return tuple((x * zoom, y * zoom) for x, y in points)
