"""Land from above: maps of tree cover, a multispectral scene, pairs of dates, and rasters of canopy heights."""

from collections.abc import Callable, Sequence
from csv import DictReader
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
from agrotools_build.sources.part import Adapter, DataSet, Part, named, photo_subject, photo_thing
from agrotools_build.templates import Thing
from agrotools_build.templates.thing import Subject
from agrotools_tools.change.pairs import shift_between
from field_parts.converted import as_photo, as_plane
from field_parts.kept import TREES_OF_TOWNS, is_kept
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


PLOT_SIDE_PX = 400
"""Least side of the pictures of trees from the air."""


@partial(Adapter, "field.neon_trees")
def trees_from_the_air(data: DataSet) -> Part:
    """Crowns that people boxed in pictures of 0.1 m from the air: plots, and their halves; places are not mixed."""
    places: dict[str, list[tuple[SampleFile, list[tuple[float, float]]]]] = {}
    for item in read_items(data.folder, ("gsd_m",), ("image", "boxes")):
        note = "Seen from straight above, from an aeroplane."
        with (data.folder / item["boxes"]).open(encoding="utf-8") as lines:
            boxes = [
                [float(row[edge]) for edge in ("xmin", "xmax", "ymin", "ymax")]
                for row in DictReader(lines)
            ]
        centres = [((x0 + x1) / 2, (y0 + y1) / 2) for x0, x1, y0, y1 in boxes]
        file = as_photo(data, item, gsd_m=item["gsd_m"], note=note)
        # One of the three places is shown in several tiles; the others, of open woodland, are compared with each other.
        place = "tiles" if "crop" in item["source"] else "plots"
        places.setdefault(place, []).append((file, centres))
    subjects: list[Subject] = []
    for place, plots in places.items():
        subjects.append(
            photo_subject(f"trees-{place}", plots, _plot_of_trees, {"place": place}, "tree_plot")
        )
        for number, (file, centres) in enumerate(plots):
            alone = photo_subject(
                f"trees-{place}-{number}-alone", [(file, centres)], _plot_of_trees, {}, "tree_plot"
            )
            subjects.append(alone)
            parts = halves(int(file.width_px or PLOT_SIDE_PX), int(file.height_px or PLOT_SIDE_PX))[
                number % 2
            ]
            subjects.append(_half_plots(f"trees-{place}-{number}", file, centres, parts))
    return data.part(subjects, ["tree_plots"])


def _plot_of_trees(file: SampleFile, centres: list[tuple[float, float]], _: int) -> Thing:
    side = file.gsd_m or 1.0
    hectares = (file.width_px or 0) * (file.height_px or 0) * side**2 / 10_000
    truth = {
        "count": len(centres),
        "density_per_ha": round_significant(len(centres) / hectares, _DIGITS),
    }
    thought = f"I need to know how many trees stand in {file.name}."
    return photo_thing(file, "count_objects", truth, thought, target="tree")


def _half_plots(
    name: str,
    file: SampleFile,
    centres: list[tuple[float, float]],
    parts: Sequence[tuple[str, Region]],
) -> Subject:
    file = named(file, "image", 1)

    def shown(index: int, _: int) -> Thing:
        called, (x0, y0, x1, y1) = parts[index]
        truth = {"count": sum(x0 <= x < x1 and y0 <= y < y1 for x, y in centres)}
        arguments: dict[str, Any] = {
            "image": file.name,
            "target": "tree",
            "region": [x0, y0, x1, y1],
        }
        thought = f"I need to know how many trees stand in the {called} half."
        return Thing((file,), "count_objects", arguments, truth, f"{called} half", thought)

    return Subject(name, 2, shown, {"plot": name}, of="tree_half_plot")


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
    """LEVIR-CD: new buildings."""
    return _pairs(data, "newly covered by buildings", LEVIR_GSD_M)


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
        path = data.folder / item["chm"]
        with open_raster(path) as raster:
            heights, gsd_m = raster.read([1])[0], raster.sampling.gsd_m
        rows, columns = heights.shape
        note = "Heights above ground, one band, metres. Cells without data are ignored."
        file = data.originals.heights(path, (columns, rows), gsd_m, note)
        subjects += canopy_subjects(
            str(item["id"]), file, heights, np.random.default_rng([*heights.shape])
        )
    return data.part(subjects, ["canopy"])


@partial(Adapter, "field.town_trees")
def town_trees(data: DataSet) -> Part:
    """Trees of towns with a point on each: one picture, its halves, and the same place in two years."""
    places: dict[str, list[dict[str, Any]]] = {}
    for item in read_items(data.folder, ("points", "cluster", "gsd_m", "year"), ("image",)):
        places.setdefault(str(item["cluster"]), []).append(item)
    subjects: list[Subject] = []
    for place, items in places.items():
        tiles = [_town_tile(data, item) for item in sorted(items, key=lambda item: item["year"])]
        latest, points = tiles[-1]
        name = f"town-{place}"
        across_or_down = halves(int(latest.width_px or 0), int(latest.height_px or 0))
        own = [
            photo_subject(f"{name}-alone", [tiles[-1]], _plot_of_trees, {}, "tree_plot"),
            *(
                _half_plots(f"{name}-{direction}", latest, points, parts)
                for direction, parts in zip(("across", "down"), across_or_down, strict=True)
            ),
        ]
        subjects += [replace(each, cluster=place, groups=TREES_OF_TOWNS) for each in own]
    return data.part(subjects, ["tree_plots"])


def _town_tile(data: DataSet, item: dict[str, Any]) -> tuple[SampleFile, list[tuple[float, float]]]:
    note = "Part of a town, seen from straight above, from an aeroplane."
    file = as_photo(data, item, gsd_m=item["gsd_m"], note=note)
    return file, [(x, y) for x, y in item["points"]]
