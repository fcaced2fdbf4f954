"""``agrotools probe``: what an endpoint really does with images, tools, schemas, seeds and logprobs."""

from typing import TYPE_CHECKING, Annotated

import typer

from agrotools.cli.options import AsJson
from agrotools.cli.output import print_json

if TYPE_CHECKING:
    from agrotools.models.probe import Finding


def probe(
    model: Annotated[str, typer.Option("--model", "-m", help="Model name on the endpoint, or PROVIDER:NAME.")],
    base_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible endpoint, e.g. http://localhost:8000/v1.")
    ] = None,
    api_key_env: Annotated[
        str | None, typer.Option(help="Environment variable that holds the key.", show_default="OPENAI_API_KEY")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show in about ten tiny requests what an endpoint does with images, tools, schemas, seeds and logprobs.

    The result is kept: `agrotools eval` warns if a run needs what is not there, and stores it with the run. Exit code
    0 whatever was found; 2 if the model is refused, 3 if no server answers.
    """
    from agrotools.core import UsageError
    from agrotools.models import Endpoint
    from agrotools.models.probe import run_probe

    if model.startswith("scripted:"):
        raise UsageError(f"{model} has no endpoint to probe", hint="give a model on a server")
    report = run_probe(Endpoint(model, base_url, api_key_env), (lambda _: None) if as_json else _print_finding)
    if as_json:
        print_json(report.model_dump(mode="json"))
        return
    tokens = [sum(getattr(each, name) for each in report.findings) for name in ("input_tokens", "output_tokens")]
    typer.echo(f"{tokens[0]:,} tokens in, {tokens[1]:,} out; kept for agrotools eval")


def _print_finding(finding: "Finding") -> None:
    typer.echo(f"{finding.feature:<16} {finding.state:<8} {finding.detail}")
