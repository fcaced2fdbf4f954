"""``agrotools eval`` and ``study``: run a benchmark with a model or baseline, or all combinations of a study file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agrotools.cli.options import OptionTable, TextOptions
from agrotools.cli.output import (
    allow_closed_pipe,
    command_line,
    count_text,
    stop_message,
    terminal_progress,
    typed_arguments,
)

if TYPE_CHECKING:
    from agrotools.analysis.study import Study, StudyResult
    from agrotools.cli.results import Evaluated
    from agrotools.core import AgrotoolsError
    from agrotools.formats.benchmark import Benchmark
    from agrotools.report.evaluation import RunScores
    from agrotools.runner.config import EvalConfig, JudgeConfig
    from agrotools.runner.config_file import ConfigFile
    from agrotools.runner.evaluate import Evaluation
    from agrotools.scoring.contracts import TextComparisons


def evaluate(
    *,
    context: typer.Context,
    benchmark: str | None = None,
    given: OptionTable,
    texts: TextOptions,
    config: Path | None = None,
    judge: list[str] | None = None,
    get: bool = False,
    allow_invalid: bool = False,
    details: bool = False,
    until_decided: bool = False,
    as_json: bool = False,
) -> None:
    """Run a benchmark with models and print their scores between floor and ceiling. The same command resumes."""
    from agrotools.cli.planning import planned_run, print_plans
    from agrotools.cli.results import (
        Evaluated,
        print_evaluation,
        print_validity,
        print_yardstick_notes,
    )
    from agrotools.core import UsageError
    from agrotools.runner.config_file import ConfigFile, read_judges

    file = ConfigFile.read(config) if config else None
    judging = read_judges(file, judge or [])
    if until_decided and judging.judge:
        raise UsageError("--until-decided asks no judges", hint="omit them, or --until-decided")
    chosen = _read_options(benchmark, given, config)
    configs = _prepare_configs(chosen, file, judging, get=get)
    compared = texts.comparisons()
    kept = "finished samples and judgements" if judging.judge else "finished samples"
    with stop_message(f"{kept} are kept"):
        configs, loaded = _load_and_ask(chosen, configs, file)
        if chosen.dry_run:
            plans = [planned_run(each, loaded) for each in configs]
            raise typer.Exit(print_plans(plans, configs, as_json=as_json))
        if until_decided:
            from agrotools.cli.compare import print_until_decided

            print_until_decided(configs, loaded, as_json=as_json, yes=chosen.yes)
            return
        runs, failure = _run_all(configs, loaded, judging, yes=chosen.yes)
        evaluated = Evaluated(configs[0], loaded, runs, typed_arguments(context))
        scores = _score_runs(evaluated, compared, allow_invalid=allow_invalid)
        print_yardstick_notes(scores)
        has_page = print_evaluation(
            scores,
            evaluated,
            compared,
            details=details,
            as_json=as_json,
            allow_invalid=allow_invalid,
        )
        validity = scores.validity(allow_invalid=allow_invalid)
        print_validity(validity)
        if failure:
            raise failure
        is_incomplete = evaluated.lacks_replies or bool(evaluated.stops) or not has_page
        raise typer.Exit(validity.exit_code or int(is_incomplete))


def _score_runs(
    evaluated: "Evaluated", comparisons: "TextComparisons", *, allow_invalid: bool
) -> "RunScores":
    """Score the runs, with the tables of papers and with floor and ceiling."""
    from agrotools.report.evaluation import score, with_yardsticks

    progress = terminal_progress()
    scores = score(
        [each.run for each in evaluated.runs],
        comparisons,
        allow_invalid=allow_invalid,
        with_papers=True,
        progress=progress,
    )
    return with_yardsticks(
        scores,
        evaluated.benchmark,
        evaluated.config.benchmark.data_root,
        modes=evaluated.asked_modes,
        progress=progress,
    )


@dataclass(frozen=True)
class _EvalOptions:
    """Options of ``agrotools eval``; ``options_of_config`` are those that a configuration file may hold, too."""

    options_of_config: dict[str, Any]
    models: Sequence[str]
    dry_run: bool
    yes: bool
    fresh_seed: int | None


def _read_options(benchmark: str | None, given: OptionTable, config: Path | None) -> _EvalOptions:
    from agrotools.runner.config_file import benchmark_options, tool_backends

    options: dict[str, Any] = {
        name: value for name, value in given.values.items() if value not in (None, [])
    }
    if benchmark is not None:
        options["benchmark"] = benchmark
    models = options.pop("model", [])
    dry_run = options.pop("dry_run")
    yes = options.pop("yes")
    fresh_seed = options.pop("fresh_seed", None)
    if benchmark is None and not models and config is None:
        options = {"quick": True, **options}
    if "options" in options:
        options["options"] = benchmark_options(options["options"])
    if "backends" in options:
        options["backends"] = tool_backends(options["backends"])
    return _EvalOptions(options, models, dry_run, yes, fresh_seed)


def _prepare_configs(
    chosen: _EvalOptions, file: "ConfigFile | None", judging: "JudgeConfig", *, get: bool
) -> "list[EvalConfig]":
    """Return a configuration for each run, whose models and judges can be used.

    Files of the benchmark that are not here are offered for download (``get``: downloaded without asking).
    """
    from contextlib import nullcontext

    from agrotools.cli.planning import offer_download
    from agrotools.models.endpoint import without_keys
    from agrotools.runner.config_file import read_config
    from agrotools.runner.early_checks import check_models, with_endpoint
    from agrotools.runner.judging import check_judges

    configs = read_config(file, chosen.options_of_config, chosen.models)
    if not chosen.dry_run and configs[0].benchmark.data_root is None:
        benchmark = configs[0].benchmark
        offer_download(benchmark.name, at_once=get, quick=benchmark.quick)
    with without_keys() if chosen.dry_run else nullcontext():
        check_models(configs)
        check_judges(judging, [each.benchmark.name for each in configs])
    if chosen.fresh_seed is None:
        return configs
    checked = () if chosen.dry_run else with_endpoint(configs)
    folder = str(fresh_benchmark(configs[0], chosen.fresh_seed, checked))
    return [each.with_options(benchmark=folder) for each in configs]


def _load_and_ask(
    chosen: _EvalOptions, configs: "Sequence[EvalConfig]", file: "ConfigFile | None"
) -> "tuple[list[EvalConfig], Benchmark]":
    """Load the benchmark, and return it with the configurations, completed by what only it tells.

    Questions on its files are asked, and their answers kept with the run, so that its files are read in the same way
    again. Default models and the mode of a quick part depend on its questions.
    """
    import sys

    from agrotools.cli.reading import answered_options, new_readings, print_readings, readings_of
    from agrotools.runner.build import load_for_run
    from agrotools.runner.config_file import with_default_models
    from agrotools.runner.early_checks import with_endpoint

    with stop_message("no sample was run", ""):
        readings = new_readings(yes=chosen.yes)
        checked = () if chosen.dry_run else with_endpoint(configs)
        loaded = load_for_run(configs[0], sys.stderr, checked, readings)
        answers = answered_options(readings)
        completed = [
            each.with_options(options={**each.benchmark.options, **answers}) for each in configs
        ]
        completed = with_default_models(completed, file, chosen.models, loaded)
    print_readings(readings_of(loaded))
    first = completed[0]
    mode_is_given = "mode" in first.run.model_fields_set
    if first.benchmark.quick and not mode_is_given and "end-to-end" in loaded.modes:
        completed = [each.with_options(mode="end-to-end") for each in completed]
    return completed, loaded


def _run_all(
    configs: "Sequence[EvalConfig]", loaded: "Benchmark", judging: "JudgeConfig", *, yes: bool
) -> "tuple[list[Evaluation], AgrotoolsError | None]":
    """Execute the runs, with their judges, and return them with the error that ended them early, if one did.

    The error of the first run is raised at once: nothing can be shown.
    """
    import sys

    from agrotools.cli.planning import ask_before_spending
    from agrotools.cli.results import print_judged
    from agrotools.core import AgrotoolsError
    from agrotools.runner.evaluate import evaluate as execute_run

    runs: list[Evaluation] = []
    try:
        for each in configs:
            confirm = None if yes else ask_before_spending(each)
            run = execute_run(each, sys.stderr, benchmark=loaded, confirm=confirm, judges=judging)
            runs.append(run)
            for judged in run.judged:
                print_judged(judged)
    except AgrotoolsError as error:
        if not runs:
            raise
        return runs, error
    return runs, None


def fresh_benchmark(config: "EvalConfig", seed: int, checked: Sequence["EvalConfig"]) -> Path:
    """Return the folder of the benchmark from other scenes, which is drawn unless it is in the cache already.

    The endpoints of ``checked`` answer a tiny request while scenes are drawn.
    """
    import sys
    from dataclasses import replace

    from agrotools.core.files import cache_dir
    from agrotools.core.registry import function_of
    from agrotools.core.taxonomy import MODES
    from agrotools.formats.benchmark import fresh_version
    from agrotools.loading.benchmarks import Loading, load_as
    from agrotools.runner.early_checks import EndpointCheck
    from agrotools.runner.plan import work_items
    from agrotools.runner.progress import stage_progress

    with stop_message("no sample was run, drawn scenes are kept"):
        published = load_as(
            config.benchmark.name,
            Loading(config.benchmark.data_root, config.benchmark.options, files_later=True),
        )
        part = "-quick" if config.benchmark.quick else ""
        # With task types, all scenes are drawn, so that the limit is one on the questions of these types.
        if config.benchmark.limit and not config.benchmark.task_types:
            part += f"-limit-{config.benchmark.limit}"
            some = [
                each
                for each in published.samples
                if not config.benchmark.quick or each.id in published.header.quick
            ]
            drawn = {*work_items(some, MODES, 1, limit=config.benchmark.limit).sample_ids()}
            published = replace(published, samples=[each for each in some if each.id in drawn])
        folder = (
            cache_dir("fresh") / f"{published.name}-{fresh_version(published.version, seed)}{part}"
        )
        if not folder.is_dir():
            if published.synthetic:  # others are refused
                typer.echo(_drawing_text(published, quick=config.benchmark.quick), err=True)
            folder.parent.mkdir(parents=True, exist_ok=True)
            check = EndpointCheck(checked)
            function_of("write_fresh")(
                published,
                seed,
                folder,
                quick=config.benchmark.quick,
                progress=check.between_steps(stage_progress(sys.stderr)),
            )
    return folder


_SECONDS_PER_SCENE = 0.7
"""Seconds to draw the scene of a question and make its reference calls: 60 took a minute on 2 cores, 513 five."""


def _drawing_text(published: "Benchmark", *, quick: bool) -> str:
    """Return how many questions get new scenes before anything else, also for a dry run, and how long it takes."""
    ids = [each.id for each in published.samples]
    n_drawn = sum(each in published.header.quick for each in ids) if quick else len(ids)
    minutes = max(1, round(n_drawn * _SECONDS_PER_SCENE / 60))
    return (
        f"new scenes for {count_text(n_drawn, 'question')} are drawn and their reference calls made, "
        f"also for --dry-run: about {minutes} min, once"
    )


def study(
    paths: list[Path],
    budget: float | None = None,
    dry_run: bool = False,
    allow_invalid: bool = False,
) -> None:
    """Run all combinations of a study file and compare them; the same command resumes. Or compare given runs."""
    import sys

    from agrotools.analysis.study import read_study, run_study, study_of_runs, study_result
    from agrotools.analysis.study_tables import study_tables, write_tables
    from agrotools.core import UsageError
    from agrotools.report.text_tables import markdown

    if len(paths) > 1 or paths[0].is_dir():
        if budget is not None:
            raise UsageError("--budget is for a study file, not for finished runs", hint="omit it")
        result = study_result(*study_of_runs(paths), allow_invalid=allow_invalid)
        with allow_closed_pipe():
            typer.echo(markdown(study_tables(result)))
        return
    (file,) = paths
    plan = read_study(file, budget)
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
        if plan.results:
            _write_results(result, plan.results, file.stem)
        typer.echo(f"a run with its samples: {command_line('report', result.scored[0][0].folder)}")
    if incomplete := [state for state in states if not state.complete]:
        runs = "; ".join(
            f"{state.run.title} ({state.problem or f'{state.invalid} invalid'})"
            for state in incomplete
        )
        typer.echo(
            f"{count_text(len(incomplete), 'run')} incomplete, run the same command again: {runs}",
            err=True,
        )
        raise typer.Exit(1)


def _write_results(result: "StudyResult", folder: Path, name: str) -> None:
    """Write the results of the runs of models, and a table of them to paste, and say which runs have none."""
    from agrotools.analysis.study_tables import write_results

    written = write_results(result, folder, name)
    for problem in written.problems:
        typer.echo(f"no result: {problem}", err=True)
    if not written.results:
        return
    typer.echo(f"{written.text}\nresults: {', '.join(map(str, written.results))}")
    typer.echo(f"this table, to paste into a README or another page: {written.table}")
    typer.echo(f"as a page: {command_line('report', folder)}")


def _print_plan(plan: "Study") -> None:
    import sys

    from agrotools.analysis.study import inspect_study, spent_usd

    states = inspect_study(plan, sys.stderr)
    for state in states:
        missing = state.planned - state.finished
        todo = (
            f"{missing:,} of {count_text(state.planned, 'record')} to run"
            if missing
            else "complete"
        )
        cost = f"; {state.expected}" if state.expected else ""
        todo += (
            f", none in {', '.join(state.lacking)}, which this policy lacks"
            if state.lacking
            else ""
        )
        if state.problem and not state.planned:
            todo = ""
        reason = f"not run: {state.problem}" if state.problem else ""
        typer.echo(f"{state.run.title}: {'; '.join(filter(None, [reason, f'{todo}{cost}']))}")
    n_records = sum(state.planned - state.finished for state in states)
    typer.echo(f"{count_text(len(states), 'run')}, {count_text(n_records, 'record')} to run")
    expected = [state.expected for state in states if state.expected]
    low = sum(each.usd_low or 0 for each in expected)
    high = sum(each.usd_high or 0 for each in expected)
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
