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
_TRIED = 200
_LEAST_SHARE, _LARGEST_SHARE = 0.5, 0.93
"""Sides of a parcel as shares of those of the picture."""
_FEWEST_INSIDE = 4
_MARGIN_PX = 7
"""Least distance of a border from the edge of the picture, so that it is drawn whole."""
_LEAST_CLEARANCE_PX = 4
"""Least distance of a counted point from a border: whether a tree nearer to it is inside cannot be seen."""

Point = tuple[float, float]
Parcel = tuple[str, Box]
"""Colour and place of a border."""


def is_outlined(name: str) -> bool:
    """Return True for every second name, by its hash."""
    return zlib.crc32(f"parcel {name}".encode()) % 2 == 1


def parcel_of(
    name: str, width: int, height: int, points: Sequence[Point], fewest: int = _FEWEST_INSIDE
) -> Parcel | None:
    """Return a border at random with no point near to it and ``fewest`` inside; None if none was found.

    The first one that suits is taken: the clearest would nearly always enclose the fewest points.
    """
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    colour = PENS_ON_GREEN[int(rng.integers(len(PENS_ON_GREEN)))]
    for _ in range(_TRIED):
        box = _drawn_box(rng, width, height)
        is_clear = _clearance(points, box) >= _LEAST_CLEARANCE_PX
        if is_clear and len(points_inside(points, box)) >= fewest:
            return colour, box
    return None


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
    x0, y0, x1, y1 = box
    distances: list[float] = []
    for x, y in points:
        outside = np.hypot(max(x0 - x, 0.0, x - x1), max(y0 - y, 0.0, y - y1))
        depth = min(x - x0, x1 - x, y - y0, y1 - y)
        distances.append(float(outside) if outside > 0 else float(depth))
    return min(distances, default=0.0)


def note_of(parcel: Parcel | None, land: str) -> str:
    """Return the sentence of a note that says which ground is asked about; ``land``: what the owner calls it."""
    if parcel is None:
        return f" All of the picture is {land}."
    return f" Only what the {parcel[0]} line encloses is {land}."


def found_first(file: SampleFile, parcel: Parcel | None) -> tuple[PlannedCall, ...]:
    """Return the call that finds the border; none without a border."""
    return () if parcel is None else (framed(file.name, *parcel),)


def only_inside(parcel: Parcel | None) -> dict[str, Any]:
    """Return the argument that limits a measurement to what the first call found; none without a border."""
    return {} if parcel is None else {"region": ref(0, "crop_box")}
