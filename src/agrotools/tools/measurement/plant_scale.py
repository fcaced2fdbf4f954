"""How many centimetres a pixel is in a picture of plants: given, from a marker in the picture, or known of the file."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from agrotools.core import ToolError
from agrotools.tools.scale import chosen_scale
from agrotools.vision.plants.round_marker import Disc, find_discs

_INSTEAD = "measure a known length in pixels and pass scale_cm_px"


class ScaleMarker(BaseModel):
    """An object of known size in the picture."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    type: Literal["ruler", "color_card", "circle"]
    """what it is"""
    size_cm: Annotated[float, Field(gt=0, le=1000)]
    """its length; of a circle its diameter"""


@dataclass(frozen=True)
class PlantScale:
    """``cm_px``: centimetres per pixel, None where nobody knows; ``disc``: the marker it was found by."""

    cm_px: float | None
    disc: Disc | None = None
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def scale_of(
    scale_cm_px: float | None,
    marker: ScaleMarker | None,
    gsd_m: float | None,
    pixels: NDArray[np.uint8],
    plants: NDArray[np.bool_],
    name: str,
) -> PlantScale:
    """The scale to use: ``scale_cm_px``, else that of the marker, else ``gsd_m`` (metres per pixel) of the file.

    Raises:
        ToolError: ``missing_metadata`` where a marker was named that cannot be found for certain.
    """
    if scale_cm_px is not None:
        chosen = chosen_scale(scale_cm_px / 100, gsd_m)
        ignored = ("scale_cm_px was given, so the scale marker was not looked for",) if marker else ()
        return PlantScale(scale_cm_px, None, (*chosen.notes, *ignored), chosen.flags)
    if marker is None:
        return PlantScale(None if gsd_m is None else 100 * gsd_m)
    if marker.type != "circle":
        raise ToolError("missing_metadata", f"a {marker.type.replace('_', ' ')} cannot be found reliably offline",
                        argument="scale_marker", hint=f"{_INSTEAD}, or lay a disc beside the plants")  # fmt: skip
    discs = find_discs(pixels, plants)
    if len(discs) != 1:
        seen = "no disc was" if not discs else f"{len(discs)} discs were"
        raise ToolError("missing_metadata", f"{seen} found in {name}, so its scale is not known",
                        argument="scale_marker", hint=_INSTEAD)  # fmt: skip
    disc = discs[0]
    note = f"scale from a disc of {2 * disc.radius:.1f} px at ({disc.x:.0f}, {disc.y:.0f})"
    return PlantScale(marker.size_cm / (2 * disc.radius), disc, (note,))
