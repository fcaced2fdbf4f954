"""Training of packs from labelled pictures: a linear head on embeddings, calibrated and evaluated by cross-validation.

Training needs scikit-learn (extra ``train``) for the logistic regression; the resulting pack needs only NumPy.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError, UsageError
from agrotools.core.files import sha256_of_file
from agrotools.core.lazy import import_of_extra
from agrotools.vision.reading import read_image
from agrotools_tools.recognition import shipped_files
from agrotools_tools.recognition.labelled_pictures import LabelledImage, check_classes
from agrotools_tools.recognition.net import (
    SHIPPED,
    Floats,
    Net,
    fit_distribution,
    fit_temperature,
    picture_features,
    probabilities,
    shipped_net,
    threshold_for_share,
    wilson,
)
from agrotools_tools.recognition.packs import (
    ClassFigures,
    PackFigures,
    PackHead,
    PackInfo,
    refuse_existing_name,
    save_pack,
)
from agrotools_tools.vision.strangeness import TRAITS_VERSION

Progress = Callable[[str], None]
Ints = NDArray[np.int64]

REGULARISATIONS = (1.0, 10.0, 100.0)
"""Inverse penalty strengths to try; the one with the smallest out-of-fold loss is used."""
FOLDS = 5
KEEP = 0.9
"""Out-of-fold share of known pictures that the abstention threshold accepts."""
_MOST_LEFT_OUT = 8
_EVERY = 50
_SHOWN = 5
_FLOOR = 1e-4
_LEAST_SPREAD = 0.5


@dataclass(frozen=True, eq=False)
class _Data:
    """Training data. ``features``: (n, features). ``blocks``: their widths. ``digests``: hashes of the files."""

    features: NDArray[np.float32]
    blocks: tuple[int, ...]
    classes: Ints
    groups: tuple[str, ...]
    names: tuple[str, ...]
    digests: tuple[str, ...]


def train_pack(
    pictures: Sequence[LabelledImage],
    out: Path,
    *,
    licence_note: str = "",
    skip_unreadable: bool = False,
    keep: float = KEEP,
    progress: Progress = lambda _: None,
) -> PackInfo:
    """Train a recogniser on ``pictures`` and write it atomically to the folder ``out``. ``keep``: out-of-fold share
    of known pictures that are not refused. UsageError: ``out`` exists or cannot be written, pictures are unreadable
    or have two labels, a class has too few pictures, or scikit-learn is missing."""
    import_of_extra("sklearn", "train", "training needs scikit-learn")
    from threadpoolctl import threadpool_limits

    refuse_existing_name(out)
    check_classes(list(pictures))
    nets = [shipped_net(name) for name in SHIPPED if shipped_files(name)[0].is_file()]
    data = _extract_features(pictures, nets, skip_unreadable, progress)
    progress(f"training on {len(data.classes)} pictures of {len(data.names)} classes")
    with threadpool_limits(1):  # matrices are small, and sums do not depend on the machine
        info, head = _train(data, nets, out.name, licence_note, keep)
    return save_pack(out, info, head, sorted(set(data.digests)))


def _train(
    data: _Data, nets: Sequence[Net], name: str, licence_note: str, keep: float
) -> tuple[PackInfo, PackHead]:
    folds = _folds(data)
    tried = {strength: _out_of_fold(data, folds, strength) for strength in REGULARISATIONS}
    strength = min(tried, key=lambda one: _loss(tried[one][0], data.classes))
    logits, familiarity = tried[strength]
    threshold = threshold_for_share(familiarity, keep)
    info = PackInfo(
        name=name,
        classes=data.names,
        hand_features=TRAITS_VERSION,
        nets={
            shipped: net.info.sha256
            for shipped in SHIPPED
            for net in nets
            if net.info.name == shipped
        },
        regularisation=strength,
        temperature=fit_temperature(logits, data.classes),
        threshold=threshold,
        figures=_figures(
            data, logits, len(folds), keep, _refused_of_left_out(data, strength, threshold)
        ),
        licence_note=licence_note
        or "learnt from your own pictures; their terms hold for the pack too",
        weights_sha256="",
    )
    return info, _fit_head(data, np.arange(len(data.classes)), strength)


def _extract_features(
    pictures: Sequence[LabelledImage], nets: Sequence[Net], skip: bool, progress: Progress
) -> _Data:
    """Return the features of the pictures; identical ones get the same group. UsageError: a picture has two labels,
    none can be read, or, without ``skip``, some cannot."""
    rows: list[NDArray[np.float32]] = []
    used: list[LabelledImage] = []
    digests: list[str] = []
    blocks: tuple[int, ...] = ()
    faults: list[str] = []
    first: dict[str, LabelledImage] = {}
    for number, one in enumerate(pictures, start=1):
        try:
            pixels = read_image(one.path, shown_as=one.path.name).pixels
            digest = sha256_of_file(one.path)
        except (ToolError, OSError) as error:
            faults.append(
                error.message
                if isinstance(error, ToolError)
                else f"{one.path.name}: {error.strerror}"
            )
            continue
        twin = first.setdefault(digest, one)
        if twin.label != one.label:
            why = f"{twin.path} and {one.path} are the same picture with two labels ({twin.label}, {one.label})"
            raise UsageError(why, hint="keep the right one")
        parts = picture_features(pixels, nets)
        blocks = tuple(len(part) for part in parts)
        rows.append(np.concatenate(parts))
        used.append(
            replace(one, group=twin.group)
        )  # identical pictures must not be on both sides of a split
        digests.append(digest)
        if number % _EVERY == 0 or number == len(pictures):
            progress(f"looked at {number} of {len(pictures)} pictures")
    if faults and not skip:
        more = f" and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        why = f"{len(faults)} of {len(pictures)} pictures cannot be read: {'; '.join(faults[:_SHOWN])}{more}"
        raise UsageError(why, hint="fix or remove them, or leave them out with --skip-unreadable")
    if not used:
        raise UsageError("none of the pictures can be read")
    if faults:
        progress(f"left out {len(faults)} pictures that cannot be read")
    check_classes(used)
    names = tuple(sorted({one.label for one in used}))
    classes = np.array([names.index(one.label) for one in used], np.int64)
    return _Data(
        np.stack(rows), blocks, classes, tuple(one.group for one in used), names, tuple(digests)
    )


def _folds(data: _Data) -> list[tuple[Ints, Ints]]:
    """Return pairs of training and validation indices; no group is in both."""
    from sklearn.model_selection import StratifiedGroupKFold

    fewest = min(
        len(
            {
                group
                for group, class_number in zip(data.groups, data.classes, strict=True)
                if class_number == number
            }
        )
        for number in range(len(data.names))
    )
    split = StratifiedGroupKFold(min(FOLDS, fewest), shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folds = [
            (learn, check)
            for learn, check in split.split(data.features, data.classes, list(data.groups))
        ]
    return [
        (learn, check) for learn, check in folds if len(check) and len(set(data.classes[learn])) > 1
    ]


def _fit_head(data: _Data, places: Ints, strength: float) -> PackHead:
    """Fit a head for all classes of ``data`` to the pictures at ``places``; it never predicts classes absent there."""
    from sklearn.linear_model import LogisticRegression

    rows, classes = data.features[places], data.classes[places]
    mean = rows.mean(axis=0)
    scale = _scale(rows, data.blocks)
    standard = (rows - mean) / scale
    model = LogisticRegression(C=strength, class_weight="balanced", max_iter=2000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(standard.astype(np.float64), classes)
    weights: Any = model.coef_
    bias: Any = model.intercept_
    if len(model.classes_) == 2:
        weights, bias = np.concatenate([-weights, weights]) / 2, np.concatenate([-bias, bias]) / 2
    count = len(data.names)
    all_weights = np.zeros((standard.shape[1], count), np.float32)
    all_bias = np.full(count, float(np.min(bias)) - 20, np.float32)
    all_weights[:, model.classes_], all_bias[model.classes_] = weights.T, bias
    present = np.searchsorted(model.classes_, classes)
    familiar = fit_distribution(standard, present, len(model.classes_))
    return PackHead(mean.astype(np.float32), scale, all_weights, all_bias, familiar)


def _scale(rows: NDArray[np.float32], blocks: Sequence[int]) -> NDArray[np.float32]:
    """Return divisors of the features, float32 (features,), that give every block the same weight.

    With few pictures many features hardly vary (such as empty histogram bins), and dividing by their tiny spread would
    make any new value an extreme outlier. The divisors are therefore bounded by the typical spread of the block.
    """
    parts: list[NDArray[np.float32]] = []
    for part in np.split(rows.std(axis=0), np.cumsum(blocks)[:-1]):
        typical = float(np.sqrt((part**2).mean()))
        parts.append(
            np.maximum(part, max(_LEAST_SPREAD * typical, _FLOOR)) * np.float32(np.sqrt(len(part)))
        )
    return np.concatenate(parts).astype(np.float32)


def _out_of_fold(
    data: _Data, folds: Sequence[tuple[Ints, Ints]], strength: float
) -> tuple[Floats, Floats]:
    """Return logits (n, classes) and familiarity (n,) of all pictures, each by a head that did not learn from it."""
    logits, familiarity = (
        np.zeros((len(data.classes), len(data.names))),
        np.zeros(len(data.classes)),
    )
    for learn, check in folds:
        head = _fit_head(data, learn, strength)
        logits[check], familiarity[check] = (
            head.logits(data.features[check]),
            head.familiarity(data.features[check]),
        )
    return logits, familiarity


def _loss(logits: Floats, classes: Ints) -> float:
    true_probability = probabilities(logits, fit_temperature(logits, classes))[
        np.arange(len(classes)), classes
    ]
    return float(-np.log(np.maximum(true_probability, 1e-12)).mean())


def _refused_of_left_out(data: _Data, strength: float, threshold: float) -> float | None:
    if len(data.names) < 3:
        return None
    refused: list[float] = []
    for number, _ in Counter(data.classes.tolist()).most_common(_MOST_LEFT_OUT):
        head = _fit_head(data, np.flatnonzero(data.classes != number), strength)
        refused.append(
            float((head.familiarity(data.features[data.classes == number]) < threshold).mean())
        )
    return float(np.mean(refused))


def _figures(
    data: _Data, logits: Floats, folds: int, keep: float, refused: float | None
) -> PackFigures:
    predicted, classes, groups = logits.argmax(axis=1), data.classes, len({*data.groups})
    accuracy, by_class = float((predicted == classes).mean()), _by_class(data, predicted)
    return PackFigures(
        pictures=len(classes),
        groups=groups,
        folds=folds,
        accuracy=accuracy,
        accuracy_95=wilson(accuracy * groups, groups),
        majority=float(np.bincount(classes).max() / len(classes)),
        macro_f1=float(np.mean([one.f1 for one in by_class.values()])),
        kept=keep,
        refused_of_left_out=refused,
        by_class=by_class,
    )


def _by_class(data: _Data, predicted: Ints) -> dict[str, ClassFigures]:
    from sklearn.metrics import precision_recall_fscore_support

    places, zero = list(range(len(data.names))), cast("Any", 0)
    scores: Any = precision_recall_fscore_support(
        data.classes, predicted, labels=places, zero_division=zero
    )
    rows = zip(data.names, np.stack(scores, axis=1).tolist(), strict=True)
    return {
        name: ClassFigures(n=int(n), precision=p, recall=recall, f1=f1)
        for name, (p, recall, f1, n) in rows
    }
