"""Evaluation of a configuration into a run folder. Repeating it on the same folder resumes the run."""

import asyncio
import itertools
import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO, TypeVar, cast

from agrotools.agents import UNPARSEABLE_LIMIT, ModelAgent, Policy
from agrotools.benchmarks import Benchmark
from agrotools.core import BudgetReached, Record
from agrotools.core.base import count_text
from agrotools.core.files import cache_dir
from agrotools.models import Model, WireStats
from agrotools.runner.build import (
    PreparedRun,
    benchmark_notes,
    executor_class,
    load_for_run,
    part_text,
    prepare_run,
)
from agrotools.runner.config import EvalConfig, RunSettings
from agrotools.runner.execute import (
    HANDFUL,
    INTERNAL_ERROR,
    POLICY_ERROR,
    Pace,
    RunContext,
    execute,
)
from agrotools.runner.plan import Plan, remaining
from agrotools.runner.policies import (
    Accounted,
    AgentFunction,
    PolicySource,
    accounted,
    is_agent_server,
    run_protocol,
)
from agrotools.runner.progress import Progress, stage_progress
from agrotools.runner.store import RunStore
from agrotools.tools.cache import ResultCache

if TYPE_CHECKING:
    from agrotools.models.local_server import LocalServer
    from agrotools.models.probe import FirstContact
    from agrotools.runner.degradation import DegradedBenchmark
    from agrotools.runner.estimate import Estimate
    from agrotools.tools.services.vision_endpoint import VisionEndpoint

T = TypeVar("T")

_SAMPLES_WITHOUT_MODEL = 8
"""Samples in flight without an endpoint whose concurrency limit could be determined."""
_MOST_SAMPLES, _MOST_NAMED = 256, 3
"""Maximum samples in flight, and invalid samples that are reported during the run; the records contain all."""
_LOOKED_AT = 32
"""Number of samples searched for one with files, to determine whether a run shows images."""


class Evaluation(NamedTuple):
    """Folder of a run, and the reason why it ended early (None: complete)."""

    run: Path
    stopped: BudgetReached | None = None


def evaluate(
    config: EvalConfig,
    progress: TextIO,
    *,
    model: Model | Policy | AgentFunction | None = None,
    benchmark: Benchmark | None = None,
    stop: threading.Event | None = None,
    confirm: Callable[["Estimate"], None] | None = None,
    only: Collection[str] | None = None,
) -> Evaluation:
    """Execute the missing samples of the run that ``config`` describes.

    Args:
        progress: stream for progress and notes.
        model: object to use instead of the model that ``config`` names.
        benchmark: benchmark to use instead of the one that ``config`` names.
        stop: event that prevents further samples from starting, like Ctrl-C.
        confirm: callback for the estimated cost before the first request; it may raise a UsageError.
        only: ids of the samples to execute now; None for all.

    Raises:
        UsageError, BenchmarkError, RunStoreError: see their messages and hints.
        InfrastructureError: the endpoint is unreachable.
        BudgetReached: the budget does not even allow the first sample.
        KeyboardInterrupt: the run was interrupted; finished samples are kept.
    """
    benchmark = benchmark or load_for_run(config, progress, [config] if model is None else ())
    prepared = prepare_run(config, benchmark, model)
    config, settings, benchmark, source, vision_model, plan, manifest, folder, server = prepared
    plan = plan if only is None else plan.among(only)
    if model is not None and config.out is None:  # another object may have the same name
        names = (folder.with_name(f"{folder.name}-{number}") for number in itertools.count(2))
        folder = next(path for path in itertools.chain([folder], names) if not path.exists())
    with (
        RunStore(folder, manifest) as store,
        accounted(source, folder, cache=config.cache, tools=vision_model) as accounts,
    ):
        todo = remaining(plan, store.opened_with, store.failed)
        stats = source.meter.stats if source.meter else source.stats
        bar = Progress(
            progress,
            f"{source.name} on {benchmark.name}{part_text(config)}",
            len(todo),
            len(plan) - len(todo),
            (lambda: stats) if stats else None,
            composition=_composition(plan),
        )
        counting = source.meter.endpoint if source.meter else None
        place, price = (
            (counting.name, counting.price) if counting else (source.base_url, source.price)
        )
        if config.budget and price and price.source == "local":
            bar.note(
                f"requests to {place} are taken as free: no budget is kept without --price IN/OUT"
            )
        if config.budget and source.meter and counting is None:
            bar.note(
                "--budget counts what the agent reports, and cannot limit an agent that reports nothing;"
            )
            bar.note(
                "--agent-model MODEL counts its requests, and refuses those that exceed the budget"
            )
        if is_agent_server(manifest.model) and len(todo) < len(plan):
            bar.note("finished samples are kept: give a new version of the server another --out")
        notes = [
            *filter(None, [settings.note]),
            *benchmark_notes(benchmark),
            *_probe_notes(source, settings, folder),
        ]
        for note in [*notes, *store.notes]:
            bar.note(note)
        if config.degrade:
            cast("DegradedBenchmark", benchmark).degrade_files(
                todo.sample_ids(), stage_progress(progress)
            )
        if source.stats is not None:
            source.stats.worked_before = store.has_finished
            source.stats.stopping = False  # left over from an earlier run of the same object
        vision = None
        if accounts.vision is not None and vision_model is not None:
            from agrotools.tools.services.vision_endpoint import VisionEndpoint

            vision = VisionEndpoint(accounts.vision, vision_model.name)
        usage = stats.usage if stats else {}
        try:
            if todo:
                run = partial(_execute, todo, prepared, accounts, vision, store, bar, stop, confirm)
                asyncio.run(server.run(folder, run, bar.note, stop) if server else run())
        except BudgetReached as stopped:
            if not store.has_finished:
                raise
            return Evaluation(folder, stopped)
        finally:
            bar.close()
            if stats is not None and (stats.served or stats.usage != usage):
                new = {name: n - usage.get(name, 0) for name, n in stats.usage.items()}
                store.add_endpoint(stats.served, new)
            if accounts.replies and accounts.replies.fault:
                bar.note(accounts.replies.fault)
        return Evaluation(folder)


def _probe_notes(source: PolicySource, settings: RunSettings, folder: Path) -> list[str]:
    if not source.base_url:
        return []
    from agrotools.models.probe import attach_report

    native = settings.protocol == "tool-calling" and settings.modes != ("no-tool",)
    return attach_report(
        source.base_url, source.name, folder, images=settings.images, native_tools=native
    )


def _composition(plan: Plan) -> str:
    """Return samples, modes and epochs of a plan; empty if it runs each sample once."""
    n_modes, n_epochs = len(plan.sizes()), len({part.epoch for part in plan.parts})
    if n_modes * n_epochs <= 1:
        return ""
    modes = f" in {n_modes} modes" if n_modes > 1 else ""
    epochs = f" in {n_epochs} epochs" if n_epochs > 1 else ""
    return f"{count_text(len(plan.sample_ids()), 'sample')}{modes}{epochs}"


async def _execute(
    items: Plan,
    prepared: PreparedRun,
    accounts: Accounted,
    vision: "VisionEndpoint | None",
    store: RunStore,
    bar: Progress,
    stop: threading.Event | None,
    confirm: Callable[["Estimate"], None] | None,
) -> None:
    config, settings, benchmark = prepared.config, prepared.settings, prepared.benchmark
    source, contact = accounts.source, accounts.contact
    pace = _pace(config, prepared.server, source.stats)
    if prepared.server is not None:
        from agrotools.models.openai_compatible import OpenAICompatibleModel

        if isinstance(source.model, OpenAICompatibleModel):
            source.model.set_base_url(prepared.server.url)
    if vision is not None:
        bar.note(f"tools ask {vision.name}; their cost is not in the estimate")
    if source.base_url and not (source.price and source.price.is_free):
        from agrotools.runner.estimate import budget_warning, estimate

        expected = await estimate(items, benchmark, source, source.price)
        unpriced = "" if source.price else "; the price of the model is not known (--price IN/OUT)"
        note = "; cached replies cost nothing" if config.cache else ""
        bar.note(f"{expected}{unpriced}{note}")
        spent_usd = (source.stats.spent_usd if source.stats else None) or 0.0
        if expected is not None and (warning := budget_warning(expected, config.budget, spent_usd)):
            bar.note(warning)
        if expected is not None and confirm is not None:
            confirm(expected)
    if contact is not None:
        await _expect(items, benchmark, source, contact)
        if not config.cache:  # otherwise all replies may be in the cache
            await contact.probe_endpoint(config.settings)
            _set_timeout(prepared, source, contact, bar)
    try:
        runs_tools = any(part.mode == "end-to-end" for part in items.parts)
        async with executor_class(config.executor if runs_tools else "local")(
            workers=config.tool_workers,
            cache=ResultCache(cache_dir("tool-results")),
            backends=settings.executed_backends,
            vision=vision,
        ) as executor:
            if source.stats is not None and runs_tools:
                executed = [tool for tool in benchmark.toolset if tool not in settings.recorded]
                await executor.prepare(benchmark.header.installed(executed))
            limit = UNPARSEABLE_LIMIT if run_protocol(settings.protocol).stops_unparseable else None
            faults = None
            if config.faults:
                from agrotools.runner.faults import FaultPlan, Faults, measured_calls

                faults = FaultPlan(
                    Faults.parse(config.faults), config.seed or 0, measured_calls(benchmark.samples)
                )
            limits = settings.max_steps, settings.recorded, limit, faults
            await execute(
                items,
                RunContext(source, benchmark, store, executor, pace, *limits),
                workers=min(len(items), pace.most),
                on_finished=_reporting(bar, source, store, has_budget=bool(config.budget)),
                on_tick=bar.tick,
                stop=stop,
                on_interrupt=lambda in_flight: bar.note(
                    f"stopping after the {count_text(in_flight, 'sample')} being run; Ctrl-C again stops at once"
                ),
            )
            if executor.calls_sent_again:
                again = count_text(executor.calls_sent_again, "tool call")
                bar.note(f"{again} sent again after a worker or a node was lost")
    finally:
        if source.model is not None:
            await source.model.close()
        if source.close is not None:
            await source.close()
        if source.meter is not None:
            await source.meter.close()
        if vision is not None:
            await vision.close()


def _set_timeout(
    prepared: PreparedRun, source: PolicySource, contact: "FirstContact", bar: Progress
) -> None:
    """Give the requests to a slow server of ``--serve`` more time than the default, unless ``--timeout`` is given."""
    from agrotools.models.openai_compatible import OpenAICompatibleModel

    config = prepared.config
    server = None if "timeout_s" in config.model_fields_set else prepared.server
    timeout_s = contact.timeout_s(server.slots) if server else None
    if (
        timeout_s
        and timeout_s > config.timeout_s
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
                bar.note(f"{call.call.tool}: {error.message}; {error.setup}")
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


async def _expect(
    items: Plan, benchmark: Benchmark, source: PolicySource, contact: "FirstContact"
) -> None:
    for part in items.parts:
        candidates = [items.samples[at] for at in part.positions[:_LOOKED_AT]]
        sample = next((each for each in candidates if each.files), candidates[0])
        agent = source.make(sample, part.mode, part.epoch)
        if isinstance(agent, ModelAgent):
            sample = await asyncio.to_thread(benchmark.prepare, sample)
            view = benchmark.view(sample, "end-to-end" if source.single_shot else part.mode)
            with suppress(
                Exception
            ):  # a fault of this sample alone is reported when its turn comes
                contact.expect(*await agent.request_for(view, ()))


def _pace(config: EvalConfig, server: "LocalServer | None", stats: WireStats | None) -> Pace:
    concurrency = config.concurrency
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
