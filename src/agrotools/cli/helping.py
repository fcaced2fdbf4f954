"""Helper models of the commands that build a benchmark: paraphrases, proposals, and messages on the outcome."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agrotools.cli.options import HelperOptions
from agrotools.cli.output import command_line, count_text, stop_message, terminal_progress

if TYPE_CHECKING:
    from agrotools.build.assist.paraphrase import ParaphraseResult
    from agrotools.build.assist.proposing import ProposalResult
    from agrotools.core import AgrotoolsError
    from agrotools.models.endpoint import PricedModel


@contextmanager
def with_helper_models(out: Path, options: HelperOptions) -> Generator[None]:
    """Set up helper models, run the block that builds the benchmark, then paraphrase it and propose questions.

    If a helper model fails, the benchmark remains as built.

    Raises:
        UsageError: before the block, if a model cannot be set up or there are options for a model but no model.
        typer.Exit: code 130, interrupted by the user while the models were working.
    """
    if options.paraphrase is None and options.propose is None:
        if unused := [name for name, value in vars(options).items() if value is not None]:
            from agrotools.core import UsageError

            raise UsageError(
                f"--{unused[0].replace('_', '-')} was given without --paraphrase or --propose",
                hint="add --paraphrase or --propose MODEL",
            )
        yield
        return
    from agrotools.models import Endpoint, WireSettings
    from agrotools.models.endpoint import priced_model

    def set_up(spec: str) -> "PricedModel":
        wire = WireSettings(concurrency=options.concurrency)
        return priced_model(Endpoint(spec, options.base_url, options.api_key_env, wire, options.price, options.budget))

    out = out.expanduser()
    rewords, proposes = (set_up(spec) if spec else None for spec in (options.paraphrase, options.propose))
    yield
    ledger, progress, completed = out.parent / f".{out.name}-spend.jsonl", terminal_progress(), True
    with stop_message(f"the benchmark is in {out}"):
        if rewords:
            from agrotools.build.assist.paraphrase import paraphrase_folder

            paraphrased = paraphrase_folder(out, rewords, ledger, progress)
            _print_paraphrases(paraphrased)
            completed &= _end(rewords, paraphrased.stopped)
        if proposes:
            from agrotools.build.assist.proposing import QUESTIONS, propose_folder

            proposed = propose_folder(out, proposes, ledger, options.proposals or QUESTIONS, progress)
            _print_proposals(out, proposed)
            completed &= _end(proposes, proposed.stopped)
    if completed:
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


def _print_proposals(out: Path, result: "ProposalResult") -> None:
    typer.echo(f"questions proposed by {result.model}: {len(result.samples)}, {result.dropped.total()} dropped")
    for reason, count in result.dropped.most_common():
        typer.echo(f"  {count} {reason}")
    if result.samples:
        apply = command_line("review", result.out, "--apply", "--out", "NEW")
        typer.echo(f"  not part of {out}; review them: {command_line('review', result.out)}")
        typer.echo(f"  then write a benchmark of the accepted ones: {apply}")


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
