"""Plug-in of the benchmark ripeness: one object, all light; its parts are imported when they are needed."""

from agrotools.plugin import (
    BenchmarkPlugin,
    ExpectedCount,
    MetricInfo,
    Paper,
    RunProtocol,
    Slot,
    Targets,
    deferred,
)
from ripeness.slots import GradeSlot


def _is_grade(slot: Slot) -> bool:
    return isinstance(slot, GradeSlot)


PLUGIN = BenchmarkPlugin(
    name="ripeness",
    about="three questions on the ripeness of tomatoes",
    load=deferred("ripeness.parts:load_ripeness"),
    slots=(GradeSlot,),
    metrics={
        "ripeness.grade": MetricInfo(
            "Grade",
            "1 for the right grade, half for the next one",
            slots=_is_grade,
            scores_sample=True,
            compared_in=("end-to-end",),
        )
    },
    tools={"grade_colour": "ripeness.tools:grade_colour"},
    protocols={
        "one-word": RunProtocol(
            modes=("no-tool",),
            agent=deferred("ripeness.parts:OneWordAgent"),
            prompts=lambda _benchmark: "Reply with one word.",
        )
    },
    paper=Paper(counts=(ExpectedCount("questions", 3, True, len),)),
    targets=Targets(scoring="ripeness.parts:SCORING", reporting="ripeness.parts:REPORTING"),
)
