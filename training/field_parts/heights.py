"""Heights of forests that packages of R hold: single flights, the same forest at two flights, trees with their tape."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.core import SampleFile
from agrotools_benchmarks.field.pack import read_numbers
from agrotools_build.area_truth import Region, quarters
from agrotools_build.sources.land import canopy_subjects, height_truth, heights_thing
from agrotools_build.sources.part import Adapter, DataSet, Part
from agrotools_build.templates import Thing
from agrotools_build.templates.thing import Subject
from field_parts.converted import as_plane, numbers_of
from field_parts.kept import HEIGHTS_OF_FORESTS
from prepared import read_items

_NOTE = (
    "Heights above ground from lidar, one band, metres. Cells without data are ignored. A window is named by its left,"
    " top, right and bottom edge in pixels from the upper left corner; the right and the bottom edge are not in it."
)
Heights = NDArray[np.float32]


def _heights_of(data: DataSet, item: dict[str, Any]) -> tuple[SampleFile, Heights]:
    """Return the raster of an item, and its heights in metres (rows, columns)."""
    numbers = numbers_of(item)
    assert numbers is not None
    heights = read_numbers((data.folder / item["chm"]).read_bytes(), numbers)[0].astype(np.float32)
    size = {"width_px": numbers.columns, "height_px": numbers.rows, "gsd_m": item["gsd_m"]}
    file = as_plane(data, item, "chm", kind="raster", bands=("height",), note=_NOTE, **size)
    return file, heights


def _of_forest(subjects: Sequence[Subject], cluster: str) -> list[Subject]:
    return [replace(each, cluster=cluster, groups=HEIGHTS_OF_FORESTS) for each in subjects]


_MOST_EMPTY = 0.1
"""Largest share of a window that may have no data."""


def _single(item: dict[str, Any], file: SampleFile, heights: Heights) -> list[Subject]:
    """Return the subjects of one raster; its windows lie where there are data."""
    seed = 0
    while True:
        rng = np.random.default_rng([*heights.shape, seed])
        subjects = canopy_subjects(str(item["id"]), file, heights, rng)
        boxes = subjects[-1]
        regions = [boxes.shown(index, 1).arguments["region"] for index in range(boxes.things)]
        if all(_empty_share(heights, region) <= _MOST_EMPTY for region in regions):
            return subjects
        seed += 1


def _empty_share(heights: Heights, region: Sequence[int]) -> float:
    x0, y0, x1, y1 = region
    return float(np.isnan(heights[y0:y1, x0:x1]).mean())


@partial(Adapter, "field.longleaf_pines")
def pines(data: DataSet) -> Part:
    """A plot of pines."""
    item = read_items(data.folder, ("cluster",), ("chm",))[0]
    subjects = _single(item, *_heights_of(data, item))
    return data.part(_of_forest(subjects, str(item["cluster"])), ["canopy"])


@partial(Adapter, "field.forest_gaps")
def gaps(data: DataSet) -> Part:
    """Two forests, and what one of them lost from one flight to the next."""
    flights: dict[str, list[tuple[int, SampleFile, Heights]]] = {}
    subjects: list[Subject] = []
    for item in read_items(data.folder, ("cluster", "year"), ("chm",)):
        cluster, (file, heights) = str(item["cluster"]), _heights_of(data, item)
        flights.setdefault(cluster, []).append((item["year"], file, heights))
    for cluster, flown in flights.items():
        _, file, heights = flown[0]
        if len(flown) == 1:
            subjects += _of_forest(_single({"id": cluster}, file, heights), cluster)
        else:
            subjects += _of_forest(_flown_twice(cluster, flown), cluster)
    return data.part(subjects, ["canopy", "flights"])


def _flown_twice(name: str, flown: Sequence[tuple[int, SampleFile, Heights]]) -> list[Subject]:
    """Return the subjects of a forest at two flights: the whole of it, and its quarters."""
    rows, columns = flown[0][2].shape
    parts: list[tuple[str, Region | None]] = [("area", None), *quarters(columns, rows)]
    files = [file.model_copy(update={"name": f"heights_{year}.tif"}) for year, file, _ in flown]

    def subject(called: str, region: Region | None) -> Subject:
        @cache
        def shown(index: int, _: int) -> Thing:
            year, _, heights = flown[index]
            truth = height_truth(heights, region, files[index].gsd_m)
            thing = heights_thing(files[index], truth, f"{year}", region)
            where = "the whole area" if region is None else f"the window {_edges(region)}"
            return replace(thing, words={"part": where, "year": str(year)})

        return Subject(f"{name}-{called}", len(flown), shown, {"part": called}, of="flight")

    return [subject(called, region) for called, region in parts]


def _edges(region: Sequence[int]) -> str:
    return f"({', '.join(map(str, region))})"


_LEAST_TAPED_M = 15.0
"""Least height of a tree that is asked about: lower ones stand below the crowns of others."""
_ALONE_M = 4.0
"""Distance within which no tree may be taller, so that the top of the canopy is the tree's own."""
_AROUND_PX = 3
"""Cells on each side of a stem that its window shows: 1.5 m."""


@partial(Adapter, "field.chablais_trees")
def taped(data: DataSet) -> Part:
    """Trees of a mountain forest that people measured on the ground."""
    item = read_items(data.folder, ("cluster", "trees"), ("chm",))[0]
    file, _ = _heights_of(data, item)
    shown_file = file.model_copy(update={"name": "heights.tif"})
    subjects: list[Subject] = []
    trees = sorted(_tops(item["trees"], item["gsd_m"]), key=lambda tree: tree["height_m"])
    # Trees of the lower half beside those of the upper one, so that which is taller can be told.
    half = len(trees) // 2
    for number, pair in enumerate(zip(trees[:half], trees[half:], strict=False)):
        shown = partial(_taped_tree, shown_file, pair)
        subjects += [Subject(f"taped-{number}", 2, shown, {"trees": number}, of="taped_trees")]
    for number, tree in enumerate(trees):
        shown = partial(_taped_tree, shown_file, [tree])
        subjects += [Subject(f"tree-{number}", 1, shown, {"tree": number}, of="taped_tree")]
    return data.part(_of_forest(subjects, str(item["cluster"])), ["taped_trees"])


def _tops(trees: Sequence[dict[str, Any]], gsd_m: float) -> list[dict[str, Any]]:
    """Return the trees that are tall and have no taller one beside them."""

    def is_top(tree: dict[str, Any]) -> bool:
        return not any(
            other["height_m"] > tree["height_m"] and _distance(other, tree) * gsd_m < _ALONE_M
            for other in trees
        )

    return [tree for tree in trees if tree["height_m"] >= _LEAST_TAPED_M and is_top(tree)]


def _distance(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Return how far apart two stems are, cells."""
    return float(np.hypot(one["column"] - other["column"], one["row"] - other["row"]))


def _taped_tree(file: SampleFile, trees: Sequence[dict[str, Any]], index: int, _: int) -> Thing:
    tree = trees[index]
    x, y = tree["column"], tree["row"]
    region = [x - _AROUND_PX, y - _AROUND_PX, x + _AROUND_PX + 1, y + _AROUND_PX + 1]
    words = {"window": _edges(region)}
    thought = f"I need the height of the tree in the window {_edges(region)}."
    truth: dict[str, Any] = {"max_m": tree["height_m"]}
    arguments: dict[str, Any] = {"chm": file.name, "region": region}
    return Thing(
        (file,), "estimate_canopy_height", arguments, truth, f"tree {index + 1}", thought, words
    )
