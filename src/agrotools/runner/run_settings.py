"""Settings of a run that follow from its configuration and its benchmark: protocol, turns, images, modes, back-ends.

For a model, what the user gives comes first, then what the paper of the benchmark publishes, then our default. A note
says so where the paper has a protocol of its own. A replay keeps the settings of its run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agrotools.calling.services import NAME_A_MODEL, VLM
from agrotools.core import PROTOCOLS, Mode, Protocol, UsageError
from agrotools.loading import Benchmark
from agrotools.models import Endpoint, priced_model
from agrotools.models.endpoint import PricedModel
from agrotools.models.local_models import PREFIX as LOCAL_PREFIX
from agrotools.runner.config import EvalConfig
from agrotools.runner.plan import EVERY_TOOL, RECORDED, backend_by_tool
from agrotools.runner.policies import is_agent, is_baseline, replayed_run, run_protocol
from agrotools.runner.store import read_manifest

DEFAULT_PROTOCOL: Protocol = "react"
DEFAULT_TURNS = 20


@dataclass(frozen=True)
class RunSettings:
    """Protocol, turn limit, image setting, modes and back-ends of a run. ``note``: message about defaults in effect."""

    protocol: Protocol
    max_steps: int
    """Maximum model turns per sample."""
    images: bool
    modes: tuple[Mode, ...]
    """Requested modes that the benchmark supports."""
    backends: Mapping[str, str]
    """Back-end by tool, if not the default."""
    note: str = ""
    tool_images: bool = False
    """True if the pictures that calls made are shown to the model."""

    @property
    def recorded(self) -> frozenset[str]:
        """Tools that are not executed: their calls return the recorded observations of the reference."""
        return frozenset(tool for tool, backend in self.backends.items() if backend == RECORDED)

    @property
    def executed_backends(self) -> dict[str, str]:
        """Back-ends of tools that are executed."""
        return {tool: backend for tool, backend in self.backends.items() if backend != RECORDED}


def resolve_settings(config: EvalConfig, benchmark: Benchmark) -> RunSettings:
    """Return the settings of the run that ``config`` describes.

    Protocols apply to models. A baseline writes no text, so its run always has protocol ``react`` and no published turn
    limit. A replay keeps protocol and images of the original run, and its turn limit unless one is given.

    Raises:
        UsageError: unknown mode, or a recorded tool that the benchmark does not have.
        RunStoreError: the run to replay cannot be read.
    """
    name, agent, published = config.model.name, config.agent, benchmark.header
    selected_modes: list[Mode] = [mode for mode in config.run.modes if mode in benchmark.modes]
    modes = tuple(selected_modes)
    # A back-end for all tools overrides the back-ends that the benchmark itself sets.
    given = config.tools.backends
    needed = {} if EVERY_TOOL in given else published.backends
    backends = backend_by_tool({**needed, **given}, benchmark.toolset)
    if is_baseline(name):
        images = True if agent.images is None else agent.images
        return RunSettings(
            DEFAULT_PROTOCOL, agent.max_steps or DEFAULT_TURNS, images, modes, backends
        )
    if is_agent(name):
        turns = agent.max_steps or published.max_steps or DEFAULT_TURNS
        return RunSettings(DEFAULT_PROTOCOL, turns, agent.images is not False, modes, backends)
    if run := replayed_run(name):
        manifest = read_manifest(Path(run))
        turns = agent.max_steps or manifest.max_steps
        return RunSettings(manifest.protocol, turns, manifest.images, modes, backends)
    protocol, note = (
        (agent.protocol, "") if agent.protocol else _default_protocol(published.protocol, modes)
    )
    rules = run_protocol(protocol)
    turns = agent.max_steps or published.max_steps or rules.max_turns or DEFAULT_TURNS
    is_local = name.startswith(LOCAL_PREFIX)  # these models take text alone
    images = rules.shows_images and not is_local if agent.images is None else agent.images
    if note and rules.max_turns is not None:
        note += f"; at most {turns} turns, {'images are shown' if images else 'no images are shown (--images)'}"
    if agent.tool_images:
        _check_tool_images(protocol, modes, images=images)
    return RunSettings(protocol, turns, images, modes, backends, note, agent.tool_images)


def _check_tool_images(protocol: Protocol, modes: Sequence[Mode], *, images: bool) -> None:
    """Check that pictures of results can reach a model; UsageError if they cannot."""
    if protocol not in PROTOCOLS:
        raise UsageError(
            f"--tool-images: the protocol {protocol} shows no pictures of results",
            hint=f"--protocol {' or '.join(PROTOCOLS)}",
        )
    if "end-to-end" not in modes:
        raise UsageError("--tool-images needs tools that run", hint="--mode end-to-end")
    if not images:
        raise UsageError("--tool-images needs a model that sees images", hint="--images")


def _default_protocol(published: Protocol | None, modes: Sequence[Mode]) -> tuple[Protocol, str]:
    if published is None or published == DEFAULT_PROTOCOL:
        return DEFAULT_PROTOCOL, ""
    lacking = [mode for mode in modes if mode not in run_protocol(published).modes]
    if len(lacking) == len(modes):
        return (
            DEFAULT_PROTOCOL,
            f"protocol {DEFAULT_PROTOCOL}: {published}, of the paper, has no {', '.join(modes)}",
        )
    without = f"; it has no {' and no '.join(lacking)}" if lacking else ""
    return (
        published,
        f"protocol {published}, as published (--protocol {DEFAULT_PROTOCOL} for ours){without}",
    )


def tool_model(backends: Mapping[str, str], endpoint: Endpoint) -> PricedModel | None:
    """Return the model of tools whose back-end is ``vlm``; None if there is no such tool.

    Raises:
        UsageError: a model is required but not given, or given but not used; an invalid address, key or price; a budget
            without a known price.
    """
    asking = [tool for tool, backend in backends.items() if backend == VLM]
    if not asking:
        if endpoint.model or endpoint.base_url or endpoint.price:
            raise UsageError(
                "vlm_model was given but no tool uses it", hint="add --backend TOOL=vlm"
            )
        return None
    if not endpoint.model:
        raise UsageError(f"{asking[0]} uses a vision model, and none is given", hint=NAME_A_MODEL)
    return priced_model(endpoint, option="vlm_price")


def recorded_backends(backends: Mapping[str, str], model: PricedModel | None) -> dict[str, str]:
    """Return back-ends as a manifest stores them: ``vlm`` includes the model name, which changes the results."""
    return {
        tool: f"{backend}:{model.name}" if model and backend == VLM else backend
        for tool, backend in backends.items()
    }
