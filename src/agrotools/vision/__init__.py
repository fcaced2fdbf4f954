"""Image algorithms and file reading that several tools share, and our small models."""

from agrotools.vision.formats import file_format
from agrotools.vision.rasters import RasterSource, open_raster
from agrotools.vision.reading import LabelImage, RgbImage, read_image, read_labels
from agrotools.vision.vegetation import INDICES, Vegetation, choose_index, index_values, segment

__all__ = [
    "INDICES",
    "LabelImage",
    "RasterSource",
    "RgbImage",
    "Vegetation",
    "choose_index",
    "file_format",
    "index_values",
    "open_raster",
    "read_image",
    "read_labels",
    "segment",
]
