"""Units of heights in whole numbers: metres or centimetres, where the file of a raster does not say it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from agrotools.core.readings import Choice, ReadingQuestion
from agrotools.vision.rasters import RasterSource, Scaling

_SIDE_PX = 1024
"""Longest side of the reduced raster whose values are looked at, pixels."""
_TOP = 98.0
"""Percentile for the top of the heights: a few spikes do not count."""
_TALL_M = 30.0
"""Top from which whole numbers are hardly metres: crops and orchards are lower; 30 cm is a low crop."""
_APART = 20.0
"""Ratio of the tops of two dates from which their units may differ: 100 for centimetres, less what a crop grows."""
_SHARES = (0.01, 1.0, 0.001)
"""Metres per unit of centimetres, metres and millimetres, the likeliest first."""
_LEAST_MM = 300.0
"""Top from which millimetres are possible: plants of 0.3 m."""


class Heights(NamedTuple):
    """Top of the heights of a raster, in its numbers. ``is_known``: the file or the command says their unit."""

    top: float
    is_known: bool


def heights_of(source: RasterSource) -> Heights | None:
    """Return the top of the heights of a raster; None without data above 0."""
    factor = max(1.0, max(source.width, source.height) / _SIDE_PX)
    shape = max(1, round(source.height / factor)), max(1, round(source.width / factor))
    values = source.read_resized([1], (0, 0, source.width, source.height), shape)
    above = values[np.isfinite(values) & (values > 0)]
    if not above.size:
        return None
    return Heights(float(np.percentile(above, _TOP)), has_known_unit(source))


def has_known_unit(source: RasterSource) -> bool:
    """Return True if the file or the command says the unit of heights, or they have decimals, as metres have."""
    is_said = bool(source.dataset.units[0]) or source.scaling_of(1) != Scaling()
    is_whole = np.dtype(source.dtype).kind in "ui"
    return is_said or source.stated is not None or not is_whole


def questions_on_units(
    heights: Mapping[str, Heights], *, are_several: bool
) -> dict[str, ReadingQuestion]:
    """Return a question on each raster, by label, whose heights are too large for metres or far from another date's.

    ``are_several``: the command has other rasters, so that the answer names the raster.
    """
    lowest = min((each.top for each in heights.values()), default=0.0)
    asked: dict[str, ReadingQuestion] = {}
    for label, (top, is_known) in heights.items():
        if is_known or (top < _TALL_M and top < lowest * _APART):
            continue
        shares = [share for share in _SHARES if share >= _SHARES[0] or top >= _LEAST_MM]
        text = (
            f"{label}: heights are whole numbers up to about {top:.0f} without a unit. "
            "Metres or centimetres: by what are they multiplied to get metres?"
        )
        option = f"--scale={label}" if are_several else "--scale"
        asked[label] = ReadingQuestion(text, option, _choices(top, shares))
    return asked


def _choices(top: float, shares: Sequence[float]) -> tuple[Choice, ...]:
    return tuple(Choice(f"{share:g}", f"up to {top * share:.3g} m") for share in shares)
