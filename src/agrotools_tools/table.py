"""Table of the tools that ship with the package: name, and module below this package. Importing it imports no tool."""

from agrotools.packages import CommandEntry, PackageTable

_HERE = __name__.rpartition(".")[0]

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

AGROTOOLS: tuple[str, ...] = tuple(_AGROTOOLS)
"""The toolset of the AgroTools benchmark."""

GENERAL_TOOLS: tuple[str, ...] = tuple(_GENERAL)
"""General tools for any kind of picture, used by the published toolsets."""

TARGETS = {name: f"{_HERE}.{module}:{name}" for name, module in {**_AGROTOOLS, **_GENERAL}.items()}
"""Target of each tool: what is imported when it is first used."""

TABLE = PackageTable(
    package=_HERE,
    tools=TARGETS,
    commands={
        "Tools": {
            "tools": CommandEntry(
                f"{_HERE}.cli.tools:app",
                "List, describe, run the tools; their recognisers and knowledge base.",
            ),
            "serve": CommandEntry(
                f"{_HERE}.cli.tools:serve", "Offer the tools to other programs, over MCP."
            ),
        }
    },
    pictures={"pests": f"{_HERE}.recognition.pest_pictures:PEST_PICTURES"},
)
"""Table of this package, which the engine reads."""
