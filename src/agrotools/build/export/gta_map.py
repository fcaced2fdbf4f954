"""The field map: where in an entry of somebody's JSON the parts of a sample lie."""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, ValidationError

from agrotools.core import AnswerType, BenchmarkError, FileKind, FrozenModel
from agrotools.formats.benchmark import SourceNote

MAP_FILE = "agrotools-map.toml"
DEFAULT_MAP = Path(__file__).with_name("gta_map.toml")
_NOTHING = object()


class NamedBenchmark(FrozenModel):
    """Rules for the header of the benchmark."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
    version: Annotated[str, Field(min_length=1)] = "1"
    licence: Annotated[str, Field(min_length=1)]
    description: str = ""
    synthetic: bool = False
    sources: tuple[SourceNote, ...] = ()


class SamplePaths(FrozenModel):
    id: str | None = None
    query: str
    tools: str | None = None
    tool_name: str = ""
    family: str | None = None
    task_type: str | None = None
    template: str | None = None
    source: str | None = None


class Defaults(FrozenModel):
    task_type: str
    family: str | None = None
    template: str = "imported"
    source: str = "imported"


class FilePaths(FrozenModel):
    at: str
    path: str = ""
    folder: str = ""
    type: str | None = None
    name: str | None = None
    note: str | None = None
    bands: str | None = None
    gsd_m: str | None = None
    crs: str | None = None
    intrinsics: str | None = None
    depth_unit_mm: str | None = None
    classes: str | None = None
    types: dict[str, FileKind] = {}


class CallPaths(FrozenModel):
    at: str
    each: str = ""
    tool: str
    arguments: str
    thought: str | None = None
    observation: str = ""
    reply_role: str | None = None
    reply: str = ""


class AnswerPaths(FrozenModel):
    at: str
    type: str | None = None
    value: str = "value"
    unit: str | None = None
    aliases: str | None = None
    abs_tol: str | None = None
    rel_tol: str | None = None
    name: str | None = None
    label: str | None = None
    default_abs_tol: Annotated[float, Field(ge=0)] | None = None
    default_rel_tol: Annotated[float, Field(ge=0)] | None = None
    types: dict[str, AnswerType] = {}


class FieldMap(FrozenModel):
    """As ``gta_map.toml`` beside this module explains it; a table left out is taken from there."""

    data: str = "."
    file: str
    entries: str = ""
    own_part: str | None = None
    unknown_tools: Literal["refuse", "keep"] = "refuse"
    benchmark: NamedBenchmark | None = None
    sample: SamplePaths
    defaults: Defaults
    files: FilePaths
    calls: CallPaths
    tools: dict[str, str] = {}
    arguments: dict[str, dict[str, str]] = {}
    answer: AnswerPaths
    task_types: dict[str, str] = {}


def read_map(path: Path = DEFAULT_MAP) -> FieldMap:
    """The map in ``path``. Tables and keys that it does not have are those of the default map.

    Raises:
        BenchmarkError: it cannot be read, or has a key that no map has.
    """
    hint = f"{DEFAULT_MAP} is an example with every key"
    try:
        given = _toml(path)
        whole = given if path == DEFAULT_MAP else {**_toml(DEFAULT_MAP), **given}
        return FieldMap.model_validate_json(orjson.dumps(whole))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, orjson.JSONEncodeError) as error:
        raise BenchmarkError(f"the field map {path} cannot be read: {error}", hint=hint) from error
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in detail["loc"])
        raise BenchmarkError(f"the field map {path}: {where}: {detail['msg']}", hint=hint) from error


def _toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def found(value: Any, path: str | None, default: Any = None) -> Any:
    """Value at ``path`` in ``value``: keys and positions between dots. ``default`` where it leads nowhere."""
    if path is None:
        return default
    for part in path.split(".") if path else ():
        if isinstance(value, dict):
            value = value.get(part, _NOTHING)
        elif isinstance(value, list) and part.lstrip("-").isdecimal() and -len(value) <= int(part) < len(value):
            value = value[int(part)]
        else:
            value = _NOTHING
        if value is _NOTHING:
            return default
    return value
