"""Parcels that an owner outlined in a picture from the air: only what is inside the drawn border counts.

Every second picture has such a border. The questions are the same for both, so that only the picture and the note
beside it tell whether the border has to be found first.
"""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from agrotools.core import SampleFile
from agrotools_benchmarks.field.pack import Box
from agrotools_build.references import PlannedCall, ref
from field_parts.converted import framed

PENS_ON_GREEN = ("red", "yellow")
"""Colours that neither trees nor soil nor water have."""
PENS_ON_FALSE_COLOUR = ("blue",)
"""Colours for pictures in which plants look yellow to orange."""
_TRIED = 1_000
_LEAST_SHARE, _LARGEST_SHARE = 0.5, 0.93
"""Sides of a parcel as shares of those of the picture."""
_FEWEST_INSIDE = 4
_MOST_INSIDE = 0.85
"""Most points inside a border, as a share of all."""
_MARGIN_PX = 7
"""Least distance of a border from the edge of the picture, so that it is drawn whole."""
_LEAST_CLEARANCE = 0.02
"""Least distance of a counted point from a border, as a share of the shorter side of the picture: on which side of it
the middle of a nearer tree lies cannot be seen."""

Point = tuple[float, float]
Parcel = tuple[str, Box]
"""Colour and place of a border."""


def is_outlined(name: str) -> bool:
    """Return True for every second name, by its hash."""
    return zlib.crc32(f"parcel {name}".encode()) % 2 == 1


def parcel_of(
    name: str, width: int, height: int, points: Sequence[Point], fewest: int = _FEWEST_INSIDE
) -> Parcel | None:
    """Return a border with no point near to it and ``fewest`` inside; None if none was found.

    How many it encloses is drawn first: the clearest border would nearly always enclose the fewest.
    """
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    colour = PENS_ON_GREEN[int(rng.integers(len(PENS_ON_GREEN)))]
    wanted = rng.uniform(fewest, max(fewest, _MOST_INSIDE * len(points)))
    least_clearance = _LEAST_CLEARANCE * min(width, height)
    best: Box | None = None
    best_difference = float("inf")
    for _ in range(_TRIED):
        box = _drawn_box(rng, width, height)
        number = len(points_inside(points, box))
        if number < fewest or _clearance(points, box) < least_clearance:
            continue
        if abs(number - wanted) < best_difference:
            best, best_difference = box, abs(number - wanted)
    return None if best is None else (colour, best)


def plot_of(name: str, width: int, height: int, pens: Sequence[str]) -> Parcel:
    """Return a border anywhere in a picture, for areas: these may be cut anywhere."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    colour = pens[int(rng.integers(len(pens)))]
    return colour, _drawn_box(rng, width, height)


def inside_of(box: Box) -> Box:
    """Return the part of a border's box that the tool keeps: it leaves a pixel inside the stroke out."""
    x0, y0, x1, y1 = box
    return x0 + 1, y0 + 1, x1 - 1, y1 - 1


def _drawn_box(rng: np.random.Generator, width: int, height: int) -> Box:
    edges: list[tuple[int, int]] = []
    for side in (width, height):
        length = int(side * rng.uniform(_LEAST_SHARE, _LARGEST_SHARE))
        first = int(rng.integers(_MARGIN_PX, side - _MARGIN_PX - length + 1))
        edges.append((first, first + length))
    (x0, x1), (y0, y1) = edges
    return x0, y0, x1, y1


def points_inside(points: Sequence[Point], box: Box) -> list[Point]:
    """Return the points inside a border."""
    x0, y0, x1, y1 = box
    return [(x, y) for x, y in points if x0 <= x < x1 and y0 <= y < y1]


def _clearance(points: Sequence[Point], box: Box) -> float:
    """Return the distance of the nearest point from the border."""
    if not points:
        return 0.0
    x0, y0, x1, y1 = box
    x, y = np.array(points).T
    beside = np.maximum(np.maximum(x0 - x, x - x1), 0.0)
    above = np.maximum(np.maximum(y0 - y, y - y1), 0.0)
    outside = np.hypot(beside, above)
    depth = np.minimum(np.minimum(x - x0, x1 - x), np.minimum(y - y0, y1 - y))
    distances = np.where(outside > 0, outside, depth)
    return float(distances.min())


def note_of(parcel: Parcel | None, land: str, plant: str = "") -> str:
    """Return the sentence of a note that says which ground is asked about.

    Args:
        land: what the owner calls the ground.
        plant: what is counted and may be cut by the border; empty for areas.
    """
    if parcel is None:
        return f" All of the picture is {land}."
    cut = f"; a {plant} that the line cuts counts if its middle is inside" if plant else ""
    return f" Only what the {parcel[0]} line encloses is {land}{cut}."


def found_first(file: SampleFile, parcel: Parcel | None) -> tuple[PlannedCall, ...]:
    """Return the call that finds the border; none without a border."""
    return () if parcel is None else (framed(file.name, *parcel),)


def only_inside(parcel: Parcel | None) -> dict[str, Any]:
    """Return the argument that limits a measurement to what the first call found; none without a border."""
    return {} if parcel is None else {"region": ref(0, "crop_box")}
