"""Colours as people tell them apart."""

import numpy as np
from numpy.typing import NDArray


def lab_of(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """CIE 1976 L*a*b* (D65) of sRGB pixels, float32 (rows, columns, 3): L 0..100."""
    import cv2

    return np.asarray(cv2.cvtColor(pixels.astype(np.float32) / np.float32(255), cv2.COLOR_RGB2LAB), np.float32)
