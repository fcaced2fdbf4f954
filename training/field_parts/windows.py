"""Windows of scenes in several bands: land that people named, fields that were built over, crops of a season."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.calling.result import round_significant
from agrotools.core import SampleFile
from agrotools.vision.rasters import open_raster
from agrotools_benchmarks.field.pack import read_numbers
from agrotools_build.area_truth import cut_out
from agrotools_build.sources.part import Adapter, DataSet, Part
from agrotools_build.templates import Thing
from agrotools_build.templates.thing import Subject
from field_parts.converted import as_plane, numbers_of
from field_parts.kept import TREES_OF_TOWNS
from prepared import read_items

_DIGITS = 6
_HOW_COUNTED = (
    "Pixels are counted from 0, x from the left and y from the top. A window is named by its first x and y and its"
    " last x and y, which belong to it."
)
Values = NDArray[np.float64]


def _shown_window(region: Sequence[int]) -> str:
    """Return a window as people name it: by its first and its last pixel."""
    x0, y0, x1, y1 = region
    return f"({x0}, {y0}, {x1 - 1}, {y1 - 1})"


def _window_thing(
    file: SampleFile,
    values: Values,
    region: Sequence[int],
    called: str,
    words: Mapping[str, str],
) -> Thing:
    """Return the means of the bands in a window."""
    means = [float(np.nanmean(cut_out(band, tuple(region)))) for band in values]
    named = zip(file.bands or (), means, strict=True)
    truth: dict[str, Any] = {
        "bands": [{"name": name, "mean": round_significant(mean, _DIGITS)} for name, mean in named]
    }
    arguments: dict[str, Any] = {"image": file.name, "region": [*region]}
    thought = f"I need the bands of {called} in the window {_shown_window(region)}."
    told = {"window": _shown_window(region), **words}
    return Thing((file,), "describe_region", arguments, truth, called, thought, told)


def _pairs_of_land(
    name: str,
    file: SampleFile,
    values: Values,
    pairs: Sequence[Sequence[tuple[str, Sequence[int]]]],
    words: Mapping[str, str],
    of: Sequence[str],
) -> list[Subject]:
    """Return a subject for each pair of windows with different land, of each of these kinds in turn."""
    subjects: list[Subject] = []
    for number, pair in enumerate(pairs):

        def shown(index: int, _: int, pair: Sequence[Any] = pair) -> Thing:
            called, region = pair[index]
            return _window_thing(file, values, region, called, words)

        for kind in of:
            subjects.append(Subject(f"{name}-{number}-{kind}", 2, shown, {"pair": number}, of=kind))
    return subjects


def _windows_by_class(item: dict[str, Any], called: Mapping[str, str]) -> list[list[Any]]:
    """Return the windows of each class that has a name in questions."""
    return [
        [(name, each["window"]) for each in item["windows"] if each["label"] == label]
        for label, name in called.items()
    ]


_LAND_OF: Mapping[str, list[dict[str, str]]] = {
    "tucurui": [
        {"cleared": "cleared land", "forest": "forest"},
        {"water": "the lake", "forest": "forest"},
        {"cleared": "cleared land", "water": "the lake"},
    ],
    "trombetas": [
        {"village": "the settlement", "forest": "forest"},
        {"water": "the river", "forest": "forest"},
        {"dryout": "the dry river bed", "forest": "forest"},
    ],
}
"""Pairs of classes that are asked about, by place, with their names in questions."""
_BANDS_OF = {
    "tucurui": ("blue", "green", "red", "NIR"),
    "trombetas": ("blue", "green", "red", "red edge"),
}
_NOTE_OF = {
    "tucurui": "Landsat 5, Amazon, August 1988, raw counts of the sensor in cells of 30 m. Bands in order: blue, green,"
    " red, near infrared (NIR).",
    "trombetas": "Sentinel-2, Amazon, reflectance, cells of 10 m. Bands in order: blue, green, red, red edge.",
}


@partial(Adapter, "field.amazon_scenes")
def amazon(data: DataSet) -> Part:
    """Bands that tell kinds of land apart, which the authors outlined."""
    subjects: list[Subject] = []
    for item in read_items(data.folder, ("cluster", "windows"), ("image",)):
        place, numbers = str(item["cluster"]), numbers_of(item)
        assert numbers is not None
        values = read_numbers((data.folder / item["image"]).read_bytes(), numbers).astype(float)
        size = {"width_px": numbers.columns, "height_px": numbers.rows}
        note, bands = f"{_NOTE_OF[place]} {_HOW_COUNTED}", _BANDS_OF[place]
        file = as_plane(data, item, "image", kind="raster", bands=bands, note=note, **size)
        file = file.model_copy(update={"name": "scene.tif"})
        pairs = [
            pair
            for called in _LAND_OF[place]
            for pair in zip(*_windows_by_class(item, called), strict=False)
        ]
        kinds = ["scene_window", "ratio_window", *(["nir_window"] if "NIR" in bands else [])]
        own = _pairs_of_land(place, file, values, pairs, _words_of(bands), kinds)
        subjects += [replace(each, cluster=place) for each in own]
    return data.part(subjects, ["scene_bands"])


def _words_of(bands: Sequence[str]) -> dict[str, str]:
    """Return the names of four bands as words of templates, and the places of red and near infrared."""
    words = {f"b{place}": name for place, name in enumerate(bands)}
    places = {"red_at": str(bands.index("red"))}
    return words | places | ({"nir_at": str(bands.index("NIR"))} if "NIR" in bands else {})


_TOWN_BANDS = ("red", "green", "blue", "NIR")


@partial(Adapter, "field.town_bands")
def towns(data: DataSet) -> Part:
    """Bands that tell a tree that people marked from a spot without trees."""
    subjects: list[Subject] = []
    note = (
        "Part of a town from an aeroplane, pixels of 60 cm, counts from 0 to 255. Bands in order: red, green, blue,"
        f" near infrared (NIR). {_HOW_COUNTED}"
    )
    for item in read_items(data.folder, ("cluster", "windows", "gsd_m"), ("image",)):
        path = data.folder / item["image"]
        with open_raster(path) as raster:
            values = raster.read([1, 2, 3, 4]).astype(np.float64)
        _, rows, columns = values.shape
        file = data.originals.raster(path, (columns, rows), _TOWN_BANDS, note, item["gsd_m"])
        file = file.model_copy(update={"name": "town.tif"})
        called = {"tree": "a tree", "ground": "a spot without trees"}
        pairs = [*zip(*_windows_by_class(item, called), strict=True)]
        name, words = f"town-bands-{item['cluster']}", _words_of(_TOWN_BANDS)
        # Not "scene_window": of trees and what is beside them, red nearly always differs most.
        own = _pairs_of_land(name, file, values, pairs, words, ("ratio_window", "nir_window"))
        cluster = str(item["cluster"])
        subjects += [replace(each, cluster=cluster, groups=TREES_OF_TOWNS) for each in own]
    return data.part(subjects, ["scene_bands"])


_LANDSAT = ("blue", "green", "red", "NIR", "SWIR1", "SWIR2")
_ALL_OF_CHIAPAS = (*_LANDSAT, "temperature", "mask")


@partial(Adapter, "field.chiapas_bands")
def chiapas(data: DataSet) -> Part:
    """Bands that tell forest from grassland and bare fields."""
    item = read_items(data.folder, ("cluster", "windows"), ("image",))[0]
    path = data.folder / item["image"]
    with open_raster(path) as raster:
        values, gsd_m = raster.read([*range(1, 9)]).astype(np.float64), raster.sampling.gsd_m
    _, rows, columns = values.shape
    note = (
        "Landsat 7, southern Mexico, 18 November 1999, reflectance times 10,000. Bands in order: blue, green, red, near"
        " infrared (NIR), short-wave infrared 1 (SWIR1) and 2 (SWIR2); then temperature and a mask, which no question"
        f" is about. {_HOW_COUNTED}"
    )
    file = data.originals.raster(path, (columns, rows), _ALL_OF_CHIAPAS, note, gsd_m)
    file = file.model_copy(update={"name": "landsat.tif"})
    grass, forest, bare = _windows_by_class(
        item, {"herbaceous": "grassland", "forest": "forest", "barren": "a bare field"}
    )
    pairs = [*zip(grass, forest, strict=False), *zip(bare, grass, strict=False)]
    own = _pairs_of_land("chiapas", file, values, pairs, {}, ("land_window",))
    return data.part([replace(each, cluster="chiapas") for each in own], ["land_bands"])


_FELL = 0.08
"""Fall of the index that shows that plants went: where people marked a change, it is larger in 21 of 24 windows."""
_YEARS = {"taizhou": ("2000", "2003"), "nanjing": ("2000", "2002")}


@partial(Adapter, "field.built_over")
def built(data: DataSet) -> Part:
    """Fields that gave way to roads, works, houses and ponds, as people marked them, and fields that did not."""
    subjects: list[Subject] = []
    for item in read_items(data.folder, ("cluster", "windows"), ("before", "after")):
        place, numbers = str(item["cluster"]), numbers_of(item)
        assert numbers is not None
        size = {"width_px": numbers.columns, "height_px": numbers.rows, "gsd_m": item["gsd_m"]}
        dates: list[tuple[SampleFile, Values]] = []
        for at, (key, year) in enumerate(zip(("before", "after"), _YEARS[place], strict=True)):
            values = read_numbers((data.folder / item[key]).read_bytes(), numbers).astype(float)
            note = (
                f"Landsat, surroundings of a town in China in {year}, counts of the sensor in cells of 30 m. Bands in"
                f" order: blue, green, red, near infrared (NIR), SWIR1, SWIR2. {_HOW_COUNTED}"
            )
            file = as_plane(
                data, item, key, place=at, kind="raster", bands=_LANDSAT, note=note, **size
            )
            dates.append((file.model_copy(update={"name": f"scene_{year}.tif"}), values))
        lost, kept = (
            [
                each["window"]
                for each in item["windows"]
                if each["label"] == label and _is_shown(data, each["window"], dates, label)
            ]
            for label in ("built over", "as before")
        )
        for number, (gone, left) in enumerate(zip(lost, kept, strict=False)):
            order = (gone, left) if number % 2 else (left, gone)
            shown = partial(_field_at_dates, dates, order)
            subjects.append(
                Subject(
                    f"{place}-{number}", 4, shown, {"pair": number}, of="two_fields", cluster=place
                )
            )
        for number, window in enumerate(_in_turn(lost, kept)):
            shown = partial(_field_at_dates, dates, (window,))
            subjects.append(
                Subject(
                    f"{place}-field-{number}",
                    2,
                    shown,
                    {"field": number},
                    of="one_field",
                    cluster=place,
                )
            )
    return data.part(subjects, ["built_over"])


def _in_turn(*lists: Sequence[Any]) -> list[Any]:
    """Return the members of the lists, one of each in turn."""
    return [each for some in zip(*lists, strict=False) for each in some]


def _index(values: Values, region: Sequence[int]) -> float:
    """Return the NDVI of the mean bands in a window of a Landsat scene."""
    red, nir = (float(cut_out(values[band], tuple(region)).mean()) for band in (2, 3))
    return (nir - red) / (nir + red)


def _is_shown(
    data: DataSet, region: Sequence[int], dates: Sequence[tuple[SampleFile, Values]], label: str
) -> bool:
    """Return True if the scenes show what people marked; where they do not, the window is left out and counted."""
    before, after = (_index(values, region) for _, values in dates)
    agrees = (before - after > _FELL) == (label == "built over")
    if not agrees:
        data.dropped["the scenes do not show what is marked"] += 1
    return agrees


def _field_at_dates(
    dates: Sequence[tuple[SampleFile, Values]], regions: Sequence[Sequence[int]], index: int, _: int
) -> Thing:
    """Return a field at a date: both dates of the first field, then both of the second."""
    region = regions[index // len(dates)]
    file, values = dates[index % len(dates)]
    told = {"at": str(index % len(dates))}
    return _window_thing(file, values, region, f"the field in {file.name}", told)


_COTTON_BANDS = ("EVI", "NDVI", "red", "blue", "NIR", "MIR", "day")
_TELLING_DATES = ("2011-11-17", "2012-01-17", "2012-06-25")
"""First crop, change of crops, ripe maize beside green cotton: they tell the four uses apart."""
_USES = {
    "Cotton-fallow": "cotton alone",
    "Soybean-cotton": "soybeans and then cotton",
    "Soybean-maize": "soybeans and then maize",
    "Forest": "forest",
}
_CELLS = 1
_EVERY = 4
"""One date in so many is shown in questions about single dates, so that each question has other files."""


@partial(Adapter, "field.cotton_season")
def cotton(data: DataSet) -> Part:
    """NDVI of fields on dates of a season, and the crops that people know them to have carried."""
    items = sorted(read_items(data.folder, ("date", "fields"), ("image",)), key=lambda i: i["date"])
    dates: dict[str, tuple[SampleFile, Values]] = {}
    for item in items:
        path = data.folder / item["image"]
        with open_raster(path) as raster:
            values = raster.read([*range(1, 8)]).astype(np.float64)
        _, rows, columns = values.shape
        note = (
            "MODIS, farmland of Mato Grosso, means of 16 days from the date in the name, cells of 232 m. Bands in"
            f" order: EVI, NDVI, red, blue, NIR, MIR, day of the year. {_HOW_COUNTED}"
        )
        file = data.originals.raster(path, (columns, rows), _COTTON_BANDS, note)
        name = f"modis_{item['date']}.tif"
        dates[item["date"]] = file.model_copy(update={"name": name}), values
    by_use = [[field for field in items[0]["fields"] if field["label"] == label] for label in _USES]
    subjects: list[Subject] = []
    for number, field in enumerate(_in_turn(*by_use)):
        telling = [dates[date] for date in _TELLING_DATES]
        if _season_shows(data, field, telling):
            subjects.append(_field(f"field-{number}-use", field, telling, "crops_of_field"))
        if field["label"] != "Forest":
            some = [*dates.values()][number % _EVERY :: _EVERY]
            subjects.append(_field(f"field-{number}", field, some, "field_dates"))
    return data.part(
        [replace(each, cluster="porto-dos-gauchos") for each in subjects], ["cropping"]
    )


def _field(
    name: str,
    field: dict[str, Any],
    dates: Sequence[tuple[SampleFile, Values]],
    of: str,
) -> Subject:
    region = _region_of(field)
    words = {"use": _USES[field["label"]]}

    def shown(index: int, _: int) -> Thing:
        file, values = dates[index]
        return _window_thing(file, values, region, file.name, {**words, "at": str(index)})

    return Subject(name, len(dates), shown, {"field": name}, of=of)


def _region_of(field: dict[str, Any]) -> tuple[int, int, int, int]:
    x, y = field["column"], field["row"]
    return x - _CELLS, y - _CELLS, x + _CELLS + 1, y + _CELLS + 1


_GREEN, _COVERED, _RIPE = 0.6, 0.65, 0.53
"""NDVI between fields and forest in January, bare and covered fields in November, maize and cotton in June."""


def _season_shows(
    data: DataSet, field: dict[str, Any], dates: Sequence[tuple[SampleFile, Values]]
) -> bool:
    """Return True if the season shows the crops that people name; where it does not, the field is left out."""
    region = _region_of(field)
    november, january, june = (float(cut_out(values[1], region).mean()) for _, values in dates)
    if january > _GREEN:
        seen = "Forest"
    elif november < _COVERED:
        seen = "Cotton-fallow"
    else:
        seen = "Soybean-cotton" if june > _RIPE else "Soybean-maize"
    if seen != field["label"]:
        data.dropped["the season does not show the crops that are named"] += 1
    return seen == field["label"]
