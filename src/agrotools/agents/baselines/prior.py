"""``prior``: the most likely answer without looking: median or mode of the same slots in other clusters."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

from pydantic import JsonValue

from agrotools.core import (
    Action,
    Answer,
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    Sample,
    SampleView,
    Slot,
    Step,
    ToleranceSlot,
)
from agrotools.text import format_answer


class PriorTable:
    """Answers of a benchmark by template and slot, so that one sample's are guessed from other clusters' alone."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._seen: dict[tuple[str, ...], list[tuple[str | None, JsonValue]]] = defaultdict(list)
        for sample in samples:
            for slot in sample.answer:
                value = _gold(slot)
                if value is not None:
                    for key in _keys(sample, slot):
                        self._seen[key].append((sample.cluster, value))

    def guess(self, sample: Sample, slot: Slot) -> JsonValue:
        """The prior for ``slot``, from the narrowest group that other clusters fill; None where there is none."""
        for key in _keys(sample, slot):
            others = [value for cluster, value in self._seen.get(key, ()) if cluster != sample.cluster]
            if others:
                return _typical(others)
        return None


def _keys(sample: Sample, slot: Slot) -> tuple[tuple[str, ...], ...]:
    """From the narrowest group to the widest. A label is only comparable within its label set."""
    if isinstance(slot, ToleranceSlot):
        unit = slot.unit or ""
        return (("template", sample.template, slot.name), ("name", slot.name, unit), ("unit", unit))
    if isinstance(slot, BooleanSlot):
        return (("template", sample.template, slot.name), ("boolean",))
    return (("template", sample.template, slot.name),)


def _gold(slot: Slot) -> JsonValue:
    if isinstance(slot, ToleranceSlot | BooleanSlot | ExactSlot | FileSlot):
        return slot.value
    if isinstance(slot, ChoiceSetSlot):
        return list(slot.value)
    return None


def _typical(values: Sequence[JsonValue]) -> JsonValue:
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) == len(values):
        return median(numbers)
    counts = Counter(str(value) for value in values)
    most = min(counts, key=lambda text: (-counts[text], text))
    return next(value for value in values if str(value) == most)


class PriorPolicy:
    """Answers at once, at every step."""

    def __init__(self, sample: Sample, table: PriorTable) -> None:
        values = {slot.name: table.guess(sample, slot) for slot in sample.answer}
        self._answer = format_answer(
            sample.answer, {name: value for name, value in values.items() if value is not None}
        )

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        return Answer(text=self._answer)
