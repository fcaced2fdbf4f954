"""Pictures and arrays in memory as arguments of tools that take files: they are written for the time of one call."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError

if TYPE_CHECKING:
    from PIL.Image import Image

_PNG_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA", "I;16"})
_WIDER = {"bool": "uint8", "float16": "float32", "int8": "int16", "int64": "int32", "uint64": "uint32"}
"""Types of values that TIFF or its readers lack, and the type that they are written as."""
_MOST_BANDS = 512


def in_memory(value: Any) -> bool:
    """True for a Pillow image, a numpy array, and any object that numpy can turn into an array of two dimensions."""
    return hasattr(value, "__array_interface__") or (hasattr(value, "__array__") and getattr(value, "ndim", 0) > 0)


def write_arrays(
    arguments: Mapping[str, Any], names: Collection[str], new_folder: Callable[[], Path]
) -> dict[str, Any]:
    """Return the arguments with pictures and arrays in ``names`` replaced by the paths of lossless files in
    ``new_folder()``. Pillow images and uint8 arrays (rows, columns), (rows, columns, 3) and (rows, columns, 4)
    become PNG; other arrays (rows, columns[, bands]), and all arrays of a call that names its ``bands``, become
    TIFF. ToolError ``invalid_argument``: another shape, or a type that is no number."""
    written = dict(arguments)
    is_raster = arguments.get("bands") is not None
    folder: Path | None = None
    for name, value in arguments.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        if name not in names or not any(in_memory(each) for each in values):
            continue
        folder = folder or new_folder()
        paths = [
            _write(each, folder / (name if len(values) == 1 else f"{name}_{number}"), is_raster)
            if in_memory(each)
            else each
            for number, each in enumerate(values, start=1)
        ]
        written[name] = paths if isinstance(value, (list, tuple)) else paths[0]
    return written


def _write(value: Any, stem: Path, is_raster: bool) -> Path:
    from PIL import Image, ImageOps

    if isinstance(value, Image.Image):
        upright = ImageOps.exif_transpose(value)
        if upright.mode in _PNG_MODES:
            return _write_png(upright, stem)
        if upright.mode not in ("I", "F"):
            return _write_png(upright.convert("RGB"), stem)
        value = upright
    array = np.asarray(value)
    _refuse_unfit(array, stem.name)
    array = array.astype(_WIDER.get(array.dtype.name, array.dtype), copy=False)
    picture = array.dtype == np.uint8 and (array.ndim == 2 or (array.shape[2] in (3, 4) and not is_raster))
    return _write_png(Image.fromarray(array), stem) if picture else _write_tiff(array, stem)


def _refuse_unfit(array: NDArray[Any], name: str) -> None:
    if array.dtype.kind not in "buif":
        why = f"{name}: an array of {array.dtype} holds no picture"
        raise ToolError("invalid_argument", why, argument=name, hint="pass whole numbers or floats")
    bands = array.shape[2] if array.ndim == 3 else 1
    first_is_band = array.ndim == 3 and array.shape[0] <= 16 < array.shape[2]
    if array.ndim not in (2, 3) or not array.size or bands > _MOST_BANDS or first_is_band:
        why = f"{name}: an array of shape {array.shape} is not (rows, columns) or (rows, columns, bands)"
        hint = "bands come last: numpy.moveaxis(array, 0, -1)" if array.ndim == 3 else "pass one picture"
        raise ToolError("invalid_argument", why, argument=name, hint=hint)


def _write_png(image: "Image", stem: Path) -> Path:
    path = stem.with_name(f"{stem.name}.png")
    image.save(path, "PNG", compress_level=1)
    return path


def _write_tiff(array: NDArray[Any], stem: Path) -> Path:
    import rasterio

    from agrotools.vision.rasters import without_place_warning

    path = stem.with_name(f"{stem.name}.tif")
    bands = array[..., None] if array.ndim == 2 else array
    rows, columns, count = bands.shape
    profile = {"driver": "GTiff", "height": rows, "width": columns, "count": count, "dtype": array.dtype.name}
    with without_place_warning(), rasterio.open(path, "w", **profile, photometric="MINISBLACK", alpha="NO") as target:
        target.write(np.moveaxis(bands, -1, 0))
    return path
