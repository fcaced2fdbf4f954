"""Units of heights in whole numbers: metres or centimetres, where the file of a raster does not say it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agrotools.core.readings import Choice, ReadingQuestion
from agrotools.vision.rasters import RasterSource, Scaling
from agrotools_tools.vision.blocks import block_boxes, spread_boxes, tile_shape

_TILES = 200
"""Largest number of tiles whose values are looked at: an eighth of 20,000 x 20,000 pixels, under a second."""
_TILE_PX = 2**18
"""Approximate number of pixels of a part that is read at once: a tile of 512 x 512."""
_STEP = 4
"""Every fourth row and column of a tile counts: 200 tiles have 3 million such values."""
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
    """Top of the heights of a raster, metres if their unit is known.

    ``is_known``: the file or the command says their unit.
    """

    top: float
    is_known: bool


def heights_of(source: RasterSource) -> Heights | None:
    """Return the top of the heights of a raster; None without data above 0 in the tiles that are looked at."""
    boxes = list(block_boxes((0, 0, source.width, source.height), tile_shape(source), _TILE_PX))
    parts: list[NDArray[np.float32]] = []
    for box in spread_boxes(boxes, _TILES):
        values = source.read([1], box)[0, ::_STEP, ::_STEP]
        parts.append(values[np.isfinite(values) & (values > 0)])
    above = np.concatenate(parts)
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
