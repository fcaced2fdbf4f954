"""Connected parts of a mask."""

import numpy as np
from numpy.typing import NDArray


def small_parts(mask: NDArray[np.bool_], least_px: int) -> NDArray[np.bool_] | None:
    """Where a mask has parts (8-connected) of fewer than ``least_px`` pixels; None where it has none."""
    import cv2

    # Counting apart is faster than OpenCV's statistics, which find boxes and centroids too.
    count, labels = cv2.connectedComponents(mask.view(np.uint8), connectivity=8)
    places = np.asarray(labels, np.int32)
    small = np.bincount(places.ravel(), minlength=count) < least_px
    small[0] = False
    return np.take(small, places) if small.any() else None
