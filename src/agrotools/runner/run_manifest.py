"""Manifest of a run and name of its folder, from its configuration."""

import platform
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pydantic import JsonValue

from agrotools.agents import prompt_hash
from agrotools.benchmarks import Benchmark
from agrotools.core.files import sha256_of_json
from agrotools.models.endpoint import PricedModel
from agrotools.runner.config import EvalConfig, RunSettings, recorded_backends
from agrotools.runner.manifest import Manifest, identity_hash
from agrotools.runner.plan import Plan, tool_data
from agrotools.runner.policies import PolicySource, run_protocol
from agrotools.scoring.metrics import SCORING_VERSION
from agrotools.tools import tool_specs, tool_versions

if TYPE_CHECKING:
    from agrotools.models.local_server import LocalServers
    from agrotools.runner.degradation import DegradedBenchmark


_LIBRARIES = ("numpy", "scipy", "scikit-image", "opencv-python-headless", "rasterio", "pillow", "matplotlib")


def _library_versions() -> dict[str, str]:
    """Return the versions of installed libraries; text alone is evaluated without those for images."""
    found: dict[str, str] = {}
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def default_folder(manifest: Manifest) -> Path:
    """Return ``runs/BENCHMARK[-quick]-MODEL-HASH[-shard-N-of-M]``: the same for the same command, else different."""
    name = manifest.model.removeprefix("baseline:")
    if name.startswith("mcp:"):  # the words of the command without folders and placeholders
        words = name.removeprefix("mcp:").split()
        name = "-".join(["mcp", *(word.rpartition("/")[2] for word in words if not word.startswith("{"))])
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in name).strip("-.")
    part, shard, suffix = "-quick" if manifest.quick else "", manifest.shard, ""
    if shard:
        suffix = f"-shard-{shard.number:0{len(str(shard.count))}}-of-{shard.count}"
    return Path("runs") / f"{manifest.benchmark}{part}-{safe[-80:]}-{identity_hash(manifest)[:6]}{suffix}"


def describe_run(
    config: EvalConfig,
    settings: RunSettings,
    benchmark: Benchmark,
    source: PolicySource,
    plan: Plan,
    vision_model: PricedModel | None = None,
    servers: "LocalServers | None" = None,
) -> Manifest:
    """Return the manifest of the run that ``config`` describes."""
    toolset = tool_versions(tool_specs(benchmark.toolset, settings.recorded, benchmark.header.declared))
    has_model, protocol = source.model is not None, run_protocol(settings.protocol)
    return Manifest(
        agrotools=version("agrotools"),
        scoring=SCORING_VERSION,
        benchmark=benchmark.name,
        benchmark_path=config.benchmark,
        data_root=str(config.data_root) if config.data_root else None,
        benchmark_version=benchmark.version,
        benchmark_options=config.options,
        benchmark_hash=benchmark.content_hash,
        degrade=config.degrade,
        **(cast("DegradedBenchmark", benchmark).manifest_fields if config.degrade else {}),
        faults=config.faults,
        synthetic=benchmark.synthetic,
        model=source.name,
        model_hash=source.model_hash,
        base_url=source.base_url,
        server=servers.identity if servers else (),
        server_version=servers.version if servers else "",
        privileged=source.privileged,
        sealed=source.sealed,
        protocol=settings.protocol,
        images=settings.images,
        settings=config.settings.model_dump(mode="json", exclude_none=True) if has_model else _agent_settings(source),
        max_steps=settings.max_steps,
        seed=config.seed or 0,
        toolset=toolset,
        toolset_hash=sha256_of_json(toolset),
        tool_data=tool_data(benchmark.header.installed(_offered(benchmark, config, plan)), settings.backends),
        tools=config.tools,
        backends=recorded_backends(settings.backends, vision_model),
        vlm_base_url=vision_model.base_url if vision_model else None,
        prompt_hash=prompt_hash(protocol.templates, protocol.prompts(benchmark)) if has_model else "",
        python=f"{platform.python_version()} on {sys.platform}",
        libraries=_library_versions(),
        modes=tuple(mode for mode in settings.modes if mode in source.modes),
        epochs=config.epochs,
        quick=config.quick,
        sample_ids=plan.sample_ids() if config.quick or config.limit is not None else tuple(plan.ids),
        planned=plan.sizes(),
    )


def _agent_settings(source: PolicySource) -> dict[str, JsonValue]:
    """Return the model that an agent's endpoint serves; none without ``--agent-model``."""
    endpoint = source.meter.endpoint if source.meter else None
    return {"agent_model": endpoint.name} if endpoint else {}


def _offered(benchmark: Benchmark, config: EvalConfig, plan: Plan) -> Sequence[str]:
    """Return the tools that the samples of the run offer."""
    if config.tools == "all":
        return benchmark.toolset
    offered = {tool for part in plan.parts for at in part.positions for tool in plan.samples[at].toolset}
    return [tool for tool in benchmark.toolset if tool in offered]
