"""Files that a reader of images may meet, made up on the spot: good, odd and hostile ones."""

import struct
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SOIL, CROP, WEED = (120, 95, 75), (60, 150, 50), (70, 165, 60)


def write_raster(
    path: Path, bands: NDArray[Any], names: Sequence[str] = (), **profile: Any
) -> Path:
    """A GeoTIFF (or ``driver=...``) with these bands (bands, rows, columns)."""
    import rasterio
    from rasterio.errors import NotGeoreferencedWarning

    count, height, width = bands.shape
    settings = {
        "driver": "GTiff",
        "dtype": bands.dtype,
        "count": count,
        "width": width,
        "height": height,
    } | profile
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with rasterio.open(path, "w", **settings) as file:
            file.write(bands)
            for number, name in enumerate(names, start=1):
                file.set_band_description(number, name)
    return path


def png_header_only(path: Path, width: int, height: int) -> Path:
    """A PNG of that size whose pixels are absent: whoever decodes it finds a few bytes for millions of pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)
    return path


def vrt_as_tif(path: Path, target: Path) -> Path:
    """A virtual raster, called .tif, that shows the pixels of another file."""
    path.write_text(
        '<VRTDataset rasterXSize="60" rasterYSize="40"><VRTRasterBand dataType="Byte" band="1"><SimpleSource>'
        f'<SourceFilename relativeToVRT="0">{target}</SourceFilename><SourceBand>1</SourceBand>'
        "</SimpleSource></VRTRasterBand></VRTDataset>"
    )
    return path


def noisy(
    colour: tuple[int, int, int], shape: tuple[int, int], seed: int = 0, sigma: float = 5.0
) -> NDArray[np.uint8]:
    """One colour with sensor noise, uint8 (rows, columns, 3)."""
    draw = np.random.default_rng(seed)
    return np.clip(np.array(colour) + draw.normal(0, sigma, (*shape, 3)), 0, 255).astype(np.uint8)


def discs(
    shape: tuple[int, int], centres: Sequence[tuple[float, float]], radius: float
) -> NDArray[np.bool_]:
    """Discs at (x, y), bool (rows, columns)."""
    y, x = np.mgrid[0 : shape[0], 0 : shape[1]]
    mask = np.zeros(shape, np.bool_)
    for centre_x, centre_y in centres:
        mask |= (x - centre_x) ** 2 + (y - centre_y) ** 2 <= radius**2
    return mask


def field(mask: NDArray[np.bool_], seed: int = 0) -> NDArray[np.uint8]:
    """A photograph of green plants on brown soil, uint8 (rows, columns, 3)."""
    soil, plants = (
        noisy(SOIL, (mask.shape[0], mask.shape[1]), seed),
        noisy(CROP, (mask.shape[0], mask.shape[1]), seed),
    )
    return np.where(mask[..., None], plants, soil)


def planted_rows(
    spacing: int = 60, shape: tuple[int, int] = (300, 400)
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Crop in vertical rows and weeds midway between them: two masks, bool (rows, columns)."""
    columns = range(spacing // 2, shape[1], spacing)
    crop = discs(shape, [(x, y) for x in columns for y in range(10, shape[0], 24)], 8)
    weeds = [
        (x + spacing / 2, y)
        for k, x in enumerate(columns)
        for y in range(35 + 20 * k, shape[0], 140)
    ]
    return crop, discs(shape, weeds, 5) & ~crop


def row_field(shape: tuple[int, int] = (120, 160)) -> NDArray[np.uint8]:
    """A field of which 30 % is in green rows, 12 of every 40 pixels from x = 10 on, uint8 (rows, columns, 3)."""
    in_row = (np.arange(shape[1]) - 10) % 40 < 12
    return field(np.broadcast_to(in_row, shape))
