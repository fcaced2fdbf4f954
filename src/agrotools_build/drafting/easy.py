"""Drafts that one answer meets too often: the constant baseline of their kind."""

import math
from collections.abc import Sequence

from agrotools.core import Sample
from agrotools.loading.easy import FAIR_SHARE, easy_answers
from agrotools.scoring.constants import ConstantTable, cluster_of, constant_of, right_answer


def easy_drafts(samples: Sequence[Sample]) -> list[str]:
    """Return ids of the drafts to leave out so that a constant answers no kind too often, the latest of each kind.

    Only drafts that the constant answers are left out, and only of kinds with enough clusters to tell.
    """
    left_out: list[str] = []
    kept = list(samples)
    while True:
        found = [easy for easy in easy_answers(kept) if easy.share > FAIR_SHARE]
        if not found:
            return left_out
        easy = found[0]
        table = ConstantTable()
        for sample in kept:
            table.add(sample)
        members = [
            sample
            for sample in kept
            if sample.template == easy.template and _is_met(sample, easy.slot.name, table)
        ]
        # Leaving out k of n drafts of which r are right leaves a share of (r - k) / (n - k).
        surplus = (easy.share - FAIR_SHARE) * easy.n / (1 - FAIR_SHARE)
        gone = {sample.id for sample in members[-max(1, math.ceil(surplus)) :]}
        if not gone:
            return left_out
        left_out += [sample.id for sample in kept if sample.id in gone]
        kept = [sample for sample in kept if sample.id not in gone]


def _is_met(sample: Sample, name: str, table: ConstantTable) -> bool:
    """Return True if the constant answer of other clusters meets the slot of a sample."""
    for slot in sample.answer:
        answer = right_answer(slot)
        if slot.name == name and answer is not None:
            value = constant_of(table.groups_of(sample, slot), answer, cluster_of(sample))
            return value is not None and answer.is_met_by(value)
    return False
