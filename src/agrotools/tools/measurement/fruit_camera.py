"""The camera behind a picture of fruit: from arguments, else from what is known of the file, else from EXIF."""

from dataclasses import dataclass
from pathlib import Path

from agrotools.core import SampleFile, ToolError
from agrotools.vision.camera import Camera, camera_at_size, focal_from_exif, focal_from_lens


@dataclass(frozen=True)
class CameraArguments:
    """What a call says of the camera; all of it may be left out."""

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
        focal = focal_from_lens(given.focal_mm, given.sensor_width_mm, size[0])
        note = f"focal length {focal:.1f} px from {given.focal_mm:g} mm and a sensor {given.sensor_width_mm:g} mm wide"
        return ChosenCamera(_with_centre(given, focal, focal, size), (note + ", which the picture fills",))
    if known is not None and known.intrinsics is not None:
        inner = known.intrinsics
        camera = Camera(inner.fx_px, inner.fy_px, inner.cx_px, inner.cy_px)
        calibrated = _calibrated(given) or (
            (known.width_px, known.height_px) if known.width_px and known.height_px else size
        )
        scaled = camera_at_size(camera, calibrated, size, name)
        return ChosenCamera(
            scaled, (f"intrinsics of the file, fx = {scaled.fx_px:.1f} px{_resized(calibrated, size)}",)
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
        _with_centre(given, focal, focal, size),
        (f"focal length {focal:.0f} px estimated from the 35 mm equivalent in EXIF: sizes may be off by some percent",),
        ("estimated_intrinsics",),
    )


def _from_pixels(given: CameraArguments, size: tuple[int, int], name: str) -> ChosenCamera:
    assert given.fx_px is not None
    calibrated = _calibrated(given) or size
    camera = _with_centre(given, given.fx_px, given.fy_px or given.fx_px, calibrated)
    scaled = camera_at_size(camera, calibrated, size, name)
    notes = [f"fx = {scaled.fx_px:.1f} px{_resized(calibrated, size)}"]
    if given.cx_px is None or given.cy_px is None:
        notes.append("optical axis taken through the middle of the picture")
    flags = ()
    if not 0.2 <= scaled.fx_px / max(size) <= 20:
        flags = ("unusual_focal_length",)
        notes.append("such a focal length is unusual for a picture of this size: is it that of another size?")
    return ChosenCamera(scaled, tuple(notes), flags)


def _with_centre(given: CameraArguments, fx_px: float, fy_px: float, size: tuple[int, int]) -> Camera:
    cx_px = size[0] / 2 if given.cx_px is None else given.cx_px
    cy_px = size[1] / 2 if given.cy_px is None else given.cy_px
    return Camera(fx_px, fy_px, cx_px, cy_px)


def _calibrated(given: CameraArguments) -> tuple[int, int] | None:
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


def _resized(calibrated: tuple[int, int], size: tuple[int, int]) -> str:
    return "" if calibrated == size else f", scaled from {calibrated[0]} x {calibrated[1]} pixels"
