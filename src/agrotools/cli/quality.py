"""Report of quality checks on the terminal."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from agrotools.build.quality import Finding

_EXAMPLES = 2


def print_findings(
    folder: Path, findings: "Sequence[Finding]", left_out: Sequence[str], *, brief: bool = False
) -> None:
    """Print how many samples each check flagged, with examples unless ``brief``, and what was not checked."""
    from agrotools.build.quality import CHECKS
    from agrotools.build.quality.checking import SEVERITIES
    from agrotools.formats.folder import QUALITY_FILE

    flagged = Counter((severity, check) for _, severity, check in {(f.id, f.severity, f.check) for f in findings})
    found = f"{len(findings)} findings in {folder / QUALITY_FILE}" if findings else "no findings"
    typer.echo(f"quality: {found}")
    for key in sorted(flagged, key=lambda key: (SEVERITIES.index(key[0]), -flagged[key], key[1])):
        severity, check = key
        typer.echo(f"  {severity}: {check}, {flagged[key]} samples: {CHECKS.get(check, '')}")
        if brief:
            continue
        for finding in [each for each in findings if (each.severity, each.check) == key][:_EXAMPLES]:
            typer.echo(f"    {finding.id}: {finding.message}")
    for what in left_out:
        typer.echo(f"  not checked: {what}")
