"""Plant cover of rasters that are not held in memory: counted block by block, shown small."""

from pathlib import Path
from typing import Literal

import numpy as np

from agrotools.core import SampleFile, ToolError
from agrotools.tools.scale import chosen_scale
from agrotools.tools.segmentation.area_result import NO_DATA, PLANTS, SOIL, Measured
from agrotools.tools.segmentation.field_picture import WHOLE_PX, raster_roles
from agrotools.tools.segmentation.separation import NOT_SEPARATED, Wanted
from agrotools.vision.formats import Box, clipped_region, file_format
from agrotools.vision.overlay import LONGEST_SIDE
from agrotools.vision.raster_pictures import stretched_picture
from agrotools.vision.rasters import open_raster
from agrotools.vision.vegetation import Index, choose_index
from agrotools.vision.vegetation_blocks import segment_raster

MOST_PX = 400_000_000


def measured_by_blocks(
    path: Path,
    bands: dict[str, int | str] | None,
    gsd_m: float | None,
    index: Literal["auto"] | Index,
    separation: Wanted,
    region: Box | None,
    info: SampleFile | None,
) -> Measured | None:
    """What is measured of a raster whose region is large; None for all that is read in one piece.

    Raises:
        ToolError: ``limit`` above 400 million pixels; ``band_not_found``, ``nothing_found``, and as the readers.
    """
    name = info.name if info else path.name
    if file_format(path, shown_as=name) not in ("tiff", "envi"):
        return None
    with open_raster(path, shown_as=name) as source:
        box, clipped = clipped_region(region, source.width, source.height, name)
        size = (box[2] - box[0]) * (box[3] - box[1])
        if size <= WHOLE_PX:
            return None
        if size > MOST_PX:
            raise ToolError(
                "limit",
                f"{name} has {size // 1_000_000} million pixels; at most {MOST_PX // 1_000_000} million are measured",
                argument="image",
                hint="measure parts of it with region",
            )
        roles, notes = raster_roles(source, bands, info)
        chosen = choose_index(index, roles)
        found = segment_raster(source, roles, chosen, box, LONGEST_SIDE)
        scale = chosen_scale(gsd_m, info.gsd_m if info else None, source.sampling.gsd_m)
        notes = (*source.sampling.notes, *notes, *scale.notes)
        flags = (*source.sampling.flags, *clipped, *scale.flags)
    there = np.isfinite(found.cover)
    classes = np.where(there, np.where(found.cover >= 0.5, PLANTS, SOIL), NO_DATA).astype(np.uint8)
    count = np.zeros(256, np.int64)
    count[PLANTS], count[SOIL] = found.plant_px, found.measured_px - found.plant_px
    count[NO_DATA] = size - found.measured_px
    shown_small = f"mask and overlay are small: one pixel for {found.factor} x {found.factor}, counts are of all pixels"
    parts = f"crop and weeds are not parted in over {WHOLE_PX // 1_000_000} million pixels: use region"
    not_parted = () if separation == "none" else (parts,)
    return Measured(
        shown=stretched_picture(found.bands),
        classes=classes,
        box=(0, 0, classes.shape[1], classes.shape[0]),
        gsd_m=scale.gsd_m,
        parted=False,
        method="none",
        index=chosen,
        count=count,
        shrink=found.factor,
        notes=(*notes, *found.notes, *found.cut.notes, *(() if found.factor == 1 else (shown_small,)), *not_parted),
        flags=(*flags, *found.cut.flags, *(() if separation == "none" else (NOT_SEPARATED,))),
    )
