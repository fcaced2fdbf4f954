"""Which three bands tell drawn classes apart best: found with classifiers on pixels that the tool has not seen."""

import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from agrotools.tools.crop_weed.bands import CorrectCounts

BLOCK_PX = 160
"""Side of the blocks that are learnt from or tried on together: wider than a plant."""
_THIN = 3
_CELLS = 16

Values = NDArray[np.float64]
Guess = Callable[[Values], NDArray[np.intp]]
Learn = Callable[[list[Values]], Guess]
"""From the values of each class, (pixels, bands), to a function that gives pixels the number of a class."""


def tried(bands: NDArray[np.uint16], truth: NDArray[np.uint8], learn: Learn) -> tuple[CorrectCounts, CorrectCounts]:
    """What a classifier gets right with every three bands, in the order of :func:`itertools.combinations`.

    Blocks are the squares of a chequerboard. First: those of one colour, learnt from the other; second: the reverse.
    Every third pixel of every third row counts.

    Args:
        bands: (bands, rows, columns).
        truth: class 0, 1 or 2 of each pixel, (rows, columns).
    """
    values = bands[:, ::_THIN, ::_THIN].reshape(len(bands), -1).T / 1e4
    rows, columns = np.indices(truth.shape)[:, ::_THIN, ::_THIN].reshape(2, -1) // BLOCK_PX
    labels, fold = truth[::_THIN, ::_THIN].ravel(), (rows + columns) % 2
    cell = 3 * (rows * (columns.max() + 1) + columns) + labels
    size = 3 * (int(rows.max()) + 1) * (int(columns.max()) + 1)
    found: list[CorrectCounts] = []
    for number in (0, 1):
        on = fold == number
        learnt = [values[~on & (labels == label)] for label in range(3)]
        held_out, true, cells = values[on], labels[on], cell[on]
        right = [
            np.bincount(cells[learn([part[:, chosen] for part in learnt])(held_out[:, chosen]) == true], minlength=size)
            for chosen in itertools.combinations(range(len(bands)), 3)
        ]
        there = np.bincount(cells, minlength=size).reshape(-1, 3)
        found.append(
            CorrectCounts(np.stack(right).reshape(-1, *there.shape).astype(np.float64), there.astype(np.float64))
        )
    return found[0], found[1]


def together(halves: tuple[CorrectCounts, CorrectCounts]) -> CorrectCounts:
    """The counts of both colours of blocks."""
    return CorrectCounts(halves[0].right + halves[1].right, halves[0].there + halves[1].there)


def quadratic(classes: list[Values]) -> Guess:
    """Quadratic discriminant analysis with equal priors: each class is a Gaussian."""
    centres = [values.mean(axis=0) for values in classes]
    spreads = [np.cov(values, rowvar=False) + 1e-9 * np.eye(values.shape[1]) for values in classes]

    def guess(values: Values) -> NDArray[np.intp]:
        scores: list[Values] = []
        for centre, spread in zip(centres, spreads, strict=True):
            apart = values - centre
            distance = np.einsum("ij,ij->i", apart @ np.linalg.inv(spread), apart)
            scores.append(-0.5 * (distance + np.linalg.slogdet(spread)[1]))
        return np.argmax(scores, axis=0)

    return guess


def histogram(classes: list[Values]) -> Guess:
    """Each class is a histogram of 16 cells a band (equally filled by all classes together), shares smoothed by the
    cells beside; equal priors. It takes no class as Gaussian."""
    from scipy.ndimage import gaussian_filter

    size = classes[0].shape[1]
    each = min(len(values) for values in classes)
    pooled = np.concatenate([values[:: max(1, len(values) // each)] for values in classes])
    edges = np.quantile(pooled, np.linspace(0, 1, _CELLS + 1)[1:-1], axis=0)

    def cells(values: Values) -> NDArray[np.intp]:
        places = [np.searchsorted(edges[:, band], values[:, band]) for band in range(size)]
        return np.ravel_multi_index(places, (_CELLS,) * size)

    shares = [
        gaussian_filter(
            np.bincount(cells(values), minlength=_CELLS**size).reshape((_CELLS,) * size) / len(values), 0.7
        ).ravel()
        for values in classes
    ]
    best = np.argmax(shares, axis=0)
    return lambda values: best[cells(values)]


def among_best(counts: CorrectCounts, strict: bool = False) -> NDArray[np.bool_]:
    """Which triplets are one of the two most accurate, or (unless ``strict``) behind the second by no more than one
    standard error of the difference."""
    accuracy = counts.accuracy()
    first, second = np.argsort(-accuracy, kind="stable")[:2]
    best = np.isin(np.arange(len(accuracy)), (first, second))
    if strict:
        return best
    behind, error = counts.behind(int(second))
    return best | (behind <= error)
