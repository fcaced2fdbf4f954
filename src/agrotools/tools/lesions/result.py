"""Result of a lesion analysis: areas, grades, a table, a mask and a picture."""

import csv
import io
import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from agrotools.core import Artifact
from agrotools.tools.contract import ToolResult
from agrotools.tools.result import ResultPart
from agrotools.tools.workspace import save_artifact
from agrotools.vision import Box
from agrotools.vision.overlay import SKY_BLUE, VERMILLION, Mark, class_picture, draw_marks

if TYPE_CHECKING:
    from agrotools.tools.lesions.leaf import Leaf

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


@dataclass(frozen=True)
class Bounds:
    """Bounds of a grade scale: largest severity, percent, of each grade except the last, and the ``grades``."""

    upper: tuple[float, ...]
    grades: tuple[int, ...]
    source: str


SCALES: dict[GradeScale, Bounds] = {
    "0-4": Bounds(
        (0.1, 5.0, 10.0, 15.0),
        (0, 1, 2, 3, 4),
        "0 healthy (to 0.1 %), 1 very low (to 5 %), 2 low (to 10 %), 3 high (to 15 %), 4 very high: coffee leaves, "
        "Esgario, Krohling and Ventura 2020, Computers and Electronics in Agriculture 169, 105162",
    ),
    "1-9": Bounds(
        (0.0, 5.0, 12.0, 25.0, 50.0),
        (0, 1, 3, 5, 7, 9),
        "0 none, 1 to 5 %, 3 to 12 %, 5 to 25 %, 7 to 50 %, 9 above: bacterial blight of rice in the field, Standard "
        "Evaluation System for Rice, IRRI 2013",
    ),
}


def grade_of(severity_pct: float, scale: GradeScale) -> float:
    """Return the grade of a severity in percent; on the scale ``percent``, the severity itself."""
    if scale == "percent":
        return severity_pct
    bounds = SCALES[scale]
    return bounds.grades[bisect_left(bounds.upper, severity_pct)]


BACKGROUND, HEALTHY, LESION, OUTSIDE = 0, 1, 2, 255
MOST_LISTED = 50
MOSTLY_PCT = 50.0
_CLASS_COLOURS = {BACKGROUND: (235, 235, 235), HEALTHY: SKY_BLUE, LESION: VERMILLION, OUTSIDE: (0, 0, 0)}
_LEAST_SHOWN_PX = 800
_NEAR_EDGE = 0.008


@dataclass(frozen=True, eq=False)
class LesionInputs:
    """Inputs of :func:`lesion_result`.

    ``shown`` is the whole picture; the other arrays cover only its region ``box``. ``lesion``: bool (rows, columns),
    diseased pixels before small patches are dropped. ``half_width``: of the interval of the severity, points, None if
    it is not known.
    """

    shown: NDArray[np.uint8]
    box: Box
    leaf: "Leaf"
    lesion: NDArray[np.bool_]
    healthy: tuple[float, float, float]
    method: Literal["model", "rules"]
    half_width: float | None
    scale_mm_px: float | None
    min_lesion_px: int
    grade_scale: GradeScale
    notes: tuple[str, ...]
    flags: tuple[str, ...]


def lesion_result(analysed: LesionInputs) -> LeafLesions:
    """Count and list the lesions, draw them and save the artifacts."""
    leaf, (left, top, right, bottom) = analysed.leaf, analysed.box
    lesion_mask, lesions = _lesion_rows(analysed)
    leaf_px, lesion_px = leaf.area_px, int(np.count_nonzero(lesion_mask))
    severity, half = 100 * lesion_px / leaf_px, analysed.half_width
    pixel = None if analysed.scale_mm_px is None else analysed.scale_mm_px**2
    scale = analysed.grade_scale
    of_grade = "grade: the severity itself, percent" if scale == "percent" else f"grade {scale}: {SCALES[scale].source}"
    notes = [*analysed.notes, of_grade]
    flags = [*analysed.flags]
    if len(lesions) > MOST_LISTED:
        notes.append(f"the {MOST_LISTED} largest of {len(lesions)} lesions are listed; all are in the table")
    if severity > MOSTLY_PCT:
        flags.append("mostly_lesion")
    if pixel is None:
        flags.append("no_scale")
    classes = np.full(analysed.shown.shape[:2], OUTSIDE, np.uint8)
    part = np.where(leaf.mask, np.uint8(HEALTHY), np.uint8(BACKGROUND))
    part[lesion_mask] = LESION
    classes[top:bottom, left:right] = part
    return LeafLesions(
        leaf_area_px=leaf_px,
        lesion_area_px=lesion_px,
        severity_pct=severity,
        severity_interval_pct=None if half is None else (max(0.0, severity - half), min(100.0, severity + half)),
        leaf_area_mm2=None if pixel is None else leaf_px * pixel,
        lesion_area_mm2=None if pixel is None else lesion_px * pixel,
        grade=grade_of(severity, analysed.grade_scale),
        grade_scale=analysed.grade_scale,
        n_lesions=len(lesions),
        lesions=tuple(lesions[:MOST_LISTED]),
        leaf_box=_shift_box(leaf.box, left, top),
        healthy_lab=analysed.healthy,
        method=analysed.method,
        scale_mm_px=analysed.scale_mm_px,
        mask=save_artifact("lesion_mask.png", "mask", class_picture(classes, _CLASS_COLOURS)),
        overlay=save_artifact("lesion_overlay.png", "overlay", _overlay(analysed, lesion_mask, len(lesions), severity)),
        table=save_artifact("lesions.csv", "table", _csv(lesions)) if lesions else None,
        notes=tuple(notes),
        flags=tuple(dict.fromkeys(flags)),
    )


def _lesion_rows(analysed: LesionInputs) -> tuple[NDArray[np.bool_], list[Lesion]]:
    """Return the mask and the table of lesions that are large enough, largest first."""
    import cv2

    from agrotools.vision.colours import lab_of

    leaf, (left, top, _, _) = analysed.leaf, analysed.box
    x0, y0, x1, y1 = leaf.box
    inside = leaf.mask[y0:y1, x0:x1]
    lesion_pixels = analysed.lesion[y0:y1, x0:x1] & inside
    _, labels, stats, _ = cv2.connectedComponentsWithStats(lesion_pixels.astype(np.uint8), connectivity=8)
    numbers, table = np.asarray(labels, np.int32), np.asarray(stats, np.int64)
    large = table[:, cv2.CC_STAT_AREA] >= analysed.min_lesion_px
    large[0] = False
    lesion_mask = np.zeros_like(analysed.lesion)
    lesion_mask[y0:y1, x0:x1] = large[numbers]
    rows, columns = np.nonzero(large[numbers])
    belongs = numbers[rows, columns]
    count = len(table)
    areas = np.bincount(belongs, minlength=count).astype(np.float64)
    colours = (
        lab_of(analysed.shown[top + y0 + rows, left + x0 + columns][None])[0]
        if len(rows)
        else np.zeros((0, 3), np.float32)
    )
    safe = np.maximum(areas, 1)
    lab = [np.bincount(belongs, colours[:, channel], count) / safe for channel in range(3)]
    eccentricity = _eccentricities(rows, columns, belongs, safe)
    wide = max(1, round(_NEAR_EDGE * math.sqrt(leaf.area_px)))
    core = cv2.erode(np.pad(inside, 1).astype(np.uint8), np.ones((3, 3), np.uint8), iterations=wide)
    near = np.asarray(core)[1:-1, 1:-1][rows, columns] == 0
    touching = np.bincount(belongs, near, count) > 0
    pixel = None if analysed.scale_mm_px is None else analysed.scale_mm_px**2
    lesions: list[Lesion] = []
    for number in sorted(np.flatnonzero(large).tolist(), key=lambda each: (-areas[each], each)):
        x, y, width, height, area = (int(value) for value in table[number])
        lesions.append(
            Lesion(
                box=_shift_box((x, y, x + width, y + height), x0 + left, y0 + top),
                area_px=area,
                area_mm2=None if pixel is None else area * pixel,
                eccentricity=float(eccentricity[number]),
                mean_lab=(float(lab[0][number]), float(lab[1][number]), float(lab[2][number])),
                touches_edge=bool(touching[number]),
            )
        )
    return lesion_mask, lesions


def _eccentricities(
    rows: NDArray[np.intp], columns: NDArray[np.intp], belongs: NDArray[np.int32], areas: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the eccentricity of each patch; 1/12 is the second moment of a single pixel."""
    count = len(areas)
    mean_x, mean_y = (np.bincount(belongs, part, count) / areas for part in (columns, rows))
    x, y = columns - mean_x[belongs], rows - mean_y[belongs]
    xx, yy, xy = (np.bincount(belongs, part, count) / areas for part in (x * x, y * y, x * y))
    xx, yy = xx + 1 / 12, yy + 1 / 12
    apart = np.sqrt((xx - yy) ** 2 + 4 * xy**2)
    return np.sqrt(np.maximum(0, 1 - (xx + yy - apart) / (xx + yy + apart)))


def _overlay(analysed: LesionInputs, lesion_mask: NDArray[np.bool_], count: int, severity: float) -> NDArray[np.uint8]:
    import cv2

    height, width = analysed.shown.shape[:2]
    left, top, right, bottom = analysed.box
    larger = max(1, math.ceil(_LEAST_SHOWN_PX / max(height, width)))
    # Shrunk pictures show no more detail, and outlines of millions of points are slow to draw.
    step = max(1, max(height, width) // 3000)
    marks: list[Mark] = []
    for colour, mask in ((SKY_BLUE, analysed.leaf.mask), (VERMILLION, lesion_mask)):
        coarse = np.ascontiguousarray(mask[::step, ::step]).astype(np.uint8)
        outlines, _ = cv2.findContours(coarse, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
        for outline in outlines:
            points = (np.asarray(outline)[:, 0, :].astype(float) + 0.5) * step + (left, top)
            marks.append(Mark(colour, points.tolist()))
    scale = analysed.scale_mm_px
    return draw_marks(
        analysed.shown,
        marks,
        legend=((SKY_BLUE, "leaf"), (VERMILLION, f"lesions: {count}")),
        region=None if (right - left, bottom - top) == (width, height) else analysed.box,
        gsd_m=None if scale is None else scale / 1000,
        title=f"lesions {severity:.2f} % of the leaf, by {analysed.method}",
        zoom=larger,
    )


def _csv(lesions: list[Lesion]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ("x0", "y0", "x1", "y1", "area_px", "area_mm2", "eccentricity", "mean_l", "mean_a", "mean_b", "touches_edge")
    )
    for lesion in lesions:
        mm2 = "" if lesion.area_mm2 is None else f"{lesion.area_mm2:.6g}"
        colour = (f"{value:.4g}" for value in lesion.mean_lab)
        writer.writerow(
            (*lesion.box, lesion.area_px, mm2, f"{lesion.eccentricity:.4f}", *colour, int(lesion.touches_edge))
        )
    return text.getvalue().encode()


def _shift_box(box: Box, x: int, y: int) -> Box:
    return box[0] + x, box[1] + y, box[2] + x, box[3] + y
