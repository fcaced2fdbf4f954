"""How well measure_crop_weed_area parts crop, weeds and soil on field photographs and on drawn scenes, and whether the
bands it ranks first are those that tell the classes apart best."""

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from agrotools.accuracy.crop_weed_masks import compared
from agrotools.accuracy.figures import Figure, mean_of
from agrotools.accuracy.study import Bench, Study
from agrotools.core.folds import pairs_by_hash

SCENES = 24
"""Drawn scenes of each study, a quarter of each difficulty; not looked at while the tool was written."""
FIRST_SEED = 7000
TIE = 0.01
_BLOCK_PX = 32
_CLASSES = {"crop": 1, "weed": 2, "soil": 0}


def _photographs(bench: Bench) -> list[Figure]:
    """Two-fold: each photograph is judged with a head that was trained on the other half."""
    from PIL import Image

    from agrotools.vision.crop_weed import file_sha256
    from agrotools.vision.crop_weed_training import train_crop_weed_heads

    items = bench.items()
    hashes = {item["id"]: file_sha256(bench.folder / item["image"]) for item in items}
    pair = {member: str(rank) for rank, pair in enumerate(pairs_by_hash(hashes.values())) for member in pair}
    found: dict[str, list[float]] = {}
    clusters: dict[str, list[str]] = {}
    with _heads_in(bench.scratch / "heads"):
        train_crop_weed_heads(bench.folder.parent)
        for item in items:
            result = bench.call(image=bench.folder / item["image"], separation="model")
            predicted = np.asarray(Image.open(bench.made(result.mask)))
            truth = np.asarray(Image.open(bench.folder / item["mask"]))
            plants = np.asarray(Image.open(bench.folder / item["vegetation"])) > 0
            for name, value in compared(predicted, truth, plants)[0].items():
                if value is not None:
                    found.setdefault(name, []).append(value)
                    clusters.setdefault(name, []).append(pair[hashes[item["id"]]])
    goals = {"vegetation_iou": 0.93, "crop_iou_named": 0.633, "weed_iou_named": 0.794}
    words = {
        "vegetation_iou": "vegetation, IoU",
        "crop_iou_named": "crop, IoU, plants without a name left out",
        "weed_iou_named": "weeds, IoU, plants without a name left out",
        "crop_iou_strict": "crop, IoU, plants without a name are soil",
        "weed_iou_strict": "weeds, IoU, plants without a name are soil",
        "weed_share_error_pct": "share of weeds, mean absolute error, points",
    }
    note = "trained head, two-fold; no parameter of the vegetation mask is fitted"
    return [
        mean_of(
            what,
            found[name],
            clusters=tuple(clusters[name]),
            goal=goals.get(name),
            higher_is_better=name != "weed_share_error_pct",
            note=note,
        )
        for name, what in words.items()
    ]


def _drawn_rows(bench: Bench) -> list[Figure]:
    """Crop rows drawn from seeds, as photographs: the row method."""
    from PIL import Image

    from agrotools.construct.scenes.rows import make_scene

    overlaps: dict[str, list[float]] = {"vegetation": [], "crop": [], "weed": []}
    covers: list[float] = []
    spacings: list[float] = []
    seen: list[float] = []
    for number in range(SCENES):
        scene = make_scene(FIRST_SEED + number, number % 4)  # pyright: ignore[reportArgumentType]
        path = bench.scratch / f"rows_{number}.png"
        Image.fromarray(cast(NDArray[np.uint8], scene.images["rgb"])).save(path)
        result = bench.call(image=path, separation="row", gsd_m=scene.sidecar["gsd_m"])
        predicted, truth = np.asarray(Image.open(bench.made(result.mask))), scene.masks["classes"]
        overlaps["vegetation"].append(_iou(np.isin(predicted, (1, 2, 3)), truth > 0))
        seen.append(float(result.row is not None))
        if result.row is None:
            continue
        for name, label in (("crop", 1), ("weed", 2)):
            overlaps[name].append(_iou(predicted == label, truth == label))
        covers.append(abs(result.weed_pct - cast(float, scene.truth["weed_pct"])))
        spacings.append(100 * abs(result.row.spacing_m / cast(float, scene.sidecar["row_spacing_m"]) - 1))
    return [
        mean_of("vegetation, IoU", overlaps["vegetation"]),
        mean_of("rows seen, share of scenes", seen, note="the others have their crop and weeds left unsaid"),
        mean_of("crop, IoU, where rows are seen", overlaps["crop"]),
        mean_of("weeds, IoU, where rows are seen", overlaps["weed"]),
        mean_of("weed cover, mean absolute error, points", covers, higher_is_better=False),
        mean_of("row spacing, mean absolute error, %", spacings, higher_is_better=False),
    ]


def _drawn_bands(bench: Bench) -> list[Figure]:
    """Ten triplets of five bands: ranked by JM from the class map, against what a classifier achieves with each.

    The classifier is quadratic discriminant analysis with equal priors, learnt on every other block of 32 pixels and
    tried on the rest; what counts is the mean of its recalls of crop, weeds and soil.
    """
    from PIL import Image

    from agrotools.construct.scenes.rows import make_scene

    right: dict[str, list[float]] = {"first": [], "best": [], "mean": [], "oif": [], "again": []}
    lost: list[float] = []
    for number in range(SCENES):
        scene = make_scene(FIRST_SEED + 500 + number, number % 4)  # pyright: ignore[reportArgumentType]
        bands = cast(NDArray[np.uint16], scene.images["bands"])
        names = tuple(cast("list[str]", scene.sidecar["bands"]))
        raster, labels = bench.scratch / f"bands_{number}.tif", bench.scratch / f"labels_{number}.png"
        _write_bands(raster, bands, names)
        truth = cast(NDArray[np.uint8], scene.masks["classes"])
        Image.fromarray(truth).save(labels)
        result = bench.call(
            image=raster, label_raster=labels, label_map={name: [label] for name, label in _CLASSES.items()}
        )
        triplets = result.separability.triplets
        accuracy = {
            chosen: _held_out_accuracy(bands[[names.index(name) for name in chosen]], truth, learn_from=0)
            for chosen in itertools.combinations(names, 3)
        }
        other = {
            chosen: _held_out_accuracy(bands[[names.index(name) for name in chosen]], truth, learn_from=1)
            for chosen in accuracy
        }
        by_accuracy = sorted(accuracy, key=lambda chosen: -accuracy[chosen])
        tied = [one.bands for one in triplets if one.min_jm > triplets[0].min_jm - TIE]
        second = [one.bands for one in triplets if one.min_jm > triplets[1].min_jm - TIE]
        right["first"].append(float(bool(set(tied) & set(by_accuracy[:2]))))
        right["best"].append(float(by_accuracy[0] in second))
        right["mean"].append(float(max(triplets, key=lambda one: one.mean_jm).bands in by_accuracy[:2]))
        right["again"].append(float(max(other, key=lambda chosen: other[chosen]) in by_accuracy[:2]))
        widest = max(triplets, key=lambda one: one.oif)
        right["oif"].append(float(widest.bands in by_accuracy[:2]))
        lost.append(100 * (accuracy[by_accuracy[0]] - accuracy[triplets[0].bands]))
    note = "classes from the class map; ties within 0.01 JM accepted"
    return [
        mean_of("first triplet by JM is one of the two best, share", right["first"], goal=0.90, note=note),
        mean_of("best triplet is one of the first two by JM, share", right["best"], note=note),
        mean_of("first triplet by mean JM is one of the two best, share", right["mean"]),
        mean_of(
            "best triplet of the other half of the blocks is one of the two best, share",
            right["again"],
            note="how far the classifier agrees with itself: no ranking can be expected to do better",
        ),
        mean_of("accuracy lost by taking the first triplet, points", lost, higher_is_better=False),
        mean_of("first triplet by OIF is one of the two best, share", right["oif"], note="looks at no classes"),
    ]


def _held_out_accuracy(bands: NDArray[np.uint16], truth: NDArray[np.uint8], learn_from: int = 0) -> float:
    """Mean recall of the three classes by quadratic discriminant analysis, on blocks that it did not learn from."""
    rows, columns = np.indices(truth.shape) // _BLOCK_PX
    learn = (rows + columns) % 2 == learn_from
    values = bands.reshape(len(bands), -1).T.astype(np.float64) / 1e4
    flat, learning = truth.ravel(), learn.ravel()
    scores: list[NDArray[np.float64]] = []
    for label in _CLASSES.values():
        sample = values[learning & (flat == label)]
        covariance = np.cov(sample, rowvar=False) + 1e-9 * np.eye(len(bands))
        apart = values[~learning] - sample.mean(axis=0)
        distance = np.einsum("ij,ij->i", apart @ np.linalg.inv(covariance), apart)
        scores.append(-0.5 * (distance + np.linalg.slogdet(covariance)[1]))
    guess = np.array(list(_CLASSES.values()))[np.argmax(scores, axis=0)]
    held_out = flat[~learning]
    return float(np.mean([np.mean(guess[held_out == label] == label) for label in _CLASSES.values()]))


def _write_bands(path: Path, bands: NDArray[np.uint16], names: tuple[str, ...]) -> None:
    import rasterio
    from rasterio.transform import from_origin

    profile = {
        "driver": "GTiff", "count": len(bands), "height": bands.shape[1], "width": bands.shape[2], "dtype": "uint16",
        "crs": "EPSG:32632", "transform": from_origin(500_000, 5_800_000, 0.003, 0.003),
    }  # fmt: skip
    with rasterio.open(path, "w", **profile) as target:
        target.write(bands)
        target.scales = (1e-4,) * len(names)
        for number, name in enumerate(names, start=1):
            target.set_band_description(number, name)


def _iou(found: NDArray[np.bool_], true: NDArray[np.bool_]) -> float:
    union = np.count_nonzero(found | true)
    return float(np.count_nonzero(found & true) / union) if union else 1.0


@contextmanager
def _heads_in(folder: Path) -> Iterator[None]:
    """Heads that are trained go to ``folder`` and are looked for there alone."""
    earlier = os.environ.get("AGROTOOLS_CACHE")
    os.environ["AGROTOOLS_CACHE"] = str(folder)
    try:
        yield
    finally:
        if earlier is None:
            del os.environ["AGROTOOLS_CACHE"]
        else:
            os.environ["AGROTOOLS_CACHE"] = earlier


STUDIES = (
    Study("measure_crop_weed_area", "cwfid", _photographs),
    Study("measure_crop_weed_area", "drawn crop rows", _drawn_rows, needs_folder=False),
    Study("measure_crop_weed_area", "drawn five-band rows", _drawn_bands, needs_folder=False),
)
