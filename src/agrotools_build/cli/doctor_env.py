"""``agrotools doctor --env``: the certificate of the environment."""

from typing import Any

import typer

from agrotools.cli.output import count_text, print_json


def check_env(as_json: bool) -> None:
    """Print the certificate of the environment and what it does not check; exit code 1 if a line fails."""
    from agrotools_build.certificate import NOT_CHECKED, certificate

    lines: list[dict[str, Any]] = []
    for line in certificate():
        lines.append(line._asdict())
        if not as_json:
            state = "PASS" if line.passed else "FAIL"
            typer.echo(f"{state}  {line.check:<60} {line.value:5.2f}  must be {line.bound}")
    failed = sum(not each["passed"] for each in lines)
    if as_json:
        print_json({"passed": not failed, "lines": lines, "not_checked": NOT_CHECKED})
    else:
        typer.echo(
            f"{'FAIL' if failed else 'PASS'}: {count_text(len(lines), 'line')}, {failed} failed"
        )
        typer.echo("Not checked, so that a PASS says nothing about it:")
        for fault in NOT_CHECKED:
            typer.echo(f"  {fault}")
    raise typer.Exit(int(failed > 0))
