"""Units that metrics average: score rows by sample or step.

A unit is a sample (outcome metrics, summaries) or a step of a sample (process metrics); epochs are averaged first.
Samples, rows and units are stored as columns of numbers, so that a long run takes little more memory than a short one.
"""

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

from agrotools.core import Sample
from agrotools.core.lazy import BoolArray, FloatArray, IntArray, np
from agrotools.scoring.metrics import (
    CALL_STEP_METRICS,
    FALSE_REFUSAL,
    SUMMARY_METRICS,
    is_outcome,
    places_by_metric,
)
from agrotools.scoring.statistics import Estimate, Interval, estimate_difference, estimate_mean
from agrotools.scoring.summary import Metric


class Kind(NamedTuple):
    """Properties that samples are grouped by and that determine the units of each metric."""

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
    groups: tuple[tuple[str, str], ...] = ()
    """Names and values of the sample's ``groups``, for further breakdowns of results."""


class SampleTable:
    """Numbering of samples and clusters, with the kind of each sample.

    Sample ids and cluster names share one numbering, because a cluster is named after one of its samples. The
    properties of a sample are those of its first record.
    """

    def __init__(self) -> None:
        self.kinds: list[Kind] = []
        self.clusters = array("I")
        """Number of the cluster of each sample, by number of the sample."""
        self.kind_of = array("i")
        """Index in ``kinds`` of each sample, by number of the sample; -1 if the number belongs only to a cluster."""
        self._names: list[str] = []
        self._number_of: dict[str, int] = {}
        self._kind_numbers: dict[Kind, int] = {}

    def number(self, sample: Sample) -> int:
        """Return the number of ``sample``; a new sample gets the next number."""
        number = self._number(sample.id)
        if self.kind_of[number] < 0:
            kind = _kind(sample)
            self.kind_of[number] = self._kind_numbers.setdefault(kind, len(self.kinds))
            if self.kind_of[number] == len(self.kinds):
                self.kinds.append(kind)
            if (
                sample.cluster and sample.cluster != sample.id
            ):  # otherwise its number is set already
                self.clusters[number] = self._number(sample.cluster)
        return number

    def kind(self, number: int) -> Kind:
        """Return the kind of the sample with this number."""
        return self.kinds[int(self.kind_of[number])]

    def numbers_in(self, other: "SampleTable") -> list[int]:
        """Return the numbers of all samples of this table in another table; -1 for samples that it lacks."""
        return [other._number_of.get(name, -1) for name in self._names]

    def ids(self, numbers: Iterable[int]) -> list[str]:
        """Return the ids of the samples with these numbers."""
        return [self._names[number] for number in numbers]

    def _number(self, name: str) -> int:
        number = self._number_of.setdefault(name, len(self._names))
        if number == len(self._names):
            self._names.append(name)
            self.clusters.append(number)
            self.kind_of.append(-1)
        return number


def _kind(sample: Sample) -> Kind:
    return Kind(
        family=sample.family,
        task_type=sample.task_type,
        answer_type=sample.answer_type,
        no_tool_eligible=sample.no_tool_eligible,
        calls=len(sample.reference.steps) if sample.reference else 0,
        outcome_metrics=frozenset(places_by_metric(sample.answer))
        - (set() if sample.may_abstain else {FALSE_REFUSAL}),
        has_text=any(not slot.made_by_tools for slot in sample.answer),
        derivable=sample.derivable,
        groups=_groups(sample),
    )


def _groups(sample: Sample) -> tuple[tuple[str, str], ...]:
    """Return the groups of a sample: its own, its difficulty if known, and the size of the reference.

    Published benchmarks also give the number of steps; it is left out if it equals the number of calls.
    """
    difficulty = sample.metadata.get("difficulty")
    difficulty_group = {"difficulty": str(difficulty)} if isinstance(difficulty, int) else {}
    if sample.reference is not None:
        tools = sample.reference.tools
        difficulty_group |= {
            "calls of the reference": str(len(tools)),
            "tools of the reference": str(len(set(tools))),
        }
    calls = difficulty_group.get("calls of the reference")
    sample_groups = {
        name: value for name, value in sample.groups.items() if name != "steps" or value != calls
    }
    return tuple(sorted({**difficulty_group, **sample_groups}.items()))


WHOLE = -1
"""Step number of a unit that is a whole sample."""


class Rows:
    """Score rows of one metric as columns: sample (by its place in the mode), step and value."""

    def __init__(self) -> None:
        self._places, self._steps, self._values = array("I"), array("i"), array("d")

    def add(self, place: int, step: int | None, value: float) -> None:
        self._places.append(place)
        self._steps.append(WHOLE if step is None else step)
        self._values.append(value)

    def columns(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return places, steps and values as arrays of their own: a view would not let the columns grow."""
        return (
            np.array(self._places, np.int64),
            np.array(self._steps, np.int64),
            np.array(self._values),
        )


class Units(NamedTuple):
    """Units of a metric as columns of equal length.

    ``values`` are means over the valid epochs, NaN if every epoch is invalid; ``low`` and ``high`` count invalid epochs
    as 0 and as 1. ``samples`` are numbers of a :class:`SampleTable`.
    """

    samples: IntArray
    steps: IntArray
    values: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def valued(self) -> BoolArray:
        """Boolean mask of the units that have a value."""
        return ~np.isnan(self.values)

    def where(self, keep: BoolArray | IntArray) -> "Units":
        """Return the units selected by a mask or by indices."""
        return Units(
            self.samples[keep], self.steps[keep], self.values[keep], self.low[keep], self.high[keep]
        )


def units_of(
    metric: str,
    rows: Rows,
    samples: "array[int]",
    epochs: "array[int]",
    invalid: "array[int]",
    table: SampleTable,
) -> Units:
    """Return the units of ``metric`` in one mode, by sample in the order of their first record.

    ``samples`` holds the numbers of the mode's samples by place, ``epochs`` the number of records of each sample, and
    ``invalid`` the number of its invalid records.
    """
    of_place = np.array(samples, dtype=np.int64)
    n, n_invalid = np.array(epochs, dtype=np.int64), np.array(invalid, dtype=np.int64)
    places, steps, totals, counts = _summed(rows)
    values = totals / counts
    if not n_invalid.any():
        return Units(of_place[places], steps, values, values, values)
    n_epochs = (
        counts + n_invalid[places]
    )  # without valid epochs that have no row, because the twin has none
    low, high = totals / n_epochs, (totals + n_invalid[places]) / n_epochs
    units = Units(places, steps, values, low, high)
    unknown = [
        (place, step)
        for place in np.flatnonzero(n_invalid == n).tolist()
        for step in _expected_steps(metric, table.kind(samples[place]))
    ]
    if unknown:
        blank = np.array(unknown, dtype=np.int64)
        nothing = np.zeros(len(blank))
        missing = Units(blank[:, 0], blank[:, 1], nothing * np.nan, nothing, nothing + 1)
        units = Units(
            *cast("Any", (np.concatenate(pair) for pair in zip(units, missing, strict=True)))
        )
        units = units.where(np.argsort(units.samples, kind="stable"))
    return units._replace(samples=of_place[units.samples])


def _summed(rows: Rows) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Return place, step, sum and number of the values of each unit, ordered by place and then by first row."""
    places, steps, values = rows.columns()
    width = int(steps.max(initial=0)) + 2
    keys = places * width + (steps - WHOLE)
    if bool(np.all(keys[1:] > keys[:-1])):  # most runs have one epoch, ordered by sample
        return places, steps, values, np.ones(len(keys), dtype=np.int64)
    del places, steps
    keys, first, at, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, keys // width))
    totals = np.bincount(at, weights=values, minlength=len(keys))
    ordered = (keys[order] // width, keys[order] % width + WHOLE, totals[order], counts[order])
    return cast("tuple[IntArray, IntArray, FloatArray, IntArray]", ordered)


def _expected_steps(metric: str, kind: Kind) -> Sequence[int]:
    """Return the steps of the units that a sample would have if it had been answered."""
    if is_outcome(metric):
        return [WHOLE] if metric in kind.outcome_metrics else []
    if metric in SUMMARY_METRICS:
        return [kind.calls] if kind.has_text else []
    return range(kind.calls) if metric in CALL_STEP_METRICS else range(kind.calls + 1)


def metric_of(units: Units, table: SampleTable) -> Metric | None:
    """Return the metric over ``units``; None if no unit has a value."""
    valued = units.valued
    if not valued.any():
        return None
    valued_units = units if valued.all() else units.where(valued)
    clusters = clusters_of(valued_units.samples, table)

    def mean(part: BoolArray | slice) -> Estimate:
        return estimate_mean(valued_units.values[part], clusters[part])

    metric = _broken_down(valued_units.samples, table, mean)
    if valued.all() and (units.low == units.high).all():
        return metric
    lower, upper = (
        sum(cast("list[float]", ends.tolist())) / len(ends) for ends in (units.low, units.high)
    )
    return metric.model_copy(
        update={"bounds": Interval(lower=max(lower, 0.0), upper=max(upper, 0.0))}
    )


def difference_of(first: Units, second: Units, table: SampleTable) -> Metric | None:
    """Return ``first - second`` over the units that have both values; None if there are no such units."""
    if (pair := paired_units(first, second)) is None:
        return None
    mine, paired = pair
    clusters = clusters_of(mine.samples, table)

    def difference(part: BoolArray | slice) -> Estimate:
        return estimate_difference(mine.values[part], paired[part], clusters[part])

    return _broken_down(mine.samples, table, difference)


def paired_units(first: Units, second: Units) -> tuple[Units, FloatArray] | None:
    """Return the units of ``first`` that have values in both, and the values of ``second``; None if there are none."""
    mine, other = first.where(first.valued), second.where(second.valued)
    width = int(max(mine.steps.max(initial=0), other.steps.max(initial=0))) + 2
    keys = (units.samples * width + (units.steps - WHOLE) for units in (mine, other))
    _, at, other_at = np.intersect1d(*keys, assume_unique=True, return_indices=True)
    order = np.argsort(at)
    return (mine.where(at[order]), other.values[other_at[order]]) if len(at) else None


class SamplePair(NamedTuple):
    """Samples with values of a metric in two runs (numbers of a table), and both values: means over the steps."""

    samples: IntArray
    first: FloatArray
    second: FloatArray
    means: tuple[float, float]
    """Means over all paired units."""


def by_sample(first: Units, second: Units) -> SamplePair:
    """Return the samples with paired units; there must be at least one."""
    pair = paired_units(first, second)
    assert pair is not None
    mine, theirs = pair
    samples, at, counts = np.unique(mine.samples, return_inverse=True, return_counts=True)
    first_values, second_values = (
        np.bincount(at, weights=values) / counts for values in (mine.values, theirs)
    )
    return SamplePair(
        samples, first_values, second_values, (shown_mean(mine.values), shown_mean(theirs))
    )


def shown_mean(values: FloatArray) -> float:
    """Return the mean, not below 0; differences are those of means before that."""
    return max(0.0, float(values.mean()))


def clusters_of(samples: IntArray, table: SampleTable) -> IntArray:
    """Return the numbers of the samples' clusters."""
    return np.asarray(table.clusters)[samples]


def _broken_down(
    samples: IntArray, table: SampleTable, estimate: Callable[[BoolArray | slice], Estimate]
) -> Metric:
    """Return ``estimate`` for all units and for each family, task type, answer type and group."""
    kind_of = np.asarray(table.kind_of)[samples]
    present = cast("list[int]", np.unique(kind_of).tolist())
    known: dict[frozenset[int], Estimate] = {}

    def of_kinds(keep: Iterable[int]) -> Estimate:
        # A family with one task type has the same units as that task type, so one bootstrap serves both.
        key = frozenset(keep)
        if key not in known:
            known[key] = estimate(
                np.isin(kind_of, list(key)) if len(key) < len(present) else slice(None)
            )
        return known[key]

    return Metric(**by_part(present, table, of_kinds))


def by_part(
    present: Sequence[int], table: SampleTable, of_kinds: Callable[[Iterable[int]], object]
) -> dict[str, Any]:
    """Return ``of_kinds`` of all ``present`` kinds (indices in the table) and of those of each part.

    The keys are the fields of :class:`Metric` and :class:`~agrotools.scoring.summary.SecondsByPart`.
    """

    def parts(label: Callable[[Kind], str | None]) -> dict[str, object]:
        groups: dict[str, list[int]] = {}
        for kind in present:
            if (name := label(table.kinds[kind])) is not None:
                groups.setdefault(name, []).append(kind)
        return {name: of_kinds(groups[name]) for name in sorted(groups)}

    names = sorted({name for kind in present for name, _ in table.kinds[kind].groups})
    return {
        "overall": of_kinds(present),
        "by_family": parts(lambda kind: kind.family),
        "by_task_type": parts(lambda kind: kind.task_type),
        "by_answer_type": parts(lambda kind: kind.answer_type),
        "by_group": {
            name: parts(lambda kind, name=name: dict(kind.groups).get(name)) for name in names
        },
    }
