"""Helper models of the commands that build a benchmark: paraphrases, traces, proposals, and messages on the outcome."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agrotools.cli.options import HelperOptions
from agrotools.cli.output import STOPPED, count_text

if TYPE_CHECKING:
    from agrotools.build.assist.paraphrase import ParaphraseResult
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
    ledger = out.parent / f".{out.name}-spend.jsonl"
    try:
        completed = [_reworded(out, rewords, ledger)] if rewords else []
        completed += [_traced(out, fills, ledger, workers)] if fills else []
        completed += [_proposed(out, proposes, ledger, options.proposals)] if proposes else []
    except KeyboardInterrupt:
        typer.echo(f"\nstopped; the benchmark is in {out}, run the same command again to resume", err=True)
        raise typer.Exit(STOPPED) from None
    if all(completed):
        ledger.unlink(missing_ok=True)


def _reworded(out: Path, helper: "PricedModel", ledger: Path) -> bool:
    import sys

    from agrotools.build.assist.paraphrase import paraphrase_folder
    from agrotools.runner.progress import stage_progress

    outcome = paraphrase_folder(out, helper, ledger, stage_progress(sys.stderr))
    _print_paraphrases(outcome)
    _print_cost(helper)
    return outcome.stopped is None


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
    _warn_of(outcome.stopped)


def _traced(out: Path, helper: "PricedModel", ledger: Path, workers: int) -> bool:
    import sys

    from agrotools.build.assist.tracing import trace_folder
    from agrotools.runner.progress import stage_progress

    outcome = trace_folder(out, helper, ledger, stage_progress(sys.stderr), workers=workers)
    _print_traces(out, helper.name, outcome)
    _print_cost(helper)
    return outcome.stopped is None


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
    _warn_of(outcome.stopped)


def _proposed(out: Path, helper: "PricedModel", ledger: Path, most: int | None) -> bool:
    import sys

    from agrotools.build.assist.proposing import QUESTIONS, propose_folder
    from agrotools.runner.progress import stage_progress

    result = propose_folder(out, helper, ledger, most or QUESTIONS, stage_progress(sys.stderr))
    typer.echo(f"questions proposed by {result.model}: {len(result.samples)}, {result.dropped.total()} dropped")
    for reason, count in result.dropped.most_common():
        typer.echo(f"  {count} {reason}")
    if result.samples:
        typer.echo(f"  not part of {out}; review them: agrotools review {result.out}")
        typer.echo(f"  then write a benchmark of the accepted ones: agrotools review {result.out} --apply --out NEW")
    _print_cost(helper)
    _warn_of(result.stopped)
    return result.stopped is None


def _share(part: int, whole: int) -> str:
    return f"({100 * part / whole:.0f} %)" if whole else ""


def _print_cost(helper: "PricedModel") -> None:
    stats = helper.model.stats
    if stats.input_tokens or stats.cached or stats.spent_usd is not None:
        spent = f", {stats.spent_usd:.4f} USD in all" if stats.spent_usd is not None else ""
        replies = f"{count_text(stats.replies, 'reply', 'replies')}, {stats.cached} from the cache"
        typer.echo(f"  {replies}; {stats.input_tokens:,} tokens in, {stats.output_tokens:,} out{spent}")


def _warn_of(stopped: "AgrotoolsError | None") -> None:
    if stopped is not None:
        typer.echo(f"warning: {stopped.message}", err=True)
        if stopped.hint:
            typer.echo(f"hint: {stopped.hint}", err=True)
