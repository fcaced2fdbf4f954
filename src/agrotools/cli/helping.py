"""Helper models of the commands that build a benchmark: paraphrases, traces, proposals, and messages on the outcome."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agrotools.cli.options import HelperOptions
from agrotools.cli.output import count_text, stop_message, terminal_progress

if TYPE_CHECKING:
    from agrotools.build.assist.paraphrase import ParaphraseResult
    from agrotools.build.assist.proposing import ProposalResult
    from agrotools.build.assist.tracing import TraceResult
    from agrotools.core import AgrotoolsError
    from agrotools.models.endpoint import PricedModel

_DIFFERING_SHOWN = 8


@contextmanager
def with_helper_models(out: Path, options: HelperOptions, *, workers: int = 2) -> Generator[None]:
    """Set up helper models, run the block that builds the benchmark, then paraphrase and trace it.

    If a helper model fails, the benchmark remains as built.

    Raises:
        UsageError: before the block, if a model cannot be set up or there are options for a model but no model.
        typer.Exit: code 130, interrupted by the user while the models were working.
    """
    if options.paraphrase is None and options.traces is None and options.propose is None:
        if unused := [name for name, value in vars(options).items() if value is not None]:
            from agrotools.core import UsageError

            raise UsageError(
                f"--{unused[0].replace('_', '-')} was given without --paraphrase, --traces or --propose",
                hint="add --paraphrase, --traces or --propose MODEL",
            )
        yield
        return
    from agrotools.build.assist.traces import kept_traces
    from agrotools.models import Endpoint, WireSettings
    from agrotools.models.endpoint import priced_model

    def set_up(spec: str) -> "PricedModel":
        wire = WireSettings(concurrency=options.concurrency)
        return priced_model(Endpoint(spec, options.base_url, options.api_key_env, wire, options.price, options.budget))

    out = out.expanduser()
    specs = options.paraphrase, options.traces, options.propose
    rewords, fills, proposes = (set_up(spec) if spec else None for spec in specs)
    with ExitStack() as stack:
        if fills:
            stack.enter_context(kept_traces(out))
        yield
    ledger, progress, completed = out.parent / f".{out.name}-spend.jsonl", terminal_progress(), True
    with stop_message(f"the benchmark is in {out}"):
        if rewords:
            from agrotools.build.assist.paraphrase import paraphrase_folder

            paraphrased = paraphrase_folder(out, rewords, ledger, progress)
            _print_paraphrases(paraphrased)
            completed &= _end(rewords, paraphrased.stopped)
        if fills:
            from agrotools.build.assist.tracing import trace_folder

            traced = trace_folder(out, fills, ledger, progress, workers=workers)
            _print_traces(out, fills.name, traced)
            completed &= _end(fills, traced.stopped)
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


def _print_traces(out: Path, model: str, outcome: "TraceResult") -> None:
    from agrotools.build.assist.traces import TRACES_FILE

    typer.echo(f"reference chains as {model} fills them in ({out / TRACES_FILE}):")
    typer.echo(f"  {'':24}{'chains':>7}{'complete':>10}{'arguments agree':>20}{'answers agree':>16}{'confirmed':>11}")
    for row in outcome.summary:
        steps = f"{row.steps_agreed}/{row.steps} {_share(row.steps_agreed, row.steps)}"
        answers = f"{row.answers_agreed}/{row.answers}"
        typer.echo(
            f"  {row.task_type or 'all':24}{row.chains:>7}{row.complete:>10}{steps:>20}{answers:>16}{row.confirmed:>11}"
        )
    if left_open := outcome.summary[-1].left_open:
        chains = count_text(left_open, "chain")
        typer.echo(f"  in {chains} the tools do not return what a later step takes from them")
    if outcome.thoughts:
        typer.echo(f"  thoughts taken over where references had none: {count_text(outcome.thoughts, 'sample')}")
    if outcome.differing:
        examples = ", ".join(outcome.differing[:_DIFFERING_SHOWN])
        more = (
            f" and {len(outcome.differing) - _DIFFERING_SHOWN} more"
            if len(outcome.differing) > _DIFFERING_SHOWN
            else ""
        )
        typer.echo(
            f"  different and in need of a review: {count_text(len(outcome.differing), 'chain')}: {examples}{more}"
        )
    if outcome.missing:
        typer.echo(
            f"warning: {count_text(outcome.missing, 'sample')} without a trace; run the same command again to resume",
            err=True,
        )


def _print_proposals(out: Path, result: "ProposalResult") -> None:
    typer.echo(f"questions proposed by {result.model}: {len(result.samples)}, {result.dropped.total()} dropped")
    for reason, count in result.dropped.most_common():
        typer.echo(f"  {count} {reason}")
    if result.samples:
        typer.echo(f"  not part of {out}; review them: agrotools review {result.out}")
        typer.echo(f"  then write a benchmark of the accepted ones: agrotools review {result.out} --apply --out NEW")


def _share(part: int, whole: int) -> str:
    return f"({100 * part / whole:.0f} %)" if whole else ""


def _end(helper: "PricedModel", stopped: "AgrotoolsError | None") -> bool:
    """Print the cost of a helper model and the error that stopped it, if any; return True if there was none."""
    stats = helper.model.stats
    if stats.input_tokens or stats.cached or stats.spent_usd is not None:
        spent = f", {stats.spent_usd:.4f} USD in all" if stats.spent_usd is not None else ""
        replies = f"{count_text(stats.replies, 'reply', 'replies')}, {stats.cached} from the cache"
        typer.echo(f"  {replies}; {stats.input_tokens:,} tokens in, {stats.output_tokens:,} out{spent}")
    if stopped is not None:
        typer.echo(f"warning: {stopped.message}", err=True)
        if stopped.hint:
            typer.echo(f"hint: {stopped.hint}", err=True)
    return stopped is None
