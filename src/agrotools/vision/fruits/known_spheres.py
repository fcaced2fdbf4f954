"""The focal length of a camera from a sphere of known size in its picture, where nobody calibrated it."""

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.vision.camera import Camera
from agrotools.vision.formats import Box
from agrotools.vision.fruits.colour import find_fruit_pixels
from agrotools.vision.fruits.finding import fruit_in_box
from agrotools.vision.fruits.measuring import Depth, View, smoothed

_ROUNDS = 12
_CLOSE = 1e-4


def focal_from_sphere(
    pixels: NDArray[np.uint8], depth_mm: Depth, box: Box, diameter_mm: float, start_px: float | None = None
) -> float:
    """Focal length, pixels, at which the sphere in ``box`` measures ``diameter_mm``.

    The optical axis is taken through the middle of the picture and pixels as square. With lens distortion it is the
    focal length that holds where the sphere hangs.

    Args:
        pixels: uint8 (rows, columns, 3).
        depth_mm: float32 (rows, columns), registered to the picture, NaN where unknown.
        box: around the sphere, which nothing should hide.
        diameter_mm: its true diameter.
        start_px: a first guess; None: that of a field of view of 60 degrees.

    Raises:
        ToolError: ``nothing_found`` where no sphere can be measured in the box.
    """
    height, width = depth_mm.shape
    focal = start_px or width / (2 * np.tan(np.radians(30)))
    colour, smooth = find_fruit_pixels(pixels), smoothed(depth_mm)
    for _ in range(_ROUNDS):
        camera = Camera(focal, focal, width / 2, height / 2)
        view = View(camera, colour.mask, depth_mm, smooth, None, (0.5 * diameter_mm, 2 * diameter_mm))
        sphere, _ = fruit_in_box(view, colour, pixels, box)
        if sphere is None:
            raise ToolError(
                "nothing_found",
                f"no sphere can be measured in the box {list(box)}",
                hint="choose one that is seen whole",
            )
        factor = sphere.diameter_mm / diameter_mm
        focal *= factor
        if abs(factor - 1) < _CLOSE:
            break
    return float(focal)
