"""A map of change beside the two pictures it comes from, and the removal of specks from it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.components import small_parts
from agrotools.vision.formats import Box
from agrotools.vision.overlay import BLACK, ORANGE, SKY_BLUE, Colour, Layer, dim_outside, tint, with_legend

if TYPE_CHECKING:
    from PIL.Image import Image

SAME, GAINED, LOST, CHANGED, NO_DATA = 0, 1, 2, 3, 255
MAP_COLOURS: dict[int, Colour] = {
    SAME: (200, 200, 200),
    GAINED: ORANGE,
    LOST: SKY_BLUE,
    CHANGED: (204, 121, 167),
    NO_DATA: BLACK,
}
PANEL_PX = 760
"""Longest side of one of the three pictures of a sheet."""
_LEAST_PANEL_PX = 520
_GAP_PX = 6
_FILL = 0.65
_DIMMED = 0.4


def without_specks(changes: NDArray[np.uint8], least_px: int) -> NDArray[np.uint8]:
    """The map without patches of one kind of change smaller than ``least_px`` pixels (8-connected)."""
    if least_px <= 1:
        return changes
    cleaned = changes.copy()
    for kind in (GAINED, LOST, CHANGED):
        specks = small_parts(changes == kind, least_px)
        if specks is not None:
            cleaned[specks] = SAME
    return cleaned


def counts_of(changes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How many pixels there are of each kind, int64 (256,); by strips, since counting needs eight bytes per pixel."""
    step = max(1, 2_000_000 // max(1, changes.shape[1]))
    counts = np.zeros(256, np.int64)
    for top in range(0, changes.shape[0], step):
        counts += np.bincount(changes[top : top + step].ravel(), minlength=256)
    return counts


def panel_size(width: int, height: int) -> tuple[int, int]:
    """Width and height of a panel for pictures of this size: small pictures are enlarged by a whole factor."""
    longest = max(width, height)
    factor: float = PANEL_PX / longest if longest > PANEL_PX else max(1, _LEAST_PANEL_PX // longest)
    return max(1, round(width * factor)), max(1, round(height * factor))


def draw_change(
    before: NDArray[np.uint8],
    after: NDArray[np.uint8],
    changes: NDArray[np.uint8],
    layers: Sequence[Layer],
    *,
    region: Box | None = None,
    gsd_m: float | None = None,
    title: str = "",
) -> "Image":
    """Before, after, and the second picture in grey with the change tinted and outlined; legend and scale bar below.

    Args:
        before, after: uint8 (rows, columns, 3) of any size, showing the extent of ``changes``.
        changes: uint8 (rows, columns) of :data:`SAME`, :data:`GAINED`, :data:`LOST`, :data:`CHANGED`, :data:`NO_DATA`.
        layers: what to draw, in the order of the legend.
        region: in pixels of ``changes``; what lies outside is dimmed.
        gsd_m: metres per pixel of ``changes``, for a scale bar.
    """
    import cv2
    from PIL import Image

    height, width = changes.shape
    size = panel_size(width, height)
    factor = size[0] / width
    panels = [_resized(picture, size) for picture in (before, after)]
    red, green, blue = (panels[1][..., channel].astype(np.uint16) for channel in range(3))
    grey = ((red + green + blue) / 3).astype(np.float32)
    shown = np.asarray(cv2.merge([grey, grey, grey]), np.float32)
    for layer in layers:
        drawn = np.where(changes == layer.value, np.uint8(255), np.uint8(0))
        inside = np.asarray(cv2.resize(drawn, size, interpolation=_how(size, width))) >= 128
        tint(shown, inside, layer.colour, shown[inside], _FILL)
    gone = cv2.resize((changes == NO_DATA).astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) > 0
    shown[gone] *= _DIMMED
    panels.append(np.clip(shown, 0, 255).astype(np.uint8))
    if region is not None:
        box = tuple(round(edge * factor) for edge in region)
        panels = [_framed(panel, (box[0], box[1], box[2], box[3])) for panel in panels]
    lying = size[0] > 2 * size[1]
    named = [_named(panel, name) for panel, name in zip(panels, ("before", "after", "change"), strict=True)]
    gap = np.full((_GAP_PX, size[0], 3) if lying else (size[1], _GAP_PX, 3), 255, np.uint8)
    sheet = np.concatenate([named[0], gap, named[1], gap, named[2]], axis=0 if lying else 1)
    return with_legend(Image.fromarray(sheet), layers, title, gsd_m / factor if gsd_m else None)


def _resized(picture: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    import cv2

    return np.asarray(cv2.resize(picture, size, interpolation=_how(size, picture.shape[1])), np.uint8)


def _how(size: tuple[int, int], width: int) -> int:
    import cv2

    return cv2.INTER_AREA if size[0] < width else cv2.INTER_NEAREST


def _framed(panel: NDArray[np.uint8], box: Box) -> NDArray[np.uint8]:
    import cv2

    x0, y0, x1, y1 = box
    framed = panel.copy()
    dim_outside(framed, box, _DIMMED)
    return np.asarray(cv2.rectangle(framed, (x0, y0), (x1 - 1, y1 - 1), (255, 255, 255), 1), np.uint8)


def _named(panel: NDArray[np.uint8], name: str) -> NDArray[np.uint8]:
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.fromarray(panel)
    ImageDraw.Draw(picture).text(
        (6, 4), name, fill=(255, 255, 255), font=ImageFont.load_default(size=16), stroke_width=2, stroke_fill=BLACK
    )
    return np.asarray(picture)
