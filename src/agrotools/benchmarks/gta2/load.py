"""GTA-2 (Wang et al. 2026, arXiv 2604.15715): GTA-Workflow, tasks graded by trees of sub-tasks, with 37 tools.

Asked from the files as they are published; none of them has been seen: what is read follows the loader in
open-compass/GTA, and what is guessed is told in docs/gta-thinkgeo-agent-x.md.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from agrotools.benchmarks._dialogs.answers import Gold
from agrotools.benchmarks._dialogs.entries import DialogForm, ReadEntry, read_entry
from agrotools.benchmarks._dialogs.files import FileTable
from agrotools.benchmarks._dialogs.findings import EntryFindings, Findings, PublishedSettings
from agrotools.benchmarks._dialogs.json_files import entries_of, read_json
from agrotools.benchmarks._dialogs.layouts import Layout, find_file
from agrotools.benchmarks._dialogs.samples import ReadSet, benchmark_of, samples_of
from agrotools.benchmarks.gta2.slots import SubTasksSlot
from agrotools.benchmarks.gta2.tools import GTA2_TOOLS, offered_tools
from agrotools.benchmarks.gta2.trees import tree_of
from agrotools.benchmarks.loading import Loading, settings_of
from agrotools.core import BenchmarkError, Mode, Sample
from agrotools.core.progress import Progress, no_progress
from agrotools.formats.benchmark import Benchmark, SourceNote

VERSION = "1"
GTA2 = SourceNote(
    name="GTA-2",
    licence="Apache-2.0 (its repository)",
    url="https://github.com/open-compass/GTA",
    citation="Wang et al. 2026, GTA-2: Benchmarking General Tool Agents from Atomic Tool-Use to Open-Ended Workflows "
    "(arXiv 2604.15715)",
)
Part = Literal["end", "step"]
_FOLDERS = (
    *("gta_dataset_v2", "data/gta_dataset_v2", "opencompass/data/gta_dataset_v2"),
    *("GTA/opencompass/data/gta_dataset_v2", "gta-2/gta_dataset_v2", "gta_workflow_dataset", "gta-2", "gta2"),
)
_GET_IT = "the releases of https://github.com/open-compass/GTA (gta_workflow_dataset.zip of v0.2.0)"


def layout_of(part: Part) -> Layout:
    """Where the file of a part lies."""
    return Layout(
        "gta-2", (f"{part}.json",), _FOLDERS, f"DIR/gta_dataset_v2/{part}.json, toolmeta.json, files", _GET_IT
    )


class Gta2Settings(PublishedSettings):
    """The options of ``agrotools eval gta-2``."""

    mode: Part = "end"
    """Which file: the tasks with sub-tasks (``end.json``), or dialogs in the form of GTA (``step.json``)."""


def load_gta2(loading: Loading) -> Benchmark:
    """GTA-2 below ``loading.data_root``.

    Raises:
        UsageError: no folder was given, or an option that there is not.
        BenchmarkError: the files are not there or cannot be read, or entries cannot be used.
    """
    settings = settings_of(Gta2Settings, "gta-2", loading.options)
    path = find_file(layout_of(settings.mode), loading.data_root)
    read = read_gta2(path, settings.mode, loading.progress)
    if not any(sample.toolset for sample in read.samples) and read.samples:
        raise BenchmarkError(f"{path.parent}: none of its tools is here", hint="agrotools benchmarks check gta-2 DIR")
    modes: tuple[Mode, ...] = ("end-to-end",) if settings.mode == "end" else ("step-by-step",)
    description = "tasks on files of any kind, graded by their sub-tasks"
    return benchmark_of("gta-2", VERSION, description, GTA2, GTA2_TOOLS, read, settings, modes)


def read_gta2(path: Path, part: Part = "end", progress: Progress = no_progress) -> ReadSet:
    """All entries of an ``end.json`` or ``step.json``, paths of files relative to its folder.

    Every entry of ``end.json`` is offered all tools of ``toolmeta.json`` beside it that are here.

    Raises:
        BenchmarkError: a file cannot be read, or holds no entries.
    """
    entries = entries_of(read_json(path), path)
    offered = offered_tools(path.parent)
    findings = Findings()
    findings.remark(offered.remark)
    table = FileTable(path.parent)
    form = DialogForm(
        benchmark="gta-2",
        prefix="gta2" if part == "end" else "gta2-step",
        family="general",
        source="GTA-2",
        any_file=True,
        lacks_tools=True,
        tools=offered.here if part == "end" else None,
        gold=_tree if part == "end" else None,
    )

    def read(position: int, entry: Any, found: EntryFindings) -> Sample | None:
        one = read_entry(position, entry, form, table, found)
        return _grouped(one) if one else None

    samples = samples_of(entries, read, findings, progress)
    return ReadSet(path.parent, (path,), len(entries), samples, findings)


def _tree(entry: Mapping[str, Any], note: Callable[[str], None]) -> Gold:
    return Gold("workflow", tree_of(entry.get("sub_tasks"), note))


def _grouped(read: ReadEntry) -> Sample:
    sample = read.sample
    groups = {"answer": read.kind}
    slot = sample.answer[0]
    if isinstance(slot, SubTasksSlot):
        kinds = sorted({file.kind for file in sample.files}) or ["none"]
        groups = {"leaves": str(len(slot.leaves)), "depth": str(slot.depth), "input": " + ".join(kinds)}
    return sample.model_copy(update={"groups": groups})


__all__ = ["GTA2", "GTA2_TOOLS", "Gta2Settings", "layout_of", "load_gta2", "offered_tools", "read_gta2"]
