"""Light parts that the plug-ins of GTA, GTA-2, ThinkGeo and Agent-X share."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from agrotools.core import Protocol
from agrotools.plugin import PromptTemplates, RunProtocol, deferred


class PaperRun(NamedTuple):
    """Settings of the runs in a paper: the defaults of a run, and what it is compared with."""

    protocol: Protocol
    max_steps: int | None = None
    """Model turns after which a sample ended; None for a protocol with a single turn."""
    questions: Mapping[str, int] = MappingProxyType({})
    """Number of questions by the option ``split``, as the paper counts them."""


LAGENT = {
    "lagent": RunProtocol(
        modes=("step-by-step", "end-to-end"),
        agent=deferred("agrotools.benchmarks._dialogs.lagent:make_agent"),
        prompts=deferred("agrotools.benchmarks._dialogs.lagent_format:declared_text"),
        templates=PromptTemplates("lagent", "agrotools.benchmarks._dialogs"),
        max_turns=10,
        shows_images=False,
        stops_unparseable=False,
    )
}
"""Protocol in which GTA, GTA-2 and ThinkGeo prompt models."""


def tools_in(module: str, names: Iterable[str]) -> dict[str, str]:
    """Targets of the tools of those names in a module."""
    return {name: f"{module}:{name}" for name in names}
