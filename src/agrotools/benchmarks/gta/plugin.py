"""Plug-in of GTA."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agrotools.benchmarks._dialogs.protocols import PROTOCOLS
from agrotools.benchmarks.counts import count_answers, count_calls, count_files, count_tools, count_with_tools
from agrotools.core.progress import Progress
from agrotools.plugin import BenchmarkPlugin, ExpectedCount, deferred

if TYPE_CHECKING:
    from agrotools.benchmarks._dialogs.layouts import Layout
    from agrotools.benchmarks.checking import FileCheck


def _layout() -> "Layout":
    from agrotools.benchmarks.gta.load import GTA_LAYOUT

    return GTA_LAYOUT


def _find(data_root: Path | None) -> str:
    from agrotools.benchmarks._dialogs.layouts import find_file

    return str(find_file(_layout(), data_root))


def _file_roots(data_root: Path | None) -> Sequence[Path]:
    from agrotools.benchmarks._dialogs.layouts import roots_of

    return roots_of(_layout(), data_root)


def _check(data_root: Path | None, progress: Progress) -> "FileCheck":
    from agrotools.benchmarks._dialogs.layouts import file_check, find_file
    from agrotools.benchmarks.gta.load import GTA_LAYOUT, read_gta

    return file_check(read_gta(find_file(GTA_LAYOUT, data_root), progress), GTA_LAYOUT)


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

TOOLS = {
    "Calculator": "agrotools.benchmarks._dialogs.tools:Calculator",
    "OCR": "agrotools.benchmarks._dialogs.tools:OCR",
    "CountGivenObject": "agrotools.benchmarks._dialogs.tools:CountGivenObject",
    "ImageDescription": "agrotools.benchmarks._dialogs.tools:ImageDescription",
    "GoogleSearch": "agrotools.benchmarks._dialogs.tools:GoogleSearch",
    "RegionAttributeDescription": "agrotools.benchmarks._dialogs.tools:RegionAttributeDescription",
    "TextToBbox": "agrotools.benchmarks._dialogs.tools:TextToBbox",
    "Plot": "agrotools.benchmarks._dialogs.tools:Plot",
    "MathOCR": "agrotools.benchmarks._dialogs.tools:MathOCR",
    "Solver": "agrotools.benchmarks._dialogs.tools:Solver",
    "DrawBox": "agrotools.benchmarks._dialogs.tools:DrawBox",
    "AddText": "agrotools.benchmarks._dialogs.tools:AddText",
    "TextToImage": "agrotools.benchmarks._dialogs.tools:TextToImage",
    "ImageStylization": "agrotools.benchmarks._dialogs.tools:ImageStylization",
}
"""The toolset of GTA, by its published names."""

PLUGIN = BenchmarkPlugin(
    name="gta",
    title="GTA",
    about="229 general questions on images, 14 tools",
    needs="DIR/gta_dataset/dataset.json and image/, gta_dataset.zip of github.com/open-compass/GTA, release v0.1.0",
    load=deferred("agrotools.benchmarks.gta.load:load_gta"),
    find=_find,
    file_roots=_file_roots,
    check=_check,
    tools=TOOLS,
    protocols=PROTOCOLS,
    predictions={"gta": "agrotools.benchmarks.gta.predictions:FORMAT"},
    error_counts={
        ("lagent", "step-by-step"): "agrotools.benchmarks._dialogs.error_classes:OF_STEPS",
        ("lagent", "end-to-end"): "agrotools.benchmarks._dialogs.error_classes:OF_RUNS",
    },
    expected=_EXPECTED,
    scoring_target="agrotools.benchmarks.gta.score:SCORING",
)
