"""Open-Canopy as its authors lay it out, small: a row of 1 km tiles a year, virtual rasters over them, and the grid."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.transform import from_origin

TILE_PX = 667
PIXEL_M = 1.5
LEFT_M, TOP_M = 700_000, 6_600_000


@dataclass(frozen=True)
class FakeTile:
    """``looks``: ``forest``, ``town`` (roofs over a third of it), ``meadow``, ``lake``, ``hole`` (listed in the virtual
    raster, not there), ``zeros`` (a hole that reads as 0) or ``tower`` (a spike of 150 m)."""

    split: str = "test"
    looks: str = "forest"


ROW = (FakeTile(), FakeTile("buffer"), FakeTile(looks="town"), FakeTile("train"), FakeTile())


def write_open_canopy(
    folder: Path, rows: dict[int, Sequence[FakeTile]] | None = None, *, crs: str | None = "urn:ogc:def:crs:EPSG::2154"
) -> Path:
    """Tiles of several years, each year in a row of its own; returns ``folder``, which has a folder canopy_height."""
    root = folder / "canopy_height"
    features = []
    for number, (year, tiles) in enumerate((rows or {2021: ROW, 2023: ROW}).items()):
        top = TOP_M - 3000 * number
        written = {"lidar": [], "lidar_classification": []}
        for column, tile in enumerate(tiles):
            heights, classes = draw_tile(year, column, tile.looks)
            left = LEFT_M + 1000 * column
            for name, values in (("lidar", heights), ("lidar_classification", classes)):
                path = root / str(year) / name / f"tile_{column}.tif"
                path.parent.mkdir(parents=True, exist_ok=True)
                written[name].append(path)
                if tile.looks != "hole":
                    _write(path, values, left, top)
            x1, y0 = left + 1000, top - 1000
            ring = [[left, top], [x1, top], [x1, y0], [left, y0], [left, top]]
            shape = {"type": "MultiPolygon", "coordinates": [[ring]]} if column % 2 else _polygon(ring)
            properties = {"split": tile.split, "lidar_year": year, "X": "0700"}
            features.append({"type": "Feature", "properties": properties, "geometry": shape})
        for name, dtype in (("lidar", "UInt16"), ("lidar_classification", "Byte")):
            _write_virtual(root / str(year) / f"{name}.vrt", written[name], dtype, top)
        (root / str(year) / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
    named = {"crs": {"type": "name", "properties": {"name": crs}}} if crs else {}
    grid = {"type": "FeatureCollection", **named, "features": features}
    (root / "geometries.geojson").write_text(json.dumps(grid))
    return folder


def draw_tile(year: int, column: int, looks: str) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Heights in decimetres, 0 where the ground is bare, and the class of most laser returns."""
    rng = np.random.default_rng([year, column])
    coarse = rng.normal(0.4, 1.0, (14, 14)).astype(np.float32)
    stand = cv2.resize(coarse, (TILE_PX, TILE_PX), interpolation=cv2.INTER_CUBIC) + rng.normal(0, 0.1, (TILE_PX,) * 2)
    heights = np.clip(np.rint(120 * stand), 0, 380).astype(np.uint16)
    if looks in ("meadow", "lake"):
        heights = np.minimum(heights, 8).astype(np.uint16)
    classes = np.select([heights >= 15, heights > 5, heights > 0], [5, 4, 3], 2).astype(np.uint8)
    roof = np.zeros(classes.shape, bool)
    roof[100:130, 200:240] = True
    if looks == "town":
        roof[: TILE_PX // 3] = True
    heights[roof], classes[roof] = 95, 6
    heights[400:404, 500:506], classes[400:404, 500:506] = 210, 1
    if looks == "lake":
        heights[50:], classes[50:] = 0, 9
    if looks == "tower":
        heights[::40, ::40], classes[::40, ::40] = 1500, 5
    if looks == "zeros":
        heights[:], classes[:] = 0, 5
    return heights, classes


def _polygon(ring: list[list[float]]) -> dict[str, object]:
    return {"type": "Polygon", "coordinates": [ring]}


def _write(path: Path, values: NDArray[np.uint16] | NDArray[np.uint8], left: float, top: float) -> None:
    profile = {
        "driver": "GTiff", "count": 1, "height": TILE_PX, "width": TILE_PX, "dtype": values.dtype.name,
        "crs": "EPSG:2154", "transform": from_origin(left, top, PIXEL_M, PIXEL_M), "compress": "deflate",
    }  # fmt: skip
    with rasterio.open(path, "w", **profile) as target:
        target.write(values, 1)


def _write_virtual(path: Path, files: Sequence[Path], dtype: str, top: float) -> None:
    """As GDAL builds it: a tile begins wherever its coordinates say, which may be within a pixel."""
    sources = "".join(
        f'<SimpleSource><SourceFilename relativeToVRT="1">{file.relative_to(path.parent)}</SourceFilename>'
        f'<SourceBand>1</SourceBand><SrcRect xOff="0" yOff="0" xSize="{TILE_PX}" ySize="{TILE_PX}"/>'
        f'<DstRect xOff="{1000 * column / PIXEL_M}" yOff="0" xSize="{TILE_PX}" ySize="{TILE_PX}"/></SimpleSource>'
        for column, file in enumerate(files)
    )
    width = int(1000 * (len(files) - 1) / PIXEL_M + 1) + TILE_PX
    path.write_text(
        f'<VRTDataset rasterXSize="{width}" rasterYSize="{TILE_PX}"><SRS>EPSG:2154</SRS>'
        f"<GeoTransform>{LEFT_M}, {PIXEL_M}, 0, {top}, 0, -{PIXEL_M}</GeoTransform>"
        f'<VRTRasterBand dataType="{dtype}" band="1">{sources}</VRTRasterBand></VRTDataset>'
    )
