"""How far one picture of a pair is shifted against the other, and whether that can be told at all."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LONGEST_SIDE = 1024
"""Larger pictures are compared at this size: the shift is then known to a fraction of a pixel of the larger grid."""
_SMALLEST_SIDE = 32
_CLEAR_GAIN = 0.02
_CLEAR_AGREEMENT = 0.12
"""Correlation of edge strengths from which two pictures show the same outlines. Scenes that were rebuilt lie below."""
_AGREEMENT_TO_MOVE = 0.2
"""A shift is only undone on better grounds than it takes to see that there is none."""


@dataclass(frozen=True)
class Shift:
    """``dx``, ``dy``: how far the second picture's content lies to the right and down, pixels.

    ``agreement``: correlation of edge strengths once the shift is undone, -1..1. ``is_clear``: whether the shift can be
    trusted; where not, ``dx`` and ``dy`` are 0.
    """

    dx: float
    dy: float
    agreement: float
    is_clear: bool

    @property
    def is_worth_moving(self) -> bool:
        return self.is_clear and (round(self.dx), round(self.dy)) != (0, 0)


def shift_between(before: NDArray[np.uint8], after: NDArray[np.uint8], valid: NDArray[np.bool_]) -> Shift:
    """The shift of ``after`` against ``before`` by phase correlation (Kuglin and Hines 1975) of edge strengths.

    Edges, not brightness: light and season change less of them. The shift counts as clear where edge strengths then
    correlate, and better than without it.

    Args:
        before, after: uint8 (rows, columns, 3).
        valid: bool (rows, columns), where both have data.
    """
    import cv2

    height, width = valid.shape
    if min(height, width) < _SMALLEST_SIDE:
        return Shift(0.0, 0.0, 0.0, is_clear=False)
    shrink = min(1.0, _LONGEST_SIDE / max(height, width))
    size = (max(1, round(width * shrink)), max(1, round(height * shrink)))
    there = cv2.resize(valid.astype(np.float32), size, interpolation=cv2.INTER_AREA) > 0.99
    first, second = (_edges(picture, there, size) for picture in (before, after))
    if not first.any() or not second.any():
        return Shift(0.0, 0.0, 0.0, is_clear=False)
    window = np.asarray(cv2.createHanningWindow(size, cv2.CV_32F), np.float32)
    (dx, dy), _ = cv2.phaseCorrelate(first, second, window)
    still = _correlation(first, second)
    moved = _correlation(first, _moved(second, -dx, -dy))
    small = max(abs(dx), abs(dy)) < 1
    is_clear = moved > (_CLEAR_AGREEMENT if small else _AGREEMENT_TO_MOVE) and (small or moved > still + _CLEAR_GAIN)
    if not is_clear:
        return Shift(0.0, 0.0, still, is_clear=still > _CLEAR_AGREEMENT)
    return Shift(float(dx / shrink), float(dy / shrink), moved, is_clear=True)


def moved_back(
    picture: NDArray[np.uint8], valid: NDArray[np.bool_], shift: Shift
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """The second picture with its shift undone to the nearest pixel, and where it then has data.

    By whole pixels: interpolation would blur this picture and not the other, and contrast is what is compared.
    """
    import cv2

    height, width = valid.shape
    matrix = np.array([[1, 0, -round(shift.dx)], [0, 1, -round(shift.dy)]], np.float32)
    flat = cv2.warpAffine(picture, matrix, (width, height), flags=cv2.INTER_NEAREST, borderMode=cv2.BORDER_REPLICATE)
    there = cv2.warpAffine(valid.astype(np.uint8), matrix, (width, height), flags=cv2.INTER_NEAREST, borderValue=0)
    return np.asarray(flat, np.uint8), np.asarray(there > 0)


def _edges(picture: NDArray[np.uint8], valid: NDArray[np.bool_], size: tuple[int, int]) -> NDArray[np.float32]:
    """Gradient magnitude of lightness, compressed so that a few strong edges do not decide, mean 0 where valid."""
    import cv2

    grey = cv2.cvtColor(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), cv2.COLOR_RGB2GRAY).astype(np.float32)
    grey = cv2.GaussianBlur(grey, (0, 0), 1.0)
    strength = np.sqrt(np.hypot(cv2.Sobel(grey, cv2.CV_32F, 1, 0), cv2.Sobel(grey, cv2.CV_32F, 0, 1)))
    inside = cv2.erode(valid.astype(np.uint8), np.ones((5, 5), np.uint8), borderValue=1) > 0
    if not inside.any():
        return np.zeros_like(strength)
    strength = strength - strength[inside].mean()
    strength[~inside] = 0
    return np.asarray(strength, np.float32)


def _moved(picture: NDArray[np.float32], dx: float, dy: float) -> NDArray[np.float32]:
    import cv2

    matrix = np.array([[1, 0, dx], [0, 1, dy]], np.float32)
    return np.asarray(cv2.warpAffine(picture, matrix, picture.shape[::-1], flags=cv2.INTER_LINEAR), np.float32)


def _correlation(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    size = float(np.sqrt((first * first).sum(dtype=np.float64) * (second * second).sum(dtype=np.float64)))
    return float((first * second).sum(dtype=np.float64)) / size if size else 0.0
