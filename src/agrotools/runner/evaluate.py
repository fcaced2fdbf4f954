"""One evaluation from configuration to a scored run folder. Calling it again on the same folder goes on from there."""

import asyncio
import hashlib
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple, TextIO

import orjson

from agrotools.agents import UNPARSEABLE_LIMIT, ModelAgent, prompt_hash
from agrotools.benchmarks import Benchmark, load_benchmark
from agrotools.core import BudgetReached, Mode, Protocol, Record, Sample, ToolSpec, UsageError
from agrotools.core.files import cache_dir
from agrotools.core.hashing import sha256_of_file
from agrotools.formats.samples import facts_of, selected
from agrotools.models import ModelSettings, WireStats
from agrotools.models.first_contact import FirstContact
from agrotools.models.prices import Price
from agrotools.runner.accounts import accounted, price_for
from agrotools.runner.estimate import estimate
from agrotools.runner.eval_config import EvalConfig
from agrotools.runner.execute import execute
from agrotools.runner.manifest import Manifest, identity_hash
from agrotools.runner.pace import HANDFUL, Pace
from agrotools.runner.plan import Plan, remaining, work_items
from agrotools.runner.policies import AgentOptions, PolicySource, policy_source
from agrotools.runner.progress import Progress, stage_progress
from agrotools.runner.recorded_tools import EVERY_TOOL, RECORDED, real_backends, spelled_out
from agrotools.runner.run_item import RunContext
from agrotools.runner.store import RunStore
from agrotools.runner.tool_model import ToolModel, recorded_backends, tool_model
from agrotools.runner.way import Way, way_of
from agrotools.scoring.version import SCORING_VERSION
from agrotools.text.lagent import described
from agrotools.tools import get_tool, tool_specs
from agrotools.tools.cache import ResultCache
from agrotools.tools.execution import ToolExecutor
from agrotools.tools.published.declared import declared_by
from agrotools.tools.vlm.endpoint import VisionEndpoint

_SAMPLES_WITHOUT_MODEL = 8
"""In flight where no endpoint says how many it bears."""
_MOST_SAMPLES = 256
_MOST_NAMED = 3
"""So many invalid samples are named while the run goes on; its records name all."""
_LOOKED_AT = 32
"""Samples among which one with files is looked for, to know whether a run shows images."""
_LIBRARIES = ("numpy", "scipy", "scikit-image", "opencv-python-headless", "rasterio", "pillow", "matplotlib")


class Evaluation(NamedTuple):
    """A run's folder, and what ended it before it was done (None: nothing did)."""

    run: Path
    stopped: BudgetReached | None = None


def evaluate(config: EvalConfig, progress: TextIO) -> Evaluation:
    """Run what is missing of the run that ``config`` describes.

    Raises:
        UsageError, BenchmarkError, RunStoreError: with what to change.
        InfrastructureError: the endpoint is gone.
        BudgetReached: it does not even allow the first sample.
        KeyboardInterrupt: somebody asked to stop; what has finished is kept.
    """
    benchmark = load_benchmark(
        config.benchmark, data_root=config.data_root, progress=stage_progress(progress), options=config.options
    )
    # What is asked of all tools wins over what the benchmark itself asks of one.
    own = {} if EVERY_TOOL in config.backends else benchmark.header.backends
    backends = spelled_out({**own, **config.backends}, benchmark.toolset)
    config = config.model_copy(update={"backends": backends})
    settings = config.settings
    way = way_of(config, benchmark)
    agents = AgentOptions(
        protocol=way.protocol,
        settings=settings,
        images=way.images,
        max_steps=way.max_steps,
        declared=declared_by(benchmark.name, benchmark.root) if way.protocol == "lagent" else None,
        specs=partial(tool_specs, may_be_absent=_recorded(config)),
    )
    source = policy_source(
        config.model,
        benchmark.samples,
        agents=agents,
        base_url=config.base_url,
        api_key_env=config.api_key_env,
        wire=config.wire,
        seed=config.seed or 0,
    )
    asked = tool_model(
        config.backends,
        config.vlm_model,
        base_url=config.vlm_base_url,
        api_key_env=config.vlm_api_key_env,
        wire=config.wire,
        price=config.vlm_price,
        budget_usd=config.budget,
    )
    price = price_for(source, price=config.price, budget_usd=config.budget, tools_pay=asked is not None)
    samples = chosen(benchmark.samples, config.limit)
    modes: list[Mode] = [mode for mode in config.modes if mode in source.modes and mode in benchmark.modes]
    if not modes:
        of_protocol = f"in the protocol {way.protocol} " if source.model is not None else ""
        raise UsageError(
            f"{source.name} cannot be run in mode {config.mode}",
            hint=f"{of_protocol}it runs in {', '.join(source.modes)}; the benchmark has {', '.join(benchmark.modes)}",
        )
    items = work_items(samples, modes, config.epochs, single_shot=source.single_shot)
    manifest = manifest_of(config, benchmark, source, settings, modes, samples, asked).model_copy(
        update={"planned": items.sizes()}
    )
    folder = config.out or default_folder(manifest)
    with (
        RunStore(folder, manifest) as store,
        accounted(source, folder, cache=config.cache, price=price, budget_usd=config.budget, tools=asked) as accounts,
    ):
        source, replies = accounts.source, accounts.replies
        vision = VisionEndpoint(accounts.vision, asked.name) if accounts.vision and asked else None
        todo = remaining(items, store.finished, store.failed)
        title = f"{source.name} on {benchmark.name}"
        bar = Progress(progress, title, len(todo), len(items) - len(todo), _stats_of(source))
        for note in [*([way.note] if way.note else []), *notes_of(benchmark), *store.notes]:
            bar.note(note)
        if source.stats is not None:
            source.stats.worked_before = bool(store.finished)
        try:
            if todo:
                asyncio.run(_execute(todo, source, accounts.contact, benchmark, store, config, way, price, bar, vision))
        except BudgetReached as stopped:
            if not store.finished:
                raise
            return Evaluation(folder, stopped)
        finally:
            bar.close()
            if replies and replies.fault:
                bar.note(replies.fault)
    return Evaluation(folder)


def notes_of(benchmark: Benchmark) -> list[str]:
    """What the loader has to say of the files, for whoever starts a run."""
    notes = benchmark.header.metadata.get("notes")
    return [str(note) for note in notes] if isinstance(notes, list) else []


async def _execute(
    items: Plan,
    source: PolicySource,
    contact: FirstContact | None,
    benchmark: Benchmark,
    store: RunStore,
    config: EvalConfig,
    way: Way,
    price: Price | None,
    bar: Progress,
    vision: VisionEndpoint | None,
) -> None:
    if vision is not None:
        bar.note(f"tools ask {vision.name}; what that costs is in no estimate")
    if contact is not None:
        await _expect(items, benchmark, source, contact)
        if not config.cache:  # else perhaps there is nothing to ask
            await contact.meet(config.settings)
    if source.base_url is not None and not (price and price.is_free):
        expected = await estimate(items, benchmark, source, price)
        unpriced = "" if price else "; the price of the model is not known (--price IN/OUT)"
        cached = "; replies that are in the cache cost nothing" if config.cache else ""
        bar.note(f"{expected}{unpriced}{cached}")
    recorded = _recorded(config)
    named = 0

    def finished(record: Record) -> None:
        nonlocal named
        bar.finished(record)
        # Where nothing is answered the samples do not matter.
        if record.invalid is not None and named < _MOST_NAMED and source.stats and source.stats.has_worked:
            named += 1
            bar.note(f"{record.sample.id} ({record.mode}) is invalid: {record.invalid}")

    try:
        async with ToolExecutor(
            workers=config.tool_workers,
            cache=ResultCache(cache_dir("tool-results")),
            backends=real_backends(config.backends),
            vision=vision,
        ) as executor:
            if source.stats is not None and any(part.mode == "end-to-end" for part in items.parts):
                await executor.prepare([tool for tool in benchmark.toolset if tool not in recorded])
            pace = _pace(config, source)
            limit = None if way.protocol == "lagent" else UNPARSEABLE_LIMIT
            context = RunContext(source, benchmark, store, executor, pace, way.max_steps, recorded, limit)
            await execute(
                items,
                context,
                workers=min(len(items), pace.most),
                on_finished=finished,
                on_tick=bar.tick,
                on_interrupt=lambda in_flight: bar.note(
                    f"stopping when the {in_flight} samples in flight have finished; Ctrl-C again stops at once"
                ),
            )
    finally:
        if source.model is not None:
            await source.model.close()
        if vision is not None:
            await vision.close()


async def _expect(items: Plan, benchmark: Benchmark, source: PolicySource, contact: FirstContact) -> None:
    """Tell ``contact`` what the requests of each part of the run will hold, as far as its first samples show."""
    for part in items.parts:
        looked_at = [items.samples[at] for at in part.positions[:_LOOKED_AT]]
        sample = next((each for each in looked_at if each.files), looked_at[0])
        agent = source.make(sample, part.mode, part.epoch)
        if isinstance(agent, ModelAgent):
            view = benchmark.view(sample, "end-to-end" if source.single_shot else part.mode)
            with suppress(Exception):  # what is wrong with this sample alone is found when its turn comes
                contact.expect(*await agent.request_for(view, ()))


def _stats_of(source: PolicySource) -> Callable[[], WireStats] | None:
    stats = source.stats
    return (lambda: stats) if stats else None


def _pace(config: EvalConfig, source: PolicySource) -> Pace:
    if source.stats is None or not source.stats.limit:
        return Pace(config.concurrency or _SAMPLES_WITHOUT_MODEL)
    asked = config.concurrency
    return Pace(asked + max(asked, HANDFUL) if asked else _MOST_SAMPLES, source.stats)


def chosen(samples: Sequence[Sample], limit: int | None) -> Sequence[Sample]:
    """The first ``limit`` samples in an order fixed by the hash of their ids, so that a part resembles the whole."""
    if limit is None or limit >= len(samples):
        return samples
    ids = facts_of(samples).ids
    order = sorted(range(len(ids)), key=lambda position: hashlib.sha256(ids[position].encode()).hexdigest())
    return selected(samples, sorted(order[:limit]))


def default_folder(manifest: Manifest) -> Path:
    """``runs/BENCHMARK-MODEL-HASH``: the same command finds its run again, another configuration never meets it."""
    name = manifest.model.removeprefix("baseline:")
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in name).strip("-.")
    return Path("runs") / f"{manifest.benchmark}-{safe[-80:]}-{identity_hash(manifest)[:6]}"


def manifest_of(
    config: EvalConfig,
    benchmark: Benchmark,
    source: PolicySource,
    settings: ModelSettings,
    modes: Sequence[Mode],
    samples: Sequence[Sample],
    asked: ToolModel | None = None,
) -> Manifest:
    """The manifest of the run that ``config`` describes."""
    specs = tool_specs(benchmark.toolset, _recorded(config))
    toolset = {spec.name: f"{spec.version}:{_hash(spec)[:12]}" for spec in specs}
    has_model = source.model is not None
    way = way_of(config, benchmark)
    return Manifest(
        agrotools=version("agrotools"),
        scoring=SCORING_VERSION,
        benchmark=benchmark.name,
        benchmark_path=config.benchmark,
        data_root=str(config.data_root) if config.data_root else None,
        benchmark_version=benchmark.version,
        benchmark_options=config.options,
        benchmark_hash=benchmark.content_hash,
        synthetic=benchmark.synthetic,
        model=source.name,
        model_hash=source.model_hash,
        base_url=source.base_url,
        privileged=source.privileged,
        protocol=way.protocol,
        images=way.images,
        settings=settings.model_dump(mode="json", exclude_none=True) if has_model else {},
        max_steps=way.max_steps,
        seed=config.seed or 0,
        toolset=toolset,
        toolset_hash=hashlib.sha256(orjson.dumps(toolset, option=orjson.OPT_SORT_KEYS)).hexdigest(),
        tool_data={
            name: _content_hash(files)
            for name in benchmark.toolset
            if config.backends.get(name) != RECORDED and (files := _present(name, config.backends.get(name)))
        },
        backends=recorded_backends(config.backends, asked),
        vlm_base_url=asked.base_url if asked else None,
        prompt_hash=prompt_hash(way.protocol, _declared_text(way.protocol, benchmark)) if has_model else "",
        python=f"{platform.python_version()} on {sys.platform}",
        libraries={name: version(name) for name in _LIBRARIES},
        modes=tuple(modes),
        epochs=config.epochs,
        sample_ids=tuple(facts_of(samples).ids),
    )


def _recorded(config: EvalConfig) -> frozenset[str]:
    """The tools that are not run: their calls get what was recorded of the reference."""
    return frozenset(tool for tool, backend in config.backends.items() if backend == RECORDED)


def _declared_text(protocol: Protocol, benchmark: Benchmark) -> str:
    """What the protocol ``lagent`` says of tools, which is no template."""
    if protocol != "lagent":
        return ""
    declared = declared_by(benchmark.name, benchmark.root)
    return described(declared[tool] for tool in sorted(declared) if tool in benchmark.toolset)


def _present(tool: str, backend: str | None) -> list[Path]:
    return [path for path in get_tool(tool).files_for(backend) if path.is_file()]


def _content_hash(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.name.encode() + b"\0" + sha256_of_file(path).encode())
    return digest.hexdigest()


def _hash(spec: ToolSpec) -> str:
    return hashlib.sha256(orjson.dumps(spec.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS)).hexdigest()
