"""The result of an area measurement: counted from a picture of classes, with the pictures that show it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from agrotools.core import Artifact, ToolError
from agrotools.tools.contract import ToolResult
from agrotools.tools.crop_weed.rows import Rows
from agrotools.tools.workspace import save_artifact
from agrotools.vision.formats import Box
from agrotools.vision.overlay import BROWN, SKY_BLUE, VERMILLION, YELLOW, Colour, Layer, class_picture, draw_overlay
from agrotools.vision.vegetation import Index

SeparationChoice = Literal["auto", "row", "model", "none"]
Method = Literal["row", "model", "none"]
ClassesFrom = Literal["labels", "row", "model", "index"]
UNTRAINED = "untrained"
"""Back-end that leaves trained heads aside, so that a result depends on the picture alone, on any machine."""
SOIL, CROP, WEED, PLANTS, OTHER, NO_DATA = 0, 1, 2, 3, 4, 255
CLASS_COLOURS: dict[int, Colour] = {
    SOIL: BROWN,
    CROP: SKY_BLUE,
    WEED: VERMILLION,
    PLANTS: YELLOW,
    OTHER: (150, 150, 150),
    NO_DATA: (0, 0, 0),
}


class RowGeometry(BaseModel):
    """Crop rows as they lie in the picture."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

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


class BandTriplet(BaseModel):
    """Separability of the classes by three bands."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

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


class Separability(BaseModel):
    """Every three bands, ranked by how well they tell classes apart."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

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


class AreasM2(BaseModel):
    """The same areas on the ground."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

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


@dataclass(frozen=True, eq=False)
class AreaInputs:
    """Inputs of a result.

    ``shown``: uint8 (rows, columns, 3) to draw on. ``classes``: uint8 (rows, columns) of the numbers above.
    ``box``: the part that counts. ``parted``: whether crop and weeds were told apart. ``count``: pixels of each class
    number, int64 (256), where ``classes`` is a small picture of what was counted; ``shrink`` pixels then make one of
    its own.
    """

    shown: NDArray[np.uint8]
    classes: NDArray[np.uint8]
    box: Box
    gsd_m: float | None
    parted: bool
    method: Literal["labels", "row", "model", "none"]
    index: Index | None = None
    rows: Rows | None = None
    separability: Separability | None = None
    count: NDArray[np.int64] | None = None
    shrink: int = 1
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def area_result(measured: AreaInputs) -> CropWeedArea:
    """Count, draw and keep.

    Raises:
        ToolError: ``region_empty`` where the part that counts holds no data.
    """
    classes, gsd_m = measured.classes, measured.gsd_m
    x0, y0, x1, y1 = measured.box
    count = np.bincount(classes[y0:y1, x0:x1].ravel(), minlength=256) if measured.count is None else measured.count
    total = int(count.sum() - count[NO_DATA])
    if total == 0:
        raise ToolError("region_empty", "the region holds no data", argument="region", hint="choose one with data")
    veg, soil = int(count[CROP] + count[WEED] + count[PLANTS]), int(count[SOIL])
    crop, weed = (int(count[CROP]), int(count[WEED])) if measured.parted else (None, None)
    pixel = None if gsd_m is None else gsd_m**2
    mask = np.full_like(classes, NO_DATA)
    mask[y0:y1, x0:x1] = classes[y0:y1, x0:x1]
    overlay = draw_overlay(
        measured.shown,
        mask,
        _layers(count, total, measured.parted),
        region=None if measured.box == (0, 0, classes.shape[1], classes.shape[0]) else measured.box,
        gsd_m=gsd_m and gsd_m * measured.shrink,
        title=f"plants {100 * veg / total:.2f} %, soil {100 * soil / total:.2f} % of {total} px",
    )
    rows = measured.rows
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
        method=measured.method,
        index=measured.index,
        row=None if rows is None else _row_geometry(rows, gsd_m),
        separability=measured.separability,
        mask=save_artifact("crop_weed_mask.png", "mask", class_picture(mask, CLASS_COLOURS)),
        overlay=save_artifact("crop_weed_overlay.png", "overlay", overlay),
        notes=measured.notes,
        flags=tuple(dict.fromkeys(measured.flags if gsd_m is not None else (*measured.flags, "no_scale"))),
    )


def _row_geometry(rows: Rows, gsd_m: float | None) -> RowGeometry:
    return RowGeometry(
        angle_deg=rows.angle_deg,
        spacing_px=rows.spacing_px,
        spacing_m=None if gsd_m is None else rows.spacing_px * gsd_m,
        peak_ratio=rows.peak_ratio,
        repeat=rows.repeat,
        accord=rows.accord,
    )


def _layers(count: NDArray[np.int64], total: int, parted: bool) -> list[Layer]:
    shown = [(CROP, "crop"), (WEED, "weeds")] if parted else [(PLANTS, "plants, crop and weeds not told apart")]
    if count[OTHER]:
        shown.append((OTHER, "other"))
    return [
        Layer(value, CLASS_COLOURS[value], f"{label} {100.0 * count[value] / total:.2f} %") for value, label in shown
    ]
