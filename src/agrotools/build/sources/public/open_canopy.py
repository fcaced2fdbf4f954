"""Open-Canopy (Fogel et al. 2025): heights of vegetation in France from airborne laser scanning, 1.5 m pixels.

The rasters of a year cover the whole country and are only read in windows: squares of 500 m in tiles of the test part.
"""

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import rasterio
from numpy.typing import NDArray
from pydantic import JsonValue
from rasterio import windows
from rasterio.crs import CRS
from rasterio.errors import RasterioError
from rasterio.features import bounds as bounds_of
from rasterio.warp import transform_bounds

from agrotools.build.area_truth import LEAST_COVER
from agrotools.build.sources.land import canopy_subjects, tract_subject
from agrotools.build.sources.part import DataSet, Part, reasons
from agrotools.build.sources.reading import find_root, geotiff_of, read_json, spread
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, SampleFile

SPLITS = ("train", "val", "test", "buffer")
WINDOW_PX = 333
"""Side of a window; four windows fit into a tile of 1 km."""
MEASURED_CLASSES = (2, 3, 4, 5)
"""Laser returns from the ground and from low, medium and high vegetation. The raster of heights also contains roofs,
bridges, cables and water, interpolates unknown classes, and has no value for "no data".
"""
_HIGH_VEGETATION = 5
_LEAST_MEASURED = 0.9
"""Minimum measured share of a window. Boxes in questions are larger than the part that may be missing."""
_CANOPY_DM = 20
_TALLEST_DM = 1000
"""Maximum plausible height; no tree in France is close to 100 m."""
_PIXEL_M = 1.5
_NO_DATA = -9999.0
_HOLE = "unreadable, not fetched or all zero"
_SEED = 11
_TOGETHER = 4
"""Number of windows that are compared as a whole."""
_NOTE = (
    "Heights above ground from airborne laser scanning in France, one band, metres. Pixels that are neither ground nor"
    " vegetation (buildings, water, unknown) hold no data and do not count."
)

Bounds = tuple[float, float, float, float]


@dataclass(frozen=True)
class Tile:
    """A square of the authors' grid; ``bounds`` are left, bottom, right, top in ``crs`` (None: that of the rasters)."""

    year: int
    bounds: Bounds
    crs: Any


Window = tuple[NDArray[np.float32], bytes]
"""Heights in metres (rows, columns), NaN if not measured, and the same as the content of a GeoTIFF."""


def open_canopy(data: DataSet) -> Part:
    """Heights and covers of windows and of parts of them."""
    root = find_root(data.folder, ("geometries.geojson",))
    tiles = _test_tiles(root / "geometries.geojson")
    subjects: list[Subject] = []
    shown: list[tuple[SampleFile, NDArray[np.float32]]] = []
    for number, (heights, content) in enumerate(_windows(root, tiles, data)):
        rows, columns = heights.shape
        size = {"width_px": columns, "height_px": rows, "gsd_m": _PIXEL_M}
        file = data.originals.add_content(content, ".tif", kind="raster", bands=("height",), note=_NOTE, **size)
        rng = np.random.default_rng([_SEED, number])
        subjects += canopy_subjects(f"open-canopy-{number}", file, heights, rng)
        shown.append((file, heights))
    subjects += [
        tract_subject(f"open-canopy-tracts-{at}", shown[at : at + _TOGETHER]) for at in range(0, len(shown), _TOGETHER)
    ]
    if data.wanted and not subjects:
        raise BenchmarkError(f"no window in the test part of {root} can be used ({reasons(data.dropped)})")
    facts: dict[str, JsonValue] = {"test_tiles": len(tiles), "windows": len(data.originals.files)}
    return data.part(subjects, ["canopy", "tracts"], {"open-canopy": facts})


def _test_tiles(path: Path) -> list[Tile]:
    grid = read_json(path)
    try:
        features = cast("list[dict[str, Any]]", grid["features"])
        crs = CRS.from_user_input(str(grid["crs"]["properties"]["name"])) if grid.get("crs") else None
        strange = sorted({str(feature["properties"]["split"]) for feature in features} - {*SPLITS})
        if strange:
            listed = ", ".join(strange[:5])
            raise BenchmarkError(f"{path} has tiles whose split is not {', '.join(SPLITS)}: {listed}")
        tiles = [
            Tile(int(float(one["properties"]["lidar_year"])), bounds_of(one["geometry"]), crs)
            for one in features
            if one["properties"]["split"] == "test"
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BenchmarkError(f"{path} is not a grid of tiles with geometry, split and lidar_year") from error
    if not tiles:
        raise BenchmarkError(f"{path} has no tile of the test part")
    return tiles


def _windows(root: Path, tiles: Sequence[Tile], data: DataSet) -> list[Window]:
    """Return as many windows as wanted, from as many tiles as possible; unusable ones are counted by reason."""
    settings = {
        "CPL_VSIL_CURL_ALLOWED_EXTENSIONS": ".none", "GDAL_CACHEMAX": 64, "GDAL_PAM_ENABLED": "NO",
        "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",  # a folder has tens of thousands of files
    }  # fmt: skip
    usable: list[Window] = []
    with ExitStack() as opened:
        opened.enter_context(rasterio.Env(**settings))
        years = {year: _opened_year(root / str(year), opened) for year in sorted({tile.year for tile in tiles})}
        there = [tile for tile in tiles if years[tile.year]]
        if not there:
            raise BenchmarkError(f"{root} has lidar.vrt and lidar_classification.vrt of no year")
        if len(there) < len(tiles):
            data.dropped["of a year that is not there"] += 4 * (len(tiles) - len(there))
        scattered = spread(there, lambda tile: tile.year, len(there), _SEED)
        quarters = [(number, right, lower) for number in range(len(scattered)) for right in (0, 1) for lower in (0, 1)]
        for number, right, lower in spread(quarters, lambda quarter: quarter[0], len(quarters), _SEED):
            if len(usable) == data.wanted:
                break
            tile = scattered[number]
            heights, classes = cast("tuple[Any, Any]", years[tile.year])
            window = _window(heights, classes, tile, right, lower)
            if isinstance(window, str):
                data.dropped[window] += 1
            else:
                usable.append(window)
    return usable


def _opened_year(folder: Path, opened: ExitStack) -> tuple[Any, Any] | None:
    """Return the rasters of heights and of classes, or None if the year was not downloaded."""
    paths = (folder / "lidar.vrt", folder / "lidar_classification.vrt")
    if not any(path.exists() for path in paths):
        return None
    try:
        heights, classes = (opened.enter_context(rasterio.open(path, driver="VRT")) for path in paths)
    except (RasterioError, OSError) as error:
        raise BenchmarkError(f"the rasters in {folder} cannot be read: {error}") from error
    for dataset, path, dtype in ((heights, paths[0], "uint16"), (classes, paths[1], "uint8")):
        if dataset.dtypes != (dtype,):
            meaning = "decimetres" if dtype == "uint16" else "classes"
            raise BenchmarkError(f"{path} holds {', '.join(dataset.dtypes)}, not {meaning} as {dtype}")
        at = dataset.transform
        sides = (at.a, at.b, at.d, at.e)
        has_the_pixels = np.allclose(sides, (_PIXEL_M, 0, 0, -_PIXEL_M), atol=1e-3)
        if dataset.crs is None or not dataset.crs.is_projected or not has_the_pixels:
            raise BenchmarkError(f"{path} is not a map with pixels of {_PIXEL_M} m, north up")
    return heights, classes


def _window(heights: Any, classes: Any, tile: Tile, right: int, lower: int) -> Window | str:
    """Return a quarter of the tile, or the reason why it cannot be used."""
    bounds = _in_crs(tile, heights.crs)
    if bounds is None:
        return "of a tile that is not 1 km wide"
    try:
        values, transform = _values(heights, bounds, right, lower)
        kinds, _ = _values(classes, bounds, right, lower)
    except (RasterioError, OSError):
        return _HOLE
    if values is None or kinds is None:
        return "outside the rasters"
    # If a file of a virtual raster is missing, GDAL reports an error once and then reads it as 0.
    if not values.any() or not kinds.any():
        return _HOLE
    # High vegetation cannot be 0 m high: such heights were not downloaded, only the classes.
    measured = np.isin(kinds, MEASURED_CLASSES) & ~((kinds == _HIGH_VEGETATION) & (values == 0))
    if measured.mean() < _LEAST_MEASURED:
        return "with too little data"
    known = values[measured]
    if known.max() > _TALLEST_DM:
        return "taller than any tree"
    if 100 * np.count_nonzero(known >= _CANOPY_DM) / known.size < LEAST_COVER:
        return "without canopy"
    metres = np.where(measured, values / 10, np.nan).astype(np.float32)
    stored = np.where(measured, metres, np.float32(_NO_DATA))[None]
    place = {"crs": heights.crs, "transform": transform, "nodata": _NO_DATA}
    return metres, geotiff_of(stored, ("height",), "m", predictor=3, **place)


def _in_crs(tile: Tile, crs: Any) -> Bounds | None:
    """Return the bounds of the tile in the rasters' system; None if they have no room for its four windows."""
    in_degrees = all(abs(value) <= 180 for value in tile.bounds)
    tile_crs = tile.crs or (CRS.from_epsg(4326) if in_degrees else crs)
    try:
        bounds = tile.bounds if tile_crs == crs else transform_bounds(tile_crs, crs, *tile.bounds)
    except (RasterioError, ValueError):
        return None
    left, bottom, right, top = bounds
    needed = 2 * WINDOW_PX * _PIXEL_M
    # A square in degrees is rotated on the map, so its bounding box is slightly larger than the tile.
    fits = all(needed <= side < 1.2 * needed for side in (right - left, top - bottom))
    return (left, bottom, right, top) if fits else None


def _values(dataset: Any, bounds: Bounds, right: int, lower: int) -> tuple[NDArray[Any] | None, Any]:
    """Return a quarter around the middle of the tile and its transform; no values if it extends beyond the raster."""
    middle = (bounds[0] + bounds[2]) / 2, (bounds[1] + bounds[3]) / 2
    column, row = (math.floor(place + 0.5) for place in ~dataset.transform * middle)
    column, row = column + (right - 1) * WINDOW_PX, row + (lower - 1) * WINDOW_PX
    window = windows.Window(column, row, WINDOW_PX, WINDOW_PX)  # pyright: ignore[reportCallIssue]
    where = windows.transform(window, dataset.transform)
    if min(column, row) < 0 or column + WINDOW_PX > dataset.width or row + WINDOW_PX > dataset.height:
        return None, where
    return dataset.read(1, window=window), where
