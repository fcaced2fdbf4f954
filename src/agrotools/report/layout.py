"""Text, cells and consoles of reports: short and harmless values of models and tools, marks, blocks, notes."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, cast

from pydantic import JsonValue
from rich import box
from rich.console import Console, OverflowMethod, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agrotools.core import (
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    KeywordsSlot,
    OpenTextSlot,
    PlotSlot,
    ReferenceTextsSlot,
    Slot,
    ToleranceSlot,
)
from agrotools.core.base import count_text, number_text
from agrotools.core.record import is_ref, literal_value
from agrotools.runner.manifest import conditions_label
from agrotools.scoring import METRICS, Estimate, Summary
from agrotools.scoring.metrics import OPEN_TEXT

LONGEST = 300
"""Maximum number of characters of one value; the rest is cut, with a note."""
_MANY, _CUT = 12, 20


def harmless(text: str) -> str:
    """Replace control characters in ``text``, so that output of a model cannot control the terminal."""
    if text.isprintable() or text.replace("\n", "").isprintable():
        return text
    return "".join(
        letter if letter == "\n" or letter.isprintable() else " " if letter == "\t" else "\N{REPLACEMENT CHARACTER}"
        for letter in text.replace("\r\n", "\n")
    )


def shortened(text: str, longest: int = LONGEST) -> str:
    """Cut ``text`` to about ``longest`` characters, with the number of omitted ones if they are more than the note."""
    if len(text) <= longest + _CUT:
        return text
    return f"{text[:longest].rstrip()}… ({len(text) - longest} more characters)"


def value_text(value: JsonValue) -> str:
    """Format a value on one line: ``8.93``, ``image_1.jpg``, ``[1, 2, 3]``, ``{a: 1}``; references show their value."""
    return shortened(harmless(_text(value)).replace("\n", " "))


def _text(value: JsonValue) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, str):
        return value if value and value == value.strip() else repr(value)
    if isinstance(value, list):
        return f"[{_some([_text(item) for item in value])}]"
    if isinstance(value, dict):
        if is_ref(value):
            return f"{_text(literal_value(value))} (from {value['$ref']})"
        return f"{{{_some([f'{key}: {_text(item)}' for key, item in value.items()])}}}"
    return str(value)


def _some(items: list[str]) -> str:
    left_out = f", … {len(items) - _MANY} more" if len(items) > _MANY else ""
    return ", ".join(items[:_MANY]) + left_out


def fields_text(fields: Mapping[str, JsonValue]) -> str:
    """Format fields on one line: ``weed_pct: 8.9, crop_pct: 12.1``."""
    return ", ".join(f"{name}: {value_text(value)}" for name, value in fields.items())


def expected_text(slot: Slot) -> str:
    """Return the expected value of a slot for a reader: ``8.9 % ± 0.5``, ``Lantana (or: Lantana camara)``."""
    if isinstance(slot, ToleranceSlot):
        unit = f" {slot.unit}" if slot.unit else ""
        return f"{slot.shown(slot.value)}{unit} ± {number_text(slot.margin, 3)}"
    if isinstance(slot, ExactSlot):
        unit = f" {slot.unit}" if slot.unit else ""
        names = slot.aliases.get(str(slot.value), ()) if isinstance(slot.aliases, Mapping) else slot.aliases
        different = [name for name in dict.fromkeys(names) if name != slot.value]
        others = f" (or: {', '.join(different)})" if different else ""
        return f"{_text(slot.value)}{unit}{others}"
    if isinstance(slot, BooleanSlot):
        return _text(slot.value)
    if isinstance(slot, ChoiceSetSlot):
        return f"{', '.join(slot.value) or 'none'} (of {', '.join(slot.choices)})"
    if isinstance(slot, OpenTextSlot):
        return "; ".join(fact.phrases[0] for fact in slot.facts)
    if isinstance(slot, KeywordsSlot):
        groups = " and ".join("/".join(group) for group in slot.whitelist if group)
        wrong = "/".join(alias for group in slot.blacklist for alias in group)
        return f"{groups or 'anything'}{f', not {wrong}' if wrong else ''}"
    if isinstance(slot, ReferenceTextsSlot):
        return " or: ".join(slot.values)
    if isinstance(slot, PlotSlot):
        source = "values of the reference tools" if slot.value_from == "tool" else "ground truth"
        chart_text = f"{value_text(slot.value.get('kind'))} of {_series_text(slot.value.get('series'))}"
        return shortened(f"{chart_text} ({source})")
    return shortened(slot.expected_text) if slot.made_by_tools else slot.expected_text


def _series_text(series: JsonValue) -> str:
    """Format the points of a figure: ``weeds: a 1, b 2; crop: a 3, b 4``."""
    texts: list[str] = []
    for one in series if isinstance(series, list) else []:
        if isinstance(one, dict) and isinstance(one.get("x"), list) and isinstance(one.get("y"), list):
            points = zip(cast(list[JsonValue], one["x"]), cast(list[JsonValue], one["y"]), strict=False)
            points_text = _some([f"{value_text(x)} {value_text(y)}" for x, y in points])
            texts.append(f"{value_text(one.get('name'))}: {points_text}")
    return "; ".join(texts)


RIGHT, NEARLY, WRONG = "✓", "≈", "✗"
MARK_STYLES = {RIGHT: "green", NEARLY: "green", WRONG: "bold red"}
_LONGEST_BLOCK = 1_000
_WIDEST = 1_000
PLAIN_WIDTH = 100
"""Number of columns of plain text for pipes and files."""


def console_for(file: IO[str] | None) -> Console:
    """Return a console on ``file`` (standard output if None): in colour on a terminal, else plain text.

    Plain text has :data:`PLAIN_WIDTH` columns, or as many as the environment variable COLUMNS says.
    """
    # Kernels of notebooks set FORCE_COLOR, which is not meant for text that goes into a page.
    force_terminal = None if file is None else file.isatty()
    columns = os.environ.get("COLUMNS", "").lstrip("0")  # 0: the width is not known
    environment = {**os.environ, "COLUMNS": columns}
    console = Console(
        file=file, highlight=False, force_terminal=force_terminal, force_jupyter=False, _environ=environment
    )
    if not console.is_terminal and not columns.isdigit():
        console.width = PLAIN_WIDTH
    return console


def print_parts(parts: Iterable[RenderableType], file: IO[str] | None = None) -> None:
    """Print ``parts`` on ``file`` (standard output if None): in colour on a terminal, else as plain text."""
    console = console_for(file)
    for part in parts:
        print_part(console, part)


def print_part(console: Console, part: RenderableType) -> None:
    """Print ``part``; a table that cannot fit the console is printed as lines, so that no value is cut."""
    if isinstance(part, Table) and part.show_header and not _fits(console, part):
        for text in _table_lines(part):
            console.print(text)
    else:
        console.print(part)


def _fits(console: Console, table: Table) -> bool:
    """Set widths of columns at which no line of a cell is folded or cut but names; return false if there are none."""
    roomy = console.options.update(max_width=_WIDEST)
    least: list[int] = []
    most: list[int] = []
    for column in table.columns:
        cells = [console.measure(cell, options=roomy) for cell in column.cells]
        heading = console.measure(column.header, options=roomy)
        widest = max((cell.maximum for cell in cells), default=0)
        is_text = column.justify == "left" and not column.no_wrap
        column.min_width = min(column.min_width, widest) if column.min_width else None  # else rich adds to the width
        narrow = column.min_width or (max((cell.minimum for cell in cells), default=0) if is_text else widest)
        least.append(max(min(widest, narrow), 0 if column.overflow == "fold" else heading.minimum))
        most.append(max(widest, heading.maximum))
    room = console.width - 2 * len(least) + 1  # a column's padding, and the rule's gap between two columns
    spare = room - sum(least)
    if spare < 0:
        return False
    if sum(most) > room:
        for column, lower, upper in zip(table.columns, least, most, strict=True):
            column.width = lower + min(spare, upper - lower)
            spare -= column.width - lower
    return True


def _table_lines(table: Table) -> Iterator[Text]:
    """Yield a table as text: its title, then for each row its name and one line for each further column."""
    yield Text(str(table.title or ""), style="bold")
    names, *columns = table.columns
    headings = [_joined(column.header) for column in columns]
    for name, *cells in zip(names.cells, *(column.cells for column in columns), strict=True):
        yield Text(f"\n{_joined(name)}")
        for heading, cell in zip(headings, cells, strict=True):
            if value := _joined(cell):
                yield Text(f"  {heading}: {value}")


def _joined(cell: RenderableType) -> str:
    text = cell if isinstance(cell, Text) else Text.from_markup(str(cell))
    return ", ".join(line for line in text.plain.split("\n") if line)


def line(text: str, style: str = "") -> Text:
    """Return one line of text without control characters."""
    return Text(harmless(text), style=style)


@dataclass(frozen=True)
class LabelledText:
    """Label and text of one line of an explanation, on a terminal or on a page."""

    label: str
    text: str
    style: str = ""


def block(label: str, text: str, style: str = "") -> RenderableType:
    """Return a label and its text in two columns; long text is cut."""
    table: Table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True, min_width=12)
    table.add_column()
    table.add_row(label, Text(shortened(harmless(text), _LONGEST_BLOCK), style=style))
    return indented(table, 4)


def section(title: str) -> Text:
    """Return a heading with a blank line before it."""
    return Text(f"\n{title}", style="bold underline")


def indented(part: RenderableType, columns: int = 2) -> RenderableType:
    """Indent ``part`` by a number of columns."""
    return Padding(part, (0, 0, 0, columns), expand=False)


DASH = "—"
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class Notes:
    """Numbered notes of a report; equal notes share a number."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._explained = set[str]()

    def mark(self, note: str) -> str:
        """Return the superscript number of ``note``."""
        if note not in self.lines:
            self.lines.append(note)
        return str(self.lines.index(note) + 1).translate(_SUPERSCRIPTS)

    def legend(self, names: Mapping[str, str]) -> str:
        """Return the meanings of the metrics that no earlier legend explains; ``names``: shown name of each metric."""
        unexplained = [metric for metric in names if metric not in self._explained]
        self._explained.update(unexplained)
        return "; ".join(f"{names[metric]} = {METRICS[metric].meaning}" for metric in unexplained)

    def dash(self, note: str) -> Text:
        """Return a dash with the superscript number of ``note``."""
        return stacked([f"{DASH}{self.mark(note)}"], value_style="dim")

    def numbered(self) -> list[str]:
        """Return all notes with their numbers."""
        return [f"{str(number).translate(_SUPERSCRIPTS)} {line}" for number, line in enumerate(self.lines, 1)]


def percent(value: float) -> str:
    """Format a fraction in percent with one decimal and without the percent sign: ``62.5``."""
    return f"{100 * value:.1f}"


def on_scale(value: float, out_of: int = 100) -> str:
    """Format a fraction in percent (``62.5``), or on a scale to ``out_of`` with two decimals (``6.25`` of 10)."""
    return percent(value) if out_of == 100 else f"{out_of * value:.2f}"


def whole_points(value: float, out_of: int = 100) -> str:
    """Format a detectable difference in whole points; with one decimal on a scale to 10 or less."""
    return f"{out_of * value:.{0 if out_of == 100 else 1}f}"


def detectable_points(estimates: Iterable[Estimate], out_of: int = 100) -> str:
    """Return the difference that two runs like these must have to be detectable: the largest of them, in points.

    Empty if none of them has an interval."""
    known = [each.detectable for each in estimates if each.detectable is not None]
    return whole_points(max(known), out_of) if known else ""


def points(value: float) -> str:
    """Format the difference of two fractions in percentage points with its sign: ``+4.2``."""
    return f"{round(100 * value, 1) + 0.0:+.1f}"  # -0.0 is 0


def size(estimate: Estimate) -> str:
    """Format the numbers of units and clusters: ``48 (20)``."""
    return f"{estimate.n} ({estimate.n_clusters})"


def value_cell(estimate: Estimate, *, below: Sequence[str] = (), out_of: int = 100) -> Text:
    """Return a cell with a mean, its interval, and further lines ``below``."""
    value = on_scale(estimate.value, out_of)
    if estimate.interval is None:
        return stacked([value, *below])
    interval = f"{on_scale(estimate.interval.lower, out_of)}–{on_scale(estimate.interval.upper, out_of)}"
    return stacked([value, interval, *below])


def difference_cell(estimate: Estimate) -> Text:
    """Return a cell with a difference, its interval and its adjusted p-value.

    A difference that is significant at the 5 % level has a star, green for the better and red for the worse."""
    if estimate.interval is None:
        return stacked([points(estimate.value)])
    p, differs = estimate.p_adjusted, estimate.differs()
    style = "bold" if not differs else "bold green" if estimate.value > 0 else "bold red"
    interval = f"{points(estimate.interval.lower)} to {points(estimate.interval.upper)}"
    below = [interval] if p is None else [interval, f"p {p_text(p)}"]
    return stacked([f"{points(estimate.value)}{'*' if differs else ''}", *below], value_style=style)


def p_text(p: float) -> str:
    """Format a p-value with three decimals; small ones as ``<0.001``."""
    return f"{p:.3f}" if p >= 0.001 else "<0.001"


def adjusted_line(differences: Iterable[Estimate]) -> str:
    """Return the explanation of the p-values in a table of differences; empty if it has none."""
    n = sum(each.p is not None for each in differences)
    if not n:
        return ""
    return (
        f"p: adjusted by Holm's method for all differences in this table ({n}). Coloured and starred below 0.05. "
        "The 95 % intervals are not adjusted."
    )


def stacked(lines: Sequence[str], *, value_style: str = "bold") -> Text:
    """Return a cell of several lines: the first in ``value_style``, the others dim."""
    text = Text(lines[0], style=value_style)
    for line in lines[1:]:
        text.append(f"\n{line}", style="not bold dim")
    return text


def interval_cell(estimate: Estimate | None, text: Callable[[float], str]) -> Text:
    """Return a value above its interval, both formatted by ``text``; a dash if there is no estimate."""
    if estimate is None:
        return stacked([DASH], value_style="dim")
    interval = estimate.interval
    return stacked([text(estimate.value), *([f"{text(interval.lower)} to {text(interval.upper)}"] if interval else [])])


_CONDITIONS = ("degrade", "faults")
"""Conditions of a run that stand among the options of its benchmark."""


def open_text_notes(summaries: Sequence[Summary]) -> list[str]:
    """Return notes on open text in FAS: the number of samples without it, and the judges that graded the others."""
    notes: dict[str, list[str]] = {}
    for name, summary in zip(run_names(summaries), summaries, strict=True):
        n = max((part.without_open_text for part in summary.modes.values()), default=0)
        graded = [each for each in summary.judging.judges if each.metric == OPEN_TEXT] if summary.judging else []
        if n:
            notes.setdefault(f"FAS without open text ({count_text(n, 'sample')} that no judge graded)", []).append(name)
        if graded:
            by = " and ".join(harmless(each.judge) for each in graded)
            notes.setdefault(f"open text in FAS as graded by {by}", []).append(name)
    return [text if len(names) == len(summaries) else f"{', '.join(names)}: {text}" for text, names in notes.items()]


def run_names(summaries: Sequence[Summary]) -> list[str]:
    """Return a distinct name for each run: its model, and the tools that it was offered if these were not all.

    A quick part is named as such beside a whole benchmark. Runs of the same model also have the benchmark options in
    their names if these differ, else the protocol; names that are still the same are numbered."""
    mixed = len({summary.quick for summary in summaries}) > 1
    models = [
        (harmless(summary.model) or "run")
        + (f", tools {summary.tools}" if summary.tools != "all" else "")
        + (" (quick part)" if mixed and summary.quick else "")
        + harmless(conditions_label(*(str(summary.benchmark_options.get(each, "")) for each in _CONDITIONS)))
        for summary in summaries
    ]
    differing = len({str(summary.benchmark_options) for summary in summaries}) > 1
    names: list[str] = []
    for model, summary in zip(models, summaries, strict=True):
        options = ", ".join(
            harmless(f"{name}={value}") for name, value in summary.benchmark_options.items() if name not in _CONDITIONS
        )
        beside = options if differing else summary.protocol
        names.append(f"{model} ({beside})" if models.count(model) > 1 and beside else model)
    return [
        f"{name} #{names[: at + 1].count(name)}" if names.count(name) > 1 else name for at, name in enumerate(names)
    ]


def of_runs(summaries: Sequence[Summary]) -> Iterator[tuple[str, Summary]]:
    """Yield each run with the words before a line about it: its name and a comma, nothing if there is only one run."""
    for name, summary in zip(run_names(summaries), summaries, strict=True):
        yield f"{name}, " if len(summaries) > 1 else "", summary


SYNTHETIC_NOTE = "synthetic: generated images, scores say nothing about real fields"
PRIVILEGED_NOTE = "privileged: sees reference solutions; a yardstick, not a result."
UNSEALED_NOTE = "unsealed: this agent was not isolated and could have read the answers (docs/agents.md)."


def name_cell(name: str, summary: Summary) -> Text:
    marks = ["privileged"] * summary.privileged + ["unsealed"] * summary.unsealed
    return stacked([name, *marks], value_style="")


def new_table(
    title: str, headings: Sequence[str | Text] = (), *, first: int = 14, overflow: OverflowMethod = "ellipsis"
) -> Table:
    """Return an empty table without vertical rules.

    With ``headings``, it has a column of names that can be folded to ``first`` characters, and columns of figures.
    """
    table = Table(
        title=f"\n{title}",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    if headings:
        table.add_column("", overflow="fold", min_width=first)
    for heading in headings:
        table.add_column(heading, justify="right", overflow=overflow)
    return table
