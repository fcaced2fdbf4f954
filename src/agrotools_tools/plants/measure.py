"""Single plants in a mask: their pixels, their form, their scale, and an overlay.

Forms are measured on the original mask, skeletons on a copy of at most :data:`SKELETON_PX` pixels a side, because leaf
tips of a few pixels are noise. Tips are end points of the pruned skeleton, as in PlantCV's ``morphology`` (Gehan et al.
2017, PeerJ 5:e4088).

A round scale marker (a coin, a disc) is found from contours of a picture at many grey levels that are as round as a
disc over several levels: maximally stable regions (Matas et al. 2002), restricted to circles. It is used only if it is
the only one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from skimage.morphology import skeletonize

from agrotools.calling.pictures import choose_scale
from agrotools.core import ToolError
from agrotools.vision import Box
from agrotools.vision.overlay import (
    BLUE,
    BLUISH_GREEN,
    ORANGE,
    REDDISH_PURPLE,
    SKY_BLUE,
    VERMILLION,
    YELLOW,
    Colour,
    Mark,
    circle_points,
    class_picture,
    draw_marks,
)
from agrotools.vision.reading import bounds
from agrotools_tools.vision.vegetation import disc as disc_of

if TYPE_CHECKING:
    from PIL.Image import Image

    from agrotools_tools.plants.tool import ScaleMarker
_LONGEST_PX = 1200
_LEVELS = 24
_LEAST_SEEN = 3
_ROUND = 0.02
"""Largest mean distance of the outline from a circle, share of the radius, plus a quarter of a pixel for sampling.

A square has 0.08, a hexagon 0.03.
"""
_LARGEST_SHARE = 0.5
"""Largest size of a marker, share of the picture's longer side."""
_LEAST_RADIUS_PX = 8.0


class Disc(NamedTuple):
    x: float
    y: float
    radius: float


def find_discs(pixels: NDArray[np.uint8], exclude: NDArray[np.bool_]) -> list[Disc]:
    """Find the discs in a picture, largest first; ``exclude``: plants, because round leaves are not markers."""
    height, width = pixels.shape[:2]
    shrink = min(1.0, _LONGEST_PX / max(height, width))
    size = (max(1, round(width * shrink)), max(1, round(height * shrink)))
    small = cv2.GaussianBlur(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), (0, 0), 1.0)
    left_out = np.asarray(
        cv2.resize(exclude.astype(np.float32), size, interpolation=cv2.INTER_AREA), np.float32
    )
    lab = cv2.cvtColor(small, cv2.COLOR_RGB2LAB)
    groups: list[list[Disc]] = []
    for channel in cv2.split(lab):
        low, high = int(channel.min()), int(channel.max())
        for level in np.unique(np.linspace(low, high, _LEVELS + 2)[1:-1].astype(int)):
            for cut in (channel > level, channel <= level):
                for disc in _round_parts(cut.view(np.uint8), left_out):
                    same = next((group for group in groups if _same(disc, group[0])), None)
                    if same is None:
                        groups.append([disc])
                    else:
                        same.append(disc)
    distinct: list[Disc] = []
    for group in sorted(groups, key=len, reverse=True):
        disc = Disc(*np.median(group, axis=0).tolist())
        if len(group) >= _LEAST_SEEN and not any(_same(disc, other) for other in distinct):
            distinct.append(disc)
    discs = [Disc(*(part / shrink for part in disc)) for disc in distinct]
    return sorted(discs, key=lambda disc: -disc.radius)


def _round_parts(cut: NDArray[np.uint8], left_out: NDArray[np.float32]) -> list[Disc]:
    contours, _ = cv2.findContours(cut, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    height, width = cut.shape
    discs: list[Disc] = []
    fewest = 2 * (2 * _LEAST_RADIUS_PX - 1)
    for contour in [
        contour for contour in contours if len(contour) >= fewest
    ]:  # shorter ones are too small for a disc
        x, y, w, h = cv2.boundingRect(contour)
        touches = x == 0 or y == 0 or x + w == width or y + h == height
        if touches or min(w, h) < 2 * _LEAST_RADIUS_PX:
            continue
        if max(w, h) > min(1.1 * min(w, h), _LARGEST_SHARE * max(cut.shape)):
            continue
        area = float(cv2.contourArea(contour))
        points = contour[:, 0].astype(np.float64)
        centre = (points.min(axis=0) + points.max(axis=0)) / 2
        radii = np.hypot(*(points - centre).T)
        # Contours run through pixel centres, half a pixel inside the edge.
        radius = math.sqrt(area / math.pi) + 0.5
        is_round = float(np.abs(radii - radii.mean()).mean()) <= _ROUND * radius + 0.25
        if not is_round or float(left_out[y : y + h, x : x + w].mean()) > 0.3:
            continue
        discs.append(Disc(float(centre[0]) + 0.5, float(centre[1]) + 0.5, radius))
    return discs


def _same(disc: Disc, other: Disc) -> bool:
    # The blurred edge of a small disc moves by a pixel or two between levels.
    slack = max(2.5, 0.15 * other.radius)
    return (
        math.hypot(disc.x - other.x, disc.y - other.y) < slack
        and abs(disc.radius - other.radius) < slack
    )


_INSTEAD = "measure a known length in pixels and pass scale_cm_px"


class PlantScale(NamedTuple):
    """Scale of a picture: centimetres per pixel, None if unknown, and the marker ``disc`` it comes from, if any."""

    cm_px: float | None
    disc: Disc | None = None
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def scale_of(
    scale_cm_px: float | None,
    marker: "ScaleMarker | None",
    gsd_m: float | None,
    pixels: NDArray[np.uint8],
    plants: NDArray[np.bool_],
    name: str,
) -> PlantScale:
    """Choose the scale: ``scale_cm_px``, else that of the marker, else ``gsd_m`` (metres per pixel) of the file.
    ToolError ``missing_metadata`` if the marker cannot be identified reliably."""
    if scale_cm_px is not None:
        chosen = choose_scale(scale_cm_px / 100, gsd_m)
        ignored = (
            ("scale_cm_px was given, so the scale marker was not looked for",) if marker else ()
        )
        return PlantScale(scale_cm_px, None, (*chosen.notes, *ignored), chosen.flags)
    if marker is None:
        return PlantScale(None if gsd_m is None else 100 * gsd_m)
    if marker.type != "circle":
        raise ToolError("missing_metadata", f"a {marker.type.replace('_', ' ')} cannot be found reliably offline",
                        argument="scale_marker", hint=f"{_INSTEAD}, or lay a disc beside the plants")  # fmt: skip
    discs = find_discs(pixels, plants)
    if len(discs) != 1:
        seen = "no disc was" if not discs else f"{len(discs)} discs were"
        raise ToolError("missing_metadata", f"{seen} found in {name}, so its scale is not known",
                        argument="scale_marker", hint=_INSTEAD)  # fmt: skip
    disc = discs[0]
    note = f"scale from a disc of {2 * disc.radius:.1f} px at ({disc.x:.0f}, {disc.y:.0f})"
    return PlantScale(marker.size_cm / (2 * disc.radius), disc, (note,))


SMALLEST_PLANT_PX = 40
SMALLEST_SHARE = 0.02
"""Area, as a share of the largest plant, below which parts are specks and not plants."""
MOST_PLANTS = 200
"""Largest number of plants measured individually; the largest plants are chosen."""
SKELETON_PX = 320
SMALL_PX = 160
"""Size, pixels, below which the mask is enlarged for the skeleton, since a stalk of one pixel has no sides."""
_STEM_BASE = 0.06
"""Lowest share of the height in a side view in which ends of the skeleton are the stem and not leaves."""

Mask = NDArray[np.bool_]
Point = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Plant:
    """Plant in a mask, in pixels of the picture.

    ``mask``: bool, of the size of ``box``. ``hull``: corners of the convex hull of its pixels. ``tips``: tips of
    leaves, the ends of the skeleton.
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
    """Plants, largest first. ``count``: with unlisted ones. ``left_out_px``: pixels of specks."""

    plants: tuple[Plant, ...]
    count: int
    left_out_px: int


def find_plants(mask: Mask, *, side_view: bool) -> Plants:
    """Find the plants in a mask; parts separated by a small gap, as at a thin petiole, are one plant. ``side_view``:
    plants stand upright, so that their lowest end is a stem."""
    gap = min(3, max(1, round(0.003 * max(mask.shape))))
    joined = cv2.dilate(mask.astype(np.uint8), disc_of(gap))
    count, found_labels, stats, _ = cv2.connectedComponentsWithStats(joined, connectivity=8)
    labels = np.asarray(found_labels, np.int32)
    areas = np.bincount(labels[mask], minlength=count)
    areas[0] = 0
    least = max(SMALLEST_PLANT_PX, SMALLEST_SHARE * int(areas.max(initial=0)))
    # The sort is stable, so plants of equal area are in the order of their labels, which is that of the rows.
    numbers = [int(label) for label in np.argsort(-areas, kind="stable") if areas[label] >= least]
    plants = tuple(
        _plant(stats[label].tolist(), labels, label, mask, side_view)
        for label in numbers[:MOST_PLANTS]
    )
    return Plants(plants, len(numbers), int(areas.sum() - areas[numbers].sum()))


def _plant(
    stats: Sequence[int], labels: NDArray[np.int32], label: int, mask: Mask, side_view: bool
) -> Plant:
    left, top, width, height, _ = stats
    around = slice(top, top + height), slice(left, left + width)
    pixels_of_plant = (labels[around] == label) & mask[around]
    x0, y0, x1, y1 = bounds(pixels_of_plant)
    part = np.ascontiguousarray(pixels_of_plant[y0:y1, x0:x1])
    x0, y0, x1, y1 = left + x0, top + y0, left + x1, top + y1
    hull, hull_area = _hull(part)
    length, tips = skeleton_of(part, side_view=side_view)
    return Plant(
        box=(x0, y0, x1, y1),
        mask=part,
        area_px=int(part.sum()),
        hull=tuple((x + x0, y + y0) for x, y in hull),
        hull_area_px=hull_area,
        skeleton_length_px=length,
        tips=tuple((x + x0, y + y0) for x, y in tips),
    )


def _hull(mask: Mask) -> tuple[list[Point], float]:
    """Return the convex hull of the pixels' corners, not their centres, so that a single pixel has an area of one."""
    rows = np.flatnonzero(mask.any(axis=1))
    first, last = mask.argmax(axis=1), mask.shape[1] - mask[:, ::-1].argmax(axis=1)
    corners = [(x, y + step) for y in rows for x in (first[y], last[y]) for step in (0, 1)]
    hull = cv2.convexHull(np.array(corners, np.float32))
    x, y = hull[:, 0].T.astype(np.float64)
    area = float(abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2)
    return [(float(x), float(y)) for x, y in hull[:, 0]], area


def skeleton_of(mask: Mask, *, side_view: bool) -> tuple[float, tuple[Point, ...]]:
    """Return the length of the skeleton in pixels, and the tips of leaves.

    A branch of the skeleton within the largest disc around its junction is a bump of the outline and not a leaf.
    """
    scale = min(1.0, SKELETON_PX / max(mask.shape))
    if max(mask.shape) < SMALL_PX:
        scale = SMALL_PX / max(mask.shape)
    size = (max(1, round(mask.shape[1] * scale)), max(1, round(mask.shape[0] * scale)))
    share = cv2.resize(
        mask.astype(np.float32),
        size,
        interpolation=cv2.INTER_AREA if scale <= 1 else cv2.INTER_CUBIC,
    )
    small = share >= 0.5 if (share >= 0.5).any() else share > 0
    # An outline that varies by a pixel causes spurs; a median removes the variation and preserves leaves.
    framed = np.pad(small, 2)
    smooth = cv2.medianBlur(framed.astype(np.uint8), 3) > 0
    smooth = smooth if smooth.sum() > 0.7 * framed.sum() else framed
    distance = np.asarray(
        cv2.distanceTransform(smooth.astype(np.uint8), cv2.DIST_L2, 5), np.float32
    )
    skeleton = prune(skeletonize(smooth), distance)
    ends = [
        (x, y) for y, x in zip(*np.nonzero(skeleton & (_neighbours(skeleton) <= 1)), strict=True)
    ]
    if side_view:
        height = small.shape[0]
        ends = [(x, y) for x, y in ends if y - 2 < (1 - _STEM_BASE) * height]
    tips = tuple(((x - 1.5) / scale, (y - 1.5) / scale) for x, y in ends)
    return _length(skeleton) / scale, tips


def prune(skeleton: Mask, distance: NDArray[np.float32]) -> Mask:
    """Remove branches of a skeleton that end inside the disc of radius ``distance`` around their junction.

    The shortest such branch is removed first; then the rest is thinned again, because two branches may have become one.
    """
    pruned = skeleton.copy()
    for _ in range(200):
        spurs = [
            branch
            for branch in _end_branches(pruned)
            if math.dist(branch[0], branch[-1]) <= distance[branch[-1]] + 1.5
        ]
        if not spurs:
            break
        shortest = min(spurs, key=lambda branch: (len(branch), branch[0]))
        for pixel in shortest[:-1]:
            pruned[pixel] = False
        pruned = skeletonize(pruned)
    return pruned


def _end_branches(skeleton: Mask) -> list[list[tuple[int, int]]]:
    """Return the path from each end point to its junction; a skeleton without junctions has none."""
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
    return np.asarray(
        cv2.filter2D(skeleton.astype(np.uint8), -1, kernel, borderType=cv2.BORDER_CONSTANT),
        np.uint8,
    )


def _length(skeleton: Mask) -> float:
    """Return the total length of steps between pixels: 1 if straight, root of 2 if diagonal without a straight path."""
    s = skeleton
    straight = int((s[:, 1:] & s[:, :-1]).sum() + (s[1:] & s[:-1]).sum())
    down = s[1:, 1:] & s[:-1, :-1] & ~s[1:, :-1] & ~s[:-1, 1:]
    up = s[1:, :-1] & s[:-1, 1:] & ~s[1:, 1:] & ~s[:-1, :-1]
    return straight + math.sqrt(2) * int(down.sum() + up.sum())


_LEAST_SIDE_PX = 480
"""Size, pixels, below which pictures are enlarged by a whole factor, so that marks do not hide the plant."""


def numbered_mask(plants: Sequence[Plant], shape: tuple[int, ...]) -> "Image":
    """Return the number of the plant per pixel, 0 for none, in colours that differ for neighbours in the list."""
    classes = np.zeros(shape, np.uint8)
    palette = (SKY_BLUE, ORANGE, BLUISH_GREEN, YELLOW, BLUE, VERMILLION, REDDISH_PURPLE)
    colours: dict[int, Colour] = {}
    for number, plant in enumerate(plants, start=1):
        x0, y0, x1, y1 = plant.box
        classes[y0:y1, x0:x1][plant.mask] = number
        colours[number] = palette[(number - 1) % len(palette)]
    return class_picture(classes, colours)


def draw_plants(
    pixels: NDArray[np.uint8],
    plants: Sequence[Plant],
    scale: PlantScale,
    *,
    ground_y_px: int | None,
    heights: bool,
    region: Box | None,
    title: str,
) -> NDArray[np.uint8]:
    """Draw the outlines, hulls, leaf tips and heights (over ``ground_y_px``, else over the foot) of plants."""
    zoom = max(1, _LEAST_SIDE_PX // max(pixels.shape[:2]))
    marks: list[Mark] = []
    for number, plant in enumerate(plants, start=1):
        x0, y0, x1, y1 = plant.box
        marks.append(Mark(YELLOW, plant.hull))
        framed = np.pad(plant.mask.astype(np.uint8), 1)
        for contour in cv2.findContours(framed, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)[0]:
            marks.append(Mark(SKY_BLUE, (contour[:, 0] + (x0 - 0.5, y0 - 0.5)).tolist()))
        if heights:
            foot = y1 if ground_y_px is None else ground_y_px
            apex = x0 + float(np.flatnonzero(plant.mask[0]).mean()) + 0.5
            marks += [
                Mark(VERMILLION, ((apex, y0), (apex, foot))),
                Mark(VERMILLION, ((x0, foot), (x1, foot))),
            ]
        radius = max(3.0 / zoom, max(pixels.shape[:2]) / 200)
        marks += [
            Mark(REDDISH_PURPLE, circle_points(x + 0.5, y + 0.5, radius)) for x, y in plant.tips
        ]
        marks.append(Mark(YELLOW, ((x0, y0),), str(number) if len(plants) > 1 else ""))
    legend: list[tuple[Colour, str]] = [
        (SKY_BLUE, "plant"),
        (YELLOW, "convex hull"),
        (REDDISH_PURPLE, "leaf tip"),
    ]
    if heights:
        legend.append((VERMILLION, "height and ground"))
    if scale.disc is not None:
        marks.append(Mark(BLUE, circle_points(*scale.disc), "scale"))
        legend.append((BLUE, "scale marker"))
    gsd_m = None if scale.cm_px is None else scale.cm_px / 100
    return draw_marks(
        pixels, marks, legend=legend, region=region, gsd_m=gsd_m, title=title, zoom=zoom
    )
