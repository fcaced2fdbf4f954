"""Differences that a table shows together: their p-values are adjusted for how many these are."""

from collections.abc import Iterator, Sequence

from agrotools.scoring.statistics import Estimate, adjusted
from agrotools.scoring.summary import Comparison, Metric, Summary

GAIN_METRICS = ("agrotools.fas", "agrotools.css", "agrotools.ots", "agrotools.ots_judge")
"""Metrics of the table of gains by tools."""
BY_TASK_TYPE = ("agrotools.fas", "agrotools.arg_acc")
"""Metrics whose differences a comparison of two runs also shows by task type."""


def with_gains_adjusted(summaries: Sequence[Summary]) -> list[Summary]:
    """The summaries with the gains by tools adjusted for all of the table that shows them together."""
    places = [(at, metric) for at, each in enumerate(summaries) for metric in shown_gains(each)]
    found = adjusted([shown_gains(summaries[at])[metric].overall for at, metric in places])
    made = list(summaries)
    for (at, metric), gain in zip(places, found, strict=True):
        part = made[at].no_tool_part
        assert part is not None  # it has a gain
        changed = part.gain[metric].model_copy(update={"overall": gain})
        part = part.model_copy(update={"gain": {**part.gain, metric: changed}})
        made[at] = made[at].model_copy(update={"no_tool_part": part})
    return made


def shown_gains(summary: Summary) -> dict[str, Metric]:
    """The gains of a run that the table of gains shows: none where one of the two modes has no headline."""
    part = summary.no_tool_part
    hidden = any(not of_mode.headline for mode, of_mode in summary.modes.items() if mode != "step-by-step")
    if part is None or hidden:
        return {}
    return {metric: part.gain[metric] for metric in GAIN_METRICS if metric in part.gain}


def with_comparison_adjusted(comparison: Comparison) -> Comparison:
    """The comparison with all differences adjusted together that its tables show: each metric of each mode, schematic
    drawings among them, and the rows by task type."""
    parts = [comparison.modes, comparison.schematic]
    found = iter(adjusted(list(compared_differences(comparison))))
    modes, schematic = (
        {
            mode: {name: _replaced(name, metric, found) for name, metric in metrics.items()}
            for mode, metrics in part.items()
        }
        for part in parts
    )
    return comparison.model_copy(update={"modes": modes, "schematic": schematic})


def compared_differences(comparison: Comparison) -> Iterator[Estimate]:
    """The differences that the tables of a comparison show."""
    for part in (comparison.modes, comparison.schematic):
        for name, metric in (each for metrics in part.values() for each in metrics.items()):
            yield metric.overall
            yield from compared_task_types(name, metric).values()


def compared_task_types(name: str, metric: Metric) -> dict[str, Estimate]:
    """The differences by task type that a comparison shows of a metric."""
    return metric.by_task_type if name in BY_TASK_TYPE and len(metric.by_task_type) > 1 else {}


def _replaced(name: str, metric: Metric, found: Iterator[Estimate]) -> Metric:
    """The metric with the next ones of ``found`` in place of those that are shown of it."""
    overall = next(found)
    parts = {task_type: next(found) for task_type in compared_task_types(name, metric)}
    return metric.model_copy(update={"overall": overall, "by_task_type": {**metric.by_task_type, **parts}})
