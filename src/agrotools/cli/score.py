"""``agrotools score``: score a finished run again, from what its folder holds."""

from pathlib import Path
from typing import Annotated

import typer


def score(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.")],
    allow_invalid: Annotated[bool, typer.Option(help="Print headlines with more than 1 % invalid samples.")] = False,
    details: Annotated[bool, typer.Option(help="Also by task and answer type, and what happened in the run.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Score runs again, offline, and print the table. Several runs stand side by side."""
    from agrotools.cli.results import show_runs

    raise typer.Exit(show_runs(runs, allow_invalid=allow_invalid, details=details, as_json=as_json))
