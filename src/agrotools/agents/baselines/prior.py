"""``prior``: the most likely answer without looking: median or mode of the same slots in other clusters."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from statistics import median

from pydantic import JsonValue

from agrotools.core import (
    Action,
    Answer,
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    KeywordsSlot,
    ReferenceTextsSlot,
    Sample,
    SampleView,
    Slot,
    Step,
    ToleranceSlot,
)
from agrotools.text import format_answer


class PriorTable:
    """Answers of a benchmark by template and slot, so that one sample's are guessed from other clusters' alone.

    All are sorted once; what a cluster holds itself is then left out in passing, so that the cost of all guesses
    together grows with the number of samples.
    """

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._seen: dict[tuple[str, ...], _Group] = defaultdict(_Group)
        for sample in samples:
            self.add(sample)

    def add(self, sample: Sample) -> None:
        """Take in the answers of one more sample; to be done before the first guess."""
        for slot in sample.answer:
            value = _gold(slot)
            if value is not None:
                for key in _keys(sample, slot):
                    self._seen[key].add(sample.cluster, value)

    def guess(self, sample: Sample, slot: Slot) -> JsonValue:
        """The prior for ``slot``, from the narrowest group that other clusters fill; None where there is none."""
        for key in _keys(sample, slot):
            group = self._seen.get(key)
            if group is not None and (guess := group.typical_outside(sample.cluster)) is not None:
                return _file_at(slot, int(str(guess))) if isinstance(slot, FileSlot) else guess
        return None


class _Group:
    """Values of comparable slots, each from a cluster."""

    def __init__(self) -> None:
        self._values: list[JsonValue] = []
        self._of_cluster: dict[str | None, list[JsonValue]] = defaultdict(list)
        self._guesses: dict[str | None, JsonValue] = {}

    def add(self, cluster: str | None, value: JsonValue) -> None:
        self._values.append(value)
        self._of_cluster[cluster].append(value)

    def typical_outside(self, cluster: str | None) -> JsonValue:
        """Median of the numbers of other clusters, or the most frequent value where not all of them are numbers."""
        if cluster not in self._guesses:
            self._guesses[cluster] = self._typical_without(self._of_cluster.get(cluster, []))
        return self._guesses[cluster]

    def _typical_without(self, excluded: Sequence[JsonValue]) -> JsonValue:
        if len(excluded) == len(self._values):
            return None
        numbers = _numbers(excluded)
        if len(self._values) - len(self._sorted_numbers) == len(excluded) - len(numbers):
            return _median_without(self._sorted_numbers, numbers)
        return self._most_frequent_without(Counter(map(str, excluded)))

    @cached_property
    def _sorted_numbers(self) -> list[float]:
        return sorted(_numbers(self._values))

    @cached_property
    def _by_frequency(self) -> list[tuple[str, int]]:
        counts = Counter(map(str, self._values))
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))

    @cached_property
    def _by_text(self) -> dict[str, JsonValue]:
        return {str(value): value for value in reversed(self._values)}

    def _most_frequent_without(self, excluded: Counter[str]) -> JsonValue:
        best: tuple[int, str] | None = None
        for text, count in self._by_frequency:
            candidate = (excluded[text] - count, text)
            best = candidate if best is None else min(best, candidate)
            if text not in excluded:
                # Whatever follows is as frequent at most, and comes later by name.
                break
        return self._by_text[best[1]] if best else None


def _numbers(values: Iterable[JsonValue]) -> list[float]:
    return [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]


def _median_without(ordered: Sequence[float], without: Iterable[float]) -> float:
    """Median of sorted numbers less some of them."""
    left_out: list[int] = []
    for value in sorted(without):
        first = bisect_left(ordered, value)
        left_out.append(max(first, left_out[-1] + 1) if left_out else first)
    count = len(ordered) - len(left_out)

    def remaining(position: int) -> float:
        for index in left_out:
            if index > position:
                break
            position += 1
        return ordered[position]

    return median({remaining((count - 1) // 2), remaining(count // 2)})


def _keys(sample: Sample, slot: Slot) -> tuple[tuple[str, ...], ...]:
    """From the narrowest group to the widest. A label is only comparable within its label set."""
    if isinstance(slot, ToleranceSlot):
        unit = slot.unit or ""
        return (("template", sample.template, slot.name), ("name", slot.name, unit), ("unit", unit))
    if isinstance(slot, BooleanSlot):
        return (("template", sample.template, slot.name), ("boolean",))
    return (("template", sample.template, slot.name),)


def _gold(slot: Slot) -> JsonValue:
    if isinstance(slot, ToleranceSlot | BooleanSlot | ExactSlot):
        return slot.value
    if isinstance(slot, FileSlot):
        # Files have other names in other samples; what they share is being the first, the second...
        return str(sorted(slot.choices).index(slot.value)) if slot.value in slot.choices else None
    if isinstance(slot, ChoiceSetSlot):
        return list(slot.value)
    if isinstance(slot, KeywordsSlot):
        return ", ".join(group[0] for group in slot.whitelist if group) or None
    return slot.values[0] if isinstance(slot, ReferenceTextsSlot) else slot.comparable_value


def _file_at(slot: FileSlot, position: int) -> str | None:
    names = sorted(slot.choices)
    return names[min(position, len(names) - 1)] if names else None


class PriorPolicy:
    """Policy that answers at once, at every step."""

    def __init__(self, sample: Sample, table: PriorTable) -> None:
        values = {slot.name: table.guess(sample, slot) for slot in sample.answer}
        self._answer = format_answer(
            sample.answer, {name: value for name, value in values.items() if value is not None}
        )

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        return Answer(text=self._answer)
