"""Plug-in of GTA-2."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agrotools.benchmarks._dialogs.protocols import PROTOCOLS
from agrotools.benchmarks.counts import count_tools
from agrotools.benchmarks.gta2.slots import SubTasksSlot
from agrotools.core import BenchmarkError, Slot
from agrotools.core.progress import Progress
from agrotools.plugin import BenchmarkPlugin, ExpectedCount, MetricInfo, deferred

if TYPE_CHECKING:
    from agrotools.benchmarks._dialogs.layouts import Layout
    from agrotools.benchmarks.checking import FileCheck


def _layout() -> "Layout":
    from agrotools.benchmarks.gta2.load import layout_of

    return layout_of("end")


def _find(data_root: Path | None) -> str:
    from agrotools.benchmarks._dialogs.layouts import find_file

    return str(find_file(_layout(), data_root))


def _file_roots(data_root: Path | None) -> Sequence[Path]:
    from agrotools.benchmarks._dialogs.layouts import roots_of

    return roots_of(_layout(), data_root)


def _check(data_root: Path | None, progress: Progress) -> "FileCheck":
    from agrotools.benchmarks._dialogs.layouts import file_check, find_file
    from agrotools.benchmarks.gta2.load import layout_of, read_gta2

    try:
        tasks = find_file(layout_of("end"), data_root)
    except BenchmarkError as error:
        try:
            dialogs = find_file(layout_of("step"), data_root)
        except BenchmarkError:
            raise error from None
        return file_check(read_gta2(dialogs, "step", progress), layout_of("step"))
    return file_check(read_gta2(tasks, "end", progress), layout_of("end"))


def _is_tree(slot: Slot) -> bool:
    return isinstance(slot, SubTasksSlot)


PLUGIN = BenchmarkPlugin(
    name="gta-2",
    title="GTA-2",
    about="tasks on files of any kind, graded by a judge on trees of sub-tasks; 13 of its 37 tools are here",
    needs="DIR/gta_dataset_v2/end.json (or step.json), toolmeta.json and files, "
    "releases of github.com/open-compass/GTA",
    aliases=("gta2",),
    load=deferred("agrotools.benchmarks.gta2.load:load_gta2"),
    find=_find,
    file_roots=_file_roots,
    check=_check,
    protocols=PROTOCOLS,
    # agentlego/benchmark_toollist_v2.txt of its repository; no other count of it is known here.
    expected=(ExpectedCount("tools", 37, False, count_tools),),
    slots=(SubTasksSlot,),
    metrics={
        "gta2.gpt_score": MetricInfo(
            "gpt_score",
            "weighted mean of a judge's grades, 0 to 10, read as published; the judge is asked in words of ours",
            out_of=10,
            slots=_is_tree,
            by_judge=True,
        ),
        "gta2.score_corrected": MetricInfo(
            "Score*",
            "the same as a share, where a reply that cannot be read has no grade",
            slots=_is_tree,
            stands_for_sample=True,
            by_judge=True,
        ),
    },
    scoring_target="agrotools.benchmarks.gta2.score:SCORING",
    judging_target="agrotools.benchmarks.gta2.judge:JUDGING",
    reporting_target="agrotools.benchmarks.gta2.report:REPORTING",
)
