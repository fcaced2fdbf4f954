"""Segmentation of plants and soil in rasters of any size, block by block.

The method is that of :func:`agrotools_tools.vision.vegetation.segment`. The threshold comes from tiles spread over the
raster, a few million pixels in all, and is then applied to every block. Smoothing and the removal of specks reach only
a few pixels, so blocks with a halo give the same result as the whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from agrotools.calling.pictures import WHOLE_PX, choose_scale
from agrotools.core import SampleFile, ToolError
from agrotools.vision import Box, Role
from agrotools.vision.formats import clipped_region, file_format
from agrotools.vision.overlay import LONGEST_SIDE
from agrotools.vision.rasters import RasterSource, open_raster
from agrotools.vision.reading import stretched_picture
from agrotools_tools.crop_weed.measure import NOT_SEPARATED
from agrotools_tools.crop_weed.result import (
    NO_DATA,
    PLANTS,
    SOIL,
    CropWeedArea,
    SeparationChoice,
    area_result,
)
from agrotools_tools.vision import Index
from agrotools_tools.vision.blocks import (
    Block,
    RasterThumbnail,
    block_boxes,
    raster_blocks,
    sample_into,
    spread_boxes,
    tile_shape,
)
from agrotools_tools.vision.index_bands import index_bands
from agrotools_tools.vision.vegetation import (
    IndexThreshold,
    choose_threshold,
    doubt_of_sample,
    doubtful_plants,
    index_values,
    smooth_index,
)
from agrotools_tools.zones.numbers import doubts_on_numbers

HALO_PX = 16
"""Margin read around each block: more than the reach of the smoothing (4 pixels) and of a speck (fewer than 10)."""
BLOCK_PX = 2**23
"""Approximate number of values read at once. In smaller blocks the halo, which is read twice, is a larger part."""
_SAMPLE_PX = 4_000_000
"""Approximate number of pixels from which the threshold of a large raster is chosen."""
_NATURAL: tuple[Role, ...] = ("R", "G", "B")
_COLOUR_SAMPLE_PX = 250_000
"""Approximate number of pixels whose colours say whether plants can be told from the ground."""
_SAMPLE_BLOCK_PX = 2**17
"""Approximate number of pixels of each block of that sample."""


def _segment(
    source: RasterSource, used: Mapping[Role, int], sampled: "SampledThreshold", region: Box
) -> tuple[RasterThumbnail, dict[Role, NDArray[np.float32]], NDArray[np.int64]]:
    """Segment a region block by block. Return the share of plants in each pixel of a small picture, the bands at its
    size, and the number of pixels of each class, (256,)."""
    cover = RasterThumbnail(region, LONGEST_SIDE)
    shape = cover.means.shape
    bands: dict[Role, NDArray[np.float32]] = {
        role: np.full(shape, np.nan, np.float32) for role in used
    }
    count = np.zeros(256, np.int64)
    for block in raster_blocks(
        source, list(used.values()), region, halo=HALO_PX, block_px=BLOCK_PX
    ):
        shares = sampled.plants(dict(zip(used, block.values, strict=True)))[1][block.inner]
        plants, measured = np.count_nonzero(shares == 1), np.count_nonzero(np.isfinite(shares))
        count[[PLANTS, SOIL, NO_DATA]] += plants, measured - plants, shares.size - measured
        cover.add(block.box, shares)
        for role, values in zip(used, block.values, strict=True):
            sample_into(bands[role], block.box, values[block.inner], region, cover.factor)
    return cover, bands, count


@dataclass(frozen=True, eq=False)
class SampledThreshold:
    """Threshold of an index from tiles of a raster.

    ``factor``: brings colours to 0..255. ``doubt``: why plants cannot be told from the ground, None if they can, or if
    the raster has no natural colours.
    """

    index: Index
    cut: IndexThreshold
    factor: float
    notes: tuple[str, ...]
    doubt: str | None

    def plants(
        self, bands: Mapping[Role, NDArray[np.float32]]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the index, and 1 for plants, 0 for soil and NaN without data, of bands (rows, columns)."""
        values = _scaled_index(self.index, bands, self.factor)
        there = np.isfinite(values)
        mask = self.cut.plants(smooth_index(values, there), there)
        return values, np.where(there, mask.astype(np.float32), np.float32(np.nan))

    def read(
        self, source: RasterSource, used: Mapping[Role, int], box: Box
    ) -> tuple[NDArray[np.float32], ...]:
        """Return :meth:`plants` of a box of a raster, which is read with a halo."""
        (x0, y0, x1, y1), halo = box, HALO_PX
        around = (
            max(0, x0 - halo),
            max(0, y0 - halo),
            min(source.width, x1 + halo),
            min(source.height, y1 + halo),
        )
        block = Block(box, around, source.read([*used.values()], around))
        return tuple(
            part[block.inner] for part in self.plants(dict(zip(used, block.values, strict=True)))
        )


def sample_threshold(
    source: RasterSource, used: Mapping[Role, int], index: Index, region: Box
) -> SampledThreshold:
    """Choose the threshold of an index from blocks spread over a region, or from all of one that is read whole."""
    boxes = list(
        block_boxes(region, tile_shape(source, next(iter(used.values()))), _SAMPLE_BLOCK_PX)
    )
    if is_small := (region[2] - region[0]) * (region[3] - region[1]) <= WHOLE_PX:
        boxes = [region]
    typical = max((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in boxes)
    sample_size = min(len(boxes), max(12, _SAMPLE_PX // typical))
    read = [
        dict(zip(used, source.read(list(used.values()), box), strict=True))
        for box in spread_boxes(boxes, sample_size)
    ]
    factor = 1.0
    if "B" in used and source.dtype != "uint8":
        known = np.concatenate(
            [band[np.isfinite(band)] for bands in read for band in bands.values()]
        )
        top = float(np.percentile(known, 99.9)) if known.size else 0.0
        factor = 255.0 / top if top > 0 else 1.0
    has_natural_colours = "B" in used and source.dtype == "uint8"
    parts: list[NDArray[np.float32]] = []
    colours: list[NDArray[np.uint8]] = []
    for bands in read:
        values = _scaled_index(index, bands, factor)
        there = np.isfinite(values)
        parts.append(smooth_index(values, there)[there])
        if has_natural_colours:
            colours.append(
                np.stack([bands[role][there] for role in _NATURAL], axis=1).astype(np.uint8)
            )
    sample = np.concatenate(parts)
    if not sample.size:
        why = f"{source.name} holds no data in the parts that were looked at"
        hint = "check the file's nodata value, or choose a part with region"
        raise ToolError("nothing_found", why, argument="image", hint=hint)
    step = max(1, sample.size // _SAMPLE_PX) if is_small else 1  # as of a picture
    sample = sample[::step]
    notes = (f"threshold from {sample.size} pixels of tiles spread over the raster",)
    if factor != 1.0:
        notes += (f"red, green and blue scaled by one factor ({255 / factor:.4g} to 255)",)
    cut = choose_threshold(index, sample)
    doubt = None
    if has_natural_colours:
        thin = max(1, sample.size // _COLOUR_SAMPLE_PX)
        natural = np.concatenate(colours)[::step]
        doubt = doubt_of_sample(index, cut.threshold, cut.flags, sample[::thin], natural[::thin])
    return SampledThreshold(index, cut, factor, notes, doubt)


def _scaled_index(
    index: Index, bands: Mapping[Role, NDArray[np.float32]], factor: float
) -> NDArray[np.float32]:
    if factor != 1.0:
        bands = {
            role: np.asarray(band * np.float32(factor), np.float32) for role, band in bands.items()
        }
    return index_values(index, bands)


MOST_PX = 400_000_000
"""Most pixels of a raster, or of its region, that are measured."""


def measure_by_blocks(
    path: Path,
    bands: dict[str, int | str] | None,
    gsd_m: float | None,
    index: Literal["auto"] | Index,
    separation: SeparationChoice,
    region: Box | None,
    info: SampleFile | None,
) -> CropWeedArea | None:
    """Measure the areas of a raster with a large region; return None if the raster is small enough to be read whole.
    ToolError ``limit`` above 400 million pixels."""
    name = info.name if info else path.name
    if file_format(path, shown_as=name) not in ("tiff", "envi"):
        return None
    with open_raster(path, shown_as=name) as source:
        box, clipped = clipped_region(region, source.width, source.height, name)
        size = (box[2] - box[0]) * (box[3] - box[1])
        if size <= WHOLE_PX:
            return None
        if size > MOST_PX:
            why = f"{name} has {size // 1_000_000} million pixels; at most {MOST_PX // 1_000_000} million are measured"
            raise ToolError("limit", why, argument="image", hint="measure parts of it with region")
        found = index_bands(source, index, bands, info)
        chosen, used = found.index, found.used
        sampled = sample_threshold(source, used, chosen, box)
        if sampled.doubt is not None and bands is None:
            raise doubtful_plants(sampled.doubt)
        cover, shown, count = _segment(source, used, sampled, box)
        scale = choose_scale(gsd_m, info.gsd_m if info else None, source.sampling.gsd_m)
        doubts, of_numbers = doubts_on_numbers(source, used, can_be_stated=False)
        notes = (
            *(*source.sampling.notes, *found.assumed, found.said, *doubts),
            *(*scale.notes, *sampled.notes, *sampled.cut.notes),
        )
        flags = (*source.sampling.flags, *of_numbers, *clipped, *scale.flags, *sampled.cut.flags)
    means, factor = cover.means, cover.factor
    classes = np.where(np.isfinite(means), np.where(means >= 0.5, PLANTS, SOIL), NO_DATA).astype(
        np.uint8
    )
    if factor != 1:
        notes += (
            f"mask and overlay are small: one pixel for {factor} x {factor}, counts are of all pixels",
        )
    if separation != "none":
        notes += (
            f"crop and weeds are not separated in over {WHOLE_PX // 1_000_000} million pixels: use region",
        )
        flags += (NOT_SEPARATED,)
    return area_result(
        shown=stretched_picture(shown),
        classes=classes,
        box=(0, 0, classes.shape[1], classes.shape[0]),
        gsd_m=scale.gsd_m,
        separated=False,
        method="none",
        index=chosen,
        count=count,
        shrink=factor,
        notes=notes,
        flags=flags,
    )
