"""Loader: the samples are made here, as others would read them from files."""

from pathlib import Path

from agrotools.plugin import (
    Benchmark,
    BenchmarkHeader,
    Loading,
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    with_clusters,
)
from ripeness.slots import GradeSlot

_GRADES = {"green": 1, "pink": 3, "dark red": 5}


def load_ripeness(loading: Loading) -> Benchmark:
    """The three questions."""
    samples = [_sample(number, colour, grade) for number, (colour, grade) in enumerate(_GRADES.items())]
    header = BenchmarkHeader(
        name="ripeness", version="1", licence="CC0-1.0", description="ripeness of tomatoes", toolset=("grade_colour",)
    )
    return Benchmark(header, Path(), with_clusters(samples), "ripeness-1")


def _sample(number: int, colour: str, grade: int) -> Sample:
    step = ReferenceStep(
        tool="grade_colour", arguments={"colour": colour}, observation=Observation(result={"grade": grade})
    )
    return Sample(
        id=f"tomato-{number}",
        query=f"A tomato is {colour}. How ripe is it?",
        files=(),
        family="RR",
        task_type="ripeness",
        answer_type="exact",
        template="ripeness",
        source="ripeness",
        toolset=("grade_colour",),
        reference=ReferenceTrajectory(steps=(step,)),
        answer=(
            GradeSlot(name="grade", label="the grade of ripeness", value=grade, from_="steps[0].observation.grade"),
        ),
    )
