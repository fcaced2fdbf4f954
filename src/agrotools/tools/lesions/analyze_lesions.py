"""Diseased area of a leaf, lesion by lesion."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agrotools.core import Arguments, ToolError
from agrotools.tools.arguments import ReferenceCall, drop_arguments, round_converted
from agrotools.tools.contract import Agree, ImageFile, MaskFile, Region, tool
from agrotools.tools.lesions.result import MODEL_FILES, GradeScale, Lab, LeafLesions, LesionInputs, lesion_result
from agrotools.tools.workspace import backend_in_use, file_info, shown_name
from agrotools.vision import STRANGENESS_FILES, Box
from agrotools.vision.formats import clipped_region

if TYPE_CHECKING:
    from agrotools.tools.lesions.leaf import Leaf
    from agrotools.tools.lesions.segmentation import LeafView

RULES = "rules"
"""Back-end that never uses the model."""
IN_FIELD = "field_background"
_LEAST_DETAIL_PX = 100
_CUT_SHARE = 0.03
_EVEN = 1.0
_LEAST_PLANT_SHARE = 0.1
"""Least share of a marked leaf in green, yellow or brown; the rest may be mildew or glare."""
_SENSITIVITY, _MIN_LESION_PX = 0.5, 12
"""Settings that the interval of the severity was measured with."""


def _resolve(call: Arguments, known: ReferenceCall) -> Arguments:
    """Resolve the leaf: by mask, or in the field if the reference call found no board."""
    if call["leaf_mask"] is not None:
        call = drop_arguments(call, "mode")
    elif call["mode"] == "leaf" and known.has_value("mode", "leaf") and IN_FIELD in known.list_field("flags"):
        call = {**call, "mode": "field"}
    file = known.file(call["image"])
    if call["scale_mm_px"] is None and file and file.gsd_m:
        call = {**call, "scale_mm_px": round_converted(1000 * file.gsd_m)}
    return call


@tool(
    category="segmentation",
    version="2",
    resolves=_resolve,
    data_files=(*MODEL_FILES, *STRANGENESS_FILES),
    backends=("offline", RULES),
)
def analyze_lesions(
    image: ImageFile,
    leaf_mask: MaskFile | None = None,
    region: Region | None = None,
    mode: Annotated[Literal["leaf", "field"], Field(description="field: busy background")] = "leaf",
    healthy_reference: Annotated[
        tuple[
            Annotated[float, Field(ge=0, le=100)],
            Annotated[float, Field(ge=-128, le=128)],
            Annotated[float, Field(ge=-128, le=128)],
        ]
        | None,
        Agree("number"),
        Field(description="L, a, b"),
    ] = None,
    min_lesion_px: Annotated[int, Field(ge=1, le=1_000_000)] = _MIN_LESION_PX,
    sensitivity: Annotated[float, Field(ge=0, le=1)] = _SENSITIVITY,
    scale_mm_px: Annotated[float | None, Field(gt=0, le=1000)] = None,
    grade_scale: Annotated[GradeScale, Field(description="0-4 coffee, 1-9 rice")] = "percent",
) -> LeafLesions:
    """Measure diseased tissue on one leaf: severity_pct, leaf_area_px, lesion_area_px, lesions, grade.

    Areas in mm2 need scale_mm_px. It names no cause.

    Raises:
        ToolError: ``nothing_found`` (no leaf, empty mask), ``band_not_found`` (a grey picture), ``region_empty``,
            ``shape_mismatch`` (a mask of another size), and as the readers.

    Sources: leaf, distance from the board's colour (:mod:`agrotools.tools.lesions.leaf`); lesions, a small network
        per pixel (:mod:`agrotools.tools.lesions.segmentation`, its card in ``data/lesion_model.md``) or loss of green
        against the leaf's own healthy colour; scales in
        :mod:`agrotools.tools.lesions.result`.
    """
    from agrotools.tools.lesions.segmentation import leaf_view
    from agrotools.tools.pictures import choose_scale
    from agrotools.vision.reading import read_image, refuse_grey
    from agrotools.vision.strangeness import FLAG, strangeness

    info, name = file_info(image), shown_name(image)
    picture = read_image(image, shown_as=name)
    box, clipped = clipped_region(region, picture.width, picture.height, name)
    x0, y0, x1, y1 = box
    pixels = np.ascontiguousarray(picture.pixels[y0:y1, x0:x1])
    valid = None if picture.valid is None else picture.valid[y0:y1, x0:x1]
    leaf = _leaf(pixels, valid, leaf_mask, box, (picture.height, picture.width), mode, name)
    refuse_grey(picture, name, ": without colour, lesions cannot be told from healthy tissue")
    if leaf_mask is not None:
        _refuse_other_things(pixels[leaf.mask], shown_name(leaf_mask))
    view = leaf_view(pixels, leaf.mask, leaf.box)
    lesions = _lesions(view, leaf, healthy_reference, sensitivity)
    x0, y0, x1, y1 = (0, 0, pixels.shape[1], pixels.shape[0]) if leaf_mask is None else view.box
    strange = (FLAG,) if strangeness(pixels[y0:y1, x0:x1], "leaf").is_strange else ()
    as_measured = not strange and (sensitivity, min_lesion_px) == (_SENSITIVITY, _MIN_LESION_PX)
    scale = choose_scale(
        None if scale_mm_px is None else scale_mm_px / 1000, info.gsd_m if info and info.gsd_m else None
    )
    detail = ("low_resolution",) if leaf.area_px < _LEAST_DETAIL_PX**2 else ()
    return lesion_result(
        LesionInputs(
            shown=picture.pixels,
            box=box,
            leaf=leaf,
            lesion=_resize_to_full(view, lesions.level, leaf),
            healthy=lesions.healthy,
            method=lesions.method,
            half_width=lesions.half_width if as_measured else None,
            scale_mm_px=None if scale.gsd_m is None else 1000 * scale.gsd_m,
            min_lesion_px=min_lesion_px,
            grade_scale=grade_scale,
            notes=(*picture.notes, *leaf.notes, *lesions.notes, *scale.notes),
            flags=(*picture.flags, *clipped, *leaf.flags, *lesions.flags, *strange, *scale.flags, *detail),
        )
    )


def _leaf(
    pixels: NDArray[np.uint8],
    valid: NDArray[np.bool_] | None,
    leaf_mask: MaskFile | None,
    box: Box,
    shape: tuple[int, int],
    mode: Literal["leaf", "field"],
    name: str,
) -> "Leaf":
    import cv2

    from agrotools.tools.lesions.leaf import Leaf, leaf_in_field, leaf_on_board, no_leaf, shrink_image
    from agrotools.vision.colours import lab_of
    from agrotools.vision.reading import bounds

    if leaf_mask is not None:
        leaf = _leaf_of_mask(pixels, leaf_mask, box, shape, name)
    else:
        if float(lab_of(shrink_image(pixels, 128)).std(axis=(0, 1)).max()) < _EVEN:
            raise no_leaf("the picture shows one colour only")
        leaf_on_plain = leaf_on_board(pixels) if mode == "leaf" else None
        leaf = leaf_on_plain or leaf_in_field(pixels)
    mask = leaf.mask if valid is None else leaf.mask & valid
    if not mask.any():
        raise no_leaf("there is none where the picture holds data")
    inner = cv2.erode(mask.astype(np.uint8), np.ones((3, 3), np.uint8), borderType=cv2.BORDER_CONSTANT, borderValue=0)
    outline = int(np.count_nonzero(mask != np.asarray(inner, np.bool_)))
    on_border = sum(int(np.count_nonzero(side)) for side in (mask[0], mask[-1], mask[:, 0], mask[:, -1]))
    flags = (*leaf.flags, "leaf_cut") if on_border > _CUT_SHARE * outline else leaf.flags
    return Leaf(mask, bounds(mask), leaf.background, leaf.notes, flags)


def _leaf_of_mask(pixels: NDArray[np.uint8], path: MaskFile, box: Box, shape: tuple[int, int], name: str) -> "Leaf":
    from agrotools.tools.lesions.leaf import PLAIN_SHARE, Leaf, estimate_board, shrink_image
    from agrotools.tools.pictures import read_mask_pixels
    from agrotools.vision.colours import lab_of
    from agrotools.vision.reading import bounds

    mask_name = shown_name(path)
    whole = read_mask_pixels(path, shape, name, argument="leaf_mask", called="a leaf mask")
    x0, y0, x1, y1 = box
    mask = np.ascontiguousarray(whole[y0:y1, x0:x1])
    if not mask.any():
        why = f"{mask_name} marks no leaf there: all its values are 0"
        raise ToolError("nothing_found", why, argument="leaf_mask", hint="pixels of the leaf have values other than 0")
    board, plain_share = estimate_board(lab_of(shrink_image(pixels)))
    middle = np.median(board.reshape(-1, 3), axis=0)
    background = (float(middle[0]), float(middle[1]), float(middle[2])) if plain_share >= PLAIN_SHARE else None
    return Leaf(mask, bounds(mask), background, ("leaf: as the mask says",))


def _refuse_other_things(marked: NDArray[np.uint8], mask_name: str) -> None:
    """Refuse a mask if hardly any of the pixels that it marks, uint8 (n, 3), has the colours of a leaf."""
    from agrotools.tools.lesions.leaf import is_plant_coloured
    from agrotools.vision.colours import lab_of

    if is_plant_coloured(lab_of(marked[None])).mean() < _LEAST_PLANT_SHARE:
        why = f"hardly anything that {mask_name} marks has the colours of a leaf"
        raise ToolError("nothing_found", why, argument="leaf_mask", hint="mark the leaf; other pixels are 0")


@dataclass(frozen=True, eq=False)
class _LesionMask:
    """Result of lesion segmentation. ``level``: float32 (pixels of the view's mask,), 1 and more is lesion."""

    level: NDArray[np.float32]
    healthy: Lab
    method: Literal["model", "rules"]
    notes: tuple[str, ...]
    flags: tuple[str, ...] = ()
    half_width: float | None = None


def _lesions(view: "LeafView", leaf: "Leaf", healthy_reference: Lab | None, sensitivity: float) -> _LesionMask:
    from agrotools.tools.lesions import segmentation

    healthy, flags, notes = healthy_reference or segmentation.healthy_colour(view), [], []
    if healthy_reference is None and healthy[1] > segmentation.NO_GREEN:
        healthy = segmentation.GENERIC_GREEN
        flags.append("no_healthy_tissue")
    apart: tuple[str, ...] = ()
    if backend_in_use() != RULES:
        model = segmentation.load_lesion_model()
        apart = segmentation.is_unlike_training(model.info.domain, view, leaf.background)
        if not apart and healthy_reference is None:
            threshold = model.info.threshold
            shifted = 1 / (1 + math.exp(-(math.log(threshold / (1 - threshold)) + 3 * (0.5 - sensitivity))))
            notes.append(f"lesions: model {model.info.name}, trained on {model.info.trained_on}")
            probability = model.level(view)
            half_width = model.info.interval.half_width(segmentation.doubtful_pct(probability))
            level = probability / np.float32(shifted)
            return _LesionMask(level, healthy, "model", tuple(notes), tuple(flags), half_width)
    if apart:
        flags.append("out_of_distribution")
        notes.append(f"unlike the pictures that the lesion model was trained on ({', '.join(apart)}): rules are used")
    notes.append("lesions: tissue that has lost the green of healthy tissue (rule on a* with shade taken out)")
    in_field = IN_FIELD in leaf.flags
    most = segmentation.MOST_SHIFT_IN_FIELD if in_field else segmentation.MOST_SHIFT
    level = segmentation.lesion_level(view, healthy, most)
    level = level * np.float32(4 ** (sensitivity - 0.5))
    if in_field:
        level = segmentation.remove_rim(view, level)
    return _LesionMask(level, healthy, "rules", tuple(notes), tuple(flags))


def _resize_to_full(view: "LeafView", level: NDArray[np.float32], leaf: "Leaf") -> NDArray[np.bool_]:
    """Return the lesions at the size of the picture, bool (rows, columns)."""
    import cv2

    from agrotools.tools.lesions.segmentation import local_mean

    small = np.zeros(view.mask.shape, np.float32)
    small[view.mask] = np.clip(level * np.float32(100), 0, 255)
    # The level is extrapolated beyond the leaf's outline; otherwise lesions at the margin would lose their edge.
    spread = np.where(view.mask, small, local_mean(small, view.mask, 1.5))
    x0, y0, x1, y1 = view.box
    larger = cv2.resize(np.rint(spread).astype(np.uint8), (x1 - x0, y1 - y0), interpolation=cv2.INTER_LINEAR)
    lesion = np.zeros(leaf.mask.shape, np.bool_)
    lesion[y0:y1, x0:x1] = np.asarray(larger) >= 100
    return lesion & leaf.mask
