"""What an evaluation is asked to be: the options of ``agrotools eval`` and the keys of its config file."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from agrotools.core import MODES, FrozenModel, Mode, Protocol, UsageError
from agrotools.models import DEFAULT_WIRE, ModelSettings, WireSettings

_SETTINGS = ("temperature", "max_output_tokens", "top_logprobs", "seed")
_WIRE_FIELDS = ("concurrency", "rpm", "tpm", "timeout_s", "stall_s", "attempts", "retry_wall_s")


class EvalConfig(FrozenModel):
    """What to evaluate and how. The fields are the options of ``agrotools eval`` and the keys of its config file."""

    benchmark: str = "embedded"
    options: dict[str, str | int | bool] = {}
    """Options of a benchmark that is known by name: how its questions are put."""
    data_root: Path | None = None
    model: str = "baseline:planner"
    base_url: str | None = None
    api_key_env: str | None = None
    mode: Mode | str = "all"
    protocol: Protocol | None = None
    """None: the one that the benchmark was published with, ``react`` where there is none."""
    images: bool | None = None
    """Whether the model sees images; None: as the protocol has it (``lagent`` shows none)."""
    limit: Annotated[int | None, Field(ge=1)] = None
    epochs: Annotated[int, Field(ge=1)] = 1
    max_steps: Annotated[int | None, Field(ge=1)] = None
    """Model turns per sample; None: as many as the benchmark's own runs had, else 20 (``lagent``: 10)."""
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
    """USD that the run may spend in all, over every time it is gone on with."""
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
        """How the model samples; what is not given is left to the defaults."""
        given = {name: getattr(self, name) for name in _SETTINGS}
        return ModelSettings.model_validate({name: value for name, value in given.items() if value is not None})

    @property
    def wire(self) -> WireSettings:
        """How the endpoint is used."""
        return WireSettings(**{name: getattr(self, name) for name in _WIRE_FIELDS})
