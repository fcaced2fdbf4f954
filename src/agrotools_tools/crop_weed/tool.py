"""Area of crop, weeds and soil in a field picture."""

from functools import partial
from typing import Annotated, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue

from agrotools.calling.arguments import Bands, LabelMap, PixelSize, ReferenceCall, drop_arguments
from agrotools.calling.contract import ImageFile, MaskFile, Region, tool
from agrotools.calling.workspace import file_info
from agrotools.core import Arguments, SampleFile
from agrotools.vision import Box
from agrotools.vision.formats import clipped_region, file_format
from agrotools.vision.reading import picture_of, read_image, read_labels
from agrotools_tools.crop_weed.result import UNTRAINED, CropWeedArea, SeparationChoice, head_files
from agrotools_tools.vision import Index


def _resolve(call: Arguments, known: ReferenceCall) -> Arguments:
    """Resolve the raster and its class meanings for labels, or the index and the separation for a picture."""
    from agrotools_tools.crop_weed.result import meaning_of_classes

    image, source = call["image"], call["label_raster"] or call["image"]
    call = {**call, "bands": known.bands(call["bands"], image)}
    if not _from_label_raster(call["label_raster"], call["label_map"], known.file(image)):
        return _automatic_choice(call, known)
    file = known.file(source)
    meaning = cast("LabelMap | None", call["label_map"])
    classes = file.classes if file else None
    if meaning is not None or classes:
        present = [int(number) for number in classes or () if number.strip().isdecimal()]
        numbers = meaning_of_classes(meaning, classes, str(source), present)[0]
        call = {
            **call,
            "label_map": cast(
                JsonValue, {area: sorted(set(members)) for area, members in numbers.items()}
            ),
        }
    call = {**call, "label_raster": source, "gsd_m": known.gsd_m(call["gsd_m"], source, image)}
    call = drop_arguments(call, "index", "separation")
    # A photograph below the labels is only shown; the bands of a raster are ranked.
    return (
        drop_arguments(call, "image", "bands") if image == source or known.is_photo(image) else call
    )


def _automatic_choice(call: Arguments, known: ReferenceCall) -> Arguments:
    """Replace ``auto`` by the method that the reference call used; no separation equals ``none``."""
    index, method = known.result.get("index"), known.result.get("method")
    if call["index"] == "auto" and known.has_value("index", "auto") and isinstance(index, str):
        call = {**call, "index": index}
    separated = method in ("row", "model") or known.result.get("crop_px") is None
    if call["separation"] == "auto" and known.has_value("separation", "auto") and separated:
        call = {**call, "separation": method}
    return call


def _from_label_raster(label_raster: object, label_map: object, image: SampleFile | None) -> bool:
    """Return True if classes are counted and no picture is analysed."""
    return (
        label_raster is not None
        or label_map is not None
        or (image is not None and image.kind == "mask")
    )


@tool(
    category="segmentation",
    version="9",
    resolves=_resolve,
    data_files=(head_files,),
    backends=("offline", UNTRAINED),
    expert=("index", "separation"),
    example={"image": "image"},
)
def measure_crop_weed_area(
    image: ImageFile,
    bands: Bands | None = None,
    label_raster: MaskFile | None = None,
    label_map: Annotated[LabelMap | None, Field(description="{'crop': [1], 'weed': [2]}")] = None,
    gsd_m: PixelSize | None = None,
    index: Literal["auto", "exg", "exgr", "cive", "lab_a", "ndvi", "gndvi", "ndre"] = "auto",
    separation: SeparationChoice = "auto",
    region: Region | None = None,
) -> CropWeedArea:
    """Measure crop, weeds and soil in a field picture from above or a label raster: crop_px, crop_pct, area_m2...

    Values are null where crop and weeds cannot be separated. separability ranks triples of bands by how well they
    separate the classes.

    Raises:
        ToolError: the file cannot be read, is too large, or holds no data; ``band_not_found``, ``region_empty``,
            ``shape_mismatch`` (label raster of another size), ``missing_metadata`` (meaning of classes not known),
            ``low_confidence`` (shade, a colour cast or pale greens may hide plants of a photograph, or soil).

    Sources: separability, cross-validated quadratic discriminant analysis, Swain and Davis 1978 and Chavez et al. 1982,
        see :mod:`agrotools_tools.crop_weed.bands`;
        thresholds, Otsu 1979; indices as named in :data:`agrotools_tools.vision.vegetation.INDICES`; rows and trained
        heads in :mod:`agrotools_tools.crop_weed.measure` and :mod:`agrotools_tools.crop_weed.heads`.
    """
    if _from_label_raster(label_raster, label_map, file_info(image)):
        source = label_raster or image
        return _from_labels(image, source, label_map, gsd_m, region, bands)
    return _from_picture(image, bands, gsd_m, index, separation, region)


def _from_picture(
    image: ImageFile,
    bands: Bands | None,
    gsd_m: float | None,
    index: Literal["auto"] | Index,
    separation: SeparationChoice,
    region: Box | None,
) -> CropWeedArea:
    from agrotools.calling.pictures import choose_scale, colour_bands, read_field_picture
    from agrotools.vision.rasters import open_raster
    from agrotools_tools.crop_weed.bands import ranked_bands
    from agrotools_tools.crop_weed.large_rasters import measure_by_blocks
    from agrotools_tools.crop_weed.measure import separate_crop_in_picture
    from agrotools_tools.crop_weed.photographs import remarks_on_photo
    from agrotools_tools.crop_weed.result import CROP, NO_DATA, PLANTS, SOIL, WEED, area_result
    from agrotools_tools.vision.index_bands import index_bands
    from agrotools_tools.vision.vegetation import (
        INDICES,
        choose_index,
        refuse_doubtful_plants,
        segment,
    )
    from agrotools_tools.zones.numbers import doubts_on_numbers

    info = file_info(image)
    large = measure_by_blocks(image, bands, gsd_m, index, separation, region, info)
    if large is not None:
        return large
    doubts: tuple[str, ...] = ()
    of_numbers: tuple[str, ...] = ()
    name = info.name if info else image.name
    if file_format(image, shown_as=name) in ("tiff", "envi"):
        with open_raster(image, shown_as=name) as source:
            found = index_bands(source, index, bands, info)
            doubts, of_numbers = doubts_on_numbers(source, found.used, can_be_stated=False)
        doubts = (found.said, *doubts)
        index = found.index
        bands = None if bands is None else {str(role): n for role, n in found.roles.items()}
    picture = read_field_picture(image, bands, region, info)
    chosen = choose_index(index, picture.bands)
    notes, flags = [*picture.notes], [*picture.flags]
    values, scaled = colour_bands(picture) if "B" in INDICES[chosen].bands else (picture.bands, ())
    plants = segment(chosen, values, picture.valid)
    notes += doubts
    flags += of_numbers
    if picture.photo is not None and bands is None:
        refuse_doubtful_plants(picture.photo, plants)
        of_photo = remarks_on_photo(picture.photo, plants)
        notes += of_photo.notes
        flags += of_photo.flags
    separated = separate_crop_in_picture(separation, picture, plants, image)
    classes = np.full(picture.shape, SOIL, np.uint8)
    if separated.crop is None:
        classes[plants.mask] = PLANTS
    else:
        classes[plants.mask & separated.crop] = CROP
        classes[plants.mask & ~separated.crop] = WEED
    classes[~picture.valid] = NO_DATA
    scale = choose_scale(gsd_m, picture.gsd_m)
    ranking, of_ranking = None, ()
    if picture.is_raster:
        classes_from = "index" if separated.method == "none" else separated.method
        ranking = ranked_bands(picture.bands, classes, picture.box, classes_from)
        of_ranking = ("separability_from_own_classes",) if ranking else ()
    return area_result(
        shown=picture.display,
        classes=classes,
        box=picture.box,
        gsd_m=scale.gsd_m,
        separated=separated.crop is not None,
        method=separated.method,
        index=chosen,
        rows=separated.rows,
        separability=ranking,
        notes=(*notes, *scale.notes, *scaled, *plants.notes, *separated.notes),
        flags=(*flags, *scale.flags, *plants.flags, *separated.flags, *of_ranking),
    )


def _from_labels(
    image: ImageFile,
    source: MaskFile,
    label_map: LabelMap | None,
    gsd_m: float | None,
    region: Box | None,
    bands: Bands | None,
) -> CropWeedArea:
    from agrotools.calling.pictures import refuse_other_place
    from agrotools_tools.crop_weed.bands import ranked_bands
    from agrotools_tools.crop_weed.result import area_result, label_classes

    info, image_info = file_info(source), file_info(image)
    name = info.name if info else source.name
    labels = read_labels(
        source, argument="image" if source == image else "label_raster", shown_as=name
    )
    height, width = labels.classes.shape
    box, clipped = clipped_region(region, width, height, name)
    classes, notes, flags = label_classes(labels, label_map, info.classes if info else None, name)
    known = next((item.gsd_m for item in (info, image_info) if item and item.gsd_m), None)
    canvas = np.full((height, width, 3), 235, np.uint8)
    ranking = None
    if source != image:
        refuse_other_place(image, source, argument="label_raster")
        canvas, of_picture, of_bands = _picture_below_labels(image, (height, width), name, bands)
        known = known or of_picture
        ranking = ranked_bands(of_bands, classes, box, "labels")
    return area_result(
        shown=canvas,
        classes=classes,
        box=box,
        gsd_m=gsd_m or known,
        separated=True,
        method="labels",
        separability=ranking,
        notes=(*labels.notes, *notes, "classes counted in the label raster: exact"),
        flags=(*flags, *clipped),
    )


def _picture_below_labels(
    image: ImageFile, shape: tuple[int, int], name: str, bands: Bands | None
) -> tuple[NDArray[np.uint8], float | None, dict[str, NDArray[np.float32]]]:
    """Read the image that a label raster belongs to."""
    from agrotools.calling.pictures import refuse_other_size
    from agrotools.vision.rasters import open_raster
    from agrotools_tools.crop_weed.bands import band_numbers

    info = file_info(image)
    shown_as = info.name if info else image.name
    check_size = partial(
        refuse_other_size,
        of_mask=shape,
        names=(shown_as, name),
        argument="label_raster",
        called="a label raster",
    )
    gsd_m = info.gsd_m if info else None
    of_bands: dict[str, NDArray[np.float32]] = {}
    if file_format(image, shown_as=shown_as) in ("tiff", "envi"):
        with open_raster(image, shown_as=shown_as) as raster:
            check_size((raster.height, raster.width))
            pixels, gsd_m = picture_of(raster).pixels, gsd_m or raster.sampling.gsd_m
            numbers = band_numbers(raster, bands, info)
            of_bands = dict(zip(numbers, raster.read(list(numbers.values())), strict=True))
    else:
        pixels = read_image(image, shown_as=shown_as).pixels
        check_size((pixels.shape[0], pixels.shape[1]))
    return pixels, gsd_m, of_bands
