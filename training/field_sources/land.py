"""Land seen by satellites and aeroplanes in several bands, and what people named on it."""

import re
import sqlite3
import struct
from collections.abc import Sequence
from csv import DictReader
from io import StringIO
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rasterio.io import MemoryFile
from scipy.ndimage import binary_erosion, distance_transform_edt
from scipy.ndimage import label as label_pieces

from field_sources.outlines import windows_in
from field_sources.snapshot import Prepared, Reader, Snapshot, drawn_by_lot
from field_sources.trees import TOWN_TREES

_FOLDER = "inst/mato_grosso_brazil/"
_OF_A_CROP = 4
"""Fields of each crop that are shown: more of them ask the same."""


def _read_cotton_season(prepared: Prepared) -> None:
    """Vegetation indices of farmland in Mato Grosso through a season, and fields whose crops are known."""
    paths = prepared.snapshot.paths(_FOLDER, ".tif")
    with MemoryFile(prepared.snapshot.read(paths[0])) as content, content.open() as raster:
        points = _crops_of(prepared.snapshot)
        cells = [(crop, *reversed(raster.index(x, y))) for crop, x, y in points]
        size = raster.width, raster.height
    inside = [
        {"label": crop, "column": column, "row": row}
        for crop, column, row in cells
        if 1 <= column < size[0] - 1 and 1 <= row < size[1] - 1
    ]
    fields: list[dict[str, Any]] = []
    for crop in sorted({each["label"] for each in inside}):
        by_place = {
            f"{crop} {each['column']} {each['row']}": each
            for each in inside
            if each["label"] == crop
        }
        fields += [by_place[place] for place in drawn_by_lot(by_place, _OF_A_CROP)]
    for path in paths:
        date = re.findall(r"_(\d{4})(\d\d)(\d\d)_", path)[0]
        prepared.add(
            "-".join(date), "porto-dos-gauchos", {"image": path}, date="-".join(date), fields=fields
        )


def _crops_of(snapshot: Snapshot) -> list[tuple[str, float, float]]:
    """Return crops of the season and positions of the points, from a GeoPackage."""
    with NamedTemporaryFile(suffix=".gpkg") as stored:
        stored.write(snapshot.read(f"{_FOLDER}samples.gpkg"))
        stored.flush()
        table = sqlite3.connect(stored.name)
        rows = table.execute("SELECT label, geom FROM samples").fetchall()
        table.close()
    # The position is the end of a record, whatever stands before it.
    return [(label, *struct.unpack("<2d", shape[-16:])) for label, shape in rows]


COTTON_SEASON = Reader(
    "cran/dtwSat", "6194f9607c1d76668a0ea4c3ad32307aed7a28cd", _read_cotton_season
)


_TREE_SIDE, _GROUND_SIDE = 5, 9
"""Sides of the window on a marked tree and of that without trees, pixels of 0.6 m."""
_AWAY_PX = 20
"""Least distance between a window without trees and a mark: crowns reach up to 8 m from theirs."""
_TILE_PX = 256
_TOWNS = 14
_LEAST_GREEN = 0.3
"""NDVI that every pixel of a window on a crown has. With less, in 3 of 14 places, the window lies half beside one."""
_FEWEST_TREES, _MOST_TREES = 5, 40


def _read_town_bands(prepared: Prepared) -> None:
    """Tiles of towns in four bands, with a marked tree and ground on which nobody marked one."""
    snapshot = prepared.snapshot
    suitable: dict[str, dict[str, Any]] = {}
    for path in snapshot.paths("images/", ".tif"):
        place = re.sub(r"_(\d{4})_", "_", path.removeprefix("images/").removesuffix(".tif"))
        listed = path.replace("images/", "csv/").replace(".tif", ".csv")
        if not snapshot.has(listed):
            continue
        rows = [*DictReader(StringIO(snapshot.text(listed)))]
        points = [(float(row["x"]), float(row["y"])) for row in rows]
        if _FEWEST_TREES <= len(points) <= _MOST_TREES and (ground := _ground_apart(points)):
            suitable[place] = {"path": path, "points": points, "ground": ground}
    for place in drawn_by_lot(suitable.keys() - _asked_elsewhere(snapshot), _TOWNS):
        chosen = suitable[place]
        with MemoryFile(snapshot.read(chosen["path"])) as content, content.open() as raster:
            red, nir = raster.read([1, 4]).astype(float)
        if (tree := _greenest_tree(chosen["points"], red, nir)) is None:
            continue
        windows = [
            {"window": tree, "label": "tree"},
            {"window": chosen["ground"], "label": "ground"},
        ]
        prepared.add(place, place, {"image": chosen["path"]}, gsd_m=0.6, windows=windows)


def _asked_elsewhere(snapshot: Snapshot) -> set[str]:
    """Return the places of which ``town_trees`` shows pictures."""
    with TemporaryDirectory() as scratch:
        places = Prepared(Path(scratch), snapshot)
        TOWN_TREES.read(places)
    return {str(item["cluster"]) for item in places.items}


def _ground_apart(points: Sequence[tuple[float, float]]) -> list[int] | None:
    """Return the window farthest from all marked trees; None if it is too near, or if no tree is whole."""
    marked = np.zeros((_TILE_PX, _TILE_PX), np.bool_)
    columns, rows = np.clip(np.array(points, int).T, 0, _TILE_PX - 1)
    marked[rows, columns] = True
    away = distance_transform_edt(~marked)
    half = _GROUND_SIDE // 2 + 1
    inner = away[half:-half, half:-half]
    row, column = (int(each) + half for each in np.unravel_index(np.argmax(inner), inner.shape))
    if away[row, column] < _AWAY_PX or not _whole_trees(points):
        return None
    return _window_at(column, row, _GROUND_SIDE)


def _whole_trees(points: Sequence[tuple[float, float]]) -> list[tuple[int, int]]:
    """Return the pixels of the marks whose window lies inside the tile."""
    edge = _TREE_SIDE // 2 + 1
    inside = range(edge, _TILE_PX - edge)
    return [(int(x), int(y)) for x, y in points if int(x) in inside and int(y) in inside]


def _greenest_tree(
    points: Sequence[tuple[float, float]], red: NDArray[np.float64], nir: NDArray[np.float64]
) -> list[int] | None:
    """Return the window on the marked tree whose least green pixel is the greenest; None if that one is not green.

    Marks of small or shaded crowns lie beside what is green; people who look at the window then see no tree.
    """
    index = (nir - red) / np.maximum(nir + red, 1)
    least_green: dict[float, list[int]] = {}
    for x, y in _whole_trees(points):
        left, top, right, bottom = window = _window_at(x, y, _TREE_SIDE)
        least_green.setdefault(float(index[top:bottom, left:right].min()), window)
    greenest = max(least_green)
    return least_green[greenest] if greenest >= _LEAST_GREEN else None


def _window_at(x: int, y: int, side: int) -> list[int]:
    """Return the window (left, top, right, bottom) round a pixel."""
    return [x - side // 2, y - side // 2, x + side // 2 + 1, y + side // 2 + 1]


TOWN_BANDS = Reader(TOWN_TREES.repo, TOWN_TREES.commit, _read_town_bands)


_SCENE = "example/LE70220491999322EDC01_stack.gtif"
_NO_WINDOW = {"urban", "water"}
"""Classes whose outlines hold land of another kind beside their own: towns, and rivers of one or two cells."""


def _read_chiapas_bands(prepared: Prepared) -> None:
    """A Landsat 7 scene of six bands, and land that the author outlined in it."""
    outlines, classes = _outlines_in(prepared.snapshot, "example/training_data")
    with MemoryFile(prepared.snapshot.read(_SCENE)) as content, content.open() as raster:
        bounds, size = raster.bounds, (raster.width, raster.height)
    edges = (bounds.left, bounds.top, bounds.right, bounds.bottom)
    windows = windows_in(outlines, classes, edges, size)
    known = [each for each in windows if each["label"] not in _NO_WINDOW]
    prepared.add("chiapas", "chiapas", {"image": _SCENE}, windows=known)


_SHAPES, _RECORD_HEAD, _POLYGON_HEAD = 100, 8, 36
"""Bytes before the first shape of a shapefile, before the content of each, and before the counts of a polygon."""


def _outlines_in(snapshot: Snapshot, name: str) -> tuple[list[list[float]], list[str]]:
    """Return the outline of each polygon of a shapefile, and the last column of its table."""
    shapes, table = snapshot.read(f"{name}.shp"), snapshot.read(f"{name}.dbf")
    count, head, size = struct.unpack("<IHH", table[4:12])
    outlines: list[list[float]] = []
    classes: list[str] = []
    start = _SHAPES
    for number in range(count):
        row = table[head + size * number :][:size].decode()
        words = struct.unpack(">i", shapes[start + 4 : start + _RECORD_HEAD])[0]
        content = shapes[start + _RECORD_HEAD :][: 2 * words]
        parts, corners = struct.unpack("<2i", content[_POLYGON_HEAD:][:8])
        points = np.frombuffer(content, "<f8", 2 * corners, _POLYGON_HEAD + 8 + 4 * parts)
        outlines.append([*points[::2], *points[1::2]])
        classes.append(row.split()[-1].lstrip("0123456789"))
        start += _RECORD_HEAD + 2 * words
    return outlines, classes


CHIAPAS_BANDS = Reader(
    "ceholden/open-geo-tutorial", "0367ba8e775900795cf3b57cf4cb6e47918f8267", _read_chiapas_bands
)


_DATES = {
    "Taizhou": ("2000TM", "2003TM", 400),
    "Nanjing": ("LT51200382000124BJC00_Nanjing", "LT51200382002193BJC00_Nanjing", 800),
}
"""Places by folder: the files of both dates, and the pixels of a side."""
_LANDSAT_BANDS, _NIR, _RED = 6, 3, 2
_OF_A_STATE = 12
"""Windows that were built over, and that were not, of a place."""


def _read_built_over(prepared: Prepared) -> None:
    """Two places in China at two dates, with fields that became roads, works and houses, and fields that did not."""
    for place, (before, after, side) in _DATES.items():
        folder = f"Dataset/Landsat/{place}"
        paths = {"before": f"{folder}/{before}", "after": f"{folder}/{after}"}
        size = (_LANDSAT_BANDS, side, side)
        first = np.frombuffer(prepared.snapshot.read(paths["before"]), np.uint8).reshape(size)
        nir, red = (first[band].astype(np.float64) for band in (_NIR, _RED))
        index = (nir - red) / np.maximum(nir + red, 1)
        green = index >= np.median(index)  # windows in towns and on water are passed over
        windows: list[dict[str, Any]] = []
        for label, name in (("built over", "change"), ("as before", "unchanged")):
            marked = np.asarray(prepared.snapshot.picture(f"{folder}/{name}.bmp").convert("L")) > 0
            windows += [
                {"window": window, "label": label} for window in _whole_windows(marked & green)
            ]
        numbers = {
            "offset": 0,
            "form": "u1",
            "bands": _LANDSAT_BANDS,
            "rows": side,
            "columns": side,
        }
        prepared.add(
            place.lower(), place.lower(), paths, numbers=numbers, gsd_m=30.0, windows=windows
        )


def _whole_windows(marked: NDArray[np.bool_]) -> list[list[int]]:
    """Return windows of three cells that are marked all over, at most one of each piece, drawn by lot."""
    middles = binary_erosion(marked, np.ones((3, 3)))
    pieces, number = label_pieces(middles)
    found: list[list[int]] = []
    for piece in range(1, number + 1):
        rows, columns = np.nonzero(pieces == piece)
        at = len(rows) // 2
        found.append(_window_at(int(columns[at]), int(rows[at]), 3))
    by_name = {str(window): window for window in found}
    return [by_name[name] for name in drawn_by_lot(by_name, _OF_A_STATE)]


BUILT_OVER = Reader(
    "ChenHongruixuan/ChangeDetectionRepository",
    "2806ab9bfce9a8e4ab62bee135d0df797ec8d597",
    _read_built_over,
)
