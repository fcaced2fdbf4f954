"""Trees of sub-tasks as they are published, as a slot."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, cast

from agrotools.benchmarks._dialogs.dialogs import text_of
from agrotools.benchmarks._dialogs.findings import shown
from agrotools.benchmarks.gta2.slots import DEEPEST_SUB_TASK, SubTask, SubTasksSlot
from agrotools.core import BenchmarkError

_LONGEST_ID = 200

Note = Callable[[str], None]


def tree_of(given: Any, note: Note) -> SubTasksSlot:
    """The slot of an entry's ``sub_tasks``: a list of nodes, or one node. ``note`` is told what was read otherwise.

    Raises:
        BenchmarkError: there is no node, or one that is none; the message says which.
    """
    if isinstance(given, dict):
        root = cast("dict[str, Any]", given)
        given = root["sub_tasks"] if root.get("sub_tasks") else [root]
    if not isinstance(given, list) or not given:
        raise BenchmarkError(f"it has no sub_tasks: {shown(given)}" if given else "it has no sub_tasks")
    nodes = cast("list[Any]", given)
    ids = Counter(_ids(nodes))
    named = max(ids.values()) == 1 and "" not in ids
    if not named:
        note("ids of sub-tasks are missing, or given twice: their places stand for them")
    tasks = tuple(_node(node, str(place), 1, named, note) for place, node in enumerate(nodes, start=1))
    if any(all(each.weight == 0 for each in group) for group in _siblings(tasks)):
        note("the weights of some sub-tasks come to 0: what they are part of scores 0 there")
    return SubTasksSlot(name="task", label="what came of the task", sub_tasks=tasks)


def _node(given: Any, place: str, level: int, named: bool, note: Note) -> SubTask:
    if level > DEEPEST_SUB_TASK:
        raise BenchmarkError(f"its sub_tasks are nested deeper than {DEEPEST_SUB_TASK} levels")
    if not isinstance(given, dict):
        raise BenchmarkError(f"sub-task {place} is no object: {shown(given)}")
    node = cast("dict[str, Any]", given)
    below: Any = node.get("sub_tasks") or []
    if not isinstance(below, list):
        raise BenchmarkError(f"the sub_tasks of sub-task {place} are no list: {shown(below)}")
    requirements = text_of(node.get("requirements")).strip()
    if not below and not requirements:
        note("a sub-task without requirements is graded")
    inner = enumerate(cast("list[Any]", below), start=1)
    return SubTask(
        id=_id(node) if named else place,
        requirements=requirements,
        weight=_weight(node, place),
        sub_tasks=tuple(_node(each, f"{place}.{number}", level + 1, named, note) for number, each in inner),
    )


def _weight(node: dict[str, Any], place: str) -> float:
    weight = node.get("weight", 1)
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise BenchmarkError(f"the weight of sub-task {place} is no number: {shown(weight)}")
    if not math.isfinite(weight) or weight < 0:
        raise BenchmarkError(f"the weight of sub-task {place} is {shown(weight)}: it must be 0 or more")
    return float(weight)


def _id(node: dict[str, Any]) -> str:
    given = node.get("id")
    return str(given).strip()[:_LONGEST_ID] if isinstance(given, str | int) and not isinstance(given, bool) else ""


def _ids(nodes: list[Any], level: int = 1) -> Iterator[str]:
    """The ids of all nodes, as far down as trees may go; empty for a node without one."""
    for each in nodes:
        node = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
        yield _id(node)
        below = node.get("sub_tasks")
        if isinstance(below, list) and level < DEEPEST_SUB_TASK:
            yield from _ids(cast("list[Any]", below), level + 1)


def _siblings(tasks: tuple[SubTask, ...]) -> Iterator[tuple[SubTask, ...]]:
    if tasks:
        yield tasks
    for each in tasks:
        yield from _siblings(each.sub_tasks)
