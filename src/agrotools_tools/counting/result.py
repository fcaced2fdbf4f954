"""Objects in a picture, and the result of counting them, with its overlay and table."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agrotools.calling.contract import ToolResult
from agrotools.calling.workspace import save_artifact
from agrotools.core import Artifact
from agrotools.vision import Box
from agrotools.vision.overlay import ORANGE, SKY_BLUE, Mark, box_points, circle_points, draw_marks

Mode = Literal["crown_chm", "crown_rgb", "fruit", "blob", "plant"]
Detector = Mode | Literal["vlm"]


class ObjectCount(ToolResult):
    count: int
    """objects found, with a score of at least score_min"""
    count_interval: tuple[float, float] | None
    """where the true count lies: for fruit found by the net, in about 90 % of photographs like those it was calibrated
    on; for trees in heights, the counts by a window three times and half as wide, of unknown coverage; null where not
    known"""
    density_per_ha: float | None
    """objects per hectare of the part that was looked at; null where the size of a pixel is not known"""
    median_size_px: float | None
    """median diameter (of a circle of the same area), pixels; null without objects"""
    median_size_m: float | None
    """the same in metres; null where the size of a pixel is not known"""
    median_height_m: float | None
    """median height of the trees, metres; null unless they were counted in a canopy height model"""
    boxes: tuple[tuple[float, float, float, float], ...]
    """[x0, y0, x1, y1] in pixels, best first, at most 300"""
    centres: tuple[tuple[float, float], ...]
    """[x, y] in pixels, in the order of boxes: tree tops for crown_chm"""
    scores: tuple[float, ...]
    """0..1 in the order of boxes: how clearly each stands out; no probabilities"""
    mode: Detector
    """the detector that was used; vlm where a model looked"""
    gsd_m: float | None
    """ground sampling distance that was used, metres per pixel"""
    table: Artifact
    """all objects, one per line: centre, box, diameter, score, height"""
    overlay: Artifact
    """the picture with the objects marked"""


FruitName = Literal["apple", "pear", "cherry", "tomato"]
"""Kinds of fruit that the shipped net was trained on."""

MOST_LISTED = 300
"""Largest number of objects in a result; the table holds all."""
_SMALLEST_SIDE = 960
"""Approximate side, pixels, to which smaller pictures are enlarged, so that marks do not hide the objects."""
Floats = NDArray[np.float64]
_PER_OBJECT = ("boxes", "centres", "diameters", "scores", "heights_m", "classes")


@dataclass(frozen=True, eq=False)
class CountedObjects:
    """Objects in a picture: arrays of equal length, best first, in pixels.

    ``boxes``: (n, 4), x0, y0, x1, y1. ``centres``: (n, 2), x, y; for crowns in a height model the tops. ``diameters``:
    (n,). ``scores``: (n,), 0 to 1. ``heights_m``: (n,), crowns in a height model only. ``classes``: (n,), nets only.
    ``round_marks``: True to mark objects by circles, not boxes.
    """

    boxes: Floats
    centres: Floats
    diameters: Floats
    scores: Floats
    heights_m: Floats | None = None
    classes: NDArray[np.int64] | None = None
    round_marks: bool = False
    interval_of: Callable[[int, Floats], tuple[float, float] | None] | None = None
    """Function from a count, and the scores of all boxes in the region, to its interval; None if errors are unknown."""
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.scores)

    def chosen(self, keep: NDArray[np.bool_] | NDArray[np.intp]) -> "CountedObjects":
        arrays = {name: getattr(self, name) for name in _PER_OBJECT}
        return replace(
            self, **{name: values[keep] for name, values in arrays.items() if values is not None}
        )

    def scaled(self, factor: float, x: float = 0.0, y: float = 0.0) -> "CountedObjects":
        """Return the objects in pixels ``factor`` times as small, shifted by x, y in these pixels."""
        corner = np.array([x, y])
        boxes, centres = self.boxes * factor + np.tile(corner, 2), self.centres * factor + corner
        return replace(self, boxes=boxes, centres=centres, diameters=self.diameters * factor)

    def centred_in(self, box: Sequence[float], least_score: float = 0.0) -> "CountedObjects":
        """Return the objects with their centre in a box, so that the parts of a picture add up to the whole."""
        x, y = self.centres.T
        inside = (x >= box[0]) & (x < box[2]) & (y >= box[1]) & (y < box[3])
        return self.chosen(inside & (self.scores >= least_score))


def objects_in_boxes(
    boxes: Floats, scores: Floats, classes: NDArray[np.int64] | None = None
) -> CountedObjects:
    """Return the objects of boxes (n, 4) in pixels with scores (n,).

    The diameter is that of the circle with the area of an ellipse in the box.
    """
    sizes = np.sqrt(np.maximum(boxes[:, 2:] - boxes[:, :2], 0).prod(axis=1))
    return CountedObjects(boxes, (boxes[:, :2] + boxes[:, 2:]) / 2, sizes, scores, classes=classes)


def no_objects() -> CountedObjects:
    return CountedObjects(np.empty((0, 4)), np.empty((0, 2)), np.empty(0), np.empty(0))


def join_objects(parts: Sequence[CountedObjects]) -> CountedObjects:
    """Join the arrays of at least one set of objects, best first, equal ones by height and in reading order."""
    arrays = {name: [getattr(part, name) for part in parts] for name in _PER_OBJECT}
    joined: dict[str, Any] = {
        name: np.concatenate(rows) for name, rows in arrays.items() if rows[0] is not None
    }
    joint = CountedObjects(**joined)
    falling = (-joint.scores,) if joint.heights_m is None else (-joint.heights_m, -joint.scores)
    x, y = joint.centres.T if joint.classes is None else joint.boxes[:, :2].T
    return joint.chosen(np.lexsort((x, y, *falling)))


class Counted(NamedTuple):
    """Objects counted in a picture.

    ``shown``: picture to draw them on, uint8 (rows, columns, 3), with ``shown_per_px`` pixels per pixel analysed.
    ``region``: in pixels of the image, None for all of it. ``measured_px``: pixels with data in the counted part.
    """

    objects: CountedObjects
    interval: tuple[float, float] | None
    shown: NDArray[np.uint8]
    shown_per_px: float
    region: Box | None
    measured_px: float
    gsd_m: float | None
    notes: tuple[str, ...]
    flags: tuple[str, ...]


def count_result(found: Counted, mode: Detector, target: str) -> ObjectCount:
    """Summarise the count, draw it and save the artifacts."""
    objects, gsd_m, notes = found.objects, found.gsd_m, found.notes
    count = len(objects)
    listed = objects.chosen(np.arange(count) < MOST_LISTED)
    more: list[str] = [] if gsd_m is not None else ["no_scale"]
    if count > MOST_LISTED:
        more.append("boxes_truncated")
        notes = (*notes, f"the {MOST_LISTED} best of {count} objects are listed; the table has all")
    area_ha = None if gsd_m is None else found.measured_px * gsd_m**2 / 10_000
    size = float(np.median(objects.diameters)) if count else None
    return ObjectCount(
        count=count,
        count_interval=found.interval,
        density_per_ha=count / area_ha if area_ha else None,
        median_size_px=size,
        median_size_m=None if size is None or gsd_m is None else size * gsd_m,
        median_height_m=float(np.median(objects.heights_m))
        if count and objects.heights_m is not None
        else None,
        boxes=tuple((x0, y0, x1, y1) for x0, y0, x1, y1 in listed.boxes.tolist()),
        centres=tuple((x, y) for x, y in listed.centres.tolist()),
        scores=tuple(listed.scores.tolist()),
        mode=mode,
        gsd_m=gsd_m,
        table=save_artifact("objects.csv", "table", _table(objects)),
        overlay=save_artifact("objects_overlay.png", "overlay", _overlay(found, mode, target)),
        notes=(*notes, *objects.notes),
        flags=tuple(dict.fromkeys((*found.flags, *objects.flags, *more))),
    )


def _table(objects: CountedObjects) -> bytes:
    header = "x_px,y_px,x0,y0,x1,y1,diameter_px,score"
    columns = [objects.centres, objects.boxes, objects.diameters, objects.scores]
    if objects.heights_m is not None:
        header, columns = f"{header},height_m", [*columns, objects.heights_m]
    out = io.StringIO()
    np.savetxt(out, np.column_stack(columns), "%.6g", ",", header=header, comments="")
    return out.getvalue().encode()


def _overlay(found: Counted, mode: Detector, target: str) -> NDArray[np.uint8]:
    per_px, part = found.shown_per_px, None
    enlarge = max(1, _SMALLEST_SIDE // max(found.shown.shape[:2]))
    colour = ORANGE if mode in ("plant", "crown_rgb", "blob") else SKY_BLUE
    marks: list[Mark] = []
    drawn = found.objects.scaled(per_px)
    for x, y, diameter, *box in np.column_stack(
        [drawn.centres, drawn.diameters, drawn.boxes]
    ).tolist():
        if mode == "crown_chm":
            marks.append(Mark(ORANGE, circle_points(x, y, max(1.0 / enlarge, diameter / 12))))
        marks.append(
            Mark(
                colour, circle_points(x, y, diameter / 2) if drawn.round_marks else box_points(box)
            )
        )
    if found.region is not None:
        x0, y0, x1, y1 = (round(edge * per_px) for edge in found.region)
        part = (x0, y0, max(x0 + 1, x1), max(y0 + 1, y1))
    return draw_marks(
        found.shown,
        marks,
        legend=[(SKY_BLUE, "crown"), (ORANGE, "top")]
        if mode == "crown_chm"
        else [(colour, "found")],
        region=part,
        gsd_m=None if found.gsd_m is None else found.gsd_m / per_px,
        title=f"{len(drawn)} x {target} ({mode})",
        zoom=enlarge,
    )
