"""Configuration of an evaluation (options of ``agrotools eval`` and keys of its config file), the settings that follow
from it for a benchmark, and the plan of a run.

A plan is the set difference between the records that a run should contain and those it has. It stores positions of
samples, and each sample is loaded only when its turn comes.
"""

import asyncio
import itertools
import time
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO, cast

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, field_validator

from agrotools.benchmarks import Benchmark
from agrotools.benchmarks.loading import Loading, load_as
from agrotools.core import BENCHMARKS, MODES, FrozenModel, Mode, Protocol, UsageError, plain_message
from agrotools.core.files import read_text
from agrotools.core.texts import suggestion
from agrotools.formats.benchmark import facts_of
from agrotools.models import DEFAULT_WIRE, Endpoint, ModelSettings, WireSettings, priced_model
from agrotools.models.endpoint import PricedModel, check_model_name
from agrotools.models.local_models import LOCAL_OUTPUT_TOKENS
from agrotools.models.local_models import PREFIX as LOCAL_PREFIX
from agrotools.plugin.installed import benchmark_id, plugin_of
from agrotools.runner.plan import EVERY_TOOL, RECORDED, backend_by_tool, checked_selection
from agrotools.runner.policies import (
    RUN_PROTOCOLS,
    ExternalAgentOptions,
    is_agent,
    is_baseline,
    names_endpoint,
    replayed_run,
    run_protocol,
)
from agrotools.runner.progress import stage_progress
from agrotools.runner.store import read_manifest
from agrotools.tools.services import NAME_A_MODEL, VLM

if TYPE_CHECKING:
    from agrotools.models.local_server import LocalServer

FIRST_RUN_MODELS = ("baseline:planner", "baseline:oracle", "baseline:guess")
"""Default models: plans of similar questions, the upper bound that the tools allow, and guesses from the question."""
FIRST_RUN_WITHOUT_TOOLS = ("baseline:prior", "baseline:random")
"""Default models for questions without reference calls."""

_LONG_LOADING_S = 1.0
_SETTINGS = ("temperature", "max_output_tokens", "top_logprobs", "seed")
_WIRE_FIELDS = ("concurrency", "rpm", "tpm", "timeout_s", "stall_s", "attempts", "retry_wall_s")


class EvalConfig(FrozenModel):
    """Benchmark, model and options of an evaluation: options of ``agrotools eval`` and keys of its config file."""

    benchmark: Annotated[str, AfterValidator(benchmark_id)] = "embedded"
    options: dict[str, str | int | bool] = {}
    """Options of a benchmark that is given by name."""
    data_root: Path | None = None
    model: str = "baseline:planner"
    base_url: Annotated[str | None, Field(min_length=1)] = None
    api_key_env: str | None = None
    serve: Literal["llama"] | None = None
    """Program that serves the model on this machine during the run."""
    serve_args: str = ""
    """Further arguments of that program, as in a shell."""
    serve_timeout: Annotated[float, Field(gt=0)] = 1800.0
    """Seconds from the start of the server until it answers."""
    mode: Mode | str = "all"
    protocol: Protocol | None = None
    """None: the protocol that the benchmark was published with, otherwise ``react``."""
    images: bool | None = None
    """True if the model sees images; None: default of the protocol (some published ones show none)."""
    quick: bool = False
    """True to run the quick part of the benchmark, a fixed selection of its samples, in a run folder of its own."""
    limit: Annotated[int | None, Field(ge=1)] = None
    shard: str = ""
    """``NUMBER/COUNT``: run only this part of the samples (:mod:`agrotools.runner.shards`); empty for all."""
    epochs: Annotated[int, Field(ge=1, le=1000)] = 1
    degrade: str = ""
    """Doses of a degradation of the pictures, e.g. ``blur=1.5,jpeg=30``; empty or ``none`` for the original files."""
    faults: str = ""
    """Chances of faults in tool calls, e.g. ``error=.2,noise=.1``; empty or ``none`` for none."""
    max_steps: Annotated[int | None, Field(ge=1)] = None
    """Maximum model turns per sample; None: that of the benchmark's published runs, else of the protocol, else 20."""
    seed: int | None = None
    """Seed of baselines (default 0); sent to the endpoint only if given, because some reject it."""
    temperature: Annotated[float | None, Field(ge=0, allow_inf_nan=False)] = None
    max_output_tokens: Annotated[int | None, Field(ge=1)] = None
    top_logprobs: Annotated[int | None, Field(ge=1, le=20)] = None
    """Number of token alternatives to request; options are then also scored by the likelihood of their letter."""
    concurrency: Annotated[int | None, Field(ge=1)] = None
    """Requests in flight; None: adapted to the endpoint."""
    cache: str | None = None
    """Name of a response cache, shared by all runs that use this name."""
    budget: Annotated[float | None, Field(gt=0)] = None
    """Maximum total spending of the run in USD, over all resumptions."""
    price: str | None = None
    """``IN/OUT`` in USD per million tokens, if the price table lacks the model or is out of date."""
    rpm: Annotated[int | None, Field(ge=1)] = None
    tpm: Annotated[int | None, Field(ge=1)] = None
    timeout_s: Annotated[float, Field(gt=0)] = DEFAULT_WIRE.timeout_s
    stall_s: Annotated[float, Field(gt=0)] = DEFAULT_WIRE.stall_s
    attempts: Annotated[int, Field(ge=1)] = DEFAULT_WIRE.attempts
    retry_wall_s: Annotated[float, Field(gt=0)] = DEFAULT_WIRE.retry_wall_s
    tool_workers: Annotated[int, Field(ge=1, le=256)] = 2
    executor: Literal["local", "ray"] = "local"
    """Executor of tool calls: worker processes of this machine, or a Ray cluster."""
    tools: Annotated[str, AfterValidator(checked_selection)] = "all"
    """Tools that each sample offers: ``all``, ``needed`` (those of its reference calls), ``+N`` (N others too)."""
    backends: dict[str, str] = {}
    vlm_model: str | None = None
    """Vision model of tools with the back-end ``vlm``: a name on the endpoint, or PROVIDER:NAME."""
    vlm_base_url: str | None = None
    vlm_api_key_env: str | None = None
    vlm_price: str | None = None
    """Price of the vision model, in the format of ``price``."""
    agent_env: tuple[str, ...] = ()
    """Names of environment variables that an agent gets; it gets no others."""
    agent_path: tuple[Path, ...] = ()
    """Files and folders that an agent may read, besides its own module or package."""
    agent_model: str | None = None
    """Model that an agent's requests are sent to, and counted: a name on the endpoint, or PROVIDER:NAME."""
    agent_base_url: str | None = None
    agent_api_key_env: str | None = None
    out: Path | None = None

    @field_validator("*", mode="before")
    @classmethod
    def _is_a_number(cls, value: object) -> object:
        if isinstance(value, int | float) and (
            value != value or (isinstance(value, int) and abs(value) >= 2**63)
        ):
            raise ValueError("should be a number below 2^63")  # requests and records hold no others
        return value

    @field_validator("shard", mode="before")
    @classmethod
    def _is_a_shard(cls, shard: object) -> str:
        from agrotools.runner.shards import shard_text

        return shard_text(shard) if shard else ""

    @field_validator("protocol")
    @classmethod
    def _is_known(cls, protocol: Protocol | None) -> Protocol | None:
        if protocol is not None and protocol not in RUN_PROTOCOLS:
            raise ValueError(f"should be one of {', '.join(RUN_PROTOCOLS)}")
        return protocol

    @field_validator("degrade", "faults")
    @classmethod
    def _are_doses(cls, doses: str, info: ValidationInfo) -> str:
        if not doses:
            return doses
        if info.field_name == "faults":
            from agrotools.runner.faults import Faults

            return str(Faults.parse(doses))
        from agrotools.runner.degradation import Degradation

        return str(Degradation.parse(doses))

    @property
    def modes(self) -> tuple[Mode, ...]:
        """Modes selected by the option ``mode``: one, several joined by commas, or all; UsageError if unknown."""
        if self.mode == "all":
            return MODES
        names = [name.strip() for name in self.mode.split(",")]
        if unknown := [name for name in names if name not in MODES]:
            raise UsageError(f"unknown mode {unknown[0]!r}", hint=f"one of {', '.join(MODES)}, all")
        return tuple(mode for mode in MODES if mode in names)

    @property
    def settings(self) -> ModelSettings:
        """Sampling settings; unset options keep their defaults."""
        values = {name: getattr(self, name) for name in _SETTINGS}
        if self.model.startswith(LOCAL_PREFIX):
            values["max_output_tokens"] = self.max_output_tokens or LOCAL_OUTPUT_TOKENS
        return ModelSettings.model_validate(
            {name: value for name, value in values.items() if value is not None}
        )

    @property
    def endpoint(self) -> Endpoint:
        """Model, address and key of the endpoint."""
        server, wire = self._server(), self._wire
        if server is not None:
            concurrency = min(wire.concurrency or server.slots, server.slots)
            wire = wire.model_copy(update={"concurrency": concurrency})
        return Endpoint(
            self.model, self.base_url, self.api_key_env, wire, self.price, self.budget, server
        )

    def _server(self) -> "LocalServer | None":
        if self.serve is None and not self.model.startswith(LOCAL_PREFIX):
            if self.serve_args:
                raise UsageError(
                    "--serve-args needs --serve", hint="name the program: --serve llama"
                )
            return None
        if not names_endpoint(self.model):
            raise UsageError(f"--serve is for models, and {self.model} is none", hint="omit it")
        if self.base_url:
            raise UsageError(
                "--serve starts a server, and --base-url names one that runs",
                hint="omit one of them",
            )
        from agrotools.models.local_server import LocalServer

        return LocalServer(self.model, self.serve_args, self.serve_timeout)

    @property
    def agent(self) -> ExternalAgentOptions:
        """Options of an agent that is not a model."""
        where = (self.agent_base_url, self.agent_api_key_env)
        model = (
            Endpoint(self.agent_model, *where, self._wire, self.price, self.budget)
            if self.agent_model
            else None
        )
        if model is None and any(where):
            raise UsageError(
                "--agent-base-url and --agent-api-key-env need --agent-model", hint="name the model"
            )
        return ExternalAgentOptions(
            self.agent_env, self.agent_path, self._wire, self.api_key_env, model
        )

    @property
    def vlm_endpoint(self) -> Endpoint:
        """Endpoint of the tools' vision model; its name is empty if none is given."""
        where = (self.vlm_model or "", self.vlm_base_url, self.vlm_api_key_env)
        return Endpoint(*where, self._wire, self.vlm_price, self.budget)

    @property
    def _wire(self) -> WireSettings:
        return WireSettings(**{name: getattr(self, name) for name in _WIRE_FIELDS})


def read_config(
    file: Path | None, options: Mapping[str, Any], models: Sequence[str]
) -> list[EvalConfig]:
    """Return one configuration for each model, degradation and chance of faults; ``options`` override the file.

    Raises:
        UsageError: the file cannot be read, a key or value is invalid (the closest key is suggested), or ``out`` is
            given for several models.
    """
    values = dict(read_toml(file)) if file else {}
    model_value = values.pop("model", None)
    of_file = values.get("options")
    values.update(options)
    if isinstance(of_file, dict) and "options" in options:
        # One more option of the benchmark, such as the answer to a question, leaves those of the file as they are.
        values["options"] = {**of_file, **options["options"]}
    check_keys(values, EvalConfig.model_fields, str(file or ""), options)
    if not isinstance(model_value, str | list | None):
        raise UsageError(
            f"model: should be a name or a list of names (got {model_value!r})",
            hint='e.g. model = "qwen2.5-vl"',
        )
    plugin = plugin_of(str(values.get("benchmark", "")))
    first_run = FIRST_RUN_WITHOUT_TOOLS if plugin and plugin.without_tools else FIRST_RUN_MODELS
    names = list(models) or (
        [model_value]
        if isinstance(model_value, str)
        else cast("list[str]", model_value) or [*first_run]
    )
    for name in names:
        check_model_name(str(name))
    doses = [_given_doses(f"--{name}", values.pop(name, "")) for name in ("degrade", "faults")]
    conditions = [
        {"degrade": degrade, "faults": faults} for degrade, faults in itertools.product(*doses)
    ]
    if len(names) * len(conditions) > 1 and values.get("out") is not None:
        several, option = (
            ("models", "--model") if len(names) > 1 else ("doses", "--degrade or --faults")
        )
        raise UsageError(
            f"--out names one run, but several {several} are asked for",
            hint=f"omit --out, or give one {option}",
        )
    try:
        return [
            EvalConfig.model_validate({**values, **condition, "model": model})
            for condition in conditions
            for model in names
        ]
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        wrong = plain_message(first).replace("Input should", "should")
        wrong = wrong.replace("greater than or equal to", "at least").replace(
            "less than or equal to", "at most"
        )
        raise UsageError(
            f"{where}: {wrong} (got {first['input']!r})", hint="see agrotools eval --help"
        ) from error


def _given_doses(option: str, given: Any) -> list[Any]:
    """Return the doses of an option that may be repeated, a text for each run; UsageError if one is empty."""
    several = cast("list[Any]", given) if isinstance(given, list) else [given]
    if isinstance(given, list) and not all(str(each).strip() for each in several):
        raise UsageError(f"{option} is empty", hint=f"omit it, or {option} none for a run without")
    return several


def with_default_models(
    configs: Sequence[EvalConfig], file: Path | None, models: Sequence[str], benchmark: Benchmark
) -> list[EvalConfig]:
    """Return the configurations, with the default models for questions without reference calls if it has such ones.

    Whether questions have reference calls, which other default models make, may be known only when they are loaded.
    ``file``, ``models``: as of :func:`read_config`; models that they name stay.
    """
    is_named = bool(models) or (file is not None and "model" in read_toml(file))
    if is_named or all(facts_of(benchmark.samples).reference):
        return [*configs]
    first = [each for each in configs if each.model == configs[0].model]
    return [
        each.model_copy(update={"model": model})
        for each in first
        for model in FIRST_RUN_WITHOUT_TOOLS
    ]


def tool_backends(options: Sequence[str]) -> dict[str, str]:
    """Return ``TOOL=KIND`` options as a table (UsageError: another form); ``recorded`` alone applies to all tools."""
    by_tool = [f"{EVERY_TOOL}={text}" if text == RECORDED else text for text in options]
    return _pairs(
        by_tool, "--backend", "TOOL=KIND, or recorded for all tools", "agrotools tools list"
    )


def benchmark_options(options: Sequence[str]) -> dict[str, str]:
    """Return ``NAME=VALUE`` options as a table; UsageError if one has another form."""
    return _pairs(options, "--option", "NAME=VALUE", "e.g. --option shots=5")


def _pairs(texts: Sequence[str], option: str, form: str, hint: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    wrong = [
        text for text, (name, _, value) in zip(texts, pairs, strict=True) if not name or not value
    ]
    if wrong:
        raise UsageError(f"{option} {wrong[0]!r} is not of the form {form}", hint=hint)
    return {name: value for name, _, value in pairs}


def check_keys(
    values: Iterable[str], known: Collection[str], file: str, options: Iterable[str] = ()
) -> None:
    """Check the keys of a configuration.

    Args:
        file: where the keys come from; empty for options.
        options: keys that come from options although there is a file.

    Raises:
        UsageError: a key is not known; the closest ones are suggested.
    """
    for key in values:
        if key not in known:
            fault = (
                f"unknown key {key!r} in {file}"
                if file and key not in options
                else f"unknown option {key!r}"
            )
            raise UsageError(fault, hint=suggestion(key, known))


def read_toml(
    file: Path, what: str = "configuration file", *, hint: str = "check the path of --config"
) -> dict[str, Any]:
    """Read a TOML file (``what`` it holds) that the user gives; UsageError if it does not exist or is none."""
    try:
        if file.exists() and not (
            file.is_file() or file.is_dir() or file.parent == Path("/dev/fd")
        ):  # bash's <(...)
            raise UsageError(
                f"the {what} {file} is a pipe or a device: it may never end",
                hint="give a regular file",
            )
        return tomllib.loads(read_text(file))
    except FileNotFoundError as error:
        raise UsageError(f"there is no {what} {file}", hint=hint) from error
    except (OSError, UnicodeDecodeError, RecursionError, tomllib.TOMLDecodeError) as error:
        raise UsageError(
            f"cannot read the {what} {file}: {error}", hint="it must be a TOML file"
        ) from error


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
    selected_modes: list[Mode] = [mode for mode in config.modes if mode in benchmark.modes]
    modes = tuple(selected_modes)
    # A back-end for all tools overrides the back-ends that the benchmark itself sets.
    needed = {} if EVERY_TOOL in config.backends else benchmark.header.backends
    backends = backend_by_tool({**needed, **config.backends}, benchmark.toolset)
    if is_baseline(config.model):
        images = True if config.images is None else config.images
        return RunSettings(
            DEFAULT_PROTOCOL, config.max_steps or DEFAULT_TURNS, images, modes, backends
        )
    if is_agent(config.model):
        turns = config.max_steps or benchmark.header.max_steps or DEFAULT_TURNS
        return RunSettings(DEFAULT_PROTOCOL, turns, config.images is not False, modes, backends)
    if run := replayed_run(config.model):
        manifest = read_manifest(Path(run))
        turns = config.max_steps or manifest.max_steps
        return RunSettings(manifest.protocol, turns, manifest.images, modes, backends)
    protocol, note = (
        (config.protocol, "")
        if config.protocol
        else _default_protocol(benchmark.header.protocol, modes)
    )
    rules = run_protocol(protocol)
    turns = config.max_steps or benchmark.header.max_steps or rules.max_turns or DEFAULT_TURNS
    is_local = config.model.startswith(LOCAL_PREFIX)  # these models take text alone
    images = rules.shows_images and not is_local if config.images is None else config.images
    if note and rules.max_turns is not None:
        note += f"; at most {turns} turns, {'images are shown' if images else 'no images are shown (--images)'}"
    return RunSettings(protocol, turns, images, modes, backends, note)


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
                "--vlm-model was given but no tool uses it", hint="add --backend TOOL=vlm"
            )
        return None
    if not endpoint.model:
        raise UsageError(f"{asking[0]} uses a vision model, and none is given", hint=NAME_A_MODEL)
    return priced_model(endpoint, option="--vlm-price")


def recorded_backends(backends: Mapping[str, str], model: PricedModel | None) -> dict[str, str]:
    """Return back-ends as a manifest stores them: ``vlm`` includes the model name, which changes the results."""
    return {
        tool: f"{backend}:{model.name}" if model and backend == VLM else backend
        for tool, backend in backends.items()
    }


def check_models(configs: Sequence[EvalConfig]) -> list[EvalConfig]:
    """Return the configurations with an endpoint; UsageError for a benchmark or model that cannot be used."""
    for each in configs:
        name, roots = each.benchmark, (each.data_root or Path(), Path())
        if name not in BENCHMARKS and not any((root / name).is_dir() for root in roots):
            load_as(name, Loading(each.data_root))  # its error names similar ones
    with_endpoint = [each for each in configs if names_endpoint(each.model)]
    for each in with_endpoint:
        priced_model(each.endpoint)
    return with_endpoint


def contacting_progress(
    checked: Sequence[EvalConfig], stream: TextIO
) -> Callable[[str, int, int], None]:
    """Return a callback ``(stage, done, total)`` of long preparations that also finds endpoints that cannot be used.

    Model names, keys and addresses of ``checked`` are checked at once; after a moment, each endpoint answers a tiny
    request.

    Raises:
        UsageError, EndpointRefusal, EndpointUnreachable: a model cannot be used; the last two in the callback.
    """
    show = stage_progress(stream)
    waiting = check_models(checked)
    began = time.monotonic()

    def report(stage: str, done: int, total: int) -> None:
        from agrotools.models.probe import check_endpoint

        while waiting and time.monotonic() - began > _LONG_LOADING_S:
            each = waiting.pop()
            if not (
                each.cache or each.endpoint.server
            ):  # otherwise all replies may be in the cache
                asyncio.run(check_endpoint(each.endpoint, each.settings))
        show(stage, done, total)

    return report
