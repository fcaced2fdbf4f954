"""``agrotools validate``: all faults of a benchmark folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agrotools.cli.json_output import print_json
from agrotools.cli.quality import print_findings
from agrotools.cli.rerun import print_rerun, rerun_as_json

if TYPE_CHECKING:
    from agrotools.benchmarks.checks.fault import Fault
    from agrotools.benchmarks.rerunning import Rerun
    from agrotools.build.assist.screening import Screened


def validate(
    folder: Annotated[Path | None, typer.Argument(help="Benchmark folder.", show_default=False)] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of the format and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the faults as JSON.")] = False,
    quality: Annotated[
        bool,
        typer.Option(
            "--quality",
            help="Also look for near-duplicates, leaks and questions that can be guessed; writes quality.jsonl there.",
        ),
    ] = False,
    rerun: Annotated[
        bool,
        typer.Option(
            "--rerun", help="Also run every reference call again and list results that differ on this machine."
        ),
    ] = False,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Number of processes that run tools, for --rerun.")] = 2,
    threads: Annotated[
        int, typer.Option(min=1, max=64, help="Threads of numeric libraries in each process, for --rerun.")
    ] = 1,
) -> None:
    """Check every file, hash, sample, tool, argument, reference and answer of a benchmark, and list all faults at once.

    Exit code 0: no faults (whatever --quality finds); 1: faults, or calls with other results; 2: no such folder.
    """
    from agrotools.benchmarks.validate import first_form_remarks, format_schema, validate_folder

    if schema:
        print_json(format_schema())
        return
    if folder is None:
        raise typer.BadParameter("name a folder, or give --schema", param_hint="FOLDER")
    if not folder.is_dir():
        raise typer.BadParameter(f"{folder} is not a folder", param_hint="FOLDER")
    faults = validate_folder(folder)
    remarks = first_form_remarks(folder)
    screened = _screened(folder, faults) if quality else None
    again = _rerun(folder, faults, workers, threads) if rerun else None
    if as_json:
        rows = [{"where": fault.where, **fault.model_dump(mode="json")} for fault in faults]
        found = (
            {"findings": [each.model_dump() for each in screened.findings], "not_checked": screened.left_out}
            if screened
            else {}
        )
        found |= rerun_as_json(again, threads) if again else {}
        print_json({"folder": str(folder), "faults": rows, "remarks": remarks, **found})
    else:
        for fault in faults:
            typer.echo(f"{fault.where}\n  {fault.code}: {fault.message}\n  {fault.hint}")
        typer.echo(f"{folder}: {f'{len(faults)} faults' if faults else 'no faults'}")
        for remark in remarks:
            typer.echo(f"remark: {remark}")
        if screened is not None:
            print_findings(folder, screened.findings, screened.left_out)
        if again is not None:
            print_rerun(again, threads)
    raise typer.Exit(1 if faults or (again is not None and again.differences) else 0)


def _screened(folder: Path, faults: "list[Fault]") -> "Screened | None":
    """Findings on a benchmark that can be loaded; of one that cannot, the faults say enough."""
    import sys

    from agrotools.build.assist.screening import screen_folder
    from agrotools.core import BenchmarkError
    from agrotools.runner.progress import stage_progress

    try:
        return screen_folder(folder, read_text=True, progress=stage_progress(sys.stderr))
    except BenchmarkError:
        if not faults:
            raise
        typer.echo("Quality checks skipped: fix the errors above first", err=True)
        return None


def _rerun(folder: Path, faults: "list[Fault]", workers: int, threads: int) -> "Rerun | None":
    """As :func:`_screened`: a benchmark that cannot be loaded, or names tools that are not there, is not run."""
    import asyncio
    import sys

    from agrotools.benchmarks import load_folder
    from agrotools.benchmarks.rerunning import rerun_references
    from agrotools.core import BenchmarkError, UsageError
    from agrotools.runner.progress import stage_progress

    try:
        benchmark = load_folder(folder)
        progress = stage_progress(sys.stderr)
        return asyncio.run(rerun_references(benchmark, workers=workers, threads=threads, progress=progress))
    except (BenchmarkError, UsageError):
        if not faults:
            raise
        typer.echo("Calls not rerun: fix the errors above first", err=True)
        return None
