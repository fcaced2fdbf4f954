"""Marks that people draw on a photograph to point at something: a box or an ellipse of one pure colour."""

from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.build.scenes.scene import bounds
from agrotools.tools.marks.finding import PURE_COLOURS

StrokeColour = Literal["red", "yellow", "magenta", "cyan"]
STROKE_COLOURS: tuple[StrokeColour, ...] = ("red", "yellow", "magenta", "cyan")
"""Colours that stand out from fields and trees, and that no roof has."""
Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels, ends excluded."""


def marked(
    rng: np.random.Generator,
    pixels: NDArray[np.uint8],
    inside: Box,
    shape: Literal["box", "ellipse"],
    colour: StrokeColour,
) -> tuple[NDArray[np.uint8], dict[str, Any]]:
    """A copy of a picture with a mark around ``inside`` (x0, y0, x1, y1 in pixels, x1 and y1 excluded), and what a
    perfect ``extract_marked_region`` returns of it.

    A box runs along ``inside``; an ellipse goes through its corners, so it needs 0.21 of each side more room.
    """
    height, width = pixels.shape[:2]
    stroke = int(rng.integers(3, 6))
    pure = np.array(PURE_COLOURS[colour], np.float64)
    ink = np.clip(np.abs(pure - 255 * 0.10 * rng.random(3)), 0, 255).astype(int).tolist()
    picture, outline = pixels.copy(), np.zeros((height, width), np.uint8)
    x0, y0, x1, y1 = inside
    half = stroke // 2 + 1
    for canvas, value in ((picture, ink), (outline, 255)):
        if shape == "box":
            cv2.rectangle(canvas, (x0 - half, y0 - half), (x1 - 1 + half, y1 - 1 + half), value, stroke)
        else:
            axes = (round((x1 - x0) / 2**0.5) + half, round((y1 - y0) / 2**0.5) + half)
            middle = ((x0 + x1) // 2, (y0 + y1) // 2)
            cv2.ellipse(canvas, middle, axes, 0, 0, 360, value, stroke, cv2.LINE_AA)
    outlines, _ = cv2.findContours((outline > 127).astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    filled = np.zeros_like(outline)
    cv2.drawContours(filled, outlines, -1, 255, -1)
    enclosed = (filled > 0) & (outline == 0)
    inner = bounds(enclosed)
    region = {
        "index": 1, "box": list(bounds(outline > 127)), "inner_box": list(inner), "color": colour, "shape": shape,
        "area_px": int(np.count_nonzero(enclosed)), "stroke_px": float(stroke),
    }  # fmt: skip
    return picture, {"regions": [region], "selected": 1, "crop_box": list(inner)}


MarkShape = Literal["box", "ellipse"]

COLOURS: dict[str, tuple[int, int, int]] = {
    "blue": (0, 40, 255),
    "yellow": (255, 240, 0),
    "magenta": (255, 0, 255),
    "cyan": (0, 240, 255),
    "red": (255, 0, 0),
}
"""Red, green, blue of the pens."""


def draw_mark(photo: NDArray[np.uint8], inner: Box, colour: str, shape: MarkShape, stroke_px: int) -> Box:
    """Draw a mark around ``inner`` on ``photo`` (rows, columns, 3) in place; returns its bounds with the stroke.

    Raises:
        ValueError: the mark would leave the picture.
    """
    x0, y0, x1, y1 = inner
    outer = (x0 - stroke_px, y0 - stroke_px, x1 + stroke_px, y1 + stroke_px)
    if outer[0] < 0 or outer[1] < 0 or outer[2] > photo.shape[1] or outer[3] > photo.shape[0]:
        raise ValueError(f"a mark around {inner} leaves the picture")
    if shape == "box":
        frame = np.zeros(photo.shape[:2], np.bool_)
        frame[outer[1] : outer[3], outer[0] : outer[2]] = True
        frame[y0:y1, x0:x1] = False
        photo[frame] = COLOURS[colour]
        return outer
    ink = np.zeros(photo.shape[:2], np.uint8)
    centre = (round(8 * (x0 + x1 - 1)), round(8 * (y0 + y1 - 1)))
    axes = (round(8 * (x1 - x0 + stroke_px)), round(8 * (y1 - y0 + stroke_px)))
    cv2.ellipse(ink, centre, axes, 0, 0, 360, 255, stroke_px, cv2.LINE_AA, 4)
    cover = (ink.astype(np.float32) / 255.0)[..., None]
    photo[:] = np.round(photo * (1 - cover) + np.asarray(COLOURS[colour], np.float32) * cover).astype(np.uint8)
    return outer


def mark_truth(inner: Box, outer: Box, colour: str, shape: MarkShape, stroke_px: int) -> dict[str, Any]:
    """Result of a perfect ``extract_marked_region`` where this is the only mark of its colour."""
    region = {
        "index": 1, "box": [*outer], "inner_box": [*inner], "color": colour, "shape": shape, "stroke_px": stroke_px,
    }  # fmt: skip
    return {"regions": [region], "selected": 1, "crop_box": [*inner]}


def apart(box: Box, others: list[Box], gap_px: int) -> bool:
    """True if a box keeps that distance from all others."""
    return all(
        box[0] - gap_px >= other[2] or other[0] - gap_px >= box[2]
        or box[1] - gap_px >= other[3] or other[1] - gap_px >= box[3]
        for other in others
    )  # fmt: skip
