"""Helper model of the commands that build a benchmark: paraphrases, and messages on the outcome."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agrotools.cli.options import HelperOptions
from agrotools.cli.output import count_text, stop_message, terminal_progress

if TYPE_CHECKING:
    from agrotools.build.assist.paraphrase import ParaphraseResult
    from agrotools.core import AgrotoolsError
    from agrotools.models.endpoint import PricedModel


@contextmanager
def with_helper_models(out: Path, options: HelperOptions) -> Generator[None]:
    """Set up the helper model, run the block that builds the benchmark, then paraphrase its questions.

    If the helper model fails, the benchmark remains as built.

    Raises:
        UsageError: before the block, if the model cannot be set up or there are options for it but no model.
        typer.Exit: code 130, interrupted by the user while the model was working.
    """
    if options.paraphrase is None:
        if unused := [name for name, value in vars(options).items() if value is not None]:
            from agrotools.core import UsageError

            raise UsageError(
                f"--{unused[0].replace('_', '-')} was given without --paraphrase", hint="add --paraphrase MODEL"
            )
        yield
        return
    from agrotools.models import Endpoint, WireSettings
    from agrotools.models.endpoint import priced_model

    out = out.expanduser()
    wire = WireSettings(concurrency=options.concurrency)
    helper = priced_model(
        Endpoint(options.paraphrase, options.base_url, options.api_key_env, wire, options.price, options.budget)
    )
    yield
    ledger = out.parent / f".{out.name}-spend.jsonl"
    with stop_message(f"the benchmark is in {out}"):
        from agrotools.build.assist.paraphrase import paraphrase_folder

        paraphrased = paraphrase_folder(out, helper, ledger, terminal_progress())
        _print_paraphrases(paraphrased)
        if _end(helper, paraphrased.stopped):
            ledger.unlink(missing_ok=True)


def _print_paraphrases(outcome: "ParaphraseResult") -> None:
    typer.echo(
        f"paraphrases by {outcome.model}: {outcome.accepted} of {count_text(len(outcome.samples), 'question')} reworded"
    )
    if outcome.refused:
        from agrotools.build.assist.paraphrase import REASONS

        typer.echo(f"  {outcome.refused.total()} wordings refused:")
        for reason, count in outcome.refused.most_common():
            typer.echo(f"    {count} {reason}: {REASONS[reason]}")
    if outcome.kept:
        why = ", ".join(f"{reason} {count}" for reason, count in outcome.kept.most_common())
        typer.echo(
            f"warning: wording of the template kept: {count_text(outcome.kept.total(), 'question')} ({why})", err=True
        )


def _end(helper: "PricedModel", stopped: "AgrotoolsError | None") -> bool:
    """Print the cost of a helper model and the error that stopped it, if any; return True if there was none."""
    stats = helper.model.stats
    if stats.input_tokens or stats.cached or stats.spent_usd is not None:
        replies = f"{count_text(stats.replies, 'reply', 'replies')}, {stats.cached} from the cache"
        typer.echo(f"  {replies}; {stats.tokens_text}")
    if stopped is not None:
        typer.echo(f"warning: {stopped.message}", err=True)
        if stopped.hint:
            typer.echo(f"hint: {stopped.hint}", err=True)
    return stopped is None
