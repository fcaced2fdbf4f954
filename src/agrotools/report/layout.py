"""Text and tables of reports: short and harmless values of models and tools, and one model of a table.

A table is built once from scored data. It is shown on a terminal (:mod:`agrotools.report.terminal`), and on a page, as
CSV, Markdown and LaTeX (:mod:`agrotools.report.text_tables`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple

from pydantic import JsonValue

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
from agrotools.core.record import is_ref, literal_value
from agrotools.core.texts import count_text, name_in_tables, number_text
from agrotools.formats.manifest import conditions_label
from agrotools.scoring.metrics import CONSTANT_METRIC, GUESS_METRIC, METRICS, OPEN_TEXT
from agrotools.scoring.statistics import Estimate, Interval
from agrotools.scoring.summary import TABLE_MODE, ModeSummary, Summary

LONGEST = 300
"""Maximum number of characters of one value; the rest is cut, with a note."""
_CUT = 20
"""Number of omitted characters that the note on them is worth."""
_MANY = 12
"""Most items of a list that are shown."""


def harmless(text: str) -> str:
    """Replace control characters in ``text``, so that output of a model cannot control the terminal."""
    if text.isprintable() or text.replace("\n", "").isprintable():
        return text
    return "".join(map(_printable, text.replace("\r\n", "\n")))


def _printable(letter: str) -> str:
    if letter == "\n" or letter.isprintable():
        return letter
    return " " if letter == "\t" else "\N{REPLACEMENT CHARACTER}"


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
        return number_text(value, 5)
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
    """Join the first items, with the number of the others."""
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
        return _exact_text(slot)
    if isinstance(slot, BooleanSlot):
        return _text(slot.value)
    if isinstance(slot, ChoiceSetSlot):
        return f"{', '.join(slot.value) or 'none'} (of {', '.join(slot.choices)})"
    if isinstance(slot, OpenTextSlot):
        return "; ".join(fact.phrases[0] for fact in slot.facts)
    if isinstance(slot, KeywordsSlot):
        wanted = " and ".join("/".join(group) for group in slot.whitelist if group) or "anything"
        unwanted = "/".join(alias for group in slot.blacklist for alias in group)
        return f"{wanted}, not {unwanted}" if unwanted else wanted
    if isinstance(slot, ReferenceTextsSlot):
        return " or: ".join(slot.values)
    if isinstance(slot, PlotSlot):
        chart = f"{value_text(slot.value.get('kind'))} of {_series_text(slot.value.get('series'))}"
        source = "values of the reference tools" if slot.value_from == "tool" else "ground truth"
        return shortened(f"{chart} ({source})")
    return shortened(slot.expected_text) if slot.made_by_tools else slot.expected_text


def _exact_text(slot: ExactSlot) -> str:
    """Return the value of a slot with its unit, and its other names in brackets."""
    unit = f" {slot.unit}" if slot.unit else ""
    names = slot.aliases.get(str(slot.value), ())
    others = [name for name in dict.fromkeys(names) if name != slot.value]
    also = f" (or: {', '.join(others)})" if others else ""
    return f"{_text(slot.value)}{unit}{also}"


def _series_text(series: JsonValue) -> str:
    """Format the points of a figure: ``weeds: a 1, b 2; crop: a 3, b 4``."""
    texts: list[str] = []
    for one in series if isinstance(series, list) else []:
        if not isinstance(one, dict):
            continue
        x_values, y_values = one.get("x"), one.get("y")
        if isinstance(x_values, list) and isinstance(y_values, list):
            points = zip(x_values, y_values, strict=False)
            points_text = _some([f"{value_text(x)} {value_text(y)}" for x, y in points])
            texts.append(f"{value_text(one.get('name'))}: {points_text}")
    return "; ".join(texts)


RIGHT, NEARLY, WRONG = "✓", "≈", "✗"
MARK_STYLES = {RIGHT: "green", NEARLY: "green", WRONG: "bold red"}


@dataclass(frozen=True)
class LabelledText:
    """Label and text of one line of an explanation, on a terminal or on a page."""

    label: str
    text: str
    style: str = ""


# --- tables ----------------------------------------------------------------------------------------------------------

DASH = "—"
FEW = 5
"""Fewest samples of a figure that is not dim."""
PLAIN_WIDTH = 100
"""Number of columns of plain text for pipes and files."""
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class TableCell(NamedTuple):
    """Cell of a table: its lines, the value first, and the estimate that they show, if there is one."""

    lines: tuple[str, ...]
    style: str = ""
    """Style of the first line (``bold``, ``dim``, ``green``, ``red``, ``yellow``); the other lines are dim."""
    estimate: Estimate | None = None
    """Value, interval and sizes as numbers."""
    examples: tuple[tuple[str, str], ...] = ()
    """Names and addresses of samples on the page."""

    @property
    def text(self) -> str:
        """The value, and the other lines in brackets: ``62.5 (48.4–74.8, n 20)``."""
        value, below = self.lines[0], ", ".join(filter(None, self.lines[1:]))
        return f"{value} ({below})" if below else value


class TableColumn(NamedTuple):
    """Column of a table.

    ``kind``: ``figure``; ``run``, figures below the name of a run; ``words``; ``id``, words that are never wrapped.
    """

    heading: tuple[str, ...] = ()
    kind: Literal["figure", "run", "words", "id"] = "figure"
    group: str = ""
    """Heading over this and the next columns of the same group."""


class TableRow(NamedTuple):
    """Row of a table, its name first."""

    cells: tuple[TableCell, ...]
    ruled: bool = False
    """True if a rule separates it from the row above."""
    is_dim: bool = False
    """True if it holds no values of the runs, but printed ones beside them."""

    @property
    def is_group(self) -> bool:
        """True if the row is a heading of those below it."""
        return not any(cell.text for cell in self.cells[1:])

    @property
    def is_inner(self) -> bool:
        """True if the row belongs to the group above it."""
        return self.cells[0].lines[0].startswith(" ")


@dataclass
class ReportTable:
    """Table of names and values, with the notes below it."""

    title: str
    columns: list[TableColumn]
    rows: list[TableRow] = field(default_factory=list[TableRow])
    notes: list[str] = field(default_factory=list[str])
    first: int = 14
    """Least number of letters to which names are folded on a terminal."""

    def add_row(self, *cells: "TableCell | str", ruled: bool = False, is_dim: bool = False) -> None:
        """Add a row: its name, and a cell for each further column."""
        row = [cell if isinstance(cell, TableCell) else TableCell((cell,)) for cell in cells]
        while len(row) < len(self.columns):
            row.append(TableCell(("",)))
        self.rows.append(TableRow(tuple(row), ruled, is_dim))


class Paragraph(NamedTuple):
    """Lines of text between tables."""

    text: str
    style: str = "dim"


Part = ReportTable | Paragraph
"""Part of a report."""


def paragraph(lines: Sequence[str], style: str = "") -> list[Part]:
    """Return a paragraph of ``lines``; nothing without any."""
    return [Paragraph("\n".join(lines), style)] if lines else []


def new_table(
    title: str,
    headings: Iterable[str | TableColumn] = (),
    *,
    first: int = 14,
) -> ReportTable:
    """Return an empty table with a column of names and a column for each heading, which may have several lines."""
    columns = (
        each if isinstance(each, TableColumn) else TableColumn((*each.split("\n"),))
        for each in headings
    )
    return ReportTable(title, [TableColumn(kind="words"), *columns], first=first)


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

    def dash(self, note: str) -> TableCell:
        """Return a dash with the superscript number of ``note``."""
        return TableCell((f"{DASH}{self.mark(note)}",), "dim")

    def numbered(self) -> list[str]:
        """Return all notes with their numbers."""
        return [
            f"{str(number).translate(_SUPERSCRIPTS)} {line}"
            for number, line in enumerate(self.lines, 1)
        ]


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
    """Return the difference in points that two runs like these must have to be detectable; empty without intervals."""
    known = [each.detectable for each in estimates if each.detectable is not None]
    return whole_points(max(known), out_of) if known else ""


def points(value: float) -> str:
    """Format the difference of two fractions in percentage points with its sign: ``+4.2``."""
    return f"{round(100 * value, 1) + 0.0:+.1f}"  # -0.0 is 0


def size(estimate: Estimate) -> str:
    """Format the numbers of units and clusters: ``48 (20)``."""
    return f"{estimate.n} ({estimate.n_clusters})"


def interval_text(interval: Interval | None, text: Callable[[float], str] = percent) -> str:
    """Format an interval: ``48.4–74.8``, ``-3.1 to +4.2``; empty without one."""
    if interval is None:
        return ""
    lower, upper = text(interval.lower), text(interval.upper)
    has_sign = any(end[:1] in "+-" for end in (lower, upper))
    return f"{lower} to {upper}" if has_sign else f"{lower}–{upper}"


def value_cell(
    estimate: Estimate | None,
    text: Callable[[float], str] = percent,
    *,
    below: Sequence[str] = (),
    out_of: int = 100,
    style: str = "bold",
) -> TableCell:
    """Return a cell with a value, its interval, and further lines ``below``; a dash if there is no estimate.

    ``text`` formats the value and the ends of the interval; ``out_of`` is the scale of values in percent."""
    if estimate is None:
        return TableCell((DASH,), "dim")
    text = partial(on_scale, out_of=out_of) if out_of != 100 else text
    lines = (text(estimate.value), *filter(None, (interval_text(estimate.interval, text), *below)))
    return TableCell(lines, style, estimate)


def difference_cell(estimate: Estimate | None, *, is_held: bool = True) -> TableCell:
    """Return a cell with a difference, its interval and its adjusted p-value; a dash if there is none.

    A difference that is significant at the 5 % level has a star, green for the better and red for the worse.
    ``is_held``: False if missing scores could undo it."""
    if estimate is None or estimate.interval is None:
        return value_cell(estimate, points)
    p = estimate.p_adjusted
    p_lines = [f"p {p_text(p)}"] if p is not None else []
    cell = value_cell(estimate, points, below=p_lines)
    if not (estimate.differs() and is_held):
        return cell
    value, *below = cell.lines
    style = "bold green" if estimate.value > 0 else "bold red"
    return TableCell((f"{value}*", *below), style, estimate)


def p_text(p: float) -> str:
    """Format a p-value with three decimals; small ones as ``<0.001``."""
    return f"{p:.3f}" if p >= 0.001 else "<0.001"


def adjusted_lines(differences: Iterable[Estimate]) -> list[str]:
    """Return the explanation of the p-values in a table of differences; empty if it has none."""
    n = sum(each.p is not None for each in differences)
    if n == 0:
        return []
    return [
        f"p: adjusted by Holm's method for all differences in this table ({n}). A star: p below 0.05. "
        "The 95 % intervals are not adjusted."
    ]


# --- runs ------------------------------------------------------------------------------------------------------------

_CONDITIONS = ("degrade", "faults", "tool_images")
"""Conditions of a run that stand among the options of its benchmark."""


def measure_text(mode: str, metric: str) -> str:
    """Return what a headline is: mode and metric; of a table its column ``score``."""
    if mode == TABLE_MODE:
        return "column score of the table"
    return f"{mode}, {METRICS[metric].label}"


def open_text_notes(summaries: Sequence[Summary]) -> list[str]:
    """Return notes on open text in FAS: the number of samples without it, and the judges that graded the others."""
    runs_of_note: dict[str, list[str]] = {}
    for name, summary in zip(run_names(summaries), summaries, strict=True):
        n = max((part.without_open_text for part in summary.modes.values()), default=0)
        if n:
            questions = count_text(n, "question")
            note = f"the score leaves out open text in {questions}, because no judge graded it (--judge MODEL)"
            runs_of_note.setdefault(note, []).append(name)
        judges = summary.judging.judges if summary.judging else ()
        graded = [harmless(each.judge) for each in judges if each.metric == OPEN_TEXT]
        if graded:
            note = f"the score includes open text, graded by {' and '.join(graded)}"
            runs_of_note.setdefault(note, []).append(name)
    return [
        note if len(names) == len(summaries) else f"{', '.join(names)}: {note}"
        for note, names in runs_of_note.items()
    ]


def run_names(summaries: Sequence[Summary]) -> list[str]:
    """Return a distinct name for each run: its model, and the tools that it was offered if these were not all.

    A quick part is named as such beside a whole benchmark, and so are task types beside others. Runs of the same model
    also have the benchmark options in their names if these differ, else the protocol; names that are still the same are
    numbered."""
    some_quick = len({summary.quick for summary in summaries}) > 1
    some_types = len({str(summary.task_types) for summary in summaries}) > 1
    models = [
        _model_name(summary, name_quick=some_quick, name_types=some_types) for summary in summaries
    ]
    options_differ = len({str(summary.benchmark_options) for summary in summaries}) > 1
    names: list[str] = []
    for model, summary in zip(models, summaries, strict=True):
        beside = _options_text(summary) if options_differ else summary.protocol
        names.append(f"{model} ({beside})" if models.count(model) > 1 and beside else model)
    return [
        f"{name} #{names[: at + 1].count(name)}" if names.count(name) > 1 else name
        for at, name in enumerate(names)
    ]


def _model_name(summary: Summary, *, name_quick: bool, name_types: bool) -> str:
    """Return the model of a run with what it was offered: tools, part of the benchmark, pictures and faults."""
    name = harmless(summary.name or name_in_tables(summary.model)) or "run"
    if summary.tools != "all":
        name += f", tools {summary.tools}"
    if name_quick and summary.quick:
        name += " (quick part)"
    if name_types and summary.task_types:
        name += f" (only {harmless(summary.task_types.words)})"
    options = summary.benchmark_options
    if options.get("tool_images"):
        name += ", tool images"
    degrade, faults = (str(options.get(each, "")) for each in ("degrade", "faults"))
    return name + harmless(conditions_label(degrade, faults))


def _options_text(summary: Summary) -> str:
    """Return the benchmark options of a run, but its conditions."""
    return ", ".join(
        harmless(f"{name}={value}")
        for name, value in summary.benchmark_options.items()
        if name not in _CONDITIONS
    )


def short_names(summaries: Sequence[Summary]) -> list[str]:
    """Return the names of runs without the organisations of their models, as headings of columns."""
    return [name.rpartition("/")[2] for name in run_names(summaries)]


def of_runs(summaries: Sequence[Summary]) -> Iterator[tuple[str, Summary]]:
    """Yield each run with the words before a line about it: its name and a comma, nothing if there is only one run."""
    for name, summary in zip(run_names(summaries), summaries, strict=True):
        yield f"{name}, " if len(summaries) > 1 else "", summary


DRAWN_NOTE = "drawn pictures: scores say nothing about real fields"
PRIVILEGED_NOTE = "privileged: sees reference solutions; a yardstick, not a result."
NO_CONSTANT = "No constant floor is shown, because it needs questions on more files."


def lacks_constant(part: ModeSummary) -> bool:
    """Return True if a mode has the floor of guesses, but no constants: all kinds of answers have too few clusters."""
    return GUESS_METRIC in part.metrics and CONSTANT_METRIC not in part.metrics


UNSEALED_NOTE = (
    "unsealed: this agent was not isolated and could have read the answers (agrotools docs agents)."
)


def name_cell(name: str, summary: Summary) -> TableCell:
    """Return the name of a run, and below it whether it is privileged or was not isolated."""
    lines = [name]
    if summary.privileged:
        lines.append("privileged")
    if summary.unsealed:
        lines.append("unsealed")
    return TableCell(tuple(lines))
