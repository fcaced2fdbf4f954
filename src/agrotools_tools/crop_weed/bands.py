"""Separability of classes for every three bands: classifier accuracy, Jeffries-Matusita (JM) distance and OIF.

Triplets are ranked by expected accuracy: that of the better of two classifiers with equal priors. One assumes Gaussian
classes (quadratic discriminant analysis; Hastie, Tibshirani and Friedman 2009, The Elements of Statistical Learning,
section 4.3), the other does not (a smoothed histogram of 12 x 12 x 12 cells). Both are trained on three of four sets of
blocks and tested on the fourth, in turn. Blocks are used instead of pixels because neighbouring pixels belong to the
same plant (Roberts et al. 2017, Ecography 40). The JM distance alone does not suffice: it assumes Gaussian classes, and
a class of several species in light and shadow need not be Gaussian.

The JM distance of two normally distributed classes (Swain and Davis 1978, Remote Sensing: The Quantitative Approach) is
0 if they are equal and 2 if they do not overlap. The optimum index factor (OIF; Chavez, Berlin and Sowers 1982, J.
Applied Photographic Engineering 8) is the sum of the standard deviations over the sum of the absolute correlations; it
does not depend on the classes.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from agrotools.calling.pictures import raster_roles
from agrotools.core import SampleFile, ToolError
from agrotools.text.agronomy import jeffries_matusita
from agrotools.vision import Box
from agrotools.vision.rasters import RasterSource
from agrotools_tools.crop_weed.result import (
    CROP,
    PLANTS,
    SOIL,
    WEED,
    BandTriplet,
    ClassesFrom,
    Separability,
)

LEAST_PIXELS = 30
"""Least number of pixels of a class; fewer are not enough to estimate a covariance."""
MOST_PIXELS = 20_000
"""Largest number of pixels per class; larger classes are thinned evenly."""
RIDGE = 1e-6
"""Share of each band's pooled variance added to every covariance, for constant and repeated bands."""
MOST_BANDS = 24
"""Most bands of which all triplets are tested; 24 bands have 2024."""
MAX_CLASSIFIED_TRIPLETS = 40
"""Number of triplets tested with the classifier, those of the largest ``min_jm``; covers all triplets of six bands."""
CLASSIFIER_PIXELS = 5_000
"""Largest number of pixels per class for training and testing the classifier."""
TIE_JM = 0.01
"""Difference of JM distances below which two triplets are tied."""
_BLOCKS = 6
"""Number of blocks along the shorter side."""
_CELLS = 12
"""Number of cells of a histogram along each band."""
_SMOOTH = 1.0
"""Standard deviation of the Gaussian that smooths the histograms, cells."""

Matrix = NDArray[np.float64]


class _Sample(NamedTuple):
    """Pixels of a class, (pixels, bands), and the block number of each pixel, (pixels,)."""

    values: Matrix
    blocks: NDArray[np.int64]


def _thinned(values: NDArray[Any], most: int) -> NDArray[Any]:
    """Return at most this number of rows, evenly chosen."""
    return values[:: max(1, -(-len(values) // most))]


def rank_triplets(
    bands: Mapping[str, NDArray[np.generic]], classes: Mapping[str, NDArray[np.bool_]]
) -> list[BandTriplet]:
    """Rank all combinations of three bands, best first: by expected accuracy, then the ones without it by the
    smallest JM distance of two classes; empty with fewer than three bands or two classes of 30 pixels. The accuracy
    is computed for the 40 combinations of the largest JM distance, and for none if a class has under 30 pixels
    outside one of the four sets of blocks. Pixels that are not finite in any band are left out. ValueError: more
    than 24 bands."""
    names = list(bands)
    if len(names) > MOST_BANDS:
        raise ValueError(f"{len(names)} bands; at most {MOST_BANDS} are combined")
    if len(names) < 3:
        return []
    samples = {
        name: sample
        for name, mask in classes.items()
        if len((sample := _sample(bands, mask)).values) >= LEAST_PIXELS
    }
    if len(samples) < 2:
        return []
    pooled = np.concatenate([sample.values for sample in samples.values()])
    variance = np.maximum(pooled.var(axis=0, ddof=1), 1e-30)
    ridge = np.diag(RIDGE * variance)
    deviations = np.sqrt(variance)
    with np.errstate(
        invalid="ignore", divide="ignore"
    ):  # correlations of a constant band are not defined
        correlations = np.atleast_2d(np.corrcoef(pooled, rowvar=False))
    correlations = np.where(np.isfinite(correlations), correlations, 0.0)
    gaussians = {name: _gaussian(sample.values, ridge) for name, sample in samples.items()}
    by_jm = sorted(
        (
            _triplet(names, chosen, gaussians, deviations, correlations)
            for chosen in itertools.combinations(range(len(names)), 3)
        ),
        key=lambda item: -item.min_jm,
    )
    tried = [
        tuple(names.index(name) for name in one.bands) for one in by_jm[:MAX_CLASSIFIED_TRIPLETS]
    ]
    counts = _count_correct(list(samples.values()), tried, ridge)
    if counts is None:
        return [
            one.model_copy(update={"tied": by_jm[0].min_jm - one.min_jm <= TIE_JM}) for one in by_jm
        ]
    accuracy = counts.accuracy()
    order = sorted(range(len(tried)), key=lambda place: -accuracy[place])
    behind, error = counts.behind(order[0])
    return [
        *(
            by_jm[k].model_copy(
                update={
                    "expected_accuracy": float(accuracy[k]),
                    "tied": bool(behind[k] <= error[k]),
                }
            )
            for k in order
        ),
        *by_jm[MAX_CLASSIFIED_TRIPLETS:],
    ]


class CorrectCounts(NamedTuple):
    """Correct pixels (triplets, blocks, classes), and all pixels (blocks, classes)."""

    correct: Matrix
    total: Matrix

    def accuracy(self) -> Matrix:
        """Return the mean over classes of the share of correct pixels, (triplets,)."""
        return (self.correct.sum(axis=1) / self.total.sum(axis=0)).mean(axis=1)

    def behind(self, first: int) -> tuple[Matrix, Matrix]:
        """Return the loss of accuracy of each triplet against the ``first``, and its standard error over blocks.

        The error is linearised for a ratio of sums over blocks (Cochran 1977, Sampling Techniques, chapter 6).
        """
        class_totals = self.total.sum(axis=0)
        apart = self.correct[first] - self.correct
        by_class = apart.sum(axis=1) / class_totals
        stray = ((apart - self.total * by_class[:, None]) / class_totals).mean(axis=2)
        blocks = np.count_nonzero(self.total.sum(axis=1))
        error = np.sqrt((stray**2).sum(axis=1) * blocks / max(blocks - 1, 1))
        return by_class.mean(axis=1), error


def _count_correct(
    samples: Sequence[_Sample], triplets: Sequence[tuple[int, ...]], ridge: Matrix
) -> CorrectCounts | None:
    """Count the correct pixels of the better classifier for each triplet, in four folds over blocks."""
    parts = [_Sample(*(_thinned(part, CLASSIFIER_PIXELS) for part in sample)) for sample in samples]
    values, block_of = (
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.blocks for part in parts]),
    )
    total = np.stack(
        [np.bincount(part.blocks, minlength=1 + int(block_of.max())) for part in parts], axis=1
    )
    correct = np.zeros((2, len(triplets), *total.shape))
    labels = np.repeat(np.arange(len(parts)), total.sum(axis=0))
    for fold in range(4):
        held_out = block_of % 4 == fold
        training = [part.values[part.blocks % 4 != fold] for part in parts]
        if min(len(one) for one in training) < LEAST_PIXELS:
            return None
        gaussians = [_gaussian(one, ridge) for one in training]
        cells = _cells(training, values)
        for place, chosen in enumerate(triplets):
            guesses = (
                np.argmax(_likelihoods(values[held_out], chosen, gaussians), axis=0),
                _guess_by_histogram(cells, chosen, labels, held_out),
            )
            for number, guess in enumerate(guesses):
                hit = guess == labels[held_out]
                count = np.bincount(
                    (block_of * len(parts) + labels)[held_out][hit], minlength=total.size
                )
                correct[number, place] += count.reshape(total.shape)
    all_px = total.astype(np.float64)
    better = np.argmax([CorrectCounts(one, all_px).accuracy() for one in correct], axis=0)
    return CorrectCounts(correct[better, np.arange(len(triplets))], all_px)


def _cells(training: Sequence[Matrix], values: Matrix) -> NDArray[np.intp]:
    """Return the cell of each value in each band, (pixels, bands)."""
    each = min(len(one) for one in training)
    evened = np.concatenate([one[:: max(1, len(one) // each)] for one in training])
    cuts = np.quantile(evened, np.arange(1, _CELLS) / _CELLS, axis=0)
    return np.stack(
        [np.searchsorted(cut, band) for cut, band in zip(cuts.T, values.T, strict=True)], axis=1
    )


def _guess_by_histogram(
    cells: NDArray[np.intp],
    chosen: tuple[int, ...],
    labels: NDArray[np.int64],
    held_out: NDArray[np.bool_],
) -> NDArray[np.intp]:
    """Return the class of the held-out pixels: the one with the greatest smoothed share in their cell."""
    from scipy.ndimage import gaussian_filter

    shape = (_CELLS,) * len(chosen)
    place = np.asarray(np.ravel_multi_index(tuple(cells[:, chosen].T), shape), np.intp)
    shares: list[Matrix] = []
    for label in range(int(labels.max()) + 1):
        training = place[(labels == label) & ~held_out]
        count = np.bincount(training, minlength=_CELLS ** len(chosen)).astype(np.float64)
        shares.append(gaussian_filter(count.reshape(shape), _SMOOTH).ravel() / len(training))
    return np.argmax(shares, axis=0)[place[held_out]]


def _likelihoods(
    values: Matrix, chosen: tuple[int, ...], gaussians: Sequence[tuple[Matrix, Matrix]]
) -> Matrix:
    """Return the logarithm of each class's density up to a constant, (classes, pixels)."""
    index = np.array(chosen)
    part = values[:, index]
    likelihoods: list[Matrix] = []
    for mean, covariance in gaussians:
        whiten = np.linalg.inv(np.linalg.cholesky(covariance[np.ix_(index, index)]))
        apart = (part - mean[index]) @ whiten.T
        likelihoods.append(
            np.log(np.diagonal(whiten)).sum() - 0.5 * np.einsum("ij,ij->i", apart, apart)
        )
    return np.stack(likelihoods)


def _gaussian(values: Matrix, ridge: Matrix) -> tuple[Matrix, Matrix]:
    return values.mean(axis=0), np.cov(values, rowvar=False) + ridge


def _triplet(
    names: Sequence[str],
    chosen: tuple[int, ...],
    gaussians: Mapping[str, tuple[Matrix, Matrix]],
    deviations: NDArray[np.float64],
    correlations: Matrix,
) -> BandTriplet:
    index = np.array(chosen)
    square = np.ix_(index, index)
    parts = {
        name: (mean[index].tolist(), covariance[square].tolist())
        for name, (mean, covariance) in gaussians.items()
    }
    jm = {
        f"{a}/{b}": cast(float, jeffries_matusita(*parts[a], *parts[b]))
        for a, b in itertools.combinations(gaussians, 2)
    }
    worst = min(jm, key=lambda pair: jm[pair])
    shared = float(np.abs(correlations[square][np.triu_indices(3, 1)]).sum())
    return BandTriplet(
        bands=tuple(names[place] for place in chosen),
        expected_accuracy=None,
        tied=False,
        min_jm=jm[worst],
        worst_pair=worst,
        mean_jm=sum(jm.values()) / len(jm),
        jm=jm,
        oif=float(deviations[index].sum() / shared) if shared > 0 else None,
    )


def _sample(bands: Mapping[str, NDArray[np.generic]], mask: NDArray[np.bool_]) -> _Sample:
    """Sample the pixels of a class, thinned evenly to at most 20,000."""
    places = _thinned(np.flatnonzero(mask), MOST_PIXELS)
    values = np.stack(
        [np.asarray(band).reshape(-1)[places].astype(np.float64) for band in bands.values()], axis=1
    )
    valid = np.isfinite(values).all(axis=1)
    side, columns = max(1, min(mask.shape) // _BLOCKS), mask.shape[1]
    y, x = places[valid] // columns // side, places[valid] % columns // side
    across = columns // side // 2 + 1
    # modulo 4, the number of a block is its position in a square of 2 x 2 blocks
    return _Sample(values[valid], 4 * ((y // 2) * across + x // 2) + 2 * (y % 2) + x % 2)


_MOST_LISTED = 20
"""Most triplets in a result, the best ones."""
_MOST_BANDS = 12
"""Bands that are ranked if none has a known role, the first ones of the file."""
_NAMES = {SOIL: "soil", CROP: "crop", WEED: "weed", PLANTS: "plants"}


def ranked_bands(
    bands: Mapping[Any, NDArray[Any]],
    classes: NDArray[np.uint8],
    box: Box,
    classes_from: ClassesFrom,
) -> Separability | None:
    """Rank every three bands for the classes within ``box``; None with fewer than three bands or two classes."""
    x0, y0, x1, y1 = box
    inside = classes[y0:y1, x0:x1]
    band_values = {str(name): values[y0:y1, x0:x1] for name, values in bands.items()}
    ranked = rank_triplets(band_values, {name: inside == value for value, name in _NAMES.items()})
    if not ranked:
        return None
    pairs = ranked[0].jm
    return Separability(
        classes=tuple(dict.fromkeys(name for pair in pairs for name in pair.split("/"))),
        classes_from=classes_from,
        triplets=tuple(ranked[:_MOST_LISTED]),
        ranked_by="min_jm" if ranked[0].expected_accuracy is None else "expected_accuracy",
        ties=sum(one.tied for one in ranked),
    )


def band_numbers(
    source: RasterSource, bands: Mapping[str, int | str] | None, info: SampleFile | None
) -> dict[str, int]:
    """Return the 1-based numbers by name of the bands to rank: the ones with a known role, else the first twelve."""
    try:
        roles = raster_roles(source, bands, info).roles
    except ToolError:
        if bands is not None:
            raise
        roles = {}
    if roles:
        return {str(role): number for role, number in roles.items()}
    numbers = source.data_bands[:_MOST_BANDS]
    names = [source.band_names[number - 1] or f"band_{number}" for number in numbers]
    if len(set(names)) < len(names):
        names = [f"band_{number}" for number in numbers]
    return dict(zip(names, numbers, strict=True))
