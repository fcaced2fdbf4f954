"""Picture of a field in memory."""

import numpy as np


def rows(shape: tuple[int, int] = (120, 160)) -> np.ndarray:
    """Return a picture of green rows on brown soil, uint8 (rows, columns, 3)."""
    picture = np.full((*shape, 3), (120, 85, 60), float)
    for left in range(10, shape[1], 40):
        picture[:, left : left + 12] = (60, 140, 50)
    return np.clip(picture + np.random.default_rng(0).normal(0, 6, picture.shape), 0, 255).astype(np.uint8)
