"""The form of a mask: pieces, outline, roundness."""

import numpy as np
from numpy.typing import NDArray

from agrotools.tools.segmentation.region_result import RegionShape


def shape_of(mask: NDArray[np.bool_]) -> RegionShape:
    """The form of a mask, bool (rows, columns), with at least one pixel.

    Of moments, hull and perimeter (Crofton's formula over four directions) the largest piece is measured, without its
    holes filled; pieces touch by sides or corners.
    """
    import cv2
    from skimage.measure import regionprops

    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    areas = stats[1:count, cv2.CC_STAT_AREA]
    largest = 1 + int(np.argmax(areas))
    x, y, w, h = (int(stats[largest, key]) for key in range(4))
    piece = (np.asarray(labels)[y : y + h, x : x + w] == largest).astype(np.uint8)
    form = regionprops(piece)[0]
    area, perimeter = float(piece.sum()), float(form.perimeter_crofton)
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    hull = _hull_px(piece)
    return RegionShape(
        pieces=count - 1,
        box=(int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1),
        largest_px=int(area),
        perimeter_px=perimeter,
        equivalent_diameter_px=float(np.sqrt(4 * area / np.pi)),
        eccentricity=float(form.eccentricity),
        solidity=min(1.0, area / hull),
        circularity=min(1.0, 4 * np.pi * area / perimeter**2) if perimeter > 0 else 1.0,
    )


def _hull_px(piece: NDArray[np.uint8]) -> float:
    """Pixels inside the convex hull, those that it passes through included."""
    import cv2

    contours, _ = cv2.findContours(piece, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    hull = cv2.convexHull(max(contours, key=len))
    filled = np.zeros(piece.shape, np.uint8)
    cv2.fillConvexPoly(filled, hull, 1)
    return float(filled.sum())
