"""How well measure_crop_weed_area does on CWFID, two-fold: every picture is judged with a head that never saw it.

    python performance/cwfid_two_fold.py --data DIR [--json]

DIR holds ``cwfid/truth.json``. The heads are trained first, into a folder of their own that is removed afterwards.
CWFID (Haug and Ostermann 2014) is for non-commercial research only: fetch it yourself.

The pictures form fixed pairs by rank of the SHA-256 of their files; pairs of even rank are fold 0. What is measured, on
the mask that the tool itself returns:

* vegetation IoU, against the vegetation mask;
* crop IoU and weed IoU ``named``: plants that the annotators left unnamed count neither way; ``strict``: they are soil
  in the truth, so calling them anything is an error. A picture without a class has no IoU for it; pooled figures count
  the pixels of all pictures together, those included;
* weed share: absolute error, in percentage points, of weeds among the plants that were named;
* seconds per call, reading and drawing included: on the clock, and of processor time on one core.

Intervals are 95 %, of the mean over pictures, with the pairs as clusters (standard error between pair means, t with
pairs - 1 degrees of freedom).
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

for _threads in (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENCV_FOR_THREADS_NUM",
):
    os.environ[_threads] = "1"  # before NumPy and OpenCV are loaded: seconds are those of one core

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from agrotools.core.files import fold_of, pairs_by_hash  # noqa: E402

MEASURES = (
    "vegetation_iou",
    "crop_iou_named",
    "weed_iou_named",
    "crop_iou_strict",
    "weed_iou_strict",
    "weed_share_error_pct",
    "seconds",
    "cpu_seconds",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--data", type=Path, required=True, help="folder that holds cwfid/truth.json"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cwfid-two-fold-") as scratch:
        os.environ["AGROTOOLS_CACHE"] = scratch
        rows, pooled = measured(options.data, Path(scratch))
    report = summary(rows) | {"pooled": pooled, "pictures": rows}
    print(json.dumps(report, indent=1) if options.json else as_text(report))


def measured(data: Path, scratch: Path) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """One row per picture, and the figures over the pixels of all pictures."""
    from PIL import Image

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "studies"))
    from accuracy.measure_crop_weed_area import compare_masks
    from agrotools.calling import get_tool
    from agrotools.calling.workspace import artifacts_in
    from agrotools.core.files import sha256_of_file
    from agrotools_tools.crop_weed.training import train_crop_weed_heads

    started = time.perf_counter()
    train_crop_weed_heads(data, progress=lambda line: print(line, file=sys.stderr))
    print(f"trained in {time.perf_counter() - started:.0f} s", file=sys.stderr)
    measure = get_tool("measure_crop_weed_area")
    folder = data / "cwfid"
    entries = json.loads((folder / "truth.json").read_text())
    hashes = {entry["id"]: sha256_of_file(folder / entry["image"]) for entry in entries}
    fold = fold_of(hashes.values())
    pair = {
        member: rank for rank, pair in enumerate(pairs_by_hash(hashes.values())) for member in pair
    }
    rows: list[dict[str, Any]] = []
    sums: dict[str, NDArray[np.int64]] = {}
    for entry in entries:
        with artifacts_in(scratch / "artifacts" / str(entry["id"])) as made:
            started, worked = time.perf_counter(), time.process_time()
            result = measure(folder / entry["image"], separation="model")
            seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - worked
            predicted = np.asarray(Image.open(made / result.mask.name))
        truth = np.asarray(Image.open(folder / entry["mask"]))
        plants = np.asarray(Image.open(folder / entry["vegetation"])) > 0
        figures, counts = compare_masks(predicted, truth, plants)
        for name, both in counts.items():
            sums[name] = sums.get(name, np.zeros(2, np.int64)) + both
        head = (
            next(note for note in result.notes if "parted by head" in note)
            .split("head ")[1]
            .split(" ")[0]
        )
        own = hashes[entry["id"]]
        row = {"id": entry["id"], "fold": fold[own], "pair": pair[own], "head": head, **figures}
        rows.append(row | {"seconds": seconds, "cpu_seconds": cpu_seconds})
    return rows, {name: float(both[0] / both[1]) for name, both in sums.items()}


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean over pictures with its interval, and the mean of each fold."""
    from scipy.stats import t

    found: dict[str, Any] = {}
    for measure in MEASURES:
        values = [
            (row["pair"], row["fold"], row[measure]) for row in rows if row[measure] is not None
        ]
        means = [
            np.mean([v for p, _, v in values if p == pair])
            for pair in sorted({p for p, _, _ in values})
        ]
        centre = float(np.mean([v for _, _, v in values]))
        reach = float(t.ppf(0.975, len(means) - 1) * np.std(means, ddof=1) / np.sqrt(len(means)))
        found[measure] = {
            "mean": centre,
            "interval_95": [centre - reach, centre + reach],
            "worst": float((min if "iou" in measure else max)(v for _, _, v in values)),
            "fold_0": float(np.mean([v for _, f, v in values if f == 0])),
            "fold_1": float(np.mean([v for _, f, v in values if f == 1])),
            "pictures": len(values),
        }
    return {"measures": found}


def as_text(report: dict[str, Any]) -> str:
    lines = [
        f"{'':22}{'mean':>8}  {'95 % interval':>16}{'worst':>8}{'fold 0':>8}{'fold 1':>8}{'pooled':>8}{'n':>4}"
    ]
    for name, row in report["measures"].items():
        low, high = row["interval_95"]
        pooled = report["pooled"].get(name)
        lines.append(
            f"{name:22}{row['mean']:8.3f}  {f'{low:.3f} to {high:.3f}':>16}{row['worst']:8.3f}{row['fold_0']:8.3f}"
            f"{row['fold_1']:8.3f}{'' if pooled is None else f'{pooled:.3f}':>8}{row['pictures']:4}"
        )
    lines.append(
        "fold 0: pictures of fold 0, parted by the head of fold 1; and the other way round"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
