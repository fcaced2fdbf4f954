"""Questions of a benchmark that one answer meets: warnings for whoever builds or describes it."""

from collections.abc import Iterable

from agrotools.core import Sample, Slot
from agrotools.formats.reference_results import derived_values
from agrotools.scoring.constants import EasyAnswer, easy_answers
from agrotools.scoring.slots import score_slot
from agrotools.text.answer_form import format_answer


def easy_questions(samples: Iterable[Sample]) -> list[EasyAnswer]:
    """Return the kinds of answers that a constant meets too often, or nearly as often as the reference calls."""
    return easy_answers(samples, _ceiling)


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
