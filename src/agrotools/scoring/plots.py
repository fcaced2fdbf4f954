"""Plot Score, which compares the canonical specifications of two figures, never their pixels.

The score is 0 without a figure or if its kind is not equivalent. Otherwise it is the F1 of points matched one to one
over all series, times (0.8 + 0.1 if both axes name quantity and unit + 0.1 if title or legend name the subject). What
the reference itself does not name counts as named: its tool may take no labels.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from typing import NamedTuple

from pydantic import JsonValue, ValidationError

from agrotools.calling.declared import chart_of
from agrotools.core import DeclaredTool, PlotSeries, PlotSpec, Trajectory
from agrotools.core.lazy import np, optimize
from agrotools.text.agreement import equivalent_kinds
from agrotools.text.agreement_values import Number, categories_agree, category
from agrotools.text.normalise import CJK, WORD, late_pattern, normalise
from agrotools.text.units import canonical_unit

PLOT_TOOL = "plot"

DATA_WEIGHT = 0.8
AXES_WEIGHT = 0.1
TITLE_WEIGHT = 0.1


def score_plot(
    reference: PlotSpec, chart: PlotSpec | None, rel_tol: float = 0.05, abs_tol: float = 0.0
) -> tuple[float, dict[str, JsonValue]]:
    """Return the Plot Score in [0, 1] and its details: kinds, matched points, F1, labels. Tolerances are those of y."""
    if chart is None:
        return 0.0, {"rule": "no figure came from a successful call"}
    reading: dict[str, JsonValue] = {"kind": chart.kind, "reference_kind": reference.kind}
    if not equivalent_kinds(chart.kind, reference.kind):
        return 0.0, {"rule": "the kind of figure is not equivalent", **reading}
    matching = match_points(reference, chart, rel_tol, abs_tol)
    axes, title, labels = label_readings(reference, chart)
    axes_of_reference, title_of_reference, _ = label_readings(reference, reference)
    axes = axes or not axes_of_reference
    title = title or not title_of_reference
    weight = DATA_WEIGHT + AXES_WEIGHT * axes + TITLE_WEIGHT * title
    series: list[JsonValue] = [
        {"reference": name, "drawn": drawn, "matched": count}
        for name, drawn, count in matching.pairs
    ]
    points: dict[str, JsonValue] = {
        "matched": matching.matched, "drawn": matching.n_drawn, "reference": matching.reference, "series": series
    }  # fmt: skip
    reading |= {"f1": matching.f1, "points": points, "labels": labels, "weight": round(weight, 9)}
    return min(1.0, matching.f1 * round(weight, 9)), {
        "rule": "points matched, times labels",
        **reading,
    }


def drawn_spec(trajectory: Trajectory, declared: Iterable[DeclaredTool] = ()) -> PlotSpec | None:
    """Return the figure drawn by the last successful call of ``plot``, or of a tool that it runs for; None without."""
    renamed = {tool.name: tool.renamed for tool in declared if tool.runs == PLOT_TOOL}
    for step in reversed(trajectory.calls):
        result = step.observation.result if step.observation and step.observation.ok else None
        if step.call is None or result is None:
            continue
        if step.call.tool == PLOT_TOOL or step.call.tool in renamed:
            with suppress(ValidationError):
                return PlotSpec.model_validate(result.get("spec"))
        if step.call.tool in renamed:
            # A tool of other authors returns a picture: its call has the data.
            names = renamed[step.call.tool]
            given = {names.get(name, name): value for name, value in step.call.arguments.items()}
            if chart := chart_of(given):
                return chart
    return None


_BRACKETS = late_pattern(r"[(\[]([^()\[\]]*)[)\]]")
_UNIT_AT_END = late_pattern(r"(?:/|,| in)\s*([^/,]+)$")
_WORDS = late_pattern(rf"{WORD}+|[{CJK}]+")
_NAMED_BY_THEMSELVES = ("box", "heatmap")
"""Kinds of figures whose series are named on an axis, so that they need no legend."""

_EMPTY_WORDS = frozenset(
    "a an and at axis bar bars box by chart charts compare compared comparison data diagram each figure for from graph "
    "group heatmap histogram in is label line lines of on or per pie plot plots result results scatter series set show "
    "shows summary the title to unit value values versus vs with x y 图表 数据 结果 比较 对比 数值 标题".split()
)
"""Words that do not describe the content of a figure."""


def label_readings(reference: PlotSpec, chart: PlotSpec) -> tuple[bool, bool, dict[str, JsonValue]]:
    """Return True if both axes name quantity and unit, True if title or legend name the subject, and the details.

    An axis names its quantity if its label has a word that is not generic ("value", "y"). It names its unit if the
    reference's unit is in the unit field or the label ("Area (ha)", "Area in ha"). No unit is needed if the reference
    has none or for an axis of categories. A pie has no axes: its title may name the quantity, and its slices need no
    axis label.

    The title names the subject if it shares a word with the labels, series or categories of either figure, or with the
    title of the reference. The legend names it if it is visible and every name in it is specific.
    """
    pie = chart.kind == "pie"
    categorical = all(isinstance(x, str) for series in chart.series for x in series.x)
    y_texts = [chart.y_label, chart.title] if pie else [chart.y_label]
    missing: list[JsonValue] = []
    if not pie and not _says_something(chart.x_label):
        missing.append("quantity on x")
    if not any(map(_says_something, y_texts)):
        missing.append("quantity on y")
    x_unit = None if pie or categorical else unit_of(reference.x_label, reference.x_unit)
    if x_unit and not _names_unit(x_unit, [chart.x_label], chart.x_unit):
        missing.append(f"unit on x: {x_unit}")
    y_unit = unit_of(reference.y_label, reference.y_unit)
    if y_unit and not _names_unit(y_unit, y_texts, chart.y_unit):
        missing.append(f"unit on y: {y_unit}")
    title, legend = _title_names(reference, chart), _legend_names(reference, chart)
    reading: dict[str, JsonValue] = {
        "axes": not missing,
        "missing": missing,
        "title": title,
        "legend": legend,
    }
    return not missing, title or legend, reading


def unit_of(label: str, unit: str | None) -> str | None:
    """Return the unit of an axis: its unit field, or the part of the label in brackets or after "in", "," or "/"."""
    if unit and unit.strip():
        return unit.strip()
    in_brackets = [part.strip() for part in _BRACKETS.findall(normalise(label)) if part.strip()]
    if in_brackets:
        return in_brackets[-1]
    at_end = _UNIT_AT_END.search(normalise(label).strip())
    return canonical_unit(at_end[1]) if at_end else None


def _names_unit(unit_name: str, labels: Iterable[str], unit: str | None) -> bool:
    known = canonical_unit(unit_name)
    for label in labels:
        unit_in_label = unit_of(label, unit)
        if (
            known is not None
            and unit_in_label is not None
            and canonical_unit(unit_in_label) == known
        ):
            return True
        # A unit outside the table is a counted noun ("trees") and may be anywhere in the label.
        if known is None and normalise(unit_name).strip() in normalise(f"{label} {unit or ''}"):
            return True
    return False


def _words(text: str) -> set[str]:
    """Return the specific words of a text without plural endings; for CJK script, pairs of characters."""
    words: set[str] = set()
    for word in _WORDS.findall(normalise(text)):
        if re.match(f"[{CJK}]", word):
            words |= {word[index : index + 2] for index in range(max(1, len(word) - 1))}
        elif len(word) > 1 and not word.isdigit():
            words.add(word)
    return {
        word[:-1] if len(word) > 3 and word.endswith("s") else word for word in words - _EMPTY_WORDS
    }


def _says_something(label: str) -> bool:
    return bool(_words(_BRACKETS.sub(" ", normalise(label))))


def _title_names(reference: PlotSpec, chart: PlotSpec) -> bool:
    topic = _words(reference.title)
    for spec in (reference, chart):
        texts = [spec.x_label, spec.y_label, *(series.name for series in spec.series)]
        texts += [x for series in spec.series for x in series.x if isinstance(x, str)]
        topic = topic.union(*map(_words, texts))
    return bool(_words(chart.title) & topic)


def _legend_names(reference: PlotSpec, chart: PlotSpec) -> bool:
    if not chart.legend and chart.kind not in _NAMED_BY_THEMSELVES:
        return False
    known = {category(series.name) for series in reference.series}
    names = [series.name for series in chart.series]
    if chart.kind == "pie":  # the legend of a pie lists its slices
        known |= {category(x) for series in reference.series for x in series.x}
        names = [str(x) for series in chart.series for x in series.x]
    return bool(names) and all(
        bool(_words(name)) or (name.strip() and category(name) in known) for name in names
    )


Y_TOLERANCE_AT_ZERO = 0.01
"""Tolerance of y if the reference is 0, relative to the range of the reference series."""
_SLACK = 1 + 1e-9


class Matching(NamedTuple):
    """Numbers of points of a drawn figure and of the reference, and of those that match.

    ``pairs``: names of the paired series (reference, drawn) and the number of their matching points. ``f1``: harmonic
    mean of the shares of drawn and of reference points that match, 0 to 1. Only the share of drawn points counts if
    there are more series than asked for, because each series may hold another guess of the same points.
    """

    matched: int
    n_drawn: int
    reference: int
    pairs: Sequence[tuple[str, str, int]]
    f1: float


def match_points(
    reference: PlotSpec, chart: PlotSpec, rel_tol: float = 0.05, abs_tol: float = 0.0
) -> Matching:
    """Match as many points as possible one to one, with each series paired with at most one other (highest F1).

    Points match if x is the same category (numbers: relative 1e-3, whole numbers exactly) and y is within the larger
    of ``rel_tol`` (1 % of the range of the series if the reference is 0) and ``abs_tol``. The nearest reference x
    counts, and of several points the one that is exactly there. Where a series has more points at an x than the
    reference, none of them matches: they are several answers.
    """
    targets = [_Target(series, rel_tol, abs_tol) for series in reference.series]
    counts = [[target.matched_by(series) for series in chart.series] for target in targets]
    pairs = [
        (reference.series[row].name, chart.series[column].name, counts[row][column])
        for row, column in _best_pairing(counts)
    ]
    matched = sum(count for _, _, count in pairs)
    drawn, wanted = (sum(len(series.y) for series in spec.series) for spec in (chart, reference))
    f1 = 2 * matched / (drawn + wanted) if matched else 0.0
    if matched and len(chart.series) > len(reference.series):
        f1 = min(f1, matched / drawn)
    return Matching(matched, drawn, wanted, pairs, f1)


class _Target:
    """Points of a reference series, prepared for matching as intervals of y for each x."""

    def __init__(self, series: PlotSeries, rel_tol: float, abs_tol: float) -> None:
        span = max(series.y, default=0.0) - min(series.y, default=0.0)
        self._intervals: dict[str | Number, list[tuple[float, float]]] = {}
        for x, y in zip(series.x, series.y, strict=False):
            reach = max(rel_tol * abs(y) if y else Y_TOLERANCE_AT_ZERO * span, abs_tol) * _SLACK
            self._intervals.setdefault(_key(x), []).append((y - reach, y + reach))
        self._numbers = sorted(x for x in self._intervals if not isinstance(x, str))

    def matched_by(self, series: PlotSeries) -> int:
        """Return the number of points of ``series`` that can be matched one to one with reference points."""
        exact: dict[str | Number, list[float]] = {}
        near: dict[str | Number, list[float]] = {}
        for x, y in zip(series.x, series.y, strict=False):
            key = _key(x)
            if (closest := self._nearest(key)) is not None:
                (exact if closest == key else near).setdefault(closest, []).append(y)
        at = near | exact
        return sum(
            _fitted(self._intervals[x], values)
            for x, values in at.items()
            if len(values) <= len(self._intervals[x])
        )

    def _nearest(self, x: str | Number) -> str | Number | None:
        if x in self._intervals:
            return x
        if isinstance(x, str):
            return None
        place = bisect_left(self._numbers, x)
        near = [
            each
            for each in self._numbers[max(0, place - 1) : place + 1]
            if categories_agree(x, each)
        ]
        return min(near, key=lambda each: abs(each - x), default=None)


def _key(x: str | float) -> str | Number:
    key = category(x)
    return "" if key is None else key


def _fitted(intervals: Sequence[tuple[float, float]], values: Sequence[float]) -> int:
    """Return the largest number of values that fit into intervals, one in each.

    Each value takes the interval that ends first among the free ones that contain it."""
    waiting = sorted(intervals)
    started: list[float] = []
    fitted = next_to_start = 0
    for value in sorted(values):
        while next_to_start < len(waiting) and waiting[next_to_start][0] <= value:
            heappush(started, waiting[next_to_start][1])
            next_to_start += 1
        while started and started[0] < value:
            heappop(started)
        if started:
            heappop(started)
            fitted += 1
    return fitted


def _best_pairing(counts: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Return row and column of each pair of the pairing with the largest sum of counts."""
    if len(counts) == 1:
        return [(0, max(range(len(counts[0])), key=lambda column: counts[0][column]))]
    if len(counts[0]) == 1:
        return [(max(range(len(counts)), key=lambda row: counts[row][0]), 0)]
    rows, columns = optimize.linear_sum_assignment(np.array(counts), maximize=True)
    return [(int(row), int(column)) for row, column in zip(rows, columns, strict=True)]
