"""Plans of ``agrotools eval``: ``--dry-run``, the question before a run that costs money, and the next commands."""

import math
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agrotools.cli.output import command_line, count_text, terminal_progress
from agrotools.exit_codes import BAD_USAGE, DONE, FAULTS

if TYPE_CHECKING:
    from agrotools.analysis.study import RunState
    from agrotools.cli.results import Evaluated
    from agrotools.formats.benchmark import Benchmark
    from agrotools.runner.config import EvalConfig
    from agrotools.runner.estimate import CostEstimate
    from agrotools.scoring.summary import Summary

ASK_ABOVE_USD = 1.0
"""Estimated cost of a run above which the user is asked on a terminal."""
_SECONDS_PER_REPLY, _IN_FLIGHT = 5.0, 8


def planned_run(config: "EvalConfig", benchmark: "Benchmark") -> "RunState":
    """Return the number of records of a run, of those that it has already, and the estimated cost of the others."""
    from agrotools.analysis.study import StudyRun, inspect_run
    from agrotools.core.texts import benchmark_title, name_in_tables
    from agrotools.models.endpoint import without_keys
    from agrotools.runner.build import part_text, plan_run

    with without_keys():
        plan = plan_run(config, benchmark)
        name = benchmark_title(benchmark.name, benchmark.version)
        title = f"{name}{part_text(plan.manifest)}, {', '.join(plan.items.sizes())}"
        shown = config.run.name or name_in_tables(config.model.name)
        run = StudyRun(shown, title, config.with_options(out=plan.folder))
        return inspect_run(run, benchmark, estimates=True)


def print_plans(
    states: "Sequence[RunState]", configs: "Sequence[EvalConfig]", *, as_json: bool
) -> int:
    """Print the runs of ``eval --dry-run`` with requests, tokens, cost and time; return the exit code."""
    from agrotools.cli.output import print_json
    from agrotools.models.metered import SPEND_FILE, read_spend
    from agrotools.runner.estimate import budget_warning

    code = BAD_USAGE if any(state.problem for state in states) else DONE
    if as_json:
        facts: list[dict[str, object]] = []
        for each in states:
            costs = vars(each.expected).items() if each.expected else ()
            run = {
                "run": str(each.run.folder),
                "problem": each.problem or None,
                "planned": each.planned,
            }
            facts.append(
                {
                    **run,
                    "finished": each.finished,
                    **{name: cost for name, cost in costs if name != "price"},
                }
            )
        print_json(facts)
        return code
    for state, config in zip(states, configs, strict=True):
        missing = state.planned - state.finished
        todo = f"{missing:,} of {count_text(state.planned, 'record')} to run"
        typer.echo(f"{state.run.title}: {state.problem or (todo if missing else 'complete')}")
        if state.expected:
            unpriced = "" if state.expected.price else "; price unknown (--price IN/OUT)"
            typer.echo(f"  {state.expected}{unpriced}")
            spent = read_spend(state.run.folder / SPEND_FILE).usd
            typer.echo(f"  {_time_text(state.expected.requests, config)}")
            if warning := budget_warning(state.expected, config.run.budget, spent):
                typer.echo(f"  {warning}")
        typer.echo(f"  run folder: {state.run.folder}")
    return code


def _time_text(requests: int, config: "EvalConfig") -> str:
    """Return the time of a run under assumptions that it names."""
    in_flight = config.wire.concurrency or _IN_FLIGHT
    minutes = requests * _SECONDS_PER_REPLY / in_flight / 60
    limited = config.wire.rpm is not None and requests / config.wire.rpm > minutes
    minutes = max(minutes, requests / config.wire.rpm if config.wire.rpm else 0.0)
    basis = (
        f"rpm = {config.wire.rpm}"
        if limited
        else f"{in_flight} requests in flight, {_SECONDS_PER_REPLY:g} s per reply"
    )
    return (
        f"about {minutes:.0f} min ({basis})" if minutes >= 1 else f"about 1 min or less ({basis})"
    )


def ask_before_spending(config: "EvalConfig") -> "Callable[[CostEstimate], None]":
    """Return a function that asks on a terminal before a run that may cost more than :data:`ASK_ABOVE_USD`."""

    def ask(expected: "CostEstimate") -> None:
        from agrotools.core import UsageError

        highest = min(expected.usd_high or 0.0, config.run.budget or float("inf"))
        if highest <= ASK_ABOVE_USD or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return
        if not typer.confirm(f"This run may cost up to {highest:.2f} USD. Start it?", err=True):
            raise UsageError(
                "the run was not started",
                hint="--budget USD limits its cost, --quick and --limit N its size; --yes starts it without asking",
            )

    return ask


def offer_download(name: str, *, at_once: bool, quick: bool) -> None:
    """Download the files of a published benchmark that is not here: ``at_once``, or after a question on a terminal.

    ``quick``: only the quick part is needed.
    """
    from agrotools.core import BENCHMARKS
    from agrotools.core.installed import benchmark_id

    if (known := benchmark_id(name)) not in BENCHMARKS or not (
        plugin := BENCHMARKS.get(known)
    ).files.download:
        return
    from agrotools.loading.benchmarks import data_folder
    from agrotools.loading.obtaining import Request, lacking_lines, listed, obtain

    found = listed(plugin)
    if found.state not in ("not downloaded", "incomplete", "quick part"):
        return
    quick_mb = plugin.files.download.quick_mb
    part_only = quick and quick_mb is not None
    if part_only and found.state == "quick part":
        return
    size_mb = quick_mb if part_only else plugin.files.download.size_mb
    size = "size not known before" if size_mb is None else f"{size_mb:,.0f} MB"
    state = "here only as its quick part" if found.state == "quick part" else found.state
    what = f"{found.name} is {state}: {size}, from {found.address}, terms: {found.licence}"
    if not at_once and not (
        sys.stdin.isatty() and sys.stderr.isatty() and typer.confirm(f"{what}. Get it?", err=True)
    ):
        return
    request = Request(
        data_folder(),
        quick=part_only,
        progress=terminal_progress(),
        say=lambda line: typer.echo(line, err=True),
    )
    obtained = obtain(known, request)
    part = ["--quick"] if part_only else []
    lacking = lacking_lines(obtained, command_line("benchmarks", "get", known, *part))
    for line in (*obtained.notes, *lacking):
        typer.echo(line, err=True)
    if lacking:
        raise typer.Exit(FAULTS)


# --- next commands ----------------------------------------------------------------------------------------------------

MODEL_EXAMPLE = ("--model", "openai:gpt-4.1-mini")


def next_commands(summary: "Summary", runs: Sequence[Path], evaluated: "Evaluated") -> list[str]:
    """Return what to do after this evaluation, except looking at a sample."""
    config, benchmark, typed = evaluated.config, evaluated.benchmark, evaluated.typed
    if config.benchmark.shard and not (evaluated.stops or summary.missing):
        return [_merge_command(runs[0])]
    if evaluated.stops and config.run.budget is not None:
        budget = _larger_budget(config.run.budget, summary)
        return [
            f"{_changed(typed, '--budget', add=['--budget', f'{budget:g}'])}  # resumes; all finished samples are kept"
        ]
    asked = evaluated.asked_modes or summary.modes.keys()
    if any(part.invalid.n for mode, part in summary.modes.items() if mode in asked):
        return [f"{_changed(typed)}  # again: the invalid samples"]
    if summary.model.startswith("baseline:"):
        name = [] if typed else [config.benchmark.name]
        quick = ["--quick"] if config.benchmark.quick and "--quick" not in typed else []
        # The budget is enough for a quick part or a few samples. What the whole benchmark costs is to be known before.
        is_part = config.benchmark.quick or config.benchmark.limit
        limited = ("--budget", "3") if is_part else ("--dry-run",)
        add = [*name, *quick, *MODEL_EXAMPLE, *limited]
        return [_changed(typed, "--model", "-m", "--out", "--name", add=add)]
    if config.benchmark.quick:
        has_mode = any(each.partition("=")[0] == "--mode" for each in typed)
        add = [] if has_mode else ["--mode", config.run.mode]
        whole = _whole_benchmark_text(runs, benchmark, config.model.price)
        file = ", without quick in the configuration file" if "--quick" not in typed else ""
        return [
            f"{_changed(typed, '--out', '--limit', flags=['--quick'], add=add)}  # {whole}{file}"
        ]
    return [command_line("score", *runs, "--details")]


def _whole_benchmark_text(runs: Sequence[Path], benchmark: "Benchmark", price: str | None) -> str:
    """Return how many questions the modes of quick runs ask in the whole benchmark, and how to learn what that costs.

    ``price``: that of ``--price``; None for the table of prices.
    """
    from agrotools.formats.benchmark import FRESH
    from agrotools.models.prices import price_of
    from agrotools.runner.plan import work_items
    from agrotools.runner.policies import run_protocol
    from agrotools.runner.store import read_manifest
    from agrotools.runner.task_types import select_task_types

    manifests = [read_manifest(run) for run in runs]
    n_asked = 0
    has_price = False
    task_types = manifests[0].task_types
    selected_ids: list[str] = []
    if task_types is not None:
        _, selected_ids = select_task_types(benchmark, task_types.names, quick=False)
    for each in manifests:
        single_shot = run_protocol(each.protocol).single_shot
        items = work_items(
            benchmark.samples, each.modes, 1, single_shot=single_shot, only=selected_ids
        )
        n_asked = max(n_asked, len(items.sample_ids()))
        # A dry run estimates the cost of models at an endpoint, not of agents, whose requests are not known.
        if each.base_url and price_of(each.base_url, each.model, price):
            has_price = True
    n_all = len(selected_ids) or len(benchmark.samples)
    modes = f" in {' and '.join(manifests[0].modes)}" if n_asked < n_all else ""
    cost = "; --dry-run shows its cost" if has_price else ""
    whole = "all of these task types" if task_types else "the whole benchmark"
    if FRESH in manifests[0].benchmark_version:
        # Of new scenes the quick part alone is drawn: how many questions the others give is not known.
        return f"{whole} from new scenes{cost}"
    return f"{whole}, {count_text(n_asked, 'question')}{modes}{cost}"


def _merge_command(run: Path) -> str:
    """Return the command that merges ``run`` with the other shards, once their folders are beside it."""
    from agrotools.runner.build import default_folder
    from agrotools.runner.shards import whole_manifest
    from agrotools.runner.store import read_manifest

    manifest = read_manifest(run)
    if run != default_folder(manifest):  # chosen by the user
        return f"{command_line('merge', run, 'OTHER_SHARD...', '--out', 'MERGED')}  # when all shards are done"
    start, _, end = str(run).rpartition("-shard-")
    pattern = f"{shlex.quote(start)}-shard-*{end[end.index('-of-') :]}"
    return f"agrotools merge {pattern} --out {shlex.quote(str(default_folder(whole_manifest(manifest))))}"


def _larger_budget(budget: float, summary: "Summary") -> float:
    """Return a budget for all planned records at the cost of the finished ones, with two digits; at least twice."""
    finished = sum(part.n_records for part in summary.modes.values())
    share = finished / (finished + sum(summary.missing.values()))
    wanted = max(2 * budget, 1.2 * budget / share if share else 0.0)
    digits = 10 ** (math.floor(math.log10(wanted)) - 1)
    return math.ceil(wanted / digits) * digits


def _changed(
    typed: Sequence[str], *valued: str, flags: Sequence[str] = (), add: Sequence[str] = ()
) -> str:
    """Return the user's command without the options ``valued`` (with their values) and ``flags``, and with ``add``.

    ``typed``: arguments of the user's command.
    """
    kept: list[str] = []
    is_value = False
    for each in typed:
        name = each.partition("=")[0]
        short = each[:2] if each[:2] in valued and not each.startswith("--") else ""
        if is_value:
            is_value = False
        elif name in valued or short:
            is_value = each in valued
        elif each not in flags:
            kept.append(each)
    return shlex.join(["agrotools", "eval", *kept, *add])
