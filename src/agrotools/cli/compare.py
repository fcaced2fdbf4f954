"""``agrotools compare``: differences of runs, with the samples that changed and the causes of lost points."""

from pathlib import Path
from typing import Annotated

import typer

from agrotools.cli.output import command_line, print_json


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders of one benchmark, or tables of scores.")],
    flips: Annotated[int, typer.Option(min=0, help="Samples of each kind (up, down) to list, with the reason.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparisons as JSON.")] = False,
) -> None:
    """Compare runs, first minus second, paired by sample: overall, by task and by cause, and sample by sample.

    Several runs are compared pair by pair. Nothing is written. Tables (CSV) have the columns model, sample and score.
    """
    from itertools import combinations

    from agrotools.report.comparison import comparison_tables, with_reasons
    from agrotools.report.html import incomparable
    from agrotools.report.terminal import print_parts
    from agrotools.runner.rescore import compare_runs
    from agrotools.runner.store import read_manifest
    from agrotools.scoring.attribution import read_attribution
    from agrotools.scoring.score_tables import compare_tables, is_table

    folders = [] if any(map(is_table, runs)) else runs
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
        print_parts(comparison_tables(each, flips=flips))
