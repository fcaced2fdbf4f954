"""From the maps of a detection net to boxes: a peak of heat is an object, and says how far its four sides are.

Objects as points, Zhou, Wang and Kraehenbuehl 2019; boxes from every place, Liu et al. 2020 (TTFNet).
"""

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.detection.boxes import Boxes, Detections, joined, without_doubles

MOST_PEAKS = 400
"""Of one tile the strongest peaks are taken."""


def boxes_of_maps(
    heat: NDArray[np.float32], distances: NDArray[np.float32], least: float, stride: int = 4
) -> Detections:
    """Objects of one picture, in its pixels, best first, without doubles.

    Args:
        heat: float32 (classes, rows, columns), 0..1, zero beside a peak.
        distances: float32 (4, rows, columns), pixels from the middle of a cell to the left, top, right and bottom.
        least: score that a peak needs.
        stride: pixels of the picture per cell.
    """
    kinds, rows, columns = np.nonzero(heat >= least)
    scores = heat[kinds, rows, columns]
    order = np.argsort(-scores, kind="stable")[:MOST_PEAKS]
    kinds, rows, columns, scores = kinds[order], rows[order], columns[order], scores[order]
    x, y = (columns + 0.5) * stride, (rows + 0.5) * stride
    left, top, right, bottom = distances[:, rows, columns].astype(np.float64)
    boxes: Boxes = np.stack([x - left, y - top, x + right, y + bottom], axis=1)
    return without_doubles(joined([Detections(boxes, scores.astype(np.float64), kinds.astype(np.int64))]))
