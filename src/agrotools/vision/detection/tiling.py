"""Detection in pictures that are larger than what a net looks at: tile by tile, each object counted once.

Neighbouring tiles overlap; of the overlap each tile answers for its own half, so an object is taken from the tile in
which it lies further from the edge. What two tiles still find twice is told by the overlap of the boxes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.detection.boxes import Detections, joined, without_doubles
from agrotools.vision.formats import Box


@dataclass(frozen=True)
class Tile:
    """``box``: what is looked at. ``core``: the part whose objects this tile answers for; cores tile the picture."""

    box: Box
    core: Box


def tiles_of(width: int, height: int, side: int, overlap: int) -> Iterator[Tile]:
    """Tiles of at most ``side`` pixels a side, of one size, that overlap by at least ``overlap`` pixels.

    Raises:
        ValueError: ``overlap`` is not smaller than ``side``.
    """
    if not 0 <= overlap < side:
        raise ValueError(f"tiles of {side} pixels cannot overlap by {overlap}")
    across, down = _stretches(width, side, overlap), _stretches(height, side, overlap)
    for y0, y1, from_y, to_y in down:
        for x0, x1, from_x, to_x in across:
            yield Tile((x0, y0, x1, y1), (from_x, from_y, to_x, to_y))


def _stretches(length: int, side: int, overlap: int) -> list[tuple[int, int, int, int]]:
    """Begin and end of each tile along one axis, and of its core."""
    count = 1 if length <= side else -(-(length - overlap) // (side - overlap))
    starts = [round(number * max(0, length - side) / max(1, count - 1)) for number in range(count)]
    ends = [min(length, start + side) for start in starts]
    meet = [0, *((end + start) // 2 for end, start in zip(ends[:-1], starts[1:], strict=True)), length]
    return [(starts[k], ends[k], meet[k], meet[k + 1]) for k in range(count)]


def detected_by_tiles(
    pixels: NDArray[np.uint8],
    detect: Callable[[NDArray[np.uint8]], Detections],
    *,
    scale: float,
    side: int,
    overlap: int,
) -> Detections:
    """All objects of a picture, in its pixels.

    Args:
        pixels: uint8 (rows, columns, 3).
        detect: from a tile, uint8 (rows, columns, 3), to the objects in it, in pixels of the tile.
        scale: by what the picture is resized first.
        side: of a tile after resizing, pixels.
        overlap: of tiles, pixels: as wide as the largest object, or it is cut in every tile.
    """
    import cv2

    height, width = pixels.shape[:2]
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    resized = pixels if size == (width, height) else np.asarray(cv2.resize(pixels, size, interpolation=how), np.uint8)
    parts: list[Detections] = []
    for tile in tiles_of(size[0], size[1], side, overlap):
        x0, y0, x1, y1 = tile.box
        found = detect(np.ascontiguousarray(resized[y0:y1, x0:x1])).placed(1.0, x0, y0)
        x, y = found.centres.T
        left, top, right, bottom = tile.core
        # Boxes may reach beyond the picture; those of its own rim belong to the tile there.
        x, y = np.clip(x, 0, size[0] - 1e-6), np.clip(y, 0, size[1] - 1e-6)
        parts.append(found.chosen((x >= left) & (x < right) & (y >= top) & (y < bottom)))
    found = without_doubles(joined(parts))
    ratio = np.array([width / size[0], height / size[1]] * 2)
    boxes = np.clip(found.boxes * ratio, 0, [width, height, width, height])
    return Detections(boxes, found.scores, found.classes)
