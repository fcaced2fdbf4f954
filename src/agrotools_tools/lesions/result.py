"""Result of a lesion analysis: areas, grades, a table, a mask and a picture."""

import csv
import io
import math
from bisect import bisect_left
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from agrotools.calling.contract import ToolResult
from agrotools.calling.result import ResultPart
from agrotools.calling.workspace import save_artifact
from agrotools.core import Artifact
from agrotools.vision import Box
from agrotools.vision.overlay import SKY_BLUE, VERMILLION, Colour, Mark, class_picture, draw_marks

if TYPE_CHECKING:
    from agrotools_tools.lesions.measure import Leaf, Lesions

RULES = "rules"
"""Back-end that never uses the model."""
IN_FIELD = "field_background"
"""Flag of leaves before a busy background."""
TOO_LOW, TOO_HIGH = "severity_too_low_possible", "severity_too_high_possible"
"""Flags of leaves whose outline is uncertain, where it is known in which way the severity errs."""
Lab = tuple[float, float, float]
GradeScale = Literal["percent", "0-4", "1-9"]
MODEL_FILES = ("lesion_model.json", "lesion_model.npz")


class Lesion(ResultPart):
    """One connected patch of diseased tissue."""

    box: tuple[int, int, int, int]
    """bounds [x0, y0, x1, y1], pixels of the original image"""
    area_px: int
    """area, pixels"""
    area_mm2: float | None
    """area, mm^2; null where the scale is not known"""
    eccentricity: float
    """of the ellipse with the same second moments: 0 a circle, towards 1 a line"""
    mean_lab: tuple[float, float, float]
    """mean colour, CIE L*a*b* (L 0..100)"""
    touches_edge: bool
    """whether it reaches the outline of the leaf, where shadow and folds are easily taken for lesions"""


class LeafLesions(ToolResult):
    leaf_area_px: int
    """the whole leaf, lesions included, pixels"""
    lesion_area_px: int
    """all lesions together, pixels"""
    severity_pct: float
    """lesion_area_px over leaf_area_px, percent"""
    severity_interval_pct: tuple[float, float] | None
    """90 % interval of severity_pct, by the model's errors on leaves that it had not seen; null by rules, on pictures
    flagged out_of_distribution and where settings differ from those it was measured with"""
    leaf_area_mm2: float | None
    """the whole leaf, mm^2; null where the scale is not known"""
    lesion_area_mm2: float | None
    """all lesions, mm^2; null where the scale is not known"""
    grade: float
    """severity on grade_scale; the notes say where its bounds come from"""
    grade_scale: GradeScale
    """the scale of grade"""
    n_lesions: int
    """separate lesions of at least min_lesion_px pixels"""
    lesions: tuple[Lesion, ...]
    """the lesions, largest first, at most 50; all are in table"""
    leaf_box: tuple[int, int, int, int]
    """bounds of the leaf [x0, y0, x1, y1], pixels of the original image"""
    healthy_lab: tuple[float, float, float]
    """colour of healthy tissue, given or found on the leaf, CIE L*a*b*"""
    method: Literal["model", "rules"]
    """how lesions were told from healthy tissue"""
    scale_mm_px: float | None
    """millimetres per pixel that were used"""
    mask: Artifact
    """class numbers per pixel: 0 background, 1 healthy leaf, 2 lesion, 255 outside the region"""
    overlay: Artifact
    """the picture with the outlines of leaf and lesions"""
    table: Artifact | None
    """all lesions as CSV; null where there are none"""


_SCALES: dict[GradeScale, tuple[tuple[float, ...], tuple[int, ...], str]] = {
    "0-4": (
        (0.1, 5.0, 10.0, 15.0),
        (0, 1, 2, 3, 4),
        "0 healthy (to 0.1 %), 1 very low (to 5 %), 2 low (to 10 %), 3 high (to 15 %), 4 very high: coffee leaves, "
        "Esgario, Krohling and Ventura 2020, Computers and Electronics in Agriculture 169, 105162",
    ),
    "1-9": (
        (0.0, 5.0, 12.0, 25.0, 50.0),
        (0, 1, 3, 5, 7, 9),
        "0 none, 1 to 5 %, 3 to 12 %, 5 to 25 %, 7 to 50 %, 9 above: bacterial blight of rice in the field, Standard "
        "Evaluation System for Rice, IRRI 2013",
    ),
}
"""Of each grade scale: largest severity, percent, of each grade except the last; the grades; their source."""


def grade_of(severity_pct: float, scale: GradeScale) -> float:
    """Return the grade of a severity in percent; on the scale ``percent``, the severity itself."""
    if scale == "percent":
        return severity_pct
    upper, grades, _ = _SCALES[scale]
    return grades[bisect_left(upper, severity_pct)]


BACKGROUND, HEALTHY, LESION, OUTSIDE = 0, 1, 2, 255
_MOST_LISTED = 50
"""Most lesions in the list of a result; the table has all."""
_MOSTLY_PCT = 50.0
"""Severity, percent, above which a leaf is mostly lesion."""
_CLASS_COLOURS = {
    BACKGROUND: (235, 235, 235),
    HEALTHY: SKY_BLUE,
    LESION: VERMILLION,
    OUTSIDE: (0, 0, 0),
}
_LEAST_SHOWN_PX = 800
"""Longest side, pixels, to which smaller pictures are enlarged for the overlay."""
_NEAR_EDGE = 0.008
"""Width of the edge of a leaf, as a share of the root of its area."""


def lesion_result(
    shown: NDArray[np.uint8],
    box: Box,
    leaf: "Leaf",
    lesions: "Lesions",
    scale_mm_px: float | None,
    min_lesion_px: int,
    grade_scale: GradeScale,
    notes: list[str],
    flags: list[str],
) -> LeafLesions:
    """Count and list the lesions of at least ``min_lesion_px`` pixels, draw them and save the artifacts. ``shown`` is
    the whole picture; leaf and lesions are those of its region ``box``."""
    left, top, right, bottom = box
    pixel = None if scale_mm_px is None else scale_mm_px**2
    mask, rows = _lesion_rows(shown, (left, top), leaf, lesions.mask, min_lesion_px, pixel)
    leaf_px, lesion_px = leaf.area_px, int(np.count_nonzero(mask))
    severity, half = 100 * lesion_px / leaf_px, lesions.half_width
    source = "the severity itself, percent" if grade_scale == "percent" else _SCALES[grade_scale][2]
    notes = [
        *notes,
        f"grade: {source}" if grade_scale == "percent" else f"grade {grade_scale}: {source}",
    ]
    if len(rows) > _MOST_LISTED:
        notes.append(
            f"the {_MOST_LISTED} largest of {len(rows)} lesions are listed; all are in the table"
        )
    more = [("mostly_lesion", severity > _MOSTLY_PCT), ("no_scale", pixel is None)]
    classes = np.full(shown.shape[:2], OUTSIDE, np.uint8)
    classes[top:bottom, left:right] = np.where(
        mask, LESION, np.where(leaf.mask, HEALTHY, BACKGROUND)
    )
    overlay = draw_marks(
        shown,
        _outlines(((SKY_BLUE, leaf.mask), (VERMILLION, mask)), shown.shape, (left, top)),
        legend=((SKY_BLUE, "leaf"), (VERMILLION, f"lesions: {len(rows)}")),
        region=None if (right - left, bottom - top) == shown.shape[1::-1] else box,
        gsd_m=None if scale_mm_px is None else scale_mm_px / 1000,
        title=f"lesions {severity:.2f} % of the leaf, by {lesions.method}",
        zoom=max(1, math.ceil(_LEAST_SHOWN_PX / max(shown.shape[:2]))),
    )
    x0, y0, x1, y1 = leaf.box
    return LeafLesions(
        leaf_area_px=leaf_px,
        lesion_area_px=lesion_px,
        severity_pct=severity,
        severity_interval_pct=None
        if half is None
        else (max(0.0, severity - half), min(100.0, severity + half)),
        leaf_area_mm2=None if pixel is None else leaf_px * pixel,
        lesion_area_mm2=None if pixel is None else lesion_px * pixel,
        grade=grade_of(severity, grade_scale),
        grade_scale=grade_scale,
        n_lesions=len(rows),
        lesions=tuple(rows[:_MOST_LISTED]),
        leaf_box=(x0 + left, y0 + top, x1 + left, y1 + top),
        healthy_lab=lesions.healthy,
        method=lesions.method,
        scale_mm_px=scale_mm_px,
        mask=save_artifact("lesion_mask.png", "mask", class_picture(classes, _CLASS_COLOURS)),
        overlay=save_artifact("lesion_overlay.png", "overlay", overlay),
        table=save_artifact("lesions.csv", "table", _csv(rows)) if rows else None,
        notes=tuple(notes),
        flags=tuple(dict.fromkeys((*flags, *(flag for flag, holds in more if holds)))),
    )


def _lesion_rows(
    shown: NDArray[np.uint8],
    corner: tuple[int, int],
    leaf: "Leaf",
    lesion: NDArray[np.bool_],
    min_lesion_px: int,
    pixel_mm2: float | None,
) -> tuple[NDArray[np.bool_], list[Lesion]]:
    """Return the mask and the table of lesions that are large enough, largest first.

    ``corner``: left and top of the leaf's region in the whole picture ``shown``.
    """
    import cv2

    x0, y0, x1, y1 = leaf.box
    left, top = x0 + corner[0], y0 + corner[1]
    in_leaf = leaf.mask[y0:y1, x0:x1]

    # Patches are numbered from 1; 0 is all that is no lesion.
    lesion_pixels = (lesion[y0:y1, x0:x1] & in_leaf).astype(np.uint8)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(lesion_pixels, connectivity=8)
    numbers, table = np.asarray(labels, np.int32), np.asarray(stats, np.int64)
    count = len(table)
    is_large = table[:, cv2.CC_STAT_AREA] >= min_lesion_px
    is_large[0] = False
    mask = np.zeros_like(lesion)
    mask[y0:y1, x0:x1] = is_large[numbers]

    # Measures of all patches at once, from the list of their pixels. Patches that are left out have none.
    rows, columns = np.nonzero(is_large[numbers])
    belongs = numbers[rows, columns]
    areas = np.bincount(belongs, minlength=count).astype(np.float64)
    divisors = np.maximum(areas, 1)
    mean_lab = _mean_colours(shown[top + rows, left + columns], belongs, divisors).tolist()
    eccentricity = _eccentricities(rows, columns, belongs, divisors)
    is_near_edge = _near_edge(in_leaf, leaf.area_px)[rows, columns]
    touches_edge = np.bincount(belongs, is_near_edge, count) > 0

    large = np.flatnonzero(is_large).tolist()
    lesions: list[Lesion] = []
    for number in sorted(large, key=lambda each: (-areas[each], each)):
        x, y, width, height, area = table[number].tolist()
        lesions.append(
            Lesion(
                box=(left + x, top + y, left + x + width, top + y + height),
                area_px=area,
                area_mm2=None if pixel_mm2 is None else area * pixel_mm2,
                eccentricity=float(eccentricity[number]),
                mean_lab=tuple(mean_lab[number]),
                touches_edge=bool(touches_edge[number]),
            )
        )
    return mask, lesions


def _mean_colours(
    pixels: NDArray[np.uint8], belongs: NDArray[np.int32], areas: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the mean L*a*b* of each patch, (patches, 3). ``belongs``: number of the patch of each pixel."""
    from agrotools_tools.vision.colours import lab_of

    lab = lab_of(pixels[None])[0] if len(pixels) else np.zeros((0, 3), np.float32)
    means = [np.bincount(belongs, lab[:, channel], len(areas)) / areas for channel in range(3)]
    return np.stack(means, axis=1)


def _near_edge(leaf: NDArray[np.bool_], area_px: int) -> NDArray[np.bool_]:
    """Return where pixels are near the outline of a leaf, or outside it. ``area_px``: of the leaf."""
    import cv2

    width = max(1, round(_NEAR_EDGE * math.sqrt(area_px)))
    padded = np.pad(leaf, 1).astype(np.uint8)
    core = cv2.erode(padded, np.ones((3, 3), np.uint8), iterations=width)
    return np.asarray(core)[1:-1, 1:-1] == 0


def _eccentricities(
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
    belongs: NDArray[np.int32],
    areas: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the eccentricity of each patch; 1/12 is the second moment of a single pixel."""
    count = len(areas)
    mean_x, mean_y = (np.bincount(belongs, part, count) / areas for part in (columns, rows))
    x, y = columns - mean_x[belongs], rows - mean_y[belongs]
    xx, yy, xy = (np.bincount(belongs, part, count) / areas for part in (x * x, y * y, x * y))
    xx, yy = xx + 1 / 12, yy + 1 / 12
    apart = np.sqrt((xx - yy) ** 2 + 4 * xy**2)
    return np.sqrt(np.maximum(0, 1 - (xx + yy - apart) / (xx + yy + apart)))


def _outlines(
    masks: Iterable[tuple[Colour, NDArray[np.bool_]]],
    shape: tuple[int, ...],
    corner: tuple[int, int],
) -> list[Mark]:
    """Return the outlines of masks, whose top left pixel is at ``corner`` of the picture."""
    import cv2

    # Shrunk pictures show no more detail, and outlines of millions of points are slow to draw.
    step = max(1, max(shape[:2]) // 3000)
    marks: list[Mark] = []
    for colour, mask in masks:
        coarse = np.ascontiguousarray(mask[::step, ::step]).astype(np.uint8)
        outlines, _ = cv2.findContours(coarse, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
        for outline in outlines:
            marks.append(
                Mark(
                    colour,
                    ((np.asarray(outline)[:, 0, :].astype(float) + 0.5) * step + corner).tolist(),
                )
            )
    return marks


def _csv(lesions: list[Lesion]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        (
            "x0",
            "y0",
            "x1",
            "y1",
            "area_px",
            "area_mm2",
            "eccentricity",
            "mean_l",
            "mean_a",
            "mean_b",
            "touches_edge",
        )
    )
    for lesion in lesions:
        mm2 = "" if lesion.area_mm2 is None else f"{lesion.area_mm2:.6g}"
        colour = (f"{value:.4g}" for value in lesion.mean_lab)
        writer.writerow(
            (
                *lesion.box,
                lesion.area_px,
                mm2,
                f"{lesion.eccentricity:.4f}",
                *colour,
                int(lesion.touches_edge),
            )
        )
    return text.getvalue().encode()
