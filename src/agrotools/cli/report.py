"""``agrotools report``: write a report of runs as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from agrotools.cli.options import AllowInvalid, DataRoot, TextOptions, with_option_groups
from agrotools.cli.output import DONE, NOT_DONE, count_text, print_json


@with_option_groups
def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders; several are shown side by side.")],
    texts: TextOptions,
    out: Annotated[
        Path | None,
        typer.Option(help="File to write. Default: report.html in the run folder, or in this folder for several runs."),
    ] = None,
    image_px: Annotated[
        int, typer.Option(min=64, max=4000, help="Longest side of the images on the page, in pixels.")
    ] = 480,
    data_root: DataRoot = None,
    share: Annotated[
        bool, typer.Option("--share", help="Remove coordinates, file names, folders, addresses; say what was removed.")
    ] = False,
    format_: Annotated[
        str | None, typer.Option("--format", metavar="md|csv|latex", help="Print the scores as a table instead.")
    ] = None,
    allow_invalid: AllowInvalid = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Write an HTML report: overview, samples with images, steps and scores, and tables. It opens offline."""
    from agrotools.core import UsageError
    from agrotools.report.html import build_report
    from agrotools.runner.rescore import check_distinct

    check_distinct(runs)
    if format_ and share:
        raise UsageError("--share is for the page, not for --format", hint="omit one of them")
    if format_ and as_json:
        raise UsageError("--format and --json exclude each other", hint="give one of them")
    if format_ not in (None, "md", "csv", "latex"):
        raise UsageError(f"--format {format_}: no such format", hint="md, csv or latex")
    if format_:
        typer.echo(_table_text(runs, format_, allow_invalid=allow_invalid), nl=False)
        return
    name = "report-shared.html" if share else "report.html"
    target = out or (runs[0] / name if len(runs) == 1 else Path(name))
    written = build_report(
        runs,
        target,
        longest_px=image_px,
        data_root=data_root,
        allow_invalid=allow_invalid,
        comparisons=texts.comparisons(),
        share=share,
    )
    for note in written.notes:
        typer.echo(f"warning: {note}", err=True)
    if as_json:
        print_json({**vars(written), "path": str(written.path)})
        raise typer.Exit(NOT_DONE if written.damaged else DONE)
    shown_records = (
        f"{written.shown} of {count_text(written.records, 'record')}"
        if written.shown < written.records
        else count_text(written.records, "record")
    )
    typer.echo(
        f"{written.path}: {written.bytes / 1e6:.1f} MB, {shown_records} with {count_text(written.pictures, 'image')}"
    )
    if written.removed:
        typer.echo(written.removed)
    if written.missing_pictures:
        missing = f"{count_text(written.missing_pictures, 'image')} could not be embedded (the page gives the reasons)"
        typer.echo(f"{missing}\nhint: if the benchmark was moved, give its folder with --data-root DIR", err=True)
    raise typer.Exit(NOT_DONE if written.damaged else DONE)


def _table_text(runs: list[Path], format_: str, *, allow_invalid: bool) -> str:
    """Return the metrics of each mode as CSV (fractions), or the main tables as Markdown or LaTeX (percent)."""
    from agrotools.report.layout import run_names
    from agrotools.report.tables import tables
    from agrotools.report.text_tables import csv_text, latex, markdown
    from agrotools.runner.rescore import score_runs

    summaries = [each.summary for each in score_runs(runs, allow_invalid=allow_invalid)]
    if format_ != "csv":
        parts = tables(summaries, details=False)
        return markdown(parts) if format_ == "md" else latex(parts, "Scores of runs")
    rows: list[tuple[object, ...]] = [("run", "mode", "metric", "task", "value", "lower", "upper", "n", "clusters")]
    for name, summary in zip(run_names(summaries), summaries, strict=True):
        for mode, part in summary.modes.items():
            for metric, value in part.metrics.items() if part.headline else ():
                for task, each in {"": value.overall, **value.by_task_type}.items():
                    ends = (each.interval.lower, each.interval.upper) if each.interval else ("", "")
                    rows.append((name, mode, metric, task, each.value, *ends, each.n, each.n_clusters))
    return csv_text(rows)
