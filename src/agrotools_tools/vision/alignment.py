"""Alignment of two rasters: the second one is resampled to the grid of the first if they differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.vision import Box
from agrotools.vision.formats import refuse_outside
from agrotools.vision.rasters import RasterSource

_SAME_GRID_PX = 0.01
"""Largest difference of equal grids, as a share of a pixel."""
_MOST_PX = 16_000_000
"""Maximum number of pixels of the second raster that are read at once for resampling."""


@dataclass(frozen=True, eq=False)
class AlignedRaster(RasterSource):
    """Raster resampled to the grid of ``onto``: bilinear, or nearest pixel for class numbers."""

    source: RasterSource
    onto: RasterSource
    nearest: bool
    pixels_per_pixel: float
    """number of pixels of the source per pixel of the grid"""

    @property
    def width(self) -> int:
        return self.onto.width

    @property
    def height(self) -> int:
        return self.onto.height

    def read(self, bands: Sequence[int], region: Box | None = None) -> NDArray[np.float32]:
        """Read bands on the grid, float32 (bands, rows, columns); NaN if the source has no data."""
        x0, y0, x1, y1 = region or (0, 0, self.width, self.height)
        refuse_outside((x0, y0, x1, y1), self.width, self.height, self.name)
        step = max(1, int(_MOST_PX / max(1.0, self.pixels_per_pixel * (x1 - x0))))
        tops = range(y0, y1, step)
        return np.concatenate(
            [self._read_part(bands, (x0, top, x1, min(y1, top + step))) for top in tops], axis=1
        )

    def _read_part(self, bands: Sequence[int], part: Box) -> NDArray[np.float32]:
        from rasterio import Affine
        from rasterio.enums import Resampling
        from rasterio.warp import reproject

        x0, y0, x1, y1 = part
        values = np.full((len(bands), y1 - y0, x1 - x0), np.nan, np.float32)
        window = self._window(part)
        if window is not None:
            # Missing data is NaN at this point, whatever the file used for it, so it does not affect neighbours.
            reproject(
                self.source.read(bands, window),
                values,
                src_transform=self.dataset.transform * Affine.translation(window[0], window[1]),
                src_crs=self.dataset.crs,
                src_nodata=np.nan,
                dst_transform=self.onto.dataset.transform * Affine.translation(x0, y0),
                dst_crs=self.onto.dataset.crs,
                dst_nodata=np.nan,
                resampling=Resampling.nearest if self.nearest else Resampling.bilinear,
                num_threads=1,
            )
        return values

    def _window(self, part: Box) -> Box | None:
        """Return the part of the source that covers a part of the grid, with a margin; None if there is none."""
        columns, rows = _places(self.onto.dataset, self.dataset, part)
        if not columns.size:
            return None
        margin = 3 + 0.02 * max(np.ptp(columns), np.ptp(rows))
        x0, y0 = max(0, int(columns.min() - margin)), max(0, int(rows.min() - margin))
        x1 = min(self.source.width, int(columns.max() + margin) + 1)
        y1 = min(self.source.height, int(rows.max() + margin) + 1)
        return (x0, y0, x1, y1) if x1 > x0 and y1 > y0 else None


_GEOREFERENCE = "georeference both, or give both as plain pictures of the same size"


def align(first: RasterSource, second: RasterSource, *, labels: bool = False) -> RasterSource:
    """Return the second raster on the grid of the first: itself if it is on that grid, else an :class:`AlignedRaster`.

    ToolError ``crs_mismatch`` if only one has a coordinate reference system, if the systems cannot be converted into
    each other, or if neither has one and the positions differ; ``shape_mismatch`` if neither has one and the sizes
    differ; ``nothing_found`` if they do not overlap.
    """
    located = [
        each.dataset.crs is not None and not each.dataset.transform.is_identity
        for each in (first, second)
    ]
    if located[0] != located[1]:
        missing, other = (second, first) if located[0] else (first, second)
        why = f"{missing.name} has no coordinate reference system and {other.name} has one"
        raise ToolError("crs_mismatch", why, argument=missing.argument, hint=_GEOREFERENCE)
    if not located[0]:
        check_sizes((first.height, first.width), (second.height, second.width), (first.name, second.name),
                    second.argument)  # fmt: skip
    if _are_one_grid(first.dataset, second.dataset):
        return second
    if not located[0]:
        why = f"{first.name} and {second.name} lie at different places, and neither has a coordinate reference system"
        raise ToolError("crs_mismatch", why, argument=second.argument, hint=_GEOREFERENCE)
    try:
        columns, rows = _places(first.dataset, second.dataset, (0, 0, first.width, first.height))
    except Exception as error:  # various exceptions of GDAL
        raise ToolError(
            "crs_mismatch",
            f"{second.name} cannot be brought into the coordinate system of {first.name}",
            argument=second.argument,
            hint="give both in one coordinate reference system",
        ) from error
    outside = not columns.size or columns.max() <= 0 or rows.max() <= 0
    if outside or columns.min() >= second.width or rows.min() >= second.height:
        raise ToolError(
            "nothing_found",
            f"{first.name} and {second.name} show different places: they do not overlap",
            argument=second.argument,
            hint="give two rasters of the same place",
        )
    ratio = float(np.ptp(columns) * np.ptp(rows) / (first.width * first.height))
    own = (
        second.dataset,
        second.name,
        second.argument,
        first.sampling,
        second.alpha_band,
        second.border,
    )
    return AlignedRaster(*own, second, first, labels, ratio)


def check_sizes(
    first: tuple[int, int], second: tuple[int, int], names: tuple[str, str], argument: str
) -> None:
    """Refuse pictures of different sizes, given as (rows, columns); ToolError ``shape_mismatch``."""
    if first != second:
        why = (
            f"{names[0]} is {first[1]} x {first[0]} pixels and {names[1]} {second[1]} x {second[0]}"
        )
        hint = (
            "without a coordinate reference system the two must show the same place pixel by pixel"
        )
        raise ToolError("shape_mismatch", why, argument=argument, hint=hint)


def _are_one_grid(first: Any, second: Any) -> bool:
    if first.crs != second.crs or (first.width, first.height) != (second.width, second.height):
        return False
    # Corners of the second grid, in pixels of the first.
    back = ~first.transform * second.transform
    corners = ((0, 0), (first.width, 0), (0, first.height), (first.width, first.height))
    return all(
        max(abs(a - b) for a, b in zip(back * corner, corner, strict=True)) < _SAME_GRID_PX
        for corner in corners
    )


def _places(first: Any, second: Any, box: Box) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return columns and rows in the second dataset of a grid of points over a box of the first."""
    from rasterio.warp import transform

    x0, y0, x1, y1 = box
    columns, rows = (
        part.ravel() for part in np.meshgrid(np.linspace(x0, x1, 17), np.linspace(y0, y1, 17))
    )
    xs, ys = first.transform * (columns, rows)
    if first.crs != second.crs:
        moved = transform(first.crs, second.crs, xs.tolist(), ys.tolist())
        xs, ys = (np.asarray(part, np.float64) for part in moved[:2])
    there = np.isfinite(xs) & np.isfinite(ys)
    across, down = ~second.transform * (xs[there], ys[there])
    return np.asarray(across, np.float64), np.asarray(down, np.float64)
