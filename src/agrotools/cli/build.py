"""``agrotools build``: make a benchmark from a data set on this machine."""

from pathlib import Path
from typing import Annotated

import typer


def build(
    out: Annotated[Path, typer.Option(help="Folder of the benchmark. An older benchmark there is replaced.")],
    source: Annotated[
        list[str] | None,
        typer.Option(
            help="What to build from which folder, NAME=DIR, e.g. field=data. Public data sets may be joined: give"
            " several."
        ),
    ] = None,
    all_sources: Annotated[
        Path | None, typer.Option(help="Folder with a folder per public data set, named as after --source.")
    ] = None,
) -> None:
    """Build a benchmark folder from a data set, run its reference calls, check it, and print its terms of use.

    Nothing is left behind if it fails. A folder that holds something else than a benchmark is never touched.
    """
    import sys
    import time

    from agrotools.benchmarks import load_folder
    from agrotools.benchmarks.summary import counts_of
    from agrotools.benchmarks.validate import validate_folder
    from agrotools.construct.sources import build_sources
    from agrotools.construct.sources.public import folders_in
    from agrotools.core import UsageError
    from agrotools.runner.progress import stage_progress

    started = time.monotonic()
    if (source is None) == (all_sources is None):
        raise UsageError("give --source or --all-sources", hint="--source NAME=DIR, or --all-sources DIR")
    if all_sources is not None:
        source = [f"{name}={folder}" for name, folder in folders_in(all_sources.expanduser()).items()]
    header = build_sources(source or [], out, stage_progress(sys.stderr))
    faults = validate_folder(out)
    for fault in faults:
        typer.echo(f"{fault.where}: {fault.code}: {fault.message} ({fault.hint})", err=True)
    benchmark = load_folder(out)
    typer.echo(f"{header.name} {header.version}: {len(benchmark.samples)} samples in {out}")
    for what, counts in counts_of(benchmark).items():
        typer.echo(f"  {what}: {', '.join(f'{name} {count}' for name, count in counts.items())}")
    typer.echo(f"  content: {benchmark.content_hash[:16]}, {time.monotonic() - started:.0f} s")
    if note := header.metadata.get("note"):
        typer.echo(str(note))
    typer.echo(f"Terms of use: {header.licence}")
    if faults:
        typer.echo(f"{len(faults)} faults; please report them", err=True)
        raise typer.Exit(1)
