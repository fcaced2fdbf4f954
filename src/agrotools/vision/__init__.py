"""Image algorithms and file reading that several tools share, and our small models."""

from agrotools.vision.formats import file_format
from agrotools.vision.pictures import LabelImage, RgbImage
from agrotools.vision.rasters import RasterSource, open_raster
from agrotools.vision.reading import read_image, read_labels
from agrotools.vision.rows import Rows, find_rows
from agrotools.vision.vegetation import INDICES, Vegetation, choose_index, index_values, segment

__all__ = [
    "INDICES",
    "LabelImage",
    "RasterSource",
    "RgbImage",
    "Rows",
    "Vegetation",
    "choose_index",
    "file_format",
    "find_rows",
    "index_values",
    "open_raster",
    "read_image",
    "read_labels",
    "segment",
]
