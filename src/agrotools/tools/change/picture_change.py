"""Change between two pictures in natural colours: buildings, plants, water, or any difference.

Unsupervised measures compute the difference of each pixel after both dates are normalised to the same radiometry. They
answer "does this look different?"; season, haze and shade look different too.
"""

from dataclasses import dataclass
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.special import chdtrc

from agrotools.tools.change.buildings import built_change
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
from agrotools.vision.vegetation import choose_index, otsu_threshold, segment

Unsupervised = Literal["cva", "irmad", "pca_kmeans"]

_SAMPLE_PX = 50_000
"""Approximate number of pixels from which the statistics of larger pictures are computed."""
_LEAST_SPREAD = 0.02
"""Share of a band's standard deviation below which differences are rounding errors."""
_LEAST_MAGNITUDE = 1.0
"""Least length of a change vector that counts as change, in robust spreads, whatever the threshold."""
_ROUNDS = 30
_CONVERGED = 1e-4
_BLOCK = 5
"""Side of the blocks of PCA and k-means, pixels."""
_COMPONENTS = 6


@dataclass(frozen=True, eq=False)
class Difference:
    """Difference of two dates for each pixel.

    ``magnitude``: float32 (rows, columns), size of the difference. ``threshold``: magnitude above which a pixel has
    changed.
    """

    magnitude: NDArray[np.float32]
    threshold: float


def match_radiometry(
    before: NDArray[np.float32], after: NDArray[np.float32], valid: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """Return ``before`` with each band mapped linearly to the radiometry of ``after``.

    The line is fitted to pixels that did not change, found by refitting to the half of the pixels nearest the line
    (pseudo-invariant features as in Schott et al. 1988, trimmed as in Rousseeuw's LTS). This tolerates change on up to
    half of the scene.

    Args:
        before, after: float32 (bands, rows, columns).
        valid: bool (rows, columns), pixels with data on both dates.
    """
    changed = np.empty_like(before)
    for number, (first, second) in enumerate(zip(before, after, strict=True)):
        x, y = (_subsample(band[valid]).astype(np.float64) for band in (first, second))
        gain, offset = _scale_and_middle(x, y)
        for _ in range(8):
            off = np.abs(y - gain * x - offset)
            near = off <= np.median(off)
            gain, offset = _reduced_major_axis(x[near], y[near], (gain, offset))
        changed[number] = first * np.float32(gain) + np.float32(offset)
    return changed


def change_vectors(before: NDArray[np.float32], after: NDArray[np.float32], valid: NDArray[np.bool_]) -> Difference:
    """Return the length of the change vectors (Malila 1980), each band in units of its own robust spread."""
    total = np.zeros(valid.shape, np.float32)
    for first, second in zip(before, after, strict=True):
        difference = second - first
        least = _LEAST_SPREAD * float(_subsample(second[valid]).std())
        total += (difference / np.float32(max(_spread(_subsample(difference[valid])), least, 1e-9))) ** 2
    difference_map = _change_threshold(np.sqrt(total), valid)
    return Difference(difference_map.magnitude, max(difference_map.threshold, _LEAST_MAGNITUDE))


def iterated_mad(before: NDArray[np.float32], after: NDArray[np.float32], valid: NDArray[np.bool_]) -> Difference:
    """Return the root of the chi-square of the iteratively reweighted MAD variates (Nielsen 2007, IEEE TIP 16).

    MAD is multivariate alteration detection. It needs no radiometric normalisation, because canonical variates are
    invariant to linear changes of the bands.
    """
    bands = before.shape[0]
    x, y = (np.stack([_subsample(band[valid]) for band in stack]).astype(np.float64) for stack in (before, after))
    weights = np.ones(x.shape[1])
    a, b, mean_x, mean_y, variance = _variates(x, y, weights)
    for _ in range(_ROUNDS):
        part = a.T @ (x - mean_x[:, None]) - b.T @ (y - mean_y[:, None])
        weights = chdtrc(bands, (part**2 / variance[:, None]).sum(axis=0)) + 1e-9
        former = variance
        a, b, mean_x, mean_y, variance = _variates(x, y, weights)
        if np.abs(variance - former).max() < _CONVERGED:
            break
    total = np.zeros(valid.shape, np.float32)
    for column in range(bands):
        variate = np.full(valid.shape, np.float32(mean_y @ b[:, column] - mean_x @ a[:, column]))
        for band in range(bands):
            variate += before[band] * np.float32(a[band, column])
            variate -= after[band] * np.float32(b[band, column])
        total += variate**2 / np.float32(variance[column])
    return _change_threshold(np.sqrt(total), valid)


def _variates(
    x: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], ...]:
    """Return canonical variates of unit variance of two sets of bands (bands, pixels).

    These are the weights of both sets (a column for each pair of variates), the means of their bands, and the variance
    of the difference of each pair.
    """
    bands = x.shape[0]
    both = np.concatenate([x, y])
    mean = np.average(both, axis=1, weights=weights)
    off = both - mean[:, None]
    covariance = (off * (weights / weights.sum())) @ off.T + 1e-6 * np.eye(2 * bands)
    xx, xy, yy = covariance[:bands, :bands], covariance[:bands, bands:], covariance[bands:, bands:]
    squared, a = eigh(xy @ np.linalg.solve(yy, xy.T), xx)
    b = np.linalg.solve(yy, xy.T @ a)
    length = np.sqrt(np.maximum(np.einsum("ij,ik,kj->j", b, yy, b), 0))
    b = b / np.maximum(length, 1e-12)
    rho = np.sqrt(np.clip(squared, 0, 1))
    return a, b, mean[:bands], mean[bands:], np.maximum(2 * (1 - rho), 1e-9)


def pca_kmeans(before: NDArray[np.float32], after: NDArray[np.float32], valid: NDArray[np.bool_]) -> Difference:
    """Return the result of PCA and k-means with two clusters on blocks of the difference (Celik 2009, IEEE GRSL 6).

    The magnitude is the position on the axis between the two cluster means: 0 at the unchanged one, 1 at the changed
    one. It can be outside this range. A pixel above 0.5 has changed.
    """
    # Basis functions of the principal components are filters, so the feature vectors need not be built in memory.
    difference = np.where(valid, change_vectors(before, after, valid).magnitude, 0).astype(np.float32)
    if float(difference.max()) < _LEAST_MAGNITUDE:
        return Difference(np.zeros_like(difference), 0.5)
    padded = cv2.copyMakeBorder(difference, _BLOCK // 2, _BLOCK // 2, _BLOCK // 2, _BLOCK // 2, cv2.BORDER_REFLECT)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (_BLOCK, _BLOCK))
    blocks = windows[::_BLOCK, ::_BLOCK].reshape(-1, _BLOCK * _BLOCK)
    blocks = blocks[:: max(1, len(blocks) // _SAMPLE_PX)].astype(np.float64)
    off = blocks - blocks.mean(axis=0)
    _, vectors = np.linalg.eigh(off.T @ off)
    basis = vectors[:, ::-1][:, :_COMPONENTS].T.reshape(-1, _BLOCK, _BLOCK)
    features = np.stack([cv2.filter2D(difference, cv2.CV_32F, part, borderType=cv2.BORDER_REFLECT) for part in basis])
    sample = np.stack([_subsample(feature[valid]) for feature in features], axis=1)
    strength = (sample**2).sum(axis=1)
    start = (strength > np.median(strength)).astype(np.int32)
    if len(sample) < 2 or not start.any():
        return Difference(np.zeros_like(difference), 0.5)
    ends = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_MAX_ITER, 50, 1e-6)
    low, high = cv2.kmeans(sample, 2, start, ends, 1, cv2.KMEANS_USE_INITIAL_LABELS)[2]
    axis = high - low
    length = max(float(axis @ axis), 1e-12)
    place = np.tensordot(axis, features, axes=1) - np.float32(axis @ low)
    return Difference(np.where(valid, place / np.float32(length), 0).astype(np.float32), 0.5)


def difference_of(
    method: Unsupervised, before: NDArray[np.float32], after: NDArray[np.float32], valid: NDArray[np.bool_]
) -> Difference:
    """Compute the named measure on bands (bands, rows, columns); pixels that are not ``valid`` are ignored."""
    before, after = (np.where(valid, bands, 0).astype(np.float32) for bands in (before, after))
    if method == "irmad":
        return iterated_mad(before, after, valid)
    before = match_radiometry(before, after, valid)
    return change_vectors(before, after, valid) if method == "cva" else pca_kmeans(before, after, valid)


def _change_threshold(magnitude: NDArray[np.float32], valid: NDArray[np.bool_]) -> Difference:
    sample = _subsample(magnitude[valid])
    # A long tail pulls Otsu's threshold upwards, so the largest 1 % is clipped.
    top = float(np.quantile(sample, 0.99))
    return Difference(np.where(valid, magnitude, 0).astype(np.float32), otsu_threshold(np.minimum(sample, top)))


def _subsample(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return values[:: max(1, values.size // _SAMPLE_PX)]


def _spread(values: NDArray[np.float32]) -> float:
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))


def _scale_and_middle(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    wide_x, wide_y = (float(np.subtract(*np.quantile(values, (0.75, 0.25)))) for values in (x, y))
    gain = wide_y / wide_x if wide_x > 0 and wide_y > 0 else 1.0
    return gain, float(np.median(y) - gain * np.median(x))


def _reduced_major_axis(
    x: NDArray[np.float64], y: NDArray[np.float64], former: tuple[float, float]
) -> tuple[float, float]:
    """Fit a line that treats both dates alike, so that swapping them gives the inverse line."""
    wide_x, wide_y = float(x.std()), float(y.std())
    if wide_x <= 0 or wide_y <= 0 or np.mean((x - x.mean()) * (y - y.mean())) <= 0:
        return former
    gain = wide_y / wide_x
    return gain, float(y.mean() - gain * x.mean())


CLEARLY_CHANGED = 0.05
"""Least share of the area covered by new or lost roofs for a verdict of change."""
_SPECK_SHARE = 0.0005
_WEAK_FOR_PLANTS = frozenset(
    "low_contrast no_vegetation no_soil_visible too_dark featureless_image registration_uncertain".split()
)
_LEAST_SPECK_PX = 20
_SAME_POND = 0.25
"""Least share of a pond's area that is water on the other date for the two to be the same pond."""


def built_up_change(pictures: Pictures, target: str, request: ChangeRequest) -> ChangeInputs:
    """Find buildings gained and lost; for farmland only gains on open land count as change."""
    least = _least_speck_px(pictures, request)
    gains_only = target == "farmland"
    built = built_change(pictures.before, pictures.after, pictures.valid, pictures.gsd_m, gains_only=gains_only)
    changes = _change_map(pictures, built.gained, built.lost, least)
    counted_kinds = (GAINED,) if gains_only else (GAINED, LOST)
    share = _share(pictures, changes, counted_kinds)
    changed, why, flags = _answer_of_buildings(pictures, share, built.evidence)
    inside = _slices(pictures.box)
    what = "buildings" if built.evidence == "roofs" else "settlement texture"
    return _change_inputs(
        pictures,
        changes,
        method="post_class",
        changed=changed,
        words={kind: f"{what} {'gained' if kind == GAINED else 'lost'}" for kind in counted_kinds},
        counted_kinds=counted_kinds,
        counts=two_classes(("open land", "built-up"), built.before[inside], changes[inside]),
        notes=(built.note, *why, _speck_note(least)),
        flags=flags,
    )


def unsupervised_change(
    pictures: Pictures, method: Unsupervised, threshold: float | Literal["otsu"], request: ChangeRequest
) -> ChangeInputs:
    """Find pixels that look different after relative normalisation, without a verdict on the land."""
    least = _least_speck_px(pictures, request)
    first, second = pictures.bands or tuple(
        np.ascontiguousarray(picture.transpose(2, 0, 1)).astype(np.float32)
        for picture in (pictures.before, pictures.after)
    )
    difference = difference_of(method, first, second, pictures.valid)
    level = difference.threshold if threshold == "otsu" else float(threshold)
    changed_pixels = (difference.magnitude > level) & pictures.valid
    changes = np.where(changed_pixels, np.uint8(CHANGED), np.uint8(SAME))
    changes[~pictures.valid] = NO_DATA
    changes = without_specks(changes, least)
    any_change = _share(pictures, changes, (CHANGED,)) > 0
    why = "unsupervised difference: season, light and haze differ too, so whether land changed is not said"
    return _change_inputs(
        pictures,
        changes,
        method=method,
        changed=None if any_change or pictures.flags else False,
        words={CHANGED: "looks different"},
        notes=(f"{method}: magnitude over {level:.4g}", why, _speck_note(least)),
        flags=("phenology_risk",),
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
    weak = {"too_dark", "featureless_image", "registration_uncertain"} & set(pictures.flags)
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


def _share(pictures: Pictures, changes: NDArray[np.uint8], kinds: tuple[int, ...]) -> float:
    inside = changes[_slices(pictures.box)]
    valid_px = int(np.count_nonzero(inside != NO_DATA))
    return float(np.isin(inside, kinds).sum()) / max(1, valid_px)


def _slices(box: Box) -> tuple[slice, slice]:
    return slice(box[1], box[3]), slice(box[0], box[2])
