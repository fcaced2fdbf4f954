"""Files of drawn scenes, the same bytes for the same scene."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

NO_DATA = -9999.0
_CRS = "EPSG:32633"
_CORNER = (500_000.0, 5_000_000.0)
"""Where scenes lie that are nowhere: a round place in UTM zone 33 north."""


def save_picture(path: Path, pixels: NDArray[np.uint8], quality: int = 92) -> None:
    """``pixels``, uint8 (rows, columns, 3), as a JPEG with colours at half resolution, as most are."""
    import cv2

    content = cv2.imencode(".jpg", pixels[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    path.write_bytes(content.tobytes())


def save_heights(path: Path, heights: NDArray[np.float32], gsd_m: float) -> None:
    """Metres above ground, (rows, columns), NaN where there is no data, as a GeoTIFF of one band."""
    import rasterio
    from rasterio.transform import from_origin

    profile: dict[str, Any] = {
        "driver": "GTiff", "count": 1, "height": heights.shape[0], "width": heights.shape[1], "dtype": "float32",
        "crs": _CRS, "transform": from_origin(*_CORNER, gsd_m, gsd_m), "nodata": NO_DATA, "compress": "deflate",
        "predictor": 3,
    }  # fmt: skip
    with rasterio.open(path, "w", **profile) as target:
        # Centimetres are more than a laser resolves, and compress better than noise.
        rounded = np.round(heights.astype(np.float64), 2).astype(np.float32)
        target.write(np.where(np.isfinite(rounded), rounded, np.float32(NO_DATA)), 1)
        target.set_band_description(1, "height")
        target.set_band_unit(1, "m")
