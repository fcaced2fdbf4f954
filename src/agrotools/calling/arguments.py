"""Tool arguments: annotated types, agreement rules, JSON Schema, and error messages for invalid calls."""

import json
import math
import os
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from pydantic import (
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    JsonValue,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from agrotools.core import AgreementKind, Arguments, FileKind, SampleFile, ToolError, plain_message
from agrotools.core.taxonomy import CONVENTIONS, ToolSpec

Resolve = Callable[[str], Path]
"""Function from the name of a file to its path; raises ToolError if the file does not exist."""


@dataclass(frozen=True)
class Agree:
    """Agreement rule for an argument whose type does not imply one; used inside ``Annotated``."""

    kind: AgreementKind


@dataclass(frozen=True)
class FileArgument:
    """File argument, used inside ``Annotated[Path, ...]``: callers pass a name, the function receives a ``Path``."""

    kind: FileKind
    description: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(
            _file_path, serialization=core_schema.to_string_ser_schema()
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
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
        raise ToolError(error.kind, error.message, **named) from None


ImageFile = Annotated[Path, FileArgument("image", CONVENTIONS["image"])]
"""Colour or grey image (JPEG, PNG or TIFF)."""

RasterFile = Annotated[
    Path, FileArgument("raster", "name of a raster file, e.g. a multi-band GeoTIFF")
]
"""Raster with one or more bands, georeferenced or not."""

MaskFile = Annotated[Path, FileArgument("mask", CONVENTIONS["mask"])]
"""Raster whose pixel values are class numbers."""

DepthFile = Annotated[Path, FileArgument("depth", CONVENTIONS["depth"])]
"""Raster of depth per pixel; 0 marks pixels without depth."""


class RegionArgument:
    description = CONVENTIONS["region"]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(_region)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
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
        raise PydanticCustomError(
            "region", "must have x1 > x0 and y1 > y0 (in that order: x0, y0, x1, y1)"
        )
    return x0, y0, x1, y1


Region = Annotated[tuple[int, int, int, int], Agree("box"), RegionArgument()]
"""``(x0, y0, x1, y1)`` in pixels, half-open, origin top left; fractions are rounded to whole pixels. Not clipped."""

PixelSize = Annotated[float, Field(gt=0, le=100_000, description=CONVENTIONS["pixel size"])]
Bands = Annotated[dict[str, int | str], Agree("choice"), Field(description=CONVENTIONS["bands"])]
"""Which band is which, by number from 1 or by name."""
LabelMap = Annotated[dict[str, list[int]], Agree("choice")]
"""Class numbers of a label raster by name of the class."""
_UNIONS = (Union, types.UnionType)


def agreement_kind(annotation: Any) -> AgreementKind | None:
    """Return the rule of an ``Agree`` marker, else the rule that the type implies, or None if it is unclear. A type can
    imply ``file``, ``choice``, ``number``, ``text`` or ``series``."""
    markers = list(_markers(annotation))
    for marker in markers:
        if isinstance(marker, Agree):
            return marker.kind
    if any(isinstance(marker, FileArgument) for marker in markers):
        return "file"
    kinds: set[AgreementKind | None] = {
        _kind_of_plain_type(member) for member in _members(annotation)
    }
    return kinds.pop() if len(kinds) == 1 else None


def takes_path(annotation: Any) -> bool:
    """True if a value of this type may contain a path, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, PurePath):
        return True
    return any(takes_path(member) for member in get_args(annotation))


def default_description(annotation: Any) -> str | None:
    """Return the description that a file or region type provides, or None for other types."""
    described = (
        marker
        for marker in _markers(annotation)
        if isinstance(marker, (FileArgument, RegionArgument))
    )
    return next((marker.description for marker in described), None)


def _markers(annotation: Any) -> Iterator[Any]:
    """Yield the metadata of a type, of the members of a union and of the items of a list."""
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
    is_enum = isinstance(annotation, type) and issubclass(annotation, Enum)
    if get_origin(annotation) is Literal or annotation is bool or is_enum:
        return "choice"
    if annotation in (int, float):
        return "number"
    if annotation is str:
        return "text"
    if get_origin(annotation) in (list, tuple, Sequence):
        items = {
            _kind_of_plain_type(member)
            for item in get_args(annotation)
            if item is not ...
            for member in _members(item)
        }
        return "series" if items == {"number"} else None
    return None


_PHOTO_ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp"})


@dataclass(frozen=True)
class ReferenceCall:
    """Reference call as stored in a record; no file is opened.

    ``files``: files of the sample by name. ``reference``: arguments of the reference call with defaults filled in.
    ``result``: result of that call, empty if it failed or is unknown.
    """

    files: Mapping[str, SampleFile] = field(default_factory=dict[str, SampleFile])
    reference: Arguments = field(default_factory=Arguments)
    result: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    def file(self, name: JsonValue) -> SampleFile | None:
        return self.files.get(name) if isinstance(name, str) else None

    def size(self, name: JsonValue) -> tuple[int, int] | None:
        """Return the width and height of a file in pixels, or None if the sample does not give them."""
        file = self.file(name)
        return (
            (file.width_px, file.height_px) if file and file.width_px and file.height_px else None
        )

    def gsd_m(self, given: JsonValue, *names: JsonValue) -> JsonValue:
        """Return ``given``, else the ground sampling distance (metres per pixel) of the first file that has one."""
        if given is not None:
            return given
        return next((file.gsd_m for file in map(self.file, names) if file and file.gsd_m), None)

    def is_photo(self, name: JsonValue) -> bool:
        """True if the file suffix is that of a photograph; rasters may define their own bands and scale."""
        return isinstance(name, str) and PurePath(name).suffix.lower() in _PHOTO_ENDINGS

    def has_value(self, argument: str, value: JsonValue) -> bool:
        """True if the reference call passed this value for ``argument``, so that its result shows the effect."""
        return bool(self.result) and self.reference.get(argument) == value

    def list_field(self, name: str) -> tuple[JsonValue, ...]:
        """Return a list field of the result (``flags``, ``notes``...), empty if it is absent."""
        value = self.result.get(name)
        return tuple(value) if isinstance(value, list) else ()

    def bands(self, given: JsonValue, image: JsonValue) -> JsonValue:
        """Return a band dictionary as roles and numbers, or ``given`` if it cannot be resolved. Resolving requires the
        names of the file's bands."""
        file = self.file(image)
        if not isinstance(given, dict) or file is None or not file.bands:
            return given
        from agrotools.vision.rasters import chosen_roles

        try:
            return cast(
                JsonValue,
                chosen_roles(cast("dict[str, int | str]", given), file.bands, file=file.name),
            )
        except ToolError:
            return given


Resolver = Callable[[Arguments, ReferenceCall], Arguments]
"""Function from validated arguments to their resolved form, without arguments that make no difference. It raises
ToolError if the tool would refuse the call."""


def drop_arguments(arguments: Arguments, *names: str) -> Arguments:
    """Return the arguments without those in ``names``."""
    return {name: value for name, value in arguments.items() if name not in names}


def normalise_set(value: JsonValue) -> JsonValue:
    """Return an unordered list in sorted order; None if it is null or empty."""
    members = {str(item) for item in value} if isinstance(value, list) else set[str]()
    return cast(JsonValue, sorted(members)) if members else None


def round_converted(number: float) -> float:
    """Round a converted number to 9 significant digits, which removes conversion errors."""
    return float(f"{number:.9g}")


_DROPPED = frozenset({"title", "$defs", "format", "discriminator"})


def plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return ``schema`` with definitions inlined and without titles, formats, null branches and null defaults: a
    nullable argument may be left out, so "or null" would only cost tokens, and some endpoints reject it. ValueError:
    the schema is recursive."""
    return _plain(schema, schema.get("$defs", {}), ())


def _plain(
    schema: dict[str, Any], definitions: dict[str, Any], open_refs: tuple[str, ...]
) -> dict[str, Any]:
    """Return a schema without references and unusual keys. ``open_refs``: references that it is within.

    Raises:
        ValueError: a type refers to itself.
    """
    schema = dict(schema)
    ref = schema.pop("$ref", None)
    if ref:
        name = ref.rsplit("/", 1)[-1]
        if ref in open_refs:
            raise ValueError(f"the type {name} refers to itself")
        return _plain({**definitions[name], **schema}, definitions, (*open_refs, ref))

    def inner(value: dict[str, Any]) -> dict[str, Any]:
        return _plain(value, definitions, open_refs)

    branches = _pop_branches(schema)
    if len(branches) == 1:
        return inner({**branches[0], **schema})
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _DROPPED or (key == "default" and value is None):
            continue
        if key == "const":
            plain["enum"] = [value]
        elif key == "properties":
            plain[key] = {name: inner(item) for name, item in value.items()}
        elif key == "prefixItems":
            if not value:
                continue  # a list without fixed places: any items
            kinds = [inner(item) for item in value]
            are_equal = all(kind == kinds[0] for kind in kinds)
            plain["items"] = kinds[0] if are_equal else {"anyOf": kinds}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            plain[key] = inner(value)
        else:
            plain[key] = value
    if branches:
        plain["anyOf"] = [inner(branch) for branch in branches]
    return plain


def _pop_branches(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Remove the unions of a schema, and return their branches without null, and without integers beside numbers."""
    # Tagged unions use "oneOf", but endpoints only support "anyOf"; the tag still tells the branches apart.
    unions = [*schema.pop("anyOf", []), *schema.pop("oneOf", [])]
    branches = [branch for branch in unions if branch.get("type") != "null"]
    if {"type": "number"} in branches:
        branches = [branch for branch in branches if branch != {"type": "integer"}]
    return branches


def describe_schema(schema: dict[str, Any]) -> str:
    """Describe the allowed values in words: ``a number above 0``, ``one of auto, exg``."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(describe_schema(branch) for branch in schema["anyOf"]))
    if "enum" in schema:
        choices = [str(choice) for choice in schema["enum"]]
        return choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"
    match schema.get("type"):
        case "integer":
            return "a whole number" + _range(schema)
        case "number":
            return "a number" + _range(schema)
        case "boolean":
            return "true or false"
        case "string":
            return "text" + _count(schema, "minLength", "maxLength", "characters")
        case "array":
            items = schema.get("items", {})
            how_many = _count(schema, "minItems", "maxItems", "") or " of"
            return f"a list{how_many} {_plural(describe_schema(items))}"
        case "object" if schema.get("properties"):
            return f"an object with {_names_in(schema)}"
        case "object" if isinstance(values := schema.get("additionalProperties"), dict):
            return f"an object from names to {_plural(describe_schema(cast('dict[str, Any]', values)))}"
        case "object":
            return "an object"
        case _:
            return "any value"


def _names_in(schema: dict[str, Any]) -> str:
    required = schema.get("required", ())
    return ", ".join(
        name if name in required else f"{name} (optional)" for name in schema["properties"]
    )


_LIMITS = {
    "exclusiveMinimum": "above",
    "minimum": "of at least",
    "exclusiveMaximum": "below",
    "maximum": "of at most",
}


def _range(schema: dict[str, Any]) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        return f" from {least:g} to {most:g}"
    return " and".join(
        f" {word} {schema[key]:g}" for key, word in _LIMITS.items() if schema.get(key) is not None
    )


def _count(schema: dict[str, Any], least_key: str, most_key: str, noun: str) -> str:
    least, most, noun = schema.get(least_key), schema.get(most_key), f" {noun}" if noun else ""
    if least is None and most is None:
        return ""
    if least == most:
        return f" of exactly {least}{noun}"
    if most is None:
        return f" of at least {least}{noun}"
    return f" of at most {most}{noun}" if least is None else f" of {least} to {most}{noun}"


_PLURALS = {
    "a number": "numbers",
    "a whole number": "whole numbers",
    "text": "texts",
    "a list": "lists",
    "an object": "objects",
    "any value": "values",
}


def _plural(words: str) -> str:
    singular = next((start for start in _PLURALS if words.startswith(start)), None)
    if singular is None or " or " in words:
        return f"values, each {words}"
    return _PLURALS[singular] + words.removeprefix(singular)


def schema_at(schema: dict[str, Any], path: Sequence[str | int]) -> dict[str, Any] | None:
    """Return the part of a plain ``schema`` that describes the value at ``path``, or None if there is none."""
    for step in path:
        branches: list[dict[str, Any]] = schema.get("anyOf", [schema])
        if isinstance(step, int):
            inner = [branch.get("items") for branch in branches]
        else:
            inner = [
                each.get("properties", {}).get(step, each.get("additionalProperties"))
                for each in branches
            ]
        schema = next((part for part in inner if isinstance(part, dict)), {})
        if not schema:
            return None
    return schema


MOST_FAULTS = 20
"""Maximum number of faults reported for one call."""
_LONGEST_NAME = 100
_OWN_WORDS = frozenset({"region", "file_name", "value_error", "fault"})
"""Types of errors raised by our own validators, whose messages are already written for the caller."""


def argument_error(
    spec: ToolSpec,
    arguments: Mapping[str, Any],
    words: Mapping[str, str],
    found: ValidationError,
) -> ToolError:
    """Return one ``invalid_argument`` error for all faults; ``words``: allowed values of each argument."""
    schema: dict[str, Any] = spec.parameters
    errors = found.errors(include_url=False)
    faults: dict[tuple[str | int, ...], ErrorDetails] = {}
    for error in errors:
        faults.setdefault(path_in(arguments, error), error)
    inside = {path[:depth] for path in faults for depth in range(len(path))}
    paths = [path for path in faults if path not in inside]
    messages = [_fault(spec, words, path, faults[path]) for path in paths[:MOST_FAULTS]]
    if len(paths) > MOST_FAULTS:
        messages.append(f"and {len(paths) - MOST_FAULTS:,} more faults")
    faulty = {str(path[0]) for path in paths[:MOST_FAULTS] if path}
    named = sorted(faulty, key=[*arguments, *schema["properties"], *faulty].index)
    return ToolError(
        "invalid_argument",
        "; ".join(messages),
        argument=named[0] if named else None,
        hint=_hint(spec, {error["type"] for error in errors}, named),
    )


def path_in(arguments: Mapping[str, Any], error: ErrorDetails) -> tuple[str | int, ...]:
    """Return the path of a fault in the arguments, without location parts that name a branch of a union."""
    path: list[str | int] = []
    value: Any = arguments
    for part in error["loc"]:
        if isinstance(value, Mapping) or (
            isinstance(value, (list, tuple)) and isinstance(part, int)
        ):
            with suppress(LookupError):
                value = cast(Any, value)[part]
                path.append(part)
    if error["type"] == "missing":
        path.append(error["loc"][-1])
    return tuple(path)


def _fault(
    spec: ToolSpec,
    words: Mapping[str, str],
    path: tuple[str | int, ...],
    error: ErrorDetails,
) -> str:
    schema: dict[str, Any] = spec.parameters
    name = _describe_value(path)
    allowed = words.get(str(path[0])) if len(path) == 1 else None
    if allowed is None and path and (found := schema_at(schema, path)):
        allowed = describe_schema(found)
    if error["type"] == "missing":
        return f"{name} is missing" + (f": give {allowed}" if allowed else "")
    if error["type"] == "extra_forbidden":
        parent = schema_at(schema, path[:-1]) or schema
        known = list(parent.get("properties", {}))
        close = get_close_matches(str(path[-1])[:_LONGEST_NAME], known, n=3, cutoff=0.5)
        if close:
            return f"unknown argument {name}; did you mean {' or '.join(close)}?"
        shown = [each for each in known if len(path) > 1 or each not in spec.expert]
        return f"unknown argument {name}; arguments: {', '.join(shown)}"
    if error["type"] == "finite_number":
        return f"{name} must be a finite number, is {error['input']}"
    if error["type"] in _OWN_WORDS:
        return f"{name} {plain_message(error)}, is {_excerpt(error['input'])}"
    if allowed is None:
        return f"{name or 'the call'}: {error['msg']}"
    return f"{name} must be {allowed}, is {_excerpt(error['input'])}"


OPTIONAL_HINT = "optional, leave out unless the question needs it"


def _hint(spec: ToolSpec, types: set[str], at_fault: Sequence[str]) -> str | None:
    if types & {"missing", "extra_forbidden"}:
        return f"{spec.name} takes {_names_in(spec.shown_parameters)}"
    required = cast("list[str]", spec.parameters.get("required", []))
    optional = [name for name in at_fault if name not in required]
    return f"{OPTIONAL_HINT}: {', '.join(optional)}" if optional else None


def _describe_value(path: Sequence[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}..."


def _excerpt(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
