"""Loader of GTA-2 (Wang et al. 2026, arXiv 2604.15715): GTA-Workflow, tasks graded by sub-task trees, with 37 tools.

Reads the published files. It was written without access to them: it follows the loader in open-compass/GTA, and
docs/gta-thinkgeo-agent-x.md lists the assumptions.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from agrotools.benchmarks._dialogs.entries import DialogForm, Gold, read_entries, text_of
from agrotools.benchmarks._dialogs.files import FileTable, entries_of
from agrotools.benchmarks._dialogs.lagent_format import TOOLMETA_FILE
from agrotools.benchmarks._dialogs.loading import (
    Findings,
    Layout,
    PublishedBenchmark,
    PublishedSettings,
    ReadSet,
    file_check,
    quote,
)
from agrotools.benchmarks.checking import FileCheck
from agrotools.benchmarks.gta2.plugin import DEEPEST_SUB_TASK, FACTS, SubTask, SubTasksSlot
from agrotools.benchmarks.loading import Loading, settings_of
from agrotools.core import BenchmarkError, Mode, Sample
from agrotools.core.base import Progress, no_progress
from agrotools.formats.benchmark import Benchmark
from agrotools.scoring.predictions import read_json
from agrotools.text.loose_json import is_list, is_object, is_text
from agrotools.tools import TOOLS

Part = Literal["end", "step"]


class Gta2Settings(PublishedSettings):
    """Options of ``agrotools eval gta-2``."""

    mode: Part = "end"
    """File to read: the tasks with sub-tasks (``end.json``), or dialogs in the form of GTA (``step.json``)."""


def load_gta2(loading: Loading) -> Benchmark:
    """Load GTA-2 from ``loading.data_root``.

    Raises:
        UsageError: no folder was given, or an option is unknown.
        BenchmarkError: the files are missing or cannot be read, entries cannot be used, or none of the tools is
            available.
    """
    settings = settings_of(Gta2Settings, "gta-2", loading.options)
    path = LAYOUTS[settings.mode].find(loading.data_root)
    read = read_gta2(path, settings.mode, loading.progress)
    if not any(sample.toolset for sample in read.samples) and read.samples:
        raise BenchmarkError(f"{path.parent}: none of its tools is here", hint="agrotools benchmarks check gta-2 DIR")
    modes: tuple[Mode, ...] = ("end-to-end",) if settings.mode == "end" else ("step-by-step",)
    return GTA2.benchmark_of(read, settings, modes)


def check_gta2(data_root: Path | None, progress: Progress) -> FileCheck:
    """Check the tasks below ``data_root``, or the dialogs if only those exist.

    Raises:
        UsageError, BenchmarkError: as for :func:`load_gta2`.
    """
    part: Part = "end"
    try:
        path = LAYOUTS[part].find(data_root)
    except BenchmarkError as error:
        part = "step"
        try:
            path = LAYOUTS[part].find(data_root)
        except BenchmarkError:
            raise error from None
    return file_check(read_gta2(path, part, progress), LAYOUTS[part])


def read_gta2(path: Path, part: Part = "end", progress: Progress = no_progress) -> ReadSet:
    """Read all entries of an ``end.json`` or ``step.json``; file paths are relative to its folder.

    Every entry of ``end.json`` is offered all available tools listed in the ``toolmeta.json`` of the folder.

    Raises:
        BenchmarkError: a file cannot be read, or holds no entries.
    """
    entries = entries_of(path)
    findings = Findings()
    offered = _offered_tools(path.parent, findings)
    table = FileTable(path.parent)
    form = DialogForm(
        FACTS["image_tools"],
        offered,
        prefix="gta2" if part == "end" else "gta2-step",
        family="general",
        source="GTA-2",
        any_file=True,
        lacks_tools=True,
        all_tools=part == "end",
        gold=(lambda entry, note: Gold("workflow", tree_of(entry.get("sub_tasks"), note))) if part == "end" else None,
    )
    samples = read_entries(entries, form, table, _with_groups, findings, progress)
    return ReadSet(path.parent, (path,), len(entries), samples, findings)


def _with_groups(sample: Sample) -> Sample:
    groups = {"answer": sample.task_type}
    slot = sample.answer[0]
    if isinstance(slot, SubTasksSlot):
        kinds = sorted({file.kind for file in sample.files}) or ["none"]
        groups = {"leaves": str(len(slot.leaves)), "depth": str(slot.depth), "input": " + ".join(kinds)}
    return sample.model_copy(update={"groups": groups})


GTA2_TOOLS: tuple[str, ...] = FACTS["toolset"]
GTA2 = PublishedBenchmark(
    FACTS, lambda path, settings, progress: read_gta2(path, settings.mode, progress), Gta2Settings
)
LAYOUTS: dict[Part, Layout] = {
    "end": GTA2.layout,
    "step": GTA2.layout._replace(files=("step.json",), tree="DIR/gta_dataset_v2/step.json, toolmeta.json, files"),
}
_NAME_KEYS = ("name", "tool_name", "id")


def _offered_tools(folder: Path, findings: Findings) -> tuple[str, ...]:
    """Return the available tools that ``toolmeta.json`` lists, or those of GTA-2 if there is no such file."""
    path = folder / TOOLMETA_FILE
    source = TOOLMETA_FILE if path.is_file() else f"GTA-2 (there is no {TOOLMETA_FILE})"
    names = _names(read_json(path), path) if path.is_file() else list(GTA2_TOOLS)
    missing = [name for name in names if name not in TOOLS]
    remark = f"{len(names) - len(missing)} of the {len(names)} tools of {source} are here"
    if missing:
        remark += f"; tasks are not offered {', '.join(quote(name).strip(chr(39)) for name in missing)}"
    findings.remark(remark)
    return tuple(name for name in names if name in TOOLS)


def _names(content: Any, path: Path) -> list[str]:
    names: list[str] = []
    listed: list[Any] = [*content] if is_list(content) or is_object(content) else []
    for each in listed:
        name: Any = next((each[key] for key in _NAME_KEYS if each.get(key)), None) if is_object(each) else each
        if not is_text(name) or not name.strip():
            raise BenchmarkError(f"{path} holds a tool without a name: {quote(each)}", hint="download it again")
        names.append(name.strip())
    if not names:
        raise BenchmarkError(f"{path} names no tool", hint="download it again, or remove it: the names are known here")
    return list(dict.fromkeys(names))


_LONGEST_ID = 200

Note = Callable[[str], None]


def tree_of(content: Any, note: Note) -> SubTasksSlot:
    """Return the slot of an entry's ``sub_tasks``, a list of nodes or one node. ``note`` receives notes on changes.

    Raises:
        BenchmarkError: there is no node, or a node is malformed; the message says which.
    """
    nodes: Any = content
    if is_object(content):
        nodes = content["sub_tasks"] if content.get("sub_tasks") else [content]
    if not is_list(nodes) or not nodes:
        raise BenchmarkError(f"it has no sub_tasks: {quote(nodes)}" if nodes else "it has no sub_tasks")
    missing: list[str] = []
    tasks = _sub_tasks(nodes, "", 1, note, missing)
    ids = [name for each in tasks for name in each.ids]
    if missing or len(set(ids)) < len(ids):
        note("ids of sub-tasks are missing, or given twice: their places stand for them")
        tasks = _sub_tasks(nodes, "", 1, note, None)
    return SubTasksSlot(name="task", label="what came of the task", sub_tasks=tasks)


def _sub_tasks(
    nodes: Sequence[Any], prefix: str, level: int, note: Note, missing: list[str] | None
) -> tuple[SubTask, ...]:
    """Return sub-tasks with their ids, adding places without an id to ``missing``; with None, places are the ids."""
    tasks = tuple(_node(node, f"{prefix}{number}", level, note, missing) for number, node in enumerate(nodes, start=1))
    if all(each.weight == 0 for each in tasks):
        note("the weights of some sub-tasks come to 0: what they are part of scores 0 there")
    return tasks


def _node(node: Any, place: str, level: int, note: Note, missing: list[str] | None) -> SubTask:
    if level > DEEPEST_SUB_TASK:
        raise BenchmarkError(f"its sub_tasks are nested deeper than {DEEPEST_SUB_TASK} levels")
    if not is_object(node):
        raise BenchmarkError(f"sub-task {place} is no object: {quote(node)}")
    below: Any = node.get("sub_tasks") or []
    if not is_list(below):
        raise BenchmarkError(f"the sub_tasks of sub-task {place} are no list: {quote(below)}")
    requirements = text_of(node.get("requirements")).strip()
    if not below and not requirements:
        note("a sub-task without requirements is graded")
    node_id = _id(node) if missing is not None else place
    if missing is not None and not node_id:
        missing.append(place)
    return SubTask(
        id=node_id or place,
        requirements=requirements,
        weight=_weight(node, place),
        sub_tasks=_sub_tasks(below, f"{place}.", level + 1, note, missing) if below else (),
    )


def _weight(node: dict[str, Any], place: str) -> float:
    weight = node.get("weight", 1)
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise BenchmarkError(f"the weight of sub-task {place} is no number: {quote(weight)}")
    if not math.isfinite(weight) or weight < 0:
        raise BenchmarkError(f"the weight of sub-task {place} is {quote(weight)}: it must be 0 or more")
    return float(weight)


def _id(node: Any) -> str:
    node_id = node.get("id") if is_object(node) else None
    is_id = isinstance(node_id, str | int) and not isinstance(node_id, bool)
    return str(node_id).strip()[:_LONGEST_ID] if is_id else ""
