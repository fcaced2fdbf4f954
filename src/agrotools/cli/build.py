"""``agrotools build``: make a benchmark from a data set on this machine."""

from pathlib import Path
from typing import Annotated

import typer


def build(
    source: Annotated[str, typer.Option(help="What to build from which folder, NAME=DIR, e.g. field=data.")],
    out: Annotated[Path, typer.Option(help="Folder of the benchmark. An older benchmark there is replaced.")],
) -> None:
    """Build a benchmark folder from a data set, run its reference calls, check it, and print its terms of use.

    Nothing is left behind if it fails. A folder that holds something else than a benchmark is never touched.
    """
    import sys
    import time

    from agrotools.benchmarks import load_folder
    from agrotools.benchmarks.summary import counts_of
    from agrotools.benchmarks.validate import validate_folder
    from agrotools.construct.sources import build_source
    from agrotools.runner.progress import stage_progress

    started = time.monotonic()
    header = build_source(source, out, stage_progress(sys.stderr))
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
