"""Calling tools: their registry, contract, arguments, workers, cache and services.

:func:`get_tool` returns any installed tool by its name, imported on first use. The package also exports the types and
functions for writing tools, running code in a sandbox and searching a text corpus.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from agrotools.core import DeclaredTool, Registry, ToolSpec, UsageError
from agrotools.core.files import sha256_of_json
from agrotools.core.installed import plugins
from agrotools.core.registry import joined_targets

if TYPE_CHECKING:
    from agrotools.calling.arguments import (
        Agree,
        DepthFile,
        ImageFile,
        MaskFile,
        RasterFile,
        ReferenceCall,
        Region,
    )
    from agrotools.calling.contract import Tool, ToolResult, tool
    from agrotools.calling.workspace import save_artifact
    from agrotools.knowledge.corpus import CorpusIndex, build_index
    from agrotools.sandbox.result import Limits, SandboxResult
    from agrotools.sandbox.running import run_code

_MODULES = {
    **dict.fromkeys(
        ("Agree", "DepthFile", "ImageFile", "MaskFile", "RasterFile", "ReferenceCall", "Region"),
        "agrotools.calling.arguments",
    ),
    **dict.fromkeys(("CorpusIndex", "build_index"), "agrotools.knowledge.corpus"),
    **dict.fromkeys(("Limits", "SandboxResult"), "agrotools.sandbox.result"),
    **dict.fromkeys(("Tool", "ToolResult", "tool"), "agrotools.calling.contract"),
    "run_code": "agrotools.sandbox.running",
    "save_artifact": "agrotools.calling.workspace",
}
"""Public names and the module that each is imported from on first use."""

TOOLS: Registry["Tool[..., Any]"] = Registry(
    "tool",
    "agrotools.tools",
    lambda: joined_targets(lambda table: table.tools),
    lambda: [item for plugin in plugins() for item in plugin.tools.items()],
)


def tool_names() -> tuple[str, ...]:
    """Return the names of all tools, including those of installed plug-ins."""
    return TOOLS.names()


def get_tool(name: str, declared: Iterable[DeclaredTool] = ()) -> "Tool[..., Any]":
    """Return the tool with this name: that of ``declared``, which has no function, before the installed one.

    Raises:
        UsageError: there is no such tool (lists the closest names), its module cannot be imported (with the reason), or
            the entry point of a plug-in names something else.
    """
    if spec := next((each for each in declared if each.name == name), None):
        from agrotools.calling.declared import ToolWithoutFunction

        return ToolWithoutFunction(spec)
    tool = TOOLS.get(name)
    if not hasattr(tool, "spec"):
        raise UsageError(
            f"{name} is a {type(tool).__name__}, not a tool",
            hint="decorate the function with @tool",
        )
    return tool


def tool_specs(
    names: Iterable[str],
    may_be_absent: Container[str] = (),
    declared: Sequence[DeclaredTool] = (),
    backends: Mapping[str, str] | None = None,
) -> list[ToolSpec]:
    """Return the specifications of these tools, in the given order; those of ``declared`` before installed ones.

    A tool in ``may_be_absent`` that is not installed or cannot be imported gets a placeholder with its name. With
    ``backends``, the back-end of each tool that does not use its default, choices that cannot work here are left out.

    Raises:
        UsageError: any other tool is not installed or cannot be imported.
    """
    return [_spec(name, may_be_absent, declared, backends) for name in names]


def tool_versions(specs: Iterable[ToolSpec]) -> dict[str, str]:
    """Return the version and the hash of the specification of each tool, as the manifest of a run holds them."""
    return {
        spec.name: f"{spec.version}:{sha256_of_json(spec.model_dump(mode='json'))[:12]}"
        for spec in specs
    }


def _spec(
    name: str,
    may_be_absent: Container[str],
    declared: Sequence[DeclaredTool],
    backends: Mapping[str, str] | None,
) -> ToolSpec:
    try:
        tool = get_tool(name, declared)
        if backends is None or name in may_be_absent:
            return tool.spec
        return tool.spec_here(backends.get(name))
    except UsageError:
        if name not in may_be_absent:
            raise
    return ToolSpec(
        name=name,
        category="absent",
        version="0",
        description="A tool that is not installed here.",
        parameters={"type": "object", "properties": {}},
        agreement={},
        defaults={},
    )


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


__all__ = [
    "TOOLS",
    "Agree",
    "CorpusIndex",
    "DepthFile",
    "ImageFile",
    "Limits",
    "MaskFile",
    "RasterFile",
    "ReferenceCall",
    "Region",
    "SandboxResult",
    "Tool",
    "ToolResult",
    "build_index",
    "get_tool",
    "run_code",
    "save_artifact",
    "tool",
    "tool_names",
    "tool_specs",
]
