"""Does getting the steps right go with getting the answer right? Correlations over the samples of a run."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agrotools.scoring.sample_table import SampleTable
from agrotools.scoring.statistics import MIN_CLUSTERS, Interval
from agrotools.scoring.summary import Correlation
from agrotools.scoring.units import Units, clusters_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.int64]

OUTCOMES = ("agrotools.fas",)
_DRAWS = 1000


def correlations(steps: Mapping[str, Units], outcomes: Mapping[str, Units], table: SampleTable) -> list[Correlation]:
    """Each metric of ``steps`` with the outcome, over the samples that have a value of both."""
    found: list[Correlation] = []
    for outcome in OUTCOMES:
        if outcome not in outcomes:
            continue
        own = _by_sample(outcomes[outcome])
        for step, units in steps.items():
            other = _by_sample(units)
            shared = sorted(own.keys() & other.keys())
            if shared:
                found.append(_correlation(step, outcome, shared, other, own, table))
    return found


def _by_sample(units: Units) -> dict[int, float]:
    """The mean of the units of each sample, of those that have a value."""
    totals: dict[int, list[float]] = {}
    for sample, value in zip(units.samples.tolist(), units.values.tolist(), strict=True):
        if value == value:  # not NaN
            totals.setdefault(sample, []).append(value)
    return {sample: sum(values) / len(values) for sample, values in totals.items()}


def _correlation(
    step: str,
    outcome: str,
    shared: Sequence[int],
    first: Mapping[int, float],
    second: Mapping[int, float],
    table: SampleTable,
) -> Correlation:
    import numpy as np

    x, y = (np.array([values[sample] for sample in shared]) for values in (first, second))
    _, at = np.unique(clusters_of(np.array(shared), table), return_inverse=True)
    k = int(at.max()) + 1
    rows = (np.ones(len(x)), x, y, x * x, y * y, x * y)
    columns = np.stack([np.bincount(at, weights=row, minlength=k) for row in rows], axis=1)
    r = float(_r(columns.sum(axis=0, keepdims=True))[0])
    if np.isnan(r):
        return Correlation(step=step, outcome=outcome, r=None, n=len(shared))
    if k < MIN_CLUSTERS:
        return Correlation(step=step, outcome=outcome, r=r, n=len(shared))
    drawn = np.random.default_rng(0).multinomial(k, np.full(k, 1 / k), size=_DRAWS).astype(np.float64)
    resampled = _r(drawn @ columns)
    lower, upper = np.nanpercentile(resampled, [2.5, 97.5]).tolist()
    return Correlation(step=step, outcome=outcome, r=r, n=len(shared), interval=Interval(lower=lower, upper=upper))


def _r(sums: "FloatArray") -> "FloatArray":
    """Pearson's r of each row: number of samples, sums of both values, of their squares, and of their product."""
    import numpy as np

    n, x, y, xx, yy, xy = sums.T
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.sqrt(np.maximum(n * xx - x * x, 0) * np.maximum(n * yy - y * y, 0))
        return np.where(spread > 1e-9, np.clip((n * xy - x * y) / spread, -1, 1), np.nan)
