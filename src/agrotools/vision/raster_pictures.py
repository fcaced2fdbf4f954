"""Rasters as pictures: for a person to look at, and for methods that need colours."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.vision.band_roles import Role
from agrotools.vision.pictures import RgbImage
from agrotools.vision.rasters import RasterSource


def picture_of(source: RasterSource, *, argument: str = "image") -> RgbImage:
    """A raster as 8-bit RGB: its red, green and blue bands, else its first three, else its only one as grey.

    Values of 8 bits stay as they are, others are scaled by one factor for all bands (99.9th percentile to 255).

    Raises:
        ToolError: ``nothing_found`` where it holds no data, and as :meth:`RasterSource.read`.
    """
    palette = _palette(source)
    if palette is not None:
        values = source.read([1])[0]
        valid = np.isfinite(values)
        _refuse_if_empty(valid, source.name, argument)
        return RgbImage(palette[np.where(valid, values, 0).astype(np.int64) & 255], _or_none(valid))
    numbers = [source.roles[role] for role in ("R", "G", "B") if role in source.roles]
    if len(numbers) < 3:
        colours = [number for number in range(1, source.count + 1) if number != source.alpha_band]
        numbers = colours[:3] if len(colours) >= 3 else colours[:1] * 3
    values = source.read(numbers)
    valid: NDArray[np.bool_] = np.asarray(np.isfinite(values).all(axis=0))
    _refuse_if_empty(valid, source.name, argument)
    notes: tuple[str, ...] = ()
    if source.dtype != "uint8":
        top = float(np.percentile(values[:, valid], 99.9))
        notes = (f"{source.dtype} values scaled by one factor for all bands ({top:.6g} to 255)",)
        values = values * np.float32(255.0 / top if top > 0 else 1.0)
    pixels = np.clip(np.where(valid, values, 255), 0, 255).round().astype(np.uint8)
    return RgbImage(np.ascontiguousarray(pixels.transpose(1, 2, 0)), _or_none(valid), notes)


def stretched_picture(bands: Mapping[Role, NDArray[np.float32]]) -> NDArray[np.uint8]:
    """Bands as a picture to look at, uint8 (rows, columns, 3), each stretched between its 1st and 99th percentile.

    Natural colours where there are red, green and blue; else the customary false colours (infrared as red, red as
    green, green as blue) with what there is; else grey.
    """
    orders: tuple[tuple[Role, Role, Role], ...] = (
        ("R", "G", "B"),
        ("NIR", "R", "G"),
        ("NIR", "RE", "G"),
        ("NIR", "R", "R"),
        ("NIR", "RE", "RE"),
    )
    for wanted in orders:
        if all(role in bands for role in wanted):
            return np.dstack([_stretched(bands[role]) for role in wanted])
    grey = _stretched(next(iter(bands.values())))
    return np.dstack([grey, grey, grey])


def _stretched(band: NDArray[np.float32]) -> NDArray[np.uint8]:
    valid = np.isfinite(band)
    sample = band[valid]
    if not sample.size:
        return np.full(band.shape, 255, np.uint8)
    low, high = np.percentile(sample[:: max(1, sample.size // 500_000)], (1, 99))
    scaled = (np.where(valid, band, high) - low) / max(high - low, 1e-12)
    return np.where(valid, np.clip(scaled, 0, 1) * 255, 255).astype(np.uint8)


def _palette(source: RasterSource) -> NDArray[np.uint8] | None:
    if source.count != 1 or source.dtype != "uint8":
        return None
    try:
        colours = source.dataset.colormap(1)
    except ValueError:
        return None
    table = np.zeros((256, 3), np.uint8)
    for index, colour in colours.items():
        table[index & 255] = colour[:3]
    return table


def _refuse_if_empty(valid: NDArray[np.bool_], name: str, argument: str) -> None:
    if not valid.any():
        raise ToolError(
            "nothing_found",
            f"{name} holds no data anywhere: all pixels are no-data",
            argument=argument,
            hint="check the file's nodata value and the part that was cut out",
        )


def _or_none(valid: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    return None if valid.all() else valid
