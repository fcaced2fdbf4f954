"""Pinhole camera of a picture: focal length from arguments, metadata or EXIF; pixels to directions and back."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agrotools.core import SampleFile, ToolError
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
    return Camera(camera.fx_px * across, camera.fy_px * down, camera.cx_px * across, camera.cy_px * down)


def focal_from_exif(path: Path, size: tuple[int, int]) -> float | None:
    """Focal length in pixels by the 35 mm equivalent that a photograph's EXIF block names; None without one.

    An estimate: the equivalent is rounded to whole millimetres, refers to the diagonal, and does not know of crops.
    """
    kind = file_format(path)
    if kind not in PHOTO_FORMATS:
        return None
    try:
        with Image.open(path, formats=[PHOTO_FORMATS[kind]]) as image:
            value = float(image.getexif().get_ifd(0x8769).get(0xA405, 0))
    except Exception:  # a damaged EXIF block says nothing
        return None
    if not 5 <= value <= 2000:
        return None
    return value / _DIAGONAL_35MM * float(np.hypot(*size))


@dataclass(frozen=True)
class CameraArguments:
    """Camera arguments of a call, all optional."""

    fx_px: float | None = None
    fy_px: float | None = None
    cx_px: float | None = None
    cy_px: float | None = None
    focal_mm: float | None = None
    sensor_width_mm: float | None = None
    calibrated_width_px: int | None = None
    calibrated_height_px: int | None = None


@dataclass(frozen=True)
class ChosenCamera:
    camera: Camera
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def choose_camera(
    given: CameraArguments, known: SampleFile | None, image: Path, size: tuple[int, int], name: str
) -> ChosenCamera:
    """The camera of a picture of ``size`` (width, height).

    Raises:
        ToolError: ``missing_metadata`` where no focal length is known; ``shape_mismatch`` where the intrinsics belong
            to a picture of another shape; ``invalid_argument`` for half of a pair.
    """
    if given.fx_px is None and given.fy_px is not None:
        raise ToolError("invalid_argument", "fy_px was given without fx_px", argument="fx_px", hint="pass both")
    if (given.focal_mm is None) != (given.sensor_width_mm is None):
        raise ToolError(
            "invalid_argument",
            "focal_mm and sensor_width_mm belong together",
            argument="sensor_width_mm" if given.sensor_width_mm is None else "focal_mm",
            hint="pass both, or fx_px alone",
        )
    if given.fx_px is not None:
        return _from_pixels(given, size, name)
    if given.focal_mm is not None and given.sensor_width_mm is not None:
        focal = given.focal_mm / given.sensor_width_mm * size[0]
        note = f"focal length {focal:.1f} px from {given.focal_mm:g} mm and a sensor {given.sensor_width_mm:g} mm wide"
        return ChosenCamera(_camera_with_centre(given, focal, focal, size), (note + ", which the picture fills",))
    if known is not None and known.intrinsics is not None:
        inner = known.intrinsics
        camera = Camera(inner.fx_px, inner.fy_px, inner.cx_px, inner.cy_px)
        calibrated = _calibrated_camera(given) or (
            (known.width_px, known.height_px) if known.width_px and known.height_px else size
        )
        scaled = camera_at_size(camera, calibrated, size, name)
        return ChosenCamera(
            scaled, (f"intrinsics of the file, fx = {scaled.fx_px:.1f} px{_resize_camera(calibrated, size)}",)
        )
    focal = focal_from_exif(image, size)
    if focal is None:
        raise ToolError(
            "missing_metadata",
            f"the focal length of the camera behind {name} is not known, so pixels cannot be turned into millimetres",
            argument="fx_px",
            hint="pass fx_px (pixels), or focal_mm with sensor_width_mm",
        )
    return ChosenCamera(
        _camera_with_centre(given, focal, focal, size),
        (f"focal length {focal:.0f} px estimated from the 35 mm equivalent in EXIF: sizes may be off by some percent",),
        ("estimated_intrinsics",),
    )


def _from_pixels(given: CameraArguments, size: tuple[int, int], name: str) -> ChosenCamera:
    assert given.fx_px is not None
    calibrated = _calibrated_camera(given) or size
    camera = _camera_with_centre(given, given.fx_px, given.fy_px or given.fx_px, calibrated)
    scaled = camera_at_size(camera, calibrated, size, name)
    notes = [f"fx = {scaled.fx_px:.1f} px{_resize_camera(calibrated, size)}"]
    if given.cx_px is None or given.cy_px is None:
        notes.append("optical axis taken through the middle of the picture")
    flags = ()
    if not 0.2 <= scaled.fx_px / max(size) <= 20:
        flags = ("unusual_focal_length",)
        notes.append("such a focal length is unusual for a picture of this size: is it that of another size?")
    return ChosenCamera(scaled, tuple(notes), flags)


def _camera_with_centre(given: CameraArguments, fx_px: float, fy_px: float, size: tuple[int, int]) -> Camera:
    cx_px = size[0] / 2 if given.cx_px is None else given.cx_px
    cy_px = size[1] / 2 if given.cy_px is None else given.cy_px
    return Camera(fx_px, fy_px, cx_px, cy_px)


def _calibrated_camera(given: CameraArguments) -> tuple[int, int] | None:
    width, height = given.calibrated_width_px, given.calibrated_height_px
    if width is None and height is None:
        return None
    if width is None or height is None:
        raise ToolError(
            "invalid_argument",
            "calibrated_width_px and calibrated_height_px belong together",
            argument="calibrated_height_px" if height is None else "calibrated_width_px",
        )
    return width, height


def _resize_camera(calibrated: tuple[int, int], size: tuple[int, int]) -> str:
    return "" if calibrated == size else f", scaled from {calibrated[0]} x {calibrated[1]} pixels"
