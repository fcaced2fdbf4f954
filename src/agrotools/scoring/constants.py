"""Best constant answers: for each slot, the one value that is right most often on the questions of other clusters.

Samples go in (:meth:`ConstantTable.add`); values of their slots come out (:meth:`ConstantTable.values`). A slot gets
the best value of its template. If the template has too few clusters, it gets that of all slots of this name, type and
unit in the task type. The cluster of the sample has no say, so that no answer helps to choose itself. Text and charts
have no constant.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from pydantic import JsonValue

from agrotools.core import (
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    KeywordsSlot,
    ReferenceTextsSlot,
    Sample,
    Slot,
    ToleranceSlot,
)
from agrotools.core.lazy import BoolArray, FloatArray, np
from agrotools.core.slot import asked_slots
from agrotools.scoring.floors import GuessPoints
from agrotools.text.answer_form import format_answer

FEWEST_CLUSTERS = 8
"""Fewest clusters of the answers that a constant is chosen from: of fewer, one lucky value decides."""
_MOST_NUMBERS = 500
"""Most numbers that are tried for a group of slots; of more, evenly spaced ones, so that the time is bounded."""
_DIGITS = 6
"""Significant digits of a number in an answer (:func:`agrotools.text.answer_form.format_answer`)."""


Constant = bool | int | float | str | tuple[str, ...]
"""A number, a yes or no, a label, the labels of a set, or the place of a file among the names in order."""


class RightAnswer(NamedTuple):
    """Right answer of a slot, in a form in which slots of several samples can be compared.

    Attributes:
        value: the right constant.
        margin: largest error of a number; None if the value is no number.
        offered: labels or number of files that the form offers; None if it offers none.
    """

    value: Constant
    margin: float | None = None
    offered: tuple[str, ...] | int | None = None

    def offers(self, value: Constant) -> bool:
        """Return True if the form offers a value."""
        if isinstance(self.offered, int):
            return isinstance(value, int) and value < self.offered
        if self.offered is None:
            return True
        labels = value if isinstance(value, tuple) else (value,)
        return all(label in self.offered for label in labels)

    def is_met_by(self, value: Constant) -> bool:
        """Return True if a value scores."""
        if self.margin is None:
            return value == self.value
        return bool(_are_within(np.array([value]), self.value, self.margin)[0])


def _are_within(numbers: FloatArray, value: object, margin: float) -> BoolArray:
    """Return which numbers are within a margin of a value; as :func:`agrotools.scoring.slots.within`."""
    right = float(str(value))
    slack = 1e-9 * np.maximum(np.abs(numbers), abs(right))
    return np.abs(numbers - right) <= margin + slack


def right_answer(slot: Slot) -> RightAnswer | None:
    """Return the right answer of a closed slot; None for other slots."""
    if isinstance(slot, ToleranceSlot):
        return RightAnswer(slot.value, slot.margin)
    if isinstance(slot, BooleanSlot):
        return RightAnswer(slot.value)
    if isinstance(slot, FileSlot):
        names = sorted(slot.choices)
        is_known = slot.value in names
        return RightAnswer(names.index(slot.value), offered=len(names)) if is_known else None
    if isinstance(slot, ChoiceSetSlot):
        return RightAnswer(tuple(sorted(slot.value)), offered=slot.choices)
    if isinstance(slot, ExactSlot):
        if isinstance(slot.value, int | float):
            return RightAnswer(float(slot.value), 0.0)
        return RightAnswer(slot.value, offered=slot.choices or None)
    if isinstance(slot, KeywordsSlot | ReferenceTextsSlot) or slot.free_text:
        return None
    label = slot.comparable_value
    return RightAnswer(label) if isinstance(label, str) else None


def _as_answer(slot: Slot, value: Constant) -> JsonValue:
    """Return the value of a constant as an answer to a slot."""
    if isinstance(slot, FileSlot) and isinstance(value, int):
        return sorted(slot.choices)[value]
    if isinstance(value, tuple):
        return [*value]
    return value


class AnswerGroup:
    """Right answers of slots that share a constant, with the cluster of each.

    The clusters are dealt into two halves, and the constant of each half is chosen on the other one. To leave out one
    cluster after the other would bring the constant down to nothing where answers are balanced: of as many yes as no,
    the rest always has fewer of what is right.
    """

    def __init__(self) -> None:
        self._answers: list[RightAnswer] = []
        self._clusters: list[str] = []
        self._half_of: dict[str, int] = {}
        """Half of each cluster; empty until all answers are there."""
        self._best: dict[int | None, Constant] = {}

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len({*self._clusters})

    def add(self, cluster: str, answer: RightAnswer) -> None:
        """Add the answer of one more slot."""
        self._answers.append(answer)
        self._clusters.append(cluster)
        self._half_of.clear()
        self._best.clear()

    def best_outside(self, cluster: str) -> Constant | None:
        """Return the value that is right most often in the half without this cluster; None with too few clusters."""
        if not self._half_of:
            self._half_of = _halves(self._clusters)
        if len(self._half_of) < FEWEST_CLUSTERS:
            return None
        half = self._half_of.get(cluster)
        if half not in self._best:
            pairs = zip(self._answers, self._clusters, strict=True)
            others = [answer for answer, each in pairs if self._half_of[each] != half]
            self._best[half] = best_value(others)
        return self._best[half]


def _halves(clusters: Iterable[str]) -> dict[str, int]:
    """Return 0 or 1 for each cluster: two halves, by the order of hashes, which knows nothing of answers."""
    drawn = sorted({*clusters}, key=lambda name: blake2b(name.encode(), digest_size=8).digest())
    return {name: place % 2 for place, name in enumerate(drawn)}


def best_value(answers: Sequence[RightAnswer]) -> Constant:
    """Return the value that is right most often; of several, the middle one in order."""
    values, n_right = _values_to_try(answers)
    most = max(n_right)
    best = [value for value, n in zip(values, n_right, strict=True) if n == most]
    return best[(len(best) - 1) // 2]


def _values_to_try(answers: Sequence[RightAnswer]) -> tuple[Sequence[Constant], Sequence[int]]:
    """Return values in order, and how many answers each gets right."""
    if any(answer.margin is None for answer in answers):
        counts = Counter(answer.value for answer in answers)
        labels = sorted(counts, key=str)
        return labels, [counts[label] for label in labels]
    numbers = _numbers_to_try(answers)
    tried = np.array(numbers)
    n_right = np.zeros(len(numbers), np.int64)
    for answer in answers:
        n_right += _are_within(tried, answer.value, answer.margin or 0.0)
    counted: list[int] = n_right.tolist()
    return numbers, counted


def _numbers_to_try(answers: Sequence[RightAnswer]) -> list[float]:
    """Return the right numbers and the ends of their tolerances: no other number is right more often."""
    tried = set[float]()
    for answer in answers:
        number, margin = float(str(answer.value)), answer.margin or 0.0
        for each in (number - margin, number, number + margin):
            tried.add(float(f"{each:.{_DIGITS}g}"))
    numbers = sorted(tried)
    if len(numbers) <= _MOST_NUMBERS:
        return numbers
    return [numbers[at * len(numbers) // _MOST_NUMBERS] for at in range(_MOST_NUMBERS)]


class ConstantTable:
    """Right answers of samples by groups of slots, for constants that exclude the sample's own cluster."""

    def __init__(self, samples: Iterable[Sample] = ()) -> None:
        self._groups: dict[Hashable, AnswerGroup] = defaultdict(AnswerGroup)
        for sample in samples:
            self.add(sample)

    def add(self, sample: Sample) -> None:
        """Add the answers of one more sample. An unanswerable one has none."""
        for slot in sample.answer:
            answer = right_answer(slot)
            if answer is not None:
                for group in self.groups_of(sample, slot):
                    group.add(cluster_of(sample), answer)

    def groups_of(self, sample: Sample, slot: Slot) -> tuple[AnswerGroup, AnswerGroup]:
        """Return the groups of a slot, the narrower first."""
        kind = (slot.name, slot.type, getattr(slot, "unit", None))
        by_template = self._groups[("template", sample.template, *kind)]
        return by_template, self._groups[("task type", sample.task_type, *kind)]

    def values(self, sample: Sample) -> dict[str, JsonValue]:
        """Return the constants of a sample by slot name, without slots that have none."""
        values: dict[str, JsonValue] = {}
        for slot in asked_slots(sample.answer):
            answer = right_answer(slot)
            if answer is not None:
                groups = self.groups_of(sample, slot)
                value = constant_of(groups, answer, cluster_of(sample))
                if value is not None:
                    values[slot.name] = _as_answer(slot, value)
        return values


def cluster_of(sample: Sample) -> str:
    """Return the cluster of a sample; a sample without one is a cluster of its own."""
    return sample.cluster or sample.id


def constant_of(
    groups: Sequence[AnswerGroup], answer: RightAnswer, cluster: str
) -> Constant | None:
    """Return the constant for a slot; None if its groups are too small, or its form does not offer the value."""
    for group in groups:
        value = group.best_outside(cluster)
        if value is not None:
            return value if answer.offers(value) else None
    return None


class _Part(NamedTuple):
    """A slot that counts: its share of the score, the score of its guess, its right answer and its groups."""

    share: float
    guessed: float
    answer: RightAnswer | None
    """None if the guess counts in any case."""
    groups: Sequence[AnswerGroup]


class ConstantScores:
    """Scores of the constant answers to samples, which are given by number.

    Where a slot has no constant, the guess from the prompt counts (:mod:`agrotools.scoring.floors`).
    """

    def __init__(self) -> None:
        self._table = ConstantTable()
        self._samples: dict[int, tuple[str, Sequence[_Part]]] = {}
        """Cluster and slots of each sample."""

    def __contains__(self, number: int) -> bool:
        return number in self._samples

    def add(self, number: int, sample: Sample, guess: GuessPoints) -> None:
        """Add a sample and what the guess from its prompt scores."""
        self._table.add(sample)
        parts: list[_Part] = []
        for slot, points in guess.slots:
            # A guess that refuses gives no value at all.
            answer = None if guess.refuses else right_answer(slot)
            groups = self._table.groups_of(sample, slot) if answer else ()
            parts.append(_Part(slot.weight / guess.weight, points, answer, groups))
        self._samples[number] = cluster_of(sample), parts

    def by_sample(self) -> Mapping[int, float]:
        """Return the score of each sample; empty if no slot has a constant."""
        scores: dict[int, float] = {}
        has_constant = False
        for number, (cluster, parts) in self._samples.items():
            score = 0.0
            for part in parts:
                points = part.guessed
                value = constant_of(part.groups, part.answer, cluster) if part.answer else None
                if part.answer is not None and value is not None:
                    has_constant = True
                    points = float(part.answer.is_met_by(value))
                score += part.share * points
            scores[number] = min(1.0, score)
        return scores if has_constant else {}


# --- answers that a constant meets -----------------------------------------------------------------------------------

FAIR_SHARE = 0.5
"""Share of the points of a kind of answer that a constant may get without a warning."""
NEAR_CEILING = 0.1
"""Distance from the ceiling below which a constant leaves nothing to tell models apart by."""
_LEAST_SHARE = 0.25
"""Share below which a constant near the ceiling is no finding: there the tools fail, and the question is not easy."""
_PARTS_OF_SPREAD = 8
"""A tolerance of this part of the spread to both sides covers a quarter of it."""


class EasyAnswer(NamedTuple):
    """A slot of a template that one answer to every question meets too often."""

    template: str
    slot: Slot
    example: str
    """Id of its first sample."""
    n: int
    share: float
    """Share of the questions that the constants of other clusters get right."""
    value: str
    """The best constant of all, as an answer."""
    ceiling: float | None
    """Share that the reference calls get right; None if their results are not recorded."""
    tolerance: float | None = None
    """Largest tolerance that tells the values apart; None if it would not be smaller."""

    def sentence(self) -> str:
        """Return what is too easy, and what would help."""
        text = f"{self.template}: the constant answer {self.value} is right in {100 * self.share:.0f} % of"
        text += f" {self.n} questions for {self.slot.label!r}"
        if self.ceiling is not None:
            text += f", the reference calls in {100 * self.ceiling:.0f} %"
        if not isinstance(self.slot, ToleranceSlot):
            return f"{text}. Pictures with other answers would help."
        if self.tolerance is None:
            return f"{text}. Pictures with a wider range of values would help."
        unit = f" {self.slot.unit}" if self.slot.unit else ""
        return f"{text}. A wider range of values would help, or an abs_tol of at most {self.tolerance:g}{unit}."


def easy_answers(
    samples: Iterable[Sample], ceiling_of: Callable[[Sample, Slot], float | None]
) -> list[EasyAnswer]:
    """Return the slots of templates that a constant meets too often, the easiest first.

    ``ceiling_of``: score of the reference calls in a slot; None if it is not known.
    """
    table = ConstantTable()
    slots: dict[Hashable, list[tuple[Sample, Slot, RightAnswer]]] = defaultdict(list)
    for sample in samples:
        table.add(sample)
        for slot in sample.answer:
            answer = right_answer(slot)
            if answer is not None:
                slots[sample.template, slot.name, slot.type].append((sample, slot, answer))
    found: list[EasyAnswer] = []
    for items in slots.values():
        easy = _easy_answer(items, table, ceiling_of)
        if easy is not None:
            found.append(easy)
    return sorted(found, key=lambda easy: -easy.share)


def _easy_answer(
    items: Sequence[tuple[Sample, Slot, RightAnswer]],
    table: ConstantTable,
    ceiling_of: Callable[[Sample, Slot], float | None],
) -> EasyAnswer | None:
    """Return the finding on a slot of a template; None if it has no constant, or one that is seldom right."""
    first, slot, _ = items[0]
    by_template = table.groups_of(first, slot)[0]
    if by_template.best_outside(cluster_of(first)) is None:
        return None
    n_right = 0
    for sample, its, answer in items:
        value = constant_of(table.groups_of(sample, its), answer, cluster_of(sample))
        n_right += value is not None and answer.is_met_by(value)
    share = n_right / len(items)
    if share < _LEAST_SHARE:
        return None
    known = [ceiling_of(sample, its) for sample, its, _ in items]
    scores = [score for score in known if score is not None]
    ceiling = sum(scores) / len(scores) if len(scores) == len(items) else None
    is_near_ceiling = ceiling is not None and share >= ceiling - NEAR_CEILING
    if share <= FAIR_SHARE and not is_near_ceiling:
        return None
    answers = [answer for _, _, answer in items]
    best = _as_answer(slot, best_value(answers))
    if isinstance(best, float) and best.is_integer():
        best = int(best)
    return EasyAnswer(
        template=first.template,
        slot=slot,
        example=first.id,
        n=len(items),
        share=share,
        value=format_answer((slot,), {slot.name: best}).partition(": ")[2],
        ceiling=ceiling,
        tolerance=_tighter(slot, answers),
    )


def _tighter(slot: Slot, answers: Sequence[RightAnswer]) -> float | None:
    """Return a tolerance that tells the right answers apart; None if that of the slot is not larger."""
    if not isinstance(slot, ToleranceSlot):
        return None
    largest = telling_tolerance([float(str(answer.value)) for answer in answers])
    margins = [answer.margin or 0.0 for answer in answers]
    return largest if 0 < largest < max(margins) else None


def telling_tolerance(values: Sequence[float]) -> float:
    """Return the largest tolerance that tells values apart: an eighth of the range without the tenth at either end."""
    low, high = np.quantile(np.array(values), (0.1, 0.9)).tolist()
    return float(f"{(high - low) / _PARTS_OF_SPREAD:.1g}")
