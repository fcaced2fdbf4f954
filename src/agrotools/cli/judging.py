"""Judges of open answers: asked about runs, their replies kept in the run folders."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from agrotools.runner.helping import Helper
    from agrotools.runner.judging import JudgedRun


@dataclass(frozen=True)
class JudgeOptions:
    """What the command line says of judges."""

    judges: tuple[str, ...] = ()
    base_url: str | None = None
    api_key_env: str | None = None
    votes: int = 1
    calibration: str | None = None
    budget: float | None = None
    price: str | None = None
    concurrency: int | None = None


def ask_judges(runs: Sequence[Path], options: JudgeOptions) -> bool:
    """Ask the judges about every run; what they replied before is not asked again.

    Returns whether replies are missing.

    Raises:
        UsageError: a judge that cannot be set up, or options for a judge that nobody asked for.
        RunStoreError: a run whose files cannot be read or written.
        typer.Exit: code 130, somebody asked to stop.
    """
    from agrotools.core import UsageError

    if not options.judges:
        if options != JudgeOptions():
            raise UsageError("options for a judge are given, and no judge", hint="add --judge MODEL")
        return False
    if len(set(options.judges)) < len(options.judges):
        raise UsageError("the same judge is given twice", hint="--judge-votes N lets one judge grade several times")
    import sys

    from agrotools.models import WireSettings
    from agrotools.runner.helping import helper_for
    from agrotools.runner.judging import judge_run
    from agrotools.runner.progress import stage_progress
    from agrotools.runner.store import read_manifest
    from agrotools.scoring.judging import labelled_questions

    labelled = labelled_questions(options.calibration) if options.calibration else {}
    for run in runs:
        read_manifest(run)
    missing = False
    for spec in options.judges:
        for run in runs:
            helper = helper_for(
                spec,
                base_url=options.base_url,
                api_key_env=options.api_key_env,
                budget_usd=options.budget,
                price=options.price,
                wire=WireSettings(concurrency=options.concurrency),
            )
            try:
                progress = stage_progress(sys.stderr)
                done = judge_run(run, helper, votes=options.votes, labelled=labelled, progress=progress)
            except KeyboardInterrupt:
                typer.echo("\nstopped; what judges replied is kept, and the same command goes on from here", err=True)
                raise typer.Exit(130) from None
            missing |= _told(run, done, helper)
    return missing


def _told(run: Path, done: "JudgedRun", helper: "Helper") -> bool:
    """Tell how asking went, on standard error; whether replies are missing."""
    if not (done.asked or done.held or done.missing):
        typer.echo(f"{run}: no answers that a judge could grade", err=True)
        return False
    stats = helper.model.stats
    spent = f", {stats.spent_usd:.4f} USD in all" if stats.spent_usd is not None else ""
    tokens = f"; {stats.input_tokens:,} tokens in, {stats.output_tokens:,} out{spent}" if done.asked else ""
    typer.echo(f"{run}: {done.judge} replied {done.asked} times, {done.held} replies were there{tokens}", err=True)
    if done.missing:
        typer.echo(f"warning: {done.missing} replies are missing; the same command asks for them again", err=True)
    if done.error is not None:
        typer.echo(
            f"warning: {done.error.message}" + (f"\nhint: {done.error.hint}" if done.error.hint else ""), err=True
        )
    return done.missing > 0
