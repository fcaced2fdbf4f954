"""Detection of marks drawn on photographs to point at something: thin closed outlines of one colour.

Several criteria, applied in turn, distinguish a drawn outline from a red apple or the edge of a leaf: a colour purer
than its surroundings, a closed line around a hole, a simple shape (box, ellipse, polygon), and a stroke of uniform
colour and width along the whole outline, with another colour on both sides.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.text.agreement_values import box_iou
from agrotools.vision import Box
from agrotools_tools.marks import DrawnMark, MarkColour
from agrotools_tools.marks.arrows import arrows_in
from agrotools_tools.marks.outlines import (
    Ink,
    Outline,
    Stroke,
    fit_outlines,
    purity,
    sides_of,
    stroke_along,
)

COLOURS: tuple[MarkColour, ...] = get_args(MarkColour)
PURE_COLOURS: dict[MarkColour, tuple[int, int, int]] = {
    "red": (255, 0, 0),
    "green": (0, 255, 0),
    "blue": (0, 0, 255),
    "yellow": (255, 255, 0),
    "magenta": (255, 0, 255),
    "cyan": (0, 255, 255),
    "white": (255, 255, 255),
}
INKS: dict[MarkColour, Ink] = {
    colour: Ink(pure, 215, (8, 14)) if colour == "white" else Ink(pure, 80, (15, 35))
    for colour, pure in PURE_COLOURS.items()
}
"""Limits of each ink. White is also the colour of skies and highlights, so drawn white must be purer and more even."""
WIDEST_STROKE_PX = 15
LEAST_SIDE_PX = 10
"""Least side of a mark, pixels; pixels of a photograph form rings of smaller size by chance."""
_LEVELS = (170, 110, 70)
_TOP_HAT_LEVELS = (110, 70, 40)
_WHITE_LEVELS = (240, 215)
_MOST_HOLES = 60
_MOST_PX = 12_000_000
_PURE = 140
"""Least purity of a drawn stroke; a paler one must be long and uniform."""
_THIN_PX = 4.5
"""Largest width, pixels, of a line whose colour a JPEG file mixes with its surroundings throughout."""
_THIN_LENGTH_PX = 100
"""Least length of such a line; shorter ones may be even by chance."""
_BLEED_PX = 1
"""Distance, pixels, to which the colour of a stroke bleeds, as JPEG files store colours at half resolution."""


def find_marks(
    pixels: NDArray[np.uint8], colours: Sequence[MarkColour] = COLOURS
) -> list[DrawnMark]:
    """Find all marks of the given colours in a picture, sRGB, in reading order (top to bottom in bands, left to
    right)."""
    drawn_marks: list[DrawnMark] = []
    for colour in colours:
        signal = colour_signal(pixels, colour)
        solid, thin = _masks(signal, colour)
        for mask in (*solid, *thin):
            for hole in _holes(mask):
                drawn_marks += _marks_around(fit_outlines(hole), pixels, colour)
        for mask in thin:
            drawn_marks += arrows_in(mask, pixels, colour, PURE_COLOURS[colour])
    return in_reading_order(_drop_duplicates(drawn_marks))


def find_marks_in_large(
    pixels: NDArray[np.uint8], colours: Sequence[MarkColour] = COLOURS
) -> tuple[list[DrawnMark], tuple[str, ...]]:
    """Apply :func:`find_marks`; pictures above 12 megapixels are reduced first, with a note."""
    height, width = pixels.shape[:2]
    factor = int(np.ceil(np.sqrt(height * width / _MOST_PX)))
    if factor <= 1:
        return find_marks(pixels, colours), ()
    size = (max(1, width // factor), max(1, height // factor))
    x, y = width / size[0], height / size[1]
    small = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
    marks = [
        replace(
            mark,
            box=_scale_box(mark.box, x, y),
            inner_box=_scale_box(mark.inner_box, x, y),
            polygon=tuple(((a + 0.5) * x - 0.5, (b + 0.5) * y - 0.5) for a, b in mark.polygon),
            area_px=round(mark.area_px * x * y),
            stroke_px=mark.stroke_px * x,
        )
        for mark in find_marks(small, colours)
    ]
    return marks, (
        f"looked for at 1/{factor} of the size: positions are good to about {factor} pixels",
    )


def _scale_box(box: Box, x: float, y: float) -> Box:
    return round(box[0] * x), round(box[1] * y), round(box[2] * x), round(box[3] * y)


def colour_shares(pixels: NDArray[np.uint8]) -> dict[MarkColour, float]:
    """Return the share of the picture in each pure colour, if at least a thousandth, largest first."""
    levels = {colour: 240 if colour == "white" else 110 for colour in COLOURS}
    shares = {
        colour: float((colour_signal(pixels, colour) >= levels[colour]).mean())
        for colour in COLOURS
    }
    return {
        colour: shares[colour]
        for colour in sorted(COLOURS, key=lambda c: -shares[c])
        if shares[colour] >= 1e-3
    }


def colour_signal(pixels: NDArray[np.uint8], colour: MarkColour) -> NDArray[np.uint8]:
    """Return the amount of a colour in each pixel: 255 for the pure colour, 0 for grey (white: smallest channel)."""
    red, green, blue = cv2.split(pixels)
    if colour == "white":
        return np.asarray(cv2.min(cv2.min(red, green), blue), np.uint8)
    channels = (red, green, blue)
    pure = PURE_COLOURS[colour]
    full = [channel for channel, level in zip(channels, pure, strict=True) if level]
    none = [channel for channel, level in zip(channels, pure, strict=True) if not level]
    high = full[0] if len(full) == 1 else cv2.min(*full)
    low = none[0] if len(none) == 1 else cv2.max(*none)
    return np.asarray(cv2.subtract(high, low), np.uint8)


def in_reading_order(marks: Sequence[DrawnMark]) -> list[DrawnMark]:
    """Sort marks in reading order: marks with upper edges within half a mark's height form a line, left to right."""
    remaining = sorted(marks, key=lambda mark: (mark.box[1], mark.box[0]))
    ordered: list[DrawnMark] = []
    while remaining:
        first = remaining[0]
        reach = first.box[1] + (first.box[3] - first.box[1]) / 2
        line = [mark for mark in remaining if mark.box[1] <= reach]
        ordered += sorted(line, key=lambda mark: (mark.box[0], mark.box[1]))
        remaining = [mark for mark in remaining if mark.box[1] > reach]
    return ordered


def _masks(
    signal: NDArray[np.uint8], colour: MarkColour
) -> tuple[list[NDArray[np.uint8]], list[NDArray[np.uint8]]]:
    """Return masks of the colour at several levels: of the colour itself, and of its excess over wider structures."""
    side = WIDEST_STROKE_PX
    hat = cv2.subtract(
        signal, cv2.morphologyEx(signal, cv2.MORPH_OPEN, np.ones((side, side), np.uint8))
    )
    joined = np.ones((3, 3), np.uint8)
    solid: list[NDArray[np.uint8]] = []
    thin: list[NDArray[np.uint8]] = []
    strong = signal >= (200 if colour == "white" else 60)
    if not strong.any():
        return solid, thin
    for masks, values, levels in (
        (solid, signal, _WHITE_LEVELS if colour == "white" else _LEVELS),
        (thin, np.where(strong, hat, 0).astype(np.uint8), _TOP_HAT_LEVELS),
    ):
        for level in levels:
            mask = (values >= level).astype(np.uint8)
            count = int(np.count_nonzero(mask))
            if count >= 4 * LEAST_SIDE_PX:
                masks.append(np.asarray(cv2.morphologyEx(mask, cv2.MORPH_CLOSE, joined), np.uint8))
    return solid, thin


def _holes(mask: NDArray[np.uint8]) -> list[NDArray[np.int32]]:
    """Return the outlines of holes that may be the inside of a mark, largest first; int32 (points, 2)."""
    contours, hierarchy = cv2.findContours(mask, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
    if hierarchy is None:
        return []
    holes: list[tuple[float, NDArray[np.int32]]] = []
    for contour, (_, _, _, parent) in zip(contours, hierarchy[0], strict=True):
        if parent < 0 or len(contour) < 3 * LEAST_SIDE_PX:
            continue
        _, _, width, height = cv2.boundingRect(contour)
        area = cv2.contourArea(contour)
        if min(width, height) < LEAST_SIDE_PX or area < 0.2 * width * height:
            continue
        if cv2.arcLength(contour, True) > 1.8 * cv2.arcLength(cv2.convexHull(contour), True):
            continue
        holes.append((area, np.asarray(contour[:, 0, :], np.int32)))
    holes.sort(key=lambda hole: -hole[0])
    return [points for _, points in holes[:_MOST_HOLES]]


def _marks_around(
    outlines: Sequence[Outline], pixels: NDArray[np.uint8], colour: MarkColour
) -> list[DrawnMark]:
    for outline in outlines:
        stroke = stroke_along(outline, pixels, INKS[colour])
        if stroke is not None and _is_hand_drawn(stroke, colour):
            return [_mark(outline, stroke, colour, pixels)]
    return []


def _is_hand_drawn(stroke: Stroke, colour: MarkColour) -> bool:
    """Return True if a stroke is drawn. Natural edges vary in colour and width, or have no other side."""
    least_side = float(np.ptp(stroke.middle, axis=0).min())
    is_bold = colour == "white" or stroke.width_px > 8
    if stroke.edge_scatter_px > 1.5 or stroke.width_px > (0.3 if is_bold else 0.5) * least_side:
        return False
    middling, uneven = stroke.unevenness
    one_sided = 1 - stroke.two_sided
    is_short = stroke.length_px < 160
    if colour == "white":
        thickest = 7.5 if is_short else 9
        return (
            one_sided <= (0.1 if is_short else 0.25)
            and (uneven <= 8 or not is_short)
            and stroke.width_px <= thickest
        )
    if purity(stroke.rgb, PURE_COLOURS[colour]) >= _PURE:
        return one_sided <= (0.15 if is_short else 0.4) and (uneven <= 18 or not is_short)
    # A thin box of a JPEG file: its sides lose their colour differently, but each is uniform.
    if stroke.has_even_sides and stroke.width_px <= _THIN_PX:
        return one_sided <= 0.15 and stroke.length_px >= _THIN_LENGTH_PX
    # A pale or mixed colour is accepted only for long and uniform lines.
    even = middling <= 8 and uneven <= 14 and one_sided <= 0.15
    return even and stroke.length_px >= 120 and stroke.width_px <= 8


def _mark(
    outline: Outline, stroke: Stroke, colour: MarkColour, pixels: NDArray[np.uint8]
) -> DrawnMark:
    middle = corners = stroke.middle
    if outline.shape == "ellipse":
        corners = middle[np.linspace(0, len(middle), 24, endpoint=False).astype(int)]
    half = stroke.width_px / 2
    low, high = middle.min(axis=0), middle.max(axis=0)
    outer = (*(low - stroke.reach[:2] + 0.5), *(high + stroke.reach[2:] + 0.5))
    # White is common next to marks, so pixels connected to a white stroke are no evidence of a tip.
    has_corners, has_tips = outline.shape == "polygon", outline.shape != "box" and colour != "white"
    if has_corners or has_tips:
        outer = ink_bounds(pixels, stroke, outer, has_corners=has_corners, has_tips=has_tips)
    x0, y0, x1, y1 = (round(float(edge)) for edge in outer)
    box = (max(0, x0), max(0, y0), min(pixels.shape[1], x1), min(pixels.shape[0], y1))
    perimeter = float(cv2.arcLength(middle.astype(np.float32), True))
    area = abs(float(cv2.contourArea(middle.astype(np.float32)))) - half * perimeter
    within = (
        *(low + stroke.reach[:2] + 0.5 + _BLEED_PX),
        *(high - stroke.reach[2:] + 0.5 - _BLEED_PX),
    )
    a0, b0, a1, b1 = (round(float(edge)) for edge in within)
    a0, b0 = min(max(0, a0), pixels.shape[1] - 1), min(max(0, b0), pixels.shape[0] - 1)
    return DrawnMark(
        box=box,
        inner_box=(
            a0,
            b0,
            min(pixels.shape[1], max(a1, a0 + 1)),
            min(pixels.shape[0], max(b1, b0 + 1)),
        ),
        polygon=tuple((float(x), float(y)) for x, y in corners),
        colour=colour,
        shape=outline.shape,
        area_px=max(0, round(area)),
        stroke_px=stroke.width_px,
        rgb=tuple(round(part) for part in stroke.rgb),  # pyright: ignore[reportArgumentType]
        score=stroke.score * outline.support,
    )


def _drop_duplicates(marks: Sequence[DrawnMark]) -> list[DrawnMark]:
    """Keep the best of marks found several times: at several levels or in similar colours."""
    distinct: list[DrawnMark] = []
    for mark in sorted(marks, key=lambda mark: (_is_pale(mark), -mark.score)):
        if not any(_is_duplicate(mark, better) for better in distinct):
            distinct.append(mark)
    return distinct


def _is_duplicate(mark: DrawnMark, better: DrawnMark) -> bool:
    if mark.colour == better.colour:
        return box_iou(mark.box, better.box) >= 0.45
    # A mark drawn on a plant that is slightly larger leaves a ring of the plant, which encloses that mark.
    is_ring = _is_pale(mark) and box_iou(mark.inner_box, better.box) >= 0.6
    return is_ring or box_iou(mark.box, better.box) >= 0.7


def _is_pale(mark: DrawnMark) -> bool:
    return purity(mark.rgb, PURE_COLOURS[mark.colour]) < _PURE


Bounds = tuple[float, float, float, float]
"""x0, y0, x1, y1 in pixels, half-open."""
_BEYOND_CORNER_PX = 15
"""Length, pixels, by which the sides of a polygon are prolonged beyond its corners to reach the ink of sharp ones."""
_INK_TOLERANCE = (25.0, 70.0)
"""Range of the largest difference of any channel from the colour of the stroke, 0 to 255, for a pixel to be ink; inside
this range it is half of the contrast of the stroke to its surroundings."""
_LEAST_TIP_PX = 1.5
"""Reach of ink beyond the outline, pixels, up to which it is no tip and does not move the bounds."""
_LONGEST_TIP_PX, _LONGEST_TIP = 6.0, 4.0
"""Largest reach of ink beyond the outline, in pixels and in stroke widths. A mitre of 30 degrees reaches two widths."""


def ink_bounds(
    pixels: NDArray[np.uint8], stroke: Stroke, outer: Bounds, has_corners: bool, has_tips: bool
) -> Bounds:
    """Return the bounds of ink in the colour of the stroke on and just beyond an outline with the bounds ``outer``:
    a small error of two sides moves a sharp corner by many pixels (``has_corners``), and a smooth outline misses the
    tips of a pointed one (``has_tips``). Ink that extends further than a tip is another object of the same colour."""
    height, width = pixels.shape[:2]
    margin = 2 * _BEYOND_CORNER_PX
    lowest, highest = stroke.middle.min(axis=0), stroke.middle.max(axis=0)
    low = np.maximum(np.floor(lowest).astype(int) - margin, 0)
    high = np.minimum(np.ceil(highest).astype(int) + margin + 1, (width, height))
    if (high - low < 2).any():
        return outer
    ink = _ink_mask(pixels[low[1] : high[1], low[0] : high[0]], stroke)
    prolonged_px = _BEYOND_CORNER_PX if has_corners else 0
    lines = _line_mask(ink.shape, stroke.middle - low, prolonged_px, stroke.width_px)
    ink_on_lines = ink & lines
    bounds = outer
    if has_corners:
        bounds = _bounds_of_largest_piece(ink_on_lines, low) or outer
    if has_tips:
        bounds = _bounds_with_tips(bounds, ink, ink_on_lines, low, stroke.width_px)
    return bounds


def _ink_mask(part: NDArray[np.uint8], stroke: Stroke) -> NDArray[np.uint8]:
    """Return 1 for pixels in the colour of the stroke, else 0."""
    least, most = _INK_TOLERANCE
    tolerance = min(most, max(least, stroke.contrast / 2))
    difference = np.abs(part.astype(np.int16) - np.array(stroke.rgb)).max(axis=2)
    return (difference <= tolerance).astype(np.uint8)


def _line_mask(
    shape: tuple[int, ...], corners: NDArray[np.float64], prolonged_px: int, width_px: float
) -> NDArray[np.uint8]:
    """Draw the sides between corners, each prolonged at both ends: 1 on the lines, else 0."""
    lines = np.zeros(shape, np.uint8)
    thickness = max(1, round(width_px) + 1)
    for (start, along, _), end in zip(sides_of(corners), np.roll(corners, -1, axis=0), strict=True):
        beyond = along * prolonged_px
        x0, y0 = np.rint(start - beyond)
        x1, y1 = np.rint(end + beyond)
        cv2.line(lines, (int(x0), int(y0)), (int(x1), int(y1)), 1, thickness)
    return lines


def _bounds_of_largest_piece(mask: NDArray[np.uint8], low: NDArray[np.int64]) -> Bounds | None:
    """Return the bounds of the piece of a mask with the largest bounding box, None if the mask is empty.

    ``low``: position of the mask's first pixel in the picture.
    """
    contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    if not contours:
        return None
    boxes = [cv2.boundingRect(contour) for contour in contours]
    return _shift_bounds(max(boxes, key=lambda box: box[2] * box[3]), low)


def _bounds_with_tips(
    bounds: Bounds,
    ink: NDArray[np.uint8],
    ink_on_lines: NDArray[np.uint8],
    low: NDArray[np.int64],
    width_px: float,
) -> Bounds:
    """Extend bounds to the ink that is connected with the outline, unless it reaches further than a tip does."""
    _, labels, boxes, _ = cv2.connectedComponentsWithStats(ink, connectivity=8)
    counts = np.bincount(labels[ink_on_lines > 0], minlength=len(boxes))
    if not counts[1:].any():
        return bounds
    main = 1 + int(np.argmax(counts[1:]))
    x, y, width, height = (int(value) for value in boxes[main, :4])
    beyond = np.array(_shift_bounds((x, y, width, height), low)) - bounds
    outwards = beyond * (-1, -1, 1, 1)
    if outwards.max() > max(_LONGEST_TIP_PX, _LONGEST_TIP * width_px):
        return bounds
    x0, y0, x1, y1 = bounds + np.where(outwards > _LEAST_TIP_PX, beyond, 0)
    return float(x0), float(y0), float(x1), float(y1)


def _shift_bounds(box: Sequence[int], by: NDArray[np.int64]) -> Bounds:
    """Convert (x, y, width, height) to bounds, shifted by an offset."""
    x, y, w, h = box
    return float(x + by[0]), float(y + by[1]), float(x + by[0] + w), float(y + by[1] + h)
