"""The canonical specification of a figure: what was drawn, as data, so that figures compare without a vision model."""

from typing import Annotated, Literal

from pydantic import Field, FiniteFloat

from agrotools.core.noun import Noun

PlotKind = Literal["line", "bar", "grouped_bar", "scatter", "hist", "pie", "box", "heatmap"]


class PlotSeries(Noun):
    """One series: ``x`` are categories (text) or numbers, ``y`` the finite numbers drawn; both of equal length."""

    name: str
    x: tuple[str | FiniteFloat, ...]
    y: tuple[FiniteFloat, ...]


class PlotSpec(Noun):
    """What a figure shows. Units are those of the axis values (``%``, ``m^2``...), ``None`` where there is none."""

    kind: PlotKind
    series: Annotated[tuple[PlotSeries, ...], Field(min_length=1)]
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    x_unit: str | None = None
    y_unit: str | None = None
    legend: bool = False
    """Whether series names are visible in the figure."""
