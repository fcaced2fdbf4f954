"""What a pack sees of a picture: the embeddings of the shipped nets, and colour and texture counted by hand."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.colour_space import lab_of
from agrotools.vision.recognition.net import Net

HAND_VERSION = 1
"""To be raised whenever :func:`hand_features` gives other numbers."""
_SIDE = 128
_A_RANGE, _B_RANGE, _BINS, _LIGHTNESS_BINS = (-48.0, 48.0), (-32.0, 64.0), 8, 8


def picture_features(pixels: NDArray[np.uint8], nets: Sequence[Net]) -> list[NDArray[np.float32]]:
    """Blocks of features of a picture, uint8 (rows, columns, 3): one for each net, then those made by hand.

    Raises:
        ToolError: ``backend_unavailable``, a net that does not run.
    """
    return [*(net.look(pixels).embedding[0] for net in nets), hand_features(pixels)]


def hand_features(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Float32 (101,): roots of a histogram of a* and b* (8 x 8) and one of L*, of uniform local binary patterns at two
    scales (Ojala et al. 2002), and mean and spread of Lab with the step from the middle to its surroundings."""
    import cv2

    small = np.asarray(cv2.resize(pixels, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA), np.uint8)
    lab = lab_of(small)
    colour, _, _ = np.histogram2d(
        np.clip(lab[..., 1].ravel(), *_inside(_A_RANGE)),
        np.clip(lab[..., 2].ravel(), *_inside(_B_RANGE)),
        bins=_BINS,
        range=(_A_RANGE, _B_RANGE),
    )
    lightness, _ = np.histogram(lab[..., 0], bins=_LIGHTNESS_BINS, range=(0, 100.001))
    grey = np.asarray(cv2.cvtColor(small, cv2.COLOR_RGB2GRAY), np.int16)
    coarse = np.asarray(cv2.resize(grey.astype(np.uint8), (64, 64), interpolation=cv2.INTER_AREA), np.int16)
    counts = [colour.ravel(), lightness, binary_patterns(grey), binary_patterns(coarse)]
    quarter = _SIDE // 4
    middle = np.zeros((_SIDE, _SIDE), np.bool_)
    middle[quarter:-quarter, quarter:-quarter] = True
    mean = lab.mean(axis=(0, 1)) / 50
    step = (lab[middle].mean(axis=0) - lab[~middle].mean(axis=0)) / 25
    shares = [np.sqrt(part / max(1.0, float(part.sum()))) for part in counts]
    return np.concatenate([*shares, mean, lab.std(axis=(0, 1)) / 25, step]).astype(np.float32)


def binary_patterns(grey: NDArray[np.int16]) -> NDArray[np.int64]:
    """Counts of rotation-invariant uniform local binary patterns of eight neighbours, int64 (10,)."""
    middle = grey[1:-1, 1:-1]
    rows, columns = grey.shape
    ring = ((0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0))
    bits = np.stack([grey[y : y + rows - 2, x : x + columns - 2] >= middle for y, x in ring]).astype(np.int8)
    changes = (bits != np.roll(bits, 1, axis=0)).sum(axis=0)
    pattern = np.where(changes <= 2, bits.sum(axis=0), 9)
    return np.bincount(pattern.ravel(), minlength=10)


def _inside(bounds: tuple[float, float]) -> tuple[float, float]:
    return bounds[0], bounds[1] - 1e-3
