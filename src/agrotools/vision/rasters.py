"""Multi-band rasters (GeoTIFF, ENVI, PNG and JPEG): reading, roles of bands, ground sampling distance.

GDAL opens far more than files: virtual rasters that name other files, URLs, archives. Here the driver is chosen by the
content of the file and is the only one that GDAL may try; sidecar files (``.aux.xml``, ``.ovr``) are not read, because
they can also refer to other files.
"""

import math
import re
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.core.texts import count_text, counted_names
from agrotools.vision import Box, Role
from agrotools.vision.formats import (
    MAX_PIXELS,
    RASTER_DRIVERS,
    Format,
    damaged,
    envi_header,
    file_format,
    refuse_outside,
    remarks_beside,
    too_large,
)

_WARNING_FILTERS = threading.Lock()

ROLES: tuple[Role, ...] = get_args(Role)
_CHANNELS = ("red", "green", "blue")
_BANDS_NAMED = 12
"""Most bands of a file that a message names."""

_WORDS: dict[Role, frozenset[str]] = {
    "B": frozenset({"b", "blue"}),
    "G": frozenset({"g", "green"}),
    "R": frozenset({"r", "red"}),
    "RE": frozenset({"re", "rededge"}),
    "NIR": frozenset({"n", "nir", "nearinfrared", "infrared"}),
}
_CODE = re.compile(r"(?<![a-z0-9])[a-z][^a-z0-9]?0*[1-3]?\d{1,2}[a-z]?(?![a-z0-9])")
"""Code of a band, such as B4, B_04 and B8A: it means different bands on different satellites. Numbers from 400 on are
wavelengths: R-650 is red."""
_WAVELENGTHS_NM: dict[Role, tuple[float, float]] = {
    "B": (470, 30),
    "G": (555, 25),
    "R": (660, 25),
    "RE": (717, 17),
    "NIR": (840, 60),
}
"""Centre of the wavelength range of each band, and the largest distance from it."""


def role_of(name: str) -> Role | None:
    """Return the role stated in a band's name (``NIR``, ``B02 blue``, ``red_edge``...), or None.

    A code (``B4``, ``SR_B4``) has no role, because it means different bands on different satellites.
    """
    words = _words_of(_CODE.sub(" ", name.strip().lower()))
    joined = "".join(words)
    if "rededge" in joined:
        return "RE"
    if "nearinfrared" in joined:
        return "NIR"
    matches: set[Role] = {role for role in ROLES if _WORDS[role].intersection(words)}
    spelled_out: set[Role] = {
        role for role in matches if any(len(word) > 1 for word in _WORDS[role].intersection(words))
    }
    candidates = sorted(spelled_out or matches)
    if len(candidates) != 1:
        return None
    # Thermal and shortwave infrared are other bands: the word alone is near infrared.
    is_other_infrared = "infrared" in words and joined != "infrared"
    return None if is_other_infrared and "nir" not in words else candidates[0]


def _words_of(name: str) -> list[str]:
    """Return the words of a name in small letters, without the digits at their ends."""
    return [word.rstrip("0123456789") for word in re.split(r"[^a-z0-9]+", name)]


def _is_exact(name: str, role: Role) -> bool:
    """Return True if a name says a role and nothing else: ``Red``, ``near infrared``, but neither ``Red-650`` nor
    ``NIR2``."""
    return re.sub(r"[\s_-]+", "", name.lower()) in _WORDS[role]


class BandRoles(NamedTuple):
    """Bands of a raster by role, 1-based.

    ``known``: the band of each role that one band has. ``unsure``: the bands that may have a role, where several may.
    """

    known: dict[Role, int]
    unsure: dict[Role, tuple[int, ...]]

    @property
    def shown(self) -> dict[Role, int]:
        """Return bands for a picture that is only looked at: the first one where several may have a role."""
        first: dict[Role, int] = {role: numbers[0] for role, numbers in self.unsure.items()}
        return first | self.known


def roles_by_name(names: Sequence[str | None]) -> BandRoles:
    """Return the roles of bands by their names.

    A name that says the role alone (``Red``, ``nir``) goes before others (``Red-650``, ``NIR2``).
    """
    known: dict[Role, int] = {}
    unsure: dict[Role, tuple[int, ...]] = {}
    named = [(number, name) for number, name in enumerate(names, start=1) if name]
    for role in ROLES:
        able = [(number, name) for number, name in named if role_of(name) == role]
        exact = [(number, name) for number, name in able if _is_exact(name, role)]
        numbers = tuple(number for number, _ in exact or able)
        if len(numbers) == 1:
            known[role] = numbers[0]
        elif numbers:
            unsure[role] = numbers
    return BandRoles(known, unsure)


def roles_by_wavelength(wavelengths_nm: Sequence[float | None]) -> dict[Role, int]:
    """Map roles to the 1-based number of the band nearest to the role's centre wavelength, if it is near enough.

    A hyperspectral raster has dozens of bands near it, so that this is never a question.
    """
    roles: dict[Role, int] = {}
    for role, (centre, reach) in _WAVELENGTHS_NM.items():
        distances = {
            number: abs(value - centre)
            for number, value in enumerate(wavelengths_nm, start=1)
            if value is not None
        }
        best = min(distances, key=distances.__getitem__, default=None)
        if best is not None and distances[best] <= reach:
            roles[role] = best
    return roles


def chosen_roles(
    bands: Mapping[str, int | str], names: Sequence[str | None], *, file: str
) -> dict[Role, int]:
    """Map roles to 1-based band numbers as given by a caller: number or name of the band by role, or by a word for
    it. ToolError ``invalid_argument`` for an unknown role or one given twice; ``band_not_found`` with the existing
    bands."""
    roles: dict[Role, int] = {}
    for key, selector in bands.items():
        role = role_of(key)
        if role is None:
            why = f"bands: {key!r} is not a band that is used here"
            hint = f"use {', '.join(ROLES)}, e.g. {{'R': 3, 'NIR': 4}}"
            raise ToolError("invalid_argument", why, argument="bands", hint=hint)
        if role in roles:
            raise ToolError("invalid_argument", f"bands: {role} is given twice", argument="bands")
        number = band_number(selector, names, file)
        if other := next((known for known, one in roles.items() if one == number), None):
            why = f"bands: {other} and {role} are the same band {number} of {file}"
            raise ToolError("invalid_argument", why, argument="bands")
        roles[role] = number
    return roles


def band_number(selector: int | str, names: Sequence[str | None], file: str) -> int:
    if isinstance(selector, str):
        same = [
            n
            for n, name in enumerate(names, start=1)
            if name and name.strip().lower() == selector.strip().lower()
        ]
        if len(same) == 1:
            return same[0]
        if same:
            raise ToolError(
                "band_not_found",
                f"{len(same)} bands of {file} are called {selector}: {', '.join(map(str, same))}",
                argument="bands",
                hint="give the number of the band, counted from 1",
            )
        if selector.strip().isdigit():
            selector = int(selector)
    if isinstance(selector, int) and 1 <= selector <= len(names):
        return selector
    raise ToolError(
        "band_not_found",
        f"{file} has no band {selector!r}; it has {listed_bands(names)}",
        argument="bands",
        hint="give the number of the band, counted from 1, or its name",
        candidates=tuple(name for name in names if name)[:20],
    )


def listed_bands(names: Sequence[str | None]) -> str:
    """List the bands of a file in words, e.g. ``3 bands: 1 red, 2 green, 3 (no name)``."""
    band_labels = [f"{number} {name or '(no name)'}" for number, name in enumerate(names, start=1)]
    return f"{count_text(len(names), 'band')}: {counted_names(band_labels, _BANDS_NAMED)}"


class Scale(NamedTuple):
    """Scale of a picture. ``gsd_m``: metres per pixel (root of the area of a raster's pixel), None if unknown."""

    gsd_m: float | None = None
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


class Scaling(NamedTuple):
    """How stored numbers become values: number times ``scale`` plus ``offset``."""

    scale: float = 1.0
    offset: float = 0.0


class StatedScaling(NamedTuple):
    """Scaling that a user states; None: as in the file."""

    scale: float | None
    offset: float | None


def metres_per_degree(latitude: float) -> tuple[float, float]:
    """Return metres per degree of (longitude, latitude) on the WGS 84 ellipsoid.

    Series of the meridian and parallel arc lengths (Snyder 1987, Map Projections: A Working Manual, USGS 1395).
    """
    phi = math.radians(latitude)
    along = 111412.84 * math.cos(phi) - 93.5 * math.cos(3 * phi) + 0.118 * math.cos(5 * phi)
    up = (
        111132.92
        - 559.82 * math.cos(2 * phi)
        + 1.175 * math.cos(4 * phi)
        - 0.0023 * math.cos(6 * phi)
    )
    return along, up


def ground_sampling(dataset: Any) -> Scale:
    """Return the ground sampling of an open rasterio dataset.

    Projected systems: pixel size times the length of the system's unit (which may be feet). Degrees: at the latitude of
    the raster's centre, flag ``gsd_from_degrees``. Web Mercator: divided by its scale at that latitude, flag
    ``gsd_from_web_mercator``. A system that is neither, or pixels that are not square within 2 %, are mentioned in the
    notes.
    """
    crs, transform = dataset.crs, dataset.transform
    if crs is None or transform.is_identity:
        return Scale()
    width = math.hypot(transform.a, transform.d)
    height = math.hypot(transform.b, transform.e)
    centre_y = transform.d * dataset.width / 2 + transform.e * dataset.height / 2 + transform.f
    if crs.is_geographic:
        if not -90 < centre_y < 90:
            return Scale(None, ("its latitudes are not between -90 and 90 degrees",))
        along, up = metres_per_degree(centre_y)
        note = f"pixel size from degrees at latitude {centre_y:.3f}"
        return _scale_of_pixel(width * along, height * up, (note,), ("gsd_from_degrees",))
    if not crs.is_projected:
        text = crs.to_string()
        name = text if len(text) <= _LONGEST_NAME else "a coordinate system of its own"
        return Scale(None, (f"{name} is neither projected nor geographic: pixel size unknown",))
    unit_m = crs.linear_units_factor[1]
    width, height = width * unit_m, height * unit_m
    if crs.to_epsg() != _WEB_MERCATOR:
        return _scale_of_pixel(width, height)
    scale = 1 / math.cosh(centre_y / _EQUATOR_RADIUS_M)
    note = "pixel size corrected for the scale of Web Mercator at this latitude"
    return _scale_of_pixel(width * scale, height * scale, (note,), ("gsd_from_web_mercator",))


_WEB_MERCATOR = 3857
"""EPSG number of the projection."""
_EQUATOR_RADIUS_M = 6378137.0
"""Radius of the sphere of Web Mercator, the semi-major axis of WGS 84."""
_LONGEST_NAME = 60
"""Characters of the description of a coordinate system that a note may quote."""
_MOST_UNEVEN = 0.02
"""Largest difference of the sides of a pixel that still counts as square, as a share of its height."""


def _scale_of_pixel(
    width_m: float, height_m: float, notes: tuple[str, ...] = (), flags: tuple[str, ...] = ()
) -> Scale:
    """Return the scale of a raster with pixels of this size; unknown, without notes, if it is no size."""
    if not (width_m > 0 and height_m > 0 and math.isfinite(width_m * height_m)):
        return Scale()
    if abs(width_m / height_m - 1) > _MOST_UNEVEN:
        notes += (f"pixels are not square ({width_m:.6g} x {height_m:.6g} m)",)
    return Scale(math.sqrt(width_m * height_m), notes, flags)


MAX_BLOCK_BYTES = 2**30
_MAX_VALUES = 4 * MAX_PIXELS
_UNDECLARED_NODATA = (-9999.0, -10_000.0, -32768.0, -32767.0)
"""Values that programs write where there are no data: -10000 is that of Pix4D."""
_UNREAL = 1e30
"""Magnitude above which values are missing data: files that do not declare it use -1.7e308 and 3.4e38."""
_NODATA_CLOSENESS = 4.7e-7
"""Relative distance from the declared nodata value up to which floats count as nodata: a few units of float32."""
_TOGETHER = 2**24
"""Maximum number of values of bands that are read in one call.

One call decodes a tile with several bands only once, but the raw values of more would take too much memory.
"""
_SAMPLE_PX = 64
"""Side of the windows of a sample."""
_LEAST_CLEAR = 0.9
"""Least share of 0 and the largest value in the sample of an alpha band."""
_CACHE_MEGABYTES = 64
"""GDAL's memory for decoded blocks, MB. Its default is a share of the machine's memory, which may be gigabytes."""


@dataclass(frozen=True, eq=False)
class RasterSource:
    """Open raster: its properties, and :meth:`read`.

    ``alpha_band``: 1-based number of the band whose zeros hide the others. ``border``: stored value, in all bands, of a
    black or white border that nothing in the file declares to be no data. Both are None if there is none.
    ``stated``: scaling of all bands that the user states, instead of that in the file.
    """

    dataset: Any
    name: str
    argument: str
    sampling: Scale
    alpha_band: int | None
    border: float | None
    stated: StatedScaling | None = field(default=None, kw_only=True)

    def scaling_of(self, band: int) -> Scaling:
        """Return the scaling of a band (1-based): as stated, else as in the file."""
        in_file = self.scaling_in_file(band)
        if self.stated is None:
            return in_file
        scale, offset = self.stated
        return Scaling(
            in_file.scale if scale is None else scale, in_file.offset if offset is None else offset
        )

    def scaling_in_file(self, band: int) -> Scaling:
        """Return the scaling of a band (1-based) that the file states."""
        return Scaling(self.dataset.scales[band - 1], self.dataset.offsets[band - 1])

    @property
    def count(self) -> int:
        return self.dataset.count

    @property
    def width(self) -> int:
        return self.dataset.width

    @property
    def height(self) -> int:
        return self.dataset.height

    @property
    def dtype(self) -> str:
        return self.dataset.dtypes[0]

    @property
    def data_bands(self) -> list[int]:
        """1-based numbers of all bands but the alpha band."""
        return [number for number in range(1, self.count + 1) if number != self.alpha_band]

    @property
    def band_names(self) -> tuple[str | None, ...]:
        """Names of the bands in the file: descriptions, or else the declared colours."""
        declared = [
            colour.name if colour.name in _CHANNELS else None for colour in self.dataset.colorinterp
        ]
        if self.alpha_band:
            declared[self.alpha_band - 1] = "alpha"
        return tuple(
            text or colour for text, colour in zip(self.dataset.descriptions, declared, strict=True)
        )

    def names(self, known: Sequence[str] | None) -> tuple[str | None, ...]:
        """Return the ``known`` names of all bands, or of all but alpha behind them, else those in the file."""
        if known and self.alpha_band == len(known) + 1 == self.count:
            return (*known, "alpha")
        return tuple(known) if known and len(known) == self.count else self.band_names

    @property
    def roles(self) -> BandRoles:
        """Bands by role, from the names of the bands or else from their wavelengths."""
        by_name = roles_by_name(self.band_names)
        if by_name.known or by_name.unsure:
            return by_name
        return BandRoles(roles_by_wavelength(self.wavelengths_nm), {})

    def band_title(self, number: int, names: Sequence[str | None] | None = None) -> str:
        """Return a band (1-based) in words: its number with its name, or else with its wavelength: ``6 Red``."""
        name = (names or self.band_names)[number - 1]
        wavelength = self.wavelengths_nm[number - 1]
        if name:
            return f"{number} {name}"
        return f"{number} ({wavelength:g} nm)" if wavelength else f"{number} (no name)"

    def read(self, bands: Sequence[int], region: Box | None = None) -> NDArray[np.float32]:
        """Read bands (1-based) as float32 (bands, rows, columns): scale and offset applied, NaN for missing data,
        which are declared in the file (nodata value, mask, alpha band), not finite, beyond 1e30, or, if it declares
        nothing, -9999, -10000, -32768 and -32767. ToolError ``limit``, ``unreadable_file`` (truncated, damaged),
        ``region_empty``."""
        from rasterio.windows import Window

        x0, y0, x1, y1 = region or (0, 0, self.width, self.height)
        refuse_outside((x0, y0, x1, y1), self.width, self.height, self.name)
        columns, rows = x1 - x0, y1 - y0
        if columns * rows > MAX_PIXELS or columns * rows * len(bands) > _MAX_VALUES:
            raise too_large(columns, rows, self.name, self.argument)
        window = Window(x0, y0, columns, rows)  # pyright: ignore[reportCallIssue]
        values = np.empty((len(bands), rows, columns), np.float32)
        border = self.border if len(bands) > 1 else None
        blank = np.full(values.shape[1:], border is not None)
        dtypes = {self.dataset.dtypes[band - 1] for band in bands}
        try:
            together = self._read_together(bands, dtypes, window, values)
            for place, band in enumerate(bands):
                data = (
                    self.dataset.read(band, window=window) if together is None else together[place]
                )
                if border is not None:
                    blank &= data == border
                self._to_physical(data, band, window, values[place])
            if self.alpha_band:
                blank = self.dataset.read(self.alpha_band, window=window) == 0
            values[:, blank] = np.nan
        except MemoryError:
            raise
        except Exception as error:
            raise damaged(self.name, self.argument, error) from error
        return values

    def _read_together(
        self, bands: Sequence[int], dtypes: set[str], window: Any, values: NDArray[np.float32]
    ) -> NDArray[Any] | None:
        """Read the stored numbers of bands of these types in one call: into ``values`` if they are float32, into an
        array of their own if they are few and of one type. None if the bands must be read one by one."""
        if dtypes == {"float32"}:
            self.dataset.read(list(bands), window=window, out=values)
            return values
        if len(dtypes) == 1 and values.size <= _TOGETHER:
            return self.dataset.read(list(bands), window=window)
        return None

    def read_resized(
        self, bands: Sequence[int], region: Box, shape: tuple[int, int]
    ) -> NDArray[np.float32]:
        """Read every n-th pixel of bands for a picture of ``shape`` (rows, columns), float32 (bands, rows, columns),
        as stored, NaN without data. ToolError ``unreadable_file``."""
        from rasterio.windows import Window

        x0, y0, x1, y1 = region
        try:
            if self.dataset.overviews(bands[0]):
                window = Window(x0, y0, x1 - x0, y1 - y0)  # pyright: ignore[reportCallIssue]
                size = (len(bands), *shape)
                data = self.dataset.read(list(bands), window=window, out_shape=size)
                missing = self.dataset.read_masks(list(bands), window=window, out_shape=size) == 0
            else:
                data, missing = self._read_by_tile(bands, region, shape)
        except MemoryError:
            raise
        except Exception as error:
            raise damaged(self.name, self.argument, error) from error
        if self.border is not None:
            missing |= (data == self.border).all(axis=0)
        values = data.astype(np.float32)
        values[missing] = np.nan
        return values

    def _read_by_tile(
        self, bands: Sequence[int], region: Box, shape: tuple[int, int]
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return every n-th pixel of bands as stored, (bands, rows, columns), and where data are missing.

        GDAL reads a picture of reduced size line by line. It decodes each tile again for each line, unless a whole row
        of tiles fits in its cache: 100 s for 20,000 x 20,000 heights, and 4 s tile by tile.
        """
        from rasterio.windows import Window

        x0, y0, x1, y1 = region
        rows = _places_between(y0, y1, shape[0])
        columns = _places_between(x0, x1, shape[1])
        data = np.empty((len(bands), *shape), np.result_type(*self.dataset.dtypes))
        missing = np.zeros(data.shape, np.bool_)
        high, wide = self.dataset.block_shapes[bands[0] - 1]
        for of_rows in _split_by_tile(rows, high):
            for of_columns in _split_by_tile(columns, wide):
                top, bottom = int(rows[of_rows.start]), int(rows[of_rows.stop - 1]) + 1
                left, right = int(columns[of_columns.start]), int(columns[of_columns.stop - 1]) + 1
                window = Window(left, top, right - left, bottom - top)  # pyright: ignore[reportCallIssue]
                picked = np.ix_(rows[of_rows] - top, columns[of_columns] - left)
                for place, band in enumerate(bands):
                    stored = self.dataset.read(band, window=window)
                    data[place, of_rows, of_columns] = stored[picked]
                    lacking = self._missing(stored, band, window)
                    if lacking is not None:
                        missing[place, of_rows, of_columns] = lacking[picked]
        return data, missing

    def _to_physical(
        self, data: NDArray[Any], band: int, window: Any, values: NDArray[np.float32]
    ) -> None:
        """Write the physical values of ``data`` into ``values``, which may be the same array."""
        missing = self._missing(data, band, window)
        scale, offset = self.scaling_of(band)
        if missing is not None and data.dtype.kind == "f":
            # Before the conversion, because values beyond float32 would overflow.
            np.putmask(data, missing, np.nan)
        if not np.may_share_memory(data, values):
            values[...] = data
        if (scale, offset) != (1.0, 0.0):
            values *= np.float32(scale)
            values += np.float32(offset)
        if missing is not None and data.dtype.kind != "f":
            np.putmask(values, missing, np.nan)

    def _missing(self, data: NDArray[Any], band: int, window: Any) -> NDArray[np.bool_] | None:
        """Return the mask of missing data; None if there is data everywhere."""
        nodata = self.dataset.nodatavals[band - 1]
        kind = data.dtype.kind
        stand_ins = () if nodata is None or not abs(nodata) < _UNREAL else (nodata,)
        if nodata is None and kind in "fi":
            stand_ins = _UNDECLARED_NODATA
        mask_flags = {flag.name for flag in self.dataset.mask_flag_enums[band - 1]}
        masked = "per_dataset" in mask_flags and "alpha" not in mask_flags
        # Finding extremes is much faster than a comparison of all values, and most blocks have no missing data.
        low, high = float(data.min()), float(data.max())
        # Within this relative distance of a nodata value, all values are compared.
        near = 2 * _NODATA_CLOSENESS
        may_lack = any(
            low <= value + near * abs(value) and value - near * abs(value) <= high
            for value in stand_ins
        )
        if low > -_UNREAL and high < _UNREAL and not masked and not may_lack:
            return None
        missing = np.zeros(data.shape, np.bool_) if kind != "f" else ~(np.abs(data) < _UNREAL)
        if nodata is None:
            missing |= np.isin(data, stand_ins)
        if masked:
            missing |= self.dataset.read_masks(band, window=window) == 0
        elif nodata is not None and stand_ins:
            # GDAL's own mask would read the block again and has the same tolerance.
            close = _NODATA_CLOSENESS * abs(nodata) if kind == "f" else 0.0
            missing |= np.abs(data - nodata) <= close if close else data == nodata
        return missing

    @cached_property
    def wavelengths_nm(self) -> list[float | None]:
        """Wavelengths of the bands as tags of the file state them."""
        wavelengths: list[float | None] = []
        for number in range(1, self.count + 1):
            tags = {key.lower(): value for key, value in self.dataset.tags(number).items()}
            value = None
            with suppress(KeyError, ValueError):
                value = float(tags["wavelength"])
                is_micro = (
                    tags.get("wavelength_units", "").lower().startswith("micro") or value < 20
                )
                value *= 1000 if is_micro else 1
            wavelengths.append(value)
        return wavelengths


@contextmanager
def open_raster(
    path: Path,
    *,
    argument: str = "image",
    shown_as: str | None = None,
    stated: StatedScaling | None = None,
) -> Iterator[RasterSource]:
    """Open a raster for reading. ``stated``: scaling instead of that in the file. ToolError ``file_not_found``,
    ``unreadable_file`` (another format, damaged, complex numbers), ``limit`` (blocks too large to decode)."""
    name = shown_as or path.name
    kind = file_format(path, argument=argument, shown_as=shown_as)
    if kind not in RASTER_DRIVERS:
        raise ToolError(
            "unreadable_file", f"{name} is a {kind} picture, not a raster", argument=argument
        )
    import rasterio
    from rasterio.errors import RasterioError

    with rasterio.Env(**_environment(kind)):
        try:
            with without_place_warning():
                dataset = rasterio.open(path.resolve(), driver=RASTER_DRIVERS[kind], sharing=False)
        except (RasterioError, OSError, ValueError, UnicodeError) as error:
            raise damaged(name, argument, error) from error
        with dataset:
            _check(dataset, path, kind, name, argument)
            try:
                blanks = _blanks(dataset)
            except (RasterioError, OSError, ValueError) as error:
                raise damaged(name, argument, error) from error
            sampling = ground_sampling(dataset)
            notes, flags = remarks_beside(path)
            if blanks.border is not None:
                look = "white" if blanks.border else "black"
                taken = "counts as picture" if blanks.is_kept else "is taken as absence of data"
                notes += (f"{look} at the edge of {name} {taken}",)
                flags += ("border_without_mark",)
            hidden = None if blanks.is_kept else blanks.border
            sampling = sampling._replace(notes=sampling.notes + notes, flags=sampling.flags + flags)
            yield RasterSource(
                dataset, name, argument, sampling, blanks.alpha_band, hidden, stated=stated
            )


def _places_between(start: int, end: int, count: int) -> NDArray[np.intp]:
    """Return ``count`` whole numbers from ``start`` to before ``end``, each in the middle of an equal part."""
    middles = (np.arange(count) + 0.5) * (end - start) / count
    return start + np.floor(middles).astype(np.intp)


def _split_by_tile(places: NDArray[np.intp], side: int) -> Iterator[slice]:
    """Yield the ranges of rising places that lie in one tile of this side."""
    starts = np.flatnonzero(np.diff(places // side, prepend=-1)).tolist()
    for start, end in pairwise([*starts, len(places)]):
        yield slice(start, end)


class Place(NamedTuple):
    """Where a raster lies: its coordinate reference system (WKT), its transform, and its size in pixels."""

    crs: str
    transform: Any
    width: int
    height: int

    def corners(self) -> list[tuple[float, float]]:
        """Return the coordinates of the upper left and the lower right corner."""
        return [self.transform * (0, 0), self.transform * (self.width, self.height)]


def place_of(path: Path) -> Place | None:
    """Return where a raster lies; None for a picture, and for a raster that does not say it."""
    if file_format(path) not in RASTER_DRIVERS:
        return None
    with open_raster(path) as source:
        dataset = source.dataset
        if not is_placed(dataset):
            return None
        crs = dataset.crs.to_wkt() if dataset.crs else ""
        return Place(crs, dataset.transform, dataset.width, dataset.height)


def is_placed(dataset: Any) -> bool:
    """True if a raster says where it lies."""
    return dataset.crs is not None or not dataset.transform.is_identity


class _Blanks(NamedTuple):
    """``alpha_band`` and ``border`` of a source. ``is_kept``: the border counts as picture."""

    alpha_band: int | None = None
    border: float | None = None
    is_kept: bool = False


def _blanks(dataset: Any) -> _Blanks:
    """Return what hides pixels of a source, found in a sample of 16 windows, corners included.

    What is declared alpha may be infrared, or the fourth band of six in which the last is alpha. The last of four or
    more is alpha undeclared if it is 0 or its largest value everywhere, and the first band one value where it is 0.
    """
    if dataset.count == 1:
        return _Blanks()
    declared = [
        number
        for number, colour in enumerate(dataset.colorinterp, start=1)
        if colour.name == "alpha"
    ]
    first_three = range(1, min(dataset.count, 4))
    numbers = [*dict.fromkeys((*first_three, *declared, dataset.count))]
    sample = _sample_of(dataset, numbers)
    # The last of four or more bands, and those that are declared.
    for number in (*numbers[3:][-1:], *declared):
        if _is_alpha(sample, number, is_declared=number in declared):
            return _Blanks(number)
    if not declared and "per_dataset" in {flag.name for flag in dataset.mask_flag_enums[0]}:
        return _Blanks()
    white = {"uint8": 255, "uint16": 65_535}.get(dataset.dtypes[0], 0)
    levels = sorted({0, white}.difference(dataset.nodatavals))
    border = border_value([*sample.values()], levels)
    # A photo as TIFF may show a leaf on white paper, as a PNG may; a map that ends within its frame has a place.
    is_photo = dataset.count == 3 and dataset.dtypes[0] == "uint8" and not is_placed(dataset)
    return _Blanks(border=border, is_kept=bool(border) and is_photo)


def _sample_of(dataset: Any, numbers: Sequence[int]) -> dict[int, NDArray[Any]]:
    """Return a sample of bands by number: windows at four heights and four widths of the picture, side by side."""
    from rasterio.windows import Window

    height, width = dataset.shape
    tops = np.linspace(0, max(0, height - _SAMPLE_PX), 4).astype(int).tolist()
    lefts = np.linspace(0, max(0, width - _SAMPLE_PX), 4).astype(int).tolist()
    rows: list[list[NDArray[Any]]] = []
    for top in tops:
        windows = [Window(left, top, _SAMPLE_PX, _SAMPLE_PX) for left in lefts]  # pyright: ignore[reportCallIssue]
        rows.append([dataset.read(list(numbers), window=window) for window in windows])
    return dict(zip(numbers, np.block(rows), strict=True))


def _is_alpha(sample: Mapping[int, NDArray[Any]], number: int, *, is_declared: bool) -> bool:
    """True if a band is alpha: most of it is 0 or its largest value, and of one that is not declared alpha all of it,
    while the first band has one value where it is 0."""
    band = sample[number]
    clear = np.isin(band, (0, band.max())).mean()
    if clear < _LEAST_CLEAR:
        return False
    if is_declared:
        return True
    hidden = sample[1][band == 0]
    has_both = 0 < hidden.size < sample[1].size
    return bool(clear == 1 and has_both and np.ptp(hidden) == 0)


def border_value(bands: Sequence[NDArray[Any]], levels: Iterable[float]) -> float | None:
    """Return the first of ``levels`` that a corner and 1 % of the pixels have in all bands (rows, columns), or None."""
    for level in levels:
        corners = [(y, x) for y in (0, -1) for x in (0, -1)]
        at_corner = any(all(band[corner] == level for band in bands) for corner in corners)
        if not at_corner:
            continue
        share = np.logical_and.reduce([band == level for band in bands]).mean()
        if 0.01 <= share < 1:
            return level
    return None


@contextmanager
def without_place_warning() -> Iterator[None]:
    """Silence the warning that a raster is at no place, in one thread at a time: filters belong to the process."""
    from rasterio.errors import NotGeoreferencedWarning

    with _WARNING_FILTERS, warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        yield


def _environment(kind: Format) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "GDAL_PAM_ENABLED": "NO",
        "CPL_VSIL_CURL_ALLOWED_EXTENSIONS": ".none",
        "GDAL_HTTP_MAX_RETRY": "0",
        "GDAL_CACHEMAX": _CACHE_MEGABYTES,
    }
    if kind != "envi":  # ENVI headers are separate files
        settings["GDAL_DISABLE_READDIR_ON_OPEN"] = "EMPTY_DIR"
    return settings


def _check(dataset: Any, path: Path, kind: Format, name: str, argument: str) -> None:
    if dataset.driver != RASTER_DRIVERS[kind] or dataset.count < 1:
        raise ToolError(
            "unreadable_file",
            f"{name} is not the {RASTER_DRIVERS[kind]} file it seems",
            argument=argument,
        )
    # GDAL has complex integers, which numpy lacks.
    is_complex = any(dtype.startswith("complex") for dtype in dataset.dtypes)
    dtypes = set() if is_complex else {np.dtype(dtype) for dtype in dataset.dtypes}
    if is_complex or any(dtype.kind not in "uif" for dtype in dtypes):
        raise ToolError(
            "unreadable_file", f"{name} holds complex numbers, not measurements", argument=argument
        )
    widest = max(dtype.itemsize for dtype in dtypes)
    if any(rows * columns * widest > MAX_BLOCK_BYTES for rows, columns in dataset.block_shapes):
        raise ToolError(
            "limit",
            f"{name} is stored in blocks too large to decode",
            argument=argument,
            hint="store it in tiles",
        )
    if kind == "envi":
        needed = (
            dataset.width
            * dataset.height
            * sum(np.dtype(dtype).itemsize for dtype in dataset.dtypes)
        )
        if path.stat().st_size < needed:
            header = envi_header(path)
            why = f"{name} is shorter than its header {header.name if header else ''} says"
            hint = "it was cut short, or belongs to another header"
            raise ToolError("unreadable_file", why, argument=argument, hint=hint)
