"""Writing drawn pictures, rasters and class maps."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def save_photo(path: Path, rgb: NDArray[Any], quality: int = 93) -> None:
    """A JPEG of uint8 (rows, columns, 3) with full colour, so that thin coloured strokes stay what they are."""
    from PIL import Image

    Image.fromarray(rgb).save(path, "JPEG", quality=quality, subsampling=0)


def save_labels(path: Path, classes: NDArray[np.uint8]) -> None:
    """A PNG of class numbers (rows, columns)."""
    from PIL import Image

    Image.fromarray(classes).save(path, "PNG")


def save_raster(path: Path, bands: NDArray[np.uint16], names: Sequence[str], gsd_m: float, number: int) -> None:
    """A GeoTIFF (bands, rows, columns) in UTM coordinates of nowhere in particular, with band names and the scale of
    reflectance times 10,000; ``number`` moves it, so that no two lie on one place."""
    import rasterio
    from rasterio.transform import from_origin

    profile = {
        "driver": "GTiff", "count": bands.shape[0], "height": bands.shape[1], "width": bands.shape[2],
        "dtype": "uint16", "crs": "EPSG:32632", "compress": "deflate", "predictor": 2,
        "transform": from_origin(500_000 + 10 * number, 5_800_000, gsd_m, gsd_m),
    }  # fmt: skip
    with rasterio.open(path, "w", **profile) as target:
        target.write(bands)
        for index, name in enumerate(names, start=1):
            target.set_band_description(index, name)
        target.scales = (1e-4,) * len(names)
