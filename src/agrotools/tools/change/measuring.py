"""Change between two pictures or rasters: by normalised differences of bands, or of colours, plants and water."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.tools.change.label_change import pond_of_masks
from agrotools.tools.change.pairs import (
    BLOCK_PX,
    Pictures,
    RasterPair,
    are_rasters,
    check_common,
    frame_of,
    grey_pair,
    open_raster_pair,
    read_pictures,
    refuse_too_large,
    slices_of,
    thumbnail,
)
from agrotools.tools.change.ponds import pond_change
from agrotools.tools.change.result import (
    CHANGED,
    GAINED,
    LOST,
    NO_DATA,
    SAME,
    ChangeCounts,
    ChangeInputs,
    ChangeRequest,
    MethodChoice,
    PondChange,
    Target,
    VegetationChange,
    class_cells,
    class_changes,
    counts_of,
    refuse_unfit,
    two_classes,
    without_specks,
)
from agrotools.tools.pictures import known_roles
from agrotools.tools.workspace import file_info, shown_name
from agrotools.vision import Box, Index, Role
from agrotools.vision.blocks import block_boxes
from agrotools.vision.rasters import RasterSource, chosen_roles, listed_bands, open_raster
from agrotools.vision.reading import stretched_picture
from agrotools.vision.vegetation import INDICES, choose_index, index_values, otsu_of_counts, segment

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


def measure_change(
    before: Path,
    after: Path,
    target: Target,
    method: MethodChoice,
    bands: Bands | None,
    *,
    register: bool,
    threshold: float | Literal["otsu"],
    request: ChangeRequest,
) -> ChangeInputs:
    """Compare two pictures or rasters; arguments and errors are those of the tool."""
    if threshold != "otsu" and threshold <= 0:
        raise ToolError("invalid_argument", "threshold must be above 0", argument="threshold")

    def says(holds: Callable[[RasterSource, Path, Bands | None], bool], path: Path, argument: str) -> bool:
        with open_raster(path, argument=argument, shown_as=shown_name(path)) as source:
            return holds(source, path, bands)

    rasters = bands is not None or are_rasters(before, after)
    if target in ("vegetation", "pond"):
        refuse_unfit(method, ("auto",), f"{target} is found on each date and then compared")
    with_index = rasters and target == "vegetation"
    if with_index and (says(_has_index, before, "before") or not says(_has_colours, before, "before")):
        return index_change(before, after, bands, threshold=threshold, request=request)
    has_bands = rasters and says(_has_land_bands, before, "before") and says(_has_land_bands, after, "after")
    if has_bands and target != "pond" and method in ("auto", "post_class"):
        return land_class_change(before, after, bands, water_only=False, request=request)
    if has_bands and target == "pond" and not says(_has_colours, before, "before"):
        return land_class_change(before, after, bands, water_only=True, request=request)
    pictures = read_pictures(before, after, bands, request, register=register)
    if target == "vegetation":
        return plant_cover_change(pictures, request)
    if target == "pond":
        return water_change(pictures, request)
    return built_up_change(pictures, target)


def _has_index(source: RasterSource, path: Path, bands: Bands | None) -> bool:
    return _index_of(source, path, bands) is not None


def _has_land_bands(source: RasterSource, path: Path, bands: Bands | None) -> bool:
    return all(role in known_roles(source, bands, file_info(path))[0] for role in _NEEDED)


def _has_colours(source: RasterSource, path: Path, bands: Bands | None) -> bool:
    roles = known_roles(source, bands, file_info(path))[0]
    return {"R", "G", "B"} <= roles.keys() or (bands is None and source.count >= 3 and source.dtype == "uint8")


def index_change(
    before: Path, after: Path, bands: Bands | None, *, request: ChangeRequest, threshold: float | Literal["otsu"]
) -> ChangeInputs:
    """Threshold the difference of a vegetation index, in strips, so that rasters may be of any size."""
    names = shown_name(before), shown_name(after)
    with open_raster_pair(before, after) as pair:
        source = pair.first
        index, numbers = _common_index(pair, before, after, bands)

        def read(box: Box | None) -> list[NDArray[np.float32]]:
            """Return the index of both dates in a box, or of the whole rasters at the size of a panel."""
            values: list[NDArray[np.float32]] = []
            for raster, chosen in zip((pair.first, pair.second), numbers, strict=True):
                read_bands = thumbnail(raster, chosen) if box is None else raster.read(chosen, box)
                is_ready = len(chosen) == 1
                of_role = {} if is_ready else dict(zip(INDICES[index].bands, read_bands, strict=True))
                values.append(read_bands[0] if is_ready else index_values(index, of_role))
            return values

        frame = frame_of(request, (source.width, source.height), (before, after), source.sampling.gsd_m)
        box = frame.box
        if threshold == "otsu":
            histogram = np.zeros(_BINS, np.int64)
            for part in block_boxes(box, pair.tile, BLOCK_PX):
                first, second = read(part)
                size = np.abs(second - first)
                histogram += np.histogram(np.minimum(size[np.isfinite(size)], 2), bins=_BINS, range=(0.0, 2.0))[0]
            level = max(LEAST_DIFFERENCE, otsu_of_counts(histogram, np.linspace(0.0, 2.0, _BINS + 1)))
        else:
            level = float(threshold)
        sums, number, outside = np.zeros(2), 0, 0
        changes = np.full((source.height, source.width), NO_DATA, np.uint8)
        for part in frame.parts(pair.tile):
            first, second = read(part)
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
        check_common(number > 0, before, after)
        if outside > _MOST_OUTSIDE * number:
            why = f"{100 * outside / number:.0f} % of the values of {names[0]} or {names[1]} are not in -1..1"
            hint = "name the bands to compute the index from, or give classes as before_mask and after_mask"
            raise ToolError("invalid_argument", why, argument="bands", hint=hint)
        pictures = grey_pair(*read(None))
    count = counts_of(changes[box[1] : box[3], box[0] : box[2]])
    changed, why, flags = answer_of_plants(int(count[GAINED]), int(count[LOST]), int(count.sum() - count[NO_DATA]))
    name = index.upper()
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
            index=index,
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


def _common_index(
    pair: RasterPair, before: Path, after: Path, bands: Bands | None
) -> tuple[Index, tuple[list[int], list[int]]]:
    """Return the index that both rasters have, and the bands of each that hold it or that it is computed from."""
    sources = [_index_of(source, path, bands) for source, path in ((pair.first, before), (pair.second, after))]
    if sources[0] is None or sources[1] is None:
        missing = pair.first if sources[0] is None else pair.second
        why = f"no vegetation index can be computed of {missing.name}; it has {listed_bands(missing.band_names)}"
        hint = "say which bands are which, e.g. bands={'R': 3, 'NIR': 4}, or {'NDVI': 1} for a ready index"
        raise ToolError("band_not_found", why, argument="bands", hint=hint)
    (index, first), (other, second) = sources[0], sources[1]
    if index != other or len(first) != len(second):
        why = f"{pair.first.name} offers {index} and {pair.second.name} {other}: they cannot be compared"
        hint = "name bands that both files have, e.g. bands={'R': 3, 'NIR': 4}"
        raise ToolError("band_not_found", why, argument="bands", hint=hint)
    return index, (first, second)


def _index_of(source: RasterSource, path: Path, bands: Bands | None) -> tuple[Index, list[int]] | None:
    """Return an index and the band that holds it or the bands to compute it from, or None if there is no index."""
    info = file_info(path)
    names = source.names(info.bands if info else None)
    request = {key.strip().lower(): band for key, band in (bands or {}).items()}
    for index in _NORMALISED:
        if index in request:
            return index, [chosen_roles({"NIR": request[index]}, names, file=source.name)["NIR"]]
    for number, name in enumerate(names if bands is None else (), start=1):
        for index in _NORMALISED:
            if name and name.strip().lower() == index:
                return index, [number]
    roles = known_roles(source, bands, info)[0]
    for index in _NORMALISED:
        if all(role in roles for role in INDICES[index].bands):
            return index, [roles[role] for role in INDICES[index].bands]
    return None


PLANTS_FROM = 0.4
"""Least NDVI of closed green cover; fields between crops and built-up land have less."""
CLASSES = ("bare or built-up", "vegetation", "water")
_NEEDED: tuple[Role, ...] = ("G", "R", "NIR")


def land_class_change(
    before: Path, after: Path, bands: Bands | None, *, water_only: bool, request: ChangeRequest
) -> ChangeInputs:
    """Classify each date by NDWI (water above 0, McFeeters 1996) and NDVI (Rouse et al. 1974) and compare classes."""
    with open_raster_pair(before, after) as pair:
        first = pair.first
        refuse_too_large(first.width, first.height, first.name, "classifying land")
        frame = frame_of(request, (first.width, first.height), (before, after), first.sampling.gsd_m)
        classes_before, picture_before = _classify(first, before, bands)
        classes_after, picture_after = _classify(pair.second, after, bands)
    valid = (classes_before >= 0) & (classes_after >= 0)
    check_common(bool(valid.any()), before, after)
    if water_only:
        classes_before, classes_after = (
            np.where(part == 2, 1, np.minimum(part, 0)) for part in (classes_before, classes_after)
        )
    changes = class_changes(classes_before, classes_after, valid, frame.least_px, has_direction=water_only)
    inside = slices_of(frame.box)
    titles = ("no water", "water") if water_only else CLASSES
    cells = class_cells(classes_before[inside], classes_after[inside], changes[inside], len(titles))
    counts = ChangeCounts(titles, cells)
    moved = int(cells.sum() - np.trace(cells))
    how = f"NDWI over 0 is water, else NDVI over {PLANTS_FROM:g} is vegetation, each date by itself"
    why = "season moves these classes too, so whether land use changed is not said" if moved else ""
    return ChangeInputs(
        changes=changes,
        before=picture_before,
        after=picture_after,
        box=frame.box,
        method="water_masks" if water_only else "post_class",
        changed=None if moved else False,
        words={GAINED: "water gained", LOST: "water lost"} if water_only else {CHANGED: "another class"},
        counts=counts,
        gsd_m=frame.scale.gsd_m,
        pond=pond_of_masks(counts) if water_only else None,
        notes=tuple(note for note in (how, why, *pair.notes, *frame.scale.notes) if note),
        flags=(*(("phenology_risk",) if moved else ()), *pair.flags, *frame.flags),
    )


def _classify(source: RasterSource, path: Path, bands: Bands | None) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the index in :data:`CLASSES` of each pixel, -1 without data, and a picture."""
    roles = known_roles(source, bands, file_info(path))[0]
    green, red, infrared = source.read([roles[role] for role in _NEEDED])
    valid = np.isfinite(green) & np.isfinite(red) & np.isfinite(infrared)
    classes = np.zeros(valid.shape, np.int64)
    bands_of: dict[Role, NDArray[np.float32]] = {"G": green, "R": red, "NIR": infrared}
    classes[index_values("ndvi", bands_of) > PLANTS_FROM] = 1
    classes[index_values("gndvi", bands_of) < 0] = 2  # GNDVI is NDWI with the opposite sign
    classes[~valid] = -1
    return classes, stretched_picture(bands_of)


_SPECK_SHARE = 0.0005
_WEAK_FOR_PLANTS = frozenset(
    "low_contrast no_vegetation no_soil_visible too_dark featureless_image registration_uncertain".split()
)
_LEAST_SPECK_PX = 20
_UNUSABLE = frozenset(("too_dark", "featureless_image"))
_BUILDINGS = {GAINED: "buildings gained", CHANGED: "buildings changed"}
_SAME_POND = 0.25
"""Least share of a pond's area that is water on the other date for the two to be the same pond."""


def built_up_change(pictures: Pictures, target: str) -> ChangeInputs:
    """Say whether two photographs are equal: there is no map of new or lost buildings.

    A rule for single roofs that was chosen on pairs of one data set was worse than marking everything as changed on
    another, and nothing in the pictures told where it works (``docs/accuracy.md``).
    """
    inside = slices_of(pictures.box)
    differs = (pictures.before[inside] != pictures.after[inside]).any(axis=-1) & pictures.valid[inside]
    same = not differs.any()
    kind = GAINED if target == "farmland" else CHANGED
    why = "buildings cannot be mapped from photographs reliably: no map of change is given; give masks of both dates"
    return _change_inputs(
        pictures,
        np.where(pictures.valid, SAME, NO_DATA).astype(np.uint8),
        method="post_class",
        changed=False if same and not _UNUSABLE & set(pictures.flags) else None,
        has_map=same,
        words={kind: _BUILDINGS[kind]},
        notes=("the two pictures are equal",) if same else (why,),
        flags=() if same else ("buildings_not_mapped",),
    )


def plant_cover_change(pictures: Pictures, request: ChangeRequest) -> ChangeInputs:
    """Separate plants from soil by colour on each date and compare the two masks."""
    default = max(_LEAST_SPECK_PX, round(_SPECK_SHARE * pictures.valid.size))
    least = request.least_px(pictures.gsd_m, default)
    masks: list[NDArray[np.bool_]] = []
    notes: list[str] = []
    flags: list[str] = []
    for picture, when in ((pictures.before, "before"), (pictures.after, "after")):
        channels: dict[Role, NDArray[Any]] = {role: picture[..., n] for n, role in enumerate(("R", "G", "B"))}  # pyright: ignore[reportAssignmentType]
        plants = segment(choose_index("auto", channels), channels, pictures.valid)
        masks.append(plants.mask)
        notes += [f"{when}: {note}" for note in plants.notes]
        flags += plants.flags
    changes = _change_map(pictures, masks[1] & ~masks[0], masks[0] & ~masks[1], least)
    inside = slices_of(pictures.box)
    count = counts_of(changes[inside])
    total = int(count.sum() - count[NO_DATA])
    changed, why, risk = answer_of_plants(int(count[GAINED]), int(count[LOST]), total)
    # Without reflectance each date has its own threshold, so a mask from colours is weaker evidence than an index.
    weak = _WEAK_FOR_PLANTS & {*flags, *pictures.flags}
    cover = [100.0 * float(mask[inside].sum()) / max(1, int(pictures.valid[inside].sum())) for mask in masks]
    return _change_inputs(
        pictures,
        changes,
        method="index_difference",
        changed=None if weak else changed,
        words={GAINED: "plants gained", LOST: "plants lost"},
        counts=two_classes(("no plants", "plants"), masks[0][inside], changes[inside]),
        vegetation=VegetationChange(
            index="lab_a",
            mean_before=None,
            mean_after=None,
            threshold=None,
            cover_before_pct=cover[0],
            cover_after_pct=cover[1],
        ),
        notes=(*notes, *why, f"patches under {least} px do not count" if least > 1 else ""),
        flags=(*flags, *risk),
    )


def water_change(pictures: Pictures, request: ChangeRequest) -> ChangeInputs:
    """Find standing water on each date and its change, see :func:`agrotools.tools.change.ponds.pond_change`."""
    least = None if request.min_area_px is request.min_area_m2 is None else request.least_px(pictures.gsd_m, 1)
    ponds = pond_change(
        pictures.before,
        pictures.after,
        pictures.valid,
        infrared=pictures.infrared or (None, None),
        gsd_m=pictures.gsd_m,
        min_area_px=least,
    )
    before, after = ponds.water_before, ponds.water_after
    changes = _change_map(pictures, _drop_overlapping(after, before), _drop_overlapping(before, after), 1)
    inside = slices_of(pictures.box)
    # The search for a dry basin at the place of the water requires two registered pictures.
    weak = (_UNUSABLE | {"registration_uncertain"}) & set(pictures.flags)
    event = None if weak else ponds.event
    return _change_inputs(
        pictures,
        changes,
        method="water_masks",
        changed=None if event is None else event != "none",
        words={GAINED: "water gained", LOST: "water lost"},
        counts=two_classes(("no water", "water"), before[inside], changes[inside]),
        pond=PondChange.of(event, int(before[inside].sum()), int(after[inside].sum())),
        notes=(*ponds.notes, "change is counted of ponds that are water on one date only, not along shifting shores"),
        flags=ponds.flags,
    )


def _drop_overlapping(mask: NDArray[np.bool_], other: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the components of ``mask`` that hardly overlap ``other``."""
    count, labels = cv2.connectedComponents(mask.astype(np.uint8), connectivity=8)
    places = np.asarray(labels, np.int32)
    area = np.bincount(places.ravel(), minlength=count)
    shared = np.bincount(places[other], minlength=count)
    alone = shared < _SAME_POND * area
    alone[0] = False
    return np.asarray(alone[places])


def _change_inputs(
    pictures: Pictures, changes: NDArray[np.uint8], *, notes: tuple[str, ...], flags: tuple[str, ...], **more: Any
) -> ChangeInputs:
    return ChangeInputs(
        changes=changes,
        before=pictures.before,
        after=pictures.after,
        box=pictures.box,
        gsd_m=pictures.gsd_m,
        shift_px=pictures.shift_px,
        notes=(*pictures.notes, *(note for note in notes if note)),
        flags=(*pictures.flags, *flags),
        **more,
    )


def _change_map(
    pictures: Pictures, gained: NDArray[np.bool_], lost: NDArray[np.bool_], least: int
) -> NDArray[np.uint8]:
    changes = np.full(pictures.valid.shape, SAME, np.uint8)
    changes[gained] = GAINED
    changes[lost & ~gained] = LOST
    changes[~pictures.valid] = NO_DATA
    return without_specks(changes, least)
