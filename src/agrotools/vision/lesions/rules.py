"""Lesions by rule: what has left the leaf's own healthy green for yellow, brown, grey or black.

Nothing is learnt, so it serves any leaf; it knows colours only, and cannot tell a lesion from dirt or a dry vein.
"""

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.lesions.features import LeafView, local_mean
from agrotools.vision.lesions.leaf import Lab

SMOOTHING_PX = 1.2
LEAST_SHIFT = 12.0
"""Loss of green, in units of a*, from which tissue counts as diseased, where healthy tissue is even.

Chosen with :data:`SPREADS` on the 343 coffee leaves with masks of esgario/lara2018 for the error in severity.
"""
SPREADS = 4.0
MOST_SHIFT = 18.0
"""Where healthy tissue scatters a great deal (light, blur), the loss that counts is no larger than this..."""
MOST_SHIFT_IN_FIELD = 25.0
"""...or than this where other plants may have been taken for part of the leaf."""
_RIM_PX = 5
_MOSTLY_RIM = 0.5
NO_GREEN = -4.0
"""Where even the greenest tissue has a higher a* than this, a leaf shows no healthy tissue."""
GENERIC_GREEN: Lab = (45.0, -16.0, 26.0)
"""Healthy tissue of a leaf that shows none: the green of an ordinary broad leaf in daylight."""


def healthy_colour(view: LeafView) -> Lab:
    """Median Lab of the greener half of the leaf (by hue angle, so that shade does not matter)."""
    lab = view.lab[view.mask]
    hue = np.arctan2(lab[:, 1], np.maximum(lab[:, 2], 1))
    green = lab[hue <= np.median(hue)]
    lightness, a, b = (float(value) for value in np.median(green, axis=0))
    return lightness, a, b


def loss_of_green(view: LeafView, healthy: Lab) -> tuple[NDArray[np.float32], float]:
    """How far each pixel of the leaf is from healthy, and how far healthy tissue itself scatters.

    The healthy colour is taken darker in the shade and lighter in the light, along a line through black. Glare is
    bluish and light, and counts as healthy.

    Returns:
        float32 (pixels of the mask,) in units of a*, and a robust standard deviation in the same units.
    """
    lab = local_mean(view.lab, view.mask, SMOOTHING_PX)[view.mask]
    shade = np.clip(lab[:, 0] / max(healthy[0], 5.0), 0.35, 1.15).astype(np.float32)
    shift = lab[:, 1] - np.float32(healthy[1]) * shade
    glare = (lab[:, 0] > healthy[0] + 8) & (lab[:, 2] < 0.75 * healthy[2]) & (lab[:, 1] < 0)
    shift = np.where(glare, np.float32(0), shift)
    even = shift[shift <= np.median(shift)]
    spread = 1.4826 * float(np.median(np.abs(even - np.median(shift)))) if even.size else 0.0
    return np.asarray(shift, np.float32), spread


def lesion_level(view: LeafView, healthy: Lab, most_shift: float = MOST_SHIFT) -> NDArray[np.float32]:
    """Float32 (pixels of the mask,), 1 and more where a pixel counts as diseased at ordinary sensitivity."""
    shift, spread = loss_of_green(view, healthy)
    return shift / np.float32(min(max(LEAST_SHIFT, SPREADS * spread), most_shift))


def without_rim(view: LeafView, level: NDArray[np.float32]) -> NDArray[np.float32]:
    """The level with patches taken out that hug the leaf's outline: before a busy background those are background.

    A patch that reaches further in stays whole.
    """
    import cv2

    lesion = np.zeros(view.mask.shape, np.uint8)
    lesion[view.mask] = level >= 1
    inset = np.asarray(cv2.distanceTransform(np.pad(view.mask, 1).astype(np.uint8), cv2.DIST_L2, 3))[1:-1, 1:-1]
    count, labels = cv2.connectedComponents(lesion, connectivity=8)
    numbers = np.asarray(labels, np.intp)
    areas = np.maximum(np.bincount(numbers.ravel(), minlength=count), 1)
    share = np.bincount(numbers.ravel(), (inset <= _RIM_PX).ravel(), count) / areas
    at_rim: NDArray[np.bool_] = np.asarray(share > _MOSTLY_RIM)
    at_rim[0] = False
    return np.where(at_rim[numbers][view.mask], np.float32(0), level)
