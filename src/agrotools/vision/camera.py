"""Pinhole cameras: from pixels to directions and back, and where the focal length comes from."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.vision.formats import PHOTO_FORMATS, file_format

Floats = NDArray[np.floating[Any]]

_SAME_SHAPE = 0.01
_DIAGONAL_35MM = 43.2666
"""Diagonal of a 36 x 24 mm frame, which the 35 mm equivalent focal length refers to (CIPA DCG-001)."""


@dataclass(frozen=True)
class Camera:
    """A camera without lens distortion, looking along +z, x to the right and y down.

    ``fx_px`` and ``fy_px``: focal length in pixels; ``cx_px`` and ``cy_px``: where the optical axis meets the picture,
    from its top left corner (the first pixel's centre is at 0.5, 0.5).
    """

    fx_px: float
    fy_px: float
    cx_px: float
    cy_px: float

    @property
    def focal_px(self) -> float:
        """Mean focal length, pixels."""
        return float(np.sqrt(self.fx_px * self.fy_px))

    def rays(self, x: Floats, y: Floats) -> Floats:
        """Unit vectors (..., 3) towards the picture points ``x``, ``y`` (pixels)."""
        directions = np.stack(
            [(x - self.cx_px) / self.fx_px, (y - self.cy_px) / self.fy_px, np.ones(np.shape(x))], axis=-1
        )
        return directions / np.linalg.norm(directions, axis=-1, keepdims=True)

    def project(self, points: Floats) -> tuple[Floats, Floats]:
        """Picture points (x, y) in pixels of directions or points (..., 3) with z > 0."""
        depth = np.maximum(points[..., 2], 1e-9)
        return (
            self.fx_px * points[..., 0] / depth + self.cx_px,
            self.fy_px * points[..., 1] / depth + self.cy_px,
        )

    def scaled(self, across: float, down: float) -> "Camera":
        """The camera of a picture that was resized by these factors."""
        return Camera(self.fx_px * across, self.fy_px * down, self.cx_px * across, self.cy_px * down)

    def moved(self, x: float, y: float) -> "Camera":
        """The camera of a cut-out whose top left corner was at ``x``, ``y``."""
        return replace(self, cx_px=self.cx_px - x, cy_px=self.cy_px - y)


def camera_at_size(camera: Camera, calibrated: tuple[int, int], size: tuple[int, int], name: str) -> Camera:
    """A camera calibrated at one picture size (width, height), for a picture of another: fx * W / W_calibrated.

    Raises:
        ToolError: ``shape_mismatch`` where the two differ in shape, so that one was cropped and not resized.
    """
    across, down = size[0] / calibrated[0], size[1] / calibrated[1]
    if abs(across / down - 1) > _SAME_SHAPE:
        raise ToolError(
            "shape_mismatch",
            f"the intrinsics belong to {calibrated[0]} x {calibrated[1]} pixels, {name} is {size[0]} x {size[1]}: "
            "not the same picture resized",
            argument="fx_px",
            hint="pass the intrinsics of this picture; for a crop, shift cx_px and cy_px by its corner",
        )
    return camera.scaled(across, down)


def focal_from_lens(focal_mm: float, sensor_width_mm: float, width_px: int) -> float:
    """Focal length in pixels from that of the lens and the width of the sensor, which the picture fills."""
    return focal_mm / sensor_width_mm * width_px


def focal_from_exif(path: Path, size: tuple[int, int]) -> float | None:
    """Focal length in pixels by the 35 mm equivalent that a photograph's EXIF block names; None without one.

    An estimate: the equivalent is rounded to whole millimetres, refers to the diagonal, and does not know of crops.
    """
    kind = file_format(path)
    if kind not in PHOTO_FORMATS:
        return None
    from PIL import Image

    try:
        with Image.open(path, formats=[PHOTO_FORMATS[kind]]) as image:
            value = float(image.getexif().get_ifd(0x8769).get(0xA405, 0))
    except Exception:  # a damaged EXIF block says nothing
        return None
    if not 5 <= value <= 2000:
        return None
    return value / _DIAGONAL_35MM * float(np.hypot(*size))
