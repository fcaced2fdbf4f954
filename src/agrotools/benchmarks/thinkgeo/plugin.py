"""Plug-in of ThinkGeo."""

from agrotools.benchmarks._dialogs.plugin_parts import LAGENT, ImageCallsSlot, PaperRun, files_of, tools_in
from agrotools.benchmarks.counts import count_answers, count_calls, count_in_group
from agrotools.core import KeywordsSlot, Slot
from agrotools.plugin import BenchmarkPlugin, Download, ErrorSource, ExpectedCount, MetricInfo, PublishedFiles

PAPER_RUN = PaperRun("lagent", 15, {"": 436, "optical": 436, "sar": 50, "all": 486})


def has_questions(slot: Slot) -> bool:
    """Return True if a judge is asked about the slot."""
    return isinstance(slot, KeywordsSlot) and bool(slot.questions)


EASY = count_in_group("difficulty", "easy")
OPTICAL = tuple(
    ExpectedCount(name, number, decides, count_in_group("sensor", "optical", measure))
    for name, number, decides, measure in (
        ("optical questions", 436, True, len),
        ("optical tool steps", 1534, True, count_calls),
        ("optical text answers", 368, True, count_answers("exact", "open_text")),
        ("optical image answers", 68, True, count_answers("image")),
        ("easy optical questions", 281, False, EASY),
        *(
            row
            for name, easy, number in (
                ("disaster_and_change", 95, 148),
                ("urban_planning", 48, 71),
                ("transportation", 54, 90),
                ("aviation", 24, 40),
                ("industrial_sites", 12, 15),
                ("recreation", 28, 41),
                ("environment", 20, 31),
            )
            for row in (
                (name.replace("_", " "), number, False, count_in_group("use_case", name)),
                (f"{name.replace('_', ' ')}, easy", easy, False, count_in_group("use_case", name, EASY)),
            )
        ),
    )
)
_SAR = tuple(
    ExpectedCount(name, number, decides, count_in_group("sensor", "sar", measure))
    for name, number, decides, measure in (
        ("radar questions", 50, True, len),
        ("radar tool steps", 244, True, count_calls),
        ("radar text answers", 36, False, count_answers("exact", "open_text")),
    )
)
"""Section 3 and table A3 of the paper (1,534 steps and 368 text answers follow from its result table)."""

TOOLS = tools_in(
    "agrotools.benchmarks._dialogs.tools",
    """
    Calculator GoogleSearch Plot Solver OCR DrawBox AddText RegionAttributeDescription SegmentObjectPixels
    ObjectDetection ChangeDetection ImageDescription TextToBbox CountGivenObject
    """.split(),
) | tools_in("agrotools.benchmarks.thinkgeo.tools", ("SegmentObjectPixels", "ObjectDetection", "ChangeDetection"))
"""Tools of ThinkGeo by their published names."""
IMAGE_TOOLS = ("DrawBox", "AddText", "Plot")
"""Tools that return an image."""
CATEGORIES = {
    "perception": (
        *("OCR", "ImageDescription", "RegionAttributeDescription", "TextToBbox", "ChangeDetection", "ObjectDetection"),
        "SegmentObjectPixels",
    ),
    "operation": ("DrawBox", "AddText", "GoogleSearch"),
    "logic": ("Calculator", "Solver", "Plot", "MathOCR", "CountGivenObject"),
}
"""Tool categories of its scorer."""

PLUGIN = BenchmarkPlugin(
    name="thinkgeo",
    title="ThinkGeo",
    about="436 questions on optical and 50 on radar images from above, 14 tools",
    needs="DIR/ThinkGeo_dataset/ThinkGeoBench.json and image/, huggingface.co/datasets/MBZUAI/ThinkGeo",
    download=Download(
        "https://huggingface.co/datasets/MBZUAI/ThinkGeo",
        "Apache-2.0 (its repository), CC BY 4.0 (its page at Hugging Face)",
        "ThinkGeo_dataset",
    ),
    **files_of("agrotools.benchmarks.thinkgeo.load", "THINKGEO", check="check_thinkgeo"),
    tools=TOOLS,
    tool_categories=CATEGORIES,
    protocols=LAGENT,
    predictions={"thinkgeo": "agrotools.benchmarks.thinkgeo.score:FORMAT"},
    expected=(*OPTICAL, *_SAR),
    slots=(ImageCallsSlot,),
    metrics={
        "thinkgeo.llm_score": MetricInfo(
            "LLM judge",
            "a model says yes to every question on the answer, as published",
            slots=has_questions,
            by_judge=True,
        ),
        "thinkgeo.llm_score_corrected": MetricInfo(
            "LLM judge*", "the same, where a reply may say more than yes", slots=has_questions, by_judge=True
        ),
    },
    published=PublishedFiles("agrotools.benchmarks.thinkgeo", "thinkgeo"),
    # The last column of Table A2 (SingleStep) is excluded from the shares: together with the others it exceeds 100 %,
    # and the paper does not state its denominator.
    error_sources=(
        ErrorSource(
            "ThinkGeo",
            "2505.23752",
            "Table A2",
            {
                "format_error": "NoAction",
                "invalid_json": "Inv. JSON",
                "invalid_arguments": "Arg. Values",
                "wrong_tool_name": "Tool Name",
                "single_step_answer": "Final Ans. (SingleStep)",
            },
            {
                "NoAction": ("format_error",),
                "Inv. JSON": ("invalid_json",),
                "Arg. Values": ("invalid_arguments",),
                "Tool Name": ("wrong_tool_name",),
                "others, not printed": ("tool_error",),
            },
        ),
        ErrorSource(
            "ThinkGeo",
            "2505.23752",
            "section on failures and Figure 7",
            {"redundant_call": "redundant tool calls"},
        ),
    ),
    scoring_target="agrotools.benchmarks.thinkgeo.score:SCORING",
    judging_target="agrotools.benchmarks.thinkgeo.score:JUDGING",
    reporting_target="agrotools.benchmarks.thinkgeo.score:REPORTING",
)
