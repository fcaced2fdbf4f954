"""Comparison of runs, paired by sample: differences with intervals, flips, and causes of lost points.

Every difference is the second run minus the first: a positive number is in favour of the second.
Differences of one table are adjusted together (:func:`agrotools.scoring.statistics.adjusted`).
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

from agrotools.core import MODES, Mode, Record, UsageError
from agrotools.core.lazy import FloatArray, IntArray, np
from agrotools.core.texts import count_text
from agrotools.scoring.aggregate import RunAggregator, tallied
from agrotools.scoring.attribution import ordered_parts
from agrotools.scoring.correlations import (
    MIN_MODELS,
    CorrelatedRun,
    correlations,
    model_of_run,
)
from agrotools.scoring.lost_points import LostPoints, largest_part
from agrotools.scoring.metrics import FAS, FLOOR_METRICS, METRICS
from agrotools.scoring.missing import missing_between, missing_unpaired
from agrotools.scoring.record_tally import changed_text
from agrotools.scoring.score_table import ScoreTable, ScoreUnits
from agrotools.scoring.statistics import (
    ROUNDING,
    Estimate,
    adjusted,
    estimate_difference,
    estimate_mean,
    estimate_unpaired,
)
from agrotools.scoring.summary import (
    Correlation,
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
from agrotools.scoring.unit_estimates import (
    PairedUnits,
    difference_of,
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


class _Headline(NamedTuple):
    """Comparison of two runs in the metric that a mode is compared in."""

    metric: str
    means: tuple[float, float]
    missing: Missing | None
    flips: Flips
    by_cause: dict[str, Estimate] | None
    """None if the metric is not FAS, or the lost points of a run were not counted."""


def _comparison(
    first: RunAggregator, second: RunAggregator, names: tuple[str, str]
) -> RunComparison:
    modes = _common_modes(first, second)
    differences = {mode: _differences(first, second, mode) for mode in modes}
    headlines = {mode: _headline(first, second, mode, differences[mode]) for mode in modes}
    shown = {mode: each for mode, each in headlines.items() if each is not None}
    unread = {mode: _unread(first, second, mode, names) for mode in modes}
    withheld = {mode: _withheld(first, second, mode, names) for mode in modes}
    no_open_text = {mode: _no_open_text(first, second, mode) for mode in modes}
    return RunComparison(
        first=names[0],
        second=names[1],
        modes={**differences},
        headline={mode: each.metric for mode, each in shown.items()},
        means={mode: each.means for mode, each in shown.items()},
        by_cause={mode: each.by_cause for mode, each in shown.items() if each.by_cause is not None},
        flips={mode: each.flips for mode, each in shown.items()},
        unpaired={mode: _unpaired(first, second, mode) for mode in modes},
        unread={mode: each for mode, each in unread.items() if each},
        withheld={mode: each for mode, each in withheld.items() if each},
        no_open_text={mode: each for mode, each in no_open_text.items() if any(each)},
        missing={mode: each.missing for mode, each in shown.items() if each.missing},
    )


def _common_modes(first: RunAggregator, second: RunAggregator) -> list[Mode]:
    return [mode for mode in MODES if mode in first.modes and mode in second.modes]


def _differences(first: RunAggregator, second: RunAggregator, mode: Mode) -> dict[str, Metric]:
    """Return the differences, second minus first, of the metrics that both runs have, but those of guesses."""
    differences: dict[str, Metric] = {}
    for metric in second.metrics(mode):
        both = _common_units(first, second, mode, metric)
        if both is None or metric in FLOOR_METRICS:
            continue
        mine, other = both
        pair = paired_units(other, mine)
        if pair is not None:
            differences[metric] = difference_of(pair, first.table)
    return differences


def _common_units(
    first: RunAggregator, second: RunAggregator, mode: Mode, metric: str
) -> tuple[ScoreUnits, ScoreUnits] | None:
    """Return the units of both runs that have a value, in the numbers of the first run; None if a run has none."""
    mine = first.valued_units(mode, metric)
    other = second.valued_units(mode, metric)
    if mine is None or other is None:
        return None
    return mine, first.table.renumbered(other, second.table)


def _headline(
    first: RunAggregator, second: RunAggregator, mode: Mode, metrics: Iterable[str]
) -> _Headline | None:
    """Return what is shown of the first of ``metrics`` that the mode is compared in; None if it is in none of them."""
    metric = next((each for each in metrics if mode in METRICS[each].compared_in), None)
    if metric is None:
        return None
    pair = _paired(first, second, mode, metric)
    assert pair is not None  # there is a difference
    samples = pair.by_sample()
    return _Headline(
        metric,
        pair.means,
        missing_between(first, second, mode, metric),
        _flips(metric, mode, samples, first, second),
        _by_cause(mode, samples, first, second) if metric == FAS else None,
    )


def _unpaired(first: RunAggregator, second: RunAggregator, mode: Mode) -> tuple[int, int]:
    """Return the numbers of samples with a valid record only in the first run, and only in the second."""
    mine, other = first.valid_ids(mode), second.valid_ids(mode)
    return len(mine - other), len(other - mine)


def _unread(
    first: RunAggregator, second: RunAggregator, mode: Mode, names: tuple[str, str]
) -> tuple[str, ...]:
    """Return the names of the runs whose replies could mostly not be read."""
    runs = zip((first, second), names, strict=True)
    return tuple(name for run, name in runs if run.modes[mode].is_unread)


def _withheld(
    first: RunAggregator, second: RunAggregator, mode: Mode, names: tuple[str, str]
) -> dict[str, str]:
    """Return the names of the runs whose own score is withheld, with the reason."""
    reasons = [run.modes[mode].withheld for run in (first, second)]
    return {name: reason for name, reason in zip(names, reasons, strict=True) if reason}


def _no_open_text(first: RunAggregator, second: RunAggregator, mode: Mode) -> tuple[int, int]:
    """Return the numbers of samples of both runs whose open text is not in FAS."""
    mine, other = first.modes[mode], second.modes[mode]
    return len(mine.without_open_text), len(other.without_open_text)


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
    for mode in _common_modes(first, second):
        theirs = second.metrics(mode)
        common = [metric for metric in first.metrics(mode) if metric in theirs]
        compared = [metric for metric in common if mode in METRICS[metric].compared_in][:1]
        guesses = [metric for metric in FLOOR_METRICS if metric in common]
        modes[mode] = {}
        for metric in (*compared, *guesses):
            mine = first.valued_units(mode, metric)
            other = second.valued_units(mode, metric)
            if mine is None or other is None:
                continue
            difference = estimate_unpaired(
                other.values,
                mine.values,
                other.clusters,
                mine.clusters,
                other.weights,
                mine.weights,
            )
            modes[mode][metric] = Metric(overall=difference)
            if metric in guesses:
                continue
            headline[mode] = metric
            means[mode] = (
                shown_mean(mine.values, mine.weights),
                shown_mean(other.values, other.weights),
            )
            missing = missing_unpaired(first, second, mode, metric)
            if missing is not None:
                lacking[mode] = missing
    compared_runs = RunComparison(
        first=names[0],
        second=names[1],
        paired=False,
        modes=modes,
        headline=headline,
        means=means,
        missing=lacking,
    )
    return with_comparisons_adjusted([compared_runs])[0]


class HeadlinePair(NamedTuple):
    """Paired values of two runs in the headline metric of a mode, with the cluster, weight and sample of each pair."""

    metric: str
    first: FloatArray
    second: FloatArray
    clusters: IntArray
    weights: FloatArray
    samples: Sequence[str] = ()

    @property
    def means(self) -> tuple[float, float]:
        """Means of both."""
        return shown_mean(self.first, self.weights), shown_mean(self.second, self.weights)


def check_same_samples(first: RunAggregator, second: RunAggregator) -> None:
    """Raise an error if a sample of a run was changed in its records, or differs between both runs.

    Raises:
        UsageError: the benchmark or the records of a run were changed.
    """
    for run in (first, second):
        of_modes = {sample for tally in run.modes.values() for sample in tally.changed}
        if of_modes:
            raise UsageError(
                f"these runs cannot be compared: in one of them, {changed_text(of_modes)}",
                hint="run it again; agrotools score RUN --allow-invalid scores the records as they are",
            )
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
    for metric in first.metrics(mode):
        if mode not in METRICS[metric].compared_in:
            continue
        pair = _paired(first, second, mode, metric)
        if pair is not None:
            return HeadlinePair(
                metric=metric,
                first=pair.first,
                second=pair.second,
                clusters=pair.clusters,
                weights=pair.weights,
                samples=first.table.ids(pair.samples),
            )
    return None


def _paired(
    first: RunAggregator,
    second: RunAggregator,
    mode: Mode,
    metric: str,
    samples: frozenset[str] = frozenset(),
) -> PairedUnits | None:
    """Return the pairs in a metric, of ``samples`` if it is not empty; None if the runs share no scored sample."""
    both = _common_units(first, second, mode, metric)
    if both is None:
        return None
    mine, other = both
    if samples:
        mine = _among(samples, mine, first.table)
    return paired_units(mine, other)


def _flips(
    metric: str, mode: Mode, pair: PairedUnits, first: RunAggregator, second: RunAggregator
) -> Flips:
    """Return the samples that the runs score differently; ``pair`` has one unit for each sample."""
    flips: list[Flip] = []
    names = first.table.ids(pair.samples)
    for name, mine, other in zip(names, pair.first.tolist(), pair.second.tolist(), strict=True):
        if abs(mine - other) <= ROUNDING:
            continue
        worse, better = (second.lost, first.lost) if mine > other else (first.lost, second.lost)
        cause = ""
        if worse and better and metric == FAS:
            # What both runs lose alike is no cause of the difference.
            lost = worse.beside(mode, name, min(mine, other), better)
            by_better = better.beside(mode, name, max(mine, other), worse)
            cause = largest_part({part: lost[part] - by_better.get(part, 0.0) for part in lost})
        flips.append(Flip(sample=name, first=mine, second=other, cause=cause))
    flips.sort(key=lambda flip: (-abs(flip.first - flip.second), flip.sample))
    up, down = (
        tuple(each for each in flips if (each.second > each.first) is is_up)
        for is_up in (True, False)
    )
    return Flips(metric=metric, up=up, down=down, n_equal=len(pair.samples) - len(flips))


def _by_cause(
    mode: Mode, pair: PairedUnits, first: RunAggregator, second: RunAggregator
) -> dict[str, Estimate] | None:
    """Return the points that the first run loses by each cause minus those that the second loses.

    They add up to the difference of the scores, second minus first. ``pair`` has one unit for each sample. None if the
    lost points of a run were not counted.
    """
    if first.lost is None or second.lost is None:
        return None
    lost: list[tuple[dict[str, float], dict[str, float]]] = []
    names = first.table.ids(pair.samples)
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
    differences: dict[str, Estimate] = {}
    for cause in ordered_parts(found):
        # Both runs, not their difference: the interval then knows that points are lost, and seldom gained.
        lost_by_first = [of_first.get(cause, 0.0) for of_first, _ in lost]
        lost_by_second = [of_second.get(cause, 0.0) for _, of_second in lost]
        differences[cause] = estimate_difference(
            lost_by_first, lost_by_second, pair.clusters, pair.weights
        )
    return differences


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
    update = {
        "between_runs": tuple(differences_between(summaries, aggregators)),
        "correlations": _correlations_between(summaries, aggregators),
    }
    return [each.model_copy(update=update) for each in together]


def _correlations_between(
    summaries: Sequence[Summary], aggregators: Sequence[RunAggregator]
) -> tuple[Correlation, ...]:
    """Return the correlations of steps with answers; none of fewer than three models or of several benchmarks."""
    models = [model_of_run(each.model) for each in summaries]
    if len({*filter(None, models)}) < MIN_MODELS or len({*map(_benchmark_of, summaries)}) > 1:
        return ()
    return tuple(correlations([*map(CorrelatedRun, models, aggregators)]))


def _benchmark_of(summary: Summary) -> tuple[str, str, str]:
    """Return what comparable runs share: benchmark, version and options."""
    options = sorted(summary.benchmark_options.items())
    return summary.benchmark, summary.benchmark_version, str(options)


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
    benchmarks = [*map(_benchmark_of, summaries)]
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
    return pair and pair.difference


def common_samples(aggregators: Sequence[RunAggregator], mode: Mode, metric: str) -> frozenset[str]:
    """Return the ids of the samples that every run has a score of."""
    ids: list[frozenset[str]] = []
    for each in aggregators:
        units = each.valued_units(mode, metric)
        if units is not None:
            ids.append(frozenset(each.table.ids(units.samples)))
    return frozenset[str].intersection(*ids) if ids else frozenset()


def mean_on(
    samples: frozenset[str], aggregator: RunAggregator, mode: Mode, metric: str
) -> Estimate | None:
    """Return the mean of a run over common samples (:func:`common_samples`); None if it has no score of any of them."""
    units = aggregator.valued_units(mode, metric)
    if units is None:
        return None
    units = _among(samples, units, aggregator.table)
    if not len(units.values):
        return None
    return estimate_mean(units.values, units.clusters, units.weights)


class CommonScores(NamedTuple):
    """Scores of samples that several runs share, with cluster and weight of each."""

    values: FloatArray
    clusters: list[str]
    weights: FloatArray


def values_on(
    samples: frozenset[str], aggregator: RunAggregator, mode: Mode, metric: str
) -> CommonScores:
    """Return the scores of common samples (:func:`common_samples`) in the order of their ids."""
    units = aggregator.valued_units(mode, metric)
    assert units is not None  # there are values of these samples
    units = _among(samples, units, aggregator.table)
    units = units.where(np.argsort(aggregator.table.ids(units.samples)))
    return CommonScores(units.values, aggregator.table.ids(units.clusters), units.weights)


def _among(samples: frozenset[str], units: ScoreUnits, table: ScoreTable) -> ScoreUnits:
    """Return the units of the samples with these ids."""
    return units.where(np.isin(table.ids(units.samples), [*samples]))


def headline_metrics(summary: Summary, tally: RunAggregator) -> list[tuple[Mode, str]]:
    """Return the modes and metrics that are compared between runs; none for a quick part."""
    return [
        (mode, each)
        for mode in MODES
        if mode in tally.modes and summary.modes[mode].headline and not summary.quick
        for each in tally.metrics(mode)
        if mode in METRICS[each].compared_in
    ]
