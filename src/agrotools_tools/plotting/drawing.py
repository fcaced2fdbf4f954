"""Drawing of a specification with matplotlib; equal specifications give identical files."""

import io
import math
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import matplotlib
import numpy as np
from matplotlib import patheffects
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from agrotools.core import PlotSpec
from agrotools_tools.plotting.sheet import (
    COLOURS,
    HATCHES,
    MOST_ANNOTATED_CELLS,
    MOST_ANNOTATED_POINTS,
    STYLE,
    Sheet,
    category_positions,
    figure_size,
    finish,
    fit_labels,
    font_families,
    is_horizontal,
    label_with_unit,
    number_format,
    short_text,
    superscript,
    wrap_text,
)

if TYPE_CHECKING:
    from agrotools_tools.plotting.tool import PlotData

_HALO = patheffects.withStroke(linewidth=2.5, foreground="white")
_LETTERS_ACROSS = 88
"""Number of characters of annotation size that fit across a vertical figure."""


def annotate_bars(sheet: Sheet, bars: Any, count: int) -> None:
    """Write values at the ends of bars, rotated if the bars are thin, or omit them if the bars are too thin."""
    say = number_format(value for series in sheet.spec.series for value in series.y)
    texts = [say(value) for value in bars.datavalues]
    if sheet.horizontal:
        sheet.axes.bar_label(bars, texts, padding=3, fontsize=8.5)
        return
    room = _LETTERS_ACROSS / max(count, 1)
    if room >= max(map(len, texts)):
        sheet.axes.bar_label(bars, texts, padding=2, fontsize=9)
    elif room >= 1.6:
        sheet.axes.bar_label(bars, texts, padding=3, fontsize=8, rotation=90)
        sheet.axes.margins(y=0.2)
    else:
        sheet.flag("annotations_left_out")


def annotate_points(sheet: Sheet, positions: dict[str | float, int] | None) -> None:
    """Write values next to points: at each x, above the points of the upper half of the series, else below."""
    if not sheet.annotate:
        return
    if sum(len(series.x) for series in sheet.spec.series) > MOST_ANNOTATED_POINTS:
        sheet.flag("annotations_left_out")
        return
    say = number_format(value for series in sheet.spec.series for value in series.y)
    columns: defaultdict[str | float, list[float]] = defaultdict(list)
    for series in sheet.spec.series:
        for x, y in zip(series.x, series.y, strict=True):
            columns[x].append(y)
    for x, values in columns.items():
        for rank, y in enumerate(sorted(values)):
            below = rank < len(values) // 2
            sheet.axes.annotate(
                say(y),
                (positions[x] if positions else float(x), y),
                (0, -7 if below else 6),
                textcoords="offset points",
                ha="center",
                va="top" if below else "bottom",
                fontsize=9,
                path_effects=[_HALO],
            )


def annotate_medians(sheet: Sheet) -> None:
    """Write the median next to each vertical box, or after the whisker of each horizontal box."""
    say = number_format(series.y[2] for series in sheet.spec.series)
    for index, series in enumerate(sheet.spec.series):
        median, end = series.y[2], series.y[4]
        sheet.axes.annotate(
            f"median {say(median)}" if sheet.horizontal else say(median),
            (end, index) if sheet.horizontal else (index + 0.29, median),
            (5, 0) if sheet.horizontal else (3, 0),
            textcoords="offset points",
            ha="left",
            va="center",
            fontsize=9,
            path_effects=[_HALO],
        )
    if sheet.horizontal:
        sheet.axes.margins(x=0.2)


LIGHT_COLOURS = ("#E69F00", "#56B4E9", "#CC79A7", "#8C8C8C")
"""Colours on which black text is easier to read than white."""
SMALLEST_LABELLED_SLICE = 4.0
"""Smallest slice, in percent, that is labelled in the pie; the shares of smaller ones are in the legend."""


def draw(
    spec: PlotSpec,
    data: "PlotData",
    *,
    y_limits: Sequence[float] | None,
    annotate: bool,
    fmt: Literal["png", "svg"],
) -> tuple[bytes, list[str]]:
    """Draw the figure and return the content of the file, and flags.

    Flags are ``glyphs_missing``, ``annotations_left_out``, ``labels_thinned``, ``data_outside_limits`` and
    ``truncated_axis``.
    """
    families, complete = font_families(texts(spec))
    with matplotlib.rc_context({**STYLE, "font.family": families}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Glyph.*missing")
        figure = Figure(figsize=figure_size(spec))
        FigureCanvasAgg(figure)
        sheet = Sheet(spec, data, figure, figure.add_subplot(), annotate, y_limits)
        if not complete:
            sheet.flag("glyphs_missing")
        _DRAWERS[spec.kind](sheet)
        if spec.title:
            title = wrap_text(superscript(spec.title), int(8.2 * figure.get_figwidth()))
            figure.suptitle(title, x=0.02, ha="left", fontsize=13, fontweight="bold")
        fit_labels(sheet)
        buffer = io.BytesIO()
        metadata = {"Software": None} if fmt == "png" else {"Date": None, "Creator": None}
        figure.savefig(buffer, format=fmt, metadata=metadata)
    return buffer.getvalue(), sheet.flags


def texts(spec: PlotSpec) -> list[str]:
    texts = [spec.title, spec.x_label, spec.y_label, spec.x_unit or "", spec.y_unit or ""]
    for series in spec.series:
        texts += [series.name, *(x for x in series.x if isinstance(x, str))]
    return [superscript(text) for text in texts]


def _draw_line(sheet: Sheet) -> None:
    axes, spec = sheet.axes, sheet.spec
    positions, labels = category_positions(spec)
    most = max(len(series.x) for series in spec.series)
    for series, colour, style, marker in sheet.styles():
        axes.plot(
            [positions[x] if labels else x for x in series.x],
            series.y,
            color=colour,
            linestyle=style,
            linewidth=2,
            marker=marker if most <= MOST_ANNOTATED_POINTS else None,
            markersize=5.5,
            label=superscript(series.name),
        )
    axes.grid(axis="both" if not labels else "y")
    axes.margins(x=0.03, y=0.08)
    finish(sheet, labels)
    annotate_points(sheet, positions if labels else None)


def _draw_scatter(sheet: Sheet) -> None:
    many = sum(len(series.x) for series in sheet.spec.series) > 500
    for series, colour, _, marker in sheet.styles():
        sheet.axes.scatter(
            [float(x) for x in series.x],
            series.y,
            s=14 if many else 36,
            color=colour,
            alpha=0.6 if many else 0.85,
            marker=marker,
            edgecolors="white",
            linewidths=0.3 if many else 0.6,
            label=superscript(series.name),
        )
    sheet.axes.grid(axis="both")
    sheet.axes.margins(0.05)
    finish(sheet, None)
    annotate_points(sheet, None)


def _draw_bars(sheet: Sheet) -> None:
    axes, spec = sheet.axes, sheet.spec
    sheet.horizontal = is_horizontal(spec)
    positions, labels = category_positions(spec, always=True)
    count = len(spec.series)
    thickness = 0.8 / count
    for index, (series, colour, _, _) in enumerate(sheet.styles()):
        at = [positions[x] + (index - (count - 1) / 2) * thickness for x in series.x]
        look: dict[str, Any] = {
            "color": colour,
            "edgecolor": "white",
            "linewidth": 0.8 if count * len(positions) < 80 else 0,
            "hatch": HATCHES[(index // len(COLOURS)) % len(HATCHES)],
            "label": superscript(series.name),
        }
        if sheet.horizontal:
            bars = axes.barh(at, series.y, height=thickness * 0.95, **look)
        else:
            bars = axes.bar(at, series.y, width=thickness * 0.95, **look)
        if sheet.annotate:
            annotate_bars(sheet, bars, len(positions) * count)
    axes.grid(axis="x" if sheet.horizontal else "y")
    if any(value < 0 for series in spec.series for value in series.y):
        (axes.axvline if sheet.horizontal else axes.axhline)(0, color="#444444", linewidth=0.9)
    if sheet.horizontal:
        axes.invert_yaxis()
        axes.margins(y=0.02, x=0.12 if sheet.annotate else 0.05)
    else:
        axes.margins(x=0.02, y=0.12 if sheet.annotate else 0.05)
    if sheet.y_limits and not sheet.y_limits[0] <= 0 <= sheet.y_limits[1]:
        sheet.flag("truncated_axis")
    finish(sheet, labels)


def _draw_histogram(sheet: Sheet) -> None:
    axes, spec, width = sheet.axes, sheet.spec, sheet.data.bin_width or 1.0
    several = len(spec.series) > 1
    for index, (series, colour, _, _) in enumerate(sheet.styles()):
        bars = axes.bar(
            [float(x) for x in series.x],
            series.y,
            width=width,
            color=to_rgba(colour, 0.35 if several else 1),
            edgecolor=colour if several else "white",
            linewidth=1.4 if several else 0.7,
            hatch=HATCHES[index % len(HATCHES)] if several else None,
            label=superscript(series.name),
        )
        if sheet.annotate:
            annotate_bars(sheet, bars, max(len(series.x), 1) * (2 if several else 1))
    axes.grid(axis="y")
    axes.margins(x=0.02, y=0.12 if sheet.annotate else 0.05)
    if all(float(y).is_integer() for series in spec.series for y in series.y):
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    finish(sheet, None, value_label=spec.y_label or "Count")


def _draw_pie(sheet: Sheet) -> None:
    series, unit = sheet.spec.series[0], sheet.spec.y_unit
    total = math.fsum(series.y)
    shares = [100 * value / total for value in series.y]
    colours = [COLOURS[index % len(COLOURS)] for index in range(len(shares))]
    wedges = sheet.axes.pie(
        series.y,
        colors=colours,
        startangle=90,
        counterclock=False,
        hatch=[HATCHES[(index // len(COLOURS)) % len(HATCHES)] for index in range(len(shares))],
        wedgeprops={"edgecolor": "white", "linewidth": 1.2},
    )[0]
    sheet.axes.set(xlim=(-1.03, 1.03), ylim=(-1.03, 1.03))
    for wedge, share, colour in zip(wedges, shares, colours, strict=True):
        if share >= SMALLEST_LABELLED_SLICE:
            angle = math.radians((wedge.theta1 + wedge.theta2) / 2)
            at = (0.7 * math.cos(angle), 0.7 * math.sin(angle))
            halo = patheffects.withStroke(linewidth=3, foreground=colour)
            ink = "black" if colour in LIGHT_COLOURS else "white"
            sheet.axes.text(
                *at,
                f"{share:.1f} %",
                ha="center",
                va="center",
                color=ink,
                fontsize=10,
                path_effects=[halo],
            )
    say, mark = number_format(series.y), f" {superscript(unit)}" if unit else ""
    names: list[str] = []
    for name, value, share in zip(_short_names(series.x), series.y, shares, strict=True):
        value_text = f": {say(value)}{mark}" if sheet.annotate else ""
        is_small = share < SMALLEST_LABELLED_SLICE and not (sheet.annotate and unit == "%")
        names.append(name + value_text + (f" ({share:.1f} %)" if is_small else ""))
    sheet.figure.legend(
        wedges,
        names,
        loc="outside right center",
        ncols=1 if len(names) <= 20 else 2,
        fontsize=10 if len(names) <= 16 else 8.5 if len(names) <= 20 else 7,
        title=label_with_unit(sheet.spec.y_label, unit) or None,
        alignment="left",
    )


def _short_names(values: Iterable[str | float]) -> list[str]:
    return [
        superscript(short_text(value if isinstance(value, str) else f"{value:g}", 40))
        for value in values
    ]


def _draw_boxes(sheet: Sheet) -> None:
    axes, spec = sheet.axes, sheet.spec
    sheet.horizontal = is_horizontal(spec)
    parts = ("whislo", "q1", "med", "q3", "whishi")
    outliers = sheet.data.outliers
    stats = [
        dict(zip(parts, each.y, strict=True), fliers=outliers.get(each.name, ()))
        for each in spec.series
    ]
    boxes = axes.bxp(
        stats,
        positions=range(len(stats)),
        widths=0.55,
        orientation="horizontal" if sheet.horizontal else "vertical",
        patch_artist=True,
        medianprops={"color": "black", "linewidth": 1.8},
        whiskerprops={"color": "#444444"},
        capprops={"color": "#444444"},
        flierprops={
            "marker": "o",
            "markersize": 4,
            "markerfacecolor": "none",
            "markeredgecolor": "#666666",
        },
    )
    for index, box in enumerate(boxes["boxes"]):
        box.set_facecolor(to_rgba(COLOURS[index % len(COLOURS)], 0.55))
        box.set_edgecolor("#444444")
    axes.grid(axis="x" if sheet.horizontal else "y")
    if sheet.horizontal:
        axes.invert_yaxis()
    finish(sheet, [series.name for series in spec.series])
    if sheet.annotate:
        annotate_medians(sheet)


def _draw_heatmap(sheet: Sheet) -> None:
    axes, spec = sheet.axes, sheet.spec
    values = np.array([series.y for series in spec.series])
    limits = sheet.y_limits or (float(values.min()), float(values.max()))
    mesh = axes.pcolormesh(
        values, cmap="viridis", vmin=limits[0], vmax=limits[1], edgecolors="white", linewidth=0.5
    )
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    labels, names = (
        _short_names(spec.series[0].x),
        _short_names(series.name for series in spec.series),
    )
    axes.set_xticks([index + 0.5 for index in range(len(labels))], labels)
    axes.set_yticks([index + 0.5 for index in range(len(names))], names)
    axes.set_xlabel(label_with_unit(spec.x_label, spec.x_unit))
    bar = sheet.figure.colorbar(mesh, ax=axes, pad=0.02)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    bar.set_label(label_with_unit(spec.y_label, spec.y_unit))
    if values.min() < limits[0] or values.max() > limits[1]:
        sheet.flag("data_outside_limits")
    if sheet.annotate and values.size > MOST_ANNOTATED_CELLS:
        sheet.flag("annotations_left_out")
    elif sheet.annotate:
        middle = sum(limits) / 2
        size = 9 if values.shape[1] <= 14 else 7
        say = number_format(values.ravel().tolist())
        for (row, column), value in np.ndenumerate(values):
            ink = "black" if value > middle else "white"
            axes.text(
                column + 0.5,
                row + 0.5,
                say(float(value)),
                ha="center",
                va="center",
                color=ink,
                fontsize=size,
            )


_DRAWERS = {
    "line": _draw_line,
    "bar": _draw_bars,
    "grouped_bar": _draw_bars,
    "scatter": _draw_scatter,
    "hist": _draw_histogram,
    "pie": _draw_pie,
    "box": _draw_boxes,
    "heatmap": _draw_heatmap,
}
