"""``agrotools view``: the runs in a folder, on a local page or listed in the terminal."""

from pathlib import Path
from typing import Annotated

import typer

from agrotools.cli.options import DataRoot, Port
from agrotools.cli.output import command_line, print_json


def view(
    folder: Annotated[Path, typer.Argument(help="Run folder, or a folder with runs.")] = Path("runs"),
    port: Port = None,
    data_root: DataRoot = None,
    only_list: Annotated[
        bool, typer.Option("--list", help="Only list the runs with score, progress and cost.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the address or the list as JSON.")] = False,
) -> None:
    """Show the runs in a folder on a local page, with larger pictures than in a report, and live while a run goes on.

    Only this machine can open it, with the address that is printed. Nothing is written.
    """
    import sys

    from agrotools.report.html.server import Viewer, serve_pages

    _check_folder(folder)
    if only_list:
        _list_runs(folder, as_json)
        return

    def started(address: str) -> None:
        if as_json:
            print_json({"address": address, "runs": _runs(folder)})
        else:
            typer.echo(f"open: {address}\nPress Ctrl-C to stop")
        sys.stdout.flush()

    serve_pages(Viewer(folder, data_root), port, started)


def _list_runs(folder: Path, as_json: bool) -> None:
    """List the runs in a folder, the last changed first."""
    from agrotools.report.run_list import list_runs, runs_table
    from agrotools.report.terminal import print_parts

    if as_json:
        print_json(_runs(folder))
        return
    print_parts([runs_table([*list_runs(folder)], folder)])
    typer.echo(f"on a page: {command_line('view', folder)}")


def _runs(folder: Path) -> list[dict[str, object]]:
    """Return the runs in a folder with all that the list shows, as JSON."""
    from agrotools.report.run_list import list_runs

    return [{**vars(entry), "path": str(entry.path)} for entry in list_runs(folder)]


def _check_folder(folder: Path) -> None:
    from agrotools.core import UsageError

    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}", hint="give a run folder, or the folder of your runs")
