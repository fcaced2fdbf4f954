"""Evaluation of a configuration into a run folder. Repeating it on the same folder resumes the run.

A configuration or a plan comes in; records in the run folder go out, and an :class:`Evaluation` that says why it ended
early. Records are appended as samples end. So a spent budget, Ctrl-C or a kill loses at most the samples in flight.
Models, meters and the sessions of tools are closed however the run ends. Only progress and notes are printed.
"""

import asyncio
import itertools
import threading
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO, TypeVar

from agrotools.agents.modes import UNPARSEABLE_LIMIT, ModelAgent, Policy
from agrotools.calling.cache import ResultCache
from agrotools.calling.execution import ToolExecutor
from agrotools.core import BudgetReached, Record
from agrotools.core.files import cache_dir
from agrotools.core.texts import count_text
from agrotools.loading import Benchmark
from agrotools.models import Model, WireStats
from agrotools.runner.accounts import Accounted, accounted
from agrotools.runner.build import (
    RunPlan,
    benchmark_notes,
    executor_class,
    load_for_run,
    part_text,
    plan_run,
)
from agrotools.runner.config import EvalConfig, JudgeConfig
from agrotools.runner.execute import (
    HANDFUL,
    INTERNAL_ERROR,
    POLICY_ERROR,
    Pace,
    RunContext,
    execute,
)
from agrotools.runner.plan import WorkItems, remaining
from agrotools.runner.policies import (
    AgentFunction,
    PolicySource,
    is_agent_server,
    run_protocol,
)
from agrotools.runner.progress import Progress, stage_progress
from agrotools.runner.run_settings import RunSettings
from agrotools.runner.store import AGENT_LOG, RunStore
from agrotools.served.tools import ServedCalls, ServedToolset

if TYPE_CHECKING:
    from agrotools.calling.services.vision_endpoint import VisionEndpoint
    from agrotools.models.local_server import LocalServer
    from agrotools.models.probe import FirstContact
    from agrotools.runner.estimate import CostEstimate
    from agrotools.runner.judging import JudgedRun

T = TypeVar("T")

_SAMPLES_WITHOUT_MODEL = 8
"""Samples in flight without an endpoint whose concurrency limit could be determined."""
_MOST_SAMPLES = 256
"""Maximum samples in flight."""
_MOST_NAMED = 3
"""Invalid samples that are reported during the run; the records contain all."""
_LOOKED_AT = 32
"""Number of samples searched for one with files, to determine whether a run shows images."""


class Evaluation(NamedTuple):
    """Folder of a run, the reason why it ended early (None: complete), and what it had from earlier.

    ``n_reused``: number of its records that were there before, and were not run again.
    ``judged``: what each judge gave, if judges were asked.
    """

    run: Path
    stopped: BudgetReached | None = None
    n_reused: int = 0
    judged: "Sequence[JudgedRun]" = ()


def evaluate(
    config: EvalConfig,
    progress: TextIO,
    *,
    model: Model | Policy | AgentFunction | None = None,
    benchmark: Benchmark | None = None,
    stop: threading.Event | None = None,
    confirm: Callable[["CostEstimate"], None] | None = None,
    only: Collection[str] | None = None,
    judges: JudgeConfig | None = None,
    served: ServedToolset | None = None,
) -> Evaluation:
    """Plan the run that ``config`` describes, execute the samples that its folder lacks, and ask the judges.

    Args:
        progress: stream for progress and notes.
        model: object to use instead of the model that ``config`` names.
        benchmark: benchmark to use instead of the one that ``config`` names.
        stop: event that prevents further samples from starting, like Ctrl-C.
        confirm: callback for the estimated cost before the first request; it may raise a UsageError.
        only: ids of the samples to execute now; None for all.
        judges: models that grade the answers of the run, also of one that a budget stopped; None for no judges.
        served: the tool servers that ``config`` names, if they are listed already.

    Raises:
        UsageError, BenchmarkError, RunStoreError: see their messages and hints.
        InfrastructureError: the endpoint is unreachable.
        BudgetReached: the budget does not even allow the first sample.
        KeyboardInterrupt: the run was interrupted; finished samples are kept.
    """
    benchmark = benchmark or load_for_run(config, progress, [config] if model is None else ())
    plan = plan_run(config, benchmark, model, served)
    if only is not None:
        plan = plan._replace(items=plan.items.among(only))
    if model is not None and config.run.out is None:
        plan = plan._replace(folder=_free_folder(plan.folder))
    with RunStore(plan.folder, plan.manifest) as store:
        evaluation = execute_plan(plan, store, progress, stop=stop, confirm=confirm)
    if judges is None or not judges.judge:
        return evaluation
    # Imported here because a run without judges need not wait for the scorers.
    from agrotools.runner.judging import ask_judges

    asked = ask_judges([evaluation.run], judges, stage_progress(progress))
    return evaluation._replace(judged=tuple(asked))


def _free_folder(folder: Path) -> Path:
    """Return a run folder that does not exist yet: another model object may have the same name."""
    numbered = (folder.with_name(f"{folder.name}-{number}") for number in itertools.count(2))
    return next(path for path in itertools.chain([folder], numbered) if not path.exists())


def execute_plan(
    plan: RunPlan,
    store: RunStore,
    progress: TextIO,
    *,
    stop: threading.Event | None = None,
    confirm: Callable[["CostEstimate"], None] | None = None,
) -> Evaluation:
    """Execute the samples of a plan that ``store`` lacks; only progress and notes are printed.

    ``stop``, ``confirm``: as of :func:`evaluate`.
    """
    source, folder = plan.source, plan.folder
    todo = remaining(plan.items, store.opened_with, store.failed)
    n_finished = len(plan.items) - len(todo)
    with accounted(
        source, folder, cache=plan.config.run.cache, tools=plan.vision_model
    ) as accounts:
        stats = source.meter.stats if source.meter else source.stats
        shown = plan.config.run.name or source.name
        bar = Progress(
            progress,
            f"{shown} on {plan.benchmark.name}{part_text(plan.manifest)}",
            len(todo),
            n_finished,
            (lambda: stats) if stats else None,
            composition=_composition(plan.items),
        )
        for note in _notes(plan, store, n_finished=n_finished):
            bar.note(note)
        if source.stats is not None:
            source.stats.worked_before = store.has_finished
            source.stats.stopping = False  # left over from an earlier run of the same object
        # The object of a model may serve several runs, and counts on: this run stores what it adds.
        usage_before = stats.usage if stats else {}
        try:
            if todo:
                execution = _Execution(plan, todo, accounts, store, bar, stop, confirm)
                _run_inside_server(execution)
        except BudgetReached as stopped:
            if not store.has_finished:
                raise
            return Evaluation(folder, stopped, n_finished)
        finally:
            bar.close()
            if stats is not None:
                _store_usage(store, stats, usage_before)
            if accounts.replies and accounts.replies.fault:
                bar.note(accounts.replies.fault)
            if store.has_printed:
                bar.note(f"what the agent printed, by sample: {folder / AGENT_LOG}")
        return Evaluation(folder, n_reused=n_finished)


def _store_usage(store: RunStore, stats: WireStats, usage_before: Mapping[str, int]) -> None:
    """Store what the endpoint served, and the usage since the run began, if there was any."""
    if not stats.served and stats.usage == usage_before:
        return
    usage = {name: number - usage_before.get(name, 0) for name, number in stats.usage.items()}
    store.add_endpoint(stats.served, usage)


def _notes(plan: RunPlan, store: RunStore, *, n_finished: int) -> list[str]:
    """Return what is said before a run begins, in the order in which it is printed."""
    source, config = plan.source, plan.config
    counting = source.meter.endpoint if source.meter else None
    notes: list[str] = []
    price = counting.price if counting else source.price
    if config.run.budget and price and price.source == "local":
        place = counting.name if counting else source.base_url
        notes.append(
            f"requests to {place} are taken as free: no budget is kept without --price IN/OUT"
        )
    if config.run.budget and source.meter and counting is None:
        notes += [
            "--budget counts what the agent reports, and cannot limit an agent that reports nothing;",
            "--agent-model MODEL counts its requests, and refuses those that exceed the budget",
        ]
    if is_agent_server(plan.manifest.model) and n_finished:
        notes.append("finished samples are kept: give a new version of the server another --out")
    if plan.settings.note:
        notes.append(plan.settings.note)
    notes += plan.served.notes
    notes += [f"warning: {line}" for line in plan.manifest.benchmark_warnings]
    notes += benchmark_notes(plan.benchmark)
    notes += _probe_notes(source, plan.settings, plan.folder)
    return [*notes, *store.notes]


@dataclass(frozen=True)
class _Execution:
    """A plan in execution: the samples to run, where they are counted and stored, and who may stop them."""

    plan: RunPlan
    items: WorkItems
    accounts: Accounted
    store: RunStore
    bar: Progress
    stop: threading.Event | None
    confirm: Callable[["CostEstimate"], None] | None

    @property
    def runs_tools(self) -> bool:
        return any(part.mode == "end-to-end" for part in self.items.parts)


def _run_inside_server(execution: _Execution) -> None:
    """Run the samples, inside a server of the model if the plan starts one."""
    plan, run = execution.plan, partial(_run_samples, execution)
    if plan.server is None:
        asyncio.run(run())
    else:
        asyncio.run(plan.server.run(plan.folder, run, execution.bar.note, execution.stop))


def _probe_notes(source: PolicySource, settings: RunSettings, folder: Path) -> list[str]:
    if not source.base_url:
        return []
    from agrotools.models.probe import attach_report

    native = settings.protocol == "tool-calling" and settings.modes != ("no-tool",)
    return attach_report(
        source.base_url, source.name, folder, images=settings.images, native_tools=native
    )


def _composition(items: WorkItems) -> str:
    """Return the numbers of samples, modes and epochs in words; empty if each sample is run once."""
    n_modes, n_epochs = len(items.sizes()), len({part.epoch for part in items.parts})
    if n_modes * n_epochs <= 1:
        return ""
    modes = f" in {n_modes} modes" if n_modes > 1 else ""
    epochs = f" in {n_epochs} epochs" if n_epochs > 1 else ""
    return f"{count_text(len(items.sample_ids()), 'sample')}{modes}{epochs}"


async def _run_samples(execution: _Execution) -> None:
    """Run the samples: say what they cost, meet the endpoint, then run them while tools and models are open."""
    plan, source, bar = execution.plan, execution.accounts.source, execution.bar
    tools = plan.config.tools
    pace = _pace(plan.config, plan.server, source.stats)

    def note_interrupt(in_flight: int) -> None:
        running = count_text(in_flight, "sample")
        bar.note(f"stopping after the {running} being run; Ctrl-C again stops at once")

    async with _open_models(execution) as vision:
        await _announce_cost(execution)
        await _meet_endpoint(execution)
        make_executor = executor_class(tools.executor if execution.runs_tools else "local")
        async with make_executor(
            workers=tools.workers,
            cache=ResultCache(cache_dir("tool-results")),
            backends=plan.settings.executed_backends,
            vision=vision,
            served=ServedCalls(plan.served) if plan.served.servers else None,
        ) as executor:
            if source.stats is not None and execution.runs_tools:
                recorded = plan.settings.recorded
                executed = [tool for tool in plan.benchmark.toolset if tool not in recorded]
                await executor.prepare(plan.benchmark.header.installed(executed))
            await execute(
                execution.items,
                _context(execution, executor, pace),
                workers=min(len(execution.items), pace.most),
                on_finished=_reporting(
                    bar, source, execution.store, has_budget=bool(plan.config.run.budget)
                ),
                on_tick=bar.tick,
                stop=execution.stop,
                on_interrupt=note_interrupt,
            )
            if executor.calls_sent_again:
                again = count_text(executor.calls_sent_again, "tool call")
                bar.note(f"{again} sent again after a worker or a node was lost")


@asynccontextmanager
async def _open_models(execution: _Execution) -> AsyncGenerator["VisionEndpoint | None"]:
    """Open the model, the agent's meter and the vision model of tools, which is yielded; all are closed at the end."""
    plan, accounts, source = execution.plan, execution.accounts, execution.accounts.source
    if plan.server is not None:
        from agrotools.models.openai_compatible import OpenAICompatibleModel

        if isinstance(source.model, OpenAICompatibleModel):
            source.model.set_base_url(plan.server.url)
    vision = None
    if accounts.vision is not None and plan.vision_model is not None:
        from agrotools.calling.services.vision_endpoint import VisionEndpoint

        vision = VisionEndpoint(accounts.vision, plan.vision_model.name)
        execution.bar.note(f"tools ask {vision.name}; their cost is not in the estimate")
    try:
        yield vision
    finally:
        if source.model is not None:
            await source.model.close()
        if source.close is not None:
            await source.close()
        if source.meter is not None:
            await source.meter.close()
        if vision is not None:
            await vision.close()


async def _announce_cost(execution: _Execution) -> None:
    """Print the estimated cost, and ask for confirmation if the caller wants that."""
    plan, source, bar = execution.plan, execution.accounts.source, execution.bar
    if not source.base_url or (source.price and source.price.is_free):
        return
    from agrotools.runner.estimate import budget_warning, estimate

    expected = await estimate(execution.items, plan.benchmark, source, source.price)
    unpriced = "" if source.price else "; the price of the model is not known (--price IN/OUT)"
    cached = "; cached replies cost nothing" if plan.config.run.cache else ""
    bar.note(f"{expected}{unpriced}{cached}")
    if expected is None:
        return
    spent_usd = (source.stats.spent_usd if source.stats else None) or 0.0
    if warning := budget_warning(expected, plan.config.run.budget, spent_usd):
        bar.note(warning)
    if execution.confirm is not None:
        execution.confirm(expected)


async def _meet_endpoint(execution: _Execution) -> None:
    """Ask the endpoint what it can do, before the first sample."""
    plan, accounts = execution.plan, execution.accounts
    if accounts.contact is None:
        return
    await _tell_first_requests(execution.items, plan.benchmark, accounts.source, accounts.contact)
    if not plan.config.run.cache:  # otherwise all replies may be in the cache
        await accounts.contact.probe_endpoint(plan.config.model.settings)
        _set_timeout(plan, accounts.source, accounts.contact, execution.bar)


def _context(execution: _Execution, executor: ToolExecutor, pace: Pace) -> RunContext:
    """Return what each sample of the run needs."""
    plan = execution.plan
    faults = None
    if plan.config.tools.faults:
        from agrotools.runner.faults import FaultPlan, Faults, measured_calls

        faults = FaultPlan(
            Faults.parse(plan.config.tools.faults),
            plan.config.model.seed or 0,
            measured_calls(plan.benchmark.samples),
        )
    stops_unparseable = run_protocol(plan.settings.protocol).stops_unparseable
    return RunContext(
        execution.accounts.source,
        plan.benchmark,
        execution.store,
        executor,
        pace,
        plan.settings.max_steps,
        plan.settings.recorded,
        UNPARSEABLE_LIMIT if stops_unparseable else None,
        faults,
    )


def _set_timeout(
    plan: RunPlan, source: PolicySource, contact: "FirstContact", bar: Progress
) -> None:
    """Give the requests to a slow server of ``--serve`` more time than the default, unless ``--timeout`` is given."""
    from agrotools.models.openai_compatible import OpenAICompatibleModel

    config = plan.config
    server = None if "timeout_s" in config.wire.model_fields_set else plan.server
    timeout_s = contact.timeout_s(server.slots) if server else None
    if (
        timeout_s
        and timeout_s > config.wire.timeout_s
        and isinstance(source.model, OpenAICompatibleModel)
    ):
        source.model.set_timeout(timeout_s)
        bar.note(
            f"the server is slow: a request times out after {timeout_s:,.0f} s (--timeout sets another time)"
        )


def _reporting(
    bar: Progress, source: PolicySource, store: RunStore, *, has_budget: bool
) -> Callable[[Record], None]:
    """Return a callback that counts a record in ``bar`` and reports the first invalid ones, the first silence of an
    agent that alone knows the cost, if that is limited, and once what only a person can do for a tool."""
    n_named, stats = 0, source.stats
    reports_cost = has_budget and source.meter is not None and source.meter.endpoint is None

    def finished(record: Record) -> None:
        nonlocal n_named, reports_cost
        bar.finished(record)
        for call in record.trajectory.calls if record.trajectory else ():
            error = call.observation.error if call.observation else None
            if error is None or error.setup is None or call.call is None:
                continue
            if store.add_setup(call.call.tool, error.setup):
                bar.note(f"{record.sample.id}, {call.call.tool}: {error.message}; {error.setup}")
        if reports_cost and not record.agent_replies and record.invalid is None:
            reports_cost = False
            bar.note(
                f"the agent reported no usage on {record.sample.id}: --budget does not limit its cost"
            )
        if record.invalid is None or n_named >= _MOST_NAMED:
            return
        # If the endpoint has never answered, individual samples do not matter.
        if (
            stats is None
            or stats.has_worked
            or record.invalid.startswith((INTERNAL_ERROR, POLICY_ERROR))
        ):
            n_named += 1
            bar.note(f"{record.sample.id} ({record.mode}) is invalid: {record.invalid}")

    return finished


async def _tell_first_requests(
    items: WorkItems, benchmark: Benchmark, source: PolicySource, contact: "FirstContact"
) -> None:
    """Tell the first contact the first request of each mode and epoch, of a sample with files if there is one."""
    for part in items.parts:
        candidates = [items.samples[at] for at in part.positions[:_LOOKED_AT]]
        sample = next((each for each in candidates if each.files), candidates[0])
        agent = source.make(sample, part.mode, part.epoch)
        if not isinstance(agent, ModelAgent):
            continue
        sample = await asyncio.to_thread(benchmark.prepare, sample)
        view = benchmark.view(sample, "end-to-end" if source.single_shot else part.mode)
        with suppress(Exception):  # a fault of this sample alone is reported when its turn comes
            contact.expect(*await agent.request_for(view, ()))


def _pace(config: EvalConfig, server: "LocalServer | None", stats: WireStats | None) -> Pace:
    concurrency = config.wire.concurrency
    if stats is None or not stats.limit:
        return Pace(concurrency or _SAMPLES_WITHOUT_MODEL)
    if server is not None:
        # Another sample would overwrite the prompt of one that waits for its tool.
        return Pace(server.slots, stats)
    if concurrency == 1:
        # One sample at a time: a server with one slot keeps the prompt of its conversation while a tool runs.
        return Pace(1, stats)
    return Pace(concurrency + max(concurrency, HANDFUL) if concurrency else _MOST_SAMPLES, stats)


def outside_event_loop(act: Callable[[], T], stop: threading.Event) -> T:
    """Return ``act()``, called in another thread if this one runs an event loop (as in a notebook).

    After an interrupt, the samples in progress are completed before KeyboardInterrupt is raised.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return act()
    with ThreadPoolExecutor(1, thread_name_prefix="agrotools") as pool:
        future = pool.submit(act)
        try:
            return future.result()
        except KeyboardInterrupt:
            stop.set()
            raise
