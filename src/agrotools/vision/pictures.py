"""What readers return: pictures and class maps in one documented form."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class RgbImage:
    """A colour picture as a person sees it: upright (EXIF), on white where it is transparent.

    ``pixels``: uint8 (rows, columns, 3), sRGB, 0..255. ``valid``: bool (rows, columns), False where fully transparent
    or without data; None where every pixel holds data. ``notes`` and ``flags`` as in a tool's result.
    """

    pixels: NDArray[np.uint8]
    valid: NDArray[np.bool_] | None = None
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def height(self) -> int:
        return self.pixels.shape[0]

    @property
    def width(self) -> int:
        return self.pixels.shape[1]

    @property
    def is_grey(self) -> bool:
        """Whether all three channels are equal everywhere, so that colour says nothing."""
        red, green, blue = (self.pixels[..., channel] for channel in range(3))
        return bool(np.array_equal(red, green) and np.array_equal(green, blue))


@dataclass(frozen=True, eq=False)
class LabelImage:
    """Class numbers per pixel. ``classes``: int32 (rows, columns); ``valid``: bool, False for no-data, or None."""

    classes: NDArray[np.int32]
    valid: NDArray[np.bool_] | None = None
    notes: tuple[str, ...] = ()
