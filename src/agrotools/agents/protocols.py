"""Contract of a protocol: how a model is prompted, and how its replies become calls and answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from agrotools.core import Mode

if TYPE_CHECKING:
    from agrotools.agents.modes import ModelAgent
    from agrotools.agents.options import AgentOptions
    from agrotools.formats.benchmark import Benchmark
    from agrotools.models import Model


class PromptTemplates(NamedTuple):
    """Templates of a protocol: the files ``*.j2`` in a folder of a package, rendered as ``PREFIX/NAME``."""

    prefix: str
    package: str
    folder: str = "prompts"


@dataclass(frozen=True)
class RunProtocol:
    """Protocol for prompting a model: the prompts, and how replies become calls and answers."""

    modes: tuple[Mode, ...]
    agent: "Callable[[Model, Mode, AgentOptions], ModelAgent]"
    """Factory of the agent for a mode."""
    prompts: "Callable[[Benchmark], str]" = lambda _benchmark: ""
    """Function that returns all prompt text that is in no template; runs are comparable only if it is equal."""
    templates: PromptTemplates | None = None
    """Prompt templates, whose texts are part of the prompt hash."""
    max_turns: int | None = None
    """Default limit of model turns per sample if neither the user nor the benchmark sets one; None for the engine's
    default."""
    shows_images: bool = True
    """Default of the image setting: True if images are shown to the model."""
    single_shot: bool = False
    """True if one reply contains all steps, tool results and the answer: prompts name the tools, but no tool is run."""
    stops_unparseable: bool = True
    """True if several unparseable replies in a row end a sample."""
    error_counts: Mapping[Mode, str] = field(default_factory=dict)
    """Targets of a :class:`RecordErrors`, by mode."""
