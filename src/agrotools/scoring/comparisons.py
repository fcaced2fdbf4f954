"""Comparison of runs, paired by sample: differences with intervals, flips, and causes of lost points.

Every difference is the second run minus the first: a positive number is in favour of the second.
Differences of one table are adjusted together (:func:`agrotools.scoring.statistics.adjusted`).
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

from agrotools.core import MODES, Mode, Record, UsageError
from agrotools.core.lazy import FloatArray, IntArray, np
from agrotools.core.texts import count_text
from agrotools.scoring.aggregate import RunAggregator, metric_differences, tallied
from agrotools.scoring.attribution import ordered_parts
from agrotools.scoring.lost_points import LostPoints, largest_part
from agrotools.scoring.metrics import FAS, FLOOR_METRICS, METRICS
from agrotools.scoring.missing import missing_between, missing_unpaired
from agrotools.scoring.statistics import (
    ROUNDING,
    Estimate,
    adjusted,
    estimate_difference,
    estimate_mean,
    estimate_unpaired,
)
from agrotools.scoring.summary import (
    Flip,
    Flips,
    Metric,
    Missing,
    RunComparison,
    RunDifference,
    Summary,
    with_comparisons_adjusted,
    with_gains_adjusted,
)
from agrotools.scoring.units import (
    SamplePair,
    SampleTable,
    Units,
    by_sample,
    clusters_of,
    paired_units,
    shown_mean,
)


def compare(
    first: Sequence[Record], second: Sequence[Record], *, names: tuple[str, str] = ("", "")
) -> RunComparison:
    """Return the differences of two runs, second minus first, paired on samples (steps) with valid records in both."""
    return comparisons([tallied(each, lost=LostPoints()) for each in (first, second)], names)[0]


def comparisons(aggregators: Sequence[RunAggregator], names: Sequence[str]) -> list[RunComparison]:
    """Return the comparison of every pair of runs, second minus first, adjusted together."""
    pairs = combinations(zip(aggregators, names, strict=True), 2)
    return with_comparisons_adjusted(
        [_comparison(one, other, (a, b)) for (one, a), (other, b) in pairs]
    )


def _comparison(
    first: RunAggregator, second: RunAggregator, names: tuple[str, str]
) -> RunComparison:
    by_mode = (
        "modes headline means by_cause flips unpaired unread withheld no_open_text missing".split()
    )
    fields: dict[str, dict[str, Any]] = {name: {} for name in by_mode}
    for mode in MODES:
        if mode not in first.modes or mode not in second.modes:
            continue
        mine, other = first.modes[mode], second.modes[mode]
        ours, others = mine.units(), other.units()
        theirs = {
            name: _renumbered(units, second.table, first.table) for name, units in others.items()
        }
        valid = [{*run.table.ids(run.modes[mode].valid_samples())} for run in (first, second)]
        fields["unpaired"][mode] = (len(valid[0] - valid[1]), len(valid[1] - valid[0]))
        named = [*zip((mine, other), names, strict=True)]
        if unread := tuple(name for run, name in named if run.is_unread):
            fields["unread"][mode] = unread
        if withheld := {name: run.withheld for run, name in named if run.withheld}:
            fields["withheld"][mode] = withheld
        if any(left_out := (len(mine.without_open_text), len(other.without_open_text))):
            fields["no_open_text"][mode] = left_out
        fields["modes"][mode] = metrics = metric_differences(theirs, ours, first.table)
        for name in (name for name in metrics if mode in METRICS[name].compared_in):
            pair = by_sample(ours[name], theirs[name])
            fields["headline"][mode], fields["means"][mode] = name, pair.means
            if missing := missing_between(first, second, mode, name):
                fields["missing"][mode] = missing
            fields["flips"][mode] = _flips(name, mode, pair, first, second)
            if name == FAS and first.lost and second.lost:
                fields["by_cause"][mode] = _by_cause(mode, pair, first, second)
            break
    return RunComparison(first=names[0], second=names[1], **fields)  # pyright: ignore[reportArgumentType]


def unpaired_comparison(
    first: RunAggregator, second: RunAggregator, names: tuple[str, str]
) -> RunComparison:
    """Return the difference of two runs on different samples, second minus first, in the headline metric of each mode.

    Metrics of guesses (:data:`agrotools.scoring.metrics.FLOOR_METRICS`) tell whether the samples differ in difficulty.
    """
    modes: dict[str, dict[str, Metric]] = {}
    headline: dict[str, str] = {}
    means: dict[str, tuple[float, float]] = {}
    lacking: dict[str, Missing] = {}
    for mode in MODES:
        if mode not in first.modes or mode not in second.modes:
            continue
        units = [run.modes[mode].units() for run in (first, second)]
        shared = [
            name for name in units[0] if name in units[1] and mode in METRICS[name].compared_in
        ][:1]
        modes[mode] = {}
        for name in (
            *shared,
            *(each for each in FLOOR_METRICS if each in units[0] and each in units[1]),
        ):
            pair = [each[name].where(each[name].valued) for each in units]
            tables = (first.table, second.table)
            if not all(len(each.values) for each in pair):
                continue
            clusters = [
                clusters_of(each.samples, table) for each, table in zip(pair, tables, strict=True)
            ]
            modes[mode][name] = Metric(
                overall=estimate_unpaired(pair[1].values, pair[0].values, clusters[1], clusters[0])
            )
            if name in shared:
                headline[mode] = name
                means[mode] = (shown_mean(pair[0].values), shown_mean(pair[1].values))
                if missing := missing_unpaired(first, second, mode, name):
                    lacking[mode] = missing
    compared = RunComparison(
        first=names[0],
        second=names[1],
        paired=False,
        modes=modes,
        headline=headline,
        means=means,
        missing=lacking,
    )
    return with_comparisons_adjusted([compared])[0]


class HeadlinePair(NamedTuple):
    """Paired values of two runs in the headline metric of a mode, with the cluster and the sample of each pair."""

    metric: str
    first: FloatArray
    second: FloatArray
    clusters: IntArray
    samples: Sequence[str] = ()


def check_same_samples(first: RunAggregator, second: RunAggregator) -> None:
    """Raise an error if a sample of both runs has another question or another right answer in one of them.

    Raises:
        UsageError: the benchmark or the records of a run were changed.
    """
    common = first.checksums.keys() & second.checksums.keys()
    if changed := sorted(
        each for each in common if first.checksums[each] != second.checksums[each]
    ):
        raise UsageError(
            f"these runs cannot be compared: {count_text(len(changed), 'sample')} of both with another question or "
            f"right answer in one of them (first: {changed[0]})",
            hint="the benchmark or the records were changed in place: run both on one version",
        )


def headline_pair(first: RunAggregator, second: RunAggregator, mode: Mode) -> HeadlinePair | None:
    """Return the pairs in the metric that a mode is compared in; None if the runs share no scored sample."""
    metrics = first.modes[mode].metrics if mode in first.modes else ()
    pairs = (
        _paired(first, second, mode, name) for name in metrics if mode in METRICS[name].compared_in
    )
    return next(filter(None, pairs), None)


def _paired(
    first: RunAggregator,
    second: RunAggregator,
    mode: Mode,
    metric: str,
    samples: frozenset[str] = frozenset(),
) -> HeadlinePair | None:
    """Return the pairs in a metric, of ``samples`` if it is not empty; None if the runs share no scored sample."""
    mine, other = (
        run.modes[mode].headline_units(metric) if mode in run.modes else None
        for run in (first, second)
    )
    if mine is None or other is None:
        return None
    mine = _among(samples, mine, first.table) if samples else mine
    pair = paired_units(mine, _renumbered(other, second.table, first.table))
    if pair is None:
        return None
    numbers = pair[0].samples
    names = first.table.ids(numbers.tolist())
    clusters = clusters_of(numbers, first.table)
    return HeadlinePair(metric, pair[0].values, pair[1], clusters, names)


def _flips(
    metric: str, mode: Mode, pair: SamplePair, first: RunAggregator, second: RunAggregator
) -> Flips:
    flips: list[Flip] = []
    for name, mine, other in zip(first.table.ids(pair.samples.tolist()), *pair[1:3], strict=True):
        if abs(mine - other) <= ROUNDING:
            continue
        worse, better = (second.lost, first.lost) if mine > other else (first.lost, second.lost)
        losses: dict[str, float] = {}
        if worse and metric == FAS:
            losses = worse.beside(mode, name, float(min(mine, other)), better)
        cause = largest_part(losses)
        flips.append(Flip(sample=name, first=float(mine), second=float(other), cause=cause))
    flips.sort(key=lambda flip: (-abs(flip.first - flip.second), flip.sample))
    up, down = (
        tuple(each for each in flips if (each.second > each.first) is is_up)
        for is_up in (True, False)
    )
    return Flips(metric=metric, up=up, down=down, n_equal=len(pair.samples) - len(flips))


def _by_cause(
    mode: Mode, pair: SamplePair, first: RunAggregator, second: RunAggregator
) -> dict[str, Estimate]:
    """Return the points that the first run loses by each cause minus those that the second loses.

    They add up to the difference of the scores, second minus first.
    """
    assert first.lost is not None
    assert second.lost is not None
    lost: list[tuple[dict[str, float], dict[str, float]]] = []
    names = first.table.ids(pair.samples.tolist())
    for name, mine, other in zip(names, pair.first.tolist(), pair.second.tolist(), strict=True):
        is_flip = abs(mine - other) > ROUNDING
        losses = (
            first.lost.beside(mode, name, mine, second.lost if is_flip else None),
            second.lost.beside(mode, name, other, first.lost if is_flip else None),
        )
        lost.append(losses)
    found = {
        cause
        for both in lost
        for each in both
        for cause, loss in each.items()
        if abs(loss) > ROUNDING
    }
    clusters = clusters_of(pair.samples, first.table)
    none = np.zeros(len(lost))
    differences = {
        cause: [ours.get(cause, 0.0) - theirs.get(cause, 0.0) for ours, theirs in lost]
        for cause in found
    }
    return {
        cause: estimate_difference(differences[cause], none, clusters)
        for cause in ordered_parts(found)
    }


def side_by_side(
    summaries: Sequence[Summary], aggregators: Sequence[RunAggregator]
) -> list[Summary]:
    """Return the summaries of several runs with the statistics that need all of them.

    ``aggregators`` holds one aggregator for each run. It may be empty if the records were not scored in this process;
    the summaries then have no differences between runs.
    """
    together = with_gains_adjusted(summaries)
    if not aggregators:
        return together
    between = tuple(differences_between(summaries, aggregators))
    return [each.model_copy(update={"between_runs": between}) for each in together]


def differences_between(
    summaries: Sequence[Summary],
    aggregators: Sequence[RunAggregator],
    pairs: Sequence[tuple[int, int]] | None = None,
) -> list[RunDifference]:
    """Return the differences of pairs of runs, second minus first, in the headline of each mode, adjusted together.

    Runs of another benchmark, of a quick part and modes without a headline are left out. ``pairs`` are indices of
    runs; None: all pairs of policies that did not see the gold.
    """
    if pairs is None:
        pairs = [*combinations((at for at, each in enumerate(summaries) if not each.privileged), 2)]
    # Comparable runs share benchmark, version and options.
    benchmarks = [
        (s.benchmark, s.benchmark_version, sorted(s.benchmark_options.items())) for s in summaries
    ]
    headlines = [headline_metrics(*each) for each in zip(summaries, aggregators, strict=True)]
    differences: list[RunDifference] = []
    for first, second in pairs:
        for mode, metric in headlines[first] if benchmarks[first] == benchmarks[second] else ():
            estimate = paired_difference(aggregators[first], aggregators[second], mode, metric)
            if estimate is not None and (mode, metric) in headlines[second]:
                missing = missing_between(aggregators[first], aggregators[second], mode, metric)
                differences.append(
                    RunDifference(
                        first=first,
                        second=second,
                        mode=mode,
                        metric=metric,
                        difference=estimate,
                        missing=missing,
                    )
                )
    return _differences_adjusted(differences)


def _differences_adjusted(differences: Sequence[RunDifference]) -> list[RunDifference]:
    """Return the differences with adjusted p-values, and those with all missing scores set against them."""
    estimates = adjusted([each.difference for each in differences])
    worst = adjusted(
        [
            each.missing.against(each.difference.value) if each.missing else each.difference
            for each in differences
        ]
    )
    found: list[RunDifference] = []
    for each, estimate, against in zip(differences, estimates, worst, strict=True):
        missing = each.missing and each.missing.with_against(estimate.value, against)
        found.append(each.model_copy(update={"difference": estimate, "missing": missing}))
    return found


def paired_difference(
    first: RunAggregator,
    second: RunAggregator,
    mode: Mode,
    metric: str,
    samples: frozenset[str] = frozenset(),
) -> Estimate | None:
    """Return the second run minus the first in a metric, paired by sample; None if they share no scored sample.

    ``samples``: ids of the samples that count; empty for all.
    """
    pair = _paired(first, second, mode, metric, samples)
    return pair and estimate_difference(pair.second, pair.first, pair.clusters)


def common_samples(aggregators: Sequence[RunAggregator], mode: Mode, metric: str) -> frozenset[str]:
    """Return the ids of the samples that every run has a score of."""
    units = [
        (each.table, each.modes[mode].headline_units(metric))
        for each in aggregators
        if mode in each.modes
    ]
    ids = [
        frozenset(table.ids(each.where(each.valued).samples.tolist()))
        for table, each in units
        if each is not None
    ]
    return frozenset[str].intersection(*ids) if ids else frozenset()


def mean_on(
    samples: frozenset[str], aggregator: RunAggregator, mode: Mode, metric: str
) -> Estimate | None:
    """Return the mean of a run over common samples (:func:`common_samples`); None if it has no score of any of them."""
    units = aggregator.modes[mode].headline_units(metric) if mode in aggregator.modes else None
    if units is None:
        return None
    units = _among(samples, units.where(units.valued), aggregator.table)
    clusters = clusters_of(units.samples, aggregator.table)
    return estimate_mean(units.values, clusters) if len(units.values) else None


def values_on(
    samples: frozenset[str], aggregator: RunAggregator, mode: Mode, metric: str
) -> tuple[FloatArray, list[str]]:
    """Return the values of common samples (:func:`common_samples`) in the order of their ids, and their clusters."""
    units = aggregator.modes[mode].headline_units(metric)
    assert units is not None  # there are values of these samples
    units = _among(samples, units, aggregator.table)
    units = units.where(np.argsort(aggregator.table.ids(units.samples.tolist())))
    return units.values, aggregator.table.ids(clusters_of(units.samples, aggregator.table).tolist())


def _among(samples: frozenset[str], units: Units, table: SampleTable) -> Units:
    return units.where(np.isin(table.ids(units.samples.tolist()), [*samples]))


def headline_metrics(summary: Summary, tally: RunAggregator) -> list[tuple[Mode, str]]:
    """Return the modes and metrics that are compared between runs; none for a quick part."""
    return [
        (mode, each)
        for mode in MODES
        if mode in tally.modes and summary.modes[mode].headline and not summary.quick
        for each in tally.modes[mode].metrics
        if mode in METRICS[each].compared_in
    ]


def _renumbered(units: Units, table: SampleTable, other: SampleTable) -> Units:
    """Return the units of samples that are in ``other``, with their numbers in that table."""
    samples = np.asarray(table.numbers_in(other), dtype=np.int64)[units.samples]
    return units._replace(samples=samples).where(samples >= 0)
