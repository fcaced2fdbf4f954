"""Scores of runs, computed, stored and shown: what ``eval`` ends with and ``score`` does."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer


def print_json(value: Any) -> None:
    """Indented JSON on standard output."""
    import orjson

    typer.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def show_runs(runs: Sequence[Path], *, allow_invalid: bool, as_json: bool) -> int:
    """Score runs, write each one's ``scores.json``, print them side by side; 1 where invalid samples remain."""
    from agrotools.report.tables import print_tables
    from agrotools.runner.rescore import rescore

    summaries = [rescore(run, allow_invalid=allow_invalid) for run in runs]
    if as_json:
        print_json([summary.model_dump(mode="json") for summary in summaries])
    else:
        print_tables(summaries)
        for run in runs:
            typer.echo(f"scores: {run / 'scores.json'}")
        typer.echo(f"one sample, step by step: agrotools explain {runs[0]} SAMPLE")
    return int(any(part.invalid.n for summary in summaries for part in summary.modes.values()))
