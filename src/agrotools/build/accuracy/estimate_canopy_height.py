"""How exact estimate_canopy_height is: on rasters whose statistics are known, and on surface less terrain."""

from typing import Any

import numpy as np

from agrotools.build.accuracy.canopy_scenes import GSD_M, canopy_scene
from agrotools.build.accuracy.figures import Figure, mean_of
from agrotools.build.accuracy.study import Bench, Study

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
