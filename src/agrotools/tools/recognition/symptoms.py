"""Symptoms of a leaf without their cause: the share that has lost its green, and its colours."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from agrotools.core import ToolError
from agrotools.vision import Box
from agrotools.vision.colours import dominant_colours

if TYPE_CHECKING:
    from agrotools.tools.lesions.leaf import Leaf

LesionShape = Literal["none", "spots", "streaks", "blotches", "diffuse"]
_ANALYSIS_PX = 256
_VIEW_PX = 140
_LEAST_PX = 6
_NONE_PCT, _DIFFUSE_PCT = 1.0, 50.0
_LARGE_SHARE = 0.05
_LONG = 0.94
_LEAST_COLOUR = 0.15


class Evidence(BaseModel):
    """Symptoms of a leaf by colour rules, whatever the cause."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    symptom_colours: tuple[str, ...]
    """colours of the tissue that has lost its green, most frequent first"""
    lesion_pct: float | None
    """share of the leaf that has lost its green, percent, rough; null where no leaf is found"""
    lesion_shape: LesionShape | None
    """spots: small and round; streaks: long; blotches: large; diffuse: over half of the leaf"""

    def in_words(self) -> str:
        """A sentence without its full stop; empty where nothing was seen."""
        if self.lesion_pct is None:
            return ""
        if self.lesion_shape == "none":
            return "hardly any of the leaf has lost its green"
        colours = f", {' and '.join(self.symptom_colours)}" if self.symptom_colours else ""
        return f"{self.lesion_pct:.0f} % of the leaf has lost its green ({self.lesion_shape}{colours})"


NOTHING = Evidence(symptom_colours=(), lesion_pct=None, lesion_shape=None)


@dataclass(frozen=True)
class LeafSymptoms:
    """``box``: bounds of the leaf in pixels of the picture that was given; None where no leaf is found."""

    evidence: Evidence
    box: Box | None


def symptoms_of(pixels: NDArray[np.uint8]) -> LeafSymptoms:
    """Symptoms of the leaf in a picture, uint8 (rows, columns, 3). Analysed at a small size: numbers are rough."""
    from agrotools.tools.lesions.leaf import leaf_in_field, leaf_on_board, shrink_image

    small = shrink_image(pixels, _ANALYSIS_PX)
    try:
        leaf = leaf_on_board(small) or leaf_in_field(small)
    except ToolError:
        return LeafSymptoms(NOTHING, None)
    factor = pixels.shape[1] / small.shape[1]
    x0, y0, x1, y1 = (round(edge * factor) for edge in leaf.box)
    box = (x0, y0, min(x1, pixels.shape[1]), min(y1, pixels.shape[0]))
    return LeafSymptoms(_evidence(small, leaf), box)


def _evidence(small: NDArray[np.uint8], leaf: "Leaf") -> Evidence:
    import cv2

    from agrotools.tools.lesions.segmentation import (
        MOST_SHIFT,
        MOST_SHIFT_IN_FIELD,
        healthy_colour,
        leaf_view,
        lesion_level,
    )

    view = leaf_view(small, leaf.mask, leaf.box, _VIEW_PX)
    most = MOST_SHIFT_IN_FIELD if "field_background" in leaf.flags else MOST_SHIFT
    lesion = np.zeros(view.mask.shape, np.uint8)
    lesion[view.mask] = lesion_level(view, healthy_colour(view), most) >= 1
    count, labels, stats, _ = cv2.connectedComponentsWithStats(lesion, connectivity=8)
    areas = np.asarray(stats, np.int64)[1:, cv2.CC_STAT_AREA]
    kept = np.flatnonzero(areas >= _LEAST_PX) + 1
    lesion = np.isin(np.asarray(labels), kept)
    pct = 100 * float(lesion.sum() / max(1, int(view.mask.sum())))
    if pct < _NONE_PCT or count < 2:
        return Evidence(symptom_colours=(), lesion_pct=pct, lesion_shape="none")
    pixels = np.asarray(cv2.cvtColor(view.lab, cv2.COLOR_LAB2RGB) * 255).clip(0, 255).astype(np.uint8)[lesion]
    colours = tuple(one.name for one in dominant_colours(pixels, 3) if one.share >= _LEAST_COLOUR)
    return Evidence(
        symptom_colours=colours,
        lesion_pct=pct,
        lesion_shape=_shape(np.asarray(labels, np.int64), kept, areas, view.mask, pct),
    )


def _shape(
    labels: NDArray[np.int64], kept: NDArray[np.int64], areas: NDArray[np.int64], leaf: NDArray[np.bool_], pct: float
) -> LesionShape:
    """The shape of the patch in which half of the diseased area lies or in smaller ones."""
    if pct > _DIFFUSE_PCT:
        return "diffuse"
    order = kept[np.argsort(areas[kept - 1])]
    total = np.cumsum(areas[order - 1])
    middle = int(order[int(np.searchsorted(total, total[-1] / 2))])
    rows, columns = np.nonzero(labels == middle)
    spread = np.cov(np.stack([columns, rows]).astype(np.float64)) + np.eye(2) / 12
    low, high = np.linalg.eigvalsh(spread)
    if np.sqrt(max(0.0, 1 - low / high)) > _LONG:
        return "streaks"
    return "blotches" if len(rows) > _LARGE_SHARE * np.count_nonzero(leaf) else "spots"
