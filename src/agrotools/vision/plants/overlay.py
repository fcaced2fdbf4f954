"""A picture of plants with what was measured of each: outline, convex hull, leaf tips, height."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.formats import Box
from agrotools.vision.marks import Mark, draw_marks
from agrotools.vision.overlay import BLUE, BLUISH_GREEN, ORANGE, REDDISH_PURPLE, SKY_BLUE, VERMILLION, YELLOW, Colour
from agrotools.vision.plants.measuring import Plant
from agrotools.vision.plants.round_marker import Disc

if TYPE_CHECKING:
    from PIL.Image import Image

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
    import cv2

    zoom = max(1, _LEAST_SIDE_PX // max(pixels.shape[:2]))
    marks: list[Mark] = []
    for number, plant in enumerate(plants, start=1):
        x0, y0, x1, y1 = plant.box
        marks.append(Mark(YELLOW, outline=_scaled(plant.hull, zoom)))
        framed = np.pad(plant.mask.astype(np.uint8), 1)
        for contour in cv2.findContours(framed, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)[0]:
            outline = [(float(x + x0) - 0.5, float(y + y0) - 0.5) for x, y in contour[:, 0]]
            marks.append(Mark(SKY_BLUE, outline=_scaled(outline, zoom)))
        if heights:
            foot = y1 if ground_y_px is None else ground_y_px
            apex = x0 + float(np.flatnonzero(plant.mask[0]).mean()) + 0.5
            marks.append(Mark(VERMILLION, outline=_scaled([(apex, y0), (apex, foot)], zoom)))
            marks.append(Mark(VERMILLION, outline=_scaled([(x0, foot), (x1, foot)], zoom)))
        radius = max(3.0, max(pixels.shape[:2]) * zoom / 200)
        marks += [Mark(REDDISH_PURPLE, circle=((x + 0.5) * zoom, (y + 0.5) * zoom, radius)) for x, y in plant.tips]
        marks.append(Mark(YELLOW, str(number) if len(plants) > 1 else "", outline=_scaled([(x0, y0)], zoom)))
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


def _scaled(points: Sequence[tuple[float, float]], zoom: int) -> tuple[tuple[float, float], ...]:
    return tuple((x * zoom, y * zoom) for x, y in points)
