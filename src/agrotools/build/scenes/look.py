"""Looks of drawn files, to tell a picture drawn on another machine from another picture."""

import hashlib
import warnings
from pathlib import Path

import numpy as np

from agrotools.core import FrozenModel

_PARTS = 6
_ROUNDING = 0.01


class Look(FrozenModel):
    """The decoded pixels of a file: their hash, and a coarse picture to tell rounding from another picture.

    ``blocks``: mean of each of 6 by 6 parts of the picture over all bands, as hexadecimal bytes, 255 for the
    ``brightest``.
    """

    pixels: str
    blocks: str
    brightest: float

    def resembles(self, other: "Look") -> bool:
        """Return True if no part differs by more than 1 % of the brightest: the same picture, rounded otherwise."""
        mine, others = (np.frombuffer(bytes.fromhex(one.blocks), np.uint8) * one.brightest for one in (self, other))
        most = _ROUNDING * max(self.brightest, other.brightest)
        return len(mine) == len(others) and float(np.abs(mine - others).max()) <= 255 * most


def look_of(path: Path) -> Look:
    """Read a file of a drawn scene and return its look."""
    if path.suffix == ".tif":
        import rasterio

        with warnings.catch_warnings(action="ignore"), rasterio.open(path) as raster:  # not every one is at a place
            pixels = np.moveaxis(raster.read(), 0, -1)
    else:
        from PIL import Image

        with Image.open(path) as picture:
            pixels = np.atleast_3d(np.asarray(picture))
    described = f"{pixels.shape} {pixels.dtype.newbyteorder('<').str}".encode()
    digest = hashlib.sha256(described + np.ascontiguousarray(pixels.astype(pixels.dtype.newbyteorder("<"))).tobytes())
    plane = np.maximum(pixels.mean(axis=2, dtype=np.float64), 0.0)
    parts = [part.mean() for rows in np.array_split(plane, _PARTS) for part in np.array_split(rows, _PARTS, axis=1)]
    brightest = max(*parts, 1e-9)
    blocks = np.round(np.array(parts) * (255 / brightest)).astype(np.uint8).tobytes().hex()
    return Look(pixels=digest.hexdigest(), blocks=blocks, brightest=float(f"{brightest:.6g}"))
