"""Heights above ground from rasters: a canopy height model, or a surface model less a terrain model."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.vision import Box
from agrotools.vision.blocks import BLOCK_PX, raster_blocks
from agrotools.vision.rasters import RasterSource

METRES_PER_UNIT = {
    "m": 1.0, "metre": 1.0, "metres": 1.0, "meter": 1.0, "meters": 1.0,
    "dm": 0.1, "decimetre": 0.1, "decimetres": 0.1, "decimeter": 0.1, "decimeters": 0.1,
    "cm": 0.01, "centimetre": 0.01, "centimetres": 0.01, "centimeter": 0.01, "centimeters": 0.01,
    "mm": 0.001, "millimetre": 0.001, "millimetres": 0.001, "millimeter": 0.001, "millimeters": 0.001,
    "ft": 0.3048, "foot": 0.3048, "feet": 0.3048, "international foot": 0.3048,
    "us survey foot": 1200 / 3937, "us survey feet": 1200 / 3937, "us_survey_foot": 1200 / 3937,
    "ftus": 1200 / 3937, "us-ft": 1200 / 3937,
}  # fmt: skip
"""Units as files name them (the unit of a GeoTIFF's band), to metres."""
_SAME_PLACE_PX = 0.01
"""Grids whose corners are closer than this lie on each other."""
_WIDEST_GROUND_PX = 16_000_000
"""Pixels of the terrain model that are read at once to be warped."""


@dataclass(frozen=True)
class HeightScale:
    """``metres``: what a value of 1 is. ``notes`` and ``flags`` as in a tool's result."""

    metres: float = 1.0
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def height_scale_of(source: RasterSource, height_scale: float | None) -> HeightScale:
    """Metres per unit of the values: what was given, what the file says, else 1."""
    unit_name = (source.dataset.units[0] or "").strip().lower()
    if height_scale is not None:
        return HeightScale(
            height_scale,
            (f"values times {height_scale:g} are metres, as height_scale says",) if height_scale != 1 else (),
        )
    if unit_name in METRES_PER_UNIT:
        factor = METRES_PER_UNIT[unit_name]
        return HeightScale(factor, (f"values are in {unit_name}, as the file says",) if factor != 1 else ())
    if unit_name:
        note = f"the file gives its unit as {unit_name[:20]!r}, which is not known here; values taken as metres"
        return HeightScale(1.0, (note,), ("height_unit_unknown",))
    crs = source.dataset.crs
    if crs is not None and crs.is_projected and crs.linear_units_factor[1] < 0.5:
        note = "the map is in feet and the file does not say in what its heights are; taken as metres"
        return HeightScale(1.0, (note,), ("height_unit_assumed_metres",))
    return HeightScale()


def refuse_many_bands(source: RasterSource) -> None:
    """Refuse what holds more than heights.

    Raises:
        ToolError: ``invalid_argument``, more than one band.
    """
    bands = source.count - (source.alpha_band is not None)
    if bands != 1:
        raise ToolError(
            "invalid_argument",
            f"{source.name} has {bands} bands; a raster of heights has one",
            argument=source.argument,
            hint="pass the raster whose values are heights; a colour picture holds none",
        )


def height_blocks(source: RasterSource, region: Box, scale: float) -> Iterator[tuple[Box, NDArray[np.float32]]]:
    """Boxes and heights in metres, float32 (rows, columns), NaN where there is no data."""
    for block in raster_blocks(source, [1], region):
        yield block.box, in_metres(block.values[0], scale)


def difference_blocks(
    surface: RasterSource, ground: "Ground", region: Box, scale: float
) -> Iterator[tuple[Box, NDArray[np.float32]]]:
    """Boxes and heights of the surface above the ground in metres, on the grid of the surface."""
    block_px = max(1, min(BLOCK_PX, int(_WIDEST_GROUND_PX / max(1.0, ground.pixels_per_pixel))))
    for block in raster_blocks(surface, [1], region, block_px=block_px):
        yield block.box, in_metres(block.values[0] - ground.read(block.box), scale)


def in_metres(values: NDArray[np.float32], scale: float) -> NDArray[np.float32]:
    """Values times the scale, rounded once, so that 23 dm are the float32 nearest to 2.3."""
    return values if scale == 1 else (values.astype(np.float64) * scale).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Ground:
    """A terrain model as seen on the grid of a surface model. Made by :func:`ground_below`."""

    source: RasterSource
    onto: RasterSource
    same_grid: bool
    pixels_per_pixel: float = 1.0
    """Pixels of the terrain model in one of the surface model."""
    notes: tuple[str, ...] = ()

    def read(self, box: Box) -> NDArray[np.float32]:
        """Ground at a box of the surface model, float32 (rows, columns), NaN where there is none."""
        if self.same_grid:
            return self.source.read([1], box)[0]
        from rasterio import Affine
        from rasterio.enums import Resampling
        from rasterio.warp import reproject

        x0, y0, x1, y1 = box
        warped = np.full((y1 - y0, x1 - x0), np.nan, np.float32)
        window = self._window(box)
        if window is None:
            return warped
        # Absent data is NaN by now whatever the file wrote for it, so it cannot leak into its neighbours.
        reproject(
            self.source.read([1], window)[0],
            warped,
            src_transform=self.source.dataset.transform * Affine.translation(window[0], window[1]),
            src_crs=self.source.dataset.crs,
            src_nodata=np.nan,
            dst_transform=self.onto.dataset.transform * Affine.translation(x0, y0),
            dst_crs=self.onto.dataset.crs,
            dst_nodata=np.nan,
            resampling=Resampling.bilinear,
            num_threads=1,
        )
        return warped

    def _window(self, box: Box) -> Box | None:
        """The part of the terrain model below a box of the surface model, with a margin."""
        columns, rows = _places(self.onto.dataset, self.source.dataset, box)
        if not columns.size:
            return None
        margin = 3 + 0.02 * max(np.ptp(columns), np.ptp(rows))
        x0, y0 = max(0, int(columns.min() - margin)), max(0, int(rows.min() - margin))
        x1 = min(self.source.width, int(columns.max() + margin) + 1)
        y1 = min(self.source.height, int(rows.max() + margin) + 1)
        return (x0, y0, x1, y1) if x1 > x0 and y1 > y0 else None


def ground_below(surface: RasterSource, terrain: RasterSource) -> Ground:
    """The terrain model for the grid of a surface model: as it is, or warped (bilinear) where the grids differ.

    Raises:
        ToolError: ``crs_mismatch``, one of them has no coordinate system; ``shape_mismatch``, neither has one and their
            sizes differ; ``nothing_found``, they do not overlap.
    """
    first, second = surface.dataset, terrain.dataset
    if (first.crs is None) != (second.crs is None):
        without, other = (surface, terrain) if first.crs is None else (terrain, surface)
        raise ToolError(
            "crs_mismatch",
            f"{without.name} has no coordinate system and {other.name} has one, so they cannot be laid over each other",
            argument=without.argument,
            hint=f"assign {without.name} its coordinate system (gdal_edit -a_srs), or use two rasters that have one",
        )
    size_differs = (surface.width, surface.height) != (terrain.width, terrain.height)
    if first.crs is None and size_differs:
        raise ToolError(
            "shape_mismatch",
            f"{surface.name} is {surface.width} x {surface.height} pixels and {terrain.name} "
            f"{terrain.width} x {terrain.height}, and neither has a coordinate system",
            argument=terrain.argument,
            hint="use rasters of one grid, or georeferenced ones",
        )
    if first.crs == second.crs and not size_differs and _same_place(surface, terrain):
        return Ground(terrain, surface, True)
    if first.crs is None:
        raise ToolError(
            "crs_mismatch",
            f"{surface.name} and {terrain.name} lie at different places, and neither has a coordinate system",
            argument=terrain.argument,
            hint="assign both their coordinate system, or use rasters of one grid",
        )
    try:
        columns, rows = _places(first, second, (0, 0, surface.width, surface.height))
    except Exception as error:
        raise ToolError(
            "crs_mismatch",
            f"the coordinate systems of {surface.name} and {terrain.name} cannot be converted into each other",
            argument=terrain.argument,
            hint="warp one of them to the coordinate system of the other",
        ) from error
    if (
        not columns.size
        or columns.max() <= 0
        or rows.max() <= 0
        or columns.min() >= terrain.width
        or rows.min() >= terrain.height
    ):
        raise ToolError(
            "nothing_found",
            f"{surface.name} and {terrain.name} do not overlap",
            argument=terrain.argument,
            hint="use a DSM and a DTM of the same place",
        )
    ratio = np.ptp(columns) * np.ptp(rows) / (surface.width * surface.height)
    of_crs = "" if first.crs == second.crs else " and in another coordinate system"
    note = f"{terrain.name} is on another grid{of_crs}: warped to that of {surface.name} (bilinear)"
    return Ground(terrain, surface, False, float(ratio), (note,))


def _same_place(first: RasterSource, second: RasterSource) -> bool:
    inverse = ~second.dataset.transform
    corners = [(0, 0), (first.width, 0), (0, first.height), (first.width, first.height)]
    for corner in corners:
        x, y = inverse * (first.dataset.transform * corner)
        if abs(x - corner[0]) > _SAME_PLACE_PX or abs(y - corner[1]) > _SAME_PLACE_PX:
            return False
    return True


def _places(first: Any, second: Any, box: Box) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Columns and rows in the second dataset of a net of points over a box of the first."""
    from rasterio.warp import transform

    x0, y0, x1, y1 = box
    columns, rows = (part.ravel() for part in np.meshgrid(np.linspace(x0, x1, 17), np.linspace(y0, y1, 17)))
    xs, ys = first.transform * (columns, rows)
    if first.crs != second.crs:
        moved = transform(first.crs, second.crs, xs.tolist(), ys.tolist())
        xs, ys = (np.asarray(part, np.float64) for part in moved[:2])
    there = np.isfinite(xs) & np.isfinite(ys)
    across, down = ~second.transform * (xs[there], ys[there])
    return np.asarray(across, np.float64), np.asarray(down, np.float64)
