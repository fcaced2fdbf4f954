"""Land from above: maps of tree cover, a multispectral scene, pairs of dates, and rasters of canopy heights."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from agrotools.calling.result import round_significant
from agrotools.core import SampleFile
from agrotools.vision.rasters import open_raster
from agrotools.vision.reading import read_image, read_labels
from agrotools_build.area_truth import Region, cut_out, halves, quarters
from agrotools_build.sources.land import canopy_subjects, change_subjects
from agrotools_build.sources.part import Adapter, DataSet, Part
from agrotools_build.templates import Thing
from agrotools_build.templates.thing import Subject
from agrotools_tools.change.pairs import shift_between
from field_parts.converted import as_plane
from field_parts.kept import CHANGES_OF_SUBURBS, is_kept
from prepared import read_items

_DIGITS = 6
_BANDS = ("B", "G", "R", "NIR")


@partial(Adapter, "field.tree_canopy")
def trees(data: DataSet) -> Part:
    """Shares and areas of tree cover in maps."""
    subjects: list[Subject] = []
    for number, item in enumerate(read_items(data.folder, ("gsd_m",), ("mask",))):
        gsd_m, note = item["gsd_m"], "Map of tree cover, drawn on an aerial image of a town."
        meaning = {
            "kind": "mask",
            "classes": {"0": "other", "1": "trees"},
            "gsd_m": gsd_m,
            "note": note,
        }
        file = as_plane(data, item, "mask", place=1, **meaning).model_copy(
            update={"name": "tree_map.tif"}
        )
        mask = read_labels(data.folder / item["mask"]).classes

        def truth(region: Region | None, mask: Any = mask, gsd_m: float = gsd_m) -> dict[str, Any]:
            inside = cut_out(mask, region)
            share = 100 * np.count_nonzero(inside == 1) / inside.size
            pcts = {
                "trees": round_significant(share, _DIGITS),
                "other": round_significant(100 - share, _DIGITS),
            }
            area_m2 = round_significant(inside.size * gsd_m**2, _DIGITS)
            return {"class_pcts": pcts, "area_px": inside.size, "area_m2": area_m2}

        across, down = halves(mask.shape[1], mask.shape[0])
        subjects += [
            _subject(f"trees-{number}", "trees", file, [(file.name, None)], truth),
            _subject(f"trees-{number}-across", "trees_half", file, across, truth),
            _subject(f"trees-{number}-down", "trees_half", file, down, truth),
        ]
    return data.part(subjects, ["land"])


@partial(Adapter, "field.multiband")
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
            return {
                "ndvi": round_significant(float(np.nanmean(inside)), _DIGITS),
                "area_px": inside.size,
            }

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


@partial(Adapter, "field.levir_cd")
def buildings(data: DataSet) -> Part:
    """LEVIR-CD: new buildings in suburbs, which are no farms."""
    part = _pairs(data, "newly covered by buildings", LEVIR_GSD_M)
    suburbs = [replace(each, groups=CHANGES_OF_SUBURBS) for each in part.subjects]
    return replace(part, subjects=suburbs)


@partial(Adapter, "field.dsifn_cd")
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
        if not is_kept(data, files[0]):
            continue
        mask = read_labels(data.folder / item["mask"]).classes > 0
        pairs.append(change_subjects(f"{data.listing.part}-{number}", files, mask, changed, gsd_m))
        dates = [read_image(data.folder / item[date]).pixels for date in ("before", "after")]
        if shift_between(dates[0], dates[1], np.ones(mask.shape, np.bool_)).is_clear and is_kept(
            data, f"elsewhere {str(files[0].sha256)[:6]}"
        ):
            clear.add(pairs[-1][0].name)
    pairs.sort(key=lambda some: some[0].name not in clear)
    # Two scenes lend each other their second dates, so that no more than two become one cluster.
    for one, other in zip(pairs[::2], pairs[1::2], strict=False):
        afters = [some[0].shown(0, 1).files[1] for some in (one, other)]
        for some, own, strange in ((one, *afters), (other, *reversed(afters))):
            if some[0].name in clear:
                some[:] = [
                    replace(each, instead={"another_place": {own.path: strange}}) for each in some
                ]
    return data.part([subject for some in pairs for subject in some], ["change"])


@partial(Adapter, "field.s2_ndvi")
def ndvi(data: DataSet) -> Part:
    """Mean vegetation index of two dates of one place."""
    dates: list[tuple[SampleFile, float]] = []
    for item in sorted(read_items(data.folder, files=("ndvi",)), key=lambda item: str(item["id"])):
        with open_raster(data.folder / item["ndvi"]) as raster:
            values, gsd_m = raster.read([1])[0], raster.sampling.gsd_m
        size = {"width_px": values.shape[1], "height_px": values.shape[0], "gsd_m": gsd_m}
        note = "NDVI from Sentinel-2, one band, -1 to 1."
        file = as_plane(data, item, "ndvi", kind="raster", bands=("NDVI",), note=note, **size)
        dates.append((file, float(np.nanmean(values.astype(np.float64)))))
    # Consecutive pairs share a date, so all samples of one place are one cluster.
    return data.part(
        [_ndvi_subject(number, *pair) for number, pair in enumerate(pairwise(dates))], ["ndvi"]
    )


def _ndvi_subject(
    number: int, before: tuple[SampleFile, float], after: tuple[SampleFile, float]
) -> Subject:
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
        arguments: dict[str, Any] = {
            "before": files[0].name,
            "after": files[1].name,
            "target": "vegetation",
        }
        words = {"before": files[0].name, "after": files[1].name}
        thought = "I need the vegetation index of both dates."
        return Thing(files, "detect_change", arguments, truth, "the place", thought, words)

    return Subject(f"ndvi-{number}", 1, shown, {"dates": number}, of="ndvi_pair")


@partial(Adapter, "field.chm")
def canopy(data: DataSet) -> Part:
    """Heights and covers of rasters and of parts of them."""
    subjects: list[Subject] = []
    for item in read_items(data.folder, files=("chm",)):
        subjects += subjects_of_heights(data, item)
    return data.part(subjects, ["canopy"])


def subjects_of_heights(data: DataSet, item: dict[str, Any]) -> list[Subject]:
    """Return the subjects of the raster of heights of an item: the whole and parts of it."""
    path = data.folder / item["chm"]
    with open_raster(path) as raster:
        heights, gsd_m = raster.read([1])[0], raster.sampling.gsd_m
    rows, columns = heights.shape
    note = (
        "Heights above ground, one band, metres. Cells without data are ignored. A window is named by its left, top,"
        " right and bottom edge in pixels from the upper left corner; the right and the bottom edge are not in it."
    )
    file = data.originals.heights(path, (columns, rows), gsd_m, note)
    return canopy_subjects(str(item["id"]), file, heights, np.random.default_rng([rows, columns]))
