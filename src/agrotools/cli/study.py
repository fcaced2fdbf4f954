"""``agrotools study``: run models, benchmarks and lists of tools from one file, and compare them in one table."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agrotools.cli.output import allow_closed_pipe, command_line, count_text, stop_message

if TYPE_CHECKING:
    from agrotools.analysis.study import Study


def study(paths: list[Path], dry_run: bool = False, allow_invalid: bool = False) -> None:
    """Run all combinations of a study file and compare them; the same command resumes. Or compare given runs."""
    import sys

    from agrotools.analysis.study import read_study, run_study, study_of_runs, study_result
    from agrotools.analysis.study_tables import study_tables, write_tables
    from agrotools.report.text_tables import markdown

    if len(paths) > 1 or paths[0].is_dir():
        result = study_result(*study_of_runs(paths), allow_invalid=allow_invalid)
        with allow_closed_pipe():
            typer.echo(markdown(study_tables(result)))
        return
    (file,) = paths
    plan = read_study(file)
    if dry_run:
        _print_plan(plan)
        return
    with stop_message("finished samples are kept"):
        states = run_study(plan, sys.stderr)
        result = study_result(plan, states, allow_invalid=allow_invalid)
    if not result.scored:
        typer.echo("error: no run of the study has any record; the lines above say why", err=True)
        raise typer.Exit(3)
    tables = study_tables(result)
    paths = write_tables(tables, plan.folder, f"Study {file.stem}")
    with allow_closed_pipe():
        typer.echo(markdown(tables))
        typer.echo(f"the tables: {', '.join(map(str, paths))}")
        typer.echo(f"a run with its samples: {command_line('report', result.scored[0][0].folder)}")
    if incomplete := [state for state in states if not state.complete]:
        runs = "; ".join(f"{state.run.title} ({state.problem or f'{state.invalid} invalid'})" for state in incomplete)
        typer.echo(f"{count_text(len(incomplete), 'run')} incomplete, run the same command again: {runs}", err=True)
        raise typer.Exit(1)


def _print_plan(plan: "Study") -> None:
    import sys

    from agrotools.analysis.study import inspect_study, spent_usd

    states = inspect_study(plan, sys.stderr)
    for state in states:
        missing = state.planned - state.finished
        todo = f"{missing:,} of {count_text(state.planned, 'record')} to run" if missing else "complete"
        cost = f"; {state.expected}" if state.expected else ""
        todo += f", none in {', '.join(state.lacking)}, which this policy lacks" if state.lacking else ""
        typer.echo(f"{state.run.title}: {state.problem or f'{todo}{cost}'}")
    n_records = sum(state.planned - state.finished for state in states)
    typer.echo(f"{count_text(len(states), 'run')}, {count_text(n_records, 'record')} to run")
    expected = [state.expected for state in states if state.expected]
    low, high = (sum(getattr(each, end) or 0 for each in expected) for end in ("usd_low", "usd_high"))
    if expected:
        n_unpriced = sum(each.usd_low is None for each in expected)
        unpriced = f', without {count_text(n_unpriced, "run")} of unknown price (price = "IN/OUT")'
        typer.echo(f"estimated cost {low:.2f} to {high:.2f} USD{unpriced if n_unpriced else ''}")
    if plan.budget is not None:
        spent = sum(spent_usd(states).values())
        note = "; it may end before the study is complete" if spent + high > plan.budget else ""
        typer.echo(f"budget {plan.budget:g} USD, of which {spent:.2f} are spent{note}")
    if any(state.problem for state in states):
        raise typer.Exit(1)
