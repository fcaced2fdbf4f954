"""Layout of figures: style, size, axes, legend, fonts, units and number formats.

Colours are those of Okabe and Ito (2008), which readers with any form of colour blindness can distinguish, with grey
instead of their yellow, which is faint on white. Beyond eight series, line styles, markers and hatches also vary.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from agrotools.core import PlotSeries, PlotSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from agrotools_tools.plotting.tool import PlotData


CJK_FAMILIES = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Source Han Sans CN",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "SimHei",
    "Microsoft YaHei",
    "PingFang SC",
    "Hiragino Sans GB",
    "Arial Unicode MS",
)
"""Common system fonts with Chinese characters."""

MINUS = "−"
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def font_families(texts: Iterable[str]) -> tuple[list[str], bool]:
    """Return font families for these texts, in order of preference, and whether they have all characters."""
    letters = {letter for text in texts for letter in text if not letter.isspace()}
    families = ["DejaVu Sans"]
    missing = missing_letters(font_manager.findfont("DejaVu Sans"), letters)
    installed = {font.name: font.fname for font in font_manager.fontManager.ttflist}
    for family in CJK_FAMILIES:
        if missing and family in installed:
            still_missing = missing_letters(installed[family], missing)
            if still_missing != missing:
                families.append(family)
                missing = still_missing
    return families, not missing


def missing_letters(path: str, letters: set[str]) -> set[str]:
    """Return the letters that a font file does not have."""
    font = font_manager.get_font(path)
    return {letter for letter in letters if not font.get_char_index(ord(letter))}


def label_with_unit(label: str, unit: str | None) -> str:
    """Return ``Weed cover (%)``; a unit that the label already contains is not repeated."""
    if not unit or f"({unit})" in label or f"[{unit}]" in label:
        return superscript(label)
    return superscript(f"{label} ({unit})" if label else f"({unit})")


def superscript(text: str) -> str:
    """Write ``m^2`` as ``m²`` and ``ha^-1`` as ``ha⁻¹``."""
    return re.sub(r"\^(-?\d+)", lambda found: found[1].translate(_RAISED), text)


def number_format(values: Iterable[float]) -> Callable[[float], str]:
    """Return a formatter with equal decimals for all values, enough for three digits of the largest."""
    listed = list(values)
    largest = max(map(abs, listed), default=0.0)
    if largest >= 1e9 or 0 < largest < 1e-4:
        return lambda value: f"{value:.3g}".replace("-", MINUS)
    most = max(0, 2 - math.floor(math.log10(largest))) if largest else 0
    needed = (
        places
        for places in range(most)
        if all(abs(value - round(value, places)) < 1e-12 for value in listed)
    )
    decimals = next(needed, most)
    separator = "," if largest >= 1e4 else ""
    return lambda value: f"{value:{separator}.{decimals}f}".replace("-", MINUS)


def short_text(text: str, longest: int) -> str:
    """Return ``text``, shortened with an ellipsis if it is longer than ``longest`` characters."""
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def width(text: str) -> int:
    """Return the width of ``text`` in Latin letters; a Chinese character counts as two."""
    return sum(2 if ord(letter) > 0x2E7F else 1 for letter in text)


def wrap_text(text: str, longest: int) -> str:
    """Wrap ``text`` to lines of at most ``longest`` Latin letters, at spaces and between Chinese characters."""
    lines = [""]
    for word in re.findall(r"[\u2e80-\uffef]|[^\s\u2e80-\uffef]+|\s+", text):
        if lines[-1].strip() and width(lines[-1]) + width(word) > longest:
            lines.append("")
        lines[-1] += word
    return "\n".join(line.strip() for line in lines)


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000", "#8C8C8C")
LINE_STYLES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
HATCHES = ("", "///", "...", "xx", "\\\\\\", "++", "oo")
MOST_ANNOTATED_POINTS = 40
MOST_ANNOTATED_CELLS = 400
DPI = 120
STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#666666",
    "axes.formatter.limits": (-4, 9),
    "axes.formatter.useoffset": False,
    "axes.labelcolor": "#222222",
    "axes.labelsize": 11,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.unicode_minus": True,
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.1,
    "figure.constrained_layout.w_pad": 0.1,
    "figure.dpi": DPI,
    "font.size": 10.5,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.8,
    "hatch.linewidth": 0.6,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "savefig.dpi": DPI,
    "svg.fonttype": "none",
    "svg.hashsalt": "agrotools",
    "text.parse_math": False,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
}


@dataclass
class Sheet:
    """State shared by the drawing functions."""

    spec: PlotSpec
    data: "PlotData"
    figure: Figure
    axes: "Axes"
    annotate: bool
    y_limits: Sequence[float] | None
    horizontal: bool = False
    flags: list[str] = field(default_factory=list)

    def flag(self, name: str) -> None:
        if name not in self.flags:
            self.flags.append(name)

    def styles(self) -> Iterator[tuple[PlotSeries, str, str, str]]:
        """Yield each series with its colour, line style and marker."""
        for index, series in enumerate(self.spec.series):
            style = LINE_STYLES[index // len(COLOURS) % len(LINE_STYLES)]
            yield series, COLOURS[index % len(COLOURS)], style, MARKERS[index % len(MARKERS)]


def figure_size(spec: PlotSpec) -> tuple[float, float]:
    """Return width and height of a figure, inches, with room for the labels of horizontal bars and heatmaps."""
    if spec.kind == "heatmap":
        columns, rows = len(spec.series[0].x), len(spec.series)
        return min(14.0, max(6.5, 2.5 + 0.55 * columns)), min(14.0, max(4.0, 1.6 + 0.42 * rows))
    if is_horizontal(spec):
        bars = len(categories(spec)) * (len(spec.series) if spec.kind == "grouped_bar" else 1)
        if spec.kind == "box":
            bars = len(spec.series)
        return 8.0, min(16.0, max(4.5, 1.4 + 0.26 * bars + 0.12 * len(categories(spec))))
    return 8.0, 5.0


def categories(spec: PlotSpec) -> list[str | float]:
    """Return all distinct x of all series (for box plots their names), in order of appearance."""
    if spec.kind == "box":
        return [series.name for series in spec.series]
    return list(dict.fromkeys(x for series in spec.series for x in series.x))


def is_horizontal(spec: PlotSpec) -> bool:
    """True if bars are horizontal, since vertical ones would need slanted labels; never for numbers."""
    if spec.kind not in ("bar", "grouped_bar", "box"):
        return False
    labels = categories(spec)
    if not all(isinstance(label, str) for label in labels):
        return False
    longest = max(width(str(label)) for label in labels)
    return longest * len(labels) > 84 and (longest > 4 or len(labels) > 30) and len(labels) > 3


def category_positions(
    spec: PlotSpec, *, always: bool = False
) -> tuple[dict[str | float, int], list[str] | None]:
    """Return the positions of categories on their axis, and their names, or None for numbers on a numeric axis."""
    names = categories(spec)
    positions = {category: index for index, category in enumerate(names)}
    if not always and not isinstance(names[0], str):
        return positions, None
    return positions, [x if isinstance(x, str) else f"{x:.10g}" for x in names]


def finish(sheet: Sheet, labels: list[str] | None, value_label: str | None = None) -> None:
    """Add axis names, category names, limits and legend."""
    axes, spec = sheet.axes, sheet.spec
    category_axis, value_axis = (
        (axes.yaxis, axes.xaxis) if sheet.horizontal else (axes.xaxis, axes.yaxis)
    )
    category_axis.set_label_text(label_with_unit(spec.x_label, spec.x_unit))
    value_axis.set_label_text(
        label_with_unit(spec.y_label if value_label is None else value_label, spec.y_unit)
    )
    if labels is None:
        _number_axis(sheet)
    else:
        names = [
            wrap_text(superscript(short_text(label, 60)), 34 if sheet.horizontal else 14)
            for label in labels
        ]
        category_axis.set_ticks(range(len(names)), names)
        category_axis.set_tick_params(length=0)
        if (
            len(names) < 4 and not sheet.horizontal
        ):  # keep one to three bars from filling the whole width
            room = 0.5 + (4 - len(names)) * 0.35
            axes.set_xlim(-room, len(names) - 1 + room)
    if sheet.y_limits:
        low, high = sheet.y_limits
        (axes.set_xlim if sheet.horizontal else axes.set_ylim)(low, high)
        y_values = [y for series in spec.series for y in series.y]
        y_values += [y for values in sheet.data.outliers.values() for y in values]
        if min(y_values) < low or max(y_values) > high:
            sheet.flag("data_outside_limits")
    if spec.legend:
        _legend(sheet)


def _number_axis(sheet: Sheet) -> None:
    """Set ticks at the values of x if a line has few, well separated ones, else at round numbers."""
    axis = sheet.axes.xaxis
    x = sorted({float(x) for series in sheet.spec.series for x in series.x})
    if all(value.is_integer() for value in x):
        axis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    if (
        sheet.spec.kind == "line"
        and len(x) <= 12
        and all(b - a >= (x[-1] - x[0]) / 20 for a, b in pairwise(x))
    ):
        axis.set_ticks(x)


def _legend(sheet: Sheet) -> None:
    """Draw the legend above the axes if the names fit in one line, else on the right."""
    handles, names = sheet.axes.get_legend_handles_labels()
    if len(names) <= 4 and sum(map(width, names)) <= 64:
        sheet.axes.legend(
            handles, names, loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=len(names)
        )
        return
    sheet.figure.legend(
        handles,
        [short_text(name, 36) for name in names],
        loc="outside right upper",
        ncols=1 if len(names) <= 26 else 2,
        fontsize=10 if len(names) <= 20 else 7,
    )


def fit_labels(sheet: Sheet) -> None:
    """Rotate overlapping names of the x axis, and thin them out if they still overlap."""
    if sheet.spec.kind == "pie" or sheet.horizontal:
        return
    axis = sheet.axes.xaxis
    for rotation in (0, 35, 90):
        for label in axis.get_ticklabels():
            label.set_rotation(rotation)
            label.set_rotation_mode("anchor" if rotation == 35 else "default")
            label.set_horizontalalignment("right" if rotation == 35 else "center")
        if not _touch(sheet, rotation):
            return
    ticks, names = list(axis.get_ticklocs()), [label.get_text() for label in axis.get_ticklabels()]
    step = 1
    while step < len(ticks) and _touch(sheet, 90):
        step += 1
        axis.set_ticks(ticks[::step], names[::step])
    sheet.flag("labels_thinned")


def _touch(sheet: Sheet, rotation: int) -> bool:
    sheet.figure.draw_without_rendering()
    labels = [
        label
        for label in sheet.axes.xaxis.get_ticklabels()
        if label.get_text() and label.get_visible()
    ]
    boxes = [label.get_window_extent() for label in labels]
    if rotation == 35:  # slanted labels need space for their height, not for their length
        starts = [box.x1 for box in boxes]
        return any(b - a < 16 * DPI / 72 for a, b in pairwise(starts))
    return any(b.x0 - a.x1 < 12 for a, b in pairwise(boxes))
