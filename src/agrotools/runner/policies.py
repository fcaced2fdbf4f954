"""Who answers: from ``--model`` to a policy per sample."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from agrotools.agents import LLMAgent, Policy
from agrotools.agents.baselines import (
    BASELINES,
    EchoPolicy,
    OraclePolicy,
    PlannerPolicy,
    PlanTable,
    PriorPolicy,
    PriorTable,
    RandomPolicy,
    ReplayPolicy,
)
from agrotools.benchmarks.samples import facts_of
from agrotools.core import MODES, Mode, Protocol, Sample, UsageError
from agrotools.models import DEFAULT_WIRE, Model, ModelSettings, WireSettings, WireStats, make_model
from agrotools.runner.records import record_index
from agrotools.runner.store import read_manifest


class Agents:
    """Makes the agent for a sample: one for each mode and epoch, each with the model that ``model_of`` gives it."""

    def __init__(
        self, model_of: Callable[[int], Model], *, protocol: Protocol, settings: ModelSettings, images: bool
    ) -> None:
        self._model_of = model_of
        self._options: _AgentOptions = {"protocol": protocol, "settings": settings, "images": images}
        self._made: dict[tuple[Mode, int], LLMAgent] = {}

    def __call__(self, _sample: Sample, mode: Mode, epoch: int) -> LLMAgent:
        key = (mode, epoch)
        if key not in self._made:
            self._made[key] = LLMAgent(self._model_of(epoch), mode=mode, **self._options)
        return self._made[key]

    def through(self, model_of: Callable[[int], Model]) -> "Agents":
        """The same agents with other models, by epoch."""
        return Agents(model_of, **self._options)


class _AgentOptions(TypedDict):
    protocol: Protocol
    settings: ModelSettings
    images: bool


@dataclass(frozen=True)
class PolicySource:
    """Makes the policy for a sample. ``privileged`` sources look at its gold; others use none of it."""

    name: str
    privileged: bool
    modes: tuple[Mode, ...]
    """Modes in which it can be run at all (in no-tool there is nothing for an oracle to do)."""
    make: Callable[[Sample, Mode, int], Policy]
    truth_tools: bool = False
    """Whether its calls are answered with the truth instead of real tools."""
    model: Model | None = None
    """The model behind the policy, to be closed after the run; None for baselines."""
    base_url: str | None = None
    """Where the model is served; None for baselines and scripts."""
    stats: WireStats | None = None
    """What the wire below the model is doing; None for baselines."""
    model_hash: str = ""
    """SHA-256 of the script of a scripted model: the same name may say something else tomorrow."""


def policy_source(
    name: str,
    samples: Sequence[Sample],
    *,
    protocol: Protocol = "react",
    settings: ModelSettings | None = None,
    base_url: str | None = None,
    images: bool = True,
    api_key_env: str | None = None,
    wire: WireSettings = DEFAULT_WIRE,
    seed: int = 0,
) -> PolicySource:
    """The source that ``--model NAME`` means.

    ``baseline:NAME``, ``replay:RUN`` (also ``baseline:replay:RUN``), ``scripted:FILE`` or the name of a model on an
    OpenAI-compatible endpoint.

    Raises:
        UsageError: no such baseline, run or script.
    """
    if name.startswith("replay:"):
        return _replay(name, Path(name.removeprefix("replay:")))
    if name.startswith("baseline:"):
        return _baseline(name.removeprefix("baseline:"), samples, seed)
    model = make_model(name, base_url=base_url, api_key_env=api_key_env, wire=wire)
    agents = Agents(lambda _epoch: model, protocol=protocol, settings=settings or ModelSettings(), images=images)
    script = Path(name.removeprefix("scripted:")).read_bytes() if name.startswith("scripted:") else b""
    model_hash = hashlib.sha256(script).hexdigest() if script else ""
    return PolicySource(
        name,
        False,
        MODES,
        agents,
        model=model,
        base_url=getattr(model, "base_url", None),
        stats=model.stats,
        model_hash=model_hash,
    )


def _baseline(name: str, samples: Sequence[Sample], seed: int) -> PolicySource:
    spelled = f"baseline:{name}"
    if name in ("oracle", "perfect-tools"):
        facts = facts_of(samples)
        without = [name for name, reference in zip(facts.ids, facts.reference, strict=True) if not reference]
        if without:
            raise UsageError(
                f"{spelled} makes the reference calls, but {len(without)} samples have none, e.g. {without[0]}",
                hint="add reference trajectories to the benchmark, or choose another model",
            )
        return PolicySource(
            spelled,
            True,
            ("step-by-step", "end-to-end"),
            lambda sample, _mode, _epoch: OraclePolicy(sample),
            truth_tools=name == "perfect-tools",
        )
    if name == "planner":
        plans = PlanTable(samples)
        return PolicySource(spelled, True, MODES, lambda sample, _mode, _epoch: PlannerPolicy(sample, plans))
    if name == "prior":
        table = PriorTable(samples)
        return PolicySource(spelled, False, MODES, lambda sample, _mode, _epoch: PriorPolicy(sample, table))
    if name == "random":
        return PolicySource(spelled, False, MODES, lambda sample, _mode, epoch: RandomPolicy(sample, seed, epoch))
    if name == "echo":
        return PolicySource(spelled, False, MODES, lambda _sample, _mode, _epoch: EchoPolicy())
    if name.startswith("replay:"):
        return _replay(spelled, Path(name.removeprefix("replay:")))
    raise UsageError(f"unknown baseline {name!r}", hint=f"known: {', '.join(BASELINES)}, replay:RUN")


def _replay(name: str, run: Path) -> PolicySource:
    manifest = read_manifest(run)
    index = record_index(run)
    finished = index.finished

    def make(sample: Sample, mode: Mode, epoch: int) -> Policy:
        keys = ((mode, sample.id, epoch), (mode, sample.id, 0))
        record = next((index.get(key) for key in keys if key in finished), None)
        if record is None:
            raise UsageError(
                f"the run {run} has no record of sample {sample.id} in mode {mode}",
                hint="replay the benchmark and the modes that the run was made with",
            )
        return ReplayPolicy(record)

    return PolicySource(name, manifest.privileged, manifest.modes, make)
