"""Baseline ``colours``: refuses by the mean colours of the files, and otherwise answers as ``guess``.

It shows what a policy earns that notices that a file is unusual, without looking at what it shows. Of each file it has
seven numbers: mean and deviation of each of three channels, and the bytes of the file by its pixels. A logistic rule
over these numbers and their squares says how likely it is that the file makes a question unanswerable. The question is
refused if that is likely for any of its files, and where the prompt shows that there is no answer (see :mod:`.guess`).

``training/fit_colours.py`` fits the rule to drawn scenes with other seeds than the shipped ones.
"""

import asyncio
import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from agrotools.agents.baselines.guess import GuessPolicy
from agrotools.core import Action, AgrotoolsError, Answer, Sample, SampleView, Step
from agrotools.core.lazy import FloatArray, np
from agrotools.text.answer_form import UNKNOWN

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CHANNELS = 3
_SIDE_PX = 128
"""Pictures are read at about this size, which their mean colours do not need more of."""
_MOST_OF_8_BITS, _MOST_OF_16_BITS = 255.0, 65535.0


@dataclass(frozen=True)
class ColourRule:
    """Logistic rule over the numbers of a file and their squares.

    ``mean``, ``scale``: of the numbers, over the files that it was fitted to; ``weights``: of the standardised numbers,
    then of their squares; ``threshold``: likelihood from which a question is refused.
    """

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    weights: tuple[float, ...]
    constant: float
    threshold: float

    def likelihood(self, numbers: FloatArray) -> float:
        """Return how likely it is that a file with these numbers makes a question unanswerable."""
        terms = rule_terms((numbers - np.array(self.mean)) / np.array(self.scale))
        score = float(terms @ np.array(self.weights)) + self.constant
        return 1.0 / (1.0 + math.exp(-score))


def rule_terms(standardised: FloatArray) -> FloatArray:
    """Return standardised numbers and their squares; numbers far outside count as four deviations."""
    near = np.clip(standardised, -4.0, 4.0)
    return np.concatenate([near, near**2])


@cache
def file_numbers(path: str) -> FloatArray | None:
    """Return the numbers of a file; None if it cannot be read as a picture or a raster."""
    place = Path(path)
    try:
        planes, pixels = _planes_of(place)
    except (AgrotoolsError, OSError, ValueError, SyntaxError, ImportError):
        return None
    channels = [planes[min(k, len(planes) - 1)] for k in range(_CHANNELS)]
    means = [float(channel.mean()) for channel in channels]
    deviations = [float(channel.std()) for channel in channels]
    return np.array([*means, *deviations, math.log(place.stat().st_size / pixels)])


def _planes_of(path: Path) -> tuple["NDArray[np.float64]", int]:
    """Return the channels of a file (channels, rows, columns), of values from 0 to 1, and its number of pixels."""
    if path.suffix.lower() in (".tif", ".tiff"):
        return _planes_of_raster(path)
    from PIL import Image

    with Image.open(path) as picture:
        pixels = picture.width * picture.height
        if picture.mode.startswith("I"):
            values = np.asarray(picture, np.float64)[None]
            return _logarithms(values), pixels
        picture.draft("RGB", (_SIDE_PX, _SIDE_PX))
        colours = np.asarray(picture.convert("RGB"), np.float64)
    return colours.transpose(2, 0, 1) / _MOST_OF_8_BITS, pixels


def _planes_of_raster(path: Path) -> tuple["NDArray[np.float64]", int]:
    """Return the bands of a raster; cells without data are 0."""
    from agrotools.vision.rasters import open_raster

    with warnings.catch_warnings(action="ignore"), open_raster(path) as raster:
        bands = raster.read([*range(1, min(_CHANNELS, raster.count) + 1)])
    known = np.nan_to_num(np.asarray(bands, np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    is_8_bits = bands.dtype == np.uint8
    values = known / _MOST_OF_8_BITS if is_8_bits else _logarithms(np.abs(known))
    return values, known.shape[1] * known.shape[2]


def _logarithms(values: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Return values of rasters and depth maps, whose ranges differ, on a scale of 0 to 1."""
    return np.log1p(np.minimum(values, _MOST_OF_16_BITS)) / math.log1p(_MOST_OF_16_BITS)


def likelihood_of_files(rule: ColourRule, paths: Sequence[str]) -> float:
    """Return the largest likelihood of any of the files; 0 if none can be read."""
    numbers = [file_numbers(path) for path in paths]
    return max((rule.likelihood(each) for each in numbers if each is not None), default=0.0)


@cache
def shipped_rule() -> ColourRule:
    """Return the rule that ships with the package."""
    stored = json.loads(files("agrotools.data").joinpath("colours.json").read_text("utf-8"))
    return ColourRule(
        mean=tuple(stored["mean"]),
        scale=tuple(stored["scale"]),
        weights=tuple(stored["weights"]),
        constant=stored["constant"],
        threshold=stored["threshold"],
    )


class ColoursPolicy:
    """Policy that refuses by the colours of the files, and otherwise guesses from the prompt."""

    def __init__(self, sample: Sample) -> None:
        self._guess = GuessPolicy(sample)

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        if view.may_abstain and not history:
            paths = [file.path for file in view.files]
            rule = shipped_rule()
            if await asyncio.to_thread(likelihood_of_files, rule, paths) >= rule.threshold:
                return Answer(text=UNKNOWN)
        return await self._guess.act(view, history)
