"""Description of a part of a picture, in numbers and in a sentence made of them."""

from typing import Annotated, cast, get_args

from pydantic import Field, JsonValue

from agrotools.calling.arguments import Bands, LabelMap, PixelSize, ReferenceCall, drop_arguments
from agrotools.calling.contract import Agree, ImageFile, MaskFile, Region, tool
from agrotools.calling.services import VLM
from agrotools.core import Arguments
from agrotools_tools.regions.result import Attribute, RegionDescription

ALL: tuple[Attribute, ...] = get_args(Attribute)


def _resolve(call: Arguments, known: ReferenceCall) -> Arguments:
    """Resolve attributes to the sorted applicable ones (null for all), and the bands of a picture."""
    file = known.file(call["image"])
    is_labels = call["label_map"] is not None or (
        file is not None and (file.kind == "mask" or bool(file.classes))
    )
    able = ({"shape"} if is_labels else {*ALL} - {"landcover"}) - (
        set() if call["mask"] is not None else {"shape"}
    )
    requested = cast("list[str]", call["attributes"] or [*ALL])
    call = {
        **call,
        "attributes": cast(JsonValue, sorted(able & {*requested}) if able - {*requested} else None),
    }
    return (
        drop_arguments(call, "bands")
        if is_labels
        else {**call, "bands": known.bands(call["bands"], call["image"])}
    )


@tool(
    category="segmentation",
    version="5",
    resolves=_resolve,
    backends=("offline", VLM),
    expert=("question",),
    example={"image": "image"},
)
def describe_region(
    image: ImageFile,
    region: Region | None = None,
    mask: MaskFile | None = None,
    attributes: Annotated[list[Attribute] | None, Agree("choice")] = None,
    question: Annotated[str | None, Agree("presentation"), Field(max_length=500)] = None,
    bands: Bands | None = None,
    label_map: Annotated[LabelMap | None, Field(description="{'crop': [1]}")] = None,
    gsd_m: PixelSize | None = None,
) -> RegionDescription:
    """Describe a box, a mask or a whole picture in numbers; it names no species or disease.

    Returns area, colours, vegetation_pct, exg, ndvi, texture, shape of a mask, class_pcts of a label raster.

    Raises:
        ToolError: the file cannot be read or holds no data; ``region_empty`` (region outside, empty mask),
            ``shape_mismatch`` (mask of another size), ``band_not_found``, ``invalid_argument``.

    Sources: colours as named in :mod:`agrotools_tools.vision.colours`; texture, Haralick et al. 1973; plants, indices
        as named in :data:`agrotools_tools.vision.vegetation.INDICES` with the threshold of Otsu 1979.
    """
    from agrotools_tools.regions.describing import describe

    return describe(
        image, region, mask, frozenset(attributes or ALL), question, bands, label_map, gsd_m
    )
