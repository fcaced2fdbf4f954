"""Round spots of about one size: maxima of a scale-normalised Laplacian over place and size (Lindeberg 1998).

The Laplacian is taken as the difference of two Gaussians (Marr and Hildreth 1980).
"""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float32]

_STEP = 1.25
"""Ratio of one size to the next."""
_RATIO = 1.26
_FINEST_PX = 5.0
"""Pictures are shrunk until the smallest spots are about this many pixels wide: finer detail is not looked at."""
_OVERLAP = 0.65
"""Spots nearer to each other than this share of the sum of their radii are one, the stronger."""
_REFERENCE = 90


@dataclass(frozen=True, eq=False)
class Blobs:
    """Spots, strongest first. ``centres``: float64 (n, 2), x and y, pixels; ``diameters``: float64 (n,), pixels.

    ``strengths``: float64 (n,), contrast in units of the values; ``scores``: the same over that of a strong spot of the
    picture (90th percentile), at most 1.
    """

    centres: NDArray[np.float64]
    diameters: NDArray[np.float64]
    strengths: NDArray[np.float64]
    scores: NDArray[np.float64]


def find_blobs(values: Values, diameters_px: tuple[float, float], *, least_strength: float) -> Blobs:
    """Spots that are brighter than what is around them.

    Args:
        values: float32 (rows, columns), finite.
        diameters_px: smallest and largest diameter to look for, pixels.
        least_strength: spots of less contrast are noise, in units of ``values``.
    """
    smallest, largest = diameters_px
    shrink = min(1.0, _FINEST_PX / smallest)
    height, width = values.shape
    size = (max(1, round(width * shrink)), max(1, round(height * shrink)))
    small = np.asarray(cv2.resize(values, size, interpolation=cv2.INTER_AREA), np.float32) if shrink < 1 else values
    scale_x, scale_y = width / small.shape[1], height / small.shape[0]
    shrink = 1 / math.sqrt(scale_x * scale_y)
    steps = math.ceil(math.log(largest / smallest) / math.log(_STEP))
    sizes = np.geomspace(smallest, largest, steps + 1)
    responses = np.stack([_response(small, shrink * diameter) for diameter in sizes])
    peak = np.max([cv2.dilate(layer, np.ones((3, 3), np.uint8)) for layer in responses], axis=0)
    best = responses.argmax(axis=0)
    top = np.take_along_axis(responses, best[None], axis=0)[0]
    rows, columns = np.nonzero((top >= peak) & (top >= least_strength))
    strengths = top[rows, columns].astype(np.float64)
    diameters = sizes[best[rows, columns]]
    centres = np.column_stack([(columns + 0.5) * scale_x, (rows + 0.5) * scale_y])
    order = np.lexsort((centres[:, 0], centres[:, 1], -strengths))
    order = order[_drop_overlapping(centres[order], diameters[order])]
    strengths = strengths[order]
    reference = float(np.percentile(strengths, _REFERENCE)) if strengths.size else 1.0
    return Blobs(centres[order], diameters[order], strengths, np.minimum(1.0, strengths / reference))


def _response(values: Values, diameter: float) -> Values:
    """About the contrast of a disc of that diameter where there is one."""
    sigma = max(0.5, diameter / (2 * math.sqrt(2)))
    inner = cv2.GaussianBlur(values, (0, 0), sigma / math.sqrt(_RATIO), borderType=cv2.BORDER_REFLECT_101)
    outer = cv2.GaussianBlur(values, (0, 0), sigma * math.sqrt(_RATIO), borderType=cv2.BORDER_REFLECT_101)
    # A disc of radius sigma * sqrt(2) gives 2/e of its contrast times the logarithm of the ratio.
    return np.asarray((inner - outer) * np.float32(math.e / (2 * math.log(_RATIO))), np.float32)


def _drop_overlapping(centres: NDArray[np.float64], diameters: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mask of the spots to keep; they come strongest first."""
    from scipy.spatial import KDTree

    keep = np.ones(len(centres), np.bool_)
    if len(centres) < 2:
        return keep
    tree = KDTree(centres)
    widest = float(diameters.max())
    for number in range(len(centres)):
        if not keep[number]:
            continue
        for other in tree.query_ball_point(centres[number], _OVERLAP * (diameters[number] + widest) / 2):
            near = _OVERLAP * (diameters[number] + diameters[other]) / 2
            if other > number and math.dist(centres[number], centres[other]) < near:
                keep[other] = False
    return keep


def typical_size_px(values: Values, largest: float) -> float | None:
    """The diameter of the spots that a picture is full of, by its autocorrelation; None where it shows no such size.

    The mean over directions falls to its first minimum about where a spot lies on a gap.
    """
    height, width = values.shape
    shrink = min(1.0, 512 / max(height, width))
    size = (max(1, round(width * shrink)), max(1, round(height * shrink)))
    small = np.asarray(cv2.resize(values, size, interpolation=cv2.INTER_AREA), np.float64)
    small = small - cv2.GaussianBlur(small, (0, 0), max(2.0, largest * shrink))
    spectrum = np.abs(np.fft.rfft2(small, [2 * side for side in small.shape])) ** 2
    correlation = np.fft.irfft2(spectrum)[: small.shape[0], : small.shape[1]]
    if correlation[0, 0] <= 0:
        return None
    y, x = np.mgrid[0 : small.shape[0], 0 : small.shape[1]]
    lags = np.round(np.hypot(x, y)).astype(np.intp)
    radial = np.bincount(lags.ravel(), correlation.ravel()) / np.bincount(lags.ravel())
    radial = radial / radial[0]
    limit = min(len(radial) - 1, math.ceil(largest * shrink))
    for lag in range(2, limit):
        if radial[lag] <= radial[lag - 1] and radial[lag] < radial[lag + 1]:
            return lag / shrink
    return None
