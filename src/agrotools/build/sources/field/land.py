"""Land from above: maps of tree cover, a multispectral scene, pairs of dates, and rasters of canopy heights."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.build.area_truth import Region, cut_out, halves, quarters
from agrotools.build.sources.part import DataSet, Part, adapter
from agrotools.build.sources.reading import read_items
from agrotools.build.templates import Thing
from agrotools.build.templates.thing import Subject
from agrotools.core import Arguments, SampleFile
from agrotools.tools.change.pairs import shift_between
from agrotools.tools.result import round_significant
from agrotools.vision.rasters import open_raster
from agrotools.vision.reading import read_image, read_labels

_DIGITS = 6
_BANDS = ("B", "G", "R", "NIR")


@adapter("field.tree_canopy")
def trees(data: DataSet) -> Part:
    """Shares and areas of tree cover in maps."""
    subjects: list[Subject] = []
    for number, item in enumerate(read_items(data.folder, ("gsd_m",), ("mask",))):
        path, gsd_m = data.folder / item["mask"], item["gsd_m"]
        note = "Map of tree cover, drawn on an aerial image of a town."
        file = data.originals.file(path, kind="mask", classes={"0": "other", "1": "trees"}, gsd_m=gsd_m, note=note)
        file = file.model_copy(update={"name": "tree_map.png"})
        mask = read_labels(path).classes

        def truth(region: Region | None, mask: Any = mask, gsd_m: float = gsd_m) -> dict[str, Any]:
            inside = cut_out(mask, region)
            share = 100 * np.count_nonzero(inside == 1) / inside.size
            pcts = {"trees": round_significant(share, _DIGITS), "other": round_significant(100 - share, _DIGITS)}
            area_m2 = round_significant(inside.size * gsd_m**2, _DIGITS)
            return {"class_pcts": pcts, "area_px": inside.size, "area_m2": area_m2}

        across, down = halves(mask.shape[1], mask.shape[0])
        subjects += [
            _subject(f"trees-{number}", "trees", file, [(file.name, None)], truth),
            _subject(f"trees-{number}-across", "trees_half", file, across, truth),
            _subject(f"trees-{number}-down", "trees_half", file, down, truth),
        ]
    return data.part(subjects, ["land"])


@adapter("field.multiband")
def scene(data: DataSet) -> Part:
    """Mean vegetation index of parts of a multispectral scene."""
    subjects: list[Subject] = []
    for number, item in enumerate(read_items(data.folder, ("bands",), ("raster",))):
        if len(item["bands"] if isinstance(item["bands"], list) else ()) != len(_BANDS):
            continue  # a hyperspectral file, whose only known truth is its size
        with open_raster(data.folder / item["raster"]) as raster:
            values = raster.read([3, 4]).astype(np.float64)
        index = (values[1] - values[0]) / (values[1] + values[0])
        rows, columns = index.shape
        note = "Sentinel-2, four bands of 10 m, reflectance times 10,000."
        file = data.originals.raster(data.folder / item["raster"], (columns, rows), _BANDS, note)
        file = file.model_copy(update={"name": "scene.tif"})

        def truth(region: Region | None, index: Any = index) -> dict[str, Any]:
            inside = cut_out(index, region)
            return {"ndvi": round_significant(float(np.nanmean(inside)), _DIGITS), "area_px": inside.size}

        across, down = halves(columns, rows)
        subjects += [
            _subject(f"scene-{number}-across", "scene_half", file, across, truth),
            _subject(f"scene-{number}-down", "scene_half", file, down, truth),
            _subject(f"scene-{number}", "scene_quarter", file, quarters(columns, rows), truth),
        ]
    return data.part(subjects, ["land"])


def _subject(
    name: str,
    of: str,
    file: SampleFile,
    parts: Sequence[tuple[str, Region | None]],
    truth: Callable[[Region | None], dict[str, Any]],
) -> Subject:
    def shown(index: int, _: int) -> Thing:
        called, region = parts[index]
        arguments: dict[str, Any] = (
            {"image": file.name} if region is None else {"image": file.name, "region": [*region]}
        )
        where = "" if region is None else f", {called} part"
        thought = f"I need the numbers of {file.name}{where}."
        return Thing((file,), "describe_region", arguments, truth(region), called, thought)

    return Subject(name, len(parts), shown, {"subject": name}, of=of)


LEVIR_GSD_M = 0.5
"""Pixel size of LEVIR-CD, metres (Chen and Shi 2020). That of the DSIFN tiles, which were cut and resized, is unknown.
"""


@adapter("field.levir_cd")
def buildings(data: DataSet) -> Part:
    """LEVIR-CD: new buildings."""
    return _pairs(data, "newly covered by buildings", LEVIR_GSD_M)


@adapter("field.dsifn_cd")
def land_use(data: DataSet) -> Part:
    """DSIFN-CD: lasting changes of the surface, mostly fields built over."""
    return _pairs(data, "built over or otherwise changed for good", None)


def _pairs(data: DataSet, changed: str, gsd_m: float | None) -> Part:
    pairs: list[list[Subject]] = []
    clear: set[str] = set()
    """Names of the scenes whose two dates show outlines that are alike, so that another place is seen to be one."""
    for number, item in enumerate(read_items(data.folder, files=("before", "after", "mask"))):
        files = tuple(
            data.originals.file(
                data.folder / item[date], gsd_m=gsd_m, note=f"Seen from the air, {order} date."
            ).model_copy(update={"name": f"{date}{Path(item[date]).suffix}"})
            for date, order in (("before", "first"), ("after", "second"))
        )
        mask = read_labels(data.folder / item["mask"]).classes > 0
        pairs.append(change_subjects(f"{data.listing.part}-{number}", files, mask, changed, gsd_m))
        dates = [read_image(data.folder / item[date]).pixels for date in ("before", "after")]
        if shift_between(dates[0], dates[1], np.ones(mask.shape, np.bool_)).is_clear:
            clear.add(pairs[-1][0].name)
    pairs.sort(key=lambda some: some[0].name not in clear)
    # Two scenes lend each other their second dates, so that no more than two become one cluster.
    for one, other in zip(pairs[::2], pairs[1::2], strict=False):
        afters = [some[0].shown(0, 1).files[1] for some in (one, other)]
        for some, own, strange in ((one, *afters), (other, *reversed(afters))):
            if some[0].name in clear:
                some[:] = [replace(each, instead={"another_place": {own.path: strange}}) for each in some]
    return data.part([subject for some in pairs for subject in some], ["change"])


def change_subjects(
    name: str, files: tuple[SampleFile, ...], mask: NDArray[np.bool_], changed: str, gsd_m: float | None
) -> list[Subject]:
    """Return the subjects of a pair of pictures (``files``: before, after), as a whole and by its halves.

    Args:
        mask: True for changed pixels.
        changed: the kind of change, as a participle that follows "was".
    """
    across, down = halves(mask.shape[1], mask.shape[0])

    def shown(parts: list[tuple[str, Region | None]]) -> Callable[[int, int], Thing]:
        def thing(index: int, _: int) -> Thing:
            called, region = parts[index]
            arguments: Arguments = {"before": files[0].name, "after": files[1].name, "target": "farmland"}
            if region is not None:
                arguments["region"] = [*region]
            where = "" if region is None else f" in the {called} half"
            thought = f"I need to know how much of the ground{where} was {changed}."
            words = {"changed": changed, "before": files[0].name, "after": files[1].name}
            return Thing(
                files, "detect_change", arguments, change_truth(cut_out(mask, region), gsd_m), called, thought, words
            )

        return thing

    return [
        Subject(name, 1, shown([("the scene", None)]), {"pair": name}, of="change"),
        Subject(f"{name}-across", 2, shown([*across]), {"pair": name}, of="change_half"),
        Subject(f"{name}-down", 2, shown([*down]), {"pair": name}, of="change_half"),
    ]


def change_truth(change: NDArray[np.bool_], gsd_m: float | None, **more: Any) -> dict[str, Any]:
    """Return the result of a perfect ``detect_change`` that marks these pixels, with further fields in ``more``."""
    changed_px = int(np.count_nonzero(change))
    area_m2 = None if gsd_m is None else round_significant(changed_px * gsd_m**2, _DIGITS)
    return {
        "changed": changed_px > 0,
        "change_px": changed_px,
        "change_pct": round_significant(100 * changed_px / change.size, _DIGITS),
        "change_area_m2": area_m2,
        "change_area_ha": None if area_m2 is None else round_significant(area_m2 / 10_000, _DIGITS),
        "total_px": change.size,
        **more,
        "gsd_m": gsd_m,
    }


@adapter("field.s2_ndvi")
def ndvi(data: DataSet) -> Part:
    """Mean vegetation index of two dates of one place."""
    dates: list[tuple[SampleFile, float]] = []
    for item in sorted(read_items(data.folder, files=("ndvi",)), key=lambda item: str(item["id"])):
        path = data.folder / item["ndvi"]
        with open_raster(path) as raster:
            values, gsd_m = raster.read([1])[0], raster.sampling.gsd_m
        size = values.shape[1], values.shape[0]
        file = data.originals.raster(path, size, ("NDVI",), "NDVI from Sentinel-2, one band, -1 to 1.", gsd_m)
        dates.append((file, float(np.nanmean(values.astype(np.float64)))))
    # Consecutive pairs share a date, so all samples of one place are one cluster.
    return data.part([_ndvi_subject(number, *pair) for number, pair in enumerate(pairwise(dates))], ["ndvi"])


def _ndvi_subject(number: int, before: tuple[SampleFile, float], after: tuple[SampleFile, float]) -> Subject:
    files = tuple(
        file.model_copy(update={"name": f"ndvi_{name}{Path(file.path).suffix}"})
        for name, (file, _) in (("first", before), ("second", after))
    )

    def shown(_: int, __: int) -> Thing:
        means = {
            "mean_before": round_significant(before[1], _DIGITS),
            "mean_after": round_significant(after[1], _DIGITS),
        }
        truth: dict[str, Any] = {"vegetation": {"index": "ndvi", **means}}
        arguments: dict[str, Any] = {"before": files[0].name, "after": files[1].name, "target": "vegetation"}
        words = {"before": files[0].name, "after": files[1].name}
        thought = "I need the vegetation index of both dates."
        return Thing(files, "detect_change", arguments, truth, "the place", thought, words)

    return Subject(f"ndvi-{number}", 1, shown, {"dates": number}, of="ndvi_pair")


_CANOPY_FILE = "canopy_heights.tif"
BREAK_M = 2.0
_BINS_M = (2.0, 5.0, 10.0, 15.0, 20.0)


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
    """Return subjects of one raster: the whole raster, its halves, its quarters, and three boxes drawn by ``rng``.

    Args:
        file: the raster, without its final name.
        heights: metres (rows, columns), NaN without data (less than a tenth of the raster).
    """
    file = file.model_copy(update={"name": _CANOPY_FILE})
    rows, columns = heights.shape
    across, down = halves(columns, rows)
    boxes = _boxes(rng, rows, columns)
    windows = [(f"window {number}", box) for number, box in enumerate(boxes, start=1)]

    def subject(of: str, parts: Sequence[tuple[str, Region | None]]) -> Subject:
        @cache  # a part is used in many questions, and its percentiles are slow to compute
        def shown(index: int, _: int) -> Thing:
            return _canopy_thing(file, heights, parts[index][1], parts[index][0])

        return Subject(f"{name}-{of}-{parts[0][0]}", len(parts), shown, {"raster": name}, of=of)

    return [
        subject("canopy", [("the area", None)]),
        subject("canopy_half", across),
        subject("canopy_half", down),
        subject("canopy_quarter", quarters(columns, rows)),
        subject("canopy_box", windows),
    ]


def _canopy_thing(file: SampleFile, heights: NDArray[np.float32], region: Region | None, called: str) -> Thing:
    arguments: Arguments = {"chm": file.name} if region is None else {"chm": file.name, "region": [*region]}
    part = "" if region is None else f" ({called})" if not called.startswith("window") else " in the window asked for"
    words: dict[str, str] = dict(zip(("x0", "y0", "x1", "y1"), map(str, region or ()), strict=False))
    thought = f"I need the heights in {file.name}{part}."
    truth = height_truth(heights, region, file.gsd_m)
    return Thing((file,), "estimate_canopy_height", arguments, truth, called, thought, words)


def height_truth(heights: NDArray[np.float32], region: Region | None, gsd_m: float | None) -> dict[str, Any]:
    """Return a perfect ``estimate_canopy_height`` result for heights in metres (rows, columns), NaN without data."""
    values = cut_out(heights, region).astype(np.float64)
    values = values[np.isfinite(values)]
    canopy = values[values >= BREAK_M]
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
    """Return three windows of a third to a half of each side."""
    regions: list[Region] = []
    for _ in range(3):
        width, height = (round(side * rng.uniform(0.33, 0.5)) for side in (columns, rows))
        x0, y0 = int(rng.integers(0, columns - width + 1)), int(rng.integers(0, rows - height + 1))
        regions.append((x0, y0, x0 + width, y0 + height))
    return regions
