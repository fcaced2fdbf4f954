"""``agrotools view``: the runs in a folder, on a local page or listed in the terminal."""

from pathlib import Path
from typing import Annotated

import typer

from agrotools.cli.options import DataRoot, Port
from agrotools.cli.output import command_line, count_text, print_json


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

    Only this machine can open it, with the address that is printed. Nothing is written but the grades of those who
    grade answers on it.
    """
    import sys

    from agrotools.build.review import missing_package
    from agrotools.report.html.server import Viewer, serve_pages

    _check_folder(folder)
    if only_list:
        _list_runs(folder, as_json)
        return
    grading = None
    if missing_package() is None:
        from agrotools.build.review.app import GradingPages

        grading = GradingPages(data_root).open

    def started(address: str) -> None:
        if as_json:
            print_json({"address": address})
        else:
            typer.echo(f"open: {address}\nPress Ctrl-C to stop")
        sys.stdout.flush()

    serve_pages(Viewer(folder, data_root, grading), port, started)


def _list_runs(folder: Path, as_json: bool) -> None:
    """List the runs in a folder, the last changed first: model, score, progress and cost."""
    from datetime import datetime

    from rich.markup import escape

    from agrotools.report.layout import harmless, new_table, percent, print_parts
    from agrotools.report.run_list import list_runs

    entries = list(list_runs(folder))
    if as_json:
        print_json([{**vars(entry), "path": str(entry.path)} for entry in entries])
        return
    headings = ["model", "benchmark", "score", "records", "USD", "last record"]
    table = new_table(f"{count_text(len(entries), 'run')} in {folder}", headings)
    table.columns[0].no_wrap = True  # the name of a run is copied into commands
    table.columns[2].justify = "left"  # so that a benchmark may be wrapped
    for entry in entries:
        done = f"{entry.done} of {entry.planned}" if entry.done < entry.planned else str(entry.done)
        score = f"{entry.metric} {percent(entry.score)}" if entry.score is not None else "not scored"
        usd = f"{entry.usd:.2f}" if entry.usd is not None else ""
        changed = f"{datetime.fromtimestamp(entry.changed).astimezone():%m-%d %H:%M}" if entry.changed else ""
        shown = [entry.model, entry.benchmark, score, done, usd, changed]
        shown = [entry.problem, *[""] * (len(shown) - 1)] if entry.problem else shown
        table.add_row(*(escape(harmless(cell)) for cell in (entry.name, *shown)))
    print_parts([table])
    typer.echo(f"on a page: {command_line('view', folder)}")


def _check_folder(folder: Path) -> None:
    from agrotools.core import UsageError

    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}", hint="give a run folder, or the folder that holds your runs")
