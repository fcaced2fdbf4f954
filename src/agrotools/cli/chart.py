"""``agrotools chart``: charts of runs as papers have them, each with its table."""

from pathlib import Path
from typing import Any, Literal

from agrotools.cli.options import command_group, sub_command
from agrotools.cli.output import show_drawing

app = command_group("Draw a chart of runs, and print its table.")


@sub_command(app, "chart size")
def size(
    runs: list[Path],
    models: Path,
    by: str = "parameters_b",
    out: Path = Path("size.svg"),
    mode: str | None = None,
    metric: str | None = None,
    as_json: bool = False,
) -> None:
    """Are larger or newer models better? Score over parameters or date of release, one colour per family.

    FILE has a table per model: ["openai:gpt-4.1"] with parameters_b = 7, released = "2025-04-14", family = "GPT".
    """
    from agrotools.core import UsageError
    from agrotools.report.charts import read_attributes

    if by not in ("parameters_b", "released"):
        raise UsageError(f"--by {by}: no such attribute", hint="parameters_b or released")
    _draw(
        "size",
        runs,
        out,
        as_json,
        mode=mode,
        metric=metric,
        attributes=read_attributes(models),
        by=by,
    )


@sub_command(app, "chart calls")
def calls(runs: list[Path], out: Path = Path("calls.svg"), as_json: bool = False) -> None:
    """How many calls does each model make, and how do they go wrong? Calls by outcome, beside the calls needed."""
    _draw("calls", runs, out, as_json)


@sub_command(app, "chart difficulty")
def difficulty(
    runs: list[Path],
    out: Path = Path("difficulty.svg"),
    mode: str | None = None,
    metric: str | None = None,
    as_json: bool = False,
) -> None:
    """Do models fail on the hard questions only? Share of fully right answers by difficulty.

    The difficulty is that of the benchmark (easy, hard), else thirds of the samples by the measured level.
    """
    _draw("difficulty", runs, out, as_json, mode=mode, metric=metric)


@sub_command(app, "chart depth")
def depth(
    runs: list[Path],
    out: Path = Path("depth.svg"),
    mode: str | None = None,
    metric: str | None = None,
    as_json: bool = False,
) -> None:
    """Does the score fall with longer solutions? Score by number of reference calls, and by difficulty."""
    _draw("depth", runs, out, as_json, mode=mode, metric=metric)


@sub_command(app, "chart dose")
def dose(
    runs: list[Path],
    out: Path = Path("dose.svg"),
    mode: str | None = None,
    metric: str | None = None,
    as_json: bool = False,
) -> None:
    """How much do degraded pictures (--degrade) or faults in tool calls (--faults) cost? Score against dose.

    With a run of baseline:oracle at the same doses, what the tools lose is shown separately.
    """
    from agrotools.report.curve import curve_tables, dose_curve

    show_drawing(
        out, as_json, lambda: dose_curve(runs, mode=mode, metric=metric or "fas"), curve_tables
    )


@sub_command(app, "chart judges")
def judges(
    runs: list[Path],
    out: Path = Path("judges.svg"),
    mode: str | None = None,
    metric: str | None = None,
    scores: list[str] | None = None,
    as_json: bool = False,
) -> None:
    """Do the judges agree? Ranking of the models by each judge, and agreement on the ranking and on single answers."""
    from agrotools.report.judges import agreement_tables, judge_agreement

    options: dict[str, Any] = {"mode": mode, "metric": metric, "scores": scores or ()}
    show_drawing(out, as_json, lambda: judge_agreement(runs, **options), agreement_tables)


def _draw(
    kind: Literal["size", "calls", "difficulty", "depth"],
    runs: list[Path],
    out: Path,
    as_json: bool,
    **options: Any,
) -> None:
    from agrotools.report.charts import chart_of, chart_tables

    show_drawing(out, as_json, lambda: chart_of(kind, runs, **options), chart_tables)
