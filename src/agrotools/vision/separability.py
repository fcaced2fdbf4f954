"""How well bands tell classes apart: Jeffries-Matusita distance and optimum index factor, for every three bands.

JM distance of two normally distributed classes (Swain and Davis 1978, Remote Sensing: The Quantitative Approach): 0
where they are alike, 2 where they do not overlap. OIF (Chavez, Berlin and Sowers 1982, J. Applied Photographic
Engineering 8): sum of the standard deviations over the sum of the absolute correlations; it looks at no classes.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEAST_PIXELS = 30
"""Pixels that a class needs: fewer say nothing of a covariance."""
MOST_PIXELS = 20_000
"""Per class; more are thinned evenly."""
RIDGE = 1e-6
"""Share of each band's pooled variance that is added to every covariance, so that constant and repeated bands do not
make it singular."""
MOST_BANDS = 24

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class TripletSeparability:
    """Three bands: ``jm`` per pair of classes ("crop/soil"), ``min_jm`` the least of them, ``mean_jm`` their mean,
    ``oif`` of the bands."""

    bands: tuple[str, ...]
    jm: dict[str, float]
    min_jm: float
    mean_jm: float
    worst_pair: str
    oif: float | None


def jm_distance(mean_a: Matrix, cov_a: Matrix, mean_b: Matrix, cov_b: Matrix) -> float:
    """JM = 2 (1 - exp(-B)) with the Bhattacharyya distance B of two Gaussian classes, 0 to 2.

    Args:
        mean_a, mean_b: (bands,).
        cov_a, cov_b: (bands, bands), positive definite.

    Raises:
        numpy.linalg.LinAlgError: a covariance is not positive definite.
    """
    pooled = (cov_a + cov_b) / 2
    apart = mean_a - mean_b
    halves = [2 * float(np.log(np.diagonal(np.linalg.cholesky(cov))).sum()) for cov in (pooled, cov_a, cov_b)]
    bhattacharyya = float(apart @ np.linalg.solve(pooled, apart)) / 8 + (halves[0] - (halves[1] + halves[2]) / 2) / 2
    return -2 * math.expm1(-max(0.0, bhattacharyya)) + 0.0


def optimum_index_factor(deviations: NDArray[np.float64], correlations: Matrix) -> float | None:
    """Sum of standard deviations over sum of absolute correlations of each pair of bands; None where that is 0."""
    shared = float(np.abs(correlations[np.triu_indices(len(deviations), 1)]).sum())
    return float(deviations.sum() / shared) if shared > 0 else None


def rank_triplets(
    bands: Mapping[str, NDArray[np.generic]], classes: Mapping[str, NDArray[np.bool_]], size: int = 3
) -> list[TripletSeparability]:
    """Every ``size`` bands, best first: by the JM distance of the two classes that they tell apart worst.

    Args:
        bands: name to values (rows, columns); pixels that are not finite in any band are left out.
        classes: name to the pixels of the class, bool (rows, columns); those with under 30 pixels are left out.
        size: how many bands are combined.

    Returns:
        An empty list where there are fewer than ``size`` bands or fewer than two classes with enough pixels.

    Raises:
        ValueError: more than 24 bands.
    """
    names = list(bands)
    if len(names) > MOST_BANDS:
        raise ValueError(f"{len(names)} bands; at most {MOST_BANDS} are combined")
    if len(names) < size:
        return []
    samples = {name: sample for name, mask in classes.items() if len(sample := _sample(bands, mask)) >= LEAST_PIXELS}
    if len(samples) < 2:
        return []
    pooled = np.concatenate(list(samples.values()))
    variance = np.maximum(pooled.var(axis=0, ddof=1), 1e-30)
    ridge = np.diag(RIDGE * variance)
    deviations = np.sqrt(variance)
    with np.errstate(invalid="ignore", divide="ignore"):  # a constant band is correlated with none
        correlations = np.atleast_2d(np.corrcoef(pooled, rowvar=False))
    correlations = np.where(np.isfinite(correlations), correlations, 0.0)
    gaussians = {name: (part.mean(axis=0), np.cov(part, rowvar=False) + ridge) for name, part in samples.items()}
    ranked = [
        _triplet(names, chosen, gaussians, deviations, correlations)
        for chosen in itertools.combinations(range(len(names)), size)
    ]
    return sorted(ranked, key=lambda item: -item.min_jm)


def _triplet(
    names: Sequence[str],
    chosen: tuple[int, ...],
    gaussians: Mapping[str, tuple[Matrix, Matrix]],
    deviations: NDArray[np.float64],
    correlations: Matrix,
) -> TripletSeparability:
    index = np.array(chosen)
    square = np.ix_(index, index)
    jm = {
        f"{a}/{b}": jm_distance(gaussians[a][0][index], gaussians[a][1][square], gaussians[b][0][index],
                                gaussians[b][1][square])
        for a, b in itertools.combinations(gaussians, 2)
    }  # fmt: skip
    worst = min(jm, key=lambda pair: jm[pair])
    return TripletSeparability(
        bands=tuple(names[place] for place in chosen),
        jm=jm,
        min_jm=jm[worst],
        mean_jm=sum(jm.values()) / len(jm),
        worst_pair=worst,
        oif=optimum_index_factor(deviations[index], correlations[square]),
    )


def _sample(bands: Mapping[str, NDArray[np.generic]], mask: NDArray[np.bool_]) -> Matrix:
    """Pixels of a class, (pixels, bands), thinned evenly to at most 20,000."""
    places = np.flatnonzero(mask)
    places = places[:: max(1, -(-len(places) // MOST_PIXELS))]
    values = np.stack([np.asarray(band).reshape(-1)[places].astype(np.float64) for band in bands.values()], axis=1)
    return values[np.isfinite(values).all(axis=1)]
