"""Settings of a run: its configuration with every default settled for its benchmark, once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from agrotools.benchmarks import Benchmark
from agrotools.core import Mode, Protocol, UsageError
from agrotools.models import DEFAULT_WIRE, Model, WireSettings, make_model
from agrotools.models.prices import Price, price_of, priced_for_budget
from agrotools.runner.config import EVERY_TOOL, RECORDED, EvalConfig
from agrotools.runner.policies import is_baseline, replayed_run, run_protocol
from agrotools.runner.store import read_manifest
from agrotools.tools.services import NAME_A_MODEL, VLM

DEFAULT_PROTOCOL: Protocol = "react"
DEFAULT_TURNS = 20


@dataclass(frozen=True)
class RunSettings:
    """Protocol, turn limit, image setting, modes and back-ends of a run. ``note``: on a default."""

    protocol: Protocol
    max_steps: int
    """Model turns per sample at most."""
    images: bool
    modes: tuple[Mode, ...]
    """Modes that are asked for and that the benchmark has."""
    backends: Mapping[str, str]
    """Back-end by tool, where not the default."""
    note: str = ""

    @property
    def recorded(self) -> frozenset[str]:
        """Tools that are not run: their calls get what was recorded of the reference."""
        return frozenset(tool for tool, backend in self.backends.items() if backend == RECORDED)

    @property
    def executed_backends(self) -> dict[str, str]:
        """Back-ends of tools that are run."""
        return {tool: backend for tool, backend in self.backends.items() if backend != RECORDED}


def resolve_settings(config: EvalConfig, benchmark: Benchmark) -> RunSettings:
    """Settings of the run that ``config`` describes.

    Protocols are for models. A baseline writes no text: its run says ``react``, whatever is configured, and has no
    turn limit of a paper. A replay keeps protocol and images of the run it repeats, and its turn limit unless one is
    given.

    Raises:
        UsageError: not a mode; a recorded tool that the benchmark does not have.
        RunStoreError: the run to repeat cannot be read.
    """
    wanted: list[Mode] = [mode for mode in config.modes if mode in benchmark.modes]
    modes = tuple(wanted)
    # A back-end for all tools wins over what the benchmark itself needs of one.
    needed = {} if EVERY_TOOL in config.backends else benchmark.header.backends
    backends = backend_by_tool({**needed, **config.backends}, benchmark.toolset)
    if is_baseline(config.model):
        images = True if config.images is None else config.images
        return RunSettings(DEFAULT_PROTOCOL, config.max_steps or DEFAULT_TURNS, images, modes, backends)
    if run := replayed_run(config.model):
        manifest = read_manifest(Path(run))
        turns = config.max_steps or manifest.max_steps
        return RunSettings(manifest.protocol, turns, manifest.images, modes, backends)
    protocol, note = (config.protocol, "") if config.protocol else _default_protocol(benchmark.header.protocol, modes)
    rules = run_protocol(protocol)
    turns = config.max_steps or benchmark.header.max_steps or rules.max_turns or DEFAULT_TURNS
    images = rules.shows_images if config.images is None else config.images
    if note and rules.max_turns is not None:
        note += f"; at most {turns} turns, {'images are shown' if images else 'no images are shown (--images)'}"
    return RunSettings(protocol, turns, images, modes, backends, note)


def _default_protocol(published: Protocol | None, modes: Sequence[Mode]) -> tuple[Protocol, str]:
    """The protocol of the benchmark's own runs, where it has one of ``modes``, and a note on it."""
    if published is None or published == DEFAULT_PROTOCOL:
        return DEFAULT_PROTOCOL, ""
    lacking = [mode for mode in modes if mode not in run_protocol(published).modes]
    if len(lacking) == len(modes):
        return DEFAULT_PROTOCOL, f"protocol {DEFAULT_PROTOCOL}: {published}, of the paper, has no {', '.join(modes)}"
    without = f"; it has no {' and no '.join(lacking)}" if lacking else ""
    return published, f"protocol {published}, as published (--protocol {DEFAULT_PROTOCOL} for ours){without}"


def backend_by_tool(backends: Mapping[str, str], toolset: Sequence[str]) -> dict[str, str]:
    """``backends`` in which the entry for every tool is spelled out for each one of ``toolset`` without an entry.

    Raises:
        UsageError: a tool is to be recorded that is none of ``toolset``.
    """
    by_tool = {tool: backend for tool, backend in backends.items() if tool != EVERY_TOOL}
    for tool, backend in by_tool.items():
        if backend == RECORDED and tool not in toolset:
            close = get_close_matches(tool, toolset, n=2)
            hint = f"did you mean {' or '.join(close)}?" if close else f"it has {', '.join(toolset)}"
            raise UsageError(f"the benchmark has no tool {tool!r} whose calls could be recorded", hint=hint)
    if EVERY_TOOL in backends:
        return {**dict.fromkeys(toolset, backends[EVERY_TOOL]), **by_tool}
    return by_tool


@dataclass(frozen=True)
class ToolModel:
    """A model and the price of its tokens; None where it is unknown."""

    name: str
    model: Model
    price: Price | None
    base_url: str


def tool_model(
    backends: Mapping[str, str],
    name: str | None,
    *,
    base_url: str | None = None,
    api_key_env: str | None = None,
    wire: WireSettings = DEFAULT_WIRE,
    price: str | None = None,
    budget_usd: float | None = None,
) -> ToolModel | None:
    """The model of tools whose back-end is ``vlm``; None where there is no such tool.

    Raises:
        UsageError: tools ask a model and none is named, or one is named and no tool asks it; a wrong address, key or
            price; a budget where the price is not known.
    """
    asking = [tool for tool, backend in backends.items() if backend == VLM]
    if not asking:
        if name or base_url or price:
            raise UsageError("--vlm-model was given but no tool uses it", hint="add --backend TOOL=vlm")
        return None
    if not name:
        raise UsageError(f"{asking[0]} uses a vision model, and none is given", hint=NAME_A_MODEL)
    model = make_model(name, base_url=base_url, api_key_env=api_key_env, wire=wire)
    address = getattr(model, "base_url", "")
    found = price_of(address, name, price)
    if budget_usd is not None and address:
        found = priced_for_budget(found, name, option="--vlm-price")
    return ToolModel(name, model, found, address)


def recorded_backends(backends: Mapping[str, str], model: ToolModel | None) -> dict[str, str]:
    """Back-ends as a manifest holds them: those of ``vlm`` with the model, which makes another tool of each."""
    return {
        tool: f"{backend}:{model.name}" if model and backend == VLM else backend for tool, backend in backends.items()
    }
