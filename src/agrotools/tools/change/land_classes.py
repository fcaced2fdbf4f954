"""Change of land cover between two multi-band rasters: water, plants and the rest by fixed levels of two indices."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agrotools.tools.change.change_result import Counts, Found
from agrotools.tools.change.label_change import pond_of_masks
from agrotools.tools.change.pair_files import Asked, pair_scale, refuse_too_large
from agrotools.tools.workspace import file_info, shown_name
from agrotools.vision.band_roles import Role, chosen_roles, roles_by_name
from agrotools.vision.change.map import CHANGED, GAINED, LOST, NO_DATA, SAME, without_specks
from agrotools.vision.formats import clipped_region
from agrotools.vision.pairs import check_common, open_raster_pair
from agrotools.vision.raster_pictures import stretched_picture
from agrotools.vision.rasters import RasterSource, open_raster

PLANTS_FROM = 0.4
"""NDVI of closed green cover; fields between crops and built-up land lie below."""
CLASSES = ("bare or built-up", "vegetation", "water")
_NEEDED: tuple[Role, ...] = ("G", "R", "NIR")


def has_land_bands(path: Path, bands: Mapping[str, int | str] | None, argument: str) -> bool:
    """Whether a raster has the bands (green, red, near infrared) that both indices need."""
    with open_raster(path, argument=argument, shown_as=shown_name(path)) as source:
        return all(role in _roles(source, path, bands) for role in _NEEDED)


def land_class_change(
    before: Path,
    after: Path,
    bands: Mapping[str, int | str] | None,
    *,
    water_only: bool,
    asked: Asked,
) -> Found:
    """Classes by NDWI (water above 0, McFeeters 1996) and NDVI (Rouse et al. 1974), each date by itself, compared.

    Raises:
        ToolError: as the readers; ``crs_mismatch``, ``shape_mismatch``, ``region_empty``, ``limit``.
    """
    names = shown_name(before), shown_name(after)
    with open_raster_pair(before, after, names) as pair:
        first = pair.first
        refuse_too_large(first.width, first.height, names[0], "classifying land")
        box, clipped = clipped_region(asked.region, first.width, first.height, names[0])
        scale = pair_scale(asked.gsd_m, (before, after), first.sampling.gsd_m)
        least = asked.least_px(scale.gsd_m, 1)
        was, seen = _classified(first, before, bands)
        is_, seen_after = _classified(pair.second, after, bands)
    valid = (was >= 0) & (is_ >= 0)
    check_common(valid, names)
    if water_only:
        was, is_ = (np.where(classes == 2, 1, np.minimum(classes, 0)) for classes in (was, is_))
    changes = np.full(valid.shape, SAME, np.uint8)
    if water_only:
        changes[is_ > was], changes[is_ < was] = GAINED, LOST
    else:
        changes[is_ != was] = CHANGED
    changes[~valid] = NO_DATA
    changes = without_specks(changes, least)
    inside = slice(box[1], box[3]), slice(box[0], box[2])
    kept = np.where(changes == SAME, was, is_)[inside][valid[inside]]
    titles = ("no water", "water") if water_only else CLASSES
    size = len(titles)
    cells = np.bincount(was[inside][valid[inside]] * size + kept, minlength=size * size).reshape(size, size)
    counts = Counts(titles, cells)
    moved = int(cells.sum() - np.trace(cells))
    pond = pond_of_masks(counts) if water_only else None
    how = f"NDWI over 0 is water, else NDVI over {PLANTS_FROM:g} is vegetation, each date by itself"
    why = "season moves these classes too, so whether land use changed is not said" if moved else ""
    return Found(
        changes=changes,
        before=seen,
        after=seen_after,
        box=box,
        method="water_masks" if water_only else "post_class",
        changed=None if moved else False,
        words={GAINED: "water gained", LOST: "water lost"} if water_only else {CHANGED: "another class"},
        counts=counts,
        gsd_m=scale.gsd_m,
        pond=pond,
        notes=tuple(note for note in (how, why, *first.sampling.notes, *pair.notes, *scale.notes) if note),
        flags=(*(("phenology_risk",) if moved else ()), *first.sampling.flags, *pair.flags, *scale.flags, *clipped),
    )


def _roles(source: RasterSource, path: Path, bands: Mapping[str, int | str] | None) -> dict[Role, int]:
    info = file_info(path)
    names = info.bands if info and info.bands and len(info.bands) == source.count else source.band_names
    if bands is not None:
        return chosen_roles(bands, names, file=source.name)
    return roles_by_name(names) or source.roles


def _classified(
    source: RasterSource, path: Path, bands: Mapping[str, int | str] | None
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Rows of :data:`CLASSES`, -1 without data; and a picture."""
    roles = _roles(source, path, bands)
    green, red, infrared = source.read([roles[role] for role in _NEEDED])
    there = np.isfinite(green) & np.isfinite(red) & np.isfinite(infrared)
    classes = np.zeros(there.shape, np.int64)
    classes[_normalised(infrared, red) > PLANTS_FROM] = 1
    classes[_normalised(green, infrared) > 0] = 2
    classes[~there] = -1
    return classes, stretched_picture({"G": green, "R": red, "NIR": infrared})


def _normalised(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float32]:
    total = first + second
    with np.errstate(invalid="ignore"):
        usable = np.isfinite(total) & (total != 0)
    return np.where(usable, (first - second) / np.where(usable, total, 1), 0).astype(np.float32)
