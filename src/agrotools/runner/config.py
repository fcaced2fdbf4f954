"""Configuration of an evaluation: options of ``agrotools eval`` and keys of its config file, in parts.

An option has one name, on the command line and as a key of a file: ``EvalConfig.of(base_url=...)``. The parts say
which room of the package needs it: ``config.model.base_url``. Files have no parts: who writes one knows the options.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args

from pydantic import AfterValidator, Field, ValidationInfo, field_validator
from pydantic.fields import FieldInfo

from agrotools.agents.options import ExternalAgentOptions
from agrotools.core import MODES, FrozenModel, Mode, Protocol, UsageError
from agrotools.core.installed import benchmark_id
from agrotools.core.texts import names_hint
from agrotools.models import DEFAULT_WIRE, Endpoint, ModelSettings, WireSettings
from agrotools.models.local_models import LOCAL_OUTPUT_TOKENS
from agrotools.models.local_models import PREFIX as LOCAL_PREFIX
from agrotools.runner.plan import checked_selection
from agrotools.runner.policies import RUN_PROTOCOLS, names_endpoint

if TYPE_CHECKING:
    from agrotools.models.local_server import LocalServer


_LONGEST_NAME = 80
"""Most characters of a name that the user gives a run: longer ones leave tables no room."""


class _Config(FrozenModel):
    """Options that belong together. The alias of a field is the name of the option, where it is longer."""

    @field_validator("*", mode="before")
    @classmethod
    def _is_a_number(cls, value: object, info: ValidationInfo) -> object:
        kind = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and bool not in (kind, *get_args(kind)):
            raise ValueError("should be a number or a text")  # Python takes True for 1
        if isinstance(value, int | float) and (
            value != value or (isinstance(value, int) and abs(value) >= 2**63)
        ):
            raise ValueError("should be a number below 2^63")  # requests and records hold no others
        return value


class BenchmarkConfig(_Config):
    """The benchmark, and the part of its samples that is run."""

    name: Annotated[str, AfterValidator(benchmark_id), Field(alias="benchmark")] = "embedded"
    options: dict[str, str | int | bool] = {}
    """Options of a benchmark that is given by name."""
    data_root: Path | None = None
    quick: bool = False
    """True to run the quick part of the benchmark, a fixed selection of its samples, in a run folder of its own."""
    task_types: tuple[str, ...] = ()
    """Task types whose questions are run, in a run folder of its own; empty for all."""
    limit: Annotated[int | None, Field(ge=1)] = None
    shard: str = ""
    """``NUMBER/COUNT``: run only this part of the samples (:mod:`agrotools.runner.shards`); empty for all."""

    @field_validator("shard", mode="before")
    @classmethod
    def _is_a_shard(cls, shard: object) -> str:
        from agrotools.runner.shards import shard_text

        return shard_text(shard) if shard else ""


class ModelConfig(_Config):
    """The model, where it answers, and how it is sampled."""

    name: Annotated[str, Field(alias="model")] = "baseline:planner"
    base_url: Annotated[str | None, Field(min_length=1)] = None
    api_key_env: str | None = None
    price: str | None = None
    """``IN/OUT`` in USD per million tokens, if the price table lacks the model or is out of date."""
    serve: Literal["llama"] | None = None
    """Program that serves the model on this machine during the run."""
    serve_args: str = ""
    """Further arguments of that program, as in a shell."""
    serve_timeout: Annotated[float, Field(gt=0)] = 1800.0
    """Seconds from the start of the server until it answers."""
    seed: int | None = None
    """Seed of baselines (default 0); sent to the endpoint only if given, because some reject it."""
    temperature: Annotated[float | None, Field(ge=0, allow_inf_nan=False)] = None
    max_output_tokens: Annotated[int | None, Field(ge=1)] = None
    top_logprobs: Annotated[int | None, Field(ge=1, le=20)] = None
    """Number of token alternatives to request; options are then also scored by the likelihood of their letter."""

    @property
    def settings(self) -> ModelSettings:
        """Sampling settings; unset options keep their defaults."""
        given: dict[str, Any] = {
            "temperature": self.temperature,
            "max_output_tokens": self.max_output_tokens,
            "top_logprobs": self.top_logprobs,
            "seed": self.seed,
        }
        if self.name.startswith(LOCAL_PREFIX) and self.max_output_tokens is None:
            given["max_output_tokens"] = LOCAL_OUTPUT_TOKENS
        return ModelSettings(**{name: value for name, value in given.items() if value is not None})

    @property
    def server(self) -> "LocalServer | None":
        """Server that the run starts for the model; None if it starts none."""
        if self.serve is None and not self.name.startswith(LOCAL_PREFIX):
            if self.serve_args:
                raise UsageError(
                    "--serve-args needs --serve", hint="name the program: --serve llama"
                )
            return None
        if not names_endpoint(self.name):
            raise UsageError(
                f"--serve is for models, and {self.name} is not a model", hint="omit it"
            )
        if self.base_url:
            raise UsageError(
                "--serve starts a server, and --base-url names one that runs",
                hint="omit one of them",
            )
        from agrotools.models.local_server import LocalServer

        return LocalServer(self.name, self.serve_args, self.serve_timeout)


class WireConfig(_Config):
    """Use of every endpoint of the run: how many requests at once, how long they may take."""

    concurrency: Annotated[int | None, Field(ge=1)] = None
    """Requests in flight; None: adapted to the endpoint."""
    rpm: Annotated[int | None, Field(ge=1)] = None
    tpm: Annotated[int | None, Field(ge=1)] = None
    timeout_s: Annotated[float, Field(gt=0)] = DEFAULT_WIRE.timeout_s
    stall_s: Annotated[float, Field(gt=0)] = DEFAULT_WIRE.stall_s
    attempts: Annotated[int, Field(ge=1)] = DEFAULT_WIRE.attempts
    retry_wall_s: Annotated[float, Field(gt=0)] = DEFAULT_WIRE.retry_wall_s

    @property
    def settings(self) -> WireSettings:
        return WireSettings(**self.model_dump())


class ToolConfig(_Config):
    """The tools that samples offer, what executes them, and the vision model that some of them ask."""

    offered: Annotated[str, AfterValidator(checked_selection), Field(alias="tools")] = "all"
    """Tools that each sample offers: ``all``, ``needed`` (those of its reference calls), ``+N`` (N others too)."""
    backends: dict[str, str] = {}
    servers: Annotated[tuple[str, ...], Field(alias="tool_servers")] = ()
    """Addresses of tool servers, whose tools each sample offers, too (:mod:`agrotools.served.address`)."""
    bindings: tuple[str, ...] = ()
    """Files that make tools of ours of calls of a tool server (:mod:`agrotools.served.binding`)."""
    faults: str = ""
    """Chances of faults in tool calls, e.g. ``error=.2,noise=.1``; empty or ``none`` for none."""
    workers: Annotated[int, Field(ge=1, le=256, alias="tool_workers")] = 2
    executor: Literal["local", "ray"] = "local"
    """Executor of tool calls: worker processes of this machine, or a Ray cluster."""
    vlm_model: str | None = None
    """Vision model of tools with the back-end ``vlm``: a name on the endpoint, or PROVIDER:NAME."""
    vlm_base_url: str | None = None
    vlm_api_key_env: str | None = None
    vlm_price: str | None = None
    """Price of the vision model, in the format of ``price``."""

    @field_validator("faults")
    @classmethod
    def _are_chances(cls, chances: str) -> str:
        if not chances:
            return chances
        from agrotools.runner.faults import Faults

        return str(Faults.parse(chances))


class AgentConfig(_Config):
    """Protocol, pictures and turns of a conversation, and what an agent of the user's own may use."""

    protocol: Protocol | None = None
    """None: the protocol that the benchmark was published with, otherwise ``react``."""
    images: bool | None = None
    """True if the model sees images; None: default of the protocol (some published ones show none)."""
    tool_images: bool = False
    """True if the model also sees the pictures that its calls made: crops, overlays, charts."""
    max_steps: Annotated[int | None, Field(ge=1)] = None
    """Maximum model turns per sample; None: that of the benchmark's published runs, else of the protocol, else 20."""
    env: Annotated[tuple[str, ...], Field(alias="agent_env")] = ()
    """Names of environment variables that an agent gets; it gets no others."""
    path: Annotated[tuple[Path, ...], Field(alias="agent_path")] = ()
    """Files and folders that an agent may read, besides its own module or package."""
    model: Annotated[str | None, Field(alias="agent_model")] = None
    """Model that an agent's requests are sent to, and counted: a name on the endpoint, or PROVIDER:NAME."""
    base_url: Annotated[str | None, Field(alias="agent_base_url")] = None
    api_key_env: Annotated[str | None, Field(alias="agent_api_key_env")] = None

    @field_validator("protocol")
    @classmethod
    def _is_known(cls, protocol: Protocol | None) -> Protocol | None:
        if protocol is not None and protocol not in RUN_PROTOCOLS:
            raise ValueError(f"should be one of {', '.join(RUN_PROTOCOLS)}")
        return protocol


class RunConfig(_Config):
    """Modes and repetitions of a run, its budget and its folder."""

    mode: Mode | str = "all"
    epochs: Annotated[int, Field(ge=1, le=1000)] = 1
    cache: str | None = None
    """Name of a response cache, shared by all runs that use this name."""
    budget: Annotated[float | None, Field(gt=0)] = None
    """Maximum total spending of the run in USD, over all resumptions."""
    out: Path | None = None
    name: Annotated[str, Field(max_length=_LONGEST_NAME)] = ""
    """Name of the model in tables and on pages; empty: the model as it was given, which may be an address."""

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if name.startswith("baseline:"):
            raise ValueError("should not begin with baseline:, which marks a yardstick")
        return " ".join(name.split())

    @property
    def modes(self) -> tuple[Mode, ...]:
        """Modes selected by the option ``mode``: one, several joined by commas, or all; UsageError if unknown."""
        if self.mode == "all":
            return MODES
        names = [name.strip() for name in self.mode.split(",")]
        if unknown := [name for name in names if name not in MODES]:
            modes = f"modes: {', '.join(MODES)}, all"
            raise UsageError(
                f"unknown mode {unknown[0]!r}", hint=names_hint(unknown[0], MODES, modes)
            )
        return tuple(mode for mode in MODES if mode in names)


class JudgeConfig(_Config):
    """Models that grade answers of finished runs. The names of all fields are keys of a configuration file."""

    judge: tuple[str, ...] = ()
    judge_base_url: Annotated[str | None, Field(min_length=1)] = None
    judge_api_key_env: str | None = None
    judge_votes: Annotated[int, Field(ge=1, le=25)] = 1
    """Grades per judge and answer."""
    judge_calibration: str = ""
    """Answers with known grades, which the judges grade, too: a file, or ``shipped``; empty for none."""
    judge_rubrics: Path | None = None
    judge_budget: Annotated[float | None, Field(gt=0)] = None
    """Maximum spending on the judges of a run in USD."""
    judge_price: str | None = None
    judge_concurrency: Annotated[int | None, Field(ge=1)] = None


class EvalConfig(FrozenModel):
    """Configuration of one run, in the parts that rooms of the package need."""

    benchmark: BenchmarkConfig = BenchmarkConfig()
    model: ModelConfig = ModelConfig()
    wire: WireConfig = WireConfig()
    tools: ToolConfig = ToolConfig()
    agent: AgentConfig = AgentConfig()
    run: RunConfig = RunConfig()

    @classmethod
    def of(cls, **options: Any) -> "EvalConfig":
        """Return the configuration with these options, by their names on the command line.

        Raises:
            ValidationError: a value is invalid; the last part of its location is the option.
        """
        parts: dict[str, dict[str, Any]] = {}
        for name, value in options.items():
            part, _ = _PLACE_OF[name]
            parts.setdefault(part, {})[name] = value
        return cls.model_validate(parts)

    def with_options(self, **options: Any) -> "EvalConfig":
        """Return a copy with other values of these options, which must be valid, by their names on the command line."""
        parts: dict[str, Any] = {}
        for name, value in options.items():
            part, field = _PLACE_OF[name]
            before = parts.get(part) or getattr(self, part)
            parts[part] = before.model_copy(update={field: value})
        return self.model_copy(update=parts)

    @property
    def endpoint(self) -> Endpoint:
        """Model, address and key of the endpoint."""
        server, wire, model = self.model.server, self.wire.settings, self.model
        if server is not None:
            concurrency = min(wire.concurrency or server.slots, server.slots)
            wire = wire.model_copy(update={"concurrency": concurrency})
        return Endpoint(
            model.name,
            model.base_url,
            model.api_key_env,
            wire,
            model.price,
            self.run.budget,
            server,
        )

    @property
    def external_agent(self) -> ExternalAgentOptions:
        """Options of an agent that is not a model."""
        agent, wire, endpoint = self.agent, self.wire.settings, None
        if agent.model:
            endpoint = Endpoint(
                agent.model,
                agent.base_url,
                agent.api_key_env,
                wire,
                self.model.price,
                self.run.budget,
            )
        elif agent.base_url or agent.api_key_env:
            raise UsageError(
                "--agent-base-url and --agent-api-key-env need --agent-model", hint="name the model"
            )
        return ExternalAgentOptions(
            variables=agent.env,
            paths=agent.path,
            wire=wire,
            token_env=self.model.api_key_env,
            model=endpoint,
            seed=self.model.seed or 0,
        )

    @property
    def vlm_endpoint(self) -> Endpoint:
        """Endpoint of the tools' vision model; its name is empty if none is given."""
        tools = self.tools
        return Endpoint(
            tools.vlm_model or "",
            tools.vlm_base_url,
            tools.vlm_api_key_env,
            self.wire.settings,
            tools.vlm_price,
            self.run.budget,
        )


def _options() -> tuple[dict[str, FieldInfo], dict[str, tuple[str, str]]]:
    """Return each option by name with its field, and with the names of its part and field."""
    fields: dict[str, FieldInfo] = {}
    places: dict[str, tuple[str, str]] = {}
    for part, of_part in EvalConfig.model_fields.items():
        for name, field in type(cast("_Config", of_part.default)).model_fields.items():
            option = field.alias or name
            fields[option], places[option] = field, (part, name)
    return fields, places


_FIELD_OF, _PLACE_OF = _options()
OPTIONS: Mapping[str, FieldInfo] = _FIELD_OF
"""Options of an evaluation by name, with their types and defaults."""
JUDGE_KEYS = tuple(JudgeConfig.model_fields)
"""Keys of a configuration file about judges, which are asked when a run is done."""
