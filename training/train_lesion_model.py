"""Train the lesion model that ``analyze_lesions`` ships: weights, description and model card.

Makes src/agrotools_tools/data/lesion_model.*.

    python training/train_lesion_model.py --pool DIR [--domain]

With ``--domain`` only the range of the leaves in the shipped description is written anew; the weights stay.

DIR holds ``labels.csv`` (columns image, mask, group, label, lesion_fraction_of_leaf) and ``images_masks.zip`` with
those files: photographs of single leaves, and masks of 0 background, 1 leaf, 2 symptom. Needs the extra ``train``.
Seeds are fixed; the same versions of the libraries give the same weights. Takes some ten minutes on one core.
"""

import argparse
import csv
import hashlib
import io
import json
import logging
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.stats import binomtest
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from agrotools_tools.lesions.measure import (
    CLIP,
    FEATURES_VERSION,
    Domain,
    LeafView,
    LesionModel,
    ModelInfo,
    SeverityInterval,
    doubtful_pct,
    healthy_colour,
    leaf_on_board,
    leaf_traits,
    leaf_view,
    lesion_level,
    mahalanobis,
    pixel_features,
)
from agrotools_tools.lesions.result import Lab

HIDDEN = (64, 32)
MEMBERS = 2
FOLDS = 5
EPOCHS = 6
LESION_PIXELS, OTHER_PIXELS = 900, 1800
"""At most so many are drawn from each leaf; weights bring them back to their shares."""
LEVEL = 0.9
"""Share of leaves of each kind of damage that the intervals of the severity are to cover."""
FLOORS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Tried for the floor of the doubtful share, percent; the one with the least interval score is taken."""
FEWEST = 40
"""Least number of leaves of a kind of damage that the interval is fitted to."""
KEPT = 0.98
"""Share of training leaves, of folds that the domain was not fitted to, that are inside its limit. The largest distance
of all would be that of one odd leaf (59.6, the next is 31.7) and let leaves of other crops in; at 0.98 one in fifty
leaves of the crop itself is left to the rules."""
THRESHOLDS = tuple(round(0.30 + 0.02 * step, 2) for step in range(16))
DATA = Path(__file__).resolve().parent.parent / "src" / "agrotools_tools" / "data"
LICENCE = (
    "Weights learnt from photographs and masks of github.com/esgario/lara2018 (commit "
    "a6c38b693094c2c4da4b82029fc8be7058506a16), MIT licence, by G. Esgario and the other authors of that repository; "
    "cite Esgario, Krohling and Ventura 2020, Computers and Electronics in Agriculture 169, 105162."
)
log = logging.getLogger("train_lesion_model")


@dataclass(frozen=True, eq=False)
class Example:
    """A leaf with its truth. ``lesion``: bool (pixels of the view's mask,); ``severity_pct``: of the masks as drawn."""

    name: str
    group: str
    label: str
    view: LeafView
    features: NDArray[np.float16]
    lesion: NDArray[np.bool_]
    severity_pct: float
    leaf_iou: float
    background: Lab
    drawn: NDArray[np.intp]
    weights: NDArray[np.float64]


def read_examples(pool: Path) -> tuple[list[Example], list[str]]:
    """The leaves of the pool, and the names of those without a plain background, which are left out."""
    examples: list[Example] = []
    left_out: list[str] = []
    draw = np.random.default_rng(0)
    with (
        (pool / "labels.csv").open(newline="") as file,
        zipfile.ZipFile(pool / "images_masks.zip") as archive,
    ):
        for row in csv.DictReader(file):
            pixels = np.asarray(Image.open(io.BytesIO(archive.read(row["image"]))).convert("RGB"))
            classes = np.asarray(Image.open(io.BytesIO(archive.read(row["mask"]))))
            leaf = leaf_on_board(pixels)
            if leaf is None or leaf.background is None:
                left_out.append(row["image"])
                continue
            view = leaf_view(pixels, leaf.mask, leaf.box)
            x0, y0, x1, y1 = view.box
            size = (view.mask.shape[1], view.mask.shape[0])
            share = cv2.resize(
                (classes[y0:y1, x0:x1] == 2).astype(np.float32), size, interpolation=cv2.INTER_AREA
            )
            lesion = np.asarray(share)[view.mask] >= 0.5
            inside, outside = np.flatnonzero(lesion), np.flatnonzero(~lesion)
            some = draw.choice(inside, min(len(inside), LESION_PIXELS), replace=False)
            others = draw.choice(outside, min(len(outside), OTHER_PIXELS), replace=False)
            truth = classes > 0
            examples.append(
                Example(
                    name=row["image"],
                    group=row["group"],
                    label=row["label"] or "none named",
                    view=view,
                    features=pixel_features(view).astype(np.float16),
                    lesion=lesion,
                    severity_pct=100 * float((classes == 2).sum() / truth.sum()),
                    leaf_iou=float((leaf.mask & truth).sum() / (leaf.mask | truth).sum()),
                    background=leaf.background,
                    drawn=np.concatenate([some, others]),
                    weights=np.concatenate(
                        [
                            np.full(len(some), len(inside) / max(1, len(some))),
                            np.full(len(others), len(outside) / max(1, len(others))),
                        ]
                    ),
                )
            )
    return examples, left_out


def fitted(examples: list[Example], seed: int, members: int) -> dict[str, NDArray[np.float32]]:
    """Weights of a network per member."""
    rows = np.concatenate([example.features[example.drawn] for example in examples]).astype(
        np.float32
    )
    lesion = np.concatenate([example.lesion[example.drawn] for example in examples])
    weight = np.concatenate([example.weights for example in examples])
    mean, scale = rows.mean(axis=0), rows.std(axis=0) + np.float32(1e-6)
    rows = np.clip((rows - mean) / scale, -CLIP, CLIP)
    arrays = {"mean": mean, "scale": scale}
    for member in range(members):
        network = MLPClassifier(
            HIDDEN,
            alpha=1e-3,
            batch_size=512,
            learning_rate_init=2e-3,
            max_iter=EPOCHS,
            random_state=seed + member,
        )
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ConvergenceWarning
            )  # the number of epochs is the stopping rule
            network.fit(rows, lesion, sample_weight=weight / weight.mean())
        for layer, (matrix, bias) in enumerate(
            zip(network.coefs_, network.intercepts_, strict=True)
        ):
            arrays[f"weights_{member}_{layer}"] = np.asarray(matrix, np.float32)
            arrays[f"bias_{member}_{layer}"] = np.asarray(bias, np.float32)
    return arrays


def as_model(arrays: dict[str, NDArray[np.float32]], members: int) -> LesionModel:
    nothing: Any = ModelInfo.model_construct(threshold=0.5)
    layers = tuple(
        tuple((arrays[f"weights_{m}_{k}"], arrays[f"bias_{m}_{k}"]) for k in range(len(HIDDEN) + 1))
        for m in range(members)
    )
    return LesionModel(nothing, arrays["mean"], arrays["scale"], layers)


def figures(examples: list[Example], masks: list[NDArray[np.bool_]]) -> dict[str, float]:
    """Errors of severity in points, concordance (Lin 1989), and IoU pooled over leaves."""
    found = np.array([100 * mask.mean() for mask in masks])
    true = np.array([example.severity_pct for example in examples])
    error = found - true
    joint = sum(
        int((mask & example.lesion).sum()) for mask, example in zip(masks, examples, strict=True)
    )
    either = sum(
        int((mask | example.lesion).sum()) for mask, example in zip(masks, examples, strict=True)
    )
    spread = found.var() + true.var() + (found.mean() - true.mean()) ** 2
    covariance = float(np.mean((found - found.mean()) * (true - true.mean())))
    return {
        "severity_mae_points": float(np.abs(error).mean()),
        "severity_bias_points": float(error.mean()),
        "severity_ccc": 2 * covariance / float(spread) if true.any() else float("nan"),
        "lesion_iou_pooled": joint / either if true.any() else float("nan"),
        "leaves": len(examples),
    }


def interval_of(
    found: NDArray[np.float64],
    true: NDArray[np.float64],
    doubtful: NDArray[np.float64],
    labels: NDArray[np.str_],
) -> SeverityInterval:
    """Return the interval with the least score, from leaves that the model had not seen, all numbers in percent.

    Its width is that of the kind of damage that needs the widest, because the tool is not told the kind. Kinds of fewer
    than :data:`FEWEST` leaves do not count.
    """

    def quantile(errors: NDArray[np.float64]) -> float:
        return float(np.sort(errors)[min(len(errors), int(np.ceil((len(errors) + 1) * LEVEL))) - 1])

    def with_floor(floor: float) -> SeverityInterval:
        scaled = np.abs(true - found) / (doubtful + floor)
        kinds = [labels == label for label in np.unique(labels)]
        error = max(quantile(scaled[kind]) for kind in kinds if kind.sum() >= FEWEST)
        return SeverityInterval(level=LEVEL, floor=floor, error=round(error, 4), leaves=len(found))

    def score(one: SeverityInterval) -> float:
        return interval_scores(found, true, one.half_width(doubtful))[1].mean()  # type: ignore[arg-type]

    return min(map(with_floor, FLOORS), key=score)


def interval_scores(
    found: NDArray[np.float64], true: NDArray[np.float64], half: NDArray[np.float64] | float
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Coverage of each leaf, true or false, and its interval score (Gneiting and Raftery 2007), points."""
    low, high = np.maximum(0, found - half), np.minimum(100, found + half)
    outside = np.maximum(0, low - true) + np.maximum(0, true - high)
    return outside == 0, high - low + 2 / (1 - LEVEL) * outside


def nested_figures(
    found: dict[float, NDArray[np.float64]],
    true: NDArray[np.float64],
    doubtful: NDArray[np.float64],
    labels: NDArray[np.str_],
    folds: NDArray[np.int64],
) -> dict[str, float]:
    """Figures of the severity and its interval, threshold and interval chosen without the fold in question.

    ``found``: severities out of fold at each threshold. The score of the interval is given relative to that of the
    best interval of constant width.
    """
    severity, covered, scores = (
        np.empty(len(true)),
        np.empty(len(true), np.bool_),
        np.empty(len(true)),
    )
    for number in range(FOLDS):
        rest, held = folds != number, folds == number
        threshold = best_threshold(
            {one: (values[rest] - true[rest]) for one, values in found.items()}
        )
        interval = interval_of(found[threshold][rest], true[rest], doubtful[rest], labels[rest])
        half = interval.half_width(doubtful[held])  # type: ignore[arg-type]
        severity[held] = found[threshold][held]
        covered[held], scores[held] = interval_scores(severity[held], true[held], half)
    low, high = binomtest(int(covered.sum()), len(covered)).proportion_ci(0.95, "exact")
    constant = min(
        interval_scores(severity, true, float(half))[1].mean() for half in np.abs(true - severity)
    )
    return {
        "nested_severity_mae_points": float(np.abs(severity - true).mean()),
        "nested_severity_bias_points": float((severity - true).mean()),
        "interval_coverage": float(covered.mean()),
        "interval_coverage_low": float(low),
        "interval_coverage_high": float(high),
        "interval_score_relative": float(scores.mean() / constant),
        **{f"leaves_{kind}": float((labels == kind).sum()) for kind in np.unique(labels)},
        **{f"coverage_{kind}": float(covered[labels == kind].mean()) for kind in np.unique(labels)},
    }


def best_threshold(errors: dict[float, NDArray[np.float64]]) -> float:
    """Return the threshold with the least mean absolute error plus absolute bias."""
    return min(errors, key=lambda tried: np.abs(errors[tried]).mean() + abs(errors[tried].mean()))


def fold_of(examples: list[Example]) -> NDArray[np.int64]:
    """Return the fold of each leaf, int64 (leaves,); all pictures of a leaf are in the same one."""
    groups = sorted({example.group for example in examples})
    order = np.random.default_rng(0).permutation(len(groups))
    fold = {groups[place]: number % FOLDS for number, place in enumerate(order)}
    return np.array([fold[example.group] for example in examples])


def domain_of(examples: list[Example]) -> Domain:
    """Return the range of the leaves; its limit keeps :data:`KEPT` of the leaves of folds that it was not fitted to."""
    traits = np.array([leaf_traits(example.view) for example in examples])
    boards = np.array([example.background for example in examples])
    lightness = float(boards[:, 0].min()) - 3, min(100.5, float(boards[:, 0].max()) + 3)
    chroma = float(np.hypot(boards[:, 1], boards[:, 2]).max()) + 1

    def fitted_to(rows: NDArray[np.float64]) -> Domain:
        precision = np.linalg.inv(np.cov(rows.T))
        return Domain(
            centre=tuple(float(value) for value in rows.mean(axis=0)),
            precision=tuple(tuple(float(value) for value in row) for row in precision),
            limit=0.0,
            board_lightness=lightness,
            board_chroma=chroma,
        )

    folds = fold_of(examples)
    distances: list[float] = []
    for number in range(FOLDS):
        without = fitted_to(traits[folds != number])
        distances += [mahalanobis(without, row) for row in traits[folds == number]]
    limit = float(np.quantile(distances, KEPT))
    return fitted_to(traits).model_copy(update={"limit": limit})


def write_domain(examples: list[Example], out: Path) -> None:
    """Write the range of the leaves into a description that is there."""
    path = out / "lesion_model.json"
    info = ModelInfo.model_validate_json(path.read_text("utf-8"))
    before = info.domain.limit
    info = info.model_copy(update={"domain": domain_of(examples)})
    path.write_text(json.dumps(info.model_dump(mode="json"), indent=1) + "\n")
    log.info("limit of the distance: %.2f, was %.2f", info.domain.limit, before)


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(
        description="Train the lesion model that analyze_lesions ships."
    )
    parser.add_argument(
        "--pool", type=Path, required=True, help="folder with labels.csv and images_masks.zip"
    )
    parser.add_argument("--out", type=Path, default=DATA, help="where the three files go")
    parser.add_argument(
        "--domain", action="store_true", help="write the range of the leaves alone anew"
    )
    options = parser.parse_args()
    cv2.setNumThreads(1)
    threadpool_limits(1)  # sums in another order are other sums
    examples, left_out = read_examples(options.pool)
    log.info("%d leaves read, %d without a plain background left out", len(examples), len(left_out))
    if options.domain:
        write_domain(examples, options.out)
        return
    folds = fold_of(examples)
    out_of_fold: dict[str, NDArray[np.float32]] = {}
    for number in range(FOLDS):
        seen = [example for example, one in zip(examples, folds, strict=True) if one != number]
        held = [example for example, one in zip(examples, folds, strict=True) if one == number]
        model = as_model(fitted(seen, 100 * number, MEMBERS), MEMBERS)
        for example in held:
            out_of_fold[example.name] = model.probability(example.features.astype(np.float32))
        log.info("fold %d of %d done", number + 1, FOLDS)

    def masks_at(threshold: float, chosen: list[Example]) -> list[NDArray[np.bool_]]:
        return [out_of_fold[example.name] > threshold for example in chosen]

    by_threshold = {
        threshold: figures(examples, masks_at(threshold, examples)) for threshold in THRESHOLDS
    }
    for tried, found in by_threshold.items():
        log.info(
            "threshold %.2f: %s", tried, {key: round(value, 3) for key, value in found.items()}
        )
    true = np.array([example.severity_pct for example in examples])
    found = {
        tried: np.array([100 * mask.mean() for mask in masks_at(tried, examples)], np.float64)
        for tried in THRESHOLDS
    }
    threshold = best_threshold({tried: values - true for tried, values in found.items()})
    doubtful = np.array([doubtful_pct(out_of_fold[example.name]) for example in examples])
    labels = np.array([example.label.replace(" ", "_") for example in examples])
    nested = nested_figures(found, true, doubtful, labels, folds)
    log.info(
        "threshold and interval nested: %s", {key: round(value, 3) for key, value in nested.items()}
    )
    per_label = {
        label: figures(
            [e for e in examples if e.label == label],
            masks_at(threshold, [e for e in examples if e.label == label]),
        )
        for label in sorted({example.label for example in examples})
    }
    rules = figures(examples, [lesion_level(e.view, healthy_colour(e.view)) >= 1 for e in examples])
    errors = {
        e.name: 100 * float((out_of_fold[e.name] > threshold).mean()) - e.severity_pct
        for e in examples
    }
    worst = sorted(errors, key=lambda name: -abs(errors[name]))[:5]

    arrays = fitted(examples, 1000, MEMBERS)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    chosen = by_threshold[threshold]
    info = ModelInfo(
        name="lesions-coffee-1",
        features_version=FEATURES_VERSION,
        trained_on=f"{len(examples)} coffee leaves on a white board (esgario/lara2018)",
        licence=LICENCE,
        threshold=threshold,
        members=MEMBERS,
        domain=domain_of(examples),
        metrics={key: round(value, 4) for key, value in (chosen | nested).items()},
        interval=interval_of(found[threshold], true, doubtful, labels),
        weights_sha256=hashlib.sha256(buffer.getvalue()).hexdigest(),
    )
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "lesion_model.npz").write_bytes(buffer.getvalue())
    (options.out / "lesion_model.json").write_text(
        json.dumps(info.model_dump(mode="json"), indent=1) + "\n"
    )
    leaf_iou = float(np.mean([example.leaf_iou for example in examples]))
    card = model_card(
        info, per_label, rules, leaf_iou, left_out, [(name, errors[name]) for name in worst]
    )
    (options.out / "lesion_model.md").write_text(card)
    log.info("written to %s: threshold %.2f, %s", options.out, threshold, info.metrics)


def model_card(
    info: ModelInfo,
    per_label: dict[str, dict[str, float]],
    rules: dict[str, float],
    leaf_iou: float,
    left_out: list[str],
    worst: list[tuple[str, float]],
) -> str:
    def row(name: str, found: dict[str, float]) -> str:
        numbers = [
            f"{found[key]:.2f}" if np.isfinite(found[key]) else "none"
            for key in (
                "severity_mae_points",
                "severity_bias_points",
                "severity_ccc",
                "lesion_iou_pooled",
            )
        ]
        return f"| {name} | {int(found['leaves'])} | {' | '.join(numbers)} |"

    nested = info.metrics
    kinds = [name.removeprefix("coverage_") for name in nested if name.startswith("coverage_")]
    by_kind = ", ".join(
        f"{name.replace('_', ' ')} {nested[f'coverage_{name}']:.3f}" for name in kinds
    )
    lines = [
        f"# Model card: {info.name}",
        "",
        "Says of each pixel of a leaf whether it is lesion; part of `analyze_lesions`. Written by",
        "`training/train_lesion_model.py`; figures below are of leaves that the model in question had not seen.",
        "",
        f"- **What it is**: {info.members} networks of {HIDDEN[0]} and {HIDDEN[1]} units per pixel, averaged; features",
        "  are colours relative to the leaf's median and to its local mean at several widths, at a size set by the",
        "  leaf's area. Plain arrays; no library beside NumPy and OpenCV is needed to run it.",
        f"- **Data**: {info.trained_on}, one leaf a picture, masks drawn by hand with generous outlines.",
        f"- **Licence of the data**: {info.licence}",
        f"- **Threshold**: probability {info.threshold}, where mean absolute error plus absolute bias of the severity",
        "  is least out of fold. Severity is a ratio of areas, so bias counts as much as overlap.",
        f"- **Leaves left out**: {', '.join(left_out) or 'none'} (no plain background was recognised).",
        "",
        f"Five-fold over leaves (a leaf is never on both sides). Leaf outline, mean IoU: {leaf_iou:.3f}",
        "(its two constants were chosen on half of these leaves).",
        "",
        "| leaves | n | severity error, points | bias, points | CCC | lesion IoU, pooled |",
        "|---|---|---|---|---|---|",
        row("all", info.metrics),
        *(row(label.replace("_", " "), found) for label, found in per_label.items()),
        row("all, by rules instead (constants chosen on a third of them)", rules),
        "",
        "The threshold was chosen on these same out-of-fold values: one number from many leaves, but not unseen.",
        "Chosen without the fold in question, the error is",
        f"{nested['nested_severity_mae_points']:.2f} points and the bias {nested['nested_severity_bias_points']:.2f}.",
        "",
        f"The interval of {info.interval.level:.0%} is conformal, from the errors out of fold, and grows with the",
        f"share of doubtful pixels. It is as wide as each kind of damage with {FEWEST} leaves or more needs, since",
        "the tool is not told the kind. Nested in the same way, it covers",
        f"{nested['interval_coverage']:.3f} of the leaves ({nested['interval_coverage_low']:.3f} to",
        f"{nested['interval_coverage_high']:.3f}, exact, 95 %), by kind:",
        f"{by_kind}. Its score",
        f"is {nested['interval_score_relative']:.2f} of that of the best interval of constant width.",
        "",
        "## Where it fails",
        "",
        "- It has seen one crop, one camera set-up and five kinds of damage. `analyze_lesions` uses it only where",
        "  leaf colour and leaf shape are like those of the training leaves, and rules otherwise; one in fifty leaves",
        f"  of the crop itself is outside, too (limit of the squared distance: {info.domain.limit:.1f}). On another",
        "  background than theirs its severity has no interval.",
        "- A closed world: the folds are of one collection (one crop, one white board, few cameras), and so are other",
        "  pictures of it that one may test on. These figures are an upper bound for pictures from anywhere else.",
        "- Rust and cercospora are harder than the rest, as the table shows: faint halos are left out or overdone.",
        "- Folded or cast-shadowed leaf margins, dirt and dried tips are taken for lesions; pale halos are judged as",
        "  the people who drew the masks did, generously and not always alike.",
        f"- Largest errors out of fold: {', '.join(f'{name} {error:+.1f}' for name, error in worst)} points.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
