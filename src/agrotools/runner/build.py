"""Building of a run: what follows from a configuration (benchmark, policy, plan, manifest) before its folder is opened.

Names become objects here, and every error of a configuration is raised here.
"""

import platform
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TextIO, cast

from pydantic import JsonValue

from agrotools.agents.images import PREVIEWED_KINDS
from agrotools.agents.llm import prompt_hash
from agrotools.agents.modes import Policy
from agrotools.benchmarks import Benchmark, Loading, load_benchmark
from agrotools.benchmarks.loading import load_as
from agrotools.benchmarks.validate import check_for_run
from agrotools.core import BENCHMARKS, Mode, SampleFile, ToolError, UsageError
from agrotools.core.files import sha256_of_json
from agrotools.core.libraries import READERS, TOOL_LIBRARIES, is_installed, require_libraries
from agrotools.core.readings import Readings
from agrotools.formats.tool_check import stored_checks
from agrotools.models import Model
from agrotools.models.endpoint import PricedModel
from agrotools.runner.config import (
    EvalConfig,
    RunSettings,
    contacting_progress,
    recorded_backends,
    resolve_settings,
    tool_model,
)
from agrotools.runner.manifest import Manifest, identity_hash
from agrotools.runner.plan import RECORDED, Plan, tool_data, with_offered_tools, work_items
from agrotools.runner.policies import (
    AgentFunction,
    AgentOptions,
    PolicySource,
    is_agent,
    is_baseline,
    policy_source,
    replayed_run,
    run_protocol,
)
from agrotools.runner.progress import stage_progress
from agrotools.scoring.metrics import SCORING_VERSION
from agrotools.tools import get_tool, tool_specs, tool_versions
from agrotools.tools.execution import ToolExecutor, check_backends

if TYPE_CHECKING:
    from agrotools.models.local_server import LocalServer
    from agrotools.runner.degradation import DegradedBenchmark


class PreparedRun(NamedTuple):
    """Everything that follows from a configuration before its run folder is opened."""

    config: EvalConfig
    settings: RunSettings
    benchmark: Benchmark
    source: PolicySource
    vision_model: PricedModel | None
    plan: Plan
    manifest: Manifest
    folder: Path
    server: "LocalServer | None" = None
    """Servers that run during the evaluation."""


def load_for_run(
    config: EvalConfig,
    progress: TextIO,
    checked: Sequence[EvalConfig] = (),
    readings: Readings | None = None,
) -> Benchmark:
    """Load the benchmark that ``config`` names.

    Args:
        progress: where long preparations are shown.
        checked: their endpoints are checked as in :func:`~agrotools.runner.config.contacting_progress`.
        readings: asks where the files may be read in two ways.

    Raises:
        UndecidedError: the files may be read in two ways, and nobody says in which.
        UsageError, EndpointRefusal, EndpointUnreachable: a model cannot be used.
        NoFileError: the samples of a folder have errors by which calls cannot be made or answers are scored wrongly.
    """
    report = contacting_progress(checked, progress)
    loading = Loading(
        config.data_root,
        config.options,
        report,
        config.quick,
        files_later=True,
        readings=readings,
    )
    benchmark = load_as(config.benchmark, loading)
    if config.benchmark not in BENCHMARKS:
        check_for_run(benchmark, {"unknown_tool"} if RECORDED in config.backends.values() else ())
    return benchmark


def prepare_run(
    config: EvalConfig, benchmark: Benchmark, model: Model | Policy | AgentFunction | None = None
) -> PreparedRun:
    """Return the plan, the manifest and the policy of the run that ``config`` describes, without starting it.

    Raises:
        UsageError: the configuration does not fit the benchmark, the model or the endpoint.
    """
    if config.quick and not benchmark.header.quick:
        raise UsageError(
            f"{benchmark.name} has no quick part", hint="--limit N runs N of its samples"
        )
    if (is_agent(config.model) or not isinstance(model, Model | None)) and config.protocol is None:
        config = config.model_copy(update={"protocol": "react"})  # agents and policies have none
    known_samples = (
        benchmark.samples
    )  # before some are left out, so that a baseline knows the same ones at every dose
    if config.degrade:
        benchmark = _degraded(benchmark, config)
    if config.faults and ("end-to-end" not in config.modes or replayed_run(config.model)):
        raise UsageError(
            "--faults needs tools that run",
            hint="--mode end-to-end, and a model instead of a replay",
        )
    settings = resolve_settings(config, benchmark)
    if config.degrade and settings.recorded and "end-to-end" in settings.modes:
        raise UsageError(
            f"--degrade: results of {sorted(settings.recorded)[0]} were recorded on the original files",
            hint="add --mode no-tool, or run the tools: --backend TOOL=offline",
        )
    benchmark = with_offered_tools(benchmark, config.tools, settings.protocol)
    endpoint = config.endpoint
    source = policy_source(
        endpoint,
        known_samples,
        agents=AgentOptions(
            protocol=settings.protocol,
            settings=config.settings,
            images=settings.images,
            max_steps=settings.max_steps,
            benchmark=benchmark,
            specs=partial(
                tool_specs,
                may_be_absent=settings.recorded,
                declared=benchmark.header.declared,
                backends=settings.backends,
            ),
            agent=config.agent,
        ),
        seed=config.seed or 0,
        model=model,
    )
    vision_model = tool_model(settings.backends, config.vlm_endpoint)
    check_backends(settings.executed_backends, has_vision=vision_model is not None)
    executor_class(
        config.executor
    )  # an executor that is not installed ends the run before it has a folder
    is_free = not (source.base_url or source.meter)
    if is_free and (config.price is not None or (config.budget and vision_model is None)):
        raise UsageError(
            f"{source.name} costs nothing: there is no endpoint to pay",
            hint="omit --budget and --price",
        )
    modes: list[Mode] = [mode for mode in settings.modes if mode in source.modes]
    if not modes:
        of_protocol = f"in the protocol {settings.protocol} " if source.model is not None else ""
        raise UsageError(
            f"{source.name} cannot be run in mode {config.mode}",
            hint=f"{of_protocol}it runs in {', '.join(source.modes)}; the benchmark has {', '.join(benchmark.modes)}",
        )
    only = benchmark.header.quick if config.quick else ()
    plan = work_items(
        benchmark.samples,
        modes,
        config.epochs,
        single_shot=source.single_shot,
        limit=config.limit,
        only=only,
    )
    _check_libraries(benchmark, settings, source, plan)
    manifest = describe_run(
        config, settings, benchmark, source, plan, vision_model, endpoint.server
    )
    if config.shard:
        from agrotools.runner.shards import shard_run

        plan, manifest = shard_run(plan, manifest, config.shard)
    folder = config.out or default_folder(manifest)
    return PreparedRun(
        config, settings, benchmark, source, vision_model, plan, manifest, folder, endpoint.server
    )


def _check_libraries(
    benchmark: Benchmark, settings: RunSettings, source: PolicySource, plan: Plan
) -> None:
    """Refuse a run that would get further only with the extra ``tools``, which is not installed.

    Later, a tool that cannot run and a picture that cannot be shown would count against the model.

    Raises:
        MissingLibraryError: a tool that the run executes, or a file that it draws or shows, needs these libraries.
    """
    if all(map(is_installed, TOOL_LIBRARIES)):
        return
    positions = {at for part in plan.parts for at in part.positions}
    samples = [plan.samples[at] for at in sorted(positions)]
    if benchmark.make_files is not None:
        paths = (benchmark.file_path(file) for sample in samples for file in sample.files)
        if not all(path.is_file() for path in paths):
            require_libraries(f"{benchmark.name}, whose pictures are drawn here,")
    runs_tools = any(part.mode == "end-to-end" for part in plan.parts)
    if runs_tools and not source.truth_tools:
        offered = {tool for sample in samples for tool in sample.toolset}
        executed = [tool for tool in benchmark.toolset if tool in offered - settings.recorded]
        for name in benchmark.header.installed(executed):
            get_tool(name).check_libraries()
    if is_baseline(source.name):
        return
    for sample in samples:
        for file in sample.files:
            # Without the picture, its size is still read from the file where the benchmark does not give it.
            is_opened = settings.images or file.width_px is None
            if is_opened and file.kind in PREVIEWED_KINDS and _is_raster(benchmark, file):
                require_libraries(f"showing {file.name} of {sample.id}", READERS)


def _is_raster(benchmark: Benchmark, file: SampleFile) -> bool:
    from agrotools.vision.reading import is_read_as_raster

    try:
        return is_read_as_raster(benchmark.file_path(file), file.kind)
    except ToolError:  # a file that nothing can read is reported by the run
        return False


def _degraded(benchmark: Benchmark, config: EvalConfig) -> "DegradedBenchmark":
    """Return the degraded benchmark; UsageError if the run needs what was recorded on the original files."""
    from agrotools.runner.degradation import Degradation, degrade_benchmark

    if config.modes == ("step-by-step",):
        raise UsageError(
            "--degrade: step-by-step shows observations that were recorded on the original files",
            hint="run --mode end-to-end or no-tool",
        )
    if replayed_run(config.model):
        raise UsageError(
            "--degrade: a replay repeats replies to the original files", hint="run the model itself"
        )
    if benchmark.make_files is not None:  # whether a file can be degraded follows from its content
        show = stage_progress(sys.stderr)
        benchmark = load_benchmark(
            config.benchmark, config.data_root, show, config.options, quick=config.quick
        )
    return degrade_benchmark(
        benchmark, Degradation.parse(config.degrade), config.seed or 0, quick=config.quick
    )


def part_text(config: EvalConfig) -> str:
    """Return the part of the benchmark that is run, for titles: ``, quick part, shard 3/16``; empty for all of it."""
    return f"{', quick part' if config.quick else ''}{f', shard {config.shard}' if config.shard else ''}"


def benchmark_notes(benchmark: Benchmark) -> list[str]:
    """Return notes of the loader on the benchmark's files, printed when a run starts."""
    notes = benchmark.header.metadata.get("notes")
    return [str(note) for note in notes] if isinstance(notes, list) else []


_LIBRARIES = (
    "numpy",
    "scipy",
    "scikit-image",
    "opencv-python-headless",
    "rasterio",
    "pillow",
    "matplotlib",
)


def default_folder(manifest: Manifest) -> Path:
    """Return ``runs/BENCHMARK[-quick]-MODEL-HASH[-shard-N-of-M]``: the same for the same command, else different."""
    name = manifest.model.removeprefix("baseline:")
    if name.startswith("mcp:"):  # the words of the command without folders and placeholders
        words = name.removeprefix("mcp:").split()
        name = "-".join(
            ["mcp", *(word.rpartition("/")[2] for word in words if not word.startswith("{"))]
        )
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in name).strip(
        "-."
    )
    part, shard, suffix = "-quick" if manifest.quick else "", manifest.shard, ""
    if shard:
        suffix = f"-shard-{shard.number:0{len(str(shard.count))}}-of-{shard.count}"
    return (
        Path("runs")
        / f"{manifest.benchmark}{part}-{safe[-80:]}-{identity_hash(manifest)[:6]}{suffix}"
    )


def describe_run(
    config: EvalConfig,
    settings: RunSettings,
    benchmark: Benchmark,
    source: PolicySource,
    plan: Plan,
    vision_model: PricedModel | None = None,
    server: "LocalServer | None" = None,
) -> Manifest:
    """Return the manifest of the run that ``config`` describes."""
    toolset = tool_versions(
        tool_specs(benchmark.toolset, settings.recorded, benchmark.header.declared)
    )
    has_model, protocol = source.model is not None, run_protocol(settings.protocol)
    endpoint = source.meter.endpoint if source.meter else None
    agent_settings: dict[str, JsonValue] = {"agent_model": endpoint.name} if endpoint else {}
    libraries: dict[str, str] = {}
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):  # text alone is evaluated without those for images
            libraries[name] = version(name)
    same: dict[str, Any] = {
        name: getattr(config, name) for name in ("degrade", "faults", "tools", "epochs", "quick")
    }
    same |= {name: getattr(settings, name) for name in ("protocol", "images", "max_steps")}
    same |= {
        name: getattr(source, name) for name in ("model_hash", "base_url", "privileged", "sealed")
    }
    return Manifest(
        **same,
        agrotools=version("agrotools"),
        scoring=SCORING_VERSION,
        benchmark=benchmark.name,
        benchmark_path=config.benchmark,
        data_root=str(config.data_root) if config.data_root else None,
        benchmark_version=benchmark.version,
        benchmark_options=config.options,
        benchmark_hash=benchmark.content_hash,
        **(cast("DegradedBenchmark", benchmark).manifest_fields if config.degrade else {}),
        synthetic=benchmark.synthetic,
        tool_checks=tuple(stored_checks(benchmark.header.metadata)),
        model=source.name,
        server=server.identity if server else (),
        server_version=server.version if server else "",
        settings=config.settings.model_dump(mode="json", exclude_none=True)
        if has_model
        else agent_settings,
        seed=config.seed or 0,
        toolset=toolset,
        toolset_hash=sha256_of_json(toolset),
        tool_data=tool_data(
            benchmark.header.installed(_offered(benchmark, config, plan)), settings.backends
        ),
        backends=recorded_backends(settings.backends, vision_model),
        vlm_base_url=vision_model.base_url if vision_model else None,
        prompt_hash=prompt_hash(protocol.templates, protocol.prompts(benchmark))
        if has_model
        else "",
        python=f"{platform.python_version()} on {sys.platform}",
        libraries=libraries,
        modes=tuple(mode for mode in settings.modes if mode in source.modes),
        sample_ids=plan.sample_ids()
        if config.quick or config.limit is not None
        else tuple(plan.ids),
        planned=plan.sizes(),
    )


def stored_options(run: Manifest) -> dict[str, JsonValue]:
    """Return the options of a model and its requests that a manifest contains, by their names in a configuration."""
    settings = {
        name: value for name, value in run.settings.items() if name in EvalConfig.model_fields
    }
    known = {name: getattr(run, name) for name in ("model", "base_url", "images", "max_steps")}
    return {"benchmark": run.benchmark_path, **known, **settings}


def _offered(benchmark: Benchmark, config: EvalConfig, plan: Plan) -> Sequence[str]:
    if config.tools == "all":
        return benchmark.toolset
    offered = {
        tool for part in plan.parts for at in part.positions for tool in plan.samples[at].toolset
    }
    return [tool for tool in benchmark.toolset if tool in offered]


def executor_class(name: Literal["local", "ray"]) -> type[ToolExecutor]:
    """Return the class that runs tools on this machine, or on a Ray cluster; UsageError if Ray is not installed."""
    if name == "local":
        return ToolExecutor
    from agrotools.tools.ray_executor import RayToolExecutor, import_ray

    import_ray()
    return RayToolExecutor
