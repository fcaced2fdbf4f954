"""Whether a figure says what it shows: quantity and unit on the axes, what is compared in title or legend."""

import re
from collections.abc import Iterable

from pydantic import JsonValue

from agrotools.core import PlotSpec
from agrotools.text.agreement_values import category
from agrotools.text.normalise import CJK, WORD, normalise
from agrotools.text.units import canonical_unit

_BRACKETS = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_UNIT_AT_END = re.compile(r"(?:/|,| in)\s*([^/,]+)$")
_WORDS = re.compile(rf"{WORD}+|[{CJK}]+")
_NAMED_BY_THEMSELVES = ("box", "heatmap")
"""Kinds whose series stand by name on an axis, without a legend."""

_EMPTY_WORDS = frozenset(
    "a an and at axis bar bars box by chart charts compare compared comparison data diagram each figure for from graph "
    "group heatmap histogram in is label line lines of on or per pie plot plots result results scatter series set show "
    "shows summary the title to unit value values versus vs with x y 图表 数据 结果 比较 对比 数值 标题".split()
)
"""Words that say nothing of what a figure shows."""


def label_readings(reference: PlotSpec, drawn: PlotSpec) -> tuple[bool, bool, dict[str, JsonValue]]:
    """(both axes name quantity and unit, title or legend names what is compared, how that was read).

    An axis names its quantity if its label has a word that is not generic ("value", "y"). It names its unit if the
    unit that the reference gives stands in the unit field or the label ("Area (ha)", "Area in ha"); where the
    reference gives none, and on an axis of categories, none is needed. A pie has no axes: its title may name the
    quantity, and its slices need no axis label.

    The title names what is compared if it shares a word with the labels, series or categories of either figure, or with
    the title of the reference. The legend does if it is visible and every name in it says something.
    """
    pie = drawn.kind == "pie"
    categorical = all(isinstance(x, str) for series in drawn.series for x in series.x)
    y_texts = [drawn.y_label, drawn.title] if pie else [drawn.y_label]
    missing: list[JsonValue] = []
    if not pie and not _says_something(drawn.x_label):
        missing.append("quantity on x")
    if not any(map(_says_something, y_texts)):
        missing.append("quantity on y")
    x_unit = None if pie or categorical else unit_of(reference.x_label, reference.x_unit)
    if x_unit and not _names_unit(x_unit, [drawn.x_label], drawn.x_unit):
        missing.append(f"unit on x: {x_unit}")
    y_unit = unit_of(reference.y_label, reference.y_unit)
    if y_unit and not _names_unit(y_unit, y_texts, drawn.y_unit):
        missing.append(f"unit on y: {y_unit}")
    title, legend = _title_names(reference, drawn), _legend_names(reference, drawn)
    reading: dict[str, JsonValue] = {"axes": not missing, "missing": missing, "title": title, "legend": legend}
    return not missing, title or legend, reading


def unit_of(label: str, unit: str | None) -> str | None:
    """The unit of an axis: its unit field, or in its label what stands in brackets or after ``in``, comma or slash."""
    if unit and unit.strip():
        return unit.strip()
    in_brackets = [part.strip() for part in _BRACKETS.findall(normalise(label)) if part.strip()]
    if in_brackets:
        return in_brackets[-1]
    at_end = _UNIT_AT_END.search(normalise(label).strip())
    return canonical_unit(at_end[1]) if at_end else None


def _names_unit(wanted: str, labels: Iterable[str], unit: str | None) -> bool:
    known = canonical_unit(wanted)
    for label in labels:
        found = unit_of(label, unit)
        if known is not None and found is not None and canonical_unit(found) == known:
            return True
        # A unit outside the table is a counted noun ("trees"): it may stand anywhere.
        if known is None and normalise(wanted).strip() in normalise(f"{label} {unit or ''}"):
            return True
    return False


def _words(text: str) -> set[str]:
    """What a text speaks of: words (plural or not) that are not empty; of CJK script, pairs of characters."""
    words: set[str] = set()
    for word in _WORDS.findall(normalise(text)):
        if re.match(f"[{CJK}]", word):
            words |= {word[index : index + 2] for index in range(max(1, len(word) - 1))}
        elif len(word) > 1 and not word.isdigit():
            words.add(word)
    return {word[:-1] if len(word) > 3 and word.endswith("s") else word for word in words - _EMPTY_WORDS}


def _says_something(label: str) -> bool:
    return bool(_words(_BRACKETS.sub(" ", normalise(label))))


def _title_names(reference: PlotSpec, drawn: PlotSpec) -> bool:
    topic = _words(reference.title)
    for spec in (reference, drawn):
        texts = [spec.x_label, spec.y_label, *(series.name for series in spec.series)]
        texts += [x for series in spec.series for x in series.x if isinstance(x, str)]
        for text in texts:
            topic |= _words(text)
    return bool(_words(drawn.title) & topic)


def _legend_names(reference: PlotSpec, drawn: PlotSpec) -> bool:
    if not drawn.legend and drawn.kind not in _NAMED_BY_THEMSELVES:
        return False
    known = {category(series.name) for series in reference.series}
    names = [series.name for series in drawn.series]
    if drawn.kind == "pie":  # its legend holds the slices
        known |= {category(x) for series in reference.series for x in series.x}
        names = [str(x) for series in drawn.series for x in series.x]
    return bool(names) and all(bool(_words(name)) or (name.strip() and category(name) in known) for name in names)
