"""Scores of letters and of lists of numbers."""

import re
from collections.abc import Sequence
from typing import cast

from agrotools.benchmarks.agvqa.plugin import LetteredSlot, NumberListSlot
from agrotools.core import Slot
from agrotools.plugin import Scoring
from agrotools.scoring.choices import ChoiceReading, read_choices
from agrotools.scoring.slots import SlotScore
from agrotools.text.agreement_values import Box, box_iou

_LINE = re.compile(r"(?im)^[\s>#*_`-]*[\"']?answer[\"']?[*_`\s]*[:=][*_`\s]*(.+?)[\s*_`,}]*$")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_OVERLAP = 0.5


def read_letters(answer: str, slot: LetteredSlot) -> ChoiceReading:
    """Return the options that an answer chooses."""
    kind = "multiple" if slot.several else "single"
    if lines := _LINE.findall(answer):
        reading = read_choices(lines[-1].strip("\"' "), slot.options, kind)
        if reading.letters:
            return reading
    letters = {label.strip("<>"): letter for label, letter in slot.labels.items()}
    names = "|".join(map(re.escape, letters))
    # A published name counts with its brackets anywhere, without them after the word "decision".
    if names and (named := re.findall(rf"<({names})>|(?i:\bdecision\W{{1,9}}({names})\b)", answer)):
        given = named[-1][0] or named[-1][1].capitalize()
        return ChoiceReading((letters[given],), "published name of the option", given)
    return read_choices(answer, slot.options, kind)


def score_letters(slot: Slot, _: Sequence[Slot], answer: str) -> SlotScore:
    """Score the chosen options: 1 for exactly the correct ones."""
    assert isinstance(slot, LetteredSlot)
    reading = read_letters(answer, slot)
    found = {"value": [*reading.letters], "rule": reading.rule, "text": reading.candidate[:120]}
    return SlotScore(float(set(reading.letters) == set(slot.value)), found)


def score_numbers(slot: Slot, _: Sequence[Slot], answer: str) -> SlotScore:
    """Score a list of numbers: as many as are asked for, the last ones of the answer or those of its form."""
    assert isinstance(slot, NumberListSlot)
    lines = _LINE.findall(answer)
    numbers = [float(number) for number in _NUMBER.findall(lines[-1] if lines else answer)]
    if len(numbers) < len(slot.value):
        return SlotScore(0.0, {"value": [*numbers], "rule": "too few numbers"})
    numbers = numbers[-len(slot.value) :]
    if slot.box:
        overlap = box_iou(cast("Box", numbers), cast("Box", slot.value))
        reading = {"value": [*numbers], "rule": "overlap of the boxes", "overlap": round(overlap, 4)}
        return SlotScore(float(overlap > _OVERLAP), reading)
    right = all(abs(one - other) <= slot.abs_tol + 1e-9 for one, other in zip(numbers, slot.value, strict=True))
    return SlotScore(float(right), {"value": [*numbers], "rule": "each number within the tolerance"})


SCORING = Scoring(slot_scorers={"lettered": score_letters, "number_list": score_numbers})
