"""Blurring and resizing, with 32-bit floats in and out."""

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def blurred(plane: NDArray[np.floating[Any]], sigma: float) -> Floats:
    """A plane or stack (rows, columns[, bands]) smoothed by a Gaussian of that spread in pixels."""
    return np.asarray(cv2.GaussianBlur(np.asarray(plane, np.float32), (0, 0), sigma), dtype=np.float32)


def resized(plane: NDArray[np.floating[Any]], columns: int, rows: int, how: int = cv2.INTER_LINEAR) -> Floats:
    """A plane or stack at another size; ``how`` is one of the interpolations of cv2."""
    return np.asarray(cv2.resize(np.asarray(plane, np.float32), (columns, rows), interpolation=how), dtype=np.float32)
