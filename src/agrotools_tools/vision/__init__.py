"""Image algorithms and small nets shared by several tools."""

from typing import Literal

Index = Literal["exg", "exgr", "cive", "lab_a", "ndvi", "gndvi", "ndre"]
"""Vegetation index."""
STRANGENESS_FILES = ("strangeness.json", "strangeness.npz")
"""Files of :mod:`agrotools_tools.vision.strangeness` in ``data``; part of the fingerprint of tools that use it."""
