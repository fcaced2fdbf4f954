"""Findings of the checks of quality, printed."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import typer

from agrotools.cli.output import count_text
from agrotools.formats.benchmark import QUALITY_FILE
from agrotools_build.cues import NOT_CHECKED
from agrotools_build.quality import CHECKS, OF_GROUPS, SEVERITIES, Finding

_EXAMPLES = 2
"""Findings of a check that are printed as examples."""


def print_findings(folder: Path, findings: Sequence[Finding], *, brief: bool = False) -> None:
    """Print the number of samples flagged by each check, with examples unless ``brief``."""
    distinct = {(each.id, each.severity, each.check) for each in findings}
    flagged = Counter((severity, check) for _, severity, check in distinct)
    summary = (
        f"{count_text(len(findings), 'finding')} in {folder / QUALITY_FILE}"
        if findings
        else "no findings"
    )
    typer.echo(f"quality: {summary}")
    for key in sorted(flagged, key=lambda key: (SEVERITIES.index(key[0]), -flagged[key], key[1])):
        severity, check = key
        n_samples = "" if check in OF_GROUPS else f", {count_text(flagged[key], 'sample')}"
        typer.echo(f"  {severity}: {check}{n_samples}: {CHECKS.get(check, '')}")
        if brief and check not in OF_GROUPS:
            continue
        for finding in [each for each in findings if (each.severity, each.check) == key][
            :_EXAMPLES
        ]:
            of_sample = "" if check in OF_GROUPS else f"{finding.id}: "
            typer.echo(f"    {of_sample}{finding.message}")
    if not brief:
        typer.echo("Not checked:")
        for way in NOT_CHECKED:
            typer.echo(f"  {way}")
