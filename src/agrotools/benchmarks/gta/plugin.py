"""Plug-in of GTA."""

from agrotools.benchmarks._dialogs.plugin_parts import LAGENT, ImageCallsSlot, PaperRun, files_of, tools_in
from agrotools.benchmarks.counts import count_answers, count_calls, count_files, count_tools, count_with_tools
from agrotools.plugin import BenchmarkPlugin, Download, ErrorSource, ExpectedCount, PublishedFiles

PAPER_RUN = PaperRun("lagent", 10, {"": 229})
_EXPECTED = (
    ExpectedCount("questions", 229, True, len),
    ExpectedCount("tool steps", 557, True, count_calls),
    ExpectedCount("text answers", 172, True, count_answers("exact", "open_text")),
    ExpectedCount("image answers", 57, True, count_answers("image")),
    ExpectedCount("objective answers", 156, False, count_answers("exact")),
    ExpectedCount("subjective answers", 16, False, count_answers("open_text")),
    ExpectedCount("image files", 252, False, count_files),
    ExpectedCount("tools", 14, False, count_tools),
    ExpectedCount("questions with 1 tool", 17, False, count_with_tools(1)),
    *(
        ExpectedCount(f"questions with {n} tools", count, False, count_with_tools(n))
        for n, count in enumerate((147, 50, 15), 2)
    ),
)
"""Tables 3 and 4 and figure 3 of the paper (557 steps and 172 text answers follow from its result table)."""

TOOLS = tools_in(
    "agrotools.benchmarks._dialogs.tools",
    """
    Calculator OCR CountGivenObject ImageDescription GoogleSearch RegionAttributeDescription TextToBbox Plot MathOCR
    Solver DrawBox AddText TextToImage ImageStylization
    """.split(),
)
"""Tools of GTA by their published names."""
IMAGE_TOOLS = ("DrawBox", "AddText", "Plot", "TextToImage", "ImageStylization")
"""Tools that return an image."""
CATEGORIES = {
    "perception": ("OCR", "ImageDescription", "RegionAttributeDescription", "TextToBbox"),
    "operation": ("DrawBox", "AddText", "GoogleSearch"),
    "logic": ("Calculator", "Solver", "Plot", "MathOCR", "CountGivenObject"),
    "creativity": ("TextToImage", "ImageStylization"),
}
"""Tool categories of its scorer."""

_ERROR_SHARES = {
    "format error": ("format_error",),
    "argument format error": ("invalid_json", "invalid_arguments"),
    "N/A": ("tool_error", "wrong_tool_name"),
}

PLUGIN = BenchmarkPlugin(
    name="gta",
    title="GTA",
    about="229 general questions on images, 14 tools",
    needs="DIR/gta_dataset/dataset.json and image/, gta_dataset.zip of github.com/open-compass/GTA, release v0.1.0",
    download=Download("https://github.com/open-compass/GTA/releases/download/v0.1.0/gta_dataset.zip", "Apache-2.0"),
    **files_of("agrotools.benchmarks.gta.load", "GTA"),
    tools=TOOLS,
    tool_categories=CATEGORIES,
    protocols=LAGENT,
    predictions={"gta": "agrotools.benchmarks.gta.score:FORMAT"},
    error_counts={
        ("lagent", "step-by-step"): "agrotools.benchmarks._dialogs.record_dialogues:OF_STEPS",
        ("lagent", "end-to-end"): "agrotools.benchmarks._dialogs.record_dialogues:OF_RUNS",
    },
    expected=_EXPECTED,
    slots=(ImageCallsSlot,),
    published=PublishedFiles("agrotools.benchmarks.gta", "gta"),
    error_sources=(
        ErrorSource(
            "GTA",
            "2407.08713",
            "Table 5",
            {error: words for words, errors in _ERROR_SHARES.items() for error in errors},
            _ERROR_SHARES,
        ),
    ),
    scoring_target="agrotools.benchmarks.gta.score:SCORING",
    reporting_target="agrotools.benchmarks.gta.score:REPORTING",
)
