"""Result of describing a region."""

from typing import Literal

from agrotools.calling.contract import ToolResult
from agrotools.calling.result import ResultPart
from agrotools.core import Artifact
from agrotools_tools.vision import Index

Attribute = Literal["colour", "texture", "shape", "cover", "landcover", "health"]


class DominantColour(ResultPart):
    """One of the colours that the region is mostly made of."""

    name: str
    """nearest name of the table (xkcd colour survey)"""
    rgb: tuple[int, int, int]
    """mean of its pixels, 0..255"""
    pct: float
    """percent of the region"""


class TextureValues(ResultPart):
    """Grey-level co-occurrence over neighbours in four directions, 32 levels."""

    entropy: float
    """bits, 0 to 10; 0 where all is one level"""
    contrast: float
    """mean squared step between neighbours, in levels"""
    homogeneity: float
    """0 to 1; 1 where neighbours are equal"""
    correlation: float | None
    """-1 to 1; null where all is one level"""


class RegionShape(ResultPart):
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


class HealthHints(ResultPart):
    """Shares of leaf and lesion colours; colours only, no diagnosis."""

    green_pct: float
    """percent of the region that is green"""
    yellow_pct: float
    """percent that is yellow to yellow-green"""
    brown_pct: float
    """percent that is brown: dull orange to yellow, dark"""


class BandValues(ResultPart):
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
    """up to five colours, the largest share first; null where the picture is grey"""
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
    """of a raster or a grey picture: the values of its bands"""
    summary: str
    """the numbers in a sentence or two"""
    description: str | None = None
    """what a model says that it sees, or its answer to the question; null with the offline back-end"""
    overlay: Artifact
    """the region in the picture, plants or classes tinted"""
