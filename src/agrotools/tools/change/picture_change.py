"""Change between two pictures in natural colours: buildings, plants or water."""

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.tools.change.detect_change import ChangeRequest, PondChange, VegetationChange
from agrotools.tools.change.index_change import answer_of_plants
from agrotools.tools.change.pairs import Pictures
from agrotools.tools.change.ponds import pond_change
from agrotools.tools.change.result import (
    CHANGED,
    GAINED,
    LOST,
    NO_DATA,
    SAME,
    ChangeInputs,
    counts_of,
    two_classes,
    without_specks,
)
from agrotools.vision import Box, Role
from agrotools.vision.vegetation import choose_index, segment

_SPECK_SHARE = 0.0005
_WEAK_FOR_PLANTS = frozenset(
    "low_contrast no_vegetation no_soil_visible too_dark featureless_image registration_uncertain".split()
)
_LEAST_SPECK_PX = 20
_UNUSABLE = frozenset(("too_dark", "featureless_image"))
_BUILDINGS = {GAINED: "buildings gained", CHANGED: "buildings changed"}
_SAME_POND = 0.25
"""Least share of a pond's area that is water on the other date for the two to be the same pond."""


def built_up_change(pictures: Pictures, target: str) -> ChangeInputs:
    """Say whether two photographs are equal: there is no map of new or lost buildings.

    A rule for single roofs that was chosen on pairs of one data set was worse than marking everything as changed on
    another, and nothing in the pictures told where it works (``docs/accuracy.md``).
    """
    inside = _slices(pictures.box)
    differs = (pictures.before[inside] != pictures.after[inside]).any(axis=-1) & pictures.valid[inside]
    same = not differs.any()
    kind = GAINED if target == "farmland" else CHANGED
    why = "buildings cannot be mapped from photographs reliably: no map of change is given; give masks of both dates"
    return _change_inputs(
        pictures,
        np.where(pictures.valid, SAME, NO_DATA).astype(np.uint8),
        method="post_class",
        changed=False if same and not _UNUSABLE & set(pictures.flags) else None,
        has_map=same,
        words={kind: _BUILDINGS[kind]},
        notes=("the two pictures are equal",) if same else (why,),
        flags=() if same else ("buildings_not_mapped",),
    )


def plant_cover_change(pictures: Pictures, request: ChangeRequest) -> ChangeInputs:
    """Separate plants from soil by colour on each date and compare the two masks."""
    least = _least_speck_px(pictures, request)
    masks: list[NDArray[np.bool_]] = []
    notes: list[str] = []
    flags: list[str] = []
    for picture, when in ((pictures.before, "before"), (pictures.after, "after")):
        channels: dict[Role, NDArray[Any]] = {role: picture[..., n] for n, role in enumerate(("R", "G", "B"))}  # pyright: ignore[reportAssignmentType]
        plants = segment(choose_index("auto", channels), channels, pictures.valid)
        masks.append(plants.mask)
        notes += [f"{when}: {note}" for note in plants.notes]
        flags += plants.flags
    changes = _change_map(pictures, masks[1] & ~masks[0], masks[0] & ~masks[1], least)
    inside = _slices(pictures.box)
    count = counts_of(changes[inside])
    total = int(count.sum() - count[NO_DATA])
    changed, why, risk = answer_of_plants(int(count[GAINED]), int(count[LOST]), total)
    # Without reflectance each date has its own threshold, so a mask from colours is weaker evidence than an index.
    weak = _WEAK_FOR_PLANTS & {*flags, *pictures.flags}
    cover = [100.0 * float(mask[inside].sum()) / max(1, int(pictures.valid[inside].sum())) for mask in masks]
    return _change_inputs(
        pictures,
        changes,
        method="index_difference",
        changed=None if weak else changed,
        words={GAINED: "plants gained", LOST: "plants lost"},
        counts=two_classes(("no plants", "plants"), masks[0][inside], changes[inside]),
        vegetation=VegetationChange(
            index="lab_a",
            mean_before=None,
            mean_after=None,
            threshold=None,
            cover_before_pct=cover[0],
            cover_after_pct=cover[1],
        ),
        notes=(*notes, *why, _speck_note(least)),
        flags=(*flags, *risk),
    )


def water_change(pictures: Pictures, request: ChangeRequest) -> ChangeInputs:
    """Find standing water on each date and its change, see :func:`agrotools.tools.change.ponds.pond_change`."""
    least = None if request.min_area_px is request.min_area_m2 is None else request.least_px(pictures.gsd_m, 1)
    ponds = pond_change(
        pictures.before,
        pictures.after,
        pictures.valid,
        nir_before=pictures.infrared[0] if pictures.infrared else None,
        nir_after=pictures.infrared[1] if pictures.infrared else None,
        gsd_m=pictures.gsd_m,
        min_area_px=least,
    )
    before, after = ponds.water_before, ponds.water_after
    changes = _change_map(pictures, _drop_overlapping(after, before), _drop_overlapping(before, after), 1)
    inside = _slices(pictures.box)
    area_before, area_after = int(before[inside].sum()), int(after[inside].sum())
    # The search for a dry basin at the place of the water requires two registered pictures.
    weak = (_UNUSABLE | {"registration_uncertain"}) & set(pictures.flags)
    event = None if weak else ponds.event
    return _change_inputs(
        pictures,
        changes,
        method="water_masks",
        changed=None if event is None else event != "none",
        words={GAINED: "water gained", LOST: "water lost"},
        counts=two_classes(("no water", "water"), before[inside], changes[inside]),
        pond=PondChange(
            event=event,
            area_before_px=area_before,
            area_after_px=area_after,
            delta_pct=100 * (area_after - area_before) / area_before if area_before else None,
        ),
        notes=(*ponds.notes, "change is counted of ponds that are water on one date only, not along shifting shores"),
        flags=ponds.flags,
    )


def _drop_overlapping(mask: NDArray[np.bool_], other: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the components of ``mask`` that hardly overlap ``other``."""
    count, labels = cv2.connectedComponents(mask.astype(np.uint8), connectivity=8)
    places = np.asarray(labels, np.int32)
    area = np.bincount(places.ravel(), minlength=count)
    shared = np.bincount(places[other], minlength=count)
    alone = shared < _SAME_POND * area
    alone[0] = False
    return np.asarray(alone[places])


def _change_inputs(
    pictures: Pictures, changes: NDArray[np.uint8], *, notes: tuple[str, ...], flags: tuple[str, ...], **more: Any
) -> ChangeInputs:
    return ChangeInputs(
        changes=changes,
        before=pictures.before,
        after=pictures.after,
        box=pictures.box,
        gsd_m=pictures.gsd_m,
        shift_px=pictures.shift_px,
        notes=(*pictures.notes, *(note for note in notes if note)),
        flags=(*pictures.flags, *flags),
        **more,
    )


def _change_map(
    pictures: Pictures, gained: NDArray[np.bool_], lost: NDArray[np.bool_], least: int
) -> NDArray[np.uint8]:
    changes = np.full(pictures.valid.shape, SAME, np.uint8)
    changes[gained] = GAINED
    changes[lost & ~gained] = LOST
    changes[~pictures.valid] = NO_DATA
    return without_specks(changes, least)


def _least_speck_px(pictures: Pictures, request: ChangeRequest) -> int:
    default = max(_LEAST_SPECK_PX, round(_SPECK_SHARE * pictures.valid.size))
    return request.least_px(pictures.gsd_m, default)


def _speck_note(least: int) -> str:
    return f"patches under {least} px do not count" if least > 1 else ""


def _slices(box: Box) -> tuple[slice, slice]:
    return slice(box[1], box[3]), slice(box[0], box[2])
