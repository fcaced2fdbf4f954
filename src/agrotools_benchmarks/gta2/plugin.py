"""Plug-in of GTA-2, and the slot for a task with a tree of sub-tasks."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from agrotools.core import FrozenModel, Slot
from agrotools.core.registry import deferred
from agrotools.loading.facts import plugin_of, read_facts
from agrotools_benchmarks._dialogs.plugin_parts import LAGENT, PaperRun

FACTS = read_facts(__file__)
PAPER_RUN = PaperRun(**FACTS["paper_run"])
DEEPEST_SUB_TASK = 12
"""Maximum depth of a tree of sub-tasks."""


class SubTask(FrozenModel):
    """Sub-task: a single requirement (a leaf, which a judge grades), or a weighted group of sub-tasks."""

    id: Annotated[str, Field(min_length=1, max_length=200)]
    requirements: str = ""
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)] = 1.0
    sub_tasks: tuple["SubTask", ...] = ()

    @property
    def leaves(self) -> Iterator["SubTask"]:
        """Leaves below the sub-task in written order, or the sub-task itself if it is a leaf."""
        if not self.sub_tasks:
            yield self
        for each in self.sub_tasks:
            yield from each.leaves

    @property
    def depth(self) -> int:
        """Number of levels; 1 for a leaf."""
        return 1 + max((each.depth for each in self.sub_tasks), default=0)

    @property
    def ids(self) -> Iterator[str]:
        """Id of the sub-task, followed by those of all sub-tasks below it."""
        yield self.id
        for each in self.sub_tasks:
            yield from each.ids


class SubTasksSlot(Slot):
    """Result of a whole task, scored by its tree of sub-tasks (GTA-2).

    A judge grades each leaf, and weighted means give the scores of the other nodes. Ids are unique within a tree.
    """

    made_by_tools: ClassVar[bool] = True
    judged: ClassVar[bool] = True
    scored_apart: ClassVar[bool] = True
    type: Literal["sub_tasks"] = "sub_tasks"
    sub_tasks: Annotated[tuple[SubTask, ...], Field(min_length=1)]

    @property
    def expected_text(self) -> str:
        requirements = "; ".join(leaf.requirements for leaf in self.leaves)
        return f"{len(self.leaves)} requirements, graded by a judge: {requirements}"

    @model_validator(mode="after")
    def _is_a_tree(self) -> Self:
        if self.depth > DEEPEST_SUB_TASK:
            raise ValueError(f"sub-tasks are nested deeper than {DEEPEST_SUB_TASK} levels")
        counts = Counter(name for each in self.sub_tasks for name in each.ids)
        if twice := next((name for name, count in counts.items() if count > 1), None):
            raise ValueError(f"two sub-tasks have the id {twice!r}")
        return self

    @property
    def leaves(self) -> tuple[SubTask, ...]:
        """All leaves in written order."""
        return tuple(leaf for each in self.sub_tasks for leaf in each.leaves)

    @property
    def depth(self) -> int:
        """Number of levels of the tree; 1 if all sub-tasks are leaves."""
        return max(each.depth for each in self.sub_tasks)


def is_tree(slot: Slot) -> bool:
    """Return True if a judge grades the slot by a tree of sub-tasks."""
    return isinstance(slot, SubTasksSlot)


PLUGIN = plugin_of(
    FACTS,
    {"tree": is_tree},
    load=deferred("agrotools_benchmarks.gta2.load:load_gta2"),
    find=deferred("agrotools_benchmarks.gta2.load:GTA2.layout.find"),
    roots=deferred("agrotools_benchmarks.gta2.load:GTA2.layout.roots"),
    check=deferred("agrotools_benchmarks.gta2.load:check_gta2"),
    protocols=LAGENT,
    slots=(SubTasksSlot,),
)
