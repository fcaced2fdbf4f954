"""Argument types of tools: annotations with schema, description and agreement, and what a call resolves to.

A tool declares its resolution beside itself, ``@tool(..., resolves=function)``, with the very code that decides when it
runs, so that two calls can be compared without running them.
"""

import math
import os
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, JsonValue, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from agrotools.core import AgreementKind, Arguments, FileKind, SampleFile, ToolError

Resolve = Callable[[str], Path]
"""Function from the name of a file to its path; raises ToolError where there is no such file."""


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


_UNIONS = (Union, types.UnionType)
_SEQUENCES = (list, tuple, Sequence)


def agreement_kind(annotation: Any) -> AgreementKind | None:
    """``Agree`` where the type carries one, else by the type: file, choice, number, text, series; None if unclear."""
    markers = list(_markers(annotation))
    for marker in markers:
        if isinstance(marker, Agree):
            return marker.kind
    if any(isinstance(marker, FileArgument) for marker in markers):
        return "file"
    kinds: set[AgreementKind | None] = {_kind_of_plain_type(member) for member in _members(annotation)}
    return kinds.pop() if len(kinds) == 1 else None


def takes_path(annotation: Any) -> bool:
    """True if a value of the type may hold a path, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, PurePath):
        return True
    return any(takes_path(member) for member in get_args(annotation))


def default_description(annotation: Any) -> str | None:
    """The description that a file or region type brings along."""
    for marker in _markers(annotation):
        if isinstance(marker, (FileArgument, RegionArgument)):
            return marker.description
    return None


def _markers(annotation: Any) -> Iterator[Any]:
    """Metadata of the type: of itself, of the members of a union, of the items of a list."""
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        yield from metadata
        yield from _markers(inner)
    elif get_origin(annotation) in (*_UNIONS, list):
        for member in get_args(annotation):
            yield from _markers(member)


def _members(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Annotated:
        yield from _members(get_args(annotation)[0])
    elif get_origin(annotation) in _UNIONS:
        for member in get_args(annotation):
            yield from _members(member)
    elif annotation is not type(None):
        yield annotation


def _kind_of_plain_type(annotation: Any) -> AgreementKind | None:
    if get_origin(annotation) is Literal or annotation is bool:
        return "choice"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "choice"
    if annotation in (int, float):
        return "number"
    if annotation is str:
        return "text"
    if get_origin(annotation) in _SEQUENCES:
        items = {
            _kind_of_plain_type(member) for item in get_args(annotation) if item is not ... for member in _members(item)
        }
        return "series" if items == {"number"} else None
    return None


_PHOTO_ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp"})


@dataclass(frozen=True)
class ReferenceCall:
    """Reference call as a record holds it; no file is opened.

    ``files``: those of the sample by name; ``reference``: arguments of the reference call, defaults filled in;
    ``result``: what that call gave, empty where that is not known or it failed.
    """

    files: Mapping[str, SampleFile] = field(default_factory=dict[str, SampleFile])
    reference: Arguments = field(default_factory=Arguments)
    result: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    def file(self, name: JsonValue) -> SampleFile | None:
        return self.files.get(name) if isinstance(name, str) else None

    def size(self, name: JsonValue) -> tuple[int, int] | None:
        """Width and height of a file, pixels, where the sample says it."""
        file = self.file(name)
        return (file.width_px, file.height_px) if file and file.width_px and file.height_px else None

    def gsd_m(self, given: JsonValue, *names: JsonValue) -> JsonValue:
        """The scale that was given, else that of the first of these files that has one, metres per pixel."""
        if given is not None:
            return given
        return next((file.gsd_m for file in map(self.file, names) if file and file.gsd_m), None)

    def is_photo(self, name: JsonValue) -> bool:
        """True if a file is a photograph by its suffix: a raster may have bands of its own and a scale inside."""
        return isinstance(name, str) and PurePath(name).suffix.lower() in _PHOTO_ENDINGS

    def left_open(self, argument: str, value: JsonValue) -> bool:
        """True if the reference call gave ``argument`` this value, so that its result shows the effect."""
        return bool(self.result) and self.reference.get(argument) == value

    def said(self, name: str) -> tuple[JsonValue, ...]:
        """A list of the result (``flags``, ``notes``...); empty where it has none."""
        value = self.result.get(name)
        return tuple(value) if isinstance(value, list) else ()

    def bands(self, given: JsonValue, image: JsonValue) -> JsonValue:
        """A band dictionary by role and number, where the names of the file's bands are known; else as it was given."""
        file = self.file(image)
        if not isinstance(given, dict) or file is None or not file.bands:
            return given
        from agrotools.vision.band_roles import chosen_roles

        try:
            return cast(JsonValue, chosen_roles(cast("dict[str, int | str]", given), file.bands, file=file.name))
        except ToolError:
            return given


Resolver = Callable[[Arguments, ReferenceCall], Arguments]
"""Function from validated arguments to their resolved form. What makes no difference is left out. A ToolError says
that the tool would refuse the call."""


def drop_arguments(arguments: Arguments, *names: str) -> Arguments:
    """The arguments without some that make no difference."""
    return {name: value for name, value in arguments.items() if name not in names}


def normalise_set(value: JsonValue, everything: Iterable[str] = ()) -> JsonValue:
    """A list whose order says nothing; null where it is null, empty, or holds all there is."""
    members = {str(item) for item in value} if isinstance(value, list) else set[str]()
    if not members or (everything and members >= {*everything}):
        return None
    return cast(JsonValue, sorted(members))


def round_converted(number: float) -> float:
    """A converted number without the last digits, which conversion spoils."""
    return float(f"{number:.9g}")
