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
_BESIDE_A_CROWN = {"palm_springs_37", "palm_springs_56"}
"""Places whose window on a mark holds a shadow or a kerb, as a look at each showed."""
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
        if _FEWEST_TREES <= len(points) <= _MOST_TREES and (found := _tree_and_ground(points)):
            suitable[place] = {"path": path, "tree": found[0], "ground": found[1]}
    for place in drawn_by_lot(suitable.keys() - _asked_elsewhere(snapshot), _TOWNS):
        if place in _BESIDE_A_CROWN:
            continue
        chosen = suitable[place]
        windows = [{"window": chosen[name], "label": name} for name in ("tree", "ground")]
        prepared.add(place, place, {"image": chosen["path"]}, gsd_m=0.6, windows=windows)


def _asked_elsewhere(snapshot: Snapshot) -> set[str]:
    """Return the places of which ``town_trees`` shows pictures."""
    with TemporaryDirectory() as scratch:
        places = Prepared(Path(scratch), snapshot)
        TOWN_TREES.read(places)
    return {str(item["cluster"]) for item in places.items}


def _tree_and_ground(points: Sequence[tuple[float, float]]) -> tuple[list[int], list[int]] | None:
    """Return a window on the marked tree nearest to the middle, and the one farthest from all marks; or None."""
    marked = np.zeros((_TILE_PX, _TILE_PX), np.bool_)
    columns, rows = (
        np.clip(np.array(each, int), 0, _TILE_PX - 1) for each in zip(*points, strict=True)
    )
    marked[rows, columns] = True
    away = distance_transform_edt(~marked)
    half = _GROUND_SIDE // 2 + 1
    inner = away[half:-half, half:-half]
    row, column = (int(each) + half for each in np.unravel_index(np.argmax(inner), inner.shape))
    edge = _TREE_SIDE // 2 + 1
    middle = _TILE_PX / 2
    whole = [
        (abs(x - middle) + abs(y - middle), x, y)
        for x, y in zip(columns.tolist(), rows.tolist(), strict=True)
        if edge <= x < _TILE_PX - edge and edge <= y < _TILE_PX - edge
    ]
    if away[row, column] < _AWAY_PX or not whole:
        return None
    _, x, y = min(whole)  # whole crowns are more often in the middle of a tile
    return _window_at(x, y, _TREE_SIDE), _window_at(column, row, _GROUND_SIDE)


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
