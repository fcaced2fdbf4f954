"""How far several judges, or several votes of one, agree: Krippendorff's alpha (Content Analysis, 2004, chapter 11)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agrotools.core import FrozenModel
from agrotools.scoring.statistics import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

_DRAWS = 1000
_FEWEST_UNITS = 10


class Agreement(FrozenModel):
    """Alpha over ``n_units`` answers that at least two graded: 1 is full agreement, 0 is what chance gives.

    None where all grades are the same, which says nothing. ``interval``: 95 %, bootstrap by unit; none under ten units.
    """

    alpha: float | None
    n_units: int
    interval: Interval | None = None


def agreement(units: Sequence[Sequence[float | None]], *, seed: int = 0) -> Agreement | None:
    """Ordinal alpha of grades; a unit is what was given for one answer, None where a grade is missing.

    None where no unit has two grades.
    """
    import numpy as np

    rated = [given for unit in units if len(given := [grade for grade in unit if grade is not None]) > 1]
    if not rated:
        return None
    scale = {grade: rank for rank, grade in enumerate(sorted({grade for given in rated for grade in given}))}
    size = len(scale)
    counts = np.zeros((len(rated), size))
    for row, given in zip(counts, rated, strict=True):
        for grade in given:
            row[scale[grade]] += 1
    # Pairs of grades within each unit, both ways round, weighted so that a unit counts for as many as it has grades.
    m = counts.sum(axis=1)
    pairs = (counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(size)) / (m - 1)[:, None, None]
    alpha = _alpha(pairs.sum(axis=0))
    if alpha is None or len(rated) < _FEWEST_UNITS:
        return Agreement(alpha=alpha, n_units=len(rated))
    weights = np.random.default_rng(seed).multinomial(len(rated), [1 / len(rated)] * len(rated), size=_DRAWS)
    drawn = [_alpha(coincidences) for coincidences in np.tensordot(weights.astype(np.float64), pairs, axes=1)]
    told = [value for value in drawn if value is not None]
    lower, upper = np.percentile(told, [2.5, 97.5]).tolist()
    return Agreement(alpha=alpha, n_units=len(rated), interval=Interval(lower=lower, upper=upper))


def _alpha(coincidences: "FloatArray") -> float | None:
    import numpy as np

    totals = coincidences.sum(axis=0)
    n = totals.sum()
    # Two grades are as far apart as there are grades between them, each of the two counted half.
    upto = np.cumsum(totals)
    middle = upto - totals / 2
    distance = (middle[:, None] - middle[None, :]) ** 2
    expected = float((np.outer(totals, totals) * distance).sum()) / (n - 1)
    return 1 - float((coincidences * distance).sum()) / expected if expected > 0 else None
