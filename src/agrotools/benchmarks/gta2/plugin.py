"""Plug-in of GTA-2."""

from agrotools.benchmarks._dialogs.plugin_parts import LAGENT, PaperRun
from agrotools.benchmarks.counts import count_tools
from agrotools.benchmarks.gta2.slots import SubTasksSlot
from agrotools.core import Slot
from agrotools.plugin import BenchmarkPlugin, ExpectedCount, MetricInfo, deferred

PAPER_RUN = PaperRun("lagent", 10)


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
    reporting_target="agrotools.benchmarks.gta2.report:REPORTING",
)
