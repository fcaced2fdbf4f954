"""Unsupervised measures of change: how different each pixel is after its bands are brought to one radiometry.

They answer "does this look different?". Season, haze and shade look different too.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.vegetation import otsu_threshold

Unsupervised = Literal["cva", "irmad", "pca_kmeans"]

_SAMPLE_PX = 50_000
"""Statistics of larger pictures are taken from about this many pixels."""
_LEAST_SPREAD = 0.02
"""Of a band's own spread: differences of this size are rounding, however equal the two dates are."""
_LEAST_MAGNITUDE = 1.0
"""Change vectors of less than one robust spread are no change, whatever a threshold says."""
_ROUNDS = 30
_CONVERGED = 1e-4
_BLOCK = 5
"""Side of the blocks of PCA-k-means, pixels."""
_COMPONENTS = 6


@dataclass(frozen=True, eq=False)
class Difference:
    """``magnitude``: float32 (rows, columns), how different; ``threshold``: above it a pixel has changed."""

    magnitude: NDArray[np.float32]
    threshold: float


def matched(before: NDArray[np.float32], after: NDArray[np.float32], valid: NDArray[np.bool_]) -> NDArray[np.float32]:
    """``before`` with each band brought to the radiometry of ``after`` by a straight line.

    The line is fitted to pixels that did not change, found by fitting again to the half that lies nearest the line
    (pseudo-invariant features as in Schott et al. 1988, trimmed as in Rousseeuw's LTS): robust up to half the scene.

    Args:
        before, after: float32 (bands, rows, columns).
    """
    changed = np.empty_like(before)
    for number, (first, second) in enumerate(zip(before, after, strict=True)):
        x, y = (_thinned(band[valid]).astype(np.float64) for band in (first, second))
        gain, offset = _scale_and_middle(x, y)
        for _ in range(8):
            off = np.abs(y - gain * x - offset)
            near = off <= np.median(off)
            gain, offset = _reduced_major_axis(x[near], y[near], (gain, offset))
        changed[number] = first * np.float32(gain) + np.float32(offset)
    return changed


def change_vectors(before: NDArray[np.float32], after: NDArray[np.float32], valid: NDArray[np.bool_]) -> Difference:
    """Change vector analysis (Malila 1980): length of the difference, each band in its own robust spread."""
    total = np.zeros(valid.shape, np.float32)
    for first, second in zip(before, after, strict=True):
        difference = second - first
        least = _LEAST_SPREAD * float(_thinned(second[valid]).std())
        total += (difference / np.float32(max(_spread(_thinned(difference[valid])), least, 1e-9))) ** 2
    found = _cut(np.sqrt(total), valid)
    return Difference(found.magnitude, max(found.threshold, _LEAST_MAGNITUDE))


def iterated_mad(before: NDArray[np.float32], after: NDArray[np.float32], valid: NDArray[np.bool_]) -> Difference:
    """Iteratively reweighted multivariate alteration detection (Nielsen 2007, IEEE TIP 16): chi-square of the variates.

    It needs no radiometric normalisation: canonical variates do not change under one.
    """
    from scipy.special import chdtrc

    bands = before.shape[0]
    x, y = (np.stack([_thinned(band[valid]) for band in stack]).astype(np.float64) for stack in (before, after))
    weights = np.ones(x.shape[1])
    variates = _variates(x, y, weights)
    for _ in range(_ROUNDS):
        part = variates.a.T @ (x - variates.mean_x[:, None]) - variates.b.T @ (y - variates.mean_y[:, None])
        weights = chdtrc(bands, (part**2 / variates.variance[:, None]).sum(axis=0)) + 1e-9
        former, variates = variates, _variates(x, y, weights)
        if np.abs(variates.variance - former.variance).max() < _CONVERGED:
            break
    total = np.zeros(valid.shape, np.float32)
    for column in range(bands):
        offset = variates.mean_y @ variates.b[:, column] - variates.mean_x @ variates.a[:, column]
        variate = np.full(valid.shape, np.float32(offset))
        for band in range(bands):
            variate += before[band] * np.float32(variates.a[band, column])
            variate -= after[band] * np.float32(variates.b[band, column])
        total += variate**2 / np.float32(variates.variance[column])
    return _cut(np.sqrt(total), valid)


@dataclass(frozen=True, eq=False)
class _Variates:
    """Columns of ``a`` and ``b``: weights of the bands of either date; ``variance``: of the difference of each pair."""

    a: NDArray[np.float64]
    b: NDArray[np.float64]
    mean_x: NDArray[np.float64]
    mean_y: NDArray[np.float64]
    variance: NDArray[np.float64]


def _variates(x: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]) -> _Variates:
    """Canonical variates of unit variance of two sets of bands (bands, pixels)."""
    from scipy.linalg import eigh

    bands = x.shape[0]
    both = np.concatenate([x, y])
    mean = np.average(both, axis=1, weights=weights)
    off = both - mean[:, None]
    covariance = (off * (weights / weights.sum())) @ off.T + 1e-6 * np.eye(2 * bands)
    xx, xy, yy = covariance[:bands, :bands], covariance[:bands, bands:], covariance[bands:, bands:]
    squared, a = eigh(xy @ np.linalg.solve(yy, xy.T), xx)
    b = np.linalg.solve(yy, xy.T @ a)
    length = np.sqrt(np.maximum(np.einsum("ij,ik,kj->j", b, yy, b), 0))
    b = b / np.maximum(length, 1e-12)
    rho = np.sqrt(np.clip(squared, 0, 1))
    return _Variates(a, b, mean[:bands], mean[bands:], np.maximum(2 * (1 - rho), 1e-9))


def pca_kmeans(before: NDArray[np.float32], after: NDArray[np.float32], valid: NDArray[np.bool_]) -> Difference:
    """PCA and k-means on blocks of the difference picture (Celik 2009, IEEE GRSL 6), two clusters.

    The magnitude is the position between the two cluster means, 0 to 1 and beyond; above 0.5 a pixel has changed.
    """
    import cv2

    # Basis functions of the principal components are filters: the feature vectors need not be laid out in memory.
    difference = np.where(valid, change_vectors(before, after, valid).magnitude, 0).astype(np.float32)
    if float(difference.max()) < _LEAST_MAGNITUDE:
        return Difference(np.zeros_like(difference), 0.5)
    padded = cv2.copyMakeBorder(difference, _BLOCK // 2, _BLOCK // 2, _BLOCK // 2, _BLOCK // 2, cv2.BORDER_REFLECT)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (_BLOCK, _BLOCK))
    blocks = windows[::_BLOCK, ::_BLOCK].reshape(-1, _BLOCK * _BLOCK)
    blocks = blocks[:: max(1, len(blocks) // _SAMPLE_PX)].astype(np.float64)
    off = blocks - blocks.mean(axis=0)
    _, vectors = np.linalg.eigh(off.T @ off)
    basis = vectors[:, ::-1][:, :_COMPONENTS].T.reshape(-1, _BLOCK, _BLOCK)
    features = np.stack([cv2.filter2D(difference, cv2.CV_32F, part, borderType=cv2.BORDER_REFLECT) for part in basis])
    sample = np.stack([_thinned(feature[valid]) for feature in features], axis=1)
    strength = (sample**2).sum(axis=1)
    strong = strength > np.median(strength)
    if not strong.any():
        strong = strength >= np.median(strength)
    weak = ~strong if not strong.all() else strong
    low, high = sample[weak].mean(axis=0), sample[strong].mean(axis=0)
    for _ in range(50):
        nearer = ((sample - high) ** 2).sum(axis=1) < ((sample - low) ** 2).sum(axis=1)
        if nearer.all() or not nearer.any():
            break
        moved = sample[~nearer].mean(axis=0), sample[nearer].mean(axis=0)
        if np.allclose(moved[0], low) and np.allclose(moved[1], high):
            break
        low, high = moved
    axis = high - low
    length = max(float(axis @ axis), 1e-12)
    place = np.tensordot(axis, features, axes=1) - np.float32(axis @ low)
    return Difference(np.where(valid, place / np.float32(length), 0).astype(np.float32), 0.5)


def difference_of(
    method: Unsupervised, before: NDArray[np.float32], after: NDArray[np.float32], valid: NDArray[np.bool_]
) -> Difference:
    """The measure of that name on bands (bands, rows, columns); what is not ``valid`` counts nowhere."""
    before, after = (np.where(valid, bands, 0).astype(np.float32) for bands in (before, after))
    if method == "irmad":
        return iterated_mad(before, after, valid)
    before = matched(before, after, valid)
    return change_vectors(before, after, valid) if method == "cva" else pca_kmeans(before, after, valid)


def _cut(magnitude: NDArray[np.float32], valid: NDArray[np.bool_]) -> Difference:
    sample = _thinned(magnitude[valid])
    # Otsu's threshold on a long tail is drawn to the tail: the largest hundredth is set aside.
    top = float(np.quantile(sample, 0.99))
    return Difference(np.where(valid, magnitude, 0).astype(np.float32), otsu_threshold(np.minimum(sample, top)))


def _thinned(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return values[:: max(1, values.size // _SAMPLE_PX)]


def _spread(values: NDArray[np.float32]) -> float:
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))


def _scale_and_middle(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    wide_x, wide_y = (float(np.subtract(*np.quantile(values, (0.75, 0.25)))) for values in (x, y))
    gain = wide_y / wide_x if wide_x > 0 and wide_y > 0 else 1.0
    return gain, float(np.median(y) - gain * np.median(x))


def _reduced_major_axis(
    x: NDArray[np.float64], y: NDArray[np.float64], former: tuple[float, float]
) -> tuple[float, float]:
    """A line that treats both dates alike, so that swapping them gives the inverse line."""
    wide_x, wide_y = float(x.std()), float(y.std())
    if wide_x <= 0 or wide_y <= 0 or np.mean((x - x.mean()) * (y - y.mean())) <= 0:
        return former
    gain = wide_y / wide_x
    return gain, float(y.mean() - gain * x.mean())
