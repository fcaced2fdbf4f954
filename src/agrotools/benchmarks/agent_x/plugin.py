"""Plug-in of Agent-X."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agrotools.benchmarks.counts import count_answers, count_calls, count_in_group, count_tools, count_with_tools
from agrotools.core import ImageCallsSlot, KeywordsSlot, ReferenceTextsSlot, Slot
from agrotools.core.progress import Progress
from agrotools.plugin import BenchmarkPlugin, ExpectedCount, MetricInfo, PromptTemplates, RunProtocol, deferred

if TYPE_CHECKING:
    from agrotools.benchmarks._dialogs.layouts import Layout
    from agrotools.benchmarks.checking import FileCheck


def _layout() -> "Layout":
    from agrotools.benchmarks.agent_x.load import AGENT_X_LAYOUT

    return AGENT_X_LAYOUT


def _find(data_root: Path | None) -> str:
    from agrotools.benchmarks._dialogs.layouts import find_file

    return str(find_file(_layout(), data_root))


def _file_roots(data_root: Path | None) -> Sequence[Path]:
    from agrotools.benchmarks._dialogs.layouts import roots_of

    return roots_of(_layout(), data_root)


def _check(data_root: Path | None, progress: Progress) -> "FileCheck":
    from agrotools.benchmarks._dialogs.layouts import file_check, find_file
    from agrotools.benchmarks.agent_x.load import AGENT_X_LAYOUT, read_agent_x

    return file_check(read_agent_x(find_file(AGENT_X_LAYOUT, data_root), progress=progress), AGENT_X_LAYOUT)


_EXPECTED = (
    ExpectedCount("questions", 828, True, len),
    ExpectedCount("tool steps", 2807, True, count_calls),
    ExpectedCount("questions on videos", 112, True, count_in_group("input", "video")),
    ExpectedCount("image answers", 222, False, count_answers("image")),
    ExpectedCount("tools", 14, False, count_tools),
    *(
        ExpectedCount(f"questions with {n} tools", count, False, count_with_tools(n))
        for n, count in enumerate((239, 389, 130, 24), 2)
    ),
)
"""The paper's table of statistics."""

CRITERIA = {
    "ground_s": ("Ground_s", "steps are borne out by input and reference"),
    "tool_p": ("Tool_p", "each step calls the tool of the reference"),
    "tool_acc": ("Tool_acc", "outputs are such as the tools give"),
    "faith_acc": ("Faith", "the plan follows the reference"),
    "context_s": ("Context_s", "steps use what is given"),
    "fact_p": ("Fact_p", "nothing is invented"),
    "sem_acc": ("Sem_acc", "all that matters is covered"),
    "goal_acc": ("Goal", "the answer is that of the reference"),
    "toolset_acc": ("Tool_acc_s", "the set of tools is that of the reference"),
    "step_s": ("Step_s", "steps go on from each other"),
    "clarity": ("Clarity", "every step is clear"),
    "reward": ("Reward", "later steps put earlier ones right"),
}
"""The criteria of Agent-X (arXiv 2505.24876)."""


def is_published(slot: Slot) -> bool:
    """True if judges grade the slot: samples of Agent-X have slots of every published form."""
    return isinstance(slot, KeywordsSlot | ReferenceTextsSlot | ImageCallsSlot)


TOOLS = {
    "Calculator": "agrotools.benchmarks._dialogs.tools:Calculator",
    "OCR": "agrotools.benchmarks._dialogs.tools:OCR",
    "ObjectCounter": "agrotools.benchmarks.agent_x.tools:ObjectCounter",
    "SceneDescriber": "agrotools.benchmarks.agent_x.tools:SceneDescriber",
    "WebSearch": "agrotools.benchmarks.agent_x.tools:WebSearch",
    "RegionDescriber": "agrotools.benchmarks.agent_x.tools:RegionDescriber",
    "LocateObjectByText": "agrotools.benchmarks.agent_x.tools:LocateObjectByText",
    "CodePlotter": "agrotools.benchmarks.agent_x.tools:CodePlotter",
    "MathOCR": "agrotools.benchmarks._dialogs.tools:MathOCR",
    "Solver": "agrotools.benchmarks._dialogs.tools:Solver",
    "DrawBoundingBox": "agrotools.benchmarks.agent_x.tools:DrawBoundingBox",
    "OverlayText": "agrotools.benchmarks.agent_x.tools:OverlayText",
    "ImageGenerator": "agrotools.benchmarks.agent_x.tools:ImageGenerator",
    "ImageStylization": "agrotools.benchmarks._dialogs.tools:ImageStylization",
}
"""The toolset of Agent-X, by its published names."""

PLUGIN = BenchmarkPlugin(
    name="agent-x",
    title="Agent-X",
    about="828 questions on images and videos, 14 tools",
    needs="DIR/AgentX/data.json and files/, huggingface.co/datasets/Tajamul21/Agent-X",
    aliases=("agentx", "agent_x"),
    load=deferred("agrotools.benchmarks.agent_x.load:load_agent_x"),
    find=_find,
    file_roots=_file_roots,
    check=_check,
    tools=TOOLS,
    protocols={
        "agent-x": RunProtocol(
            modes=("no-tool",),
            agent=deferred("agrotools.benchmarks.agent_x.protocol:make_agent"),
            templates=PromptTemplates("agent_x", "agrotools.benchmarks.agent_x"),
            single_shot=True,
        )
    },
    predictions={"agentx": "agrotools.benchmarks.agent_x.predictions:FORMAT"},
    error_counts={("agent-x", "no-tool"): "agrotools.benchmarks.agent_x.error_classes:SINGLE_REPLY"},
    expected=_EXPECTED,
    metrics={
        f"agent_x.{name}": MetricInfo(label, f"{meaning}; by a judge", slots=is_published, by_judge=True)
        for name, (label, meaning) in CRITERIA.items()
    },
    scoring_target="agrotools.benchmarks.agent_x.published_run:SCORING",
    judging_target="agrotools.benchmarks.agent_x.judge:JUDGING",
    reporting_target="agrotools.benchmarks.agent_x.report:REPORTING",
)
