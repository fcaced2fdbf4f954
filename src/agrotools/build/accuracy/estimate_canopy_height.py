"""Accuracy of estimate_canopy_height: on rasters whose statistics are known, and on surface less terrain."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.build.accuracy.figures import Figure, mean_of
from agrotools.build.accuracy.study import Bench, Study

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
    neighbour's crown is not a tree of the truth: nobody could see it from above.
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


_SCENES = 12


def _given_rasters(bench: Bench) -> list[Figure]:
    worst: dict[str, list[float]] = {"statistics": [], "shares": []}
    for item in bench.items():
        true = item["stats"]
        result = bench.call(chm=bench.folder / item["chm"], height_bins_m=[2.0, 5.0])
        over_5 = result.bins[-1].pct
        worst["statistics"].append(
            max(
                abs(result.mean_m - true["mean"]),
                abs(result.sd_m - true["std"]),
                abs(result.max_m - true["max"]),
                float(result.measured_px != true["valid"]),
                abs(result.gsd_m - true["res_m"]),
            )
        )
        worst["shares"].append(
            max(
                abs(result.cover_pct - 100 * true["fraction_over_2m"]),
                abs(over_5 - 100 * true["fraction_over_5m"]),
            )
        )
    note = "the truth is rounded to 4 places"
    return [
        mean_of("mean, sd, max: largest error, m", worst["statistics"], goal=0.0001, higher_is_better=False, note=note),
        mean_of(
            "cover at 2 and 5 m: largest error, points", worst["shares"], goal=0.01, higher_is_better=False, note=note
        ),
    ]


def _surface_less_terrain(bench: Bench) -> list[Figure]:
    import rasterio
    from rasterio.transform import from_origin

    means: list[float] = []
    tops: list[float] = []
    covers: list[float] = []
    for seed in range(_SCENES):
        heights = canopy_scene("forest", seed).heights
        side = heights.shape[0]
        bench.scratch.mkdir(parents=True, exist_ok=True)
        dsm, dtm = bench.scratch / f"dsm_{seed}.tif", bench.scratch / f"dtm_{seed}.tif"
        profile: dict[str, Any] = {"driver": "GTiff", "dtype": "float32", "count": 1, "crs": "EPSG:32633"}
        fine = from_origin(500_000, 5_000_000, GSD_M, GSD_M)
        coarse = from_origin(500_000 - 7.3, 5_000_000 + 7.7, 2.0, 2.0)
        with rasterio.open(dsm, "w", **profile, width=side, height=side, transform=fine) as file:
            file.write((heights + _ground(side, side, GSD_M, 0.0, 0.0)).astype(np.float32), 1)
        size = round(side * GSD_M / 2 + 12)
        with rasterio.open(dtm, "w", **profile, width=size, height=size, transform=coarse) as file:
            file.write(_ground(size, size, 2.0, -7.3, 7.7).astype(np.float32), 1)
        result = bench.call(dsm=dsm, dtm=dtm)
        means.append(abs(result.mean_m - float(heights.mean(dtype=np.float64))))
        tops.append(abs(result.max_m - float(heights.max())))
        covers.append(abs(result.cover_pct - 100 * float((heights >= 2).mean())))
    note = "drawn forests of 1 ha on rolling ground; terrain model of 2 m pixels on another grid"
    return [
        mean_of("mean height, absolute error, m", means, higher_is_better=False, note=note),
        mean_of("tallest tree, absolute error, m", tops, higher_is_better=False, note=note),
        mean_of("canopy cover, absolute error, points", covers, higher_is_better=False, note=note),
    ]


def _ground(rows: int, columns: int, size_m: float, x0: float, y0: float) -> np.ndarray:
    y, x = np.mgrid[0:rows, 0:columns]
    east, south = x0 + (x + 0.5) * size_m, -y0 + (y + 0.5) * size_m
    return 300 + 4 * np.sin(east / 25) + 3 * np.cos(south / 31) + 0.06 * east


STUDIES = (
    Study("estimate_canopy_height", "chm", _given_rasters),
    Study("estimate_canopy_height", "drawn_dsm_dtm", _surface_less_terrain, needs_folder=False),
)
