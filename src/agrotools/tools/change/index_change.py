"""Change of vegetation and of land cover between two rasters, by normalised differences of bands."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.tools.change.detect_change import ChangeRequest, VegetationChange
from agrotools.tools.change.label_change import pond_of_masks
from agrotools.tools.change.pairs import (
    RasterPair,
    band_names,
    band_roles,
    blocks_of_rows,
    check_common,
    frame_of,
    grey_pair,
    open_raster_pair,
    refuse_too_large,
    thumbnail,
)
from agrotools.tools.change.result import (
    CHANGED,
    GAINED,
    LOST,
    NO_DATA,
    SAME,
    ChangeCounts,
    ChangeInputs,
    class_cells,
    class_changes,
    counts_of,
    without_specks,
)
from agrotools.tools.workspace import shown_name
from agrotools.vision import Box, Index, Role
from agrotools.vision.rasters import RasterSource, chosen_roles, listed_bands, open_raster
from agrotools.vision.reading import stretched_picture
from agrotools.vision.vegetation import INDICES, index_values, otsu_of_counts

LEAST_DIFFERENCE = 0.1
"""Smallest automatic threshold; sensors and atmosphere cause smaller differences of normalised indices."""
SCENE_WIDE = 0.5
"""Share of the scene that moves in one direction above which season is the likelier cause."""
NEGLIGIBLE = 0.01
_LARGEST_INDEX, _MOST_OUTSIDE = 1.05, 0.01
"""Largest size of a normalised index, with room for rounding, and the share of larger values that is refused."""
_BINS = 512
_NORMALISED: tuple[Index, ...] = ("ndvi", "gndvi", "ndre")

Bands = Mapping[str, int | str]


@dataclass(frozen=True, eq=False)
class _Indices:
    """A vegetation index of two rasters."""

    pair: RasterPair
    index: Index
    numbers: tuple[list[int], list[int]]

    def read(self, box: Box | None) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the index of both dates in a box, or of the whole rasters at the size of a panel."""

        def values(source: RasterSource, numbers: list[int]) -> NDArray[np.float32]:
            bands = thumbnail(source, numbers) if box is None else source.read(numbers, box)
            if len(numbers) == 1:
                return bands[0]
            return index_values(self.index, dict(zip(INDICES[self.index].bands, bands, strict=True)))

        return values(self.pair.first, self.numbers[0]), values(self.pair.second, self.numbers[1])


def has_index(path: Path, bands: Bands | None, argument: str) -> bool:
    """Return True if a raster holds a normalised vegetation index or the bands to compute one."""
    with open_raster(path, argument=argument, shown_as=shown_name(path)) as source:
        return _index_of(source, path, bands) is not None


def index_change(
    before: Path, after: Path, bands: Bands | None, *, request: ChangeRequest, threshold: float | Literal["otsu"]
) -> ChangeInputs:
    """Threshold the difference of a vegetation index, in strips, so that rasters may be of any size."""
    names = shown_name(before), shown_name(after)
    with _open_indices(before, after, bands, names) as indices:
        source = indices.pair.first
        frame = frame_of(request, (source.width, source.height), names[0], (before, after), source.sampling.gsd_m)
        box = frame.box
        level = _otsu_level(indices, box) if threshold == "otsu" else float(threshold)
        sums, number, outside = np.zeros(2), 0, 0
        changes = np.full((source.height, source.width), NO_DATA, np.uint8)
        for part in frame.strips(indices.pair.block_rows):
            first, second = indices.read(part)
            difference = second - first
            valid = np.isfinite(difference)
            number += int(np.count_nonzero(valid))
            outside += int(np.count_nonzero(valid & (np.maximum(np.abs(first), np.abs(second)) > _LARGEST_INDEX)))
            sums += first[valid].sum(dtype=np.float64), second[valid].sum(dtype=np.float64)
            kinds = np.full(difference.shape, SAME, np.uint8)
            kinds[difference > level] = GAINED
            kinds[difference < -level] = LOST
            kinds[~valid] = NO_DATA
            changes[part[1] : part[3], part[0] : part[2]] = without_specks(kinds, frame.least_px)
        check_common(np.array([number > 0]), names)
        if outside > _MOST_OUTSIDE * number:
            why = f"{100 * outside / number:.0f} % of the values of {names[0]} or {names[1]} are not in -1..1"
            hint = "name the bands to compute the index from, or give classes as before_mask and after_mask"
            raise ToolError("invalid_argument", why, argument="bands", hint=hint)
        pictures = grey_pair(*indices.read(None))
        pair = indices.pair
    count = counts_of(changes[box[1] : box[3], box[0] : box[2]])
    changed, why, flags = answer_of_plants(int(count[GAINED]), int(count[LOST]), int(count.sum() - count[NO_DATA]))
    name = indices.index.upper()
    return ChangeInputs(
        changes=changes,
        before=pictures[0],
        after=pictures[1],
        box=box,
        method="index_difference",
        changed=changed,
        words={GAINED: f"{name} up", LOST: f"{name} down"},
        gsd_m=frame.scale.gsd_m,
        vegetation=VegetationChange(
            index=indices.index,
            mean_before=float(sums[0] / number),
            mean_after=float(sums[1] / number),
            threshold=level,
            cover_before_pct=None,
            cover_after_pct=None,
        ),
        notes=(
            f"{name} of the two dates subtracted; gain or loss where it differs by over {level:.4g}"
            + (f" (Otsu, at least {LEAST_DIFFERENCE:g})" if threshold == "otsu" else ""),
            *why,
            *pair.notes,
            *frame.scale.notes,
        ),
        flags=(*flags, *pair.flags, *frame.flags),
    )


def answer_of_plants(gain: int, loss: int, total: int) -> tuple[bool | None, tuple[str, ...], tuple[str, ...]]:
    """Return the verdict on plants, notes and flags.

    The verdict is None if under 1 % of the area differs or over half of the scene moves in one direction.
    """
    flags = ("phenology_risk",)
    if gain == loss == 0:
        return False, (), ()
    if max(gain, loss) > SCENE_WIDE * total:
        why = f"over {100 * SCENE_WIDE:.0f} % of the scene moves one way: season or weather is the likelier cause"
        return None, (why,), (*flags, "scene_wide_shift")
    if gain + loss < NEGLIGIBLE * total:
        return None, (f"under {100 * NEGLIGIBLE:.0f} % of the area differs: within what noise does",), flags
    return True, ("plants differ; whether land use does cannot be told from two dates",), flags


@contextmanager
def _open_indices(before: Path, after: Path, bands: Bands | None, names: tuple[str, str]) -> Iterator[_Indices]:
    with open_raster_pair(before, after, names) as pair:
        sources = [_index_of(source, path, bands) for source, path in ((pair.first, before), (pair.second, after))]
        if sources[0] is None or sources[1] is None:
            missing = pair.first if sources[0] is None else pair.second
            why = f"no vegetation index can be computed of {missing.name}; it has {listed_bands(missing.band_names)}"
            hint = "say which bands are which, e.g. bands={'R': 3, 'NIR': 4}, or {'NDVI': 1} for a ready index"
            raise ToolError("band_not_found", why, argument="bands", hint=hint)
        (index, first), (other, second) = sources[0], sources[1]
        if index != other or len(first) != len(second):
            why = f"{names[0]} offers {index} and {names[1]} {other}: they cannot be compared"
            hint = "name bands that both files have, e.g. bands={'R': 3, 'NIR': 4}"
            raise ToolError("band_not_found", why, argument="bands", hint=hint)
        yield _Indices(pair, index, (first, second))


def _index_of(source: RasterSource, path: Path, bands: Bands | None) -> tuple[Index, list[int]] | None:
    """Return an index and the band that holds it or the bands to compute it from, or None if there is no index."""
    names = band_names(source, path)
    request = {key.strip().lower(): band for key, band in (bands or {}).items()}
    for index in _NORMALISED:
        if index in request:
            return index, [chosen_roles({"NIR": request[index]}, names, file=source.name)["NIR"]]
    for number, name in enumerate(names if bands is None else (), start=1):
        for index in _NORMALISED:
            if name and name.strip().lower() == index:
                return index, [number]
    roles = band_roles(source, path, bands)
    for index in _NORMALISED:
        if all(role in roles for role in INDICES[index].bands):
            return index, [roles[role] for role in INDICES[index].bands]
    return None


def _otsu_level(indices: _Indices, box: Box) -> float:
    counts = np.zeros(_BINS, np.int64)
    for part in blocks_of_rows(box, stored=indices.pair.block_rows):
        first, second = indices.read(part)
        size = np.abs(second - first)
        counts += np.histogram(np.minimum(size[np.isfinite(size)], 2), bins=_BINS, range=(0.0, 2.0))[0]
    return max(LEAST_DIFFERENCE, otsu_of_counts(counts, np.linspace(0.0, 2.0, _BINS + 1)))


PLANTS_FROM = 0.4
"""Least NDVI of closed green cover; fields between crops and built-up land have less."""
CLASSES = ("bare or built-up", "vegetation", "water")
_NEEDED: tuple[Role, ...] = ("G", "R", "NIR")


def has_land_bands(path: Path, bands: Mapping[str, int | str] | None, argument: str) -> bool:
    """Return True if a raster has the bands (green, red, near infrared) that both indices need."""
    with open_raster(path, argument=argument, shown_as=shown_name(path)) as source:
        return all(role in band_roles(source, path, bands) for role in _NEEDED)


def land_class_change(
    before: Path, after: Path, bands: Mapping[str, int | str] | None, *, water_only: bool, request: ChangeRequest
) -> ChangeInputs:
    """Classify each date by NDWI (water above 0, McFeeters 1996) and NDVI (Rouse et al. 1974) and compare classes."""
    names = shown_name(before), shown_name(after)
    with open_raster_pair(before, after, names) as pair:
        first = pair.first
        refuse_too_large(first.width, first.height, names[0], "classifying land")
        frame = frame_of(request, (first.width, first.height), names[0], (before, after), first.sampling.gsd_m)
        classes_before, picture_before = _classify(first, before, bands)
        classes_after, picture_after = _classify(pair.second, after, bands)
    valid = (classes_before >= 0) & (classes_after >= 0)
    check_common(valid, names)
    if water_only:
        classes_before, classes_after = (
            np.where(part == 2, 1, np.minimum(part, 0)) for part in (classes_before, classes_after)
        )
    changes = class_changes(classes_before, classes_after, valid, frame.least_px, has_direction=water_only)
    box = frame.box
    inside = slice(box[1], box[3]), slice(box[0], box[2])
    titles = ("no water", "water") if water_only else CLASSES
    cells = class_cells(classes_before[inside], classes_after[inside], changes[inside], len(titles))
    counts = ChangeCounts(titles, cells)
    moved = int(cells.sum() - np.trace(cells))
    pond = pond_of_masks(counts) if water_only else None
    how = f"NDWI over 0 is water, else NDVI over {PLANTS_FROM:g} is vegetation, each date by itself"
    why = "season moves these classes too, so whether land use changed is not said" if moved else ""
    return ChangeInputs(
        changes=changes,
        before=picture_before,
        after=picture_after,
        box=box,
        method="water_masks" if water_only else "post_class",
        changed=None if moved else False,
        words={GAINED: "water gained", LOST: "water lost"} if water_only else {CHANGED: "another class"},
        counts=counts,
        gsd_m=frame.scale.gsd_m,
        pond=pond,
        notes=tuple(note for note in (how, why, *pair.notes, *frame.scale.notes) if note),
        flags=(*(("phenology_risk",) if moved else ()), *pair.flags, *frame.flags),
    )


def _classify(
    source: RasterSource, path: Path, bands: Mapping[str, int | str] | None
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the index in :data:`CLASSES` of each pixel, -1 without data, and a picture."""
    roles = band_roles(source, path, bands)
    green, red, infrared = source.read([roles[role] for role in _NEEDED])
    valid = np.isfinite(green) & np.isfinite(red) & np.isfinite(infrared)
    classes = np.zeros(valid.shape, np.int64)
    bands_of: dict[Role, NDArray[np.float32]] = {"G": green, "R": red, "NIR": infrared}
    classes[index_values("ndvi", bands_of) > PLANTS_FROM] = 1
    classes[index_values("gndvi", bands_of) < 0] = 2  # GNDVI is NDWI with the opposite sign
    classes[~valid] = -1
    return classes, stretched_picture(bands_of)
