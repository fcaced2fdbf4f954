"""Accuracy of measure_crop_weed_area on field photographs and drawn scenes, and of its band ranking.

Bands are ranked by how well they separate the classes.
"""

import csv
import itertools
import os
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from accuracy.study import Bench, Columns, Figure, Study
from agrotools.core import ToolError
from agrotools.core.files import pairs_by_hash, sha256_of_file
from agrotools_build.scenes.rows import make_scene
from agrotools_tools.crop_weed.bands import CorrectCounts
from agrotools_tools.crop_weed.result import BandTriplet
from agrotools_tools.crop_weed.training import train_crop_weed_heads

BLOCK_PX = 160
"""Side of the blocks that cross-validation keeps together: wider than a plant."""
_THIN = 3

Values = NDArray[np.float64]


def cross_validate(
    bands: NDArray[np.uint16], truth: NDArray[np.uint8]
) -> tuple[CorrectCounts, CorrectCounts]:
    """Return correct counts of a classifier for every three bands, in the order of :func:`itertools.combinations`.

    Blocks are the squares of a chequerboard. The first result is for the blocks of one colour, with the classifier
    trained on the other colour; the second is the reverse. Every third pixel of every third row counts.

    Args:
        bands: (bands, rows, columns).
        truth: class 0, 1 or 2 of each pixel, (rows, columns).
    """
    values = bands[:, ::_THIN, ::_THIN].reshape(len(bands), -1).T / 1e4
    rows, columns = np.indices(truth.shape)[:, ::_THIN, ::_THIN].reshape(2, -1) // BLOCK_PX
    labels, fold = truth[::_THIN, ::_THIN].ravel(), (rows + columns) % 2
    cell = 3 * (rows * (columns.max() + 1) + columns) + labels
    size = 3 * (int(rows.max()) + 1) * (int(columns.max()) + 1)
    counts: list[CorrectCounts] = []
    for number in (0, 1):
        on = fold == number
        learnt = [values[~on & (labels == label)] for label in range(3)]
        held_out, true, cells = values[on], labels[on], cell[on]
        correct = [
            np.bincount(
                cells[_guesses([part[:, chosen] for part in learnt], held_out[:, chosen]) == true],
                minlength=size,
            )
            for chosen in itertools.combinations(range(len(bands)), 3)
        ]
        total = np.bincount(cells, minlength=size).reshape(-1, 3)
        counts.append(
            CorrectCounts(
                np.stack(correct).reshape(-1, *total.shape).astype(np.float64),
                total.astype(np.float64),
            )
        )
    return counts[0], counts[1]


def both_halves(halves: tuple[CorrectCounts, CorrectCounts]) -> CorrectCounts:
    """Add up the counts of both colours of blocks."""
    return CorrectCounts(halves[0].correct + halves[1].correct, halves[0].total + halves[1].total)


def _guesses(classes: list[Values], values: Values) -> NDArray[np.intp]:
    """Classify ``values`` (pixels, bands) by quadratic discriminant analysis with equal priors."""
    scores: list[Values] = []
    for known in classes:
        spread = np.cov(known, rowvar=False) + 1e-9 * np.eye(known.shape[1])
        apart = values - known.mean(axis=0)
        distance = np.einsum("ij,ij->i", apart @ np.linalg.inv(spread), apart)
        scores.append(-0.5 * (distance + np.linalg.slogdet(spread)[1]))
    return np.argmax(scores, axis=0)


def among_best(counts: CorrectCounts, strict: bool = False) -> NDArray[np.bool_]:
    """Return a mask of the best triplets: the two most accurate ones and those that are about as good.

    A triplet is about as good (never with ``strict``) if it is behind the second by at most one standard error of the
    difference.
    """
    accuracy = counts.accuracy()
    first, second = np.argsort(-accuracy, kind="stable")[:2]
    best = np.isin(np.arange(len(accuracy)), (first, second))
    if strict:
        return best
    behind, error = counts.behind(int(second))
    return best | (behind <= error)


CROP, WEED = 1, 2


def compare_masks(
    predicted: NDArray[np.uint8], truth: NDArray[np.integer], plants: NDArray[np.bool_]
) -> dict[str, float | None]:
    """Return the figures of a picture, each None if the truth does not contain the class.

    ``vegetation_iou``; ``crop_iou_named`` and ``weed_iou_named``, which ignore unlabelled plants; ``crop_iou_strict``
    and ``weed_iou_strict``, which count them as soil; ``weed_share_error_pct``, absolute error of the weed share of the
    labelled plants in percentage points.

    Args:
        predicted: class numbers (rows, columns), 1 crop, 2 weeds.
        truth: the same numbers; unlabelled plants are 0.
        plants: mask of all plant pixels, labelled or not.
    """
    unnamed = plants & (truth == 0)
    regions = {"vegetation_iou": ((predicted == CROP) | (predicted == WEED), plants)}
    for name, label in (("crop", CROP), ("weed", WEED)):
        regions[f"{name}_iou_named"] = ((predicted == label) & ~unnamed, truth == label)
        regions[f"{name}_iou_strict"] = (predicted == label, truth == label)
    figures = {
        name: _iou(found, true) if true.any() else None for name, (found, true) in regions.items()
    }
    labelled = truth > 0
    crop, weed = (np.count_nonzero((predicted == label) & ~unnamed) for label in (CROP, WEED))
    share = 100 * weed / max(crop + weed, 1)
    figures["weed_share_error_pct"] = abs(
        share - 100 * np.count_nonzero(truth == WEED) / np.count_nonzero(labelled)
    )
    return figures


SCENES = 24
"""Number of drawn scenes of each study, a quarter of each difficulty; not used during development of the tool."""
FIRST_SEED = 7000
FIRST_BANDS_SEED = 8000
"""First seed of the fields of the band study. The ranking and :data:`FIXED` were chosen on seeds 50000 to 50023."""
FIELD_PX = (1440, 1920)
FIXED = ("B", "G", "NIR")
"""Triplet that is most often among the best."""
_CLASSES = {"crop": 1, "weed": 2, "soil": 0}


_METRICS = {
    "vegetation_iou": "vegetation, IoU",
    "crop_iou_named": "crop, IoU, plants without a name left out",
    "weed_iou_named": "weeds, IoU, plants without a name left out",
    "crop_iou_strict": "crop, IoU, plants without a name are soil",
    "weed_iou_strict": "weeds, IoU, plants without a name are soil",
    "weed_share_error_pct": "share of weeds, mean absolute error, points",
}
_GOALS = {"vegetation_iou": 0.93, "crop_iou_named": 0.633, "weed_iou_named": 0.794}


def _photographs(bench: Bench) -> list[Figure]:
    """Score each photograph with a head trained on the other half (two-fold)."""
    items = bench.items()
    hashes = {item["id"]: sha256_of_file(bench.folder / item["image"]) for item in items}
    pair = {
        member: str(rank)
        for rank, pair in enumerate(pairs_by_hash(hashes.values()))
        for member in pair
    }
    columns = Columns(note="trained head, two-fold")
    # A study runs in its own process, so this setting affects only the heads that are trained here.
    os.environ["AGROTOOLS_CACHE"] = str(bench.scratch / "heads")
    train_crop_weed_heads(bench.folder.parent)
    for item in items:
        result = bench.call(image=bench.folder / item["image"], separation="model")
        predicted = np.asarray(Image.open(bench.artifact_path(result.mask)))
        truth = np.asarray(Image.open(bench.folder / item["mask"]))
        plants = np.asarray(Image.open(bench.folder / item["vegetation"])) > 0
        columns.add(pair[hashes[item["id"]]], **compare_masks(predicted, truth, plants))
    return [
        columns.mean(
            metric, name, goal=_GOALS.get(name), higher_is_better=name != "weed_share_error_pct"
        )
        for name, metric in _METRICS.items()
    ]


def _drawn_rows(bench: Bench) -> list[Figure]:
    """Score the row method on drawn photographs of crop rows."""
    columns = Columns()
    for number in range(SCENES):
        scene = make_scene(FIRST_SEED + number, number % 4)  # pyright: ignore[reportArgumentType]
        path = bench.picture(f"rows_{number}.png", scene.images["rgb"])
        result = bench.call(image=path, separation="row", gsd_m=scene.sidecar["gsd_m"])
        predicted, truth = (
            np.asarray(Image.open(bench.artifact_path(result.mask))),
            scene.masks["classes"],
        )
        columns.add(
            vegetation=_iou(np.isin(predicted, (1, 2, 3)), truth > 0), rows=result.row is not None
        )
        if result.row is not None:
            columns.add(
                crop=_iou(predicted == CROP, truth == CROP),
                weed=_iou(predicted == WEED, truth == WEED),
                cover=abs(result.weed_pct - cast(float, scene.truth["weed_pct"])),
                spacing=100
                * abs(result.row.spacing_m / cast(float, scene.sidecar["row_spacing_m"]) - 1),
            )
    return [
        columns.mean("vegetation, IoU", "vegetation"),
        columns.mean(
            "rows seen, share of scenes",
            "rows",
            note="the others have their crop and weeds left unsaid",
        ),
        columns.mean("crop, IoU, where rows are seen", "crop"),
        columns.mean("weeds, IoU, where rows are seen", "weed"),
        columns.mean_error("weed cover, mean absolute error, points", "cover"),
        columns.mean_error("row spacing, mean absolute error, %", "spacing"),
    ]


def _drawn_bands(bench: Bench) -> list[Figure]:
    """Compare the tool's ranking of ten triplets of five bands with the accuracy of classifiers on the same field.

    Each field is drawn once, 1920 x 1440 px. The tool sees its left third (640 x 1440 px) with the class map, and the
    top 640 x 480 px of that as a small picture. The reference classifiers are trained and tested on the blocks of the
    other two thirds.
    """
    columns = Columns()
    for number in range(SCENES):
        scene = make_scene(FIRST_BANDS_SEED + number, number % 4, size=FIELD_PX)  # pyright: ignore[reportArgumentType]
        bands = cast(NDArray[np.uint16], scene.images["bands"])
        truth = cast(NDArray[np.uint8], scene.masks["classes"])
        names = tuple(cast("list[str]", scene.sidecar["bands"]))
        triplets: list[tuple[str, ...]] = list(itertools.combinations(names, 3))
        wide = FIELD_PX[1] // 3
        halves = cross_validate(bands[:, :, wide:], truth[:, wide:])
        counts = both_halves(halves)
        accuracy, good = counts.accuracy(), among_best(counts)
        best = accuracy.max()
        columns.add(
            random=good.mean(),
            fixed=good[triplets.index(FIXED)],
            again=among_best(halves[0])[np.argmax(halves[1].accuracy())],
            gap=100 * (best - np.sort(accuracy)[-3]),
        )
        for size, high in (("large", FIELD_PX[0]), ("small", FIELD_PX[0] // 3)):
            ranked = _ranked(
                bench, bands[:, :high, :wide], truth[:high, :wide], names, f"{number}_{size}"
            )
            first = triplets.index(ranked[0].bands)
            by_jm = triplets.index(max(ranked, key=lambda one: one.min_jm).bands)
            columns.add(
                **{
                    f"{size} first": good[first],
                    f"{size} strict": among_best(counts, strict=True)[first],
                    f"{size} jm": good[by_jm],
                    f"{size} lost": 100 * (best - accuracy[first]),
                    f"{size} lost jm": 100 * (best - accuracy[by_jm]),
                }
            )
    seen = "classes from the class map of a third of the field, reference on the other two thirds"
    ties = f"{seen}; a triplet less than one standard error behind the second is as good"
    rule = "by the same rule as the first row"
    fixed = f"always {' '.join(FIXED)} is one of the two best, share"
    itself, close = "as far as it knows itself", "how close the best three are"
    return [
        columns.mean(
            "first triplet is one of the two best, share", "large first", goal=0.90, note=ties
        ),
        columns.mean("the same, no ties accepted", "large strict", note=seen),
        columns.mean("the same, tool sees 640 x 480 px", "small first", note=rule),
        columns.mean("largest JM is one of the two best, share", "large jm", note=rule),
        columns.mean(
            "a triplet by chance is one of the two best, share", "random", note=f"no skill; {rule}"
        ),
        columns.mean(fixed, "fixed", note=f"chosen on other fields; {rule}"),
        columns.mean(
            "reference of one half of its blocks agrees with the other, share", "again", note=itself
        ),
        columns.mean_error("accuracy lost by taking the first triplet, points", "large lost"),
        columns.mean_error("accuracy lost by taking the largest JM, points", "large lost jm"),
        columns.mean_error(
            "the third triplet is behind the best in the reference by, points", "gap", note=close
        ),
    ]


def _ranked(
    bench: Bench,
    bands: NDArray[np.uint16],
    truth: NDArray[np.uint8],
    names: tuple[str, ...],
    called: str,
) -> tuple[BandTriplet, ...]:
    """Return the tool's ranking of a raster with its class map."""
    raster = bench.raster(f"bands_{called}.tif", bands, 0.003, roles=names)
    labels = bench.picture(f"labels_{called}.png", truth)
    result = bench.call(
        image=raster,
        label_raster=labels,
        label_map={name: [label] for name, label in _CLASSES.items()},
    )
    return result.separability.triplets


POINTS_FILE = "plant_points.csv"
"""Labels of ours: P plant, S soil or litter, O other, at the centres of a 6 x 6 grid, row by row."""
_NOTHING = 0.5
_SOME = 10.0
"""Cover, percent, reported as none; and true cover above which that is wrong."""


def cover_by_points(points: str) -> float:
    """Return the plant cover, percent, of the points that are plant or soil."""
    return 100 * points.count("P") / (points.count("P") + points.count("S"))


def _by_points(bench: Bench) -> list[Figure]:
    """Compare plant cover with points labelled by eye (point-intercept) on photographs with shade and dry plants.

    The standard error of one truth is about 8 points (36 points), so smaller differences say nothing.
    """
    rows = csv.DictReader(Path(__file__).with_name(POINTS_FILE).read_text("utf-8").splitlines())
    points = {row["file"]: row["points"] for row in rows if row["part"] == "held out"}
    columns = Columns(
        note="labels by eye, 36 points each; not looked at before the rules were settled"
    )
    for item in bench.items():
        if item["id"] not in points:
            continue
        truth = cover_by_points(points[item["id"]])
        try:
            result = bench.call(image=bench.folder / item["image"], separation="none")
            cover = None if "vegetation_uncertain" in result.flags else result.veg_pct
        except ToolError as error:
            if error.kind != "low_confidence":
                raise
            cover = None
        wrong = cover is not None and cover < _NOTHING and truth > _SOME
        columns.add(
            answered=cover is not None,
            wrong=wrong,
            error=None if cover is None else abs(cover - truth),
        )
    return [
        columns.mean(
            "plant cover answered, share of photographs",
            "answered",
            note="the others are refused or doubted",
        ),
        columns.mean_error("plant cover answered, mean absolute error, points", "error", goal=10),
        columns.mean_error("no plants reported where there are over 10 %, share", "wrong", goal=0),
    ]


def _iou(found: NDArray[np.bool_], true: NDArray[np.bool_]) -> float:
    union = np.count_nonzero(found | true)
    return float(np.count_nonzero(found & true) / union) if union else 1.0


STUDIES = (
    Study("measure_crop_weed_area", "deepweeds", _by_points),
    Study("measure_crop_weed_area", "cwfid", _photographs),
    Study("measure_crop_weed_area", "drawn crop rows", _drawn_rows, needs_folder=False),
    Study("measure_crop_weed_area", "drawn five-band rows", _drawn_bands, needs_folder=False),
)
