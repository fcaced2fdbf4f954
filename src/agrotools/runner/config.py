"""Configuration of an evaluation: the options of ``agrotools eval`` and the keys of its config file, checked."""

import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field, ValidationError, field_validator

from agrotools.core import MODES, FrozenModel, Mode, Protocol, UsageError
from agrotools.models import DEFAULT_WIRE, ModelSettings, WireSettings
from agrotools.plugin import plugin_of

FIRST_RUN_MODELS = ("baseline:planner", "baseline:oracle")
"""Models of a run that names none: plans of similar questions put to use, and the best that the tools allow."""
FIRST_RUN_WITHOUT_TOOLS = ("baseline:prior", "baseline:random")
"""The same for questions without reference calls."""
RECORDED = "recorded"
"""Back-end of a tool that is not run: its calls get what was recorded of the reference."""
EVERY_TOOL = "*"
"""Stands for all tools of a benchmark where back-ends are given by tool."""

_SETTINGS = ("temperature", "max_output_tokens", "top_logprobs", "seed")
_WIRE_FIELDS = ("concurrency", "rpm", "tpm", "timeout_s", "stall_s", "attempts", "retry_wall_s")


class EvalConfig(FrozenModel):
    """Benchmark, model and options of an evaluation: those of ``agrotools eval``, and the keys of its config file."""

    benchmark: str = "embedded"
    options: dict[str, str | int | bool] = {}
    """Options of a benchmark that is known by name."""
    data_root: Path | None = None
    model: str = "baseline:planner"
    base_url: str | None = None
    api_key_env: str | None = None
    mode: Mode | str = "all"
    protocol: Protocol | None = None
    """None: the one that the benchmark was published with, ``react`` where there is none."""
    images: bool | None = None
    """Whether the model sees images; None: as the protocol has it (those of some papers show none)."""
    limit: Annotated[int | None, Field(ge=1)] = None
    epochs: Annotated[int, Field(ge=1)] = 1
    max_steps: Annotated[int | None, Field(ge=1)] = None
    """Model turns per sample; None: as many as the benchmark's own runs had, else those of the protocol or 20."""
    seed: int | None = None
    """Seeds baselines (0 if not given), and is sent to the endpoint only if given: some refuse it."""
    temperature: Annotated[float | None, Field(ge=0)] = None
    max_output_tokens: Annotated[int | None, Field(ge=1)] = None
    top_logprobs: Annotated[int | None, Field(ge=1, le=20)] = None
    """Ask the endpoint how likely other tokens were: options are then also scored by the likelihood of their letter."""
    concurrency: Annotated[int | None, Field(ge=1)] = None
    """Requests in flight; None: as many as the endpoint bears."""
    cache: str | None = None
    """Name of a response cache, shared by all runs that name it."""
    budget: Annotated[float | None, Field(gt=0)] = None
    """USD that the run may spend in all, however often it is resumed."""
    price: str | None = None
    """``IN/OUT`` in USD per million tokens, where the table of prices does not know the model or is out of date."""
    rpm: Annotated[int | None, Field(ge=1)] = None
    tpm: Annotated[int | None, Field(ge=1)] = None
    timeout_s: Annotated[float, Field(gt=0)] = DEFAULT_WIRE.timeout_s
    stall_s: Annotated[float, Field(gt=0)] = DEFAULT_WIRE.stall_s
    attempts: Annotated[int, Field(ge=1)] = DEFAULT_WIRE.attempts
    retry_wall_s: Annotated[float, Field(gt=0)] = DEFAULT_WIRE.retry_wall_s
    tool_workers: Annotated[int, Field(ge=1)] = 2
    backends: dict[str, str] = {}
    vlm_model: str | None = None
    """The vision model that tools ask whose back-end is ``vlm``: a name on the endpoint, or PROVIDER:NAME."""
    vlm_base_url: str | None = None
    vlm_api_key_env: str | None = None
    vlm_price: str | None = None
    """``IN/OUT`` in USD per million tokens, as ``price``."""
    out: Path | None = None

    @field_validator("benchmark")
    @classmethod
    def _is_an_id(cls, benchmark: str) -> str:
        from agrotools.plugin import benchmark_id

        return benchmark_id(benchmark)

    @field_validator("protocol")
    @classmethod
    def _is_known(cls, protocol: Protocol | None) -> Protocol | None:
        from agrotools.runner.policies import RUN_PROTOCOLS

        if protocol is not None and protocol not in RUN_PROTOCOLS:
            raise ValueError(f"should be one of {', '.join(RUN_PROTOCOLS)}")
        return protocol

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes that ``mode`` means.

        Raises:
            UsageError: not a mode.
        """
        wanted: list[Mode] = [mode for mode in MODES if self.mode in (mode, "all")]
        if not wanted:
            raise UsageError(f"unknown mode {self.mode!r}", hint=f"one of {', '.join(MODES)}, all")
        return tuple(wanted)

    @property
    def settings(self) -> ModelSettings:
        """Sampling settings; those that are not given keep their defaults."""
        given = {name: getattr(self, name) for name in _SETTINGS}
        return ModelSettings.model_validate({name: value for name, value in given.items() if value is not None})

    @property
    def wire(self) -> WireSettings:
        """Limits, time-outs and retries of the endpoint."""
        return WireSettings(**{name: getattr(self, name) for name in _WIRE_FIELDS})


def read_config(file: Path | None, options: Mapping[str, Any], models: Sequence[str]) -> list[EvalConfig]:
    """One configuration for each model; ``options`` win over the file.

    Raises:
        UsageError: the file cannot be read, a key or value is not known (with the closest key), or one run folder is
            asked for several models.
    """
    values = dict(_read_toml(file)) if file else {}
    named = values.pop("model", None)
    values.update(options)
    unknown = [key for key in values if key not in EvalConfig.model_fields]
    if unknown:
        close = get_close_matches(unknown[0], EvalConfig.model_fields, n=2)
        raise UsageError(
            f"unknown key {unknown[0]!r} in {file}",
            hint=f"did you mean {' or '.join(map(repr, close))}?"
            if close
            else f"known: {', '.join(EvalConfig.model_fields)}",
        )
    if not isinstance(named, str | list | None):
        raise UsageError(
            f"model: should be a name or a list of names (got {named!r})", hint='e.g. model = "qwen2.5-vl"'
        )
    plugin = plugin_of(str(values.get("benchmark", "")))
    first_run = FIRST_RUN_WITHOUT_TOOLS if plugin and plugin.without_tools else FIRST_RUN_MODELS
    wanted = list(models) or ([named] if isinstance(named, str) else cast("list[str]", named) or [*first_run])
    if len(wanted) > 1 and values.get("out") is not None:
        raise UsageError(
            "--out names one run, but several models are asked for", hint="omit --out, or give one --model"
        )
    try:
        return [EvalConfig.model_validate({**values, "model": model}) for model in wanted]
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"{where}: {first['msg']} (got {first['input']!r})", hint="see agrotools eval --help"
        ) from error


def tool_backends(given: Sequence[str]) -> dict[str, str]:
    """``TOOL=KIND`` options as a table; ``recorded`` alone is for every tool.

    Raises:
        UsageError: not of that form.
    """
    by_tool = [f"{EVERY_TOOL}={text}" if text == RECORDED else text for text in given]
    return _pairs(by_tool, "--backend", "TOOL=KIND, or recorded for all tools", "agrotools tools list")


def benchmark_options(given: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE`` options as a table.

    Raises:
        UsageError: not of that form.
    """
    return _pairs(given, "--option", "NAME=VALUE", "e.g. --option shots=5")


def _pairs(given: Sequence[str], option: str, form: str, hint: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    wrong = [text for text, (name, _, value) in zip(given, pairs, strict=True) if not name or not value]
    if wrong:
        raise UsageError(f"{option} {wrong[0]!r} is not of the form {form}", hint=hint)
    return {name: value for name, _, value in pairs}


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RecursionError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read the configuration {file}: {error}", hint="it must be a TOML file") from error
