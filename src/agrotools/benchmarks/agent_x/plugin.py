"""Plug-in of Agent-X."""

from typing import NamedTuple

from agrotools.benchmarks._dialogs.plugin_parts import ImageCallsSlot, PaperRun, files_of, tools_in
from agrotools.benchmarks.counts import count_answers, count_calls, count_in_group, count_tools, count_with_tools
from agrotools.core import KeywordsSlot, ReferenceTextsSlot, Slot
from agrotools.plugin import (
    BenchmarkPlugin,
    Download,
    ErrorSource,
    ExpectedCount,
    MetricInfo,
    PromptTemplates,
    PublishedFiles,
    RunProtocol,
    deferred,
)

PAPER_RUN = PaperRun("agent-x", questions={"": 828})
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
"""Counts in the paper's table of statistics."""


class Criterion(NamedTuple):
    """Criterion of Agent-X (arXiv 2505.24876).

    It has a heading, a meaning, its name in Agent-X's files (with their spelling), and the suffix of its id in the
    published rows, which is empty if it is not printed.
    """

    label: str
    meaning: str
    column: str
    printed: str = ""


CRITERIA = {
    "ground_s": Criterion(
        "Ground_s", "steps are borne out by input and reference", "grounding_accuracy", "grounding_score"
    ),
    "tool_p": Criterion("Tool_p", "each step calls the tool of the reference", "precision_score", "tool_precision"),
    "tool_acc": Criterion("Tool_acc", "outputs are such as the tools give", "tool_accuray", "tool_acc"),
    "faith_acc": Criterion("Faith", "the plan follows the reference", "faithfulness_accuray", "faithfulness"),
    "context_s": Criterion("Context_s", "steps use what is given", "context_score", "context_score"),
    "fact_p": Criterion("Fact_p", "nothing is invented", "factual_precision", "factual_precision"),
    "sem_acc": Criterion("Sem_acc", "all that matters is covered", "semantic_accuracy", "semantic_acc"),
    "goal_acc": Criterion("Goal", "the answer is that of the reference", "goal_accuray", "goal_acc"),
    "toolset_acc": Criterion(
        "Tool_acc_s", "the set of tools is that of the reference", "toolset_accuray", "toolset_acc"
    ),
    "step_s": Criterion("Step_s", "steps go on from each other", "step_score"),
    "clarity": Criterion("Clarity", "every step is clear", "clarity_penalty"),
    "reward": Criterion("Reward", "later steps put earlier ones right", "reward_score"),
}


def is_published(slot: Slot) -> bool:
    """Return True if judges grade the slot; samples of Agent-X have slots of all published types."""
    return isinstance(slot, KeywordsSlot | ReferenceTextsSlot | ImageCallsSlot)


TOOLS = tools_in(
    "agrotools.benchmarks.agent_x.tools",
    """
    Calculator OCR ObjectCounter SceneDescriber WebSearch RegionDescriber LocateObjectByText CodePlotter MathOCR Solver
    DrawBoundingBox OverlayText ImageGenerator ImageStylization
    """.split(),
) | tools_in("agrotools.benchmarks._dialogs.tools", ("Calculator", "OCR", "MathOCR", "Solver", "ImageStylization"))
"""Tools of Agent-X by their published names."""
IMAGE_TOOLS = frozenset({"DrawBoundingBox", "OverlayText", "CodePlotter", "ImageGenerator", "ImageStylization"})
"""Tools that return an image."""

PLUGIN = BenchmarkPlugin(
    name="agent-x",
    title="Agent-X",
    about="828 questions on images and videos, 14 tools",
    needs="DIR/AgentX/data.json and files/, huggingface.co/datasets/Tajamul21/Agent-X",
    download=Download(
        "https://huggingface.co/datasets/Tajamul21/Agent-X",
        "none published with its files (its paper says Apache License)",
        "AgentX",
    ),
    aliases=("agentx", "agent_x"),
    **files_of("agrotools.benchmarks.agent_x.load", "AGENT_X"),
    tools=TOOLS,
    # Categories of the corresponding tools of GTA.
    tool_categories={
        "perception": ("SceneDescriber", "RegionDescriber", "LocateObjectByText"),
        "operation": ("DrawBoundingBox", "OverlayText", "WebSearch"),
        "logic": ("ObjectCounter", "CodePlotter"),
        "creativity": ("ImageGenerator",),
    },
    protocols={
        "agent-x": RunProtocol(
            modes=("no-tool",),
            agent=deferred("agrotools.benchmarks.agent_x.protocol:make_agent"),
            templates=PromptTemplates("agent_x", "agrotools.benchmarks.agent_x"),
            single_shot=True,
        )
    },
    predictions={"agentx": "agrotools.benchmarks.agent_x.predictions:FORMAT"},
    error_counts={("agent-x", "no-tool"): "agrotools.benchmarks.agent_x.predictions:SINGLE_REPLY"},
    expected=_EXPECTED,
    slots=(ImageCallsSlot,),
    metrics={
        f"agent_x.{name}": MetricInfo(each.label, f"{each.meaning}; by a judge", slots=is_published, by_judge=True)
        for name, each in CRITERIA.items()
    },
    published=PublishedFiles("agrotools.benchmarks.agent_x", "agentx"),
    error_sources=(
        ErrorSource(
            "Agent-X",
            "2505.24876",
            "Table 10",
            {
                "repeated_tool": "multiple tool calls in a single step (which its code counts so)",
                "several_calls": "multiple tool calls in a single step (as the words say)",
                "no_response": "no action, no response",
                "only_thought": "no action, the whole response is model thought",
                "invalid_format": "invalid JSON format in argument specification",
                "answer_in_invalid_format": "final answer generation without adhering to the format",
                "no_answer_keyword": "misinterpreting visual content, wrong visual interpretation",
                "no_step_keyword": "incorrect spatial reasoning",
            },
            {
                "no action, no response": ("no_response",),
                "no action, whole response is a thought": ("only_thought",),
                "invalid JSON arguments": ("invalid_format",),
                "multiple tool calls in a single step, as its code counts": ("repeated_tool",),
                "final answer not in required format": ("answer_in_invalid_format",),
                "wrong visual interpretation": ("no_answer_keyword",),
                "incorrect spatial reasoning": ("no_step_keyword",),
            },
        ),
        ErrorSource(
            "Agent-X",
            "2505.24876",
            "Figure 5",
            {"wrong_tool_name": "invalid tool usage", "call_without_output": "failed calls"},
        ),
    ),
    scoring_target="agrotools.benchmarks.agent_x.score:SCORING",
    judging_target="agrotools.benchmarks.agent_x.judge:JUDGING",
    reporting_target="agrotools.benchmarks.agent_x.report:REPORTING",
)
