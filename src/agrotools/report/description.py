"""Description of a benchmark as tables and as bar charts on one sheet. Equal counts give equal bytes."""

import io
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from agrotools.benchmarks.describing import Description
from agrotools.report.layout import Paragraph, Part, Table, harmless, new_table, paragraph, percent, whole_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST = 15
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
        "words of a question, least / median / most": " / ".join(f"{number:g}" for number in words.values()),
    }
    if described.detectable:
        points = " / ".join(map(whole_points, described.detectable.values()))
        facts[f"detectable difference near a score of 50, points, {' / '.join(described.detectable)}"] = points
    facts |= {f"reviewed by {reviewers}": f"{count:,}" for reviewers, count in described.reviewed.items()}
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
        (f"By {group.replace('_', ' ')}", counts) for group, counts in described.groups.items() if counts not in seen
    ]
    return [(title, counts) for title, counts in parts if set(counts) - {"none", "0"}]


def worded(title: str, name: str) -> str:
    """Return a name with spaces instead of underscores; names of tools are kept."""
    return harmless(name) if title in TOOL_TABLES else harmless(name).replace("_", " ")


def _table(title: str, counts: Mapping[str, int]) -> Table:
    total, table = sum(counts.values()), new_table(title, ["", ""])
    shown = {worded(title, name): count for name, count in [*counts.items()][:_MOST]}
    if len(counts) > _MOST:
        shown[f"{len(counts) - _MOST} others"] = total - sum(shown.values())
    for name, count in shown.items():
        table.add_row(name, f"{count:,}", f"{percent(count / total)} %")
    return table


_WIDTH_IN = 12.0
_ROW_IN = 0.27
_PANEL_IN = 0.95
"""Height of title and margins of a panel, in inches."""
_MOST_BARS = 14
_LONGEST = 46
_LONGEST_OF_TWO = 54
"""Maximum number of letters in each of two lines, which have a smaller font."""
_FEWEST = 5
"""Minimum number of bars that the width of vertical bars is computed for."""
_BLUE, _GREEN, _ORANGE, _PINK, _SKY, _GREY = "#0072B2", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C8C8C"
_UPRIGHT = ("Steps per question", "Tools per question", "Files per question")
_COLOURS = {
    "Steps per question": _ORANGE,
    "Tools per question": _BLUE,
    "Files per question": _GREEN,
    "Calls by tool": _BLUE,
    "Tools called together": _SKY,
    "Categories called together": _SKY,
    "Answer types": _PINK,
    "Kinds of files": _GREEN,
}


class _Panel(NamedTuple):
    title: str
    counts: Mapping[str, int]
    colour: str
    total: int
    """Total that shares are computed from."""

    @property
    def rows(self) -> int:
        return min(len(self.counts), _MOST_BARS + 1)


def description_png(described: Description) -> bytes:
    """Return a PNG of the counts: distributions, then tools and their combinations, then categories, two in a row."""
    import matplotlib

    from agrotools.tools.plotting.sheet import STYLE, font_families

    panels = [
        _Panel(title, counts, _COLOURS.get(title, _GREEN), sum(counts.values()))
        for title, counts in sections(described)
        if len(counts) > 1 or title in (*_UPRIGHT, *TOOL_TABLES)
    ]
    panels.append(_Panel("Questions that a mode can ask", described.modes, _ORANGE, described.questions))
    texts = [_heading(described), *(name for panel in panels for name in (panel.title, *panel.counts))]
    families, _ = font_families(texts)
    with matplotlib.rc_context({**STYLE, "font.family": families}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Glyph.*missing")
        buffer = io.BytesIO()
        _sheet(described, panels).savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _sheet(described: Description, panels: Sequence[_Panel]) -> "Figure":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    upright = [panel for panel in panels if panel.title in _UPRIGHT]
    wide = [panel for panel in panels if panel.title in TOOL_TABLES]
    others = _paired([panel for panel in panels if panel not in upright and panel not in wide])
    rows = [row for row in (upright, wide) if row] + others
    heights = [_height(row) for row in rows]
    figure = Figure(figsize=(_WIDTH_IN, sum(heights) + 0.9))
    FigureCanvasAgg(figure)
    figure.suptitle(_heading(described), x=0.012, ha="left", fontsize=14, fontweight="bold")
    grids = figure.subfigures(max(1, len(rows)), 1, height_ratios=heights or None, squeeze=False)
    for row, place in zip(rows, grids[:, 0], strict=False):
        columns = max(len(row), 1 if row is upright or row is wide else 2)
        every = place.subplots(1, columns, squeeze=False)[0]
        most = max(panel.rows for panel in row)
        for panel, axes in zip(row, every, strict=False):
            if panel.title in _UPRIGHT:
                _vertical_bars(axes, panel)
            else:
                _horizontal_bars(axes, panel, most)
        for axes in every[len(row) :]:
            axes.set_axis_off()
    return figure


def _heading(described: Description) -> str:
    facts = [f"{described.questions:,} questions"]
    facts += [f"{described.calls:,} reference calls"] if described.calls else []
    facts += [f"{described.offered_tools} tools"] if described.offered_tools else []
    facts += [f"{described.files:,} unique files"] if described.files else []
    return f"{described.name}: {', '.join(facts)}"


def _paired(panels: Sequence[_Panel]) -> list[list[_Panel]]:
    """Pair panels with similar numbers of bars, so that little of the sheet stays empty."""
    order = sorted(panels, key=lambda panel: -panel.rows)
    return [order[place : place + 2] for place in range(0, len(order), 2)]


def _height(row: Sequence[_Panel]) -> float:
    if row[0].title in _UPRIGHT:
        return 2.7
    return _PANEL_IN + _ROW_IN * max(panel.rows for panel in row)


def _vertical_bars(axes: "Axes", panel: _Panel) -> None:
    """Draw vertical bars over whole numbers; numbers without a count are left out only if the range is long."""
    numbers = sorted(map(int, panel.counts))
    span = range(numbers[0], numbers[-1] + 1)
    names = [str(number) for number in (span if len(span) <= 2 * _MOST_BARS else numbers)]
    values = [panel.counts.get(name, 0) for name in names]
    bars = axes.bar(names, values, color=panel.colour, width=0.7)
    if len(names) <= 2 * _MOST_BARS:
        size = 9 if len(names) <= 12 else 7.5
        axes.bar_label(bars, labels=[f"{value:,}" if value else "" for value in values], padding=2, fontsize=size)
    if len(names) < _FEWEST:
        axes.set_xlim(-0.6, _FEWEST - 0.4)
    if len(names) > _MOST_BARS:
        every = math.ceil(len(names) / _MOST_BARS)
        axes.set_xticks(range(0, len(names), every), names[::every])
    axes.margins(y=0.15)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_title(panel.title, loc="left", fontsize=11.5, fontweight="bold")


def _horizontal_bars(axes: "Axes", panel: _Panel, rows: int) -> None:
    """Draw horizontal bars from the top, as thick as in a panel of ``rows``; further categories become one line of
    text."""
    bars = list(panel.counts.items())[:_MOST_BARS]
    values = [count for _, count in bars]
    labels = [short(worded(panel.title, name)) for name, _ in bars]
    bar_texts = [_value_with_share(value, panel.total) for value in values]
    if left_out := len(panel.counts) - len(bars):
        rest = sum(panel.counts.values()) - sum(values)
        labels.append(f"{left_out} others")
        bar_texts.append(_value_with_share(rest, panel.total))
    axes.barh(range(len(bars)), values, color=panel.colour, height=0.7)
    axes.set_yticks(range(len(labels)), labels, fontsize=9.5)
    for label in axes.get_yticklabels():
        if "\n" in label.get_text():
            label.set(fontsize=7.5, linespacing=0.95)
    axes.set_ylim(rows - 0.4, -0.6)
    for row, text in enumerate(bar_texts):
        end = values[row] if row < len(values) else 0
        axes.annotate(text, (end, row), (4, 0), textcoords="offset points", va="center", fontsize=8.5)
    axes.set_xlim(0, max([*values, 1]) * 1.25)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0)
    axes.spines["bottom"].set_visible(False)
    axes.spines["left"].set_bounds(-0.5, len(labels) - 0.5)
    axes.set_title(panel.title, loc="left", fontsize=11.5, fontweight="bold")


def _value_with_share(value: int, total: int) -> str:
    share = 100 * value / total if total else 0
    return f"{value:,}  ({share:.0f} %)" if share >= 0.5 or not value else f"{value:,}  (< 1 %)"


def short(name: str) -> str:
    """Break a long combination of tools into two lines of similar length; lines that are still too long are cut."""
    if len(name) <= _LONGEST:
        return name
    parts = name.split(" + ")
    cuts = [(" + ".join(parts[:place]) + " +", " + ".join(parts[place:])) for place in range(1, len(parts))]
    lines = min(cuts, key=lambda lines: max(map(len, lines)), default=(name,))
    longest = _LONGEST_OF_TWO if len(lines) > 1 else _LONGEST
    return "\n".join(line if len(line) <= longest else f"{line[: longest - 1]}…" for line in lines)
