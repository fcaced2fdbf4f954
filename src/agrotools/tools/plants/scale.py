"""Centimetres per pixel in a picture of plants: given, from a marker in the picture, or from metadata.

A round marker (a coin, a disc) is found from contours of a grey picture at many levels that are as round as a disc and
stay so over several levels: maximally stable regions (Matas et al. 2002), restricted to circles. It counts only if it
is the only one.
"""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.tools.inputs import choose_scale
from agrotools.tools.plants.measure_weed_phenotype import ScaleMarker

_LONGEST_PX = 1200
_LEVELS = 24
_LEAST_SEEN = 3
_ROUND = 0.02
"""Largest mean distance of the outline from a circle, share of the radius, beside a quarter of a pixel for sampling.

A square has 0.08, a hexagon 0.03.
"""
_LARGEST_SHARE = 0.5
"""A marker is at most this share of the picture's longer side."""
_LEAST_RADIUS_PX = 8.0


@dataclass(frozen=True)
class Disc:
    x: float
    y: float
    radius: float


def find_discs(pixels: NDArray[np.uint8], exclude: NDArray[np.bool_] | None = None) -> list[Disc]:
    """The discs in a picture, largest first.

    Args:
        pixels: uint8 (rows, columns, 3).
        exclude: bool (rows, columns), plants: round leaves are no markers.
    """
    height, width = pixels.shape[:2]
    shrink = min(1.0, _LONGEST_PX / max(height, width))
    size = (max(1, round(width * shrink)), max(1, round(height * shrink)))
    small = cv2.GaussianBlur(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), (0, 0), 1.0)
    left_out = None
    if exclude is not None:
        left_out = np.asarray(cv2.resize(exclude.astype(np.float32), size, interpolation=cv2.INTER_AREA), np.float32)
    lab = cv2.cvtColor(small, cv2.COLOR_RGB2LAB)
    groups: list[list[Disc]] = []
    for channel in cv2.split(lab):
        low, high = int(channel.min()), int(channel.max())
        for level in np.unique(np.linspace(low, high, _LEVELS + 2)[1:-1].astype(int)):
            for cut in (channel > level, channel <= level):
                for disc in _round_parts(cut.view(np.uint8), left_out):
                    _join(groups, disc)
    found: list[Disc] = []
    for group in sorted(groups, key=len, reverse=True):
        disc = _typical(group)
        if len(group) >= _LEAST_SEEN and not any(_same(disc, other) for other in found):
            found.append(disc)
    discs = [Disc(d.x / shrink, d.y / shrink, d.radius / shrink) for d in found]
    return sorted(discs, key=lambda disc: -disc.radius)


def _round_parts(cut: NDArray[np.uint8], left_out: NDArray[np.float32] | None) -> list[Disc]:
    contours, _ = cv2.findContours(cut, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    height, width = cut.shape
    found: list[Disc] = []
    fewest = 2 * (2 * _LEAST_RADIUS_PX - 1)
    for contour in [contour for contour in contours if len(contour) >= fewest]:  # shorter ones go around no disc
        x, y, w, h = cv2.boundingRect(contour)
        touches = x == 0 or y == 0 or x + w == width or y + h == height
        if (
            touches
            or min(w, h) < 2 * _LEAST_RADIUS_PX
            or max(w, h) > 1.1 * min(w, h)
            or max(w, h) > 0.5 * max(cut.shape)
        ):
            continue
        area = float(cv2.contourArea(contour))
        points = contour[:, 0].astype(np.float64)
        centre = (points.min(axis=0) + points.max(axis=0)) / 2
        radii = np.hypot(*(points - centre).T)
        # Contours run through pixel centres: half a pixel inside the edge.
        radius = math.sqrt(area / math.pi) + 0.5
        if float(np.abs(radii - radii.mean()).mean()) > _ROUND * radius + 0.25:
            continue
        if left_out is not None and float(left_out[y : y + h, x : x + w].mean()) > 0.3:
            continue
        found.append(Disc(float(centre[0]) + 0.5, float(centre[1]) + 0.5, radius))
    return found


def _join(groups: list[list[Disc]], disc: Disc) -> None:
    for group in groups:
        if _same(disc, group[0]):
            group.append(disc)
            return
    groups.append([disc])


def _same(disc: Disc, other: Disc) -> bool:
    # The blurred edge of a small disc is a pixel or two further out at one level than at another.
    slack = max(2.5, 0.15 * other.radius)
    return math.hypot(disc.x - other.x, disc.y - other.y) < slack and abs(disc.radius - other.radius) < slack


def _typical(group: list[Disc]) -> Disc:
    x, y, radius = (float(np.median([getattr(disc, name) for disc in group])) for name in ("x", "y", "radius"))
    return Disc(x, y, radius)


_INSTEAD = "measure a known length in pixels and pass scale_cm_px"


@dataclass(frozen=True)
class PlantScale:
    """``cm_px``: centimetres per pixel, None where nobody knows; ``disc``: the marker it was found by."""

    cm_px: float | None
    disc: Disc | None = None
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def scale_of(
    scale_cm_px: float | None,
    marker: ScaleMarker | None,
    gsd_m: float | None,
    pixels: NDArray[np.uint8],
    plants: NDArray[np.bool_],
    name: str,
) -> PlantScale:
    """The scale to use: ``scale_cm_px``, else that of the marker, else ``gsd_m`` (metres per pixel) of the file.

    Raises:
        ToolError: ``missing_metadata`` where a marker was named that cannot be found for certain.
    """
    if scale_cm_px is not None:
        chosen = choose_scale(scale_cm_px / 100, gsd_m)
        ignored = ("scale_cm_px was given, so the scale marker was not looked for",) if marker else ()
        return PlantScale(scale_cm_px, None, (*chosen.notes, *ignored), chosen.flags)
    if marker is None:
        return PlantScale(None if gsd_m is None else 100 * gsd_m)
    if marker.type != "circle":
        raise ToolError("missing_metadata", f"a {marker.type.replace('_', ' ')} cannot be found reliably offline",
                        argument="scale_marker", hint=f"{_INSTEAD}, or lay a disc beside the plants")  # fmt: skip
    discs = find_discs(pixels, plants)
    if len(discs) != 1:
        seen = "no disc was" if not discs else f"{len(discs)} discs were"
        raise ToolError("missing_metadata", f"{seen} found in {name}, so its scale is not known",
                        argument="scale_marker", hint=_INSTEAD)  # fmt: skip
    disc = discs[0]
    note = f"scale from a disc of {2 * disc.radius:.1f} px at ({disc.x:.0f}, {disc.y:.0f})"
    return PlantScale(marker.size_cm / (2 * disc.radius), disc, (note,))
