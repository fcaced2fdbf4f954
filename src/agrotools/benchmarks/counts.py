"""Functions that count samples the way papers do, for :class:`agrotools.plugin.ExpectedCount`."""

from collections.abc import Callable, Sequence

from agrotools.core import Sample

Measure = Callable[[Sequence[Sample]], int]


def count_calls(samples: Sequence[Sample]) -> int:
    """Return the number of calls in all reference trajectories."""
    return sum(len(sample.reference.steps) for sample in samples if sample.reference)


def count_files(samples: Sequence[Sample]) -> int:
    """Return the number of distinct files."""
    return len({file.path for sample in samples for file in sample.files})


def count_tools(samples: Sequence[Sample]) -> int:
    """Return the number of distinct tools that the samples offer."""
    return len({tool for sample in samples for tool in sample.toolset})


def count_answers(*types: str) -> Measure:
    """Return a function that counts the samples whose answer has one of these types."""
    return lambda samples: sum(sample.answer_type in types for sample in samples)


def count_with_tools(number: int) -> Measure:
    """Return a function that counts the samples that offer exactly ``number`` tools."""
    return lambda samples: sum(len(sample.toolset) == number for sample in samples)


def count_in_group(group: str, value: str, measure: Measure = len) -> Measure:
    """Return a function that applies ``measure`` to the samples of one group."""
    return lambda samples: measure([sample for sample in samples if sample.groups.get(group) == value])
