"""Smooth random fields."""

import cv2
import numpy as np
from numpy.typing import NDArray


def smooth_field(rng: np.random.Generator, rows: int, columns: int, cell: float) -> NDArray[np.float32]:
    """A random field of mean about 0 and spread about 1 that varies over ``cell`` pixels."""
    small = rng.standard_normal((max(2, round(rows / cell) + 2), max(2, round(columns / cell) + 2))).astype(np.float32)
    return np.asarray(cv2.resize(small, (columns, rows), interpolation=cv2.INTER_CUBIC), dtype=np.float32)


def fractal_field(
    rng: np.random.Generator, rows: int, columns: int, largest: float, octaves: int, fall: float = 0.55
) -> NDArray[np.float32]:
    """Sum of ``octaves`` smooth fields, each half as coarse and ``fall`` times as strong; spread about 1."""
    total = np.zeros((rows, columns), dtype=np.float32)
    weight, power, cell = 1.0, 0.0, largest
    for _ in range(octaves):
        total += weight * smooth_field(rng, rows, columns, cell)
        power += weight * weight
        weight *= fall
        cell = max(1.0, cell / 2)
    return total / np.float32(np.sqrt(power))
