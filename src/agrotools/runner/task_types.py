"""Selection of questions by task type (``--task-type``): names as a user gives them become those of the benchmark."""

from collections import Counter
from collections.abc import Sequence

from agrotools.core import FAMILY_OF_TASK_TYPE, Sample, UsageError
from agrotools.core.texts import names_hint
from agrotools.formats.manifest import TaskTypes
from agrotools.loading import Benchmark


def select_task_types(
    benchmark: Benchmark, asked: Sequence[str], *, quick: bool
) -> tuple[TaskTypes, list[str]]:
    """Return the task types that are asked for, and the ids of their questions.

    Case, spaces, ``-`` and ``_`` in a name do not matter.

    Args:
        benchmark: the benchmark, which may have task types of its own.
        asked: names of task types; at least one.
        quick: True to select among the questions of the quick part.

    Raises:
        UsageError: no question, or none of the quick part, is of one of these task types.
    """
    quick_ids = frozenset(benchmark.header.quick)
    samples: Sequence[Sample] = benchmark.samples
    type_of = {each.id: each.task_type for each in samples if not quick or each.id in quick_ids}
    counts = Counter(type_of.values())
    name_of = {_plain(name): name for name in counts}
    chosen: set[str] = set()
    for name in asked:
        known = name_of.get(_plain(name))
        if known is None:
            part = "the quick part of " if quick else ""
            raise UsageError(
                f"{part}{benchmark.name} has no question of the task type {name!r}",
                hint=names_hint(name, counts, f"task types (questions): {_counts_text(counts)}"),
            )
        chosen.add(known)
    ids = [sample_id for sample_id, task_type in type_of.items() if task_type in chosen]
    names = tuple(name for name in _ordered(counts) if name in chosen)
    return TaskTypes(names=names, n_questions=len(ids), n_of=len(type_of)), ids


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter not in " -_")


def _ordered(counts: Counter[str]) -> list[str]:
    """Return the task types in the order of the tables of scores: those of the taxonomy, then the others."""
    usual = [name for name in FAMILY_OF_TASK_TYPE if name in counts]
    return [*usual, *(name for name in counts if name not in FAMILY_OF_TASK_TYPE)]


def _counts_text(counts: Counter[str]) -> str:
    return ", ".join(f"{name} ({counts[name]})" for name in _ordered(counts))
