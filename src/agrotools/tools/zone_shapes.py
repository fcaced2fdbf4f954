"""Polygons of zones from GeoJSON, GeoPackage and shapefile, and which of them lie on top of each other.

OGR opens far more than files: a virtual layer or a web service is a small text that may have any name. So the content
decides what a file is. GeoJSON is read here, without OGR. Of the other two formats, OGR sees a copy in a folder of its
own, with a fixed name and with the companions of the format alone.
"""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.core.base import import_of_extra

import_of_zones = partial(
    import_of_extra, extra="zones", message="zones need packages that are not installed"
)
"""Function that imports a package of the extra ``zones``."""

MOST_ZONES = 100_000
"""Largest number of zones of a table: about four minutes of processor time for each raster."""
_MOST_BYTES = 500_000_000
"""Largest size of a file of zones: 100,000 polygons of 100 corners each as GeoJSON have about 400 MB."""
_NAMES = ("id", "plot_id", "zone_id", "plot", "zone", "name")
"""Fields that name zones; the first one with different values is used."""
_READABLE = "zones are read from GeoJSON (.geojson), GeoPackage (.gpkg) and shapefile (.shp)"

_SHAPEFILE_CODE = b"\x00\x00\x27\x0a"
_SQLITE = b"SQLite format 3\x00"
_GEOPACKAGE_IDS = (b"GPKG", b"GP10", b"GP11")
"""Application ids of GeoPackage 1.2 and later, 1.0 and 1.1, at byte 68 of the file."""
_COMPANIONS = {".shp": (".shx", ".dbf", ".prj", ".cpg"), ".gpkg": ()}
_LOG_OF_SQLITE = "-wal"
"""Ending that is appended to the name of the file with changes that SQLite has not yet moved into the database."""

_WGS84 = "OGC:CRS84"
_CRS_NAME = re.compile(r"(?:urn:ogc:def:crs:)?(EPSG|OGC):(?:[\d.]*:)?(\w+)", re.IGNORECASE)
"""Names of coordinate reference systems in GeoJSON. PROJ would also open files and addresses under other names."""
_POLYGON_TYPES = (3, 6)
"""Numbers of polygons and multipolygons in shapely."""

_LEAST_OVERLAP = 0.01
"""Share of the smaller zone from which an overlap is flagged: outlines drawn by hand share slivers along edges."""
_ZONES_AT_ONCE = 16
_MOST_PAIRS = 5_000_000
"""Largest number of pairs of zones with a common rectangle that are compared: some seconds."""


@dataclass(frozen=True, eq=False)
class Zones:
    """Zones of a file or a grid.

    ``polygons``: of shapely, (n,). ``crs``: coordinate reference system, None if it is that of the raster. ``flags``:
    of all zones.
    """

    names: list[str]
    polygons: NDArray[Any]
    crs: Any
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def read_zones(path: Path) -> Zones:
    """Read the zones of a file. ToolError ``file_not_found``, ``unreadable_file`` (another format, damaged),
    ``invalid_argument`` (other shapes than polygons, unknown coordinate reference system), ``limit``."""
    shapely = import_of_zones("shapely")
    kind = _kind_of(path)
    if kind == ".geojson":
        polygons, fields, crs = _read_geojson(path)
    else:
        polygons, fields, crs = _read_by_ogr(path, kind)
    polygons = np.where(shapely.is_missing(polygons), shapely.Polygon(), polygons)
    if not len(polygons) or not np.isin(shapely.get_type_id(polygons), _POLYGON_TYPES).all():
        raise ToolError(
            "invalid_argument", f"{path.name} holds other shapes than polygons", argument="zones"
        )
    if not np.isfinite(shapely.get_coordinates(polygons)).all():
        raise ToolError(
            "invalid_argument", f"{path.name} has corners that are no numbers", argument="zones"
        )
    notes, flags = [], []
    if crs == _WGS84 and not _are_degrees(shapely.total_bounds(polygons)):
        crs = None
        notes.append(f"{path.name}: the corners of zones are no degrees of longitude and latitude")
    if crs is None:
        notes.append(
            f"{path.name}: the coordinate reference system is assumed to be that of the raster"
        )
        flags.append("crs_assumed")
    names, of_names, flags_of_names = _names_of(fields, len(polygons), path.name)
    polygons = shapely.make_valid(polygons, method="structure")
    return Zones(names, polygons, crs, (*notes, *of_names), (*flags, *flags_of_names))


def _kind_of(path: Path) -> str:
    """Return the format of a file by its content, as the ending of its name."""
    if not path.is_file():
        hint = "give a file of polygons, or a grid such as x=500000,y=5000000,rows=20,columns=50"
        raise ToolError(
            "file_not_found", f"there is no file {path.name}", argument="zones", hint=hint
        )
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(100)
    except OSError as error:
        raise _unreadable(path, str(error.strerror)) from error
    if size > _MOST_BYTES:
        why = f"{path.name} has {size // 1_000_000} MB; at most {_MOST_BYTES // 1_000_000} are read"
        raise ToolError("limit", why, argument="zones", hint="save the zones alone, or parts")
    if head.startswith(_SQLITE) and head[68:72] in _GEOPACKAGE_IDS:
        return ".gpkg"
    if head.startswith(_SHAPEFILE_CODE) and path.suffix.lower() == ".shp":
        return ".shp"
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        return ".geojson"
    raise _unreadable(path, "it is of another format")


def _unreadable(path: Path, why: str) -> ToolError:
    return ToolError(
        "unreadable_file", f"{path.name} cannot be read: {why}", argument="zones", hint=_READABLE
    )


def _refuse_many(count: int, name: str) -> None:
    if count > MOST_ZONES:
        why = f"{name} holds {count} zones; at most {MOST_ZONES} are measured"
        raise ToolError("limit", why, argument="zones", hint="split the file into parts")


def _read_geojson(path: Path) -> tuple[NDArray[Any], Mapping[str, Sequence[Any]], str | None]:
    """Return polygons, fields by name in small letters, and the coordinate reference system of a GeoJSON file."""
    shapely = import_of_zones("shapely")
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
        features = _features_of(document)
        _refuse_many(len(features), path.name)
        shapes = [json.dumps(one["geometry"]) if one.get("geometry") else None for one in features]
        polygons = shapely.force_2d(shapely.from_geojson(np.array(shapes, object)))
    except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError) as error:
        raise _unreadable(path, f"it is no valid GeoJSON ({error})"[:200]) from error
    except shapely.GEOSException as error:
        raise _unreadable(path, f"it is no valid GeoJSON ({error})"[:200]) from error
    records = [one.get("properties") or {} for one in features]
    records = [
        {str(key).lower(): value for key, value in record.items()}
        if isinstance(record, Mapping)
        else {}
        for record in records
    ]
    fields = {
        name: [record.get(name) for record in records]
        for name in _NAMES
        if any(record.get(name) is not None for record in records)
    }
    # The standard has a place for an id outside the properties.
    if "id" not in fields and any("id" in one for one in features):
        fields["id"] = [one.get("id") for one in features]
    return polygons, fields, _crs_of_geojson(document, path)


def _features_of(document: Any) -> list[Mapping[str, Any]]:
    kind = document["type"]
    if kind == "FeatureCollection":
        return document["features"]
    if kind == "Feature":
        return [document]
    if kind in ("Polygon", "MultiPolygon"):
        return [{"geometry": document}]
    raise ValueError(f"its type is {str(kind)[:40]!r}")


def _crs_of_geojson(document: Mapping[str, Any], path: Path) -> str | None:
    """Return the system named by the member ``crs`` of GeoJSON 2008, by default longitude and latitude on WGS 84."""
    if "crs" not in document:
        return _WGS84
    stated = document["crs"]
    if stated is None:
        return None
    try:
        name = str(stated["properties"]["name"])
    except (KeyError, TypeError):
        name = str(stated)
    found = _CRS_NAME.fullmatch(name)
    if found is None:
        why = f"{path.name}: the coordinate reference system {name[:60]!r} is not known"
        hint = "name it as urn:ogc:def:crs:EPSG::32633, or save the zones as GeoPackage"
        raise ToolError("invalid_argument", why, argument="zones", hint=hint)
    return f"{found[1].upper()}:{found[2]}"


def _read_by_ogr(path: Path, kind: str) -> tuple[NDArray[Any], Mapping[str, Sequence[Any]], Any]:
    """Return what :func:`_read_geojson` does of a GeoPackage or shapefile: of its first layer of polygons."""
    shapely, pyogrio = import_of_zones("shapely"), import_of_zones("pyogrio")
    with TemporaryDirectory() as folder:
        copy = Path(folder) / f"zones{kind}"
        try:
            _copy_with_companions(path, copy)
        except OSError as error:
            raise _unreadable(path, str(error.strerror)) from error
        try:
            layers = pyogrio.list_layers(copy).tolist()
            layer = next((name for name, kind in layers if "Polygon" in (kind or "")), layers[0][0])
            about = pyogrio.read_info(copy, layer=layer, force_feature_count=True)
            _refuse_many(about["features"], path.name)
            about, _, shapes, values = pyogrio.raw.read(copy, layer=layer, force_2d=True)
            polygons = shapely.from_wkb(shapes)
        except (
            pyogrio.errors.DataSourceError,
            pyogrio.errors.DataLayerError,
            shapely.GEOSException,
            IndexError,
            ValueError,
        ) as error:
            reason = str(error).replace(str(copy), path.name)
            raise _unreadable(path, reason) from error
    fields = {
        name.lower(): column.tolist()
        for name, column in zip(about["fields"], values, strict=True)
        if name.lower() in _NAMES
    }
    return polygons, fields, about["crs"] or None


def _copy_with_companions(path: Path, copy: Path) -> None:
    shutil.copyfile(path, copy)
    log = path.with_name(path.name + _LOG_OF_SQLITE)
    if copy.suffix == ".gpkg" and log.is_file():
        shutil.copyfile(log, copy.with_name(copy.name + _LOG_OF_SQLITE))
    for suffix in _COMPANIONS[copy.suffix]:
        for companion in (path.with_suffix(suffix), path.with_suffix(suffix.upper())):
            if companion.is_file():
                shutil.copyfile(companion, copy.with_suffix(suffix))
                break


def _are_degrees(bounds: NDArray[Any]) -> bool:
    """Return True if a bounding box (x, y, x, y) can be in longitude and latitude. One without corners is NaN."""
    return not (np.abs(bounds) > (360, 90, 360, 90)).any()


def _names_of(
    fields: Mapping[str, Sequence[Any]], count: int, file: str
) -> tuple[list[str], tuple[str, ...], tuple[str, ...]]:
    """Return the names of zones, with notes and flags on why they are numbers or not of the first field."""
    notes: list[str] = []
    for field in (name for name in _NAMES if name in fields):
        names = [f"{v:.15g}" if isinstance(v, float) else str(v) for v in fields[field]]
        lacking = sum(name.strip() in ("", "None", "nan") for name in names)
        equal = count - len(set(names))
        if not lacking and not equal:
            return names, (*notes, f"{file}: zones are named by the field {field}"), ()
        fault = f"no value for {lacking} zones" if lacking else "equal values"
        notes.append(f"{file}: the field {field} has {fault}, so it names no zones")
    numbers = [str(number) for number in range(1, count + 1)]
    note = f"{file}: zones are numbered in the order of the file"
    return numbers, (*notes, note), ("zones_numbered",) if notes else ()


def overlapping(polygons: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Return which polygons share more than :data:`_LEAST_OVERLAP` of the smaller of two; None if there are too many
    pairs to compare."""
    shapely = import_of_zones("shapely")
    tree = shapely.STRtree(polygons)
    areas = shapely.area(polygons)
    found = np.zeros(len(polygons), np.bool_)
    compared = 0
    for start in range(0, len(polygons), _ZONES_AT_ONCE):
        some = np.arange(start, min(start + _ZONES_AT_ONCE, len(polygons)))
        places, others = tree.query(polygons[some])
        firsts = some[places]
        firsts, others = firsts[firsts < others], others[firsts < others]
        compared += len(firsts)
        if compared > _MOST_PAIRS:
            return None
        shared = shapely.area(shapely.intersection(polygons[firsts], polygons[others]))
        overlaps = shared > _LEAST_OVERLAP * np.minimum(areas[firsts], areas[others])
        found[firsts[overlaps]] = True
        found[others[overlaps]] = True
    return found
