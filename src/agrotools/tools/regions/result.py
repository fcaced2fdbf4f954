"""Description of a region of a picture or label raster, by measurements or by a model, and its summary sentence."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agrotools.core import Artifact, ToolError
from agrotools.tools.learned import describe_learned
from agrotools.tools.pictures import choose_scale, read_mask_pixels
from agrotools.tools.regions.describe_region import Attribute, RegionDescription, RegionShape
from agrotools.tools.regions.measuring import (
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
from agrotools.tools.services import VLM
from agrotools.tools.workspace import backend_in_use, file_info, save_artifact, shown_name
from agrotools.vision import Box
from agrotools.vision.colours import lab_of_list
from agrotools.vision.formats import clipped_region
from agrotools.vision.overlay import SKY_BLUE, Layer, draw_overlay
from agrotools.vision.reading import read_labels
from agrotools.vision.vegetation import Vegetation

if TYPE_CHECKING:
    from agrotools.tools.services.vision import TextAnswer

_OF_PICTURES = (
    "mean_rgb mean_lab dominant_colours vegetation_pct vegetation_index exg ndvi texture health bands".split()
)
"""Fields that do not apply to label rasters."""
_PLANTS = 1
_DIMMED = 0.35
_SOME_GREEN_PCT = 5.0
_MOST_SAMPLES = 250_000
"""Number of pixels sampled for colours in Lab in larger regions; the mean in RGB uses all pixels."""


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
    answer: TextAnswer | None = None
    if evidence := is_label_file(image, file_info(image), label_map):
        seen = _describe_labels(image, region, mask, attributes, label_map, gsd_m)
        if evidence == "guessed":
            seen.flags.append("taken_as_labels")
            seen.notes.append("few small values in a palette or grey PNG: taken as class numbers")
    else:
        if (backend := backend_in_use()) and backend != "offline":
            answer = _describe_by_model(backend, image, region, mask, bands, question)
        seen = _describe_picture(image, region, mask, attributes, bands, gsd_m)
    if answer is not None:
        seen.notes += answer.notes
        seen.flags += answer.flags
    elif question is not None and question.strip():
        seen.flags.append("question_not_answered")
        seen.notes.append("offline only numbers are given: the question was not answered beyond them")
    description = seen.description.model_copy(
        update={
            "description": answer.text if answer else None,
            "notes": tuple(seen.notes),
            "flags": tuple(dict.fromkeys(seen.flags)),
        }
    )
    return description.model_copy(update={"summary": summary_of(description, shown_name(image))})


@dataclass
class _Description:
    description: RegionDescription
    notes: list[str]
    flags: list[str]


def _describe_by_model(
    backend: str,
    image: Path,
    region: Box | None,
    mask: Path | None,
    bands: dict[str, int | str] | None,
    question: str | None,
) -> "TextAnswer":
    """Describe the region with a model; pixels outside a mask are dimmed."""
    picture = read_region_picture(image, bands, region, file_info(image))
    pixels = picture.pixels
    if mask is not None:
        mask_pixels = read_mask_pixels(
            mask, (picture.size[1], picture.size[0]), shown_name(image), argument="mask", called="a mask"
        )
        left, top = picture.origin
        pixels = pixels.copy()
        outside = ~mask_pixels[top : top + pixels.shape[0], left : left + pixels.shape[1]]
        pixels[outside] = (pixels[outside] * _DIMMED).astype(np.uint8)
    question = question.strip() or None if question else None
    if backend == VLM:
        from agrotools.tools.services.vision import describe as describe_by_vlm

        return describe_by_vlm(pixels, picture.box, question)
    return describe_learned(backend, pixels, picture.box, question)


def _describe_picture(
    image: Path,
    region: Box | None,
    mask: Path | None,
    attributes: frozenset[Attribute],
    bands: dict[str, int | str] | None,
    gsd_m: float | None,
) -> _Description:
    info = file_info(image)
    picture = read_region_picture(image, bands, region, info)
    notes, flags = [*picture.notes], [*picture.flags]
    mask_pixels = (
        None
        if mask is None
        else read_mask_pixels(
            mask, (picture.size[1], picture.size[0]), shown_name(image), argument="mask", called="a mask"
        )
    )
    inside = picture.valid & _mask_in_box(picture.valid.shape, picture.box)
    if mask_pixels is not None:
        left, top = picture.origin
        inside &= mask_pixels[top : top + inside.shape[0], left : left + inside.shape[1]]
    count = _count_pixels(inside, "mask" if mask is not None else "region")
    scale = choose_scale(gsd_m, picture.gsd_m)
    plants = plants_of(picture) if "cover" in attributes else None
    if "cover" in attributes and plants is None:
        notes.append("plants cannot be told from the rest by these bands")
    covered = None if plants is None else _cover(picture, plants, inside, count, flags, notes)
    x0, y0, x1, y1 = picture.box
    pixels, part = picture.pixels[y0:y1, x0:x1], inside[y0:y1, x0:x1]
    samples = pixels[part]
    lab = lab_of_list(samples[:: -(-count // _MOST_SAMPLES)]) if picture.natural else None
    with_colour_names = picture.natural and "colour" in attributes
    description = RegionDescription(
        area_px=count,
        image_pct=100 * count / (picture.size[0] * picture.size[1]),
        area_m2=None if scale.gsd_m is None else count * scale.gsd_m**2,
        mean_rgb=_triple(samples.sum(axis=0, dtype=np.int64) / count) if with_colour_names else None,
        mean_lab=_triple(lab.mean(axis=0, dtype=np.float64)) if lab is not None and with_colour_names else None,
        dominant_colours=colours_of(samples) if with_colour_names else None,
        vegetation_pct=covered,
        vegetation_index=None if plants is None or covered is None else plants.index,
        exg=mean_index("exg", picture, inside) if "cover" in attributes else None,
        ndvi=mean_index("ndvi", picture, inside) if "cover" in attributes else None,
        texture=texture_of(pixels, part) if "texture" in attributes else None,
        shape=_shape(inside, picture.origin) if mask_pixels is not None and "shape" in attributes else None,
        health=health_of(lab) if lab is not None and "health" in attributes else None,
        class_pcts=None,
        class_px=None,
        bands=band_values(picture, inside) or None,
        summary="",
        overlay=_picture_overlay(picture, inside, None if covered is None else plants, scale.gsd_m),
    )
    if "landcover" in attributes:
        notes.append("class_pcts: only a label raster has classes")
    if not picture.natural and description.texture is not None:
        notes.append("texture: of the values stretched between their 1st and 99th percentile")
    if description.health is not None:
        notes.append("health: shares of colours, no diagnosis; soil and dry leaves are brown alike")
    return _Description(
        description, [*notes, *scale.notes], [*flags, *scale.flags, *(() if scale.gsd_m else ("no_scale",))]
    )


def _describe_labels(
    image: Path,
    region: Box | None,
    mask: Path | None,
    attributes: frozenset[Attribute],
    label_map: dict[str, list[int]] | None,
    gsd_m: float | None,
) -> _Description:
    info, name = file_info(image), shown_name(image)
    labels = read_labels(image, argument="image", shown_as=name)
    height, width = labels.classes.shape
    box, clipped = clipped_region(region, width, height, name)
    inside = _mask_in_box((height, width), box)
    if labels.valid is not None:
        inside &= labels.valid
    if mask is not None:
        inside &= read_mask_pixels(mask, (height, width), name, argument="mask", called="a mask")
    count = _count_pixels(inside, "mask" if mask is not None else "region")
    class_pixels, notes, flags = class_counts(labels.classes, inside, label_map, info.classes if info else None)
    scale = choose_scale(gsd_m, info.gsd_m if info else None)
    layer_values, layers = class_layers(labels.classes, inside, class_pixels, label_map, info.classes if info else None)
    title = f"{len(class_pixels)} classes in {count} px"
    grey = np.full((height, width, 3), 235, np.uint8)
    overlay = draw_overlay(
        grey, layer_values, layers, region=None if box == (0, 0, width, height) else box, gsd_m=scale.gsd_m, title=title
    )
    nothing: dict[str, Any] = dict.fromkeys(_OF_PICTURES)
    description = RegionDescription(
        **nothing,
        area_px=count,
        image_pct=100 * count / (width * height),
        area_m2=None if scale.gsd_m is None else count * scale.gsd_m**2,
        shape=_shape(inside, (0, 0)) if mask is not None and "shape" in attributes else None,
        class_pcts={label: 100 * pixels / count for label, pixels in class_pixels.items()},
        class_px=class_pixels,
        summary="",
        overlay=save_artifact("region_overlay.jpg", "overlay", overlay),
    )
    return _Description(
        description,
        [*labels.notes, "classes counted: exact; a label raster has no colours or texture", *notes, *scale.notes],
        [*flags, *clipped, *scale.flags, *(() if scale.gsd_m else ("no_scale",))],
    )


def _cover(
    picture: "RegionPicture",
    plants: "Vegetation",
    inside: NDArray[np.bool_],
    count: int,
    flags: list[str],
    notes: list[str],
) -> float | None:
    """Return the share of plants in the region, percent, or None if plants cannot be segmented but green is present."""
    flags += plants.flags
    notes += plants.notes
    if "no_vegetation" in plants.flags and picture.natural:
        green = health_of(lab_of_list(picture.pixels[inside][:: -(-count // _MOST_SAMPLES)])).green_pct
        if green > _SOME_GREEN_PCT:
            flags[:] = [*(flag for flag in flags if flag != "no_vegetation"), "vegetation_uncertain"]
            notes.append(f"{green:.3g} % is green all the same: how much of the region is plants is left unsaid")
            return None
    return 100 * float(np.count_nonzero(plants.mask & inside)) / count


def _mask_in_box(shape: tuple[int, ...], box: Box) -> NDArray[np.bool_]:
    inside = np.zeros(shape[:2], np.bool_)
    inside[box[1] : box[3], box[0] : box[2]] = True
    return inside


def _count_pixels(inside: NDArray[np.bool_], argument: str) -> int:
    count = int(np.count_nonzero(inside))
    if not count:
        raise ToolError(
            "region_empty", f"the {argument} holds no pixel with data", argument=argument, hint="choose another"
        )
    return count


def _shape(inside: NDArray[np.bool_], origin: tuple[int, int]) -> "RegionShape":
    shape = shape_of(inside)
    x0, y0, x1, y1 = shape.box
    left, top = origin
    return shape.model_copy(update={"box": (x0 + left, y0 + top, x1 + left, y1 + top)})


def _picture_overlay(
    picture: "RegionPicture", inside: NDArray[np.bool_], plants: "Vegetation | None", gsd_m: float | None
) -> Artifact:
    canvas = picture.pixels.copy()
    canvas[~inside] = (canvas[~inside] * _DIMMED).astype(np.uint8)
    classes = np.zeros(inside.shape, np.uint8)
    layers: list[Layer] = []
    if plants is not None:
        classes[plants.mask & inside] = _PLANTS
        share = 100 * np.count_nonzero(classes) / np.count_nonzero(inside)
        layers.append(Layer(_PLANTS, SKY_BLUE, f"plants {share:.2f} %"))
    title = f"region of {np.count_nonzero(inside)} px" + ("" if inside.all() else "; what is dark does not count")
    overlay = draw_overlay(canvas, classes, layers, gsd_m=gsd_m, title=title)
    return save_artifact("region_overlay.jpg", "overlay", overlay)


def _triple(values: NDArray[np.floating]) -> tuple[float, float, float]:
    return float(values[0]), float(values[1]), float(values[2])


def summary_of(description: RegionDescription, name: str) -> str:
    """Summarise the measurements in sentences of fixed wording and order."""
    size = f"The region of {name} has {description.area_px} pixels, {description.image_pct:.3g} % of the image"
    parts = [size + (f", {description.area_m2:.4g} m^2 on the ground" if description.area_m2 is not None else "")]
    if description.class_pcts:
        ranked = sorted(description.class_pcts.items(), key=lambda item: (-item[1], item[0]))
        rest = f" and {len(ranked) - 8} more classes" if len(ranked) > 8 else ""
        parts.append(f"It holds {_listed([f'{label} {pct:.4g} %' for label, pct in ranked[:8]])}{rest}")
    if description.dominant_colours:
        colours = [f"{colour.name} {colour.pct:.3g} %" for colour in description.dominant_colours]
        parts.append(f"Its colours are {_listed(colours)}")
    if description.vegetation_pct is not None:
        parts.append(f"Plants cover {description.vegetation_pct:.3g} % of it (index {description.vegetation_index})")
    if description.bands and not description.dominant_colours:
        values = [
            f"{band.name} has a mean of {band.mean:.4g} ({band.low:.4g} to {band.high:.4g})"
            for band in description.bands
        ]
        parts.append(_listed(values[:3])[:1].upper() + _listed(values[:3])[1:])
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
        pieces = "one piece" if form.pieces == 1 else f"{form.pieces} pieces, the largest of {form.largest_px} pixels"
        parts.append(f"It is {pieces}, with solidity {form.solidity:.3g} and eccentricity {form.eccentricity:.3g}")
    return ". ".join(parts) + "."


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
