"""Argument types of tools: plain annotations that carry their schema, their description and how two values agree."""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from agrotools.core import AgreementKind, FileKind, ToolError

Resolve = Callable[[str], Path]
"""From the name of a file to where it lies; raises ToolError where the name leads to no file."""


@dataclass(frozen=True)
class Agree:
    """Inside ``Annotated``: how two values of this argument agree, where its type does not say it."""

    kind: AgreementKind


@dataclass(frozen=True)
class FileArgument:
    """Inside ``Annotated[Path, ...]``: a file, given by name, a ``Path`` inside the function."""

    kind: FileKind
    description: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(
            _file_path, serialization=core_schema.to_string_ser_schema()
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string"}


def _file_path(value: Any, info: ValidationInfo) -> Path:
    if not isinstance(value, (str, os.PathLike)) or not str(value).strip():
        raise PydanticCustomError("file_name", "must be the name of a file")
    name = os.fspath(value)
    resolve: Resolve | None = (info.context or {}).get("resolve")
    if resolve is None:
        return Path(name)
    try:
        return resolve(name)
    except ToolError as error:
        named = {"argument": info.field_name, "hint": error.hint, "candidates": error.candidates}
        raise ToolError(error.kind, error.message, **named) from error


ImageFile = Annotated[Path, FileArgument("image", "name of an image file")]
"""A colour or grey image (JPEG, PNG, TIFF)."""

RasterFile = Annotated[Path, FileArgument("raster", "name of a raster file, e.g. a multi-band GeoTIFF")]
"""A raster with one or more bands, georeferenced or not."""

MaskFile = Annotated[Path, FileArgument("mask", "name of a mask or label raster whose pixel values are class numbers")]
"""A raster whose pixel values are class numbers."""

DepthFile = Annotated[Path, FileArgument("depth", "name of a depth file that belongs to the image, 0 where invalid")]
"""Depth per pixel, 0 where there is none."""


@dataclass(frozen=True)
class RegionArgument:
    """Inside ``Annotated[tuple[int, int, int, int], ...]``: a box in pixels of the original image."""

    description: str = (
        "box [x0, y0, x1, y1] in pixels of the original image, x to the right, y down, x1 and y1 excluded"
    )

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(_region)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "number"}, "minItems": 4, "maxItems": 4}


def _region(value: Any) -> tuple[int, int, int, int]:
    if (
        not isinstance(value, (list, tuple))
        or len(value) != 4
        or not all(isinstance(edge, (int, float)) and not isinstance(edge, bool) for edge in value)
        or not all(math.isfinite(edge) and abs(edge) < 1e9 for edge in value)
    ):
        raise PydanticCustomError("region", "must be four numbers [x0, y0, x1, y1] in pixels")
    x0, y0, x1, y1 = (round(edge) for edge in value)
    if x1 <= x0 or y1 <= y0:
        raise PydanticCustomError("region", "must have x1 > x0 and y1 > y0 (in that order: x0, y0, x1, y1)")
    return x0, y0, x1, y1


Region = Annotated[tuple[int, int, int, int], Agree("box"), RegionArgument()]
"""``(x0, y0, x1, y1)`` in pixels, half-open, origin top left; fractions are rounded to whole pixels. Not clipped."""
