"""How fast the tools are: beside scikit-image and PlantCV doing the same jobs, on one core, in the same run.

    python benchmarks/tool_speed.py --setup DIR              # once: a virtual environment with PlantCV
    python benchmarks/tool_speed.py --data DIR [--peers DIR] [--repeat K] [--json]

Jobs, each from file to numbers and a picture of what was found, written as PNG:

* ``vegetation``: plants told from soil by a* of L*a*b* and Otsu's threshold, components and their areas
  (``count_objects`` of plants; photographs of ``cwfid``);
* ``lesions``: the leaf told from its background, diseased parts by colour, areas (``analyze_lesions``; photographs of
  ``coffee_lesions``);
* ``crowns``: tree tops of a canopy height model and the watershed around them (``count_objects`` with ``crown_chm``; a
  canopy drawn here, 600 x 600 at 0.5 m, 1,300 trees).

A peer does the job in as few calls as its documentation shows. It is the same job, not the same result: our tools also
clean, check, flag and describe, and a colour threshold does not find what a trained model finds. Clients take turns;
figures are medians over images and turns of the time of one image, the first image of each turn left out. Ratios are of
processor time, which says the same on a busy machine.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CLIENTS_FOLDER = Path(__file__).resolve().parent / "tool_speed_clients"
CLIENTS = {"agrotools": (), "scikit-image": (), "PlantCV": ("plantcv==4.8", "altair<6")}
SCRIPTS = {"agrotools": "agrotools_tools.py", "scikit-image": "scikit_image.py", "PlantCV": "plant_cv.py"}
IMAGES = 4
LONGEST_S = 300
_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMBA")
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in _LIBRARIES} | {"OPENCV_FOR_THREADS_NUM": "1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--setup", type=Path, metavar="DIR", help="make the peers' virtual environments there")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="where --setup made them")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder that holds cwfid and coffee_lesions")
    parser.add_argument("--repeat", type=int, default=3, help="turns of each client")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    options = parser.parse_args()
    if options.setup:
        set_up(options.setup)
        return
    with tempfile.TemporaryDirectory(prefix="tool-speed-") as scratch:
        jobs = jobs_of(options.data, Path(scratch))
        rows = measured(jobs, options.peers, options.repeat, Path(scratch))
    print(json.dumps(rows, indent=2) if options.json else "\n".join(as_table(rows)))


def note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def set_up(folder: Path) -> None:
    """A virtual environment for each peer that needs one, with uv where there is one."""
    uv = shutil.which("uv")
    for client, needs in CLIENTS.items():
        if not needs:
            continue
        target = folder / client.lower()
        note(f"installing {', '.join(needs)} into {target}")
        python = str(target / "bin" / "python")
        if uv:
            subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(target)], check=True)
            subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *needs], check=True)
        else:
            subprocess.run([sys.executable, "-m", "venv", str(target)], check=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", *needs], check=True)


def python_of(client: str, peers: Path | None) -> str | None:
    """The interpreter that runs ``client``; None, and a line that says so, where it is not installed."""
    if not CLIENTS[client]:
        return sys.executable
    python = peers / client.lower() / "bin" / "python" if peers else None
    if python is not None and python.is_file():
        return str(python.absolute())
    note(f"left out: {client} is not installed (--setup DIR, then --peers DIR)")
    return None


def jobs_of(data: Path | None, scratch: Path) -> dict[str, list[Path]]:
    """Job to its images."""
    jobs: dict[str, list[Path]] = {}
    for job, folder in (("vegetation", "cwfid"), ("lesions", "coffee_lesions")):
        truth = data / folder / "truth.json" if data else None
        if truth is None or not truth.is_file():
            note(f"left out: {job} needs --data with the folder {folder}")
            continue
        items = json.loads(truth.read_text(encoding="utf-8"))
        # A healthy leaf is no work for whoever looks for lesions.
        items = [item for item in items if item.get("lesion_fraction_of_leaf", 1) > 0.01]
        jobs[job] = [(truth.parent / item["image"]).absolute() for item in items[: IMAGES + 1]]
    jobs["crowns"] = [drawn_canopy(scratch / f"canopy_{seed}.tif", seed) for seed in range(3)]
    return jobs


def drawn_canopy(path: Path, seed: int, side: int = 600) -> Path:
    """Trees of 6 to 25 m on a jittered grid, 0.5 m per pixel, as a GeoTIFF of heights in metres."""
    import numpy as np
    import rasterio
    from rasterio.transform import from_origin

    rng = np.random.default_rng(seed)
    heights = np.zeros((side, side), np.float32)
    step = 16
    for top in range(step, side - step, step):
        for left in range(step, side - step, step):
            y, x = top + int(rng.integers(-4, 5)), left + int(rng.integers(-4, 5))
            height, radius = rng.uniform(6, 25), rng.uniform(5, 9)
            y0, x0 = max(0, y - 10), max(0, x - 10)
            part = heights[y0 : y + 11, x0 : x + 11]
            rows, columns = np.mgrid[y0 : y0 + part.shape[0], x0 : x0 + part.shape[1]]
            crown = height * (1 - ((rows - y) ** 2 + (columns - x) ** 2) / radius**2)
            np.maximum(part, crown.astype(np.float32), out=part)
    profile = {"driver": "GTiff", "dtype": "float32", "count": 1, "width": side, "height": side, "crs": "EPSG:32633"}
    with rasterio.open(path, "w", transform=from_origin(500_000, 5_000_000, 0.5, 0.5), **profile) as file:
        file.write(heights, 1)
    return path


def measured(jobs: dict[str, list[Path]], peers: Path | None, repeat: int, scratch: Path) -> list[dict[str, Any]]:
    clients = {client: python for client in CLIENTS if (python := python_of(client, peers))}
    taken: dict[tuple[str, str], list[dict[str, float]]] = {}
    for turn in range(repeat):
        for job, images in jobs.items():
            for client, python in clients.items():
                note(f"turn {turn + 1}: {job}, {client}")
                taken.setdefault((job, client), []).extend(one_turn(client, python, job, images, scratch))
    rows = []
    for (job, client), each in taken.items():
        row: dict[str, Any] = {"job": job, "client": client, "calls": len(each)}
        row |= dict.fromkeys(("ms", "cpu_ms", "cpu_ms_per_megapixel", "things"))
        if each:
            cpu_ms = [1000 * call["cpu_seconds"] for call in each]
            row["ms"] = statistics.median(1000 * call["seconds"] for call in each)
            row["cpu_ms"] = statistics.median(cpu_ms)
            row["cpu_ms_per_megapixel"] = statistics.median(
                ms / call["megapixels"] for ms, call in zip(cpu_ms, each, strict=True)
            )
            row["things"] = statistics.median(call["things"] for call in each)
        rows.append(row)
    return rows


def one_turn(client: str, python: str, job: str, images: list[Path], scratch: Path) -> list[dict[str, float]]:
    """What each image took, the first (which pays for imports) left out; nothing where the client fails."""
    made = scratch / "made" / client
    made.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **ONE_THREAD, "MPLBACKEND": "Agg", "MPLCONFIGDIR": str(scratch)}
    command = [python, str(CLIENTS_FOLDER / SCRIPTS[client]), job, str(made), *map(str, images)]
    try:
        ended = subprocess.run(
            command, env=environment, cwd=made, capture_output=True, text=True, timeout=LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired:
        note(f"{client} took more than {LONGEST_S} s for {job}")
        return []
    lines = [line for line in ended.stdout.splitlines() if line.startswith('{"seconds"')]
    if ended.returncode or len(lines) != len(images):
        note(f"{client} failed at {job}: {ended.stderr.strip().splitlines()[-1:] or ended.returncode}")
        return []
    return [json.loads(line) for line in lines][1:]


def as_table(rows: list[dict[str, Any]]) -> list[str]:
    heads = f"{'job':<12}{'client':<14}{'calls':>6}{'ms':>9}{'CPU ms':>9}{'CPU ms/MP':>11}{'found':>8}"
    lines = [f"{heads}   CPU time over that of agrotools"]
    ours = {row["job"]: row["cpu_ms"] for row in rows if row["client"] == "agrotools"}
    for row in rows:
        if row["ms"] is None:
            lines.append(f"{row['job']:<12}{row['client']:<14}{0:>6}   failed")
            continue
        ratio = f"{row['cpu_ms'] / ours[row['job']]:.2f}" if ours.get(row["job"]) else "-"
        figures = f"{row['ms']:>9.0f}{row['cpu_ms']:>9.0f}{row['cpu_ms_per_megapixel']:>11.0f}{row['things']:>8.0f}"
        lines.append(f"{row['job']:<12}{row['client']:<14}{row['calls']:>6}{figures}   {ratio}")
    return lines


if __name__ == "__main__":
    main()
