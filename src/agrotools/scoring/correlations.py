"""Correlations of the metrics of steps with the score of the answer, over models and over the samples of a run.

Tallies of runs come in; Pearson's coefficients with 95 % intervals go out. Over models, a point is a run: its means in
step-by-step and in end-to-end mode. Over samples, a point is a sample of one run: the mean of its steps, and its answer
end to end. Runs whose score is withheld in one of the two modes are left out.
"""

from collections.abc import Sequence
from typing import NamedTuple

from agrotools.core import Mode
from agrotools.core.lazy import FloatArray, IntArray, np, special
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.metrics import METRICS
from agrotools.scoring.score_table import ScoreUnits
from agrotools.scoring.statistics import BOOTSTRAP_DRAWS, LEVEL, MIN_CLUSTERS, Interval
from agrotools.scoring.summary import Correlation
from agrotools.scoring.unit_estimates import shown_mean

MIN_MODELS = 3
"""Fewest models with a coefficient: two points lie on a line, whatever they are."""
STEPS = ("st_acc", "tool_acc", "arg_acc", "summ_acc")
"""Metrics of steps that are correlated with the answer."""
_ON_A_LINE = 1 - 1e-9
"""Coefficient from which all points lie on a line, within rounding: it has no interval."""
_NODES = 64
"""Nodes of the quadrature over a chi variable: more change no interval by 0.0001."""
_BISECTIONS = 40
"""Bisections of the range of a coefficient; they leave 2e-12 of it."""
_TAIL = (1 - LEVEL) / 2


class CorrelatedRun(NamedTuple):
    """Run with the name of its model (:func:`model_of_run`)."""

    model: str
    tally: RunAggregator


def model_of_run(name: str) -> str:
    """Return the name of a model; empty for a baseline, which is not among the models."""
    return "" if name.startswith("baseline:") else name


def correlations(runs: Sequence[CorrelatedRun]) -> list[Correlation]:
    """Return the correlations over the models, if there are enough of them, then those over the samples of each run."""
    known = [(number, run) for number, run in enumerate(runs) if _has_both_modes(run.tally)]
    found: list[Correlation] = []
    of_models = [run for _, run in known if run.model]
    if len({run.model for run in of_models}) >= MIN_MODELS:
        found += _over_models(of_models)
    for number, run in known:
        found += _over_samples(run.tally, number)
    return found


def over_models(
    models: Sequence[str], steps: Sequence[float], answers: Sequence[float], names: tuple[str, str]
) -> Correlation:
    """Return the correlation of two means of each run; ``names``: the ids of the two metrics."""
    n, n_models = len(models), len(set(models))
    r = pearson(np.asarray(steps), np.asarray(answers), np.ones(n))
    # Several runs of one model are not independent.
    interval = exact_interval(r, n) if r is not None and n == n_models else None
    return Correlation(
        over="models",
        step=names[0],
        answer=names[1],
        r=r,
        interval=interval,
        n=n,
        n_clusters=n_models,
    )


def pearson(first: FloatArray, second: FloatArray, weights: FloatArray) -> float | None:
    """Return the weighted coefficient; None if all values of a variable are equal."""
    if not (np.ptp(first) and np.ptp(second)):
        return None
    (r,) = _coefficients(_moments(first, second, weights).sum(axis=0)[None])
    return float(r)


def exact_interval(r: float, n: int) -> Interval | None:
    """Return the exact 95 % interval of a coefficient of ``n`` >= 3 independent points of a bivariate normal
    distribution; None if the points lie on a line.

    With t = r / sqrt(1 - r²), the limits are quantiles of (t chi[n-2] - z) / chi[n-1], turned back the same way (Ruben
    1966, doi:10.1111/j.2517-6161.1966.tb00657.x). Given the last chi, the first two are a noncentral t.
    """
    if abs(r) >= _ON_A_LINE:
        return None
    degrees = n - 2
    t = r / np.sqrt(1 - r * r) * np.sqrt(degrees)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    chi = np.sqrt(2 * special.gammaincinv((n - 1) / 2, (nodes + 1) / 2))

    def share_below(rho: float) -> float:
        """Return the probability that the limit is below ``rho``."""
        shift = rho / np.sqrt(1 - rho * rho) * chi
        return 1 - float(np.sum(weights / 2 * special.nctdtr(degrees, shift, t)))

    def quantile(probability: float) -> float:
        low, high = -1.0, 1.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if share_below(middle) < probability:
                low = middle
            else:
                high = middle
        return (low + high) / 2

    return Interval(lower=quantile(_TAIL), upper=quantile(1 - _TAIL))


def _has_both_modes(tally: RunAggregator) -> bool:
    modes = (tally.modes.get("step-by-step"), tally.modes.get("end-to-end"))
    return all(mode is not None and not mode.withheld for mode in modes)


def _answer_metrics(tally: RunAggregator) -> list[str]:
    """Return the metrics that runs are compared by end to end."""
    return [
        metric
        for metric in tally.metrics("end-to-end")
        if "end-to-end" in METRICS[metric].compared_in
    ]


def _over_models(runs: Sequence[CorrelatedRun]) -> list[Correlation]:
    """Return the correlations of the metrics that all runs have."""
    models = [run.model for run in runs]
    found: list[Correlation] = []
    for answer in _answer_metrics(runs[0].tally):
        answers = _means(runs, "end-to-end", answer)
        for step in STEPS:
            steps = _means(runs, "step-by-step", step)
            if len(steps) == len(answers) == len(runs):
                found.append(over_models(models, steps, answers, (step, answer)))
    return found


def _means(runs: Sequence[CorrelatedRun], mode: Mode, metric: str) -> list[float]:
    """Return the mean of each run that has values of a metric."""
    units = [run.tally.valued_units(mode, metric) for run in runs]
    return [shown_mean(each.values, each.weights) for each in units if each is not None]


def _over_samples(tally: RunAggregator, number: int) -> list[Correlation]:
    """Return the correlations within a run, which has this number."""
    found: list[Correlation] = []
    for answer in _answer_metrics(tally):
        of_answers = tally.valued_units("end-to-end", answer)
        for step in STEPS:
            of_steps = tally.valued_units("step-by-step", step)
            if of_answers is None or of_steps is None:
                continue
            points = _points(of_steps, of_answers)
            if len(points.steps) < MIN_MODELS:
                continue
            r = pearson(points.steps, points.answers, points.weights)
            n_clusters = len(np.unique(points.clusters))
            interval = None
            if r is not None and n_clusters >= MIN_CLUSTERS:
                interval = _bootstrap_interval(points)
            found.append(
                Correlation(
                    over="samples",
                    run=number,
                    step=step,
                    answer=answer,
                    r=r,
                    interval=interval,
                    n=len(points.steps),
                    n_clusters=n_clusters,
                )
            )
    return found


class _Points(NamedTuple):
    """Samples with steps and an answer, as columns of equal length."""

    steps: FloatArray
    answers: FloatArray
    clusters: IntArray
    weights: FloatArray


def _points(of_steps: ScoreUnits, of_answers: ScoreUnits) -> _Points:
    """Return the means of the steps of each sample with its score; an answer has one unit for each sample."""
    samples, at, counts = np.unique(of_steps.samples, return_inverse=True, return_counts=True)
    means = np.bincount(at, weights=of_steps.values) / counts
    _, at_steps, at_answers = np.intersect1d(samples, of_answers.samples, return_indices=True)
    return _Points(
        means[at_steps],
        of_answers.values[at_answers],
        of_answers.clusters[at_answers],
        of_answers.weights[at_answers],
    )


def _bootstrap_interval(points: _Points) -> Interval | None:
    """Return the 95 % percentile interval over draws of clusters; None if a draw in twenty has no coefficient."""
    moments = _moments(points.steps, points.answers, points.weights)
    _, cluster = np.unique(points.clusters, return_inverse=True)
    n_clusters = int(cluster.max()) + 1
    of_clusters = np.zeros((n_clusters, moments.shape[1]))
    np.add.at(of_clusters, cluster, moments)
    drawn = np.random.default_rng(0).multinomial(
        n_clusters, [1 / n_clusters] * n_clusters, size=BOOTSTRAP_DRAWS
    )
    coefficients = _coefficients(drawn @ of_clusters)
    coefficients = coefficients[~np.isnan(coefficients)]
    if len(coefficients) < LEVEL * BOOTSTRAP_DRAWS:
        return None
    lower, upper = np.quantile(coefficients, [_TAIL, 1 - _TAIL]).tolist()
    return Interval(lower=lower, upper=upper)


def _moments(first: FloatArray, second: FloatArray, weights: FloatArray) -> FloatArray:
    """Return weight, weighted values, squares and product of each point; the values are centred against rounding."""
    x, y = first - first.mean(), second - second.mean()
    return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1) * weights[:, None]


def _coefficients(moments: FloatArray) -> FloatArray:
    """Return the coefficient of each row of summed moments; NaN if all values of a variable are equal."""
    total, x, y, xx, yy, xy = moments.T
    of_first, of_second = xx / total - (x / total) ** 2, yy / total - (y / total) ** 2
    both = xy / total - x * y / total**2
    varies = (of_first > _LEAST_VARIANCE) & (of_second > _LEAST_VARIANCE)
    scale = np.sqrt(np.where(varies, of_first * of_second, 1.0))
    return np.where(varies, np.clip(both / scale, -1, 1), np.nan)


_LEAST_VARIANCE = 1e-15
"""Variance of scores below which all values are equal, within rounding."""
