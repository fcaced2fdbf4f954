"""Description of a benchmark as tables, and as bar charts on one sheet."""

import io
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from agrotools.benchmarks.describing import Description
from agrotools.report.layout import (
    Paragraph,
    Part,
    Table,
    new_table,
    paragraph,
    percent,
    whole_points,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST, _OTHERS = 15, " others"
_WIDTH_IN, _BAR_IN, _PANEL_IN = 14.0, 0.27, 0.6
"""Width of the sheet, height of a bar, and of the title and margins of a panel, in inches."""
_LONGEST = 46
"""Most letters in each of two lines of a name."""
TOOL_TABLES = ("Calls by tool", "Tools called together")


def description_tables(described: Description) -> list[Part]:
    """Return tables of all counts of a :class:`~agrotools.benchmarks.describing.Description`."""
    version = f"version {described.version}{' (drawn by code)' if described.synthetic else ''}"
    about = [*filter(None, [described.description]), f"licence: {described.licence}"]
    return [
        Paragraph(f"{described.name}, {version}", "bold"),
        *paragraph([*about, *(f"note: {note}" for note in described.notes)]),
        _facts(described),
        *(_table(title, counts) for title, counts in sections(described) if counts),
    ]


def _facts(described: Description) -> Table:
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
    if described.detectable:
        points = " / ".join(map(whole_points, described.detectable.values()))
        facts[
            f"detectable difference near a score of 50, points, {' / '.join(described.detectable)}"
        ] = points
    facts |= {
        f"reviewed by {reviewers}": f"{count:,}" for reviewers, count in described.reviewed.items()
    }
    for mode, count in described.modes.items():
        facts[f"run {mode}"] = f"{count:,}"
    for name, value in facts.items():
        table.add_row(name, value)
    return table


def sections(described: Description) -> list[tuple[str, Mapping[str, int]]]:
    """Return title and counts of the tables after the first. Tables with only "none" or "0" are left out."""
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
        (f"By {group.replace('_', ' ')}", counts)
        for group, counts in described.groups.items()
        if counts not in seen
    ]
    return [(title, counts) for title, counts in parts if set(counts) - {"none", "0"}]


def _shown(title: str, counts: Mapping[str, int]) -> dict[str, int]:
    """Return the largest counts by their names with spaces (names of tools are kept), then those of all others."""
    names = counts if title in TOOL_TABLES else [name.replace("_", " ") for name in counts]
    shown = dict(list(zip(names, counts.values(), strict=True))[:_MOST])
    if len(counts) > _MOST:
        shown[f"{len(counts) - _MOST}{_OTHERS}"] = sum(counts.values()) - sum(shown.values())
    return shown


def _table(title: str, counts: Mapping[str, int]) -> Table:
    total, table = sum(counts.values()), new_table(title, ["", ""])
    for name, count in _shown(title, counts).items():
        table.add_row(name, f"{count:,}", f"{percent(count / total)} %")
    return table


class _Panel(NamedTuple):
    """Bars of counts, with their shares of ``total``."""

    title: str
    counts: Mapping[str, int]
    total: int


def description_png(described: Description) -> bytes:
    """Return a PNG with a panel of bars for each table of counts, two in a row. Equal counts give equal bytes."""
    import matplotlib

    from agrotools.tools.plotting.sheet import STYLE, font_families

    panels = [
        _Panel(title, _shown(title, counts), sum(counts.values()))
        for title, counts in sections(described)
        if len(counts) > 1 or title in TOOL_TABLES
    ]
    panels.append(_Panel("Questions that a mode can ask", described.modes, described.questions))
    panels.sort(
        key=lambda panel: -len(panel.counts)
    )  # so that neighbours have similar numbers of bars
    texts = [described.name, *(name for panel in panels for name in (panel.title, *panel.counts))]
    families, _ = font_families(texts)
    with matplotlib.rc_context({**STYLE, "font.family": families}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Glyph.*missing")
        buffer = io.BytesIO()
        _sheet(described, panels).savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _sheet(described: Description, panels: Sequence[_Panel]) -> "Figure":
    from matplotlib.figure import Figure

    rows = [panels[at : at + 2] for at in range(0, len(panels), 2)]
    most = [max(len(panel.counts) for panel in row) for row in rows]
    heights = [_PANEL_IN + _BAR_IN * n for n in most]
    figure = Figure(figsize=(_WIDTH_IN, sum(heights) + _PANEL_IN), layout="constrained")
    facts = f"{described.questions:,} questions, {described.calls:,} reference calls, {described.files:,} unique files"
    figure.suptitle(
        f"{described.name}: {facts}", x=0.012, ha="left", fontsize=14, fontweight="bold"
    )
    grid = figure.add_gridspec(len(rows), 2, height_ratios=heights)
    for at, row in enumerate(rows):
        for column, panel in enumerate(row):
            _bars(figure.add_subplot(grid[at, column]), panel, most[at])
    return figure


def _bars(axes: "Axes", panel: _Panel, rows: int) -> None:
    """Draw horizontal bars from the top, as thick as in a panel of ``rows``; all others are a line of text."""
    names = [textwrap.fill(name, _LONGEST, max_lines=2, placeholder=" …") for name in panel.counts]
    widths = [0 if name.endswith(_OTHERS) else count for name, count in panel.counts.items()]
    axes.barh(range(len(names)), widths, color="#0072B2", height=0.7)
    axes.set_yticks(range(len(names)), names, fontsize=8.5)
    axes.set_ylim(rows - 0.4, -0.6)
    for at, (width, count) in enumerate(zip(widths, panel.counts.values(), strict=True)):
        text = f"{count:,}  ({100 * count / (panel.total or 1):.0f} %)"
        axes.annotate(
            text, (width, at), (4, 0), textcoords="offset points", va="center", fontsize=8.5
        )
    axes.set_xlim(0, max([*widths, 1]) * 1.25)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0)
    axes.spines["bottom"].set_visible(False)
    axes.set_title(panel.title, loc="left", fontsize=11.5, fontweight="bold")
