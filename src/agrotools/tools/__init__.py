"""The tools: by name, without importing any of them before it is asked for.

    from agrotools.tools import measure_crop_weed_area
    area = measure_crop_weed_area("field.jpg")

and :func:`get_tool` for a name that is known only at run time.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from agrotools.core import Registry, ToolSpec

if TYPE_CHECKING:
    from agrotools.tools.contract import Tool

TOOLS: Registry["Tool[..., Any]"] = Registry(
    "tool",
    "agrotools.tools",
    {
        "extract_marked_region": "agrotools.tools.measurement.extract_marked_region:extract_marked_region",
        "count_objects": "agrotools.tools.measurement.count_objects:count_objects",
        "measure_fruit_size": "agrotools.tools.measurement.measure_fruit_size:measure_fruit_size",
        "measure_weed_phenotype": "agrotools.tools.measurement.measure_weed_phenotype:measure_weed_phenotype",
        "analyze_lesions": "agrotools.tools.segmentation.analyze_lesions:analyze_lesions",
        "describe_region": "agrotools.tools.segmentation.describe_region:describe_region",
        "estimate_canopy_height": "agrotools.tools.segmentation.estimate_canopy_height:estimate_canopy_height",
        "measure_crop_weed_area": "agrotools.tools.segmentation.measure_crop_weed_area:measure_crop_weed_area",
        "detect_change": "agrotools.tools.change.detect_change:detect_change",
        "diagnose_pest_disease": "agrotools.tools.recognition.diagnose_pest_disease:diagnose_pest_disease",
        "identify_weed": "agrotools.tools.recognition.identify_weed:identify_weed",
        "lookup_agronomy": "agrotools.tools.recognition.lookup_agronomy:lookup_agronomy",
        "calculate": "agrotools.tools.analytics.calculate:calculate",
        "plot": "agrotools.tools.analytics.plot:plot",
    },
)

AGROTOOLS: tuple[str, ...] = (
    "diagnose_pest_disease",
    "identify_weed",
    "lookup_agronomy",
    "extract_marked_region",
    "count_objects",
    "measure_fruit_size",
    "measure_weed_phenotype",
    "analyze_lesions",
    "describe_region",
    "estimate_canopy_height",
    "measure_crop_weed_area",
    "detect_change",
    "calculate",
    "plot",
)
"""The toolset of the AgroTools benchmark."""


def tool_names() -> tuple[str, ...]:
    """Names of all tools, those of installed plug-ins included."""
    return TOOLS.names()


def get_tool(name: str) -> "Tool[..., Any]":
    """The tool of that name.

    Raises:
        UsageError: no such tool (with the closest names), or its module cannot be imported (with the reason).
    """
    return TOOLS.get(name)


def tool_specs(names: Iterable[str]) -> list[ToolSpec]:
    """What models and scorers know of these tools, in the given order."""
    return [get_tool(name).spec for name in names]


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and name in TOOLS:
        return get_tool(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *TOOLS})


__all__ = ["AGROTOOLS", "TOOLS", "get_tool", "tool_names", "tool_specs"]
