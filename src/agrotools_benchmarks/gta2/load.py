"""Loader of GTA-2 (Wang et al. 2026, arXiv 2604.15715): GTA-Workflow, tasks graded by sub-task trees, with 37 tools.

Reads the published files. It was written without access to them: it follows the loader in open-compass/GTA, and
docs/gta-thinkgeo-agent-x.md lists the assumptions.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from agrotools.calling import TOOLS
from agrotools.core import BenchmarkError, Mode, Sample, first_error
from agrotools.core.errors import NoFileError
from agrotools.core.progress import Progress, no_progress
from agrotools.formats.benchmark import Benchmark
from agrotools.loading.benchmarks import Loading, settings_of
from agrotools.loading.checking import FileCheck
from agrotools.scoring.predictions import read_json
from agrotools.text.json_kinds import is_list, is_object, is_text
from agrotools_benchmarks._dialogs.entries import DialogForm, Gold, read_entries, text_of
from agrotools_benchmarks._dialogs.lagent_format import TOOLMETA_FILE
from agrotools_benchmarks._dialogs.loading import (
    FileTable,
    Findings,
    Layout,
    PublishedBenchmark,
    PublishedSettings,
    ReadSet,
    entries_of,
    file_check,
    quote,
)
from agrotools_benchmarks.gta2.plugin import DEEPEST_SUB_TASK, FACTS, SubTask, SubTasksSlot

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
        raise BenchmarkError(
            f"{path.parent}: none of its tools is here", hint="agrotools benchmarks check gta-2 DIR"
        )
    modes: tuple[Mode, ...] = ("end-to-end",) if settings.mode == "end" else ("step-by-step",)
    return GTA2.benchmark_of(read, settings, modes)


def check_gta2(data_root: Path | None, progress: Progress) -> FileCheck:
    """Check the tasks below ``data_root``, or the dialogs if only those exist.

    Raises:
        UsageError, BenchmarkError: as for :func:`load_gta2`.
    """
    errors: list[BenchmarkError] = []
    for part, layout in LAYOUTS.items():
        try:
            return file_check(read_gta2(layout.find(data_root), part, progress), layout)
        except NoFileError as error:
            errors.append(error)
    raise errors[0]


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
        gold=(lambda entry, note: Gold("workflow", tree_of(entry.get("sub_tasks"), note)))
        if part == "end"
        else None,
    )
    samples = read_entries(entries, form, table, _with_groups, findings, progress)
    return ReadSet(path.parent, (path,), len(entries), samples, findings)


def _with_groups(sample: Sample) -> Sample:
    groups = {"answer": sample.task_type}
    slot = sample.answer[0]
    if isinstance(slot, SubTasksSlot):
        kinds = sorted({file.kind for file in sample.files}) or ["none"]
        groups = {
            "leaves": str(len(slot.leaves)),
            "depth": str(slot.depth),
            "input": " + ".join(kinds),
        }
    return sample.model_copy(update={"groups": groups})


GTA2_TOOLS: tuple[str, ...] = FACTS["toolset"]
GTA2 = PublishedBenchmark(
    FACTS, lambda path, settings, progress: read_gta2(path, settings.mode, progress), Gta2Settings
)
LAYOUTS: dict[Part, Layout] = {
    "end": GTA2.layout,
    "step": GTA2.layout._replace(
        files=("step.json",), tree="DIR/gta_dataset_v2/step.json, toolmeta.json, files"
    ),
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
        remark += (
            f"; tasks are not offered {', '.join(quote(name).strip(chr(39)) for name in missing)}"
        )
    findings.remark(remark)
    return tuple(name for name in names if name in TOOLS)


def _names(content: Any, path: Path) -> list[str]:
    listed: list[Any] = [*content] if is_list(content) or is_object(content) else []
    given: list[Any] = [
        next(filter(None, map(each.get, _NAME_KEYS)), None) if is_object(each) else each
        for each in listed
    ]
    names = [name.strip() for name in given if is_text(name) and name.strip()]
    if not names or len(names) < len(given):
        hint = "download it again, or remove it: the names are known here"
        raise BenchmarkError(f"{path} is no list of tools with their names", hint=hint)
    return list(dict.fromkeys(names))


def tree_of(content: Any, note: Callable[[str], None]) -> SubTasksSlot:
    """Return the slot of an entry's ``sub_tasks``, a list of nodes or one node. ``note`` receives notes on changes.

    Raises:
        BenchmarkError: there is no node, or a node is malformed; the message says which.
    """
    nodes: Any = content
    if is_object(content):
        nodes = content.get("sub_tasks") or [content]
    if not is_list(nodes) or not nodes:
        raise BenchmarkError(
            f"it has no sub_tasks: {quote(nodes)}" if nodes else "it has no sub_tasks"
        )
    ids: list[str] = []
    tasks = [_node(node, str(place), ids) for place, node in enumerate(nodes, start=1)]
    if not all(ids) or len(set(ids)) < len(ids):
        note("ids of sub-tasks are missing, or given twice: their places stand for them")
        tasks = [_node(node, str(place), None) for place, node in enumerate(nodes, start=1)]
    try:
        return SubTasksSlot(name="task", label="what came of the task", sub_tasks=tuple(tasks))
    except ValidationError as error:
        raise BenchmarkError(first_error(error)) from error


def _node(node: Any, place: str, ids: list[str] | None) -> SubTask:
    """Return the sub-task at a place; its id is added to ``ids``, or is the place if that is None."""
    if place.count(".") >= DEEPEST_SUB_TASK:
        raise BenchmarkError(f"its sub_tasks are nested deeper than {DEEPEST_SUB_TASK} levels")
    fields: dict[str, Any] = node if is_object(node) else {}
    below: Any = fields.get("sub_tasks") or []
    if not is_object(node) or not is_list(below):
        raise BenchmarkError(
            f"sub-task {place} is no object with a list of sub_tasks: {quote(node)}"
        )
    given = fields.get("id")
    name = (
        str(given).strip()[:_LONGEST_ID]
        if isinstance(given, str | int) and not isinstance(given, bool)
        else ""
    )
    if ids is not None:
        ids.append(name)
    try:
        return SubTask(
            id=(ids is not None and name) or place,
            requirements=text_of(fields.get("requirements")).strip(),
            weight=fields.get("weight", 1.0),
            sub_tasks=tuple(
                _node(each, f"{place}.{number}", ids) for number, each in enumerate(below, start=1)
            ),
        )
    except ValidationError as error:
        raise BenchmarkError(f"sub-task {place}: {first_error(error)}") from error


_LONGEST_ID = 200
