"""Scores of runs, computed, stored and shown: what ``eval`` ends with and ``score`` does."""

from collections.abc import Sequence
from pathlib import Path

import typer

from agrotools.cli.json_output import print_json


def show_runs(runs: Sequence[Path], *, allow_invalid: bool, details: bool, as_json: bool) -> int:
    """Score runs, write each one's ``scores.json``, print them side by side.

    Returns 0, 1 where invalid samples remain, 3 where nothing else is left.
    """
    from agrotools.report.tables import print_tables
    from agrotools.runner.rescore import rescore

    rescored = [rescore(run, allow_invalid=allow_invalid) for run in runs]
    summaries = [each.summary for each in rescored]
    if as_json:
        print_json([summary.model_dump(mode="json") for summary in summaries])
    else:
        print_tables(summaries, details=details)
        again = " ".join(str(run) for run in runs)
        if not details:
            typer.echo(f"by task and answer type: agrotools score {again} --details")
        if sample := rescored[0].telling_sample:
            typer.echo(f"one sample, from question to score: agrotools explain {runs[0]} {sample}")
    parts = [part for summary in summaries for part in summary.modes.values()]
    if all(part.invalid.n == part.n_records for part in parts):
        reason = next(iter(parts[0].invalid.reasons))
        typer.echo(f"error: no sample got a reply: {reason}", err=True)
        return 3
    return int(any(part.invalid.n for part in parts))
