"""A drawn field trial: orthomosaics of two dates, and the plan of its plots. No data of other people are in it."""

import csv
from pathlib import Path

import numpy as np
from rasterio.transform import from_origin
from scipy.ndimage import gaussian_filter

from support.picture_files import write_raster

GSD_M = 0.02
X, Y = 500_000.0, 5_000_000.0
BLOCKS, VARIETIES = 4, ("Arin", "Bela", "Cord", "Dorn", "Esta", "Fina")
WIDTH_M, LENGTH_M, GAP_M, MARGIN_M = 1.5, 6.0, 0.5, 1.0
GRID = (
    f"x={X + MARGIN_M},y={Y - MARGIN_M},rows={BLOCKS},columns={len(VARIETIES)},"
    f"width={WIDTH_M},length={LENGTH_M},gap={GAP_M}"
)
COVERS = {"2026-05-12": 0.25, "2026-06-03": 0.5}
"""Share of the ground that plants of the first variety cover, by date."""
_STEP, _OF_BLOCKS, _OF_PLOTS = 0.05, 0.03, 0.02
"""Share by which each variety covers more than the one before, and spread of blocks and of plots."""
_CROWN_PX = 4.0
"""Size of the crowns of plants: they are longer than the pixels of a speck."""


def draw_trial(folder: Path) -> tuple[list[Path], Path]:
    """Write the orthomosaics and the plan, and return their paths."""
    draw = np.random.default_rng(7)
    order = [draw.permutation(len(VARIETIES)) for _ in range(BLOCKS)]
    of_blocks = draw.normal(0, _OF_BLOCKS, BLOCKS)
    of_plots = draw.normal(0, _OF_PLOTS, (BLOCKS, len(VARIETIES)))
    more = _STEP * np.array(order) + of_blocks[:, None] + of_plots
    rasters = [folder / f"trial_{date}.tif" for date in COVERS]
    for path, cover in zip(rasters, COVERS.values(), strict=True):
        picture = _picture(cover + more, draw)
        place = from_origin(X, Y, GSD_M, GSD_M)
        write_raster(path, picture, crs="EPSG:32633", transform=place, photometric="RGB")
    plan = folder / "plan.csv"
    with plan.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["Row", "Column", "Variety", "Block", "Yield"])
        for block, varieties in enumerate(order):
            for column, variety in enumerate(varieties):
                grain = round(6 + 8 * more[block, column] + draw.normal(0, 0.15), 2)
                table.writerow([block + 1, column + 1, VARIETIES[variety], block + 1, grain])
    return rasters, plan


def _picture(covers: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Return red, green and blue, uint8 (3, rows, columns), of plots with these shares of plants."""
    rows = round((2 * MARGIN_M + BLOCKS * (LENGTH_M + GAP_M) - GAP_M) / GSD_M)
    columns = round((2 * MARGIN_M + len(VARIETIES) * (WIDTH_M + GAP_M) - GAP_M) / GSD_M)
    crowns = gaussian_filter(draw.normal(size=(rows, columns)), _CROWN_PX)
    plants = np.zeros((rows, columns), bool)
    for (block, column), cover in np.ndenumerate(covers):
        top = round((MARGIN_M + block * (LENGTH_M + GAP_M)) / GSD_M)
        left = round((MARGIN_M + column * (WIDTH_M + GAP_M)) / GSD_M)
        plot = np.s_[top : top + round(LENGTH_M / GSD_M), left : left + round(WIDTH_M / GSD_M)]
        plants[plot] = crowns[plot] > np.quantile(crowns[plot], 1 - cover)
    green, soil = np.array([70, 125, 45]), np.array([150, 118, 88])
    means = np.where(plants[..., None], green, soil)
    return (
        np.clip(means + draw.normal(0, 7, means.shape), 1, 255).astype(np.uint8).transpose(2, 0, 1)
    )
