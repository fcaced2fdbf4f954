"""``agrotools report``: write a report of runs as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from agrotools.cli.options import AllowInvalid, TextOptions, with_option_groups
from agrotools.cli.output import count_text, print_json


@with_option_groups
def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders; several are shown side by side.")],
    texts: TextOptions,
    out: Annotated[
        Path | None,
        typer.Option(help="File to write. Default: report.html in the run folder, or in this folder for several runs."),
    ] = None,
    samples: Annotated[
        int, typer.Option(min=0, help="Records of each run on the page; of more, the worst scores.")
    ] = 20_000,
    image_px: Annotated[
        int, typer.Option(min=64, max=4000, help="Longest side of the images on the page, in pixels.")
    ] = 480,
    data_root: Annotated[Path | None, typer.Option(help="Folder of the benchmark, if it was moved.")] = None,
    allow_invalid: AllowInvalid = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Write an HTML report: overview, samples with images, steps and scores, and tables. It opens offline."""
    from agrotools.report.html import build_report

    target = out or (runs[0] / "report.html" if len(runs) == 1 else Path("report.html"))
    written = build_report(
        runs,
        target,
        samples=samples,
        longest_px=image_px,
        data_root=data_root,
        allow_invalid=allow_invalid,
        comparisons=texts.comparisons(),
    )
    if as_json:
        print_json({**vars(written), "path": str(written.path)})
        return
    shown_records = (
        f"{written.shown} of {count_text(written.records, 'record')}"
        if written.shown < written.records
        else count_text(written.records, "record")
    )
    typer.echo(
        f"{written.path}: {written.bytes / 1e6:.1f} MB, {shown_records} with {count_text(written.pictures, 'image')}"
    )
    if written.missing_pictures:
        missing = f"{count_text(written.missing_pictures, 'image')} could not be embedded (the page gives the reasons)"
        typer.echo(f"{missing}\nhint: if the benchmark was moved, give its folder with --data-root DIR", err=True)
