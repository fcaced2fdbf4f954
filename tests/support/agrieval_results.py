"""Scripted results of AgriEval: how many items each part has, and how many of them are right."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agrotools.benchmarks.agrieval.paper_layout import ItemColumns, SettingResult
from agrotools.benchmarks.agrieval.taxonomy import DOMAINS, TASKS, task_of

KINDS = ("single", "multiple", "true_false")
PLAN = {task.code: (10 + 2 * place, 3 + place) for place, task in enumerate(TASKS) if not task.is_open}
"""Items and right ones of each task of choice questions: no two tasks have the same share."""


def result(
    plan: Mapping[str, tuple[int, int]] = PLAN,
    *,
    model: str = "maker/model-a",
    setting: str = "zero-shot",
    shift: Sequence[int] = (0,),
    **options: bool | str,
) -> SettingResult:
    """Items of each task, the first of which are right; in epoch ``e`` as many more as ``shift[e]`` says.

    Item i of all has domain i mod 6, kind i mod 3, and a cluster of its own.
    """
    columns: dict[str, list[object]] = {name: [] for name in ItemColumns.__dataclass_fields__}
    for epoch, more in enumerate(shift):
        number = 0
        for code, (n, right) in plan.items():
            task = task_of(code)
            for at in range(n):
                entry = {
                    "item": f"q{number}",
                    "kind": "short_answer" if task and task.is_open else KINDS[number % 3],
                    "score": float(at < right + more),
                    "cluster": number,
                    "domain": DOMAINS[number % 6].chinese,
                    "field": "",
                    "level": "",
                    "task": code,
                    "epoch": epoch,
                }
                for name, value in entry.items():
                    columns[name].append(value)
                number += 1
    return SettingResult(model, setting, ItemColumns(**columns), **options)


def without(made: SettingResult, **columns: Sequence[object] | str) -> SettingResult:
    """The same result with some columns replaced; a text stands for all entries."""
    length = len(made.items.item)
    replaced = {name: [column] * length if isinstance(column, str) else column for name, column in columns.items()}
    return replace(made, items=ItemColumns(**{**vars(made.items), **replaced}))
