"""What drawing a scene gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from numpy.typing import NDArray

Difficulty = Literal[0, 1, 2, 3]
"""Set by the scene alone: occlusion, light, noise, look-alikes. Never by whether a tool gets it right."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A drawn scene.

    ``images``: arrays as a camera or sensor gives them, e.g. ``rgb`` uint8 (rows, columns, 3), ``bands`` uint16
    (bands, rows, columns) reflectance x 10,000, ``depth`` uint16. ``sidecar``: what is known of them besides (gsd_m,
    bands, intrinsics). ``truth``: numbers and labels. ``masks``: truth per pixel, e.g. ``classes`` uint8.
    """

    images: Mapping[str, NDArray[Any]]
    sidecar: Mapping[str, Any] = field(default_factory=dict)
    truth: Mapping[str, Any] = field(default_factory=dict)
    masks: Mapping[str, NDArray[Any]] = field(default_factory=dict)
