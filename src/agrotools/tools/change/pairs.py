"""Pairs of pictures on one grid: the second raster is warped to the first, photographs must have one size."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.tools.change.result import PANEL_PX
from agrotools.tools.inputs import Scale, choose_scale
from agrotools.tools.workspace import file_info
from agrotools.vision import Box, Role
from agrotools.vision.band_roles import chosen_roles, roles_by_name
from agrotools.vision.formats import file_format
from agrotools.vision.rasters import RasterSource, open_raster
from agrotools.vision.reading import read_image

_TALLEST_BLOCK = 1024
_SAME_GRID_PX = 0.01
"""Grids that differ by less than this part of a pixel are one grid."""


@dataclass(frozen=True, eq=False)
class _ResampledRaster(RasterSource):
    """A warped raster; ``cover`` is the number of the band, added in warping, that is 0 where the raster ends."""

    cover: int | None = None

    @property
    def count(self) -> int:
        return self.dataset.count - (self.cover is not None)

    @property
    def band_names(self) -> tuple[str | None, ...]:
        return super().band_names[: self.count]

    def read(self, bands: Sequence[int], region: Box | None = None) -> NDArray[np.float32]:
        values = super().read(bands, region)
        if self.cover is not None:
            values[:, ~(super().read([self.cover], region)[0] > 0)] = np.nan
        return values


@dataclass(frozen=True, eq=False)
class RasterPair:
    """Two open rasters on the grid of the first: both are read with the same boxes."""

    first: RasterSource
    second: RasterSource
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def block_rows(self) -> int:
        """Rows per stored block of the first raster."""
        return int(self.first.dataset.block_shapes[0][0])


@dataclass(frozen=True, eq=False)
class PhotoPair:
    """``before``, ``after``: uint8 (rows, columns, 3); ``valid``: bool (rows, columns), where both have data."""

    before: NDArray[np.uint8]
    after: NDArray[np.uint8]
    valid: NDArray[np.bool_]
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def are_rasters(before: Path, after: Path, names: tuple[str, str]) -> bool:
    """True if a pair is read by raster drivers: one of the two is a GeoTIFF or an ENVI file.

    Raises:
        ToolError: ``file_not_found``, ``unreadable_file``.
    """
    kinds = (
        file_format(before, argument="before", shown_as=names[0]),
        file_format(after, argument="after", shown_as=names[1]),
    )
    return any(kind in ("tiff", "envi") for kind in kinds)


@contextmanager
def open_raster_pair(
    before: Path,
    after: Path,
    names: tuple[str, str],
    *,
    labels: bool = False,
    arguments: tuple[str, str] = ("before", "after"),
) -> Iterator[RasterPair]:
    """Open two rasters on the grid of the first.

    The second is resampled in memory where its grid or coordinate system differs: bilinear, or to the nearest pixel
    for labels and for rasters that do not declare what stands for no data.

    Args:
        names: of the two files, in messages.
        labels: whether the values are class numbers.

    Raises:
        ToolError: as :func:`~agrotools.vision.rasters.open_raster`; ``crs_mismatch`` where only one has a coordinate
            reference system, ``shape_mismatch`` where none has and the sizes differ, ``nothing_found`` where they do
            not overlap.
    """
    with (
        open_raster(before, argument=arguments[0], shown_as=names[0]) as first,
        open_raster(after, argument=arguments[1], shown_as=names[1]) as second,
    ):
        located = [_is_georeferenced(source.dataset) for source in (first, second)]
        if located[0] != located[1]:
            missing = names[located.index(False)]
            raise ToolError(
                "crs_mismatch",
                f"{missing} has no coordinate reference system and the other file of the pair has one",
                argument=arguments[located.index(False)],
                hint="georeference both, or give both as plain pictures of the same size",
            )
        if not located[0]:
            check_sizes((first.height, first.width), (second.height, second.width), names, arguments[1])
            yield RasterPair(first, second)
        elif _one_grid(first.dataset, second.dataset):
            yield RasterPair(first, second)
        else:
            _check_overlap(first.dataset, second.dataset, names, arguments[1])
            with _warp(first.dataset, second.dataset, names[1], arguments[1], labels) as vrt:
                cover = vrt.count if vrt.count > second.count else None
                moved = _ResampledRaster(vrt, names[1], arguments[1], first.sampling, cover)
                note = f"{names[1]} was resampled to the grid of {names[0]}"
                yield RasterPair(first, moved, (note,), ("resampled_to_before",))


def read_photo_pair(before: Path, after: Path, names: tuple[str, str]) -> PhotoPair:
    """Two photographs of one size, upright.

    Raises:
        ToolError: as :func:`~agrotools.vision.reading.read_image`; ``shape_mismatch``, ``nothing_found`` where no
            pixel has data in both.
    """
    first = read_image(before, argument="before", shown_as=names[0])
    second = read_image(after, argument="after", shown_as=names[1])
    check_sizes((first.height, first.width), (second.height, second.width), names, "after")
    valid = np.ones(first.pixels.shape[:2], np.bool_)
    for image in (first, second):
        if image.valid is not None:
            valid &= image.valid
    check_common(valid, names)
    notes = [f"{name}: {note}" for name, image in zip(names, (first, second), strict=True) for note in image.notes]
    return PhotoPair(first.pixels, second.pixels, valid, tuple(notes), tuple({*first.flags, *second.flags}))


def check_sizes(first: tuple[int, int], second: tuple[int, int], names: tuple[str, str], argument: str) -> None:
    """Refuse pictures of different sizes, given as (rows, columns).

    Raises:
        ToolError: ``shape_mismatch``.
    """
    if first != second:
        raise ToolError(
            "shape_mismatch",
            f"{names[0]} is {first[1]} x {first[0]} pixels and {names[1]} {second[1]} x {second[0]}",
            argument=argument,
            hint="without a coordinate reference system the two must show the same place pixel by pixel",
        )


def check_common(valid: NDArray[np.bool_], names: tuple[str, str]) -> None:
    """Refuse a pair without any pixel that has data in both.

    Raises:
        ToolError: ``nothing_found``.
    """
    if not valid.any():
        raise ToolError(
            "nothing_found",
            f"no pixel has data in both {names[0]} and {names[1]}",
            argument="after",
            hint="check the files' nodata values, and that they show the same place",
        )


def blocks_of_rows(box: Box, pixels: int = 2_000_000, stored: int = 1) -> Iterator[Box]:
    """A box cut into strips of about that many pixels, top to bottom.

    Args:
        stored: rows per stored block of the raster: strips end where blocks end, so that none is decoded twice.
    """
    x0, y0, x1, y1 = box
    step = max(1, pixels // max(1, x1 - x0))
    if 1 < stored <= _TALLEST_BLOCK:
        step = -(-step // stored) * stored
    top = y0
    while top < y1:
        bottom = min(y1, (top // step + 1) * step)
        yield x0, top, x1, bottom
        top = bottom


def _is_georeferenced(dataset: Any) -> bool:
    return dataset.crs is not None and not dataset.transform.is_identity


def _one_grid(first: Any, second: Any) -> bool:
    if first.crs != second.crs or (first.width, first.height) != (second.width, second.height):
        return False
    # Corners of the second grid, in pixels of the first.
    back = ~first.transform * second.transform
    corners = ((0, 0), (first.width, first.height))
    return all(
        max(abs(a - b) for a, b in zip(back * corner, corner, strict=True)) < _SAME_GRID_PX for corner in corners
    )


def _check_overlap(first: Any, second: Any, names: tuple[str, str], argument: str) -> None:
    from rasterio.errors import RasterioError
    from rasterio.warp import transform_bounds

    try:
        west, south, east, north = transform_bounds(second.crs, first.crs, *second.bounds)
    except (RasterioError, ValueError) as error:
        raise ToolError(
            "crs_mismatch",
            f"{names[1]} cannot be brought into the coordinate system of {names[0]}",
            argument=argument,
            hint="give both in one coordinate reference system",
        ) from error
    left, low, right, high = first.bounds
    if west >= max(left, right) or east <= min(left, right) or south >= max(low, high) or north <= min(low, high):
        raise ToolError(
            "nothing_found",
            f"{names[0]} and {names[1]} show different places: they do not overlap",
            argument=argument,
            hint="give two rasters of the same place",
        )


def _warp(first: Any, second: Any, name: str, argument: str, labels: bool) -> Any:
    from rasterio.enums import MaskFlags, Resampling
    from rasterio.errors import RasterioError
    from rasterio.vrt import WarpedVRT

    nodata = second.nodata
    undeclared = nodata is None and np.dtype(second.dtypes[0]).kind in "fi"
    masked_otherwise = any(MaskFlags.all_valid not in flags for flags in second.mask_flag_enums)
    try:
        return WarpedVRT(
            second,
            crs=first.crs,
            transform=first.transform,
            width=first.width,
            height=first.height,
            resampling=Resampling.nearest if labels or undeclared else Resampling.bilinear,
            add_alpha=nodata is None and not masked_otherwise,
        )
    except (RasterioError, ValueError) as error:
        raise ToolError(
            "crs_mismatch",
            f"{name} cannot be brought onto the grid of the other file",
            argument=argument,
            hint="give both in one coordinate reference system",
        ) from error


LARGEST_WHOLE_PX = 25_000_000
"""Size above which steps that need the whole picture in memory (specks, photographs) are refused."""


def pair_scale(gsd_m: float | None, files: Sequence[Path], in_file: float | None = None) -> Scale:
    """Metres per pixel: the argument, else what is known of any of the files, else what the raster says."""
    gsd_of_files = next((info.gsd_m for info in map(file_info, files) if info and info.gsd_m), None)
    return choose_scale(gsd_m, gsd_of_files, in_file)


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
        grey_levels = np.where(np.isfinite(band), np.clip(scaled, 0, 1) * 235, 255).astype(np.uint8)
        return np.dstack([grey_levels, grey_levels, grey_levels])

    return grey(first), grey(second)


def band_names(source: RasterSource, path: Path) -> tuple[str | None, ...]:
    """Names of the bands as known of the file, else as the raster gives them."""
    info = file_info(path)
    return info.bands if info and info.bands and len(info.bands) == source.count else source.band_names


def band_roles(source: RasterSource, path: Path, bands: Mapping[str, int | str] | None) -> dict[Role, int]:
    """Roles to 1-based band numbers: as the caller says, else by names, else by wavelengths.

    Raises:
        ToolError: ``invalid_argument``, ``band_not_found``.
    """
    names = band_names(source, path)
    if bands is not None:
        return chosen_roles(bands, names, file=source.name)
    return roles_by_name(names) or source.roles
