"""The result tables of the AgriEval paper (arXiv 2507.21773): numbers, columns, and the results of runs for them.

Where the paper's header contradicts its figures (Tables 4, 9, 10, 12), the columns stand in the order that the figures
have in the other tables; see the doubts of :mod:`agrotools.report.published`. Figures 4, 16 and 17 show retrieval and
shuffled options without numbers, so no table of theirs is here.
"""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from agrotools.benchmarks.agrieval.taxonomy import (
    DOMAINS,
    FIELDS,
    LEVELS,
    TASKS,
    Task,
    TaxonomyEntry,
    domain_of,
    domain_of_type,
    field_of,
    level_of,
    task_of,
)
from agrotools.core import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

By = Literal["task", "level", "domain", "field", "kind"]
"""Grouping of the items into the columns of a table."""
Changes = Literal["none", "overall", "all"]
"""Columns of a table that show the change against zero-shot."""

OVERALL = "overall"


@dataclass(frozen=True, slots=True)
class Column:
    """A column. ``part``: our id of the task, domain, field or kind of question, or :data:`OVERALL`."""

    code: str
    """Heading, as the paper has it."""
    part: str
    name: str
    """In full."""
    above: str = ""
    """The heading that it shares with its neighbours."""
    group: str = ""
    """``group_checked`` of the published figures; empty where the paper prints none."""


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table of the paper, or one of ours in the same shape (then ``number`` is a word)."""

    number: str
    title: str
    by: By
    columns: tuple[Column, ...]
    settings: tuple[str, ...]
    """Settings whose results are rows, in the order within a model; empty: all that Table 14 has no rows for."""
    open: bool = False
    """True for open questions, false for choice questions."""
    changes: Changes = "none"
    selection_of: str = ""
    """The complete table, where it shows some of its rows."""
    needs_two_settings: bool = False
    """True if only models with more than one of its settings have rows."""

    @property
    def is_of_paper(self) -> bool:
        return self.number[0].isdigit()


_CHOICE = "M-P M-R M-E M-T U-I U-S U-V I-D I-N I-P I-S I-G"
_OPEN = "G-QA G-PS G-CA"
_DOMAINS = "PP Aqua GS TCH Fore AST"
_ALL = Column("Overall", OVERALL, "all questions", group=OVERALL)


def _task(code: str) -> Task:
    known_task = task_of(code)
    assert known_task is not None
    return known_task


def _task_column(code: str) -> Column:
    task = _task(code)
    level = level_of(task.level)
    # The paper's Table 13 and Table 1 disagree on these two columns.
    group = f"{code}?" if code in ("G-QA", "G-CA") else code
    return Column(code, task.id, task.english, level.english if level else "", group)


def _domain_column(code: str) -> Column:
    domain = domain_of(code)
    assert domain is not None
    return Column(code, domain.id, domain.english, group=code)


_BY_TASK = (*map(_task_column, _CHOICE.split()), _ALL)
_BY_DOMAIN = (*map(_domain_column, _DOMAINS.split()), _ALL)
_BY_OPEN_TASK = (*map(_task_column, _OPEN.split()), _ALL)
_BY_KIND = (
    Column("SA", "single", "one right option", group="single"),
    Column("MA", "multiple", "several right options", group="multiple"),
    Column("T/F", "true_false", "true or false", group="true_false"),
    _ALL,
)
_BY_LEVEL = (
    *(Column(level.english, level.id, level.english) for level in LEVELS if level.id != "generation"),
    _ALL,
)
_BY_FIELD = tuple(
    Column(field.english, field.id, field.english, domain.english)
    for domain in DOMAINS
    for field in FIELDS
    if field.domain == domain.id
)

FORMAT_SETTINGS = ("zero-shot", "cot")

PAPER_TABLES = (
    PaperTable("2", "Zero-shot accuracy by task, selected models", "task", _BY_TASK, ("zero-shot",), selection_of="7"),
    PaperTable(
        "3", "Zero-shot accuracy by domain, selected models", "domain", _BY_DOMAIN, ("zero-shot",), selection_of="8"
    ),
    PaperTable(
        "4",
        "Zero-shot, chain of thought and few-shot, accuracy by task",
        "task",
        _BY_TASK,
        ("zero-shot", "cot", "few-shot"),
        changes="all",
        needs_two_settings=True,
    ),
    PaperTable("7", "Zero-shot accuracy by task", "task", _BY_TASK, ("zero-shot",)),
    PaperTable("8", "Zero-shot accuracy by domain", "domain", _BY_DOMAIN, ("zero-shot",)),
    PaperTable("9", "Few-shot accuracy by task", "task", _BY_TASK, ("few-shot",), changes="overall"),
    PaperTable("10", "Few-shot accuracy by domain", "domain", _BY_DOMAIN, ("few-shot",), changes="overall"),
    PaperTable("11", "Chain of thought, accuracy by task", "task", _BY_TASK, ("cot",), changes="overall"),
    PaperTable("12", "Chain of thought, accuracy by domain", "domain", _BY_DOMAIN, ("cot",), changes="overall"),
    PaperTable("13", "Open questions, ROUGE-L by task", "task", _BY_OPEN_TASK, ("zero-shot",), open=True),
    PaperTable(
        "14",
        "Accuracy by question format",
        "kind",
        _BY_KIND,
        FORMAT_SETTINGS,
        changes="all",
    ),
)

LEVEL_TABLE = PaperTable("levels", "Zero-shot accuracy by cognitive level", "level", _BY_LEVEL, ("zero-shot",))
FIELD_TABLE = PaperTable("fields", "Zero-shot accuracy by field", "field", _BY_FIELD, ("zero-shot",))
SETTING_TABLE = PaperTable(
    "settings", "Accuracy by question format in other settings", "kind", _BY_KIND, (), changes="all"
)
OWN_TABLES = (SETTING_TABLE, LEVEL_TABLE, FIELD_TABLE)
"""Tables that the paper does not print."""

COMPLETE = tuple(table.number for table in PAPER_TABLES if not table.selection_of)
"""The tables that are no selection from another one."""


assert {column.part for column in (*_BY_TASK, *_BY_OPEN_TASK)} == {task.id for task in TASKS} | {OVERALL}


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
            column_lengths = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise UsageError(f"columns of items differ in length: {column_lengths}")
        if unknown := set(self.kind) - set(KINDS):
            raise UsageError(f"no such kind of question: {min(unknown)!r}", hint=f"one of {', '.join(KINDS)}")
        wrong = next((score for score in self.score if not 0 <= score <= 1), None)
        if wrong is not None:
            raise UsageError(f"a score of {wrong} is outside 0 to 1", hint="ROUGE-L and accuracy are shares here")


@dataclass(frozen=True)
class SettingResult:
    """Result of one model in one setting.

    ``setting``: ``zero-shot``, ``few-shot``, ``cot``, ``rag``, ``shuffled`` or any other word; :func:`setting_of` takes
    other spellings too. Results of one ``model`` in several settings are compared with its ``zero-shot``, item by
    item.
    """

    model: str
    setting: str
    items: ItemColumns
    domains_are_types: bool = False
    """True if ``domain`` holds the older label ``type`` of the published files, which differs from the domain of some
    items; the tables then say so."""
    apart: str = ""
    """Difference from other results of the same model and setting, such as the number of examples."""


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
        return np.asarray([place for place, item_part in enumerate(self.parts[by]) if item_part == part], dtype=np.intp)

    def unnamed(self, by: By) -> int:
        """Items of no known part."""
        return sum(not item_part for item_part in self.parts[by])


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


def _domain_of_either(name: str) -> TaxonomyEntry | None:
    """Domain of a name, or of the older label, since items of one file may have either."""
    return domain_of(name) or domain_of_type(name)


_LEVEL_OF_TASK = {task.id: task.level for task in TASKS}


def _ids(lookup: Callable[[str], TaxonomyEntry | None], names: Sequence[str], rows: Sequence[int]) -> list[str]:
    """Our id of the name in each row, ``""`` for names that are not known."""
    known = {name: entry.id if (entry := lookup(name)) is not None else "" for name in set(names)}
    return [known[names[at]] for at in rows]
