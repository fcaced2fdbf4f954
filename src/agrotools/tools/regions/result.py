"""Result of a region description, and the sentence that sums it up."""

from pydantic import BaseModel, ConfigDict

from agrotools.core import Artifact
from agrotools.tools.contract import ToolResult
from agrotools.vision.vegetation import Index


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class DominantColour(_Part):
    """One of the colours that the region is mostly made of."""

    name: str
    """nearest name of the table (xkcd colour survey)"""
    rgb: tuple[int, int, int]
    """mean of its pixels, 0..255"""
    pct: float
    """percent of the region"""


class TextureValues(_Part):
    """Grey-level co-occurrence over neighbours in four directions, 32 levels."""

    entropy: float
    """bits, 0 to 10; 0 where all is one level"""
    contrast: float
    """mean squared step between neighbours, in levels"""
    homogeneity: float
    """0 to 1; 1 where neighbours are equal"""
    correlation: float | None
    """-1 to 1; null where all is one level"""


class RegionShape(_Part):
    """Form of the mask; what is said of one piece is said of the largest."""

    pieces: int
    """connected pieces of the mask"""
    box: tuple[int, int, int, int]
    """bounds of the whole mask, pixels"""
    largest_px: int
    """pixels of the largest piece"""
    perimeter_px: float
    """length of its outline"""
    equivalent_diameter_px: float
    """diameter of the circle of its area"""
    eccentricity: float
    """0 a circle, towards 1 a line"""
    solidity: float
    """its area over that of its convex hull"""
    circularity: float
    """4 pi area over squared perimeter; 1 for a disc"""


class HealthHints(_Part):
    """Shares of leaf and lesion colours; colours only, no diagnosis."""

    green_pct: float
    """percent of the region that is green"""
    yellow_pct: float
    """percent that is yellow to yellow-green"""
    brown_pct: float
    """percent that is brown: dull orange to yellow, dark"""


class BandValues(_Part):
    """A band of a raster within the region."""

    name: str
    """name of the band, or its number"""
    mean: float
    """mean"""
    sd: float
    """standard deviation"""
    low: float
    """least value"""
    high: float
    """largest value"""


class RegionDescription(ToolResult):
    area_px: int
    """pixels of the region that hold data; all percentages refer to these"""
    image_pct: float
    """the same in percent of the image"""
    area_m2: float | None
    """the same on the ground; null where the ground sampling distance is not known"""
    mean_rgb: tuple[float, float, float] | None
    """mean colour, 0..255; null where the file has no natural colours"""
    mean_lab: tuple[float, float, float] | None
    """mean colour in CIE L*a*b*"""
    dominant_colours: tuple[DominantColour, ...] | None
    """up to five colours, the largest share first"""
    vegetation_pct: float | None
    """plants, percent of the region; null where no index can tell"""
    vegetation_index: Index | None
    """index that told plants from the rest"""
    exg: float | None
    """mean excess green, 2g - r - b of the shares of red, green and blue"""
    ndvi: float | None
    """mean NDVI; null without a near infrared band"""
    texture: TextureValues | None
    """texture of the brightness"""
    shape: RegionShape | None
    """form of the mask; null where the region is a box"""
    health: HealthHints | None
    """shares of green, yellow and brown"""
    class_pcts: dict[str, float] | None
    """of a label raster: class to percent of the region, exact"""
    class_px: dict[str, int] | None
    """of a label raster: class to pixels, exact"""
    bands: tuple[BandValues, ...] | None
    """of a multi-band raster: the values of its bands"""
    summary: str
    """the numbers in a sentence or two"""
    description: str | None = None
    """what a model says that it sees, or its answer to the question; null with the offline back-end"""
    overlay: Artifact
    """the region in the picture, plants or classes tinted"""


def summary_of(said: RegionDescription, name: str) -> str:
    """Sentence of the numbers, in a fixed wording and order."""
    size = f"The region of {name} has {said.area_px} pixels, {said.image_pct:.3g} % of the image"
    parts = [size + (f", {said.area_m2:.4g} m^2 on the ground" if said.area_m2 is not None else "")]
    if said.class_pcts:
        ranked = sorted(said.class_pcts.items(), key=lambda item: (-item[1], item[0]))
        rest = f" and {len(ranked) - 8} more classes" if len(ranked) > 8 else ""
        parts.append(f"It holds {_listed([f'{label} {pct:.4g} %' for label, pct in ranked[:8]])}{rest}")
    if said.dominant_colours:
        colours = [f"{colour.name} {colour.pct:.3g} %" for colour in said.dominant_colours]
        parts.append(f"Its colours are {_listed(colours)}")
    if said.vegetation_pct is not None:
        parts.append(f"Plants cover {said.vegetation_pct:.3g} % of it (index {said.vegetation_index})")
    if said.bands and not said.dominant_colours:
        values = [
            f"{band.name} has a mean of {band.mean:.4g} ({band.low:.4g} to {band.high:.4g})" for band in said.bands
        ]
        parts.append(_listed(values[:3])[:1].upper() + _listed(values[:3])[1:])
    if said.ndvi is not None:
        parts.append(f"Its mean NDVI is {said.ndvi:.3g}")
    if said.health is not None:
        hints = said.health
        parts.append(
            f"By colour {hints.green_pct:.3g} % is green, {hints.yellow_pct:.3g} % yellow and"
            f" {hints.brown_pct:.3g} % brown"
        )
    if said.texture is not None:
        texture = said.texture
        parts.append(
            f"Its texture has an entropy of {texture.entropy:.3g} bits and a contrast of {texture.contrast:.3g}"
        )
    if said.shape is not None:
        form = said.shape
        pieces = "one piece" if form.pieces == 1 else f"{form.pieces} pieces, the largest of {form.largest_px} pixels"
        parts.append(f"It is {pieces}, with solidity {form.solidity:.3g} and eccentricity {form.eccentricity:.3g}")
    return ". ".join(parts) + "."


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
