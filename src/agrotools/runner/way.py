"""How a run is held: in which protocol, with how many turns, and whether images are shown."""

from pathlib import Path
from typing import NamedTuple

from agrotools.agents.lagent import MAX_TURNS
from agrotools.benchmarks import Benchmark
from agrotools.core import Mode, Protocol
from agrotools.runner.eval_config import EvalConfig
from agrotools.runner.policies import PROTOCOL_MODES, is_baseline, replayed_run
from agrotools.runner.store import read_manifest

DEFAULT_PROTOCOL: Protocol = "react"
DEFAULT_TURNS = 20


class Way(NamedTuple):
    """What a run does where nothing was asked for, and otherwise what was. ``note`` tells of what nobody asked for."""

    protocol: Protocol
    max_steps: int
    """Model turns per sample at most."""
    images: bool
    note: str = ""


def way_of(config: EvalConfig, benchmark: Benchmark) -> Way:
    """How the run that ``config`` describes is held.

    Protocols are for models. A baseline writes no text: its run says ``react``, whatever is asked, and has no turns of
    a paper. A replay is held as the run it repeats, but for turns that are asked for.

    Raises:
        UsageError: not a mode.
        RunStoreError: the run to repeat cannot be read.
    """
    if is_baseline(config.model):
        shown = True if config.images is None else config.images
        return Way(DEFAULT_PROTOCOL, config.max_steps or DEFAULT_TURNS, shown)
    if run := replayed_run(config.model):
        manifest = read_manifest(Path(run))
        return Way(manifest.protocol, config.max_steps or manifest.max_steps, manifest.images)
    protocol, told = (config.protocol, "") if config.protocol else _published(config, benchmark)
    usual = MAX_TURNS if protocol == "lagent" else DEFAULT_TURNS
    turns = config.max_steps or benchmark.header.max_steps or usual
    shown = protocol != "lagent" if config.images is None else config.images
    if told and protocol == "lagent":
        told += f"; at most {turns} turns, {'images are shown' if shown else 'no images are shown (--images)'}"
    return Way(protocol, turns, shown, told)


def _published(config: EvalConfig, benchmark: Benchmark) -> tuple[Protocol, str]:
    """The protocol of the benchmark's own runs and what to say of it, where it has one of the modes that are asked."""
    published = benchmark.header.protocol
    if published is None or published == DEFAULT_PROTOCOL:
        return DEFAULT_PROTOCOL, ""
    asked: list[Mode] = [mode for mode in config.modes if mode in benchmark.modes]
    left = [mode for mode in asked if mode not in PROTOCOL_MODES[published]]
    if len(left) == len(asked):
        return DEFAULT_PROTOCOL, f"protocol {DEFAULT_PROTOCOL}: {published}, of the paper, has no {', '.join(asked)}"
    without = f"; it has no {' and no '.join(left)}" if left else ""
    return published, f"protocol {published}, as published (--protocol {DEFAULT_PROTOCOL} for ours){without}"
