"""Change between two pictures or rasters: by normalised differences of bands, or of colours, plants and water; and
between two rasters of class numbers, counted exactly."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.calling.pictures import KnownRoles, class_names_of, known_roles, refuse_unsure
from agrotools.calling.workspace import file_info, shown_name
from agrotools.core import ToolError
from agrotools.vision import Box, Role
from agrotools.vision.rasters import RasterSource, chosen_roles, listed_bands, open_raster
from agrotools.vision.reading import read_labels, stretched_picture
from agrotools_tools.change.pairs import (
    BLOCK_PX,
    Frame,
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
from agrotools_tools.change.ponds import pond_change
from agrotools_tools.change.result import (
    CHANGED,
    GAINED,
    LOST,
    NO_DATA,
    SAME,
    ChangeCounts,
    ChangeRequest,
    ChangeResult,
    MethodChoice,
    PondChange,
    Target,
    VegetationChange,
    change_result,
    class_cells,
    class_changes,
    counts_of,
    refuse_unfit,
    two_classes,
    without_specks,
)
from agrotools_tools.vision import Index
from agrotools_tools.vision.alignment import check_sizes
from agrotools_tools.vision.blocks import block_boxes
from agrotools_tools.vision.index_bands import bands_in_words
from agrotools_tools.vision.vegetation import (
    INDICES,
    choose_index,
    index_values,
    otsu_of_counts,
    refuse_doubtful_plants,
    segment,
)
from agrotools_tools.zones.numbers import doubts_on_numbers

_LEAST_DIFFERENCE = 0.1
"""Smallest automatic threshold; sensors and atmosphere cause smaller differences of normalised indices."""
_SCENE_WIDE = 0.5
"""Share of the scene that moves in one direction above which season is the likelier cause."""
_NEGLIGIBLE = 0.01
"""Share of the scene that must differ for plants to be said to differ; less is within what noise does."""
_LARGEST_INDEX, _MOST_OUTSIDE = 1.05, 0.01
"""Largest size of a normalised index, with room for rounding, and the share of larger values that is refused."""
_LARGEST_DIFFERENCE = 2.0
"""Largest difference of two normalised indices, which are -1 to 1."""
_BINS = 512
"""Bins of the histogram of differences from which the automatic threshold is found."""
_NORMALISED: tuple[Index, ...] = ("ndvi", "gndvi", "ndre")
_PLANTS_FROM = 0.4
"""Least NDVI of closed green cover; fields between crops and built-up land have less."""
_CLASSES = ("bare or built-up", "vegetation", "water")
_NEEDED: tuple[Role, ...] = ("G", "R", "NIR")
_SPECK_SHARE = 0.0005
"""Share of a picture below which a changed area of plants is a speck, unless the request sets a least area."""
_LEAST_SPECK_PX = 20
"""Fewest pixels of a changed area of plants that is no speck, in small pictures."""
_UNUSABLE = frozenset({"too_dark", "featureless_image"})
_WEAK_FOR_PLANTS = _UNUSABLE | {
    "low_contrast",
    "no_vegetation",
    "no_soil_visible",
    "registration_uncertain",
}
_SAME_POND = 0.25
"""Least share of a pond's area that is water on the other date for the two to be the same pond."""

_MOST_CLASSES = 100
"""Most values that two label rasters may have; rasters with more are taken for pictures."""
_IGNORED = frozenset({"ignore", "nodata", "no data", "no_data", "unlabelled", "unlabeled"})
_MARKED: dict[Target, str] = {
    "farmland": "farmland",
    "pond": "water",
    "vegetation": "vegetation",
    "any": "marked",
}
_PALETTE = np.array(
    [(70, 70, 70), (86, 180, 233), (213, 94, 0), (240, 228, 66), (0, 158, 115), (204, 121, 167), (0, 114, 178),
     (230, 159, 0), (170, 170, 170), (94, 70, 50)], np.uint8)  # fmt: skip
"""Colours of Okabe and Ito (2008), extended; they repeat after the tenth class."""

Bands = Mapping[str, int | str]
Classes = NDArray[np.int32]


def measure_change(
    before: Path,
    after: Path,
    target: Target,
    method: MethodChoice,
    bands: Bands | None,
    register: bool,
    threshold: float | Literal["otsu"],
    request: ChangeRequest,
) -> ChangeResult:
    """Compare two pictures or rasters; arguments and errors are those of the tool."""
    if threshold != "otsu" and threshold <= 0:
        raise ToolError("invalid_argument", "threshold must be above 0", argument="threshold")
    if target in ("vegetation", "pond"):
        refuse_unfit(method, ("auto",), f"{target} is found on each date and then compared")
    if bands is not None or are_rasters(before, after):
        with (
            open_raster(before, argument="before", shown_as=shown_name(before)) as first,
            open_raster(after, argument="after", shown_as=shown_name(after)) as second,
        ):
            has_index = target == "vegetation" and _index_of(first, before, bands) is not None
            no_roles = KnownRoles({}, first.band_names)
            known = no_roles if has_index else known_roles(first, bands, file_info(before))
            roles = known.roles
            in_colours = bands is None and first.count >= 3 and first.dtype == "uint8"
            in_colours = not has_index and (in_colours or {"R", "G", "B"} <= roles.keys())
            if target == "vegetation" and not in_colours:
                return _index_change(before, after, bands, threshold, request)
            known_after = known_roles(second, bands, file_info(after))
            are_bands = all(
                role in {**known.roles, **known.unsure}
                and role in {**known_after.roles, **known_after.unsure}
                for role in _NEEDED
            )
            if are_bands and not (target == "pond" and in_colours):
                refuse_unsure(first, known, _NEEDED)
                refuse_unsure(second, known_after, _NEEDED)
                return _land_class_change(
                    before, after, bands, request, water_only=target == "pond"
                )
    pictures = read_pictures(before, after, bands, request, register=register)
    if target == "vegetation":
        return _plant_cover_change(pictures, request)
    if target == "pond":
        return _water_change(pictures, request)
    return _built_up_change(pictures, target)


def _index_change(
    before: Path,
    after: Path,
    bands: Bands | None,
    threshold: float | Literal["otsu"],
    request: ChangeRequest,
) -> ChangeResult:
    """Threshold the difference of a vegetation index, in strips, so that rasters may be of any size."""
    with open_raster_pair(before, after) as pair:
        dates = _IndexPair(pair, *_common_index(pair, before, after, bands))
        doubts, flags_of_numbers = dates.doubts()
        source = pair.first
        frame = frame_of(
            request, (source.width, source.height), (before, after), source.sampling.gsd_m
        )
        level = _otsu_level(dates, frame.box) if threshold == "otsu" else float(threshold)
        difference = _map_index_change(dates, frame, level)
        check_common(difference.valid_px > 0, before, after)
        _refuse_no_index(difference, shown_name(before), shown_name(after))
        pictures = grey_pair(*dates.read_thumbnails())
    changed, why, flags = _answer_of_plants(difference.changes[slices_of(frame.box)])
    name = dates.index.upper()
    least = f" (Otsu, at least {_LEAST_DIFFERENCE:g})" if threshold == "otsu" else ""
    how = f"{name} of the two dates subtracted; gain or loss where it differs by over {level:.4g}{least}"
    return change_result(
        difference.changes,
        pictures,
        frame.box,
        {GAINED: f"{name} up", LOST: f"{name} down"},
        method="index_difference",
        changed=changed,
        gsd_m=frame.scale.gsd_m,
        vegetation=VegetationChange(
            index=dates.index,
            mean_before=difference.sum_before / difference.valid_px,
            mean_after=difference.sum_after / difference.valid_px,
            threshold=level,
            cover_before_pct=None,
            cover_after_pct=None,
        ),
        notes=(how, *why, *doubts, *pair.notes, *frame.scale.notes),
        flags=tuple(dict.fromkeys((*flags, *flags_of_numbers, *pair.flags, *frame.flags))),
    )


@dataclass(frozen=True)
class _IndexPair:
    """Vegetation index of both dates. ``numbers``: bands of each raster that hold it or that it is computed from."""

    pair: RasterPair
    index: Index
    numbers: tuple[list[int], list[int]]

    def read(self, box: Box) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Read the index of both dates in a box."""
        before, after = self.numbers
        return (
            self._index_of_bands(self.pair.first.read(before, box)),
            self._index_of_bands(self.pair.second.read(after, box)),
        )

    def read_thumbnails(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Read the index of the whole rasters at the size of a panel."""
        before, after = self.numbers
        return (
            self._index_of_bands(thumbnail(self.pair.first, before)),
            self._index_of_bands(thumbnail(self.pair.second, after)),
        )

    def _index_of_bands(self, bands: NDArray[np.float32]) -> NDArray[np.float32]:
        if len(bands) == 1:  # the band holds the index
            return bands[0]
        return index_values(self.index, dict(zip(INDICES[self.index].bands, bands, strict=True)))

    def doubts(self) -> tuple[list[str], list[str]]:
        """Return notes on the bands, and notes and flags on those whose numbers may not be reflectances."""
        notes: list[str] = []
        flags: list[str] = []
        for raster, numbers in zip((self.pair.first, self.pair.second), self.numbers, strict=True):
            if len(numbers) == 1:
                continue
            used = dict(zip(INDICES[self.index].bands, numbers, strict=True))
            notes.append(f"{raster.name}: {self.index} of {bands_in_words(raster, used)}")
            more_notes, more_flags = doubts_on_numbers(raster, used, can_be_stated=False)
            notes += [f"{raster.name}: {note}" for note in more_notes]
            flags += more_flags
        return notes, flags


def _otsu_level(dates: _IndexPair, box: Box) -> float:
    """Return the threshold between small and large differences in a box (Otsu 1979), at least
    :data:`_LEAST_DIFFERENCE`."""
    histogram = np.zeros(_BINS, np.int64)
    for part in block_boxes(box, dates.pair.tile, BLOCK_PX):
        first, second = dates.read(part)
        size = np.abs(second - first)
        known = np.minimum(size[np.isfinite(size)], _LARGEST_DIFFERENCE)
        counts, _ = np.histogram(known, bins=_BINS, range=(0.0, _LARGEST_DIFFERENCE))
        histogram += counts
    edges = np.linspace(0.0, _LARGEST_DIFFERENCE, _BINS + 1)
    return max(_LEAST_DIFFERENCE, otsu_of_counts(histogram, edges))


class _IndexDifference(NamedTuple):
    """Difference of an index between two dates.

    ``changes``: map of gain and loss. ``valid_px``: pixels with data on both dates; ``outside_px``: those of them
    whose values are too large for an index. ``sum_before``, ``sum_after``: of the index over valid pixels.
    """

    changes: NDArray[np.uint8]
    valid_px: int
    outside_px: int
    sum_before: float
    sum_after: float


def _map_index_change(dates: _IndexPair, frame: Frame, level: float) -> _IndexDifference:
    """Map where the index differs by more than ``level``, part by part."""
    source = dates.pair.first
    changes = np.full((source.height, source.width), NO_DATA, np.uint8)
    valid_px = outside_px = 0
    sum_before = sum_after = 0.0
    for part in frame.parts(dates.pair.tile):
        first, second = dates.read(part)
        difference = second - first
        valid = np.isfinite(difference)
        valid_px += int(np.count_nonzero(valid))
        is_outside = np.maximum(np.abs(first), np.abs(second)) > _LARGEST_INDEX
        outside_px += int(np.count_nonzero(valid & is_outside))
        sum_before += float(first[valid].sum(dtype=np.float64))
        sum_after += float(second[valid].sum(dtype=np.float64))
        kinds = np.full(difference.shape, SAME, np.uint8)
        kinds[difference > level] = GAINED
        kinds[difference < -level] = LOST
        kinds[~valid] = NO_DATA
        changes[slices_of(part)] = without_specks(kinds, frame.least_px)
    return _IndexDifference(changes, valid_px, outside_px, sum_before, sum_after)


def _refuse_no_index(difference: _IndexDifference, first_name: str, second_name: str) -> None:
    """Raise a ToolError ``invalid_argument`` if too many values are larger than those of a normalised index."""
    outside_px, valid_px = difference.outside_px, difference.valid_px
    if outside_px > _MOST_OUTSIDE * valid_px:
        why = f"{100 * outside_px / valid_px:.0f} % of the values of {first_name} or {second_name} are not in -1..1"
        hint = "name the bands to compute the index from, or give classes as before_mask and after_mask"
        raise ToolError("invalid_argument", why, argument="bands", hint=hint)


def _answer_of_plants(
    changes: NDArray[np.uint8],
) -> tuple[bool | None, tuple[str, ...], tuple[str, ...]]:
    """Return the verdict on plants, notes and flags.

    The verdict is None if under 1 % of the area differs or over half of the scene moves in one direction.
    """
    count = counts_of(changes)
    gain, loss, total = int(count[GAINED]), int(count[LOST]), int(count.sum() - count[NO_DATA])
    flags = ("phenology_risk",)
    if gain == loss == 0:
        return False, (), ()
    if max(gain, loss) > _SCENE_WIDE * total:
        why = f"over {100 * _SCENE_WIDE:.0f} % of the scene moves one way: season or weather is the likelier cause"
        return None, (why,), (*flags, "scene_wide_shift")
    if gain + loss < _NEGLIGIBLE * total:
        return (
            None,
            (f"under {100 * _NEGLIGIBLE:.0f} % of the area differs: within what noise does",),
            flags,
        )
    return True, ("plants differ; whether land use does cannot be told from two dates",), flags


def _common_index(
    pair: RasterPair, before: Path, after: Path, bands: Bands | None
) -> tuple[Index, tuple[list[int], list[int]]]:
    """Return the index that both rasters have, and the bands of each that hold it or that it is computed from."""
    sources = [
        _index_of(source, path, bands)
        for source, path in ((pair.first, before), (pair.second, after))
    ]
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


def _index_of(
    source: RasterSource, path: Path, bands: Bands | None
) -> tuple[Index, list[int]] | None:
    """Return an index and the band that holds it or the bands to compute it from, or None if there is no index."""
    info = file_info(path)
    names = source.names(info.bands if info else None)
    asked = {key.strip().lower(): band for key, band in (bands or {}).items()}
    for index in _NORMALISED:
        if index in asked:
            return index, [chosen_roles({"NIR": asked[index]}, names, file=source.name)["NIR"]]
    for number, name in enumerate(names if bands is None else (), start=1):
        for index in _NORMALISED:
            if name and name.strip().lower() == index:
                return index, [number]
    known = known_roles(source, bands, info)
    for index in _NORMALISED:
        needed = INDICES[index].bands
        if all(role in known.roles or role in known.unsure for role in needed):
            refuse_unsure(source, known, needed)
            return index, [known.roles[role] for role in needed]
    return None


def _land_class_change(
    before: Path, after: Path, bands: Bands | None, request: ChangeRequest, *, water_only: bool
) -> ChangeResult:
    """Classify each date by NDWI (water above 0, McFeeters 1996) and NDVI (Rouse et al. 1974) and compare classes."""
    with open_raster_pair(before, after) as pair:
        first = pair.first
        refuse_too_large(first.width, first.height, first.name, "classifying land")
        frame = frame_of(
            request, (first.width, first.height), (before, after), first.sampling.gsd_m
        )
        classes_before, picture_before, said_before = _classify(first, before, bands)
        classes_after, picture_after, said_after = _classify(pair.second, after, bands)
    valid = (classes_before >= 0) & (classes_after >= 0)
    check_common(bool(valid.any()), before, after)
    if water_only:
        classes_before, classes_after = (
            np.where(part == 2, 1, np.minimum(part, 0)) for part in (classes_before, classes_after)
        )
    changes = class_changes(
        classes_before, classes_after, valid, frame.least_px, has_direction=water_only
    )
    inside = slices_of(frame.box)
    titles = ("no water", "water") if water_only else _CLASSES
    cells = class_cells(classes_before[inside], classes_after[inside], changes[inside], len(titles))
    is_same = int(cells.sum()) == int(np.trace(cells))
    how = (
        f"NDWI over 0 is water, else NDVI over {_PLANTS_FROM:g} is vegetation, each date by itself"
    )
    why = (
        ()
        if is_same
        else ("season moves these classes too, so whether land use changed is not said",)
    )
    return change_result(
        changes,
        (picture_before, picture_after),
        frame.box,
        {GAINED: "water gained", LOST: "water lost"} if water_only else {CHANGED: "another class"},
        method="water_masks" if water_only else "post_class",
        changed=False if is_same else None,
        counts=(titles, cells),
        gsd_m=frame.scale.gsd_m,
        pond=_pond_of_masks((titles, cells)) if water_only else None,
        notes=(how, *why, said_before, said_after, *pair.notes, *frame.scale.notes),
        flags=(*(() if is_same else ("phenology_risk",)), *pair.flags, *frame.flags),
    )


def _classify(
    source: RasterSource, path: Path, bands: Bands | None
) -> tuple[NDArray[np.int64], NDArray[np.uint8], str]:
    """Return the index in :data:`_CLASSES` of each pixel, -1 without data, a picture, and a note on the bands."""
    roles = known_roles(source, bands, file_info(path)).roles
    values = source.read([roles[role] for role in _NEEDED])
    valid = np.isfinite(values).all(axis=0)
    classes = np.zeros(valid.shape, np.int64)
    bands_of = dict(zip(_NEEDED, values, strict=True))
    classes[index_values("ndvi", bands_of) > _PLANTS_FROM] = 1
    classes[index_values("gndvi", bands_of) < 0] = 2  # GNDVI is NDWI with the opposite sign
    classes[~valid] = -1
    used: dict[Role, int] = {role: roles[role] for role in _NEEDED}
    said = f"{source.name}: classes of {bands_in_words(source, used)}"
    return classes, stretched_picture(bands_of), said


def _built_up_change(pictures: Pictures, target: str) -> ChangeResult:
    """Say whether two photographs are equal: there is no map of new or lost buildings.

    A rule for single roofs that was chosen on pairs of one data set was worse than marking everything as changed on
    another, and nothing in the pictures told where it works (``docs/accuracy.md``).
    """
    inside = slices_of(pictures.box)
    same = not (
        (pictures.before[inside] != pictures.after[inside]).any(axis=-1) & pictures.valid[inside]
    ).any()
    kind, word = (
        (GAINED, "buildings gained") if target == "farmland" else (CHANGED, "buildings changed")
    )
    why = "buildings cannot be mapped from photographs reliably: no map of change is given; give masks of both dates"
    return _result(
        pictures,
        np.where(pictures.valid, SAME, NO_DATA).astype(np.uint8),
        {kind: word} if same else {},
        method="post_class",
        changed=False if same and not _UNUSABLE & set(pictures.flags) else None,
        notes=("the two pictures are equal",) if same else (why,),
        flags=() if same else ("buildings_not_mapped",),
    )


def _plant_cover_change(pictures: Pictures, request: ChangeRequest) -> ChangeResult:
    """Separate plants from soil by colour on each date and compare the two masks."""
    least = request.least_px(
        pictures.gsd_m, max(_LEAST_SPECK_PX, round(_SPECK_SHARE * pictures.valid.size))
    )
    masks: list[NDArray[np.bool_]] = []
    notes: list[str] = []
    flags: list[str] = []
    for picture, when in ((pictures.before, "before"), (pictures.after, "after")):
        channels: dict[Role, NDArray[Any]] = {
            "R": picture[..., 0],
            "G": picture[..., 1],
            "B": picture[..., 2],
        }
        plants = segment(choose_index("auto", channels), channels, pictures.valid)
        if not _UNUSABLE & set(pictures.flags):  # these give no answer anyway, and say why
            refuse_doubtful_plants(picture, plants, argument=when)
        masks.append(plants.mask)
        notes += [f"{when}: {note}" for note in plants.notes]
        flags += plants.flags
    changes = without_specks(
        _change_map(pictures, masks[1] & ~masks[0], masks[0] & ~masks[1]), least
    )
    inside = slices_of(pictures.box)
    changed, why, risk = _answer_of_plants(changes[inside])
    # Without reflectance each date has its own threshold, so a mask from colours is weaker evidence than an index.
    weak = _WEAK_FOR_PLANTS & {*flags, *pictures.flags}
    cover = [
        100.0 * float(mask[inside].sum()) / max(1, int(pictures.valid[inside].sum()))
        for mask in masks
    ]
    return _result(
        pictures,
        changes,
        {GAINED: "plants gained", LOST: "plants lost"},
        method="index_difference",
        changed=None if weak else changed,
        counts=two_classes(("no plants", "plants"), masks[0][inside], changes[inside]),
        vegetation=VegetationChange(
            index="lab_a",
            mean_before=None,
            mean_after=None,
            threshold=None,
            cover_before_pct=cover[0],
            cover_after_pct=cover[1],
        ),
        notes=(*notes, *why, *((f"patches under {least} px do not count",) if least > 1 else ())),
        flags=(*flags, *risk),
    )


def _water_change(pictures: Pictures, request: ChangeRequest) -> ChangeResult:
    """Find standing water on each date and its change, see :func:`agrotools_tools.change.ponds.pond_change`."""
    least = (
        None
        if request.min_area_px is request.min_area_m2 is None
        else request.least_px(pictures.gsd_m, 1)
    )
    inside = slices_of(pictures.box)
    asked: NDArray[np.bool_] | None = None
    if request.region is not None:
        asked = np.zeros(pictures.valid.shape, np.bool_)
        asked[inside] = True
    ponds = pond_change(
        pictures.before,
        pictures.after,
        pictures.valid,
        infrared=pictures.infrared or (None, None),
        gsd_m=pictures.gsd_m,
        min_area_px=least,
        asked=asked,
    )
    before, after = ponds.water_before, ponds.water_after
    changes = _change_map(
        pictures, _drop_overlapping(after, before), _drop_overlapping(before, after)
    )
    # The search for a dry basin at the place of the water requires two registered pictures.
    event = None if (_UNUSABLE | {"registration_uncertain"}) & set(pictures.flags) else ponds.event
    return _result(
        pictures,
        changes,
        {GAINED: "water gained", LOST: "water lost"},
        method="water_masks",
        changed=None if event is None else event != "none",
        counts=two_classes(("no water", "water"), before[inside], changes[inside]),
        pond=PondChange.of(event, int(before[inside].sum()), int(after[inside].sum())),
        notes=(
            *ponds.notes,
            "change is counted of ponds that are water on one date only, not along shifting shores",
        ),
        flags=ponds.flags,
    )


def _drop_overlapping(mask: NDArray[np.bool_], other: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the components of ``mask`` that hardly overlap ``other``."""
    count, labels = cv2.connectedComponents(mask.view(np.uint8), connectivity=8)
    places = np.asarray(labels, np.int32)
    alone = np.bincount(places[other], minlength=count) < _SAME_POND * np.bincount(
        places.ravel(), minlength=count
    )
    alone[0] = False
    return alone[places]


def _change_map(
    pictures: Pictures, gained: NDArray[np.bool_], lost: NDArray[np.bool_]
) -> NDArray[np.uint8]:
    changes = np.full(pictures.valid.shape, SAME, np.uint8)
    changes[lost] = LOST
    changes[gained] = GAINED
    changes[~pictures.valid] = NO_DATA
    return changes


def _result(
    pictures: Pictures,
    changes: NDArray[np.uint8],
    words: dict[int, str],
    *,
    notes: tuple[str, ...],
    flags: tuple[str, ...],
    **more: Any,
) -> ChangeResult:
    dates, all_notes = (pictures.before, pictures.after), (*pictures.notes, *notes)
    about = {"gsd_m": pictures.gsd_m, "shift_px": pictures.shift_px, "notes": all_notes}
    return change_result(
        changes, dates, pictures.box, words, flags=(*pictures.flags, *flags), **about, **more
    )


class _ClassTable(NamedTuple):
    """Names of the class numbers of a pair.

    ``numbers``: all class numbers present, ascending. ``places``: index of each number's class in ``names``, -1 if it
    is not counted. ``is_marked``: True if the rasters mark one thing (0 elsewhere), so that change has a direction.
    """

    numbers: Classes
    places: NDArray[np.int64]
    names: tuple[str, ...]
    is_marked: bool
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    def places_of(self, classes: Classes) -> NDArray[np.int64]:
        return self.places[np.searchsorted(self.numbers, classes)]

    def colours_of(self, values: NDArray[Any]) -> NDArray[np.uint8]:
        known = np.isin(values, self.numbers)
        places = self.places_of(np.where(known, values, self.numbers[0]).astype(np.int32))
        return np.where(
            (known & (places >= 0))[..., None], _PALETTE[places % len(_PALETTE)], np.uint8(255)
        )


class _Labels(NamedTuple):
    """Open pair of label rasters.

    ``read``: function from a box to the classes before and after in it, and the mask of pixels with data in both.
    ``shown``: function that returns the class numbers before and after at the size of a panel or larger.
    """

    width: int
    height: int
    read: Callable[[Box], tuple[Classes, Classes, NDArray[np.bool_]]]
    shown: Callable[[], tuple[NDArray[Any], NDArray[Any]]]
    in_file_m: float | None = None
    tile: tuple[int, int] = (1, 1)
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def label_change(
    files: Mapping[str, Path],
    images: tuple[Path, ...],
    label_map: Mapping[str, Sequence[int]] | None,
    target: Target,
    request: ChangeRequest,
) -> ChangeResult:
    """Compare two label rasters or masks pixel by pixel, in strips, so that they may be of any size.

    ``files``: those of both dates by argument. ``images``: pictures that they belong to, whose known scale applies.
    """
    with _open_labels(files) as labels:
        frame = frame_of(
            request, (labels.width, labels.height), (*files.values(), *images), labels.in_file_m
        )
        least = frame.least_px
        table = _class_table(
            _present_classes(labels, frame.box, files), label_map, files, _MARKED[target]
        )
        changes = np.full((labels.height, labels.width), NO_DATA, np.uint8)
        size = len(table.names)
        has_direction = table.is_marked and size == 2
        cells = np.zeros((size, size), np.int64)
        for part in frame.parts(labels.tile):
            first, second, valid = labels.read(part)
            old, new = table.places_of(first), table.places_of(second)
            kinds = class_changes(old, new, valid, least, has_direction=has_direction)
            changes[slices_of(part)] = kinds
            cells += class_cells(old, new, kinds, size)
        before, after = map(table.colours_of, labels.shown())
    if not cells.sum():
        why = "no pixel has a class that counts in both files"
        raise ToolError("nothing_found", why, argument=list(files)[1])
    words = {GAINED: f"{table.names[-1]} gained", LOST: f"{table.names[-1]} lost"}
    speckless = (f"patches under {least} px do not count",) if least > 1 else ()
    notes = (
        "classes counted pixel by pixel: exact",
        *speckless,
        *labels.notes,
        *table.notes,
        *frame.scale.notes,
    )
    return change_result(
        changes,
        (before, after),
        frame.box,
        words if has_direction else {CHANGED: "another class"},
        method="mask_diff",
        changed=int(cells.sum()) > int(np.trace(cells)),
        gsd_m=frame.scale.gsd_m,
        counts=(table.names, cells),
        pond=_pond_of_masks((table.names, cells)) if target == "pond" else None,
        notes=notes,
        flags=(*labels.flags, *table.flags, *frame.flags),
    )


def _pond_of_masks(counts: ChangeCounts) -> PondChange | None:
    """Return the water areas of two water masks; if they differ, the event is None, because masks show no cause."""
    classes, px = counts
    if len(classes) != 2:
        return None
    same = int(px[0, 1] + px[1, 0]) == 0
    return PondChange.of("none" if same else None, int(px[1].sum()), int(px[:, 1].sum()))


def _class_table(
    present: tuple[Classes, Classes],
    label_map: Mapping[str, Sequence[int]] | None,
    files: Mapping[str, Path],
    marked: str,
) -> _ClassTable:
    """Find the names of the class numbers ``present`` in each raster: of ``label_map``, else those known of each file;
    a mask of 0 and one other number marks ``marked``. ToolError ``invalid_argument`` if a number has two names or
    there are too many classes."""
    names = [shown_name(path) for path in files.values()]
    numbers = np.union1d(*present).astype(np.int32)
    if numbers.size > _MOST_CLASSES:
        why = f"{names[0]} and {names[1]} hold {numbers.size} different values: these are no class numbers"
        hint = f"label rasters have up to {_MOST_CLASSES} classes; for pictures leave out label_map and mask_diff"
        raise ToolError("invalid_argument", why, argument="before", hint=hint)
    first, second = (
        class_names_of(None, info.classes if info else None)
        for info in map(file_info, files.values())
    )
    twice = [number for number in first.keys() & second if first[number] != second[number]]
    if label_map is None and twice:
        why = f"class {twice[0]} has another name in {names[0]} than in {names[1]}"
        raise ToolError(
            "invalid_argument",
            why,
            argument="label_map",
            hint="say with label_map what the numbers mean",
        )
    class_names = class_names_of(label_map, None) if label_map is not None else first | second
    is_mask = all(np.count_nonzero(values) <= 1 for values in present)
    # The two dates may use different numbers for the marked area, such as 1 and 255.
    if not class_names and is_mask and (numbers >= 0).all():
        places, note = (numbers != 0).astype(np.int64), f"masks: what is not 0 is {marked}"
        return _ClassTable(numbers, places, ("other", marked), is_marked=True, notes=(note,))
    notes: tuple[str, ...] = ()
    if unnamed := [number for number in numbers.tolist() if number not in class_names]:
        known = f"class numbers {unnamed[:12]} have no name"
        notes = (
            known
            if class_names
            else "names of the classes are not known: give label_map for names",
        )
    titles = [class_names.get(number, f"class {number}") for number in numbers.tolist()]
    counted = list(dict.fromkeys(title for title in titles if title.lower() not in _IGNORED))
    places = np.array(
        [counted.index(title) if title in counted else -1 for title in titles], np.int64
    )
    is_marked = len(counted) <= 2 and 0 in numbers and is_mask
    return _ClassTable(
        numbers, places, tuple(counted), is_marked, notes, ("unnamed_classes",) if notes else ()
    )


def _present_classes(
    labels: _Labels, box: Box, files: Mapping[str, Path]
) -> tuple[Classes, Classes]:
    found: tuple[set[int], set[int]] = set(), set()
    any_valid = False
    for part in block_boxes(box, labels.tile, BLOCK_PX):
        *dates, valid = labels.read(part)
        any_valid = any_valid or bool(valid.any())
        for numbers, classes in zip(found, dates, strict=True):
            low, high = int(classes.min()), int(classes.max())
            few = low >= 0 and high < 65_536  # then counting is faster than sorting
            numbers.update(
                (
                    np.flatnonzero(np.bincount(classes.ravel())) if few else np.unique(classes)
                ).tolist()
            )
    check_common(any_valid, *files.values())
    before, after = (np.array(sorted(numbers), np.int32) for numbers in found)
    return before, after


@contextmanager
def _open_labels(files: Mapping[str, Path]) -> Iterator[_Labels]:
    if are_rasters(*files.values()):
        with _open_rasters(files) as labels:
            yield labels
        return
    names = [shown_name(path) for path in files.values()]
    first, second = (
        read_labels(path, argument=each, shown_as=shown_name(path)) for each, path in files.items()
    )
    check_sizes(first.classes.shape, second.classes.shape, (names[0], names[1]), list(files)[1])
    valid = np.ones(first.classes.shape, np.bool_)
    for image in (first, second):
        if image.valid is not None:
            valid &= image.valid

    def read(box: Box) -> tuple[Classes, Classes, NDArray[np.bool_]]:
        part = slices_of(box)
        return first.classes[part], second.classes[part], valid[part]

    arrays, notes = (first.classes, second.classes), (*first.notes, *second.notes)
    height, width = first.classes.shape
    yield _Labels(width, height, read, lambda: arrays, notes=notes)


@contextmanager
def _open_rasters(files: Mapping[str, Path]) -> Iterator[_Labels]:
    with open_raster_pair(*files.values(), labels=True, arguments=tuple(files)) as pair:
        sources = pair.first, pair.second
        for source in sources:
            if source.count != 1:
                why = f"{source.name} has {source.count} bands; a label raster has one, whose values are class numbers"
                raise ToolError("unreadable_file", why, argument=source.argument)

        def read(box: Box) -> tuple[Classes, Classes, NDArray[np.bool_]]:
            values = [source.read([1], box)[0] for source in sources]
            valid = np.asarray(np.isfinite(values[0]) & np.isfinite(values[1]))
            first, second = map(
                _to_class_numbers, values, (valid, valid), (source.name for source in sources)
            )
            return first, second, valid

        yield _Labels(
            pair.first.width, pair.first.height, read,
            lambda: (thumbnail(pair.first, [1])[0], thumbnail(pair.second, [1])[0]),
            pair.first.sampling.gsd_m, pair.tile, pair.notes, pair.flags,
        )  # fmt: skip


def _to_class_numbers(values: NDArray[np.float32], valid: NDArray[np.bool_], name: str) -> Classes:
    # Pixels without data get an arbitrary valid class number; the mask excludes them later.
    numbers = values[valid]
    classes = np.where(valid, values, numbers[0] if numbers.size else 0)
    if not np.array_equal(classes, np.rint(classes)):
        raise ToolError(
            "unreadable_file",
            f"{name} has fractional values; class numbers are whole",
            argument="before",
        )
    return classes.astype(np.int32)
