"""Time to find the plants in photographs, beside PlantCV in the same run.

Figure of docs/tools.md, "Speed".

    python -m venv pc && pc/bin/pip install plantcv
    python performance/vegetation.py --peer pc/bin/python --images DIR [--repeat 3] [--json]

Both read a photograph, take a* of CIELAB and Otsu's threshold, and drop specks and pinholes of under 10 pixels
(PlantCV fills all holes). "pictures": a mask and an overlay are saved as PNG files, too, as users of either get them;
on our side this is a whole call of ``measure_crop_weed_area``, checks of the photograph included. "cover": the share of
plants alone. The programs take turns, each in a process of its own with one thread; a figure is the median over
photographs, then over repeats.
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
from pathlib import Path
from typing import Any

SIDES, JOBS = ("agrotools", "plantcv"), ("pictures", "cover")


def measure_by_agrotools(out: Path, pictures: bool) -> Callable[[Path], float]:
    """Return a function that gives the plant cover of a photograph, percent."""
    import numpy as np

    from agrotools.calling import get_tool
    from agrotools.calling.workspace import CallContext, call_context, write_artifact
    from agrotools.vision.reading import read_image
    from agrotools_tools.vision.vegetation import segment

    def by_tool(path: Path) -> float:
        # As in a run, a call has a folder of its own; in a common one, files are compared with all earlier ones.
        folder = Path(tempfile.mkdtemp(dir=out))
        work = CallContext(keep=lambda artifact, content: write_artifact(folder, artifact, content))
        with call_context(work):
            return get_tool("measure_crop_weed_area")(image=path, separation="none").veg_pct

    def by_index(path: Path) -> float:
        pixels = read_image(path).pixels
        plants = segment(
            "lab_a", {"R": pixels[..., 0], "G": pixels[..., 1], "B": pixels[..., 2]}, None
        )
        return 100 * float(np.mean(plants.mask))

    return by_tool if pictures else by_index


def measure_by_plantcv(out: Path, pictures: bool) -> Callable[[Path], float]:
    """Return a function that gives the plant cover of a photograph, percent."""
    import cv2
    from plantcv import plantcv  # pyright: ignore[reportMissingImports]

    cv2.setNumThreads(1)

    def cover(path: Path) -> float:
        image: Any = plantcv.readimage(str(path))[0]
        grey = plantcv.rgb2gray_lab(rgb_img=image, channel="a")
        mask = plantcv.threshold.otsu(gray_img=grey, object_type="dark")
        mask = plantcv.fill_holes(bin_img=plantcv.fill(bin_img=mask, size=10))
        if pictures:
            plantcv.print_image(mask, str(out / "mask.png"))
            coloured = cv2.merge([mask, mask, mask])
            overlay = plantcv.visualize.overlay_two_imgs(img1=image, img2=coloured, alpha=0.5)
            plantcv.print_image(overlay, str(out / "overlay.png"))
        return 100 * float((mask > 0).mean())

    return cover


def run_side(side: str, job: str, paths: list[Path]) -> dict[str, float]:
    """Return median milliseconds and mean cover over the photographs; the first is measured twice, once untimed."""
    taken, covers = [], []
    with tempfile.TemporaryDirectory() as folder:
        make = measure_by_agrotools if side == "agrotools" else measure_by_plantcv
        measure = make(Path(folder), job == "pictures")
        measure(paths[0])
        for path in paths:
            started = time.perf_counter()
            covers.append(measure(path))
            taken.append(1000 * (time.perf_counter() - started))
    return {"ms": statistics.median(taken), "cover_pct": statistics.fmean(covers)}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", help="Python of an environment with PlantCV")
    parser.add_argument(
        "--images", type=Path, required=True, help="folder of photographs of fields from above"
    )
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--job", choices=JOBS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    paths = sorted(
        path for path in given.images.iterdir() if path.suffix.lower() in (".png", ".jpg", ".jpeg")
    )
    if not paths:
        parser.error(f"{given.images} holds no PNG or JPEG files")
    if given.side:
        print(json.dumps(run_side(given.side, given.job, paths)))
        return 0
    if not given.peer:
        parser.error("--peer is missing")
    pythons = {"agrotools": sys.executable, "plantcv": given.peer}
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1", "OPENCV_FOR_THREADS_NUM": "1"}
    rows: dict[str, dict[str, list[dict[str, float]]]] = {
        job: {side: [] for side in SIDES} for job in JOBS
    }
    for _ in range(given.repeat):
        for job in JOBS:
            for side in SIDES:
                command = [
                    pythons[side],
                    __file__,
                    "--images",
                    str(given.images),
                    "--side",
                    side,
                    "--job",
                    job,
                ]
                done = subprocess.run(
                    command, env=one_thread, check=True, stdout=subprocess.PIPE, text=True
                )
                rows[job][side].append(json.loads(done.stdout.splitlines()[-1]))
    table = {}
    for job, sides in rows.items():
        ours, theirs = (statistics.median(row["ms"] for row in sides[side]) for side in SIDES)
        covers = [sides[side][0]["cover_pct"] for side in SIDES]
        table[job] = {
            "agrotools_ms": ours,
            "plantcv_ms": theirs,
            "ratio": ours / theirs,
            "cover_pct": covers,
        }
        if not given.json:
            times = f"agrotools {ours:.0f} ms, PlantCV {theirs:.0f} ms, ratio {ours / theirs:.2f}"
            print(
                f"{job:9} {len(paths)} photographs: {times}; cover {covers[0]:.1f} and {covers[1]:.1f} %"
            )
    if given.json:
        print(json.dumps(table, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
