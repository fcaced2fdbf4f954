"""What a pair of files shows to a person, and the scale of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.tools.scale import Scale, chosen_scale
from agrotools.tools.workspace import file_info
from agrotools.vision.change.map import PANEL_PX
from agrotools.vision.formats import Box
from agrotools.vision.pairs import blocks_of_rows
from agrotools.vision.rasters import RasterSource

LARGEST_WHOLE_PX = 25_000_000
"""What needs the whole picture in memory at once (taking specks out, photographs) is refused above this size."""


@dataclass(frozen=True)
class Asked:
    """What of a call holds for every way of finding change. Arguments of the tool, see there."""

    gsd_m: float | None = None
    region: Box | None = None
    min_area_px: int | None = None
    min_area_m2: float | None = None

    def least_px(self, gsd_m: float | None, default: int) -> int:
        """The smallest patch that counts, pixels, at this scale.

        Raises:
            ToolError: ``missing_metadata``, square metres without a scale; ``invalid_argument``, both given.
        """
        if self.min_area_px is not None and self.min_area_m2 is not None:
            raise ToolError(
                "invalid_argument",
                "min_area_px and min_area_m2 are both given",
                argument="min_area_m2",
                hint="give one of the two",
            )
        if self.min_area_px is not None:
            return self.min_area_px
        if self.min_area_m2 is None:
            return default
        if gsd_m is None:
            raise ToolError(
                "missing_metadata",
                "min_area_m2 needs the ground sampling distance, which is not known",
                argument="gsd_m",
                hint="give gsd_m (metres per pixel), or min_area_px",
            )
        return max(1, round(self.min_area_m2 / gsd_m**2))


def pair_scale(given: float | None, files: Sequence[Path], in_file: float | None = None) -> Scale:
    """Metres per pixel: the argument, else what is known of any of the files, else what the raster says."""
    known = next((info.gsd_m for info in map(file_info, files) if info and info.gsd_m), None)
    return chosen_scale(given, known, in_file)


def refuse_too_large(width: int, height: int, name: str, why: str) -> None:
    """Refuse what would have to lie in memory as a whole.

    Raises:
        ToolError: ``limit``.
    """
    if width * height > LARGEST_WHOLE_PX:
        raise ToolError(
            "limit",
            f"{name} has {width} x {height} pixels here; {why} is done up to {LARGEST_WHOLE_PX // 1_000_000} million",
            argument="before",
            hint="take a part with region",
        )


def thumbnail(source: RasterSource, bands: Sequence[int]) -> NDArray[np.float32]:
    """Bands of the whole raster at the size of a panel, float32 (bands, rows, columns), NaN where there is no data.

    Every n-th pixel, read in strips, so that the size of the raster does not matter.
    """
    step = max(1, int(np.ceil(max(source.width, source.height) / (2 * PANEL_PX))))
    if step == 1:
        return source.read(bands)
    whole = (0, 0, source.width, source.height)
    stored = int(source.dataset.block_shapes[0][0])
    parts = [
        source.read(bands, part)[:, -part[1] % step :: step, ::step].copy()
        for part in blocks_of_rows(whole, stored=stored)
    ]
    return np.concatenate(parts, axis=1)


def grey_pair(first: NDArray[np.float32], second: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Two bands as grey pictures with one stretch, so that equal values look equal; white where there is no data."""
    sample = np.concatenate([band[np.isfinite(band)] for band in (first, second)])
    low, high = np.percentile(sample, (1, 99)) if sample.size else (0.0, 1.0)

    def grey(band: NDArray[np.float32]) -> NDArray[np.uint8]:
        scaled = (np.where(np.isfinite(band), band, high) - low) / max(float(high - low), 1e-9)
        shown = np.where(np.isfinite(band), np.clip(scaled, 0, 1) * 235, 255).astype(np.uint8)
        return np.dstack([shown, shown, shown])

    return grey(first), grey(second)
