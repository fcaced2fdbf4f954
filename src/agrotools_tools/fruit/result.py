"""Result of sizing fruits: one row per fruit, statistics over fruits with enough visible outline, and an overlay."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from agrotools.calling.contract import ToolResult
from agrotools.calling.result import ResultPart
from agrotools.calling.workspace import save_artifact
from agrotools.core import Artifact
from agrotools.vision import Box
from agrotools.vision.overlay import BLACK, ORANGE, SKY_BLUE, Mark, box_points, draw_marks

if TYPE_CHECKING:
    from agrotools_tools.fruit.measure import FruitMeasurement, View

Fruit = Literal["apple", "orange", "peach", "tomato"]


class FruitSize(ResultPart):
    """One fruit."""

    id: int
    """number in the overlay; with boxes, the place of its box in the list, from 1"""
    centre_px: tuple[float, float]
    """x, y of its middle, hidden parts included"""
    radius_px: float
    """radius of its outline, hidden parts included"""
    distance_mm: float
    """from the camera to its middle, along the optical axis"""
    diameter_mm: float
    visibility: float
    """share of its outline's area that is seen, 0 to 1"""
    arc_coverage: float
    """share of its outline that is seen, 0 to 1"""
    used_in_mean: bool
    """whether enough of it is seen for mean, median, sd and size classes"""


class FruitSizes(ToolResult):
    fruits: tuple[FruitSize, ...]
    n: int
    """fruits found whose distance is known"""
    n_measured: int
    """fruits seen well enough to count in mean, median, sd and size classes"""
    mean_diameter_mm: float | None
    median_diameter_mm: float | None
    sd_mm: float | None
    """standard deviation of the diameters (n - 1); null under two fruits"""
    size_classes: dict[str, int]
    """fruits per class of diameter in millimetres, lower end included"""
    boxes_without_fruit: tuple[int, ...]
    """places in the list of boxes, from 1, in which no fruit could be measured; empty without boxes"""
    overlay: Artifact
    """the picture with each outline and its diameter"""


_SIZE_CLASSES_MM = (50, 60, 70, 80, 90)
_LEAST_ARC = 0.3
"""Least visible share of the outline for a diameter to count; shorter arcs do not determine a circle."""
_LEAST_DEPTH = 0.25
_NEAR_PX = 800
_MOST_ZOOM = 4.0
_SURE_SCORE = 0.3
_FRAGMENT = 0.6
"""Share of the usual size below which outlines are fragments; sizes of fruits in a picture vary by some 10 %."""


def fruit_result(
    pixels: NDArray[np.uint8],
    view: "View",
    fruits: "Sequence[tuple[int, FruitMeasurement]]",
    region: Box | None,
    min_visibility: float,
    boxes: Sequence[Box],
    failed: tuple[int, ...],
    notes: list[str],
    flags: list[str],
) -> FruitSizes:
    """Count the fruits, draw them and save the artifacts. ``fruits``: pairs of number and measurement; ``failed``:
    numbers of ``boxes`` without a fruit."""
    smallest, largest = view.diameters_mm
    notes, flags = [*notes], [*flags]
    if not boxes:
        least = _FRAGMENT * _usual_size(fruits)
        whole = [fruit for _, fruit in fruits if fruit.diameter_mm >= least]
        if len(whole) < len(fruits):
            notes.append(
                f"{len(fruits) - len(whole)} outlines under {least:.0f} mm left out as fragments of fruits"
            )
            flags.append("fragments_left_out")
        fruits = list(enumerate(whole, start=1))
    rows = [
        FruitSize(
            id=number,
            centre_px=fruit.centre_px,
            radius_px=fruit.radius_px,
            distance_mm=fruit.depth_mm,
            diameter_mm=fruit.diameter_mm,
            visibility=fruit.visibility,
            arc_coverage=fruit.fit.arc_coverage,
            used_in_mean=fruit.visibility >= min_visibility
            and fruit.fit.arc_coverage >= _LEAST_ARC
            and fruit.depth_share >= _LEAST_DEPTH
            and fruit.fit.score >= _SURE_SCORE
            and smallest <= fruit.diameter_mm <= largest,
        )
        for number, fruit in fruits
    ]
    sizes = np.array([row.diameter_mm for row in rows if row.used_in_mean])
    if len(sizes) < len(rows) / 2:
        flags.append("mostly_occluded")
    if 0 < len(sizes) < 3:
        flags.append("few_fruits")
    if not len(sizes):
        flags.append("none_well_visible")
    if sum(fruit.depth_share < _LEAST_DEPTH for _, fruit in fruits) > len(rows) / 4:
        flags.append("depth_sparse")
    mean = float(sizes.mean()) if len(sizes) else None
    used = [row.used_in_mean for row in rows]
    overlay = _overlay(pixels, view, fruits, used, region, boxes, failed, mean)
    return FruitSizes(
        fruits=tuple(rows),
        n=len(rows),
        n_measured=len(sizes),
        mean_diameter_mm=mean,
        median_diameter_mm=float(np.median(sizes)) if len(sizes) else None,
        sd_mm=float(sizes.std(ddof=1)) if len(sizes) > 1 else None,
        size_classes=_size_classes(sizes),
        boxes_without_fruit=failed,
        overlay=save_artifact("fruit_sizes.png", "overlay", overlay),
        notes=tuple(notes),
        flags=tuple(dict.fromkeys(flags)),
    )


def _usual_size(fruits: "Sequence[tuple[int, FruitMeasurement]]") -> float:
    """Return the median diameter, mm, weighted by visible fruit area, so that small fragments have little weight."""
    sizes = np.array([fruit.diameter_mm for _, fruit in fruits])
    weight = np.array([fruit.visibility for _, fruit in fruits]) * sizes**2
    order = np.argsort(sizes)
    if not len(order) or weight.sum() <= 0:
        return 0.0
    share = np.cumsum(weight[order]) / weight.sum()
    return float(sizes[order][int(np.searchsorted(share, 0.5))])


def _size_classes(diameters_mm: NDArray[np.float64]) -> dict[str, int]:
    """Count the diameters in each class: ``<50``, ``50-60`` ... ``>=90``."""
    edges = _SIZE_CLASSES_MM
    names = [f"<{edges[0]}", *(f"{low}-{high}" for low, high in pairwise(edges)), f">={edges[-1]}"]
    counts = np.bincount(np.searchsorted(edges, diameters_mm, side="right"), minlength=len(names))
    return dict(zip(names, counts.tolist(), strict=True))


def _overlay(
    pixels: NDArray[np.uint8],
    view: "View",
    fruits: "Sequence[tuple[int, FruitMeasurement]]",
    used: Sequence[bool],
    region: Box | None,
    boxes: Sequence[Box],
    failed: Sequence[int],
    mean: float | None,
) -> NDArray[np.uint8]:
    from agrotools_tools.fruit.measure import outline_points

    corner, shown, zoom = _cropped_view(pixels, boxes)
    marks: list[Mark] = []
    for (_, fruit), is_used in zip(fruits, used, strict=True):
        points = (np.stack(view.camera.project(outline_points(fruit.cone)), axis=1) - corner) * zoom
        marks.append(
            Mark(SKY_BLUE if is_used else ORANGE, points.tolist(), f"{fruit.diameter_mm:.0f}")
        )
    for number in failed:
        box = (np.array(boxes[number - 1]) - (*corner, *corner)) * zoom
        marks.append(Mark(BLACK, box_points(box.tolist()), "?"))
    legend = [
        (SKY_BLUE, f"diameter in mm, counted ({sum(used)})"),
        (ORANGE, f"too little seen, not counted ({len(used) - sum(used)})"),
    ]
    if failed:
        legend.append((BLACK, f"box without a measurable fruit ({len(failed)})"))
    title = "1 fruit" if len(used) == 1 else f"{len(used)} fruits"
    title += f", mean diameter {mean:.1f} mm of {sum(used)}" if mean is not None else ""
    return draw_marks(shown, marks, legend=legend, region=region, title=title)


def _cropped_view(
    pixels: NDArray[np.uint8], boxes: Sequence[Box]
) -> tuple[tuple[int, int], NDArray[np.uint8], float]:
    """Return the part of the picture to show: its top left corner, its pixels, and their magnification."""
    import cv2

    if boxes:
        edges = np.array(boxes)
        (left, top), (right, bottom) = edges[:, :2].min(axis=0), edges[:, 2:].max(axis=0)
        margin = int(2 * (edges[:, 2:] - edges[:, :2]).max())
        left, top = max(0, int(left) - margin), max(0, int(top) - margin)
        near = pixels[top : int(bottom) + margin, left : int(right) + margin]
        zoom = min(_MOST_ZOOM, _NEAR_PX / max(near.shape[:2]))
        if zoom > 1:
            shown = cv2.resize(near, None, fx=zoom, fy=zoom, interpolation=cv2.INTER_CUBIC)
            return (left, top), shown.astype(np.uint8), zoom
    return (0, 0), pixels, 1.0
