"""What the numbers of a raster may be, beyond what its tags say: numbers with an offset, bands of unequal scales.

Sentinel-2 numbers of processing baseline 04.00 and later (January 2022) are 10,000 times the reflectance plus 1,000.
Few files that are made of them keep this. A ratio of bands is wrong without the offset, and still looks like one.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from agrotools.calling.workspace import file_info
from agrotools.core import ToolError
from agrotools.core.readings import Choice, ReadingQuestion
from agrotools.core.texts import counted_names
from agrotools.vision import Role
from agrotools.vision.rasters import RasterSource
from agrotools_tools.vision import Index
from agrotools_tools.vision.index_bands import index_bands
from agrotools_tools.vision.vegetation import INDICES, index_values

OFFSET_UNKNOWN = "offset_unknown"
OFFSET_DOUBTFUL = "offset_doubtful"
UNEQUAL_SCALES = "unequal_scales"

_SENTINEL_NAMES = re.compile(
    r"(?<![a-z0-9])(?:s2[abcd]?_|s2[abcd](?![a-z0-9])|sentinel[-_ ]?2|t\d{2}[a-z]{3}_\d{8})|msil[12][ac]|mtd_msi",
    re.IGNORECASE,
)
"""Names of products and of their bands: ``S2A_MSIL2A_2023...``, ``T32UQD_20230611T101559_B04_10m.jp2``."""
_SENTINEL_BANDS = re.compile(r"B(?:0[1-9]|8A|1[0-2])(?!\d)", re.IGNORECASE)
"""Names of bands with a leading 0, and the narrow band 8A; Landsat's are ``B4`` and ``SR_B4``."""
_SENTINEL_TAGS = re.compile(
    r"sentinel[-_ ]?2|boa_add_offset|radio_add_offset|msil[12][ac]", re.IGNORECASE
)
_BASELINE = re.compile(r"_N(\d{4})(?=_)")
"""Processing baseline in the name of a product: ``N0509`` is 05.09."""
_FIRST_WITH_OFFSET = 400
_FOLDERS_ABOVE = 3
"""Folders above a raster whose names may be those of its product."""

_WINDOW_PX, _WINDOWS = 128, 4
"""Side of the parts of a sample, pixels, and their number along each side of the raster."""
_LOWEST, _HIGHEST = 0.5, 98.0
"""Percentiles of a sample for the floor and the top of a band: a few dead or glaring pixels do not count."""
_OFFSET = 1_000.0
_FULL = 10_000.0
"""Number of a reflectance of 1, without the offset."""
_LEAST_WITH_OFFSET = 900.0
"""Floor from which numbers may have the offset: dark pixels are corrected to reflectances down to about -0.01."""
_MOST_OF_DARK = 1_500.0
"""Floor up to which the darkest band looks like reflectances from 0 on plus the offset: 0.05, a dark soil in red."""
_MOST_WITH_OFFSET = 12_000.0
"""Largest top of such a band: snow reflects about 1."""
_REFLECTANCE = 2.0
"""Largest top of a band in reflectances of 0 to 1, glare included."""
_UNEQUAL = 50.0
"""Ratio of the tops of two bands from which they have different scales: red and infrared of dense plants reflect 1 to
25 times as much as each other, and scales differ by 100 (percent), 255 or 10,000."""
_BYTE = 255
_HALF_BYTE = 128
"""Largest value from which a band that has none above 255 is taken for numbers of 8 bits. Reflectances of plants alone
in red, times 10,000, are there, too; so this is a flag and no error."""


class BandNumbers(NamedTuple):
    """Values of the bands of an index in a sample of a raster, after the scaling that holds.

    ``floor``: of the darkest band. ``tops``, ``largest``, ``values``: by role.
    """

    floor: float
    tops: Mapping[Role, float]
    largest: Mapping[Role, float]
    values: Mapping[Role, NDArray[np.float32]]

    @property
    def full(self) -> float:
        """Number of a reflectance of 1, as far as the values show it."""
        return 1.0 if max(self.tops.values()) <= _REFLECTANCE else _FULL


def sample_of(source: RasterSource, used: Mapping[Role, int]) -> BandNumbers | None:
    """Return the values of bands in parts spread over a raster; None without data."""
    parts: list[NDArray[np.float32]] = []
    tops, lefts = (
        np.unique(np.linspace(0, max(0, side - _WINDOW_PX), _WINDOWS).astype(int)).tolist()
        for side in (source.height, source.width)
    )
    for top in tops:
        for left in lefts:
            right, bottom = (
                min(left + _WINDOW_PX, source.width),
                min(top + _WINDOW_PX, source.height),
            )
            part = source.read([*used.values()], (left, top, right, bottom))
            parts.append(part.reshape(len(used), -1))
    values = np.concatenate(parts, axis=1)
    # Black in all bands is the border of a map, not a value.
    known = np.isfinite(values).all(axis=0) & values.any(axis=0)
    if not known.any():
        return None
    by_role = dict(zip(used, values[:, known], strict=True))
    return BandNumbers(
        min(float(np.percentile(band, _LOWEST)) for band in by_role.values()),
        {role: float(np.percentile(band, _HIGHEST)) for role, band in by_role.items()},
        {role: float(band.max()) for role, band in by_role.items()},
        by_role,
    )


def doubts_on_numbers(
    source: RasterSource, used: Mapping[Role, int], *, can_be_stated: bool = True
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return notes and flags on values of which an index may be wrong. ``can_be_stated``: the notes say how."""
    sample = sample_of(source, used)
    if sample is None:
        return (), ()
    notes: list[str] = []
    flags: list[str] = []
    if why := _unequal(sample):
        notes.append(f"{why}: an index of bands with unequal scales means nothing")
        flags.append(UNEQUAL_SCALES)
    unit = sample.full / _FULL
    has_offset = any(source.scaling_of(band).offset for band in used.values())
    if has_offset and sample.floor < (_LEAST_WITH_OFFSET - _OFFSET) * unit:
        notes.append(
            f"with the offset the values begin at {sample.floor:.4g}: its numbers seem to have none "
            "(--offset 0)"
        )
        flags.append(OFFSET_DOUBTFUL)
    elif not has_offset and source.stated is None and _looks_offset(source, sample):
        option = "; state --offset=-1000, or --offset=0 if not" if can_be_stated else ""
        notes.append(
            f"the numbers of the darkest band begin at {sample.floor:.4g}: if they are reflectances "
            f"plus 1000, as of Sentinel-2 since 2022, the index is wrong without the offset{option}"
        )
        flags.append(OFFSET_UNKNOWN)
    return tuple(notes), tuple(flags)


def _unequal(sample: BandNumbers) -> str:
    """Return why the bands have unequal scales; empty if nothing shows it."""
    ordered = sorted(sample.tops, key=sample.tops.__getitem__)
    low, high = ordered[0], ordered[-1]
    is_far = 0 < sample.tops[low] * _UNEQUAL <= sample.tops[high]
    is_byte = _HALF_BYTE <= sample.largest[low] <= _BYTE and sample.tops[high] > 4 * _BYTE
    if not is_far and not is_byte:
        return ""
    return f"{low} goes up to {sample.largest[low]:.4g} and {high} to {sample.largest[high]:.4g}"


def _looks_offset(source: RasterSource, sample: BandNumbers) -> bool:
    """Return True if the values are whole numbers like reflectances from 0 on, times 10,000, plus the offset."""
    if source.dtype == "uint8" or sample.full != _FULL:
        return False
    are_whole = all((band == np.round(band)).all() for band in sample.values.values())
    is_dark = _LEAST_WITH_OFFSET <= sample.floor <= _MOST_OF_DARK
    return are_whole and is_dark and max(sample.tops.values()) <= _MOST_WITH_OFFSET


class Offsets(NamedTuple):
    """Offsets that numbers of Sentinel-2 may have, the likelier first, with the mean of the index that each gives."""

    proposed: float
    other: float
    means: tuple[float, float]
    of_index: Index


def possible_offsets(
    source: RasterSource,
    path: Path,
    values: tuple[str, ...],
    bands: Mapping[str, int | str] | None,
) -> Offsets | None:
    """Return the offsets that the numbers of a raster may have, if it is of Sentinel-2, does not say its offset, and
    has no values that tell; None else."""
    index, used = _index_of(source, path, values, bands)
    if index is None or any(source.scaling_in_file(band).offset for band in used.values()):
        return None
    if not _is_sentinel(source, path):
        return None
    sample = sample_of(source, used)
    if sample is None or sample.floor < _LEAST_WITH_OFFSET * sample.full / _FULL:
        return None
    offset = -_OFFSET * sample.full / _FULL
    baseline = _BASELINE.search("/".join(path.parts[-_FOLDERS_ABOVE - 1 :]))
    if baseline is not None and int(baseline[1]) < _FIRST_WITH_OFFSET:
        return None
    means: list[float] = []
    for added in (offset, 0.0):
        moved: dict[Role, NDArray[np.float32]] = {
            role: band[None] + np.float32(added) for role, band in sample.values.items()
        }
        means.append(float(index_values(index, moved).mean()))
    return Offsets(offset, 0.0, (means[0], means[1]), index)


def question_on_offset(files: list[str], offsets: Offsets) -> ReadingQuestion:
    """Return the question which offset the numbers of these files have."""
    which = counted_names(files, 1)
    text = (
        f"{which}: Sentinel-2 numbers since 2022 have 1000 added, which some files have taken off "
        "again. What is to be added to the numbers?"
    )
    named = zip((offsets.proposed, offsets.other), offsets.means, strict=True)
    choices = [Choice(f"{value:g}", f"mean {offsets.of_index} {mean:.3f}") for value, mean in named]
    return ReadingQuestion(text, "--offset", tuple(choices))


def _index_of(
    source: RasterSource,
    path: Path,
    values: tuple[str, ...],
    bands: Mapping[str, int | str] | None,
) -> tuple[Index | None, dict[Role, int]]:
    """Return the first index that is asked for, and its bands; (None, {}) if there is none or its bands are unknown."""
    wanted = values or (("cover",) if len(source.data_bands) > 1 else ())
    name = next((value for value in wanted if value == "cover" or value in INDICES), None)
    if name is None:
        return None, {}
    wanted_index = cast(Index, "auto" if name == "cover" else name)
    try:
        found = index_bands(source, wanted_index, bands, file_info(path))
    except ToolError:
        return None, {}  # raised again where the raster is measured
    return found.index, found.used


def _is_sentinel(source: RasterSource, path: Path) -> bool:
    """Return True if the name, a folder, a tag or the names of the bands say Sentinel-2."""
    near = path.absolute().parts[-_FOLDERS_ABOVE - 1 :]
    if any(_SENTINEL_NAMES.search(part) for part in near):
        return True
    spaces = [source.dataset.tags(), *(source.dataset.tags(each) for each in source.data_bands)]
    texts = [f"{key}={value}" for tags in spaces for key, value in tags.items()]
    if any(_SENTINEL_TAGS.search(text) for text in texts):
        return True
    return any(name and _SENTINEL_BANDS.match(name.strip()) for name in source.band_names)
