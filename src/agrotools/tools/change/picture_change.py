"""Change between two pictures that a person could compare by eye: buildings, plants, water, or any difference."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from agrotools.tools.change.change_result import Found, PondChange, VegetationChange, two_classes
from agrotools.tools.change.index_change import answer_of_plants
from agrotools.tools.change.pair_files import Asked
from agrotools.tools.change.read_pictures import Pictures
from agrotools.vision.band_roles import Role
from agrotools.vision.change.built import built_change
from agrotools.vision.change.map import CHANGED, GAINED, LOST, NO_DATA, SAME, counts_of, without_specks
from agrotools.vision.change.methods import Unsupervised, difference_of
from agrotools.vision.formats import Box
from agrotools.vision.vegetation import choose_index, segment

CLEARLY_CHANGED = 0.05
"""Share of the area from which single new roofs answer the question."""
_SPECK_SHARE = 0.0005
_WEAK_FOR_PLANTS = frozenset(
    "low_contrast no_vegetation no_soil_visible too_dark featureless_image registration_uncertain".split()
)
_LEAST_SPECK_PX = 20
_SAME_POND = 0.25
"""Of its area, from which water of one date is the same pond as on the other."""


def built_up_change(pictures: Pictures, target: str, asked: Asked) -> Found:
    """Buildings gained and lost. For farmland only what was built on open land counts as change."""
    least = _least(pictures, asked)
    gains_only = target == "farmland"
    built = built_change(pictures.before, pictures.after, pictures.valid, pictures.gsd_m, gains_only=gains_only)
    changes = _map(pictures, built.gained, built.lost, least)
    counted = (GAINED,) if gains_only else (GAINED, LOST)
    share = _share(pictures, changes, counted)
    changed, why, flags = _answer_of_buildings(pictures, share, built.evidence)
    inside = _inside(pictures.box)
    what = "buildings" if built.evidence == "roofs" else "settlement texture"
    return _found(
        pictures,
        changes,
        method="post_class",
        changed=changed,
        words={kind: f"{what} {'gained' if kind == GAINED else 'lost'}" for kind in counted},
        counted=counted,
        counts=two_classes(("open land", "built-up"), built.before[inside], changes[inside]),
        notes=(built.note, *why, _speck_note(least)),
        flags=flags,
    )


def unsupervised_change(
    pictures: Pictures, method: Unsupervised, threshold: float | Literal["otsu"], asked: Asked
) -> Found:
    """Where the two look different after relative normalisation. Whether land changed is not said."""
    least = _least(pictures, asked)
    first, second = pictures.bands or tuple(
        np.ascontiguousarray(picture.transpose(2, 0, 1)).astype(np.float32)
        for picture in (pictures.before, pictures.after)
    )
    difference = difference_of(method, first, second, pictures.valid)
    level = difference.threshold if threshold == "otsu" else float(threshold)
    found = (difference.magnitude > level) & pictures.valid
    changes = np.where(found, np.uint8(CHANGED), np.uint8(SAME))
    changes[~pictures.valid] = NO_DATA
    changes = without_specks(changes, least)
    any_change = _share(pictures, changes, (CHANGED,)) > 0
    why = "unsupervised difference: season, light and haze differ too, so whether land changed is not said"
    return _found(
        pictures,
        changes,
        method=method,
        changed=None if any_change or pictures.flags else False,
        words={CHANGED: "looks different"},
        notes=(f"{method}: magnitude over {level:.4g}", why, _speck_note(least)),
        flags=("phenology_risk",),
    )


def plant_cover_change(pictures: Pictures, asked: Asked) -> Found:
    """Plants of each date told from soil by colour, and the two masks compared."""
    least = _least(pictures, asked)
    masks: list[NDArray[np.bool_]] = []
    notes: list[str] = []
    flags: list[str] = []
    for picture, when in ((pictures.before, "before"), (pictures.after, "after")):
        channels: dict[Role, NDArray[Any]] = {role: picture[..., n] for n, role in enumerate(("R", "G", "B"))}  # pyright: ignore[reportAssignmentType]
        plants = segment(choose_index("auto", channels), channels, pictures.valid)
        masks.append(plants.mask)
        notes += [f"{when}: {note}" for note in plants.notes]
        flags += plants.flags
    changes = _map(pictures, masks[1] & ~masks[0], masks[0] & ~masks[1], least)
    inside = _inside(pictures.box)
    count = counts_of(changes[inside])
    total = int(count.sum() - count[NO_DATA])
    changed, why, risk = answer_of_plants(int(count[GAINED]), int(count[LOST]), total)
    # Without reflectance, each date's threshold is its own: a mask of colours says less than an index does.
    weak = _WEAK_FOR_PLANTS & {*flags, *pictures.flags}
    cover = [100.0 * float(mask[inside].sum()) / max(1, int(pictures.valid[inside].sum())) for mask in masks]
    return _found(
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


def water_change(pictures: Pictures, asked: Asked) -> Found:
    """Standing water of each date, and what became of it (:func:`agrotools.vision.water.ponds.pond_change`)."""
    from agrotools.vision.water.ponds import pond_change

    least = None if asked.min_area_px is asked.min_area_m2 is None else asked.least_px(pictures.gsd_m, 1)
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
    changes = _map(pictures, _apart(after, before), _apart(before, after), 1)
    inside = _inside(pictures.box)
    was, is_ = int(before[inside].sum()), int(after[inside].sum())
    # A dry basin is looked for where water was: that needs two pictures known to lie on each other.
    weak = {"too_dark", "featureless_image", "registration_uncertain"} & set(pictures.flags)
    event = None if weak else ponds.event
    return _found(
        pictures,
        changes,
        method="water_masks",
        changed=None if event is None else event != "none",
        words={GAINED: "water gained", LOST: "water lost"},
        counts=two_classes(("no water", "water"), before[inside], changes[inside]),
        pond=PondChange(
            event=event,
            area_before_px=was,
            area_after_px=is_,
            delta_pct=100 * (is_ - was) / was if was else None,
        ),
        notes=(*ponds.notes, "change is counted of ponds that are water on one date only, not along shifting shores"),
        flags=ponds.flags,
    )


def _apart(here: NDArray[np.bool_], there: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Regions of the first mask that hardly overlap the second."""
    import cv2

    count, labels = cv2.connectedComponents(here.astype(np.uint8), connectivity=8)
    places = np.asarray(labels, np.int32)
    area = np.bincount(places.ravel(), minlength=count)
    shared = np.bincount(places[there], minlength=count)
    alone = shared < _SAME_POND * area
    alone[0] = False
    return np.asarray(alone[places])


def _found(
    pictures: Pictures, changes: NDArray[np.uint8], *, notes: tuple[str, ...], flags: tuple[str, ...], **more: Any
) -> Found:
    return Found(
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


def _answer_of_buildings(
    pictures: Pictures, share: float, evidence: str
) -> tuple[bool | None, tuple[str, ...], tuple[str, ...]]:
    flags = ("phenology_risk",) if evidence == "texture" else ()
    if pictures.flags and {"too_dark", "featureless_image"} & set(pictures.flags):
        return None, (), flags
    if share == 0 and pictures.is_clear:
        return False, (), flags
    if evidence == "roofs" and share >= CLEARLY_CHANGED:
        return True, (), flags
    if evidence == "texture":
        why = "settlement texture also changes with season and light, so whether land changed is not said"
        if pictures.gsd_m is None:
            why += "; with gsd_m of up to 1 m, single roofs would be looked for"
        return None, (why,), flags
    why = f"roofs on {100 * share:.2g} % of the area are too few to say that land changed"
    return None, (why,), flags


def _map(pictures: Pictures, gained: NDArray[np.bool_], lost: NDArray[np.bool_], least: int) -> NDArray[np.uint8]:
    changes = np.full(pictures.valid.shape, SAME, np.uint8)
    changes[gained] = GAINED
    changes[lost & ~gained] = LOST
    changes[~pictures.valid] = NO_DATA
    return without_specks(changes, least)


def _least(pictures: Pictures, asked: Asked) -> int:
    default = max(_LEAST_SPECK_PX, round(_SPECK_SHARE * pictures.valid.size))
    return asked.least_px(pictures.gsd_m, default)


def _speck_note(least: int) -> str:
    return f"patches under {least} px do not count" if least > 1 else ""


def _share(pictures: Pictures, changes: NDArray[np.uint8], kinds: tuple[int, ...]) -> float:
    inside = changes[_inside(pictures.box)]
    there = int(np.count_nonzero(inside != NO_DATA))
    return float(np.isin(inside, kinds).sum()) / max(1, there)


def _inside(box: Box) -> tuple[slice, slice]:
    return slice(box[1], box[3]), slice(box[0], box[2])
