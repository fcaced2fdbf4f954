"""Scorer of grades."""

import re
from collections.abc import Sequence

from agrotools.plugin import Scoring, Slot, SlotScore


def score_grade(slot: Slot, slots: Sequence[Slot], answer: str) -> SlotScore:
    """1 for the grade, half for the next one; the last number behind the name of the slot counts."""
    found = re.findall(rf"{slot.name}\s*:\s*(\d)", answer)
    if not found:
        return SlotScore(0.0, {"rule": "no grade"})
    distance = abs(int(found[-1]) - slot.value)
    return SlotScore({0: 1.0, 1: 0.5}.get(distance, 0.0), {"value": int(found[-1])})


SCORING = Scoring(slot_scorers={"ripeness_grade": score_grade})
