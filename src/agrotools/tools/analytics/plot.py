"""Plot generation: figures from data and a declarative description, never from code."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from agrotools.core import Artifact, PlotKind, PlotSpec, ToolError
from agrotools.tools.analytics.plot_data import MOST_POINTS, MOST_SERIES, drawn_data
from agrotools.tools.contract import Agree, ToolResult, tool
from agrotools.tools.workspace import save_artifact

Sort = Literal["none", "asc", "desc"]


class SeriesData(BaseModel):
    """One series as it is given."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    name: Annotated[str, Field(max_length=120)]
    """what the series is, for the legend"""
    x: list[Annotated[str, Field(max_length=120)] | FiniteFloat] | None = None
    """categories or numbers, one for each y; left out for hist (of raw values) and box"""
    y: list[FiniteFloat]
    """the values"""


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


@tool(category="analytics", version="1", significant_digits=12)
def plot(
    kind: Annotated[PlotKind, Agree("choice"), Field(description="kind of figure")],
    series: Annotated[
        list[SeriesData],
        Agree("chart"),
        Field(min_length=1, max_length=MOST_SERIES, description="what to draw, a name and values for each series"),
    ],
    title: Annotated[str, Agree("presentation"), Field(max_length=200, description="what the figure shows")] = "",
    x_label: Annotated[str, Agree("presentation"), Field(max_length=100, description="quantity on the x axis")] = "",
    y_label: Annotated[str, Agree("presentation"), Field(max_length=100, description="quantity of the values")] = "",
    x_unit: Annotated[str | None, Agree("presentation"), Field(max_length=30, description="unit of x")] = None,
    y_unit: Annotated[str | None, Agree("presentation"), Field(max_length=30, description="unit of the values")] = None,
    y_limits: Annotated[
        list[FiniteFloat] | None,
        Agree("presentation"),
        Field(min_length=2, max_length=2, description="lower and upper end of the value axis"),
    ] = None,
    annotate: Annotated[bool, Agree("presentation"), Field(description="write the values into the figure")] = False,
    sort: Annotated[
        Sort, Agree("presentation"), Field(description="order categories by value, or numeric x by itself")
    ] = "none",
    fmt: Annotated[Literal["png", "svg"], Agree("presentation"), Field(description="file format")] = "png",
) -> Plot:
    """Draw a figure from values and give back what was drawn as data.

    line, bar, grouped_bar, scatter: y over x. pie: one series, x names the slices. hist: raw values in y (they are
    counted in bins), or bin centres in x and counts in y. box: raw values in y, one box for each series. heatmap: each
    series is a row, x names the columns, the same in every row.

    Raises:
        ToolError: ``invalid_argument`` for x and y of unequal length, an empty series, NaN or infinity, x that mixes
            categories and numbers, negative slices, more than 50 series or 10,000 points.
    """
    faults: list[str] = []
    if y_limits is not None and not y_limits[0] < y_limits[1]:
        raise ToolError("invalid_argument", f"y_limits must rise, is {y_limits}", argument="y_limits")
    if sum(len(each.y) for each in series) > MOST_POINTS:
        faults.append(f"series hold more than {MOST_POINTS:,} points")
    data = None if faults else drawn_data(kind, [(each.name, each.x, each.y) for each in series], sort, faults)
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

    from agrotools.tools.analytics.drawing import draw

    content, flags = draw(spec, data, y_limits=y_limits, annotate=annotate, fmt=fmt)
    return Plot(
        spec=spec,
        summary=PlotSummary(n_series=len(data.series), series=tuple(map(_summary, data.summarised))),
        figure=save_artifact(f"plot.{fmt}", "plot", content),
        notes=data.notes,
        flags=tuple(flags),
    )


def _summary(series: tuple[str, tuple[str | float, ...] | None, tuple[float, ...]]) -> SeriesSummary:
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
