"""Areas of crop, weeds and soil: the classes of a label raster, and the result counted from a picture of classes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.tools.crop_weed.measure_crop_weed_area import AreasM2, CropWeedArea, RowGeometry, Separability
from agrotools.tools.workspace import save_artifact
from agrotools.vision import Box, Index
from agrotools.vision.overlay import BROWN, SKY_BLUE, VERMILLION, YELLOW, Colour, Layer, class_picture, draw_overlay
from agrotools.vision.reading import LabelImage

if TYPE_CHECKING:
    from agrotools.tools.crop_weed.separation import Rows

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
    x0, y0, x1, y1 = box
    count = _counts(classes[y0:y1, x0:x1]) if count is None else count
    total = int(count.sum() - count[NO_DATA])
    if total == 0:
        raise ToolError("region_empty", "the region holds no data", argument="region", hint="choose one with data")
    veg, soil = int(count[CROP] + count[WEED] + count[PLANTS]), int(count[SOIL])
    crop, weed = (int(count[CROP]), int(count[WEED])) if separated else (None, None)
    pixel = None if gsd_m is None else gsd_m**2
    mask = np.full_like(classes, NO_DATA)
    mask[y0:y1, x0:x1] = classes[y0:y1, x0:x1]
    overlay = draw_overlay(
        shown,
        mask,
        _layers(count, total, separated),
        region=None if box == (0, 0, classes.shape[1], classes.shape[0]) else box,
        gsd_m=gsd_m and gsd_m * shrink,
        title=f"plants {100 * veg / total:.2f} %, soil {100 * soil / total:.2f} % of {total} px",
    )
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
        area_m2=None
        if pixel is None
        else AreasM2(
            total=total * pixel,
            veg=veg * pixel,
            crop=None if crop is None else crop * pixel,
            weed=None if weed is None else weed * pixel,
            soil=soil * pixel,
        ),
        gsd_m=gsd_m,
        method=method,
        index=index,
        row=None if rows is None else _row_geometry(rows, gsd_m),
        separability=separability,
        mask=save_artifact("crop_weed_mask.png", "mask", class_picture(mask, CLASS_COLOURS)),
        overlay=save_artifact("crop_weed_overlay.png", "overlay", overlay),
        notes=notes,
        flags=tuple(dict.fromkeys(flags if gsd_m is not None else (*flags, "no_scale"))),
    )


def _counts(classes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the number of pixels of each class, (256,)."""
    count = np.zeros(256, np.int64)
    for number in CLASS_COLOURS:  # an eighth of the time of bincount, which makes 64-bit numbers of all pixels
        count[number] = np.count_nonzero(classes == number)
    return count


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
    layers = [(CROP, "crop"), (WEED, "weeds")] if separated else [(PLANTS, "plants, crop and weeds not told apart")]
    if count[OTHER]:
        layers.append((OTHER, "other"))
    return [
        Layer(value, CLASS_COLOURS[value], f"{label} {100.0 * count[value] / total:.2f} %") for value, label in layers
    ]


Area = Literal["crop", "weed", "soil", "ignore"]

_WORDS: dict[str, Area] = {
    **dict.fromkeys(("crop", "crops"), "crop"),
    **dict.fromkeys(("weed", "weeds"), "weed"),
    **dict.fromkeys(("soil", "bare soil", "ground", "background"), "soil"),
    **dict.fromkeys(("ignore", "nodata", "no data"), "ignore"),
}


@dataclass(frozen=True, eq=False)
class LabelAreas:
    """Areas of a label raster as masks, bool (rows, columns).

    ``valid``: pixels that count. Valid pixels outside ``crop``, ``weed`` and ``soil`` are ``other``.
    """

    crop: NDArray[np.bool_]
    weed: NDArray[np.bool_]
    soil: NDArray[np.bool_]
    valid: NDArray[np.bool_]
    notes: tuple[str, ...]
    flags: tuple[str, ...]


def label_areas(
    labels: LabelImage, label_map: Mapping[str, Sequence[int]] | None, classes: Mapping[str, str] | None, name: str
) -> LabelAreas:
    """Find crop, weeds and soil in a label raster: by ``label_map`` (numbers by area; without ``soil``, all other
    numbers are soil), else by ``classes``, the known meaning of each number. ToolError ``missing_metadata`` if the
    meaning is unknown; ``nothing_found``, ``invalid_argument``."""
    present = sorted(int(value) for value in np.unique(labels.classes))
    numbers, notes, flags = meaning_of_classes(label_map, classes, name, present)
    there = np.ones(labels.classes.shape, np.bool_) if labels.valid is None else labels.valid
    valid = there & ~np.isin(labels.classes, numbers["ignore"])
    if not valid.any():
        raise ToolError("nothing_found", f"{name} holds no class that counts", argument="label_raster")
    crop, weed, soil = (valid & np.isin(labels.classes, numbers[area]) for area in ("crop", "weed", "soil"))
    return LabelAreas(crop, weed, soil, valid, notes, flags)


class ClassMeaning(NamedTuple):
    """Class numbers of each area, with notes and flags."""

    numbers: dict[Area, list[int]]
    notes: tuple[str, ...]
    flags: tuple[str, ...]


def meaning_of_classes(
    label_map: Mapping[str, Sequence[int]] | None, classes: Mapping[str, str] | None, name: str, present: Sequence[int]
) -> ClassMeaning:
    """Return the class numbers of crop, weeds and soil among ``present``; arguments as for :func:`label_areas`."""
    numbers, notes = _numbers(label_map, classes, name, present)
    mapped_numbers = {number for members in numbers.values() for number in members}
    unnamed = [number for number in present if number not in mapped_numbers]
    if not unnamed:
        return ClassMeaning(numbers, notes, ())
    if numbers["soil"]:
        note = f"class numbers {_list_numbers(unnamed)} are named nowhere: neither crop, weeds nor soil"
        return ClassMeaning(numbers, (*notes, note), ("unnamed_classes",))
    note = f"class numbers {_list_numbers(unnamed)} counted as soil, since nothing else was named soil"
    return ClassMeaning({**numbers, "soil": unnamed}, (*notes, note), ())


def _numbers(
    label_map: Mapping[str, Sequence[int]] | None, classes: Mapping[str, str] | None, name: str, present: Sequence[int]
) -> tuple[dict[Area, list[int]], tuple[str, ...]]:
    numbers: dict[Area, list[int]] = {"crop": [], "weed": [], "soil": [], "ignore": []}
    if label_map is not None:
        for key, members in label_map.items():
            area = _WORDS.get(key.strip().lower())
            if area is None:
                why = f"label_map: {key!r} is no area that is measured here"
                hint = "use crop, weed, soil or ignore, e.g. {'crop': [1], 'weed': [2], 'soil': [0]}"
                raise ToolError("invalid_argument", why, argument="label_map", hint=hint)
            numbers[area] += members
        notes: tuple[str, ...] = ()
    elif classes:
        for number, meaning in classes.items():
            area = _WORDS.get(meaning.strip().lower())
            if area is not None and number.strip().lstrip("-").isdigit():
                numbers[area].append(int(number))
        notes = ("meaning of the class numbers as known of the file",)
    else:
        notes = ()
    if not numbers["crop"] and not numbers["weed"]:
        why = f"what the class numbers of {name} mean is not known; it holds {_list_numbers(present)}"
        hint = "give label_map, e.g. {'crop': [1], 'weed': [2], 'soil': [0]}"
        raise ToolError("missing_metadata", why, argument="label_map", hint=hint)
    counts = Counter(number for members in numbers.values() for number in members)
    twice = sorted(number for number, count in counts.items() if count > 1)
    if twice:
        raise ToolError(
            "invalid_argument", f"label_map: {_list_numbers(twice)} stands for two areas", argument="label_map"
        )
    return numbers, notes


def _list_numbers(numbers: Sequence[int]) -> str:
    first_numbers = ", ".join(str(number) for number in numbers[:12])
    return f"{first_numbers} and {len(numbers) - 12} more" if len(numbers) > 12 else first_numbers
