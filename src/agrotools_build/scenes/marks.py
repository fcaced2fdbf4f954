"""Marks that people draw on a photograph to point at something: a box or an ellipse in one pure colour.

:func:`marked` draws with a felt pen whose colour is close to the pure one, :func:`outlined` draws a smooth red line,
and :func:`mark_each` draws marks in exact colours around several objects.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.vision.reading import bounds
from agrotools_build.scenes.scene import Box, Rng
from agrotools_tools.marks.measure import PURE_COLOURS

StrokeColour = Literal["red", "yellow", "magenta", "cyan"]
STROKE_COLOURS: tuple[StrokeColour, ...] = ("red", "yellow", "magenta", "cyan")
"""Colours that stand out from fields and trees and do not occur on roofs."""
MarkShape = Literal["box", "ellipse"]


def draw_colour(rng: Rng) -> StrokeColour:
    """Return one of :data:`STROKE_COLOURS` at random."""
    return STROKE_COLOURS[int(rng.integers(len(STROKE_COLOURS)))]


def random_box(
    rng: Rng,
    shape: Sequence[int],
    shares: tuple[float, float],
    suits: Callable[[Box], bool] = lambda _: True,
    tries: int = 1,
) -> Box:
    """Return a random box at least 8 px from the edges of a picture of ``shape``, (rows, columns).

    ``shares``: range of its sides as shares of the picture's. If none of ``tries`` boxes suits, the last is returned.
    """
    rows, columns = shape
    box = (0, 0, 0, 0)
    for _ in range(tries):
        width, height = (round(side * rng.uniform(*shares)) for side in (columns, rows))
        x0, y0 = int(rng.integers(8, columns - width - 8)), int(rng.integers(8, rows - height - 8))
        box = (x0, y0, x0 + width, y0 + height)
        if suits(box):
            break
    return box


def grown(box: Sequence[int], by_px: int) -> Box:
    """Return the box with a margin on all sides."""
    return box[0] - by_px, box[1] - by_px, box[2] + by_px, box[3] + by_px


def marked(
    rng: Rng, pixels: NDArray[np.uint8], inside: Box, shape: MarkShape, colour: StrokeColour
) -> tuple[NDArray[np.uint8], dict[str, Any]]:
    """Return a copy with a mark around ``inside``, and the perfect ``extract_marked_region`` result.

    A box runs along ``inside``; an ellipse passes through its corners, so it needs 0.21 of each side more room.
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
            cv2.rectangle(
                canvas, (x0 - half, y0 - half), (x1 - 1 + half, y1 - 1 + half), value, stroke
            )
        else:
            axes = (round((x1 - x0) / 2**0.5) + half, round((y1 - y0) / 2**0.5) + half)
            middle = ((x0 + x1) // 2, (y0 + y1) // 2)
            cv2.ellipse(canvas, middle, axes, 0, 0, 360, value, stroke, cv2.LINE_AA)
    outlines, _ = cv2.findContours(
        (outline > 127).astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE
    )
    filled = np.zeros_like(outline)
    cv2.drawContours(filled, outlines, -1, 255, -1)
    enclosed = (filled > 0) & (outline == 0)
    inner = bounds(enclosed)
    region = {
        "index": 1, "box": list(bounds(outline > 127)), "inner_box": list(inner), "color": colour, "shape": shape,
        "area_px": int(np.count_nonzero(enclosed)), "stroke_px": float(stroke),
    }  # fmt: skip
    return picture, {"regions": [region], "selected": 1, "crop_box": list(inner)}


def outlined(rgb: NDArray[np.uint8], box: Box) -> tuple[NDArray[np.uint8], list[int]]:
    """Return a photo with a red outline drawn along ``box``, and the bounds inside the stroke."""
    rows, columns = rgb.shape[:2]
    x0, y0, x1, y1 = max(4, box[0]), max(4, box[1]), min(columns - 5, box[2]), min(rows - 5, box[3])
    stroke = np.zeros((rows, columns), np.uint8)
    cv2.rectangle(stroke, (x0, y0), (x1, y1), 255, 4)
    picture = rgb.astype(np.float32)
    picture += (stroke > 0)[..., None] * (np.array([235.0, 20.0, 20.0], np.float32) - picture)
    return (picture + 0.5).astype(np.uint8), [x0 + 3, y0 + 3, x1 - 2, y1 - 2]


_GAP_PX = 8
_PENS: dict[str, tuple[int, int, int]] = {
    "blue": (0, 40, 255), "yellow": (255, 240, 0), "magenta": (255, 0, 255), "cyan": (0, 240, 255),
}  # fmt: skip
"""Red, green, blue of the pens of :func:`mark_each`."""


def mark_each(
    photo: NDArray[np.uint8],
    boxes: Sequence[Box],
    colours: Sequence[str],
    rng: Rng,
    shapes: Sequence[MarkShape] = ("box", "box", "ellipse"),
) -> list[dict[str, Any]]:
    """Draw, in place, a mark around each box that has enough room, each in a different colour.

    Returns, for each mark: ``place`` (index of the box), ``color``, and ``truth``, the perfect
    ``extract_marked_region``.
    """
    stroke = int(rng.integers(3, 5))
    rows, columns = photo.shape[:2]
    outer_boxes: list[Box] = []
    marks: list[dict[str, Any]] = []
    for place, inner in enumerate(boxes):
        if len(marks) == len(colours):
            break
        outer = grown(inner, stroke)
        inside = outer[0] >= 1 and outer[1] >= 1 and outer[2] < columns and outer[3] < rows
        if not inside or not _is_apart(outer, outer_boxes):
            continue
        shape = shapes[int(rng.integers(len(shapes)))]
        colour = colours[len(marks)]
        _draw_mark(photo, inner, outer, colour, shape, stroke)
        outer_boxes.append(outer)
        region = {
            "index": 1, "box": [*outer], "inner_box": [*inner], "color": colour, "shape": shape, "stroke_px": stroke,
        }  # fmt: skip
        truth = {"regions": [region], "selected": 1, "crop_box": [*inner]}
        marks.append({"place": place, "color": colour, "truth": truth})
    return marks


def _draw_mark(
    photo: NDArray[np.uint8], inner: Box, outer: Box, colour: str, shape: MarkShape, stroke_px: int
) -> None:
    (x0, y0, x1, y1), ink = inner, np.zeros(photo.shape[:2], np.uint8)
    if shape == "box":
        ink[outer[1] : outer[3], outer[0] : outer[2]] = 255
        ink[y0:y1, x0:x1] = 0
    else:
        centre = (round(8 * (x0 + x1 - 1)), round(8 * (y0 + y1 - 1)))
        axes = (round(8 * (x1 - x0 + stroke_px)), round(8 * (y1 - y0 + stroke_px)))
        cv2.ellipse(ink, centre, axes, 0, 0, 360, 255, stroke_px, cv2.LINE_AA, 4)
    cover = (ink.astype(np.float32) / 255.0)[..., None]
    photo[:] = np.round(photo * (1 - cover) + np.asarray(_PENS[colour], np.float32) * cover).astype(
        np.uint8
    )


def _is_apart(box: Box, others: Sequence[Box]) -> bool:
    return all(
        box[0] - _GAP_PX >= other[2] or other[0] - _GAP_PX >= box[2]
        or box[1] - _GAP_PX >= other[3] or other[1] - _GAP_PX >= box[3]
        for other in others
    )  # fmt: skip
