"""Scores of runs, computed, stored and printed, for ``eval`` and ``score``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agrotools.cli.output import print_json

if TYPE_CHECKING:
    from agrotools.api import Run
    from agrotools.core import Record, Score
    from agrotools.plugin import TextComparisons
    from agrotools.report.html import Outcomes
    from agrotools.report.published import Papers
    from agrotools.runner.manifest import Manifest
    from agrotools.runner.rescore import Rescored
    from agrotools.scoring.summary import Summary


def show_runs(
    runs: Sequence[Path],
    *,
    allow_invalid: bool,
    details: bool,
    as_json: bool,
    comparisons: "TextComparisons | None" = None,
    paper: bool = False,
    unadjusted: bool = False,
    again: bool = False,
) -> int:
    """Score runs, write each one's ``scores.json``, print them side by side; with ``paper`` also in the tables of the
    paper that the benchmark is from, beside its figures. ``comparisons``: see ``rescore``; ``unadjusted``:
    mark differences by the p-value of each alone. Stored scores of another scoring version are shown as they are,
    unless runs are to be scored ``again``.

    Returns 0, 1 where samples are invalid or missing, 3 where nothing else is left, or where more than half of the
    samples of a mode ended for reasons that say nothing of the answers, unless ``allow_invalid``.
    Where nothing is left, no table is printed.
    """
    from agrotools.report.layout import console_for, print_part
    from agrotools.report.published import Papers, benchmarks_with_papers

    papers = Papers()
    rescored = _scored(runs, allow_invalid, comparisons=comparisons, papers=papers, again=again)
    code = _print_summaries(
        rescored, runs, allow_invalid=allow_invalid, details=details, as_json=as_json, unadjusted=unadjusted
    )
    filled = papers.filled()
    if paper and not filled:
        known = ", ".join(benchmarks_with_papers())
        typer.echo(f"--paper: none of these runs is of a benchmark whose paper's tables are known ({known})", err=True)
    elif filled and not as_json:
        if paper:
            console = console_for(None)
            for part in (part for tables in filled for part in tables.terminal()):
                print_part(console, part)
        else:
            typer.echo(f"in the tables of the paper, beside its figures: agrotools score {_again(runs)} --paper")
    return code


def show_evaluations(
    evaluated: "Sequence[Run]",
    *,
    allow_invalid: bool,
    details: bool,
    as_json: bool,
    comparisons: "TextComparisons | None" = None,
) -> int:
    """As :func:`show_runs`, and the report of them all as a page in the first run's folder, if a sample got a reply.

    Returns 1, too, where a run was stopped before it was done.
    """
    from agrotools.core import RunStoreError
    from agrotools.plugin import NO_COMPARISONS
    from agrotools.report.html import Outcomes, build_report
    from agrotools.report.published import Papers

    runs = [each.path for each in evaluated]
    outcomes, papers = Outcomes(), Papers()
    rescored = _scored(runs, allow_invalid, comparisons=comparisons, outcomes=outcomes, papers=papers)
    code = _print_summaries(rescored, runs, allow_invalid=allow_invalid, details=details, as_json=as_json)
    summaries = [each.summary for each in rescored]
    if _only_invalid(summaries):
        return code
    if papers.filled() and not as_json:
        typer.echo(f"in the tables of the paper, beside its figures: agrotools score {_again(runs)} --paper")
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
        typer.echo(f"the report, with samples, pictures and steps: {page}", err=as_json)
    except RunStoreError as error:
        typer.echo(f"no report: {error}", err=True)
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
    """Score the runs; ``papers`` and ``outcomes`` are given every record with its rows."""
    from agrotools.api import score_runs
    from agrotools.plugin import NO_COMPARISONS

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
    unadjusted: bool = False,
) -> int:
    from agrotools.report.tables import print_tables
    from agrotools.scoring.event_counts import mostly_lost

    summaries = [each.summary for each in rescored]
    silent = _only_invalid(summaries)
    if as_json:
        print_json([summary.model_dump(mode="json") for summary in summaries])
    elif not silent:
        print_tables(summaries, details=details, unadjusted=unadjusted)
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
    """True if the runs hold records, and all of them are invalid."""
    parts = [part for summary in summaries for part in summary.modes.values()]
    return bool(parts) and all(part.invalid.n == part.n_records for part in parts)
