"""Polygons of zones from GeoJSON, GeoPackage, shapefile and KML, and which of them lie on top of each other.

OGR opens far more than files: a virtual layer or a web service is a small text that may have any name. So the content
decides what a file is. GeoJSON and KML are read without OGR. Of the other two formats, OGR sees a copy in a folder of
its own, with a fixed name and with the companions of the format alone.
"""

import json
import math
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from xml.etree.ElementTree import ParseError

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.core.readings import Choice, ReadingQuestion, Readings
from agrotools.core.texts import count_text, counted_names
from agrotools_tools.zones import import_of_zones
from agrotools_tools.zones.kml import FOLDER, is_kml, read_kml
from agrotools_tools.zones.names import name_zones

MOST_ZONES = 100_000
"""Largest number of zones of a table: about four minutes of processor time for each raster."""
_MOST_BYTES = 500_000_000
"""Largest size of a file of zones: 100,000 polygons of 100 corners each as GeoJSON have about 400 MB."""
_READABLE = (
    "zones are read from GeoJSON (.geojson), GeoPackage (.gpkg), shapefile (.shp) and KML (.kml; "
    "unpack ZIP and KMZ first)"
)

_HEAD_BYTES = 4_000
"""Bytes from which the format is told: KML may begin with a comment."""
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
_COLLECTION_TYPE = 7
_KINDS_OF_POLYGONS = ("Polygon", "Surface", "Unknown", "Geometry")
"""Words in the kind of a layer that may hold polygons; the last two are of layers of any shapes."""
_MOST_MEASURED = 10_000
"""Largest number of polygons of a layer whose area a question gives: a tenth of a second."""
_MOST_NAMED = 12
"""Folders or features that a line names."""

ALL_LAYERS = "all"
"""Answer to ``--layer`` that takes every layer with polygons, unless a layer has this name."""
_LAYER = "layer"
"""Field with the layer of each zone, if several layers are read."""

_LEAST_OVERLAP = 0.01
"""Share of the smaller zone from which an overlap is flagged: outlines drawn by hand share slivers along edges."""
_ZONES_AT_ONCE = 16
_MOST_PAIRS = 5_000_000
"""Largest number of pairs of zones with a common rectangle that are compared: some seconds."""


@dataclass(frozen=True, eq=False)
class Zones:
    """Zones of a file or a grid.

    ``polygons``: of shapely, (n,), valid. ``crs``: coordinate reference system, None if it is that of the raster.
    ``fields``: values of the zones by the name of the field in their file. ``repaired``: zones whose outline crossed
    itself, bool (n,), or None if there is none. ``flags``: of all zones.
    """

    names: list[str]
    polygons: NDArray[Any]
    crs: Any
    fields: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    repaired: NDArray[np.bool_] | None = None
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


class _Content(NamedTuple):
    """Shapes of a file, (n,), with their fields. ``place``: the layer that they are from; empty without layers."""

    shapes: NDArray[Any]
    fields: Mapping[str, Sequence[Any]]
    crs: Any
    place: str = ""


def read_zones(
    path: Path,
    *,
    id_field: str | None,
    layer: str | Sequence[str] | None,
    readings: Readings,
) -> Zones:
    """Read the zones of a file.

    Args:
        id_field: field that names the zones, or several with commas between them; None: to be found.
        layer: layers of a GeoPackage, or folders of a KML file; ``all`` for all, None: to be found. The zones of
            several GeoPackage layers have a field ``layer``.
        readings: is told what was read; several layers of polygons, or fields that name the zones, are a question.

    Raises:
        ToolError: ``file_not_found``, ``unreadable_file`` (another format, damaged), ``invalid_argument`` (no polygons,
            unknown coordinate reference system, unknown layer or field, equal names of plots), ``limit``.
    """
    shapely = import_of_zones("shapely")
    layers = [layer] if isinstance(layer, str) else [*dict.fromkeys(layer or ())]
    content = _content_of(path, layers, readings)
    polygons, fields = _polygons_of(content, path.name, readings)
    notes: list[str] = []
    flags: list[str] = []
    crs = content.crs
    if crs == _WGS84 and not _are_degrees(shapely.total_bounds(polygons)):
        crs = None
        notes.append(f"{path.name}: the corners of zones are no degrees of longitude and latitude")
    if crs is None:
        notes.append(
            f"{path.name}: the coordinate reference system is assumed to be that of the raster"
        )
        flags.append("crs_assumed")
    naming = name_zones(fields, len(polygons), path.name, given=id_field, readings=readings)
    crossed = ~shapely.is_valid(polygons)
    return Zones(
        names=naming.names,
        polygons=shapely.make_valid(polygons, method="structure"),
        crs=crs,
        fields=fields,
        repaired=crossed if crossed.any() else None,
        notes=(*notes, *naming.notes),
        flags=(*flags, *naming.flags),
    )


def _content_of(path: Path, layers: Sequence[str], readings: Readings) -> _Content:
    """Return the shapes of a file of any of the formats. ``layers``: those to read; none for those that are found."""
    kind = _kind_of(path)
    if kind == ".kml":
        return _read_kml(path, layers, readings)
    if kind == ".gpkg":
        return _read_by_ogr(path, kind, layers, readings)
    if layers:
        why = f"{path.name} has no layers"
        raise ToolError("invalid_argument", why, argument="layer", hint="omit the layer")
    return _read_geojson(path) if kind == ".geojson" else _read_by_ogr(path, kind, (), readings)


def _polygons_of(
    content: _Content, file: str, readings: Readings
) -> tuple[NDArray[Any], dict[str, list[Any]]]:
    """Return the polygons of a file with their fields, and say what was read of it.

    A feature without a shape is an empty polygon.
    """
    shapely = import_of_zones("shapely")
    shapes = np.where(shapely.is_missing(content.shapes), shapely.Polygon(), content.shapes)
    shapes = _with_polygons_of_collections(shapes, file, readings)
    are_polygons = np.isin(shapely.get_type_id(shapes), _POLYGON_TYPES)
    if not are_polygons.any():
        what = "other shapes than polygons" if len(shapes) else "no polygons"
        raise ToolError("invalid_argument", f"{file} holds {what}", argument="zones")
    polygons = shapes[are_polygons]
    if not np.isfinite(shapely.get_coordinates(polygons)).all():
        raise ToolError(
            "invalid_argument", f"{file} has corners that are no numbers", argument="zones"
        )
    _leave_others(shapes, np.flatnonzero(~are_polygons), "other than polygons", file, readings)
    without = np.flatnonzero(are_polygons & shapely.is_empty(shapes))
    _leave_others(shapes, without, "without an outline", file, readings)
    found = count_text(len(polygons), "polygon")
    several = int((shapely.get_num_geometries(polygons) > 1).sum())
    if several:
        found += f", {several} of several parts, which are measured together"
    readings.take(f"{content.place} of {file} ({found})" if content.place else f"{file} ({found})")
    kept = np.flatnonzero(are_polygons).tolist()
    fields = {
        name: [_plain(values[place]) for place in kept] for name, values in content.fields.items()
    }
    return polygons, fields


def _with_polygons_of_collections(
    shapes: NDArray[Any], file: str, readings: Readings
) -> NDArray[Any]:
    """Return shapes with the polygons of each collection in its place, if it holds any, and say what else it holds."""
    shapely = import_of_zones("shapely")
    shapes = shapes.copy()
    for place in np.flatnonzero(shapely.get_type_id(shapes) == _COLLECTION_TYPE).tolist():
        # Collections may hold collections; a shape of several polygons is one of the parts, too.
        parts = [shapes[place]]
        while any(shapely.get_type_id(part) == _COLLECTION_TYPE for part in parts):
            parts = shapely.get_parts(parts).tolist()
        polygons = [part for part in parts if shapely.get_type_id(part) in _POLYGON_TYPES]
        if polygons:
            others = count_text(len(parts) - len(polygons), "other shape")
            if len(parts) > len(polygons):
                readings.leave(f"{others} of feature {place + 1} of {file} beside its polygons")
            shapes[place] = shapely.MultiPolygon(shapely.get_parts(polygons).tolist())
    return shapes


def _leave_others(
    shapes: NDArray[Any], places: NDArray[np.intp], what: str, file: str, readings: Readings
) -> None:
    """Say which features are not measured, with the kinds of their shapes."""
    if not len(places):
        return
    chosen: list[Any] = shapes[places].tolist()
    named = [
        f"feature {place + 1} ({shape.geom_type})"
        for place, shape in zip(places.tolist(), chosen, strict=True)
    ]
    listed = counted_names(named, _MOST_NAMED, "; ")
    readings.leave(f"{count_text(len(named), 'shape')} of {file} {what}: {listed}")


def _plain(value: Any) -> Any:
    """Return a value of a field as None, text, a number or true or false."""
    if isinstance(value, np.generic):
        if isinstance(value, np.datetime64):
            return None if np.isnat(value) else str(value)
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


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
            head = file.read(_HEAD_BYTES)
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
    if is_kml(head):
        return ".kml"
    raise _unreadable(path, "it is of another format")


def _unreadable(path: Path, why: str) -> ToolError:
    return ToolError(
        "unreadable_file", f"{path.name} cannot be read: {why}", argument="zones", hint=_READABLE
    )


def _refuse_many(count: int, name: str) -> None:
    if count > MOST_ZONES:
        why = f"{name} holds {count} zones; at most {MOST_ZONES} are measured"
        raise ToolError("limit", why, argument="zones", hint="split the file into parts")


def _read_geojson(path: Path) -> _Content:
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
    records = [one.get("properties") for one in features]
    records = [record if isinstance(record, Mapping) else {} for record in records]
    names = [*dict.fromkeys(name for record in records for name in record)]
    fields = {str(name): [record.get(name) for record in records] for name in names}
    ids = [one.get("id") for one in features]
    # The standard has a place for an id outside the properties, which programs fill with the place in the file from 0.
    if None not in ids and [*map(str, ids)] != [*map(str, range(len(ids)))]:
        fields.setdefault("id", ids)
    return _Content(polygons, fields, _crs_of_geojson(document, path))


def _features_of(document: Any) -> list[Mapping[str, Any]]:
    kind = document["type"]
    if kind == "FeatureCollection":
        return document["features"]
    if kind == "Feature":
        return [document]
    if kind == "GeometryCollection":
        return [{"geometry": geometry} for geometry in document["geometries"]]
    if "coordinates" in document:
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


def _read_kml(path: Path, layers: Sequence[str], readings: Readings) -> _Content:
    """Return the placemarks with polygons of all folders, or of the folders ``layers``."""
    shapely = import_of_zones("shapely")
    try:
        found = read_kml(path)
    except (ValueError, ParseError, OSError, RecursionError, shapely.GEOSException) as error:
        raise _unreadable(path, f"it is no valid KML ({error})"[:200]) from error
    _refuse_many(len(found.polygons), path.name)
    if found.others:
        readings.leave(f"{count_text(found.others, 'placemark')} of {path.name} without a polygon")
    if found.links:
        readings.leave(f"{count_text(found.links, 'link')} of {path.name} to other files")
    folders = found.fields.get(FOLDER, [])
    different = [*dict.fromkeys(folder for folder in folders if folder)]
    listed = ", ".join(f'"{folder}"' for folder in different[:_MOST_NAMED])
    if not layers or (ALL_LAYERS in layers and ALL_LAYERS not in different):
        word = "folder" if len(different) == 1 else "folders"
        return _Content(
            found.polygons, found.fields, _WGS84, f"{word} {listed}" if different else ""
        )
    if unknown := [name for name in layers if name not in different]:
        why = f"{path.name} has no folder {unknown[0]!r} with polygons; it has {listed or 'none'}"
        raise ToolError("invalid_argument", why, argument="layer", candidates=tuple(different[:20]))
    for other in different:
        if other not in layers:
            number = count_text(folders.count(other), "polygon")
            readings.leave(f'folder "{other}" ({number})')
    chosen = [place for place, folder in enumerate(folders) if folder in layers]
    if outside := sum(not folder for folder in folders):
        readings.leave(f"{count_text(outside, 'polygon')} outside folders")
    fields = {name: [values[place] for place in chosen] for name, values in found.fields.items()}
    return _Content(found.polygons[chosen], fields, _WGS84, _named("folder", layers))


def _named(word: str, names: Sequence[str]) -> str:
    """Return the layers or folders that are read, as they are said."""
    quoted = [f'"{name}"' for name in names]
    return f"{word}{'s' * (len(names) > 1)} {', '.join(quoted)}"


def _read_by_ogr(path: Path, kind: str, layers: Sequence[str], readings: Readings) -> _Content:
    """Return the shapes of the layers of polygons of a GeoPackage, or of a shapefile."""
    shapely, pyogrio = import_of_zones("shapely"), import_of_zones("pyogrio")
    with TemporaryDirectory() as folder:
        copy = Path(folder) / f"zones{kind}"
        try:
            _copy_with_companions(path, copy)
        except OSError as error:
            raise _unreadable(path, str(error.strerror)) from error
        try:
            chosen = _layers_of(copy, path.name, layers, readings)
            abouts = [
                pyogrio.read_info(copy, layer=name, force_feature_count=True) for name in chosen
            ]
            _refuse_many(sum(about["features"] for about in abouts), path.name)
            contents = [_read_layer(copy, name) for name in chosen]
        except (
            pyogrio.errors.DataSourceError,
            pyogrio.errors.DataLayerError,
            shapely.GEOSException,
            IndexError,
            ValueError,
        ) as error:
            if isinstance(error, UnicodeDecodeError):
                why = f"the text of {path.name} is not in {error.encoding}, as its .cpg file says"
                hint = "write the right encoding into the .cpg file, such as ISO-8859-1"
                raise ToolError("unreadable_file", why, argument="zones", hint=hint) from error
            reason = str(error).replace(str(copy), path.name)
            raise _unreadable(path, reason) from error
    content = contents[0] if len(contents) == 1 else _joined(path.name, chosen, contents)
    return content._replace(place=_named("layer", chosen) if kind == ".gpkg" else "")


def _read_layer(copy: Path, layer: str) -> _Content:
    shapely, pyogrio = import_of_zones("shapely"), import_of_zones("pyogrio")
    about, _, shapes, values = pyogrio.raw.read(copy, layer=layer, force_2d=True)
    # A table without shapes has None instead of an array.
    polygons = shapely.from_wkb(np.empty(0, object) if shapes is None else shapes)
    fields = {
        name: _with_whole_numbers(column, dtype)
        for name, column, dtype in zip(about["fields"], values, about["dtypes"], strict=True)
    }
    return _Content(polygons, fields, about["crs"] or None)


def _joined(file: str, layers: Sequence[str], contents: Sequence[_Content]) -> _Content:
    """Return the shapes of several layers, with a field that says of which layer each is.

    Raises:
        ToolError: ``invalid_argument``: they have different coordinate reference systems.
    """
    if len({content.crs for content in contents}) > 1:
        systems = ", ".join(
            f"{layer}: {content.crs or 'none'}"
            for layer, content in zip(layers, contents, strict=True)
        )
        why = f"the layers of {file} have different coordinate reference systems: {systems[:200]}"
        hint = "measure each layer by itself, with an --out of its own"
        raise ToolError("invalid_argument", why, argument="layer", hint=hint)
    names = [*dict.fromkeys(name for content in contents for name in content.fields)]
    fields = {
        name: [
            value
            for content in contents
            for value in content.fields.get(name, [None] * len(content.shapes))
        ]
        for name in names
    }
    own = _LAYER
    while own.casefold() in map(str.casefold, names):
        own = f"{own}_of_file"  # the file has a field of that name
    of_layer = [
        layer
        for layer, content in zip(layers, contents, strict=True)
        for _ in range(len(content.shapes))
    ]
    shapes = np.concatenate([content.shapes for content in contents])
    return _Content(shapes, {own: of_layer, **fields}, contents[0].crs)


def _layers_of(copy: Path, file: str, given: Sequence[str], readings: Readings) -> list[str]:
    """Return the layers to read. Several with polygons are a question, unless some are ``given``."""
    pyogrio = import_of_zones("pyogrio")
    kinds = dict(pyogrio.list_layers(copy).tolist())
    counts: dict[str, int] = {}
    systems: dict[str, str | None] = {}
    for name, kind in kinds.items():
        if kind and any(word in kind for word in _KINDS_OF_POLYGONS):
            about = pyogrio.read_info(copy, layer=name, force_feature_count=True)
            counts[name], systems[name] = about["features"], about["crs"]
    filled = [name for name in counts if counts[name]] or [*counts][:1] or [*kinds][:1]
    if not filled:
        raise ToolError("invalid_argument", f"{file} holds no polygons", argument="zones")
    filled.sort(key=lambda name: -counts.get(name, 0))  # plots are more than boundaries
    means_all = ALL_LAYERS in given and ALL_LAYERS not in filled
    unknown = [name for name in given if name not in filled]
    if unknown and not means_all:
        why = f"{file} has no layer {unknown[0]!r} with polygons; it has {', '.join(filled)}"
        raise ToolError("invalid_argument", why, argument="layer", candidates=tuple(filled[:20]))
    chosen = filled if means_all else [*given] or filled[:1]
    if not given and len(filled) > 1:
        choices = [Choice(name, _size_of(copy, name, counts[name])) for name in filled]
        if ALL_LAYERS not in filled and len({systems[name] for name in filled}) == 1:
            total = count_text(sum(counts[name] for name in filled), "polygon")
            choices.append(Choice(ALL_LAYERS, f"{total}, with their layer in a column"))
        question = ReadingQuestion(
            f"Which layer of {file} holds the zones?", "--layer", tuple(choices)
        )
        answer = readings.choose(question)
        chosen = [answer] if answer in filled else filled
    for name, kind in kinds.items():
        if name not in chosen:
            what = f"layer {name}" if kind else f"table {name}"
            number = f" ({count_text(counts[name], 'polygon')})" if counts.get(name) else ""
            readings.leave(f"{what} of {file}{number}")
    return chosen


def _size_of(copy: Path, layer: str, count: int) -> str:
    """Return the number of polygons of a layer and, if its system has a unit of length, their area."""
    pyogrio, shapely = import_of_zones("pyogrio"), import_of_zones("shapely")
    number = count_text(count, "polygon")
    if count > _MOST_MEASURED:
        return number
    about, _, shapes, _ = pyogrio.raw.read(copy, layer=layer, columns=[], force_2d=True)
    unit_m = _unit_of(about["crs"])
    area = float(shapely.area(shapely.from_wkb(shapes)).sum())
    return f"{number}, {area * unit_m**2:.4g} m²" if unit_m else number


def _unit_of(crs: str | None) -> float | None:
    """Return the metres per unit of a projected coordinate reference system."""
    from rasterio.crs import CRS
    from rasterio.errors import CRSError

    try:
        known = CRS.from_user_input(crs) if crs else None
        return known.linear_units_factor[1] if known is not None and known.is_projected else None
    except CRSError:
        return None


def _with_whole_numbers(values: NDArray[Any], dtype: str) -> list[Any]:
    """Return a column; whole numbers, which are read as fractions where some are missing, are whole again."""
    column = values.tolist() if values.dtype.kind != "M" else [*values]
    if not dtype.startswith("int") or values.dtype.kind != "f":
        return column
    return [None if math.isnan(value) else int(value) for value in column]


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
