"""Rasters: a season of NDVI of farmland, heights of a crop, and heights of forests."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agrotools.calling.result import round_significant
from agrotools.core import SampleFile
from agrotools.vision.rasters import open_raster
from agrotools_benchmarks.field.pack import as_tiff
from agrotools_build.area_truth import Region, cut_out, halves, quarters
from agrotools_build.sources.part import Adapter, DataSet, Part
from agrotools_build.templates import Thing
from agrotools_build.templates.thing import Subject
from field_parts.converted import as_plane
from field_parts.kept import HEIGHTS_OF_FORESTS
from field_parts.land import subjects_of_heights
from prepared import read_items

_DIGITS = 6
_USES = {"Soy_Corn": "soybeans and then maize", "Pasture": "pasture", "Forest": "forest"}
_TELLING_MONTHS = ("2013-09", "2013-12", "2014-04", "2014-07")
"""Before sowing, first crop, second crop, after harvest: they tell the three uses apart."""
_MODIS_M = 231.7
"""Side of a cell of the product, metres."""
_CELLS = 1
"""Cells on each side of the one that holds the point."""


@partial(Adapter, "field.sinop_season")
def season(data: DataSet) -> Part:
    """NDVI of single fields on ten dates of a season, and what the fields are used for."""
    items = sorted(read_items(data.folder, ("date", "fields"), ("image",)), key=lambda i: i["date"])
    dates: list[tuple[SampleFile, NDArray[np.float32]]] = []
    for item in items:
        plane = as_tiff((data.folder / item["image"]).read_bytes(), None)[0]
        with Image.open(BytesIO(plane)) as picture:
            values = np.asarray(picture)
        size = {"width_px": values.shape[1], "height_px": values.shape[0], "gsd_m": _MODIS_M}
        note = f"NDVI from MODIS, one band, -1 to 1; the date is in the name. {_HOW_COUNTED}"
        file = as_plane(data, item, "image", kind="raster", bands=("NDVI",), note=note, **size)
        name = f"ndvi_{item['date']}.tif"
        dates.append((file.model_copy(update={"name": name}), values))
    telling = [date for date in dates if date[0].name[5:12] in _TELLING_MONTHS]
    subjects: list[Subject] = []
    for number, field in enumerate(items[0]["fields"]):
        if _USES[field["label"]] != "forest":
            subjects.append(_field(f"field-{number}", field, dates, "field_date"))
        subjects.append(_field(f"field-{number}-use", field, telling, "field_use"))
    return data.part([replace(each, cluster="sinop") for each in subjects], ["season"])


_HOW_COUNTED = (
    "Pixels are counted from 0, x from the left and y from the top. A window is named by its first x and y and its"
    " last x and y, which belong to it."
)


def _last_included(region: Region) -> Region:
    """Return a window as people name it: by its first and its last pixel."""
    x0, y0, x1, y1 = region
    return x0, y0, x1 - 1, y1 - 1


def _field(
    name: str,
    field: dict[str, Any],
    dates: Sequence[tuple[SampleFile, NDArray[np.float32]]],
    of: str,
) -> Subject:
    column, row = field["column"], field["row"]
    region = (column - _CELLS, row - _CELLS, column + _CELLS + 1, row + _CELLS + 1)
    window = dict(zip(("x0", "y0", "x1", "y1"), map(str, _last_included(region)), strict=True))
    words = {**window, "use": _USES[field["label"]]}

    def shown(index: int, _: int) -> Thing:
        file, values = dates[index]
        mean = round_significant(float(cut_out(values, region).mean(dtype=np.float64)), _DIGITS)
        arguments: dict[str, Any] = {"image": file.name, "region": [*region]}
        thought = f"I need the NDVI of the field in {file.name}."
        truth: dict[str, Any] = {"bands": [{"name": "NDVI", "mean": mean}]}
        return Thing((file,), "describe_region", arguments, truth, file.name, thought, words)

    return Subject(name, len(dates), shown, {"field": name}, of=of)


_ROWS_BREAK_M = 0.1
"""Height from which a cell shows soybeans rather than ground or residues."""


@partial(Adapter, "field.soybean_heights")
def soybeans(data: DataSet) -> Part:
    """Heights of soybeans in rows, as the surface above the ground."""
    item = read_items(data.folder, files=("dsm", "dtm"))[0]
    planes: dict[str, NDArray[np.float64]] = {}
    files: list[SampleFile] = []
    for key, what in (("dsm", "surface"), ("dtm", "ground")):
        path = data.folder / item[key]
        with open_raster(path) as raster:
            planes[key], gsd_m = raster.read([1])[0].astype(np.float64), raster.sampling.gsd_m
        rows, columns = planes[key].shape
        note = f"Elevation of the {what}, metres, of a trial of soybeans in short rows."
        file = data.originals.raster(path, (columns, rows), (key,), note, gsd_m)
        files.append(file.model_copy(update={"name": f"{what}.tif"}))
    heights = np.maximum(planes["dsm"] - planes["dtm"], 0)
    rows, columns = heights.shape
    across, down = halves(columns, rows)
    parts = {"all": [("the trial", None)], "across": across, "down": down}
    subjects = [
        Subject(
            f"soybean-{name}",
            len(some),
            partial(_soybean_part, tuple(files), heights, some),
            {"trial": name},
            of="crop_height" if name == "all" else "crop_height_half",
            cluster="soybean",
        )
        for name, some in parts.items()
    ]
    return data.part(subjects, ["crop_height"])


def _soybean_part(
    files: tuple[SampleFile, ...],
    heights: NDArray[np.float64],
    parts: Sequence[tuple[str, Region | None]],
    index: int,
    _: int,
) -> Thing:
    called, region = parts[index]
    values = cut_out(heights, region)
    plants = values[values >= _ROWS_BREAK_M]
    figures = {
        "mean_m": values.mean(),
        "p95_m": np.percentile(values, 95),
        "max_m": values.max(),
        "cover_pct": 100 * plants.size / values.size,
        "mean_canopy_m": plants.mean(),
    }
    truth = {name: round_significant(float(value), _DIGITS) for name, value in figures.items()}
    arguments: dict[str, Any] = {
        "dsm": files[0].name,
        "dtm": files[1].name,
        "veg_min_height_m": _ROWS_BREAK_M,
    }
    if region is not None:
        arguments["region"] = [*region]
    thought = f"I need the heights of the plants in {called}: surface less ground."
    return Thing(files, "estimate_canopy_height", arguments, truth, called, thought)


@partial(Adapter, "field.forest_heights")
def forest(data: DataSet) -> Part:
    """Heights and covers of a forest and of parts of it."""
    subjects: list[Subject] = []
    for item in read_items(data.folder, ("cluster",), ("chm",)):
        subjects += [
            replace(each, cluster=str(item["cluster"]), groups=HEIGHTS_OF_FORESTS)
            for each in subjects_of_heights(data, item)
        ]
    return data.part(subjects, ["canopy"])


_METRICS = ("zq90", "pzabove2", "zsd")


@partial(Adapter, "field.stand_metrics")
def stands(data: DataSet) -> Part:
    """Mean height and cover of parts of a forest in cells of 20 m."""
    subjects: list[Subject] = []
    for item in read_items(data.folder, ("cluster",), ("image",)):
        path = data.folder / item["image"]
        with open_raster(path) as raster:
            values, gsd_m = raster.read([1, 2, 3]).astype(np.float64), raster.sampling.gsd_m
        _, rows, columns = values.shape
        note = (
            "Forest from lidar in cells of 20 m. Bands: zq90, height that 90 % of the returns stay below, metres;"
            " pzabove2, returns above 2 m, percent; zsd, standard deviation of heights, metres."
        )
        file = data.originals.raster(path, (columns, rows), _METRICS, note, gsd_m)
        file = file.model_copy(update={"name": "forest.tif"})

        @cache
        def truth(region: Region | None, values: NDArray[np.float64] = values) -> dict[str, Any]:
            inside = [cut_out(band, region) for band in values]
            means = [round_significant(float(np.nanmean(band)), _DIGITS) for band in inside]
            bands = [{"name": n, "mean": mean} for n, mean in zip(_METRICS, means, strict=True)]
            return {"bands": bands, "area_px": int(np.count_nonzero(np.isfinite(inside[0])))}

        across, down = halves(columns, rows)
        parts = {"across": across, "down": down, "quarters": quarters(columns, rows)}
        for name, some in parts.items():

            def shown(index: int, _: int, some: Any = some, file: SampleFile = file) -> Thing:
                called, region = some[index]
                arguments: dict[str, Any] = {"image": file.name, "region": [*region]}
                thought = f"I need the numbers of the {called} part of the forest."
                words = {"n": str(len(some))}
                return Thing(
                    (file,), "describe_region", arguments, truth(region), called, thought, words
                )

            of = "stand_quarter" if name == "quarters" else "stand_half"
            subject = Subject(f"stands-{name}", len(some), shown, {"parts": name}, of=of)
            cluster = str(item["cluster"])
            subjects.append(replace(subject, cluster=cluster, groups=HEIGHTS_OF_FORESTS))
    return data.part(subjects, ["stands"])


_LANDSAT = ("blue", "green", "red", "NIR", "SWIR1", "SWIR2")


@partial(Adapter, "field.amazon_bands")
def bands(data: DataSet) -> Part:
    """Bands that tell the river from the forest, at points that people named."""
    item = read_items(data.folder, ("water", "forest"), ("image",))[0]
    path = data.folder / item["image"]
    with open_raster(path) as raster:
        values, gsd_m = raster.read([1, 2, 3, 4, 5, 6]).astype(np.float64), raster.sampling.gsd_m
    _, rows, columns = values.shape
    note = (
        "Landsat 8, southern Amazon, 27 July 2019, reflectance times 10,000. Bands in order: blue, green, red, near"
        f" infrared (NIR), short-wave infrared 1 (SWIR1) and 2 (SWIR2). {_HOW_COUNTED}"
    )
    file = data.originals.raster(path, (columns, rows), _LANDSAT, note, gsd_m)
    file = file.model_copy(update={"name": "landsat.tif"})
    subjects: list[Subject] = []
    for number, cells in enumerate(zip(item["water"], item["forest"], strict=False)):
        windows = [
            (called, (x - _CELLS, y - _CELLS, x + _CELLS + 1, y + _CELLS + 1))
            for called, (x, y) in zip(("the river", "the forest"), cells, strict=True)
        ]

        def shown(index: int, _: int, windows: Any = windows) -> Thing:
            called, region = windows[index]
            inside = [cut_out(band, region).mean() for band in values]
            truth: dict[str, Any] = {
                "bands": [
                    {"name": name, "mean": round_significant(float(mean), _DIGITS)}
                    for name, mean in zip(_LANDSAT, inside, strict=True)
                ]
            }
            arguments: dict[str, Any] = {"image": file.name, "region": [*region]}
            words = {"window": f"({', '.join(map(str, _last_included(region)))})"}
            thought = f"I need the bands of {called}."
            return Thing((file,), "describe_region", arguments, truth, called, thought, words)

        subject = Subject(f"bands-{number}", 2, shown, {"windows": number}, of="land_window")
        subjects.append(replace(subject, cluster="amazon"))
    return data.part(subjects, ["land_bands"])
