"""Pictures that are nearly the same: two copies of one, re-encoded, resized, brightened, trimmed or mirrored.

A hash of 63 bits by the signs of low frequencies (DCT of a 32 x 32 grey thumbnail against their median; Zauner,
Implementation and benchmarking of perceptual image hash functions, 2010) finds candidates; they are the same if their
colour thumbnails of 12 x 12 correlate as well, which two fields of the same crop do not. The limits were chosen on
photographs where ``performance/near_duplicates.py`` counts both errors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError

_HASHED_SIDE, _COMPARED_SIDE = 32, 12
MOST_BITS = 22
"""Hashes that differ in more of their 63 bits are of different pictures (two unrelated ones differ in about 31)."""
LEAST_CORRELATION = 0.92
_ROWS = 2048


@dataclass(frozen=True, eq=False)
class Look:
    """What is compared of a picture.

    ``hashes``: uint64 (2,), of the picture and of its mirror image. ``thumbnails``: float32 (2, 432), of both, with
    mean 0 and length 1. A picture of one colour has no look.
    """

    hashes: NDArray[np.uint64]
    thumbnails: NDArray[np.float32]


def look_of(pixels: NDArray[np.uint8]) -> Look | None:
    """The look of a picture, uint8 (rows, columns, 3); None where it is of one colour."""
    import cv2

    small = cv2.resize(pixels, (_HASHED_SIDE, _HASHED_SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
    if small.std() < 1.0:
        return None
    smaller = cv2.resize(small, (_COMPARED_SIDE, _COMPARED_SIDE), interpolation=cv2.INTER_AREA)
    thumbnails = np.stack([smaller, smaller[:, ::-1]]).reshape(2, -1) - smaller.mean()
    thumbnails /= np.maximum(np.linalg.norm(thumbnails, axis=1, keepdims=True), 1e-6)
    hashes = np.array([_hash(view.mean(axis=2)) for view in (small, small[:, ::-1])], np.uint64)
    return Look(hashes, thumbnails.astype(np.float32))


def _hash(grey: NDArray[np.float32]) -> int:
    from scipy.fft import dctn

    low = np.asarray(dctn(grey, norm="ortho"))[:8, :8].ravel()[1:]
    return int("".join("1" if value > np.median(low) else "0" for value in low), 2)


def look_of_file(path: Path) -> Look | None:
    """The look of a picture file; None where it cannot be read as a picture or is of one colour."""
    from agrotools.vision.reading import read_image

    try:
        return look_of(np.asarray(read_image(path).pixels))
    except ToolError:
        return None


def near_pairs(looks: Sequence[Look]) -> Iterator[tuple[int, int, float]]:
    """Pairs of positions (first < second) of pictures that are nearly the same, with the correlation of their looks."""
    if len(looks) < 2:
        return
    hashes = np.stack([look.hashes for look in looks])
    for start in range(0, len(looks), _ROWS):
        # Mirrored or not: the first picture as it is, against both views of the second.
        differ = np.bitwise_count(hashes[start : start + _ROWS, None, :1] ^ hashes[None, :, :]).min(axis=2)
        for row, second in zip(*np.nonzero(differ <= MOST_BITS), strict=True):
            first = start + int(row)
            if first < second:
                alike = float((looks[second].thumbnails @ looks[first].thumbnails[0]).max())
                if alike >= LEAST_CORRELATION:
                    yield first, int(second), alike
