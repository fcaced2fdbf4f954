"""Figures and tools as data: the canonical specification of a plot, and the schema of a tool."""

from typing import Annotated, Literal

from pydantic import Field, FiniteFloat, JsonValue

from agrotools.core.frozen_model import FrozenModel

PlotKind = Literal["line", "bar", "grouped_bar", "scatter", "hist", "pie", "box", "heatmap"]


class PlotSeries(FrozenModel):
    """One series: ``x`` are categories (text) or numbers, ``y`` the finite numbers drawn; both of equal length."""

    name: str
    x: tuple[str | FiniteFloat, ...]
    y: tuple[FiniteFloat, ...]


class PlotSpec(FrozenModel):
    """Content of a figure. Units are those of the axis values (``%``, ``m^2``...), ``None`` where there is none."""

    kind: PlotKind
    series: Annotated[tuple[PlotSeries, ...], Field(min_length=1)]
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    x_unit: str | None = None
    y_unit: str | None = None
    legend: bool = False
    """True if series names are visible in the figure."""


AgreementKind = Literal[
    "file", "choice", "number", "box", "text", "expression", "variables", "series", "chart", "presentation"
]
"""Rules by which two values of an argument agree (text/agreement.py).

``variables`` take part in the ``expression`` argument beside them; ``presentation`` (titles, formats,
rounding) is never compared.
"""


class ToolSpec(FrozenModel):
    """Name, JSON Schema of the arguments, defaults, and how each argument agrees with a reference value."""

    name: str
    category: str
    version: str
    description: str
    parameters: dict[str, JsonValue]
    agreement: dict[str, AgreementKind]
    defaults: dict[str, JsonValue]
