"""``agrotools data``: list of the benchmarks that can be downloaded, and their download."""

from pathlib import Path
from typing import Annotated

import typer

from agrotools.cli.options import AsJson
from agrotools.cli.output import FAULTS, command_line, count_text, print_json, terminal_progress

app = typer.Typer(
    help="Download the files of benchmarks from their public addresses; list what is here.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Out = Annotated[
    Path | None,
    typer.Option(help="Folder for the files (then --data-root DIR of eval); a cache by default.", metavar="DIR"),
]


@app.command("list")
def list_all(out: Out = None, as_json: AsJson = False) -> None:
    """List the benchmarks: content, terms, address, size, and whether the files are here and complete."""
    from agrotools.benchmarks.obtaining import list_downloads

    rows = list_downloads(out)
    if as_json:
        print_json([row._asdict() for row in rows])
        return
    for row in rows:
        size = "" if row.size_mb is None else f", {row.size_mb:,.1f} MB"
        typer.echo(f"{row.name}: {row.about}\n  {row.state}{size}")
        if row.address:
            typer.echo(f"  from {row.address}\n  terms: {row.licence}")
    typer.echo("get one with: agrotools data get NAME")


@app.command("get")
def get(
    name: Annotated[str, typer.Argument(help="Name of a benchmark, or pests: pictures for packs train pests.")],
    out: Out = None,
    mirror: Annotated[
        str, typer.Option(help="Folder or address of copies, used instead of the public addresses.", metavar="DIR|URL")
    ] = "",
    heads: Annotated[
        bool, typer.Option(help="Train the heads that tools need for `field` (a minute or two, extra train).")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Download the files of a benchmark. The same command continues an interrupted download.

    Exit code 0: all files are there and have the expected content; 1: some could not be obtained, or the heads could
    not be trained; 3: no server could be reached.
    """
    from agrotools.benchmarks.downloads import failure_lines
    from agrotools.benchmarks.loading import data_folder
    from agrotools.benchmarks.obtaining import LICENCES_FILE, PEST_PICTURES, Request, obtain

    root = (out or data_folder()).expanduser().resolve()
    request = Request(root, mirror, heads, terminal_progress(), lambda line: typer.echo(line, err=True))
    obtained = obtain(name, request)
    if as_json:
        failures = [each._asdict() for each in obtained.failures]
        sources = [source.model_dump(mode="json", exclude_none=True) for source in obtained.sources]
        counts = {"root": str(root), "files": len(obtained.files), "failures": failures}
        counts["lacking"] = obtained.lacking
        print_json({**counts, "sources": sources, "notes": [*obtained.notes]})
    else:
        size = sum(path.stat().st_size for path in obtained.files)
        typer.echo(f"{count_text(len(obtained.files), 'file')}, {size / 1e6:,.1f} MB, in {root}")
        typer.echo(f"terms of {count_text(len(obtained.sources), 'data set')}: {root / LICENCES_FILE}")
        again = command_line("data", "get", name, *(["--out", out] if out else []))
        ending = f"next: {command_line('eval', name, *(['--data-root', out] if out else []))}"
        if name == PEST_PICTURES.name:
            ending = f"next: {command_line('packs', 'train', name, *(['--data', out / name] if out else []))}"
        if obtained.failures:
            n_missing = count_text(len(obtained.failures), "file")
            ending = f"incomplete: {n_missing} missing; try again: {again}"
        elif obtained.lacking:
            ending = f"incomplete: {obtained.lacking}; then run again: {again}"
        for line in (*obtained.notes, *failure_lines(obtained.failures), ending):
            typer.echo(line)
    raise typer.Exit(FAULTS if obtained.failures or obtained.lacking else 0)
