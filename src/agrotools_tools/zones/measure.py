"""Measurements per zone, such as a plot of a field trial, in georeferenced rasters of one or many dates.

A pixel counts with the share of its area that lies in the zone; those without data do not.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError, UsageError
from agrotools.core.readings import Readings
from agrotools.core.texts import count_text
from agrotools.vision.rasters import (
    RasterSource,
    Scaling,
    StatedScaling,
    metres_per_degree,
    open_raster,
)
from agrotools_tools.zones import import_of_zones
from agrotools_tools.zones.dates import are_sortable, date_of_tag, dates_of, has_date
from agrotools_tools.zones.files import ABOUT, Row, Trial, ZoneMap, picture_under, write_files
from agrotools_tools.zones.numbers import Offsets, possible_offsets, question_on_offset
from agrotools_tools.zones.plan import SETTINGS, join_plan
from agrotools_tools.zones.shapes import MOST_ZONES, Zones, overlapping, read_zones
from agrotools_tools.zones.treatments import Design, compare_treatments, design_of
from agrotools_tools.zones.units import Heights, has_known_unit, heights_of, questions_on_units
from agrotools_tools.zones.values import (
    HEIGHT,
    WHOLE_SHARE,
    BlockCache,
    Measured,
    Statistics,
    quantities_of,
    questions_on_bands,
    refuse_large_zones,
    values_of,
)
from agrotools_tools.zones.weights import LEAST_SHARE, PixelShares

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
_READ_PX = 2**22
"""Largest number of pixels of a zone that are read at once."""
_PROGRESS_ZONES = 1_000
"""Number of zones after which a line of progress is given: about two seconds."""
_FARTHEST_PX = 1e9
"""Distance from a raster, pixels, beyond which a corner is nowhere: no raster is as large."""
_ROUNDED_PX, _ROUNDED_SHARE = 0.1, 1e-3
"""Distance, pixels, and share of a zone up to which it may stick out of a raster and lies whole in it. An outline drawn
along the edge sticks out by as much after a change of its system or with 7 decimals of a degree (1 cm)."""
_LISTED = 3
"""Rasters or zones that a line names."""
_FEW_PIXELS = 4
"""Whole pixels below which a zone has few. A square plot has this many wherever it lies if three pixels or more fit
along its side; a smaller one may consist of pixels that also show its neighbours."""


class ZoneTable(NamedTuple):
    rows: list[Row]
    """Of a raster and zone ``zone``, ``raster``, ``date``, ``area_m2`` (None if the scale is unknown), ``pixels`` (with
    data of every value), ``valid_pct`` (their share of the zone, percent), values (None without data), ``flags`` and
    the fields of the file of zones."""
    notes: tuple[str, ...]
    files: tuple[Path, ...]
    treatments: list[Row] = []
    """Of a value, raster and treatment of the plan, and of the change of the value from the first raster to the last:
    number of plots, mean, standard deviation, and the difference from the control with its 95 % interval."""


class _Raster(NamedTuple):
    """Raster of a date. ``label``: shortest end of its path that no other raster has. ``by_tag``: the date is that of a
    tag of the file, as it was taken or made."""

    path: Path
    label: str
    date: str
    by_tag: bool = False


class _Placed(NamedTuple):
    """Zones in pixels of a raster: x is the column, y the row, downwards. ``inside``: their parts in the raster.
    ``beyond``: how far each sticks out of it, pixels."""

    polygons: NDArray[Any]
    inside: NDArray[Any]
    areas: NDArray[np.float64]
    areas_inside: NDArray[np.float64]
    beyond: NDArray[np.float64]


class _Found(NamedTuple):
    """What was found in a zone. ``pixels``: with data of every value. ``whole_pixels``: those of them that lie whole in
    it. ``figures``: by column."""

    pixels: float = 0.0
    whole_pixels: int = 0
    figures: Mapping[str, float | None] = {}
    pixels_of_values: Mapping[str, float] = {}
    """pixels with data, by value"""
    beyond: tuple[str, ...] = ()
    """quantities of which some values are impossible"""


def measure_zones(
    rasters: Path | str | Sequence[Path | str],
    zones: Path | str,
    *,
    values: Sequence[str] = (),
    bands: Mapping[str, int | str] | None = None,
    id_field: str | None = None,
    layer: str | Sequence[str] | None = None,
    scale: float | Mapping[str, float] | None = None,
    offset: float | None = None,
    table: Path | str | None = None,
    settings: Mapping[str, str] | None = None,
    out: Path | str | None = None,
    progress: Callable[[str], None] | None = None,
    readings: Readings | None = None,
) -> ZoneTable:
    """Measure zones in rasters (GeoTIFF, ENVI), one for each date, which is read from the name of the file or folder.

    Args:
        zones: GeoJSON, GeoPackage, shapefile or KML of polygons in any coordinate reference system; or a grid:
            ``x=500000,y=5000000,rows=20,columns=50,width=1.5,length=6,rotation=12,gap=0.5``. x and y are its upper left
            corner in the system of the first raster; width and length of a plot and the gap between plots are in its
            unit (metres if that is degrees); rotation about the corner is in degrees counter-clockwise.
        values: ``cover`` (plants as of ``measure_crop_weed_area``, and their index), ``height`` (as of
            ``estimate_canopy_height``), an index such as ``ndvi``, or the number or name of a band. Default: cover; of
            a raster with one band, height and the band.
        bands: role (R, G, B, RE, NIR) to number or name of a band, where the file does not say it. Roles left out are
            those of the file.
        id_field: field that names the zones, or several with commas between them (``block,plot``); ``row-number``: the
            place in the file. Default: the field with a usual name in which no two zones are equal.
        layer: layers of a GeoPackage, or folders of a KML file, that hold the zones; ``all``: all of them.
        scale: what the numbers of all bands are multiplied by, of all rasters or by the name of a raster; default: as
            the file says.
        offset: what is then added, as -1000 for numbers of Sentinel-2 since 2022; default: as the file says.
        table: plan of the trial (CSV or xlsx): a row per plot, joined by the columns that name it.
        settings: answers to questions on the plan: ``sheet``, ``plot`` (``Reihe,Spalte`` or ``Nr=plot_id``),
            ``treatment``, ``block``, ``control`` and ``decimal``.
        out: folder for ``zones.csv``, ``zones.geojson``, ``zones_map.png`` (first value, last date),
            ``zones_chart.png`` (dates), and with a plan ``treatments.csv``, ``treatments_all.csv`` and
            ``treatments.png``.
        progress: called with a line of text after every 1,000 zones.
        readings: is told what was read, and puts questions on it; by default nobody answers.

    Raises:
        UsageError: the extra ``zones`` is not installed.
        UndecidedError: several layers may hold the zones, several fields may name them, or several bands may have a
            colour (``Red-650`` and ``Red-668``).
        ToolError: ``invalid_argument``, ``file_not_found``, ``unreadable_file``, ``missing_metadata`` (a raster without
            a coordinate reference system), ``nothing_found`` (no zone in the rasters), ``limit`` (over 100,000 zones,
            or a large file), and as the tools.
    """
    readings = readings or Readings()
    given = [rasters] if isinstance(rasters, Path | str) else rasters
    in_order = _rasters_of([Path(path) for path in given], readings)
    scalings = {
        path: _stated(factor, offset) for path, factor in _scales_of(in_order, scale).items()
    }
    _ask_units(in_order, values, scalings, readings)
    bands = _ask_bands(in_order, values, bands, readings)
    offsets = {} if offset is not None else _offsets_of(in_order, values, bands, scalings, readings)
    answers = _known_settings(settings or {}, has_table=table is not None)
    collected: _Collected | None = None
    design: Design | None = None
    shown: ZoneMap | None = None
    for raster in in_order:
        scaling = scalings[raster.path]
        if raster.path in offsets:
            scaling = StatedScaling(scaling.scale if scaling else None, offsets[raster.path])
        with _opened(raster, scaling) as source:
            _say_scaling(source, readings)
            if collected is None:
                of_file = _zones_of(zones, source, id_field, layer, readings)
                plan = None if table is None else join_plan(Path(table), of_file, answers, readings)
                design = None if plan is None else design_of(plan, answers, readings)
                collected = _Collected(of_file if plan is None else plan.zones)
                collected.notes += plan.notes if plan is not None else ()
                readings.settle()
            placed = _placed_in(collected.zones, source)
            measured = quantities_of(source, raster.path, values, bands)
            found = _extract(placed, measured, source, progress)
            collected.add(raster, placed, measured, found, source.sampling.gsd_m)
            if out is not None and raster is in_order[-1]:
                picture = picture_under(source, raster.path, bands, placed.inside)
                gsd_m, crs = source.sampling.gsd_m, source.dataset.crs
                shown = ZoneMap(collected.zones, placed.inside, gsd_m, picture, crs)
    if collected is None:
        raise ToolError("invalid_argument", "there are no rasters", argument="rasters")
    rows, notes = collected.table(), collected.notes
    treatments: list[Row] = []
    if design is not None:
        treatments, of_design = compare_treatments(rows, design, collected.quantities)
        notes = [*notes, *of_design]
    files: tuple[Path, ...] = ()
    if out is not None and shown is not None:
        trial = None if design is None else Trial(design, treatments, collected.main)
        files, more = write_files(Path(out), rows, shown, collected.columns, trial)
        notes = [*notes, *more]
    return ZoneTable(rows, tuple(dict.fromkeys(notes)), files, treatments)


class _Collected:
    """Rows of the rasters so far, with notes.

    ``columns``: measured ones. Those that stay empty stand in the table, too. ``quantities``: those of them that hold
    what was asked for.
    """

    def __init__(self, zones: Zones) -> None:
        self.zones = zones
        self.notes = [*zones.notes]
        self._overlaps = overlapping(zones.polygons)
        if self._overlaps is None:
            self.notes.append("too many zones are near each other to say which ones overlap")
        self._rows: list[Row] = []
        self._untold: list[str] = []
        self.quantities: list[str] = []
        self.main: list[str] = []
        """The first column of each value that was asked for: veg_pct, mean_m, ndvi_mean."""

    def add(
        self,
        raster: _Raster,
        placed: _Placed,
        measured: Measured,
        found: Sequence[_Found],
        gsd_m: float | None,
    ) -> None:
        """Add what was found in a raster; ``gsd_m``: metres per pixel."""
        self.notes += [f"{raster.label}: {note}" for note in measured.notes]
        if raster.by_tag:
            self.notes.append(
                f"{raster.label}: its date is that of a tag, which may be the day it was made"
            )
        self.notes += _notes_on_values(raster, found, measured)
        if not self._rows:
            self.notes += _notes_on_repairs(self.zones, placed, gsd_m)
        flags = _flags_of(self.zones, self._overlaps, placed, found, measured)
        if measured.flags:
            self.notes.append(f"{raster.label}: flags of all zones: {', '.join(measured.flags)}")
        self._rows += _rows_of(self.zones, raster, placed, found, flags, measured, gsd_m)
        self._untold += measured.untold
        of_raster = [column for quantity in measured.quantities for column in quantity.columns]
        self.quantities = [*dict.fromkeys((*self.quantities, *of_raster))]
        first_of = {each.value: each.columns[0] for each in reversed(measured.quantities)}
        self.main = [*dict.fromkeys((*self.main, *reversed(first_of.values())))]

    @property
    def columns(self) -> list[str]:
        names = (column for row in self._rows for column in row if column not in ABOUT)
        return [*dict.fromkeys(names)]

    def table(self) -> list[Row]:
        """Return the rows, each with all columns.

        Raises:
            ToolError: ``nothing_found``: nothing was measured.
        """
        if not self.columns:
            hint = "check the coordinate reference systems"
            why = "no zone lies in the rasters"
            raise ToolError("nothing_found", why, argument="zones", hint=hint)
        columns = [*dict.fromkeys((*self._untold, *self.columns))]
        return _table_of(self._rows, self.zones, columns)


def _known_settings(settings: Mapping[str, str], *, has_table: bool) -> Mapping[str, str]:
    """Return the answers to questions on the plan.

    Raises:
        UsageError: there is no such setting, or no table.
    """
    for name in settings:
        if name not in SETTINGS:
            raise UsageError(f"--set {name}: there is no such setting", hint=", ".join(SETTINGS))
    if settings and not has_table:
        raise UsageError("--set is for the table of a trial", hint="add --table FILE")
    return settings


def _rasters_of(paths: Sequence[Path], readings: Readings) -> list[_Raster]:
    """Return the rasters, each once, with labels and dates; in the order of their dates if all have different ones."""
    different: dict[Path, Path] = {}
    for path in paths:
        if path.absolute() in different:
            readings.leave(f"{path}, which is given twice")
        different.setdefault(path.absolute(), path)
    labels = _labels_of([*different])
    paths = [*different.values()]
    tags = ["" if has_date(path) else _tag_of(path) for path in paths]
    dates = dates_of(paths, tags)
    rasters = [
        _Raster(path, label, date, by_tag=bool(date) and date == date_of_tag(tag))
        for path, label, date, tag in zip(paths, labels, dates, tags, strict=True)
    ]
    if are_sortable(dates) and len(set(dates)) == len(dates):
        rasters.sort(key=lambda raster: raster.date)
    if len(rasters) <= _LISTED:
        for raster in rasters:
            by = ", as a tag of the file says" if raster.by_tag else ""
            readings.take(
                f"{raster.label} {f'of {raster.date}{by}' if raster.date else '(no date)'}"
            )
    else:
        known = sorted(filter(None, dates))
        span = f"of {known[0]} to {known[-1]}" if known else "(no dates)"
        lacking = f", {dates.count('')} without a date" if known and "" in dates else ""
        readings.take(f"{len(rasters)} rasters {span}{lacking}")
    return rasters


def _labels_of(paths: Sequence[Path]) -> list[str]:
    """Return the end of each path from which rasters of one name are told apart: ``2023/ortho.tif``."""
    parts = [path.parts for path in paths]
    labels: list[str] = []
    for path in parts:
        same = [other for other in parts if other[-1] == path[-1]]
        length = 1
        while len({other[-length:] for other in same}) < len(same):
            length += 1
        labels.append("/".join(part.strip("/\\") for part in path[-length:]))
    return labels


def _opened(raster: _Raster, scaling: StatedScaling | None) -> AbstractContextManager[RasterSource]:
    """Open a raster of the command with the scaling that is stated for it."""
    return open_raster(raster.path, argument="rasters", shown_as=raster.label, stated=scaling)


def _tag_of(path: Path) -> str:
    """Return the tag DateTime of a raster; empty if there is none."""
    try:
        with open_raster(path) as source:
            return str(source.dataset.tags().get("TIFFTAG_DATETIME", ""))
    except ToolError:
        return ""  # raised again where the raster is measured


def _stated(scale: float | None, offset: float | None) -> StatedScaling | None:
    """Return the scaling that the user states, if any."""
    for name, value in (("scale", scale), ("offset", offset)):
        if value is not None and not math.isfinite(value):
            raise ToolError("invalid_argument", f"{name} must be a number", argument=name)
    if scale == 0:
        raise ToolError("invalid_argument", "scale must not be 0", argument="scale")
    return None if scale is None and offset is None else StatedScaling(scale, offset)


def _scales_of(
    rasters: Sequence[_Raster], scale: float | Mapping[str, float] | None
) -> dict[Path, float | None]:
    """Return the scale that the user states for each raster.

    Raises:
        ToolError: ``invalid_argument``: a name is that of no raster, or of several.
    """
    if not isinstance(scale, Mapping):
        return {raster.path: scale for raster in rasters}
    scales: dict[Path, float | None] = {raster.path: scale.get("") for raster in rasters}
    for name, factor in scale.items():
        named = [raster.path for raster in rasters if name in {raster.label, str(raster.path)}]
        named = named or [raster.path for raster in rasters if raster.path.name == name]
        if name and len(named) != 1:
            why = f"scale: {len(named) or 'none'} of the rasters is called {name}"
            hint = ", ".join(raster.label for raster in rasters[:_LISTED])
            raise ToolError("invalid_argument", why, argument="scale", hint=hint)
        if name:
            scales[named[0]] = factor
    return scales


def _ask_units(
    rasters: Sequence[_Raster],
    values: Sequence[str],
    scalings: dict[Path, StatedScaling | None],
    readings: Readings,
) -> None:
    """Ask for the unit of heights that may be no metres, and add the answers to ``scalings``."""
    of_heights: list[_Raster] = []
    are_known: list[bool] = []
    for raster in rasters:
        with _opened(raster, scalings[raster.path]) as source:
            if HEIGHT in values_of(source, raster.path, values):
                of_heights.append(raster)
                are_known.append(has_known_unit(source))
    if all(are_known):
        return
    paths = {raster.label: raster.path for raster in of_heights}
    heights: dict[str, Heights] = {}
    for raster in of_heights:
        with _opened(raster, scalings[raster.path]) as source:
            found = heights_of(source)
        if found is not None:
            heights[raster.label] = found
    for label, question in questions_on_units(heights, are_several=len(rasters) > 1).items():
        scale = float(readings.choose(question))
        scalings[paths[label]] = StatedScaling(scale, None)


def _ask_bands(
    rasters: Sequence[_Raster],
    values: Sequence[str],
    bands: Mapping[str, int | str] | None,
    readings: Readings,
) -> Mapping[str, int | str] | None:
    """Return the bands by role, with answers where several bands of a raster may have a role that is needed. An answer
    holds for all rasters, as the option does."""
    for raster in rasters:
        with _opened(raster, None) as source:
            questions = questions_on_bands(source, raster.path, values, bands)
        for question in questions.values():
            role, _, band = readings.choose(question).partition("=")
            bands = {**(bands or {}), role: band}
    return bands


def _offsets_of(
    rasters: Sequence[_Raster],
    values: Sequence[str],
    bands: Mapping[str, int | str] | None,
    scalings: Mapping[Path, StatedScaling | None],
    readings: Readings,
) -> dict[Path, float]:
    """Return the offset of each raster of Sentinel-2 that does not say its own; one question for all of them."""
    doubtful: dict[Path, Offsets] = {}
    names: list[str] = []
    for raster in rasters:
        with _opened(raster, scalings[raster.path]) as source:
            offsets = possible_offsets(source, raster.path, tuple(values), bands)
        if offsets is not None:
            doubtful[raster.path] = offsets
            names.append(raster.label)
    if not doubtful:
        return {}
    first = next(iter(doubtful.values()))
    answer = float(readings.choose(question_on_offset(names, first)))
    # Rasters in reflectances and rasters in numbers have offsets of the same meaning.
    return {
        path: offsets.proposed if answer else offsets.other for path, offsets in doubtful.items()
    }


def _say_scaling(source: RasterSource, readings: Readings) -> None:
    """Say how the numbers of a raster become values.

    Raises:
        ToolError: ``invalid_argument``: one of scale and offset is stated, while the file says both.
    """
    plain = Scaling()
    in_file = {source.scaling_in_file(band) for band in source.data_bands} - {plain}
    # A scale in the file and an offset that the command states do not contradict each other.
    are_apart = all(scaling.offset == 0 for scaling in in_file) and (
        source.stated is not None and source.stated.scale is None
    )
    if in_file and not are_apart and source.stated is not None and None in source.stated:
        which = "offset" if source.stated.offset is None else "scale"
        said = next(iter(in_file))
        why = (
            f"{source.name} says scale {said.scale:g} and offset {said.offset:g}, and one is given"
        )
        raise ToolError("invalid_argument", why, argument=which, hint=f"give {which}, too")
    used = {source.scaling_of(band) for band in source.data_bands} - {plain}
    for scaling in used:
        if scaling.scale == 0 or not (
            math.isfinite(scaling.scale) and math.isfinite(scaling.offset)
        ):
            raise ToolError(
                "unreadable_file",
                f"{source.name} says scale {scaling.scale:g} and offset {scaling.offset:g}",
                argument="rasters",
                hint="state both with --scale and --offset",
            )
    who = "the file" if source.stated is None else "the command"
    for scaling in sorted(used):
        how = f"times {scaling.scale:g} plus {scaling.offset:g}"
        readings.take(f"numbers of {source.name} {how} (as {who} says)")


def _zones_of(
    zones: Path | str,
    source: RasterSource,
    id_field: str | None,
    layer: str | Sequence[str] | None,
    readings: Readings,
) -> Zones:
    """Return the zones of a file or a grid."""
    if "=" not in str(zones) or Path(zones).is_file():
        return read_zones(Path(zones), id_field=id_field, layer=layer, readings=readings)
    for name, value in (("id", id_field), ("layer", layer)):
        if value is not None:
            why = f"{name} is for a file of zones, not for a grid"
            raise ToolError("invalid_argument", why, argument=name, hint=f"omit {name}")
    grid = _grid(str(zones), source)
    readings.take(f"a grid of {len(grid.names)} plots, named ROW-COLUMN")
    return grid


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
    fields = {
        "row": [r + 1 for r in row.ravel().tolist()],
        "column": [c + 1 for c in column.ravel().tolist()],
    }
    return Zones(names, polygons, crs, fields)


def _placed_in(zones: Zones, source: RasterSource) -> _Placed:
    """Return the zones in pixels of a raster. A zone that has no place in its system is empty."""
    shapely = import_of_zones("shapely")
    corners, zone = shapely.get_coordinates(zones.polygons, return_index=True)
    xs, ys = _in_system_of(source, zones.crs, corners)
    with np.errstate(all="ignore"):
        columns, rows = ~source.dataset.transform * (xs, ys)
        pixels = np.stack([columns, rows], axis=1)
        is_placed = (np.abs(pixels) < _FARTHEST_PX).all(axis=1)
    lost = np.unique(zone[~is_placed])
    if len(corners) and len(lost) == len(np.unique(zone)):
        x, y = corners[0]
        why = f"the corners of the zones (the first is {x:.9g}, {y:.9g}) have no place in {source.name}"
        hint = "check the coordinate reference system of the zones and of the raster"
        raise ToolError("invalid_argument", why, argument="zones", hint=hint)
    pixels[~is_placed] = 0
    polygons = shapely.set_coordinates(zones.polygons.copy(), pixels)
    polygons[lost] = shapely.Polygon()
    # Outlines may cross themselves in another system, far from the middle of a projection.
    crossed = ~shapely.is_valid(polygons)
    polygons[crossed] = shapely.make_valid(polygons[crossed], method="structure")
    inside = shapely.clip_by_rect(polygons, 0, 0, source.width, source.height)
    left, top, right, bottom = shapely.bounds(polygons).T
    beyond = np.max([-left, -top, right - source.width, bottom - source.height], axis=0)
    return _Placed(polygons, inside, shapely.area(polygons), shapely.area(inside), beyond)


def _in_system_of(
    source: RasterSource, crs: Any, corners: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return x and y of corners, (n, 2) in ``crs``, in the coordinate reference system of a raster; infinite where
    there is no place."""
    from rasterio._err import CPLE_BaseError  # rasterio has no public class of errors of PROJ
    from rasterio.crs import CRS
    from rasterio.errors import RasterioError
    from rasterio.warp import transform

    of_raster = source.dataset.crs
    if of_raster is None and crs is not None:
        why = f"{source.name} has no coordinate reference system"
        hint = "georeference it, or give a grid in pixels"
        raise ToolError("missing_metadata", why, argument="rasters", hint=hint)
    xs, ys = corners.T
    try:
        of_zones = CRS.from_user_input(crs) if crs else of_raster
        if of_zones != of_raster:
            xs, ys = map(np.asarray, transform(of_zones, of_raster, xs, ys)[:2])
    except (RasterioError, CPLE_BaseError, ValueError, OverflowError) as error:
        # The rest of the message is a description of both systems, of many lines.
        reason = " ".join(str(error).partition("{")[0].split())[:_LONGEST_REASON]
        why = f"zones cannot be placed in {source.name}: {reason}"
        hint = "check the coordinate reference systems of the zones and of the raster"
        raise ToolError("invalid_argument", why, argument="zones", hint=hint) from error
    return xs, ys


_LONGEST_REASON = 160
"""Characters of a reason of PROJ."""


def _extract(
    placed: _Placed,
    measured: Measured,
    source: RasterSource,
    progress: Callable[[str], None] | None,
) -> list[_Found]:
    """Return what was found in each zone."""
    refuse_large_zones(measured.layers, placed.areas_inside)
    found = [_Found() for _ in placed.polygons]
    zones = np.flatnonzero(placed.areas_inside > 0)
    if not len(zones):
        return found
    bounds = import_of_zones("shapely").bounds(placed.inside[zones])
    boxes = np.hstack([np.floor(bounds[:, :2]), np.ceil(bounds[:, 2:])]).astype(np.int64)
    blocks = BlockCache(source, measured.layers, boxes)
    order = zones[_neighbours_first(boxes, blocks.width, blocks.height)].tolist()
    for done, zone in enumerate(order):
        if progress and done and done % _PROGRESS_ZONES == 0:
            progress(f"{source.name}: {done} of {len(order)} zones")
        found[zone] = _measure_zone(placed.inside[zone], measured, blocks)
    return found


def _neighbours_first(boxes: NDArray[np.int64], width: int, height: int) -> NDArray[np.intp]:
    """Return the order of boxes, (n, 4), along a curve through all blocks of this size that seldom leaves a
    neighbourhood (Morton 1966), so that a block is read once."""
    left, top, right, bottom = boxes.T
    columns = (left + right) // 2 // width
    rows = (top + bottom) // 2 // height
    keys = np.zeros(len(boxes), np.int64)
    for bit in range(_BITS):
        keys |= ((columns >> bit) & 1) << (2 * bit)
        keys |= ((rows >> bit) & 1) << (2 * bit + 1)
    return np.lexsort((left, top, keys))


_BITS = 24
"""Bits of the number of a row or column of blocks: rasters have up to 2^31 pixels a side, blocks at least 100."""


def _measure_zone(polygon: Any, measured: Measured, blocks: BlockCache) -> _Found:
    """Return what was found in the part of a zone that lies in the raster, read in strips if it is large."""
    shares = PixelShares(polygon)
    left, top, right, bottom = shares.box
    statistics = [Statistics(quantity) for quantity in measured.quantities]
    pixels = 0.0
    whole_pixels = 0
    step = max(1, _READ_PX // (right - left))
    for start in range(top, bottom, step):
        end = min(start + step, bottom)
        of_rows = shares.of_rows(start, end)
        touched = np.flatnonzero(of_rows > LEAST_SHARE)
        weights = of_rows.ravel()[touched]
        values = blocks.read((left, start, right, end))
        values = values.reshape(len(values), -1).take(touched, axis=1)
        there = np.isfinite(values)
        if there.all():
            for one, of_one in zip(statistics, values, strict=True):
                one.add(of_one, weights)
            pixels += float(weights.sum())
            whole_pixels += int((weights >= WHOLE_SHARE).sum())
            continue
        for one, of_one, known in zip(statistics, values, there, strict=True):
            one.add(of_one[known], weights[known])
        complete = weights[there.all(axis=0)]
        pixels += float(complete.sum())
        whole_pixels += int((complete >= WHOLE_SHARE).sum())
    figures: dict[str, float | None] = {}
    for one in statistics:
        figures |= one.figures()
    of_values = {one.quantity.value: one.weight for one in statistics}
    beyond = [one.quantity.name for one in statistics if one.weight and one.is_beyond]
    return _Found(pixels, whole_pixels, figures, of_values, tuple(beyond))


def _notes_on_values(raster: _Raster, found: Sequence[_Found], measured: Measured) -> list[str]:
    """Return notes on impossible values, by quantity."""
    notes: list[str] = []
    for quantity in measured.quantities:
        zones = sum(quantity.name in one.beyond for one in found)
        if zones:
            low, high = quantity.limits
            where = count_text(zones, "zone")
            hint = "do its numbers have a scale or an offset (--scale, --offset)?"
            notes.append(
                f"{raster.label}: {quantity.name} is beyond {low:g} to {high:g} in {where}: {hint}"
            )
    return [*dict.fromkeys(notes)]


def _notes_on_repairs(zones: Zones, placed: _Placed, gsd_m: float | None) -> list[str]:
    """Return notes on outlines that cross themselves, with the area that is measured."""
    if zones.repaired is None:
        return []
    shapely = import_of_zones("shapely")
    notes: list[str] = []
    for place in np.flatnonzero(zones.repaired)[:_LISTED].tolist():
        area = float(placed.areas[place])
        size = f"{area * gsd_m**2:.4g} m²" if gsd_m else f"{area:.4g} pixels"
        parts = count_text(int(shapely.get_num_geometries(placed.polygons[place])), "part")
        name = zones.names[place]
        notes.append(f"zone {name}: its outline crosses itself; repaired to {size} in {parts}")
    more = int(zones.repaired.sum()) - _LISTED
    if more > 0:
        notes.append(f"{count_text(more, 'more outline')} crossed themselves and were repaired")
    return notes


def _flags_of(
    zones: Zones,
    overlaps: NDArray[np.bool_] | None,
    placed: _Placed,
    found: Sequence[_Found],
    measured: Measured,
) -> list[str]:
    """Return the flags of each zone, with spaces between them."""
    flags: list[str] = []
    has_outline = import_of_zones("shapely").area(zones.polygons) > 0
    for place, one in enumerate(found):
        of_zone = _flags_of_place(placed, place, one) if has_outline[place] else ["no_outline"]
        if one.beyond:
            of_zone.append("out_of_range")
        if overlaps is None:
            of_zone.append("overlaps_not_checked")
        elif overlaps[place]:
            of_zone.append("overlaps_zone")
        if zones.repaired is not None and zones.repaired[place]:
            of_zone.append("outline_repaired")
        flags.append(" ".join(dict.fromkeys((*of_zone, *zones.flags, *measured.flags))))
    return flags


def _flags_of_place(placed: _Placed, place: int, found: _Found) -> list[str]:
    """Return flags on what part of a zone lies in the raster, what part of that has data, and how few pixels it has."""
    area, area_inside = float(placed.areas[place]), float(placed.areas_inside[place])
    flags: list[str] = []
    if not area_inside:
        return ["outside"]
    is_rounded = placed.beyond[place] <= _ROUNDED_PX and area - area_inside <= _ROUNDED_SHARE * area
    if not is_rounded:
        flags.append("partly_outside")
    if not found.pixels:
        flags.append("no_data")
    elif found.pixels < area_inside / 2:
        flags.append("mostly_no_data")
    if found.pixels and found.whole_pixels < _FEW_PIXELS:
        flags.append("few_pixels")
    return flags


def _rows_of(
    zones: Zones,
    raster: _Raster,
    placed: _Placed,
    found: Sequence[_Found],
    flags: Sequence[str],
    measured: Measured,
    gsd_m: float | None,
) -> list[Row]:
    """Return the rows of a raster."""
    rows: list[Row] = []
    for place, (name, one) in enumerate(zip(zones.names, found, strict=True)):
        area = float(placed.areas[place])
        row: Row = {
            "zone": name,
            "raster": raster.label,
            "date": raster.date,
            "area_m2": area * gsd_m**2 if gsd_m else None,
            "pixels": one.pixels,
            "valid_pct": 100 * one.pixels / (area or 1),
        }
        row |= one.figures
        if measured.are_several:
            for value, pixels in one.pixels_of_values.items():
                row[f"{value}_valid_pct"] = 100 * pixels / (area or 1)
        row["flags"] = flags[place]
        rows.append(row)
    return rows


def _table_of(rows: Sequence[Row], zones: Zones, columns: Sequence[str]) -> list[Row]:
    """Return the rows, each with all columns, and with the fields of its zone behind them."""
    names = (*ABOUT[:-1], *columns, ABOUT[-1])
    fields = _field_columns(zones.fields, names)
    table: list[Row] = []
    for place, row in enumerate(rows):
        whole: Row = {name: row.get(name) for name in names}
        for field, column in fields.items():
            whole[column] = zones.fields[field][place % len(zones.names)]
        table.append(whole)
    return table


def _field_columns(fields: Mapping[str, Any], taken: Sequence[str]) -> dict[str, str]:
    """Return the column of each field: its name, with ``field_`` before it where the table has such a column."""
    used = {name.casefold() for name in taken}
    columns: dict[str, str] = {}
    for field in fields:
        column = field
        while column.casefold() in used:
            column = f"field_{column}"
        used.add(column.casefold())
        columns[field] = column
    return columns
