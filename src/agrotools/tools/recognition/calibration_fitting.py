"""Calibration of an open model with local weights on labelled pictures.

One temperature (Guo et al. 2017) makes the model's shares probabilities. Pictures are refused by their strangeness, as
in :mod:`agrotools.vision.strangeness`: the distances to the nearest pictures of the calibration in the model's
embedding and in traits of the whole picture, and the best score, which stands for the likeness. The threshold is a
conformal quantile that keeps 95 % of the subjects (Vovk et al. 2005; with several pictures of a subject: Lee, Barber
and Willett 2023). It is set with temperatures and distances of other subjects, and all figures are measured on subjects
to which nothing was fitted.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError, UsageError
from agrotools.core.base import count_text
from agrotools.core.files import write_whole
from agrotools.knowledge.entries import Entry
from agrotools.knowledge.kb_names import KbNames, kb_names
from agrotools.tools import get_tool
from agrotools.tools.execution import check_backend
from agrotools.tools.learned import LEARNED, name_learned, weights_of
from agrotools.tools.recognition import diagnose_pest_disease, identify_weed
from agrotools.tools.recognition.calibration import Calibration, CalibrationFigures, Fit, logarithms, weights_digest
from agrotools.tools.recognition.candidates import LEAST_SUBJECTS, NAMED_FROM
from agrotools.tools.recognition.labelled_pictures import LabelledImage, pictures_below
from agrotools.tools.recognition.net import Floats, fit_temperature, probabilities, wilson
from agrotools.tools.recognition.pack_training import Progress, calibration_error, read_pictures
from agrotools.vision.nets import pack_arrays
from agrotools.vision.strangeness import References, Scale, Vector, score_of, terms_of

KEEP = 0.95
"""Share of subjects whose pictures are to be kept."""
LEAST_CHANCE = 0.01
"""Scores are withheld where perfect probabilities would have their calibration error less often than this."""
MOST_REFERENCES = 2000
"""Largest number of pictures whose descriptions a calibration holds."""
_FOLDS = 5
_DRAWS = 200
_SHOWN = 5
_ARGUMENTS = {"identify_weed": ("candidates",), "diagnose_pest_disease": ("kind", "crop")}
"""Tools that name, and their arguments that decide on the list of names."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of a model for n labelled pictures.

    ``logits``: logarithms of its shares, (n, names). ``classes``: places of the true names. ``subjects``: number of the
    subject of each picture. ``described``: descriptions of the pictures, (n, width).
    """

    logits: Floats
    classes: NDArray[np.int64]
    subjects: NDArray[np.int64]
    described: Mapping[str, Vector]

    @property
    def weights(self) -> Floats:
        """Weights of the pictures, (n,); those of a subject sum to 1."""
        return 1.0 / np.bincount(self.subjects)[self.subjects]

    def where(self, chosen: NDArray[np.bool_]) -> "Answers":
        described = {name: rows[chosen] for name, rows in self.described.items()}
        return Answers(self.logits[chosen], self.classes[chosen], self.subjects[chosen], described)

    def references(self) -> "Answers":
        """Return the pictures that others are compared with: all, or 2000 drawn from them."""
        return self.where(np.random.default_rng(0).permutation(len(self.classes)) < MOST_REFERENCES)

    def fitted_temperature(self) -> float:
        return fit_temperature(self.logits, self.classes, self.weights)

    def folds(self) -> list[NDArray[np.bool_]]:
        """Return the pictures of each fold, bool (n,); the pictures of a subject are in one."""
        subjects = np.unique(self.subjects)
        order = np.random.default_rng(0).permutation(len(subjects))
        return [np.isin(self.subjects, subjects[order[number::_FOLDS]]) for number in range(_FOLDS)]


def best_scores(logits: Floats, temperature: float) -> Floats:
    """Return the calibrated score of the best name of each picture, (n,)."""
    return probabilities(logits, temperature).max(axis=1)


def fit(answers: Answers) -> Fit:
    """Return the temperature, and the scales and threshold of strangeness.

    The threshold is set on scores out of fold, and on distances to pictures of other subjects. Of photographs of coffee
    leaves it kept 0.953 of new subjects, fitted to 40 or to 119 (docs/packs.md).
    """
    scores = np.zeros(len(answers.classes))
    for fold in answers.folds():
        scores[fold] = best_scores(answers.logits[fold], answers.where(~fold).fitted_temperature())
    references = answers.references()
    known = {name: References(rows) for name, rows in references.described.items()}
    is_same = answers.subjects[:, None] == references.subjects
    terms = terms_of(answers.described, known, None, scores, excluded=is_same)
    scales = {name: Scale.of(values) for name, values in terms.items()}
    threshold = conformal_threshold(score_of(terms, scales), answers.weights)
    return Fit(temperature=answers.fitted_temperature(), scales=scales, threshold=threshold)


def conformal_threshold(scores: Floats, weights: Floats, keep: float = KEEP) -> float:
    """Return the smallest of ``scores`` (n,) that a new subject exceeds with a probability of at most 1 - ``keep``;
    infinite if there are too few subjects for any refusal. ``weights`` (n,): those of the pictures of a subject sum
    to 1."""
    order = np.argsort(-scores, kind="stable")
    above = np.cumsum(weights[order]) - weights[order]
    reached = above + 1 <= (1 - keep) * (weights.sum() + 1) + 1e-9
    return float(scores[order][reached][-1]) if reached.any() else float("inf")


def cross_fitted_figures(answers: Answers) -> tuple[CalibrationFigures, float]:
    """Return metrics of :func:`fit` on subjects left out, and how probable so large a calibration error is."""
    scores, kept = np.zeros(len(answers.classes)), np.zeros(len(answers.classes))
    for fold in answers.folds():
        others, left_out = answers.where(~fold), answers.where(fold)
        shares, kept[fold] = fit(others).judge(left_out.logits, left_out.described, others.references().described)
        scores[fold] = shares.max(axis=1)
    right = answers.logits.argmax(axis=1) == answers.classes
    error = calibration_error(scores, right)
    drawn = np.random.default_rng(0).random((_DRAWS, len(scores))) < scores
    by_chance = np.array([calibration_error(scores, one) for one in drawn])
    top1, top1_95 = _share(right, answers)
    kept_share, kept_95 = _share(kept, answers)
    figures = CalibrationFigures(
        pictures=len(scores),
        subjects=len(np.unique(answers.subjects)),
        top1=top1,
        top1_95=top1_95,
        kept=kept_share,
        kept_95=kept_95,
        uncalibrated_error=calibration_error(best_scores(answers.logits, 1.0), right),
        calibration_error=error,
        error_by_chance=float(by_chance.mean()),
    )
    return figures, float((by_chance >= error).mean())


def _share(values: NDArray[Any], answers: Answers) -> tuple[float, tuple[float, float]]:
    """Return the mean over subjects, and its Wilson interval."""
    weights = answers.weights
    share = min(1.0, float(np.average(values, weights=weights)))
    subjects = round(float(weights.sum()))
    return share, wilson(share * subjects, subjects)


def calibrate(
    backend: str,
    tool: str,
    pictures: Sequence[LabelledImage],
    arguments: Mapping[str, Any],
    *,
    strangers: Path | None = None,
    skip_unreadable: bool = False,
    progress: Progress = lambda _: None,
) -> Calibration:
    """Calibrate the model of the back-end ``learned:MODEL`` for a tool on labelled pictures, and write the
    calibration to the packs folder. ``arguments``: those of the tool that decide on the names; ``strangers``: folder
    of pictures of other things, of which figures say how many get a name. UsageError: what cannot be used,
    unreadable pictures, or too few subjects."""
    if tool not in _ARGUMENTS:
        raise UsageError(f"{tool} gives no names", hint=f"tools: {', '.join(_ARGUMENTS)}")
    if not backend.startswith(LEARNED):
        raise UsageError(f"{backend} is not an open model", hint="learned:MODEL; packs are calibrated when trained")
    check_backend(get_tool(tool), backend)
    names = _names_to_choose(tool, arguments)
    places = _places(sorted({one.label for one in pictures}), names, kb_names(), arguments.get("crop"))
    _check_subjects({one.group for one in pictures})
    odd = _strangers_in(strangers)
    choice = list(names)
    progress(f"asking for {len(choice)} names on {len(pictures) + len(odd)} pictures")
    logits, described, used = _ask(backend, choice, pictures, skip_unreadable, progress)
    groups = _check_subjects({one.group for one in used})
    answers = Answers(
        logits,
        np.array([places[one.label] for one in used], np.int64),
        np.array([groups.index(one.group) for one in used], np.int64),
        described,
    )
    figures, chance = cross_fitted_figures(answers)
    fitted, references = fit(answers), answers.references().described
    if odd:
        logits, described, _ = _ask(backend, choice, odd, skip_unreadable, progress)
        figures = _with_strangers(figures, *fitted.judge(logits, described, references))
    error, by_chance = figures.calibration_error, figures.error_by_chance
    withheld = f"the calibration error is {error:.3f}, and perfect ones would have {by_chance:.3f} by chance"
    content, digest = pack_arrays({name: rows.astype(np.float16) for name, rows in references.items()})
    found = Calibration(
        **dict(fitted),
        model=backend.removeprefix(LEARNED),
        weights_sha256=weights_digest(weights_of(backend)),
        tool=tool,
        names=tuple(choice),
        references_sha256=digest,
        withheld=withheld if chance < LEAST_CHANCE else "",
        figures=figures,
    )
    found.path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(found.references_path, content)
    write_whole(found.path, found.model_dump_json(indent=1).encode() + b"\n")
    return found


def _names_to_choose(tool: str, arguments: Mapping[str, Any]) -> dict[str, Entry | None]:
    if unused := sorted(arguments.keys() - {*_ARGUMENTS[tool]}):
        hint = f"arguments that do: {', '.join(_ARGUMENTS[tool])}"
        raise UsageError(f"{unused[0]} does not decide on the names of {tool}", hint=hint)
    try:
        call: dict[str, Any] = get_tool(tool).validate({"image": "picture.jpg", **arguments})
        if tool == "identify_weed":
            return identify_weed.names_to_choose(call["candidates"], kb_names())
        return diagnose_pest_disease.names_to_choose(call["kind"], call["crop"], kb_names())
    except ToolError as error:
        raise UsageError(error.message, hint=error.hint or f"agrotools tools describe {tool}") from error


def _places(
    labels: Iterable[str], names: Mapping[str, Entry | None], known: KbNames, crop: str | None
) -> dict[str, int]:
    """Return the place of the name that each label means; UsageError if it means none of the names, or several."""
    found: dict[str, int] = {}
    missing: list[str] = []
    for label in labels:
        meant = [
            place
            for place, (name, entry) in enumerate(names.items())
            if known.mean_same(label, entry.id if entry else name, crop)
        ]
        if len(meant) > 1:
            several = " or ".join([*names][place] for place in meant[:_SHOWN])
            hint = (
                "use ids of the knowledge base as labels (agrotools tools kb search), or narrow the names: -a crop=CROP"
            )
            raise UsageError(f"the label {label} may mean {several}", hint=hint)
        if meant:
            found[label] = meant[0]
        else:
            missing.append(label)
    if missing:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise UsageError(
            f"none of the {len(names)} names means {', '.join(missing[:_SHOWN])}{more}",
            hint="labels are names or ids of agrotools tools kb search; other things: --strangers DIR",
        )
    return found


def _check_subjects(groups: set[str]) -> list[str]:
    if len(groups) < LEAST_SUBJECTS:
        raise UsageError(
            f"{count_text(len(groups), 'subject')} to calibrate on, and {LEAST_SUBJECTS} are needed",
            hint="a subject is a group of the labels, without groups a picture; scores stay null until then",
        )
    return sorted(groups)


def _strangers_in(folder: Path | None) -> list[LabelledImage]:
    if folder is None:
        return []
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", hint="--strangers names a folder of pictures of other things")
    if not (found := [LabelledImage(path, "", path.name) for path in pictures_below(folder)]):
        raise UsageError(f"there are no pictures in {folder}", hint="--strangers needs pictures of other things")
    return found


def _ask(
    backend: str, names: Sequence[str], pictures: Sequence[LabelledImage], skip: bool, progress: Callable[[str], None]
) -> tuple[Floats, dict[str, Vector], list[LabelledImage]]:
    """Return the logarithms of the model's shares (n, names), descriptions (n, width), and the pictures it can read."""
    rows: list[Floats] = []
    described: list[dict[str, Vector]] = []
    used: list[LabelledImage] = []
    for one, pixels, _ in read_pictures(pictures, skip, progress):
        ranked, description = name_learned(backend, pixels, (0, 0, pixels.shape[1], pixels.shape[0]), names)
        shares = dict(ranked.candidates)
        rows.append(logarithms(np.array([shares[name] for name in names])))
        described.append(description)
        used.append(one)
    return np.stack(rows), {name: np.stack([one[name] for one in described]) for name in described[0]}, used


def _with_strangers(figures: CalibrationFigures, scores: Floats, is_known: NDArray[np.bool_]) -> CalibrationFigures:
    named = int((is_known & (scores.max(axis=1) >= NAMED_FROM)).sum())
    update = {
        "strangers": len(scores),
        "refused_strangers": float((~is_known).mean()),
        "named_strangers": named / len(scores),
        "named_strangers_95": wilson(named, len(scores)),
    }
    return figures.model_copy(update=update)
