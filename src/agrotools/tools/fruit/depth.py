"""Reading depth: how far away each pixel's surface is, measured along the optical axis.

Readable are 16- and 32-bit PNG and TIFF (one band) and NumPy arrays (``.npy``) of numbers. What an array claims to be
is read from its header and checked before anything is loaded; objects (pickles) are never read.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.vision.formats import MAX_PIXELS, damaged, file_format, too_large

_NUMPY = b"\x93NUMPY"
_READABLE = "readable depth: PNG or TIFF of 16 bits or more with one band, or a NumPy array (.npy) of numbers"
_NEAREST_MM, _FARTHEST_MM = 20.0, 200_000.0
"""No depth camera measures nearer or farther; a median outside is another unit."""


@dataclass(frozen=True, eq=False)
class DepthMap:
    """Depth per pixel. ``mm``: float32 (rows, columns), NaN where it was not measured. ``notes`` as in a result."""

    mm: NDArray[np.float32]
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, pixels."""
        return self.mm.shape[1], self.mm.shape[0]

    @property
    def measured_share(self) -> float:
        """Share of pixels with a depth, 0..1."""
        return float(np.isfinite(self.mm).mean())


def read_depth(
    path: Path, unit_mm: float | None = None, *, argument: str = "depth", shown_as: str | None = None
) -> DepthMap:
    """Read a depth file.

    Args:
        unit_mm: what one step of the stored values is, millimetres. None: one millimetre, if the values can be that.
        argument: name of the tool's argument that an error is about.
        shown_as: name of the file in messages.

    Returns:
        Depth in millimetres; what is stored as 0, negative, NaN, infinite or "no data" is NaN.

    Raises:
        ToolError: ``file_not_found``; ``unreadable_file`` (another format, 8 bits, colours, several bands, objects, cut
            short); ``limit`` (over 100 million pixels); ``nothing_found`` (no depth anywhere); ``missing_metadata``
            where no unit was given and the values cannot be millimetres.
    """
    name = shown_as or path.name
    stored = _depth_from_array(path, name, argument) if _is_array(path) else _depth_from_image(path, name, argument)
    if stored.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            valid = np.isfinite(stored) & (stored > 0)
    else:
        valid = stored > 0
        if stored.dtype.itemsize <= 2:
            valid &= stored < np.iinfo(stored.dtype).max  # the largest value is "too far" on many cameras
    if not valid.any():
        raise ToolError(
            "nothing_found",
            f"{name} holds no depth anywhere: all values are 0, negative or missing",
            argument=argument,
            hint="pass the depth that belongs to this image, or distance_mm",
        )
    mm = np.full(stored.shape, np.nan, np.float32)
    mm[valid] = stored[valid].astype(np.float64) * (1.0 if unit_mm is None else unit_mm)
    median = float(np.median(mm[valid]))
    if not _NEAREST_MM <= median <= _FARTHEST_MM:
        if unit_mm is None:
            raise ToolError(
                "missing_metadata",
                f"the unit of {name} is not known, and millimetres they are not: the median value is {median:.4g}",
                argument="depth_unit_mm",
                hint="pass depth_unit_mm: 1000 for metres, 0.1 for tenths of a millimetre",
            )
        raise ToolError(
            "invalid_argument",
            f"with depth_unit_mm = {unit_mm:g} the median depth of {name} is {median:.4g} mm, which no camera measures",
            argument="depth_unit_mm",
            hint="depth_unit_mm is what one step of the stored values is, in millimetres: 1000 for metres",
        )
    taken = "as millimetres: depth_unit_mm was not given" if unit_mm is None else f"in steps of {unit_mm:g} mm"
    return DepthMap(mm, (f"depth values taken {taken}; {100 * valid.mean():.0f} % of pixels have one",))


def _is_array(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_NUMPY)) == _NUMPY
    except (OSError, ValueError):
        return False  # the reader of pictures says what is wrong


def _depth_from_image(path: Path, name: str, argument: str) -> NDArray[Any]:
    from agrotools.vision.rasters import open_raster

    try:
        kind = file_format(path, argument=argument, shown_as=name)
    except ToolError as error:
        if error.kind == "unreadable_file" and "format" in (error.hint or ""):
            error.hint = _READABLE
        raise
    if kind in ("jpeg", "webp"):
        raise ToolError(
            "unreadable_file",
            f"{name} is a {kind.upper()} picture, which cannot hold depth",
            argument=argument,
            hint=_READABLE,
        )
    with open_raster(path, argument=argument, shown_as=name) as raster:
        if raster.count != 1 or raster.dtype in ("uint8", "int8"):
            what = f"{raster.count} bands" if raster.count != 1 else "8 bits per pixel, too few for depth"
            raise ToolError(
                "unreadable_file",
                f"{name} has {what}: it is a picture of depth, or none",
                argument=argument,
                hint=_READABLE,
            )
        values = raster.read([1])[0]
        largest = {"uint16": 65535.0, "int16": 32767.0}.get(raster.dtype)
    if largest is not None:
        values = np.where(values == largest, np.nan, values)
    return values


def _depth_from_array(path: Path, name: str, argument: str) -> NDArray[Any]:
    """An array of numbers, after its header was found to be that of one."""
    from numpy.lib import format as npy

    try:
        with path.open("rb") as file:
            version = npy.read_magic(file)
            if version not in ((1, 0), (2, 0)):
                raise ValueError(f"version {version[0]}.{version[1]} of the format")
            read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read_header(file)
            begins = file.tell()
    except (OSError, ValueError, EOFError, SyntaxError, RecursionError, MemoryError) as error:
        raise damaged(name, argument, error) from error
    if dtype.hasobject or dtype.kind not in "uif" or dtype.itemsize > 8 or dtype.subdtype is not None:
        raise ToolError(
            "unreadable_file", f"{name} holds {dtype}, not plain numbers", argument=argument, hint=_READABLE
        )
    if dtype.kind in "ui" and dtype.itemsize == 1:
        raise ToolError(
            "unreadable_file", f"{name} has 8 bits per pixel, too few for depth", argument=argument, hint=_READABLE
        )
    sides = shape
    if len(shape) == 3 and 1 in (shape[0], shape[2]):
        sides = shape[:2] if shape[2] == 1 else shape[1:]
    if len(sides) != 2 or min(sides) < 1:
        raise ToolError(
            "unreadable_file",
            f"{name} has shape {' x '.join(map(str, shape)) or '()'}; depth is rows x columns",
            argument=argument,
            hint=_READABLE,
        )
    if sides[0] * sides[1] > MAX_PIXELS:
        raise too_large(sides[1], sides[0], name, argument)
    count = sides[0] * sides[1]
    try:
        with path.open("rb") as file:
            file.seek(begins)
            values = np.fromfile(file, dtype, count)
    except (OSError, ValueError) as error:
        raise damaged(name, argument, error) from error
    if values.size < count:
        raise ToolError("unreadable_file", f"{name} is damaged or cut short", argument=argument)
    return values.reshape(sides, order="F" if fortran else "C").astype(dtype.newbyteorder("="), copy=False)
