"""Answers guessed from a prompt alone: the score of a policy that sees neither pixels nor tools.

The model holds, for each slot (by name, type and unit), the best constant answer and, where cross-validation found it
better, a linear model over the words and numbers of the question and what is told of its files. It is fitted by
``training/fit_guess.py`` on drawn benchmarks of other seeds than those that ship, and sees no sample that it is asked
about.
"""

import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from agrotools.core import (
    Arguments,
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    OpenTextSlot,
    Sample,
    SampleFile,
    SampleView,
    Slot,
    ToleranceSlot,
)
from agrotools.text.normalise import CJK, WORD, normalise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WORD_FEATURES = 384
MOST_NUMBERS = 6
"""Numbers of a question that have features of their own, in the order in which they stand."""

_TOKEN = re.compile(rf"{WORD}+|[{CJK}]")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True)
class Guesser:
    """Guess of one slot.

    ``constant``: the best answer whatever is asked; a number, a yes or no, a text, a list, or, of the choices in
    alphabetical order, a place (``by_place``). ``outcomes`` and ``weights`` (features + 1, outcomes): a linear
    classifier over the same kinds of answer. ``weights`` (features + 1, 1) without ``outcomes``: a linear model of the
    number, or of its logarithm (``logarithm``), held between ``low`` and ``high``.
    """

    constant: JsonValue
    by_place: bool = False
    outcomes: tuple[JsonValue, ...] = ()
    weights: "NDArray[np.float32] | None" = None
    logarithm: bool = False
    low: float = -math.inf
    high: float = math.inf

    def value(self, features: "NDArray[np.float64]") -> JsonValue:
        """The guess for a prompt with these features."""
        if self.weights is None:
            return self.constant
        outputs = features @ self.weights[:-1] + self.weights[-1]
        if self.outcomes:
            return self.outcomes[int(outputs.argmax())]
        number = min(max(float(outputs[0]), self.low), self.high)
        return math.exp(number) if self.logarithm else number


def slot_key(slot: Slot) -> str:
    """Key of a slot in the model: name, type and unit, all of which the answer form shows."""
    return f"{slot.name}{kind_key(slot)}"


def kind_key(slot: Slot) -> str:
    """The key of slots of its type and unit that are not known by name."""
    return f"|{slot.type}|{getattr(slot, 'unit', None) or ''}"


def guessable(slot: Slot) -> bool:
    """True if the floor counts slots of this kind: those of our own benchmarks. A figure that nobody drew scores 0."""
    return slot.type in ("exact", "boolean", "choice_set", "file", "tolerance", "open_text", "plot")


def shown_choices(slot: Slot) -> tuple[str, ...]:
    """The choices that the answer form shows, in its order."""
    return tuple(sorted(slot.choices)) if isinstance(slot, ExactSlot | FileSlot | ChoiceSetSlot) else ()


def prompt_features(query: str, sample_files: Sequence[SampleFile]) -> "NDArray[np.float64]":
    """Features of a prompt: words and pairs of words (hashed), numbers; number, sizes, scale, bands of the files."""
    import numpy as np

    text = normalise(query)
    for name in sorted((file.name for file in sample_files), key=len, reverse=True):
        text = text.replace(normalise(name), " file ")
    numbers = [float(digits.replace(",", "")) for digits in _NUMBER.findall(text) if digits.count(".") < 2]
    words = _TOKEN.findall(_NUMBER.sub("0", text))
    hashed = np.zeros(WORD_FEATURES)
    for token in (*words, *(" ".join(pair) for pair in pairwise(words))):
        hashed[zlib.crc32(token.encode()) % WORD_FEATURES] = 1.0
    logs = [math.log1p(min(number, 1e12)) for number in numbers[:MOST_NUMBERS]]
    first = sample_files[0] if sample_files else None
    sizes = [first.width_px or 0, first.height_px or 0] if first else [0, 0]
    prompt_facts = [
        float(len(numbers)),
        float(len(sample_files)),
        *(math.log1p(size) for size in sizes),
        math.log(first.gsd_m) if first and first.gsd_m else 0.0,
        float(len(first.bands or ())) if first else 0.0,
        float(len({file.kind for file in sample_files})),
    ]
    return np.concatenate([hashed, logs + [0.0] * (MOST_NUMBERS - len(logs)), prompt_facts])


class GuessModel:
    """Guesses the answers of a prompt from its words, numbers and files, never from pixels or gold."""

    def __init__(self, guessers: Mapping[str, Guesser]) -> None:
        self.guessers = guessers

    def values(self, query: str, sample_files: Sequence[SampleFile], slots: Sequence[Slot]) -> dict[str, JsonValue]:
        """A value for each slot that can be guessed, by its name; of ``slots`` only what the answer form shows is
        read."""
        features = prompt_features(query, sample_files)
        guesses = {slot.name: self.value_of(slot, features) for slot in slots}
        return {name: value for name, value in guesses.items() if value is not None}

    def value_of(self, slot: Slot, features: "NDArray[np.float64]") -> JsonValue:
        """The guess for one slot of a prompt with these features; None without a guess."""
        known = (slot_key(slot), kind_key(slot), f"|{slot.type}|")
        guesser = next((self.guessers[key] for key in known if key in self.guessers), None)
        choices = shown_choices(slot)
        if slot.letters:
            return slot.letters[0]
        value = guesser.value(features) if guesser else None
        if guesser and guesser.by_place:
            return choices[min(int(str(value)), len(choices) - 1)] if choices else None
        if isinstance(slot, ToleranceSlot | BooleanSlot | OpenTextSlot):
            return value
        if isinstance(slot, ChoiceSetSlot):
            offered = [name for name in value if name in choices] if isinstance(value, list) else []
            return [*(offered or choices[:1])]
        if isinstance(slot, ExactSlot | FileSlot) and choices:
            return value if value in choices else choices[0]
        return value if isinstance(slot, ExactSlot) else None


Plan = tuple[tuple[str, Arguments], ...]
"""Tools to call in turn, with arguments; references lead to what earlier calls returned."""


def plan_key(slots: Sequence[Slot], sample_files: Sequence[SampleFile]) -> str:
    """Key of the usual plan of a question: the slots of its answer form, and its number of files."""
    return f"{' '.join(map(slot_key, slots))} {len(sample_files)}"


def usual_plan(sample: Sample) -> Plan | None:
    """The calls most usual on other benchmarks for questions with such an answer form; None where it is not known."""
    return _shipped_plans().get(plan_key(sample.answer, sample.files))


@cache
def _shipped_plans() -> dict[str, Plan]:
    plans = json.loads(files("agrotools.data").joinpath("guess_plans.json").read_text("utf-8"))
    return {key: tuple((tool, arguments) for tool, arguments in calls) for key, calls in plans.items()}


def guessed_values(sample: Sample | SampleView, slots: Sequence[Slot]) -> dict[str, JsonValue]:
    """Guesses of the model that ships for ``slots``."""
    return shipped_model().values(sample.query, sample.files, slots)


@cache
def shipped_model() -> GuessModel:
    """The model that ships with the package."""
    import numpy as np

    folder = files("agrotools.data")
    slots: dict[str, dict[str, Any]] = json.loads(folder.joinpath("guess.json").read_text("utf-8"))["slots"]
    with folder.joinpath("guess.npz").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        weights = {name: arrays[name].astype(np.float32) for name in arrays.files}
    return GuessModel({key: guesser_of(entry, weights) for key, entry in slots.items()})


def guesser_of(entry: Mapping[str, Any], weights: "Mapping[str, NDArray[np.float32]]") -> Guesser:
    """A guesser from its entry in ``guess.json``, which names its array of ``guess.npz``."""
    fields = {name: value for name, value in entry.items() if name != "weights"}
    outcomes = tuple(fields.pop("outcomes", ()))
    return Guesser(**fields, outcomes=outcomes, weights=weights[entry["weights"]] if "weights" in entry else None)
