"""Check of a benchmark folder and its quality, for ``agrotools benchmarks check`` and ``build``."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agrotools.cli.output import allow_closed_pipe, count_text, print_json, terminal_progress

if TYPE_CHECKING:
    from agrotools.build.quality import Finding


def check_folder(folder: Path, quality: bool, as_json: bool) -> int:
    """Check a benchmark folder and print all errors; return the exit code."""
    from agrotools.benchmarks.validate import canary_remarks, validate_folder
    from agrotools.build.quality import check_quality
    from agrotools.core import BenchmarkError, UsageError

    faults = validate_folder(folder)
    remarks = canary_remarks(folder)
    try:
        findings = check_quality(folder, terminal_progress()) if quality else None
    except (BenchmarkError, UsageError):  # it cannot be loaded, or names unknown tools
        if not faults:
            raise
        findings = None
        typer.echo("Quality checks skipped: fix the errors above first", err=True)
    with allow_closed_pipe():
        if as_json:
            rows = [{"where": fault.where, **fault.model_dump(mode="json")} for fault in faults]
            checks = {} if findings is None else {"findings": [each.model_dump() for each in findings]}
            print_json({"folder": str(folder), "faults": rows, "remarks": remarks, **checks})
        else:
            for fault in faults:
                typer.echo(f"{fault.where}\n  {fault.code}: {fault.message}\n  {fault.hint}")
            typer.echo(f"{folder}: {count_text(len(faults), 'error') if faults else 'no errors'}")
            for remark in remarks:
                typer.echo(f"remark: {remark}")
            if findings is not None:
                print_findings(folder, findings)
    return 1 if faults else 0


_EXAMPLES = 2


def print_findings(folder: Path, findings: "Sequence[Finding]", *, brief: bool = False) -> None:
    """Print the number of samples flagged by each check, with examples unless ``brief``."""
    from agrotools.build.quality import CHECKS, SEVERITIES
    from agrotools.formats.benchmark import QUALITY_FILE

    found = {(each.id, each.severity, each.check) for each in findings}
    flagged = Counter((severity, check) for _, severity, check in found)
    summary = f"{count_text(len(findings), 'finding')} in {folder / QUALITY_FILE}" if findings else "no findings"
    typer.echo(f"quality: {summary}")
    for key in sorted(flagged, key=lambda key: (SEVERITIES.index(key[0]), -flagged[key], key[1])):
        severity, check = key
        typer.echo(f"  {severity}: {check}, {count_text(flagged[key], 'sample')}: {CHECKS.get(check, '')}")
        if brief:
            continue
        for finding in [each for each in findings if (each.severity, each.check) == key][:_EXAMPLES]:
            typer.echo(f"    {finding.id}: {finding.message}")
