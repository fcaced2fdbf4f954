"""``agrotools score``: score a finished run again, or a file of predictions (``--predictions``, ``--format``)."""

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated

import typer

from agrotools.cli.options import AllowInvalid, Details, JudgeOptions, TextOptions, with_option_groups
from agrotools.cli.output import count_text, print_json

_LISTED = 3
"""Maximum number of rows or samples that a warning names."""


@with_option_groups
def score(
    texts: TextOptions,
    judging: JudgeOptions,
    runs: Annotated[
        list[Path] | None, typer.Argument(help="Run folders, or one prediction file with --format.")
    ] = None,
    benchmark: Annotated[
        str | None, typer.Option(help="With --predictions: name or folder of the benchmark.", metavar="NAME")
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            help="Score a file of predictions as a run. A row has a sample id (or index, or question) and a prediction,"
            " values or a transcript: JSON Lines, JSON, CSV, TSV, XLSX or parquet.",
            metavar="FILE",
        ),
    ] = None,
    model: Annotated[
        str, typer.Option(help="With --predictions: name of the model in tables; the file's name by default.")
    ] = "",
    out: Annotated[Path | None, typer.Option(help="With --predictions: run folder to write.", metavar="DIR")] = None,
    allow_invalid: AllowInvalid = False,
    details: Details = False,
    paper: Annotated[
        bool, typer.Option("--paper", help="Also print the tables of the benchmark's paper, with its figures.")
    ] = False,
    format_: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help="Score a prediction file in this benchmark's format."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="With --format: the data set with the reference answers. With --predictions: its data root."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", help="With --predictions: benchmark option, NAME=VALUE (repeatable)."),
    ] = None,
    judgements: Annotated[Path | None, typer.Option(help="With --format: replies of a judge (JSON or CSV).")] = None,
    costs: Annotated[
        Path | None, typer.Option(help="Print the expected cost of the answers under this cost table (TOML) instead.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Score runs again and print the table, offline unless --judge is given. Several runs are shown side by side."""
    from agrotools.cli.results import ask_judges, show_runs
    from agrotools.core import UsageError
    from agrotools.runner.rescore import check_distinct

    runs = runs or []
    check_distinct(runs)
    if predictions is not None or benchmark is not None:
        if predictions is None or benchmark is None or runs or format_ or judgements:
            raise UsageError(
                "--benchmark and --predictions go together, without runs and --format",
                hint="agrotools score --benchmark NAME --predictions FILE",
            )
        runs = [make_run(predictions, benchmark, data, option or [], model, out, as_json=as_json)]
    elif model or out or option:
        raise UsageError(
            "--model, --out and --option go with --predictions", hint="--benchmark NAME --predictions FILE"
        )
    elif not runs:
        raise UsageError("no run is given", hint="agrotools score RUN, or --benchmark NAME --predictions FILE")
    if costs is not None:
        print_costs(runs, costs, as_json=as_json)
        return
    if format_ is None and predictions is None and (data or judgements):
        raise UsageError("--data and --judgements go with --format", hint="--format gta|thinkgeo|agentx")
    if format_ is not None:
        of_runs = {"--judge": judging.judge, "--with": texts.extra, "--details": details, "--paper": paper}
        if wrong := [name for name, value in of_runs.items() if value]:
            hint = "with --format, --embedder compares texts and --judgements FILE gives the replies of a judge"
            raise UsageError(f"{wrong[0]} is for runs, not for --format", hint=hint)
        prediction_options = {
            "data": data,
            "judgements": judgements,
            "embedder": texts.embedder,
            "embedder_path": texts.embedder_path,
        }
        score_predictions(runs, format_, **prediction_options, as_json=as_json)
        return
    compared = texts.comparisons()
    missing = ask_judges(runs, judging)
    code = show_runs(runs, compared, allow_invalid=allow_invalid, details=details, as_json=as_json, paper=paper)
    raise typer.Exit(code or int(missing))


def make_run(
    file: Path,
    benchmark: str,
    data_root: Path | None,
    options: Sequence[str],
    model: str,
    out: Path | None,
    *,
    as_json: bool,
) -> Path:
    """Make a run of a file of predictions, print what was matched, and return its folder."""
    from agrotools.benchmarks import load_benchmark
    from agrotools.runner.config import benchmark_options
    from agrotools.runner.predictions import import_predictions

    chosen = benchmark_options(options)
    loaded = load_benchmark(benchmark, data_root, options=chosen)
    run, counts = import_predictions(file.expanduser(), loaded, benchmark, chosen, model=model, out=out)
    matched = ", ".join(f"{number} by {column}" for column, number in counts.by.items())
    typer.echo(f"{file.name}: {count_text(counts.rows, 'row')}, {matched}; run folder {run}", err=as_json)
    for kind, entries in counts.problems.items():
        more = ", ..." if len(entries) > _LISTED else ""
        typer.echo(f"warning: {kind}: {len(entries)}, {', '.join(entries[:_LISTED])}{more}", err=True)
    return run


def print_costs(runs: Sequence[Path], table: Path, *, as_json: bool) -> None:
    """Print the expected costs of runs and of constant answers.

    Raises:
        UsageError: the table cannot be read or does not fit the runs.
    """
    from agrotools.report.costs import cost_tables, expected_costs
    from agrotools.report.terminal import print_parts

    costs = expected_costs(runs, table)
    if as_json:
        print_json(costs.model_dump(mode="json"))
    else:
        print_parts(cost_tables(costs))


def score_predictions(
    files: Sequence[Path],
    format_: str,
    *,
    data: Path | None,
    judgements: Path | None,
    embedder: str | None,
    embedder_path: Path | None,
    as_json: bool,
) -> None:
    """Score one prediction file as published and corrected, and print both columns.

    Raises:
        UsageError: an option does not fit the format.
        BenchmarkError: a file cannot be read.
    """
    from agrotools.core import UsageError
    from agrotools.report.predictions import as_data, compared_tables
    from agrotools.report.terminal import print_parts
    from agrotools.scoring.embedders import open_embedder
    from agrotools.scoring.predictions import compare_file, prediction_format

    form = prediction_format(format_)
    if len(files) != 1:
        raise UsageError("--format scores one prediction file", hint="give its path alone")
    options = {"embedder": embedder or embedder_path, "data": data, "judgements": judgements}
    for option, value in options.items():
        if value and option in form.refused:
            message, hint = form.refused[option]
            raise UsageError(message, hint=hint)
    chosen = None
    with nullcontext() if embedder or embedder_path else suppress(UsageError):  # all-MiniLM-L6-v2 may be absent
        chosen = None if "embedder" in form.refused else open_embedder(embedder, embedder_path)
    compared = compare_file(format_, files[0], data=data, judgements=judgements, embedder=chosen)
    if as_json:
        print_json(as_data(compared))
    else:
        print_parts(compared_tables(compared, files[0].name))
