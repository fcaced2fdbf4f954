"""Rasters: a season of NDVI of farmland, and heights of crops and forests."""

import re
import struct
from csv import DictReader
from io import StringIO

from rasterio.io import MemoryFile
from rasterio.warp import transform

from field_sources.snapshot import Prepared, Reader, Snapshot

_NDVI_FOLDER = "inst/extdata/raster/mod13q1/"
_SAMPLES = "inst/extdata/samples/samples_sinop_crop.csv"
_CLOUDY = {"2013-11-17", "2014-02-18"}
"""Dates on which clouds hide part of the place or all of it: forests have an NDVI below 0.2 in February."""
_MIXED = {"13", "14", "15", "16", "17", "18"}
"""Points that cannot be told by eye: cerrado looks like forest, the others lie on borders of fields."""


def _read_sinop_season(prepared: Prepared) -> None:
    """NDVI of one place in Mato Grosso through a season, and points whose use of the land is known."""
    snapshot = prepared.snapshot
    listed = [
        row for row in DictReader(StringIO(snapshot.text(_SAMPLES))) if row["id"] not in _MIXED
    ]
    for path in snapshot.paths(_NDVI_FOLDER, ".jp2"):
        date = re.findall(r"\d{4}-\d\d-\d\d", path)[0]
        if date in _CLOUDY:
            continue
        with MemoryFile(snapshot.read(path)) as content, content.open() as raster:
            xs, ys = transform(
                "EPSG:4326",
                raster.crs,
                [float(row["longitude"]) for row in listed],
                [float(row["latitude"]) for row in listed],
            )
            cells = [raster.index(x, y) for x, y in zip(xs, ys, strict=True)]
        fields = [
            {"column": column, "row": row, "label": point["label"]}
            for point, (row, column) in zip(listed, cells, strict=True)
        ]
        prepared.add(f"sinop-{date}", "sinop", {"image": path}, date=date, fields=fields)


SINOP_SEASON = Reader(
    "e-sensing/sits", "60e37332f346a1d0f0a1b9b16bd36b473788698f", _read_sinop_season
)


def _read_soybean_heights(prepared: Prepared) -> None:
    """Surface and ground of a trial of soybeans in rows, from drone photographs."""
    folder = "inst/tmp_images"
    files = {"dsm": f"{folder}/soy_dsm.tif", "dtm": f"{folder}/soy_dtm.tif"}
    prepared.add("soybean", "soybean", files)


SOYBEAN_HEIGHTS = Reader(
    "cran/pliman", "49fda6a611a8ea6bf1242b989ae8bd6909aeec8f", _read_soybean_heights
)


def _read_forest_heights(prepared: Prepared) -> None:
    """A second height model of the package; the others are stored in R's own format, or half of them is empty."""
    prepared.add("demo", "demo", {"chm": "data-raw/CHMdemo.tif"})


FOREST_HEIGHTS = Reader(
    "andrew-plowright/ForestTools",
    "616a5e12ac346b128185f87c182adf20cd0f59cf",
    _read_forest_heights,
)


def _read_stand_metrics(prepared: Prepared) -> None:
    """Heights and cover of a forest in cells of 20 m, from lidar."""
    prepared.add("romeo", "romeo", {"image": "inst/extdata/mraster.tif"})


STAND_METRICS = Reader("cran/sgsR", "3eaeebf1fbbaea46098ef39e7eeba7f91851f0d5", _read_stand_metrics)


_WATER, _FOREST = 0, 2
"""Classes of the points that their spectra leave no doubt about; crops and bare soil cannot be told apart."""
_SHAPES, _RECORD_HEAD = 100, 8
"""Bytes before the first shape of a shapefile, and before the content of each."""


def _read_amazon_bands(prepared: Prepared) -> None:
    """A Landsat 8 scene of six bands, and points of classes that the authors took from it."""
    path = "tests/data/LC08_232066_20190727.tif"
    points = _points_with_classes(prepared.snapshot, "tests/data/endmembers")
    with MemoryFile(prepared.snapshot.read(path)) as content, content.open() as raster:
        cells = [(number, *reversed(raster.index(x, y))) for number, x, y in points]
        inside = [
            each
            for each in cells
            if 1 <= each[1] < raster.width - 1 and 1 <= each[2] < raster.height - 1
        ]
    named = {"water": _WATER, "forest": _FOREST}
    truth = {name: [cell[1:] for cell in inside if cell[0] == its] for name, its in named.items()}
    prepared.add("amazon", "amazon", {"image": path}, **truth)


def _points_with_classes(snapshot: Snapshot, name: str) -> list[tuple[int, float, float]]:
    """Return class and position of each point of a shapefile whose table begins with the class."""
    table, shapes = snapshot.read(f"{name}.dbf"), snapshot.read(f"{name}.shp")
    count, head, size = struct.unpack("<IHH", table[4:12])
    width = table[32 + 16]
    rows = (table[head + size * number + 1 :][:width] for number in range(count))
    classes = [int(float(row.decode())) for row in rows]
    found: list[tuple[int, float, float]] = []
    start = _SHAPES
    for number in classes:
        words = struct.unpack(">i", shapes[start + 4 : start + _RECORD_HEAD])[0]
        content = shapes[start + _RECORD_HEAD :][: 2 * words]
        found.append((number, *struct.unpack("<2d", content[4:20])))
        start += _RECORD_HEAD + 2 * words
    return found


AMAZON_BANDS = Reader(
    "yotarazona/scikit-eo", "e30a411cdd3bc860f06f49ae0ad5218a1bfbe0bb", _read_amazon_bands
)
