"""Where a drawn mark ends: bounds of the ink on and beside its outline."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.drawn_marks.outlines import Stroke

Bounds = tuple[float, float, float, float]
"""x0, y0, x1, y1 in pixels, half-open."""
_LEAST_TIP_PX = 1.5
_LONGEST_TIP_PX, _LONGEST_TIP = 6.0, 4.0
"""How far ink of a stroke may reach beyond its outline: so many pixels, or widths of the stroke. A mitre of 30 degrees
reaches two widths."""


def inked_bounds(pixels: NDArray[np.uint8], stroke: Stroke, outer: Bounds, has_corners: bool, has_tips: bool) -> Bounds:
    """Bounds of what has the colour of the stroke on and just beyond an outline that is bounded by ``outer``.

    Where two sides meet at a sharp angle, a small error of their directions moves the corner by many pixels, and a
    smooth outline fitted to a flat one leaves its tips out. Tips (``has_tips``) are ink that hangs together with the
    stroke; ink that goes on for longer than a tip is something else in that colour.
    """
    import cv2

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
            bounds = _moved(max((cv2.boundingRect(contour) for contour in contours), key=lambda b: b[2] * b[3]), low)
    if not has_tips:
        return bounds
    _, labels, boxes, _ = cv2.connectedComponentsWithStats(ink, connectivity=8)
    counts = np.bincount(labels[on_lines > 0], minlength=len(boxes))
    if not counts[1:].any():
        return bounds
    x, y, w, h = (int(v) for v in boxes[1 + int(np.argmax(counts[1:])), :4])
    beyond = np.array(_moved((x, y, w, h), low)) - bounds
    outwards = beyond * (-1, -1, 1, 1)
    if outwards.max() > max(_LONGEST_TIP_PX, _LONGEST_TIP * stroke.width_px):
        return bounds
    x0, y0, x1, y1 = bounds + np.where(outwards > _LEAST_TIP_PX, beyond, 0)
    return float(x0), float(y0), float(x1), float(y1)


def _moved(box: Sequence[int], by: NDArray[np.int64]) -> Bounds:
    """(x, y, width, height) as bounds, moved."""
    x, y, w, h = box
    return float(x + by[0]), float(y + by[1]), float(x + by[0] + w), float(y + by[1] + h)
