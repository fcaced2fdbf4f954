"""``agrotools merge``: join the shards of a run."""

from pathlib import Path
from typing import Annotated

import typer

from agrotools.cli.output import FAULTS, STOPPED, command_line, count_text, stop_message, terminal_progress


def merge(
    runs: Annotated[list[Path], typer.Argument(help="Run folders of all shards, in any order.")],
    out: Annotated[Path, typer.Option(help="Folder of the merged run, a new one.", metavar="DIR")],
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Merge what is there if shards are missing or not finished.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Merge the shards of a run (agrotools eval --shard) into the run folder that it would have without shards.

    An interrupted merge leaves nothing, or a run that agrotools score completes. The shards are not changed.
    """
    from agrotools.cli.results import show_runs
    from agrotools.plugin import NO_COMPARISONS
    from agrotools.runner.shards import merge_runs

    with stop_message("nothing is written", "to start anew"):
        merged = merge_runs(runs, out, allow_missing=allow_missing, progress=terminal_progress())
    for note in (*merged.gaps, *merged.notes):
        typer.echo(f"warning: {note}", err=True)
    if merged.gaps:
        typer.echo(
            f"hint: the agrotools eval command of a shard with --out {out}, without --shard, runs the rest", err=True
        )
    typer.echo(f"{out}: {count_text(merged.records, 'record')} of {count_text(merged.shards, 'shard')}", err=as_json)
    try:
        code = show_runs([out], NO_COMPARISONS, allow_invalid=False, details=False, as_json=as_json)
    except KeyboardInterrupt:
        scoring = command_line("score", out)
        typer.echo(f"\nstopped: all shards are merged, but not scored; {scoring} scores the run", err=True)
        code = STOPPED
    raise typer.Exit(code or (FAULTS if merged.gaps else 0))
