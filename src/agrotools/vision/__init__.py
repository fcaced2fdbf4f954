"""Image algorithms and file reading shared by several tools, and small models of this package."""

from typing import Literal

Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels, half-open, origin top left."""
Role = Literal["B", "G", "R", "RE", "NIR"]
"""Band of a raster."""
THREADS = "AGROTOOLS_THREADS"
"""Environment variable with the number of threads of the nets that read text; default 1."""
