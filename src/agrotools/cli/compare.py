"""``agrotools compare``: differences of runs, with the samples that changed and the causes of lost points."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agrotools.cli.output import command_line, count_text, print_json, stop_message

if TYPE_CHECKING:
    from agrotools.formats.benchmark import Benchmark
    from agrotools.runner.config import EvalConfig


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders of one benchmark, or tables of scores.")],
    flips: Annotated[
        int, typer.Option(min=0, help="Number of samples to list that score higher, and lower, with the reason.")
    ] = 2,
    details: Annotated[
        bool,
        typer.Option("--details", help="Also print every row with p-value and detectable difference, and the words."),
    ] = False,
    until_decided: Annotated[
        bool, typer.Option("--until-decided", help="Continue two runs in turn until it is decided which is better.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparisons as JSON.")] = False,
) -> None:
    """Compare runs, first minus second, paired by sample: overall, by task and by cause, and sample by sample.

    Several runs are compared pair by pair. Nothing is written. Tables (CSV) have the columns model, sample and score.
    """
    import sys
    from itertools import combinations

    from agrotools.report.comparison import comparison_tables, with_reasons
    from agrotools.report.html import incomparable
    from agrotools.report.terminal import print_parts
    from agrotools.runner.build import load_for_run
    from agrotools.runner.rescore import compare_runs, stopped_early
    from agrotools.runner.store import read_manifest
    from agrotools.runner.until_decided import config_of_run
    from agrotools.scoring.attribution import read_attribution
    from agrotools.scoring.gate import compare_tables, is_table

    if until_decided:
        configs = [config_of_run(run) for run in runs]
        with stop_message("finished samples are kept"):
            print_until_decided(configs, load_for_run(configs[0], sys.stderr), as_json=as_json)
        return
    folders = [] if any(map(is_table, runs)) else runs
    for early in dict.fromkeys(filter(None, map(stopped_early, folders))):
        typer.echo(f"warning: {early}", err=True)
    compared = compare_runs(runs) if folders else compare_tables(*runs)
    for difference in incomparable([read_manifest(run) for run in folders]):
        typer.echo(f"warning: the runs differ in more than the model: {difference}", err=True)
    splits = [read_attribution(run) for run in folders]
    for run, (split, outdated) in zip(folders, splits, strict=True):
        if outdated:
            typer.echo(f"warning: {outdated}", err=True)
        elif split is None and any(other for other, _ in splits):
            typer.echo(
                f"warning: {run} has no split of its lost points, so causes are the first part of a sample that went "
                f"wrong: {command_line('attribute', run)}",
                err=True,
            )
    if folders:
        compared = [with_reasons(each, pair, flips) for each, pair in zip(compared, combinations(runs, 2), strict=True)]
    if as_json:
        print_json([each.model_dump(mode="json") for each in compared])
        return
    for at, each in enumerate(compared):
        if at:
            typer.echo()
        print_parts(comparison_tables(each, flips=flips, details=details))


def print_until_decided(
    configs: "Sequence[EvalConfig]", benchmark: "Benchmark", *, as_json: bool, yes: bool = False
) -> None:
    """Run two configurations in turn until their difference is decided, and print the verdict."""
    import sys

    from agrotools.cli.planning import ask_before_spending, planned_run
    from agrotools.report.layout import interval_text, percent, points
    from agrotools.runner.until_decided import SequentialComparison, run_until_decided
    from agrotools.scoring import METRICS

    def text(each: SequentialComparison) -> str:
        found, metric = each.difference, METRICS[each.metric]
        interval = f" ({interval_text(found.interval, points)})" if found.interval else ""
        verdict = "no difference shown" if each.look == each.looks else "not decided yet"
        if each.decided:
            verdict = f"{each.models[(found.value > 0) == metric.lower_is_better]} is better"
        means = f"{percent(each.means[0])} minus {percent(each.means[1])}"
        n = f"{found.n:,} of {each.planned:,} samples in {found.n_clusters:,} clusters"
        n += f", {count_text(each.invalid, 'sample')} with invalid records" * bool(each.invalid)
        return f"{metric.label}: {means} = {points(found.value)}{interval}, {n}: {verdict}"

    for each in () if yes else configs:
        if expected := planned_run(each, benchmark).expected:
            ask_before_spending(each)(expected)
    found = run_until_decided(
        configs,
        sys.stderr,
        benchmark,
        lambda each: typer.echo(f"block {each.look} of {each.looks}, {text(each)}", err=True),
    )
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    typer.echo(f"{found.models[0]} minus {found.models[1]}, percentage points")
    typer.echo(f"{found.mode}, {text(found)}")
    typer.echo(f"The 95 % interval holds for all {found.looks} looks together; those of other commands do not.")
    typer.echo(f"runs: {found.runs[0]} {found.runs[1]}")
