"""Files of measured zones: a table, the zones with their values as GeoJSON, a map and a chart."""

import csv
import io
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from agrotools.calling.pictures import known_roles
from agrotools.calling.workspace import file_info
from agrotools.core.files import write_whole
from agrotools.core.texts import number_text
from agrotools.vision import Box, Role
from agrotools.vision.overlay import LONGEST_SIDE, Colour, Mark, draw_marks, viridis
from agrotools.vision.rasters import RasterSource
from agrotools.vision.reading import stretched_picture
from agrotools_tools.zones import import_of_zones
from agrotools_tools.zones.shapes import Zones
from agrotools_tools.zones.shown import name_of, named_with_unit, unit_of
from agrotools_tools.zones.treatments import CHANGE, Design, Row, is_whole

ABOUT = ("zone", "raster", "date", "area_m2", "pixels", "valid_pct", "flags")
"""Columns of every table; the measured quantities stand before the flags, the fields of the file of zones behind."""
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a cell that spreadsheet programs compute (OWASP, CSV injection)."""
_DECIMALS = 8
"""Decimals of degrees in GeoJSON, about 1 mm."""
_MOST_LINES = 12
"""Largest number of zones that a chart shows as lines; more are shown as boxes."""
_MOST_OUTLINED = 1_000
"""Largest number of zones with outlines on the map; those of more would hide it."""
_LONGEST_NAME = 24
"""Characters of a name on the map."""
_SWATCHES = 5
"""Number of colours that the legend of the map names."""
_TINT = 0.45
"""Share of a zone's colour over the picture below it, at which both are seen."""
_MARGIN = 0.03
"""Margin of the map around the zones, of its longer side."""
_COLOURS: tuple[Role, Role, Role] = ("R", "G", "B")


class Picture(NamedTuple):
    """Part of a raster around the zones. ``box``: in its pixels. ``pixels``: uint8 (rows, columns, 3), None if the
    raster has no natural colours. ``factor``: pixels of the raster per pixel of the picture."""

    box: Box
    factor: float
    pixels: NDArray[np.uint8] | None


class ZoneMap(NamedTuple):
    """Zones on the raster that the map shows. ``inside``: their parts in it, in its pixels. ``crs``: of the raster."""

    zones: Zones
    inside: NDArray[Any]
    gsd_m: float | None
    picture: Picture | None
    crs: Any


class Trial(NamedTuple):
    """Design of a trial, and the rows of its treatments."""

    design: Design
    rows: Sequence[Row]
    main: Sequence[str]
    """Measured columns that answer what was asked for; the others describe them: spread, index behind the cover."""


_FILES = (
    "zones.csv",
    "zones.geojson",
    "zones_map.png",
    "zones_chart.png",
    "treatments.csv",
    "treatments.png",
    "treatments_all.csv",
)


def _set_aside(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Rename files of an earlier run that hold something else than ``files``, and return notes.

    A chart or a map that this run does not write would otherwise be taken for one of its own.
    """
    notes: list[str] = []
    for name in _FILES:
        path = folder / name
        if not path.is_file() or path.read_bytes() == files.get(name):
            continue
        numbers = (path.with_stem(f"{path.stem}_before_{number}") for number in itertools.count(1))
        kept = next(each for each in numbers if not each.exists())
        path.rename(kept)
        notes.append(f"{name} of an earlier run is now {kept.name}")
    return notes


def write_files(
    folder: Path,
    rows: Sequence[Row],
    shown: ZoneMap,
    columns: Sequence[str],
    trial: Trial | None = None,
) -> tuple[tuple[Path, ...], list[str]]:
    """Write the files of a table, with notes on those that cannot be written."""
    count = len(shown.zones.names)
    drawn = _first_known(columns, rows)
    # The raster of the map may have other values than the first one.
    mapped = _first_known(columns, rows[-count:]) or drawn
    table, outlines, map_, chart, means, boxes, all_means = _FILES
    files: dict[str, bytes] = {table: _csv(rows)}
    notes: list[str] = []
    geojson = _geojson(rows, shown)
    if geojson is None:
        notes.append(f"no {outlines}: nothing says where on the earth the zones lie")
    else:
        files[outlines] = geojson
    if mapped is not None and shown.picture is not None:
        files[map_] = _map(rows[-count:], shown, shown.picture, mapped)
    if len(rows) > count and drawn is not None:
        whole = _whole_in_all(rows, count, drawn)
        if whole:
            files[chart] = _chart(whole, drawn)
        else:
            notes.append(f"no {chart}: no zone is whole, with a value, in all rasters")
    if trial is not None and trial.rows:
        main = [row for row in trial.rows if _is_main(row, trial)]
        files[means] = _csv(main)
        if len(main) < len(trial.rows):
            files[all_means] = _csv(trial.rows)
        drawn_boxes = mapped and _chart_of_treatments(rows[-count:], trial.design, mapped)
        if drawn_boxes:
            files[boxes] = drawn_boxes
    folder.mkdir(parents=True, exist_ok=True)
    notes += _set_aside(folder, files)
    for name, content in files.items():
        write_whole(folder / name, content)
    return tuple(folder / name for name in files), notes


def _is_main(row: Row, trial: Trial) -> bool:
    """Return True for a row of a main value, of its change, or of a column of the plan."""
    value = str(row["value"])
    return value.removeprefix(CHANGE) in trial.main or value in trial.design.numbers


def _first_known(columns: Sequence[str], rows: Sequence[Row]) -> str | None:
    """Return the first column with a value in one of the rows."""
    return next((each for each in columns if any(row[each] is not None for row in rows)), None)


def _csv(rows: Sequence[Row]) -> bytes:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(map(_cell, rows[0]))
    names = [*rows[0]]
    measured = names.index(_LAST_MEASURED) + 1 if _LAST_MEASURED in names else len(names)
    for row in rows:
        cells = [*row.values()]
        own = (_exact(value) for value in cells[measured:])
        table.writerow(map(_cell, (*cells[:measured], *own)))
    return text.getvalue().encode()


_LAST_MEASURED = "flags"
"""Last column of a table before the fields of the user's file."""


def _exact(value: str | float | None) -> str | float | None:
    """Return a value of the user's file with all of its digits: a latitude, a yield."""
    if not isinstance(value, float):
        return value
    return str(int(value)) if value.is_integer() else repr(value)


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


def _geojson(rows: Sequence[Row], shown: ZoneMap) -> bytes | None:
    """Return the rows with their outlines in longitude and latitude on WGS 84; None if they have no place there."""
    from rasterio._err import CPLE_BaseError  # rasterio has no public class of errors of PROJ
    from rasterio.crs import CRS
    from rasterio.errors import RasterioError
    from rasterio.warp import transform

    shapely = import_of_zones("shapely")
    zones = shown.zones
    crs = zones.crs or shown.crs
    if crs is None:
        return None
    xs, ys = shapely.get_coordinates(zones.polygons).T
    try:
        degrees = transform(CRS.from_user_input(crs), CRS.from_string("OGC:CRS84"), xs, ys)[:2]
    except (RasterioError, CPLE_BaseError, ValueError, OverflowError):
        return None
    corners = np.round(np.stack(degrees, axis=1), _DECIMALS)
    if not np.isfinite(corners).all():
        return None
    placed = shapely.set_coordinates(zones.polygons.copy(), corners)
    # Outer rings run counter-clockwise in the standard.
    outlines = [orjson.loads(text) for text in shapely.to_geojson(shapely.orient_polygons(placed))]
    features = [
        {"type": "Feature", "properties": row, "geometry": outlines[place % len(outlines)]}
        for place, row in enumerate(rows)
    ]
    document = {"type": "FeatureCollection", "features": features}
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE, default=str)


def picture_under(
    source: RasterSource,
    path: Path,
    bands: Mapping[str, int | str] | None,
    inside: NDArray[Any],
) -> Picture | None:
    """Return the part of a raster around the zones in it (shapely, in pixels); None if there is none."""
    shapely = import_of_zones("shapely")
    there = inside[shapely.area(inside) > 0]
    if not len(there):
        return None
    left, top, right, bottom = shapely.total_bounds(there).tolist()
    margin = math.ceil(_MARGIN * max(right - left, bottom - top))
    box: Box = (
        max(0, math.floor(left) - margin),
        max(0, math.floor(top) - margin),
        min(source.width, math.ceil(right) + margin),
        min(source.height, math.ceil(bottom) + margin),
    )
    width, height = box[2] - box[0], box[3] - box[1]
    factor = max(width, height) / LONGEST_SIDE
    roles = known_roles(source, bands, file_info(path)).roles
    pixels = None
    if all(role in roles for role in _COLOURS):
        shape = max(1, math.ceil(height / factor)), max(1, math.ceil(width / factor))
        pixels = _natural_colours(source, [roles[role] for role in _COLOURS], box, shape)
    return Picture(box, factor, pixels)


def _natural_colours(
    source: RasterSource, bands: list[int], box: Box, shape: tuple[int, int]
) -> NDArray[np.uint8]:
    """Return red, green and blue of a box at another size, uint8 (rows, columns, 3), white without data."""
    values = source.read_resized(bands, box, shape)
    there = np.isfinite(values).all(axis=0)
    if source.dtype == "uint8" and np.nanmax(values, initial=0) <= np.iinfo(np.uint8).max:
        picture = np.moveaxis(np.where(there, values, 255).astype(np.uint8), 0, 2)
        return np.ascontiguousarray(picture)
    return stretched_picture(dict(zip(_COLOURS, values, strict=True)))


def _map(rows: Sequence[Row], shown: ZoneMap, picture: Picture, column: str) -> bytes:
    """Draw the zones with their names in the colours of a column, over the picture of the raster if there is one."""
    import cv2

    shapely = import_of_zones("shapely")
    (left, top, _, _), factor, _ = picture
    values = np.array([np.nan if row[column] is None else row[column] for row in rows], np.float32)
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    colours = viridis(values, low, high)
    there = np.flatnonzero(shapely.area(shown.inside) > 0).tolist()
    sheet = _tinted(shown, picture, colours, there)
    outlined = there if len(there) <= _MOST_OUTLINED else []
    marks = [
        Mark(
            _colour(colours[zone]),
            _outline(shown.inside[zone], left, top, factor),
            str(rows[zone]["zone"])[:_LONGEST_NAME],
        )
        for zone in outlined
    ]
    steps = np.linspace(low, high, _SWATCHES, dtype=np.float32)
    named = zip(viridis(steps, low, high), steps.tolist(), strict=True)
    legend = [(_colour(colour), f"{value:.3g}") for colour, value in named]
    unit = unit_of(column)
    place = str(rows[0]["date"] or rows[0]["raster"])
    title = ", ".join(filter(None, (f"{name_of(column)} by zone", unit, place)))
    gsd_m = shown.gsd_m * factor if shown.gsd_m else None
    drawn = draw_marks(sheet, marks, legend=legend, gsd_m=gsd_m, title=title)
    return cv2.imencode(".png", drawn[..., ::-1])[1].tobytes()


def _tinted(
    shown: ZoneMap, picture: Picture, colours: NDArray[np.uint8], zones: Sequence[int]
) -> NDArray[np.uint8]:
    """Return the picture, or a white one, with the areas of zones in their colours, uint8 (rows, columns, 3)."""
    from rasterio import Affine
    from rasterio.features import rasterize

    (left, top, right, bottom), factor, pixels = picture
    shape = max(1, math.ceil((bottom - top) / factor)), max(1, math.ceil((right - left) / factor))
    zone_at = np.zeros(shape, np.int32)  # 0 where there is none
    numbered = [(shown.inside[zone], zone + 1) for zone in zones]
    rasterize(numbered, out=zone_at, transform=Affine(factor, 0, left, 0, factor, top))
    sheet = np.full((*shape, 3), 255, np.uint8) if pixels is None else pixels.copy()
    is_zone = zone_at > 0
    tint = 1.0 if pixels is None else _TINT
    fill = colours[zone_at[is_zone] - 1].astype(np.float32)
    sheet[is_zone] = (tint * fill + (1 - tint) * sheet[is_zone]).astype(np.uint8)
    return sheet


def _colour(pixel: NDArray[np.uint8]) -> Colour:
    red, green, blue = pixel.tolist()
    return red, green, blue


def _outline(polygon: Any, left: int, top: int, factor: float) -> list[tuple[float, float]]:
    """Return the outer ring of the largest part of a zone, in pixels of the map."""
    shapely = import_of_zones("shapely")
    parts = shapely.get_parts(polygon)
    largest = parts[int(np.argmax(shapely.area(parts)))]
    corners = shapely.get_coordinates(shapely.get_exterior_ring(largest))
    return [((x - left) / factor, (y - top) / factor) for x, y in corners.tolist()]


def _whole_in_all(rows: Sequence[Row], count: int, column: str) -> list[Row]:
    """Return the rows of zones that are whole, with a value, in each raster, so that dates compare the same zones."""
    lacking = {
        place % count for place, row in enumerate(rows) if row[column] is None or not is_whole(row)
    }
    return [row for place, row in enumerate(rows) if place % count not in lacking]


def _chart(rows: Sequence[Row], column: str) -> bytes:
    """Draw a column by date: a line for each zone, or boxes of many zones."""
    rasters = {row["raster"] for row in rows}
    x = "date" if len({row["date"] for row in rows}) == len(rasters) else "raster"
    count = len(rows) // len(rasters)
    are_lines = count <= _MOST_LINES and len({(row["zone"], row[x]) for row in rows}) == len(rows)
    series: dict[Any, tuple[str, list[Any], list[Any]]] = {}
    for row in rows:
        _, xs, ys = series.setdefault(key := row["zone" if are_lines else x], (str(key), [], []))
        xs.append(row[x])
        ys.append(row[column])
    drawn = [(name, xs if are_lines else None, ys) for name, xs, ys in series.values()]
    every = "both" if len(rasters) == 2 else f"all {len(rasters)}"
    of_all = f"on {every} dates" if x == "date" else f"in {every} rasters"
    title = f"{name_of(column)} by zone: n = {count}, whole {of_all}"
    return _figure("line" if are_lines else "box", drawn, title, column)


def _chart_of_treatments(rows: Sequence[Row], design: Design, column: str) -> bytes | None:
    """Draw the plots of a raster that are whole, as a box for each treatment; None without such a plot."""
    values: dict[str, list[Any]] = {level: [] for level in design.levels}
    for row, level in zip(rows, design.treatments, strict=True):
        if level is not None and row[column] is not None and is_whole(row):
            values[level].append(row[column])
    # Without spaces, as a long label is broken at spaces.
    drawn = [(f"{level} (n={len(ys)})", None, ys) for level, ys in values.items() if ys]
    if not drawn:
        return None
    title = f"{name_of(column)} by {design.treatment}, {rows[0]['date'] or rows[0]['raster']}"
    return _figure("box", drawn, title, column)


def _figure(
    kind: Literal["line", "box"],
    series: Sequence[tuple[str, list[Any] | None, list[Any]]],
    title: str,
    column: str,
) -> bytes:
    """Return a figure of values of a column as PNG."""
    from agrotools.core import PlotSpec
    from agrotools_tools.plotting.drawing import draw
    from agrotools_tools.plotting.tool import prepare_data

    data = prepare_data(kind, series, [])
    assert data is not None
    spec = PlotSpec(
        kind=kind,
        series=data.series,
        title=title,
        y_label=named_with_unit(column),
        legend=kind == "line",
    )
    return draw(spec, data, y_limits=None, annotate=False, fmt="png")[0]
