"""Maps for geographic information systems: what a tool found in a georeferenced raster, as GeoTIFF and GeoJSON.

GeoTIFF files have the coordinate reference system of the raster, and its transform, shifted to the region and scaled
where the tool made a smaller map. GeoJSON files follow RFC 7946: longitude and latitude on WGS 84, in degrees.
"""

import csv
import io
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import orjson
from numpy.typing import NDArray

from agrotools.calling.result import ToolResult
from agrotools.calling.workspace import MapLayer, save_artifact
from agrotools.core import ToolError
from agrotools.vision import Box
from agrotools.vision.formats import Format, file_format
from agrotools.vision.rasters import open_raster

_DECIMALS = 8
"""Decimals of degrees, about 1 mm."""
_NO_DATA = 255
"""Class of a mask that stands for no data."""
_CLASS = re.compile(r"(\d+) ([a-z][^,;:]*)")


class _Grid(NamedTuple):
    """Place of a raster: ``crs`` and ``transform`` of rasterio, width and height in pixels."""

    crs: Any
    transform: Any
    width: int
    height: int

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.width, self.height

    def place_of(self, shape: tuple[int, ...], region: Box | None) -> Any:
        """Return the transform of a map of this shape, which shows the whole raster or the region, or None."""
        if shape == (self.height, self.width):
            return self.transform
        x0, y0, x1, y1 = region or (0, 0, self.width, self.height)
        x0, y0 = max(0, x0), max(0, y0)
        x1, y1 = min(self.width, x1), min(self.height, y1)
        width, height = x1 - x0, y1 - y0
        factor = _divided_up(max(width, height), max(shape))
        if shape != (_divided_up(height, factor), _divided_up(width, factor)):
            return None
        return self.transform * type(self.transform)(factor, 0, x0, 0, factor, y0)


def _divided_up(number: int, by: int) -> int:
    """Return a quotient, rounded up."""
    return -(-number // by)


def save_maps(
    result: ToolResult, layers: Iterable[MapLayer], paths: Iterable[Path], region: Box | None
) -> None:
    """Save the masks, tables of objects and map layers of a result as GeoTIFF and GeoJSON, at the place of the first
    of the rasters ``paths`` that has a coordinate reference system; ``region`` is in its pixels. Nothing is saved if
    none has one."""
    paths = [*paths]
    grid = _first_placed(paths)
    if grid is None:
        return
    for layer in layers:
        _save_layer(layer, grid)
    # Points are pixels of the first file.
    first = _grid_of(paths[0], get_args(Format))
    has_points_on_grid = first is not None and first.size == grid.size
    for field_name, artifact in result.artifact_fields().items():
        content = result.content(artifact)
        stem = Path(artifact.name).stem
        if artifact.kind == "mask":
            meaning = type(result).model_fields[field_name].description or ""
            _save_mask(stem, content, meaning, grid, region)
        elif artifact.kind == "table" and content.startswith(b"x_px,y_px") and has_points_on_grid:
            _save_points(stem, content, grid)


def _first_placed(paths: Iterable[Path]) -> _Grid | None:
    """Return the grid of the first raster that has a place on the earth."""
    for path in paths:
        grid = _grid_of(path, ("tiff", "envi"))
        if grid is not None and grid.crs is not None and not grid.transform.is_identity:
            return grid
    return None


def _save_layer(layer: MapLayer, grid: _Grid) -> None:
    """Save the values of a map layer, and the areas that are marked in it."""
    transform = grid.place_of(layer.values.shape, layer.box)
    if not transform:
        return
    _save_raster(layer.name, layer.values, grid, transform, np.nan, layer.meaning)
    marked = layer.marked.astype(np.uint8)
    _save_polygons(layer.name, marked, {1: layer.marked_as}, grid, transform)


def _save_mask(stem: str, content: bytes, meaning: str, grid: _Grid, region: Box | None) -> None:
    """Save the classes of a mask and their areas. ``meaning``: names of the classes, as ``1 crop, 2 weeds``."""
    classes = _classes_of(content)
    transform = grid.place_of(classes.shape, region) if classes is not None else None
    if classes is None or not transform:
        return
    names = {int(number): name.strip() for number, name in _CLASS.findall(meaning)}
    nodata = _NO_DATA if _NO_DATA in names else None
    _save_raster(stem, classes, grid, transform, nodata, meaning)
    _save_polygons(stem, classes, names, grid, transform)


def _grid_of(path: Path, formats: Collection[str]) -> _Grid | None:
    """Return the grid of a raster or picture of these formats; None if it is neither."""
    with suppress(ToolError):
        if file_format(path) in formats:
            with open_raster(path) as source:
                return _Grid(
                    source.dataset.crs, source.dataset.transform, source.width, source.height
                )
    return None


def _classes_of(content: bytes) -> NDArray[np.uint8] | None:
    from PIL import Image

    with Image.open(io.BytesIO(content)) as image:
        return np.asarray(image, np.uint8) if image.mode in ("P", "L") else None


def _save_raster(
    stem: str, values: NDArray[Any], grid: _Grid, transform: Any, nodata: float | None, meaning: str
) -> None:
    from rasterio.io import MemoryFile

    rows, columns = values.shape
    profile = {
        "driver": "GTiff",
        "height": rows,
        "width": columns,
        "count": 1,
        "dtype": values.dtype.name,
    }
    place = {"crs": grid.crs, "transform": transform, "nodata": nodata, "compress": "deflate"}
    with MemoryFile() as memory:
        with memory.open(**profile, **place) as target:
            target.write(values, 1)
            target.update_tags(TIFFTAG_IMAGEDESCRIPTION=meaning)
        save_artifact(f"{stem}.tif", "mask", memory.read())


def _save_polygons(
    stem: str, classes: NDArray[np.uint8], names: Mapping[int, str], grid: _Grid, transform: Any
) -> None:
    """Save the areas (pixels connected by edges) of all classes but 0 and 255, with class and size."""
    from rasterio.features import shapes

    marked = (classes != 0) & (classes != _NO_DATA)
    areas = [
        (shape, int(value)) for shape, value in shapes(classes, mask=marked, transform=transform)
    ]
    pixel = abs(transform.determinant)
    properties = [
        {
            "value": value,
            "class": names.get(value, str(value)),
            "area_px": round(_area(shape["coordinates"]) / pixel),
        }
        for shape, value in areas
    ]
    _save_features(stem, [shape for shape, _ in areas], properties, grid)


def _save_points(stem: str, table: bytes, grid: _Grid) -> None:
    rows = [
        {name: float(value) for name, value in row.items()}
        for row in csv.DictReader(io.StringIO(table.decode()))
    ]
    points = [
        {"type": "Point", "coordinates": grid.transform * (row["x_px"], row["y_px"])}
        for row in rows
    ]
    _save_features(stem, points, rows, grid)


def _save_features(
    stem: str,
    geometries: Sequence[Mapping[str, Any]],
    properties: Sequence[Mapping[str, Any]],
    grid: _Grid,
) -> None:
    from rasterio.errors import RasterioError
    from rasterio.warp import transform_geom

    try:
        placed = (
            transform_geom(grid.crs, "OGC:CRS84", geometries, precision=_DECIMALS)
            if geometries
            else []
        )
    except RasterioError:  # a local coordinate system without a place on the earth
        return
    features = [
        {"type": "Feature", "geometry": _wound(geometry), "properties": values}
        for geometry, values in zip(placed, properties, strict=True)
    ]
    save_artifact(
        f"{stem}.geojson",
        "table",
        orjson.dumps({"type": "FeatureCollection", "features": features}),
    )


def _wound(geometry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a geometry with outer rings counter-clockwise and holes clockwise, as RFC 7946 asks."""
    if geometry["type"] != "Polygon":
        return dict(geometry)
    rings = [
        ring if (_signed_area(ring) > 0) == (number == 0) else ring[::-1]
        for number, ring in enumerate(geometry["coordinates"])
    ]
    return {"type": "Polygon", "coordinates": rings}


def _area(rings: Any) -> float:
    outer, *holes = (abs(_signed_area(ring)) for ring in rings)
    return outer - sum(holes)


def _signed_area(ring: Any) -> float:
    x, y = np.asarray(ring, np.float64).T
    x, y = x - x[0], y - y[0]
    return float((x[:-1] * y[1:] - x[1:] * y[:-1]).sum() / 2)
