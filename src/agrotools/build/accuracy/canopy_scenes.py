"""Canopy height models of forests and orchards drawn by our own code, whose every tree is known."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

GSD_M = 0.5
_PIT_SHARE = 0.01
_ROUGHNESS = 0.05


@dataclass(frozen=True, eq=False)
class CanopyScene:
    """``heights``: float32 (rows, columns), metres, as a laser would give them. ``tops``: float64 (n, 2), x and y of
    the stems, pixels. ``tall_m``, ``radius_m``: float64 (n,), of the trees."""

    heights: NDArray[np.float32]
    tops: NDArray[np.float64]
    tall_m: NDArray[np.float64]
    radius_m: NDArray[np.float64]


def canopy_scene(kind: str, seed: int, side: int = 200) -> CanopyScene:
    """A ``forest`` (crowns of all sizes that touch and overlap) or an ``orchard`` (rows of like trees).

    Crowns are between a cone and a half ellipsoid, each with a rough surface (branches 0.5 to 1 m wide), over grass;
    the model has noise, and pits where the laser went through the crown. A tree whose top is hidden by a taller
    neighbour's crown is no tree of the truth: nobody could see it from above.
    """
    from scipy.ndimage import gaussian_filter

    draw = np.random.default_rng([seed, len(kind)])
    extent = side * GSD_M
    if kind == "orchard":
        rows, spacing = draw.uniform(4.0, 6.0), draw.uniform(2.5, 4.5)
        xs, ys = np.meshgrid(np.arange(rows, extent - 2, rows), np.arange(spacing, extent - 2, spacing))
        places = np.column_stack([xs.ravel(), ys.ravel()]) + draw.normal(0, 0.2, (xs.size, 2))
        places = places[draw.random(len(places)) > 0.05]
        tall = draw.normal(draw.uniform(3, 5), 0.4, len(places)).clip(2.5)
        radius = np.minimum(0.30 * tall + draw.normal(0, 0.1, len(places)), 0.48 * spacing).clip(0.8)
    else:
        tall_of_many = draw.uniform(6, 28, 900)
        places_of_many = draw.uniform(0, extent, (900, 2))
        radius_of_many = np.clip(0.6 + 0.11 * tall_of_many + draw.normal(0, 0.3, 900), 0.8, None)
        kept: list[int] = []
        closeness = draw.uniform(0.6, 0.9)
        for number in range(900):
            distances = np.hypot(*(places_of_many[kept] - places_of_many[number]).T)
            if (distances > closeness * (radius_of_many[kept] + radius_of_many[number])).all():
                kept.append(number)
        places, tall, radius = places_of_many[kept], tall_of_many[kept], radius_of_many[kept]
    y, x = (np.mgrid[0:side, 0:side] + 0.5) * GSD_M
    heights = np.abs(gaussian_filter(draw.normal(0, 1, (side, side)), 2)) * 0.6
    owner = np.full((side, side), -1)
    for number, ((at_x, at_y), top, wide) in enumerate(zip(places, tall, radius, strict=True)):
        share = np.hypot(x - at_x, y - at_y) / wide
        roundness = draw.uniform(1.0, 2.0)
        crown = np.where(share < 1, top * (1 - 0.6 * np.minimum(share, 1) ** roundness), 0)
        above = crown > heights
        owner[above], heights[above] = number, crown[above]
    rough = gaussian_filter(draw.normal(0, 1, (side, side)), 1.0)
    heights += np.where(owner >= 0, rough / rough.std() * _ROUGHNESS * heights, 0)
    heights += draw.normal(0, 0.08, heights.shape)
    pits = draw.random(heights.shape) < _PIT_SHARE
    heights[pits] *= draw.uniform(0.1, 0.7, int(pits.sum()))
    columns, lines = (np.clip((part / GSD_M).astype(int), 0, side - 1) for part in places.T)
    seen = owner[lines, columns] == np.arange(len(places))
    return CanopyScene(np.maximum(heights, 0).astype(np.float32), places[seen] / GSD_M, tall[seen], radius[seen])
