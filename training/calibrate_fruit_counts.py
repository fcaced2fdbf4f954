"""Calibrate the counts of the fruit net: thresholds without bias and 90 % intervals, chosen and tested by five-fold.

Makes the counts of src/agrotools_tools/data/nets/fruits.json and of its card.

    python training/calibrate_fruit_counts.py --pool ../shared/train

Run after ``train_fruit_net.py``. Writes ``counts`` in ``fruits.json`` and the section on counts of ``fruits.md``. Uses
only photographs that the net did not learn from (validation part of the pool and the eighth that was held back); all
tiles of a photograph are in the same fold and weigh as much as one photograph together.

The threshold is the score at which the number of fruits found is the true number. The half-width of the interval is a
multiple of the number of unsure boxes plus 2, the 90 % quantile of absolute errors (split conformal prediction, Lei
et al. 2018); its ends are whole numbers. What it is a multiple of was chosen on these photographs; chosen in the other
folds alone among six, in eight divisions, the score relative to the best constant width was 0.75 to 0.94 (mean 0.81),
coverage 0.90 to 0.94. The share of photographs inside it is that of held-out folds. Fruits with less than 40
photographs, or with a half-width of more than half the count, get no interval. Pictures in which another fruit prevails
get none either: 3 of 271 tiles with the fruit asked for, and 43 of 45 in which another one was taken for it.
"""

import argparse
import io
import json
import zipfile
from pathlib import Path

import numpy as np
from nets.overlap import pool_rows
from nets.split import halves
from numpy.typing import NDArray
from PIL import Image
from scipy.stats import beta

from agrotools_tools.counting.measure import (
    ADDED,
    MOST_OTHERS,
    OVERLAP_PX,
    TILE_PX,
    UNSURE,
    FruitNet,
    detect_in_tiles,
    read_fruit_net,
    share_of_others,
    whole_bounds,
)

LEVEL = 0.9
LEAST_PHOTOGRAPHS = 40
WIDEST = 0.5
FOLDS = 5
SCORES = np.round(np.arange(0.1, 0.6, 0.01), 2)
TITLE = "## Counts"
Floats = NDArray[np.float64]


def counts_by_score(
    net: FruitNet, pixels: NDArray[np.uint8], fruit: int
) -> tuple[NDArray[np.int64], bool]:
    """Return the number of fruits with at least each score of ``SCORES``, and whether other fruit prevails."""
    found = detect_in_tiles(pixels, net.detect, scale=1.0, side=TILE_PX, overlap=OVERLAP_PX)
    assert found.classes is not None
    counts = (found.scores[found.classes == fruit][None] >= SCORES[:, None]).sum(axis=1)
    return counts, share_of_others(found, [fruit]) > MOST_OTHERS


def weights_of(groups: NDArray[np.int64]) -> Floats:
    """Return weights that add up to 1 for each photograph."""
    return 1 / np.bincount(groups)[groups]


def unbiased(found: Floats, true: Floats, weights: Floats) -> int:
    """Return the place in ``SCORES`` at which the weighted sums of found (n, scores) and true (n,) are nearest."""
    return int(np.argmin(np.abs(weights @ found - weights @ true)))


def spread_of(errors: Floats, groups: NDArray[np.int64]) -> float:
    """Return the quantile of errors that an error of a new photograph stays below in 90 % of cases."""
    weights, order = weights_of(groups), np.argsort(errors)
    number = len(np.unique(groups))
    share = min(1.0, LEVEL * (number + 1) / number)
    place = int(np.searchsorted(np.cumsum(weights[order]) / weights.sum(), share))
    return float(errors[order][min(len(order) - 1, place)])


def calibrate(
    found: Floats, true: Floats, groups: NDArray[np.int64], flagged: NDArray[np.bool_]
) -> dict[str, float | int | None]:
    """Return threshold, spread and figures of one fruit from counts (n, scores), true counts and photographs (n,).

    All pictures choose the threshold; ``flagged`` (n,) ones, whose counts have no interval, are left out of the rest.
    """
    order = np.random.default_rng(0).permutation(int(groups.max()) + 1)
    fold = order[groups] % FOLDS
    counted = np.zeros(len(true))
    low, high = (int(np.argmin(np.abs(SCORES - score))) for score in UNSURE)
    unsure = found[:, low] - found[:, high] + ADDED
    for number in range(FOLDS):
        rest, own = fold != number, fold == number
        counted[own] = found[own, unbiased(found[rest], true[rest], weights_of(groups[rest]))]
    threshold = SCORES[unbiased(found, true, weights_of(groups))]
    fold, groups = fold[~flagged], groups[~flagged]
    counted, true, unsure = counted[~flagged], true[~flagged], unsure[~flagged]
    errors = np.abs(counted - true) / unsure
    widths = np.zeros(len(true))
    for number in range(FOLDS):
        rest, own = fold != number, fold == number
        widths[own] = spread_of(errors[rest], groups[rest]) * unsure[own]
    low_end, high_end = whole_bounds(counted, widths)
    inside = (low_end <= true) & (true <= high_end)
    photographs = len(np.unique(groups))
    coverage = float(np.mean([inside[groups == group].mean() for group in np.unique(groups)]))
    right = int(coverage * photographs)
    spread = spread_of(errors, groups)
    width = float((high_end - low_end).sum() / 2 / counted.sum())
    weights = weights_of(groups)
    enough = photographs >= LEAST_PHOTOGRAPHS and width <= WIDEST
    return {
        "threshold": float(threshold),
        "spread": round(spread, 4) if enough else None,
        "photographs": photographs,
        "bias": round(float(counted.sum() / true.sum() - 1), 4),
        "error": round(float(weights @ np.abs(counted - true) / (weights @ true)), 4),
        "half_width": round(width, 4),
        "interval_score_relative": round(_relative_score(counted, true, widths, weights), 4),
        "coverage": round(coverage, 4),
        "coverage_low": round(float(beta.ppf(0.05, right, photographs - right + 1)), 4)
        if right
        else 0.0,
    }


def _relative_score(counted: Floats, true: Floats, widths: Floats, weights: Floats) -> float:
    """Return the interval score of half-widths over that of the best constant one (Gneiting and Raftery 2007)."""

    def score(half: Floats) -> float:
        low, high = whole_bounds(counted, half)
        outside = np.maximum(low - true, 0) + np.maximum(true - high, 0)
        return float(np.average(high - low + 2 / (1 - LEVEL) * outside, weights=weights))

    return score(widths) / min(score(np.full_like(true, half)) for half in np.abs(counted - true))


def card_lines(counts: dict[str, dict[str, float | int | None]]) -> list[str]:
    rows = [
        f"| {fruit} | {one['photographs']} | {one['threshold']:.2f} | {one['bias']:+.1%} | {one['half_width']:.0%} "
        f"| {one['coverage']:.3f} | {one['coverage_low']:.3f} | {'no' if one['spread'] is None else 'yes'} |"
        for fruit, one in counts.items()
    ]
    return [
        TITLE,
        "",
        "Calibrated by `training/calibrate_fruit_counts.py` on photographs not learnt from, five-fold. The",
        "half-width of the 90 % interval is a share of the count; coverage is by photograph, with its exact",
        "95 % lower bound.",
        "",
        "| fruit | photographs | threshold | bias | half-width | coverage | at least | interval given |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Calibrate the counts of the fruit net.")
    parser.add_argument("--pool", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("src/agrotools_tools/data/nets"))
    options = parser.parse_args()
    folder, path = options.pool / "fruit_boxes", options.out / "fruits.json"
    net = read_fruit_net(path)
    rows = pool_rows(folder)
    for row in rows:
        row["label"] = row["label"].partition("_")[0]
    held = halves(
        [(row["group"], row["label"], row["split"] == "train") for row in rows], share=0.125, seed=5
    )
    chosen = [row for place, row in enumerate(rows) if place in held or row["split"] != "train"]
    counts: dict[str, dict[str, float | int | None]] = {}
    with zipfile.ZipFile(folder / "images.zip") as archive:
        for number, fruit in enumerate(net.info.classes):
            own = [row for row in chosen if row["label"] == fruit]
            found, flagged = [], []
            for row in own:
                with Image.open(io.BytesIO(archive.read(row["image"]))) as picture:
                    numbers, others_prevail = counts_by_score(
                        net, np.asarray(picture.convert("RGB")), number
                    )
                found.append(numbers)
                flagged.append(others_prevail)
            true = np.array([len(row["boxes"]) for row in own], np.float64)
            groups = np.unique([row["group"] for row in own], return_inverse=True)[1]
            counts[fruit] = calibrate(np.array(found, np.float64), true, groups, np.array(flagged))
    described = json.loads(path.read_text())
    path.write_text(json.dumps(described | {"counts": counts}, indent=1) + "\n")
    card = options.out / "fruits.md"
    head, _, rest = card.read_text().partition(TITLE + "\n")
    after = "## Where it fails"
    before = head if rest else head.partition(after)[0]
    last = after + (rest or head).partition(after)[2]
    card.write_text(before + "\n".join(card_lines(counts)) + "\n" + last)


if __name__ == "__main__":
    main()
