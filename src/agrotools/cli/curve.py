"""``agrotools curve``: score against dose, from runs on degraded pictures or with faults in tool calls."""

from pathlib import Path
from typing import Annotated

import typer

from agrotools.cli.output import show_drawing


def curve(
    runs: Annotated[list[Path], typer.Argument(help="Run folders of one benchmark, with and without doses.")],
    out: Annotated[Path, typer.Option(help="Picture to draw: .svg, .png or .pdf.")] = Path("curve.svg"),
    mode: Annotated[
        str | None, typer.Option(help="end-to-end or no-tool.", show_default="end-to-end if all runs have it")
    ] = None,
    metric: Annotated[str, typer.Option(help="Id of the metric.")] = "fas",
    as_json: Annotated[bool, typer.Option("--json", help="Print the curve as JSON.")] = False,
) -> None:
    """Draw score against dose, of runs with --degrade or --faults; baseline:oracle shows the loss of the tools."""
    from agrotools.report.curve import curve_tables, dose_curve

    show_drawing("curve", dose_curve(runs, mode=mode, metric=metric), out, as_json, curve_tables)
