"""Scenes with their difficulty, random fields, smoothing, files, and simulated cameras."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.core.files import read_table

Rng = np.random.Generator
Plane = NDArray[np.float32]
"""Values of pixels, (rows, columns) or (rows, columns, bands), or of the bands alone, e.g. reflectances."""
Floats = NDArray[np.floating[Any]]
"""The same, in single or double precision."""
Mask = NDArray[np.bool_]
Difficulty = Literal[0, 1, 2, 3]
"""Level of occlusion, light, noise and look-alikes; set by the scene alone, never by the results of a tool."""


TABLES: dict[str, Any] = read_table(Path(__file__).with_name("kinds.toml"))
"""Kinds of things in scenes, by the name of their table."""


Level = SimpleNamespace
"""Parameters of a scene at one difficulty, described in ``levels.toml``."""
Kind = SimpleNamespace
"""A kind of thing, described in ``kinds.toml``."""


@cache
def levels(scene: str) -> tuple[Level, ...]:
    """Return the parameters of a scene by difficulty."""
    columns = read_table(Path(__file__).with_name("levels.toml"))[scene]
    return tuple(
        Level(**{name: values[place] for name, values in columns.items()}) for place in range(4)
    )


@dataclass(frozen=True)
class Sun:
    """Direction of shadows (unit vector in the picture), shadow length per height, and darkness 0 to 1."""

    dx: float
    dy: float
    length: float
    darkness: float = 1.0


def sun_at(turn: float, length: float, darkness: float = 1.0) -> Sun:
    """Return light whose shadows fall in direction ``turn``, radians in the picture."""
    return Sun(float(np.cos(turn)), float(np.sin(turn)), float(length), float(darkness))


@dataclass(frozen=True)
class Axes:
    """Axes that are turned around the origin: ``along`` a direction of the picture, and ``across`` to its right.

    Coordinates keep the precision of the arrays if cosine and sine are plain floats or single, and become double if
    they are NumPy's doubles.
    """

    cosine: float | np.floating[Any]
    sine: float | np.floating[Any]

    @classmethod
    def plain(cls, angle: float) -> "Axes":
        """Return axes in a direction, radians, that keep the precision of arrays."""
        return cls(math.cos(angle), math.sin(angle))

    @classmethod
    def single(cls, angle: float) -> "Axes":
        """Return axes in a direction, radians, in single precision."""
        return cls(np.float32(np.cos(angle)), np.float32(np.sin(angle)))

    @classmethod
    def double(cls, angle: float) -> "Axes":
        """Return axes in a direction, radians, in double precision."""
        return cls(np.cos(angle), np.sin(angle))

    def along(self, x: Any, y: Any) -> Any:
        """Return the coordinate of points in the direction."""
        return x * self.cosine + y * self.sine

    def across(self, x: Any, y: Any) -> Any:
        """Return the coordinate of points to the right of the direction."""
        return y * self.cosine - x * self.sine

    def point(self, along: Any, across: Any) -> tuple[Any, Any]:
        """Return x and y of points with these coordinates."""
        x = along * self.cosine - across * self.sine
        y = along * self.sine + across * self.cosine
        return x, y


@dataclass(frozen=True, eq=False)
class Scene:
    """A drawn scene.

    ``images``: arrays as a camera or sensor delivers them, e.g. ``rgb`` uint8 (rows, columns, 3), ``bands`` uint16
    (bands, rows, columns) reflectance x 10,000, ``depth`` uint16; ``sidecar``: their metadata (gsd_m, bands,
    intrinsics); ``truth``: numbers and labels; ``masks``: truth per pixel, e.g. ``classes`` uint8.
    """

    images: Mapping[str, NDArray[Any]]
    sidecar: Mapping[str, Any] = field(default_factory=dict)
    truth: Mapping[str, Any] = field(default_factory=dict)
    masks: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def spectrum(*values: float) -> Plane:
    """Return reflectances, one for each band of a scene."""
    return np.asarray(values, dtype=np.float32)


def with_spectra(table: dict[str, Any], *names: str, **more: Any) -> Kind:
    """Return a kind from its table, and ``more``; entries called ``names`` are reflectances."""
    return Kind(**{**table, **more, **{name: spectrum(*table[name]) for name in names}})


def spectra(place: str) -> dict[str, Plane]:
    """Return the reflectances of a table of ``kinds.toml``: each is (bands,), or (kinds, bands) for several kinds."""
    return {
        name: np.asarray(values, np.float32) for name, values in TABLES["spectra"][place].items()
    }


def one_of(rng: Rng, kinds: Plane) -> Plane:
    """Return one row of ``kinds``, drawn at random."""
    return kinds[int(rng.integers(len(kinds)))]


def value_at(plane: NDArray[Any], x: float, y: float) -> float:
    """Return the value of the pixel at a position, or of the nearest pixel in the picture."""
    rows, columns = plane.shape
    return float(plane[min(max(int(y), 0), rows - 1), min(max(int(x), 0), columns - 1)])


def srgb_of(linear: Floats) -> NDArray[np.uint8]:
    """Convert linear light, 0 to 1, to 8-bit sRGB values."""
    srgb = np.where(
        linear <= 0.0031308, 12.92 * linear, 1.055 * np.maximum(linear, 1e-6) ** (1 / 2.4) - 0.055
    )
    return np.clip(srgb * 255 + 0.5, 0, 255).astype(np.uint8)


def jpeg_of(pixels: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    """Return a picture (rows, columns, 3) after JPEG compression."""
    coded = cv2.imencode(".jpg", pixels[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return np.ascontiguousarray(
        np.asarray(cv2.imdecode(coded, cv2.IMREAD_COLOR), np.uint8)[..., ::-1]
    )


def smooth_field(rng: Rng, shape: tuple[int, ...], cell: float) -> Plane:
    """Return a random field with mean about 0 and standard deviation about 1 that varies over ``cell`` pixels."""
    rows, columns = shape
    small = rng.standard_normal(
        (max(2, round(rows / cell) + 2), max(2, round(columns / cell) + 2))
    ).astype(np.float32)
    return np.asarray(
        cv2.resize(small, (columns, rows), interpolation=cv2.INTER_CUBIC), dtype=np.float32
    )


def fractal_field(
    rng: Rng, shape: tuple[int, ...], largest: float, octaves: int, fall: float = 0.55
) -> Plane:
    """Return the sum, of deviation 1, of smooth fields: each has half the cell and ``fall`` times the last weight."""
    total = np.zeros(shape, dtype=np.float32)
    weight, power, cell = 1.0, 0.0, largest
    for _ in range(octaves):
        total += weight * smooth_field(rng, shape, cell)
        power += weight * weight
        weight *= fall
        cell = max(1.0, cell / 2)
    return total / np.float32(np.sqrt(power))


def moved(
    plane: NDArray[Any],
    dx: float,
    dy: float,
    border: int = cv2.BORDER_CONSTANT,
    how: int = cv2.INTER_LINEAR,
) -> NDArray[Any]:
    """Return a plane or stack moved right and down by ``dx`` and ``dy`` pixels; ``border``, ``how``: modes of cv2."""
    move = np.array([[1, 0, dx], [0, 1, dy]], np.float32)
    return cv2.warpAffine(
        plane, move, (plane.shape[1], plane.shape[0]), flags=how, borderMode=border
    )


Window = tuple[slice, slice]
Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels, half-open."""


def overlap(
    patch: tuple[int, ...], picture: tuple[int, ...], x0: int, y0: int
) -> tuple[Window, Window]:
    """Return the part of a patch with its corner at (x0, y0) that is in the picture, and its place there."""
    left, top = max(0, -x0), max(0, -y0)
    right, bottom = (
        max(left, min(patch[1], picture[1] - x0)),
        max(top, min(patch[0], picture[0] - y0)),
    )
    place = slice(y0 + top, y0 + bottom), slice(x0 + left, x0 + right)
    return (slice(top, bottom), slice(left, right)), place


def blurred(plane: Floats, sigma: float) -> Plane:
    """Smooth a plane or stack (rows, columns[, bands]) by a Gaussian with standard deviation ``sigma``, pixels."""
    return np.asarray(
        cv2.GaussianBlur(np.asarray(plane, np.float32), (0, 0), sigma), dtype=np.float32
    )


def resized(plane: Floats, columns: int, rows: int, how: int = cv2.INTER_LINEAR) -> Plane:
    """Resize a plane or stack; ``how`` is one of the interpolations of cv2."""
    return np.asarray(
        cv2.resize(np.asarray(plane, np.float32), (columns, rows), interpolation=how),
        dtype=np.float32,
    )


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit cv2 to one thread, as threads slow down thousands of tiny drawings. Also a decorator."""
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(threads)


def save_picture(path: Path, pixels: NDArray[np.uint8], quality: int = 92) -> None:
    """Save ``pixels``, uint8 (rows, columns, 3), as a JPEG with colours at half resolution, as is usual."""
    content = cv2.imencode(".jpg", pixels[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    path.write_bytes(content.tobytes())


def cloud_shadow(rng: Rng, shape: tuple[int, int]) -> Plane:
    """Return the remaining share of the light, (rows, columns), under clouds over 8 to 25 % of the scene."""
    field = smooth_field(rng, shape, rng.uniform(120, 260))
    soft = 1.0 / (1.0 + np.exp(-7.0 * (field - float(np.quantile(field, rng.uniform(0.75, 0.92))))))
    return np.asarray(1.0 - rng.uniform(0.3, 0.5) * soft, np.float32)


def shifted(plane: NDArray[Any], shift: NDArray[np.float64]) -> NDArray[Any]:
    """Return the plane moved right and down by ``shift`` pixels; values of masks (uint8) are not interpolated."""
    how = cv2.INTER_NEAREST if plane.dtype == np.uint8 else cv2.INTER_LINEAR
    return moved(plane, shift[0], shift[1], cv2.BORDER_REPLICATE, how)


def photographed(
    rng: Rng, reflectance: NDArray[Any], *, noise: float, haze: float, balance: float
) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    """Return natural colours after JPEG, uint8 (rows, columns, 3), and reflectance x 10,000, uint16 (4, rows, columns).

    ``reflectance``: (rows, columns, 4): blue, green, red, near infrared. ``noise``: deviation of the sensor noise at
    full scale; ``haze``: reflectance that air adds to blue; ``balance``: deviation of the white-balance gains.
    """
    sharp = cv2.GaussianBlur(np.asarray(reflectance, np.float32), (0, 0), rng.uniform(0.5, 0.9))
    grain = rng.standard_normal(sharp.shape, dtype=np.float32)
    raster = sharp * (
        1 + 0.01 * rng.standard_normal(4, dtype=np.float32)
    ) + 0.25 * noise * grain * np.sqrt(sharp)
    bands = np.clip(raster * 1e4 + 0.5, 0, 65535).astype(np.uint16).transpose(2, 0, 1)
    air = rng.uniform(0.2, 1.0) * haze * np.array([1.0, 0.72, 0.5], np.float32)
    linear = sharp[..., :3] + air
    linear = linear * (1 + balance * rng.standard_normal(3, dtype=np.float32))
    linear *= np.float32(rng.uniform(0.34, 0.56) / max(float(np.quantile(linear, 0.98)), 1e-3))
    linear += noise * grain[..., :3] * np.sqrt(np.clip(linear, 0.01, None)) * 0.8
    linear = np.clip(linear, 0, 1)
    return jpeg_of(srgb_of(linear)[..., ::-1], int(rng.integers(82, 97))), np.ascontiguousarray(
        bands
    )


_FARTHEST_MM = 5500.0


def snapshot(rng: Rng, light: Floats, exposure: float, electrons: float) -> NDArray[np.uint8]:
    """Return an 8-bit sRGB photograph of linear light, (rows, columns, 3 or more), red, green and blue first.

    White balance, vignette, lens blur and photon noise are simulated; light burns out where ``exposure`` times it
    exceeds 1. ``electrons``: electrons at full scale, from 12,000 for a good sensor to 800 for a poor one.
    """
    rows, columns = light.shape[:2]
    linear = light[..., :3] * np.float32(exposure)
    warmth = rng.normal(0, 0.04)
    linear *= np.array([1.0 + warmth, 1.0, 1.0 - warmth], dtype=np.float32)
    y = np.linspace(-1, 1, rows, dtype=np.float32)[:, None]
    x = np.linspace(-1, 1, columns, dtype=np.float32)[None, :]
    linear *= (1.0 - np.float32(rng.uniform(0.04, 0.16)) * (x * x + y * y))[..., None]
    linear = blurred(linear, 0.6)
    # Light scattered in the lens around burnt-out areas.
    small = resized(np.clip(linear - 0.9, 0.0, 2.0), columns // 8, rows // 8, cv2.INTER_AREA)
    glow = resized(blurred(small, 3.0), columns, rows, cv2.INTER_LINEAR)
    linear += 0.06 * glow
    grain = rng.standard_normal(linear.shape, dtype=np.float32)
    linear += grain * np.sqrt(np.clip(linear, 0.0005, None) / np.float32(electrons))
    # A soft shoulder before highlights burn out, as in real cameras.
    linear = np.clip(linear, 0.0, None)
    linear = np.where(linear > 0.7, 0.7 + 0.3 * np.tanh((linear - 0.7) / 0.35), linear)
    return srgb_of(linear)


def infrared_frame(rng: Rng, near_infrared: Floats, gain: float) -> NDArray[np.uint8]:
    """Return a near-infrared camera's 8-bit picture (rows, columns) of linear light, with a gamma of 2.2."""
    linear = blurred(near_infrared * np.float32(gain), 0.8)
    linear += rng.standard_normal(linear.shape, dtype=np.float32) * np.float32(0.004)
    return np.clip(np.clip(linear, 0.0, 1.0) ** np.float32(1 / 2.2) * 255.0 + 0.5, 0, 255).astype(
        np.uint8
    )


def depth_frame(
    rng: Rng, distance_mm: Floats, noise: float, holes: float, flying: float
) -> NDArray[np.uint16]:
    """Return depth along the optical axis in millimetres (rows, columns), 0 for pixels without a measurement.

    Args:
        distance_mm: true depth; infinite for empty background.
        noise: standard deviation in millimetres at one metre; it grows with the square of the depth.
        holes: share of the picture that is lost in patches, in addition to the rims of objects in front of others.
        flying: share of the pixels at such rims that get a depth between the two objects.
    """
    near = np.minimum(distance_mm, np.float32(_FARTHEST_MM * 2))
    kernel = np.ones((3, 3), np.uint8)
    front, back = cv2.erode(near, kernel), cv2.dilate(near, kernel)
    rim = (back - front) > 40.0
    metres = near / 1000.0
    measured_mm = (
        near
        + rng.standard_normal(near.shape, dtype=np.float32) * np.float32(noise) * metres * metres
    )
    # Neighbouring pixels share errors, because the sensor matches patches.
    measured_mm += (
        np.float32(0.7 * noise) * metres * metres * smooth_field(rng, distance_mm.shape, 5)
    )
    between = rim & (rng.random(near.shape, dtype=np.float32) < flying)
    measured_mm = np.where(
        between, front + (back - front) * rng.random(near.shape, dtype=np.float32), measured_mm
    )
    dropouts = smooth_field(rng, distance_mm.shape, 14) + 0.4 * smooth_field(
        rng, distance_mm.shape, 4
    )
    gone = (
        dropouts > np.quantile(dropouts[::4, ::4], 1.0 - holes)
        if holes > 0
        else np.zeros(near.shape, np.bool_)
    )
    # The projector is next to the camera, so pixels just left of a near object are in its shadow.
    shadowed = np.zeros(near.shape, np.bool_)
    shift = 3
    shadowed[:, :-shift] = (near[:, :-shift] - near[:, shift:]) > 150.0
    missing = (
        gone
        | shadowed
        | (rim & (rng.random(near.shape, dtype=np.float32) < 0.25))
        | ~np.isfinite(distance_mm)
    )
    return np.where(
        missing | (measured_mm > _FARTHEST_MM), 0, np.clip(measured_mm + 0.5, 0, 65535)
    ).astype(np.uint16)
