"""Marks put together from pieces of line, for outlines that clutter of their own colour or a bright sky interrupts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.drawn_marks.outlines import Outline, box_outline, ellipse_outline

LEAST_RUN_PX = 14
_MOST_LINES = 40
_MOST_PIECES = 16
_THICKEST_PX = 11
_CORNER_GAP_PX = 5
_LEAST_ARC_PX = 24


@dataclass(frozen=True)
class _Line:
    """A straight piece along an axis: from ``start`` to ``end`` along it, ``low`` to ``high`` across, both included."""

    start: int
    end: int
    low: int
    high: int


def lined_boxes(mask: NDArray[np.uint8]) -> list[Outline]:
    """Upright boxes two opposite corners of which are seen, where a horizontal and a vertical line meet.

    Args:
        mask: uint8 (rows, columns), 1 where there may be ink, thin structures only.
    """
    across, down = _lines(mask, 1), _lines(mask, 0)
    corners: dict[tuple[bool, bool], list[tuple[_Line, _Line]]] = {}
    for flat in across:
        for steep in down:
            for is_left in (True, False):
                tip = flat.start if is_left else flat.end
                if not steep.low - _CORNER_GAP_PX <= tip <= steep.high + _CORNER_GAP_PX:
                    continue
                for is_top in (True, False):
                    end = steep.start if is_top else steep.end
                    if flat.low - _CORNER_GAP_PX <= end <= flat.high + _CORNER_GAP_PX:
                        corners.setdefault((is_left, is_top), []).append((flat, steep))
    boxes: set[tuple[int, int, int, int]] = set()
    for left_top in (True, False):
        for upper, first in corners.get((left_top, True), []):
            for lower, second in corners.get((not left_top, False), []):
                left, right = (first, second) if left_top else (second, first)
                if right.low - left.high >= LEAST_RUN_PX and lower.low - upper.high >= LEAST_RUN_PX:
                    boxes.add((left.high, upper.high, right.low, lower.low))
    return [box_outline(*box) for box in sorted(boxes, key=lambda box: -(box[2] - box[0]) * (box[3] - box[1]))[:12]]


def arc_ellipses(mask: NDArray[np.uint8]) -> list[Outline]:
    """Ellipses through single pieces of line that bend around more than half of one.

    Args:
        mask: uint8 (rows, columns), 1 where there may be ink, thin structures only.
    """
    import cv2

    contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    pieces: list[tuple[int, NDArray[np.int32]]] = []
    for contour in contours:
        if len(contour) >= 2 * _LEAST_ARC_PX:
            _, _, wide, high = cv2.boundingRect(contour)
            if max(wide, high) >= _LEAST_ARC_PX and cv2.contourArea(contour) < 0.6 * wide * high:
                pieces.append((wide + high, np.asarray(contour[:, 0, :], np.int32)))
    pieces.sort(key=lambda piece: -piece[0])
    # The outline of an open line goes along both sides of it.
    found = [ellipse_outline(points.astype(np.float64)) for _, points in pieces[:_MOST_PIECES]]
    return [outline for outline in found if outline is not None]


def _lines(mask: NDArray[np.uint8], axis: int) -> list[_Line]:
    """Straight thin runs along an axis (1: rows), the longest first."""
    import cv2

    kernel = np.ones((1, LEAST_RUN_PX) if axis == 1 else (LEAST_RUN_PX, 1), np.uint8)
    runs = cv2.morphologyEx(mask, cv2.MORPH_OPEN, kernel)
    contours, _ = cv2.findContours(runs, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    lines: list[_Line] = []
    for contour in contours:
        x, y, w, h = cv2.boundingRect(contour)
        start, low, length, thickness = (x, y, w, h) if axis == 1 else (y, x, h, w)
        if thickness <= _THICKEST_PX and length >= 2 * thickness:
            lines.append(_Line(start, start + length - 1, low, low + thickness - 1))
    lines.sort(key=lambda line: (line.start - line.end, line.low, line.start))
    return lines[:_MOST_LINES]
