"""Values written beside what shows them."""

from collections import defaultdict
from typing import Any

from matplotlib import patheffects

from agrotools.tools.analytics.sheet import MOST_ANNOTATED_POINTS, Sheet
from agrotools.tools.analytics.text_on_figures import number_format

_HALO = patheffects.withStroke(linewidth=2.5, foreground="white")
_LETTERS_ACROSS = 88
"""Letters of the annotation's size that find room beside each other on an upright figure."""


def annotate_bars(sheet: Sheet, bars: Any, count: int) -> None:
    """Values at the ends of bars, upright where bars are too thin for them to lie; none where even that fails."""
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
    """Values beside points: at each x the upper half of the series above its points, the lower half below."""
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
    """The median of each box: beside an upright box, behind the whisker of one that lies."""
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
