"""Scoring, judging and display of runs, for ``eval`` and ``score``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agrotools.cli.options import JudgeOptions
from agrotools.cli.output import STOPPED, allow_closed_pipe, count_text, print_json

if TYPE_CHECKING:
    from agrotools.api import Run
    from agrotools.core import Record, Score
    from agrotools.models.endpoint import PricedModel
    from agrotools.plugin import TextComparisons
    from agrotools.report.html import Outcomes
    from agrotools.report.settings import Papers
    from agrotools.runner.judging import JudgedRun
    from agrotools.runner.manifest import Manifest
    from agrotools.runner.rescore import Rescored
    from agrotools.scoring.judging import Rubrics
    from agrotools.scoring.summary import Summary


def check_judges(options: JudgeOptions, benchmarks: Sequence[str]) -> "dict[str, Rubrics]":
    """Check the options before anything runs, and return the user's rubrics by benchmark.

    Raises:
        UsageError: a judge cannot be set up, rubrics cannot be read, or there are options for a judge but no judge.
    """
    from agrotools.core import UsageError

    judges = options.judge or []
    if not judges:
        if options not in (JudgeOptions(), JudgeOptions(judge=[])):
            raise UsageError("options for a judge are given, and no judge", hint="add --judge MODEL")
        return {}
    if len(set(judges)) < len(judges):
        raise UsageError("the same judge is given twice", hint="--judge-votes N lets one judge grade several times")
    from agrotools.scoring.judging import labelled_questions, read_rubrics

    if options.judge_calibration:
        labelled_questions(options.judge_calibration)
    for spec in judges:
        _judge(spec, options)
    path = options.judge_rubrics
    return {name: read_rubrics(path, name) for name in dict.fromkeys(benchmarks)} if path else {}


def _judge(spec: str, options: JudgeOptions) -> "PricedModel":
    from agrotools.models import Endpoint, WireSettings
    from agrotools.models.endpoint import priced_model

    wire = WireSettings(concurrency=options.judge_concurrency)
    where = (spec, options.judge_base_url, options.judge_api_key_env)
    return priced_model(Endpoint(*where, wire, options.judge_price, options.judge_budget))


def ask_judges(runs: Sequence[Path], options: JudgeOptions) -> bool:
    """Ask the judges about the answers of every run, reusing stored replies; return True if replies are missing.

    Raises:
        UsageError: see :func:`check_judges`.
        RunStoreError: the files of a run cannot be read or written.
        typer.Exit: code 130, interrupted by the user.
    """
    from agrotools.runner.store import read_manifest

    benchmarks = {run: read_manifest(run).benchmark for run in runs} if options.judge else {}
    rubrics = check_judges(options, [*benchmarks.values()])
    if not options.judge:
        return False
    import sys

    from agrotools.runner.judging import judge_run
    from agrotools.runner.progress import stage_progress
    from agrotools.scoring.judging import labelled_questions

    labelled = labelled_questions(options.judge_calibration) if options.judge_calibration else {}
    missing = False
    for spec in options.judge:
        for run in runs:
            helper = _judge(spec, options)
            try:
                progress = stage_progress(sys.stderr)
                judged = judge_run(
                    run,
                    helper,
                    votes=options.judge_votes,
                    labelled=labelled,
                    rubrics=rubrics.get(benchmarks[run]),
                    progress=progress,
                )
            except KeyboardInterrupt:
                typer.echo("\nstopped: judgements are kept; run the same command again to resume", err=True)
                raise typer.Exit(STOPPED) from None
            missing |= _report_asking(run, judged, helper)
    return missing


def _report_asking(run: Path, judged: "JudgedRun", helper: "PricedModel") -> bool:
    """Print the outcome on standard error; return True if replies are missing."""
    if not (judged.replies or judged.known or judged.missing):
        typer.echo(f"{run}: no answers that a judge could grade", err=True)
        return False
    stats = helper.model.stats
    spent = f", {stats.spent_usd:.4f} USD in all" if stats.spent_usd is not None else ""
    tokens = f"; {stats.input_tokens:,} tokens in, {stats.output_tokens:,} out{spent}" if judged.replies else ""
    replies = count_text(judged.replies, "reply", "replies")
    typer.echo(f"{run}: {judged.judge} gave {replies}, {judged.known} known before{tokens}", err=True)
    if judged.missing:
        typer.echo(
            f"warning: {count_text(judged.missing, 'reply', 'replies')} missing; run the same command again to resume",
            err=True,
        )
    if judged.without_images:
        typer.echo(
            f"warning: of {count_text(judged.without_images, 'question')} it saw the names of images, not the images",
            err=True,
        )
    if judged.error is not None:
        typer.echo(
            f"warning: {judged.error.message}" + (f"\nhint: {judged.error.hint}" if judged.error.hint else ""), err=True
        )
    return judged.missing > 0


def show_runs(
    runs: Sequence[Path],
    *,
    allow_invalid: bool,
    details: bool,
    as_json: bool,
    comparisons: "TextComparisons | None" = None,
    paper: bool = False,
    again: bool = False,
) -> int:
    """Score runs, write each ``scores.json`` and print the scores side by side.

    Args:
        runs: run folders.
        allow_invalid: report scores even if many samples are invalid or were lost.
        details: also print scores by task and answer type, and statistics.
        as_json: print the scores as JSON.
        comparisons: additional text comparisons.
        paper: also print the tables of the benchmark's paper, with its published figures.
        again: score runs of another scoring version again instead of showing their stored scores.

    Returns:
        Exit code: 0; 1 if samples are invalid or missing; 3 if all samples are invalid (no table is printed), or if
        more than half of the samples of a mode ended without an answer that can be scored, unless ``allow_invalid``.
    """
    from agrotools.report.layout import console_for, print_part
    from agrotools.report.settings import Papers, benchmarks_with_papers

    papers = Papers()
    rescored = _scored(runs, allow_invalid, comparisons=comparisons, papers=papers, again=again)
    code = _print_summaries(rescored, runs, allow_invalid=allow_invalid, details=details, as_json=as_json)
    filled = papers.filled()
    if paper and not filled:
        known = ", ".join(benchmarks_with_papers())
        typer.echo(f"--paper: none of these runs is of a benchmark whose paper's tables are known ({known})", err=True)
    elif filled and not as_json:
        with allow_closed_pipe():
            if paper:
                console = console_for(None)
                for part in (part for tables in filled for part in tables.terminal()):
                    print_part(console, part)
            else:
                typer.echo(f"compare with the figures of the paper: agrotools score {_again(runs)} --paper")
    return code


def show_evaluations(
    evaluated: "Sequence[Run]",
    *,
    allow_invalid: bool,
    details: bool,
    as_json: bool,
    comparisons: "TextComparisons | None" = None,
) -> int:
    """Score and print runs as :func:`show_runs` does, and write an HTML report of all runs to the first run's folder.

    No report is written if no sample got a reply. The exit code is also 1 if a run was stopped before it was complete.
    """
    from agrotools.core import RunStoreError
    from agrotools.plugin import NO_COMPARISONS
    from agrotools.report.html import Outcomes, build_report
    from agrotools.report.settings import Papers

    runs = [each.path for each in evaluated]
    outcomes, papers = Outcomes(), Papers()
    rescored = _scored(runs, allow_invalid, comparisons=comparisons, outcomes=outcomes, papers=papers)
    code = _print_summaries(rescored, runs, allow_invalid=allow_invalid, details=details, as_json=as_json)
    summaries = [each.summary for each in rescored]
    if _only_invalid(summaries):
        return code
    if papers.filled() and not as_json:
        with allow_closed_pipe():
            typer.echo(f"compare with the figures of the paper: agrotools score {_again(runs)} --paper")
    try:
        page = build_report(
            runs,
            runs[0] / "report.html",
            summaries=summaries,
            outcomes=outcomes,
            papers=papers,
            allow_invalid=allow_invalid,
            comparisons=comparisons or NO_COMPARISONS,
        ).path
        with allow_closed_pipe():
            typer.echo(f"the report, with samples, pictures and steps: {page}", err=as_json)
    except RunStoreError as error:
        typer.echo(f"no report: {error}", err=True)
        code = code or 1
    for each in evaluated:
        if each.stopped:
            typer.echo(f"stopped: {each.stopped}", err=True)
    return code or int(any(each.stopped for each in evaluated))


def _scored(
    runs: Sequence[Path],
    allow_invalid: bool,
    *,
    papers: "Papers",
    comparisons: "TextComparisons | None" = None,
    outcomes: "Outcomes | None" = None,
    again: bool = True,
) -> "list[Rescored]":
    """Score the runs, and pass every record with its score rows to ``papers`` and ``outcomes``."""
    from agrotools.plugin import NO_COMPARISONS
    from agrotools.runner.rescore import score_runs

    def add(record: "Record", scores: "list[Score]") -> None:
        papers.add(record, scores)
        if outcomes is not None:
            outcomes.add(record, scores)

    def begin(manifest: "Manifest") -> None:
        papers.begin_run(manifest)
        if outcomes is not None:
            outcomes.begin_run()

    requested = comparisons or NO_COMPARISONS
    return score_runs(
        runs, allow_invalid=allow_invalid, comparisons=requested, again=again, on_run=begin, on_scored=add
    )


def _again(runs: Sequence[Path]) -> str:
    return " ".join(map(str, runs))


def _print_summaries(
    rescored: "Sequence[Rescored]",
    runs: Sequence[Path],
    *,
    allow_invalid: bool,
    details: bool,
    as_json: bool,
) -> int:
    from agrotools.report.tables import print_tables
    from agrotools.scoring.event_counts import mostly_lost

    summaries = [each.summary for each in rescored]
    silent = _only_invalid(summaries)
    with allow_closed_pipe():
        if as_json:
            print_json([summary.model_dump(mode="json") for summary in summaries])
        elif not silent:
            print_tables(summaries, details=details)
            if not details:
                typer.echo(f"by task and answer type: agrotools score {_again(runs)} --details")
            if sample := rescored[0].telling_sample:
                typer.echo(f"one sample, from question to score: agrotools explain {runs[0]} {sample}")
    parts = [part for summary in summaries for part in summary.modes.values()]
    if silent:
        reason = next(iter(parts[0].invalid.reasons))
        typer.echo(f"error: no sample got a reply: {reason}", err=True)
        return 3
    failed_runs = [
        f"{run} ({mode})"
        for run, each in zip(runs, rescored, strict=True)
        for mode, part in each.summary.modes.items()
        if mostly_lost(part)
    ]
    if failed_runs and not allow_invalid:
        names = ", ".join(failed_runs)
        typer.echo(
            f"error: more than half of the samples ended without an answer that could be scored: {names}\n"
            'hint: the lines above the tables ("warnings" in JSON) say why; --allow-invalid lets them stand',
            err=True,
        )
        return 3
    return int(any(part.invalid.n for part in parts) or any(summary.missing for summary in summaries))


def _only_invalid(summaries: "Sequence[Summary]") -> bool:
    """True if the runs have records and all of them are invalid."""
    parts = [part for summary in summaries for part in summary.modes.values()]
    return bool(parts) and all(part.invalid.n == part.n_records for part in parts)
