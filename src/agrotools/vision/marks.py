"""Pictures with things marked in them: boxes, circles and outlines, each with a short label that does not hide others.

Companion of :mod:`agrotools.vision.overlay`, which shows areas.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agrotools.vision import Box
from agrotools.vision.overlay import LONGEST_SIDE, Colour, Layer, dim_outside, with_legend

if TYPE_CHECKING:
    from PIL.Image import Image

_HALO: Colour = (0, 0, 0)
_MOST_LABELS = 150
"""More labels than this hide the picture; marks are then drawn without."""


@dataclass(frozen=True)
class Mark:
    """One thing found: a ``box`` (x0, y0, x1, y1), a ``circle`` (x, y, radius) or an ``outline`` ((x, y), ...), pixels.

    Where several are given, all are drawn.
    """

    colour: Colour
    label: str = ""
    box: tuple[float, float, float, float] | None = None
    circle: tuple[float, float, float] | None = None
    outline: tuple[tuple[float, float], ...] | None = None


def draw_marks(
    pixels: NDArray[np.uint8],
    marks: Sequence[Mark],
    *,
    legend: Sequence[tuple[Colour, str]] = (),
    region: Box | None = None,
    gsd_m: float | None = None,
    title: str = "",
) -> "Image":
    """The picture with all marks drawn in, and a legend below it.

    Args:
        pixels: uint8 (rows, columns, 3).
        legend: what the colours mean.
        region: what lies outside is dimmed.
        gsd_m: metres per pixel, for a scale bar.
        title: first line of the legend.
    """
    import cv2
    from PIL import Image, ImageDraw, ImageFont

    height, width = pixels.shape[:2]
    shrink = min(1.0, LONGEST_SIDE / max(height, width))
    size = (max(1, round(width * shrink)), max(1, round(height * shrink)))
    picture = np.array(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)) if shrink < 1 else pixels.copy()
    if region is not None:
        x0, y0, x1, y1 = (round(edge * shrink) for edge in region)
        dim_outside(picture, (x0, y0, x1, y1))
    drawn = Image.fromarray(picture)
    draw = ImageDraw.Draw(drawn)
    line = max(2, round(max(drawn.size) / 400))
    for mark in marks:
        # A dark line below the coloured one can be seen on any background.
        for colour, thickness in ((_HALO, line + 2), (mark.colour, line)):
            if mark.box is not None:
                x0, y0, x1, y1 = (edge * shrink for edge in mark.box)
                draw.rectangle((x0, y0, max(x0, x1 - 1), max(y0, y1 - 1)), outline=colour, width=thickness)
            if mark.circle is not None:
                x, y, radius = (part * shrink for part in mark.circle)
                draw.ellipse((x - radius, y - radius, x + radius, y + radius), outline=colour, width=thickness)
            if mark.outline is not None and len(mark.outline) > 1:
                points = [(x * shrink, y * shrink) for x, y in (*mark.outline, mark.outline[0])]
                draw.line(points, fill=colour, width=thickness, joint="curve")
    if sum(bool(mark.label) for mark in marks) <= _MOST_LABELS:
        font = ImageFont.load_default(size=max(11, round(max(drawn.size) / 75)))
        for mark in marks:
            if mark.label:
                x, y = _corner(mark, shrink)
                box = draw.textbbox((0, 0), mark.label, font=font)
                x = min(max(0.0, x), max(0.0, drawn.width - box[2] - 2))
                y = min(max(0.0, y - box[3] - 2), max(0.0, drawn.height - box[3] - 2))
                draw.text((x, y), mark.label, fill=(255, 255, 255), font=font, stroke_width=2, stroke_fill=(0, 0, 0))
    layers = [Layer(number, colour, label) for number, (colour, label) in enumerate(legend)]
    return with_legend(drawn, layers, title, gsd_m / shrink if gsd_m else None)


def _corner(mark: Mark, shrink: float) -> tuple[float, float]:
    """Lower left corner of the label: at the top left of the marked object."""
    if mark.box is not None:
        return mark.box[0] * shrink, mark.box[1] * shrink
    if mark.circle is not None:
        x, y, radius = mark.circle
        return (x - 0.7 * radius) * shrink, (y - 0.7 * radius) * shrink
    points = mark.outline or ((0.0, 0.0),)
    return min(x for x, _ in points) * shrink, min(y for _, y in points) * shrink
