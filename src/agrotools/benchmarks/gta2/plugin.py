"""Plug-in of GTA-2, and the slot of a task with a tree of sub-tasks."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from agrotools.benchmarks._dialogs.plugin_parts import LAGENT, PaperRun
from agrotools.benchmarks.counts import count_tools
from agrotools.core import FrozenModel, Slot
from agrotools.plugin import BenchmarkPlugin, ExpectedCount, MetricInfo, deferred

PAPER_RUN = PaperRun("lagent", 10)


DEEPEST_SUB_TASK = 12
"""Levels that a tree of sub-tasks may have."""


class SubTask(FrozenModel):
    """Something that a task asks for: a requirement, or several that are weighed against each other.

    ``requirements`` of one without ``sub_tasks`` (a leaf) is what a judge grades.
    """

    id: Annotated[str, Field(min_length=1, max_length=200)]
    requirements: str = ""
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    sub_tasks: tuple["SubTask", ...] = ()

    @property
    def leaves(self) -> Iterator["SubTask"]:
        """The leaves below it in written order; itself where it is one."""
        if not self.sub_tasks:
            yield self
        for each in self.sub_tasks:
            yield from each.leaves

    @property
    def depth(self) -> int:
        """Levels of it: 1 for a leaf."""
        return 1 + max((each.depth for each in self.sub_tasks), default=0)

    @property
    def ids(self) -> Iterator[str]:
        """Its own, then those of all below it."""
        yield self.id
        for each in self.sub_tasks:
            yield from each.ids


class SubTasksSlot(Slot):
    """Result of a whole task by its tree of sub-tasks (GTA-2): a judge grades each leaf, weighted means give the rest.

    No two sub-tasks of a tree share an id.
    """

    made: ClassVar[bool] = True
    judged: ClassVar[bool] = True
    scored_apart: ClassVar[bool] = True
    form_opening: ClassVar[str] = (
        "Do the whole task. Files that it asks for must be made with the tools, not described."
    )
    form_closing: ClassVar[str] = "End with an answer that says what came of it and names the files that you made."
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
        seen: set[str] = set()
        for name in (name for each in self.sub_tasks for name in each.ids):
            if name in seen:
                raise ValueError(f"two sub-tasks have the id {name!r}")
            seen.add(name)
        return self

    @property
    def leaves(self) -> tuple[SubTask, ...]:
        """All leaves in written order."""
        return tuple(leaf for each in self.sub_tasks for leaf in each.leaves)

    @property
    def depth(self) -> int:
        """Levels of the tree, 1 where all are leaves."""
        return max(each.depth for each in self.sub_tasks)


def is_tree(slot: Slot) -> bool:
    """True if a judge grades the slot by a tree of sub-tasks."""
    return isinstance(slot, SubTasksSlot)


PLUGIN = BenchmarkPlugin(
    name="gta-2",
    title="GTA-2",
    about="tasks on files of any kind, graded by a judge on trees of sub-tasks; 13 of its 37 tools are here",
    needs="DIR/gta_dataset_v2/end.json (or step.json), toolmeta.json and files, "
    "releases of github.com/open-compass/GTA",
    aliases=("gta2",),
    load=deferred("agrotools.benchmarks.gta2.load:load_gta2"),
    takes_options=True,
    find=deferred("agrotools.benchmarks.gta2.load:TASKS.find"),
    file_roots=deferred("agrotools.benchmarks.gta2.load:TASKS.roots"),
    check=deferred("agrotools.benchmarks.gta2.load:check_gta2"),
    protocols=LAGENT,
    # agentlego/benchmark_toollist_v2.txt of its repository; no other count of it is known here.
    expected=(ExpectedCount("tools", 37, False, count_tools),),
    slots=(SubTasksSlot,),
    metrics={
        "gta2.gpt_score": MetricInfo(
            "gpt_score",
            "weighted mean of a judge's grades, 0 to 10, read as published; the judge is asked in words of ours",
            out_of=10,
            slots=is_tree,
            by_judge=True,
        ),
        "gta2.score_corrected": MetricInfo(
            "Score*",
            "the same as a share, where a reply that cannot be read has no grade",
            slots=is_tree,
            stands_for_sample=True,
            by_judge=True,
        ),
    },
    scoring_target="agrotools.benchmarks.gta2.score:SCORING",
    judging_target="agrotools.benchmarks.gta2.judge:JUDGING",
    reporting_target="agrotools.benchmarks.gta2.judge:REPORTING",
)
