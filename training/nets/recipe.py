"""What the recipes of classifiers have in common: options, guard, training, calibration, files written."""

import argparse
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nets import calibration
from nets.card import model_card
from nets.classifying import Known, Plan, learn_classes, predict
from nets.export import export_onnx, input_of, latency_ms, run_onnx, write_description
from nets.model import Averaged, Classifier, Likened, parameters_of
from nets.overlap import OverlapError, refuse_overlap

log = logging.getLogger("recipe")


@dataclass(frozen=True)
class Parts:
    """Pictures by use. ``unknown``: of none of the classes, for training; ``unknown_chosen_on``: for the choice of the
    abstention score; ``unknown_reported``: kinds that neither of those holds."""

    classes: tuple[str, ...]
    learn: Known
    calibrate: Known
    report: Known
    unknown: Tensor
    unknown_chosen_on: Tensor
    unknown_reported: dict[str, Tensor]
    crops: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Classes of each crop, where a caller may know the crop: figures are then also of a choice among those alone."""
    keep: float = calibration.KEEP
    """Share of the calibration pictures that the threshold of the chosen abstention score keeps."""
    most_negative: float = 1.0
    """Largest probability of the class ``negative`` with which another one is named."""


@dataclass(frozen=True)
class Words:
    """What the card says beside its figures."""

    name: str
    recipe: str
    what: str
    data: str
    licence: str
    split: str
    reported: str
    calibrated_on: str
    failures: tuple[str, ...]


def parser_of(description: str, out: Path) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--pool",
        type=Path,
        required=True,
        help="the training pool: a folder with one folder a task",
    )
    parser.add_argument(
        "--test-data", type=Path, required=True, help="folder of test data that must not overlap"
    )
    parser.add_argument(
        "--out", type=Path, default=out, help="where the net, its description and its card go"
    )
    parser.add_argument(
        "--work", type=Path, required=True, help="folder of checkpoints and of the training log"
    )
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --work")
    parser.add_argument(
        "--pilot",
        type=float,
        help="stop after so many minutes of processor time; the schedule is cut",
    )
    parser.add_argument("--epochs", type=int, help="instead of the recipe's number")
    parser.add_argument(
        "--threads", type=int, default=1, help="more than one pays only on idle cores"
    )
    return parser


def begin(options: argparse.Namespace, folders: Sequence[str]) -> dict[str, int]:
    """Logging, threads, and the guard against test pictures; what the guard compared."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    torch.set_num_threads(options.threads)
    torch.use_deterministic_algorithms(True)
    try:
        return refuse_overlap([options.pool / folder for folder in folders], options.test_data)
    except OverlapError as error:
        log.error("%s", error)
        sys.exit(1)


def as_float64(logits: Tensor) -> np.ndarray:
    return logits.double().numpy()


def trained(plan: Plan, parts: Parts, options: argparse.Namespace) -> nn.Module:
    log.info(
        "%d pictures to learn from, %d to calibrate on, %d to report, %d of no class; %d classes",
        *(len(part.classes) for part in (parts.learn, parts.calibrate, parts.report)),
        len(parts.unknown),
        len(parts.classes),
    )
    return learn_classes(
        plan,
        parts.classes,
        parts.learn,
        parts.unknown,
        {"calibrate": parts.calibrate, "report": parts.report},
        options.work,
        resume=options.resume,
        minutes_cpu=options.pilot,
    )


def crop_figures(
    logits: np.ndarray, classes: np.ndarray, parts: Parts, temperature: float
) -> dict[str, dict[str, Any]]:
    """Of all crops where each picture's crop is known, and of each crop with its name unknown and known."""
    if not parts.crops:
        return {}
    narrowed = np.full_like(logits, -1e9)
    of_crop: dict[str, np.ndarray] = {}
    for crop, own in parts.crops.items():
        of_crop[crop] = np.isin(classes, own)
        narrowed[np.ix_(of_crop[crop], own)] = logits[np.ix_(of_crop[crop], own)]
    found = {"all, crop known": calibration.figures(narrowed, classes, parts.classes, temperature)}
    for crop, rows in of_crop.items():
        found[crop] = calibration.figures(logits[rows], classes[rows], parts.classes, temperature)
        found[f"{crop}, crop known"] = calibration.figures(
            narrowed[rows], classes[rows], parts.classes, temperature
        )
    return found


def finish(
    model: nn.Module,
    plan: Plan,
    parts: Parts,
    words: Words,
    overlap: dict[str, int],
    options: argparse.Namespace,
    figures_beside: dict[str, dict[str, Any]],
    more: dict[str, Any],
) -> None:
    """Writes NAME.onnx, NAME.json and NAME.md; every figure is of the file as written, float16 weights and all."""
    side = (parts.learn.pictures.shape[2], parts.learn.pictures.shape[3])
    path = options.out / f"{words.name}.onnx"
    assert isinstance(model, Classifier)
    one_view = calibration.figures(
        as_float64(predict(model, parts.report.pictures)),
        parts.report.classes.numpy(),
        parts.classes,
        1.0,
    )
    model = Likened(Averaged(model), parts.learn.pictures)
    digest = export_onnx(model, side, ("logits", "embedding", "likeness"), path)
    logits = {
        "calibrate": run_onnx(path, parts.calibrate.pictures),
        "report": run_onnx(path, parts.report.pictures),
    }
    exact = as_float64(predict(model, parts.report.pictures))
    changed = int((exact.argmax(1) != logits["report"].argmax(1)).sum())
    classes = {"calibrate": parts.calibrate.classes.numpy(), "report": parts.report.classes.numpy()}
    temperature = calibration.fit_temperature(logits["calibrate"], classes["calibrate"])
    has_likeness = True

    def scores(pictures: Tensor) -> dict[str, np.ndarray]:
        likeness = run_onnx(path, pictures, "likeness") if has_likeness else None
        return calibration.scores_of(run_onnx(path, pictures), temperature, likeness)

    known, strangers = scores(parts.calibrate.pictures), scores(parts.unknown_chosen_on)
    score = calibration.choose_abstention(known, strangers).score
    chosen = calibration.abstention_by(score, known[score], strangers[score], parts.keep)
    has_likeness = chosen.score == "likeness"
    if not has_likeness:  # the pictures learnt from would then lie in the file for nothing
        digest = export_onnx(model.averaged, side, ("logits", "embedding"), path)
    unknown = {kind: scores(pictures) for kind, pictures in parts.unknown_reported.items()}
    figures = crop_figures(logits["report"], classes["report"], parts, temperature)
    main = calibration.figures(logits["report"], classes["report"], parts.classes, temperature)
    description = {
        "name": words.name,
        "recipe": words.recipe,
        "weights": path.name,
        "sha256": digest,
        "bytes": path.stat().st_size,
        "parameters": parameters_of(model),
        "classes": list(parts.classes),
        "input": input_of(side),
        "outputs": {"logits": len(parts.classes), "embedding": plan.shape.widths[-1]}
        | ({"likeness": 1} if has_likeness else {}),
        "temperature": temperature,
        "calibrated_on": words.calibrated_on,
        "abstention": {
            **calibration.abstention_figures(scores(parts.report.pictures), unknown, chosen),
            "most_negative": parts.most_negative,
        },
        "figures": {words.reported: main, **figures, **figures_beside},
        "crops": {
            crop: [parts.classes[number] for number in own] for crop, own in parts.crops.items()
        },
        "latency_ms": latency_ms(path, side),
        "changed_by_float16": changed,
        "top1_of_one_view": one_view["top1"],
        "epochs": plan.epochs,
        "seed": plan.seed,
        "split": words.split,
        "licence": words.licence,
        "overlap": overlap,
        "uncalibrated": calibration.uncalibrated(figures, more.get("calibration_subjects", {})),
        **more,
    }
    write_description(options.out / f"{words.name}.json", description)
    card = model_card(description, what=words.what, data=words.data, failures=words.failures)
    (options.out / f"{words.name}.md").write_text(card)
    log.info(
        "written to %s: top-1 %.3f, temperature %.2f, %s",
        options.out,
        main["top1"],
        temperature,
        chosen,
    )
