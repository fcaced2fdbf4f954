"""Training of heads that separate crop and weeds, in two folds: for each picture there is a head that never saw it.

Training needs scikit-learn (extra ``train``) for the logistic regression; the resulting heads need only NumPy. Heads
are written only to the user's cache, because the terms of the training pictures often forbid their distribution.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import orjson
from numpy.typing import NDArray

from agrotools.core import BenchmarkError, ToolError
from agrotools.core.files import fold_of, pairs_by_hash, sha256_of_file
from agrotools.core.lazy import import_of_extra
from agrotools.vision.reading import read_image, read_labels
from agrotools_tools.crop_weed.heads import (
    FEATURES_VERSION,
    Cells,
    HeadInfo,
    TrainingImage,
    cell_features,
    familiarity,
    fingerprint,
    head_of,
    is_false_colour,
    kernel,
    save_head,
    spread_over_plants,
    standardise,
)
from agrotools_tools.vision.vegetation import segment

Progress = Callable[[str], None]

CROP, WEED = 1, 2
SCALES = (1.0, 0.8, 1.25)
"""Scales at which each training picture is used, because plants grow."""
GAMMA = 0.003
"""Factor of the squared distance of standardised features in the kernel."""
REGULARISATION = 0.1
"""Inverse strength of the regularisation of the logistic regression, ``C`` of scikit-learn."""
LANDMARKS = 500
"""Number of training cells that every cell is compared with."""
ROWS = 12_000
"""Number of training cells that are drawn."""
LEAST_NAMED = 0.25
"""Least share of a cell labelled crop or weed for the cell to be used in training."""
THRESHOLDS = tuple(round(0.30 + 0.05 * step, 2) for step in range(10))
UNFAMILIAR_MARGIN = 0.9
"""Share of the least familiarity of a training picture that is enough for another picture."""
CWFID_LICENCE = (
    "Learnt from CWFID (Haug and Ostermann 2014): all data is subject to copyright and may only be used for "
    "non-commercial research. Do not redistribute this head."
)

Arrays = dict[str, NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class TrainingPicture:
    """Picture with labelled plants.

    ``classes``: (rows, columns), 1 crop, 2 weed, 0 neither. ``unnamed``: plants without a label, left out of training
    and of the cross-validated figures.
    """

    image: TrainingImage
    pixels: NDArray[np.uint8]
    classes: NDArray[np.int32]
    unnamed: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Views:
    """Training data of a picture: labelled cells at every scale with weights; ``cells`` is at the first scale."""

    picture: TrainingPicture
    mask: NDArray[np.bool_]
    cells: Cells
    rows: NDArray[np.float32]
    is_crop: NDArray[np.bool_]
    weight: NDArray[np.float32]


def train_crop_weed_heads(data_root: Path, progress: Progress = lambda _: None) -> list[HeadInfo]:
    """Train three heads on ``data_root/cwfid``: on the even pairs, on the odd pairs, and on all pictures.

    Each fold head serves the pictures of the other fold; the third head serves all other pictures. ``cwfid/truth.json``
    is a list of objects with ``id`` and the paths ``image``, ``mask`` (0 other, 1 crop, 2 weed) and ``vegetation`` (0
    or 1) relative to ``cwfid``. BenchmarkError: a file cannot be read; UsageError: scikit-learn is not installed.
    """
    import_of_extra("sklearn", "train", "training needs scikit-learn")
    pictures = read_training_pictures(data_root / "cwfid")
    folds = fold_of(picture.image.sha256 for picture in pictures)
    views: list[_Views] = []
    for number, picture in enumerate(pictures, start=1):
        progress(f"features {number}/{len(pictures)}")
        views.append(_views(picture))
    heads: list[HeadInfo] = []
    for name, members in (
        ("cwfid-fold-0", [view for view in views if folds[view.picture.image.sha256] == 0]),
        ("cwfid-fold-1", [view for view in views if folds[view.picture.image.sha256] == 1]),
        ("cwfid-all", views),
    ):
        progress(f"training {name} on {len(members)} pictures")
        heads.append(_train(name, members))
    return heads


def read_training_pictures(folder: Path) -> list[TrainingPicture]:
    """Read the pictures listed in ``folder/truth.json``; BenchmarkError if a file cannot be read or there are too
    few."""
    truth = folder / "truth.json"
    if not truth.is_file():
        raise BenchmarkError(
            f"there is no {truth}", hint="--data names a folder that holds cwfid/truth.json"
        )
    pictures: list[TrainingPicture] = []
    try:
        for entry in orjson.loads(truth.read_bytes()):
            path = folder / entry["image"]
            pixels = read_image(path).pixels
            classes = read_labels(folder / entry["mask"]).classes
            plants = read_labels(folder / entry["vegetation"]).classes > 0
            if not classes.shape == plants.shape == pixels.shape[:2]:
                raise BenchmarkError(f"picture {entry['id']} and its masks differ in size")
            image = TrainingImage(sha256=sha256_of_file(path), fingerprint=fingerprint(pixels))
            pictures.append(TrainingPicture(image, pixels, classes, plants & (classes == 0)))
    except ToolError as error:
        raise BenchmarkError(f"{truth}: {error.message}", hint=error.advice) from error
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise BenchmarkError(f"{truth} is not of the expected form: {error!r}") from error
    if len(pairs_by_hash(picture.image.sha256 for picture in pictures)) < 4:
        raise BenchmarkError(
            f"{truth} names {len(pictures)} pictures; at least seven different ones are needed"
        )
    return pictures


def plants_of(pixels: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Segment the plants the way :func:`~agrotools_tools.crop_weed.heads.separate_crop` expects them."""
    return segment(
        "lab_a", {"R": pixels[..., 0], "G": pixels[..., 1], "B": pixels[..., 2]}, None
    ).mask


def _views(picture: TrainingPicture) -> _Views:
    mask = plants_of(picture.pixels)
    features = cell_features(picture.pixels, mask)
    rows: list[NDArray[np.float32]] = []
    crops: list[NDArray[np.bool_]] = []
    weights: list[NDArray[np.float32]] = []
    for scale in SCALES:
        if scale == 1.0:
            cells = features
        else:
            how = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
            resized = np.asarray(
                cv2.resize(picture.pixels, None, fx=scale, fy=scale, interpolation=how), np.uint8
            )
            cells = cell_features(resized, plants_of(resized))
        size = (cells.used.shape[1], cells.used.shape[0])
        crop, weed = (
            cv2.resize(
                (picture.classes == label).astype(np.float32), size, interpolation=cv2.INTER_AREA
            )[cells.used]
            for label in (CROP, WEED)
        )
        labelled = crop + weed > LEAST_NAMED
        rows.append(cells.values[labelled])
        crops.append((crop > weed)[labelled])
        weights.append((crop + weed)[labelled])
    return _Views(
        picture,
        mask,
        features,
        np.concatenate(rows),
        np.concatenate(crops),
        np.concatenate(weights),
    )


def _train(name: str, views: Sequence[_Views]) -> HeadInfo:
    """Fit a head; its threshold and metrics are cross-validated by leaving out one pair of pictures at a time."""
    pairs = pairs_by_hash(view.picture.image.sha256 for view in views)
    left_out: list[tuple[_Views, NDArray[np.float32]]] = []
    pooled: list[float] = []
    for pair in pairs:
        arrays = _fit([view for view in views if view.picture.image.sha256 not in pair])
        head = head_of(arrays)
        for view in views:
            if view.picture.image.sha256 in pair:
                similarity = head.similarity(view.cells.values)
                pooled.append(familiarity(similarity))
                shape = (view.mask.shape[0], view.mask.shape[1])
                left_out.append(
                    (view, spread_over_plants(view.cells, head.probability(similarity), shape))
                )
    figures = {threshold: _figures(left_out, threshold) for threshold in THRESHOLDS}
    threshold = max(
        THRESHOLDS, key=lambda tried: figures[tried]["crop_iou"] + figures[tried]["weed_iou"]
    )
    info = HeadInfo(
        name=name,
        features_version=FEATURES_VERSION,
        source=f"{len(views)} pictures, {sum(len(view.rows) for view in views)} cells",
        licence_note=CWFID_LICENCE,
        training=tuple(view.picture.image for view in views),
        false_colour=sum(is_false_colour(view.picture.pixels) for view in views) * 2 > len(views),
        threshold=threshold,
        familiar=UNFAMILIAR_MARGIN * min(pooled),
        metrics={
            f"cross_validated_{key}": round(value, 4) for key, value in figures[threshold].items()
        },
        weights_sha256="",
    )
    return save_head(info, _fit(views))


def _fit(views: Sequence[_Views]) -> Arrays:
    """Fit a logistic regression on the kernel to random landmarks, with equal total weights for crop and weeds."""
    from sklearn.linear_model import LogisticRegression

    values = np.concatenate([view.rows for view in views])
    is_crop = np.concatenate([view.is_crop for view in views])
    weight = np.concatenate([view.weight for view in views]).astype(np.float64)
    if is_crop.all() or not is_crop.any():
        raise BenchmarkError("the training pictures show only crop or only weeds")
    weight[is_crop] *= weight[~is_crop].sum() / weight[is_crop].sum()
    mean, scale = values.mean(axis=0), values.std(axis=0) + np.float32(1e-6)
    draw = np.random.default_rng(0)
    sample_rows = draw.choice(len(values), size=ROWS, p=weight / weight.sum())
    rows = standardise(values[sample_rows], mean, scale)
    landmarks = rows[draw.choice(len(rows), size=LANDMARKS, replace=False)]
    eigenvalues, vectors = np.linalg.eigh(kernel(landmarks, landmarks, GAMMA).astype(np.float64))
    whitening = ((vectors / np.sqrt(np.maximum(eigenvalues, 1e-6))) @ vectors.T).astype(np.float32)
    fitted = LogisticRegression(C=REGULARISATION, max_iter=500)
    fitted.fit(kernel(rows, landmarks, GAMMA) @ whitening, is_crop[sample_rows])
    return {
        "mean": mean,
        "scale": scale,
        "landmarks": landmarks,
        "weights": (whitening @ np.ravel(fitted.coef_)).astype(np.float32),
        "gamma": np.array(GAMMA, np.float32),
        "bias": np.array(np.ravel(fitted.intercept_)[0], np.float32),
    }


def _figures(
    left_out: Sequence[tuple[_Views, NDArray[np.float32]]], threshold: float
) -> dict[str, float]:
    """Return the mean IoU of crop and of weeds over pictures."""
    figures: dict[str, list[float]] = {"crop_iou": [], "weed_iou": []}
    for view, probability in left_out:
        picture, crop = view.picture, probability > threshold
        named_pixels = view.mask & ~picture.unnamed
        for key, label, predicted in (
            ("crop_iou", CROP, named_pixels & crop),
            ("weed_iou", WEED, named_pixels & ~crop),
        ):
            truth = picture.classes == label
            if truth.any():
                figures[key].append(float((predicted & truth).sum() / (predicted | truth).sum()))
    return {key: float(np.mean(values)) if values else 0.0 for key, values in figures.items()}
