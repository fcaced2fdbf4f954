"""Counts over samples that papers print, for :class:`agrotools.plugin.ExpectedCount`."""

from collections.abc import Callable, Sequence

from agrotools.core import Sample

Measure = Callable[[Sequence[Sample]], int]


def count_calls(samples: Sequence[Sample]) -> int:
    """Calls of all reference trajectories."""
    return sum(len(sample.reference.steps) for sample in samples if sample.reference)


def count_files(samples: Sequence[Sample]) -> int:
    """Files, each once."""
    return len({file.path for sample in samples for file in sample.files})


def count_tools(samples: Sequence[Sample]) -> int:
    """Tools that any sample offers."""
    return len({tool for sample in samples for tool in sample.toolset})


def count_answers(*types: str) -> Measure:
    """Samples whose answer is of one of these types."""
    return lambda samples: sum(sample.answer_type in types for sample in samples)


def count_with_tools(number: int) -> Measure:
    """Samples that offer so many tools."""
    return lambda samples: sum(len(sample.toolset) == number for sample in samples)


def count_in_group(group: str, value: str, measure: Measure = len) -> Measure:
    """``measure`` over the samples of a group."""
    return lambda samples: measure([sample for sample in samples if sample.groups.get(group) == value])
