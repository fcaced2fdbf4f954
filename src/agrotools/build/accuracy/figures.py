"""Figures: what the values of single images come to, and how sure that is.

Images are drawn from a world of images, so every interval is over images (or over the scenes they show, where several
show one), never over pixels or objects.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]
"""(images, columns): what each image contributes."""
Statistic = Callable[[Rows], float]
"""From rows to the figure; NaN where it cannot be had (of a resample without any object, for instance)."""

LEAST_CLUSTERS = 10
"""Under this many independent images a figure has no interval: it is shown without a claim."""
DRAWS = 4000
_LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Figure:
    """One measure of a tool on one folder.

    ``metric`` names the measure with its unit ("lesion severity, mean absolute error, points"). ``clusters`` says
    which images show the same scene; empty: each its own. ``goal`` is what we want to reach, if anything.
    """

    metric: str
    rows: Rows
    statistic: Statistic
    clusters: tuple[str, ...] = ()
    goal: float | None = None
    higher_is_better: bool = True
    note: str = ""


@dataclass(frozen=True)
class Estimate:
    """A figure's value and its 95 % interval, None under :data:`LEAST_CLUSTERS` independent images."""

    value: float
    low: float | None
    high: float | None
    n: int
    independent: int


def mean_of(metric: str, values: Sequence[float], **more: object) -> Figure:
    """The mean of one value per image."""
    return _figure(metric, np.asarray(values, np.float64)[:, None], lambda rows: float(rows[:, 0].mean()), more)


def median_of(metric: str, values: Sequence[float], **more: object) -> Figure:
    """The median of one value per image."""
    return _figure(metric, np.asarray(values, np.float64)[:, None], lambda rows: float(np.median(rows[:, 0])), more)


def ratio_of(metric: str, parts: Sequence[float], wholes: Sequence[float], **more: object) -> Figure:
    """Sum of ``parts`` over sum of ``wholes``: what is pooled over the pixels or objects of all images."""
    rows = np.column_stack([parts, wholes]).astype(np.float64)
    return _figure(metric, rows, lambda rows: _over(rows[:, 0].sum(), rows[:, 1].sum()), more)


def f1_of(metric: str, hits: Sequence[int], found: Sequence[int], there: Sequence[int], **more: object) -> Figure:
    """F1 of what was ``found`` against what is ``there``, pooled over images: 2 hits / (found + there)."""
    rows = np.column_stack([hits, found, there]).astype(np.float64)
    return _figure(metric, rows, lambda rows: _over(2 * rows[:, 0].sum(), rows[:, 1].sum() + rows[:, 2].sum()), more)


def concordance_of(metric: str, measured: Sequence[float], true: Sequence[float], **more: object) -> Figure:
    """Lin's concordance correlation coefficient (Lin 1989, Biometrics 45): agreement with the line of equality."""
    return _figure(metric, np.column_stack([measured, true]).astype(np.float64), _concordance, more)


def estimate(figure: Figure, seed: int = 0) -> Estimate:
    """The figure's value, and its interval by a bootstrap over clusters of images.

    Percentiles are taken a little further out than 2.5 and 97.5, as far as the t distribution of that many clusters
    asks for (Hesterberg 2015, The American Statistician 69).
    """
    rows = figure.rows
    if not len(rows):
        raise ValueError(f"{figure.metric}: no image was measured")
    if figure.clusters and len(figure.clusters) != len(rows):
        raise ValueError(f"{figure.metric}: {len(rows)} images and {len(figure.clusters)} cluster names")
    labels = figure.clusters or tuple(str(number) for number in range(len(rows)))
    members = [np.flatnonzero(np.asarray(labels) == label) for label in dict.fromkeys(labels)]
    value = figure.statistic(rows)
    if len(members) < LEAST_CLUSTERS:
        return Estimate(value, None, None, len(rows), len(members))
    from scipy.special import ndtr, stdtrit

    draws = np.random.default_rng(seed).integers(0, len(members), (DRAWS, len(members)))
    values = np.array([figure.statistic(rows[np.concatenate([members[k] for k in draw])]) for draw in draws])
    values = values[np.isfinite(values)]
    k = len(members)
    tail = float(ndtr(-stdtrit(k - 1, 1 - (1 - _LEVEL) / 2) * np.sqrt(k / (k - 1))))
    low, high = np.quantile(values, [tail, 1 - tail]) if len(values) else (np.nan, np.nan)
    return Estimate(value, float(low), float(high), len(rows), k)


def _figure(metric: str, rows: Rows, statistic: Statistic, more: dict[str, object]) -> Figure:
    return Figure(metric, rows, statistic, **more)  # pyright: ignore[reportArgumentType]


def _over(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")


def _concordance(rows: Rows) -> float:
    measured, true = rows.T
    gap = measured.mean() - true.mean()
    return _over(2 * float(np.mean((measured - measured.mean()) * (true - true.mean()))),
                 float(measured.var() + true.var() + gap**2))  # fmt: skip
