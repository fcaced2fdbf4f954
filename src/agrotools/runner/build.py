"""Building of a run: what follows from a configuration (benchmark, policy, plan, manifest) before its folder is opened.

Names become objects here, and every error of a configuration is raised here.
"""

import platform
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TextIO

from pydantic import JsonValue

from agrotools.agents.images import PICTURE_CAPTION, PREVIEWED_KINDS
from agrotools.agents.llm import place_of_pictures, prompt_hash
from agrotools.agents.modes import Policy
from agrotools.calling import get_tool, tool_specs, tool_versions
from agrotools.calling.execution import ToolExecutor, check_backends
from agrotools.core import BENCHMARKS, Mode, SampleFile, ToolError, UsageError
from agrotools.core.files import cache_dir, sha256_of_json
from agrotools.core.libraries import READERS, TOOL_LIBRARIES, is_installed, require_libraries
from agrotools.core.readings import Readings
from agrotools.formats.manifest import Limit, Manifest, TaskTypes, identity_hash
from agrotools.formats.table_use import stored_warnings
from agrotools.formats.tool_check import stored_checks
from agrotools.formats.tool_labels import stored_labels
from agrotools.loading import Benchmark, Loading
from agrotools.loading.benchmarks import load_as
from agrotools.loading.validate import check_for_run
from agrotools.models import Model
from agrotools.models.endpoint import PricedModel
from agrotools.runner.config import OPTIONS, BenchmarkConfig, EvalConfig
from agrotools.runner.early_checks import EndpointCheck
from agrotools.runner.plan import (
    RECORDED,
    WorkItems,
    tool_data,
    with_offered_tools,
    with_served_tools,
    work_items,
)
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
from agrotools.runner.run_settings import (
    RunSettings,
    recorded_backends,
    resolve_settings,
    tool_model,
)
from agrotools.runner.task_types import select_task_types
from agrotools.scoring.metrics import SCORING_VERSION
from agrotools.served.tools import NO_SERVERS, ServedToolset

if TYPE_CHECKING:
    from agrotools.models.local_server import LocalServer


class RunPlan(NamedTuple):
    """A run before its folder is opened: names have become objects, and every error of the user has been raised."""

    config: EvalConfig
    settings: RunSettings
    benchmark: Benchmark
    source: PolicySource
    vision_model: PricedModel | None
    items: WorkItems
    manifest: Manifest
    folder: Path
    server: "LocalServer | None" = None
    """Servers that run during the evaluation."""
    served: ServedToolset = NO_SERVERS
    """Tool servers whose tools samples offer, or that run tools of ours."""


def load_for_run(
    config: EvalConfig,
    progress: TextIO,
    checked: Sequence[EvalConfig] = (),
    readings: Readings | None = None,
) -> Benchmark:
    """Load the benchmark that ``config`` names.

    Args:
        progress: where long preparations are shown.
        checked: their endpoints are checked by an :class:`~agrotools.runner.early_checks.EndpointCheck`.
        readings: asks where the files may be read in two ways.

    Raises:
        UndecidedError: the files may be read in two ways, and nobody says in which.
        UsageError, EndpointRefusal, EndpointUnreachable: a model cannot be used.
        NoFileError: the samples of a folder have errors by which calls cannot be made or answers are scored wrongly.
    """
    chosen = config.benchmark
    check = EndpointCheck(checked)
    loading = Loading(
        chosen.data_root,
        chosen.options,
        check.between_steps(stage_progress(progress)),
        chosen.quick,
        files_later=True,
        readings=readings,
    )
    benchmark = load_as(chosen.name, loading)
    if chosen.name not in BENCHMARKS:
        # Tools whose results were recorded need not be installed.
        allowed = {"unknown_tool"} if RECORDED in config.tools.backends.values() else ()
        check_for_run(benchmark, allowed)
    return benchmark


def plan_run(
    config: EvalConfig,
    benchmark: Benchmark,
    model: Model | Policy | AgentFunction | None = None,
    served: ServedToolset | None = None,
) -> RunPlan:
    """Return the plan of the run that ``config`` describes, without starting it.

    Args:
        config: the run.
        benchmark: its benchmark.
        model: object to use instead of the model that ``config`` names.
        served: the tool servers that ``config`` names, if they are listed already.

    Raises:
        UsageError: the configuration does not fit the benchmark, the model or the endpoint.
        MissingLibraryError: the run needs libraries that are not installed.
    """
    if config.benchmark.quick and not benchmark.header.quick:
        raise UsageError(
            f"{benchmark.name} has no quick part", hint="--limit N runs N of its samples"
        )
    served = served or _tool_servers_of(config, benchmark)
    config = _with_bindings(config, served)
    takes_no_protocol = is_agent(config.model.name) or not isinstance(model, Model | None)
    if takes_no_protocol and config.agent.tool_images:
        raise UsageError(
            "--tool-images is for models, and this is an agent of its own",
            hint="omit it; over MCP, an agent gets the pictures of results anyway",
        )
    if takes_no_protocol and config.agent.protocol is None:
        config = config.with_options(protocol="react")
    all_samples = benchmark.samples  # a baseline knows their tools as the benchmark offers them
    settings = resolve_settings(config, benchmark)
    _check_faults(config)
    benchmark = with_offered_tools(benchmark, config.tools.offered, settings.protocol)
    benchmark = with_served_tools(benchmark, served.specs)
    endpoint = config.endpoint
    source = policy_source(
        endpoint,
        all_samples,
        agents=_agent_options(config, settings, benchmark),
        seed=config.model.seed or 0,
        model=model,
    )
    vision_model = tool_model(settings.backends, config.vlm_endpoint)
    check_backends(settings.executed_backends, has_vision=vision_model is not None)
    executor_class(config.tools.executor)  # one that is not installed is refused here
    _check_payment(config, source, vision_model)
    task_types, selected_ids = _selected_part(config.benchmark, benchmark)
    modes = _modes_of(config, settings, benchmark, source)
    choose = partial(
        work_items, benchmark.samples, modes, single_shot=source.single_shot, only=selected_ids
    )
    items = choose(config.run.epochs, limit=config.benchmark.limit)
    if task_types is not None and not len(items):
        raise UsageError(
            f"no question of {task_types.words} can be asked in mode {' or '.join(modes)}",
            hint="choose another --mode or --task-type",
        )
    _check_libraries(benchmark, settings, source, items)
    manifest = describe_run(
        config, settings, benchmark, source, items, vision_model, endpoint.server
    )
    is_limited = config.benchmark.limit is not None
    limit = _limit_of(items, choose(1), config.run.epochs) if is_limited else None
    manifest = manifest.model_copy(
        update={"tool_servers": served.uses, "task_types": task_types, "limit": limit}
    )
    if config.benchmark.shard:
        from agrotools.runner.shards import shard_run

        items, manifest = shard_run(items, manifest, config.benchmark.shard)
    folder = config.run.out or default_folder(manifest)
    return RunPlan(
        config=config,
        settings=settings,
        benchmark=benchmark,
        source=source,
        vision_model=vision_model,
        items=items,
        manifest=manifest,
        folder=folder,
        server=endpoint.server,
        served=served,
    )


def _limit_of(limited: WorkItems, unlimited: WorkItems, epochs: int) -> Limit | None:
    """Return how many questions ``--limit`` chose from how many; None if it left none out."""
    chosen = max(limited.sizes().values(), default=0) // epochs
    n_of = max(unlimited.sizes().values(), default=0)
    return Limit(n_questions=chosen, n_of=n_of) if chosen < n_of else None


def _selected_part(
    chosen: BenchmarkConfig, benchmark: Benchmark
) -> tuple[TaskTypes | None, Sequence[str]]:
    """Return the task types that a run is limited to, and the ids of its samples; none and no ids if it asks all."""
    if chosen.task_types:
        return select_task_types(benchmark, chosen.task_types, quick=chosen.quick)
    return None, benchmark.header.quick if chosen.quick else ()


def _tool_servers_of(config: EvalConfig, benchmark: Benchmark) -> ServedToolset:
    """Start the tool servers that ``config`` names, and return what they list.

    Raises:
        UsageError: a server or a binding cannot be used.
        InfrastructureError: a server does not start.
    """
    tools = config.tools
    if not tools.servers and not tools.bindings:
        return NO_SERVERS
    from agrotools.served.tools import open_toolset

    return open_toolset(
        tools.servers,
        tools.bindings,
        get_tool,
        taken=benchmark.toolset,
        answers=[benchmark.root, cache_dir()],
    )


def _with_bindings(config: EvalConfig, served: ServedToolset) -> EvalConfig:
    """Return ``config`` with each tool that a binding makes on its back-end; UsageError if it has another one."""
    bound, given = served.backends, config.tools.backends
    if not bound:
        return config
    if twice := sorted(bound.keys() & given.keys()):
        raise UsageError(
            f"{twice[0]} has a binding and a back-end", hint="omit --binding or --backend"
        )
    return config.with_options(backends={**given, **bound})


def _check_faults(config: EvalConfig) -> None:
    """Check that faults of tools reach the run; UsageError if they do not."""
    runs_tools = "end-to-end" in config.run.modes and not replayed_run(config.model.name)
    if config.tools.faults and not runs_tools:
        raise UsageError(
            "--faults needs tools that run",
            hint="--mode end-to-end, and a model instead of a replay",
        )


def _agent_options(config: EvalConfig, settings: RunSettings, benchmark: Benchmark) -> AgentOptions:
    specs = partial(
        tool_specs,
        may_be_absent=settings.recorded,
        declared=benchmark.header.declared,
        backends=settings.backends,
    )
    return AgentOptions(
        protocol=settings.protocol,
        settings=config.model.settings,
        images=settings.images,
        tool_images=settings.tool_images,
        max_steps=settings.max_steps,
        benchmark=benchmark,
        specs=specs,
        agent=config.external_agent,
    )


def _check_payment(
    config: EvalConfig, source: PolicySource, vision_model: PricedModel | None
) -> None:
    """Refuse a price or a budget where there is nobody to pay."""
    if source.base_url or source.meter:
        return
    if config.model.price is not None or (config.run.budget and vision_model is None):
        raise UsageError(
            f"{source.name} costs nothing: there is no endpoint to pay",
            hint="omit --budget and --price",
        )


def _modes_of(
    config: EvalConfig, settings: RunSettings, benchmark: Benchmark, source: PolicySource
) -> list[Mode]:
    """Return the modes to run, which both the benchmark and the policy must have; UsageError if there is none."""
    modes: list[Mode] = [mode for mode in settings.modes if mode in source.modes]
    if not modes:
        of_protocol = f"in the protocol {settings.protocol} " if source.model is not None else ""
        raise UsageError(
            f"{source.name} cannot be run in mode {config.run.mode}",
            hint=f"{of_protocol}it runs in {', '.join(source.modes)}; the benchmark has {', '.join(benchmark.modes)}",
        )
    return modes


def _check_libraries(
    benchmark: Benchmark, settings: RunSettings, source: PolicySource, items: WorkItems
) -> None:
    """Refuse a run that would get further only with the extra ``tools``, which is not installed.

    Later, a tool that cannot run and a picture that cannot be shown would count against the model.

    Raises:
        MissingLibraryError: a tool that the run executes, or a file that it draws or shows, needs these libraries.
    """
    if all(map(is_installed, TOOL_LIBRARIES)):
        return
    positions = {at for part in items.parts for at in part.positions}
    samples = [items.samples[at] for at in sorted(positions)]
    if benchmark.make_files is not None:
        paths = (benchmark.file_path(file) for sample in samples for file in sample.files)
        if not all(path.is_file() for path in paths):
            require_libraries(f"{benchmark.name}, whose pictures are drawn here,")
    runs_tools = any(part.mode == "end-to-end" for part in items.parts)
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


def part_text(manifest: Manifest) -> str:
    """Return the part of the benchmark that is run, for titles: ``, quick part, shard 3/16``; empty for all of it."""
    quick = ", quick part" if manifest.quick else ""
    task_types = f", {manifest.task_types}" if manifest.task_types else ""
    shard = f", shard {manifest.shard}" if manifest.shard else ""
    return quick + task_types + shard


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
    """Return ``runs/BENCHMARK[-quick][-types]-MODEL-HASH[-shard-N-of-M]``: the same for the same command, else
    different."""
    quick = "-quick" if manifest.quick else ""
    types = "-types" if manifest.task_types else ""
    model = _safe_name(_short_model_name(manifest.model))[-_MOST_IN_FOLDER:]
    identity = identity_hash(manifest)[:6]
    shard = ""
    if manifest.shard:
        digits = len(str(manifest.shard.count))  # the numbers of all shards are as wide as the last
        shard = f"-shard-{manifest.shard.number:0{digits}}-of-{manifest.shard.count}"
    return Path("runs") / f"{manifest.benchmark}{quick}{types}-{model}-{identity}{shard}"


_MOST_IN_FOLDER = 80
"""Most characters of a model's name in the name of a folder; the last ones are kept."""


def _short_model_name(model: str) -> str:
    """Return the name of a model without its kind; of a command its words without folders and placeholders."""
    name = model.removeprefix("baseline:")
    if not name.startswith("mcp:"):
        return name
    words = name.removeprefix("mcp:").split()
    return "-".join(
        ["mcp", *(word.rpartition("/")[2] for word in words if not word.startswith("{"))]
    )


def _safe_name(name: str) -> str:
    """Return a name with dashes in place of all but letters, digits, dots and underscores, and none at its ends."""
    letters = [letter if letter.isalnum() or letter in "._-" else "-" for letter in name]
    return "".join(letters).strip("-.")


def _labels_not_named(benchmark: Benchmark, settings: RunSettings, items: WorkItems) -> list[str]:
    """Return which labels of own photos the tools of a run cannot give: each of their questions is lost with them."""
    if settings.recorded or not any(part.mode == "end-to-end" for part in items.parts):
        return []
    lines: list[str] = []
    for asked in stored_labels(benchmark.header.metadata):
        tool = get_tool(asked.tool)
        backend = settings.executed_backends.get(asked.tool, tool.backends[0])
        nameable = tool.nameable(backend, asked.arguments) if tool.nameable else None
        if nameable is not None:
            lines.append(asked.warning(nameable, f"{asked.tool} with the back-end {backend}"))
    return [line for line in lines if line]


def describe_run(
    config: EvalConfig,
    settings: RunSettings,
    benchmark: Benchmark,
    source: PolicySource,
    items: WorkItems,
    vision_model: PricedModel | None = None,
    server: "LocalServer | None" = None,
) -> Manifest:
    """Return the manifest of the run that ``config`` describes."""
    chosen = config.benchmark
    toolset = tool_versions(
        tool_specs(benchmark.toolset, settings.recorded, benchmark.header.declared)
    )
    executed = benchmark.header.installed(_offered(benchmark, config, items))
    is_part = chosen.quick or chosen.task_types or chosen.limit is not None
    return Manifest(
        agrotools=version("agrotools"),
        scoring=SCORING_VERSION,
        benchmark=benchmark.name,
        benchmark_path=chosen.name,
        data_root=str(chosen.data_root) if chosen.data_root else None,
        benchmark_version=benchmark.version,
        benchmark_options=chosen.options,
        benchmark_hash=benchmark.content_hash,
        synthetic=benchmark.synthetic,
        quick=chosen.quick,
        n_questions=len(items.ids),
        tool_checks=tuple(stored_checks(benchmark.header.metadata)),
        benchmark_warnings=(
            *stored_warnings(benchmark.header.metadata),
            *_labels_not_named(benchmark, settings, items),
        ),
        model=source.name,
        name=config.run.name,
        model_hash=source.model_hash,
        base_url=source.base_url,
        privileged=source.privileged,
        sealed=source.sealed,
        server=server.identity if server else (),
        server_version=server.version if server else "",
        settings=_asked_settings(config, source),
        seed=config.model.seed or 0,
        protocol=settings.protocol,
        images=settings.images,
        tool_images=place_of_pictures(source.base_url) if settings.tool_images else "",
        max_steps=settings.max_steps,
        prompt_hash=_prompts_of(settings, benchmark, source),
        tools=config.tools.offered,
        faults=config.tools.faults,
        toolset=toolset,
        toolset_hash=sha256_of_json(toolset),
        tool_data=tool_data(executed, settings.backends),
        backends=recorded_backends(settings.backends, vision_model),
        vlm_base_url=vision_model.base_url if vision_model else None,
        python=f"{platform.python_version()} on {sys.platform}",
        libraries=_library_versions(),
        modes=tuple(mode for mode in settings.modes if mode in source.modes),
        epochs=config.run.epochs,
        sample_ids=items.sample_ids() if is_part else tuple(items.ids),
        planned=items.sizes(),
    )


def _asked_settings(config: EvalConfig, source: PolicySource) -> dict[str, JsonValue]:
    """Return the sampling settings of a model, or the model that an agent asks."""
    if source.model is not None:
        return config.model.settings.model_dump(mode="json", exclude_none=True)
    endpoint = source.meter.endpoint if source.meter else None
    return {"agent_model": endpoint.name} if endpoint else {}


def _prompts_of(settings: RunSettings, benchmark: Benchmark, source: PolicySource) -> str:
    """Return the hash of the prompts that a model is shown; empty for a policy that reads none."""
    if source.model is None:
        return ""
    protocol = run_protocol(settings.protocol)
    captions = PICTURE_CAPTION if settings.tool_images else ""
    return prompt_hash(protocol.templates, protocol.prompts(benchmark) + captions)


@cache
def _library_versions() -> dict[str, str]:
    """Return the versions of the libraries that a run uses, read once: their metadata takes long to parse."""
    versions: dict[str, str] = {}
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):  # text alone is evaluated without those for images
            versions[name] = version(name)
    return versions


def stored_options(run: Manifest) -> dict[str, JsonValue]:
    """Return the options of a model and its requests that a manifest contains, by their names in a configuration."""
    settings = {name: value for name, value in run.settings.items() if name in OPTIONS}
    known = {name: getattr(run, name) for name in ("model", "base_url", "images", "max_steps")}
    known["tool_images"] = bool(run.tool_images)
    return {"benchmark": run.benchmark_path, **known, **settings}


def _offered(benchmark: Benchmark, config: EvalConfig, items: WorkItems) -> Sequence[str]:
    """Return the tools that a sample of the run offers, in the order of the benchmark."""
    if config.tools.offered == "all":
        return benchmark.toolset
    offered: set[str] = set()
    for part in items.parts:
        for at in part.positions:
            offered.update(items.samples[at].toolset)
    return [tool for tool in benchmark.toolset if tool in offered]


def executor_class(name: Literal["local", "ray"]) -> type[ToolExecutor]:
    """Return the class that runs tools on this machine, or on a Ray cluster; UsageError if Ray is not installed."""
    if name == "local":
        return ToolExecutor
    from agrotools.calling.ray_executor import RayToolExecutor, import_ray

    import_ray()
    return RayToolExecutor
