"""Hi-CNA as others that read it describe it, small: ``{train,test}/{image1,image2}/<stem>.tif`` of four bands, and
``change/<stem>.png``.

With what makes it hard to read: bands in the satellite's order or in that of a screen, 16 bits or 8, an infrared band
that calls itself alpha and is 0 over water, and masks with several codes.
"""

from pathlib import Path

import numpy as np
import rasterio
from numpy.typing import NDArray
from PIL import Image
from rasterio.transform import from_origin

SIZE = 160
SPECTRA = np.array(
    [
        (310, 420, 330, 1500),  # a crop
        (430, 600, 820, 1050),  # bare soil
        (330, 380, 260, 0),  # water
        (720, 820, 900, 1000),  # built up
    ],
    np.float64,
)
"""Blue, green, red and infrared of each land cover, 0 to 2047."""


def draw_bands(seed: int, share_pct: float) -> tuple[NDArray, NDArray, NDArray[np.bool_]]:
    """Blue, green, red and infrared of two dates, and where cropland was built over; fields that were bare and are now
    green are no change."""
    draw = np.random.default_rng([42, seed])
    rows, columns = np.mgrid[0:SIZE, 0:SIZE]
    before = (rows // 40 + columns // 53 + seed) % 2
    before[rows + columns > 2 * SIZE - 60] = 2
    changed = np.zeros((SIZE, SIZE), np.bool_)
    while 100 * changed.mean() < share_pct:
        x, y = (int(draw.integers(0, SIZE - 50)) for _ in range(2))
        changed[y : y + 16, x : x + 22] = True
    after = np.where(before == 2, 2, 1 - before)
    after[changed] = 3
    two = [
        np.clip(SPECTRA[land].transpose(2, 0, 1) + draw.normal(0, 15, (4, SIZE, SIZE)), 0, 2047)
        for land in (before, after)
    ]
    for bands, land in zip(two, (before, after), strict=True):
        bands[3][land == 2] = 0
    return *two, changed


def write_hi_cna(folder: Path, shares_pct: list[float], dtype: str = "uint16") -> Path:
    """Test pairs of which at least these shares changed, and a train split; returns ``folder``."""
    for split, shares in (("train", [50.0]), ("test", shares_pct)):
        for name in ("image1", "image2", "change"):
            (folder / split / name).mkdir(parents=True)
        for number, share in enumerate(shares):
            before, after, changed = draw_bands(number + 1000 * (split == "train"), share)
            stem = f"gf2_{number}"
            for name, bands in (("image1", before), ("image2", after)):
                write_bands(folder / split / name / f"{stem}.tif", bands[[2, 1, 0, 3]], dtype)
            codes = np.where(changed, 255 if number % 2 else 1 + np.arange(SIZE) // 90, 0)
            Image.fromarray(codes.astype(np.uint8)).save(folder / split / "change" / f"{stem}.png")
    return folder


def write_bands(path: Path, bands: NDArray, dtype: str) -> None:
    """0 to 2047 in that type; of 8 bits, as a picture with an alpha channel."""
    options = {"photometric": "RGB", "alpha": "YES"} if dtype == "uint8" else {}
    scale = {"uint8": 1 / 8, "uint16": 1.0, "float32": 1 / 2047}[dtype]
    profile = {
        "driver": "GTiff", "count": len(bands), "height": SIZE, "width": SIZE, "dtype": dtype, "crs": "EPSG:32650",
        "transform": from_origin(400_000, 3_400_000, 0.8, 0.8), **options,
    }  # fmt: skip
    with rasterio.open(path, "w", **profile) as raster:
        raster.write((bands * scale).astype(dtype))
