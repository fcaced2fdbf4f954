"""What a pixel of a leaf looks like beside the rest of that leaf: features for telling lesions from healthy tissue.

All are relative to the leaf itself (its median colour, its local mean), and taken at a size that is set by the leaf's
area, so that neither exposure nor resolution changes them much.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.colour_space import lab_of
from agrotools.vision.formats import Box

SIDE_PX = 280
"""Leaves are looked at in a size where the square root of their area is this many pixels."""
FEATURES_VERSION = 1
_FINE = 0.8
_SCALES = (2.0, 5.0)
_LOCAL = (12.0, 35.0)
_MARGIN_PX = 4
CONTEXT_SCALES = (1.5, 4.0, 10.0, 25.0)


@dataclass(frozen=True, eq=False)
class LeafView:
    """A leaf cut out and brought to size.

    ``lab``: float32 (rows, columns, 3); ``mask``: bool (rows, columns); ``box``: where it lies in the picture.
    """

    lab: NDArray[np.float32]
    mask: NDArray[np.bool_]
    box: Box

    @property
    def median(self) -> NDArray[np.float32]:
        """Median Lab of the leaf."""
        return np.median(self.lab[self.mask], axis=0).astype(np.float32)


def leaf_view(pixels: NDArray[np.uint8], mask: NDArray[np.bool_], box: Box, side: int = SIDE_PX) -> LeafView:
    """Cut out and resize a leaf.

    Args:
        pixels: uint8 (rows, columns, 3), sRGB.
        mask: the leaf, bool (rows, columns), not empty.
        box: bounds of the mask.
    """
    import cv2

    factor = side / float(np.sqrt(np.count_nonzero(mask)))
    margin = int(np.ceil(_MARGIN_PX / factor))
    x0, y0 = max(0, box[0] - margin), max(0, box[1] - margin)
    x1, y1 = min(mask.shape[1], box[2] + margin), min(mask.shape[0], box[3] + margin)
    size = (max(1, round((x1 - x0) * factor)), max(1, round((y1 - y0) * factor)))
    how = cv2.INTER_AREA if factor < 1 else cv2.INTER_LINEAR
    cut = np.asarray(cv2.resize(np.ascontiguousarray(pixels[y0:y1, x0:x1]), size, interpolation=how), np.uint8)
    share = cv2.resize(mask[y0:y1, x0:x1].astype(np.uint8) * np.uint8(255), size, interpolation=how)
    inside = np.asarray(share) >= 128
    if not inside.any():
        inside = np.asarray(share) >= np.asarray(share).max()
    return LeafView(lab_of(cut), inside, (x0, y0, x1, y1))


def local_mean(values: NDArray[np.float32], mask: NDArray[np.bool_], sigma: float) -> NDArray[np.float32]:
    """Gaussian mean over the pixels of the mask alone; outside it, whatever is near. Wide ones at a smaller size."""
    import cv2

    weight = mask.astype(np.float32)
    height, width = mask.shape
    step = max(1, int(sigma // 4))
    masked = values * (weight[..., None] if values.ndim == 3 else weight)
    if step > 1:
        size = (max(1, width // step), max(1, height // step))
        masked = cv2.resize(masked, size, interpolation=cv2.INTER_AREA)
        weight = cv2.resize(weight, size, interpolation=cv2.INTER_AREA)
    sums = np.asarray(cv2.GaussianBlur(masked, (0, 0), sigma / step), np.float32)
    weights = np.maximum(np.asarray(cv2.GaussianBlur(weight, (0, 0), sigma / step), np.float32), np.float32(1e-4))
    mean = sums / (weights[..., None] if values.ndim == 3 else weights)
    if step > 1:
        mean = cv2.resize(mean, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(mean, np.float32)


def pixel_features(view: LeafView) -> NDArray[np.float32]:
    """Features of the leaf's pixels, float32 (pixels of the mask, features), in the order of ``lab[mask]``."""
    import cv2

    lab, mask = view.lab, view.mask
    median = view.median
    fine = local_mean(lab, mask, _FINE)[mask]
    means = [local_mean(lab, mask, sigma) for sigma in _SCALES]
    local = [local_mean(lab, mask, sigma)[mask] for sigma in _LOCAL]
    smooth = means[0]
    rough = np.sqrt(np.maximum(0, local_mean((lab - smooth) ** 2, mask, 3.0)))[mask]
    spread = np.median(np.abs(lab[mask] - median), axis=0).astype(np.float32)
    inset = np.asarray(cv2.distanceTransform(np.pad(mask, 1).astype(np.uint8), cv2.DIST_L2, 3))[1:-1, 1:-1][mask]
    chroma = np.hypot(fine[:, 1], fine[:, 2])
    columns = [
        fine - median,
        *(mean[mask] - median for mean in means),
        *(fine - mean for mean in local),
        means[1][mask] - local[1],
        rough,
        (chroma - float(np.median(chroma)))[:, None],
        np.degrees(np.arctan2(fine[:, 1], np.maximum(fine[:, 2], 1)))[:, None],
        np.minimum(inset, 30)[:, None],
        np.broadcast_to(median, fine.shape),
        np.broadcast_to(spread, fine.shape),
    ]
    return np.concatenate(columns, axis=1).astype(np.float32)


def context_features(view: LeafView, probability: NDArray[np.float32]) -> NDArray[np.float32]:
    """What a first guess says of a pixel's surroundings, float32 (pixels of the mask, features).

    As in auto-context (Tu and Bai 2010, IEEE TPAMI 32). ``probability``: float32 (pixels of the mask,).
    """
    guess = np.zeros(view.mask.shape, np.float32)
    guess[view.mask] = probability
    around = [local_mean(guess, view.mask, sigma)[view.mask][:, None] for sigma in CONTEXT_SCALES]
    overall = np.full((len(probability), 1), probability.mean(), np.float32)
    return np.concatenate([probability[:, None], *around, overall], axis=1)
