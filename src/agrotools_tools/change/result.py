"""Result of a change measurement: counts from a map of change, and pictures of it."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agrotools.calling.contract import ToolResult
from agrotools.calling.result import ResultPart
from agrotools.calling.workspace import save_artifact
from agrotools.core import Artifact, ToolError
from agrotools.vision import Box
from agrotools.vision.overlay import (
    BLACK,
    ORANGE,
    REDDISH_PURPLE,
    SKY_BLUE,
    Colour,
    Layer,
    class_picture,
    dim_outside,
    tint_layers,
    with_legend,
)

Target = Literal["farmland", "pond", "vegetation", "any"]
MethodChoice = Literal["auto", "post_class", "mask_diff"]
Method = Literal["mask_diff", "index_difference", "post_class", "water_masks"]
PondEvent = Literal["constructed", "demolished", "dried", "wetted", "none"]


class Transition(ResultPart):
    """One cell of the transition matrix: what was one class before and is another after."""

    from_class: str = Field(alias="from")
    """class before"""
    to_class: str = Field(alias="to")
    """class after"""
    px: int
    """pixels"""
    pct: float
    """percent of all pixels with data in both"""
    area_ha: float | None
    """hectares; null without a known scale"""


class TransitionMatrix(ResultPart):
    """Areas from each class (row) to each class (column), the unchanged on the diagonal."""

    classes: tuple[str, ...]
    """names of rows and columns, in order"""
    px: tuple[tuple[int, ...], ...]
    """pixels"""
    pct: tuple[tuple[float, ...], ...]
    """percent of all pixels with data in both"""
    ha: tuple[tuple[float, ...], ...] | None
    """hectares; null without a known scale"""


class PondChange(ResultPart):
    """Change of standing water."""

    event: PondEvent | None
    """what happened; null where it cannot be told"""
    area_before_px: int
    """water before, pixels"""
    area_after_px: int
    """water after, pixels"""
    delta_pct: float | None
    """change of the water area, percent of the area before; null without water before"""

    @classmethod
    def of(cls, event: PondEvent | None, before: int, after: int) -> "PondChange":
        """Return the change between two areas of water, pixels."""
        delta_pct = 100 * (after - before) / before if before else None
        return cls(event=event, area_before_px=before, area_after_px=after, delta_pct=delta_pct)


class VegetationChange(ResultPart):
    """Change of plants."""

    index: str
    """vegetation index that was compared"""
    mean_before: float | None
    """mean index before; null where only plants and no plants were told apart"""
    mean_after: float | None
    """mean index after"""
    threshold: float | None
    """least difference of the index that counts as gain or loss"""
    cover_before_pct: float | None
    """plant cover before, percent; null where the index alone was compared"""
    cover_after_pct: float | None
    """plant cover after, percent"""


class ChangeResult(ToolResult):
    changed: bool | None
    """whether there is change of the kind asked for; null where the evidence is too weak to say"""
    change_px: int | None
    """changed pixels; null, like every figure of change, where the evidence is too weak for a map"""
    change_pct: float | None
    """changed, percent of total_px"""
    change_area_m2: float | None
    """changed area, m^2; null without a known scale"""
    change_area_ha: float | None
    """changed area, hectares; null without a known scale"""
    total_px: int
    """pixels with data on both dates; percentages refer to these"""
    gain_px: int | None
    """pixels gained (plants, water or the marked class); null where change has no direction"""
    loss_px: int | None
    """pixels lost; null where change has no direction or only gains are looked for"""
    gain_area_m2: float | None
    """gained area, m^2"""
    loss_area_m2: float | None
    """lost area, m^2"""
    transitions: tuple[Transition, ...]
    """from one class to another, largest first; empty where no classes are told apart"""
    dominant_transition: str | None
    """the largest transition as 'from->to'; null where there is none"""
    transition_matrix: TransitionMatrix | None
    """all transitions, with what stayed the same; null where no classes are told apart"""
    pond: PondChange | None
    """for target pond"""
    vegetation: VegetationChange | None
    """for target vegetation"""
    registration_shift_px: tuple[float, float] | None
    """how far the picture after lay to the right and down, pixels, before it was moved back; null: not compared"""
    gsd_m: float | None
    """ground sampling distance that was used, metres per pixel"""
    method: Method
    """how change was found"""
    mask: Artifact
    """0 no change, 1 gained, 2 lost, 3 changed without direction, 255 no data or outside"""
    overlay: Artifact
    """before, after and the map of change side by side"""


class ChangeRequest(NamedTuple):
    """Arguments that every method of :func:`detect_change` uses."""

    gsd_m: float | None = None
    region: Box | None = None
    min_area_px: int | None = None
    min_area_m2: float | None = None

    def least_px(self, gsd_m: float | None, default: int) -> int:
        """Return the size in pixels of the smallest patch that counts, or ``default`` if the call sets none.
        ToolError ``missing_metadata``: square metres without a scale; ``invalid_argument``: pixels and square
        metres."""
        if self.min_area_px is not None and self.min_area_m2 is not None:
            why = "min_area_px and min_area_m2 are both given"
            raise ToolError(
                "invalid_argument", why, argument="min_area_m2", hint="give one of the two"
            )
        if self.min_area_px is not None:
            return self.min_area_px
        if self.min_area_m2 is None:
            return default
        if gsd_m is None:
            why = "min_area_m2 needs the ground sampling distance, which is not known"
            hint = "give gsd_m (metres per pixel), or min_area_px"
            raise ToolError("missing_metadata", why, argument="gsd_m", hint=hint)
        return max(1, round(self.min_area_m2 / gsd_m**2))


def refuse_unfit(method: MethodChoice, possible: tuple[MethodChoice, ...], why: str) -> None:
    if method not in possible:
        why, hint = (
            f"method {method} does not go with these inputs: {why}",
            f"use {' or '.join(possible)}",
        )
        raise ToolError("invalid_argument", why, argument="method", hint=hint)


SAME, GAINED, LOST, CHANGED, NO_DATA = 0, 1, 2, 3, 255
_COLOURS: dict[int, Colour] = {
    SAME: (200, 200, 200), GAINED: ORANGE, LOST: SKY_BLUE, CHANGED: REDDISH_PURPLE, NO_DATA: BLACK,
}  # fmt: skip
PANEL_PX = 760
"""Longest side of each of the three panels of the overlay, pixels."""
_LEAST_PANEL_PX = 520
_GAP_PX = 6
_HECTARE_M2 = 10_000.0
ChangeCounts = tuple[tuple[str, ...], NDArray[np.int64]]
"""Names of classes, and the pixels (classes, classes) of each transition: class before by row, after by column."""


def without_specks(changes: NDArray[np.uint8], least_px: int) -> NDArray[np.uint8]:
    """Remove patches of each kind of change smaller than ``least_px`` pixels (8-connected) from the map."""
    from agrotools_tools.vision.vegetation import small_parts

    if least_px <= 1:
        return changes
    cleaned = changes.copy()
    for kind in (GAINED, LOST, CHANGED):
        cleaned[small_parts(changes == kind, least_px)] = SAME
    return cleaned


def class_changes(
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    valid: NDArray[np.bool_],
    least_px: int,
    *,
    has_direction: bool,
) -> NDArray[np.uint8]:
    """Return the map of change between two maps of class indices (negative: not counted), without small patches.

    ``has_direction``: True for two classes of which the second may be gained or lost.
    """
    changes = np.where(after == before, np.uint8(SAME), np.uint8(CHANGED))
    if has_direction:
        changes[after > before], changes[after < before] = GAINED, LOST
    changes[~valid | (before < 0) | (after < 0)] = NO_DATA
    return without_specks(changes, least_px)


def class_cells(
    before: NDArray[np.int64], after: NDArray[np.int64], changes: NDArray[np.uint8], size: int
) -> NDArray[np.int64]:
    """Return the pixels from each class (row) to each class (column); what the map calls the same stays ``before``."""
    counted = changes != NO_DATA
    cells = before * size + np.where(changes == SAME, before, after)
    return np.bincount(cells[counted], minlength=size * size).reshape(size, size)


def two_classes(
    names: tuple[str, str], before: NDArray[np.bool_], changes: NDArray[np.uint8]
) -> ChangeCounts:
    """Count the transitions of one thing, which ``before`` marks on the first date, and its absence. Where it
    disagrees with the map, the map takes precedence: lost pixels were the thing before, gained pixels were not."""
    gained, lost = changes == GAINED, changes == LOST
    was_there = np.where(gained | lost, lost, before).astype(np.int64)
    return names, class_cells(was_there, gained.astype(np.int64), changes, 2)


def counts_of(changes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Count the pixels of each kind, int64 (256,), in strips, because counting needs eight bytes per pixel."""
    step = max(1, 2_000_000 // max(1, changes.shape[1]))
    strips = (changes[top : top + step].ravel() for top in range(0, changes.shape[0], step))
    return sum((np.bincount(strip, minlength=256) for strip in strips), np.zeros(256, np.int64))


def change_result(
    changes: NDArray[np.uint8],
    pictures: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    box: Box,
    words: dict[int, str],
    *,
    method: Method,
    changed: bool | None,
    gsd_m: float | None,
    counts: ChangeCounts | None = None,
    shift_px: tuple[float, float] | None = None,
    pond: PondChange | None = None,
    vegetation: VegetationChange | None = None,
    notes: tuple[str, ...],
    flags: tuple[str, ...],
) -> ChangeResult:
    """Count, draw and save the change; ToolError ``region_empty`` if no counted pixel has data on both dates.

    ``changes``: uint8 (rows, columns) of the constants of this module. ``pictures``: uint8, before and after, of the
    same extent and any size. ``words``: name of each kind in the legend; without any, ``changes`` is no evidence, and
    neither counts nor a map are returned. ``changed``: the answer, None if the evidence does not support one.
    """
    x0, y0, x1, y1 = box
    count = counts_of(changes[y0:y1, x0:x1])
    total = int(count.sum() - count[NO_DATA])
    if total == 0:
        raise ToolError(
            "region_empty",
            "the region holds no data",
            argument="region",
            hint="choose one with data",
        )
    shown = np.full_like(changes, NO_DATA)
    if words:
        shown[y0:y1, x0:x1] = changes[y0:y1, x0:x1]
    change = int(count[[GAINED, LOST, CHANGED]].sum()) if words else None
    gain, loss = (int(count[kind]) if kind in words else None for kind in (GAINED, LOST))
    transitions, matrix = _transitions(counts, gsd_m)
    title = (
        "no map of change"
        if change is None
        else f"change {100 * change / total:.2f} % of {total} px"
    )
    verdict = {None: "not said", True: "yes", False: "no"}[changed]
    layers = [
        Layer(kind, _COLOURS[kind], f"{word} {100 * count[kind] / total:.2f} %")
        for kind, word in words.items()
    ]
    region = None if box == (0, 0, *changes.shape[::-1]) else box
    overlay = _draw(
        pictures,
        shown,
        layers,
        region,
        gsd_m,
        f"before, after, {title} ({method}); changed: {verdict}",
    )

    def area(px: int | None, unit_m2: float = 1.0) -> float | None:
        return None if px is None or gsd_m is None else px * gsd_m**2 / unit_m2

    return ChangeResult(
        changed=changed,
        change_px=change,
        change_pct=None if change is None else 100 * change / total,
        change_area_m2=area(change),
        change_area_ha=area(change, _HECTARE_M2),
        total_px=total,
        gain_px=gain,
        loss_px=loss,
        gain_area_m2=area(gain),
        loss_area_m2=area(loss),
        transitions=transitions,
        dominant_transition=f"{transitions[0].from_class}->{transitions[0].to_class}"
        if transitions
        else None,
        transition_matrix=matrix,
        pond=pond,
        vegetation=vegetation,
        registration_shift_px=shift_px,
        gsd_m=gsd_m,
        method=method,
        mask=save_artifact("change_mask.png", "mask", class_picture(shown, _COLOURS)),
        overlay=save_artifact("change_overlay.png", "overlay", overlay),
        notes=notes,
        flags=tuple(dict.fromkeys(flags if gsd_m is not None else (*flags, "no_scale"))),
    )


def _draw(
    pictures: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    changes: NDArray[np.uint8],
    layers: list[Layer],
    region: Box | None,
    gsd_m: float | None,
    title: str,
) -> NDArray[np.uint8]:
    """Draw three panels (before, after, and after with the change tinted), dimmed outside of ``region`` (pixels of
    ``changes``), with a legend and scale bar below; small pictures are enlarged by a whole factor."""
    import cv2

    height, width = changes.shape
    longest = max(width, height)
    factor: float = PANEL_PX / longest if longest > PANEL_PX else max(1, _LEAST_PANEL_PX // longest)
    size = max(1, round(width * factor)), max(1, round(height * factor))
    factor = size[0] / width
    panels: list[NDArray[np.uint8]] = []
    for picture in (*pictures, pictures[1]):
        method = cv2.INTER_AREA if size[0] < picture.shape[1] else cv2.INTER_NEAREST
        panels.append(np.array(cv2.resize(picture, size, interpolation=method), np.uint8))
    tint_layers(panels[2], changes, layers)
    for panel in panels:
        dim_outside(panel, region, factor)
    axis = 0 if size[0] > 2 * size[1] else 1
    gap = np.full((_GAP_PX, size[0], 3) if axis == 0 else (size[1], _GAP_PX, 3), 255, np.uint8)
    sheet = np.concatenate([panels[0], gap, panels[1], gap, panels[2]], axis=axis)
    return with_legend(sheet, layers, title, gsd_m / factor if gsd_m else None)


def _transitions(
    counts: ChangeCounts | None, gsd_m: float | None
) -> tuple[tuple[Transition, ...], TransitionMatrix | None]:
    if counts is None:
        return (), None
    classes, px = counts
    pct = 100.0 * px / max(1, int(px.sum()))
    ha = None if gsd_m is None else px * (gsd_m**2 / _HECTARE_M2)
    matrix = TransitionMatrix.model_validate(
        {
            "classes": classes,
            "px": px.tolist(),
            "pct": pct.tolist(),
            "ha": None if ha is None else ha.tolist(),
        }
    )
    cells = [
        Transition.model_validate(
            {
                "from": classes[row],
                "to": classes[column],
                "px": int(px[row, column]),
                "pct": float(pct[row, column]),
                "area_ha": None if ha is None else float(ha[row, column]),
            }
        )
        for row, column in zip(*np.nonzero(px), strict=True)
        if row != column
    ]
    return tuple(sorted(cells, key=lambda cell: (-cell.px, cell.from_class, cell.to_class))), matrix
