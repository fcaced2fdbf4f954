"""Texture as numbers, from how often grey levels lie side by side (Haralick, Shanmugam and Dinstein 1973)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEVELS = 32
_OFFSETS = ((0, 1), (1, 1), (1, 0), (1, -1))
_MOST_PX = 1_000_000


@dataclass(frozen=True)
class TextureNumbers:
    """``entropy``: bits, 0..10. ``contrast``: mean squared step between neighbours, in levels (32 over the full range).
    ``homogeneity``: 0..1. ``correlation``: -1..1, NaN where all is of one level."""

    entropy: float
    contrast: float
    homogeneity: float
    correlation: float


def cooccurrence(grey: NDArray[np.uint8], valid: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Shares of pairs of neighbours by their levels, symmetric, (32, 32), pooled over four directions at distance 1.

    Args:
        grey: uint8 (rows, columns), 0..255.
        valid: bool (rows, columns); a pair counts where both of it are valid.
    """
    levels = (grey >> 3).astype(np.int32)
    counts = np.zeros(LEVELS * LEVELS, np.int64)
    height, width = levels.shape
    for down, right in _OFFSETS:
        if height <= down or width <= abs(right):
            continue
        left, far = max(0, -right), max(0, right)
        first = (slice(0, height - down), slice(left, width - far))
        second = (slice(down, height), slice(left + right, width - far + right))
        both = valid[first] & valid[second]
        counts += np.bincount((levels[first] * LEVELS + levels[second])[both], minlength=LEVELS * LEVELS)
    pairs = counts.reshape(LEVELS, LEVELS).astype(np.float64)
    pairs += pairs.T
    return pairs / max(float(pairs.sum()), 1.0)


def texture_of(pixels: NDArray[np.uint8], valid: NDArray[np.bool_]) -> TextureNumbers | None:
    """Texture of the luma of a picture, uint8 (rows, columns, 3), where ``valid``; None without a pair of neighbours.

    Of a picture above a megapixel the middle strip of rows is looked at, at full resolution: texture depends on it.
    """
    import cv2

    rows = max(2, _MOST_PX // max(1, pixels.shape[1]))
    if pixels.shape[0] > rows:
        top = (pixels.shape[0] - rows) // 2
        pixels, valid = pixels[top : top + rows], valid[top : top + rows]
    grey = np.asarray(cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY), np.uint8)
    shares = cooccurrence(grey, valid)
    if not shares.any():
        return None
    i, j = np.mgrid[0:LEVELS, 0:LEVELS]
    some = shares[shares > 0]
    marginal = shares.sum(axis=1)
    level = np.arange(LEVELS)
    mean = float((marginal * level).sum())
    variance = float((marginal * (level - mean) ** 2).sum())
    covariance = float((shares * (i - mean) * (j - mean)).sum())
    return TextureNumbers(
        entropy=max(0.0, float(-(some * np.log2(some)).sum())),
        contrast=float((shares * (i - j) ** 2).sum()),
        homogeneity=float((shares / (1 + (i - j) ** 2)).sum()),
        correlation=covariance / variance if variance > 1e-12 else float("nan"),
    )
