"""Tools as published benchmarks declare them to a model: their words in place of ours.

``toolmeta.json`` beside this file holds what GTA and ThinkGeo say of their tools, word for word (Apache-2.0; where from
is said in it). A tool that is in none of them is declared by what we say of it.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import orjson
from pydantic import JsonValue

from agrotools.benchmarks._dialogs.lagent_format import DeclaredTool, Parameter, described
from agrotools.core import BenchmarkError, ToolSpec
from agrotools.formats.benchmark import Benchmark

TOOLMETA_FILE = "toolmeta.json"
_TYPES = {"string": "text", "integer": "int", "number": "float", "boolean": "bool"}

Declared = Mapping[str, DeclaredTool]


def declared_by(benchmark: str, root: Path | None = None) -> Declared:
    """What the tools of a benchmark are said to be, by name.

    Args:
        benchmark: its name; ``thinkgeo`` says some things of its own, all others are as in GTA.
        root: its folder; a ``toolmeta.json`` there wins over ours.

    Raises:
        BenchmarkError: that file is none.
    """
    ours = _ours()
    known = {**ours["gta"], **(ours["thinkgeo"] if benchmark == "thinkgeo" else {})}
    path = root / TOOLMETA_FILE if root else None
    return {**known, **read_toolmeta(path)} if path and path.is_file() else known


def declared_text(benchmark: Benchmark) -> str:
    """The declarations of the benchmark's tools as the system message lists them, in the order of their names."""
    declared = declared_by(benchmark.name, benchmark.root)
    return described(declared[tool] for tool in sorted(declared) if tool in benchmark.toolset)


def read_toolmeta(path: Path) -> Declared:
    """The tools in a file of GTA's form: an object, or a list, of tools with ``name``, ``description``, ``inputs``.

    What a list only names (a text, or an object without ``inputs``) is left out: GTA-2 may have such lists.

    Raises:
        BenchmarkError: it is none.
    """
    try:
        content = orjson.loads(path.read_bytes())
        tools = content.values() if isinstance(content, dict) else [tool for tool in content if "inputs" in tool]
        return {_named(tool, "name"): _declared(tool["name"], tool) for tool in tools}
    except OSError as error:
        raise BenchmarkError(f"{path} cannot be read: {error.strerror or error}") from error
    except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError) as error:
        raise BenchmarkError(
            f"{path} is no list of tools: {error}", hint="download it again, or remove it: its tools are known here"
        ) from error


def declared_tools(specs: Sequence[ToolSpec], declared: Declared) -> tuple[DeclaredTool, ...]:
    """Each of ``specs`` as ``declared`` has it, or else as we describe it."""
    return tuple(declared.get(spec.name) or declared_spec(spec) for spec in specs)


def declared_spec(spec: ToolSpec) -> DeclaredTool:
    """A tool of ours in the form in which published ones are declared."""
    properties = cast("dict[str, dict[str, JsonValue]]", spec.parameters.get("properties", {}))
    required = cast("list[str]", spec.parameters.get("required", []))
    parameters = tuple(
        Parameter(name, _type(spec, name, schema), _text(schema.get("description")), name in required)
        for name, schema in properties.items()
    )
    return DeclaredTool(spec.name, spec.description, parameters)


def _type(spec: ToolSpec, name: str, schema: Mapping[str, JsonValue]) -> str:
    choices = schema.get("anyOf")
    options = [schema, *(choices if isinstance(choices, list) else [])]
    types = [str(option["type"]) for option in options if isinstance(option, dict) and "type" in option]
    kind = next((_TYPES[kind] for kind in types if kind in _TYPES), "json")
    return "image" if kind == "text" and spec.agreement.get(name) == "file" else kind


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


@cache
def _ours() -> dict[str, dict[str, DeclaredTool]]:
    content = orjson.loads(files(__package__ or "").joinpath(TOOLMETA_FILE).read_bytes())
    return {name: {tool: _declared(tool, said) for tool, said in content[name].items()} for name in ("gta", "thinkgeo")}


def _declared(name: str, said: Mapping[str, Any]) -> DeclaredTool:
    """A tool from its entry in a ``toolmeta.json``.

    Raises:
        TypeError, LookupError: a name or a type is missing or no text.
    """
    parameters = tuple(
        Parameter(_named(each, "name"), _named(each, "type"), _text(each.get("description")), not each.get("optional"))
        for each in said["inputs"]
    )
    return DeclaredTool(name, str(said.get("description") or ""), parameters)


def _named(said: Mapping[str, Any], key: str) -> str:
    if not isinstance(said[key], str):
        raise TypeError(f"the {key} of a tool or an input is no text")
    return said[key]
