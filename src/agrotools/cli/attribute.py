"""``agrotools attribute``: where a run lost its points."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agrotools.cli.output import command_line, print_json, terminal_progress

if TYPE_CHECKING:
    from agrotools.runner.estimate import Estimate


def attribute(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    data_root: Annotated[Path | None, typer.Option(help="Folder of the benchmark's files, if they were moved.")] = None,
    tool_noise: Annotated[
        bool, typer.Option("--tool-noise", help="Also predict what a better version of each tool would win.")
    ] = False,
    rerun: Annotated[
        bool, typer.Option("--rerun", help="Ask the model again where a replaced part changes what it sees.")
    ] = False,
    budget: Annotated[float | None, typer.Option(help="With --rerun: maximum cost of the run in USD.", min=0)] = None,
    price: Annotated[
        str | None, typer.Option(help="With --rerun: USD per million tokens, as IN/OUT.", metavar="IN/OUT")
    ] = None,
    api_key_env: Annotated[
        str | None, typer.Option(help="With --rerun: environment variable with the key.", metavar="NAME")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="With --rerun: start without asking.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes for tools that run again.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print the attribution as JSON.")] = False,
) -> None:
    """Split the points that a run lost: planning, arguments, injected faults, each tool, reading and form."""
    from agrotools.analysis.attribution import Rerun, attribute_run
    from agrotools.core import UsageError
    from agrotools.report.parts import attribution_tables
    from agrotools.report.terminal import print_parts
    from agrotools.scoring.attribution import ATTRIBUTION_FILE

    given = {"--budget": budget, "--price": price, "--api-key-env": api_key_env}
    if not rerun and (unused := [name for name, value in given.items() if value is not None]):
        raise UsageError(f"{unused[0]} has no effect without --rerun", hint="add --rerun, or omit it")
    attribution = attribute_run(
        run,
        data_root=data_root,
        workers=workers,
        rerun=Rerun(lambda expected: _confirm(expected, yes=yes), api_key_env, price, budget) if rerun else None,
        noise=tool_noise,
        progress=terminal_progress(),
    )
    if as_json:
        print_json(attribution.model_dump(mode="json"))
        return
    print_parts(attribution_tables(attribution))
    typer.echo(f"per sample: {run / ATTRIBUTION_FILE}\non the page: {command_line('report', run)}")


def _confirm(expected: "Estimate", *, yes: bool) -> None:
    """Print the estimate, and ask before anything is sent to a model that is not free.

    Raises:
        UsageError: the answer is no, or nobody can be asked.
    """
    from agrotools.core import UsageError

    typer.echo(
        str(expected) if expected.input_tokens else f"{expected.requests:,} answers of {expected.model}", err=True
    )
    if yes or not expected.input_tokens or (expected.price and expected.price.is_free):
        return
    if not sys.stdin.isatty() or not typer.confirm("Send these requests?", err=True):
        raise UsageError("the model was not asked", hint="--yes sends the requests, --budget USD limits their cost")
