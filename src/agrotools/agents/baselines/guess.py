"""Baseline ``guess``: answers guessed from prompt and answer form alone, which are also the floor of scores.

The guesses give the score of a policy that sees neither pixels nor tools. The model holds, for each slot (by name, type
and unit), the best constant answer and, if cross-validation found it better, a linear model over the words and numbers
of the question and the metadata of its files. ``training/fit_guess.py`` fits it on synthetic benchmarks with other
seeds than the shipped ones, so it has never seen the samples for which it guesses. Where the prompt shows that the
files do not allow an answer (:func:`is_unanswerable`), the guess is a refusal.

The usual plan of a question is the calls and the figure of the drawn questions whose words are most like its own.
``data/guess_plans.json`` has the most common calls for each answer form of the question templates and number of files,
and the share of the wordings that hold each word, by figure and language.
"""

import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import JsonValue

from agrotools.core import (
    Action,
    Answer,
    BooleanSlot,
    CallTools,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    OpenTextSlot,
    PlotSeries,
    PlotSlot,
    PlotSpec,
    Sample,
    SampleFile,
    SampleView,
    Slot,
    Step,
    ToleranceSlot,
    ToolCall,
)
from agrotools.core.lazy import FloatArray, SingleArray, np
from agrotools.core.record import CallSequence
from agrotools.core.slot import asked_slots
from agrotools.text.answer_form import UNKNOWN, format_answer
from agrotools.text.normalise import TOKEN, late_pattern, normalise

if TYPE_CHECKING:
    from agrotools.scoring.floors import Floor

WORD_FEATURES = 384
MOST_NUMBERS, MOST_BOXES = 6, 3
"""Only the first numbers and boxes of a question, up to this many, are separate features."""
_LARGEST_NUMBER = 1e12
"""Larger numbers count as this one."""
_BOX = late_pattern(r"(?<!\d)(\d{1,6}), \d+, (\d{1,6}), \d+")


@dataclass(frozen=True)
class Guesser:
    """Guesser of one slot.

    ``constant``: the best answer to any question: a number, a boolean, a text, a list, or an index into the choices in
    alphabetical order (``by_place``). ``outcomes`` and ``weights`` (features + 1, outcomes): a linear classifier over
    the same kinds of answer. ``weights`` (features + 1, 1) without ``outcomes``: a linear model of the number, or of
    its logarithm (``logarithm``), clipped to ``low`` and ``high``.
    """

    constant: JsonValue
    by_place: bool = False
    outcomes: tuple[JsonValue, ...] = ()
    weights: SingleArray | None = None
    logarithm: bool = False
    low: float = -math.inf
    high: float = math.inf

    def value(self, features: FloatArray | None) -> JsonValue:
        """Return the guess for a prompt with these features, which only a guesser with weights needs."""
        if self.weights is None or features is None:
            return self.constant
        outputs = features @ self.weights[:-1] + self.weights[-1]
        if self.outcomes:
            return self.outcomes[int(outputs.argmax())]
        number = min(max(float(outputs[0]), self.low), self.high)
        return math.exp(number) if self.logarithm else number


def shown_choices(slot: Slot) -> tuple[str, ...]:
    """Return the choices shown in the answer form, in the same order."""
    return (
        tuple(sorted(slot.choices))
        if isinstance(slot, ExactSlot | FileSlot | ChoiceSetSlot)
        else ()
    )


def prompt_features(query: str, sample_files: Sequence[SampleFile]) -> FloatArray:
    """Return the features of a prompt as one vector.

    They are hashed words and word pairs, the first numbers and the widths of the first boxes (logarithms), and the
    number, sizes, scale and bands of the files.
    """
    text = normalise(query)
    # The longest name first, because it may contain another.
    for name in sorted((file.name for file in sample_files), key=len, reverse=True):
        text = text.replace(normalise(name), " file ")
    numbers = [
        float(digits.replace(",", "")) for digits in NUMBER.findall(text) if digits.count(".") < 2
    ]
    first_numbers = [math.log1p(min(number, _LARGEST_NUMBER)) for number in numbers[:MOST_NUMBERS]]
    widths = [
        math.log1p(abs(int(right) - int(left))) for left, right in _BOX.findall(text)[:MOST_BOXES]
    ]
    return np.concatenate(
        [
            _hashed_words(tokens_of(text)),
            _padded(first_numbers, MOST_NUMBERS),
            _padded(widths, MOST_BOXES),
            [float(len(numbers))],
            _file_features(sample_files),
        ]
    )


def _hashed_words(words: Sequence[str]) -> FloatArray:
    """Return 1 at the places of the hashes of words and of pairs of neighbours, and 0 elsewhere."""
    pairs = [" ".join(pair) for pair in pairwise(words)]
    hashed = np.zeros(WORD_FEATURES)
    for token in (*words, *pairs):
        hashed[zlib.crc32(token.encode()) % WORD_FEATURES] = 1.0
    return hashed


def _padded(values: list[float], length: int) -> list[float]:
    return values + [0.0] * (length - len(values))


def _file_features(sample_files: Sequence[SampleFile]) -> list[float]:
    """Return number and kinds of the files, and size, scale and bands of the first one, 0 if they are unknown."""
    width_px = height_px = n_bands = 0
    log_gsd = 0.0
    if sample_files:
        first = sample_files[0]
        width_px = first.width_px or 0
        height_px = first.height_px or 0
        n_bands = len(first.bands or ())
        log_gsd = math.log(first.gsd_m) if first.gsd_m else 0.0
    n_kinds = len({file.kind for file in sample_files})
    return [
        float(len(sample_files)),
        math.log1p(width_px),
        math.log1p(height_px),
        log_gsd,
        float(n_bands),
        float(n_kinds),
    ]


class GuessModel:
    """Model that guesses answers from the words, numbers and files of a prompt, never from pixels or gold answers."""

    def __init__(self, guessers: Mapping[str, Guesser]) -> None:
        self.guessers = guessers

    def values(
        self, query: str, sample_files: Sequence[SampleFile], slots: Sequence[Slot]
    ) -> dict[str, JsonValue]:
        """Return guessed values by slot name, without slots that cannot be guessed.

        Only the part of ``slots`` that the answer form shows is read.
        """
        # Most guesses are constants, and features take far longer than the rest.
        features = None if self.of_form(slots) else prompt_features(query, sample_files)
        guesses = {slot.name: self.value_of(slot, features) for slot in asked_slots(slots)}
        return {name: value for name, value in guesses.items() if value is not None}

    def of_form(self, slots: Sequence[Slot]) -> bool:
        """Return True if the values of ``slots`` are the same for every prompt."""
        return all(
            not (guesser := self._guesser(slot)) or guesser.weights is None
            for slot in asked_slots(slots)
        )

    def _guesser(self, slot: Slot) -> Guesser | None:
        known = (slot_key(slot), kind_key(slot), f"|{slot.type}|")
        return next((self.guessers[key] for key in known if key in self.guessers), None)

    def value_of(self, slot: Slot, features: FloatArray | None) -> JsonValue:
        """Return the guess for one slot of a prompt with these features; None if there is no guess.

        ``features`` may be None if the guesser of the slot has no weights.
        """
        guesser = self._guesser(slot)
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


def guessed_text(sample: Sample | SampleView, slots: Sequence[Slot]) -> str:
    """Return the guessed answer in the answer form, or a refusal if the prompt offers one and shows its reason."""
    return (
        UNKNOWN
        if shows_no_answer(sample, slots)
        else format_answer(slots, guessed_values(sample, slots))
    )


def shows_no_answer(sample: Sample | SampleView, slots: Sequence[Slot]) -> bool:
    """Return True if the prompt offers a refusal and shows that the files do not allow an answer."""
    return sample.may_abstain and is_unanswerable(sample.query, sample.files, slots)


_FILE_NAME = late_pattern(r"[\w-]+\.(?:jpe?g|png|tiff?|bmp|webp|npy|csv|mp4)\b")
_LENGTH = late_pattern(
    r"\d ?(?:mm|cm|m|km|ha|met(?:er|re)s?|centimet(?:er|re)s?|kilomet(?:er|re)s?|hectares?)[2²]?\b"
)
_LENGTH_UNITS, _LAND_UNITS = frozenset({"mm", "cm", "m"}), frozenset({"m^2", "ha", "km^2"})


def is_unanswerable(query: str, sample_files: Sequence[SampleFile], slots: Sequence[Slot]) -> bool:
    """Return True if the prompt alone shows that the files do not allow an answer.

    That is if the question names a file that is not listed; if there are fewer files than on any drawn scene with the
    same answer form; or if a length or an area of land is asked for and nothing gives the scale: no ground sampling
    distance, no focal length with a depth map, no raster of heights, no length in the question or in a file's note.
    Only the part of ``slots`` that the answer form shows is read.
    """
    text = query.casefold()
    if {*_FILE_NAME.findall(text)} - {file.name.casefold() for file in sample_files}:
        return True
    if len(sample_files) < fewest_files(slots):
        return True
    units = {(getattr(slot, "unit", None) or "").partition("/")[0] for slot in asked_slots(slots)}
    stated = " ".join([text, *(file.note or "" for file in sample_files)])
    has_scale = any(file.gsd_m for file in sample_files) or bool(_LENGTH.search(stated))
    if not units & _LENGTH_UNITS:
        return bool(units & _LAND_UNITS) and not has_scale
    kinds = {file.kind for file in sample_files}
    has_camera = any(file.intrinsics for file in sample_files)
    if has_camera or "depth" in kinds:
        return not (has_camera and "depth" in kinds)
    return "raster" not in kinds and not has_scale


def guessed_chart(sample: Sample | SampleView) -> PlotSpec | None:
    """Return the usual chart of drawn scenes that a question asks for; None if it asks for none, or an unknown one.

    Of the known points it has those that the question names, else those of the files that are listed, else all.
    """
    plan = usual_plan(sample.query, len(sample.files))
    if plan is None or not plan.figures:
        return None
    words = words_of(sample.query)
    figure = max(plan.figures, key=lambda figure: len(words & words_of(figure)))
    chart = _shipped_charts()[figure]
    known = list(dict.fromkeys(x for series in chart.series for x in series.x))
    names = {file.name for file in sample.files}
    chosen = _named_points(known, sample.query) or [x for x in known if x in names] or known
    series: list[PlotSeries] = []
    for each in chart.series:
        points = dict(zip(each.x, each.y, strict=True))
        x = tuple(place for place in chosen if place in points)
        y = tuple(points[place] for place in x)
        series.append(each.model_copy(update={"x": x, "y": y}))
    return chart.model_copy(update={"series": tuple(series)})


def _named_points(known: Sequence[float | str], query: str) -> list[float | str]:
    """Return the points of a chart that a question names, in the order in which it names them."""
    places: dict[float | str, int] = {}
    for x in known:
        written = re.escape(x if isinstance(x, str) else f"{x:g}")
        # Not within a longer word or number: neither 1 of 1.5 nor 5 of it.
        found = re.search(rf"(?<![\w.]){written}(?!\w|\.\d)", query)
        if found:
            places[x] = found.start()
    return sorted(places, key=lambda x: places[x])


@cache
def _shipped_charts() -> dict[str, PlotSpec]:
    """Return the usual charts by the meaning of the figure in the answer form."""
    charts = json.loads(files("agrotools.data").joinpath("guess_charts.json").read_text("utf-8"))
    return {label: PlotSpec.model_validate(chart) for label, chart in charts.items()}


def guessed_from_form(slots: Sequence[Slot]) -> bool:
    """Return True if the guess of the shipped model for ``slots`` is the same text for every prompt, and no chart."""
    has_chart = any(isinstance(slot, PlotSlot) for slot in asked_slots(slots))
    return not has_chart and shipped_model().of_form(slots)


def guessed_values(sample: Sample | SampleView, slots: Sequence[Slot]) -> dict[str, JsonValue]:
    """Return the guesses of the shipped model for ``slots``, by slot name."""
    return shipped_model().values(sample.query, sample.files, slots)


@cache
def shipped_model() -> GuessModel:
    """Return the model that ships with the package."""
    folder = files("agrotools.data")
    entries = json.loads(folder.joinpath("guess.json").read_text("utf-8"))
    slots: dict[str, dict[str, Any]] = entries["slots"]
    with (
        folder.joinpath("guess.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as arrays,
    ):
        weights = {name: arrays[name].astype(np.float32) for name in arrays.files}
    return GuessModel({key: guesser_of(entry, weights) for key, entry in slots.items()})


def guesser_of(entry: Mapping[str, Any], weights: Mapping[str, SingleArray]) -> Guesser:
    """Return the guesser of an entry of ``guess.json``, whose weights are an array of ``guess.npz``."""
    fields = {name: value for name, value in entry.items() if name != "weights"}
    outcomes = tuple(fields.pop("outcomes", ()))
    return Guesser(
        **fields,
        outcomes=outcomes,
        weights=weights[entry["weights"]] if "weights" in entry else None,
    )


class GuessPolicy:
    """Policy that answers from the prompt alone: a refusal, or a value of every slot after drawing the usual chart."""

    def __init__(self, sample: Sample) -> None:
        self.slots = sample.answer

    def values(self, view: SampleView) -> Mapping[str, JsonValue]:
        """Return the answer to a prompt by slot name."""
        return guessed_values(view, self.slots)

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        is_refused = shows_no_answer(view, self.slots)
        text = UNKNOWN if is_refused else format_answer(self.slots, self.values(view))
        has_drawn = any(step.call is not None and step.call.tool == "plot" for step in history)
        chart = guessed_chart(view)
        if chart is None or text == UNKNOWN or has_drawn or "plot" not in view.toolset:
            return Answer(text=text or ("The figure is drawn." if has_drawn else "No guess."))
        arguments = chart.model_dump(mode="json", exclude={"legend"})
        return CallTools(calls=(ToolCall(tool="plot", arguments=arguments),))


class PromptFloor:
    """The floor of scores: the answer, the chart and the calls that the prompt of a sample suggests.

    It has the form of :class:`agrotools.scoring.floors.Floor`.
    """

    def answer(self, sample: Sample) -> str:
        """Return the guessed answer; see :func:`guessed_text`."""
        return guessed_text(sample, sample.answer)

    def chart(self, sample: Sample) -> PlotSpec | None:
        """Return the chart to be drawn; see :func:`guessed_chart`."""
        return guessed_chart(sample)

    def calls(self, sample: Sample) -> CallSequence | None:
        """Return the usual calls for such a question; None if no known question is like it."""
        plan = usual_plan(sample.query, len(sample.files))
        return plan.calls if plan else None

    def ignores_prompt(self, slots: Sequence[Slot]) -> bool:
        """Return True if the answer is the same text for every prompt with this form, and there is no chart."""
        return guessed_from_form(slots)


PROMPT_FLOOR: "Floor" = PromptFloor()
"""Target of ``guess`` in :data:`agrotools.agents.baselines.FLOORS`."""


# --- usual plans -----------------------------------------------------------------------------------------------------

NUMBER = late_pattern(r"\d+(?:[.,]\d+)*")
_LEAST_LIKENESS = 0.25
"""Cosine similarity below which a question is taken for one of another kind."""


class UsualPlan(NamedTuple):
    """Calls of one answer form with one number of files."""

    calls: CallSequence
    figures: Sequence[str]
    """Possible meanings of the figure asked for; none if none is."""


class _Form(NamedTuple):
    """Questions of one answer form by figure, each as a unit vector of words with the figures, and plans by files."""

    questions: Sequence[tuple[Mapping[str, float], Sequence[str]]]
    plans: Mapping[int, CallSequence]


def tokens_of(text: str) -> list[str]:
    """Return the words of a normalised text in order, Chinese ones by character, all numbers as 0."""
    return TOKEN.findall(NUMBER.sub("0", text))


def words_of(text: str) -> set[str]:
    """Return the different :func:`tokens_of` a question."""
    return set(tokens_of(normalise(text)))


def slot_key(slot: Slot) -> str:
    """Return the key of a slot: name, type and unit, all visible in the answer form."""
    return f"{slot.name}{kind_key(slot)}"


def kind_key(slot: Slot) -> str:
    """Return the key of a slot without its name."""
    return f"|{slot.type}|{getattr(slot, 'unit', None) or ''}"


def form_key(slots: Sequence[Slot]) -> str:
    """Return the key of an answer form."""
    return " ".join(map(slot_key, asked_slots(slots)))


def usual_plan(query: str, n_files: int) -> UsualPlan | None:
    """Return the usual plan of a question with this number of files; None if no known question is like it."""
    weights, forms = _shipped_forms()
    words = _unit_vector({word: weights[word] for word in words_of(query) if word in weights})
    best: UsualPlan | None = None
    best_likeness = _LEAST_LIKENESS
    for form in forms.values():
        if n_files not in form.plans:
            continue
        for known, figures in form.questions:
            likeness = sum(value * known.get(word, 0.0) for word, value in words.items())
            if likeness > best_likeness:
                best = UsualPlan(form.plans[n_files], figures)
                best_likeness = likeness
    return best


def fewest_files(slots: Sequence[Slot]) -> int:
    """Return the smallest number of files on drawn scenes with the same answer form; 0 if the form is unknown."""
    form = _shipped_forms()[1].get(form_key(slots))
    return min(form.plans) if form else 0


@cache
def _shipped_forms() -> tuple[dict[str, float], dict[str, _Form]]:
    """Return the weight of each word (its inverse document frequency over the forms), and the forms by key."""
    shipped = json.loads(files("agrotools.data").joinpath("guess_plans.json").read_text("utf-8"))
    questions = [question for entry in shipped.values() for question in entry["questions"]]
    n_with_word = Counter(word for question in questions for word in question["words"])
    weights = {word: math.log(len(questions) / n) for word, n in n_with_word.items()}
    forms = {
        key: _Form(
            questions=[_weighted(question, weights) for question in entry["questions"]],
            plans={
                int(n_files): _call_sequence(calls) for n_files, calls in entry["plans"].items()
            },
        )
        for key, entry in shipped.items()
    }
    return weights, forms


def _weighted(
    question: Mapping[str, Any], weights: Mapping[str, float]
) -> tuple[dict[str, float], Sequence[str]]:
    """Return the words of a shipped question as a unit vector, with its figures."""
    words = {word: share * weights[word] for word, share in question["words"].items()}
    return _unit_vector(words), question["figures"]


def _call_sequence(calls: Sequence[Sequence[Any]]) -> CallSequence:
    return tuple((tool, arguments) for tool, arguments in calls)


def _unit_vector(vector: Mapping[str, float]) -> dict[str, float]:
    length = math.sqrt(sum(value * value for value in vector.values())) or 1.0
    return {word: value / length for word, value in vector.items()}
