"""Numbers of a region: plants, indices, colours, shares of leaf and lesion colours, bands, form and texture.

Texture: co-occurrence of grey levels (Haralick, Shanmugam and Dinstein 1973).
"""

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.tools.regions.describe_region import BandValues, DominantColour, HealthHints, RegionShape, TextureValues
from agrotools.tools.regions.picture import RegionPicture
from agrotools.vision import Index
from agrotools.vision.colours import dominant_colours
from agrotools.vision.vegetation import INDICES, Vegetation, choose_index, index_values, segment


def plants_of(picture: RegionPicture) -> Vegetation | None:
    """Plants in the whole picture, where its bands can tell them: more than the region helps to find the threshold."""
    try:
        index = choose_index("auto", picture.bands)
    except ToolError:
        return None
    bands = dict(picture.bands)
    if "B" in INDICES[index].bands:
        bands |= {role: picture.pixels[..., k] for k, role in enumerate(("R", "G", "B"))}
    valid = picture.valid & np.all([np.isfinite(bands[role]) for role in INDICES[index].bands], axis=0)
    return segment(index, bands, valid) if valid.any() else None


def mean_index(index: Index, picture: RegionPicture, inside: NDArray[np.bool_]) -> float | None:
    """Mean of an index over a region; None where its bands are not there."""
    if not all(role in picture.bands for role in INDICES[index].bands):
        return None
    x0, y0, x1, y1 = picture.box
    values = index_values(index, {role: band[y0:y1, x0:x1] for role, band in picture.bands.items()})
    there = values[inside[y0:y1, x0:x1]]
    there = there[np.isfinite(there)]
    return float(there.mean(dtype=np.float64)) if there.size else None


def colours_of(samples: NDArray[np.uint8]) -> tuple[DominantColour, ...]:
    """The dominant colours of pixels, uint8 (pixels, 3)."""
    return tuple(
        DominantColour(name=colour.name, rgb=colour.rgb, pct=100 * colour.share) for colour in dominant_colours(samples)
    )


def health_of(lab: NDArray[np.float32]) -> HealthHints:
    """Shares of hues in Lab: green 105 to 180 degrees; yellow 80 to 105 and lighter than 45; brown 25 to 105 and darker
    than 60, where it is not yellow. What has a chroma under 10 is grey and none of them."""
    lightness, a, b = lab.T
    hue = np.degrees(np.arctan2(b, a))
    coloured = np.hypot(a, b) >= 10
    green = coloured & (hue >= 105) & (hue < 180)
    yellow = coloured & (hue >= 80) & (hue < 105) & (lightness >= 45)
    brown = coloured & (hue >= 25) & ~yellow & (hue < 105) & (lightness < 60)
    return HealthHints(
        green_pct=100 * float(green.mean()), yellow_pct=100 * float(yellow.mean()), brown_pct=100 * float(brown.mean())
    )


def band_values(picture: RegionPicture, inside: NDArray[np.bool_]) -> tuple[BandValues, ...]:
    """Each band of a raster over a region; bands without data there are left out."""
    statistics: list[BandValues] = []
    for name, values in picture.values.items():
        there = values[inside & np.isfinite(values)].astype(np.float64)
        if there.size:
            statistics.append(
                BandValues(
                    name=name,
                    mean=float(there.mean()),
                    sd=float(there.std()),
                    low=float(there.min()),
                    high=float(there.max()),
                )
            )
    return tuple(statistics)


def shape_of(mask: NDArray[np.bool_]) -> RegionShape:
    """The form of a mask, bool (rows, columns), with at least one pixel.

    Of moments, hull and perimeter (Crofton's formula over four directions) the largest piece is measured, without its
    holes filled; pieces touch by sides or corners.
    """
    from skimage.measure import regionprops

    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    areas = stats[1:count, cv2.CC_STAT_AREA]
    largest = 1 + int(np.argmax(areas))
    x, y, w, h = (int(stats[largest, key]) for key in range(4))
    piece = (np.asarray(labels)[y : y + h, x : x + w] == largest).astype(np.uint8)
    form = regionprops(piece)[0]
    area, perimeter = float(piece.sum()), float(form.perimeter_crofton)
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    hull = _hull_px(piece)
    return RegionShape(
        pieces=count - 1,
        box=(int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1),
        largest_px=int(area),
        perimeter_px=perimeter,
        equivalent_diameter_px=float(np.sqrt(4 * area / np.pi)),
        eccentricity=float(form.eccentricity),
        solidity=min(1.0, area / hull),
        circularity=min(1.0, 4 * np.pi * area / perimeter**2) if perimeter > 0 else 1.0,
    )


def _hull_px(piece: NDArray[np.uint8]) -> float:
    """Pixels inside the convex hull, those that it passes through included."""
    contours, _ = cv2.findContours(piece, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    hull = cv2.convexHull(max(contours, key=len))
    filled = np.zeros(piece.shape, np.uint8)
    cv2.fillConvexPoly(filled, hull, 1)
    return float(filled.sum())


LEVELS = 32
_OFFSETS = ((0, 1), (1, 1), (1, 0), (1, -1))
_MOST_PX = 1_000_000


def cooccurrence(grey: NDArray[np.uint8], valid: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Shares of pairs of neighbours by their levels, symmetric, (32, 32), pooled over four directions at distance 1.

    Args:
        grey: uint8 (rows, columns), 0..255.
        valid: bool (rows, columns); a pair counts where both of it are valid.
    """
    levels = (grey >> 3).astype(np.int32)
    counts = np.zeros(LEVELS * LEVELS, np.int64)
    height, width = levels.shape
    for down, right in _OFFSETS:
        if height <= down or width <= abs(right):
            continue
        left, far = max(0, -right), max(0, right)
        first = (slice(0, height - down), slice(left, width - far))
        second = (slice(down, height), slice(left + right, width - far + right))
        both = valid[first] & valid[second]
        counts += np.bincount((levels[first] * LEVELS + levels[second])[both], minlength=LEVELS * LEVELS)
    pairs = counts.reshape(LEVELS, LEVELS).astype(np.float64)
    pairs += pairs.T
    return pairs / max(float(pairs.sum()), 1.0)


def texture_of(pixels: NDArray[np.uint8], valid: NDArray[np.bool_]) -> TextureValues | None:
    """Texture of the luma of a picture, uint8 (rows, columns, 3), where ``valid``; None without a pair of neighbours.

    Of a picture above a megapixel the middle strip of rows is looked at, at full resolution: texture depends on it.
    """
    rows = max(2, _MOST_PX // max(1, pixels.shape[1]))
    if pixels.shape[0] > rows:
        top = (pixels.shape[0] - rows) // 2
        pixels, valid = pixels[top : top + rows], valid[top : top + rows]
    grey = np.asarray(cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY), np.uint8)
    shares = cooccurrence(grey, valid)
    if not shares.any():
        return None
    i, j = np.mgrid[0:LEVELS, 0:LEVELS]
    some = shares[shares > 0]
    marginal = shares.sum(axis=1)
    level = np.arange(LEVELS)
    mean = float((marginal * level).sum())
    variance = float((marginal * (level - mean) ** 2).sum())
    covariance = float((shares * (i - mean) * (j - mean)).sum())
    return TextureValues(
        entropy=max(0.0, float(-(some * np.log2(some)).sum())),
        contrast=float((shares * (i - j) ** 2).sum()),
        homogeneity=float((shares / (1 + (i - j) ** 2)).sum()),
        correlation=covariance / variance if variance > 1e-12 else None,
    )
