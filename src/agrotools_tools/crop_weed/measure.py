"""Separation of crop and weeds: by a trained head, by the crop rows of a vegetation mask, or not at all."""

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.calling.pictures import FieldPicture
from agrotools.calling.workspace import backend_in_use
from agrotools.core import ToolError
from agrotools.core.files import sha256_of_file
from agrotools_tools.crop_weed.heads import (
    applicable_heads,
    is_false_colour,
    list_heads,
    load_head,
    separate_crop,
)
from agrotools_tools.crop_weed.result import UNTRAINED, Method, SeparationChoice
from agrotools_tools.vision.strangeness import FLAG
from agrotools_tools.vision.vegetation import Vegetation, segment

Floats = NDArray[np.float32]

LEAST_ROWS = 2.75
"""Least number of rows (extent over spacing) across the picture; two bands of plants may occur by chance."""
LEAST_PEAK_RATIO = 3.0
"""Least ratio of the plant cover on the row lines to the cover midway between them."""
LEAST_REPEAT = 0.5
"""Least correlation of the cover profile with itself shifted by one spacing."""
LEAST_ACCORD = 0.6
"""Least correlation of the cover profiles of the two halves of the picture, which must show the same rows.

With these four limits, 1 of 300 pictures of randomly scattered plants was taken for rows.
"""
_WORK_PX = 320
"""Longest side, pixels, to which a mask is shrunk to look for rows in it."""


@dataclass(frozen=True)
class Rows:
    """Row lines: ``across = x sin(angle) + y cos(angle)`` equals ``offset_px + k spacing_px`` for integer k.

    ``angle_deg``: direction of the rows, degrees from the x axis, counter-clockwise in the picture, in (-90, 90].
    ``half_width_px``: distance from a line within which plants are crop. ``peak_ratio``, ``repeat``, ``accord``:
    evidence for the rows.
    """

    angle_deg: float
    spacing_px: float
    offset_px: float
    half_width_px: float
    peak_ratio: float
    repeat: float
    accord: float


def find_rows(mask: NDArray[np.bool_], valid: NDArray[np.bool_] | None = None) -> Rows | None:
    """Find the rows that fit a vegetation mask best; None if the evidence is weak (:data:`LEAST_PEAK_RATIO`...).

    The direction is the one across which the profile of plant cover varies most. The spacing is the first strong peak
    of the profile's autocorrelation. Evidence: the profile repeats itself, cover on the lines exceeds cover between
    them, and both halves of the picture, divided across the rows, have the same profile.
    """
    if mask.sum() < 200:
        return None
    cover, weight, scale = _shrink(mask, valid)
    coarse = [(_variation(cover, weight, angle), angle) for angle in np.arange(-90.0, 90.0, 2.0)]
    near = max(coarse)[1]
    fine = [
        (_variation(cover, weight, angle), angle)
        for angle in np.arange(near - 2.0, near + 2.01, 0.25)
    ]
    angle = max(fine)[1]
    profile, start = _profile(cover, weight, angle)
    spacing_and_repeat = _spacing(profile)
    if spacing_and_repeat is None:
        return None
    spacing, repeat = spacing_and_repeat
    spacing, offset = _comb(profile, spacing)
    distance = _distance(np.arange(len(profile)), offset, spacing) / spacing
    on_line, between = profile[distance < 0.12].mean(), profile[distance > 0.35].mean()
    ratio = float(on_line / max(between, 1e-4))
    accord = _agreement_of_halves(cover, weight, angle)
    if ratio < LEAST_PEAK_RATIO or repeat < LEAST_REPEAT or accord < LEAST_ACCORD:
        return None
    half_width = _half_width(profile, distance) * spacing
    # Turning the direction by 180 degrees reverses the sign of distances across it.
    turned, sign = (angle, 1) if angle > -90 else (angle + 180, -1)
    return Rows(
        angle_deg=float(turned),
        spacing_px=float(spacing * scale),
        offset_px=float(sign * (start + offset) * scale),
        half_width_px=float(half_width * scale),
        peak_ratio=min(ratio, 1000.0),
        repeat=float(repeat),
        accord=accord,
    )


def crop_in_rows(rows: Rows, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the part of the vegetation ``mask`` within the rows. A plant smaller than the width of a row goes where
    most of it is; larger ones, in which crop and weeds touch, are split at the edge of the row. Weeds inside a row
    count as crop."""
    distance = _distance(
        _across((mask.shape[0], mask.shape[1]), rows.angle_deg), rows.offset_px, rows.spacing_px
    )
    inside = distance.astype(np.float32) <= rows.half_width_px
    count, labels, stats, _ = cv2.connectedComponentsWithStats(
        mask.astype(np.uint8), connectivity=8
    )
    plants = np.asarray(labels, np.int32)
    area = stats[:, cv2.CC_STAT_AREA]
    share = np.bincount(plants[mask & inside], minlength=count) / np.maximum(area, 1)
    small = area < (2 * rows.half_width_px) ** 2
    whole = small | (share < 0.2) | (share > 0.8)
    crop = np.where(whole.take(plants), (share >= 0.5).take(plants), inside)
    return crop & mask


def _shrink(
    mask: NDArray[np.bool_], valid: NDArray[np.bool_] | None
) -> tuple[Floats, Floats, float]:
    """Return cover and weight of data at working size, and the pixels of the mask per pixel of it."""
    scale = max(1.0, max(mask.shape) / _WORK_PX)
    size = (max(1, round(mask.shape[1] / scale)), max(1, round(mask.shape[0] / scale)))
    cover = cv2.resize(mask.astype(np.float32), size, interpolation=cv2.INTER_AREA)
    there = np.ones(mask.shape, np.float32) if valid is None else valid.astype(np.float32)
    weight = cv2.resize(there, size, interpolation=cv2.INTER_AREA)
    return np.asarray(cover, np.float32), np.asarray(weight, np.float32), mask.shape[1] / size[0]


def _across(shape: tuple[int, int], angle_deg: float) -> NDArray[np.float64]:
    angle = np.deg2rad(angle_deg)
    y, x = np.ogrid[: shape[0], : shape[1]]
    return x * np.sin(angle) + y * np.cos(angle)


def _profile(cover: Floats, weight: Floats, angle_deg: float) -> tuple[NDArray[np.float64], int]:
    """Return the mean cover along lines of a direction, one value per pixel across, and the first line's position."""
    across = _across((cover.shape[0], cover.shape[1]), angle_deg)
    np.rint(across, out=across)
    first = int(
        across[:: max(1, len(across) - 1), :: max(1, across.shape[1] - 1)].min()
    )  # the minimum is at a corner
    across -= first
    place = across.astype(np.intp).ravel()
    total = np.bincount(place, weights=cover.ravel())
    length = np.bincount(
        place, weights=None if weight.min() == weight.max() == 1 else weight.ravel()
    )
    usable_bins = np.flatnonzero(length >= 0.2 * length.max())
    low, high = int(usable_bins[0]), int(usable_bins[-1]) + 1
    return total[low:high] / np.maximum(length[low:high], 1e-6), first + low


def _agreement_of_halves(cover: Floats, weight: Floats, angle_deg: float) -> float:
    """Return the correlation of the profiles of the two halves of the picture, over lines long enough in both."""
    shape = (cover.shape[0], cover.shape[1])
    across = np.rint(_across(shape, angle_deg)).astype(np.int64)
    along = _across(shape, angle_deg + 90)
    place = across - across.min()
    profiles: list[NDArray[np.float64]] = []
    lengths: list[NDArray[np.float64]] = []
    for half in (along < np.median(along), along >= np.median(along)):
        total = np.bincount(place[half], weights=cover[half], minlength=int(place.max()) + 1)
        length = np.bincount(place[half], weights=weight[half], minlength=int(place.max()) + 1)
        lengths.append(np.convolve(length, np.ones(5), mode="same"))
        profiles.append(np.convolve(total, np.ones(5), mode="same") / np.maximum(lengths[-1], 1e-6))
    shared = np.minimum(*lengths) >= 0.2 * np.max(lengths)
    first, second = (profile[shared] for profile in profiles)
    if len(first) < 24 or first.std() == 0 or second.std() == 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _variation(cover: Floats, weight: Floats, angle_deg: float) -> float:
    profile, _ = _profile(cover, weight, angle_deg)
    return (
        float(np.var(np.convolve(profile, np.ones(3) / 3, mode="valid")))
        if len(profile) > 10
        else 0.0
    )


def _spacing(profile: NDArray[np.float64]) -> tuple[float, float] | None:
    """Return the lag and height of the first strong autocorrelation peak after the first dip, or None."""
    centred = profile - profile.mean()
    size = len(centred)
    energy = float(np.dot(centred, centred))
    if size < 24 or energy <= 0:
        return None
    lags = np.arange(1, int(size / LEAST_ROWS) + 2)
    correlation = np.empty(len(lags))
    for place, lag in enumerate(lags):
        head, tail = centred[:-lag], centred[lag:]
        norm = np.sqrt(np.dot(head, head) * np.dot(tail, tail))
        correlation[place] = np.dot(head, tail) / norm if norm > 0 else 0.0
    dips = np.flatnonzero(correlation < 0)
    if not dips.size:
        return None
    after = correlation[dips[0] :]
    peaks = [
        place
        for place in range(1, len(after) - 1)
        if after[place] >= after[place - 1]
        and after[place] >= after[place + 1]
        and after[place] > 0
    ]
    if not peaks:
        return None
    best = max(after[place] for place in peaks)
    chosen = next(place for place in peaks if after[place] >= 0.6 * best)
    return float(lags[dips[0] + chosen]), float(after[chosen])


def _comb(profile: NDArray[np.float64], spacing: float) -> tuple[float, float]:
    """Return the spacing and offset of the comb of lines that fits the profile best."""
    places = np.arange(len(profile))
    best = (-np.inf, spacing, 0.0)
    for tried in np.linspace(0.94 * spacing, 1.06 * spacing, 13):
        offsets = np.arange(0.0, tried, 0.5)
        for offset, closeness in zip(
            offsets, np.cos(2 * np.pi * (places - offsets[:, None]) / tried), strict=True
        ):
            best = max(best, (float(np.dot(profile, closeness)), float(tried), float(offset)))
    return best[1], best[2]


def _distance(
    across: NDArray[np.float64] | NDArray[np.int64], offset: float, spacing: float
) -> NDArray[np.float64]:
    phase = (across - offset) / spacing
    return np.abs(phase - np.rint(phase)) * spacing


def _half_width(profile: NDArray[np.float64], distance: NDArray[np.float64]) -> float:
    """Return the half width of a crop row, in spacings: where cover has fallen to a sixth of its rise above weeds."""
    edges = np.linspace(0, 0.5, 26)
    place = np.digitize(distance, edges) - 1
    folded = np.array(
        [profile[place == k].mean() if np.any(place == k) else np.nan for k in range(25)]
    )
    folded = np.interp(
        np.arange(25), np.flatnonzero(np.isfinite(folded)), folded[np.isfinite(folded)]
    )
    ground = float(np.median(folded[17:]))
    top = float(folded[:3].max())
    below = np.flatnonzero(folded < ground + (top - ground) / 6)
    reach = edges[below[0]] if below.size else 0.4
    return float(np.clip(reach, 0.06, 0.4))


NOT_SEPARATED = "crop_weed_not_separated"
WEAK_ROWS = "weak_row_evidence"
_LEAST_SIDE_PX = 64
"""Shortest side, pixels, of a picture in which a trained head tells crop from weeds."""
_MOST_PX = 16_000_000
"""Most pixels of a picture in which a trained head tells crop from weeds."""


@dataclass(frozen=True, eq=False)
class Separation:
    """Result of the separation of crop and weeds.

    ``crop``: bool (rows, columns), a part of the plants; None if crop and weeds could not be separated. ``rows``: rows
    in the picture, even if they were not used for the separation; None if the evidence is weak.
    """

    crop: NDArray[np.bool_] | None
    method: Method
    rows: Rows | None = None
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def separate_crop_in_picture(
    choice: SeparationChoice, picture: FieldPicture, plants: Vegetation, path: Path
) -> Separation:
    """Separate crop from weeds by the chosen method; ``auto`` uses a head that knows such pictures, else the rows. A
    method without evidence does not guess: ``crop`` is None, with a flag and a note that says what would help."""
    if choice == "none":
        return Separation(None, "none", notes=("crop and weeds not parted, as asked",))
    if not plants.mask.any():
        return Separation(plants.mask, "none")
    notes: list[str] = []
    flags: list[str] = []
    rows = find_rows(plants.mask, plants.valid)
    if rows is None:
        flags.append(WEAK_ROWS)
        notes.append(
            "no evidence of crop rows: plants do not stand in three or more equally spaced lines"
        )
    if choice in ("auto", "model"):
        crop = _by_head(picture, plants, path, choice == "model", notes, flags)
        if crop is not None:
            return Separation(crop, "model", rows, tuple(notes), tuple(flags))
    if choice in ("auto", "row") and rows is not None:
        note = f"crop is what stands within {rows.half_width_px:.3g} px of a row line, weeds there included"
        return Separation(
            crop_in_rows(rows, plants.mask), "row", rows, (*notes, note), tuple(flags)
        )
    notes.append(
        "crop and weeds are not separated. What helps: a label raster (label_raster), a picture with several rows, or a"
        " head trained on such pictures"
    )
    return Separation(None, "none", rows, tuple(notes), (*flags, NOT_SEPARATED))


def _by_head(
    picture: FieldPicture,
    plants: Vegetation,
    path: Path,
    insist: bool,
    notes: list[str],
    flags: list[str],
) -> NDArray[np.bool_] | None:
    photo = picture.photo
    if photo is None or min(picture.shape) < _LEAST_SIDE_PX or picture.valid.size > _MOST_PX:
        return None
    heads = [] if backend_in_use() == UNTRAINED else list_heads()[0]
    usable = applicable_heads(heads, sha256_of_file(path), photo)
    if len(usable) < len(heads):
        notes.append(
            f"{len(heads) - len(usable)} head(s) that were trained on this very picture left out"
        )
    for info in usable:
        try:
            head = load_head(info)
        except ToolError as error:
            notes.append(error.message)
            flags.append("head_refused")
            continue
        unlike: list[str] = []
        if is_false_colour(photo) != info.false_colour:
            unlike.append(
                "natural colours, not false ones"
                if info.false_colour
                else "false colours, not natural ones"
            )
        if unlike and not insist:
            continue
        crop, familiar = separate_crop(photo, _plants_for_heads(photo, plants), head, info)
        if not familiar:
            unlike.append("plants of another shape, size, spacing or texture")
        if unlike and not insist:
            continue
        crop_iou, weed_iou = (
            info.metrics.get(f"cross_validated_{key}_iou") for key in ("crop", "weed")
        )
        figures = (
            f", cross-validated IoU crop {crop_iou:.2f}, weeds {weed_iou:.2f}"
            if crop_iou and weed_iou
            else ""
        )
        notes.append(
            f"crop and weeds parted by head {info.name} ({len(info.training)} training pictures{figures})"
        )
        if unlike:
            flags.append(FLAG)
            notes.append(
                f"unlike the pictures that head {info.name} was trained on: {', '.join(unlike)}"
            )
        return crop & plants.mask
    return None


def _plants_for_heads(photo: NDArray[np.uint8], plants: Vegetation) -> NDArray[np.bool_]:
    """Return the plants as heads saw them in training, together with all plants of this call."""
    if plants.index == "lab_a":
        return plants.mask
    bands = {"R": photo[..., 0], "G": photo[..., 1], "B": photo[..., 2]}
    return segment("lab_a", bands, plants.valid).mask | plants.mask  # pyright: ignore[reportArgumentType]
