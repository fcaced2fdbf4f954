"""Marks: their record, arrows, and the bounds of their ink."""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.tools.marks import MarkColour, MarkShape
from agrotools.tools.marks.outlines import SAME_COLOUR, Stroke, purity
from agrotools.vision import Box

LEAST_LENGTH_PX = 30
_MAX_ARROW_PIECES = 12
_BINS = 40


@dataclass(frozen=True)
class DrawnMark:
    """Mark found on a photograph.

    ``box``: bounds of its pixels, stroke included (x0, y0, x1, y1, half-open). ``inner_box``: bounds of the area inside
    the stroke. ``polygon``: centre line of the stroke, (x, y) in pixels; the last point connects to the first.
    ``area_px``: enclosed pixels, without the stroke. For an arrow ``polygon`` is its tail and tip, ``inner_box`` equals
    ``box`` and ``area_px`` is the area of the arrow. ``stroke_px``: width of the line. ``rgb``: colour of the line.
    ``score``: 0 to 1, completeness of the outline, in one colour and with another colour on both sides.
    """

    box: Box
    inner_box: Box
    polygon: tuple[tuple[float, float], ...]
    colour: MarkColour
    shape: MarkShape
    area_px: int
    stroke_px: float
    rgb: tuple[int, int, int]
    score: float


def arrows_in(
    mask: NDArray[np.uint8], pixels: NDArray[np.uint8], colour: MarkColour, pure: tuple[int, int, int]
) -> list[DrawnMark]:
    """Find arrows in a mask (rows, columns) that is 1 for possible ink of the colour ``pure``."""
    contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    pieces: list[NDArray[np.float64]] = []
    for contour in contours:
        if len(contour) < 1.8 * LEAST_LENGTH_PX:
            continue
        _, (one, other), _ = cv2.minAreaRect(contour)
        if max(one, other) >= LEAST_LENGTH_PX and min(one, other) < 0.75 * max(one, other):
            pieces.append(contour[:, 0, :].astype(np.float64))
    pieces.sort(key=lambda points: -len(points))
    arrows = [_arrow(points, pixels, colour, pure) for points in pieces[:_MAX_ARROW_PIECES]]
    return [arrow for arrow in arrows if arrow is not None]


def _arrow(
    points: NDArray[np.float64], pixels: NDArray[np.uint8], colour: MarkColour, pure: tuple[int, int, int]
) -> DrawnMark | None:
    # Finding the farthest point twice gives both ends of the piece.
    first = points[np.argmax(((points - points.mean(axis=0)) ** 2).sum(axis=1))]
    second = points[np.argmax(((points - first) ** 2).sum(axis=1))]
    length = float(np.hypot(*(second - first)))
    if length < LEAST_LENGTH_PX:
        return None
    along = (second - first) / length
    across = np.array([-along[1], along[0]])
    t, d = (points - first) @ along, (points - first) @ across
    place = np.clip(t / length * _BINS, 0, _BINS - 1).astype(int)
    high, low = np.full(_BINS, -np.inf), np.full(_BINS, np.inf)
    np.maximum.at(high, place, d)
    np.minimum.at(low, place, d)
    if not np.isfinite(high).all():
        return None
    spread = high - low
    half = float(np.median(spread)) / 2
    head = spread > 3.2 * half + 3
    if half > 6 or not head.any():
        return None
    where = np.flatnonzero(head) / (_BINS - 1)
    if where.max() < 0.5:
        first, second, along, across = second, first, -along, -across
        high, low, spread, head = high[::-1], low[::-1], spread[::-1], head[::-1]
        high, low = -low, -high
        where = 1 - where
    shaft = slice(1, int(np.floor(where.min() * (_BINS - 1))))
    if where.min() < 0.5 or shaft.stop < 12:
        return None
    middle = (high + low) / 2
    widest = int(np.argmax(spread))
    symmetric = min(abs(high[widest]), abs(low[widest])) >= 0.5 * max(abs(high[widest]), abs(low[widest]))
    straight = np.quantile(np.abs(middle[shaft]), 0.9) <= 2.0 and np.quantile(spread[shaft], 0.9) <= 2 * half + 2.5
    # A head narrows steadily from its widest place to the tip.
    narrowing = spread[widest:]
    pointed = narrowing[-1] <= 0.6 * narrowing[0] and (np.diff(narrowing) <= 2).all() and len(narrowing) >= 3
    if not (symmetric and straight and pointed):
        return None
    steps = np.linspace(3, where.min() * length - 2, 60)
    offsets = np.array([-half - 4, -half - 3, -1, 0, 1, half + 3, half + 4])
    x = (first[0] + steps[:, None] * along[0] + offsets * across[0]).astype(np.float32)
    y = (first[1] + steps[:, None] * along[1] + offsets * across[1]).astype(np.float32)
    band = cv2.remap(pixels, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE).astype(np.float32)
    rgb = np.median(band[:, 3], axis=0)
    distance = np.abs(band[:, 2:5] - rgb).max(axis=2).min(axis=1)
    middling, uneven = np.quantile(distance, (0.5, 0.85))
    other = float(np.clip(4 * uneven, 20, 45))
    sides = [np.abs(band[:, pair].mean(axis=1) - rgb).max(axis=1) for pair in (slice(0, 2), slice(5, 7))]
    two_sided = float(((sides[0] > other) & (sides[1] > other)).mean())
    covered = float((distance <= SAME_COLOUR).mean())
    least_purity = 225 if colour == "white" else 150
    if covered < 0.9 or two_sided < 0.8 or middling > 10 or uneven > 20 or purity(rgb, pure) < least_purity:
        return None
    x0, y0, w, h = cv2.boundingRect(points.astype(np.int32))
    bounds = (x0, y0, x0 + w, y0 + h)
    return DrawnMark(
        box=bounds,
        inner_box=bounds,
        polygon=((float(first[0]), float(first[1])), (float(second[0]), float(second[1]))),
        colour=colour,
        shape="arrow",
        area_px=round(float(cv2.contourArea(points.astype(np.float32)))),
        stroke_px=2 * half + 1,
        rgb=(round(float(rgb[0])), round(float(rgb[1])), round(float(rgb[2]))),
        score=covered * two_sided * (1 - float(middling) / 40),
    )


Bounds = tuple[float, float, float, float]
"""x0, y0, x1, y1 in pixels, half-open."""
_LEAST_TIP_PX = 1.5
_LONGEST_TIP_PX, _LONGEST_TIP = 6.0, 4.0
"""Largest reach of ink beyond the outline, in pixels and in stroke widths. A mitre of 30 degrees reaches two widths."""


def ink_bounds(pixels: NDArray[np.uint8], stroke: Stroke, outer: Bounds, has_corners: bool, has_tips: bool) -> Bounds:
    """Return the bounds of ink in the colour of the stroke on and just beyond an outline with the bounds ``outer``:
    a small error of two sides moves a sharp corner by many pixels (``has_corners``), and a smooth outline misses the
    tips of a pointed one (``has_tips``). Ink that extends further than a tip is another object of the same colour."""
    reach = 15
    height, width = pixels.shape[:2]
    low = np.maximum(np.floor(stroke.middle.min(axis=0)).astype(int) - 2 * reach, 0)
    high = np.minimum(np.ceil(stroke.middle.max(axis=0)).astype(int) + 2 * reach + 1, (width, height))
    if (high - low < 2).any():
        return outer
    part = pixels[low[1] : high[1], low[0] : high[0]].astype(np.int16)
    limit = min(70.0, max(25.0, stroke.contrast / 2))
    ink = (np.abs(part - np.array(stroke.rgb)).max(axis=2) <= limit).astype(np.uint8)
    lines = np.zeros(ink.shape, np.uint8)
    corners = stroke.middle - low
    for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        along = (end - start) / max(float(np.hypot(*(end - start))), 1e-9) * (reach if has_corners else 0)
        ends = [tuple(int(v) for v in np.rint(point)) for point in (start - along, end + along)]
        cv2.line(lines, ends[0], ends[1], 1, max(1, round(stroke.width_px) + 1))
    on_lines = ink & lines
    bounds = outer
    if has_corners:
        contours, _ = cv2.findContours(on_lines, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        if contours:
            bounds = _shift_bounds(
                max((cv2.boundingRect(contour) for contour in contours), key=lambda b: b[2] * b[3]), low
            )
    if not has_tips:
        return bounds
    _, labels, boxes, _ = cv2.connectedComponentsWithStats(ink, connectivity=8)
    counts = np.bincount(labels[on_lines > 0], minlength=len(boxes))
    if not counts[1:].any():
        return bounds
    x, y, w, h = (int(v) for v in boxes[1 + int(np.argmax(counts[1:])), :4])
    beyond = np.array(_shift_bounds((x, y, w, h), low)) - bounds
    outwards = beyond * (-1, -1, 1, 1)
    if outwards.max() > max(_LONGEST_TIP_PX, _LONGEST_TIP * stroke.width_px):
        return bounds
    x0, y0, x1, y1 = bounds + np.where(outwards > _LEAST_TIP_PX, beyond, 0)
    return float(x0), float(y0), float(x1), float(y1)


def _shift_bounds(box: Sequence[int], by: NDArray[np.int64]) -> Bounds:
    """Convert (x, y, width, height) to bounds, shifted by an offset."""
    x, y, w, h = box
    return float(x + by[0]), float(y + by[1]), float(x + by[0] + w), float(y + by[1] + h)
