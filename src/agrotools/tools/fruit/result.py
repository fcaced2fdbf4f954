"""Result of sizing fruits: one row per fruit, statistics over fruits with enough visible outline, and an overlay."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from agrotools.core import Artifact
from agrotools.tools.contract import ToolResult
from agrotools.tools.result import ResultPart
from agrotools.tools.workspace import save_artifact
from agrotools.vision import Box
from agrotools.vision.overlay import BLACK, ORANGE, SKY_BLUE, Mark, box_points, draw_marks

if TYPE_CHECKING:
    from agrotools.tools.fruit.measuring import FruitMeasurement, View

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


SIZE_CLASSES_MM = (50, 60, 70, 80, 90)
LEAST_ARC = 0.3
"""Least visible share of the outline for a diameter to count; shorter arcs do not determine a circle."""
LEAST_DEPTH = 0.25
_NEAR_PX = 800
_MOST_ZOOM = 4.0
_SURE_SCORE = 0.3
_FRAGMENT = 0.6
"""Share of the usual size below which outlines are fragments; sizes of fruits in a picture vary by some 10 %."""


@dataclass(frozen=True, eq=False)
class FruitInputs:
    """Inputs of :func:`fruit_result`; ``fruits`` are pairs of number and measurement."""

    pixels: NDArray[np.uint8]
    view: "View"
    fruits: "Sequence[tuple[int, FruitMeasurement]]"
    region: Box | None
    min_visibility: float
    boxes: Sequence[Box] = ()
    failed: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def fruit_result(inputs: FruitInputs) -> FruitSizes:
    """Count the fruits, draw them and save the artifacts."""
    smallest, largest = inputs.view.diameters_mm
    fruits, notes, flags = list(inputs.fruits), list(inputs.notes), list(inputs.flags)
    if not inputs.boxes:
        least = _FRAGMENT * _usual_size(fruits)
        whole = [fruit for _, fruit in fruits if fruit.diameter_mm >= least]
        if len(whole) < len(fruits):
            notes.append(f"{len(fruits) - len(whole)} outlines under {least:.0f} mm left out as fragments of fruits")
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
            used_in_mean=fruit.visibility >= inputs.min_visibility
            and fruit.fit.arc_coverage >= LEAST_ARC
            and fruit.depth_share >= LEAST_DEPTH
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
    if sum(fruit.depth_share < LEAST_DEPTH for _, fruit in fruits) > len(rows) / 4:
        flags.append("depth_sparse")
    mean = float(sizes.mean()) if len(sizes) else None
    return FruitSizes(
        fruits=tuple(rows),
        n=len(rows),
        n_measured=len(sizes),
        mean_diameter_mm=mean,
        median_diameter_mm=float(np.median(sizes)) if len(sizes) else None,
        sd_mm=float(sizes.std(ddof=1)) if len(sizes) > 1 else None,
        size_classes=size_classes(sizes),
        boxes_without_fruit=inputs.failed,
        overlay=save_artifact("fruit_sizes.png", "overlay", _overlay(inputs, fruits, rows, mean)),
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


def size_classes(diameters_mm: NDArray[np.float64]) -> dict[str, int]:
    """Count the diameters in each class: ``<50``, ``50-60`` ... ``>=90``."""
    edges = SIZE_CLASSES_MM
    counts = {f"<{edges[0]}": int((diameters_mm < edges[0]).sum())}
    for low, high in pairwise(edges):
        counts[f"{low}-{high}"] = int(((diameters_mm >= low) & (diameters_mm < high)).sum())
    counts[f">={edges[-1]}"] = int((diameters_mm >= edges[-1]).sum())
    return counts


def _overlay(
    inputs: FruitInputs, fruits: "Sequence[tuple[int, FruitMeasurement]]", rows: Sequence[FruitSize], mean: float | None
) -> NDArray[np.uint8]:
    from agrotools.tools.fruit.measuring import outline_points

    left, top, pixels, zoom = _cropped_view(inputs)
    marks = []
    for (_, fruit), row in zip(fruits, rows, strict=True):
        x, y = inputs.view.camera.project(outline_points(fruit.cone))
        colour = SKY_BLUE if row.used_in_mean else ORANGE
        points = ((np.stack([x, y], axis=1) - (left, top)) * zoom).tolist()
        marks.append(Mark(colour, points, f"{row.diameter_mm:.0f}"))
    for number in inputs.failed:
        box = (np.array(inputs.boxes[number - 1]) - (left, top, left, top)) * zoom
        marks.append(Mark(BLACK, box_points(box.tolist()), "?"))
    used = sum(row.used_in_mean for row in rows)
    legend = [
        (SKY_BLUE, f"diameter in mm, counted ({used})"),
        (ORANGE, f"too little seen, not counted ({len(rows) - used})"),
    ]
    if inputs.failed:
        legend.append((BLACK, f"box without a measurable fruit ({len(inputs.failed)})"))
    title = "1 fruit" if len(rows) == 1 else f"{len(rows)} fruits"
    title += f", mean diameter {mean:.1f} mm of {used}" if mean is not None else ""
    return draw_marks(pixels, marks, legend=legend, region=inputs.region, title=title)


def _cropped_view(inputs: FruitInputs) -> tuple[int, int, NDArray[np.uint8], float]:
    """Return the part of the picture to show: its left and top edge, its pixels, and their magnification."""
    import cv2

    rows, columns = inputs.pixels.shape[:2]
    if not inputs.boxes:
        return 0, 0, inputs.pixels, 1.0
    edges = np.array(inputs.boxes)
    margin = int(2 * max((edges[:, 2] - edges[:, 0]).max(), (edges[:, 3] - edges[:, 1]).max()))
    left, top = max(0, int(edges[:, 0].min()) - margin), max(0, int(edges[:, 1].min()) - margin)
    right, bottom = min(columns, int(edges[:, 2].max()) + margin), min(rows, int(edges[:, 3].max()) + margin)
    zoom = min(_MOST_ZOOM, _NEAR_PX / max(right - left, bottom - top))
    if zoom <= 1:
        return 0, 0, inputs.pixels, 1.0
    near = inputs.pixels[top:bottom, left:right]
    return left, top, cv2.resize(near, None, fx=zoom, fy=zoom, interpolation=cv2.INTER_CUBIC).astype(np.uint8), zoom
