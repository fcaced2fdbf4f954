"""Marks drawn on photographs, and the regions inside them."""

from dataclasses import dataclass
from typing import Literal

from agrotools.vision import Box

MarkColour = Literal["red", "green", "blue", "yellow", "magenta", "cyan", "white"]
MarkShape = Literal["box", "ellipse", "polygon", "arrow"]


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
