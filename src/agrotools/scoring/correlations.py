"""Correlations of step metrics with outcome metrics, over the samples of a run and over the runs on one benchmark.

GTA (arXiv 2407.08713, Figure 5) and ThinkGeo (arXiv 2505.23752, Figure 5) print Pearson's r of their four step metrics
with AnsAcc over the models that they ran. Here each step metric is correlated with each outcome metric, both for the
metrics of agrotools and for those of the benchmark's paper.
"""

import math
from collections.abc import Mapping, Sequence

from agrotools.core.base import FloatArray, np
from agrotools.scoring.metrics import FAS, FLOOR_METRICS, STEP_METRICS, is_outcome
from agrotools.scoring.statistics import MIN_CLUSTERS, Interval, least_correlation
from agrotools.scoring.summary import AcrossRuns, Correlation, ModeSummary, RunCorrelation, Summary
from agrotools.scoring.units import SampleTable, Units, clusters_of

_DRAWS = 1000


def correlations(steps: Mapping[str, Units], outcomes: Mapping[str, Units], table: SampleTable) -> list[Correlation]:
    """Correlate each metric of ``steps`` with FAS, over the samples that have both values."""
    scores = _by_sample(outcomes[FAS]) if FAS in outcomes else {}
    pairs = ((step, _by_sample(units)) for step, units in steps.items()) if scores else ()
    return [_correlation(step, values, scores, table) for step, values in pairs if values.keys() & scores.keys()]


def _by_sample(units: Units) -> dict[int, float]:
    """Return the mean of the units of each sample; NaN units are left out."""
    totals: dict[int, list[float]] = {}
    for sample, value in zip(units.samples.tolist(), units.values.tolist(), strict=True):
        if value == value:  # not NaN
            totals.setdefault(sample, []).append(value)
    return {sample: sum(values) / len(values) for sample, values in totals.items()}


def _correlation(step: str, first: Mapping[int, float], second: Mapping[int, float], table: SampleTable) -> Correlation:
    shared = sorted(first.keys() & second.keys())
    x, y = (np.array([values[sample] for sample in shared]) for values in (first, second))
    _, at = np.unique(clusters_of(np.array(shared), table), return_inverse=True)
    k = int(at.max()) + 1
    rows = (np.ones(len(x)), x, y, x * x, y * y, x * y)
    columns = np.stack([np.bincount(at, weights=row, minlength=k) for row in rows], axis=1)
    r = float(_r(columns.sum(axis=0, keepdims=True))[0])
    correlation = Correlation(step=step, outcome=FAS, r=None if np.isnan(r) else r, n=len(shared))
    if correlation.r is None or k < MIN_CLUSTERS:
        return correlation
    resamples = np.random.default_rng(0).multinomial(k, np.full(k, 1 / k), size=_DRAWS).astype(np.float64)
    lower, upper = np.nanpercentile(_r(resamples @ columns), [2.5, 97.5]).tolist()
    return correlation.model_copy(update={"interval": Interval(lower=lower, upper=upper)})


def _r(sums: FloatArray) -> FloatArray:
    """Return Pearson's r of each row; NaN if a value is constant.

    The columns are the number of samples, the sums of both values, of their squares and of their product."""
    n, x, y, xx, yy, xy = sums.T
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.sqrt(np.maximum(n * xx - x * x, 0) * np.maximum(n * yy - y * y, 0))
        return np.where(spread > 1e-9, np.clip((n * xy - x * y) / spread, -1, 1), np.nan)


MIN_RUNS = 3
PAPER_STEPS = ("inst_acc", "tool_acc", "arg_acc", "summ_acc", "summ_acc_objective")
PAPER_OUTCOMES = ("ans_acc", "ans_acc_objective", "ans_acc_imggen", "ans_i")
_Z = 1.959963984540054


def with_correlations(summaries: Sequence[Summary]) -> list[Summary]:
    """Return the summaries, each with the correlations over all runs with the same benchmark and options."""
    of = {
        key: across_runs([each for each in summaries if benchmark_key(each) == key])
        for key in map(benchmark_key, summaries)
    }
    return [each.model_copy(update={"across_runs": of[benchmark_key(each)]}) for each in summaries]


def across_runs(summaries: Sequence[Summary]) -> AcrossRuns | None:
    """Return the correlations over runs on one benchmark; None if fewer than three runs count.

    A run counts if it has both modes with few invalid records and its policy did not see the gold: ceiling runs would
    make any two metrics correlate.
    """
    counted: list[Summary] = []
    left_out: dict[str, list[str]] = {}
    for each in summaries:
        if reason := _not_counted(each):
            left_out.setdefault(reason, []).append(each.model)
        else:
            counted.append(each)
    if len(counted) < MIN_RUNS:
        return None
    steps, outcomes = ([values(each) for each in counted] for values in (_steps, _outcomes))
    return AcrossRuns(
        benchmark=counted[0].benchmark,
        benchmark_version=counted[0].benchmark_version,
        runs=tuple(each.model for each in counted),
        left_out={reason: tuple(models) for reason, models in left_out.items()},
        least_r=least_correlation(len(counted)),
        correlations=tuple(
            value
            for step in _names(steps)
            for outcome in _names(outcomes)
            if _metric_source(step) == _metric_source(outcome)
            and (value := _run_correlation(step, outcome, steps, outcomes)) is not None
        ),
    )


def benchmark_key(summary: Summary) -> tuple[str, str, str]:
    """Return the key of comparable runs: benchmark, benchmark version and options."""
    return (summary.benchmark, summary.benchmark_version, str(sorted(summary.benchmark_options.items())))


def _not_counted(summary: Summary) -> str:
    parts = [summary.modes.get("step-by-step"), summary.modes.get("end-to-end")]
    if summary.privileged:
        return "privileged"
    if None in parts:
        return "lacks one of the modes step-by-step and end-to-end"
    return "" if all(part and part.headline for part in parts) else "has no headline in one of the modes"


def _steps(summary: Summary) -> dict[str, float]:
    ours = [metric for metric in STEP_METRICS if metric not in FLOOR_METRICS]
    return _values(summary.modes["step-by-step"], ours, PAPER_STEPS)


def _outcomes(summary: Summary) -> dict[str, float]:
    # The guess score is the same for all runs.
    part = summary.modes["end-to-end"]
    ours = [name for name in part.metrics if is_outcome(name) and name not in FLOOR_METRICS]
    return _values(part, ours, PAPER_OUTCOMES)


def _values(part: ModeSummary, ours: Sequence[str], papers: Sequence[str]) -> dict[str, float]:
    """Return the values of the mode by metric: ``ours``, then ``papers`` as published and corrected."""
    values = {metric: part.metrics[metric].overall.value for metric in ours if metric in part.metrics}
    if part.published is not None:
        family, reference, corrected = part.published.family, part.published.reference, part.published.corrected
        for name in papers:
            if (value := reference.get(f"{family}.{name}")) is not None:
                values[f"{family}.{name}"] = value
            if (estimate := corrected.get(f"{family}.{name}_corrected")) is not None:
                values[f"{family}.{name}_corrected"] = estimate.value
    return values


def _metric_source(metric: str) -> tuple[str, bool]:
    """Return the source of a metric and True if it is corrected; only metrics with the same values are correlated."""
    return metric.rpartition(".")[0], metric.endswith("_corrected")


def _names(of_runs: Sequence[Mapping[str, float]]) -> list[str]:
    return list(dict.fromkeys(name for values in of_runs for name in values))


def _run_correlation(
    step: str, outcome: str, steps: Sequence[Mapping[str, float]], outcomes: Sequence[Mapping[str, float]]
) -> RunCorrelation | None:
    """Return the correlation over the runs that have both metrics; None if there are fewer than three."""
    pairs = [
        (x_of[step], other[outcome])
        for x_of, other in zip(steps, outcomes, strict=True)
        if step in x_of and outcome in other and math.isfinite(x_of[step]) and math.isfinite(other[outcome])
    ]
    if len(pairs) < MIN_RUNS:
        return None
    from scipy.stats import rankdata  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    x, y = (np.array(values, dtype=np.float64) for values in zip(*pairs, strict=True))
    r = _pearson(x, y)
    return RunCorrelation(
        step=step,
        outcome=outcome,
        n=len(pairs),
        pearson=r,
        spearman=_pearson(rankdata(x), rankdata(y)),
        interval=_interval(r, len(pairs)),
    )


def _pearson(x: FloatArray, y: FloatArray) -> float | None:
    dx, dy = x - x.mean(), y - y.mean()
    spread = math.sqrt(float(dx @ dx) * float(dy @ dy))
    return max(-1.0, min(1.0, float(dx @ dy) / spread)) if spread > 1e-12 else None


def _interval(r: float | None, n: int) -> Interval | None:
    if r is None or n < MIN_CLUSTERS or abs(r) > 1 - 1e-12:
        return None
    z, half = math.atanh(r), _Z / math.sqrt(n - 3)
    return Interval(lower=math.tanh(z - half), upper=math.tanh(z + half))
