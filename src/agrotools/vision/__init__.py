"""Image algorithms and file reading shared by several tools, and small models of this package."""

from typing import Literal

Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels, half-open, origin top left."""
Role = Literal["B", "G", "R", "RE", "NIR"]
"""Band of a raster."""
Index = Literal["exg", "exgr", "cive", "lab_a", "ndvi", "gndvi", "ndre"]
"""Vegetation index."""
STRANGENESS_FILES = ("strangeness.json", "strangeness.npz")
"""Files of :mod:`agrotools.vision.strangeness`, relative to ``data``; part of the fingerprint of tools that use it."""
THREADS = "AGROTOOLS_THREADS"
"""Environment variable with the number of threads of the nets that read text; default 1."""
