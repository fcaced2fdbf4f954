"""Options of the agents of a run: those of a model that is prompted, and those of an external agent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agrotools.calling import tool_specs
from agrotools.core import Protocol, ToolSpec
from agrotools.formats.benchmark import Benchmark
from agrotools.models import DEFAULT_WIRE, Endpoint, ModelSettings, WireSettings


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
    seed: int = 0
    """Seed of the run, which the agent is told."""


@dataclass(frozen=True)
class AgentOptions:
    """Protocol, sampling and prompts of the agents of a run."""

    protocol: Protocol = "react"
    settings: ModelSettings = field(default_factory=ModelSettings)
    images: bool = True
    tool_images: bool = False
    """True to show the pictures of results, where :func:`place_of_pictures` says."""
    max_steps: int = 20
    """Model turns per sample; some protocols tell the model when the last turn has come."""
    benchmark: Benchmark | None = None
    """Benchmark of the run, for agents that need it, e.g. for its own tool declarations."""
    specs: Callable[[Sequence[str]], Sequence[ToolSpec]] = tool_specs
    """Function from tool names to their specifications."""
    agent: ExternalAgentOptions = field(default_factory=ExternalAgentOptions)
