"""Traits of samples: results are broken down by them, and they tell which units of a metric a sample has.

They follow from the sample alone, never from an answer to it, so that all runs of a benchmark have the same parts.
"""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from agrotools.core import Sample
from agrotools.scoring.metrics import (
    CALL_STEP_METRICS,
    FALSE_REFUSAL,
    SUMMARY_METRICS,
    is_outcome,
    places_by_metric,
)

T = TypeVar("T")

WHOLE = -1
"""Step number of a unit that is a whole sample."""


class SampleTraits(NamedTuple):
    """Properties of a sample. Many samples share the same ones, so a table holds each combination once."""

    family: str
    task_type: str
    answer_type: str
    no_tool_eligible: bool
    calls: int
    """Number of steps in the reference trajectory."""
    outcome_metrics: frozenset[str]
    """Outcome metrics that at least one slot of the sample belongs to."""
    has_text: bool
    """True if the sample has a slot that is answered with text."""
    derivable: bool
    """True if the answer follows from the reference calls."""
    source: str = ""
    """Where the files come from."""
    groups: tuple[tuple[str, str], ...] = ()
    """Names and values of the sample's ``groups``, for further breakdowns of results."""

    def steps_of(self, metric: str) -> Sequence[int]:
        """Return the steps of the units of a metric that an answered sample has; ``WHOLE`` for the sample itself."""
        if is_outcome(metric):
            return [WHOLE] if metric in self.outcome_metrics else []
        if metric in SUMMARY_METRICS:
            return [self.calls] if self.has_text else []
        return range(self.calls) if metric in CALL_STEP_METRICS else range(self.calls + 1)


def traits_of_sample(sample: Sample) -> SampleTraits:
    """Return the traits of a sample."""
    metrics = frozenset(places_by_metric(sample.answer))
    if not sample.may_abstain:
        metrics -= {FALSE_REFUSAL}
    return SampleTraits(
        family=sample.family,
        task_type=sample.task_type,
        answer_type=sample.answer_type,
        no_tool_eligible=sample.no_tool_eligible,
        calls=len(sample.reference.steps) if sample.reference else 0,
        outcome_metrics=metrics,
        has_text=any(not slot.made_by_tools for slot in sample.answer),
        derivable=sample.derivable,
        source=sample.source,
        groups=_groups(sample),
    )


def _groups(sample: Sample) -> tuple[tuple[str, str], ...]:
    """Return the groups of a sample: its own, its difficulty if known, and the size of the reference.

    Published benchmarks also give the number of steps; it is left out if it equals the number of calls.
    """
    groups: dict[str, str] = {}
    difficulty = sample.metadata.get("difficulty")
    if isinstance(difficulty, int):
        groups["difficulty"] = str(difficulty)
    if sample.reference is not None:
        tools = sample.reference.tools
        groups["calls of the reference"] = str(len(tools))
        groups["tools of the reference"] = str(len(set(tools)))
    calls = groups.get("calls of the reference")
    for name, value in sample.groups.items():
        if name != "steps" or value != calls:
            groups[name] = value
    return tuple(sorted(groups.items()))


class Breakdown(NamedTuple, Generic[T]):
    """A result over all samples, and over those of each family, task type, answer type and group."""

    overall: T
    by_family: dict[str, T]
    by_task_type: dict[str, T]
    by_answer_type: dict[str, T]
    by_group: dict[str, dict[str, T]]


def broken_down(
    numbers: Sequence[int],
    traits: Sequence[SampleTraits],
    result_of: Callable[[Sequence[int]], T],
) -> Breakdown[T]:
    """Return the results of the samples with all of these traits, and with those of each part.

    ``numbers``: indices in ``traits``; ``result_of``: returns the result of the samples whose traits have some of them.
    """

    def by(label: Callable[[SampleTraits], str | None]) -> dict[str, T]:
        parts: dict[str, list[int]] = {}
        for number in numbers:
            name = label(traits[number])
            if name is not None:
                parts.setdefault(name, []).append(number)
        return {name: result_of(parts[name]) for name in sorted(parts)}

    def by_group(group: str) -> dict[str, T]:
        return by(lambda each: dict(each.groups).get(group))

    groups = {name for number in numbers for name, _ in traits[number].groups}
    return Breakdown(
        overall=result_of(numbers),
        by_family=by(lambda each: each.family),
        by_task_type=by(lambda each: each.task_type),
        by_answer_type=by(lambda each: each.answer_type),
        by_group={group: by_group(group) for group in sorted(groups)},
    )
