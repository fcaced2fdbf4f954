"""Policies of a run: from ``--model`` to the policy of each sample.

A name or an object comes in; a :class:`PolicySource` goes out, which makes a policy for a sample, a mode and an epoch.
One policy may answer many samples at a time. Whatever sees gold, also that of other samples, is marked *privileged*.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agrotools.agents.llm import PROTOCOLS, LLMAgent, place_of_pictures
from agrotools.agents.modes import ModelAgent, Policy
from agrotools.agents.options import AgentOptions
from agrotools.agents.protocols import RunProtocol
from agrotools.core import MODES, Mode, Sample, SampleView, UsageError
from agrotools.core.files import cache_dir, sha256_of_file
from agrotools.core.installed import WithPlugins
from agrotools.core.texts import names_hint
from agrotools.formats.benchmark import facts_of
from agrotools.loading import Benchmark
from agrotools.models import (
    Endpoint,
    Model,
    WireStats,
    make_model,
)
from agrotools.models.endpoint import price_at
from agrotools.models.prices import Price
from agrotools.runner.prompts import ObservedModel
from agrotools.runner.records import record_index
from agrotools.runner.store import read_manifest
from agrotools.text.answer_form import UNKNOWN

if TYPE_CHECKING:
    from agrotools.agents.external import Solve
    from agrotools.agents.task import Task
    from agrotools.agents.usage import UsageMeter


AgentFunction = Callable[["Task"], Any]
"""Function, plain or async, that answers a task."""


class Agents:
    """Factory of agents, one per mode and epoch, each with the model that ``model_of`` returns for its epoch."""

    def __init__(self, model_of: Callable[[int], Model], options: "AgentOptions") -> None:
        self._model_of = model_of
        self._options = options
        self._agents: dict[tuple[Mode, int], ModelAgent] = {}

    def __call__(self, _sample: Sample, mode: Mode, epoch: int) -> ModelAgent:
        key = (mode, epoch)
        if key not in self._agents:
            protocol = run_protocol(self._options.protocol)
            self._agents[key] = protocol.agent(
                ObservedModel(self._model_of(epoch)), mode, _in_epoch(self._options, epoch)
            )
        return self._agents[key]

    def with_models(self, model_of: Callable[[int], Model]) -> "Agents":
        """Return a copy of the factory with other models, by epoch."""
        return Agents(model_of, self._options)


def _in_epoch(options: AgentOptions, epoch: int) -> AgentOptions:
    """Return options with the seed of an epoch, if the user gave one: with one seed for all, an endpoint that honours
    it would answer every repeat alike."""
    if options.settings.seed is None:
        return options
    seed = options.settings.seed + epoch
    return replace(options, settings=options.settings.model_copy(update={"seed": seed}))


def _conversation_agent(model: Model, mode: Mode, options: AgentOptions) -> ModelAgent:
    base_url = getattr(model, "base_url", "")
    return LLMAgent(
        model,
        mode,
        options.protocol,
        options.settings,
        options.images,
        options.specs,
        place_of_pictures(base_url) if options.tool_images else "",
    )


RUN_PROTOCOLS: WithPlugins[RunProtocol] = WithPlugins(
    "protocol",
    {name: RunProtocol(MODES, _conversation_agent) for name in PROTOCOLS},
    lambda plugin: plugin.protocols,
)
"""Protocols by name: built-in ones, and those of benchmark plug-ins."""


def run_protocol(name: str) -> RunProtocol:
    """Return the protocol with that name; UsageError if there is none."""
    if name not in RUN_PROTOCOLS:
        raise UsageError(
            f"unknown protocol {name!r}",
            hint=f"known: {', '.join(RUN_PROTOCOLS)}; others come with the plug-in of their benchmark",
        )
    return RUN_PROTOCOLS[name]


@dataclass(frozen=True)
class PolicySource:
    """Factory of policies. ``privileged``: True if its policies see the gold of their sample."""

    name: str
    privileged: bool
    modes: tuple[Mode, ...]
    """Modes in which the policy can run (an oracle has nothing to do in no-tool)."""
    make: Callable[[Sample, Mode, int], Policy]
    truth_tools: bool = False
    """True if calls are answered with the truth instead of by real tools."""
    single_shot: bool = False
    """True if the policy gets the tools in no-tool and invents their results; then all samples run in this mode."""
    model: Model | None = None
    """Model of the policy, to be closed after the run; None for baselines."""
    base_url: str | None = None
    """Address of the model; None for baselines and scripts."""
    stats: WireStats | None = None
    """State of the model's wire; None for baselines."""
    probe: Callable[[], Model] | None = None
    """Creates a model for one tiny request to the same endpoint; None for baselines and scripts."""
    model_hash: str = ""
    """SHA-256 of the script of a scripted model, whose content may change under the same name."""
    price: Price | None = None
    """Price of the model's tokens; None if it is unknown or there is no endpoint."""
    budget_usd: float | None = None
    """Maximum spending of the run in USD, on this model and on the tools' vision model."""
    sealed: bool | None = None
    """True if the policy is an agent that cannot reach the gold, False if it might; None for models and baselines."""
    close: Callable[[], Awaitable[None]] | None = None
    """Ends the processes and connections of an agent."""
    meter: "UsageMeter | None" = None
    """Prices and budget of what an external agent reports; None for models and baselines."""


DEFAULT_AGENTS = AgentOptions()


def replayed_run(name: str) -> str:
    """Return the run folder that ``--model NAME`` replays; empty if it is not a replay."""
    rest = name.removeprefix("baseline:")
    return rest.removeprefix("replay:") if rest.startswith("replay:") else ""


def is_baseline(name: str) -> bool:
    """True if ``--model NAME`` is a built-in policy, not a model or a replay."""
    return name.startswith("baseline:") and not replayed_run(name)


def policy_source(
    endpoint: Endpoint,
    samples: Sequence[Sample],
    *,
    agents: AgentOptions = DEFAULT_AGENTS,
    seed: int = 0,
    model: Model | Policy | AgentFunction | None = None,
) -> PolicySource:
    """Return the policy source for ``--model``: ``baseline:NAME``, ``[baseline:]replay:RUN``, or a model.

    Args:
        endpoint: model, connection settings, price and budget.
        model: object or function to use instead of the model that ``endpoint`` names.

    Raises:
        UsageError: no such baseline, run or script; an invalid price; a budget without a known price.
    """
    if model is None:
        name = endpoint.model
        has_agent = is_agent(name)
    else:
        name = getattr(model, "name", None) or type(model).__name__
        has_agent = not isinstance(model, Model | Policy)
    if agents.agent.model is not None and not has_agent:
        raise UsageError(f"--agent-model is for agents, and {name} is not an agent", hint="omit it")
    if model is None and name.startswith(("baseline:", "replay:")):
        source = _baseline_or_replay(name, samples, seed)
    elif model is None and has_agent:
        source = _agent(name, agents, _meter(endpoint, agents))
    elif model is None or isinstance(model, Model):
        source = _model_source(name, model, endpoint, agents)
    elif isinstance(model, Policy):
        policy = model
        source = PolicySource(
            name, privileged=False, modes=MODES, make=lambda _sample, _mode, _epoch: policy
        )
    else:
        source = _function_agent(name, model, agents, _meter(endpoint, agents))
    return replace(source, budget_usd=endpoint.budget_usd)


def _baseline_or_replay(name: str, samples: Sequence[Sample], seed: int) -> PolicySource:
    run = replayed_run(name)
    if run:
        return _replay(name, Path(run))
    return _baseline(name.removeprefix("baseline:"), samples, seed)


def _model_source(
    name: str, model: Model | None, endpoint: Endpoint, agents: AgentOptions
) -> PolicySource:
    """Return the policies that ask ``model``, or else the model that ``endpoint`` names."""
    protocol = run_protocol(agents.protocol)
    answering = model or make_model(endpoint)
    base_url: str | None = getattr(answering, "base_url", None) or None
    price = price_at(base_url, name, endpoint)
    model_hash = endpoint.server.model_hash if endpoint.server else ""
    if model is None and not base_url:
        model_hash = sha256_of_file(Path(name.removeprefix("scripted:")))
    probe: Callable[[], Model] | None = None
    if model is None and base_url:
        probe = partial(make_model, endpoint.impatient)
    return PolicySource(
        name,
        privileged=False,
        modes=protocol.modes,
        make=Agents(lambda _epoch: answering, agents),
        single_shot=protocol.single_shot,
        model=answering,
        base_url=base_url,
        stats=answering.stats,
        probe=probe,
        model_hash=model_hash,
        price=price,
    )


def _function_agent(
    name: str, function: AgentFunction, agents: AgentOptions, meter: "UsageMeter"
) -> PolicySource:
    """Return the policies that call a function of this process, which can reach the gold."""
    from agrotools.agents.external import solve_with

    timeout_s = agents.agent.wire.timeout_s
    return PolicySource(
        name,
        privileged=False,
        modes=_AGENT_MODES,
        make=_agent_policies(solve_with(function), agents, meter, timeout_s),
        sealed=False,
        meter=meter,
    )


_AGENT_MODES: tuple[Mode, ...] = ("no-tool", "end-to-end")
"""Modes of an agent with a loop of its own, which cannot be shown calls that it did not make."""
_PYTHON, _MCP = "python:", "mcp:"


def is_agent(name: str) -> bool:
    """True if ``--model NAME`` is an agent: a Python function, a program that speaks MCP, or a server."""
    return name.startswith((_PYTHON, _MCP)) or is_agent_server(name)


def is_agent_server(name: str) -> bool:
    """True if ``--model NAME`` is an agent behind a server, whose code is not known."""
    return name.startswith(("http://", "https://"))


def names_endpoint(name: str) -> bool:
    """True if ``--model NAME`` is a model at an endpoint: not a baseline, a replay, a script or an agent."""
    return not (name.startswith(("baseline:", "replay:", "scripted:")) or is_agent(name))


def _agent_policies(
    solve: "Solve", agents: AgentOptions, meter: "UsageMeter", timeout_s: float | None
) -> Callable[[Sample, Mode, int], Policy]:
    from agrotools.agents.external import AgentPolicy

    return lambda _sample, _mode, epoch: AgentPolicy(
        solve, agents.specs, agents.max_steps, meter, timeout_s, epoch=epoch, seed=agents.agent.seed
    )


def _meter(endpoint: Endpoint, agents: AgentOptions) -> "UsageMeter":
    from agrotools.agents.usage import UsageMeter

    if agents.agent.model is None:
        return UsageMeter(endpoint.price)
    from agrotools.agents.counting_endpoint import CountingEndpoint

    return UsageMeter(endpoint.price, CountingEndpoint(agents.agent.model))


def _agent(name: str, agents: AgentOptions, meter: "UsageMeter") -> PolicySource:
    from agrotools.agents.external import AgentServer
    from agrotools.agents.process_agents import CommandAgents, Isolation, PythonAgents
    from agrotools.sandbox.agents import agent_variables, is_available

    options, is_server = agents.agent, is_agent_server(name)
    sealed = None if is_server else is_available()
    if is_server:
        token = (
            agent_variables([options.token_env])[options.token_env] if options.token_env else None
        )
        programs = AgentServer(name, options.wire, token)
    else:
        agent_variables(options.variables)
        places = answer_places(agents.benchmark)
        isolation = Isolation(bool(sealed), options.variables, options.paths, places)
        if name.startswith(_MCP):
            programs = CommandAgents(name.removeprefix(_MCP), isolation)
        else:
            programs = PythonAgents(name.removeprefix(_PYTHON), isolation, meter.endpoint)
    # The time limit of a server is that of its requests, whose faults are not the agent's.
    timeout_s = None if is_server else options.wire.timeout_s
    return PolicySource(
        name,
        False,
        _AGENT_MODES,
        _agent_policies(programs.solve, agents, meter, timeout_s),
        model_hash=programs.code_hash,
        sealed=sealed,
        close=programs.close,
        meter=meter,
    )


def answer_places(benchmark: Benchmark | None) -> list[Path]:
    """Return the folders of a benchmark and of the cache, which no agent may read."""
    places = [benchmark.root, *benchmark.external_folders.values()] if benchmark else []
    return [*places, cache_dir()]


def _baseline(name: str, samples: Sequence[Sample], seed: int) -> PolicySource:
    from agrotools.agents.baselines import BASELINES
    from agrotools.agents.baselines.colours import ColoursPolicy
    from agrotools.agents.baselines.guess import GuessPolicy
    from agrotools.agents.baselines.simple import RandomPolicy

    spelled = f"baseline:{name}"

    def unprivileged(make: Callable[[Sample, Mode, int], Policy]) -> PolicySource:
        return PolicySource(spelled, privileged=False, modes=MODES, make=make)

    kind, _, parameters = name.partition(":")
    if kind == "planted":
        return _planted(spelled, parameters, samples, seed)
    match name:
        case "oracle":
            return _oracle(spelled, samples)
        case "perfect-tools":
            return _perfect_tools(spelled, samples)
        case "planner":
            return _planner(spelled, samples)
        case "constant":
            return _constant(spelled, samples)
        case "guess":
            return unprivileged(lambda sample, _mode, _epoch: GuessPolicy(sample))
        case "colours":
            return unprivileged(lambda sample, _mode, _epoch: ColoursPolicy(sample))
        case "random":
            return unprivileged(lambda sample, _mode, epoch: RandomPolicy(sample, seed, epoch))
        case "echo":
            return unprivileged(_answering(lambda _sample, view: view.query))
        case "refuse":
            return unprivileged(_answering(lambda _sample, _view: UNKNOWN))
        case _:
            known = f"known: {', '.join(BASELINES)}, replay:RUN"
            raise UsageError(f"unknown baseline {name!r}", hint=names_hint(name, BASELINES, known))


def _answering(
    answer: Callable[[Sample, SampleView], str],
) -> Callable[[Sample, Mode, int], Policy]:
    """Return what makes policies that answer at once, with what ``answer`` returns."""
    from agrotools.agents.baselines.simple import ImmediatePolicy

    return lambda sample, _mode, _epoch: ImmediatePolicy(sample, answer)


_MODES_WITH_CALLS: tuple[Mode, ...] = ("step-by-step", "end-to-end")


def _oracle(spelled: str, samples: Sequence[Sample]) -> PolicySource:
    from agrotools.agents.baselines.simple import OraclePolicy

    _check_references(spelled, samples)
    return PolicySource(
        spelled,
        privileged=True,
        modes=_MODES_WITH_CALLS,
        make=lambda sample, _mode, _epoch: OraclePolicy(sample, knows_gold=False),
    )


def _perfect_tools(spelled: str, samples: Sequence[Sample]) -> PolicySource:
    """Return the oracle whose tools tell the truth; without tools, the right texts."""
    from agrotools.agents.baselines.simple import OraclePolicy

    if _asks_for_texts_without_tools(samples):
        return PolicySource(
            spelled,
            privileged=True,
            modes=("no-tool",),
            make=_answering(lambda sample, _view: str(sample.answer[0].right_text)),
        )
    _check_references(spelled, samples)
    return PolicySource(
        spelled,
        privileged=True,
        modes=_MODES_WITH_CALLS,
        make=lambda sample, _mode, _epoch: OraclePolicy(sample, knows_gold=True),
        truth_tools=True,
    )


def _planted(spelled: str, parameters: str, samples: Sequence[Sample], seed: int) -> PolicySource:
    from agrotools.agents.baselines.planted import Planted, PlantedPolicy

    _check_references(spelled, samples)
    agent = Planted.parse(parameters, seed)
    return PolicySource(
        spelled,
        privileged=True,
        modes=_MODES_WITH_CALLS,
        make=lambda sample, mode, epoch: PlantedPolicy(sample, agent, mode, epoch),
    )


def _planner(spelled: str, samples: Sequence[Sample]) -> PolicySource:
    from agrotools.agents.baselines.planner import PlannerPolicy, PlanTable

    plans = PlanTable(samples)
    return PolicySource(
        spelled,
        privileged=True,
        modes=MODES,
        make=lambda sample, _mode, _epoch: PlannerPolicy(sample, plans),
    )


def _constant(spelled: str, samples: Sequence[Sample]) -> PolicySource:
    from agrotools.agents.baselines.constant import ConstantPolicy
    from agrotools.scoring.constants import ConstantTable

    table = ConstantTable.of(samples)
    return PolicySource(
        spelled,
        privileged=True,
        modes=MODES,
        make=lambda sample, _mode, _epoch: ConstantPolicy(sample, table.values(sample)),
    )


def _asks_for_texts_without_tools(samples: Sequence[Sample]) -> bool:
    """True if no sample has reference calls, and the first one, like which the others are, wants texts alone."""
    facts = facts_of(samples)
    if not facts.ids or any(facts.reference):
        return False
    first = samples[0]
    return not first.toolset and all(slot.right_text is not None for slot in first.answer)


def _check_references(spelled: str, samples: Sequence[Sample]) -> None:
    """Raise a UsageError if a sample has no reference calls, which a baseline makes."""
    facts = facts_of(samples)
    for sample_id, has_reference in zip(facts.ids, facts.reference, strict=True):
        if not has_reference:
            raise UsageError(
                f"{spelled} makes the reference calls, but not all samples have any, e.g. {sample_id}",
                hint="add reference trajectories to the benchmark, or choose another model",
            )


def _replay(name: str, run: Path) -> PolicySource:
    from agrotools.agents.baselines.simple import ReplayPolicy

    manifest = read_manifest(run)
    index = record_index(run)

    def make(sample: Sample, mode: Mode, epoch: int) -> Policy:
        keys = ((mode, sample.id, epoch), (mode, sample.id, 0))
        record = next((index.get(key) for key in keys if index.has_finished(key)), None)
        if record is None:
            raise UsageError(
                f"the run {run} has no record of sample {sample.id} in mode {mode}",
                hint="replay the benchmark, modes and --limit that the run was made with",
            )
        return ReplayPolicy(record)

    single_shot = run_protocol(manifest.protocol).single_shot
    return PolicySource(name, manifest.privileged, manifest.modes, make, single_shot=single_shot)
