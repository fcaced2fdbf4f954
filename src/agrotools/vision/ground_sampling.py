"""How many metres a pixel is, from a raster's coordinate reference system: known, or None. Never guessed."""

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class GroundSampling:
    """``gsd_m``: side of a square with the area of a pixel, metres, or None where the file does not tell."""

    gsd_m: float | None = None
    crs: str | None = None
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def metres_per_degree(latitude: float) -> tuple[float, float]:
    """Metres per degree of (longitude, latitude) on the WGS 84 ellipsoid.

    Series of the meridian and parallel arc lengths (Snyder 1987, Map Projections: A Working Manual, USGS 1395).
    """
    phi = math.radians(latitude)
    along = 111412.84 * math.cos(phi) - 93.5 * math.cos(3 * phi) + 0.118 * math.cos(5 * phi)
    up = 111132.92 - 559.82 * math.cos(2 * phi) + 1.175 * math.cos(4 * phi) - 0.0023 * math.cos(6 * phi)
    return along, up


def ground_sampling(dataset: Any) -> GroundSampling:
    """The ground sampling distance of an open rasterio dataset.

    Projected systems: size of a pixel times the length of the system's unit (feet!). Degrees: at the latitude of the
    raster's centre, flag ``gsd_from_degrees``. Web Mercator: divided by its scale at that latitude, flag
    ``gsd_from_web_mercator``. No system, or pixels that are not square within 2 %: said in the notes.
    """
    crs, transform = dataset.crs, dataset.transform
    if crs is None or transform.is_identity:
        return GroundSampling()
    name = crs.to_string()
    if len(name) > 60:
        name = "a coordinate system of its own"
    width = math.hypot(transform.a, transform.d)
    height = math.hypot(transform.b, transform.e)
    centre_y = transform.d * dataset.width / 2 + transform.e * dataset.height / 2 + transform.f
    notes: list[str] = []
    flags: list[str] = []
    if crs.is_geographic:
        if not -90 < centre_y < 90:
            return GroundSampling(None, name, ("its latitudes are not between -90 and 90 degrees",))
        along, up = metres_per_degree(centre_y)
        width, height = width * along, height * up
        flags.append("gsd_from_degrees")
        notes.append(f"pixel size from degrees at latitude {centre_y:.3f}")
    elif crs.is_projected:
        unit = crs.linear_units_factor[1]
        width, height = width * unit, height * unit
        if crs.to_epsg() == 3857:
            scale = 1 / math.cosh(centre_y / 6378137.0)
            width, height = width * scale, height * scale
            flags.append("gsd_from_web_mercator")
            notes.append("pixel size corrected for the scale of Web Mercator at this latitude")
    else:
        return GroundSampling(None, name, (f"{name} is neither projected nor geographic: pixel size unknown",))
    if not (width > 0 and height > 0 and math.isfinite(width * height)):
        return GroundSampling(None, name)
    if abs(width / height - 1) > 0.02:
        notes.append(f"pixels are not square ({width:.6g} x {height:.6g} m)")
    return GroundSampling(math.sqrt(width * height), name, tuple(notes), tuple(flags))
