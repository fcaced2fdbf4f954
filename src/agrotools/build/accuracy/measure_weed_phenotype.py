"""How well measure_weed_phenotype counts leaves on photographs, and measures plants whose size is known."""

from pathlib import Path

import numpy as np

from agrotools.build.accuracy.drawn_plants import DrawnPlant, drawn_plant
from agrotools.build.accuracy.figures import Figure, mean_of, median_of
from agrotools.build.accuracy.study import Bench, Study
from agrotools.core import ToolError

DRAWN = 24
"""Plants of each view. Others than these seeds were looked at while the tool was written."""
_FIRST_SEED = 1000


def _leaf_count(bench: Bench) -> list[Figure]:
    errors = [
        float(bench.call(image=bench.folder / item["image"], view="top").plants[0].leaf_count_est - item["count"])
        for item in bench.items()
    ]
    return [
        mean_of("leaves, mean absolute error", [abs(error) for error in errors], goal=1.0, higher_is_better=False),
        mean_of("leaves, mean error", errors, note="central leaflets and leaves on top of each other are not seen"),
    ]


def _drawn(bench: Bench) -> list[Figure]:
    leaves: list[float] = []
    areas: list[float] = []
    heights: list[float] = []
    widths: list[float] = []
    overlaps: list[float] = []
    for seed in range(_FIRST_SEED, _FIRST_SEED + DRAWN):
        for view in ("side", "top"):
            plant = drawn_plant(seed, view)
            path = _written(bench, plant, f"{view}_{seed}.jpg")
            result = bench.call(image=path, view=view, scale_cm_px=plant.cm_px, ground_y_px=plant.ground_y_px)
            largest = result.plants[0]
            leaves.append(abs(largest.leaf_count_est - plant.leaves))
            areas.append(100 * abs(largest.area_cm2 / plant.area_cm2 - 1))
            widths.append(100 * abs(largest.width_cm / plant.width_cm - 1))
            overlaps.append(_iou(bench, result, plant))
            if view == "side":
                heights.append(100 * abs(largest.height_cm / plant.height_cm - 1))
    return [
        mean_of("plant mask, IoU", overlaps, goal=0.95),
        median_of("area, median absolute error, %", areas, goal=3.0, higher_is_better=False),
        median_of("height, median absolute error, %", heights, goal=2.0, higher_is_better=False),
        median_of("width, median absolute error, %", widths, goal=2.0, higher_is_better=False),
        mean_of("leaves, mean absolute error", leaves, goal=1.0, higher_is_better=False),
    ]


def _markers(bench: Bench) -> list[Figure]:
    errors = []
    for seed in range(_FIRST_SEED, _FIRST_SEED + DRAWN):
        for view in ("side", "top"):
            plant = drawn_plant(seed, view)
            errors.append(_scale_error(bench, _written(bench, plant, f"{view}_{seed}.jpg"), plant))
    found = [error for error in errors if np.isfinite(error)]
    return [
        mean_of("round marker, found, %", [100.0 * np.isfinite(error) for error in errors], goal=95.0),
        median_of("scale by round marker, median absolute error, %", found, goal=2.0, higher_is_better=False),
    ]


def _written(bench: Bench, plant: DrawnPlant, name: str) -> Path:
    bench.scratch.mkdir(parents=True, exist_ok=True)
    path = bench.scratch / name
    path.write_bytes(plant.jpeg)
    return path


def _iou(bench: Bench, result: object, plant: DrawnPlant) -> float:
    from PIL import Image

    with Image.open(bench.made(result.mask)) as opened:  # pyright: ignore[reportAttributeAccessIssue]
        mask = np.asarray(opened) > 0
    return float((mask & plant.mask).sum() / (mask | plant.mask).sum())


def _scale_error(bench: Bench, path: Path, plant: DrawnPlant) -> float:
    """Percent; NaN where the marker was not found."""
    try:
        result = bench.call(image=path, view=plant.view, scale_marker={"type": "circle", "size_cm": plant.disc_cm})
    except ToolError:
        return float("nan")
    return 100 * abs(result.scale_cm_px / plant.cm_px - 1)


STUDIES = (
    Study("measure_weed_phenotype", "leaf_count", _leaf_count),
    Study("measure_weed_phenotype", "drawn plants", _drawn, needs_folder=False),
    Study("measure_weed_phenotype", "drawn plants with a disc", _markers, needs_folder=False),
)
