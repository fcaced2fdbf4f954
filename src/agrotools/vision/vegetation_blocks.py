"""Telling plants from soil in rasters of any size, block by block, as :func:`agrotools.vision.vegetation.segment` does.

The threshold is found in tiles spread over the raster, a few million pixels of them; then every block is cut there.
Smoothing and specks reach over a few pixels, so with a halo the blocks give what the whole would give.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.vision.band_roles import Role
from agrotools.vision.block_statistics import SmallPicture
from agrotools.vision.blocks import block_boxes, raster_blocks
from agrotools.vision.formats import Box
from agrotools.vision.rasters import RasterSource
from agrotools.vision.vegetation import INDICES, Cut, Index, choose_cut, index_values, smoothed, without_specks

HALO_PX = 16
"""Beyond the reach of the smoothing (4 pixels) and of a speck (fewer than 10)."""
_SAMPLE_PX = 4_000_000
_SAMPLE_BLOCK_PX = 2**17
_DARK_SHARE = 0.01
"""Share of the sample from which pixels that are 0 in all bands are absence of data."""


@dataclass(frozen=True, eq=False)
class RasterVegetation:
    """Plants of a raster. Pixels are those of the region; ``cover`` is the share of plants in each pixel of a small
    picture, NaN without data, and ``bands`` the means of the bands in it; ``factor`` pixels make one of its own."""

    measured_px: int
    plant_px: int
    cut: Cut
    cover: NDArray[np.float32]
    bands: dict[Role, NDArray[np.float32]]
    factor: int
    notes: tuple[str, ...] = ()


def segment_raster(
    source: RasterSource, roles: Mapping[Role, int], index: Index, region: Box, longest_side: int
) -> RasterVegetation:
    """Count the plants in a region of a raster, reading it block by block.

    Args:
        roles: role to 1-based band number; those that the index needs are read.
        longest_side: of the small picture, pixels.

    Raises:
        ToolError: ``nothing_found`` where the region holds no data, and as the reader.
    """
    used: dict[Role, int] = {role: roles[role] for role in INDICES[index].bands}
    sample, factor, dark = _sample(source, used, index, region)
    cut = choose_cut(index, sample)
    cover = SmallPicture(region, longest_side)
    pictures: dict[Role, SmallPicture] = {role: SmallPicture(region, longest_side) for role in used}
    measured = plants = 0
    for block in raster_blocks(source, list(used.values()), region, halo=HALO_PX):
        inner = _inner(block.box, block.read_box)
        values, there = _index_and_data(index, dict(zip(used, block.values, strict=True)), factor, dark)
        mask = there if cut.all_plants else np.zeros_like(there)
        if cut.threshold is not None:
            mask = without_specks(smoothed(values, there) > np.float32(cut.threshold), there)
        there, mask = there[inner], mask[inner]
        measured += int(np.count_nonzero(there))
        plants += int(np.count_nonzero(mask))
        cover.add(block.box, np.where(there, mask.astype(np.float32), np.float32(np.nan)))
        for role, picture in pictures.items():
            picture.add(block.box, block.inner[list(used).index(role)])
    notes = [f"threshold from {sample.size} pixels of tiles spread over the raster"]
    if factor != 1.0:
        notes.append(f"red, green and blue scaled by one factor ({255 / factor:.4g} to 255)")
    if dark:
        notes.append("pixels that are 0 in all bands are taken as absence of data")
    return RasterVegetation(
        measured, plants, cut, cover.means, {role: picture.means for role, picture in pictures.items()}, cover.factor,
        tuple(notes),
    )  # fmt: skip


def _sample(
    source: RasterSource, used: Mapping[Role, int], index: Index, region: Box
) -> tuple[NDArray[np.float32], float, bool]:
    """Smoothed index of spread blocks, the factor that brings colours to 0..255, and whether 0 is no data."""
    rows, columns = source.dataset.block_shapes[next(iter(used.values())) - 1]
    tile = (min(rows, source.height), min(columns, source.width))
    boxes = list(block_boxes(region, tile, _SAMPLE_BLOCK_PX))
    typical = max((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in boxes)
    wanted = min(len(boxes), max(12, _SAMPLE_PX // typical))
    # Steps by the golden ratio: any number of them lies evenly, and not all in one column of tiles.
    chosen = sorted({int(len(boxes) * ((k * 0.6180339887498949) % 1.0)) for k in range(wanted)})
    read = [dict(zip(used, source.read(list(used.values()), boxes[number]), strict=True)) for number in chosen]
    factor = 1.0
    if "B" in used and source.dtype != "uint8":
        colours = np.concatenate([band[np.isfinite(band)] for bands in read for band in bands.values()])
        top = float(np.percentile(colours, 99.9)) if colours.size else 0.0
        factor = 255.0 / top if top > 0 else 1.0
    black = sum(int(np.logical_and.reduce([band == 0 for band in bands.values()]).sum()) for bands in read)
    dark = black > _DARK_SHARE * sum(next(iter(bands.values())).size for bands in read)
    parts: list[NDArray[np.float32]] = []
    for bands in read:
        values, there = _index_and_data(index, bands, factor, dark)
        parts.append(smoothed(values, there)[there])
    sample = np.concatenate(parts)
    if not sample.size:
        raise ToolError(
            "nothing_found",
            f"{source.name} holds no data in the parts that were looked at",
            argument="image",
            hint="check the file's nodata value, or choose a part with region",
        )
    return sample, factor, dark


def _index_and_data(
    index: Index, bands: Mapping[Role, NDArray[np.float32]], factor: float, dark: bool
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    values = index_values(index, {role: _scaled(band, factor) for role, band in bands.items()})
    there = np.isfinite(values)
    if dark:
        there &= ~np.logical_and.reduce([band == 0 for band in bands.values()])
    return values, there


def _scaled(band: NDArray[np.float32], factor: float) -> NDArray[np.float32]:
    return band if factor == 1.0 else np.asarray(band * np.float32(factor), np.float32)


def _inner(box: Box, read_box: Box) -> tuple[slice, slice]:
    (x0, y0, x1, y1), (left, top, _, _) = box, read_box
    return slice(y0 - top, y1 - top), slice(x0 - left, x1 - left)
