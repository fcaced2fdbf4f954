"""``agrotools report`` and ``view``: runs as one HTML file, on a local page, or listed in the terminal."""

import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from agrotools.cli.options import TextOptions
from agrotools.cli.output import command_line, count_text, print_json, terminal_progress
from agrotools.exit_codes import DONE, NOT_DONE


def report(
    runs: list[Path],
    texts: TextOptions,
    out: Path | None = None,
    image_px: int = 480,
    data_root: Path | None = None,
    format_: str | None = None,
    cite: bool = False,
    allow_invalid: bool = False,
    as_json: bool = False,
) -> None:
    """Write an HTML report: overview, samples with images, steps and scores, and tables. It opens offline.

    Of a folder of results (export --format result), write one page with their table.
    """
    from agrotools.core import UsageError
    from agrotools.core.progress import no_progress
    from agrotools.report.html.page import build_report
    from agrotools.report.results import is_results_folder
    from agrotools.runner.rescore import check_distinct

    runs = _without_files(runs)
    check_distinct(runs)
    outputs = {"--format": bool(format_), "--json": as_json, "--cite": cite}
    given = [name for name, is_given in outputs.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other", hint="give one of them")
    if format_ not in (None, "md", "csv", "latex"):
        raise UsageError(f"--format {format_}: no such format", hint="md, csv or latex")
    if len(runs) == 1 and is_results_folder(runs[0]):
        _report_results(runs[0], out, format_, given)
        return
    if cite:
        from agrotools.report.results import cite as words_to_cite

        typer.echo("\n\n".join(map(words_to_cite, runs)))
        return
    if format_:
        typer.echo(_table_text(runs, format_, allow_invalid=allow_invalid), nl=False)
        return
    name = "report.html"
    target = out or (runs[0] / name if len(runs) == 1 else Path(name))
    written = build_report(
        runs,
        target,
        longest_px=image_px,
        data_root=data_root,
        allow_invalid=allow_invalid,
        comparisons=texts.comparisons(),
        progress=terminal_progress() if sys.stderr.isatty() else no_progress,
    )
    for note in written.notes:
        typer.echo(f"warning: {note}", err=True)
    if as_json:
        print_json({**vars(written), "path": str(written.path)})
        raise typer.Exit(NOT_DONE if written.damaged else DONE)
    shown = count_text(written.records, "record")
    if written.shown < written.records:
        shown = f"{written.shown} of {shown}"
    images = count_text(written.pictures, "image")
    typer.echo(f"{written.path}: {written.bytes / 1e6:.1f} MB, {shown} with {images}")
    if written.missing_pictures:
        missing = f"{count_text(written.missing_pictures, 'image')} could not be embedded (the page gives the reasons)"
        typer.echo(
            f"{missing}\nhint: if the benchmark was moved, give its folder with --data-root DIR",
            err=True,
        )
    raise typer.Exit(NOT_DONE if written.damaged else DONE)


def _without_files(paths: list[Path]) -> list[Path]:
    """Return the folders of several paths, and say which files are skipped.

    A shell's ``*`` also names the tables that a study writes beside its runs.
    """
    files = [path for path in paths if path.is_file()]
    if not files or len(files) == len(paths):
        return paths
    typer.echo(f"skipped: {', '.join(file.name for file in files)} (no run folder)", err=True)
    return [path for path in paths if path not in files]


def _report_results(
    folder: Path, out: Path | None, format_: str | None, given: Sequence[str]
) -> None:
    """Print the table of a folder of results, or write its page."""
    from agrotools.core import UsageError
    from agrotools.report.results import read_results, results_tables, write_page
    from agrotools.report.text_tables import latex, markdown

    if format_ == "csv" or given in (["--json"], ["--cite"]):
        what = f"--format {format_}" if format_ else given[0]
        raise UsageError(
            f"{folder} holds results: {what} is for runs",
            hint="the files are JSON themselves; --format md or latex prints their table",
        )
    if format_:
        tables = results_tables(read_results(folder))
        typer.echo(markdown(tables) if format_ == "md" else latex(tables, "Results"), nl=False)
        return
    typer.echo(str(write_page(folder, out)))


def _table_text(runs: list[Path], format_: str, *, allow_invalid: bool) -> str:
    """Return the metrics of each mode as CSV (fractions), or the main tables as Markdown or LaTeX (percent)."""
    from agrotools.report.layout import run_names
    from agrotools.report.tables import tables
    from agrotools.report.text_tables import csv_text, latex, markdown
    from agrotools.runner.rescore import score_runs
    from agrotools.scoring.metrics import ONLY_IN_JSON

    summaries = [each.summary for each in score_runs(runs, allow_invalid=allow_invalid)]
    if format_ != "csv":
        parts = tables(summaries, details=False)
        return markdown(parts) if format_ == "md" else latex(parts, "Scores of runs")
    rows: list[tuple[object, ...]] = [
        ("run", "mode", "metric", "task", "value", "lower", "upper", "n", "clusters")
    ]
    for name, summary in zip(run_names(summaries), summaries, strict=True):
        for mode, part in summary.modes.items():
            shown = {
                name: metric for name, metric in part.metrics.items() if name not in ONLY_IN_JSON
            }
            for metric, value in shown.items() if part.headline else ():
                for task, each in {"": value.overall, **value.by_task_type}.items():
                    ends = (each.interval.lower, each.interval.upper) if each.interval else ("", "")
                    rows.append(
                        (name, mode, metric, task, each.value, *ends, each.n, each.n_clusters)
                    )
    return csv_text(rows)


def view(
    folder: Path = Path("runs"),
    port: int | None = None,
    data_root: Path | None = None,
    only_list: bool = False,
    as_json: bool = False,
) -> None:
    """Show the runs in a folder on a local page, with larger pictures than in a report, and live while a run goes on.

    Only this machine can open it, with the address that is printed. Nothing is written.
    """
    import sys

    from agrotools.core import UsageError
    from agrotools.report.html.server import Viewer, serve_pages
    from agrotools.report.run_list import list_runs, runs_table
    from agrotools.report.terminal import print_parts

    if not folder.is_dir():
        raise UsageError(
            f"there is no folder {folder}", hint="give a run folder, or the folder of your runs"
        )
    runs = (
        [{**vars(entry), "path": str(entry.path)} for entry in list_runs(folder)] if as_json else []
    )
    if only_list and as_json:
        print_json(runs)
    elif only_list:
        print_parts([runs_table([*list_runs(folder)], folder)])
        typer.echo(f"on a page: {command_line('view', folder)}")
    if only_list:
        return

    def started(address: str) -> None:
        if as_json:
            print_json({"address": address, "runs": runs})
        else:
            typer.echo(f"open: {address}\nPress Ctrl-C to stop")
        sys.stdout.flush()

    serve_pages(Viewer(folder, data_root), port, started)
