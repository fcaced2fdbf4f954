"""``agrotools doctor --env``: the certificate of the environment."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from agrotools.cli.output import count_text, print_json

if TYPE_CHECKING:
    from agrotools_build.certificate import Line


def check_env(as_json: bool) -> None:
    """Print the certificate of the environment and what it does not check; exit code 1 if a line fails."""
    from agrotools_build.certificate import NOT_CHECKED, Line, certificate

    lines: list[Line] = []
    for line in certificate():
        lines.append(line)
        if not as_json:
            typer.echo(
                f"{_verdict(line.passed)}  {line.check:<66} {line.value:5.2f}  must be {line.bound}"
            )
    failed = sum(not each.passed for each in lines)
    verdict = f"{_verdict(not failed)}: {count_text(len(lines), 'line')}, {failed} failed"
    if as_json:
        found: dict[str, Any] = {
            "passed": not failed,
            "lines": [each._asdict() for each in lines],
            "not_checked": NOT_CHECKED,
            "markdown": _in_markdown(verdict, lines, NOT_CHECKED),
        }
        print_json(found)
    else:
        typer.echo(verdict)
        typer.echo("Not checked, so that a PASS says nothing about it:")
        for fault in NOT_CHECKED:
            typer.echo(f"  {fault}")
    raise typer.Exit(int(failed > 0))


def _verdict(passed: bool) -> str:
    return "PASS" if passed else "FAIL"


def _in_markdown(verdict: str, lines: Sequence["Line"], not_checked: Sequence[str]) -> str:
    """Return the certificate as a page for a repository or a model card."""
    from agrotools.report.text_tables import in_markdown

    text = [f"### Certificate of the environment: {verdict}", ""]
    text += ["| | check | value | must be | id |", "|---|---|---:|---|---|"]
    for line in lines:
        cells = [
            _verdict(line.passed),
            in_markdown(line.check),
            f"{line.value:.2f}",
            in_markdown(line.bound),
            f"`{line.check_id}`",
        ]
        text.append(f"| {' | '.join(cells)} |")
    text += ["", "Not checked, so that a PASS says nothing about it:", ""]
    text += [f"- {fault}" for fault in not_checked]
    return "\n".join(text)
