"""Policies of a run: from ``--model`` to the policy of each sample, and the cost of their models.

A model that is not free is accessed through a budget, whose paid replies are logged in a ledger in the run folder.
"""

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agrotools.agents.llm import PROTOCOLS, LLMAgent
from agrotools.agents.modes import ModelAgent, Policy
from agrotools.agents.protocols import RunProtocol
from agrotools.calling import tool_specs
from agrotools.core import MODES, Mode, Protocol, Sample, SampleView, ToolSpec, UsageError
from agrotools.core.files import cache_dir, sha256_of_file
from agrotools.formats.benchmark import facts_of
from agrotools.loading import Benchmark
from agrotools.models import (
    DEFAULT_WIRE,
    Endpoint,
    Model,
    ModelSettings,
    WireSettings,
    WireStats,
    make_model,
)
from agrotools.models.endpoint import PricedModel, price_at
from agrotools.models.metered import SPEND_FILE, SpendLedger
from agrotools.models.prices import Price
from agrotools.plugin.installed import WithPlugins
from agrotools.runner.prompts import ObservedModel
from agrotools.runner.records import record_index
from agrotools.runner.store import read_manifest
from agrotools.text.form_values import UNKNOWN

if TYPE_CHECKING:
    from agrotools.agents.external import Solve
    from agrotools.agents.task import Task
    from agrotools.agents.usage import UsageMeter
    from agrotools.models.metered import ResponseCache
    from agrotools.models.probe import FirstContact


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
                ObservedModel(self._model_of(epoch)), mode, self._options
            )
        return self._agents[key]

    def with_models(self, model_of: Callable[[int], Model]) -> "Agents":
        """Return a copy of the factory with other models, by epoch."""
        return Agents(model_of, self._options)


@dataclass(frozen=True)
class ExternalAgentOptions:
    """Options of agents that are not models: environment, code and time."""

    variables: tuple[str, ...] = ()
    """Names of environment variables that the agent gets."""
    paths: tuple[Path, ...] = ()
    """Files and folders that the agent may read, besides its own module or package."""
    wire: WireSettings = DEFAULT_WIRE
    """Seconds that the agent may take for one step (``timeout_s``), and attempts at a request to a server."""
    token_env: str | None = None
    """Name of the environment variable with the token of an agent's server."""
    model: Endpoint | None = None
    """Model whose endpoint is served to the agent, and counts its requests."""


@dataclass(frozen=True)
class AgentOptions:
    """Protocol, sampling and prompts of the agents of a run."""

    protocol: Protocol = "react"
    settings: ModelSettings = field(default_factory=ModelSettings)
    images: bool = True
    max_steps: int = 20
    """Model turns per sample; some protocols tell the model when the last turn has come."""
    benchmark: Benchmark | None = None
    """Benchmark of the run, for agents that need it, e.g. for its own tool declarations."""
    specs: Callable[[Sequence[str]], Sequence[ToolSpec]] = tool_specs
    """Function from tool names to their specifications."""
    agent: ExternalAgentOptions = field(default_factory=ExternalAgentOptions)


def _conversation_agent(model: Model, mode: Mode, options: AgentOptions) -> ModelAgent:
    return LLMAgent(model, mode, options.protocol, options.settings, options.images, options.specs)


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
    name = endpoint.model if model is None else getattr(model, "name", None) or type(model).__name__
    has_agent = is_agent(name) if model is None else not isinstance(model, Model | Policy)
    if agents.agent.model is not None and not has_agent:
        raise UsageError(f"--agent-model is for agents, and {name} is none", hint="omit it")
    if model is None and name.startswith(("baseline:", "replay:")):
        run = replayed_run(name)
        source = (
            _replay(name, Path(run))
            if run
            else _baseline(name.removeprefix("baseline:"), samples, seed)
        )
        return replace(source, budget_usd=endpoint.budget_usd)
    if is_agent(name) and model is None:
        return replace(
            _agent(name, agents, _meter(endpoint, agents)), budget_usd=endpoint.budget_usd
        )
    usd = endpoint.budget_usd
    if model is not None and not isinstance(model, Model | Policy):
        from agrotools.agents.external import solve_with

        meter = _meter(endpoint, agents)
        make = _agent_policies(solve_with(model), agents, meter, agents.agent.wire.timeout_s)
        return PolicySource(
            name, False, _AGENT_MODES, make, budget_usd=usd, sealed=False, meter=meter
        )
    if model is not None and not isinstance(model, Model):
        return PolicySource(
            name, False, MODES, lambda _sample, _mode, _epoch: model, budget_usd=usd
        )
    protocol = run_protocol(agents.protocol)
    answering = model or make_model(endpoint)
    base_url: str | None = getattr(answering, "base_url", None) or None
    price = price_at(base_url, name, endpoint)
    model_hash = endpoint.server.model_hash if endpoint.server else ""
    if model is None and not base_url:
        model_hash = sha256_of_file(Path(name.removeprefix("scripted:")))
    return PolicySource(
        name,
        False,
        protocol.modes,
        Agents(lambda _epoch: answering, agents),
        single_shot=protocol.single_shot,
        model=answering,
        base_url=base_url,
        stats=answering.stats,
        probe=(lambda: make_model(endpoint.impatient)) if base_url and model is None else None,
        model_hash=model_hash,
        price=price,
        budget_usd=usd,
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

    return lambda _sample, _mode, _epoch: AgentPolicy(
        solve, agents.specs, agents.max_steps, meter, timeout_s
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
    from agrotools.agents.baselines import BASELINES, guess, simple

    spelled = f"baseline:{name}"
    kind, _, parameters = name.partition(":")

    def immediate(
        answer: Callable[[Sample, SampleView], str],
    ) -> Callable[[Sample, Mode, int], Policy]:
        return lambda sample, _mode, _epoch: simple.ImmediatePolicy(sample, answer)

    if name in ("oracle", "perfect-tools") or kind == "planted":
        facts = facts_of(samples)
        first = (
            samples[0]
            if name == "perfect-tools" and facts.ids and not any(facts.reference)
            else None
        )
        if (
            first
            and not first.toolset
            and all(slot.right_text is not None for slot in first.answer)
        ):
            right = immediate(lambda sample, _view: str(sample.answer[0].right_text))
            return PolicySource(spelled, True, ("no-tool",), right)
        without = next(
            (name for name, has in zip(facts.ids, facts.reference, strict=True) if not has), None
        )
        if without:
            raise UsageError(
                f"{spelled} makes the reference calls, but not all samples have any, e.g. {without}",
                hint="add reference trajectories to the benchmark, or choose another model",
            )
        with_calls: tuple[Mode, ...] = ("step-by-step", "end-to-end")
        if kind == "planted":
            from agrotools.agents.baselines.planted import Planted, PlantedPolicy

            agent = Planted.parse(parameters, seed)
            return PolicySource(
                spelled,
                True,
                with_calls,
                lambda sample, mode, epoch: PlantedPolicy(sample, agent, mode, epoch),
            )
        return PolicySource(
            spelled,
            True,
            with_calls,
            lambda sample, _mode, _epoch: simple.OraclePolicy(
                sample, knows_gold=name == "perfect-tools"
            ),
            truth_tools=name == "perfect-tools",
        )
    if name == "planner":
        from agrotools.agents.baselines.planner import PlannerPolicy, PlanTable

        plans = PlanTable(samples)
        return PolicySource(
            spelled, True, MODES, lambda sample, _mode, _epoch: PlannerPolicy(sample, plans)
        )
    if name == "prior":
        from agrotools.agents.baselines.prior import PriorTable

        return PolicySource(spelled, True, MODES, immediate(PriorTable(samples).answer))
    unprivileged: dict[str, Callable[[Sample, Mode, int], Policy]] = {
        "guess": lambda sample, _mode, _epoch: guess.GuessPolicy(sample),
        "random": lambda sample, _mode, epoch: simple.RandomPolicy(sample, seed, epoch),
        "echo": immediate(lambda _sample, view: view.query),
        "refuse": immediate(lambda _sample, _view: UNKNOWN),
    }
    if name in unprivileged:
        return PolicySource(spelled, False, MODES, unprivileged[name])
    raise UsageError(
        f"unknown baseline {name!r}", hint=f"known: {', '.join(BASELINES)}, replay:RUN"
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


class Accounted(NamedTuple):
    """Models behind the response cache and the ledger, and the cache itself."""

    source: PolicySource
    replies: "ResponseCache | None" = None
    vision: Model | None = None
    """Vision model of tools. Its replies are never shared between runs."""
    contact: "FirstContact | None" = None
    """First contact with the endpoint of ``source``; None if it has no endpoint to probe."""


@contextmanager
def accounted(
    source: PolicySource, run: Path, *, cache: str | None, tools: PricedModel | None = None
) -> Generator[Accounted]:
    """Yield ``source`` and the tools' vision model; models that are not free are paid from one common budget.

    Raises:
        UsageError: invalid name of a cache.
        RunStoreError: the ledger cannot be read.
    """
    if not (
        source.base_url or source.meter or tools or cache
    ):  # a script or a baseline: nothing to pay or to cache
        yield Accounted(source)
        return
    from agrotools.models.metered import (
        Budget,
        CachedModel,
        MeteredModel,
        ResponseCache,
        response_cache_path,
    )
    from agrotools.models.probe import FirstContact

    agents, model, probe = source.make, source.model, source.probe
    vision = tools.model if tools else None
    with ExitStack() as stack:
        price, tools_price = (
            None if each is None or each.is_free else each
            for each in (source.price, tools.price if tools else None)
        )
        if price or tools_price or source.meter:
            budget = Budget(source.budget_usd, stack.enter_context(SpendLedger(run / SPEND_FILE)))
            if source.meter:
                source.meter.charge_to(budget)
            if model and price:
                model = MeteredModel(model, price, budget)
                make_probe = source.probe
                probe = (lambda: MeteredModel(make_probe(), price, budget)) if make_probe else None
            if tools and tools_price:
                vision = MeteredModel(tools.model, tools_price, budget)
        if vision is not None:
            vision = FirstContact(vision)
        if model is None or not isinstance(agents, Agents):
            yield Accounted(source, vision=vision)
            return
        contact = FirstContact(model, probe) if probe else None
        replies = stack.enter_context(ResponseCache(response_cache_path(cache))) if cache else None
        front = contact or model

        def model_of(epoch: int) -> Model:
            return CachedModel(front, replies, epoch) if replies else front

        yield Accounted(
            replace(source, make=agents.with_models(model_of)), replies, vision, contact
        )
