"""Result of counting, with its overlay and table."""

import io
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agrotools.core import Artifact
from agrotools.tools.counting.count_objects import Detector, ObjectCount
from agrotools.tools.workspace import save_artifact
from agrotools.vision import Box

if TYPE_CHECKING:
    from agrotools.tools.counting.methods import CountedObjects

MOST_LISTED = 300
"""Largest number of objects in a result; the table holds all."""
_SMALLEST_SIDE = 960
"""Approximate side, pixels, to which smaller pictures are enlarged, so that marks do not hide the objects."""


def count_result(
    objects: "CountedObjects",
    mode: Detector,
    target: str,
    *,
    shown: NDArray[np.uint8],
    shown_per_px: float,
    region: Box | None,
    measured_px: float,
    gsd_m: float | None,
    return_boxes: bool,
    notes: tuple[str, ...],
    flags: tuple[str, ...],
) -> ObjectCount:
    """Summarise the count, draw it and save the artifacts.

    Args:
        shown: picture to draw on, uint8 (rows, columns, 3).
        shown_per_px: pixels of ``shown`` per pixel of the analysed picture.
        region: the counted part, in pixels of the analysed picture.
        measured_px: number of its pixels with data.
    """
    count = len(objects.scores)
    listed = objects.chosen(np.arange(count) < MOST_LISTED)
    more: list[str] = [] if gsd_m is not None else ["no_scale"]
    if return_boxes and count > MOST_LISTED:
        more.append("boxes_truncated")
        notes = (*notes, f"the {MOST_LISTED} best of {count} objects are listed; the table has all")
    area_ha = None if gsd_m is None else measured_px * gsd_m**2 / 10_000
    size = float(np.median(objects.diameters)) if count else None
    tall = objects.heights_m is not None and count > 0
    return ObjectCount(
        count=count,
        count_interval=None if objects.interval_of is None else objects.interval_of(count),
        density_per_ha=count / area_ha if area_ha else None,
        median_size_px=size,
        median_size_m=None if size is None or gsd_m is None else size * gsd_m,
        median_height_m=float(np.median(objects.heights_m)) if tall and objects.heights_m is not None else None,
        boxes=tuple((x0, y0, x1, y1) for x0, y0, x1, y1 in listed.boxes.tolist()) if return_boxes else None,
        centres=tuple((x, y) for x, y in listed.centres.tolist()) if return_boxes else None,
        scores=tuple(listed.scores.tolist()) if return_boxes else None,
        mode=mode,
        gsd_m=gsd_m,
        table=save_artifact("objects.csv", "table", _table(objects)),
        overlay=_overlay(objects, mode, target, shown, shown_per_px, region, gsd_m),
        notes=(*notes, *objects.notes),
        flags=tuple(dict.fromkeys((*flags, *objects.flags, *more))),
    )


def _table(objects: "CountedObjects") -> bytes:
    out = io.StringIO()
    out.write("x_px,y_px,x0,y0,x1,y1,diameter_px,score" + (",height_m" if objects.heights_m is not None else "") + "\n")
    columns = [objects.centres, objects.boxes, objects.diameters[:, None], objects.scores[:, None]]
    if objects.heights_m is not None:
        columns.append(objects.heights_m[:, None])
    for row in np.concatenate(columns, axis=1).tolist():
        out.write(",".join(f"{value:.6g}" for value in row) + "\n")
    return out.getvalue().encode()


def _overlay(
    objects: "CountedObjects",
    mode: Detector,
    target: str,
    shown: NDArray[np.uint8],
    per_px: float,
    region: Box | None,
    gsd_m: float | None,
) -> Artifact:
    from agrotools.vision.overlay import ORANGE, SKY_BLUE, Mark, draw_marks

    enlarge = max(1, _SMALLEST_SIDE // max(shown.shape[:2]))
    colour = ORANGE if mode in ("plant", "crown_rgb", "blob") else SKY_BLUE
    marks: list[Mark] = []
    for centre, box, diameter in zip(
        (objects.centres * per_px).tolist(),
        (objects.boxes * per_px).tolist(),
        (objects.diameters * per_px).tolist(),
        strict=True,
    ):
        if mode == "crown_chm":
            marks.append(Mark(ORANGE, circle=(centre[0], centre[1], max(1.0 / enlarge, diameter / 12))))
        if objects.round_marks:
            marks.append(Mark(colour, circle=(centre[0], centre[1], diameter / 2)))
        else:
            marks.append(Mark(colour, box=(box[0], box[1], box[2], box[3])))
    what = f"{len(objects.scores)} x {target} ({mode})"
    legend = [(colour, "found")]
    if mode == "crown_chm":
        legend = [(SKY_BLUE, "crown"), (ORANGE, "top")]
    part = None
    if region is not None:
        x0, y0, x1, y1 = (round(edge * per_px) for edge in region)
        part = (x0, y0, max(x0 + 1, x1), max(y0 + 1, y1))
    picture = draw_marks(
        shown,
        marks,
        legend=legend,
        region=part,
        gsd_m=None if gsd_m is None else gsd_m / per_px,
        title=what,
        zoom=enlarge,
    )
    return save_artifact("objects_overlay.png", "overlay", picture)
