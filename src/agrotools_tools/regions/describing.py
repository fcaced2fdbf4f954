"""Description of a region of a picture or label raster, by measurements or by a model, and its summary sentence."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.calling.pictures import choose_scale, class_names_of, read_mask_pixels
from agrotools.calling.services import VLM
from agrotools.calling.workspace import backend_in_use, file_info, save_artifact, shown_name
from agrotools.core import Artifact, ToolError
from agrotools.vision import Box
from agrotools.vision.formats import clipped_region
from agrotools.vision.overlay import SKY_BLUE, Layer, draw_overlay
from agrotools.vision.rasters import Scale
from agrotools.vision.reading import read_labels
from agrotools_tools.crop_weed.heads import is_false_colour
from agrotools_tools.regions.measure import (
    RegionPicture,
    band_values,
    class_counts,
    class_layers,
    colours_of,
    health_of,
    is_label_file,
    mean_index,
    plants_of,
    read_region_picture,
    shape_of,
    texture_of,
)
from agrotools_tools.regions.result import Attribute, RegionDescription, RegionShape
from agrotools_tools.vision.colours import lab_of_list
from agrotools_tools.vision.vegetation import Vegetation, doubt_of_cover, weakness_of_cover
from agrotools_tools.vision_questions import TextAnswer
from agrotools_tools.vision_questions import describe as describe_by_vlm

_PLANTS = 1
_DIMMED = 0.35
_SOME_GREEN_PCT = 5.0
_MOST_SAMPLES = 250_000
"""Number of pixels sampled for colours in Lab in larger regions; the mean in RGB uses all pixels."""

Mask = NDArray[np.bool_]


_Measured = tuple[dict[str, Any], list[str], list[str]]
"""Fields of a description that a file has, notes and flags; the other fields are null."""


def describe(
    image: Path,
    region: Box | None,
    mask: Path | None,
    attributes: frozenset[Attribute],
    question: str | None,
    bands: dict[str, int | str] | None,
    label_map: dict[str, list[int]] | None,
    gsd_m: float | None,
) -> RegionDescription:
    """Describe a region; the arguments are those of the tool."""
    info, name = file_info(image), shown_name(image)
    question = (question or "").strip() or None
    answer: TextAnswer | None = None
    if evidence := is_label_file(image, info, label_map):
        values, notes, flags = _measure_labels(image, region, mask, attributes, label_map, gsd_m)
        if evidence == "guessed":
            flags.append("taken_as_labels")
            notes.append("few small values in a palette or grey PNG: taken as class numbers")
    else:
        picture = read_region_picture(image, bands, region, info)
        marked = None
        if mask is not None:
            left, top = picture.origin
            height, width = picture.valid.shape
            size = (picture.size[1], picture.size[0])
            marked = read_mask_pixels(mask, size, image, argument="mask", called="a mask")
            marked = marked[top : top + height, left : left + width]
        if backend_in_use() == VLM:
            shown = picture.pixels if marked is None else _dim(picture.pixels, ~marked)
            answer = describe_by_vlm(shown, picture.box, question)
        values, notes, flags = _measure_picture(picture, marked, attributes, gsd_m)
    if answer is not None:
        notes += answer.notes
        flags += answer.flags
    elif question is not None:
        flags.append("question_not_answered")
        notes.append("offline only numbers are given: the question was not answered beyond them")
    fields: dict[str, Any] = dict.fromkeys(RegionDescription.model_fields) | values
    fields |= {"summary": "", "description": answer.text if answer else None}
    fields |= {"notes": tuple(notes), "flags": tuple(dict.fromkeys(flags))}
    description = RegionDescription(**fields)
    return description.model_copy(update={"summary": summary_of(description, name)})


def _measure_picture(
    picture: RegionPicture,
    marked: Mask | None,
    attributes: frozenset[Attribute],
    gsd_m: float | None,
) -> _Measured:
    notes, flags = [*picture.notes], [*picture.flags]
    inside = picture.valid & _mask_in_box(picture.valid.shape, picture.box)
    if marked is not None:
        inside &= marked
    count = _count_pixels(inside, "region" if marked is None else "mask")
    scale = _flagged_scale(gsd_m, picture.gsd_m)
    plants = plants_of(picture) if "cover" in attributes else None
    if "cover" in attributes and plants is None:
        notes.append("plants cannot be told from the rest by these bands")
    covered = None if plants is None else _cover(picture, plants, inside, count, flags, notes)
    x0, y0, x1, y1 = picture.box
    pixels, part = picture.pixels[y0:y1, x0:x1], inside[y0:y1, x0:x1]
    samples = pixels[part]
    lab = lab_of_list(samples[:: -(-count // _MOST_SAMPLES)]) if picture.natural else None
    values: dict[str, Any] = {
        **_size(count, picture.size[0] * picture.size[1], scale),
        "vegetation_pct": covered,
        "bands": band_values(picture, inside) or None,
        "overlay": _picture_overlay(
            picture, inside, None if covered is None else plants, scale.gsd_m
        ),
    }
    if plants is not None and covered is not None:
        values["vegetation_index"] = plants.index
    if lab is not None and "colour" in attributes:
        values["mean_rgb"] = tuple((samples.sum(axis=0, dtype=np.int64) / count).tolist())
        values["mean_lab"] = tuple(lab.mean(axis=0, dtype=np.float64).tolist())
        values["dominant_colours"] = None if "no_colour" in flags else colours_of(samples)
    if "cover" in attributes:
        values |= {
            "exg": mean_index("exg", picture, inside),
            "ndvi": mean_index("ndvi", picture, inside),
        }
    if marked is not None and "shape" in attributes:
        values["shape"] = _shape(inside, picture.origin)
    if "landcover" in attributes:
        notes.append("class_pcts: only a label raster has classes")
    if "texture" in attributes and (texture := texture_of(pixels, part)) is not None:
        values["texture"] = texture
        if not picture.natural:
            notes.append("texture: of the values stretched between their 1st and 99th percentile")
    if lab is not None and "health" in attributes and "no_colour" not in flags:
        values["health"] = health_of(lab)
        notes.append("health: shares of colours, no diagnosis; soil and dry leaves are brown alike")
    return values, [*notes, *scale.notes], [*flags, *scale.flags]


def _measure_labels(
    image: Path,
    region: Box | None,
    mask: Path | None,
    attributes: frozenset[Attribute],
    label_map: dict[str, list[int]] | None,
    gsd_m: float | None,
) -> _Measured:
    info, name = file_info(image), shown_name(image)
    labels = read_labels(image, argument="image", shown_as=name)
    height, width = labels.classes.shape
    box, clipped = clipped_region(region, width, height, name)
    inside = _mask_in_box((height, width), box)
    if labels.valid is not None:
        inside &= labels.valid
    if mask is not None:
        inside &= read_mask_pixels(mask, (height, width), image, argument="mask", called="a mask")
    count = _count_pixels(inside, "mask" if mask is not None else "region")
    names = class_names_of(label_map, info.classes if info else None)
    class_pixels, notes, flags = class_counts(labels.classes, inside, names)
    scale = _flagged_scale(gsd_m, info.gsd_m if info else None)
    overlay = draw_overlay(
        np.full((height, width, 3), 235, np.uint8),
        *class_layers(labels.classes, inside, class_pixels, names),
        region=None if box == (0, 0, width, height) else box,
        gsd_m=scale.gsd_m,
        title=f"{len(class_pixels)} classes in {count} px",
    )
    values = {
        **_size(count, width * height, scale),
        "shape": _shape(inside, (0, 0)) if mask is not None and "shape" in attributes else None,
        "class_pcts": {label: 100 * pixels / count for label, pixels in class_pixels.items()},
        "class_px": class_pixels,
        "overlay": save_artifact("region_overlay.jpg", "overlay", overlay),
    }
    exact = "classes counted: exact; a label raster has no colours or texture"
    return values, [*labels.notes, exact, *notes, *scale.notes], [*flags, *clipped, *scale.flags]


def _flagged_scale(given: float | None, known: float | None) -> Scale:
    scale = choose_scale(given, known)
    return scale if scale.gsd_m else scale._replace(flags=(*scale.flags, "no_scale"))


def _size(count: int, whole_px: int, scale: Scale) -> dict[str, Any]:
    area = None if scale.gsd_m is None else count * scale.gsd_m**2
    return {"area_px": count, "image_pct": 100 * count / whole_px, "area_m2": area}


def _dim(pixels: NDArray[np.uint8], outside: Mask) -> NDArray[np.uint8]:
    dimmed = pixels.copy()
    dimmed[outside] = (dimmed[outside] * _DIMMED).astype(np.uint8)
    return dimmed


def _cover(
    picture: RegionPicture,
    plants: Vegetation,
    inside: Mask,
    count: int,
    flags: list[str],
    notes: list[str],
) -> float | None:
    """Return the share of plants in the region, percent, or None if it cannot be relied on."""
    doubt = (
        doubt_of_cover(picture.pixels, plants) or weakness_of_cover(picture.pixels, plants)
        if picture.natural
        else None
    )
    if doubt is not None:
        flags.append("vegetation_uncertain")
        notes.append(f"how much of the region is plants cannot be told: {doubt}")
        return None
    flags += plants.flags
    notes += plants.notes
    if picture.natural and is_false_colour(picture.pixels):
        flags.append("false_colour_suspected")
    if "no_vegetation" in plants.flags and picture.natural:
        green = health_of(
            lab_of_list(picture.pixels[inside][:: -(-count // _MOST_SAMPLES)])
        ).green_pct
        if green > _SOME_GREEN_PCT:
            flags[:] = [
                *(flag for flag in flags if flag != "no_vegetation"),
                "vegetation_uncertain",
            ]
            notes.append(
                f"{green:.3g} % is green all the same: how much of the region is plants is left unsaid"
            )
            return None
    return 100 * float(np.count_nonzero(plants.mask & inside)) / count


def _mask_in_box(shape: tuple[int, ...], box: Box) -> Mask:
    inside = np.zeros(shape[:2], np.bool_)
    inside[box[1] : box[3], box[0] : box[2]] = True
    return inside


def _count_pixels(inside: Mask, argument: str) -> int:
    count = int(np.count_nonzero(inside))
    if not count:
        raise ToolError(
            "region_empty",
            f"the {argument} holds no pixel with data",
            argument=argument,
            hint="choose another",
        )
    return count


def _shape(inside: Mask, origin: tuple[int, int]) -> RegionShape:
    shape = shape_of(inside)
    x0, y0, x1, y1 = shape.box
    left, top = origin
    return shape.model_copy(update={"box": (x0 + left, y0 + top, x1 + left, y1 + top)})


def _picture_overlay(
    picture: RegionPicture, inside: Mask, plants: Vegetation | None, gsd_m: float | None
) -> Artifact:
    canvas = _dim(picture.pixels, ~inside)
    classes = np.zeros(inside.shape, np.uint8)
    layers: list[Layer] = []
    if plants is not None:
        classes[plants.mask & inside] = _PLANTS
        share = 100 * np.count_nonzero(classes) / np.count_nonzero(inside)
        layers.append(Layer(_PLANTS, SKY_BLUE, f"plants {share:.2f} %"))
    title = f"region of {np.count_nonzero(inside)} px" + (
        "" if inside.all() else "; what is dark does not count"
    )
    overlay = draw_overlay(canvas, classes, layers, gsd_m=gsd_m, title=title)
    return save_artifact("region_overlay.jpg", "overlay", overlay)


def summary_of(description: RegionDescription, name: str) -> str:
    """Summarise the measurements in sentences of fixed wording and order."""
    size = f"The region of {name} has {description.area_px} pixels, {description.image_pct:.3g} % of the image"
    parts = [
        size
        + (
            f", {description.area_m2:.4g} m^2 on the ground"
            if description.area_m2 is not None
            else ""
        )
    ]
    if description.class_pcts:
        ranked = sorted(description.class_pcts.items(), key=lambda item: (-item[1], item[0]))
        rest = f" and {len(ranked) - 8} more classes" if len(ranked) > 8 else ""
        parts.append(
            f"It holds {_listed([f'{label} {pct:.4g} %' for label, pct in ranked[:8]])}{rest}"
        )
    if description.dominant_colours:
        colours = [f"{colour.name} {colour.pct:.3g} %" for colour in description.dominant_colours]
        parts.append(f"Its colours are {_listed(colours)}")
    if description.vegetation_pct is not None:
        parts.append(
            f"Plants cover {description.vegetation_pct:.3g} % of it (index {description.vegetation_index})"
        )
    if description.bands and not description.dominant_colours:
        values = [
            f"{band.name} has a mean of {band.mean:.4g} ({band.low:.4g} to {band.high:.4g})"
            for band in description.bands[:3]
        ]
        parts.append(_listed(values)[:1].upper() + _listed(values)[1:])
    if description.ndvi is not None:
        parts.append(f"Its mean NDVI is {description.ndvi:.3g}")
    if description.health is not None:
        hints = description.health
        parts.append(
            f"By colour {hints.green_pct:.3g} % is green, {hints.yellow_pct:.3g} % yellow and"
            f" {hints.brown_pct:.3g} % brown"
        )
    if description.texture is not None:
        texture = description.texture
        parts.append(
            f"Its texture has an entropy of {texture.entropy:.3g} bits and a contrast of {texture.contrast:.3g}"
        )
    if description.shape is not None:
        form = description.shape
        pieces = (
            "one piece"
            if form.pieces == 1
            else f"{form.pieces} pieces, the largest of {form.largest_px} pixels"
        )
        parts.append(
            f"It is {pieces}, with solidity {form.solidity:.3g} and eccentricity {form.eccentricity:.3g}"
        )
    return ". ".join(parts) + "."


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
