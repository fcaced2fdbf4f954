"""The shipped net that finds fruit: apples, pears, cherries and tomatoes as boxes with scores.

``data/nets/fruits.json`` says what it is, ``data/nets/fruits.md`` is its card; both and the weights are written by
``training/train_fruit_net.py``. It was trained on orchard tiles at one scale: pictures are brought to that scale, by
the expected size of a fruit where that is known.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat

from agrotools.vision.detection.boxes import NONE, Detections, joined, without_doubles
from agrotools.vision.detection.heat_maps import boxes_of_maps
from agrotools.vision.detection.tiling import detected_by_tiles
from agrotools.vision.net_files import Described, DescribedNet, nets_folder, read_whole_net
from agrotools.vision.weights_file import unusable

FruitName = Literal["apple", "pear", "cherry", "tomato"]
TILE_PX = 416
"""Side of a tile, pixels of the net's scale."""
OVERLAP_PX = 96
"""Wider than fruits are at that scale."""
ORCHARD_SCALE = 416 / 640
"""Pictures of unknown scale are taken for orchard tiles of 640 pixels, which were shrunk to this for training."""
TYPICAL_PX: dict[FruitName, float] = {"apple": 36.0, "pear": 28.0, "cherry": 17.0, "tomato": 44.0}
"""Median side of a fruit's box in the training tiles."""
_MULTIPLE = 32
_LEAST_KEPT = 0.1
_MOST_PX = 6_000_000
"""Pixels that are looked at, at the net's scale: larger pictures are looked at coarser."""
_HINT = "install agrotools again"
_WHAT = "the fruit net"

Share = Annotated[FiniteFloat, Field(ge=0, le=1)]


class Thresholds(Described):
    """Scores from which a box counts: ``boxes`` for best F1, ``count`` for the least error of counts."""

    boxes: Share
    count: Share


class CountFigures(Described):
    """Errors of counts on photographs that were not learnt from."""

    tiles: int
    count_bias: FiniteFloat
    count_dispersion: FiniteFloat
    """Mean squared error of a count over the count."""


class BoxFigures(Described):
    """Boxes on photographs that were not learnt from, at IoU 0.5."""

    f1: Share


class FruitNetInfo(DescribedNet):
    """What the net is, as its description says."""

    classes: tuple[FruitName, ...]
    stride: Annotated[int, Field(ge=1, le=32)]
    thresholds: dict[FruitName, Thresholds]
    figures: dict[FruitName, BoxFigures]
    figures_of_counts: dict[FruitName, CountFigures]


@dataclass(frozen=True, eq=False)
class FruitNet:
    info: FruitNetInfo
    session: Any

    def detect(self, pixels: NDArray[np.uint8]) -> Detections:
        """Fruits of all kinds in a tile, uint8 (rows, columns, 3), at the net's scale.

        Raises:
            ToolError: ``backend_unavailable`` where the graph does not answer as described.
        """
        height, width = pixels.shape[:2]
        rows, columns = (-(-side // _MULTIPLE) * _MULTIPLE for side in (height, width))
        image = np.zeros((1, 3, rows, columns), np.float32)
        image[0, :, :height, :width] = pixels.transpose(2, 0, 1) / np.float32(255)
        try:
            heat, distances = self.session.run(["heat", "distances"], {"image": image})
        except Exception as error:  # ONNX Runtime's own kinds of error
            raise unusable(_WHAT, "cannot be run", _HINT) from error
        found = boxes_of_maps(heat[0], distances[0], _LEAST_KEPT, self.info.stride)
        x, y = found.centres.T
        return found.chosen((x < width) & (y < height))

    def count_interval(self, fruit: FruitName, count: int) -> tuple[float, float]:
        """About where 95 % of true counts lie when so many are found, by the errors on photographs not learnt from."""
        figures = self.info.figures_of_counts[fruit]
        half = 1.96 * math.sqrt(max(0.0, figures.count_dispersion) * max(1, count))
        return max(0.0, count - half), count + half


def fruit_net_files() -> list[Path]:
    """The files that the net's answers depend on."""
    return [nets_folder() / "fruits.json", nets_folder() / "fruits.onnx"]


@lru_cache(maxsize=1)
def load_fruit_net() -> FruitNet:
    """The shipped net.

    Raises:
        ToolError: ``backend_unavailable`` where its files are missing, or are not those that were shipped.
    """
    return read_fruit_net(fruit_net_files()[0])


def read_fruit_net(description: Path) -> FruitNet:
    """The net that a description names, its weights beside it.

    Raises:
        ToolError: ``backend_unavailable``: a file is missing, no description, other weights, no graph that fits.
    """
    return FruitNet(*read_whole_net(description, FruitNetInfo, gives=("heat", "distances"), what=_WHAT, hint=_HINT))


def find_fruit(
    net: FruitNet, pixels: NDArray[np.uint8], fruits: tuple[FruitName, ...], expected_size_px: float | None
) -> tuple[Detections, tuple[float, ...]]:
    """Fruits of these kinds in a picture of any size, scores from 0.1 on, and the scales that were looked at.

    Without an expected size, pictures larger than an orchard tile are looked at coarser as well, in steps of two, since
    a fruit may be of any size in them; where a fruit is found at two scales the better box stays.

    Args:
        pixels: uint8 (rows, columns, 3).
        fruits: kinds that count; a box that the net takes for another kind is left out.
    """
    longest, area = max(pixels.shape[:2]), pixels.shape[0] * pixels.shape[1]
    if expected_size_px is not None:
        scales = [sum(TYPICAL_PX[fruit] for fruit in fruits) / len(fruits) / expected_size_px]
    else:
        scales = [ORCHARD_SCALE]
        while scales[-1] * longest > 2 * TILE_PX:
            scales.append(scales[-1] / 2)
    most = math.sqrt(_MOST_PX / area)
    scales = sorted({min(scale, most) for scale in scales}, reverse=True)
    parts = [detected_by_tiles(pixels, net.detect, scale=scale, side=TILE_PX, overlap=OVERLAP_PX) for scale in scales]
    found = without_doubles(joined(parts)) if len(parts) > 1 else parts[0] if parts else NONE
    wanted = np.isin(found.classes, [net.info.classes.index(fruit) for fruit in fruits])
    return found.chosen(wanted), tuple(scales)
