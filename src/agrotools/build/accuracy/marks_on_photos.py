"""Marks drawn on photographs by our own code: where each one lies is then known to the pixel."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agrotools.tools.marks.finding import PURE_COLOURS, MarkColour, MarkShape

SHAPES: tuple[MarkShape, ...] = ("box", "ellipse", "polygon")
LEAST_SIDE_PX = 160
"""Smaller photographs are left out: a mark on them is hardly larger than its stroke."""
NOT_PHOTOS = ("ocr_text", "gta_samples")
"""Folders of pages and screenshots, some of which hold drawn boxes of their own."""


@dataclass(frozen=True)
class Drawn:
    """A mark as drawn: bounds of its pixels (x0, y0, x1, y1), stroke included."""

    box: tuple[int, int, int, int]
    colour: MarkColour
    shape: MarkShape
    stroke_px: int


def photos_in(data: Path) -> list[Path]:
    """Photographs of all folders of a data set, without masks, rasters and pages, in the order of their names."""
    found = [
        path
        for folder in sorted(data.iterdir())
        if folder.is_dir() and folder.name not in NOT_PHOTOS
        for part in ("images", "A", "B")
        for path in sorted((folder / part).glob("*"))
    ]
    return [path for path in found if path.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp")]


def drawn_on(
    pixels: NDArray[np.uint8],
    colour: MarkColour,
    shape: MarkShape,
    stroke_px: int,
    draw: np.random.Generator,
    off_colour: float = 0.12,
) -> tuple[NDArray[np.uint8], Drawn]:
    """A copy of a picture with one mark on it.

    Args:
        pixels: uint8 (rows, columns, 3).
        draw: where and how large the mark is: sides from 8 % (24 px at least) to 60 % of the picture's.
        off_colour: how far the colour may be from the pure one, as a share of the full scale per channel.
    """
    import cv2

    height, width = pixels.shape[:2]
    w, h = (int(draw.integers(max(24, 0.08 * side), 0.6 * side)) for side in (width, height))
    x0, y0 = int(draw.integers(4, width - w - 4)), int(draw.integers(4, height - h - 4))
    pure = np.array(PURE_COLOURS[colour], np.float64)
    shade = np.clip(np.abs(pure - 255 * off_colour * draw.random(3)), 0, 255).astype(int).tolist()
    line = int(draw.choice([cv2.LINE_8, cv2.LINE_AA]))
    picture, mask = pixels.copy(), np.zeros((height, width), np.uint8)
    points = np.zeros((0, 2), np.int32)
    if shape == "polygon":
        turns = np.sort(draw.random(int(draw.integers(3, 8)))) * 2 * np.pi
        while np.diff([*turns, turns[0] + 2 * np.pi]).max() > 0.9 * np.pi:
            turns = np.sort(draw.random(len(turns))) * 2 * np.pi
        radius = draw.uniform(0.7, 1.0, len(turns))
        points = np.column_stack(
            [x0 + w / 2 + w / 2 * radius * np.cos(turns), y0 + h / 2 + h / 2 * radius * np.sin(turns)]
        ).astype(np.int32)
    for canvas, ink in ((picture, shade), (mask, 255)):
        if shape == "box":
            cv2.rectangle(canvas, (x0, y0), (x0 + w, y0 + h), ink, stroke_px)
        elif shape == "ellipse":
            middle, axes = (x0 + w // 2, y0 + h // 2), (w // 2, h // 2)
            cv2.ellipse(canvas, middle, axes, 0, 0, 360, ink, stroke_px, line)
        elif shape == "polygon":
            cv2.polylines(canvas, [points], True, ink, stroke_px, line)
        else:
            cv2.arrowedLine(canvas, (x0, y0), (x0 + w, y0 + h), ink, stroke_px, line, tipLength=0.2)
    rows, columns = np.flatnonzero((mask > 127).any(axis=1)), np.flatnonzero((mask > 127).any(axis=0))
    box = (int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1)
    return picture, Drawn(box, colour, shape, stroke_px)


def saved_as_jpeg(pixels: NDArray[np.uint8], quality: int, path: Path) -> Path:
    """The picture as a JPEG with colours at half resolution (4:2:0), as phones and web sites store them."""
    from PIL import Image

    Image.fromarray(pixels).save(path, quality=quality, subsampling=2)
    return path


def box_iou(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    """Intersection over union of two boxes (x0, y0, x1, y1)."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)
