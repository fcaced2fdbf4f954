"""Plug-in of ThinkGeo."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agrotools.benchmarks._dialogs.protocols import PROTOCOLS
from agrotools.benchmarks.counts import count_answers, count_calls, count_in_group
from agrotools.core import BenchmarkError, KeywordsSlot, Slot
from agrotools.core.progress import Progress
from agrotools.plugin import BenchmarkPlugin, ExpectedCount, MetricInfo, deferred

if TYPE_CHECKING:
    from agrotools.benchmarks._dialogs.layouts import Layout
    from agrotools.benchmarks.checking import FileCheck


def _layout() -> "Layout":
    from agrotools.benchmarks.thinkgeo.load import THINKGEO_LAYOUT

    return THINKGEO_LAYOUT


def _find(data_root: Path | None) -> str:
    from agrotools.benchmarks._dialogs.layouts import find_file

    return str(find_file(_layout(), data_root))


def _file_roots(data_root: Path | None) -> Sequence[Path]:
    from agrotools.benchmarks._dialogs.layouts import roots_of

    return roots_of(_layout(), data_root)


def _check(data_root: Path | None, progress: Progress) -> "FileCheck":
    from agrotools.benchmarks._dialogs.layouts import file_check, find_file
    from agrotools.benchmarks.thinkgeo.load import THINKGEO_LAYOUT, find_sar, read_thinkgeo

    path = find_file(THINKGEO_LAYOUT, data_root)
    try:
        find_sar(path)
        split = "all"
    except BenchmarkError:
        split = "optical"
    read = read_thinkgeo(path, split, progress)
    notes = ["the SAR split is not there: 50 questions fewer"] if len(read.files) < 2 else []
    has_sar = any(sample.groups.get("sensor") == "sar" for sample in read.samples)
    return file_check(read, THINKGEO_LAYOUT, notes, None if has_sar else _OPTICAL)


def has_questions(slot: Slot) -> bool:
    """True if a judge is asked about the slot."""
    return isinstance(slot, KeywordsSlot) and bool(slot.questions)


_OPTICAL = tuple(
    ExpectedCount(name, number, decides, count_in_group("sensor", "optical", measure))
    for name, number, decides, measure in (
        ("optical questions", 436, True, len),
        ("optical tool steps", 1534, True, count_calls),
        ("optical text answers", 368, True, count_answers("exact", "open_text")),
        ("optical image answers", 68, True, count_answers("image")),
        ("easy optical questions", 281, False, count_in_group("difficulty", "easy")),
        ("disaster and change", 148, False, count_in_group("use_case", "disaster_and_change")),
        ("urban planning", 71, False, count_in_group("use_case", "urban_planning")),
        ("transportation", 90, False, count_in_group("use_case", "transportation")),
        ("aviation", 40, False, count_in_group("use_case", "aviation")),
        ("industrial sites", 15, False, count_in_group("use_case", "industrial_sites")),
        ("recreation", 41, False, count_in_group("use_case", "recreation")),
        ("environment", 31, False, count_in_group("use_case", "environment")),
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

TOOLS = {
    "Calculator": "agrotools.benchmarks._dialogs.tools:Calculator",
    "GoogleSearch": "agrotools.benchmarks._dialogs.tools:GoogleSearch",
    "Plot": "agrotools.benchmarks._dialogs.tools:Plot",
    "Solver": "agrotools.benchmarks._dialogs.tools:Solver",
    "OCR": "agrotools.benchmarks._dialogs.tools:OCR",
    "DrawBox": "agrotools.benchmarks._dialogs.tools:DrawBox",
    "AddText": "agrotools.benchmarks._dialogs.tools:AddText",
    "RegionAttributeDescription": "agrotools.benchmarks._dialogs.tools:RegionAttributeDescription",
    "SegmentObjectPixels": "agrotools.benchmarks.thinkgeo.tools:SegmentObjectPixels",
    "ObjectDetection": "agrotools.benchmarks.thinkgeo.tools:ObjectDetection",
    "ChangeDetection": "agrotools.benchmarks.thinkgeo.tools:ChangeDetection",
    "ImageDescription": "agrotools.benchmarks._dialogs.tools:ImageDescription",
    "TextToBbox": "agrotools.benchmarks._dialogs.tools:TextToBbox",
    "CountGivenObject": "agrotools.benchmarks._dialogs.tools:CountGivenObject",
}
"""The toolset of ThinkGeo, by its published names."""

PLUGIN = BenchmarkPlugin(
    name="thinkgeo",
    title="ThinkGeo",
    about="436 questions on optical and 50 on radar images from above, 14 tools",
    needs="DIR/ThinkGeo_dataset/ThinkGeoBench.json and image/, huggingface.co/datasets/MBZUAI/ThinkGeo",
    load=deferred("agrotools.benchmarks.thinkgeo.load:load_thinkgeo"),
    find=_find,
    file_roots=_file_roots,
    check=_check,
    tools=TOOLS,
    protocols=PROTOCOLS,
    predictions={"thinkgeo": "agrotools.benchmarks.thinkgeo.predictions:FORMAT"},
    expected=(*_OPTICAL, *_SAR),
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
    scoring_target="agrotools.benchmarks.thinkgeo.score:SCORING",
    judging_target="agrotools.benchmarks.thinkgeo.judge:JUDGING",
)
