"""Calibrations of open models with local weights (:mod:`agrotools.tools.recognition.calibration_fitting`).

A calibration is a JSON file in the packs folder, with an ``.npz`` file of descriptions of its pictures. It holds for
one model, one tool and one list of names: the hashes of the three are in its name.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat

from agrotools.core import FrozenModel, ToolError
from agrotools.core.files import cached_files, sha256_of_file, sha256_of_json
from agrotools.tools.learned import weights_of
from agrotools.tools.recognition.candidates import NOT_CALIBRATED
from agrotools.tools.recognition.net import Floats, probabilities
from agrotools.tools.recognition.packs import packs_folder
from agrotools.vision.learned import RankedNames
from agrotools.vision.learned.weights import Weights
from agrotools.vision.nets import checked_arrays, read_description, unusable_weights
from agrotools.vision.strangeness import TRAITS_VERSION, References, Scale, Vector, score_of, terms_of

COMMAND = "agrotools tools packs calibrate learned:MODEL --images DIR --tool TOOL"
_HINT = f"remove it, or calibrate again: {COMMAND}"
_PREFIX = "calibration-"
_LEAST_SHARE = 1e-300
_Share = Annotated[FiniteFloat, Field(ge=0, le=1)]
_Interval = tuple[_Share, _Share]


class CalibrationFigures(FrozenModel):
    """Metrics on pictures that nothing of the calibration was fitted to (cross-fitted by subject).

    ``top1`` and ``kept`` (share not refused) are means over subjects, with Wilson intervals. The calibration errors
    are expected ones of the best scores: before (``uncalibrated_error``), after, and of perfect probabilities
    (``error_by_chance``). ``refused_strangers`` and ``named_strangers``: shares of the strangers that are refused, and
    with a best candidate; None without strangers.
    """

    pictures: int
    subjects: int
    top1: _Share
    top1_95: _Interval
    kept: _Share
    kept_95: _Interval
    uncalibrated_error: _Share
    calibration_error: _Share
    error_by_chance: _Share
    strangers: int = 0
    refused_strangers: _Share | None = None
    named_strangers: _Share | None = None
    named_strangers_95: _Interval | None = None


class Fit(FrozenModel):
    """Temperature of a model's shares, and strangeness above which a picture is refused."""

    temperature: Annotated[FiniteFloat, Field(gt=0)]
    scales: dict[str, Scale]
    threshold: FiniteFloat
    """Largest strangeness with which a picture gets an answer."""

    def judge(
        self, logits: Floats, described: Mapping[str, Vector], references: Mapping[str, Vector]
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the calibrated scores of pictures (n, names), and True for those that are not refused (n,).
        ``described``, ``references``: descriptions, (n, width), of the pictures and of those of the calibration."""
        scores = probabilities(logits, self.temperature)
        known = {name: References(rows) for name, rows in references.items()}
        terms = terms_of(described, known, None, scores.max(axis=1))
        return scores, score_of(terms, self.scales) <= self.threshold


class Calibration(Fit):
    """Fit of a model for the names of a tool."""

    format: Literal[1] = 1
    model: str
    weights_sha256: str
    tool: str
    names: tuple[str, ...]
    traits_version: int = TRAITS_VERSION
    references_sha256: str
    withheld: str
    """Why scores are not to be given; empty if they are."""
    figures: CalibrationFigures

    @property
    def path(self) -> Path:
        return _path(self.weights_sha256, self.tool, self.names)

    @property
    def references_path(self) -> Path:
        return self.path.with_suffix(".npz")

    def references(self) -> dict[str, Vector]:
        """Read the descriptions of the pictures of the calibration, (n, width)."""
        what = f"the pictures of the calibration {self.path.name}"
        arrays = checked_arrays(self.references_path, self.references_sha256, what=what, hint=_HINT)
        return {name: array.astype(np.float32) for name, array in arrays.items()}


def logarithms(shares: Floats) -> Floats:
    """Return the logarithms of shares; those that are too small to tell from 0 count as 1e-300."""
    return np.log(np.maximum(shares, _LEAST_SHARE))


def calibrate_names(
    backend: str, tool: str, ranked: RankedNames, described: Mapping[str, Vector]
) -> tuple[RankedNames, bool]:
    """Return the names of a model with calibrated scores, and False if the picture is to be refused. Without a
    calibration for these names, or if it gives no scores, the flag ``not_calibrated`` is set."""
    found = find_calibration(backend, tool, [name for name, _ in ranked.candidates])
    if found is None:
        note = f"no scores: the model is not calibrated for these names of {tool} ({COMMAND})"
        return ranked._replace(notes=(*ranked.notes, note), flags=(*ranked.flags, NOT_CALIBRATED)), True
    shares = np.array([share for _, share in ranked.candidates])
    rows = {name: row[None] for name, row in described.items()}
    scores, is_known = found.judge(logarithms(shares)[None], rows, found.references())
    candidates = tuple((name, float(score)) for (name, _), score in zip(ranked.candidates, scores[0], strict=True))
    figures = found.figures
    low, high = figures.top1_95
    right = f"{figures.top1:.2f} ({low:.2f} to {high:.2f})"
    notes = [*ranked.notes, f"calibrated on {figures.subjects} subjects: first candidate right {right}"]
    flags = ranked.flags
    if found.withheld:
        notes.append(f"no scores: {found.withheld}")
        flags = (*flags, NOT_CALIBRATED)
    return ranked._replace(candidates=candidates, notes=tuple(notes), flags=flags), bool(is_known[0])


def calibration_files(backend: str) -> tuple[Path, ...]:
    """Return the files of all calibrations of a model, whatever the tool and the names."""
    files = _files()
    if not files:
        return ()  # spares reading all weights
    beginning = f"{_PREFIX}{weights_digest(weights_of(backend))[:16]}-"
    return tuple(path for path in files if path.name.startswith(beginning))


def find_calibration(backend: str, tool: str, names: Sequence[str]) -> Calibration | None:
    """Return the calibration of a model for a tool and a list of names in any order; None if there is none."""
    if not _files():
        return None
    digest = weights_digest(weights_of(backend))
    path = _path(digest, tool, names)
    if not path.is_file():
        return None
    found = read_calibration(path)
    if (found.weights_sha256, found.tool, set(found.names)) != (digest, tool, set(names)):
        raise _unusable(path, "is that of another model, tool or list of names")
    return found


def list_calibrations() -> tuple[list[Calibration], list[str]]:
    """Return the calibrations on this machine, and the faults of unusable ones."""
    found: list[Calibration] = []
    faults: list[str] = []
    for path in _files():
        try:
            one = read_calibration(path)
            one.references()
            found.append(one)
        except ToolError as error:
            faults.append(error.message)
    return found, faults


def read_calibration(path: Path) -> Calibration:
    """Read a calibration; ToolError ``backend_unavailable`` if it is damaged."""
    found = read_description(path, Calibration, what=f"the calibration {path.name}", hint=_HINT)
    if found.traits_version != TRAITS_VERSION:
        raise _unusable(path, "is of another version of agrotools")
    return found


def _unusable(path: Path, why: str) -> ToolError:
    return unusable_weights(f"the calibration {path.name}", why, _HINT)


@lru_cache(maxsize=8)
def weights_digest(weights: Weights) -> str:
    """Return a hash of all files that a model's answers depend on."""
    return sha256_of_json([[path.name, sha256_of_file(path)] for path in weights.files])


def _files() -> list[Path]:
    return [path for path in cached_files("packs", suffixes=(".json",)) if path.name.startswith(_PREFIX)]


def _path(weights_sha256: str, tool: str, names: Sequence[str]) -> Path:
    of_names = sha256_of_json(sorted(set(names)))[:16]
    return packs_folder() / f"{_PREFIX}{weights_sha256[:16]}-{tool}-{of_names}.json"
