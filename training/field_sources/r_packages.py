"""Heights of forests and scenes with named land, which packages of R hold in files of R."""

import re
from typing import Any

from field_sources.outlines import windows_in
from field_sources.r_files import Vector, read_r
from field_sources.snapshot import Prepared, Reader


def _raster_of(prepared: Prepared, path: str) -> dict[str, Any]:
    """Return the raster that is alone in a file of R, as the slots of its object."""
    return next(iter(read_r(prepared.snapshot.read(path)).values()))


def _place_of(raster: dict[str, Any]) -> dict[str, Any]:
    """Return the place of the values of a raster of the package ``raster``."""
    values = raster["data"]["values"]
    layers = raster["data"].get("nlayers")
    size = {"rows": raster["nrows"].values[0], "columns": raster["ncols"].values[0]}
    bands = layers.values[0] if isinstance(layers, Vector) else 1
    return {"offset": values.offset, "form": values.form, "bands": bands, **size}


def _side_of(raster: dict[str, Any]) -> float:
    """Return the side of a cell, metres."""
    extent = raster["extent"]
    return (extent["xmax"].values[0] - extent["xmin"].values[0]) / raster["ncols"].values[0]


def _read_forest_gaps(prepared: Prepared) -> None:
    """Two forests of the Amazon from lidar; the one at Cauaxi was flown in 2012, and again in 2014."""
    for name, cluster, year in (
        ("ALS_CHM_CAU_2012", "cauaxi", 2012),
        ("ALS_CHM_CAU_2014", "cauaxi", 2014),
        ("ALS_CHM_DUC", "ducke", 2012),
    ):
        path = f"data/{name}.rda"
        raster = _raster_of(prepared, path)
        facts = {"numbers": _place_of(raster), "gsd_m": _side_of(raster), "year": year}
        prepared.add(name.lower(), cluster, {"chm": path}, **facts)


FOREST_GAPS = Reader(
    "cran/ForestGapR", "91ba9ebde469f4d131b4022ab166560a14e53e43", _read_forest_gaps
)


def _read_longleaf_pines(prepared: Prepared) -> None:
    """A round plot of longleaf pines from lidar."""
    path = "data/chm.rda"
    raster = _raster_of(prepared, path)
    facts = {"numbers": _place_of(raster), "gsd_m": _side_of(raster)}
    prepared.add("eglin", "eglin", {"chm": path}, **facts)


LONGLEAF_PINES = Reader(
    "cran/rLiDAR", "fae91aa9efeebd3669dc2bc294031bdb8f2bf996", _read_longleaf_pines
)


_STANDING, _UPRIGHT = 1, 0
"""Appearance of a tree that is whole, and of one that is not tilted."""


def _read_chablais_trees(prepared: Prepared) -> None:
    """A mountain forest from lidar, and the trees of a plot in it, each measured on the ground."""
    path = "data/chm_chablais3.rda"
    raster = _raster_of(prepared, path)
    size = _numbers_in(raster["definition"].values[0])
    values = raster["values"]
    place = {"offset": values.offset, "form": values.form, "bands": 1}
    place |= {"rows": int(size["nrows"]), "columns": int(size["ncols"])}
    side_m = (size["xmax"] - size["xmin"]) / size["ncols"]
    table = next(iter(read_r(prepared.snapshot.read("data/tree_inventory_chablais3.rda")).values()))
    columns = (table[name].values for name in ("x", "y", "h", "e", "t"))
    trees = [
        {
            "column": int((x - size["xmin"]) / side_m),
            "row": int((size["ymax"] - y) / side_m),
            "height_m": height,
        }
        for x, y, height, appearance, tilt in zip(*columns, strict=True)
        if appearance == _STANDING and tilt == _UPRIGHT
    ]
    facts = {"numbers": place, "gsd_m": side_m, "trees": trees}
    prepared.add("chablais", "chablais", {"chm": path}, **facts)


def _numbers_in(definition: str) -> dict[str, float]:
    """Return size and edges of a raster of the package ``terra``, which stores them as a call."""
    found = re.findall(r"\b(ncols|nrows|nlyrs|xmin|xmax|ymin|ymax)=(-?[\d.]+)", definition)
    return {name: float(number) for name, number in found}


CHABLAIS_TREES = Reader(
    "cran/lidaRtRee", "5a551ab6b5a4651d3d2d3387ba11b1ad6136028c", _read_chablais_trees
)


_SCENES = {
    "lsat": ("tucurui", 0, 4),
    "sen2": ("trombetas", 1, 4),
}
"""Scenes of RStoolbox by name: place, the first band that is shown, and the number of bands."""


def _read_amazon_scenes(prepared: Prepared) -> None:
    """Two scenes of the Amazon, and the land that the authors outlined in them."""
    for name, (place, first, bands) in _SCENES.items():
        path = f"inst/external/{name}.rds"
        raster = read_r(prepared.snapshot.read(path))
        size, values = _numbers_in(raster["definition"].values[0]), raster["values"]
        rows, columns = int(size["nrows"]), int(size["ncols"])
        # Band after band: earlier ones are passed over.
        offset = values.offset + first * rows * columns * int(values.form[1])
        numbers = {"offset": offset, "form": values.form, "bands": bands}
        numbers |= {"rows": rows, "columns": columns}
        table = read_r(prepared.snapshot.read(f"inst/external/trainingPolygons_{name}.rds"))
        outlines = [outline.values[0].values for outline in table["geometry"].values]
        classes = _names_of(table["class"])
        edges = (size["xmin"], size["ymax"], size["xmax"], size["ymin"])
        windows = windows_in(outlines, classes, edges, (columns, rows))
        prepared.add(name, place, {"image": path}, numbers=numbers, windows=windows)


def _names_of(factor: Vector) -> list[str]:
    """Return the names of the levels of a factor."""
    levels = factor.attributes["levels"].values
    return [levels[level - 1] for level in factor.values]


AMAZON_SCENES = Reader(
    "bleutner/RStoolbox", "6d5320cc59a49b91e087b0c447479c4044d55064", _read_amazon_scenes
)
