"""``agrotools chart``: charts of runs as papers have them, each with its table."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from agrotools.cli.options import Commands
from agrotools.cli.output import show_drawing

app = typer.Typer(
    cls=Commands, help="Draw a chart of runs, and print its table.", no_args_is_help=True, rich_markup_mode=None
)
Runs = Annotated[list[Path], typer.Argument(help="Run folders of one benchmark.")]
Out = Annotated[Path, typer.Option(help="Picture to draw: .svg, .png or .pdf.")]
Mode = Annotated[str | None, typer.Option(help="end-to-end or no-tool.", show_default="end-to-end if all runs have it")]
Metric = Annotated[str | None, typer.Option(help="Id of the metric.", show_default="the one that runs are compared in")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the chart as JSON.")]


@app.command()
def size(
    runs: Runs,
    models: Annotated[Path, typer.Option(metavar="FILE", help="TOML file with a table of attributes for each model.")],
    by: Annotated[str, typer.Option(help="Attribute: parameters_b or released.")] = "parameters_b",
    out: Out = Path("size.svg"),
    mode: Mode = None,
    metric: Metric = None,
    as_json: AsJson = False,
) -> None:
    """Are larger or newer models better? Score over parameters or date of release, one colour per family.

    FILE has a table per model: ["openai:gpt-4.1"] with parameters_b = 7, released = "2025-04-14", family = "GPT".
    """
    from agrotools.core import UsageError
    from agrotools.report.charts import read_attributes

    if by not in ("parameters_b", "released"):
        raise UsageError(f"--by {by}: no such attribute", hint="parameters_b or released")
    _draw("size", runs, out, as_json, mode=mode, metric=metric, attributes=read_attributes(models), by=by)


@app.command()
def calls(runs: Runs, out: Out = Path("calls.svg"), as_json: AsJson = False) -> None:
    """How many calls does each model make, and how do they go wrong? Calls by outcome, beside the calls needed."""
    _draw("calls", runs, out, as_json)


@app.command()
def difficulty(
    runs: Runs, out: Out = Path("difficulty.svg"), mode: Mode = None, metric: Metric = None, as_json: AsJson = False
) -> None:
    """Do models fail on the hard questions only? Share of fully right answers by difficulty.

    The difficulty is that of the benchmark (easy, hard), else thirds of the samples by the measured level.
    """
    _draw("difficulty", runs, out, as_json, mode=mode, metric=metric)


@app.command()
def depth(
    runs: Runs, out: Out = Path("depth.svg"), mode: Mode = None, metric: Metric = None, as_json: AsJson = False
) -> None:
    """Does the score fall with longer solutions? Score by number of reference calls, and by difficulty."""
    _draw("depth", runs, out, as_json, mode=mode, metric=metric)


@app.command()
def dose(
    runs: Runs, out: Out = Path("dose.svg"), mode: Mode = None, metric: Metric = None, as_json: AsJson = False
) -> None:
    """How much do degraded pictures (--degrade) or faults in tool calls (--faults) cost? Score against dose.

    With a run of baseline:oracle at the same doses, what the tools lose is shown separately.
    """
    from agrotools.report.curve import check_picture, curve_tables, dose_curve

    check_picture(out)
    show_drawing("chart", dose_curve(runs, mode=mode, metric=metric or "fas"), out, as_json, curve_tables)


@app.command()
def judges(
    runs: Runs,
    out: Out = Path("judges.svg"),
    mode: Mode = None,
    metric: Annotated[
        str | None, typer.Option(help="Metric whose judges are compared.", show_default="one that judges graded all by")
    ] = None,
    scores: Annotated[
        list[str] | None, typer.Option("--score", metavar="METRIC", help="Metric that counts as a judge. Repeatable.")
    ] = None,
    grades: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Grades that agrotools grade stored. Repeatable.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Do the judges agree? Ranking of the models by each judge, and agreement on the ranking and on single answers."""
    from agrotools.report.curve import check_picture
    from agrotools.report.judges import agreement_tables, judge_agreement

    check_picture(out)
    result = judge_agreement(runs, mode=mode, metric=metric, scores=scores or (), grades=grades or ())
    show_drawing("chart", result, out, as_json, agreement_tables)


def _draw(
    kind: Literal["size", "calls", "difficulty", "depth"], runs: list[Path], out: Path, as_json: bool, **options: Any
) -> None:
    from agrotools.report.charts import chart_of, chart_tables
    from agrotools.report.curve import check_picture

    check_picture(out)
    show_drawing("chart", chart_of(kind, runs, **options), out, as_json, chart_tables)
