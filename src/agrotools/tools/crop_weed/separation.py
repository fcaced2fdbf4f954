"""Separation of crop and weeds: by a trained head, by crop rows, or not at all."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.tools.crop_weed.heads import (
    HeadInfo,
    applicable_heads,
    file_sha256,
    is_false_colour,
    list_heads,
    load_head,
    separate_crop,
)
from agrotools.tools.crop_weed.measure_crop_weed_area import UNTRAINED, Method, SeparationChoice
from agrotools.tools.crop_weed.rows import (
    LEAST_ACCORD,
    LEAST_PEAK_RATIO,
    LEAST_REPEAT,
    Rows,
    crop_in_rows,
    likeliest_rows,
)
from agrotools.tools.field_picture import FieldPicture
from agrotools.tools.workspace import backend_in_use
from agrotools.vision.vegetation import Vegetation, segment

NOT_SEPARATED = "crop_weed_not_separated"
WEAK_ROWS = "weak_row_evidence"
_LEAST_SIDE_PX = 64
_MOST_PX = 16_000_000


@dataclass(frozen=True, eq=False)
class Separation:
    """``crop``: bool (rows, columns), a part of the plants; None where crop and weeds could not be parted. ``rows``:
    those that the picture shows, whether or not crop was parted by them; None where the evidence is weak."""

    crop: NDArray[np.bool_] | None
    method: Method
    rows: Rows | None = None
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def separate_crop_in_picture(
    wanted: SeparationChoice, picture: FieldPicture, plants: Vegetation, path: Path
) -> Separation:
    """Separate crop from weeds by the chosen method; ``auto`` takes a head that knows such pictures, else the rows.

    A method without grounds (no rows to be seen, no head, only heads that were trained on this very picture) does not
    guess: ``crop`` is None, with flag ``crop_weed_not_separated`` and a note that says what would help.
    """
    if wanted == "none":
        return Separation(None, "none", notes=("crop and weeds not parted, as asked",))
    if not plants.mask.any():
        return Separation(plants.mask, "none")
    notes: list[str] = []
    flags: list[str] = []
    likeliest = likeliest_rows(plants.mask, plants.valid)
    rows = likeliest if likeliest is not None and likeliest.is_evident else None
    if rows is None:
        flags.append(WEAK_ROWS)
        notes.append(_missing_row_evidence(likeliest))
    if wanted in ("auto", "model"):
        crop = _by_head(picture, plants, path, wanted == "model", notes, flags)
        if crop is not None:
            return Separation(crop, "model", rows, tuple(notes), tuple(flags))
    if wanted in ("auto", "row") and rows is not None:
        denser = f"{rows.peak_ratio:.2g}" if rows.peak_ratio < 100 else "over 100"
        note = (
            f"crop is what stands in the rows (within {rows.half_width_px:.3g} px of a row line); plants there are"
            f" {denser} times as dense as between; weeds inside the rows count as crop"
        )
        return Separation(crop_in_rows(rows, plants.mask), "row", rows, (*notes, note), tuple(flags))
    notes.append(
        "crop and weeds are not parted. What helps: a label raster (label_raster), a picture with several rows, or a"
        " head trained on such pictures (agrotools packs train crop-weed)"
    )
    return Separation(None, "none", rows, tuple(notes), (*flags, NOT_SEPARATED))


def _missing_row_evidence(likeliest: Rows | None) -> str:
    if likeliest is None:
        return "no evidence of crop rows: plants do not stand in three or more equally spaced lines"
    lacking = [
        f"{what} {value:.2g} (needs {least:g})"
        for what, value, least in (
            ("density on lines over between", likeliest.peak_ratio, LEAST_PEAK_RATIO),
            ("repeat after one spacing", likeliest.repeat, LEAST_REPEAT),
            ("accord of the two halves", likeliest.accord, LEAST_ACCORD),
        )
        if value < least
    ]
    return f"no evidence of crop rows: {', '.join(lacking)}"


def _by_head(
    picture: FieldPicture, plants: Vegetation, path: Path, insist: bool, notes: list[str], flags: list[str]
) -> NDArray[np.bool_] | None:
    photo = picture.photo
    if photo is None:
        if insist:
            notes.append("heads need a colour picture with red, green and blue of 8 bits")
        return None
    if min(picture.shape) < _LEAST_SIDE_PX or picture.valid.size > _MOST_PX:
        if insist:
            notes.append(f"heads take pictures from {_LEAST_SIDE_PX} pixels a side to {_MOST_PX // 1_000_000} million")
        return None
    heads, faults = ([], []) if backend_in_use() == UNTRAINED else list_heads()
    if faults and insist:
        notes.append(f"left out: {'; '.join(faults)}")
    usable = applicable_heads(heads, file_sha256(path), photo)
    if len(usable) < len(heads):
        notes.append(f"{len(heads) - len(usable)} head(s) that were trained on this very picture left out")
    for info in usable:
        try:
            head = load_head(info)
        except ToolError as error:
            notes.append(error.message)
            flags.append("head_refused")
            continue
        like = is_false_colour(photo) == info.false_colour
        if not like and not insist:
            continue
        found = separate_crop(photo, _plants_for_heads(photo, plants), head)
        familiar = like and found.is_familiar
        if not familiar and not insist:
            continue
        notes.append(_head_note(info))
        if not familiar:
            flags.append("out_of_distribution")
            notes.append("this picture is unlike those the head was trained on: do not rely on crop and weeds")
        return found.crop & plants.mask
    if insist:
        notes.append("no head can be used on this picture" if heads else "there is no trained head on this machine")
    return None


def _plants_for_heads(photo: NDArray[np.uint8], plants: Vegetation) -> NDArray[np.bool_]:
    """Plants as heads saw them in training, and all that this call takes for plants."""
    if plants.index == "lab_a":
        return plants.mask
    bands = {"R": photo[..., 0], "G": photo[..., 1], "B": photo[..., 2]}
    return segment("lab_a", bands, plants.valid).mask | plants.mask  # pyright: ignore[reportArgumentType]


def _head_note(info: HeadInfo) -> str:
    crop, weed = (info.metrics.get(f"cross_validated_{key}_iou") for key in ("crop", "weed"))
    figures = f", cross-validated IoU crop {crop:.2f}, weeds {weed:.2f}" if crop and weed else ""
    return f"crop and weeds parted by head {info.name} ({len(info.training)} training pictures{figures})"
