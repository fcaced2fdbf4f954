"""The result tables of the AgriEval paper (arXiv 2507.21773): numbers, what they show, columns in the paper's order.

Where the paper's header contradicts its figures (Tables 4, 9, 10, 12), the columns stand in the order that the figures
have in the other tables; see the doubts of :mod:`agrotools.report.published`. Figures 4, 16 and 17 show retrieval and
shuffled options without numbers, so no table of theirs is here.
"""

from dataclasses import dataclass
from typing import Literal

from agrotools.benchmarks.agrieval.taxonomy import DOMAINS, FIELDS, LEVELS, TASKS, Task, domain_of, level_of, task_of

By = Literal["task", "level", "domain", "field", "kind"]
"""What the columns of a table part the items by."""
Changes = Literal["none", "overall", "all"]
"""Which columns of a table show the change against zero-shot."""

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
    """Whether it is of open questions rather than choice questions."""
    changes: Changes = "none"
    selection_of: str = ""
    """The complete table, where it shows some of its rows."""
    needs_two_settings: bool = False
    """Whether only models with more than one of its settings have rows."""

    @property
    def is_of_paper(self) -> bool:
        return self.number[0].isdigit()


_CHOICE = "M-P M-R M-E M-T U-I U-S U-V I-D I-N I-P I-S I-G"
_OPEN = "G-QA G-PS G-CA"
_DOMAINS = "PP Aqua GS TCH Fore AST"
_ALL = Column("Overall", OVERALL, "all questions", group=OVERALL)


def _task(code: str) -> Task:
    found = task_of(code)
    assert found is not None
    return found


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


def paper_table(number: str) -> PaperTable | None:
    """The table of that number; None if the paper has no such result table."""
    return next((table for table in PAPER_TABLES if table.number == number), None)


assert {column.part for column in (*_BY_TASK, *_BY_OPEN_TASK)} == {task.id for task in TASKS} | {OVERALL}
