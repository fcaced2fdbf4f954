"""The numbers of a region: plants, indices, colours, shares of leaf and lesion colours, bands."""

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.tools.segmentation.region_picture import RegionPicture
from agrotools.tools.segmentation.region_result import BandValues, DominantColour, HealthHints
from agrotools.vision.colour_names import dominant_colours
from agrotools.vision.vegetation import INDICES, Index, Vegetation, choose_index, index_values, segment


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
    found: list[BandValues] = []
    for name, values in picture.values.items():
        there = values[inside & np.isfinite(values)].astype(np.float64)
        if there.size:
            found.append(
                BandValues(
                    name=name,
                    mean=float(there.mean()),
                    sd=float(there.std()),
                    low=float(there.min()),
                    high=float(there.max()),
                )
            )
    return tuple(found)
