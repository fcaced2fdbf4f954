"""Arrows: a straight stroke with a head at one of its ends."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.drawn_marks.outlines import SAME_COLOUR, purity

LEAST_LENGTH_PX = 30
_MOST_PIECES = 12
_BINS = 40


@dataclass(frozen=True, eq=False)
class Arrow:
    """``tail``, ``tip``: (x, y), pixels. ``bounds``: of its pixels (x0, y0, x1, y1). ``score``: 0..1."""

    tail: tuple[float, float]
    tip: tuple[float, float]
    bounds: tuple[int, int, int, int]
    width_px: float
    area_px: int
    rgb: tuple[float, float, float]
    score: float


def arrows_in(
    mask: NDArray[np.uint8], pixels: NDArray[np.uint8], pure: tuple[int, int, int], least_purity: float
) -> list[Arrow]:
    """Arrows among the pieces of a mask (rows, columns), 1 where there may be ink of the colour ``pure``."""
    import cv2

    contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    pieces: list[NDArray[np.float64]] = []
    for contour in contours:
        if len(contour) < 1.8 * LEAST_LENGTH_PX:
            continue
        _, (one, other), _ = cv2.minAreaRect(contour)
        if max(one, other) >= LEAST_LENGTH_PX and min(one, other) < 0.75 * max(one, other):
            pieces.append(contour[:, 0, :].astype(np.float64))
    pieces.sort(key=lambda points: -len(points))
    found = [_arrow(points, pixels, pure, least_purity) for points in pieces[:_MOST_PIECES]]
    return [arrow for arrow in found if arrow is not None]


def _arrow(
    points: NDArray[np.float64], pixels: NDArray[np.uint8], pure: tuple[int, int, int], least_purity: float
) -> Arrow | None:
    import cv2

    # Twice the farthest point: from anywhere to one end of the piece, from there to the other.
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
    # From its widest place on, a head narrows to the tip, on both sides and without steps.
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
    if covered < 0.9 or two_sided < 0.8 or middling > 10 or uneven > 20 or purity(rgb, pure) < least_purity:
        return None
    x0, y0, w, h = cv2.boundingRect(points.astype(np.int32))
    return Arrow(
        tail=(float(first[0]), float(first[1])),
        tip=(float(second[0]), float(second[1])),
        bounds=(x0, y0, x0 + w, y0 + h),
        width_px=2 * half + 1,
        area_px=round(float(cv2.contourArea(points.astype(np.float32)))),
        rgb=(float(rgb[0]), float(rgb[1]), float(rgb[2])),
        score=covered * two_sided * (1 - float(middling) / 40),
    )
