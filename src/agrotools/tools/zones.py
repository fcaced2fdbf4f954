"""Measurements per zone, such as a plot of a field trial, in georeferenced rasters of one or many dates.

A pixel counts with the share of its area that lies in the zone (exactextract; Baston 2023); those without data do not.
"""

import csv
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.core.base import number_text
from agrotools.core.files import write_whole
from agrotools.tools.pictures import WHOLE_PX, raster_roles, read_field_picture
from agrotools.tools.workspace import file_info
from agrotools.tools.zone_shapes import (
    MOST_ZONES,
    Zones,
    import_of_zones,
    overlapping,
    read_zones,
)
from agrotools.vision import Box, Index, Role
from agrotools.vision.formats import MAX_PIXELS
from agrotools.vision.overlay import LONGEST_SIDE, draw_heat_map
from agrotools.vision.rasters import RasterSource, band_number, metres_per_degree, open_raster
from agrotools.vision.vegetation import INDICES, choose_index, doubt_of_cover, segment

Row = dict[str, str | float | None]
_Quantity = tuple[dict[str, str], Callable[[Box], NDArray[np.float32]]]
"""Operations of exactextract by column, and a function that reads the values of a box."""
_Measured = tuple[list[_Quantity], Sequence[str], Sequence[str]]  # with notes and flags
_Bands = Mapping[str, int | str] | None
_GRID = {
    "x": None,
    "y": None,
    "rows": 0,
    "columns": 0,
    "width": 0,
    "length": 0,
    "rotation": 0,
    "gap": 0,
}
_GRID_HINT = (
    "a grid is x=500000,y=5000000,rows=20,columns=50,width=1.5,length=6,rotation=12,gap=0.5"
)
_ABOUT = ("zone", "raster", "date", "area_m2", "pixels", "valid_pct", "flags")
"""Columns of every table; the measured quantities stand before the flags."""
_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_.]?(0[1-9]|1[0-2])[-_.]?(0[1-9]|[12]\d|3[01])(?!\d)")
_READ_PX = 2**22
"""Largest number of pixels of a zone that are read at once."""
_MOST_LINES = 12
_PROGRESS_ZONES = 1_000
"""Number of zones after which a line of progress is given: about two seconds."""
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a cell that spreadsheet programs compute (OWASP, CSV injection)."""


class ZoneTable(NamedTuple):
    rows: list[Row]
    """Of a raster and zone ``zone``, ``raster``, ``date``, ``area_m2`` (None if the scale is unknown), ``pixels`` (with
    data), ``valid_pct`` (their share of the zone, percent), values (None without data) and ``flags``."""
    notes: tuple[str, ...]
    files: tuple[Path, ...]


def measure_zones(
    rasters: Path | str | Sequence[Path | str],
    zones: Path | str,
    *,
    values: Sequence[str] = (),
    bands: Mapping[str, int | str] | None = None,
    out: Path | str | None = None,
    progress: Callable[[str], None] | None = None,
) -> ZoneTable:
    """Measure zones in rasters (GeoTIFF, ENVI), one for each date, which is read from the name of the file.

    Args:
        zones: GeoJSON, GeoPackage or shapefile of polygons in any coordinate reference system; or a grid:
            ``x=500000,y=5000000,rows=20,columns=50,width=1.5,length=6,rotation=12,gap=0.5``. x and y are its upper left
            corner in the system of the first raster; width and length of a plot and the gap between plots are in its
            unit (metres if that is degrees); rotation about the corner is in degrees counter-clockwise.
        values: ``cover`` (plants as of ``measure_crop_weed_area``, and their index), ``height`` (as of
            ``estimate_canopy_height``), an index such as ``ndvi``, or the number or name of a band. Default: cover; of
            a raster with one band, height and the band.
        bands: role (R, G, B, RE, NIR) to number or name of a band, where the file does not say it.
        out: folder for ``zones.csv``, ``zones_map.png`` (first value, last date) and ``zones_chart.png`` (dates).
        progress: called with a line of text after every 1,000 zones.

    Raises:
        UsageError: the extra ``zones`` is not installed.
        ToolError: ``invalid_argument``, ``file_not_found``, ``unreadable_file``, ``missing_metadata`` (a raster without
            a coordinate reference system), ``nothing_found`` (no zone in the rasters), ``limit`` (over 100,000 zones,
            or a large file), and as the tools.
    """
    shapely = import_of_zones("shapely")
    paths = [Path(path) for path in ([rasters] if isinstance(rasters, Path | str) else rasters)]
    dates = {path: "-".join(found.groups()) for path in paths if (found := _DATE.search(path.stem))}
    if len({*dates.values()}) == len(paths):
        paths.sort(key=dates.__getitem__)
    read: Zones | None = None
    overlaps: NDArray[np.bool_] | None = None
    rows: list[Row] = []
    notes: list[str] = []
    polygons, gsd_m = np.empty(0), None
    for path in paths:
        with open_raster(path, argument="rasters") as source:
            if read is None:
                is_grid = "=" in str(zones) and not Path(zones).is_file()
                read = _grid(str(zones), source) if is_grid else read_zones(Path(zones))
                notes += read.notes
                overlaps = overlapping(read.polygons)
                if overlaps is None:
                    notes.append("too many zones are near each other to say which ones overlap")
            polygons = _in_pixels(read, source)
            operations, of_raster, flags = _quantities(source, path, values, bands)
            inside = shapely.clip_by_rect(polygons, 0, -source.height, source.width, 0)
            measured = _extract(
                polygons,
                shapely.area(inside),
                -shapely.bounds(inside)[:, 3],
                operations,
                source,
                progress,
            )
            gsd_m = source.sampling.gsd_m
        notes += [f"{path.name}: {note}" for note in of_raster]
        parts = zip(
            read.names,
            _flags_of_overlap(overlaps, len(read.names)),
            shapely.area(polygons).tolist(),
            shapely.area(inside).tolist(),
            measured,
            strict=True,
        )
        for name, of_overlap, area, part, found in parts:
            pixels = found.pop("pixels", 0.0)
            of_zone = (
                ["outside"] if not part else ["partly_outside"] if part < area * (1 - 1e-6) else []
            )
            of_zone += [] if pixels >= part / 2 else ["mostly_no_data"] if pixels else ["no_data"]
            row: Row = {"zone": name, "raster": path.name, "date": dates.get(path, "")}
            row |= {
                "area_m2": gsd_m and area * gsd_m**2,
                "pixels": pixels,
                "valid_pct": 100 * pixels / (area or 1),
            }
            all_flags = dict.fromkeys((*of_zone, *of_overlap, *read.flags, *flags))
            rows.append({**row, **found, "flags": " ".join(all_flags)})
    quantities = [*dict.fromkeys(column for row in rows for column in row if column not in _ABOUT)]
    if not quantities:
        hint = "check the coordinate reference systems"
        raise ToolError("nothing_found", "no zone lies in the rasters", argument="zones", hint=hint)
    rows = [
        {column: row.get(column) for column in (*_ABOUT[:-1], *quantities, _ABOUT[-1])}
        for row in rows
    ]
    files = () if out is None else _write(Path(out), rows, polygons, quantities[0], gsd_m)
    return ZoneTable(rows, tuple(dict.fromkeys(notes)), files)


def _flags_of_overlap(overlaps: NDArray[np.bool_] | None, count: int) -> list[tuple[str, ...]]:
    if overlaps is None:
        return [("overlaps_not_checked",)] * count
    return [("overlaps_zone",) if overlap else () for overlap in overlaps.tolist()]


def _grid(text: str, source: RasterSource) -> Zones:
    """Return the plots of a grid, in the coordinate reference system of the raster."""
    try:
        grid = _GRID | {
            key.strip(): float(value)
            for key, value in (part.split("=") for part in text.split(","))
        }
        x, y, rows, columns, width, length, rotation, gap = cast("Sequence[float]", grid.values())
        if not (
            rows > 0 == rows % 1 + columns % 1
            and 0 < rows * columns <= MOST_ZONES
            and min(width, length) > 0
        ):
            raise ValueError("rows, columns, width and length must be above 0")
        if not all(map(math.isfinite, (x, y, width, length, rotation, gap))):
            raise ValueError("all numbers must be finite")
        row, column = (part.reshape(-1, 1) for part in np.mgrid[: int(rows), : int(columns)])
    except (ValueError, TypeError) as error:
        raise ToolError(
            "invalid_argument", f"zones: {text}: {error}", argument="zones", hint=_GRID_HINT
        ) from error
    right = column * (width + gap) + np.array([0, width, width, 0])
    down = row * (length + gap) + np.array([0, 0, length, length])
    turn, crs = math.radians(rotation), source.dataset.crs
    along, up = metres_per_degree(y) if crs is not None and crs.is_geographic else (1.0, 1.0)
    up = -up if source.dataset.transform.e > 0 else up
    xs = x + (right * math.cos(turn) + down * math.sin(turn)) / along
    ys = y + (right * math.sin(turn) - down * math.cos(turn)) / up
    names = [f"{r + 1}-{c + 1}" for r, c in np.hstack([row, column]).tolist()]
    polygons = import_of_zones("shapely").polygons(np.stack([xs, ys], axis=2))
    return Zones(names, polygons, crs)


def _in_pixels(zones: Zones, source: RasterSource) -> NDArray[Any]:
    """Return the polygons in pixels of a raster: x is the column, y is the row with a minus sign."""
    from rasterio._err import CPLE_BaseError  # rasterio has no public class of errors of PROJ
    from rasterio.crs import CRS
    from rasterio.errors import RasterioError
    from rasterio.warp import transform

    shapely, crs = import_of_zones("shapely"), source.dataset.crs
    if crs is None and zones.crs is not None:
        why, hint = (
            f"{source.name} has no coordinate reference system",
            "georeference it, or give a grid in pixels",
        )
        raise ToolError("missing_metadata", why, argument="rasters", hint=hint)
    xs, ys = shapely.get_coordinates(zones.polygons).T
    try:
        of_zones = CRS.from_user_input(zones.crs) if zones.crs else crs
        if of_zones != crs:
            xs, ys = map(np.asarray, transform(of_zones, crs, xs, ys)[:2])
    except (RasterioError, CPLE_BaseError, ValueError) as error:
        raise ToolError(
            "invalid_argument",
            f"zones cannot be placed in {source.name}: {error}",
            argument="zones",
            hint="check the coordinate reference system of the zones",
        ) from error
    columns, rows = ~source.dataset.transform * (xs, ys)
    placed = np.nan_to_num(
        np.stack([columns, -rows], axis=1), posinf=1e12
    )  # infinite where there is no place
    return shapely.set_coordinates(zones.polygons.copy(), placed)


def _quantities(
    source: RasterSource, path: Path, values: Sequence[str], bands: _Bands
) -> _Measured:
    measured: _Measured = ([], source.sampling.notes, source.sampling.flags)
    for value in values or (("cover",) if len(source.data_bands) > 1 else ("height", "1")):
        if value == "height":
            from agrotools.tools.canopy_height import estimate_canopy_height

            judged, read = estimate_canopy_height(chm=path), partial(_heights, source)
            more = (
                [({"heights": "values", "weights": "coverage"}, read)],
                judged.notes,
                judged.flags,
            )
        elif value == "cover" or value in INDICES:
            more = _plants(source, path, value, bands)
        else:
            number = band_number(value, source.band_names, source.name)
            numbers = [
                number,
                *(source.data_bands if source.border is not None else ()),
            ]  # a border is in all bands
            more = (
                [(_moments(f"band_{number}"), lambda box, of=numbers: source.read(of, box)[0])],
                (),
                (),
            )
        measured = [*measured[0], *more[0]], [*measured[1], *more[1]], [*measured[2], *more[2]]
    return measured


def _moments(name: str) -> dict[str, str]:
    return {
        f"{name}_mean": "mean",
        f"{name}_sd": "stdev",
        f"{name}_min": "min",
        f"{name}_max": "max",
    }


def _heights(source: RasterSource, box: Box) -> NDArray[np.float32]:
    from agrotools.tools.canopy_height import height_scale_of, in_metres

    return np.maximum(
        in_metres(source.read([1], box)[0], height_scale_of(source, None).metres), np.float32(0)
    )


def _height_statistics(heights: NDArray[Any], weights: NDArray[Any]) -> dict[str, float]:
    """Return the statistics of ``estimate_canopy_height``; quantiles are interpolated by rank, as by numpy."""
    order = np.argsort(heights)[: np.count_nonzero(np.isfinite(heights))]
    heights, weights = heights[order].astype(np.float64), weights[order]
    if not weights.sum():
        return {}
    ranks = np.arange(order.size) * weights + (order.size - 1) * (np.cumsum(weights) - weights)
    mean, cover = np.average(heights, weights=weights), np.average(heights >= 2, weights=weights)
    median, p95 = np.interp([0.5 * ranks[-1], 0.95 * ranks[-1]], ranks, heights)
    sd = np.average((heights - mean) ** 2, weights=weights) ** 0.5
    names = ("mean_m", "median_m", "p95_m", "max_m", "sd_m", "cover_pct")
    return dict(
        zip(names, map(float, (mean, median, p95, heights[-1], sd, 100 * cover)), strict=True)
    )


def _plants(source: RasterSource, path: Path, value: str, bands: _Bands) -> _Measured:
    """Return plant cover as the tool for it finds plants in the whole raster, and its index; or an index alone."""
    from agrotools.tools.crop_weed.large_rasters import sample_threshold
    from agrotools.tools.crop_weed.photographs import remarks_on_photo

    roles, notes = raster_roles(source, bands, file_info(path))
    index = choose_index(cast(Index, "auto" if value == "cover" else value), roles)
    used: dict[Role, int] = {role: roles[role] for role in INDICES[index].bands}
    sampled = sample_threshold(source, used, index, (0, 0, source.width, source.height))
    read = lru_cache(maxsize=1)(partial(sampled.read, source, used))
    of_index: _Quantity = (_moments(index), lambda box: read(box)[0])
    if value != "cover":
        return [of_index], notes, ()
    notes, flags, percent = (
        (*notes, *sampled.notes, *sampled.cut.notes),
        sampled.cut.flags,
        np.float32(100),
    )
    if source.width * source.height <= WHOLE_PX and bands is None:
        picture = read_field_picture(path, None, None, file_info(path))
        plants, photo = segment(index, picture.bands, picture.valid), picture.photo
        if photo is not None and (doubt := doubt_of_cover(photo, plants)):
            notes, flags = (*notes, f"plant cover cannot be told: {doubt}"), ("low_confidence",)
            percent = np.float32(np.nan)
        elif photo is not None:
            of_photo = remarks_on_photo(photo, plants)
            notes, flags = (*notes, *of_photo.notes), (*flags, *of_photo.flags)
    cover: _Quantity = ({"veg_pct": "mean"}, lambda box: percent * read(box)[1])
    return [cover, of_index], notes, flags


def _extract(
    polygons: NDArray[Any],
    areas: Any,
    tops: Any,
    quantities: Sequence[_Quantity],
    source: RasterSource,
    progress: Callable[[str], None] | None,
) -> list[dict[str, Any]]:
    """Return the columns, and ``pixels`` with data, of each polygon that has an area in the raster."""
    extract = import_of_zones("exactextract")
    if "heights" in quantities[0][0] and max(areas) > MAX_PIXELS:
        why = f"a zone has over {MAX_PIXELS // 1_000_000} million pixels, too many for percentiles of height"
        raise ToolError(
            "limit", why, argument="zones", hint="cut it into parts, or measure the band alone"
        )

    class Raster(extract.raster.NumPyRasterSource):
        def read_window(self, x: int, y: int, columns: int, rows: int) -> NDArray[np.float32]:
            box = (x, y, x + columns, y + rows)
            return self.read(box) if columns and rows else np.empty((0, 0), np.float32)

    grid = np.broadcast_to(np.float32(0), source.dataset.shape), 0, -source.height, source.width, 0
    # An operation does not keep its raster alive, and takes rasters of one name for one.
    rasters = [Raster(*grid, name=f"raster_{number}") for number in range(len(quantities))]
    operations = [extract.operation.Operation("count", "pixels", rasters[-1])]
    for raster, (columns, read) in zip(rasters, quantities, strict=True):
        raster.read = read
        operations += [
            extract.operation.Operation(how, column, raster) for column, how in columns.items()
        ]
    rows: list[dict[str, Any]] = [{} for _ in polygons]
    from_top = [k for k in np.argsort(tops).tolist() if areas[k]]  # neighbours share blocks
    for done, k in enumerate(from_top):
        if progress and done and done % _PROGRESS_ZONES == 0:
            progress(f"{source.name}: {done} of {len(from_top)} zones")
        polygon: Any = polygons[k]
        feature = {"type": "Feature", "properties": {}, "geometry": polygon.__geo_interface__}
        (feature,) = extract.exact_extract(
            rasters, [feature], operations, max_cells_in_memory=_READ_PX
        )
        found = {one.name: feature["properties"][one.name] for one in operations}
        if "heights" in found:
            found |= _height_statistics(found.pop("heights"), found.pop("weights"))
        rows[k] = {name: value if value == value else None for name, value in found.items()}
    return rows


def _write(
    folder: Path, rows: Sequence[Row], polygons: NDArray[Any], column: str, gsd_m: float | None
) -> tuple[Path, ...]:
    text, known = io.StringIO(), [row for row in rows if row[column] is not None]
    table = csv.writer(text, lineterminator="\n")
    table.writerow(map(_cell, rows[0]))
    for row in rows:
        table.writerow(map(_cell, row.values()))
    files = {
        "zones.csv": text.getvalue().encode(),
        "zones_map.png": _map(rows, polygons, column, gsd_m),
    }
    if len(rows) > len(polygons) and known:
        files["zones_chart.png"] = _chart(known, len(polygons), column)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_whole(folder / name, content)
    return tuple(folder / name for name in files)


def _cell(value: str | float | None) -> str | float | None:
    """Return a value for CSV: text that a spreadsheet program would compute gets an apostrophe before it."""
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS) and not _is_number(value):
        return f"'{value}"
    return value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _map(rows: Sequence[Row], polygons: NDArray[Any], column: str, gsd_m: float | None) -> bytes:
    """Draw the polygons of the last raster in the colours of a column."""
    import cv2
    from rasterio import Affine
    from rasterio.features import rasterize

    last = rows[-len(polygons) :]
    shapes: list[Any] = [
        (polygon, math.nan if row[column] is None else row[column])
        for polygon, row in zip(polygons, last, strict=True)
        if "outside" not in str(row["flags"]).split()
    ] or [(polygons[0], math.nan)]
    bounds = np.array([polygon.bounds for polygon, _ in shapes])
    (left, bottom), (right, top) = bounds[:, :2].min(axis=0), bounds[:, 2:].max(axis=0)
    factor = max(right - left, top - bottom) / LONGEST_SIDE
    shape = (math.ceil((top - bottom) / factor), math.ceil((right - left) / factor))
    drawn = np.full(shape, np.nan, np.float32)
    rasterize(shapes, out=drawn, transform=Affine(factor, 0, left, 0, -factor, top))
    there = drawn[np.isfinite(drawn)]
    low, high = (float(there.min()), float(there.max())) if there.size else (0.0, 1.0)
    title = f"{column} by zone, {last[0]['date'] or last[0]['raster']}"
    gsd_m = gsd_m and gsd_m * factor
    picture = draw_heat_map(
        drawn, low=low, high=high, unit="", grey_below=low, title=title, legend=(), gsd_m=gsd_m
    )
    return cv2.imencode(".png", picture[..., ::-1])[1].tobytes()


def _chart(rows: Sequence[Row], count: int, column: str) -> bytes:
    """Draw a column by date: a line for each zone, or boxes of many zones."""
    from agrotools.core import PlotSpec
    from agrotools.tools.plotting.drawing import draw
    from agrotools.tools.plotting.tool import prepare_data

    x = (
        "date"
        if len({row["date"] for row in rows}) == len({row["raster"] for row in rows})
        else "raster"
    )
    are_lines = count <= _MOST_LINES and len({(row["zone"], row[x]) for row in rows}) == len(rows)
    series: dict[Any, tuple[str, list[Any], list[Any]]] = {}
    for row in rows:
        _, xs, ys = series.setdefault(key := row["zone" if are_lines else x], (str(key), [], []))
        xs.append(row[x])
        ys.append(row[column])
    kind = "line" if are_lines else "box"
    data = prepare_data(
        kind,
        [(name, xs if are_lines else None, ys) for name, xs, ys in series.values()],
        "none",
        [],
    )
    assert data is not None
    title = f"{column} by zone"
    spec = PlotSpec(kind=kind, series=data.series, title=title, y_label=column, legend=are_lines)
    return draw(spec, data, y_limits=None, annotate=False, fmt="png")[0]
