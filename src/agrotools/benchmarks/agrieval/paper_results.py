"""What the tables are made from: one result per model and setting, its items as columns."""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from agrotools.benchmarks.agrieval.paper_layout import OVERALL, By
from agrotools.benchmarks.agrieval.taxonomy import TASKS, Named, domain_of, domain_of_type, field_of, level_of, task_of
from agrotools.core import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Kind = Literal["single", "multiple", "true_false", "short_answer"]
KINDS: tuple[Kind, ...] = get_args(Kind)
OPEN_KIND: Kind = "short_answer"


@dataclass(frozen=True)
class ItemColumns:
    """The scored items of a result, one entry each per item and epoch; all columns of one length.

    ``domain``, ``field``, ``level`` and ``task`` hold a name in any form that the module ``taxonomy`` knows, or ``""``
    where the file does not say. ``score``: whether a choice question was answered right, ROUGE-L of an
    open one, both in [0, 1]. Items without a score (invalid ones) are not there.

    Raises:
        UsageError: columns of different lengths, an unknown kind, or a score outside [0, 1].
    """

    item: Sequence[str]
    kind: Sequence[str]
    score: Sequence[float]
    cluster: Sequence[Hashable]
    domain: Sequence[str]
    field: Sequence[str]
    level: Sequence[str]
    task: Sequence[str]
    epoch: Sequence[int]

    def __post_init__(self) -> None:
        lengths = {name: len(column) for name, column in vars(self).items()}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise UsageError(f"columns of items differ in length: {told}")
        if unknown := set(self.kind) - set(KINDS):
            raise UsageError(f"no such kind of question: {min(unknown)!r}", hint=f"one of {', '.join(KINDS)}")
        wrong = next((score for score in self.score if not 0 <= score <= 1), None)
        if wrong is not None:
            raise UsageError(f"a score of {wrong} is outside 0 to 1", hint="ROUGE-L and accuracy are shares here")


@dataclass(frozen=True)
class SettingResult:
    """What one model reached in one setting.

    ``setting``: ``zero-shot``, ``few-shot``, ``cot``, ``rag``, ``shuffled`` or any other word; :func:`setting_of` takes
    other spellings too. Results of one ``model`` in several settings are compared with its ``zero-shot``, item by
    item.
    """

    model: str
    setting: str
    items: ItemColumns
    domains_are_types: bool = False
    """Whether ``domain`` holds the older label ``type`` of the published files, which differs from the domain of some
    items; the tables then say so."""
    apart: str = ""
    """What tells it from another result of the same model and setting, such as the number of examples."""


def setting_of(label: str) -> str:
    """The word of the tables for a setting: ``5-shot`` is ``few-shot``, ``retrieval`` is ``rag``, and zero-shot with
    options in another order (``zero-shot, shuffled``) is that order. Anything else stays as it is."""
    words = [word.strip().lower() for word in label.split(",")]
    words = ["few-shot" if re.fullmatch(r"[1-9]\d*-shot", word) else word for word in words]
    words = ["rag" if word == "retrieval" else word for word in words]
    if len(words) > 1 and words[0] == "zero-shot":
        words = words[1:]
    return ", ".join(words)


@dataclass(frozen=True)
class Units:
    """The items of a result with epochs averaged: arrays of shape ``(n,)`` in the order of ``keys``."""

    keys: Mapping[Hashable, int]
    scores: "NDArray[np.float64]"
    clusters: "NDArray[np.int64]"
    parts: Mapping[By, Sequence[str]]
    """Part of each item, ``""`` where the file does not say or says something else."""
    n_epochs: int

    def places(self, by: By, part: str) -> "NDArray[np.intp]":
        """Places of the items of a part; of all items for :data:`OVERALL`."""
        import numpy as np

        if part == OVERALL:
            return np.arange(len(self.keys))
        return np.asarray([place for place, told in enumerate(self.parts[by]) if told == part], dtype=np.intp)

    def unnamed(self, by: By) -> int:
        """Items of no known part."""
        return sum(not told for told in self.parts[by])


def units_of(result: SettingResult, *, open_questions: bool) -> Units | None:
    """The choice or the open questions of a result; None if it has none."""
    import numpy as np

    items = result.items
    rows = [at for at, kind in enumerate(items.kind) if (kind == OPEN_KIND) == open_questions]
    if not rows:
        return None
    keys: dict[Hashable, int] = {}
    index = np.fromiter((keys.setdefault(items.item[at], len(keys)) for at in rows), dtype=np.intp, count=len(rows))
    counts = np.bincount(index)
    scores = np.bincount(index, weights=np.asarray([items.score[at] for at in rows], dtype=np.float64)) / counts
    first = dict(zip(reversed(index.tolist()), reversed(rows), strict=True))
    firsts = [first[place] for place in range(len(keys))]
    numbers: dict[Hashable, int] = {}
    clusters = [numbers.setdefault(items.cluster[at], len(numbers)) for at in firsts]
    domains = _domain_of_either if result.domains_are_types else domain_of
    tasks, levels = _ids(task_of, items.task, firsts), _ids(level_of, items.level, firsts)
    parts: dict[By, Sequence[str]] = {
        "task": tasks,
        "level": [level or _LEVEL_OF_TASK.get(task, "") for level, task in zip(levels, tasks, strict=True)],
        "domain": _ids(domains, items.domain, firsts),
        "field": _ids(field_of, items.field, firsts),
        "kind": [items.kind[at] for at in firsts],
    }
    n_epochs = len({items.epoch[at] for at in rows})
    return Units(keys, np.clip(scores, 0, 1), np.asarray(clusters, dtype=np.int64), parts, n_epochs)


def _domain_of_either(name: str) -> Named | None:
    """Where some items tell only the older label, others may tell their domain."""
    return domain_of(name) or domain_of_type(name)


_LEVEL_OF_TASK = {task.id: task.level for task in TASKS}


def _ids(lookup: Callable[[str], Named | None], names: Sequence[str], rows: Sequence[int]) -> list[str]:
    """Our id of the name in each row, ``""`` for names that are not known."""
    known = {name: named.id if (named := lookup(name)) is not None else "" for name in set(names)}
    return [known[names[at]] for at in rows]
