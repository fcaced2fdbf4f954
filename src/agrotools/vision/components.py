"""Connected parts of a mask."""

import math

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 3
"""How often what is certainly large grows within the mask before the parts of the rest are counted."""


def small_parts(mask: NDArray[np.bool_], least_px: int) -> NDArray[np.bool_] | None:
    """Where a mask has parts (8-connected) of fewer than ``least_px`` pixels; None where it has none."""
    import cv2

    area = np.ascontiguousarray(mask).view(np.uint8)
    # A part that holds a rectangle of so many pixels is large: few pixels are left to be counted, if any. The sides are
    # odd, since OpenCV shifts what it opens by even ones.
    rows = (math.isqrt(max(1, least_px - 1)) - 1) // 2 * 2 + 1
    rectangle = np.ones((rows, -(-least_px // rows) // 2 * 2 + 1), np.uint8)
    opened = cv2.morphologyEx(area, cv2.MORPH_OPEN, rectangle, borderType=cv2.BORDER_CONSTANT, borderValue=0)
    large = np.asarray(opened, np.uint8)
    around = np.ones((3, 3), np.uint8)
    for _ in range(_ROUNDS):
        large = np.asarray(cv2.dilate(large, around), np.uint8) & area
    rest = area ^ large
    places = np.flatnonzero(rest.view(np.bool_))  # several times as fast as of bytes
    if not places.size:
        return None
    beside = cv2.dilate(large, around).ravel()[places] > 0
    count, labels = cv2.connectedComponents(rest, connectivity=8)
    parts = np.asarray(labels, np.int32).ravel()[places]
    small = np.bincount(parts, minlength=count) < least_px
    small[parts[beside]] = False
    if not small[1:].any():
        return None
    found = np.zeros(mask.shape, np.bool_)
    found.ravel()[places] = small[parts]
    return found
