"""Canopy height rasters from airborne laser scanning. The raster is the truth: all that is asked follows from it."""

import math
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.build.area_truth import Region, halves, quarters
from agrotools.build.sources.field.land import cut_out
from agrotools.build.sources.part import DataSet, Part, adapter
from agrotools.build.sources.reading import read_items
from agrotools.build.templates import Thing
from agrotools.build.templates.thing import Subject
from agrotools.core import Arguments, SampleFile
from agrotools.tools.result import round_significant
from agrotools.vision.rasters import open_raster

_NAME = "canopy_heights.tif"
_BREAK_M = 2.0
_BINS_M = (2.0, 5.0, 10.0, 15.0, 20.0)
_DIGITS = 6


@adapter("field.chm")
def canopy(data: DataSet) -> Part:
    """Heights and covers of rasters and of parts of them."""
    subjects: list[Subject] = []
    for item in read_items(data.folder, files=("chm",)):
        path = data.folder / item["chm"]
        with open_raster(path) as raster:
            heights, gsd_m = raster.read([1])[0], raster.sampling.gsd_m
        rows, columns = heights.shape
        note = "Heights above ground from airborne laser scanning, one band, metres."
        file = data.originals.heights(path, (columns, rows), gsd_m, note)
        subjects += canopy_subjects(str(item["id"]), file, heights, np.random.default_rng([*heights.shape]))
    return data.part(subjects, ["canopy"])


def canopy_subjects(
    name: str, file: SampleFile, heights: NDArray[np.float32], rng: np.random.Generator
) -> list[Subject]:
    """Things of one raster: of all of it, its halves, its quarters, and three boxes drawn by ``rng``.

    Args:
        file: the raster, not named yet.
        heights: metres (rows, columns), NaN where there is no data, which fills less than a tenth of the raster.
    """
    file = file.model_copy(update={"name": _NAME})
    rows, columns = heights.shape
    across, down = halves(columns, rows)
    boxes = _boxes(rng, rows, columns)
    windows = [(f"window {number}", box) for number, box in enumerate(boxes, start=1)]

    def subject(of: str, parts: Sequence[tuple[str, Region | None]]) -> Subject:
        @cache  # one part is asked about in many ways, and its percentiles take their time
        def shown(index: int, _: int) -> Thing:
            return _thing(file, heights, parts[index][1], parts[index][0])

        return Subject(f"{name}-{of}-{parts[0][0]}", len(parts), shown, {"raster": name}, of=of)

    return [
        subject("canopy", [("the area", None)]),
        subject("canopy_half", across),
        subject("canopy_half", down),
        subject("canopy_quarter", quarters(columns, rows)),
        subject("canopy_box", windows),
    ]


def _thing(file: SampleFile, heights: NDArray[np.float32], region: Region | None, called: str) -> Thing:
    arguments: Arguments = {"chm": file.name} if region is None else {"chm": file.name, "region": [*region]}
    part = "" if region is None else f" ({called})" if not called.startswith("window") else " in the window asked for"
    words: dict[str, str] = dict(zip(("x0", "y0", "x1", "y1"), map(str, region or ()), strict=False))
    thought = f"I need the heights in {file.name}{part}."
    truth = height_truth(heights, region, file.gsd_m)
    return Thing((file,), "estimate_canopy_height", arguments, truth, called, thought, words)


def height_truth(heights: NDArray[np.float32], region: Region | None, gsd_m: float | None) -> dict[str, Any]:
    """Result of a perfect ``estimate_canopy_height`` of metres (rows, columns), NaN where there is no data."""
    values = cut_out(heights, region).astype(np.float64)
    values = values[np.isfinite(values)]
    canopy = values[values >= _BREAK_M]
    edges = (-math.inf, *_BINS_M, math.inf)
    counted = [int(np.sum((values >= lo) & (values < hi))) for lo, hi in pairwise(edges)]
    figures = {
        "mean_m": values.mean(),
        "median_m": np.median(values),
        "p95_m": np.percentile(values, 95),
        "max_m": values.max(),
        "cover_pct": 100 * canopy.size / values.size,
    }
    if gsd_m is not None:
        figures |= {"area_m2": values.size * gsd_m**2, "canopy_area_m2": canopy.size * gsd_m**2}
    return {
        **{name: round_significant(float(value), _DIGITS) for name, value in figures.items()},
        "bins": [{"pct": round_significant(100 * count / values.size, _DIGITS)} for count in counted],
        "measured_px": values.size,
    }


def _boxes(rng: np.random.Generator, rows: int, columns: int) -> list[Region]:
    """Three windows of a third to a half of each side."""
    regions: list[Region] = []
    for _ in range(3):
        width, height = (round(side * rng.uniform(0.33, 0.5)) for side in (columns, rows))
        x0, y0 = int(rng.integers(0, columns - width + 1)), int(rng.integers(0, rows - height + 1))
        regions.append((x0, y0, x0 + width, y0 + height))
    return regions
