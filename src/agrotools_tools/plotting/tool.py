"""Plots from data and a declarative description, without running code."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from agrotools.calling.contract import Agree, ToolResult, tool
from agrotools.calling.workspace import save_artifact
from agrotools.core import Artifact, PlotKind, PlotSeries, PlotSpec, ToolError
from agrotools.core.libraries import DRAWING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


MOST_SERIES = 50
MOST_POINTS = 10_000
MOST_BINS = 50
LARGEST = 1e100
BOX_PARTS = ("lower whisker", "first quartile", "median", "third quartile", "upper whisker")
"""Values of ``x`` for a box plot in the canonical specification."""

X = Sequence[str | float] | None
InputSeries = tuple[str, X, Sequence[float]]


@dataclass(frozen=True)
class PlotData:
    """Data of a figure. ``summarised``: points for the summary, raw values for box plots, else the points drawn."""

    kind: PlotKind
    series: tuple[PlotSeries, ...]
    summarised: list[tuple[str, tuple[str | float, ...] | None, tuple[float, ...]]]
    notes: tuple[str, ...] = ()
    bin_width: float | None = None
    outliers: dict[str, tuple[float, ...]] = field(default_factory=dict)


def prepare_data(
    kind: PlotKind,
    input_series: Sequence[InputSeries],
    faults: list[str],
) -> PlotData | None:
    """Return the data of a figure, or None if it is invalid; the reasons are added to ``faults``."""
    _check(kind, input_series, faults)
    if faults:
        return None
    if kind == "box":
        return _boxes(input_series)
    if kind == "hist":
        return _histogram(input_series)
    series = [
        PlotSeries(name=name, x=tuple(range(1, len(y) + 1)) if x is None else tuple(x), y=tuple(y))
        for name, x, y in input_series
    ]
    notes: tuple[str, ...] = ()
    if kind in ("bar", "grouped_bar"):
        kind = "grouped_bar" if len(series) > 1 else "bar"
    if kind == "line" and any(x is None for _, x, _ in input_series):
        notes = ("x was not given: values are numbered from 1",)
    return PlotData(kind, tuple(series), [(each.name, each.x, each.y) for each in series], notes)


def _check(kind: PlotKind, input_series: Sequence[InputSeries], faults: list[str]) -> None:
    if len({name for name, _, _ in input_series}) < len(input_series):
        faults.append("series[].name must differ from series to series")
    if kind == "pie" and len(input_series) > 1:
        faults.append("series[1] is one too many: a pie has one series")
    types: set[str] = set()
    for index, (name, x, y) in enumerate(input_series):
        where = f"series[{index}] ({name})" if name else f"series[{index}]"
        if not y:
            faults.append(f"{where} has no values in y")
        elif x is not None and len(x) != len(y):
            faults.append(f"{where} has {len(x)} x and {len(y)} y: there must be one x for each y")
        elif x is None and kind not in ("line", "hist", "box"):
            faults.append(f"{where} has no x: {kind} needs one x for each y")
        elif x is not None:
            _check_x(kind, where, x, y, types, faults)
        if any(
            abs(value) > LARGEST
            for value in (*y, *(value for value in x or () if not isinstance(value, str)))
        ):
            faults.append(f"{where} has values beyond {LARGEST:g}")
        if kind == "pie" and (any(value < 0 for value in y) or not sum(y) > 0):
            faults.append(
                f"{where} must have no negative y and a positive sum: slices are shares of a whole"
            )
    if len(types) > 1:
        faults.append(
            "series[].x mixes categories and numbers: use text everywhere, or numbers everywhere"
        )
    if kind == "heatmap" and len({tuple(x) for _, x, _ in input_series if x is not None}) > 1:
        faults.append("series[].x must be the same in every row of a heatmap")


def _check_x(
    kind: PlotKind,
    where: str,
    x: Sequence[str | float],
    y: Sequence[float],
    types: set[str],
    faults: list[str],
) -> None:
    here = {"categories" if isinstance(value, str) else "numbers" for value in x}
    types |= here
    if len(here) > 1:
        return
    if kind == "box":
        faults.append(f"{where} has x: a box is drawn from y alone, one for each series")
    if kind in ("scatter", "hist") and here == {"categories"}:
        other = "bar or line" if kind == "scatter" else "bar"
        faults.append(
            f"{where} has categories in x: {kind} needs numbers; for categories use {other}"
        )
    elif kind == "hist" and (any(value < 0 for value in y) or sorted(set(x), key=float) != list(x)):
        faults.append(
            f"{where} must have rising bin centres in x and counts in y, or raw values in y and no x"
        )
    from agrotools.text.agreement_values import category

    spellings: defaultdict[str | float | None, list[str | float]] = defaultdict(list)
    for value in x:
        spellings[category(value)].append(value)
    repeated = next((alike for alike in spellings.values() if len(alike) > 1), None)
    if repeated and kind not in ("scatter", "hist"):
        written = " and ".join(dict.fromkeys(map(repr, repeated)))
        faults.append(f"{where} has {written} more than once in x")


def _histogram(input_series: Sequence[InputSeries]) -> PlotData:
    """Count raw values in bins shared by all series, or use given counts over bin centres."""
    import numpy as np

    if any(x is not None for _, x, _ in input_series):
        series = tuple(
            PlotSeries(name=name, x=tuple(x or ()), y=tuple(y)) for name, x, y in input_series
        )
        centres = sorted({float(x) for each in series for x in each.x})
        width = min((b - a for a, b in pairwise(centres)), default=1.0)
        return PlotData(
            "hist", series, [(each.name, each.x, each.y) for each in series], bin_width=width
        )
    pooled = np.concatenate([np.asarray(y, float) for _, _, y in input_series])
    start, width, bins = _bins(pooled)
    centres = tuple(float(f"{start + (number + 0.5) * width:.6g}") for number in range(bins))
    edges = start + width * np.arange(bins + 1)
    edges[-1] = max(edges[-1], float(pooled.max()))
    counted = [(name, np.histogram(y, edges)[0].tolist()) for name, _, y in input_series]
    series = tuple(PlotSeries(name=name, x=centres, y=tuple(counts)) for name, counts in counted)
    note = f"{len(pooled)} values counted in {bins} bins of width {width:.4g}"
    return PlotData(
        "hist", series, [(each.name, each.x, each.y) for each in series], (note,), width
    )


def _bins(values: "NDArray[np.float64]") -> tuple[float, float, int]:
    """Return the start, width and number of bins.

    Whole numbers get a bin each if they span less than 50. Otherwise the number of bins is the larger of those by
    Freedman and Diaconis (1981) and Sturges (1926), at most 50.
    """
    import numpy as np

    low, high = float(values.min()), float(values.max())
    if bool(np.all(values == np.round(values))) and high - low < MOST_BINS:
        return low - 0.5, 1.0, int(high - low) + 1
    first, third = np.percentile(values, (25, 75))
    finest = 2 * float(third - first) / len(values) ** (1 / 3)
    bins = math.ceil(math.log2(len(values))) + 1
    if finest > (high - low) / MOST_BINS:
        bins = max(bins, math.ceil((high - low) / finest))
    elif finest > 0:
        bins = MOST_BINS
    if high == low:
        return low - 0.5, 1.0, 1
    return low, (high - low) / bins, bins


def _boxes(input_series: Sequence[InputSeries]) -> PlotData:
    """Compute box plots: quartiles by linear interpolation, whiskers to the last value within 1.5 IQR (Tukey)."""
    import numpy as np

    series: list[PlotSeries] = []
    outliers: dict[str, tuple[float, ...]] = {}
    for name, _, y in input_series:
        values = np.sort(np.asarray(y, float))
        first, median, third = (float(value) for value in np.percentile(values, (25, 50, 75)))
        reach = 1.5 * (third - first)
        inside = values[(values >= first - reach) & (values <= third + reach)]
        low, high = min(float(inside[0]), first), max(float(inside[-1]), third)
        series.append(PlotSeries(name=name, x=BOX_PARTS, y=(low, first, median, third, high)))
        outliers[name] = tuple(float(value) for value in values if not low <= value <= high)
    note = "whiskers end at the last value within 1.5 interquartile ranges; points beyond are drawn singly"
    return PlotData(
        "box",
        tuple(series),
        [(name, None, tuple(y)) for name, _, y in input_series],
        (note,),
        None,
        outliers,
    )


class SeriesData(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=120)]
    x: list[Annotated[str, Field(max_length=120)] | FiniteFloat] | None = None
    y: list[FiniteFloat]


class SeriesSummary(BaseModel):
    """One series as it was drawn."""

    name: str
    n_points: int
    max: float
    argmax: str | float | None
    """the x where y is largest (null for box)"""
    min: float
    argmin: str | float | None
    range: float
    """max - min"""


class PlotSummary(BaseModel):
    n_series: int
    series: tuple[SeriesSummary, ...]


class Plot(ToolResult):
    spec: PlotSpec
    """what was drawn, as data"""
    summary: PlotSummary
    figure: Artifact


@tool(
    category="analytics",
    version="1",
    significant_digits=12,
    expert=("y_limits", "annotate", "fmt"),
    example={
        "kind": "bar",
        "series": [{"name": "yield", "x": ["north", "south"], "y": [4.2, 5.1]}],
    },
    libraries=DRAWING,
)
def plot(
    kind: Annotated[PlotKind, Agree("choice")],
    series: Annotated[
        list[SeriesData], Agree("chart"), Field(min_length=1, max_length=MOST_SERIES)
    ],
    title: Annotated[str, Agree("presentation"), Field(max_length=200)] = "",
    x_label: Annotated[str, Agree("presentation"), Field(max_length=100)] = "",
    y_label: Annotated[str, Agree("presentation"), Field(max_length=100)] = "",
    x_unit: Annotated[str | None, Agree("presentation"), Field(max_length=30)] = None,
    y_unit: Annotated[str | None, Agree("presentation"), Field(max_length=30)] = None,
    y_limits: Annotated[
        list[FiniteFloat] | None, Agree("presentation"), Field(min_length=2, max_length=2)
    ] = None,
    annotate: Annotated[bool, Agree("presentation")] = False,
    fmt: Annotated[Literal["png", "svg"], Agree("presentation")] = "png",
) -> Plot:
    """Draw a figure from values and return its data.

    pie: one series, x names the slices. hist, box: raw values in y, no x; hist also bin centres in x and counts in y.
    heatmap: a series is a row, x names the columns.

    Raises:
        ToolError: ``invalid_argument`` for x and y of unequal length, an empty series, NaN or infinity, x that mixes
            categories and numbers, negative slices, more than 50 series or 10,000 points.
    """
    faults: list[str] = []
    if y_limits is not None and not y_limits[0] < y_limits[1]:
        raise ToolError(
            "invalid_argument", f"y_limits must rise, is {y_limits}", argument="y_limits"
        )
    if sum(len(each.y) for each in series) > MOST_POINTS:
        faults.append(f"series hold more than {MOST_POINTS:,} points")
    data = (
        None
        if faults
        else prepare_data(kind, [(each.name, each.x, each.y) for each in series], faults)
    )
    if data is None:
        hint = "draw fewer points" if not faults[0].startswith("series[") else None
        raise ToolError("invalid_argument", "; ".join(faults), argument="series", hint=hint)
    spec = PlotSpec(
        kind=data.kind,
        series=data.series,
        title=title.strip(),
        x_label=x_label.strip(),
        y_label=y_label.strip(),
        x_unit=x_unit,
        y_unit=y_unit,
        legend=data.kind == "pie" or (len(data.series) > 1 and data.kind not in ("box", "heatmap")),
    )

    from agrotools_tools.plotting.drawing import draw

    content, flags = draw(spec, data, y_limits=y_limits, annotate=annotate, fmt=fmt)
    return Plot(
        spec=spec,
        summary=PlotSummary(
            n_series=len(data.series), series=tuple(map(_summary, data.summarised))
        ),
        figure=save_artifact(f"plot.{fmt}", "plot", content),
        notes=data.notes,
        flags=tuple(flags),
    )


def _summary(
    series: tuple[str, tuple[str | float, ...] | None, tuple[float, ...]],
) -> SeriesSummary:
    name, x, y = series
    top, bottom = y.index(max(y)), y.index(min(y))
    return SeriesSummary(
        name=name,
        n_points=len(y),
        max=y[top],
        argmax=x[top] if x else None,
        min=y[bottom],
        argmin=x[bottom] if x else None,
        range=y[top] - y[bottom],
    )
