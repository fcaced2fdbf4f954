"""Separation of plants and soil: an index per pixel, Otsu's threshold, and a check for two classes."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.vision import Role
from agrotools_tools.vision import Index
from agrotools_tools.vision.colours import lab_of, lab_of_list


def small_parts(mask: NDArray[np.bool_], least_px: int) -> NDArray[np.bool_]:
    """Return the mask of the parts (8-connected) of fewer than ``least_px`` pixels."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats(mask.view(np.uint8), connectivity=8)
    small = np.asarray(stats)[:, cv2.CC_STAT_AREA] < least_px
    small[0] = False
    return small[np.asarray(labels, np.int32)]


def disc(radius: int) -> NDArray[np.uint8]:
    """Return a disc for morphology, uint8 (2 r + 1, 2 r + 1)."""
    return np.asarray(
        cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1)), np.uint8
    )


def hull_px(mask: NDArray[np.bool_]) -> int:
    """Count the pixels inside the convex hull of a non-empty mask, including the pixels on its outline."""
    outlines, _ = cv2.findContours(mask.view(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    around = np.zeros(mask.shape, np.uint8)
    cv2.fillConvexPoly(around, cv2.convexHull(np.concatenate(list(outlines))), 1)
    return int(around.sum())


@dataclass(frozen=True)
class IndexInfo:
    """Properties of an index. ``bands``: bands that it needs.

    ``plant_level``: level between the values of bare soil and of plants alone. It is never the threshold of a picture
    with both; it only decides which of the two a uniform picture shows.
    """

    bands: tuple[Role, ...]
    plant_level: float
    source: str


INDICES: dict[Index, IndexInfo] = {
    "lab_a": IndexInfo(("R", "G", "B"), 9.0, "-a* of CIE 1976 L*a*b*"),
    "exg": IndexInfo(("R", "G", "B"), 0.10, "Woebbecke et al. 1995"),
    "exgr": IndexInfo(("R", "G", "B"), 0.0, "Meyer and Neto 2008"),
    "cive": IndexInfo(("R", "G", "B"), 0.0, "Kataoka et al. 2003, sign turned"),
    "ndvi": IndexInfo(("NIR", "R"), 0.30, "Rouse et al. 1974"),
    "ndre": IndexInfo(("NIR", "RE"), 0.15, "Barnes et al. 2000"),
    "gndvi": IndexInfo(("NIR", "G"), 0.35, "Gitelson et al. 1996"),
}
_AUTO: tuple[Index, ...] = ("ndvi", "lab_a", "gndvi", "ndre")
"""Indices that ``auto`` tries, in order. Of the colour indices, -a* was best on two sets of field photographs."""

SMOOTHING_PX = 1.0
"""Standard deviation, pixels, of the Gaussian that removes noise from an index before thresholding."""
SMALLEST_PX = 10
"""Minimum size of plants, and of holes in plants; smaller specks are noise."""
TWO_CLASSES = 3.0
"""Minimum distance of the class means, in pooled standard deviations, of a picture with two classes.

Otsu's threshold always splits. Cutting one Gaussian in two gives 2.6; parts of photographs with only soil gave up to
2.7 and with only leaves up to 2.9, whole photographs with both mostly 4 to 6.
"""
CLEAR_CONTRAST = 3.6
_SHADE_LIGHTNESS, _MOST_SHADE = 20.0, 0.3
"""L* below which colours are not reliable, and the share of such pixels above which plant cover is not."""
_GREENISH = 4.0
"""-a* above which pixels are greener than bare soil."""
_CLOSED = 2 / 3
"""Least share of the plant level that all but 5 % of a closed canopy reach."""
_GREEN_IN_SHADE = 0.35
"""Least greenness (-a*) of the darkest 5 % of a picture of plants alone, as a share of its median.

Leaves are green in the shade, too; a green cast turns lit soil green and leaves its shadows grey. The rule refuses 93 %
of 525 covers that green casts of 1.1 to 1.3 made wrong in photographs of peanuts and weeds, and 1 of 32 real
photographs that are full of leaves. On 100 other tiles of peanuts, 189 of 210 such covers are refused, 19 flagged.
"""
_OWN_CLASS = 4.5
"""Least distance of few plants' threshold from the ground's median, in robust standard deviations, at which the plants
are a class of their own, not the greenest tail of the ground.

Under blue casts, the 8 wrong covers of peanuts lie below, up to 4.35; 43 drawn plants before bluish walls above, from
4.57.
"""
_MOST_CLIPPED = 0.1
"""Largest share of pixels of which some colours, not all, are at their upper limit, so that their hue is wrong.

Above it are 88 % or more of the wrong covers of peanuts at 1.5 to 2.5 times the exposure, none of 200 photographs of
peanuts as they are, and 1 % of 930 other photographs.
"""
_CLIPPED = 250
"""Value of a colour, 0 to 255, from which it counts as at its upper limit: JPEG moves 255 by a few steps."""
_MOST_SPARSE = 0.05
"""Largest plant cover that can be told from its distance from the soil alone."""
_PATCHY = 5.0
"""Spread of the ground's a* and b* above which it is no soil alone."""
_GROUND_PX, _LEAST_PLANT, _LEAST_GROUND, _LEAST_CELLS = 128, 0.2, 0.25, 5
_COLOUR_SAMPLE_PX = 250_000
_BLOCK_PX = 400_000
"""Approximate number of pixels per block of rows in which indices are computed: blocks that stay in the cache of the
processor take three quarters of the time of whole photographs."""
_SAMPLE_PX = 4_000_000
"""Number of pixels above which thresholds are computed from a regular subsample."""


@dataclass(frozen=True, eq=False)
class Vegetation:
    """Plants of a picture.

    ``mask``, ``valid``: bool (rows, columns); ``values``: the smoothed index, float32; ``threshold``: in units of the
    index, or None if the picture shows one class only; ``contrast``: distance of the class means in pooled standard
    deviations.
    """

    mask: NDArray[np.bool_]
    valid: NDArray[np.bool_]
    values: NDArray[np.float32]
    index: Index
    threshold: float | None
    contrast: float
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def choose_index(index: Index | Literal["auto"], available: Mapping[Role, object]) -> Index:
    """Return the requested index, or for ``auto`` the best one; ToolError ``band_not_found`` with the possible
    indices."""
    possible = [
        name for name, info in INDICES.items() if all(band in available for band in info.bands)
    ]
    if index == "auto":
        for name in _AUTO:
            if name in possible:
                return name
        why = f"plants cannot be told from soil by the bands known here ({', '.join(available) or 'none'})"
        hint = (
            "say which bands are which, e.g. bands={'R': 3, 'NIR': 4} or {'R': 1, 'G': 2, 'B': 3}"
        )
        raise ToolError("band_not_found", why, argument="bands", hint=hint)
    if index not in possible:
        missing = [band for band in INDICES[index].bands if band not in available]
        why = f"index {index} needs the bands {', '.join(INDICES[index].bands)}; {', '.join(missing)} unknown"
        hint = (
            f"possible here: {', '.join(possible)}"
            if possible
            else "say which bands are which with bands"
        )
        raise ToolError(
            "band_not_found", why, argument="index", hint=hint, candidates=tuple(possible)
        )
    return index


def index_values(index: Index, bands: Mapping[Role, NDArray[np.generic]]) -> NDArray[np.float32]:
    """Return the index per pixel, float32 (rows, columns), higher for plants; NaN if a band is NaN.

    Colour indices expect red, green and blue in 0..255. exg and exgr use shares of the sum of the three; normalised
    differences are in -1..1, and 0 if both bands are 0.
    """
    needed: dict[Role, NDArray[Any]] = {
        role: np.asarray(bands[role]) for role in INDICES[index].bands
    }
    height, width = next(iter(needed.values())).shape
    values = np.empty((height, width), np.float32)
    step = max(1, _BLOCK_PX // max(1, width))
    for top in range(0, height, step):
        rows = slice(top, top + step)
        block: dict[Role, NDArray[Any]] = {role: band[rows] for role, band in needed.items()}
        if index != "lab_a" or any(band.dtype != np.uint8 for band in block.values()):
            block = {role: np.asarray(band, np.float32) for role, band in block.items()}
        values[rows] = _index_of_block(index, block)
    return values


@dataclass(frozen=True)
class IndexThreshold:
    """Threshold of an index: pixels above ``threshold`` are plants.

    ``threshold`` is None if a sample shows one class only, which is plants if ``all_plants``, else soil.
    """

    threshold: float | None
    all_plants: bool
    contrast: float
    notes: tuple[str, ...]
    flags: tuple[str, ...] = ()

    def plants(self, values: NDArray[np.float32], there: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the mask of plants, without specks, of a smoothed index (rows, columns) with data ``there``."""
        if self.threshold is None:
            return there if self.all_plants else np.zeros_like(there)
        return without_specks(values > self.threshold, there)


def segment(
    index: Index, bands: Mapping[Role, NDArray[np.generic]], valid: NDArray[np.bool_] | None
) -> Vegetation:
    """Segment the plants in a picture: index, light smoothing, Otsu's threshold (1979), removal of specks and pinholes.

    A picture with one class only is all soil (flag ``no_vegetation``) or all plants (``no_soil_visible``), as the index
    indicates; few plants on much soil, which Otsu's method misses, are found by their distance from the soil
    (``sparse_vegetation``); weak contrast is flagged (``low_contrast``).
    """
    raw = index_values(index, bands)
    there = np.isfinite(raw) if valid is None else valid & np.isfinite(raw)
    values = smooth_index(raw, there)
    sample = values[there]
    if sample.size > _SAMPLE_PX:
        sample = sample[:: sample.size // _SAMPLE_PX].copy()
    if not sample.size:
        raise ToolError("nothing_found", "the picture holds no data", argument="image")
    cut = choose_threshold(index, sample)
    mask = cut.plants(values, there)
    if "sparse_vegetation" in cut.flags and not mask.any():
        cut = _one_class(index, sample, False, cut.contrast)
    return Vegetation(mask, there, values, index, cut.threshold, cut.contrast, cut.notes, cut.flags)


def choose_threshold(index: Index, sample: NDArray[np.float32]) -> IndexThreshold:
    """Choose the threshold of an index from its smoothed values (not empty, any shape, finite)."""
    level = INDICES[index].plant_level
    threshold = otsu_threshold(sample)
    low, high, contrast = _class_means(sample, threshold)
    if contrast < TWO_CLASSES or high < level or low > 1.5 * abs(level) + level:
        if float(np.median(sample)) >= level:
            return _one_class(index, sample, True, contrast)
        sparse_threshold = _sparse_threshold(sample, level)
        if sparse_threshold is None:
            return _one_class(index, sample, False, contrast)
        note = f"few plants: those are where {index} > {sparse_threshold:.4g}, far from all soil"
        return IndexThreshold(sparse_threshold, False, contrast, (note,), ("sparse_vegetation",))
    flags = ("low_contrast",) if contrast < CLEAR_CONTRAST else ()
    return IndexThreshold(
        threshold, False, contrast, (f"plants are where {index} > {threshold:.4g} (Otsu)",), flags
    )


def _one_class(
    index: Index, sample: NDArray[np.float32], plants: bool, contrast: float
) -> IndexThreshold:
    what, flag = ("plants", "no_soil_visible") if plants else ("no plants", "no_vegetation")
    note = f"{index} shows one class only, and that is {what} (median {np.median(sample):.4g})"
    return IndexThreshold(None, plants, contrast, (note,), (flag,))


def refuse_doubtful_plants(
    photo: NDArray[np.uint8], plants: Vegetation, *, argument: str = "image"
) -> None:
    """Refuse the plants of a photograph that cannot be told from the ground, none included; :func:`doubt_of_cover`
    says when. Every tool whose numbers rest on all plants of a photograph asks here, or leaves these numbers out for
    the same reason.

    Raises:
        ToolError: ``low_confidence``.
    """
    doubt = doubt_of_cover(photo, plants)
    if doubt is not None:
        raise doubtful_plants(doubt, argument)


def doubtful_plants(doubt: str, argument: str = "image") -> ToolError:
    """Return the error of a picture whose plants cannot be told from the ground."""
    hint = "take the picture in even light with a white balance, or give a near infrared band or a label raster"
    return ToolError(
        "low_confidence",
        f"plants cannot be told from the ground: {doubt}",
        argument=argument,
        hint=hint,
    )


def doubt_of_cover(picture: NDArray[np.uint8], plants: Vegetation) -> str | None:
    """Return why the plant cover of a photograph cannot be relied on, or None.

    Args:
        picture: natural colours, uint8 (rows, columns, 3), which ``plants`` were searched in.
    """
    step = max(1, math.isqrt(plants.valid.size // _COLOUR_SAMPLE_PX))
    inside = plants.valid[::step, ::step]
    values = plants.values[::step, ::step][inside]
    colours = picture[::step, ::step][inside]
    return doubt_of_sample(plants.index, plants.threshold, plants.flags, values, colours)


def doubt_of_sample(
    index: Index,
    threshold: float | None,
    flags: Collection[str],
    values: NDArray[np.float32],
    colours: NDArray[np.uint8],
) -> str | None:
    """Return why the plant cover cannot be relied on that was found in a sample of pixels, or None.

    Plants in deep shade, dry plants and plants under a colour cast have the colours of soil. So a finding of no or few
    plants is relied on only in light, where the ground is grey to yellow and red as soil is or the plants stand far
    apart from it, and where no greenish part was left out; a finding of plants alone only where no part is without
    green, shadows included.

    Args:
        threshold: of the index, None if the picture shows one class only.
        flags: of the threshold or the mask.
        values: smoothed index, float32 (pixels,).
        colours: natural colours, uint8 (pixels, 3).
    """
    none, few, full, weak = (
        flag in flags
        for flag in ("no_vegetation", "sparse_vegetation", "no_soil_visible", "low_contrast")
    )
    if not (none or few or full or weak) or not len(values):
        return None
    lab = lab_of_list(colours)
    _, reddish, yellowish = np.median(lab, axis=0)
    if not full and float((lab[:, 0] < _SHADE_LIGHTNESS).mean()) > _MOST_SHADE:
        return "much of the picture is in deep shade"
    is_soil = reddish <= yellowish + 1 and yellowish >= -_GREENISH / 2
    if not is_soil and (none or (few and not _is_own_class(values, threshold))):
        return "the picture has a colour cast: its ground is bluish or pink, as soil is not"
    if index == "lab_a" and none and float(np.percentile(values, 99)) >= _GREENISH:
        return "some parts are greenish, but do not stand out from the rest"
    level = INDICES[index].plant_level
    if index == "lab_a" and full and float(np.percentile(values, 5)) < _CLOSED * level:
        return "some parts are not green, but do not stand out from the plants"
    if index == "lab_a" and full and not _is_green_in_shade(lab):
        return "all is green but the shadows, as soil is under a green cast"
    return None


def _is_own_class(values: NDArray[np.float32], threshold: float | None) -> bool:
    """Return True if few plants above ``threshold`` are a class of their own, not the greenest ground."""
    middle, spread = _middle_and_spread(values)
    return threshold is not None and threshold > middle + _OWN_CLASS * spread


def _is_green_in_shade(lab: NDArray[np.float32]) -> bool:
    """Return True if the darkest pixels of ``lab`` (pixels, 3) are about as green as the others."""
    lightness, greenness = lab[:, 0], -lab[:, 1]
    in_shade = greenness[lightness <= np.percentile(lightness, 5)]
    return float(in_shade.mean()) >= _GREEN_IN_SHADE * float(np.median(greenness))


def has_patchy_ground(picture: NDArray[np.uint8], plants: NDArray[np.bool_]) -> bool:
    """Return True if the ground of a photograph, all but ``plants``, has several colours, as streets and rooms have:
    by the spread of its mean a* and b* over an 8 x 8 grid. Of 120 photographs of peanut fields 98 % are below the
    limit."""
    lab = lab_of(
        np.asarray(
            cv2.resize(picture, (_GROUND_PX, _GROUND_PX), interpolation=cv2.INTER_AREA), np.uint8
        )
    )
    share = cv2.resize(
        plants.astype(np.float32), (_GROUND_PX, _GROUND_PX), interpolation=cv2.INTER_AREA
    )
    is_ground = (share < _LEAST_PLANT)[..., None]
    cells = [
        part.reshape(8, 16, 8, 16, -1).sum(axis=(1, 3))
        for part in (lab[..., 1:] * is_ground, is_ground)
    ]
    known = cells[1][..., 0] > _LEAST_GROUND * 16**2
    if known.sum() < _LEAST_CELLS:
        return False
    return float(np.linalg.norm((cells[0][known] / cells[1][known]).std(axis=0))) > _PATCHY


def weakness_of_cover(picture: NDArray[np.uint8] | None, plants: Vegetation) -> str | None:
    """Return why a plant cover is uncertain, but not to be refused, or None.

    Args:
        picture: natural colours, uint8 (rows, columns, 3); None where there are none.
    """
    if (
        "sparse_vegetation" in plants.flags
        and float(plants.mask[plants.valid].mean()) > _MOST_SPARSE
    ):
        return "plants are not few, but do not stand out from the soil either"
    if picture is not None and _share_of_clipped(picture[plants.valid]) > _MOST_CLIPPED:
        return "much of the picture is overexposed, so its colours are wrong"
    return None


def _share_of_clipped(colours: NDArray[np.uint8]) -> float:
    """Return the share of pixels (pixels, 3) of which some colours, not all, are at their upper limit."""
    at_limit = (colours[:: 1 + len(colours) // _COLOUR_SAMPLE_PX] >= _CLIPPED).sum(axis=1)
    return float(((at_limit > 0) & (at_limit < 3)).mean())


def otsu_threshold(sample: NDArray[np.float32]) -> float:
    """Return the threshold that maximises the variance between two classes (Otsu 1979), on 512 bins."""
    low, high = float(sample.min()), float(sample.max())
    if high <= low:
        return low
    edges = np.linspace(low, high, 513, dtype=np.float32)
    counts = np.asarray(
        cv2.calcHist([np.asarray(sample, np.float32)], [0], None, [512], [low, high]), np.int64
    ).ravel()
    counts[-1] += sample.size - counts.sum()  # values equal to the highest edge
    return otsu_of_counts(counts, edges)


def otsu_of_counts(counts: NDArray[np.integer[Any]], edges: NDArray[np.floating[Any]]) -> float:
    """Return Otsu's threshold of a histogram, ``counts`` between ``edges``; the lowest edge if one bin has all."""
    centres = (edges[1:] + edges[:-1]) / 2
    below = np.cumsum(counts).astype(np.float64)
    above = below[-1] - below
    mass = np.cumsum(counts * centres)
    with np.errstate(invalid="ignore", divide="ignore"):
        between = below * above * (mass / below - (mass[-1] - mass) / above) ** 2
    between = np.where(np.isfinite(between), between, 0)
    return float(edges[1:][int(np.argmax(between))]) if between.any() else float(edges[0])


_SHARES = np.arange(256, dtype=np.float32) / np.float32(255)


def _index_of_block(index: Index, bands: Mapping[Role, NDArray[Any]]) -> NDArray[np.float32]:
    """Return the index of float32 bands; those of ``lab_a`` may be uint8."""
    if index == "lab_a":
        stacked = np.asarray(cv2.merge([bands["R"], bands["G"], bands["B"]]))
        if stacked.dtype == np.uint8:
            stacked = np.asarray(cv2.LUT(stacked, _SHARES))
        else:
            stacked /= np.float32(255)
            np.clip(stacked, 0, 1, out=stacked)
        values = np.asarray(
            -cv2.extractChannel(cv2.cvtColor(stacked, cv2.COLOR_RGB2LAB), 1), np.float32
        )
        for band in (each for each in bands.values() if each.dtype != np.uint8):
            values[np.isnan(band)] = np.nan  # OpenCV's Lab colours of NaN are numbers
        return values
    if index in ("exg", "exgr", "cive"):
        red, green, blue = bands["R"], bands["G"], bands["B"]
        if index == "cive":
            return np.asarray(0.811 * green - 0.441 * red - 0.385 * blue - 18.78745, np.float32)
        total = np.maximum(red + green + blue, np.float32(1e-6))
        red, green, blue = red / total, green / total, blue / total
        return np.asarray(
            2 * green - red - blue if index == "exg" else 3 * green - 2.4 * red - blue, np.float32
        )
    first, second = (bands[role] for role in INDICES[index].bands)
    total = first + second
    nothing = total == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.asarray(np.divide(first - second, total, out=total), np.float32)
    np.putmask(share, nothing, 0)
    return share


def _class_means(sample: NDArray[np.float32], threshold: float) -> tuple[float, float, float]:
    """Return mean below, mean above, and their distance in pooled standard deviations (0 if one class is empty)."""
    upper = sample > threshold
    if not upper.any() or upper.all():
        mean = float(sample.mean())
        return mean, mean, 0.0
    above = upper.view(np.uint8)
    parts = [
        cv2.meanStdDev(sample, mask=part) for part in (above ^ 1, above)
    ]  # in double precision
    (low, low_sd), (high, high_sd) = (
        (float(mean[0, 0]), float(deviation[0, 0])) for mean, deviation in parts
    )
    distance, spread = high - low, math.sqrt((low_sd**2 + high_sd**2) / 2)
    return low, high, distance / max(spread, 1e-3 * distance, 1e-9)


def _sparse_threshold(sample: NDArray[np.float32], level: float) -> float | None:
    """Return the midpoint between soil and plant-like outliers; None if there are too few.

    Outliers are above the soil by eight robust standard deviations.
    """
    middle, spread = _middle_and_spread(sample)
    outliers = sample[sample > max(level, middle + 8 * spread)]
    return (middle + float(outliers.mean())) / 2 if outliers.size >= SMALLEST_PX else None


def _middle_and_spread(sample: NDArray[np.float32]) -> tuple[float, float]:
    """Return the median and the robust standard deviation of a sample."""
    middle = float(np.median(sample))
    return middle, 1.4826 * float(np.median(np.abs(sample - middle)))


def without_specks(mask: NDArray[np.bool_], valid: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Remove specks and pinholes of fewer than ten pixels from the mask; pixels without data are False."""
    mask = mask & valid
    mask = mask ^ small_parts(mask, SMALLEST_PX)
    return (mask | small_parts(~mask, SMALLEST_PX)) & valid


def smooth_index(values: NDArray[np.float32], valid: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Smooth an index with a Gaussian of one pixel; invalid pixels are NaN and do not affect others."""
    if valid.all():
        return np.asarray(cv2.GaussianBlur(values, (0, 0), SMOOTHING_PX), np.float32)
    weight = valid.astype(np.float32)
    sums = cv2.GaussianBlur(np.where(valid, values, np.float32(0)), (0, 0), SMOOTHING_PX)
    weights = np.maximum(cv2.GaussianBlur(weight, (0, 0), SMOOTHING_PX), np.float32(1e-6))
    return np.asarray(np.where(valid, sums / weights, np.float32(np.nan)), np.float32)
