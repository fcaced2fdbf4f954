"""Detection of apples, pears, cherries and tomatoes with the shipped net, as boxes with scores.

``data/nets/fruits.json`` describes the net and ``data/nets/fruits.md`` is its model card. Both and the weights are
written by ``training/train_fruit_net.py``. The net was trained on orchard tiles at one scale, to which pictures are
resized by the expected size of a fruit, if known.

Peaks of the net's heat maps are objects, with the distances to their four sides (objects as points: Zhou, Wang and
Kraehenbuehl 2019; boxes from every place: Liu et al. 2020, TTFNet). Large pictures are searched in overlapping tiles.
Each tile is responsible for its half of an overlap, so an object comes from the tile in which it is further from the
edge. Objects found in two tiles are merged by the overlap of their boxes.

Files that are missing or differ from the shipped ones raise a ``ToolError`` of the kind ``backend_unavailable``.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat

from agrotools.tools.contract import shipped_file
from agrotools.tools.counting.result import CountedObjects, FruitName, join_objects, objects_in_boxes
from agrotools.vision import Box
from agrotools.vision.nets import DescribedNet, DescriptionPart, read_whole_net, unusable_weights

Boxes = NDArray[np.float64]
"""(n, 4): x0, y0, x1, y1 in pixels."""


def overlaps(one: Boxes, two: Boxes) -> NDArray[np.float64]:
    """Return the intersection over union of boxes ``one`` (k, 4) and ``two`` (m, 4) as (k, m), 0 to 1."""
    low = np.maximum(one[:, None, :2], two[None, :, :2])
    high = np.minimum(one[:, None, 2:], two[None, :, 2:])
    joint = np.clip(high - low, 0, None).prod(axis=2)
    areas = [np.clip(boxes[:, 2:] - boxes[:, :2], 0, None).prod(axis=1) for boxes in (one, two)]
    return joint / np.maximum(areas[0][:, None] + areas[1][None, :] - joint, 1e-12)


def drop_duplicates(detections: CountedObjects, same: float = 0.5) -> CountedObjects:
    """Keep the best of boxes, sorted best first, that overlap by more than ``same`` (IoU), whatever their class:
    greedy non-maximum suppression, so a box that overlaps only removed boxes is kept."""
    keep = np.ones(len(detections), np.bool_)
    for place in range(len(detections)):
        if keep[place]:
            rest = np.flatnonzero(keep[place + 1 :]) + place + 1
            alike = overlaps(detections.boxes[place : place + 1], detections.boxes[rest])[0] > same
            keep[rest[alike]] = False
    return detections.chosen(keep)


MOST_PEAKS = 400
"""Number of peaks taken from one tile, strongest first."""


def boxes_of_maps(
    heat: NDArray[np.float32], distances: NDArray[np.float32], least: float, stride: int = 4
) -> CountedObjects:
    """Convert the maps of one picture to objects in its pixels, best first, without duplicates. ``heat``: (classes,
    rows, columns), zero except at peaks; ``distances``: (4, rows, columns), pixels from the middle of a cell of
    ``stride`` pixels to the left, top, right and bottom."""
    kinds, rows, columns = np.nonzero(heat >= least)
    scores = heat[kinds, rows, columns]
    order = np.argsort(-scores, kind="stable")[:MOST_PEAKS]
    kinds, rows, columns, scores = kinds[order], rows[order], columns[order], scores[order]
    x, y = (columns + 0.5) * stride, (rows + 0.5) * stride
    left, top, right, bottom = distances[:, rows, columns].astype(np.float64)
    boxes: Boxes = np.stack([x - left, y - top, x + right, y + bottom], axis=1)
    return drop_duplicates(join_objects([objects_in_boxes(boxes, scores.astype(np.float64), kinds.astype(np.int64))]))


def tiles_of(width: int, height: int, side: int, overlap: int) -> Iterator[tuple[Box, Box]]:
    """Yield tiles of equal size, at most ``side`` pixels a side, that overlap by at least ``overlap`` pixels.

    Each is the part that is searched, and the part whose objects belong to it alone.
    """
    across, down = _stretches(width, side, overlap), _stretches(height, side, overlap)
    for y0, y1, from_y, to_y in down:
        for x0, x1, from_x, to_x in across:
            yield (x0, y0, x1, y1), (from_x, from_y, to_x, to_y)


def _stretches(length: int, side: int, overlap: int) -> list[tuple[int, int, int, int]]:
    """Return the start and end of each tile along one axis, and of its core."""
    count = 1 if length <= side else -(-(length - overlap) // (side - overlap))
    starts = [round(number * max(0, length - side) / max(1, count - 1)) for number in range(count)]
    ends = [min(length, start + side) for start in starts]
    meet = [0, *((end + start) // 2 for end, start in zip(ends[:-1], starts[1:], strict=True)), length]
    return [(starts[k], ends[k], meet[k], meet[k + 1]) for k in range(count)]


def detect_in_tiles(
    pixels: NDArray[np.uint8],
    detect: Callable[[NDArray[np.uint8]], CountedObjects],
    *,
    scale: float,
    side: int,
    overlap: int,
) -> CountedObjects:
    """Detect all objects of a picture, in its pixels, in tiles of ``side`` pixels after it is resized by ``scale``.
    ``overlap``: at least the size of the largest object, or every tile cuts it."""
    height, width = pixels.shape[:2]
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    resized = pixels if size == (width, height) else np.asarray(cv2.resize(pixels, size, interpolation=how), np.uint8)
    parts: list[CountedObjects] = []
    for (x0, y0, x1, y1), core in tiles_of(size[0], size[1], side, overlap):
        detections = detect(np.ascontiguousarray(resized[y0:y1, x0:x1])).scaled(1.0, x0, y0)
        # Boxes may extend beyond the picture; a centre outside it belongs to the nearest tile.
        inside = np.clip(detections.centres, 0, np.array(size) - 1e-6)
        parts.append(replace(detections, centres=inside).centred_in(core))
    detections = drop_duplicates(join_objects(parts))
    ratio = np.array([width / size[0], height / size[1]] * 2)
    boxes = np.clip(detections.boxes * ratio, 0, [width, height, width, height])
    return objects_in_boxes(boxes, detections.scores, detections.classes)


TILE_PX = 416
"""Side of a tile, pixels at the net's scale."""
OVERLAP_PX = 96
"""Overlap of tiles, pixels; larger than fruits at the net's scale."""
ORCHARD_SCALE = 416 / 640
"""Scale of pictures of unknown scale: that of the orchard tiles of 640 pixels, which were shrunk by it for training."""
TYPICAL_PX: dict[FruitName, float] = {"apple": 36.0, "pear": 28.0, "cherry": 17.0, "tomato": 44.0}
"""Median side of a fruit's box in the training tiles, pixels."""
UNSURE, ADDED = (0.2, 0.4), 2
"""Scores of boxes that may be a fruit or not, and what is added to their number: the error of a count goes with it."""
MOST_OTHERS = 0.5
"""Share of fruit of other kinds above which the fruit asked for is likely mistaken for them: the majority."""
_MULTIPLE = 32
_LEAST_KEPT = 0.1
_MOST_PX = 6_000_000
"""Largest number of pixels searched at the net's scale; larger pictures are searched at a coarser scale."""
_HINT = "install agrotools again"
_WHAT = "the fruit net"

Share = Annotated[FiniteFloat, Field(ge=0, le=1)]


class CountCalibration(DescriptionPart):
    """Counts on photographs outside the training set, written by ``training/calibrate_fruit_counts.py``.

    ``threshold``: least score at which counts have no bias. ``spread``: half-width of the 90 % interval divided by the
    number of unsure boxes plus :data:`ADDED`; None if there are too few photographs, or it is so wide that it says
    little.
    """

    threshold: Share
    spread: Annotated[FiniteFloat, Field(ge=0)] | None


class BoxFigures(DescriptionPart):
    """Accuracy of boxes at IoU 0.5 on photographs outside the training set."""

    f1: Share


class FruitNetInfo(DescribedNet):
    """Description of the fruit net."""

    classes: tuple[FruitName, ...]
    stride: Annotated[int, Field(ge=1, le=32)]
    figures: dict[FruitName, BoxFigures]
    counts: dict[FruitName, CountCalibration]


@dataclass(frozen=True, eq=False)
class FruitNet:
    info: FruitNetInfo
    session: Any

    def detect(self, pixels: NDArray[np.uint8]) -> CountedObjects:
        """Detect fruits of all kinds in a tile, uint8 (rows, columns, 3), at the net's scale."""
        height, width = pixels.shape[:2]
        rows, columns = (-(-side // _MULTIPLE) * _MULTIPLE for side in (height, width))
        image = np.zeros((1, 3, rows, columns), np.float32)
        image[0, :, :height, :width] = pixels.transpose(2, 0, 1) / np.float32(255)
        try:
            heat, distances = self.session.run(["heat", "distances"], {"image": image})
        except Exception as error:  # ONNX Runtime raises its own exception types
            raise unusable_weights(_WHAT, "cannot be run", _HINT) from error
        detections = boxes_of_maps(heat[0], distances[0], _LEAST_KEPT, self.info.stride)
        return detections.centred_in((-np.inf, -np.inf, width, height))

    def count_interval(self, fruit: FruitName, count: int, unsure: int) -> tuple[float, float] | None:
        """Return the interval of about 90 % of true counts; None if the fruit has no calibrated one.

        ``unsure``: number of boxes with a score in :data:`UNSURE`.
        """
        spread = self.info.counts[fruit].spread
        if spread is None:
            return None
        low, high = whole_bounds(np.array(count), np.array(spread * (unsure + ADDED)))
        return float(low), float(high)


def whole_bounds(
    count: NDArray[np.number[Any]], half: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and greatest whole number, 0 or more, within ``half`` of the counts: fruits are whole."""
    margin = 1e-9
    return np.maximum(0.0, np.ceil(count - half - margin)) + 0.0, np.floor(count + half + margin)


def share_of_others(found: CountedObjects, asked: list[int]) -> float:
    """Return the share of fruit whose class is not asked for, by squared scores: sure boxes weigh more."""
    assert found.classes is not None
    weights = found.scores**2
    return float(weights[~np.isin(found.classes, asked)].sum() / max(float(weights.sum()), 1e-9))


@lru_cache(maxsize=1)
def load_fruit_net() -> FruitNet:
    """Load the shipped net."""
    return read_fruit_net(shipped_file("nets/fruits.json"))


def read_fruit_net(description: Path) -> FruitNet:
    """Read the net of a description; its weights are in the same folder."""
    return FruitNet(*read_whole_net(description, FruitNetInfo, what=_WHAT, hint=_HINT))


def find_fruit(
    net: FruitNet, pixels: NDArray[np.uint8], fruits: tuple[FruitName, ...], expected_size_px: float | None
) -> tuple[CountedObjects, tuple[float, ...], float]:
    """Detect fruits of the given kinds in a picture of any size, with scores from 0.1; also return the scales
    searched and the share of fruit of other kinds. Without an expected size, pictures larger than an orchard tile
    are also searched at coarser scales, in steps of two, and the better of boxes found at two scales is kept."""
    longest, area = max(pixels.shape[:2]), pixels.shape[0] * pixels.shape[1]
    if expected_size_px is not None:
        scales = [sum(TYPICAL_PX[fruit] for fruit in fruits) / len(fruits) / expected_size_px]
    else:
        scales = [ORCHARD_SCALE]
        while scales[-1] * longest > 2 * TILE_PX:
            scales.append(scales[-1] / 2)
    most = math.sqrt(_MOST_PX / area)
    scales = sorted({min(scale, most) for scale in scales}, reverse=True)
    parts = [detect_in_tiles(pixels, net.detect, scale=scale, side=TILE_PX, overlap=OVERLAP_PX) for scale in scales]
    detections = drop_duplicates(join_objects(parts)) if len(parts) > 1 else parts[0]
    assert detections.classes is not None
    asked = [net.info.classes.index(fruit) for fruit in fruits]
    found = detections.chosen(np.isin(detections.classes, asked))
    return found, tuple(scales), share_of_others(detections, asked)
