"""Which pixels are fruit, by colour: redder (or more orange) than the foliage around.

A channel of Lab in which the fruit stands out, thresholds relative to the foliage of the same picture, and hysteresis:
what is surely fruit, and what hangs together with it. Pale and green fruit does not stand out; ``contrast`` tells.

CIE Lab: CIE 15:2004. Hysteresis thresholding: Canny 1986. Threshold: Otsu 1979.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Fruit = Literal["apple", "orange", "peach", "tomato"]

_DIRECTIONS: dict[Fruit, tuple[float, float]] = {
    "apple": (1.0, 0.0),
    "tomato": (1.0, 0.0),
    "peach": (0.9, 0.4),
    "orange": (0.75, 0.65),
}
"""Towards which (a*, b*) the fruit differs from leaves."""
_LEAST, _MOST = 12.0, 32.0
"""How far above the foliage (Lab units) a pixel must lie, within which the threshold follows the picture."""
_LOW_SHARE = 0.6


@dataclass(frozen=True, eq=False)
class FruitMask:
    """``mask``: bool (rows, columns). ``channel``: float32, the colour that fruit stands out in, smoothed.

    ``contrast``: by how much (Lab units) the median fruit pixel exceeds the median of the rest; 0 without fruit.
    """

    mask: NDArray[np.bool_]
    channel: NDArray[np.float32]
    contrast: float


def fruit_channel(pixels: NDArray[np.uint8], fruit: Fruit = "apple") -> NDArray[np.float32]:
    """The colour channel that ``fruit`` stands out in, in Lab units, float32 (rows, columns), lightly smoothed."""
    import cv2

    lab = cv2.cvtColor(pixels, cv2.COLOR_RGB2LAB)
    towards_a, towards_b = _DIRECTIONS[fruit]
    channel = np.float32(towards_a) * lab[..., 1] + np.float32(towards_b) * lab[..., 2]
    return np.asarray(cv2.GaussianBlur(channel.astype(np.float32), (0, 0), 0.8), np.float32)


def find_fruit_pixels(
    pixels: NDArray[np.uint8], valid: NDArray[np.bool_] | None = None, fruit: Fruit = "apple"
) -> FruitMask:
    """Separate fruit from everything else by colour.

    Args:
        pixels: uint8 (rows, columns, 3), sRGB.
        valid: where there is a picture; None: everywhere.
    """
    import cv2

    channel = fruit_channel(pixels, fruit)
    seen = channel[valid] if valid is not None else channel.ravel()
    if not seen.size:
        return FruitMask(np.zeros(channel.shape, np.bool_), channel, 0.0)
    foliage = float(np.median(seen))
    lowest, highest = float(seen.min()), float(seen.max())
    if highest - lowest < _LEAST:
        return FruitMask(np.zeros(channel.shape, np.bool_), channel, 0.0)
    scaled = np.clip((seen - lowest) * (255 / (highest - lowest)), 0, 255).astype(np.uint8)
    level, _ = cv2.threshold(scaled.reshape(-1, 1), 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    otsu = lowest + level * (highest - lowest) / 255
    high = float(np.clip(otsu, foliage + _LEAST, foliage + _MOST))
    low = foliage + _LOW_SHARE * (high - foliage)
    weak = channel > low
    if valid is not None:
        weak &= valid
    count, found = cv2.connectedComponents(weak.astype(np.uint8), connectivity=4)
    labels = np.asarray(found, np.int32)
    sure = np.zeros(count, np.bool_)
    sure[np.unique(labels[weak & (channel > high)])] = True
    sure[0] = False
    mask = sure[labels]
    rest = ~mask if valid is None else valid & ~mask
    contrast = float(np.median(channel[mask]) - np.median(channel[rest])) if mask.any() and rest.any() else 0.0
    return FruitMask(mask, channel, contrast)


def half_level(channel: NDArray[np.float32], mask: NDArray[np.bool_], around: int) -> NDArray[np.bool_]:
    """A mask moved to where the colour is halfway between the fruit's and that of its surroundings.

    A blurred edge crosses the halfway level where the sharp edge was; a lower threshold would make all fruit larger.
    ``around``: how many pixels of surroundings to look at.
    """
    import cv2

    width = max(1, around)
    core = cv2.erode(mask.astype(np.uint8), np.ones((3, 3), np.uint8)).astype(np.bool_)
    grown = cv2.dilate(mask.astype(np.uint8), np.ones((3, 3), np.uint8), iterations=2).astype(np.bool_)
    ring = cv2.dilate(mask.astype(np.uint8), np.ones((3, 3), np.uint8), iterations=2 + width).astype(np.bool_) & ~grown
    if not core.any() or not ring.any():
        return mask
    inside, outside = float(np.median(channel[core])), float(np.median(channel[ring]))
    if inside - outside < _LEAST / 2:
        return mask
    return grown & (channel > (inside + outside) / 2)
