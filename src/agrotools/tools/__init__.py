"""Tools by name, each imported on first use.

    from agrotools.tools import measure_crop_weed_area
    area = measure_crop_weed_area("field.jpg")

Use :func:`get_tool` for a name that is known only at run time. The package also exports the types and functions for
writing tools, running code in a sandbox and searching a text corpus.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from agrotools.core import DeclaredTool, Registry, ToolSpec, UsageError
from agrotools.core.files import sha256_of_json
from agrotools.plugin.installed import plugins

if TYPE_CHECKING:
    from agrotools.knowledge.corpus import CorpusIndex, build_index
    from agrotools.sandbox.result import Limits, SandboxResult
    from agrotools.sandbox.running import run_code
    from agrotools.tools.arguments import (
        Agree,
        DepthFile,
        ImageFile,
        MaskFile,
        RasterFile,
        ReferenceCall,
        Region,
    )
    from agrotools.tools.contract import Tool, ToolResult, tool
    from agrotools.tools.workspace import save_artifact

_MODULES = {
    **dict.fromkeys(
        ("Agree", "DepthFile", "ImageFile", "MaskFile", "RasterFile", "ReferenceCall", "Region"),
        "agrotools.tools.arguments",
    ),
    **dict.fromkeys(("CorpusIndex", "build_index"), "agrotools.knowledge.corpus"),
    **dict.fromkeys(("Limits", "SandboxResult"), "agrotools.sandbox.result"),
    **dict.fromkeys(("Tool", "ToolResult", "tool"), "agrotools.tools.contract"),
    "run_code": "agrotools.sandbox.running",
    "save_artifact": "agrotools.tools.workspace",
}
"""Public names and the module that each is imported from on first use."""

_AGROTOOLS = {
    "diagnose_pest_disease": "recognition.diagnose_pest_disease",
    "identify_weed": "recognition.identify_weed",
    "lookup_agronomy": "recognition.lookup_agronomy",
    "extract_marked_region": "marks.tool",
    "count_objects": "counting.tool",
    "measure_fruit_size": "fruit.tool",
    "measure_weed_phenotype": "plants.tool",
    "analyze_lesions": "lesions.tool",
    "describe_region": "regions.tool",
    "estimate_canopy_height": "canopy_height",
    "measure_crop_weed_area": "crop_weed.tool",
    "detect_change": "change.tool",
    "calculate": "general.calculate",
    "plot": "plotting.tool",
}
_GENERAL = {
    "read_text": "general.text",
    "describe_image": "general.large_models",
    "describe_attribute": "general.large_models",
    "locate_objects": "general.objects",
    "detect_objects": "general.objects",
    "count_given_object": "general.objects",
    "segment_objects": "general.objects",
    "compare_images": "general.large_models",
    "draw_box": "general.annotation",
    "add_text": "general.annotation",
    "search_web": "general.large_models",
    "solve_equations": "general.code",
    "plot_code": "general.code",
    "read_formula": "general.large_models",
    "generate_image": "general.large_models",
    "stylize_image": "general.large_models",
}

TOOLS: Registry["Tool[..., Any]"] = Registry(
    "tool",
    "agrotools.tools",
    {
        name: f"agrotools.tools.{module}:{name}"
        for name, module in {**_AGROTOOLS, **_GENERAL}.items()
    },
    lambda: [item for plugin in plugins() for item in plugin.tools.items()],
)

AGROTOOLS: tuple[str, ...] = tuple(_AGROTOOLS)
"""The toolset of the AgroTools benchmark."""

GENERAL_TOOLS: tuple[str, ...] = tuple(_GENERAL)
"""General tools for any kind of picture, used by the published toolsets."""


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
        from agrotools.tools.declared import ToolWithoutFunction

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
    if not name.startswith("_") and name in TOOLS:
        return get_tool(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *TOOLS})


__all__ = [
    "AGROTOOLS",
    "GENERAL_TOOLS",
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
