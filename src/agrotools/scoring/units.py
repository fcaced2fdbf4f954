"""From score rows to units: what a metric averages, epochs averaged first.

A unit is a sample (outcome metrics, summaries) or a step of a sample (process metrics).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agrotools.core import Mode, Record, Sample, Score
from agrotools.scoring.outcome import SLOTS_OF_METRIC
from agrotools.scoring.statistics import Estimate, Interval, estimate_difference, estimate_mean
from agrotools.scoring.summary import Metric

CALL_STEP_METRICS = (
    "agrotools.tool_acc",
    "agrotools.tool_acc_strict",
    "agrotools.arg_acc",
    "agrotools.arg_acc_strict",
    "agrotools.ear",
)
SUMMARY_METRICS = ("agrotools.summ_acc", "agrotools.summ_acc_truth")
STEP_METRICS = ("agrotools.st_acc", *CALL_STEP_METRICS, *SUMMARY_METRICS)
OUTCOME_METRICS = tuple(SLOTS_OF_METRIC)

UnitKey = tuple[str, int | None]
"""Sample id and, for process metrics, the step."""


@dataclass(frozen=True)
class Unit:
    """``value`` is the mean over the valid epochs; None where every epoch is invalid. ``low`` and ``high`` count the
    invalid ones as 0 and as 1."""

    sample: Sample
    value: float | None
    low: float
    high: float

    @property
    def cluster(self) -> str:
        return self.sample.cluster or self.sample.id


Units = dict[UnitKey, Unit]


def is_invalid(record: Record) -> bool:
    """Whether the record is our failure rather than a result."""
    return record.invalid is not None or (
        record.trajectory is not None and record.trajectory.termination == "infrastructure"
    )


def units_by_metric(mode: Mode, records: Sequence[Record], scores: Sequence[Sequence[Score]]) -> dict[str, Units]:
    """The units of each metric of ``mode``. ``records`` are all of that mode; ``scores`` run parallel to them."""
    metrics = STEP_METRICS if mode == "step-by-step" else OUTCOME_METRICS
    samples: dict[str, Sample] = {}
    epochs: dict[str, int] = defaultdict(int)
    invalid: dict[str, int] = defaultdict(int)
    values: dict[str, dict[str, dict[int | None, list[float]]]] = {metric: {} for metric in metrics}
    for record, rows in zip(records, scores, strict=True):
        sample = samples.setdefault(record.sample.id, record.sample)
        epochs[sample.id] += 1
        if is_invalid(record):
            invalid[sample.id] += 1
            continue
        for row in rows:
            if row.metric in values:
                values[row.metric].setdefault(sample.id, {}).setdefault(row.step, []).append(row.value)

    units: dict[str, Units] = {}
    for metric, by_sample in values.items():
        own: Units = {}
        for id_, sample in samples.items():
            n, lost = epochs[id_], invalid[id_]
            for step, given in by_sample.get(id_, {}).items():
                total = sum(given)
                # A metric has a row in every valid epoch or in none, so what is missing is invalid.
                own[(id_, step)] = Unit(sample, total / len(given), total / n, (total + lost) / n)
            if lost == n:
                for step in _expected_steps(metric, sample):
                    own[(id_, step)] = Unit(sample, None, 0.0, 1.0)
        units[metric] = own
    return units


def _expected_steps(metric: str, sample: Sample) -> Iterable[int | None]:
    """The units that a sample would have had if it had been answered."""
    if metric in SLOTS_OF_METRIC:
        return [None] if any(map(SLOTS_OF_METRIC[metric], sample.answer)) else []
    calls = len(sample.reference.steps) if sample.reference else 0
    if metric in SUMMARY_METRICS:
        return [calls] if any(slot.type != "plot" for slot in sample.answer) else []
    return range(calls) if metric in CALL_STEP_METRICS else range(calls + 1)


def metric_of(units: Units) -> Metric | None:
    """The metric over ``units``; None where none of them has a value."""

    def mean(part: Sequence[UnitKey]) -> Estimate:
        return estimate_mean([_value(units[key]) for key in part], [units[key].cluster for key in part])

    valued = [key for key, unit in units.items() if unit.value is not None]
    if not valued:
        return None
    metric = _broken_down(valued, units, mean)
    if all(unit.value is not None and unit.low == unit.high for unit in units.values()):
        return metric
    lower = sum(unit.low for unit in units.values()) / len(units)
    upper = sum(unit.high for unit in units.values()) / len(units)
    return metric.model_copy(update={"bounds": Interval(lower=lower, upper=upper)})


def difference_of(first: Units, second: Units) -> Metric | None:
    """``first - second`` over the units that both have a value of; None where there are none."""

    def difference(part: Sequence[UnitKey]) -> Estimate:
        return estimate_difference(
            [_value(first[key]) for key in part],
            [_value(second[key]) for key in part],
            [first[key].cluster for key in part],
        )

    paired = [key for key in first if first[key].value is not None and key in second and second[key].value is not None]
    return _broken_down(paired, first, difference) if paired else None


def _value(unit: Unit) -> float:
    assert unit.value is not None
    return unit.value


def _broken_down(keys: Sequence[UnitKey], units: Units, estimate: Callable[[Sequence[UnitKey]], Estimate]) -> Metric:
    def parts(label: Callable[[Sample], str]) -> dict[str, Estimate]:
        groups: dict[str, list[UnitKey]] = {}
        for key in keys:
            groups.setdefault(label(units[key].sample), []).append(key)
        return {name: estimate(groups[name]) for name in sorted(groups)}

    return Metric(
        overall=estimate(keys),
        by_family=parts(lambda sample: sample.family),
        by_task_type=parts(lambda sample: sample.task_type),
        by_answer_type=parts(lambda sample: sample.answer_type),
    )
