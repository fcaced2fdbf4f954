"""Areas of crop, weeds and soil: the classes of a label raster, and the result counted from a picture of classes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from agrotools.calling.contract import ToolResult
from agrotools.calling.result import ResultPart
from agrotools.calling.workspace import save_artifact
from agrotools.core import Artifact, ToolError
from agrotools.core.files import cache_dir, cached_files
from agrotools.core.texts import counted_names
from agrotools.vision import Box
from agrotools.vision.overlay import (
    BROWN,
    SKY_BLUE,
    VERMILLION,
    YELLOW,
    Colour,
    Layer,
    class_picture,
    draw_overlay,
)
from agrotools.vision.reading import LabelImage
from agrotools_tools.vision import Index

if TYPE_CHECKING:
    from agrotools_tools.crop_weed.measure import Rows

SeparationChoice = Literal["auto", "row", "model", "none"]
Method = Literal["row", "model", "none"]
ClassesFrom = Literal["labels", "row", "model", "index"]
UNTRAINED = "untrained"
"""Back-end that ignores trained heads, so that a result depends on the picture alone, on any machine."""


class RowGeometry(ResultPart):
    """Crop rows as they lie in the picture."""

    angle_deg: float
    """direction of the rows from the x axis, counter-clockwise, degrees in (-90, 90]"""
    spacing_px: float
    """distance between neighbouring rows, pixels"""
    spacing_m: float | None
    """the same in metres; null where the ground sampling distance is not known"""
    peak_ratio: float
    """plant cover on the row lines over plant cover midway between them; 3 or more"""
    repeat: float
    """correlation of the plant cover across the rows with itself one spacing further; 0.5 to 1"""
    accord: float
    """correlation of the rows in the two halves of the picture; 0.6 to 1"""


class BandTriplet(ResultPart):
    """Separability of the classes by three bands."""

    bands: tuple[str, ...]
    """the three bands"""
    expected_accuracy: float | None
    """mean share of each class that a classifier (the better of a quadratic and a histogram one) gets right with these
    bands on blocks of the picture that it was not learnt from, 0 to 1; null where it was not tried"""
    tied: bool
    """as good as the first for all that can be told: behind it by no more than the standard error of the difference
    (without a classifier: by no more than 0.01 in min_jm)"""
    min_jm: float
    """Jeffries-Matusita distance of the two classes that they tell apart worst, 0 (alike) to 2 (separable)"""
    worst_pair: str
    """those two classes"""
    mean_jm: float
    """mean distance over every two classes"""
    jm: dict[str, float]
    """Jeffries-Matusita distance of every two classes"""
    oif: float | None
    """optimum index factor of the bands, which looks at no classes; null where no two bands are correlated"""


class Separability(ResultPart):
    """Every three bands, ranked by how well they tell classes apart."""

    classes: tuple[str, ...]
    """the classes that were compared"""
    classes_from: Literal["labels", "row", "model", "index"]
    """where the classes come from: a label raster, or this call's own segmentation (then the bands that made it look
    better than they are)"""
    triplets: tuple[BandTriplet, ...]
    """best first; at most twenty"""
    ranked_by: Literal["expected_accuracy", "min_jm"]
    """what they are ranked by: min_jm only where a class has too few pixels to try a classifier"""
    ties: int
    """how many triplets are tied with the first, itself included"""


class AreasM2(ResultPart):
    """The same areas on the ground."""

    total: float
    """the whole part that was measured, m^2"""
    veg: float
    """plants, m^2"""
    crop: float | None
    """crop, m^2"""
    weed: float | None
    """weeds, m^2"""
    soil: float
    """soil, m^2"""


class CropWeedArea(ToolResult):
    total_px: int
    """pixels that were measured: of the region, without no-data; percentages refer to these"""
    veg_px: int
    """plants, pixels"""
    crop_px: int | None
    """crop, pixels; null where crop and weeds could not be told apart"""
    weed_px: int | None
    """weeds, pixels; null where crop and weeds could not be told apart"""
    soil_px: int
    """soil, pixels"""
    veg_pct: float
    """plant cover, percent of the area"""
    crop_pct: float | None
    """crop, percent of the area"""
    weed_pct: float | None
    """weeds, percent of the area"""
    soil_pct: float
    """soil, percent of the area"""
    weed_share_of_veg_pct: float | None
    """weeds, percent of the plants; null without plants"""
    weed_to_crop_ratio: float | None
    """weed area over crop area; null without crop"""
    area_m2: AreasM2 | None
    """the areas in square metres; null where the ground sampling distance is not known"""
    gsd_m: float | None
    """ground sampling distance that was used, metres per pixel"""
    method: Literal["labels", "row", "model", "none"]
    """how crop and weeds were told apart"""
    index: Index | None
    """the vegetation index that was used; null for a label raster"""
    row: RowGeometry | None
    """the crop rows that the picture shows; null where the evidence is weak (flag weak_row_evidence), and for labels"""
    separability: Separability | None
    """ranking of band triplets; null without at least three bands of a raster and two classes"""
    mask: Artifact
    """class numbers per pixel: 0 soil, 1 crop, 2 weeds, 3 plants not told apart, 4 other, 255 no data or outside"""
    overlay: Artifact
    """the picture with the classes drawn in"""


HEADS = ("heads", "crop_weed")


def heads_folder() -> Path:
    """Return the folder of the heads in the user's cache."""
    return cache_dir(*HEADS)


head_files = partial(cached_files, *HEADS, suffixes=(".json", ".npz"))
"""Function that lists every file that the choice and use of a head depends on."""

SOIL, CROP, WEED, PLANTS, OTHER, NO_DATA = 0, 1, 2, 3, 4, 255
CLASS_COLOURS: dict[int, Colour] = {
    SOIL: BROWN,
    CROP: SKY_BLUE,
    WEED: VERMILLION,
    PLANTS: YELLOW,
    OTHER: (150, 150, 150),
    NO_DATA: (0, 0, 0),
}


def area_result(
    *,
    shown: NDArray[np.uint8],
    classes: NDArray[np.uint8],
    box: Box,
    gsd_m: float | None,
    separated: bool,
    method: Literal["labels", "row", "model", "none"],
    index: Index | None = None,
    rows: "Rows | None" = None,
    separability: Separability | None = None,
    count: NDArray[np.int64] | None = None,
    shrink: int = 1,
    notes: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
) -> CropWeedArea:
    """Count, draw and save the classes, uint8 (rows, columns) of the class constants of this module.

    ``shown``: (rows, columns, 3), the background of the overlay. ``box``: measured part. ``separated``: True if crop
    and weeds are. ``count``: pixels of each class number, int64 (256,), required if ``classes`` is a reduced picture,
    of which one pixel has ``shrink`` pixels of the full one along its side. ToolError ``region_empty``: no data.
    """
    inside = np.s_[box[1] : box[3], box[0] : box[2]]
    if count is None:
        count = _count_classes(classes[inside])
    total = int(count.sum() - count[NO_DATA])
    if total == 0:
        raise ToolError(
            "region_empty",
            "the region holds no data",
            argument="region",
            hint="choose one with data",
        )
    veg, soil = int(count[CROP] + count[WEED] + count[PLANTS]), int(count[SOIL])
    crop, weed = (int(count[CROP]), int(count[WEED])) if separated else (None, None)

    mask = np.full_like(classes, NO_DATA)
    mask[inside] = classes[inside]
    is_whole = box == (0, 0, classes.shape[1], classes.shape[0])
    overlay = draw_overlay(
        shown,
        mask,
        _layers(count, total, separated),
        region=None if is_whole else box,
        gsd_m=None if gsd_m is None else gsd_m * shrink,
        title=f"plants {100 * veg / total:.2f} %, soil {100 * soil / total:.2f} % of {total} px",
    )
    if gsd_m is None:
        flags = (*flags, "no_scale")
    return CropWeedArea(
        total_px=total,
        veg_px=veg,
        crop_px=crop,
        weed_px=weed,
        soil_px=soil,
        veg_pct=100 * veg / total,
        crop_pct=None if crop is None else 100 * crop / total,
        weed_pct=None if weed is None else 100 * weed / total,
        soil_pct=100 * soil / total,
        weed_share_of_veg_pct=None if weed is None or not veg else 100 * weed / veg,
        weed_to_crop_ratio=None if weed is None or not crop else weed / crop,
        area_m2=None if gsd_m is None else _areas_m2(gsd_m, total, veg, crop, weed, soil),
        gsd_m=gsd_m,
        method=method,
        index=index,
        row=None if rows is None else _row_geometry(rows, gsd_m),
        separability=separability,
        mask=save_artifact("crop_weed_mask.png", "mask", class_picture(mask, CLASS_COLOURS)),
        overlay=save_artifact("crop_weed_overlay.png", "overlay", overlay),
        notes=notes,
        flags=tuple(dict.fromkeys(flags)),
    )


def _count_classes(classes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the number of pixels of each class number, int64 (256,)."""
    count = np.zeros(256, np.int64)
    # An eighth of the time of bincount, which makes 64-bit numbers of all pixels.
    for number in CLASS_COLOURS:
        count[number] = np.count_nonzero(classes == number)
    return count


def _areas_m2(
    gsd_m: float, total: int, veg: int, crop: int | None, weed: int | None, soil: int
) -> AreasM2:
    """Return areas in pixels as square metres."""
    pixel_m2 = gsd_m**2
    return AreasM2(
        total=total * pixel_m2,
        veg=veg * pixel_m2,
        crop=None if crop is None else crop * pixel_m2,
        weed=None if weed is None else weed * pixel_m2,
        soil=soil * pixel_m2,
    )


def _row_geometry(rows: "Rows", gsd_m: float | None) -> RowGeometry:
    return RowGeometry(
        angle_deg=rows.angle_deg,
        spacing_px=rows.spacing_px,
        spacing_m=None if gsd_m is None else rows.spacing_px * gsd_m,
        peak_ratio=rows.peak_ratio,
        repeat=rows.repeat,
        accord=rows.accord,
    )


def _layers(count: NDArray[np.int64], total: int, separated: bool) -> list[Layer]:
    layers = (
        [(CROP, "crop"), (WEED, "weeds")]
        if separated
        else [(PLANTS, "plants, crop and weeds not told apart")]
    )
    if count[OTHER]:
        layers.append((OTHER, "other"))
    return [
        Layer(value, CLASS_COLOURS[value], f"{label} {100.0 * count[value] / total:.2f} %")
        for value, label in layers
    ]


Area = Literal["crop", "weed", "soil", "ignore"]

_WORDS: dict[str, Area] = {
    **dict.fromkeys(("crop", "crops"), "crop"),
    **dict.fromkeys(("weed", "weeds"), "weed"),
    **dict.fromkeys(("soil", "bare soil", "ground", "background"), "soil"),
    **dict.fromkeys(("ignore", "nodata", "no data"), "ignore"),
}


def label_classes(
    labels: LabelImage,
    label_map: Mapping[str, Sequence[int]] | None,
    classes: Mapping[str, str] | None,
    name: str,
) -> tuple[NDArray[np.uint8], tuple[str, ...], tuple[str, ...]]:
    """Return a label raster as class constants of this module, uint8 (rows, columns), with notes and flags.

    Crop, weeds and soil come from ``label_map`` (numbers by area; without ``soil``, all other numbers are soil), else
    from ``classes``, the known meaning of each number. ToolError ``missing_metadata`` if the meaning is unknown;
    ``nothing_found``, ``invalid_argument``.
    """
    present = sorted(int(value) for value in np.unique(labels.classes))
    numbers, notes, flags = meaning_of_classes(label_map, classes, name, present)
    areas = np.full(labels.classes.shape, OTHER, np.uint8)
    values: dict[Area, int] = {"crop": CROP, "weed": WEED, "soil": SOIL, "ignore": NO_DATA}
    for area, value in values.items():
        areas[np.isin(labels.classes, numbers[area])] = value
    if labels.valid is not None:
        areas[~labels.valid] = NO_DATA
    if (areas == NO_DATA).all():
        raise ToolError(
            "nothing_found", f"{name} holds no class that counts", argument="label_raster"
        )
    return areas, notes, flags


def meaning_of_classes(
    label_map: Mapping[str, Sequence[int]] | None,
    classes: Mapping[str, str] | None,
    name: str,
    present: Sequence[int],
) -> tuple[dict[Area, list[int]], tuple[str, ...], tuple[str, ...]]:
    """Return the class numbers of each area, with notes and flags; arguments as for :func:`label_classes`."""
    numbers: dict[Area, list[int]] = {"crop": [], "weed": [], "soil": [], "ignore": []}
    notes: tuple[str, ...] = ()
    for key, members in (label_map or {}).items():
        area = _WORDS.get(key.strip().lower())
        if area is None:
            why = f"label_map: {key!r} is no area that is measured here"
            hint = "use crop, weed, soil or ignore, e.g. {'crop': [1], 'weed': [2], 'soil': [0]}"
            raise ToolError("invalid_argument", why, argument="label_map", hint=hint)
        numbers[area] += members
    if label_map is None and classes:
        for number, meaning in classes.items():
            area = _WORDS.get(meaning.strip().lower())
            if area is not None and number.strip().lstrip("-").isdigit():
                numbers[area].append(int(number))
        notes = ("meaning of the class numbers as known of the file",)
    if not numbers["crop"] and not numbers["weed"]:
        why = (
            f"what the class numbers of {name} mean is not known; it holds {_list_numbers(present)}"
        )
        hint = "give label_map, e.g. {'crop': [1], 'weed': [2], 'soil': [0]}"
        raise ToolError("missing_metadata", why, argument="label_map", hint=hint)
    counts = Counter(number for members in numbers.values() for number in members)
    if twice := sorted(number for number, count in counts.items() if count > 1):
        why = f"label_map: {_list_numbers(twice)} stands for two areas"
        raise ToolError("invalid_argument", why, argument="label_map")
    unnamed = [number for number in present if number not in counts]
    if not unnamed:
        return numbers, notes, ()
    if numbers["soil"]:
        note = f"class numbers {_list_numbers(unnamed)} are named nowhere: neither crop, weeds nor soil"
        return numbers, (*notes, note), ("unnamed_classes",)
    note = (
        f"class numbers {_list_numbers(unnamed)} counted as soil, since nothing else was named soil"
    )
    return {**numbers, "soil": unnamed}, (*notes, note), ()


_NUMBERS_NAMED = 12
"""Most numbers of classes that a note names."""


def _list_numbers(numbers: Sequence[int]) -> str:
    return counted_names([str(number) for number in numbers], _NUMBERS_NAMED)
