"""Detection of arrows drawn on photographs: a straight shaft in one colour with a head at one of its ends."""

from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools_tools.marks import DrawnMark, MarkColour
from agrotools_tools.marks.outlines import SAME_COLOUR, Points, purity

LEAST_LENGTH_PX = 30
"""Least length of an arrow from tail to tip, pixels."""
_LEAST_OUTLINE = 1.8
"""Least number of points of an outline, in lengths of the shortest arrow: an outline runs there and back."""
_WIDEST_PIECE = 0.75
"""Largest width of a piece as a share of its length."""
_MOST_PIECES = 12
"""Most pieces of a mask that are examined, those with the longest outlines first."""

# Form of an arrow. Widths are differences between the centres of pixels, so they are one less than the pixels covered.
_SECTIONS = 40
"""Number of equal sections from end to end, in each of which the width of a piece is measured."""
_MOST_HALF_SHAFT_PX = 6
"""Largest half width of a shaft, pixels."""
_HEAD_WIDTH, _HEAD_WIDTH_PX = 3.2, 3
"""A section belongs to the head if it is wider than this many half widths of the shaft plus this many pixels."""
_HEAD_FROM = 0.5
"""Share of the length, counted from the tail, from which the sections of the head lie."""
_LEAST_SHAFT_SECTIONS = 12
"""Number of the first section of the head, from the tail, below which the shaft is too short."""
_LEAST_SYMMETRY = 0.5
"""Least reach of the head to one side of the axis as a share of that to the other, where it is widest."""
_STRAIGHT_SHARE = 0.9
"""Share of the shaft's sections that must be straight: the rest may deviate from the next two limits."""
_MOST_BEND_PX = 2.0
"""Largest distance of the middle of a section from the axis, pixels."""
_MOST_EXTRA_WIDTH_PX = 2.5
"""Largest width of a section above that of the shaft, pixels."""
_LEAST_HEAD_SECTIONS = 3
"""Least number of sections from the widest place of a head to the tip."""
_BLUNTEST_TIP = 0.6
"""Largest width of the last section as a share of the widest place of a head."""
_MOST_WIDENING_PX = 2
"""Largest increase of width from a section to the next towards the tip, pixels: heads have no steps."""

# Colour along a shaft.
_TAIL_GAP_PX, _HEAD_GAP_PX = 3, 2
"""Lengths, pixels, at the tail and before the head where the colour of a shaft is not sampled."""
_SAMPLES = 60
"""Places along a shaft where its colour is sampled."""
_SURROUNDINGS_PX = (3, 4)
"""Distances, pixels, beyond the half width of a shaft where the colour of its surroundings is sampled, each side."""
_LEFT, _LINE, _CENTRE, _RIGHT = slice(0, 2), slice(2, 5), 3, slice(5, 7)
"""Columns of a sampled band: surroundings on the left, the line and its neighbours, its centre, surroundings on the
right."""
_LEAST_COVERED = 0.9
"""Least share of a shaft in its own colour."""
_LEAST_TWO_SIDED = 0.8
"""Least share of a shaft with another colour on both sides."""
_CONTRAST, _CONTRAST_RANGE = 4, (20, 45)
"""A side has another colour if it differs from the line by more than this many times its unevenness, within this range,
0 to 255: a line of very uniform colour needs less contrast."""
_MOST_UNEVEN = (10, 20)
"""Largest unevenness along a shaft, 0 to 255 (median and 85th percentile of the difference to its colour)."""
_LEAST_PURITY, _LEAST_PURITY_WHITE = 150, 225
"""Least purity of the colour, 0 to 255. White is also the colour of skies and highlights, so it must be purer."""
_NO_SCORE_UNEVEN = 40
"""Median difference to the colour of a shaft, 0 to 255, at which the score would be 0."""


def arrows_in(
    mask: NDArray[np.uint8],
    pixels: NDArray[np.uint8],
    colour: MarkColour,
    pure: tuple[int, int, int],
) -> list[DrawnMark]:
    """Find arrows in a mask (rows, columns) that is 1 for possible ink of the colour ``pure``."""
    arrows = [_arrow(points, pixels, colour, pure) for points in _long_pieces(mask)]
    return [arrow for arrow in arrows if arrow is not None]


def _long_pieces(mask: NDArray[np.uint8]) -> list[Points]:
    """Return the outlines of pieces that are longer than wide, at most :data:`_MOST_PIECES`, longest outline first."""
    contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    pieces: list[Points] = []
    for contour in contours:
        if len(contour) < _LEAST_OUTLINE * LEAST_LENGTH_PX:
            continue
        _, sides, _ = cv2.minAreaRect(contour)
        length, width = max(sides), min(sides)
        if length >= LEAST_LENGTH_PX and width < _WIDEST_PIECE * length:
            pieces.append(contour[:, 0, :].astype(np.float64))
    pieces.sort(key=lambda points: -len(points))
    return pieces[:_MOST_PIECES]


def _arrow(
    points: Points,
    pixels: NDArray[np.uint8],
    colour: MarkColour,
    pure: tuple[int, int, int],
) -> DrawnMark | None:
    """Return the arrow whose outline these points are, None if form or colour are not those of a drawn arrow."""
    profile = _width_profile(points)
    if profile is None:
        return None
    form = _arrow_form(profile)
    if form is None:
        return None
    ink = _ink_of_shaft(form, pixels)
    if not _is_drawn(ink, colour, pure):
        return None
    x0, y0, width, height = cv2.boundingRect(points.astype(np.int32))
    bounds = (x0, y0, x0 + width, y0 + height)
    tail, tip = form.profile.start, form.profile.end
    red, green, blue = ink.rgb
    evenness = 1 - float(ink.middling) / _NO_SCORE_UNEVEN
    return DrawnMark(
        box=bounds,
        inner_box=bounds,
        polygon=((float(tail[0]), float(tail[1])), (float(tip[0]), float(tip[1]))),
        colour=colour,
        shape="arrow",
        area_px=round(float(cv2.contourArea(points.astype(np.float32)))),
        stroke_px=2 * form.half_px + 1,
        rgb=(round(float(red)), round(float(green)), round(float(blue))),
        score=ink.covered * ink.two_sided * evenness,
    )


@dataclass(frozen=True, eq=False)
class _WidthProfile:
    """Width of a piece in :data:`_SECTIONS` sections along its axis, the line between its two ends.

    ``start``, ``end``: the ends, (x, y) in pixels. ``along``, ``across``: unit vectors, from start to end and to the
    right of that. ``high``, ``low``: largest and smallest offset of the outline from the axis in each section, pixels,
    positive to the right.
    """

    start: Points
    end: Points
    along: Points
    across: Points
    length_px: float
    high: Points
    low: Points

    @property
    def widths(self) -> Points:
        """Width of each section, pixels."""
        return self.high - self.low

    def turned(self) -> "_WidthProfile":
        """Return the same piece from end to start."""
        return _WidthProfile(
            start=self.end,
            end=self.start,
            along=-self.along,
            across=-self.across,
            length_px=self.length_px,
            high=-self.low[::-1],
            low=-self.high[::-1],
        )


def _width_profile(points: Points) -> _WidthProfile | None:
    """Measure the width along an outline (points, 2); None if it is too short or has no point in a section."""
    # Finding the farthest point twice gives both ends of the piece.
    start = points[np.argmax(((points - points.mean(axis=0)) ** 2).sum(axis=1))]
    end = points[np.argmax(((points - start) ** 2).sum(axis=1))]
    length = float(np.hypot(*(end - start)))
    if length < LEAST_LENGTH_PX:
        return None
    along = (end - start) / length
    across = np.array([-along[1], along[0]])
    distances, offsets = (points - start) @ along, (points - start) @ across
    section = np.clip(distances / length * _SECTIONS, 0, _SECTIONS - 1).astype(int)
    high, low = np.full(_SECTIONS, -np.inf), np.full(_SECTIONS, np.inf)
    np.maximum.at(high, section, offsets)
    np.minimum.at(low, section, offsets)
    if not np.isfinite(high).all():
        return None
    return _WidthProfile(start, end, along, across, length, high, low)


class _ArrowForm(NamedTuple):
    """Form of an arrow.

    ``profile``: its widths, from tail to tip. ``half_px``: half width of the shaft, pixels. ``shaft_share``: share of
    the length before the head.
    """

    profile: _WidthProfile
    half_px: float
    shaft_share: float


def _arrow_form(profile: _WidthProfile) -> _ArrowForm | None:
    """Return the form of an arrow, None if the piece has no straight shaft or no head at one end."""
    half = float(np.median(profile.widths)) / 2
    is_head = profile.widths > _HEAD_WIDTH * half + _HEAD_WIDTH_PX
    if half > _MOST_HALF_SHAFT_PX or not is_head.any():
        return None
    # The head ends the arrow: where all wide sections lie in the first half, the piece was measured from its tip.
    head_places = np.flatnonzero(is_head) / (_SECTIONS - 1)
    shaft_share = head_places.min()
    if head_places.max() < _HEAD_FROM:
        profile = profile.turned()
        shaft_share = 1 - head_places.max()
    head_start = int(np.floor(shaft_share * (_SECTIONS - 1)))
    if shaft_share < _HEAD_FROM or head_start < _LEAST_SHAFT_SECTIONS:
        return None
    # The first section is left out: it holds the end of the tail.
    is_straight = _is_straight(profile, slice(1, head_start), half)
    if not (_is_symmetric(profile) and is_straight and _is_pointed(profile)):
        return None
    return _ArrowForm(profile, half, shaft_share)


def _is_symmetric(profile: _WidthProfile) -> bool:
    """Return True if a head extends to both sides of the axis where it is widest."""
    widest = int(np.argmax(profile.widths))
    reaches = abs(profile.high[widest]), abs(profile.low[widest])
    return bool(min(reaches) >= _LEAST_SYMMETRY * max(reaches))


def _is_straight(profile: _WidthProfile, shaft: slice, half_px: float) -> bool:
    """Return True if a shaft follows the axis and has the same width throughout."""
    middle = (profile.high + profile.low) / 2
    bend = np.quantile(np.abs(middle[shaft]), _STRAIGHT_SHARE)
    width = np.quantile(profile.widths[shaft], _STRAIGHT_SHARE)
    return bool(bend <= _MOST_BEND_PX and width <= 2 * half_px + _MOST_EXTRA_WIDTH_PX)


def _is_pointed(profile: _WidthProfile) -> bool:
    """Return True if a head narrows steadily from its widest place to the tip."""
    narrowing = profile.widths[int(np.argmax(profile.widths)) :]
    if len(narrowing) < _LEAST_HEAD_SECTIONS:
        return False
    has_tip = narrowing[-1] <= _BLUNTEST_TIP * narrowing[0]
    return bool(has_tip and (np.diff(narrowing) <= _MOST_WIDENING_PX).all())


class _ShaftInk(NamedTuple):
    """Colour along a shaft.

    ``covered``: share in this colour. ``two_sided``: share with another colour on both sides. ``middling``,
    ``uneven``: variation of the colour along the shaft, median and 85th percentile, 0 to 255.
    """

    rgb: NDArray[np.float32]
    covered: float
    two_sided: float
    middling: float
    uneven: float


def _ink_of_shaft(form: _ArrowForm, pixels: NDArray[np.uint8]) -> _ShaftInk:
    """Sample the colour along a shaft and on both sides of it."""
    band = _band_along(form, pixels)
    rgb = np.median(band[:, _CENTRE], axis=0)
    # The ink may deviate from the axis by a pixel.
    distance = np.abs(band[:, _LINE] - rgb).max(axis=2).min(axis=1)
    middling, uneven = np.quantile(distance, (0.5, 0.85))
    contrast = float(np.clip(_CONTRAST * uneven, *_CONTRAST_RANGE))
    left = np.abs(band[:, _LEFT].mean(axis=1) - rgb).max(axis=1)
    right = np.abs(band[:, _RIGHT].mean(axis=1) - rgb).max(axis=1)
    return _ShaftInk(
        rgb=rgb,
        covered=float((distance <= SAME_COLOUR).mean()),
        two_sided=float(((left > contrast) & (right > contrast)).mean()),
        middling=middling,
        uneven=uneven,
    )


def _band_along(form: _ArrowForm, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Sample colours across a shaft at places along it, float32 (places, 7 columns, 3); see :data:`_LINE`."""
    profile, half = form.profile, form.half_px
    near, far = _SURROUNDINGS_PX
    shaft_px = form.shaft_share * profile.length_px
    places = np.linspace(_TAIL_GAP_PX, shaft_px - _HEAD_GAP_PX, _SAMPLES)[:, None]
    offsets = np.array([-half - far, -half - near, -1, 0, 1, half + near, half + far])
    (x0, y0), (along_x, along_y), (across_x, across_y) = (
        profile.start,
        profile.along,
        profile.across,
    )
    x = (x0 + places * along_x + offsets * across_x).astype(np.float32)
    y = (y0 + places * along_y + offsets * across_y).astype(np.float32)
    band = cv2.remap(pixels, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return band.astype(np.float32)


def _is_drawn(ink: _ShaftInk, colour: MarkColour, pure: tuple[int, int, int]) -> bool:
    """Return True if a shaft is of even, pure colour that differs from both sides."""
    if ink.covered < _LEAST_COVERED or ink.two_sided < _LEAST_TWO_SIDED:
        return False
    most_middling, most_uneven = _MOST_UNEVEN
    if ink.middling > most_middling or ink.uneven > most_uneven:
        return False
    least_purity = _LEAST_PURITY_WHITE if colour == "white" else _LEAST_PURITY
    return purity(ink.rgb, pure) >= least_purity
