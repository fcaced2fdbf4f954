"""Pinhole camera of a picture (focal length from arguments, metadata or EXIF), and the depth of its pixels.

Depth is the distance of each pixel's surface along the optical axis. Supported files are 16- and 32-bit PNG and TIFF
(one band) and NumPy arrays (``.npy``) of numbers. The header of an array is checked before any data is loaded; objects
(pickles) are never read.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agrotools.core import SampleFile, ToolError
from agrotools.vision.formats import MAX_PIXELS, PHOTO_FORMATS, damaged, file_format, too_large
from agrotools.vision.rasters import open_raster

Floats = NDArray[np.floating[Any]]

_SAME_SHAPE = 0.01
_DIAGONAL_35MM = 43.2666
"""Diagonal of a 36 x 24 mm frame, which the 35 mm equivalent focal length refers to (CIPA DCG-001)."""


class Camera(NamedTuple):
    """Camera without lens distortion, looking along +z, with x to the right and y down.

    ``fx_px``, ``fy_px``: focal length in pixels. ``cx_px``, ``cy_px``: intersection of the optical axis with the
    picture, pixels from its top left corner (the centre of the first pixel is at 0.5, 0.5).
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
        """Return unit vectors (..., 3) towards the picture points ``x``, ``y`` (pixels)."""
        directions = np.stack(
            [(x - self.cx_px) / self.fx_px, (y - self.cy_px) / self.fy_px, np.ones(np.shape(x))],
            axis=-1,
        )
        return directions / np.linalg.norm(directions, axis=-1, keepdims=True)

    def project(self, points: Floats) -> tuple[Floats, Floats]:
        """Project directions or points (..., 3) with z > 0 to picture points (x, y) in pixels."""
        depth = np.maximum(points[..., 2], 1e-9)
        return (
            self.fx_px * points[..., 0] / depth + self.cx_px,
            self.fy_px * points[..., 1] / depth + self.cy_px,
        )


def _focal_from_exif(path: Path, size: tuple[int, int]) -> float | None:
    """Return the focal length in pixels from the 35 mm equivalent in the EXIF data of a photograph, None without one.

    The value is an estimate: the equivalent is rounded to whole millimetres, refers to the diagonal, and ignores crops.
    """
    from PIL import Image

    kind, value = file_format(path), 0.0
    with suppress(Exception):  # a damaged EXIF block is ignored
        if kind in PHOTO_FORMATS:
            with Image.open(path, formats=[PHOTO_FORMATS[kind]]) as image:
                value = float(image.getexif().get_ifd(0x8769).get(0xA405, 0))
    return value / _DIAGONAL_35MM * float(np.hypot(*size)) if 5 <= value <= 2000 else None


class CameraArguments(NamedTuple):
    """Camera arguments of a call, all optional."""

    fx_px: float | None = None
    fy_px: float | None = None
    cx_px: float | None = None
    cy_px: float | None = None
    focal_mm: float | None = None
    sensor_width_mm: float | None = None
    calibrated_width_px: int | None = None
    calibrated_height_px: int | None = None


class ChosenCamera(NamedTuple):
    camera: Camera
    notes: tuple[str, ...]
    flags: tuple[str, ...] = ()


def choose_camera(
    arguments: CameraArguments,
    known: SampleFile | None,
    image: Path,
    size: tuple[int, int],
    name: str,
) -> ChosenCamera:
    """Choose the camera of a picture of ``size`` (width, height): from arguments, known intrinsics, or EXIF.
    ToolError ``missing_metadata``, ``shape_mismatch``, ``invalid_argument`` (one of two paired arguments alone)."""
    if arguments.fx_px is None and arguments.fy_px is not None:
        raise ToolError(
            "invalid_argument", "fy_px was given without fx_px", argument="fx_px", hint="pass both"
        )
    _refuse_one_of("focal_mm", "sensor_width_mm", arguments, hint="pass both, or fx_px alone")
    _refuse_one_of("calibrated_width_px", "calibrated_height_px", arguments)
    width, height = arguments.calibrated_width_px, arguments.calibrated_height_px
    calibrated = None if width is None or height is None else (width, height)
    inner = known.intrinsics if known else None
    if arguments.fx_px is not None:
        calibrated = calibrated or size
        camera = _camera_with_centre(
            arguments, arguments.fx_px, arguments.fy_px or arguments.fx_px, calibrated
        )
        camera, note = _camera_at_size(camera, calibrated, size, name)
        is_middle = arguments.cx_px is None or arguments.cy_px is None
        notes = (
            (note, "optical axis taken through the middle of the picture") if is_middle else (note,)
        )
        is_usual = 0.2 <= camera.fx_px / max(size) <= 20
        return ChosenCamera(camera, notes, () if is_usual else ("unusual_focal_length",))
    if arguments.focal_mm is not None and arguments.sensor_width_mm is not None:
        focal_mm, sensor_mm = arguments.focal_mm, arguments.sensor_width_mm
        focal = focal_mm / sensor_mm * size[0]
        note = (
            f"focal length {focal:.1f} px from {focal_mm:g} mm and a sensor {sensor_mm:g} mm wide"
        )
        return ChosenCamera(
            _camera_with_centre(arguments, focal, focal, size),
            (note + ", which the picture fills",),
        )
    if known is not None and inner is not None:
        if calibrated is None:
            calibrated = (
                (known.width_px, known.height_px) if known.width_px and known.height_px else size
            )
        camera = Camera(inner.fx_px, inner.fy_px, inner.cx_px, inner.cy_px)
        camera, note = _camera_at_size(camera, calibrated, size, name)
        return ChosenCamera(camera, (f"intrinsics of the file, {note}",))
    focal = _focal_from_exif(image, size)
    if focal is None:
        why = f"the focal length of the camera behind {name} is not known, so pixels cannot be turned into millimetres"
        hint = "pass fx_px (pixels), or focal_mm with sensor_width_mm"
        raise ToolError("missing_metadata", why, argument="fx_px", hint=hint)
    note = f"focal length {focal:.0f} px estimated from the 35 mm equivalent in EXIF: sizes may be off by some percent"
    return ChosenCamera(
        _camera_with_centre(arguments, focal, focal, size), (note,), ("estimated_intrinsics",)
    )


def _camera_with_centre(
    arguments: CameraArguments, fx_px: float, fy_px: float, size: tuple[int, int]
) -> Camera:
    cx_px = size[0] / 2 if arguments.cx_px is None else arguments.cx_px
    cy_px = size[1] / 2 if arguments.cy_px is None else arguments.cy_px
    return Camera(fx_px, fy_px, cx_px, cy_px)


def _camera_at_size(
    camera: Camera, calibrated: tuple[int, int], size: tuple[int, int], name: str
) -> tuple[Camera, str]:
    """Scale a camera calibrated at one picture size (width, height) to another: fx * W / W_calibrated. ToolError
    ``shape_mismatch`` if the aspect ratios differ, so that one picture is a crop of the other."""
    across, down = size[0] / calibrated[0], size[1] / calibrated[1]
    if abs(across / down - 1) > _SAME_SHAPE:
        sizes = f"{calibrated[0]} x {calibrated[1]} pixels, {name} is {size[0]} x {size[1]}"
        why = f"the intrinsics belong to {sizes}: not the same picture resized"
        hint = (
            "pass the intrinsics of this picture; for a crop, shift cx_px and cy_px by its corner"
        )
        raise ToolError("shape_mismatch", why, argument="fx_px", hint=hint)
    scaled = Camera(
        camera.fx_px * across, camera.fy_px * down, camera.cx_px * across, camera.cy_px * down
    )
    note = "" if calibrated == size else f", scaled from {calibrated[0]} x {calibrated[1]} pixels"
    return scaled, f"fx = {scaled.fx_px:.1f} px{note}"


def _refuse_one_of(
    first: str, second: str, arguments: CameraArguments, hint: str | None = None
) -> None:
    lacking = [name for name in (first, second) if getattr(arguments, name) is None]
    if len(lacking) == 1:
        raise ToolError(
            "invalid_argument",
            f"{first} and {second} belong together",
            argument=lacking[0],
            hint=hint,
        )


_NUMPY = b"\x93NUMPY"
_READABLE = "readable depth: PNG or TIFF of 16 bits or more with one band, or a NumPy array (.npy) of numbers"
_NEAREST_MM, _FARTHEST_MM = 20.0, 200_000.0
"""Range of the median depth, mm, of any depth camera; a median outside means that the unit is wrong."""


class DepthMap(NamedTuple):
    """Depth per pixel. ``mm``: float32 (rows, columns), NaN for pixels without a measurement."""

    mm: NDArray[np.float32]
    note: str


def read_depth(
    path: Path, unit_mm: float | None = None, *, shown_as: str | None = None
) -> DepthMap:
    """Read a depth file: millimetres, NaN where 0, negative, infinite or "no data" is stored.

    ``unit_mm``: millimetres per step of the stored values; None for one, if the values are plausible. ToolError
    ``file_not_found``, ``unreadable_file`` (another format, 8 bits, colours, several bands, objects), ``limit`` (over
    100 million pixels), ``nothing_found``, ``missing_metadata`` and ``invalid_argument`` (no unit or a wrong one).
    """
    name = shown_as or path.name
    stored = _depth_from_array(path, name) if _is_array(path) else _depth_from_image(path, name)
    with np.errstate(invalid="ignore"):
        valid = stored > 0
    if stored.dtype.kind == "f":
        valid &= np.isfinite(stored)
    elif stored.dtype.itemsize <= 2:
        valid &= (
            stored < np.iinfo(stored.dtype).max
        )  # many cameras store the largest value for "too far"
    if not valid.any():
        why = f"{name} holds no depth anywhere: all values are 0, negative or missing"
        hint = "pass the depth that belongs to this image, or distance_mm"
        raise ToolError("nothing_found", why, argument="depth", hint=hint)
    mm = np.full(stored.shape, np.nan, np.float32)
    mm[valid] = stored[valid].astype(np.float64) * (1.0 if unit_mm is None else unit_mm)
    median = float(np.median(mm[valid]))
    if not _NEAREST_MM <= median <= _FARTHEST_MM:
        if unit_mm is None:
            why = f"the unit of {name} is not known, and millimetres they are not: the median value is {median:.4g}"
            hint = "pass depth_unit_mm: 1000 for metres, 0.1 for tenths of a millimetre"
            raise ToolError("missing_metadata", why, argument="depth_unit_mm", hint=hint)
        what = f"the median depth of {name} is {median:.4g} mm"
        why = f"with depth_unit_mm = {unit_mm:g} {what}, which no camera measures"
        hint = "depth_unit_mm is what one step of the stored values is, in millimetres: 1000 for metres"
        raise ToolError("invalid_argument", why, argument="depth_unit_mm", hint=hint)
    interpretation = (
        "as millimetres: depth_unit_mm was not given"
        if unit_mm is None
        else f"in steps of {unit_mm:g} mm"
    )
    return DepthMap(
        mm, f"depth values taken {interpretation}; {100 * valid.mean():.0f} % of pixels have one"
    )


def _is_array(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_NUMPY)) == _NUMPY
    except (OSError, ValueError):
        return False  # the picture reader reports the error


def _no_depth(why: str) -> ToolError:
    return ToolError("unreadable_file", why, argument="depth", hint=_READABLE)


def _depth_from_image(path: Path, name: str) -> NDArray[Any]:
    try:
        kind = file_format(path, argument="depth", shown_as=name)
    except ToolError as error:
        if error.kind == "unreadable_file" and "format" in (error.hint or ""):
            error.hint = _READABLE
        raise
    if kind in ("jpeg", "webp"):
        raise _no_depth(f"{name} is a {kind.upper()} picture, which cannot hold depth")
    with open_raster(path, argument="depth", shown_as=name) as raster:
        if raster.count != 1 or raster.dtype in ("uint8", "int8"):
            what = (
                f"{raster.count} bands"
                if raster.count != 1
                else "8 bits per pixel, too few for depth"
            )
            raise _no_depth(f"{name} has {what}: it is a picture of depth, or none")
        values = raster.read([1])[0]
        largest = {"uint16": 65535.0, "int16": 32767.0}.get(raster.dtype)
    if largest is not None:
        values = np.where(values == largest, np.nan, values)
    return values


def _depth_from_array(path: Path, name: str) -> NDArray[Any]:
    """Read an array of numbers; its header is checked before any value is read."""
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (
        OSError,
        ValueError,
        EOFError,
        SyntaxError,
        RecursionError,
        MemoryError,
        OverflowError,
    ) as error:
        raise damaged(name, "depth", error) from error
    shape, dtype = values.shape, values.dtype
    if dtype.kind not in "uif" or dtype.itemsize > 8:
        raise _no_depth(f"{name} holds {dtype}, not plain numbers")
    if dtype.kind in "ui" and dtype.itemsize == 1:
        raise _no_depth(f"{name} has 8 bits per pixel, too few for depth")
    sides = shape
    if len(shape) == 3 and 1 in (shape[0], shape[2]):
        sides = shape[:2] if shape[2] == 1 else shape[1:]
    if len(sides) != 2 or min(sides) < 1:
        raise _no_depth(
            f"{name} has shape {' x '.join(map(str, shape)) or '()'}; depth is rows x columns"
        )
    if values.size > MAX_PIXELS:
        raise too_large(sides[1], sides[0], name, "depth")
    return np.array(values.reshape(sides), dtype.newbyteorder("="))
