"""Description of a benchmark, printed."""

from collections.abc import Mapping
from typing import IO

from rich.table import Table

from agrotools.benchmarks.describing import Description
from agrotools.report.layout import console_for, harmless, put

_MOST = 15
TOOL_TABLES = ("Calls by tool", "Tools called together")


def print_description(described: Description, file: IO[str] | None = None) -> None:
    """Tables of everything that :class:`~agrotools.benchmarks.describing.Description` counts."""
    console = console_for(file)
    drawn = " (drawn by code)" if described.synthetic else ""
    console.print(f"[bold]{harmless(described.name)}[/bold] {harmless(described.version)}{drawn}", soft_wrap=True)
    if described.description:
        console.print(harmless(described.description), markup=False, soft_wrap=True)
    console.print(f"licence: {harmless(described.licence)}", markup=False, soft_wrap=True)
    for note in described.notes:
        console.print(f"note: {harmless(note)}", markup=False, soft_wrap=True)
    console.print()
    put(console, _facts(described))
    for title, counts in sections(described):
        if counts:
            console.print()
            console.print(title, style="bold")
            put(console, _table(title, counts))


def _facts(described: Description) -> Table:
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    words = described.words_per_question
    facts: dict[str, str] = {
        "questions": f"{described.questions:,}",
        "clusters (questions that share a file)": f"{described.clusters:,}",
        "reference calls": f"{described.calls:,}",
        "tools offered": f"{described.offered_tools:,}",
        "different files": f"{described.files:,}",
        "words of a question, least / median / most": " / ".join(f"{number:g}" for number in words.values()),
    }
    for mode, count in described.modes.items():
        facts[f"run {mode}"] = f"{count:,}"
    for name, value in facts.items():
        table.add_row(name, value)
    return table


def sections(described: Description) -> list[tuple[str, Mapping[str, int]]]:
    """The tables after the first one: title and counts. Those of no use (nothing to tell apart) are left out."""
    parts: list[tuple[str, Mapping[str, int]]] = [
        ("Steps per question", described.steps_per_question),
        ("Tools per question", described.tools_per_question),
        ("Files per question", described.files_per_question),
        ("Kinds of files", described.file_kinds),
        ("Calls by tool", described.tools),
        ("Tools called together", described.combinations),
        ("Categories called together", described.category_combinations),
        ("Answer types", described.answer_types),
        ("Families", described.families),
        ("Task types", described.task_types),
        ("Sources", described.sources),
    ]
    seen = [counts for _, counts in parts]
    parts += [
        (f"By {group.replace('_', ' ')}", counts) for group, counts in described.groups.items() if counts not in seen
    ]
    return [(title, counts) for title, counts in parts if set(counts) - {"none", "0"}]


def worded(title: str, name: str) -> str:
    """A name of a table as people write it; tools keep their names."""
    return harmless(name) if title in TOOL_TABLES else harmless(name).replace("_", " ")


def _table(title: str, counts: Mapping[str, int]) -> Table:
    total = sum(counts.values())
    table = Table(box=None, show_header=False)
    table.add_column(overflow="fold")
    table.add_column(justify="right")
    table.add_column(justify="right", style="dim")
    for name, count in list(counts.items())[:_MOST]:
        table.add_row(worded(title, name), f"{count:,}", f"{100 * count / total:.1f} %")
    if len(counts) > _MOST:
        rest = total - sum(list(counts.values())[:_MOST])
        table.add_row(f"{len(counts) - _MOST} others", f"{rest:,}", f"{100 * rest / total:.1f} %")
    return table
