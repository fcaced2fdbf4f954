"""Output of ``eval``, ``score`` and ``merge`` on scores, judges and pages. The values come from the rooms below."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from agrotools.cli.output import (
    allow_closed_pipe,
    command_line,
    count_text,
    print_json,
    terminal_progress,
)

if TYPE_CHECKING:
    from agrotools.core import BudgetReached, Mode
    from agrotools.core.readings import Readings
    from agrotools.formats.benchmark import Benchmark
    from agrotools.report.evaluation import RunScores
    from agrotools.runner.config import EvalConfig
    from agrotools.runner.evaluate import Evaluation
    from agrotools.runner.judging import JudgedRun
    from agrotools.scoring.classed_errors import ClassedErrors
    from agrotools.scoring.contracts import TextComparisons
    from agrotools.scoring.validity import Validity


class Evaluated(NamedTuple):
    """First configuration of ``agrotools eval``, its benchmark, its runs, and the budgets that stopped runs early.

    ``typed``: arguments of the command as the user typed them.
    """

    config: "EvalConfig"
    benchmark: "Benchmark"
    runs: "Sequence[Evaluation]" = ()
    typed: Sequence[str] = ()

    @property
    def asked_modes(self) -> "Sequence[Mode]":
        """Modes that the user asked for; empty for all."""
        return () if self.config.run.mode == "all" else self.config.run.modes

    @property
    def stops(self) -> "list[BudgetReached]":
        return [each.stopped for each in self.runs if each.stopped]

    @property
    def lacks_replies(self) -> bool:
        """True if a judge did not grade all answers."""
        return any(judged.missing for each in self.runs for judged in each.judged)


def print_judged(judged: "JudgedRun") -> None:
    """Print what a judge gave for a run, on standard error."""
    if not (judged.replies or judged.known or judged.missing):
        typer.echo(f"{judged.run}: no answers that a judge could grade", err=True)
        return
    tokens = f"; {judged.tokens}" if judged.replies else ""
    replies, missing = (count_text(n, "reply", "replies") for n in (judged.replies, judged.missing))
    lines = [f"{judged.run}: {judged.judge} gave {replies}, {judged.known} known before{tokens}"]
    if judged.missing:
        lines.append(f"warning: {missing} missing; run the same command again to resume")
    if error := judged.error:
        lines.append(
            f"warning: {error.message}" + (f"\nhint: {error.advice}" if error.advice else "")
        )
    typer.echo("\n".join(lines), err=True)


def print_validity(validity: "Validity") -> None:
    """Print the error that forbids to let scores stand, if there is one."""
    if validity.error:
        hint = f"\nhint: {validity.hint}" if validity.hint else ""
        typer.echo(f"error: {validity.error}{hint}", err=True)


def print_scores(
    scores: "RunScores",
    *,
    details: bool,
    as_json: bool,
    paper: bool = False,
    readings: "Readings | None" = None,
    classed: "Sequence[ClassedErrors]" = (),
) -> None:
    """Print the tables of runs, or their scores as JSON, after ``score`` and ``merge``.

    Args:
        scores: scores of the runs.
        details: also print scores by task and answer type, and statistics.
        as_json: print the scores as JSON.
        paper: print the tables of the benchmark's paper, with its published figures.
        readings: how a file of predictions was read, which the JSON says, too.
        classed: errors that a person classed, by run.
    """
    if as_json:
        how: list[dict[str, Any]] = [{} for _ in scores.summaries]
        for of_run in how:
            if readings:
                of_run["readings"] = readings.as_data()
        for of_run, errors in zip(how, classed, strict=False):
            of_run["classed_errors"] = errors.model_dump(mode="json")
        _print_json(scores, how)
    elif not scores.are_silent:
        with allow_closed_pipe():
            _print_tables(scores, details=details)
            _print_classed(scores, classed)
    for difference in scores.differences:
        typer.echo(f"warning: these runs are not comparable: {difference}", err=True)
    if not scores.are_silent:
        _print_papers(scores, paper=paper, as_json=as_json)


def print_evaluation(
    scores: "RunScores",
    evaluated: Evaluated,
    comparisons: "TextComparisons",
    *,
    details: bool,
    as_json: bool,
    allow_invalid: bool,
) -> bool:
    """Write the page of all runs to the first run's folder, and print the screen at the end of ``eval``.

    The tables precede the screen if ``details``; ``as_json`` prints the scores alone.

    Returns:
        True if the page was written, or if there is nothing to show.
    """
    if as_json:
        _print_json(scores, [{"reused_answers": each.n_reused} for each in evaluated.runs])
    if scores.are_silent:
        return True
    if details and not as_json:
        with allow_closed_pipe():
            _print_tables(scores, details=details)
    page = _write_page(scores, comparisons, allow_invalid=allow_invalid)
    if as_json:
        typer.echo(f"the report, with samples, pictures and steps: {page}", err=True)
        for reason in evaluated.stops:
            typer.echo(f"stopped: {reason.message}\nhint: {reason.hint}", err=True)
    else:
        _print_screen(scores, evaluated, page)
    return page is not None


def print_yardstick_notes(scores: "RunScores") -> None:
    """Print why a baseline is missing on the screen or on the page, on standard error."""
    for note in dict.fromkeys((*scores.yardsticks.notes, *scores.page_yardsticks.notes)):
        typer.echo(f"warning: {note}", err=True)


def _print_json(scores: "RunScores", how: "Sequence[dict[str, Any]]") -> None:
    """Print the scores of each run, with ``how`` each run came about."""
    data = [
        summary.model_dump(mode="json") | more
        for summary, more in zip(scores.summaries, how, strict=True)
    ]
    with allow_closed_pipe():
        print_json(data)


def _write_page(
    scores: "RunScores", comparisons: "TextComparisons", *, allow_invalid: bool
) -> Path | None:
    """Write the page and return its path; None, with an error, if it cannot be written."""
    from agrotools.core import RunStoreError
    from agrotools.report.evaluation import write_page

    try:
        return write_page(
            scores, comparisons, allow_invalid=allow_invalid, progress=terminal_progress()
        ).path
    except RunStoreError as error:
        typer.echo(f"no report: {error}", err=True)
        return None


def _print_screen(scores: "RunScores", evaluated: Evaluated, page: Path | None) -> None:
    from agrotools.cli.planning import next_commands
    from agrotools.loading.benchmarks import INCOMPLETE
    from agrotools.report.screen import Screen, print_screen
    from agrotools.runner.build import benchmark_notes

    runs, at = scores.runs, scores.first_model
    stops = [f"stopped by --budget: {each.message}" for each in evaluated.stops]
    stops += _beyond_limit(scores, evaluated)
    stops += [note for note in benchmark_notes(evaluated.benchmark) if note.startswith(INCOMPLETE)]
    commands = next_commands(scores.summaries[at], runs, evaluated)
    # The screen holds this list itself: its verdict, which names one of the commands, is calculated once.
    shown = Screen(scores.scored, scores.yardsticks, stops, commands, page, evaluated.asked_modes)
    if verdict := shown.verdict:
        comparing = command_line("compare", runs[verdict.first], runs[verdict.second])
        commands.insert(len(commands) if evaluated.stops else 0, comparing)
    if worst := scores.scored[at].telling_sample(evaluated.asked_modes):
        other_modes = scores.summaries[at].modes.keys() - {*evaluated.asked_modes}
        has_unasked = bool(evaluated.asked_modes and other_modes)
        in_mode = ["--mode", worst.mode] if has_unasked else []
        commands.append(command_line("explain", runs[at], worst.sample, *in_mode))
    if scores.papers:
        commands.append(command_line("score", runs[at], "--paper"))
    with allow_closed_pipe():
        print_screen(shown)


def _beyond_limit(scores: "RunScores", evaluated: Evaluated) -> list[str]:
    """Return that a run holds more answers than ``--limit`` asks for, from an earlier command; none if it does not."""
    limit = evaluated.config.benchmark.limit
    if limit is None:
        return []
    parts = [part for each in scores.summaries for part in each.modes.values()]
    most = max((part.n_samples for part in parts), default=0)
    if most <= limit:
        return []
    return [
        f"The run holds {most} answers from an earlier command; the score is of all, not of {limit} (--limit)."
    ]


def _print_tables(scores: "RunScores", *, details: bool) -> None:
    from agrotools.report.terminal import print_parts

    runs = scores.runs
    print_parts(scores.tables(details=details))
    if not details:
        typer.echo(f"by task and answer type: {command_line('score', *runs, '--details')}")
    if len(runs) > 1:
        typer.echo(f"differences by task, by cause and by sample: {command_line('compare', *runs)}")
    if worst := scores.scored[0].telling_sample():
        command = command_line("explain", runs[0], worst.sample)
        typer.echo(f"one sample, from question to score: {command}")


def _print_classed(scores: "RunScores", classed: "Sequence[ClassedErrors]") -> None:
    if classed:
        from agrotools.report.classed_errors import classed_error_tables
        from agrotools.report.layout import short_names
        from agrotools.report.terminal import print_parts

        print_parts(classed_error_tables(classed, short_names(scores.summaries)))


def _print_papers(scores: "RunScores", *, paper: bool, as_json: bool) -> None:
    """Print the tables of the papers, or the command that prints them."""
    from agrotools.core.installed import plugins
    from agrotools.report.terminal import print_parts
    from agrotools.runner.store import read_manifest

    known = [plugin.name for plugin in plugins() if plugin.paper.figures is not None]
    if paper and not scores.papers:
        names = ", ".join(known)
        typer.echo(
            f"--paper: none of these runs is of a benchmark whose paper's tables are known ({names})",
            err=True,
        )
    elif paper and not as_json:
        with allow_closed_pipe():
            print_parts(part for _, tables in scores.papers for part in tables)
    elif not as_json and any(read_manifest(run).benchmark in known for run in scores.runs):
        with allow_closed_pipe():
            typer.echo(
                f"compare with the figures of the paper: {command_line('score', *scores.runs, '--paper')}"
            )
