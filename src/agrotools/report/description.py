"""Description of a benchmark as tables.

A :class:`~agrotools.loading.describing.Description` comes in; tables go out.
"""

from collections.abc import Iterator, Mapping

from agrotools.formats.funnel import Funnel
from agrotools.loading.describing import PAIRED_CORRELATION, Description
from agrotools.report.layout import (
    DASH,
    NO_CONSTANT,
    Paragraph,
    Part,
    ReportTable,
    new_table,
    paragraph,
    percent,
    whole_points,
)
from agrotools.scoring.metrics import CONSTANT_METRIC
from agrotools.scoring.statistics import MIN_CLUSTERS, POWER, WITHIN_CLUSTERS

_MOST = 15
"""Largest number of rows of a table of counts; the last row sums up all others."""
_MOST_WARNINGS = 5
"""Most warnings of easy answers that are shown."""
_TASK_TYPES = "Task types"
_PLAN = (
    f"points to show: the smallest difference of two runs near 50 that compare shows with {100 * POWER:.0f} % power,"
    f" planned for scores of 0 or 100 that correlate at {PAIRED_CORRELATION} between the runs and at {WITHIN_CLUSTERS}"
    f" within a cluster; {DASH}: under {MIN_CLUSTERS} clusters"
)
_TOOL_TABLES = ("Calls by tool", "Tools called together")


def description_tables(described: Description) -> list[Part]:
    """Return tables of all counts of a :class:`~agrotools.loading.describing.Description`."""
    version = f"version {described.version}{' (drawn by code)' if described.synthetic else ''}"
    about = [
        *filter(None, [described.description, described.scope]),
        f"licence: {described.licence}",
    ]
    return [
        Paragraph(f"{described.name}, {version}", "bold"),
        *paragraph([*about, *(f"note: {note}" for note in described.notes)]),
        *paragraph(_warnings(described), "yellow"),
        _facts(described),
        *(funnel_tables(described.funnel) if described.funnel else ()),
        *_counts(described),
    ]


def funnel_tables(funnel: Funnel) -> list[ReportTable]:
    """Return how far the drafts of a model came, by family, and why others were dropped."""
    table = new_table("Questions drafted by a model", [*funnel.stages])
    for family, stages in funnel.rows.items():
        table.add_row(family, *(f"{count:,}" for count in stages.values()))
    if not funnel.dropped:
        return [table]
    return [table, _table("Drafts that a check dropped", funnel.dropped)]


def _counts(described: Description) -> Iterator[Part]:
    """Yield the tables of counts."""
    for title, counts in _sections(described):
        if title == _TASK_TYPES:
            yield from (_task_types(described), Paragraph(_PLAN))
        elif counts:
            yield _table(title, counts)


def _warnings(described: Description) -> list[str]:
    """Return the answers that a constant meets too often, the easiest first, and that there is no such floor."""
    lines = [f"warning: {text}" for text in described.easy[:_MOST_WARNINGS]]
    if len(described.easy) > _MOST_WARNINGS:
        lines.append(f"{len(described.easy) - _MOST_WARNINGS} more warnings: --json")
    if described.floor and CONSTANT_METRIC not in described.floors:
        lines.append(NO_CONSTANT)
    return lines


def _facts(described: Description) -> ReportTable:
    table = new_table("", [""])
    words = described.words_per_question
    facts: dict[str, str] = {
        "questions": f"{described.questions:,}",
        "clusters (questions that share a file)": f"{described.clusters:,}",
        "reference calls": f"{described.calls:,}",
        "tools offered": f"{described.offered_tools:,}",
        "unique files": f"{described.files:,}",
        "words of a question, least / median / most": " / ".join(
            f"{number:g}" for number in words.values()
        ),
    }
    if "paired" in described.detectable:
        # Runs are compared on the same samples: the figure without pairing is only in the JSON.
        paired = whole_points(described.detectable["paired"])
        facts["points by which two runs near 50 must differ for compare to show it"] = paired
    if described.deciding is not None and described.deciding.calls:
        counts = described.deciding
        share = f"{percent(counts.deciding / counts.calls)} % of {counts.calls:,}"
        if untried := described.calls - counts.calls:
            share += f"; {untried:,} not tried: no true result, or no other result of the tool"
        facts["calls whose result decides: another one would change the answer"] = share
    if described.floor:
        shown = [described.floor, *(name for name in described.floors if name != described.floor)]
        scores = ", ".join(f"{name} {percent(described.floors[name])}" for name in shown)
        facts["floor: FAS without looking at the pictures"] = scores
    facts |= {
        f"reviewed by {reviewers}": f"{count:,}" for reviewers, count in described.reviewed.items()
    }
    for mode, count in described.modes.items():
        facts[f"run {mode}"] = f"{count:,}"
    for name, value in facts.items():
        table.add_row(name, value)
    return table


def _sections(described: Description) -> list[tuple[str, Mapping[str, int]]]:
    """Return title and counts of the tables after the first. Tables with only "none" or "0" are left out."""
    parts: list[tuple[str, Mapping[str, int]]] = [
        ("Steps per question", described.steps_per_question),
        ("Tools per question", described.tools_per_question),
        *_deciding_sections(described),
        ("Files per question", described.files_per_question),
        ("Kinds of files", described.file_kinds),
        ("Calls by tool", described.tools),
        ("Tools called together", described.combinations),
        ("Categories called together", described.category_combinations),
        ("Answer types", described.answer_types),
        ("Families", described.families),
        (_TASK_TYPES, described.task_types),
        ("Sources", described.sources),
    ]
    seen = [counts for _, counts in parts]
    parts += [
        (f"By {group.replace('_', ' ')}", counts)
        for group, counts in described.groups.items()
        if counts not in seen
    ]
    return [(title, counts) for title, counts in parts if set(counts) - {"none", "0"}]


def _deciding_sections(described: Description) -> list[tuple[str, Mapping[str, int]]]:
    """Return title and counts of the tables of calls whose result decides."""
    if described.deciding is None:
        return []
    return [
        ("Calls per question whose result decides", described.deciding.calls_per_question),
        ("Tools per question whose result decides", described.deciding.tools_per_question),
    ]


def _shown(title: str, counts: Mapping[str, int]) -> dict[str, int]:
    """Return the largest counts by their names with spaces (names of tools are kept), then those of all others."""
    names = counts if title in _TOOL_TABLES else [name.replace("_", " ") for name in counts]
    shown = dict(list(zip(names, counts.values(), strict=True))[:_MOST])
    if len(counts) > _MOST:
        shown[f"{len(counts) - _MOST} others"] = sum(counts.values()) - sum(shown.values())
    return shown


def _table(title: str, counts: Mapping[str, int]) -> ReportTable:
    total, table = sum(counts.values()), new_table(title, ["", ""])
    for name, count in _shown(title, counts).items():
        table.add_row(name, f"{count:,}", f"{percent(count / total)} %")
    return table


def _task_types(described: Description) -> ReportTable:
    """Return the table of task types, with what two runs must differ by in each; the last row sums up all others."""
    table = new_table(_TASK_TYPES, ["", "", "clusters", "points to show"])
    shown = _shown(_TASK_TYPES, described.task_types)
    plans = [*described.by_task_type.values()]
    for at, (name, count) in enumerate(shown.items()):
        row = [f"{count:,}", f"{percent(count / described.questions)} %"]
        if at < _MOST:
            paired = plans[at].detectable.get("paired")
            row += [f"{plans[at].clusters:,}", DASH if paired is None else whole_points(paired)]
        table.add_row(name, *row)
    return table
