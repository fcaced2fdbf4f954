"""``agrotools score``: score a finished run again, from what its folder holds."""

from pathlib import Path
from typing import Annotated

import typer


def score(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.")],
    extra: Annotated[
        list[str] | None,
        typer.Option("--with", help="Also by rouge-l-lexeval (extra zh) or similarity (extra embed): open questions."),
    ] = None,
    allow_invalid: Annotated[bool, typer.Option(help="Print headlines with more than 1 % invalid samples.")] = False,
    details: Annotated[bool, typer.Option(help="Also by task and answer type, and what happened in the run.")] = False,
    paper: Annotated[
        bool,
        typer.Option("--paper", help="Also in the tables of the paper, beside its figures (agrieval)."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Score runs again, offline, and print the table. Several runs stand side by side."""
    from agrotools.cli.results import show_runs
    from agrotools.core import UsageError
    from agrotools.scoring.knowledge_answers import EXTRA_METRICS

    extras = extra or []
    if unknown := [name for name in extras if name not in EXTRA_METRICS]:
        raise UsageError(f"--with {unknown[0]}: no such metric", hint=f"known: {', '.join(EXTRA_METRICS)}")
    code = show_runs(runs, allow_invalid=allow_invalid, details=details, as_json=as_json, extras=extras, paper=paper)
    raise typer.Exit(code)
