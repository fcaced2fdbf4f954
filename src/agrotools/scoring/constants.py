"""Best constant answers: for each slot, the one value that is right most often on the questions of other clusters.

Samples go in (:meth:`ConstantTable.add`); values of their slots come out (:meth:`ConstantTable.values`). A slot gets
the best value of its template. If the template has too few clusters, it gets that of all slots of this name, type and
unit in the task type. The cluster of the sample has no say, so that no answer helps to choose itself. Text and charts
have no constant, nor has a slot whose guess from the prompt is right as often.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
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
from agrotools.scoring.slot_weights import weighted_mean
from agrotools.scoring.slots import guess_points

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


def as_answer(slot: Slot, value: Constant) -> JsonValue:
    """Return the value of a constant as an answer to a slot."""
    if isinstance(slot, FileSlot) and isinstance(value, int):
        return sorted(slot.choices)[value]
    if isinstance(value, tuple):
        return [*value]
    return value


class AnswerGroup:
    """Right answers of slots that share a constant, with the cluster of each.

    The constant of a part of the clusters is chosen on the other clusters. There are two ways to part them, and the one
    whose constants are right more often counts. Leaving out one cluster after the other leaves the most to choose from,
    but where answers are balanced it is always wrong: of as many yes as no, the rest has fewer of what is right. Two
    halves know half as much, and err less there.
    """

    def __init__(self) -> None:
        self._answers: list[tuple[str, RightAnswer, float]] = []
        """Cluster of each answer, the answer, and the points of the guess from its prompt."""
        self._constants: dict[str, Constant | None] | None = None
        """Constant of each cluster, None where guesses are right as often; None until all answers are there."""

    def add(self, cluster: str, answer: RightAnswer, guessed: float) -> None:
        """Add the answer of one more slot, and the points of its guess."""
        self._answers.append((cluster, answer, guessed))
        self._constants = None

    @property
    def is_large(self) -> bool:
        """True if there are enough clusters for a constant."""
        return len(self._chosen) >= FEWEST_CLUSTERS

    def best_outside(self, cluster: str) -> Constant | None:
        """Return the value that is right most often on other clusters; None if guesses are as often."""
        assert self.is_large
        if cluster in self._chosen:
            return self._chosen[cluster]
        # A sample of a cluster that none of the answers is from: all of them are others.
        value = best_value([answer for _, answer, _ in self._answers])
        n_right = sum(answer.is_met_by(value) for _, answer, _ in self._answers)
        return value if n_right > sum(guessed for _, _, guessed in self._answers) else None

    @property
    def _chosen(self) -> dict[str, Constant | None]:
        if self._constants is None:
            self._constants = self._choose()
        return self._constants

    def _choose(self) -> dict[str, Constant | None]:
        """Return the constant of each cluster by the better way to part them."""
        names = sorted({cluster for cluster, _, _ in self._answers})
        if len(names) < FEWEST_CLUSTERS:
            return dict.fromkeys(names)
        values, is_right = values_to_try([answer for _, answer, _ in self._answers])
        guessed = np.array([points for _, _, points in self._answers])
        constants: dict[str, Constant | None] = {}
        most_right = -1.0
        for part_of in (_halves(names), {name: part for part, name in enumerate(names)}):
            parts = np.array([part_of[cluster] for cluster, _, _ in self._answers])
            row_of: dict[int, int | None] = {}
            n_right = 0.0
            for part in {*part_of.values()}:
                inside, outside = parts == part, parts != part
                row = _middle_best(is_right[:, outside])
                is_better = is_right[row, outside].sum() > guessed[outside].sum()
                row_of[part] = row if is_better else None
                n_right += float((is_right[row] if is_better else guessed)[inside].sum())
            if n_right > most_right:
                most_right = n_right
                constants = {
                    name: None if (row := row_of[part]) is None else values[row]
                    for name, part in part_of.items()
                }
        return constants


def _halves(clusters: Iterable[str]) -> dict[str, int]:
    """Return 0 or 1 for each cluster: two halves, by the order of hashes, which knows nothing of answers."""
    drawn = sorted({*clusters}, key=lambda name: blake2b(name.encode(), digest_size=8).digest())
    return {name: place % 2 for place, name in enumerate(drawn)}


def best_value(answers: Sequence[RightAnswer]) -> Constant:
    """Return the value that is right most often; of several, the middle one in order."""
    values, is_right = values_to_try(answers)
    return values[_middle_best(is_right)]


def _middle_best(is_right: BoolArray) -> int:
    """Return the row with the most right answers; of several, the middle one."""
    n_right = is_right.sum(axis=1)
    best = np.flatnonzero(n_right == n_right.max())
    return int(best[(len(best) - 1) // 2])


def values_to_try(answers: Sequence[RightAnswer]) -> tuple[Sequence[Constant], BoolArray]:
    """Return values in order, and which answers each gets right: bool (values, answers)."""
    if any(answer.margin is None for answer in answers):
        labels = sorted({answer.value for answer in answers}, key=str)
        return labels, np.array([[answer.value == label for answer in answers] for label in labels])
    numbers = _numbers_to_try(answers)
    tried = np.array(numbers)
    columns = [_are_within(tried, answer.value, answer.margin or 0.0) for answer in answers]
    return numbers, np.stack(columns, axis=1)


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

    def __init__(self) -> None:
        self._groups: dict[Hashable, AnswerGroup] = defaultdict(AnswerGroup)

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> "ConstantTable":
        """Return the table of samples, with the guesses from their prompts."""
        table = cls()
        for sample in samples:
            table.add(sample, guess_points(sample))
        return table

    def add(self, sample: Sample, guess: GuessPoints | None = None) -> None:
        """Add the answers of one more sample; an unanswerable one has none. Without a guess, constants always win."""
        points: Mapping[str, float] = guess.points if guess else {}
        for slot in sample.answer:
            answer = right_answer(slot)
            if answer is not None:
                for group in self.groups_of(sample, slot):
                    group.add(cluster_of(sample), answer, points.get(slot.name, 0.0))

    def groups_of(self, sample: Sample, slot: Slot) -> Sequence[AnswerGroup]:
        """Return the groups of a slot, the narrower first: its template and its task type."""
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
                    values[slot.name] = as_answer(slot, value)
        return values


def cluster_of(sample: Sample) -> str:
    """Return the cluster of a sample; a sample without one is a cluster of its own."""
    return sample.cluster or sample.id


def constant_of(
    groups: Sequence[AnswerGroup], answer: RightAnswer, cluster: str
) -> Constant | None:
    """Return the constant for a slot; None if its guess counts.

    It does if all groups are too small, if guesses are right as often, and if the form does not offer the value.
    """
    for group in groups:
        if group.is_large:
            value = group.best_outside(cluster)
            return value if value is not None and answer.offers(value) else None
    return None


class _Part(NamedTuple):
    """A slot that counts in the score: the score of its guess, its right answer and its groups."""

    slot: Slot
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
        self._table.add(sample, guess)
        parts: list[_Part] = []
        for slot in guess.slots:
            # A guess that refuses gives no value at all.
            answer = None if guess.refuses else right_answer(slot)
            groups = self._table.groups_of(sample, slot) if answer else ()
            parts.append(_Part(slot, guess.points.get(slot.name, 0.0), answer, groups))
        self._samples[number] = cluster_of(sample), parts

    def by_sample(self) -> Mapping[int, float]:
        """Return the score of each sample; empty if no slot has a constant."""
        scores: dict[int, float] = {}
        has_constant = False
        for number, (cluster, parts) in self._samples.items():
            scored: list[float] = []
            for part in parts:
                points = part.guessed
                value = constant_of(part.groups, part.answer, cluster) if part.answer else None
                if part.answer is not None and value is not None:
                    has_constant = True
                    points = float(part.answer.is_met_by(value))
                scored.append(points)
            mean = weighted_mean([part.slot for part in parts], scored)
            scores[number] = min(1.0, mean)
        return scores if has_constant else {}
