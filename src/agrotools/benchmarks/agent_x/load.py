"""Agent-X (Ashraf et al. 2025, arXiv 2505.24876): 828 questions on images and videos, with 14 tools.

Asked from the files as they are published. How its entries become samples: docs/gta-thinkgeo-agent-x.md.
"""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from agrotools.benchmarks._dialogs.files import FileTable
from agrotools.benchmarks._dialogs.findings import EntryFindings, Findings, PublishedSettings
from agrotools.benchmarks._dialogs.json_files import entries_of, read_json
from agrotools.benchmarks._dialogs.layouts import Layout, find_file
from agrotools.benchmarks._dialogs.samples import ReadSet, benchmark_of, samples_of
from agrotools.benchmarks.agent_x.entries import FrameSettings, read_entry
from agrotools.benchmarks.agent_x.frames import PLACE, Choice, frames_folder
from agrotools.benchmarks.agent_x.plugin import TOOLS
from agrotools.benchmarks.loading import Loading, settings_of
from agrotools.core import BenchmarkError, Sample
from agrotools.core.progress import Progress, no_progress
from agrotools.formats.benchmark import Benchmark, SourceNote

VERSION = "1"
AGENT_X = SourceNote(
    name="Agent-X",
    licence="none published with its files (its paper says Apache License)",
    url="https://github.com/mbzuai-oryx/Agent-X",
    citation="Ashraf et al. 2025, Agent-X: Evaluating Deep Multimodal Reasoning (arXiv 2505.24876)",
)
AGENT_X_LAYOUT = Layout(
    name="agent-x",
    files=("data.json", "dataset.json"),
    folders=("AgentX", "Agent-X", "agent-x", "agentx", "data/AgentX", "Agent-X/AgentX"),
    tree="DIR/AgentX/data.json and DIR/AgentX/files/",
    get_it="https://huggingface.co/datasets/Tajamul21/Agent-X",
)


class AgentXSettings(PublishedSettings):
    """The options of ``agrotools eval agent-x``."""

    frames: Annotated[int, Field(ge=1, le=64)] = 8
    """How many frames of a video are shown."""
    frame_choice: Choice = "even"
    """Spread over the video, or its first ones, as the published run of GPT-4o has it."""


def load_agent_x(loading: Loading) -> Benchmark:
    """Agent-X below ``loading.data_root``.

    Raises:
        UsageError: no folder was given, or an option that there is not.
        BenchmarkError: the files are not there or cannot be read, or entries cannot be used.
    """
    settings = settings_of(AgentXSettings, "agent-x", loading.options)
    frames = FrameSettings(settings.frames, settings.frame_choice)
    read = read_agent_x(find_file(AGENT_X_LAYOUT, loading.data_root), frames, loading.progress)
    description = "questions on images and videos, with tools"
    return benchmark_of("agent-x", VERSION, description, AGENT_X, tuple(TOOLS), read, settings)


DEFAULT_FRAMES = FrameSettings(8, "even")


def read_agent_x(path: Path, frames: FrameSettings = DEFAULT_FRAMES, progress: Progress = no_progress) -> ReadSet:
    """All entries of a ``data.json``; files in ``files/`` beside it. Frames of videos go to the user's cache.

    Raises:
        BenchmarkError: the file cannot be read, or holds no entries of Agent-X.
    """
    entries = entries_of(read_json(path), path)
    if any(isinstance(entry, dict) and "dialogs" in entry for entry in entries.values()):
        raise BenchmarkError(
            f"{path} holds dialogs: it is a file of GTA or ThinkGeo", hint="name its folder: --data-root DIR"
        )
    findings = Findings()
    table = FileTable(path.parent)

    def read(position: int, entry: Any, found: EntryFindings) -> Sample | None:
        return read_entry(position, entry, table, frames, found)

    samples = samples_of(entries, read, findings, progress)
    return ReadSet(path.parent, (path,), len(entries), samples, findings, {PLACE: frames_folder()})


__all__ = ["AGENT_X", "AGENT_X_LAYOUT", "AgentXSettings", "FrameSettings", "load_agent_x", "read_agent_x"]
