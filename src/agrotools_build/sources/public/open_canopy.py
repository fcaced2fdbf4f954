"""Open-Canopy (Fogel et al. 2025): heights of vegetation in France from airborne laser scanning, 1.5 m pixels.

The rasters of a year cover the whole country and are only read in windows: squares of 500 m in tiles of the test part.
"""

import math
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio import windows
from rasterio.crs import CRS
from rasterio.errors import RasterioError
from rasterio.features import bounds as bounds_of
from rasterio.warp import transform_bounds

from agrotools.core import BenchmarkError, SampleFile
from agrotools_build.area_truth import LEAST_COVER
from agrotools_build.sources.land import canopy_subjects, tract_subject
from agrotools_build.sources.part import DataSet, Part
from agrotools_build.sources.reading import find_root, geotiff_of, read_json, spread
from agrotools_build.templates.thing import Subject

_NO_DATA = -9999.0
_HOLE = "unreadable, not fetched or all zero"
_SETTINGS = {
    "CPL_VSIL_CURL_ALLOWED_EXTENSIONS": ".none", "GDAL_CACHEMAX": 64, "GDAL_PAM_ENABLED": "NO",
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",  # a folder has tens of thousands of files
}  # fmt: skip

Bounds = tuple[float, float, float, float]


class Tile(NamedTuple):
    """A square of the authors' grid; ``bounds`` are left, bottom, right, top in ``crs`` (None: that of the rasters)."""

    year: int
    bounds: Bounds
    crs: Any


def open_canopy(data: DataSet) -> Part:
    """Heights and covers of windows and of parts of them."""
    of = data.layout
    root = find_root(data.folder, of["root"])
    tiles = _test_tiles(root / of["root"][0], of["splits"])
    subjects: list[Subject] = []
    shown: list[tuple[SampleFile, NDArray[np.float32]]] = []
    with ExitStack() as opened:
        opened.enter_context(rasterio.Env(**_SETTINGS))
        years = {
            year: _opened_year(root / str(year), data, opened)
            for year in sorted({tile.year for tile in tiles})
        }
        there = [tile for tile in tiles if years[tile.year]]
        if not there:
            raise BenchmarkError(f"{root} has {' and '.join(of['rasters'])} of no year")
        if len(there) < len(tiles):
            data.dropped["of a year that is not there"] += 4 * (len(tiles) - len(there))
        # As many tiles as possible, and then their quarters.
        scattered = spread(there, lambda tile: tile.year, len(there), of["seed"])
        quarters = [
            (number, right, lower)
            for number in range(len(scattered))
            for right in (0, 1)
            for lower in (0, 1)
        ]
        for number, right, lower in spread(
            quarters, lambda quarter: quarter[0], len(quarters), of["seed"]
        ):
            if len(shown) == data.wanted:
                break
            window = _window(years[scattered[number].year], scattered[number], right, lower, data)
            if isinstance(window, str):
                data.dropped[window] += 1
                continue
            rng = np.random.default_rng([of["seed"], len(shown)])
            subjects += canopy_subjects(f"open-canopy-{len(shown)}", *window, rng)
            shown.append(window)
    starts = range(0, len(shown), of["together"])
    subjects += [
        tract_subject(f"open-canopy-tracts-{at}", shown[at : at + of["together"]]) for at in starts
    ]
    facts: Any = {"test_tiles": len(tiles), "windows": len(data.originals.files)}
    return data.part(subjects, ["canopy", "tracts"], {"open-canopy": facts})


def _test_tiles(path: Path, splits: Sequence[str]) -> list[Tile]:
    grid = read_json(path)
    try:
        crs = (
            CRS.from_user_input(str(grid["crs"]["properties"]["name"])) if grid.get("crs") else None
        )
        by_split: dict[str, list[Any]] = {}
        for one in grid["features"]:
            by_split.setdefault(str(one["properties"]["split"]), []).append(one)
        tested = by_split.get("test", ())
        tiles = [
            Tile(int(float(one["properties"]["lidar_year"])), bounds_of(one["geometry"]), crs)
            for one in tested
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BenchmarkError(
            f"{path} is not a grid of tiles with geometry, split and lidar_year"
        ) from error
    if strange := sorted(by_split.keys() - {*splits}):
        raise BenchmarkError(
            f"{path} has tiles whose split is not {', '.join(splits)}: {', '.join(strange[:5])}"
        )
    if not tiles:
        raise BenchmarkError(f"{path} has no tile of the test part")
    return tiles


def _opened_year(folder: Path, data: DataSet, opened: ExitStack) -> list[Any]:
    """Return the rasters of heights and of classes; empty if the year was not downloaded."""
    rasters, pixel_m = data.layout["rasters"], data.layout["pixel_m"]
    if not any((folder / name).exists() for name in rasters):
        return []
    try:
        datasets: list[Any] = [
            opened.enter_context(rasterio.open(folder / name, driver="VRT")) for name in rasters
        ]
    except (RasterioError, OSError) as error:
        raise BenchmarkError(f"the rasters in {folder} cannot be read: {error}") from error
    for dataset, (name, (dtype, meaning)) in zip(datasets, rasters.items(), strict=True):
        if dataset.dtypes != (dtype,):
            raise BenchmarkError(
                f"{folder / name} holds {', '.join(dataset.dtypes)}, not {meaning} as {dtype}"
            )
        at = dataset.transform
        has_the_pixels = np.allclose((at.a, at.b, at.d, at.e), (pixel_m, 0, 0, -pixel_m), atol=1e-3)
        if dataset.crs is None or not dataset.crs.is_projected or not has_the_pixels:
            raise BenchmarkError(
                f"{folder / name} is not a map with pixels of {pixel_m} m, north up"
            )
    return datasets


def _window(
    rasters: Sequence[Any], tile: Tile, right: int, lower: int, data: DataSet
) -> tuple[SampleFile, NDArray[np.float32]] | str:
    """Return a quarter of the tile and its heights in metres, NaN where unknown, or why it is left out."""
    of, crs = data.layout, rasters[0].crs
    size, pixel_m = of["window_px"], of["pixel_m"]
    bounds = _in_crs(tile, crs, 2 * size * pixel_m)
    if bounds is None:
        return "of a tile that is not 1 km wide"
    read: list[NDArray[Any]] = []
    transform: Any = None
    for dataset in rasters:
        middle = (bounds[0] + bounds[2]) / 2, (bounds[1] + bounds[3]) / 2
        column, row = (math.floor(place + 0.5) for place in ~dataset.transform * middle)
        column, row = column + (right - 1) * size, row + (lower - 1) * size
        window = windows.Window(column, row, size, size)  # pyright: ignore[reportCallIssue]
        if min(column, row) < 0 or column + size > dataset.width or row + size > dataset.height:
            return "outside the rasters"
        transform = transform or windows.transform(window, dataset.transform)
        try:
            read.append(dataset.read(1, window=window))
        except (RasterioError, OSError):
            return _HOLE
    values, kinds = read
    # If a file of a virtual raster is missing, GDAL reports an error once and then reads it as 0.
    if not values.any() or not kinds.any():
        return _HOLE
    # High vegetation cannot be 0 m high: such heights were not downloaded, only the classes.
    measured = np.isin(kinds, of["measured_classes"]) & ~(
        (kinds == of["high_vegetation"]) & (values == 0)
    )
    if measured.mean() < of["least_measured"]:
        return "with too little data"
    known = values[measured]
    if known.max() > of["tallest_dm"]:
        return "taller than any tree"
    if 100 * np.count_nonzero(known >= of["canopy_dm"]) / known.size < LEAST_COVER:
        return "without canopy"
    metres = np.where(measured, values / 10, np.nan).astype(np.float32)
    stored = np.where(measured, metres, np.float32(_NO_DATA))[None]
    content = geotiff_of(
        stored, ("height",), "m", predictor=3, crs=crs, transform=transform, nodata=_NO_DATA
    )
    about = {"width_px": size, "height_px": size, "gsd_m": pixel_m, "note": of["note"]}
    return data.originals.add_content(
        content, ".tif", kind="raster", bands=("height",), **about
    ), metres


def _in_crs(tile: Tile, crs: Any, needed: float) -> Bounds | None:
    """Return the bounds of the tile in the rasters' system; None if they have no room for its four windows."""
    in_degrees = all(abs(value) <= 180 for value in tile.bounds)
    tile_crs = tile.crs or (CRS.from_epsg(4326) if in_degrees else crs)
    try:
        left, bottom, right, top = (
            tile.bounds if tile_crs == crs else transform_bounds(tile_crs, crs, *tile.bounds)
        )
    except (RasterioError, ValueError):
        return None
    # A square in degrees is rotated on the map, so its bounding box is slightly larger than the tile.
    fits = all(needed <= side < 1.2 * needed for side in (right - left, top - bottom))
    return (left, bottom, right, top) if fits else None
