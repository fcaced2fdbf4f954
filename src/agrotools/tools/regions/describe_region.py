"""Description of a part of a picture, in numbers and in a sentence made of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue

from agrotools.core import Arguments, Artifact, ToolError
from agrotools.tools.arguments import ReferenceCall, drop_arguments
from agrotools.tools.contract import Agree, ImageFile, MaskFile, Region, tool
from agrotools.tools.learned import LEARNED, weight_files
from agrotools.tools.regions.result import RegionDescription
from agrotools.tools.services import VLM
from agrotools.tools.workspace import backend_in_use, file_info, save_artifact, shown_name
from agrotools.vision.formats import Box, clipped_region

if TYPE_CHECKING:
    from agrotools.tools.regions.picture import RegionPicture
    from agrotools.tools.regions.result import RegionShape
    from agrotools.tools.services.vision_client import TextAnswer
    from agrotools.vision.vegetation import Vegetation

Attribute = Literal["colour", "texture", "shape", "cover", "landcover", "health"]
ALL: tuple[Attribute, ...] = get_args(Attribute)
_PLANTS = 1
_DIMMED = 0.35
_SOME_GREEN_PCT = 5.0
_MOST_SAMPLES = 250_000
"""Number of pixels sampled for colours in Lab in larger regions; the mean in RGB is of all."""


def _resolve(call: Arguments, known: ReferenceCall) -> Arguments:
    """Resolved call: attributes in any order; of a label raster its classes, of a picture no classes and no form."""
    file = known.file(call["image"])
    is_labels = call["label_map"] is not None or (file is not None and (file.kind == "mask" or bool(file.classes)))
    able = ({"shape"} if is_labels else {*ALL} - {"landcover"}) - (set() if call["mask"] is not None else {"shape"})
    wanted = cast("list[str]", call["attributes"] or [*ALL])
    call = {**call, "attributes": cast(JsonValue, sorted(able & {*wanted}) if able - {*wanted} else None)}
    return drop_arguments(call, "bands") if is_labels else {**call, "bands": known.bands(call["bands"], call["image"])}


@tool(
    category="segmentation",
    version="1",
    resolves=_resolve,
    backends=("offline", LEARNED, VLM),
    backend_files=weight_files,
)
def describe_region(
    image: ImageFile,
    region: Region | None = None,
    mask: Annotated[
        MaskFile | None, Field(description="a mask of the image's size; the region is where it is not 0")
    ] = None,
    attributes: Annotated[
        list[Attribute] | None,
        Agree("choice"),
        Field(description="what to describe; default: all that the file allows"),
    ] = None,
    question: Annotated[
        str | None,
        Agree("presentation"),
        Field(max_length=500, description="not answered offline: the numbers are the answer"),
    ] = None,
    bands: Annotated[
        dict[str, int | str] | None,
        Agree("choice"),
        Field(description="which band is which, by number from 1 or by name: {'R': 3, 'NIR': 4}; keys R G B RE NIR"),
    ] = None,
    label_map: Annotated[
        dict[str, list[int]] | None,
        Agree("choice"),
        Field(description="the image is a label raster; meaning of its classes: {'crop': [1], 'weed': [2]}"),
    ] = None,
    gsd_m: Annotated[
        float | None, Field(gt=0, le=100_000, description="ground sampling distance, metres per pixel")
    ] = None,
) -> RegionDescription:
    """Describe a region of a picture in numbers: area, colours, plant cover, texture, form, classes.

    The region is a box, a mask, or the whole picture. Gives mean colour, dominant colours by name with percent,
    vegetation percent, mean excess green, NDVI where there is a near infrared band, texture (co-occurrence entropy and
    contrast), the form of a mask, and the exact percent of each class of a label raster. The summary is a sentence made
    of these numbers and of nothing else: no species, disease or cause is named, and a question is not answered.

    Raises:
        ToolError: the file cannot be read or holds no data; ``region_empty`` (region outside, empty mask),
            ``shape_mismatch`` (mask of another size), ``band_not_found``, ``invalid_argument``.

    Sources: colours as named in :mod:`agrotools.vision.colours`; texture, Haralick et al. 1973; plants, indices as
        named in :data:`agrotools.vision.vegetation.INDICES` with the threshold of Otsu 1979.
    """
    from agrotools.tools.regions.classes import is_label_file
    from agrotools.tools.regions.result import summary_of
    from agrotools.tools.services.vision_client import TextAnswer

    wanted = frozenset(attributes or ALL)
    said_of_it: TextAnswer | None = None
    if said := is_label_file(image, file_info(image), label_map):
        seen = _describe_labels(image, region, mask, wanted, label_map, gsd_m)
        if said == "guessed":
            seen.flags.append("taken_as_labels")
            seen.notes.append("few small values in a palette or grey PNG: taken as class numbers")
    else:
        if (backend := backend_in_use()) and backend != "offline":
            said_of_it = _describe_by_model(backend, image, region, mask, bands, question)
        seen = _describe_picture(image, region, mask, wanted, bands, gsd_m)
    if said_of_it is not None:
        seen.notes += said_of_it.notes
        seen.flags += said_of_it.flags
    elif question is not None and question.strip():
        seen.flags.append("question_not_answered")
        seen.notes.append("offline only numbers are given: the question was not answered beyond them")
    description = seen.description.model_copy(
        update={
            "description": said_of_it.text if said_of_it else None,
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
    """Description of the region by a model; pixels outside a mask are shown dark."""
    from agrotools.tools.inputs import read_mask_pixels
    from agrotools.tools.learned import describe_learned
    from agrotools.tools.regions.picture import read_region_picture

    picture = read_region_picture(image, bands, region, file_info(image))
    pixels = picture.pixels
    if mask is not None:
        drawn = read_mask_pixels(
            mask, (picture.size[1], picture.size[0]), shown_name(image), argument="mask", called="a mask"
        )
        left, top = picture.origin
        pixels = pixels.copy()
        outside = ~drawn[top : top + pixels.shape[0], left : left + pixels.shape[1]]
        pixels[outside] = (pixels[outside] * _DIMMED).astype(np.uint8)
    question = question.strip() or None if question else None
    if backend == VLM:
        from agrotools.tools.services.vision_tasks import describe

        return describe(pixels, picture.box, question)
    return describe_learned(backend, pixels, picture.box, question)


def _describe_picture(
    image: Path,
    region: Box | None,
    mask: Path | None,
    wanted: frozenset[Attribute],
    bands: dict[str, int | str] | None,
    gsd_m: float | None,
) -> _Description:
    from agrotools.tools.inputs import choose_scale, read_mask_pixels
    from agrotools.tools.regions.numbers import band_values, colours_of, health_of, mean_index, plants_of, texture_of
    from agrotools.tools.regions.picture import read_region_picture
    from agrotools.tools.regions.result import TextureValues
    from agrotools.vision.colours import lab_of_list

    info = file_info(image)
    picture = read_region_picture(image, bands, region, info)
    notes, flags = [*picture.notes], [*picture.flags]
    drawn = (
        None
        if mask is None
        else read_mask_pixels(
            mask, (picture.size[1], picture.size[0]), shown_name(image), argument="mask", called="a mask"
        )
    )
    inside = picture.valid & _mask_in_box(picture.valid.shape, picture.box)
    if drawn is not None:
        left, top = picture.origin
        inside &= drawn[top : top + inside.shape[0], left : left + inside.shape[1]]
    count = _count_pixels(inside, "mask" if mask is not None else "region")
    scale = choose_scale(gsd_m, picture.gsd_m)
    plants = plants_of(picture) if "cover" in wanted else None
    if "cover" in wanted and plants is None:
        notes.append("plants cannot be told from the rest by these bands")
    covered = None if plants is None else _cover(picture, plants, inside, count, flags, notes)
    x0, y0, x1, y1 = picture.box
    pixels, part = picture.pixels[y0:y1, x0:x1], inside[y0:y1, x0:x1]
    samples = pixels[part]
    lab = lab_of_list(samples[:: -(-count // _MOST_SAMPLES)]) if picture.natural else None
    named = picture.natural and "colour" in wanted
    texture = texture_of(pixels, part) if "texture" in wanted else None
    description = RegionDescription(
        area_px=count,
        image_pct=100 * count / (picture.size[0] * picture.size[1]),
        area_m2=None if scale.gsd_m is None else count * scale.gsd_m**2,
        mean_rgb=_triple(samples.sum(axis=0, dtype=np.int64) / count) if named else None,
        mean_lab=_triple(lab.mean(axis=0, dtype=np.float64)) if lab is not None and named else None,
        dominant_colours=colours_of(samples) if named else None,
        vegetation_pct=covered,
        vegetation_index=None if plants is None or covered is None else plants.index,
        exg=mean_index("exg", picture, inside) if "cover" in wanted else None,
        ndvi=mean_index("ndvi", picture, inside) if "cover" in wanted else None,
        texture=None
        if texture is None
        else TextureValues(
            entropy=texture.entropy,
            contrast=texture.contrast,
            homogeneity=texture.homogeneity,
            correlation=None if np.isnan(texture.correlation) else texture.correlation,
        ),
        shape=_shape(inside, picture.origin) if drawn is not None and "shape" in wanted else None,
        health=health_of(lab) if lab is not None and "health" in wanted else None,
        class_pcts=None,
        class_px=None,
        bands=band_values(picture, inside) or None,
        summary="",
        overlay=_picture_overlay(picture, inside, None if covered is None else plants, scale.gsd_m),
    )
    if "landcover" in wanted:
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
    wanted: frozenset[Attribute],
    label_map: dict[str, list[int]] | None,
    gsd_m: float | None,
) -> _Description:
    from agrotools.tools.inputs import choose_scale, read_mask_pixels
    from agrotools.tools.regions.classes import class_counts, class_layers
    from agrotools.vision.overlay import draw_overlay
    from agrotools.vision.reading import read_labels

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
    found, notes, flags = class_counts(labels.classes, inside, label_map, info.classes if info else None)
    scale = choose_scale(gsd_m, info.gsd_m if info else None)
    shown, layers = class_layers(labels.classes, inside, found, label_map, info.classes if info else None)
    title = f"{len(found)} classes in {count} px"
    grey = np.full((height, width, 3), 235, np.uint8)
    overlay = draw_overlay(
        grey, shown, layers, region=None if box == (0, 0, width, height) else box, gsd_m=scale.gsd_m, title=title
    )
    description = RegionDescription(
        area_px=count,
        image_pct=100 * count / (width * height),
        area_m2=None if scale.gsd_m is None else count * scale.gsd_m**2,
        mean_rgb=None,
        mean_lab=None,
        dominant_colours=None,
        vegetation_pct=None,
        vegetation_index=None,
        exg=None,
        ndvi=None,
        texture=None,
        shape=_shape(inside, (0, 0)) if mask is not None and "shape" in wanted else None,
        health=None,
        class_pcts={label: 100 * pixels / count for label, pixels in found.items()},
        class_px=found,
        bands=None,
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
    """Plants in percent of the region; None where the picture does not fall into plants and others and yet is green."""
    from agrotools.tools.regions.numbers import health_of
    from agrotools.vision.colours import lab_of_list

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
    from agrotools.tools.regions.numbers import shape_of

    found = shape_of(inside)
    x0, y0, x1, y1 = found.box
    left, top = origin
    return found.model_copy(update={"box": (x0 + left, y0 + top, x1 + left, y1 + top)})


def _picture_overlay(
    picture: "RegionPicture", inside: NDArray[np.bool_], plants: "Vegetation | None", gsd_m: float | None
) -> Artifact:
    from agrotools.vision.overlay import SKY_BLUE, Layer, draw_overlay

    shown = picture.pixels.copy()
    shown[~inside] = (shown[~inside] * _DIMMED).astype(np.uint8)
    classes = np.zeros(inside.shape, np.uint8)
    layers: list[Layer] = []
    if plants is not None:
        classes[plants.mask & inside] = _PLANTS
        share = 100 * np.count_nonzero(classes) / np.count_nonzero(inside)
        layers.append(Layer(_PLANTS, SKY_BLUE, f"plants {share:.2f} %"))
    title = f"region of {np.count_nonzero(inside)} px" + ("" if inside.all() else "; what is dark does not count")
    drawn = draw_overlay(shown, classes, layers, gsd_m=gsd_m, title=title)
    return save_artifact("region_overlay.jpg", "overlay", drawn)


def _triple(values: NDArray[np.floating]) -> tuple[float, float, float]:
    return float(values[0]), float(values[1]), float(values[2])
