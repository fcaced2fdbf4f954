"""Origin of each value of an answer: a label, a tool's result, or a reviewer who typed it."""

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from agrotools.core import Sample, Slot

Origin = Literal["label", "tool", "reviewer"]
TOOL_VALUES = "tool_values"
"""Metadata of a sample: names of the parts of its answer whose value is a tool's result, as no label was used."""
OWN_LABELS = "own_labels"
"""Metadata of a sample: names of the parts whose value reviewers typed, with their names."""


def origin_of(sample: Sample, slot: Slot) -> Origin:
    """Return where the value of a part of the answer comes from."""
    if slot.name in _names(sample, OWN_LABELS):
        return "reviewer"
    if slot.name in _names(sample, TOOL_VALUES):
        return "tool"
    return "label"


def origins_of(samples: Iterable[Sample]) -> Counter[Origin]:
    """Return the number of parts of answers by origin."""
    return Counter(origin_of(sample, slot) for sample in samples for slot in sample.answer)


def is_composed(sample: Sample) -> bool:
    """Return True if the true results of the sample's calls may be what tools returned: it was drafted,
    written or corrected."""
    return any(key in sample.metadata for key in ("draft", "written", "corrected"))


def _names(sample: Sample, key: str) -> list[str]:
    names = sample.metadata.get(key)
    return [str(name) for name in names] if isinstance(names, list | dict) else []
