"""Image algorithms, file readers and small models shared by several tools."""

from typing import Literal

Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels, half-open, origin top left."""
Role = Literal["B", "G", "R", "RE", "NIR"]
"""Role of a raster band: blue, green, red, red edge or near infrared."""
Index = Literal["exg", "exgr", "cive", "lab_a", "ndvi", "gndvi", "ndre"]
"""Vegetation index."""
THREADS = "AGROTOOLS_THREADS"
"""Environment variable with the number of threads that a graph may use, 1 by default."""
