"""Light parts that the plug-ins of GTA, GTA-2, ThinkGeo and Agent-X share."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field

from agrotools.core import Protocol, Slot
from agrotools.plugin import PromptTemplates, RunProtocol, deferred


class ImageCallsSlot(Slot):
    """An image, scored by the calls that make it: those of the reference trajectory to ``tools``."""

    made: ClassVar[bool] = True
    form_opening: ClassVar[str] = "The answer is an image. It must be made with the tools, not described."
    form_closing: ClassVar[str] = "When the image is made, end with one sentence that says what it shows."
    type: Literal["image_calls"] = "image_calls"
    tools: Annotated[tuple[str, ...], Field(min_length=1)]

    @property
    def expected_text(self) -> str:
        return f"an image made by the calls of the reference to {', '.join(self.tools)}"


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


class TableLayout(NamedTuple):
    """A table as a paper lays it out: the columns (end of a metric's id to heading), and where the printed rows are."""

    title: str
    columns: Mapping[str, str]
    table: str = ""


STEPS = {"inst_acc": "Inst", "tool_acc": "Tool", "arg_acc": "Arg", "summ_acc": "Summ"}
"""Columns of step-by-step runs in the papers of GTA and ThinkGeo."""
