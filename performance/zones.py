"""Time and memory for 1,000 plots of a large orthomosaic, and the difference from cutting each plot out.

Figures of docs/trial.md, "Precision and time".

    python performance/zones.py [--side 20000, at least 5000] [--case colour|heights] [--folder DIR]

Of heights, exactextract (if it is installed) measures the same plots, with figures that agrotools has, too: count,
mean, standard deviation, maximum, median and 95th percentile. Both run in a process of their own, one after the other.
Compare the processor time where other programs run.

The raster (three bands of 8 bits, or heights as float32; deflate, tiles of 512, a corner without data) and plots turned
by 5 degrees, some outside, are the same for the same side. The process is fresh. 40 plots are compared with plain code:
rasterio reads the box of a plot, and a pixel weighs as much as shapely says of its area lies in the plot.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
import shapely
from rasterio.transform import from_origin
from scipy.ndimage import gaussian_filter

from agrotools.vision.rasters import open_raster
from agrotools_tools import measure_zones
from agrotools_tools.crop_weed.large_rasters import sample_threshold
from agrotools_tools.vision.vegetation import index_values, smooth_index, without_specks

GSD, X, Y, ROWS, COLUMNS, TURN = 0.01, 500_000.0, 5_000_000.0, 25, 40, math.radians(-5)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--side", type=int, default=20_000, help="pixels on a side")
    parser.add_argument("--case", choices=("colour", "heights"), default="colour")
    parser.add_argument(
        "--folder", type=Path, help="where the raster is made and left; default: a temporary folder"
    )
    parser.add_argument("--only", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--by-exactextract", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    width, length = 0.8 * options.side * GSD / COLUMNS, 0.8 * options.side * GSD / ROWS
    if options.only:
        size = f"width={width},length={length},gap={0.1 * width},rotation=-5"
        started, cpu = time.perf_counter(), time.process_time()
        table = measure_zones(
            options.only, f"x={X - 1},y={Y - 1},rows={ROWS},columns={COLUMNS},{size}"
        )
        print(json.dumps([time_since(started, cpu), table.rows]))
        return
    if options.by_exactextract:
        print(json.dumps(by_exactextract(options.by_exactextract, width, length)))
        return
    with tempfile.TemporaryDirectory(prefix="zones-") as scratch:
        path = (options.folder or Path(scratch)) / f"{options.case}_{options.side}.tif"
        if not path.exists():
            make_raster(path, options.side, options.case)
        figures, rows = in_a_process("--only", path, options.side)
        print(
            f"{len(rows)} plots, {sum('outside' in row['flags'] for row in rows)} outside or partly: {figures}"
        )
        if options.case == "heights" and find_spec("exactextract"):
            of_others, theirs = in_a_process("--by-exactextract", path, options.side)
            print(f"exactextract: {of_others}")
            print_differences(rows, theirs)
        inside = [row for row in rows if row["pixels"]]
        chosen = inside[:: len(inside) // 40]
        with open_raster(path) as source:
            bands = {"R": 1, "G": 2, "B": 3} if options.case == "colour" else {}
            whole = (0, 0, options.side, options.side)
            threshold = (
                sample_threshold(source, bands, "lab_a", whole).cut.threshold if bands else None
            )
        plain = [
            cut_out(path, row["zone"], width, length, options.side, threshold) for row in chosen
        ]
        for column in plain[0]:
            pairs = [(one[column], row[column]) for one, row in zip(plain, chosen, strict=True)]
            print(
                f"{column}: largest relative difference {max(abs(a - b) / max(abs(a), 1) for a, b in pairs):.1e}"
            )


def time_since(started: float, cpu: float) -> str:
    """Return how long this process has worked, and its largest memory."""
    seconds = time.perf_counter() - started
    return (
        f"{seconds:.1f} s, {time.process_time() - cpu:.1f} s of processor, peak {peak_mb():.0f} MB"
    )


def peak_mb() -> float:
    """Largest resident memory of this process since it began its program, megabytes (10^6 bytes)."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent had when it forked
        kilobytes = next(
            line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")
        )
        return int(kilobytes) * 1024 / 1e6
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most * 1024 / 1e6


def in_a_process(option: str, path: Path, side: int) -> Any:
    """Return what this script prints with a hidden option, in a fresh process."""
    command = [sys.executable, __file__, option, path, "--side", str(side)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def by_exactextract(path: Path, width: float, length: float) -> tuple[str, list[dict[str, Any]]]:
    """Return the time of exactextract, and its figures of the plots."""
    from exactextract import exact_extract

    features: list[dict[str, Any]] = []
    for row, column in np.ndindex(ROWS, COLUMNS):
        right, down = corners_of(row, column, width, length)
        xs = X - 1 + right * math.cos(TURN) + down * math.sin(TURN)
        ys = Y - 1 + right * math.sin(TURN) - down * math.cos(TURN)
        outline = shapely.Polygon(np.stack([xs, ys], axis=1)).__geo_interface__
        features.append({"type": "Feature", "properties": {}, "geometry": outline})
    started, cpu = time.perf_counter(), time.process_time()
    figures = ["count", "mean", "stdev", "max", "median", "quantile(q=0.95)"]
    found: Any = exact_extract(str(path), features, figures)
    return time_since(started, cpu), [feature["properties"] for feature in found]


def print_differences(rows: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    """Print the largest relative differences from exactextract, whose percentiles are not interpolated."""
    same = {"pixels": "count", "mean_m": "mean", "sd_m": "stdev", "max_m": "max"}
    for column, name in (same | {"median_m": "median", "p95_m": "quantile_95"}).items():
        pairs = [
            (row[column], other[name])
            for row, other in zip(rows, theirs, strict=True)
            if row["pixels"]
        ]
        largest = max(abs(ours - other) / max(abs(other), 1) for ours, other in pairs)
        print(f"  {column}: largest relative difference from exactextract {largest:.1e}")


def corners_of(row: int, column: int, width: float, length: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of a plot in metres to the right and down, before it is turned."""
    right = column * 1.1 * width + np.array([0, width, width, 0])
    down = row * (length + 0.1 * width) + np.array([0, 0, length, length])
    return right, down


def make_raster(path: Path, side: int, case: str) -> None:
    draw = np.random.default_rng(1)
    crowns = gaussian_filter(draw.standard_normal((1024, 1024)), 6, mode="wrap")
    patch = np.round(np.maximum(3 + 60 * crowns + draw.normal(0, 0.2, crowns.shape), 0), 2)[
        None
    ].astype(np.float32)
    if case == "colour":
        means = np.where(
            crowns > 0.01,
            np.array([60, 120, 40])[:, None, None],
            np.array([140, 110, 80])[:, None, None],
        )
        patch = np.clip(means + draw.normal(0, 8, means.shape), 1, 255).astype(np.uint8)
    profile: dict[str, Any] = {
        "driver": "GTiff", "dtype": patch.dtype.name, "count": len(patch), "width": side, "height": side, "tiled": True,
        "blockxsize": 512, "blockysize": 512, "compress": "deflate", "zlevel": 1, "BIGTIFF": "IF_SAFER",
        "nodata": 0 if case == "colour" else -9999, "crs": "EPSG:32633", "transform": from_origin(X, Y, GSD, GSD),
    }  # fmt: skip
    with rasterio.open(path, "w", **profile) as file:
        for _, window in file.block_windows(1):
            top, left = window.row_off % 1024, window.col_off % 1024
            part = patch[:, top : top + window.height, left : left + window.width].copy()
            part[:, :, :] = (
                profile["nodata"] if window.row_off + window.col_off > 1.9 * side else part
            )
            file.write(part, window=window)


def cut_out(
    path: Path, zone: str, width: float, length: float, side: int, threshold: float | None
) -> dict[str, float]:
    """Return the figures of a plot by plain code; ``threshold``: of the index, in the raster of colours."""
    row, column = (int(part) - 1 for part in zone.split("-"))
    right, down = corners_of(row, column, width, length)
    across = (right * math.cos(TURN) + down * math.sin(TURN) - 1) / GSD
    along = (1 - right * math.sin(TURN) + down * math.cos(TURN)) / GSD
    plot = shapely.Polygon(np.stack([across, along], axis=1))
    x0, y0 = (max(0, math.floor(part.min()) - 20) for part in (across, along))
    x1, y1 = (min(side, math.ceil(part.max()) + 20) for part in (across, along))
    with rasterio.open(path) as file:
        values = file.read(window=((y0, y1), (x0, x1)))
        there = (values != file.nodata).all(axis=0)
    pixels = shapely.box(
        *(grid := np.meshgrid(np.arange(x0, x1), np.arange(y0, y1))), grid[0] + 1, grid[1] + 1
    )
    shapely.prepare(plot)
    weights = shapely.contains_properly(plot, pixels).astype(np.float64)
    edge = shapely.intersects(plot, pixels) & (weights == 0)
    weights[edge] = shapely.area(shapely.intersection(plot, pixels[edge]))
    weights[~there] = 0
    if threshold is not None:
        bands = np.where(there, values.astype(np.float32), np.float32(np.nan))
        index = index_values("lab_a", dict(zip("RGB", bands, strict=True)))
        plants = without_specks(smooth_index(index, there) > np.float32(threshold), there)
        means = {"veg_pct": 100.0 * plants, "lab_a_mean": np.where(there, index, 0)}
    else:
        means = {"mean_m": np.where(there, values[0], 0), "cover_pct": 100.0 * (values[0] >= 2)}
    return {"pixels": weights.sum()} | {
        name: float(np.average(each, weights=weights)) for name, each in means.items()
    }


if __name__ == "__main__":
    main()
