"""``agrotools attribute``: where a run lost its points."""

from pathlib import Path
from typing import Annotated

import typer

from agrotools.cli.output import print_json, terminal_progress


def attribute(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    data_root: Annotated[
        Path | None, typer.Option(help="Folder of the benchmark's files, if they are no longer where they were.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes for tools that run again.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print the attribution as JSON.")] = False,
) -> None:
    """Split the points that a run lost: planning, arguments, each tool, reading and form."""
    from agrotools.analysis.attribution import attribute_run
    from agrotools.report.attribution import attribution_tables
    from agrotools.report.layout import print_parts
    from agrotools.scoring.attribution import ATTRIBUTION_FILE

    attribution = attribute_run(run, data_root=data_root, workers=workers, progress=terminal_progress())
    if as_json:
        print_json(attribution.model_dump(mode="json"))
        return
    print_parts(attribution_tables(attribution))
    typer.echo(f"per sample: {run / ATTRIBUTION_FILE}")
