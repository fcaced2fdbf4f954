"""``agrotools validate``: all that is wrong with a benchmark folder."""

from pathlib import Path
from typing import Annotated

import typer

from agrotools.cli.json_output import print_json


def validate(
    folder: Annotated[Path | None, typer.Argument(help="Benchmark folder.", show_default=False)] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of the format and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the faults as JSON.")] = False,
) -> None:
    """Check every file, hash, sample, tool, argument, reference and answer of a benchmark, and list all faults at once.

    Exit status 0: sound; 1: faults; 2: no such folder.
    """
    from agrotools.benchmarks.validate import format_schema, validate_folder

    if schema:
        print_json(format_schema())
        return
    if folder is None:
        raise typer.BadParameter("name a folder, or give --schema", param_hint="FOLDER")
    if not folder.is_dir():
        raise typer.BadParameter(f"{folder} is not a folder", param_hint="FOLDER")
    faults = validate_folder(folder)
    if as_json:
        rows = [{"where": fault.where, **fault.model_dump(mode="json")} for fault in faults]
        print_json({"folder": str(folder), "faults": rows})
    else:
        for fault in faults:
            typer.echo(f"{fault.where}\n  {fault.code}: {fault.message}\n  {fault.hint}")
        typer.echo(f"{folder}: {f'{len(faults)} faults' if faults else 'no faults'}")
    raise typer.Exit(1 if faults else 0)
