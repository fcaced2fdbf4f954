"""Image algorithms and file reading that several tools share, and our small models."""

from typing import Literal

Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels, half-open, origin top left."""
Role = Literal["B", "G", "R", "RE", "NIR"]
"""Band of a raster."""
Index = Literal["exg", "exgr", "cive", "lab_a", "ndvi", "gndvi", "ndre"]
"""Vegetation index."""
THREADS = "AGROTOOLS_THREADS"
"""Variable that says how many threads a graph may use; one where it is not set."""
