"""Questions of a benchmark that one answer meets: warnings for whoever builds or describes it."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from agrotools.core import Sample, Slot, ToleranceSlot
from agrotools.core.lazy import np
from agrotools.formats.reference_results import derived_values
from agrotools.scoring.constants import (
    ConstantTable,
    RightAnswer,
    as_answer,
    best_value,
    cluster_of,
    constant_of,
    right_answer,
)
from agrotools.scoring.slots import score_slot
from agrotools.text.answer_form import format_answer

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


def easy_answers(samples: Iterable[Sample]) -> list[EasyAnswer]:
    """Return the slots of templates that a constant meets too often, the easiest first."""
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
        easy = _easy_answer(items, table)
        if easy is not None:
            found.append(easy)
    return sorted(found, key=lambda easy: -easy.share)


def _easy_answer(
    items: Sequence[tuple[Sample, Slot, RightAnswer]], table: ConstantTable
) -> EasyAnswer | None:
    """Return the finding on a slot of a template; None if it has no constant, or one that is seldom right."""
    first, slot, _ = items[0]
    by_template = table.groups_of(first, slot)[0]
    if not by_template.is_large:
        return None
    n_right = 0
    for sample, its, answer in items:
        value = constant_of(table.groups_of(sample, its), answer, cluster_of(sample))
        n_right += value is not None and answer.is_met_by(value)
    share = n_right / len(items)
    if share < _LEAST_SHARE:
        return None
    known = [_ceiling(sample, its) for sample, its, _ in items]
    scores = [score for score in known if score is not None]
    ceiling = sum(scores) / len(scores) if len(scores) == len(items) else None
    is_near_ceiling = ceiling is not None and share >= ceiling - NEAR_CEILING
    if share <= FAIR_SHARE and not is_near_ceiling:
        return None
    answers = [answer for _, _, answer in items]
    best = as_answer(slot, best_value(answers))
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


def _ceiling(sample: Sample, slot: Slot) -> float | None:
    """Return the score of a slot by the recorded results of the reference calls; None if none are recorded."""
    if sample.reference is None or slot.from_ is None:
        return None
    observations = [step.observation for step in sample.reference.steps]
    if not observations or any(each is None for each in observations):
        return None
    results = [each.result if each else None for each in observations]
    values = derived_values((slot,), results, knows_gold=False)
    return score_slot(slot, (slot,), format_answer((slot,), values)).value
