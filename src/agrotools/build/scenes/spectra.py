"""Reflectance of what lies in a field, in five bands, as fractions of the incoming light.

The levels are typical of published leaf and soil libraries (green peak near 560 nm, chlorophyll absorption near 670 nm,
red edge and near-infrared plateau of 0.4 to 0.6); they are round figures of ours, not measurements.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BANDS = ("B", "G", "R", "RE", "NIR")
"""Band order of every scene: blue 475, green 560, red 668, red edge 717, near infrared 842 nm."""

Spectrum = NDArray[np.float32]


def spectrum(*values: float) -> Spectrum:
    """Five reflectances in the order of :data:`BANDS`."""
    return np.asarray(values, dtype=np.float32)


@dataclass(frozen=True)
class SoilKind:
    """Reflectance of the dry soil and of its stones, and how much darker it is when moist."""

    dry: Spectrum
    stone: Spectrum
    moist: float


SOILS: tuple[SoilKind, ...] = (
    SoilKind(spectrum(0.085, 0.125, 0.175, 0.200, 0.245), spectrum(0.21, 0.25, 0.28, 0.30, 0.32), 0.62),  # loam
    SoilKind(spectrum(0.120, 0.175, 0.235, 0.265, 0.310), spectrum(0.26, 0.30, 0.33, 0.35, 0.37), 0.66),  # sandy
    SoilKind(spectrum(0.060, 0.078, 0.098, 0.112, 0.135), spectrum(0.17, 0.19, 0.21, 0.22, 0.24), 0.70),  # humus-rich
    SoilKind(spectrum(0.065, 0.105, 0.190, 0.225, 0.275), spectrum(0.20, 0.23, 0.28, 0.30, 0.33), 0.64),  # red
)

STRAW = spectrum(0.180, 0.265, 0.345, 0.385, 0.440)
STRAW_WEATHERED = spectrum(0.130, 0.165, 0.200, 0.225, 0.270)
DEAD_LEAF = spectrum(0.060, 0.095, 0.150, 0.190, 0.270)

LEAVES: dict[str, Spectrum] = {
    "beet": spectrum(0.034, 0.118, 0.052, 0.235, 0.520),
    "bean": spectrum(0.036, 0.128, 0.062, 0.260, 0.560),
    "maize": spectrum(0.038, 0.135, 0.068, 0.270, 0.500),
    "goosefoot": spectrum(0.046, 0.112, 0.066, 0.215, 0.430),
    "amaranth": spectrum(0.034, 0.104, 0.060, 0.220, 0.460),
    "thistle": spectrum(0.050, 0.122, 0.072, 0.230, 0.440),
    "seedling": spectrum(0.040, 0.140, 0.074, 0.270, 0.470),
    "grass": spectrum(0.036, 0.124, 0.066, 0.245, 0.430),
}
YELLOWED = spectrum(0.050, 0.200, 0.175, 0.340, 0.470)
"""A leaf that loses its chlorophyll: old leaves, and stress at higher difficulties."""
