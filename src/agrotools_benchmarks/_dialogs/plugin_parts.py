"""Lightweight definitions shared by the plug-ins of GTA, ThinkGeo and Agent-X."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field

from agrotools.agents.protocols import PromptTemplates, RunProtocol
from agrotools.core import Mode, Protocol, Slot
from agrotools.core.registry import deferred
from agrotools.loading.facts import Facts


class ImageCallsSlot(Slot):
    """Image answer, scored by the calls that create it: the reference calls to ``tools``."""

    made_by_tools: ClassVar[bool] = True
    type: Literal["image_calls"] = "image_calls"
    tools: Annotated[tuple[str, ...], Field(min_length=1)]

    @property
    def expected_text(self) -> str:
        return f"an image made by the calls of the reference to {', '.join(self.tools)}"


class PaperRun(NamedTuple):
    """Settings of the runs in a paper: the defaults of a run, and the reference for comparability."""

    protocol: Protocol
    max_steps: int | None = None
    """Maximum number of model turns per sample; None for a protocol with a single turn."""
    questions: Mapping[str, int] = MappingProxyType({})
    """Number of questions for each value of the option ``split``, as the paper counts them."""


LAGENT = {
    "lagent": RunProtocol(
        modes=("step-by-step", "end-to-end"),
        agent=deferred("agrotools_benchmarks._dialogs.lagent:make_agent"),
        prompts=deferred("agrotools_benchmarks._dialogs.lagent_format:declared_text"),
        templates=PromptTemplates("lagent", "agrotools_benchmarks._dialogs"),
        max_turns=10,
        shows_images=False,
        stops_unparseable=False,
        error_counts={
            "step-by-step": "agrotools_benchmarks._dialogs.record_dialogues:OF_STEPS",
            "end-to-end": "agrotools_benchmarks._dialogs.record_dialogues:OF_RUNS",
        },
    )
}
"""Protocol with which GTA and ThinkGeo prompt models."""


class TableLayout(NamedTuple):
    """Layout of a paper's table: column headings by suffix of the metric id, and the table number of the
    printed rows. ``boards``: further tables of the same columns that the authors published later."""

    title: str
    columns: Mapping[str, str]
    table: str = ""
    boards: Sequence[str] = ()


def table_layouts(facts: Facts) -> dict[Mode, TableLayout]:
    """Return the layouts of a paper's tables by mode."""
    return {mode: TableLayout(**table) for mode, table in facts["tables"].items()}
