"""Lesions on leaves against masks drawn by hand: outline of the leaf, overlap of the lesions, severity."""

import numpy as np

from agrotools.build.accuracy.drawn_fruit_and_leaves import LESION_STUDIES
from agrotools.build.accuracy.figures import Figure, concordance_of, mean_of, ratio_of
from agrotools.build.accuracy.study import Bench, Study
from agrotools.tools.lesions.analyze_lesions import RULES
from agrotools.tools.lesions.result import LESION, LeafLesions
from agrotools.vision.reading import read_labels

_TRUE_SYMPTOM = 2
_TRAINED = "the model saw 342 other leaves of the same collection (white board, one crop): a closed world"
_BY_RULES = "by colour rules, which serve leaves of any kind; their constants were chosen on other leaves of this crop"


def _against_masks(bench: Bench) -> list[Figure]:
    """The tool as it is, then the same pictures with the rules that it falls back to."""
    return [
        *_figures(bench, None, "", _TRAINED, goals=(0.965, 1.7, 0.70)),
        *_figures(bench, RULES, " (rules)", _BY_RULES, goals=(None, None, None)),
    ]


def _figures(
    bench: Bench, backend: str | None, suffix: str, note: str, goals: tuple[float | None, float | None, float | None]
) -> list[Figure]:
    leaf_iou: list[float] = []
    joint: list[float] = []
    either: list[float] = []
    found_pct: list[float] = []
    true_pct: list[float] = []
    by_model = 0
    for item in bench.items():
        result: LeafLesions = bench.call(image=bench.folder / item["image"], backend=backend)
        found = read_labels(bench.made(result.mask)).classes
        true = read_labels(bench.folder / item["mask"]).classes
        leaf_iou.append(float(((found > 0) & (true > 0)).sum() / ((found > 0) | (true > 0)).sum()))
        lesion, symptom = found == LESION, true == _TRUE_SYMPTOM
        joint.append(float(np.count_nonzero(lesion & symptom)))
        either.append(float(np.count_nonzero(lesion | symptom)))
        found_pct.append(result.severity_pct)
        true_pct.append(100 * float(symptom.sum() / (true > 0).sum()))
        by_model += result.method == "model"
    errors = [found - true for found, true in zip(found_pct, true_pct, strict=True)]
    used = f"{note}; {by_model} of {len(errors)} by the model"
    return [
        mean_of(f"leaf IoU{suffix}", leaf_iou, goal=goals[0], note="largest leaf, found by the tool"),
        ratio_of(f"lesion IoU, pooled{suffix}", joint, either, note=used),
        mean_of(
            f"severity, mean absolute error, points{suffix}",
            [abs(error) for error in errors],
            goal=goals[1],
            higher_is_better=False,
            note=f"{used}; mean true severity {np.mean(true_pct):.2f} %, so always 0 would err by as much",
        ),
        mean_of(f"severity, bias, points{suffix}", errors, higher_is_better=False, note="found minus true"),
        concordance_of(f"severity, concordance (CCC){suffix}", found_pct, true_pct, goal=goals[2], note=used),
    ]


STUDIES = (Study("analyze_lesions", "coffee_lesions", _against_masks), *LESION_STUDIES)
