"""Policies of a run: from ``--model`` to the policy of each sample."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agrotools.agents import LLMAgent, ModelAgent, Policy
from agrotools.agents.llm import PROTOCOLS
from agrotools.benchmarks import Benchmark
from agrotools.core import MODES, Mode, Protocol, Sample, ToolSpec, UsageError
from agrotools.formats.benchmark import facts_of
from agrotools.models import Endpoint, Model, ModelSettings, WireStats, make_model
from agrotools.plugin import RunProtocol, WithPlugins
from agrotools.runner.prompts import ObservedModel
from agrotools.runner.records import record_index
from agrotools.runner.store import read_manifest
from agrotools.tools import tool_specs


class Agents:
    """Factory of agents: one for each mode and epoch, each with the model that ``model_of`` gives it."""

    def __init__(self, model_of: Callable[[int], Model], options: "AgentOptions") -> None:
        self._model_of = model_of
        self._options = options
        self._agents: dict[tuple[Mode, int], ModelAgent] = {}

    def __call__(self, _sample: Sample, mode: Mode, epoch: int) -> ModelAgent:
        key = (mode, epoch)
        if key not in self._agents:
            self._agents[key] = self._agent(ObservedModel(self._model_of(epoch)), mode)
        return self._agents[key]

    def _agent(self, model: Model, mode: Mode) -> ModelAgent:
        return run_protocol(self._options.protocol).agent(model, mode, self._options)

    def through(self, model_of: Callable[[int], Model]) -> "Agents":
        """Copy of the factory with other models, by epoch."""
        return Agents(model_of, self._options)


@dataclass(frozen=True)
class AgentOptions:
    """Protocol, sampling and prompts of the agents of a run."""

    protocol: Protocol = "react"
    settings: ModelSettings = field(default_factory=ModelSettings)
    images: bool = True
    max_steps: int = 20
    """Model turns per sample; some protocols tell a model that the last one has come."""
    benchmark: Benchmark | None = None
    """The benchmark of the run, where an agent asks it: for its own declarations of tools, say."""
    specs: Callable[[Sequence[str]], Sequence[ToolSpec]] = tool_specs
    """From tool names to their specifications."""


def _conversation_agent(model: Model, mode: Mode, options: AgentOptions) -> ModelAgent:
    return LLMAgent(model, mode, options.protocol, options.settings, options.images, options.specs)


RUN_PROTOCOLS: WithPlugins[RunProtocol] = WithPlugins(
    {name: RunProtocol(MODES, _conversation_agent) for name in PROTOCOLS}, lambda plugin: plugin.protocols
)
"""Protocols by name: ours, and those of benchmark plug-ins."""


def run_protocol(name: str) -> RunProtocol:
    """The protocol of that name.

    Raises:
        UsageError: no such protocol.
    """
    if name not in RUN_PROTOCOLS:
        raise UsageError(
            f"unknown protocol {name!r}",
            hint=f"known: {', '.join(RUN_PROTOCOLS)}; others come with the plug-in of their benchmark",
        )
    return RUN_PROTOCOLS[name]


@dataclass(frozen=True)
class PolicySource:
    """Factory of policies. ``privileged`` ones see the gold of their sample; others do not."""

    name: str
    privileged: bool
    modes: tuple[Mode, ...]
    """Modes in which it can be run (in no-tool there is nothing for an oracle to do)."""
    make: Callable[[Sample, Mode, int], Policy]
    truth_tools: bool = False
    """True if its calls are answered with the truth instead of real tools."""
    single_shot: bool = False
    """True if it gets the tools in no-tool, and makes up what they return; all samples are run then."""
    model: Model | None = None
    """The model behind the policy, to be closed after the run; None for baselines."""
    base_url: str | None = None
    """Address of the model; None for baselines and scripts."""
    stats: WireStats | None = None
    """State of the wire below the model; None for baselines."""
    probe: Callable[[], Model] | None = None
    """Makes a model for one tiny request to the same endpoint; None for baselines and scripts."""
    model_hash: str = ""
    """SHA-256 of the script of a scripted model: the same name may say something else tomorrow."""


DEFAULT_AGENTS = AgentOptions()


def replayed_run(name: str) -> str:
    """Run folder that ``--model NAME`` replays; empty if it is not a replay."""
    rest = name.removeprefix("baseline:")
    return rest.removeprefix("replay:") if rest.startswith("replay:") else ""


def is_baseline(name: str) -> bool:
    """True if ``--model NAME`` is a built-in policy, neither a model nor a replay."""
    return name.startswith("baseline:") and not replayed_run(name)


def policy_source(
    spec: str | Endpoint | Model | Policy,
    samples: Sequence[Sample],
    *,
    agents: AgentOptions = DEFAULT_AGENTS,
    seed: int = 0,
) -> PolicySource:
    """The source that ``--model SPEC`` means, or that of a model or policy given as an object.

    ``baseline:NAME``, ``replay:RUN`` (also ``baseline:replay:RUN``), or what an :class:`Endpoint` has as its model.

    Raises:
        UsageError: no such baseline, run or script.
    """
    if isinstance(spec, Model):
        name = getattr(spec, "name", None) or type(spec).__name__
        return _of_model(name, spec, agents, getattr(spec, "base_url", None) or None)
    if not isinstance(spec, str | Endpoint):
        name = getattr(spec, "name", None) or type(spec).__name__
        return PolicySource(name, False, MODES, lambda _sample, _mode, _epoch: spec)
    endpoint = Endpoint(spec) if isinstance(spec, str) else spec
    name = endpoint.model
    if run := replayed_run(name):
        return _replay(name, Path(run))
    if name.startswith("baseline:"):
        return _baseline(name.removeprefix("baseline:"), samples, seed)
    model = make_model(endpoint)
    served_at = getattr(model, "base_url", None)
    source = _of_model(name, model, agents, served_at)
    if served_at:
        return replace(source, probe=lambda: make_model(endpoint.impatient))
    script = Path(name.removeprefix("scripted:")).read_bytes()
    return replace(source, model_hash=hashlib.sha256(script).hexdigest())


def _of_model(name: str, model: Model, agents: AgentOptions, served_at: str | None) -> PolicySource:
    protocol = run_protocol(agents.protocol)
    return PolicySource(
        name,
        False,
        protocol.modes,
        Agents(lambda _epoch: model, agents),
        single_shot=protocol.single_shot,
        model=model,
        base_url=served_at,
        stats=model.stats,
    )


def _baseline(name: str, samples: Sequence[Sample], seed: int) -> PolicySource:
    from agrotools.agents.baselines import (
        BASELINES,
        EchoPolicy,
        GuessPolicy,
        OraclePolicy,
        PlannerPolicy,
        PlanTable,
        PriorPolicy,
        PriorTable,
        RandomPolicy,
        RightAnswerPolicy,
    )

    spelled = f"baseline:{name}"
    if name in ("oracle", "perfect-tools"):
        facts = facts_of(samples)
        if name == "perfect-tools" and facts.ids and not any(facts.reference) and _needs_no_tool(samples[0]):
            return PolicySource(spelled, True, ("no-tool",), lambda sample, _mode, _epoch: RightAnswerPolicy(sample))
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
            lambda sample, _mode, _epoch: OraclePolicy(sample, told=name == "perfect-tools"),
            truth_tools=name == "perfect-tools",
        )
    if name == "planner":
        plans = PlanTable(samples)
        return PolicySource(spelled, True, MODES, lambda sample, _mode, _epoch: PlannerPolicy(sample, plans))
    if name == "prior":
        table = PriorTable(samples)
        return PolicySource(spelled, True, MODES, lambda sample, _mode, _epoch: PriorPolicy(sample, table))
    if name == "guess":
        return PolicySource(spelled, False, MODES, lambda sample, _mode, _epoch: GuessPolicy(sample))
    if name == "random":
        return PolicySource(spelled, False, MODES, lambda sample, _mode, epoch: RandomPolicy(sample, seed, epoch))
    if name == "echo":
        return PolicySource(spelled, False, MODES, lambda _sample, _mode, _epoch: EchoPolicy())
    raise UsageError(f"unknown baseline {name!r}", hint=f"known: {', '.join(BASELINES)}, replay:RUN")


def _needs_no_tool(sample: Sample) -> bool:
    """True if the question is answered without tools; then all questions of its benchmark are."""
    return not sample.toolset and all(slot.right_text is not None for slot in sample.answer)


def _replay(name: str, run: Path) -> PolicySource:
    from agrotools.agents.baselines import ReplayPolicy

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

    single_shot = run_protocol(manifest.protocol).single_shot
    return PolicySource(name, manifest.privileged, manifest.modes, make, single_shot=single_shot)
