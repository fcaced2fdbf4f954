"""Plug-in of Agent-X."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agrotools.benchmarks.counts import count_answers, count_calls, count_in_group, count_tools, count_with_tools
from agrotools.construct.progress import Progress
from agrotools.plugin import BenchmarkPlugin, ExpectedCount, deferred

if TYPE_CHECKING:
    from agrotools.benchmarks.checking import FileCheck
    from agrotools.benchmarks.published.places import Layout


def _layout() -> "Layout":
    from agrotools.benchmarks.agent_x.load import AGENT_X_LAYOUT

    return AGENT_X_LAYOUT


def _find(data_root: Path | None) -> str:
    from agrotools.benchmarks.published.places import find_file

    return str(find_file(_layout(), data_root))


def _file_roots(data_root: Path | None) -> Sequence[Path]:
    from agrotools.benchmarks.published.checked import roots_of

    return roots_of(_layout(), data_root)


def _check(data_root: Path | None, progress: Progress) -> "FileCheck":
    from agrotools.benchmarks.agent_x.load import AGENT_X_LAYOUT, read_agent_x
    from agrotools.benchmarks.published.checked import file_check
    from agrotools.benchmarks.published.places import find_file

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

PLUGIN = BenchmarkPlugin(
    name="agent-x",
    about="828 questions on images and videos, 14 tools",
    needs="DIR/AgentX/data.json and files/, huggingface.co/datasets/Tajamul21/Agent-X",
    aliases=("agentx", "agent_x"),
    load=deferred("agrotools.benchmarks.agent_x.load:load_agent_x"),
    find=_find,
    file_roots=_file_roots,
    check=_check,
    expected=_EXPECTED,
)
