"""Scores of runs, computed, stored and shown: what ``eval`` ends with and ``score`` does."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agrotools.cli.json_output import print_json

if TYPE_CHECKING:
    from agrotools.report.html import Outcomes
    from agrotools.runner.evaluate import Evaluation
    from agrotools.runner.rescore import Rescored


def show_runs(
    runs: Sequence[Path], *, allow_invalid: bool, details: bool, as_json: bool, extras: Sequence[str] = ()
) -> int:
    """Score runs, write each one's ``scores.json``, print them side by side.

    Returns 0, 1 where invalid samples remain, 3 where nothing else is left.
    """
    return _shown(_scored(runs, allow_invalid, extras), runs, details=details, as_json=as_json)


def show_evaluations(
    done: "Sequence[Evaluation]", *, data_root: Path | None, allow_invalid: bool, details: bool, as_json: bool
) -> int:
    """As :func:`show_runs`, and the report of them all as a page in the first run's folder.

    Returns 1, too, where a run was stopped before it was done.
    """
    from agrotools.core import RunStoreError
    from agrotools.report.html import Outcomes, write_report

    runs = [each.run for each in done]
    outcomes = Outcomes()
    rescored = _scored(runs, allow_invalid, outcomes=outcomes)
    code = _shown(rescored, runs, details=details, as_json=as_json)
    summaries = [each.summary for each in rescored]
    try:
        page = write_report(
            runs,
            runs[0] / "report.html",
            data_root=data_root,
            summaries=summaries,
            outcomes=outcomes,
            allow_invalid=allow_invalid,
        )
        typer.echo(f"the report, with samples, pictures and steps: {page}", err=as_json)
    except RunStoreError as error:
        typer.echo(f"no report: {error}", err=True)
    for each in done:
        if each.stopped:
            typer.echo(f"stopped: {each.stopped.message}\nhint: {each.stopped.hint}", err=True)
    return code or int(any(each.stopped for each in done))


def _scored(
    runs: Sequence[Path], allow_invalid: bool, extras: Sequence[str] = (), outcomes: "Outcomes | None" = None
) -> "list[Rescored]":
    from agrotools.runner.rescore import rescore

    rescored: list[Rescored] = []
    for run in runs:
        if outcomes is not None:
            outcomes.begin_run()
        add = outcomes.add if outcomes is not None else None
        rescored.append(rescore(run, allow_invalid=allow_invalid, extras=extras, on_scored=add))
    return rescored


def _shown(rescored: "Sequence[Rescored]", runs: Sequence[Path], *, details: bool, as_json: bool) -> int:
    from agrotools.report.tables import print_tables

    summaries = [each.summary for each in rescored]
    if as_json:
        print_json([summary.model_dump(mode="json") for summary in summaries])
    else:
        print_tables(summaries, details=details)
        again = " ".join(str(run) for run in runs)
        if not details:
            typer.echo(f"by task and answer type: agrotools score {again} --details")
        if sample := rescored[0].telling_sample:
            typer.echo(f"one sample, from question to score: agrotools explain {runs[0]} {sample}")
    parts = [part for summary in summaries for part in summary.modes.values()]
    if all(part.invalid.n == part.n_records for part in parts):
        reason = next(iter(parts[0].invalid.reasons))
        typer.echo(f"error: no sample got a reply: {reason}", err=True)
        return 3
    return int(any(part.invalid.n for part in parts))
