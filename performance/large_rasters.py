"""What canopy statistics and index cover take for a raster far larger than may be kept in memory.

    python performance/large_rasters.py [--case canopy|cover] [--side 10000] [--rounds 5] [--folder DIR] [--json]

A raster of side x side float32 pixels is made (deflate, tiles of 256, a corner without data; the same for the same
side): a canopy height model to the centimetre for ``estimate_canopy_height``, or red and near infrared reflectance to
four digits for ``measure_crop_weed_area``. Then, in turns and each in a fresh process: a plain read of the file tile by
tile with rasterio, which does nothing with what it reads, and the tool, from opening the file to the map it leaves.
Reported are medians of both over the rounds, on the clock and of processor time, the median of the ratios of rounds,
and the largest peak of resident memory that a whole process reached, interpreter and libraries included.

Libraries are loaded before the clock starts. Everything runs on one thread.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import float64
    from numpy.random import Generator
    from numpy.typing import NDArray

    Floats = NDArray[float64]

TILE = 256
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GDAL_NUM_THREADS"), "1")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--case", choices=tuple(CASES), default="canopy", help="which tool, on which raster"
    )
    parser.add_argument("--side", type=int, default=10_000, help="pixels on a side")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--folder", type=Path, help="where the raster is made and left; default: a temporary folder"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--only", choices=("read", "tool"), help=argparse.SUPPRESS)
    parser.add_argument("--raster", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(once(options.only, options.case, options.raster)))
        return
    with tempfile.TemporaryDirectory(prefix="large-rasters-") as scratch:
        folder: Path = options.folder or Path(scratch)
        path = folder / f"{options.case}_{options.side}.tif"
        if not path.exists():
            make_raster(path, options.side, CASES[options.case])
        rounds = [
            {what: in_fresh_process(what, options.case, path) for what in ("read", "tool")}
            for _ in range(options.rounds)
        ]
        report = summary(rounds, path, options.side)
    if options.json:
        print(json.dumps(report))
        return
    print(
        f"{report['side']} x {report['side']} float32, {report['file_mb']:.0f} MB deflate, {report['rounds']} rounds"
    )
    for what in ("read", "tool"):
        row = report[what]
        print(
            f"{what}: {row['seconds']:.2f} s, {row['cpu_seconds']:.2f} s of processor, peak {row['peak_mb']:.0f} MB"
        )
    print(
        f"tool over read: {report['ratio']:.2f} on the clock, {report['cpu_ratio']:.2f} of processor time"
    )


def canopy_tile(draw: "Generator", heights: "Floats") -> "Floats":
    """Heights of a tile, metres, (1, rows, columns)."""
    import numpy as np

    rough = np.maximum(heights + draw.normal(0, 0.3, heights.shape), 0)
    return np.round(np.where(heights > 0, rough, 0), 2)[None]


def cover_tile(draw: "Generator", heights: "Floats") -> "Floats":
    """Red and near infrared reflectance of a tile, (2, rows, columns): plants where the landscape has crowns."""
    import numpy as np

    plants = (heights > 14)[None]
    means = np.where(
        plants, np.array([0.05, 0.42])[:, None, None], np.array([0.16, 0.21])[:, None, None]
    )
    return np.round(np.maximum(means * (1 + draw.normal(0, 0.08, means.shape)), 0.001), 4)


def make_raster(path: Path, side: int, case: "Case") -> None:
    """A landscape of crowns and clearings, drawn tile by tile."""
    import numpy as np
    import rasterio
    from rasterio.transform import from_origin
    from scipy.ndimage import gaussian_filter

    draw = np.random.default_rng(1)
    patch = 1024
    crowns = gaussian_filter(draw.standard_normal((patch, patch)), 3, mode="wrap")
    stands = gaussian_filter(draw.standard_normal((patch, patch)), 60, mode="wrap")
    heights = np.clip(12 + 60 * crowns + 400 * stands, 0, 45)
    profile: dict[str, Any] = {
        "driver": "GTiff", "dtype": "float32", "count": len(case.bands), "width": side, "height": side,
        "nodata": -9999.0, "tiled": True, "blockxsize": TILE, "blockysize": TILE, "compress": "deflate",
        "BIGTIFF": "IF_SAFER", "crs": "EPSG:32633", "transform": from_origin(500_000, 5_000_000, 0.5, 0.5),
    }  # fmt: skip
    unfinished = path.with_suffix(".part.tif")
    with rasterio.open(unfinished, "w", **profile) as file:
        for _, window in file.block_windows(1):
            rows = (np.arange(window.height) + window.row_off) % patch
            columns = (np.arange(window.width) + window.col_off) % patch
            part = case.tile(draw, heights[np.ix_(rows, columns)])
            if window.row_off + window.col_off < side // 10:
                part[:] = -9999
            file.write(part.astype(np.float32), window=window)
        for number, name in enumerate(case.bands, start=1):
            file.set_band_description(number, name)
    unfinished.replace(path)


@dataclass(frozen=True)
class Case:
    """A tool, the argument that takes the raster, the raster's bands, and what fills a tile of it."""

    tool: str
    argument: str
    bands: tuple[str, ...]
    tile: "Callable[[Generator, Floats], Floats]"
    more: dict[str, Any] = field(default_factory=dict)


CASES = {
    "canopy": Case("estimate_canopy_height", "chm", ("height",), canopy_tile),
    "cover": Case(
        "measure_crop_weed_area", "image", ("R", "NIR"), cover_tile, {"separation": "none"}
    ),
}


def in_fresh_process(what: str, case: str, path: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--only", what, "--case", case, "--raster", str(path)]
    finished = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **_ONE_THREAD}
    )
    return json.loads(finished.stdout)


def once(what: str, case: str, path: Path) -> dict[str, float]:
    """Seconds on the clock and of processor time, and the peak memory of this process, megabytes."""
    import cv2
    import rasterio

    from agrotools.calling import get_tool
    from agrotools.calling.workspace import artifacts_in

    cv2.setNumThreads(1)
    tool = get_tool(CASES[case].tool)
    with tempfile.TemporaryDirectory() as made, artifacts_in(made):
        started, started_cpu = time.perf_counter(), time.process_time()
        if what == "tool":
            tool(**{CASES[case].argument: path}, **CASES[case].more)
        else:
            with rasterio.open(path) as file:
                for _, window in file.block_windows(1):
                    file.read(window=window)
        seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - started_cpu
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_mb": peak_mb()}


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


def summary(rounds: list[dict[str, dict[str, float]]], path: Path, side: int) -> dict[str, Any]:
    def median(what: str, key: str) -> float:
        return statistics.median(one[what][key] for one in rounds)

    def ratio(key: str) -> float:
        return statistics.median(one["tool"][key] / one["read"][key] for one in rounds)

    report: dict[str, Any] = {
        "side": side,
        "file_mb": path.stat().st_size / 1e6,
        "rounds": len(rounds),
        "ratio": ratio("seconds"),
        "cpu_ratio": ratio("cpu_seconds"),
    }
    for what in ("read", "tool"):
        report[what] = {
            "seconds": median(what, "seconds"),
            "cpu_seconds": median(what, "cpu_seconds"),
            "peak_mb": max(one[what]["peak_mb"] for one in rounds),
        }
    return report


if __name__ == "__main__":
    main()
