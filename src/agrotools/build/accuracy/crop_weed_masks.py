"""Comparing a mask of crop and weeds with the truth of a photograph."""

import numpy as np
from numpy.typing import NDArray

CROP, WEED = 1, 2


def compared(
    predicted: NDArray[np.uint8], truth: NDArray[np.integer], plants: NDArray[np.bool_]
) -> tuple[dict[str, float | None], dict[str, NDArray[np.int64]]]:
    """Figures of a picture (None where the truth has nothing of a class), and pixels of intersection and union.

    Args:
        predicted: class numbers (rows, columns), 1 crop, 2 weeds.
        truth: the same numbers; plants that nobody named are 0.
        plants: which pixels are plants, named or not.

    Returns:
        ``vegetation_iou``; ``crop_iou_named``, ``weed_iou_named``, where plants that nobody named count neither way;
        ``crop_iou_strict``, ``weed_iou_strict``, where they are soil in the truth; ``weed_share_error_pct``, absolute
        error of weeds among the named plants, in percentage points.
    """
    unnamed = plants & (truth == 0)
    regions = {"vegetation_iou": ((predicted == CROP) | (predicted == WEED), plants)}
    for name, label in (("crop", CROP), ("weed", WEED)):
        regions[f"{name}_iou_named"] = ((predicted == label) & ~unnamed, truth == label)
        regions[f"{name}_iou_strict"] = (predicted == label, truth == label)
    counts = {
        name: np.array([np.count_nonzero(found & true), np.count_nonzero(found | true)])
        for name, (found, true) in regions.items()
    }
    figures: dict[str, float | None] = {
        name: float(both[0] / both[1]) if regions[name][1].any() else None for name, both in counts.items()
    }
    named = truth > 0
    crop, weed = (np.count_nonzero((predicted == label) & ~unnamed) for label in (CROP, WEED))
    share = 100 * weed / max(crop + weed, 1)
    figures["weed_share_error_pct"] = abs(share - 100 * np.count_nonzero(truth == WEED) / np.count_nonzero(named))
    return figures, counts
