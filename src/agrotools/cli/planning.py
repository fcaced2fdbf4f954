"""Plans of ``agrotools eval`` before it runs: ``--dry-run``, and the question before a run that costs money."""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import typer

from agrotools.cli.output import BAD_USAGE, DONE, count_text

if TYPE_CHECKING:
    from agrotools.analysis.study import RunState
    from agrotools.formats.benchmark import Benchmark
    from agrotools.runner.config import EvalConfig
    from agrotools.runner.estimate import Estimate

ASK_ABOVE_USD = 1.0
"""Estimated cost of a run above which the user is asked on a terminal."""
_SECONDS_PER_REPLY, _IN_FLIGHT = 5.0, 8


def planned_run(config: "EvalConfig", benchmark: "Benchmark") -> "RunState":
    """Return the number of records of a run, of those that it has already, and the estimated cost of the others.

    Raises:
        UsageError: the configuration does not fit the benchmark, the model or the endpoint.
    """
    from agrotools.analysis.study import StudyRun, inspect_run
    from agrotools.runner.evaluate import prepare_run

    prepared = prepare_run(config, benchmark)
    part = ", quick part" if config.quick else ""
    title = f"{benchmark.name} {benchmark.version}{part}, {', '.join(prepared.plan.sizes())}"
    run = StudyRun(config.model, title, config.model_copy(update={"out": prepared.folder}))
    return inspect_run(run, benchmark, estimates=True)


def print_plans(states: "Sequence[RunState]", configs: "Sequence[EvalConfig]") -> int:
    """Print the runs of ``eval --dry-run`` with requests, tokens, cost and time; return the exit code."""
    from agrotools.runner.estimate import budget_warning
    from agrotools.runner.policies import SPEND_FILE, read_spend

    for state, config in zip(states, configs, strict=True):
        missing = state.planned - state.finished
        todo = f"{missing:,} of {count_text(state.planned, 'record')} to run"
        typer.echo(f"{state.run.title}: {state.problem or (todo if missing else 'complete')}")
        if state.expected:
            unpriced = "" if state.expected.price else "; price unknown (--price IN/OUT)"
            typer.echo(f"  {state.expected}{unpriced}")
            spent = read_spend(state.run.folder / SPEND_FILE).usd
            typer.echo(f"  {_time_text(state.expected.requests, config)}")
            if warning := budget_warning(state.expected, config.budget, spent):
                typer.echo(f"  {warning}")
        typer.echo(f"  run folder: {state.run.folder}")
    return BAD_USAGE if any(state.problem for state in states) else DONE


def _time_text(requests: int, config: "EvalConfig") -> str:
    """Return the time of a run under assumptions that it names."""
    in_flight = config.concurrency or _IN_FLIGHT
    minutes = requests * _SECONDS_PER_REPLY / in_flight / 60
    limited = config.rpm is not None and requests / config.rpm > minutes
    minutes = max(minutes, requests / config.rpm if config.rpm else 0.0)
    basis = f"--rpm {config.rpm}" if limited else f"{in_flight} requests in flight, {_SECONDS_PER_REPLY:g} s per reply"
    return f"about {minutes:.0f} min ({basis})" if minutes >= 1 else f"about 1 min or less ({basis})"


def ask_before_spending(config: "EvalConfig") -> "Callable[[Estimate], None]":
    """Return a function that asks on a terminal before a run that may cost more than :data:`ASK_ABOVE_USD`."""

    def ask(expected: "Estimate") -> None:
        from agrotools.core import UsageError

        highest = min(expected.usd_high or 0.0, config.budget or float("inf"))
        if highest <= ASK_ABOVE_USD or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return
        if not typer.confirm(f"This run may cost up to {highest:.2f} USD. Start it?", err=True):
            raise UsageError(
                "the run was not started",
                hint="--budget USD limits its cost, --quick and --limit N its size; --yes starts it without asking",
            )

    return ask
