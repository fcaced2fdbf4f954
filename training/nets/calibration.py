"""How far a net's answer can be trusted: temperature, abstention, and figures with their intervals. NumPy alone."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools_tools.recognition.candidates import LEAST_SUBJECTS
from agrotools_tools.recognition.net import wilson

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def log_sum_exp(logits: Array) -> Array:
    top = logits.max(axis=1)
    return top + np.log(np.exp(logits - top[:, None]).sum(axis=1))


def negative_log_likelihood(logits: Array, classes: Ints, temperature: float) -> float:
    scaled = logits / temperature
    return float((log_sum_exp(scaled) - scaled[np.arange(len(classes)), classes]).mean())


def fit_temperature(logits: Array, classes: Ints) -> float:
    """The divisor of the logits with the least negative log-likelihood (Guo et al. 2017), by golden section on its
    logarithm, within 0.2..5."""
    low, high = math.log(0.2), math.log(5)
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(40):
        one, two = high - ratio * (high - low), low + ratio * (high - low)
        if negative_log_likelihood(logits, classes, math.exp(one)) < negative_log_likelihood(
            logits, classes, math.exp(two)
        ):
            high = two
        else:
            low = one
    return round(math.exp((low + high) / 2), 4)


def calibration_error(probability: Array, right: NDArray[np.bool_], bins: int = 10) -> float:
    """Expected calibration error over bins of equal width (Naeini et al. 2015)."""
    place = np.minimum((probability * bins).astype(int), bins - 1)
    return float(
        sum(
            abs(probability[place == number].mean() - right[place == number].mean())
            * (place == number).mean()
            for number in range(bins)
            if (place == number).any()
        )
    )


def errors_by_chance(probability: Array) -> Array:
    """Expected calibration errors that perfect probabilities have on as many pictures, in 200 draws."""
    drawn = np.random.default_rng(0).random((200, len(probability))) < probability
    return np.array([calibration_error(probability, right) for right in drawn])


LEAST_CHANCE = 0.01
"""A crop's probabilities are not given where perfect ones would have its calibration error less often than this."""


def uncalibrated(figures: dict[str, Any], subjects: dict[str, int]) -> dict[str, str]:
    """Crops whose probabilities are not to be given, and why; ``subjects``: those of each crop to calibrate on."""
    found: dict[str, str] = {}
    for crop, count in subjects.items():
        rows = [figures[crop], figures[f"{crop}, crop known"]]
        worst = min(rows, key=lambda row: row["ece_chance"])
        if count < LEAST_SUBJECTS:
            found[crop] = (
                f"only {count} independent groups to calibrate on; {LEAST_SUBJECTS} are needed"
            )
        elif worst["ece_chance"] < LEAST_CHANCE:
            error, chance = worst["ece"], worst["ece_by_chance"]
            found[crop] = (
                f"on {worst['n']} pictures that nothing was chosen on, their calibration error was {error:.3f}, and "
                f"perfect ones would have {chance:.3f} by chance"
            )
    return found


SCORES: dict[str, Callable[[Array, float], Array]] = {
    "max_softmax": lambda logits, temperature: softmax(logits / temperature).max(axis=1)
}
"""Scores of which a low one means: unknown."""


def scores_of(logits: Array, temperature: float, likeness: Array | None = None) -> dict[str, Array]:
    """Every score of some pictures, ``likeness`` to those learnt from among them where it is given."""
    found = {name: score(logits, temperature) for name, score in SCORES.items()}
    return found if likeness is None else found | {"likeness": likeness}


KEEP = 0.90
"""Share of known pictures at which abstention scores are compared."""


@dataclass(frozen=True)
class Abstention:
    """An answer is given where ``score`` is at least ``threshold``."""

    score: str
    threshold: float
    kept_of_known: float
    refused_of_unknown: float


def choose_abstention(
    known: dict[str, Array], unknown: dict[str, Array], keep: float = KEEP
) -> Abstention:
    """The score that, at the threshold that keeps ``keep`` of the known, refuses most of the unknown."""
    tried = [abstention_by(score, known[score], unknown[score], keep) for score in known]
    return max(tried, key=lambda one: one.refused_of_unknown)


def abstention_by(score: str, known: Array, unknown: Array, keep: float = KEEP) -> Abstention:
    """With a threshold on this score; ``known`` and ``unknown``: the score of pictures of either kind."""
    of_known = np.sort(known)
    threshold = float(np.floor(of_known[math.floor((1 - keep) * len(of_known))] * 1e6) / 1e6)
    return Abstention(
        score,
        threshold,
        float((of_known >= threshold).mean()),
        float((unknown < threshold).mean()) if len(unknown) else float("nan"),
    )


def by_class(predicted: Ints, classes: Ints, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of each class that occurs."""
    found: dict[str, dict[str, float]] = {}
    for number, name in enumerate(names):
        joint = int(((predicted == number) & (classes == number)).sum())
        true, said = int((classes == number).sum()), int((predicted == number).sum())
        if true:
            precision, recall = joint / max(1, said), joint / true
            f1 = 2 * precision * recall / max(1e-12, precision + recall)
            found[name] = {"n": true, "precision": precision, "recall": recall, "f1": f1}
    return found


def figures(
    logits: Array, classes: Ints, names: Sequence[str], temperature: float
) -> dict[str, object]:
    """Accuracy with its interval, macro F1, calibration before and after, and the table by class."""
    probability = softmax(logits / temperature)
    predicted = probability.argmax(axis=1)
    right = predicted == classes
    error, by_chance = (
        calibration_error(probability.max(axis=1), right),
        errors_by_chance(probability.max(axis=1)),
    )
    per_class = by_class(predicted, classes, names)
    return {
        "n": len(classes),
        "top1": float(right.mean()),
        "top1_95": tuple(round(end, 4) for end in wilson(int(right.sum()), len(right))),
        "macro_f1": float(np.mean([one["f1"] for one in per_class.values()])),
        "macro_recall": float(np.mean([one["recall"] for one in per_class.values()])),
        "ece": error,
        "ece_uncalibrated": calibration_error(softmax(logits).max(axis=1), right),
        "ece_by_chance": float(by_chance.mean()),
        "ece_chance": float((by_chance >= error).mean()),
        "by_class": per_class,
    }


def abstention_figures(
    known: dict[str, Array], unknown: dict[str, dict[str, Array]], chosen: Abstention
) -> dict[str, object]:
    """Shares kept of the known and refused of each kind of unknown, at the chosen threshold; all by their scores."""
    of_kinds = {kind: scores[chosen.score] for kind, scores in unknown.items()}
    return asdict(chosen) | {
        "kept": float((known[chosen.score] >= chosen.threshold).mean()),
        "refused": {
            kind: {"n": len(one), "share": float((one < chosen.threshold).mean())}
            for kind, one in of_kinds.items()
        },
    }
